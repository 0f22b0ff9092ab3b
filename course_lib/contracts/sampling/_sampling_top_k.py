"""Sampling distributions whose top-k removes the wrong tokens."""

from functools import partial

from course_lib.contracts.engine.mistake import Mistake
from course_lib.contracts.sampling._distributions import mistaken_distribution

_EXACTLY_K = {
    "en": "order[:k] of a stable sort, no threshold",
    "ru": "order[:k] устойчивой сортировки, без порога",
}
_STABLE = {"en": "sort by (-logit, id)", "ru": "сортируйте по (-logit, id)"}


def _higher_ids_first(values):
    return sorted(range(len(values)), key=lambda token: (-values[token], -token))


def _ties_of_the_last(ranked, values, k, p):
    least = values[ranked[k - 1]]
    return [token for token in ranked if values[token] >= least]


def _higher_ids_of_k(ranked, values, k, p):
    chosen = set(_higher_ids_first(values)[:k])
    return [token for token in ranked if token in chosen]


TOP_K_MISTAKES = (
    Mistake(
        "one_more_kept",
        "kingoflolz/mesh-transformer-jax#164",
        partial(mistaken_distribution, cut=lambda ranked, values, k, p: ranked[: k + 1]),
        {"en": "k + 1 tokens are kept", "ru": "оставлено k + 1 токенов"},
        {"en": "order[:k]", "ru": "order[:k]"},
    ),
    Mistake(
        "one_less_kept",
        "a mutation of right code",
        partial(mistaken_distribution, cut=lambda ranked, values, k, p: ranked[: max(k - 1, 1)]),
        {"en": "k - 1 tokens are kept", "ru": "оставлено k - 1 токенов"},
        {"en": "order[:k]", "ru": "order[:k]"},
    ),
    Mistake(
        "top_k_ignored",
        "a mutation of right code",
        partial(mistaken_distribution, cut=lambda ranked, values, k, p: ranked),
        {"en": "top_k has no effect", "ru": "top_k ни на что не влияет"},
        {"en": "keep order[:k] only", "ru": "оставьте только order[:k]"},
    ),
    Mistake(
        "top_k_ignored_with_top_p",
        "a mutation of right code",
        partial(
            mistaken_distribution,
            cut=lambda ranked, values, k, p: ranked[:k] if p is None else ranked,
        ),
        {
            "en": "top_k has no effect when top_p is given",
            "ru": "при заданном top_p top_k не действует",
        },
        {"en": "one filter after the other, no else", "ru": "фильтры один за другим, без else"},
    ),
    Mistake(
        "least_likely_kept",
        "a mutation of right code",
        partial(mistaken_distribution, cut=lambda ranked, values, k, p: ranked[-k:]),
        {
            "en": "top-k keeps the least likely tokens",
            "ru": "top-k оставляет наименее вероятные токены",
        },
        {"en": "sort in descending order", "ru": "сортируйте по убыванию"},
    ),
    Mistake(
        "ties_kept",
        "vllm-project/vllm#50979",
        partial(mistaken_distribution, cut=_ties_of_the_last),
        {
            "en": "every token that ties with the k-th is kept, though exactly k must survive",
            "ru": "остаются все токены, равные k-му, хотя должно остаться ровно k",
        },
        _EXACTLY_K,
    ),
    Mistake(
        "top_k_higher_ids",
        "vllm-project/vllm#15478",
        partial(mistaken_distribution, cut=_higher_ids_of_k),
        {
            "en": "of equal logits top-k keeps the higher ids",
            "ru": "из равных логитов top-k оставляет старшие номера",
        },
        _STABLE,
    ),
    Mistake(
        "higher_ids_kept",
        "apple/axlearn#1022",
        partial(mistaken_distribution, rank=_higher_ids_first),
        {
            "en": "of equal logits both filters keep the higher ids, as a reversed sort does",
            "ru": "из равных логитов оба фильтра оставляют старшие номера (перевёрнутая "
            "сортировка)",
        },
        _STABLE,
    ),
)
