"""Sampling distributions whose filters, top-k or top-p, remove the wrong tokens."""

from course_lib.contracts.engine.mistake import mistakes
from course_lib.contracts.sampling.distributions import (
    mistaken_distribution,
    refuse_bad_sampling,
    shortest_run,
)

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

_NUCLEUS = "keep = cumsum - probs < top_p, sorted | keep = cumsum - probs < top_p, по убыванию"


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


# fmt: off
TOP_P_MISTAKES = mistakes(
    mistaken_distribution,
    top_p_higher_ids=("",
        "of equal logits top-p keeps the higher ids, as an ascending sort does | "
        "из равных логитов top-p оставляет старшие номера (сортировка по возрастанию)",
        _STABLE, {"nucleus": _higher_ids_of_p}),
    top_p_ties_kept=("AI-Hypercomputer/maxtext#950",
        "every token that ties with the last of the nucleus is kept: a threshold, not a rank | "
        "остаются все токены, равные последнему в ядре: порог вместо места в ряду",
        "cut the sorted ids, not the values | отрезайте отсортированные номера, а не значения",
        {"nucleus": _ties_of_nucleus}),
    crossing_dropped=("rasbt/reasoning-from-scratch#164",
        "the token that crosses top_p is dropped, though it belongs to the nucleus | "
        "токен, на котором сумма переходит top_p, отброшен, хотя он входит в ядро",
        _NUCLEUS, {"nucleus": _without_crossing}),
    extra_on_equality=("huggingface/transformers#18976",
        "one token more is kept when the sum equals top_p exactly | "
        "при сумме, в точности равной top_p, остаётся лишний токен",
        _NUCLEUS, {"nucleus": _past_equality}),
    one_past_crossing=("",
        "one token more than the nucleus is kept | остаётся на один токен больше, чем в ядре",
        _NUCLEUS, {"nucleus": _one_past_crossing}),
    top_p_ignored=("paiml/aprender#2080",
        "top_p has no effect | top_p ни на что не влияет",
        _NUCLEUS, {"nucleus": lambda kept, shares, p: kept}),
    top_p_ignored_with_top_k=("shiyu-coder/Kronos#262",
        "top_p has no effect when top_k is given | при заданном top_k top_p не действует",
        "no return after the first filter | без return после первого фильтра",
        lambda: _distribution_by_k_alone),
    top_p_of_whole_mass=("ml-explore/mlx-lm#388",
        "top_p measures the whole distribution, as when it comes before top-k, not what top-k left "
        "| top_p отмеряет всё распределение, как если бы шёл до top-k, а не то, что top-k оставил",
        "renormalise after top-k, then cumsum | перенормируйте после top-k, затем cumsum",
        {"measure": lambda ranked, kept: ranked}),
    top_p_in_id_order=("dmlc/gluon-nlp#1481",
        "top-p adds the tokens up in the order of their ids, unsorted | "
        "top-p складывает токены по порядку номеров, без сортировки",
        "sort in descending order first | сначала сортировка по убыванию",
        {"nucleus": lambda kept, shares, p: shortest_run(sorted(kept), shares, p)}),
    top_p_from_the_tail=("ml-explore/mlx-examples#602",
        "top-p adds up from the least likely token and keeps the tail | "
        "top-p складывает с наименее вероятного токена и оставляет хвост",
        "sort in descending order | сортируйте по убыванию",
        {"nucleus": lambda kept, shares, p: shortest_run(kept[::-1], shares, p)}),
    top_p_complement=("lucidrains/x-transformers#184",
        "the nucleus has the mass 1 - top_p | масса ядра равна 1 - top_p",
        "compare with top_p | сравнивайте с top_p",
        {"nucleus": lambda kept, shares, p: kept if p == 1 else shortest_run(kept, shares, 1 - p)}),
    min_p_instead=("",
        "top_p works as min-p: kept is what has at least p of the largest probability | "
        "top_p действует как min-p: остаётся всё, что не меньше доли p от наибольшей вероятности",
        _NUCLEUS,
        {"nucleus": lambda kept, shares, p:
            kept if p == 1 else [i for i in kept if shares[i] >= p * max(shares.values())]}),
    p_one_filters=("",
        "with top_p=1 rounding reaches 1.0 early and the tail is removed | "
        "при top_p=1 округлённая сумма раньше времени достигает 1.0, и хвост удалён",
        "if top_p < 1: filter | фильтруйте только при top_p < 1", {"nucleus": _without_shortcut}),
    p_one_is_greedy=("BlinkDL/ChatRWKV#170",
        "with top_p=1 only the likeliest token is left | "
        "при top_p=1 остаётся только самый вероятный токен",
        "if top_p < 1: filter | фильтруйте только при top_p < 1",
        {"nucleus": lambda kept, shares, p: shortest_run(kept, shares, p if p < 1 else 1e-09)}),
    tiny_p_leaves_nothing=("ml-explore/mlx-lm#1912",
        "with a tiny top_p no token is left, not even the likeliest | "
        "при крошечном top_p не остаётся ни одного токена",
        "the likeliest token always stays | самый вероятный токен остаётся всегда",
        {"nucleus": _some_or_nothing}),
)
# fmt: on
