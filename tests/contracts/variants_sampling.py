"""Sampling distributions, right and wrong, beyond the catalogue."""

import bisect
import heapq
import math
from decimal import Decimal, localcontext
from itertools import accumulate

import numpy as np
import torch

from course_lib.contracts import check_sampling_contract
from course_lib.contracts.sampling.sampling_mistakes import SAMPLING_MISTAKES
from course_lib.sampling import token_distribution

from .trial import Fresh, named_by

CHECK, CATALOGUE = check_sampling_contract, SAMPLING_MISTAKES
CLAUSES = [
    *("result_form", "arguments_unchanged", "repeatable", "softmax", "temperature", "top_k"),
    *("top_k_ties", "top_p", "exact_boundaries", "top_p_ends", "temperature_first"),
    *("top_k_then_top_p", "any_mixture", "extreme_logits", "large_vocabulary", "bad_arguments"),
]


def checked(logits, temperature, top_k, top_p):
    if len(logits) == 0 or not all(math.isfinite(logit) for logit in logits):
        raise ValueError("logits")
    if temperature <= 0:
        raise ValueError("temperature")
    if top_k is not None and not 1 <= top_k <= len(logits):
        raise ValueError("top_k")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError("top_p")


def by_sets(logits, temperature=1.0, top_k=None, top_p=None):
    """Plain Python: rank, cut, cut again."""
    checked(logits, temperature, top_k, top_p)
    top = max(logits)
    mass = {i: math.exp((z - top) / temperature) for i, z in enumerate(logits)}
    ranked = sorted(mass, key=lambda i: (-logits[i], i))[:top_k]
    if top_p is not None and top_p < 1:
        total = sum(mass[i] for i in ranked)
        sums = list(accumulate(mass[i] / total for i in ranked))
        ranked = ranked[: 1 + sum(each < top_p for each in sums)]
    total = sum(mass[i] for i in ranked)
    return [mass[i] / total if i in set(ranked) else 0.0 for i in range(len(logits))]


def by_torch(logits, temperature=1.0, top_k=None, top_p=None, dtype=torch.float64):
    checked(logits, temperature, top_k, top_p)
    scaled = torch.tensor(logits, dtype=dtype) / temperature
    values, order = torch.sort(scaled, descending=True, stable=True)
    if top_k is not None:
        values[top_k:] = -math.inf
    if top_p is not None and top_p < 1:
        probs = values.softmax(0)
        before = probs.cumsum(0) - probs
        values = values.masked_fill(before >= top_p, -math.inf)
    return torch.zeros(len(logits), dtype=dtype).scatter(0, order, values.softmax(0)).tolist()


def in_float32(logits, temperature=1.0, top_k=None, top_p=None):
    return by_torch(logits, temperature, top_k, top_p, dtype=torch.float32)


def by_numpy(logits, temperature=1.0, top_k=None, top_p=None):
    checked(logits, temperature, top_k, top_p)
    z = np.asarray(logits, dtype=np.float64) / temperature
    order = np.argsort(-z, kind="stable")
    probs = np.exp(z - z.max())
    probs[order[top_k:] if top_k is not None else []] = 0.0
    probs /= probs.sum()
    if top_p is not None and top_p < 1:
        count = int(np.searchsorted(np.cumsum(probs[order]), top_p, side="left")) + 1
        probs[order[count:]] = 0.0
        probs /= probs.sum()
    return probs


def by_logsumexp(logits, temperature=1.0, top_k=None, top_p=None):
    checked(logits, temperature, top_k, top_p)

    def logs(ids):
        top = max(logits[i] for i in ids) / temperature
        lse = top + math.log(sum(math.exp(logits[i] / temperature - top) for i in ids))
        return {i: logits[i] / temperature - lse for i in ids}

    k = len(logits) if top_k is None else top_k
    kept = heapq.nsmallest(k, range(len(logits)), key=lambda i: (-logits[i], i))
    if top_p is not None and top_p < 1:
        reached, nucleus = 0.0, []
        for i in kept:
            nucleus.append(i)
            reached += math.exp(logs(kept)[i])
            if reached >= top_p:
                break
        kept = nucleus
    final = logs(kept)
    return tuple(math.exp(final[i]) if i in final else 0.0 for i in range(len(logits)))


