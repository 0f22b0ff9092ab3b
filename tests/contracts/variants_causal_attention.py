"""Causal attentions in lists, right and wrong, beyond the catalogue."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from course_lib.contracts import check_causal_attention_contract
from course_lib.contracts.attention.causal_attention_mistakes import (
    CAUSAL_ATTENTION_MISTAKES,
    mistaken_causal_attention,
)
from course_lib.decoder_lm.plain import causal_attention

from .trial import Fresh

CHECK, CATALOGUE = check_causal_attention_contract, CAUSAL_ATTENTION_MISTAKES
CLAUSES = [
    *("result_form", "first_position", "values", "future_unread", "large_scores"),
    *("repeatable", "arguments_unchanged"),
]


def in_loops(queries, keys, values, d_head):
    output = []
    for i, query in enumerate(queries):
        scores = []
        for key in keys[: i + 1]:
            dot = 0.0
            for column in range(d_head):
                dot += query[column] * key[column]
            scores.append(dot / math.sqrt(d_head))
        top = max(scores)
        shares = [math.exp(score - top) for score in scores]
        row = [0.0] * d_head
        for j, share in enumerate(shares):
            for column in range(d_head):
                row[column] += share / sum(shares) * values[j][column]
        output.append(row)
    return output


def by_online_softmax(queries, keys, values, d_head):
    output = []
    for i, query in enumerate(queries):
        top, total, row = -math.inf, 0.0, [0.0] * d_head
        for j in range(i + 1):
            score = sum(query[c] * keys[j][c] for c in range(d_head)) * d_head**-0.5
            new = max(top, score)
            old, share = math.exp(top - new), math.exp(score - new)
            total = total * old + share
            row = [row[c] * old + share * values[j][c] for c in range(d_head)]
            top = new
        output.append([r / total for r in row])
    return output


def by_arrays(queries, keys, values, d_head):
    q, k, v = np.array(queries), np.array(keys), np.array(values)
    scores = np.where(np.tri(len(q), dtype=bool), q @ k.T / np.sqrt(d_head), -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights @ v / weights.sum(axis=-1, keepdims=True)


def by_torch(queries, keys, values, d_head):
    q, k, v = (torch.tensor(rows, dtype=torch.float64) for rows in (queries, keys, values))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).tolist()


def as_tuples(queries, keys, values, d_head):
    return tuple(map(tuple, in_loops(queries, keys, values, d_head)))


def scaling_in_place(queries, keys, values, d_head):
    for row in queries:
        row[:] = [x / math.sqrt(d_head) for x in row]
    return causal_attention_unscaled(queries, keys, values, d_head)


causal_attention_unscaled = mistaken_causal_attention(scaled=lambda dot, d_head: dot)


def remembering():
    kept = []

    def attention(queries, keys, values, d_head):
        rows = in_loops(queries, keys, values, d_head)
        kept.append(len(rows))
        return rows if len(kept) < 40 else [[x + 0.1 for x in row] for row in rows]

    return attention


def thrown_off():
    last = []

    def attention(queries, keys, values, d_head):
        rows, last[:] = in_loops(queries, keys, values, d_head), [*last[-1:], len(queries)]
        return [[x + 0.1 for x in row] for row in rows] if last[0] == 4 else rows

    return attention


def in_single_precision(queries, keys, values, d_head):
    q, k, v = (np.array(rows, dtype=np.float32).tolist() for rows in (queries, keys, values))
    return np.array(in_loops(q, k, v, d_head), dtype=np.float32)


RIGHT = {
    "the course's own": causal_attention,
    "in loops": in_loops,
    "by online softmax": by_online_softmax,
    "by arrays": by_arrays,
    "by torch": by_torch,
    "as tuples": as_tuples,
}
WRONG = {
    "one row too few": (lambda *a: in_loops(*a)[1:], "result_form"),
    "flat": (lambda *a: [x for row in in_loops(*a) for x in row], "result_form"),
    "nothing": (lambda *a: None, "result_form"),
    "not a number": (lambda *a: [[math.nan] * a[3] for _ in a[0]], "result_form"),
    "raises": (lambda q, k, v, d: 1 // 0, "result_form"),
    "window of three": (
        mistaken_causal_attention(reads=lambda i, count: range(max(0, i - 2), i + 1)),
        "values",
    ),
    "window of thirty": (
        mistaken_causal_attention(reads=lambda i, count: range(max(0, i - 29), i + 1)),
        "values",
    ),
    "root of the length": (
        lambda q, k, v, d: causal_attention_unscaled(
            [[x / math.sqrt(len(q)) for x in row] for row in q], k, v, d
        ),
        "values",
    ),
    "single precision": (in_single_precision, "first_position"),
    "clipped scores": (
        mistaken_causal_attention(scaled=lambda s, d: max(-50.0, min(50.0, s / math.sqrt(d)))),
        "large_scores",
    ),
    "scales in place": (scaling_in_place, "arguments_unchanged"),
    "thrown off by a text of four": (Fresh(thrown_off), "repeatable"),
    "changes with time": (Fresh(remembering), "future_unread"),
}
MISTAKES = {
    **dict.fromkeys((mistake.name for mistake in CATALOGUE), "values"),
    "exp_without_maximum": "large_scores",
    **dict.fromkeys(("blind_to_itself", "not_normalised", "keys_mixed"), "first_position"),
}
MUTATED = [in_loops, by_online_softmax, by_arrays]
_EVERY_SCORE = "every score of a query moves alike, and the softmax does not notice"
_FORGOTTEN = "the first key multiplies what was there by exp(-inf) = 0"
_LIST = "a list times an array is an array"
_AXES = "there are two axes: the last one is axis 1"
EQUIVALENT = {
    "in_loops:6 +1: 0.0": _EVERY_SCORE,
    "in_loops:6 -1: 0.0": _EVERY_SCORE,
    "by_online_softmax:4 +1: 0.0": _FORGOTTEN,
    "by_online_softmax:4 -1: 0.0": _FORGOTTEN,
    "by_online_softmax:4 +1: 0.0 (2)": _FORGOTTEN,
    "by_online_softmax:4 -1: 0.0 (2)": _FORGOTTEN,
    "by_online_softmax:7 arguments swapped: max(top, score)": "max is symmetric",
    "by_arrays:2 call dropped: np.array(queries)": _LIST,
    "by_arrays:2 call dropped: np.array(values)": _LIST,
    "by_arrays:3 no dtype=: np.tri(len(q), dtype=bool)": "np.where takes 1.0 and 0.0 as well",
    "by_arrays:4 no sign: -1": _AXES,
    "by_arrays:5 no sign: -1": _AXES,
}
