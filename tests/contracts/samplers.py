"""Sampling distributions, right and wrong, with the clause for each wrong one."""

import heapq
import math
from itertools import accumulate

import numpy as np
import torch


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


RIGHT_SAMPLERS = (by_sets, by_torch, in_float32, by_numpy, by_logsumexp)


def sampler_with(
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


WRONG_SAMPLERS = {
    "temperature ignored": (sampler_with(warm=lambda z, t: z), "temperature"),
    "temperature multiplied": (sampler_with(warm=lambda z, t: z * t), "temperature"),
    "temperature twice": (sampler_with(warm=lambda z, t: z / t / t), "temperature"),
    "temperature clamped": (clamped_temperature, "temperature"),
    "temperature after top-p": (sampler_with(late=True), "temperature_first"),
    "k + 1 kept": (sampler_with(cut_k=lambda r, k, z: r[: k + 1]), "top_k"),
    "k - 1 kept": (sampler_with(cut_k=lambda r, k, z: r[: max(k - 1, 1)]), "top_k"),
    "least likely kept": (sampler_with(cut_k=lambda r, k, z: r[-k:]), "top_k"),
    "top_k ignored": (sampler_with(cut_k=lambda r, k, z: r), "top_k"),
    "ties kept": (sampler_with(cut_k=ties_kept), "top_k_ties"),
    "higher ids kept": (sampler_with(rank=lambda i, z: (-z, -i)), "top_k_ties"),
    "crossing token dropped": (drops_the_crossing, "top_p"),
    "one token past p": (sampler_with(enough=lambda mass, p: mass > p), "exact_boundaries"),
    "one token more": (sampler_with(enough=lambda mass, p: mass >= p + 0.2), "top_p"),
    "top_p ignored": (sampler_with(whole=lambda p: True), "top_p"),
    "p = 1 filters": (sampler_with(whole=lambda p: False), "top_p_ends"),
    "p = 1 is greedy": (
        sampler_with(enough=lambda m, p: m > 0 and m >= p % 1, whole=lambda p: False),
        "top_p_ends",
    ),
    "top_p before top_k": (sampler_with(order="p then k"), "top_k_then_top_p"),
    "p of the whole mass": (sampler_with(measure="all"), "top_k_then_top_p"),
    "not renormalised": (unnormalised, "top_k"),
    "tiny instead of zero": (tiny_instead_of_zero, "top_k"),
    "softmax again": (sampler_with(finish=lambda probs: by_sets(probs)), "softmax"),
    "sorted output": (sampler_with(finish=lambda p: sorted(p, reverse=True)), "softmax"),
    "survivors only": (sampler_with(finish=lambda p: [x for x in p if x]), "result_form"),
    "log-probabilities": (
        sampler_with(finish=lambda p: [math.log(x) if x else -1e9 for x in p]),
        "softmax",
    ),
    "NaN where tokens tie": (
        lambda logits, *a, **k: [
            math.nan if logits.count(z) > 2 else p
            for z, p in zip(logits, by_sets(logits, *a, **k), strict=True)
        ],
        "result_form",
    ),
    "nested": (sampler_with(finish=lambda p: [p]), "result_form"),
    "no result": (sampler_with(finish=lambda p: None), "result_form"),
    "exp without the maximum": (no_maximum, "extreme_logits"),
    "list sorted": (sorts_the_callers_list, "arguments_unchanged"),
    "list divided": (divides_the_callers_list, "arguments_unchanged"),
    "one list for all": (one_list(), "repeatable"),
    "noise": (noisy(), "repeatable"),
    "temperature kept": (temperature_kept(), "repeatable"),
    "ties in any order": (unstable_order, "large_vocabulary"),
    "first hundred only": (first_hundred, "large_vocabulary"),
    "any logits": (sampler_with(check=lax(logits=True)), "bad_arguments"),
    "k cut to V": (k_clamped, "bad_arguments"),
    "any p": (sampler_with(check=lax(top_p=True)), "bad_arguments"),
    "TypeError for the temperature": (type_errors, "bad_arguments"),
}