def by_decimal(logits, temperature=1.0, top_k=None, top_p=None):
    """Forty digits, and a bisection among the running sums."""
    checked(logits, temperature, top_k, top_p)
    with localcontext() as context:
        context.prec = 40
        top = max(logits)
        parts = [((Decimal(z) - Decimal(top)) / Decimal(temperature)).exp() for z in logits]
        ranked = sorted(range(len(parts)), key=lambda i: (-parts[i], i))
        kept = ranked if top_k is None else ranked[:top_k]
        if top_p is not None and top_p < 1:
            total = sum(parts[i] for i in kept)
            sums = [float(each / total) for each in accumulate(parts[i] for i in kept)]
            kept = kept[: bisect.bisect_left(sums, top_p) + 1]
        total = sum(parts[i] for i in kept)
        probs = [Decimal(0)] * len(parts)
        for i in kept:
            probs[i] = parts[i] / total
    return probs


def as_a_tensor(logits, temperature=1.0, top_k=None, top_p=None):
    """Masks of kept tokens instead of a scatter; a tensor comes back."""
    checked(logits, temperature, top_k, top_p)
    z = torch.tensor(logits, dtype=torch.float64)
    ids = torch.arange(len(z))
    above = (z > z[:, None]) | ((z == z[:, None]) & (ids < ids[:, None]))
    place = above.sum(-1)
    keep = place < (len(z) if top_k is None else top_k)
    mass = torch.exp((z - z.max()) / temperature) * keep
    if top_p is not None and top_p != 1:
        shares = mass / mass.sum()
        order = place.argsort()
        before = torch.zeros_like(shares)
        before[order[1:]] = shares[order].cumsum(0)[:-1]
        mass = mass * (before < top_p)
    return mass / mass.sum()


def one_by_one(logits, temperature=1.0, top_k=None, top_p=None):
    """Take the likeliest token again and again, until k or p is reached."""
    checked(logits, temperature, top_k, top_p)
    top, left, mass = max(logits), list(range(len(logits))), {}
    count = len(left) if top_k is None else top_k
    for _ in range(count):
        best = left[0]
        for i in left:
            if logits[i] > logits[best]:
                best = i
        left.remove(best)
        mass[best] = math.exp((logits[best] - top) / temperature)
    total, kept = sum(mass.values()), {}
    for i, part in mass.items():
        if top_p is not None and top_p < 1 and sum(kept.values()) >= top_p * total:
            break
        kept[i] = part
    total = sum(kept.values())
    return [kept[i] / total if i in kept else 0.0 for i in range(len(logits))]


def filters_of_filters(logits, temperature=1.0, top_k=None, top_p=None):
    """Logits through three warpers in a row; what is removed is -inf in between."""
    checked(logits, temperature, top_k, top_p)
    z = np.array(logits, dtype=np.longdouble)
    if top_k is not None:
        kth = sorted(((-value, i) for i, value in enumerate(z)))[top_k - 1]
        z = np.array([v if (-v, i) <= kth else -np.inf for i, v in enumerate(z)])
    z = (z - z.max()) / temperature
    if top_p is not None and top_p < 1:
        order = np.lexsort((np.arange(len(z)), -z))
        probs = np.exp(z[order]) / np.exp(z).sum()
        cut = order[1:][np.cumsum(probs)[:-1] >= top_p]
        z[cut] = -np.inf
    return np.exp(z) / np.exp(z).sum()


def distribution_with(
    *,
    check=checked,
    warm=lambda z, t: z / t,
    rank=lambda i, z: (-z, i),
    cut_k=lambda ranked, k, logits: ranked[:k],
    enough=lambda mass, p: mass >= p,
    whole=lambda p: p == 1,
    order="k then p",
    measure="survivors",
    late=False,
    finish=lambda probs: probs,
):
    """Right when nothing is handed to it; a wrong variant replaces one step."""

    def shares(logits, ids, temperature):
        values = {i: warm(logits[i], temperature) for i in ids}
        top = max(values.values())
        mass = {i: math.exp(value - top) for i, value in values.items()}
        total = sum(mass.values())
        return {i: part / total for i, part in mass.items()}

    def distribution(logits, temperature=1.0, top_k=None, top_p=None):
        check(logits, temperature, top_k, top_p)
        ids = range(len(logits))
        ranked = sorted(ids, key=lambda i: rank(i, logits[i]))

        def by_k(kept):
            return kept if top_k is None else cut_k(kept, top_k, logits)

        def by_p(kept):
            if top_p is None or whole(top_p):
                return kept
            pool = ids if measure == "all" else kept
            parts, mass, nucleus = shares(logits, pool, 1.0 if late else temperature), 0.0, []
            for i in kept:
                if enough(mass, top_p):
                    break
                nucleus.append(i)
                mass += parts[i]
            return nucleus

        kept = by_p(by_k(ranked)) if order == "k then p" else by_k(by_p(ranked))
        final = shares(logits, kept, temperature)
        return finish([final.get(i, 0.0) for i in ids])

    return distribution


