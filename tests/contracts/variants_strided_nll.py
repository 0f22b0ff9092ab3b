"""Losses of a long text by windows, right and wrong, beyond the catalogue."""

import math

import numpy as np
import torch

from course_lib.contracts import check_strided_nll_contract
from course_lib.contracts.likelihood.strided_nll_mistakes import STRIDED_NLL_MISTAKES

from .trial import Fresh, named_by

CHECK, CATALOGUE = check_strided_nll_contract, STRIDED_NLL_MISTAKES
CLAUSES = [
    *("result_form", "one_window", "window_length", "every_token_once", "context"),
    *("repeated_tokens", "long_text", "independent_results"),
]


def by_starts(score, ids, max_length, stride):
    """Windows begin at the multiples of stride; the last may be shorter."""
    total, done = 0.0, 1
    for begin in range(0, len(ids), stride):
        end = min(begin + max_length, len(ids))
        nats = score(ids[begin:end])
        total += float(sum(nats[done - begin - 1 :]))
        done = end
        if end == len(ids):
            break
    return total / (len(ids) - 1)


def by_ends(score, ids, max_length, stride):
    """Windows end at the multiples of stride; the first ones are shorter."""
    parts = []
    for start in range(0, len(ids), stride):
        end = min(start + stride, len(ids))
        begin = max(end - max_length, 0)
        new = min(end - start, end - begin - 1)
        if new > 0:
            parts.append(score(ids[begin:end])[-new:])
    return torch.cat(parts).mean()


def moved_back(score, ids, max_length, stride):
    """The first window is full; each next one adds stride tokens and reaches back to be full."""
    ids, end = ids.tolist(), min(max_length, len(ids))
    nats = score(ids[:end]).tolist()
    while end < len(ids):
        new = min(stride, len(ids) - end)
        end += new
        nats += score(ids[end - max_length : end])[-new:]
    return math.fsum(nats) / len(nats)


def token_by_token(score, ids, max_length, stride):
    """A window for every token: more context than any stride gives."""
    nats = [score(ids[max(end - max_length, 0) : end])[-1] for end in range(2, len(ids) + 1)]
    return np.mean(np.array(nats, dtype=float))


def weighted_means(score, ids, max_length, stride):
    """Means of windows, each weighted by its number of new tokens."""
    means, counts, done = [], [], 1
    for begin in range(0, max(len(ids) - max_length + stride, 1), stride):
        window = ids[begin : begin + max_length]
        new = begin + len(window) - done
        if new > 0:
            means.append(np.mean(score(window)[-new:]))
            counts.append(new)
        done = begin + len(window)
    return np.average(np.array(means), weights=np.array(counts))


def filled_in(score, ids, max_length, stride):
    """Windows from the last to the first: a later one overwrites what had less context."""
    nats = torch.full((len(ids),), math.nan, dtype=torch.float64)
    begins = [*range(0, max(len(ids) - max_length, 0), stride), max(len(ids) - max_length, 0)]
    for begin in reversed(begins):
        window = ids[begin : begin + max_length]
        nats[begin + 1 : begin + len(window)] = torch.as_tensor(score(window))
    return nats[1:].mean().item()


RIGHT = {
    "by starts": by_starts,
    "by ends": by_ends,
    "moved back": moved_back,
    "token by token": token_by_token,
    "weighted means": weighted_means,
    "filled in": filled_in,
}


def keyed_by_token(score, ids, max_length, stride):
    found, end = {}, 0
    for begin in range(0, len(ids), stride):
        end = min(begin + max_length, len(ids))
        window = ids[begin:end].tolist()
        for token, nats in zip(window[1:], score(window).tolist(), strict=True):
            found.setdefault(token, nats)
        if end == len(ids):
            break
    return sum(found.values()) / len(found)


def at_most_fifty(score, ids, max_length, stride):
    return by_starts(score, ids[: 50 * stride + max_length], max_length, stride)


def last_window_recounted(score, ids, max_length, stride):
    """A last window is moved back so that it is full, but counts its last stride tokens."""
    if len(ids) <= max_length:
        return float(score(ids).mean())
    nats, end = list(score(ids[:max_length])), max_length
    while end < len(ids):
        end = min(end + stride, len(ids))
        nats += list(score(ids[end - max_length : end])[-stride:])
    return float(sum(nats) / len(nats))


def with_a_start_token(score, ids, max_length, stride):
    """Every window starts with a token of its own, which takes the place of one of context."""
    total, done = 0.0, 1
    for begin in range(0, len(ids), stride):
        end = min(begin + max_length - (begin > 0), len(ids))
        window = ids[begin:end].tolist() if begin == 0 else [0, *ids[begin:end].tolist()]
        total += float(score(window)[len(window) - (end - done) - 1 :].sum())
        done = end
        if end == len(ids):
            break
    return total / (len(ids) - 1)


def remembering():
    kept = {}

    def strided_nll(score, ids, max_length, stride):
        key = (tuple(ids.tolist()), max_length, stride)
        return kept.setdefault(key, by_starts(score, ids, max_length, stride))

    return strided_nll


def marking_the_last(score, ids, max_length, stride):
    result = by_starts(score, ids, max_length, stride)
    ids[-1] = 0
    return result


