"""Sampling distributions whose top-p removes the wrong tokens."""

from functools import partial

from course_lib.contracts.engine.mistake import Mistake
from course_lib.contracts.sampling._distributions import (
    mistaken_distribution,
    refuse_bad_sampling,
    shortest_run,
)

_NUCLEUS = {
    "en": "keep = cumsum - probs < top_p, sorted",
    "ru": "keep = cumsum - probs < top_p, по убыванию",
}
_STABLE_P = {"en": "sort by (-logit, id)", "ru": "сортируйте по (-logit, id)"}


def _higher_ids_of_p(kept, shares, top_p):
    falling = sorted(kept, key=lambda token: (-shares[token], -token))
    return shortest_run(falling, shares, top_p)


def _ties_of_nucleus(kept, shares, top_p):
    least = shares[shortest_run(kept, shares, top_p)[-1]]
    return [token for token in kept if shares[token] >= least]


def _without_crossing(kept, shares, top_p):
    run = shortest_run(kept, shares, top_p)
    return run if sum(shares[token] for token in run) <= top_p else run[:-1] or run


def _past_equality(kept, shares, top_p):
    mass = 0.0
    for count, token in enumerate(kept, start=1):
        mass += shares[token]
        if mass > top_p:
            return kept[:count]
    return kept


def _one_past_crossing(kept, shares, top_p):
    return kept[: len(shortest_run(kept, shares, top_p)) + 1]


def _without_shortcut(kept, shares, top_p):
    mass = 0.0
    for count, token in enumerate(kept, start=1):
        mass += shares[token]
        if mass >= top_p:
            return kept[:count]
    return kept


def _distribution_by_k_alone(logits, temperature=1.0, top_k=None, top_p=None):
    refuse_bad_sampling(logits, temperature, top_k, top_p)
    return mistaken_distribution()(logits, temperature, top_k, top_p if top_k is None else None)


def _some_or_nothing(kept, shares, top_p):
    """The ascending form: keep what lies above 1 - p, which is 1 when p is tiny."""
    return shortest_run(kept, shares, top_p) if 1 - top_p < 1 else []