def ties_kept(ranked, k, logits):
    return [i for i in ranked if logits[i] >= logits[ranked[k - 1]]]


def drops_the_crossing(logits, temperature=1.0, top_k=None, top_p=None):
    if top_p is None:
        return by_sets(logits, temperature, top_k, top_p)
    checked(logits, temperature, top_k, top_p)
    probs = by_sets(logits, temperature, top_k)
    ranked = sorted((i for i, p in enumerate(probs) if p), key=lambda i: (-logits[i], i))
    sums = list(accumulate(probs[i] for i in ranked))
    kept = {i for i, total in zip(ranked, sums, strict=True) if total <= top_p} or {ranked[0]}
    mass = sum(probs[i] for i in kept)
    return [p / mass if i in kept else 0.0 for i, p in enumerate(probs)]


def unnormalised(logits, temperature=1.0, top_k=None, top_p=None):
    checked(logits, temperature, top_k, top_p)
    full, cut = by_sets(logits, temperature), by_sets(logits, temperature, top_k, top_p)
    return [p if kept else 0.0 for p, kept in zip(full, cut, strict=True)]


def tiny_instead_of_zero(logits, temperature=1.0, top_k=None, top_p=None):
    probs = by_sets(logits, temperature, top_k, top_p)
    return [max(p, 1e-10) for p in probs]


def sorts_the_callers_list(logits, temperature=1.0, top_k=None, top_p=None):
    probs = by_sets(logits, temperature, top_k, top_p)
    logits.sort()
    return probs


def divides_the_callers_list(logits, temperature=1.0, top_k=None, top_p=None):
    checked(logits, temperature, top_k, top_p)
    for i in range(len(logits)):
        logits[i] /= temperature
    return by_sets(logits, 1.0, top_k, top_p)


def no_maximum(logits, temperature=1.0, top_k=None, top_p=None):
    checked(logits, temperature, top_k, top_p)
    kept = [p > 0 for p in by_sets(logits, temperature, top_k, top_p)]
    mass = [math.exp(z / temperature) if k else 0.0 for z, k in zip(logits, kept, strict=True)]
    return [m / sum(mass) for m in mass]


def one_list():
    stored = []

    def distribution(logits, temperature=1.0, top_k=None, top_p=None):
        stored[:] = by_sets(logits, temperature, top_k, top_p)
        return stored

    return distribution


def temperature_kept():
    kept = {}

    def distribution(logits, temperature=1.0, top_k=None, top_p=None):
        checked(logits, temperature, top_k, top_p)
        if temperature != 1.0:
            kept["t"] = temperature
        return by_sets(logits, kept.get("t", 1.0), top_k, top_p)

    return distribution


def noisy():
    draw = np.random.default_rng(0)

    def distribution(logits, temperature=1.0, top_k=None, top_p=None):
        checked(logits, temperature, top_k, top_p)
        return by_sets([z + draw.normal() for z in logits], temperature, top_k, top_p)

    return distribution


def first_hundred(logits, temperature=1.0, top_k=None, top_p=None):
    """Looks for the nucleus among the hundred likeliest only, to be quick."""
    if top_p is not None and top_k is None:
        checked(logits, temperature, top_k, top_p)
        top_k = min(100, len(logits)) if top_p < 1 else None
    return by_sets(logits, temperature, top_k, top_p)


def unstable_order(logits, temperature=1.0, top_k=None, top_p=None):
    """A sort that keeps ties in order only while the list is short."""
    checked(logits, temperature, top_k, top_p)
    order = np.argsort(-np.asarray(logits), kind="quicksort")
    rank = np.empty(len(logits), dtype=int)
    rank[order] = np.arange(len(logits))
    kept = [i for i in range(len(logits)) if top_k is None or rank[i] < top_k]
    probs = by_sets([logits[i] for i in kept], temperature, None, top_p)
    return [probs[kept.index(i)] if i in kept else 0.0 for i in range(len(logits))]


def clamped_temperature(logits, temperature=1.0, top_k=None, top_p=None):
    checked(logits, temperature, top_k, top_p)
    return by_sets(logits, max(temperature, 1e-4), top_k, top_p)


