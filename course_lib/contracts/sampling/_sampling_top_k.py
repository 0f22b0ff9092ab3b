"""Sampling distributions whose top-k removes the wrong tokens."""

from course_lib.contracts.engine.mistake import mistakes
from course_lib.contracts.sampling._distributions import mistaken_distribution

_EXACTLY_K = (
    "order[:k] of a stable sort, no threshold | order[:k] устойчивой сортировки, без порога"
)
_STABLE = "sort by (-logit, id) | сортируйте по (-logit, id)"


def _higher_ids_first(values):
    return sorted(range(len(values)), key=lambda token: (-values[token], -token))


def _ties_of_the_last(ranked, values, k, p):
    least = values[ranked[k - 1]]
    return [token for token in ranked if values[token] >= least]


def _higher_ids_of_k(ranked, values, k, p):
    chosen = set(_higher_ids_first(values)[:k])
    return [token for token in ranked if token in chosen]


# fmt: off
TOP_K_MISTAKES = mistakes(
    mistaken_distribution,
    one_more_kept=("kingoflolz/mesh-transformer-jax#164",
        "k + 1 tokens are kept | оставлено k + 1 токенов",
        "order[:k]", {"cut": lambda ranked, values, k, p: ranked[:k + 1]}),
    one_less_kept=("",
        "k - 1 tokens are kept | оставлено k - 1 токенов",
        "order[:k]", {"cut": lambda ranked, values, k, p: ranked[:max(k - 1, 1)]}),
    top_k_ignored=("",
        "top_k has no effect | top_k ни на что не влияет",
        "keep order[:k] only | оставьте только order[:k]",
        {"cut": lambda ranked, values, k, p: ranked}),
    top_k_ignored_with_top_p=("",
        "top_k has no effect when top_p is given | при заданном top_p top_k не действует",
        "one filter after the other, no else | фильтры один за другим, без else",
        {"cut": lambda ranked, values, k, p: ranked[:k] if p is None else ranked}),
    least_likely_kept=("",
        "top-k keeps the least likely tokens | top-k оставляет наименее вероятные токены",
        "sort in descending order | сортируйте по убыванию",
        {"cut": lambda ranked, values, k, p: ranked[-k:]}),
    ties_kept=("vllm-project/vllm#50979",
        "every token that ties with the k-th is kept, though exactly k must survive | "
        "остаются все токены, равные k-му, хотя должно остаться ровно k",
        _EXACTLY_K, {"cut": _ties_of_the_last}),
    top_k_higher_ids=("vllm-project/vllm#15478",
        "of equal logits top-k keeps the higher ids | "
        "из равных логитов top-k оставляет старшие номера",
        _STABLE, {"cut": _higher_ids_of_k}),
    higher_ids_kept=("apple/axlearn#1022",
        "of equal logits both filters keep the higher ids, as a reversed sort does | "
        "из равных логитов оба фильтра оставляют старшие номера (перевёрнутая сортировка)",
        _STABLE, {"rank": _higher_ids_first}),
)
# fmt: on