TOP_P_MISTAKES = (
    Mistake(
        "top_p_higher_ids",
        "a mutation of right code",
        partial(mistaken_distribution, nucleus=_higher_ids_of_p),
        {
            "en": "of equal logits top-p keeps the higher ids, as an ascending sort does",
            "ru": "из равных логитов top-p оставляет старшие номера (сортировка по возрастанию)",
        },
        _STABLE_P,
    ),
    Mistake(
        "top_p_ties_kept",
        "AI-Hypercomputer/maxtext#950",
        partial(mistaken_distribution, nucleus=_ties_of_nucleus),
        {
            "en": "every token that ties with the last of the nucleus is kept: a threshold, not a "
            "rank",
            "ru": "остаются все токены, равные последнему в ядре: порог вместо места в ряду",
        },
        {
            "en": "cut the sorted ids, not the values",
            "ru": "отрезайте номера в ряду, а не значения",
        },
    ),
    Mistake(
        "crossing_dropped",
        "rasbt/reasoning-from-scratch#164",
        partial(mistaken_distribution, nucleus=_without_crossing),
        {
            "en": "the token that crosses top_p is dropped, though it belongs to the nucleus",
            "ru": "токен, на котором сумма переходит top_p, отброшен, хотя он входит в ядро",
        },
        _NUCLEUS,
    ),
    Mistake(
        "extra_on_equality",
        "huggingface/transformers#18976",
        partial(mistaken_distribution, nucleus=_past_equality),
        {
            "en": "one token more is kept when the sum equals top_p exactly",
            "ru": "при сумме, в точности равной top_p, остаётся лишний токен",
        },
        _NUCLEUS,
    ),
    Mistake(
        "one_past_crossing",
        "a mutation of right code",
        partial(mistaken_distribution, nucleus=_one_past_crossing),
        {
            "en": "one token more than the nucleus is kept",
            "ru": "остаётся на один токен больше, чем в ядре",
        },
        _NUCLEUS,
    ),
    Mistake(
        "top_p_ignored",
        "paiml/aprender#2080",
        partial(mistaken_distribution, nucleus=lambda kept, shares, p: kept),
        {"en": "top_p has no effect", "ru": "top_p ни на что не влияет"},
        _NUCLEUS,
    ),
    Mistake(
        "top_p_ignored_with_top_k",
        "shiyu-coder/Kronos#262",
        lambda: _distribution_by_k_alone,
        {
            "en": "top_p has no effect when top_k is given",
            "ru": "при заданном top_k top_p не действует",
        },
        {"en": "no return after the first filter", "ru": "без return после первого фильтра"},
    ),
    Mistake(
        "top_p_of_whole_mass",
        "ml-explore/mlx-lm#388",
        partial(mistaken_distribution, measure=lambda ranked, kept: ranked),
        {
            "en": "top_p measures the whole distribution, as when it comes before top-k, not what "
            "top-k left",
            "ru": "top_p отмеряет всё распределение, как если бы шёл до top-k, а не то, что top-k "
            "оставил",
        },
        {
            "en": "renormalise after top-k, then cumsum",
            "ru": "перенормируйте после top-k, затем cumsum",
        },
    ),
    Mistake(
        "top_p_in_id_order",
        "dmlc/gluon-nlp#1481",
        partial(
            mistaken_distribution,
            nucleus=lambda kept, shares, p: shortest_run(sorted(kept), shares, p),
        ),
        {
            "en": "top-p adds the tokens up in the order of their ids, unsorted",
            "ru": "top-p складывает токены по порядку номеров, без сортировки",
        },
        {"en": "sort in descending order first", "ru": "сначала сортировка по убыванию"},
    ),
    Mistake(
        "top_p_from_the_tail",
        "ml-explore/mlx-examples#602",
        partial(
            mistaken_distribution,
            nucleus=lambda kept, shares, p: shortest_run(kept[::-1], shares, p),
        ),
        {
            "en": "top-p adds up from the least likely token and keeps the tail",
            "ru": "top-p складывает с наименее вероятного токена и оставляет хвост",
        },
        {"en": "sort in descending order", "ru": "сортируйте по убыванию"},
    ),
    Mistake(
        "top_p_complement",
        "lucidrains/x-transformers#184",
        partial(
            mistaken_distribution,
            nucleus=lambda kept, shares, p: kept if p == 1 else shortest_run(kept, shares, 1 - p),
        ),
        {"en": "the nucleus has the mass 1 - top_p", "ru": "масса ядра равна 1 - top_p"},
        {"en": "compare with top_p", "ru": "сравнивайте с top_p"},
    ),
    Mistake(
        "min_p_instead",
        "a mutation of right code",
        partial(
            mistaken_distribution,
            nucleus=lambda kept, shares, p: (
                kept if p == 1 else [i for i in kept if shares[i] >= p * max(shares.values())]
            ),
        ),
        {
            "en": "top_p works as min-p: kept is what has at least p of the largest probability",
            "ru": "top_p действует как min-p: остаётся всё, что не меньше доли p от наибольшей "
            "вероятности",
        },
        _NUCLEUS,
    ),
    Mistake(
        "p_one_filters",
        "a mutation of right code",
        partial(mistaken_distribution, nucleus=_without_shortcut),
        {
            "en": "with top_p=1 rounding reaches 1.0 early and the tail is removed",
            "ru": "при top_p=1 округлённая сумма раньше времени достигает 1.0, и хвост удалён",
        },
        {"en": "if top_p < 1: filter", "ru": "фильтруйте только при top_p < 1"},
    ),
    Mistake(
        "p_one_is_greedy",
        "BlinkDL/ChatRWKV#170",
        partial(
            mistaken_distribution,
            nucleus=lambda kept, shares, p: shortest_run(kept, shares, p if p < 1 else 1e-9),
        ),
        {
            "en": "with top_p=1 only the likeliest token is left",
            "ru": "при top_p=1 остаётся только самый вероятный токен",
        },
        {"en": "if top_p < 1: filter", "ru": "фильтруйте только при top_p < 1"},
    ),
    Mistake(
        "tiny_p_leaves_nothing",
        "ml-explore/mlx-lm#1912",
        partial(mistaken_distribution, nucleus=_some_or_nothing),
        {
            "en": "with a tiny top_p no token is left, not even the likeliest",
            "ru": "при крошечном top_p не остаётся ни одного токена",
        },
        {"en": "the likeliest token always stays", "ru": "самый вероятный токен остаётся всегда"},
    ),
)
