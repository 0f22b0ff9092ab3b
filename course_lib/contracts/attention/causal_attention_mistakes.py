"""Causal attentions in loops that are wrong in one way each, as people reported them."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from course_lib.contracts.engine.mistake import mistakes

Rows = Sequence[Sequence[float]]


def _raw_exponentials(scores: Sequence[float], top: float = 0.0) -> list[float]:
    return [math.exp(score - top) for score in scores]


def _shares(scores: Sequence[float], top: float = 0.0) -> list[float]:
    """Each exponential, of what lies above `top`, by their sum; all of them may vanish."""
    raw = _raw_exponentials(scores, top)
    total = math.fsum(raw) or math.nan
    return [share / total for share in raw]


_RIGHT_STEPS = {
    "reads": lambda i, count: range(i + 1),
    "scaled": lambda dot, d_head: dot / math.sqrt(d_head),
    "shares": lambda scores: _shares(scores, max(scores, default=0.0)),
    "asks": lambda q, k: (q, k),
    "gives": lambda k, v: v,
    "seen": lambda i, count: range(count),
}


def mistaken_causal_attention(**steps: Callable[..., Any]) -> Callable[..., list[list[float]]]:
    """A causal attention whose steps can be replaced.

    Args:    steps: reads: which keys position i is compared with; seen: which of them are mixed in
             the end; shares: scores -> weights; asks: what is compared; gives: what is mixed
    """
    step = {**_RIGHT_STEPS, **steps}

    def causal_attention(queries: Rows, keys: Rows, values: Rows, d_head: int) -> list[list[float]]:
        asked, compared = step["asks"](queries, keys)
        mixed, count = step["gives"](keys, values), len(queries)
        output = []
        for i in range(count):
            places = list(step["reads"](i, count))
            dots = [
                math.fsum(a * b for a, b in zip(asked[i], compared[j], strict=False))
                for j in places
            ]
            weights = step["shares"]([step["scaled"](dot, d_head) for dot in dots])
            kept = set(step["seen"](i, count))
            pairs = [(w, mixed[j]) for w, j in zip(weights, places, strict=True) if j in kept]
            output.append([math.fsum(w * row[c] for w, row in pairs) for c in range(d_head)])
        return output

    return causal_attention


# fmt: off
CAUSAL_ATTENTION_MISTAKES = mistakes(
    mistaken_causal_attention,
    everything_read=("paiml/entrenar#310",
        "every position reads every position | каждая позиция читает все позиции",
        "keys[: i + 1]", {"reads": lambda i, count: range(count)}),
    blind_to_itself=("jadore801120/attention-is-all-you-need-pytorch#19",
        "a position does not read itself, and the first reads nothing | "
        "позиция не читает себя, а первая не читает ничего",
        "keys[: i + 1], not keys[:i] | keys[: i + 1], а не keys[:i]",
        {"reads": lambda i, count: range(i)}),
    one_ahead=("RVC-Boss/GPT-SoVITS#965",
        "a position reads the next one too | позиция читает и следующую",
        "keys[: i + 1], not keys[: i + 2] | keys[: i + 1], а не keys[: i + 2]",
        {"reads": lambda i, count: range(min(i + 2, count))}),
    future_read=("huggingface/transformers#48745",
        "a position reads itself and what comes after it, not the past | "
        "позиция читает себя и то, что после неё, а не прошлое",
        "keys[: i + 1], not keys[i:] | keys[: i + 1], а не keys[i:]",
        {"reads": lambda i, count: range(i, count)}),
    first_token_dropped=("",
        "the first position is read by nobody but itself | "
        "первую позицию не читает никто, кроме неё самой",
        "keys[: i + 1], not keys[1 : i + 1] | keys[: i + 1], а не keys[1 : i + 1]",
        {"reads": lambda i, count: range(min(1, i), i + 1)}),
    masked_after_softmax=("",
        "the future is left out only after the softmax, so it keeps its shares | "
        "будущее отброшено лишь после softmax: свои доли оно уже забрало",
        "take the softmax over keys[: i + 1] alone | берите softmax только по keys[: i + 1]",
        {"reads": lambda i, count: range(count), "seen": lambda i, count: range(i + 1)}),
    not_scaled=("",
        "the scores are not divided | оценки не поделены",
        "dot / math.sqrt(d_head)", {"scaled": lambda dot, d_head: dot}),
    divided_by_d_head=("",
        "the scores are divided by d_head, not by its root | "
        "оценки поделены на d_head, а не на корень из него",
        "dot / math.sqrt(d_head)", {"scaled": lambda dot, d_head: dot / d_head}),
    multiplied_by_root=("",
        "the scores are multiplied by the root of d_head | оценки умножены на корень из d_head",
        "dot / math.sqrt(d_head)", {"scaled": lambda dot, d_head: dot * math.sqrt(d_head)}),
    exp_without_maximum=("",
        "large scores overflow: exp is taken without subtracting the maximum | "
        "большие оценки переполняют exp: максимум не вычтен",
        "math.exp(score - max(scores))", {"shares": _shares}),
    not_normalised=("",
        "the exponentials are not divided by their sum | экспоненты не поделены на их сумму",
        "divide each by their sum | поделите каждую на их сумму", {"shares": _raw_exponentials}),
    winner_takes_all=("",
        "the value of the best key is taken whole instead of a mixture | "
        "вместо смеси взято значение лучшего ключа целиком",
        "weights = softmax(scores)",
        {"shares": lambda scores: [
            float(place == scores.index(max(scores))) for place in range(len(scores))]}),
    plain_mean=("",
        "all that is read counts the same: the scores have no effect | "
        "всё прочитанное весит одинаково: оценки ни на что не влияют",
        "weights = softmax(scores)", {"shares": lambda scores: [1 / len(scores) for _ in scores]}),
    queries_and_keys_swapped=("",
        "the key of position i asks and the queries answer | "
        "спрашивает ключ позиции i, а отвечают запросы",
        "queries[i] with keys[j], not the other way round | queries[i] с keys[j], а не наоборот",
        {"asks": lambda q, k: (k, q)}),
    keys_mixed=("",
        "keys are mixed where values belong | смешаны ключи, а не значения",
        "weight · values[j][c]", {"gives": lambda k, v: k}),
    queries_compared_with_themselves=("",
        "queries are compared with queries; the keys are not used | "
        "запросы сравниваются с запросами, ключи не использованы",
        "queries[i] with keys[j] | queries[i] с keys[j]", {"asks": lambda q, k: (q, q)}),
)
# fmt: on