def lax(**skip):
    def check(logits, temperature, top_k, top_p):
        if "logits" in skip:
            logits = [z for z in logits if math.isfinite(z)] or [0.0]
        if "temperature" in skip:
            temperature = 1.0
        if "top_k" in skip and top_k is not None:
            top_k = 1
        if "top_p" in skip:
            top_p = None
        checked(logits, temperature, top_k, top_p)

    return check


def k_clamped(logits, temperature=1.0, top_k=None, top_p=None):
    if top_k is not None and top_k > len(logits):
        top_k = len(logits)
    return by_sets(logits, temperature, top_k, top_p)


def type_errors(logits, temperature=1.0, top_k=None, top_p=None):
    if temperature <= 0:
        raise TypeError("temperature")
    return by_sets(logits, temperature, top_k, top_p)


RIGHT = {
    "the course's own": token_distribution,
    "by sets": by_sets,
    "by torch": by_torch,
    "in float32": in_float32,
    "by numpy": by_numpy,
    "by logsumexp and a heap": by_logsumexp,
    "by decimals": by_decimal,
    "as a tensor": as_a_tensor,
    "one by one": one_by_one,
    "filters of filters": filters_of_filters,
}
WRONG = {
    "k ignored for two tokens": (
        distribution_with(
            cut_k=lambda ranked, k, logits: ranked[:k] if len(logits) > 2 else ranked
        ),
        "any_mixture",
    ),
    "one token too few for k of all and p": (
        distribution_with(cut_k=lambda ranked, k, logits: ranked[: k - (k == 5)] if k else ranked),
        "top_k",
    ),
    "nearly 1 taken for 1": (distribution_with(whole=lambda p: p > 0.99), "top_p_ends"),
    "temperature ignored": (distribution_with(warm=lambda z, t: z), "temperature"),
    "temperature multiplied": (distribution_with(warm=lambda z, t: z * t), "temperature"),
    "temperature twice": (distribution_with(warm=lambda z, t: z / t / t), "temperature"),
    "temperature clamped": (clamped_temperature, "temperature"),
    "temperature after top-p": (distribution_with(late=True), "temperature_first"),
    "k + 1 kept": (distribution_with(cut_k=lambda r, k, z: r[: k + 1]), "top_k"),
    "k - 1 kept": (distribution_with(cut_k=lambda r, k, z: r[: max(k - 1, 1)]), "top_k"),
    "least likely kept": (distribution_with(cut_k=lambda r, k, z: r[-k:]), "top_k"),
    "top_k ignored": (distribution_with(cut_k=lambda r, k, z: r), "top_k"),
    "ties kept": (distribution_with(cut_k=ties_kept), "top_k_ties"),
    "higher ids kept": (distribution_with(rank=lambda i, z: (-z, -i)), "top_k_ties"),
    "crossing token dropped": (drops_the_crossing, "top_p"),
    "one token past p": (distribution_with(enough=lambda mass, p: mass > p), "exact_boundaries"),
    "one token more": (distribution_with(enough=lambda mass, p: mass >= p + 0.2), "top_p"),
    "top_p ignored": (distribution_with(whole=lambda p: True), "top_p"),
    "p = 1 filters": (distribution_with(whole=lambda p: False), "top_p_ends"),
    "p = 1 is greedy": (
        distribution_with(enough=lambda m, p: m > 0 and m >= p % 1, whole=lambda p: False),
        "top_p_ends",
    ),
    "top_p before top_k": (distribution_with(order="p then k"), "top_k_then_top_p"),
    "p of the whole mass": (distribution_with(measure="all"), "top_k_then_top_p"),
    "not renormalised": (unnormalised, "top_k"),
    "tiny instead of zero": (tiny_instead_of_zero, "top_k"),
    "softmax again": (distribution_with(finish=lambda probs: by_sets(probs)), "softmax"),
    "sorted output": (distribution_with(finish=lambda p: sorted(p, reverse=True)), "softmax"),
    "survivors only": (distribution_with(finish=lambda p: [x for x in p if x]), "result_form"),
    "log-probabilities": (
        distribution_with(finish=lambda p: [math.log(x) if x else -1e9 for x in p]),
        "softmax",
    ),
    "NaN where tokens tie": (
        lambda logits, *a, **k: [
            math.nan if logits.count(z) > 2 else p
            for z, p in zip(logits, by_sets(logits, *a, **k), strict=True)
        ],
        "result_form",
    ),
    "nested": (distribution_with(finish=lambda p: [p]), "result_form"),
    "no result": (distribution_with(finish=lambda p: None), "result_form"),
    "exp without the maximum": (no_maximum, "extreme_logits"),
    "list sorted": (sorts_the_callers_list, "arguments_unchanged"),
    "list divided": (divides_the_callers_list, "arguments_unchanged"),
    "one list for all": (Fresh(one_list), "repeatable"),
    "noise": (Fresh(noisy), "repeatable"),
    "temperature kept": (Fresh(temperature_kept), "repeatable"),
    "ties in any order": (unstable_order, "large_vocabulary"),
    "first hundred only": (first_hundred, "large_vocabulary"),
    "any logits": (distribution_with(check=lax(logits=True)), "bad_arguments"),
    "k cut to V": (k_clamped, "bad_arguments"),
    "any p": (distribution_with(check=lax(top_p=True)), "bad_arguments"),
    "TypeError for the temperature": (type_errors, "bad_arguments"),
}
MISTAKES = named_by(
    arguments_unchanged="logits_divided_in_place logits_erased_in_place logits_sorted_in_place",
    repeatable="one_list_for_all",
    softmax="temperature_on_probabilities softmax_again sorted_result",
    temperature=(
        "temperature_ignored temperature_multiplied temperature_twice "
        "temperature_only_for_filters temperature_clamped"
    ),
    top_k=(
        "one_more_kept one_less_kept top_k_ignored least_likely_kept not_renormalised "
        "removed_filled_with_1e_10"
    ),
    top_k_ties="ties_kept top_k_higher_ids higher_ids_kept",
    top_p=(
        "top_p_higher_ids top_p_ties_kept crossing_dropped one_past_crossing top_p_ignored "
        "top_p_in_id_order top_p_from_the_tail top_p_complement min_p_instead"
    ),
    exact_boundaries="extra_on_equality",
    top_p_ends="top_k_ignored_with_top_p p_one_filters p_one_is_greedy tiny_p_leaves_nothing",
    temperature_first="temperature_after_filters",
    top_k_then_top_p="top_p_ignored_with_top_k top_p_of_whole_mass",
    extreme_logits=(
        "removed_filled_with_minus_1e4 removed_filled_with_minus_1e9 no_maximum_subtracted"
    ),
    bad_arguments=(
        "nothing_checked temperature_unchecked zero_temperature_accepted "
        "negative_temperature_accepted top_k_over_v_accepted top_k_zero_accepted "
        "top_k_below_one_accepted top_k_unchecked top_p_over_one_accepted "
        "top_p_below_zero_accepted top_p_unchecked nan_logits_accepted infinite_logits_accepted "
        "minus_infinite_logits_accepted non_finite_logits_accepted empty_logits_accepted"
    ),
)
MUTATED = [by_sets, by_torch, by_numpy, one_by_one]
EQUIVALENT = {
    "by_sets:9 call dropped: list(accumulate((mass[i] / total for i in ranked)))": "read once",
    "by_sets:12 call dropped: set(ranked)": "the same members",
    "by_numpy:3 no dtype=: np.asarray(logits, dtype=np.float64)": "floats come as float64 anyway",
    "by_numpy:9 no side=: np.searchsorted(np.cumsum(probs[order]), top_p, side='left')": "default",
    "by_numpy:9 call dropped: int(np.searchsorted(np.cumsum(probs[order]), top_p, side='left'))": (
        "numpy's integers count too"
    ),
    "by_torch:8 -1: 0": "one axis",
    "by_torch:9 -1: 0": "one axis",
    "by_torch:11 -1: 0": "one axis",
    "by_torch:11 -1: 0 (2)": "one axis",
    "by_torch:10 masked_fill_: values.masked_fill": "values are its own copy",
    "by_torch:11 ones: torch.zeros": "every place is written: order holds all the ids",
    "by_torch:11 method dropped: torch.zeros(len(logits), dtype=dtype)"
    ".scatter(0, order, values.softmax(0)).tolist()": "a tensor of numbers is accepted",
}
UNNAMED = [
    *("log-probabilities", "noise", "temperature kept", "survivors only", "nested"),
    *("NaN where tokens tie", "TypeError for the temperature", "first hundred only"),
    *("tiny instead of zero", "one token more", "ties in any order"),
]
SAYS = {
    "exp without the maximum": "it raised OverflowError",
    "one list for all": "changed the list that an earlier call had returned",
    "not renormalised": "the probabilities sum to 0.",
    "ties kept": "tokens with a probability: 3; right: 2",
}