def reversing(score, ids, max_length, stride):
    return by_starts(score, ids.flip(0), max_length, stride)


WRONG = {
    "a list of nats": (lambda score, ids, *sizes: score(ids[: sizes[0]]).tolist(), "result_form"),
    "the nats of a window": (lambda score, ids, *sizes: score(ids[: sizes[0]]), "result_form"),
    "nothing": (lambda *call: None, "result_form"),
    "nan": (lambda *call: math.nan, "result_form"),
    "perplexity": (lambda *call: math.exp(by_starts(*call)), "one_window"),
    "bits": (lambda *call: by_starts(*call) / math.log(2), "one_window"),
    "negative": (lambda *call: -by_starts(*call), "one_window"),
    "the median": (
        lambda score, ids, *sizes: float(torch.as_tensor(score(ids[: sizes[0]])).median()),
        "one_window",
    ),
    "backwards": (reversing, "one_window"),
    "divided by the windows": (
        lambda score, ids, max_length, stride: (
            by_starts(score, ids, max_length, stride)
            * (len(ids) - 1)
            / math.ceil(len(ids) / stride)
        ),
        "one_window",
    ),
    "last window recounted": (last_window_recounted, "every_token_once"),
    "first new token of each window twice": (
        lambda score, ids, max_length, stride: (
            by_starts(score, ids, max_length, stride) + float(len(ids) > max_length) * 1e-3
        ),
        "every_token_once",
    ),
    "a start token in every window": (with_a_start_token, "context"),
    "half a window of context": (
        lambda score, ids, max_length, stride: by_starts(
            score,
            ids,
            max_length if len(ids) <= max_length else max(stride + 1, max_length // 2),
            stride,
        ),
        "context",
    ),
    "keyed by token": (keyed_by_token, "repeated_tokens"),
    "at most fifty windows": (at_most_fifty, "long_text"),
    "remembered by text": (Fresh(remembering), "independent_results"),
    "marks the last token": (marking_the_last, "independent_results"),
    "one call with everything first": (
        lambda score, ids, *sizes: 0 * float(score(ids).sum()) + by_starts(score, ids, *sizes),
        "window_length",
    ),
}
MISTAKES = named_by(
    one_window=(
        "perplexity_not_nats strided_in_bits divided_by_all_tokens sum_of_nats "
        "trailing_windows_counted half_of_each_window stride_tokens_each"
    ),
    window_length="window_too_long whole_text_at_once",
    every_token_once=(
        "stride_tokens_of_the_last_too window_means_unweighted first_window_overweighted "
        "later_windows_underweighted overlap_counted_again boundary_token_lost "
        "boundary_token_costs_nothing boundary_token_twice text_cut_into_blocks "
        "block_starts_cost_nothing last_window_dropped window_too_short text_truncated"
    ),
    context="disjoint_windows only_new_tokens_scored stride_is_overlap",
)
MUTATED = [by_starts, by_ends, moved_back]
OVERHANG = "a slice [-n:] of fewer than n entries is all of them"
EQUIVALENT = {
    "by_starts:5 arguments swapped: min(begin + max_length, len(ids))": "min is symmetric",
    "by_starts:7 call dropped: float(sum(nats[done - begin - 1:]))": "a tensor "
    "with no axes adds up as well",
    "by_starts:9 statement dropped: if end == len(ids):": "later windows have no new tokens, and "
    "their slice starts behind the end",
    "by_ends:4 +1: 0": "windows ending at 1 + k stride count the same tokens as well",
    "by_ends:4 -1: 0": "windows ending at k stride - 1 count the same tokens as well",
    "by_ends:5 arguments swapped: min(start + stride, len(ids))": "min is symmetric",
    "by_ends:6 arguments swapped: max(end - max_length, 0)": "max is symmetric",
    "by_ends:7 arguments swapped: min(end - start, end - begin - 1)": "min is symmetric",
    "by_ends:7 left only: end - begin": OVERHANG,
    "by_ends:7 left only: end - begin - 1": OVERHANG,
    "by_ends:7 Add: end - begin - 1": OVERHANG,
    "by_ends:7 Add: end - begin": OVERHANG,
    "by_ends:7 -1: 1": OVERHANG,
    "by_ends:8 GtE: new > 0": "new is 0 only for a window of one token, which has no nats",
    "by_ends:8 -1: 0": "new is 0 only for a window of one token, which has no nats",
    "moved_back:3 arguments swapped: min(max_length, len(ids))": "min is symmetric",
    "moved_back:3 method dropped: ids.tolist()": "a tensor is cut like a list",
    "moved_back:6 arguments swapped: min(stride, len(ids) - end)": "min is symmetric",
}
SAYS = {
    "window_means_unweighted": "ids[1]: 0.75, ids[2]: 0.75, ids[3]: 1.5",
    "boundary_token_lost": "ids[2]: 0",
    "disjoint_windows": "tokens before ids[3] in its window: 1, although 2 fit",
    "window_too_long": "tokens in one call of score: 3; the model reads 2",
    "remembered by text": "another score gives 1 nat to each token",
    "marks the last token": "the function writes into ids",
}
