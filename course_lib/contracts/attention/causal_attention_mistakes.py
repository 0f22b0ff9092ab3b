"""Causal attentions in loops that are wrong in one way each, as people reported them."""

import math
from collections.abc import Callable, Sequence
from functools import partial

from course_lib.contracts.engine.mistake import Mistake


def _stable_shares(scores: Sequence[float]) -> list[float]:
    top = max(scores, default=0.0)
    shares = [math.exp(score - top) for score in scores]
    total = math.fsum(shares)
    return [share / total for share in shares]


def _raw_exponentials(scores: Sequence[float]) -> list[float]:
    return [math.exp(score) for score in scores]


def _shares_without_maximum(scores: Sequence[float]) -> list[float]:
    raw = _raw_exponentials(scores)
    total = math.fsum(raw) or math.nan  # all of them may vanish
    return [share / total for share in raw]


def _shares_of_winner(scores: Sequence[float]) -> list[float]:
    return [float(place == scores.index(max(scores))) for place in range(len(scores))]


def mistaken_causal_attention(
    *,
    reads: Callable[[int, int], range] = lambda i, count: range(i + 1),
    scaled: Callable[[float, int], float] = lambda dot, d_head: dot / math.sqrt(d_head),
    shares: Callable[[Sequence[float]], list[float]] = _stable_shares,
    asks: Callable[
        [Sequence[Sequence[float]], Sequence[Sequence[float]]],
        tuple[Sequence[Sequence[float]], Sequence[Sequence[float]]],
    ] = lambda q, k: (q, k),
    gives: Callable[
        [Sequence[Sequence[float]], Sequence[Sequence[float]]], Sequence[Sequence[float]]
    ] = lambda k, v: v,
    seen: Callable[[int, int], range] | None = None,
) -> Callable[..., list[list[float]]]:
    """A causal attention whose steps can be replaced.

    Args:    reads: which keys position i is compared with; seen: which of them are mixed in the end
             shares: scores -> weights; asks: what is compared; gives: what is mixed
    """

    def causal_attention(
        queries: Sequence[Sequence[float]],
        keys: Sequence[Sequence[float]],
        values: Sequence[Sequence[float]],
        d_head: int,
    ) -> list[list[float]]:
        asked, compared = asks(queries, keys)
        mixed, count = gives(keys, values), len(queries)
        output = []
        for i in range(count):
            places = list(reads(i, count))
            dots = [math.fsum(map(lambda a, b: a * b, asked[i], compared[j])) for j in places]
            weights = shares([scaled(dot, d_head) for dot in dots])
            kept = set(seen(i, count)) if seen else set(places)
            pairs = [(w, mixed[j]) for w, j in zip(weights, places, strict=True) if j in kept]
            output.append([math.fsum(w * row[c] for w, row in pairs) for c in range(d_head)])
        return output

    return causal_attention


_made = partial(partial, mistaken_causal_attention)

CAUSAL_ATTENTION_MISTAKES = (
    Mistake(
        "everything_read",
        "paiml/entrenar#310",
        _made(reads=lambda i, count: range(count)),
        {"en": "every position reads every position", "ru": "каждая позиция читает все позиции"},
        {"en": "keys[: i + 1]", "ru": "keys[: i + 1]"},
    ),
    Mistake(
        "blind_to_itself",
        "jadore801120/attention-is-all-you-need-pytorch#19",
        _made(reads=lambda i, count: range(i)),
        {
            "en": "a position does not read itself, and the first reads nothing",
            "ru": "позиция не читает себя, а первая не читает ничего",
        },
        {"en": "keys[: i + 1], not keys[:i]", "ru": "keys[: i + 1], а не keys[:i]"},
    ),
    Mistake(
        "one_ahead",
        "RVC-Boss/GPT-SoVITS#965",
        _made(reads=lambda i, count: range(min(i + 2, count))),
        {
            "en": "a position reads the next one too",
            "ru": "позиция читает и следующую",
        },
        {"en": "keys[: i + 1], not keys[: i + 2]", "ru": "keys[: i + 1], а не keys[: i + 2]"},
    ),
    Mistake(
        "future_read",
        "huggingface/transformers#48745",
        _made(reads=lambda i, count: range(i, count)),
        {
            "en": "a position reads itself and what comes after it, not the past",
            "ru": "позиция читает себя и то, что после неё, а не прошлое",
        },
        {"en": "keys[: i + 1], not keys[i:]", "ru": "keys[: i + 1], а не keys[i:]"},
    ),
    Mistake(
        "first_token_dropped",
        "a mutation of right code",
        _made(reads=lambda i, count: range(min(1, i), i + 1)),
        {
            "en": "the first position is read by nobody but itself",
            "ru": "первую позицию не читает никто, кроме неё самой",
        },
        {"en": "keys[: i + 1], not keys[1 : i + 1]", "ru": "keys[: i + 1], а не keys[1 : i + 1]"},
    ),
    Mistake(
        "masked_after_softmax",
        "a mutation of right code",
        _made(reads=lambda i, count: range(count), seen=lambda i, count: range(i + 1)),
        {
            "en": "the future is left out only after the softmax, so it keeps its shares",
            "ru": "будущее отброшено лишь после softmax: свои доли оно уже забрало",
        },
        {
            "en": "take the softmax over keys[: i + 1] alone",
            "ru": "берите softmax только по keys[: i + 1]",
        },
    ),
    Mistake(
        "not_scaled",
        "a mutation of right code",
        _made(scaled=lambda dot, d_head: dot),
        {"en": "the scores are not divided", "ru": "оценки не поделены"},
        {"en": "dot / math.sqrt(d_head)", "ru": "dot / math.sqrt(d_head)"},
    ),
    Mistake(
        "divided_by_d_head",
        "a mutation of right code",
        _made(scaled=lambda dot, d_head: dot / d_head),
        {
            "en": "the scores are divided by d_head, not by its root",
            "ru": "оценки поделены на d_head, а не на корень из него",
        },
        {"en": "dot / math.sqrt(d_head)", "ru": "dot / math.sqrt(d_head)"},
    ),
    Mistake(
        "multiplied_by_root",
        "a mutation of right code",
        _made(scaled=lambda dot, d_head: dot * math.sqrt(d_head)),
        {
            "en": "the scores are multiplied by the root of d_head",
            "ru": "оценки умножены на корень из d_head",
        },
        {"en": "dot / math.sqrt(d_head)", "ru": "dot / math.sqrt(d_head)"},
    ),
    Mistake(
        "exp_without_maximum",
        "a mutation of right code",
        _made(shares=_shares_without_maximum),
        {
            "en": "large scores overflow: exp is taken without subtracting the maximum",
            "ru": "большие оценки переполняют exp: максимум не вычтен",
        },
        {"en": "math.exp(score - max(scores))", "ru": "math.exp(score - max(scores))"},
    ),
    Mistake(
        "not_normalised",
        "a mutation of right code",
        _made(shares=_raw_exponentials),
        {
            "en": "the exponentials are not divided by their sum",
            "ru": "экспоненты не поделены на их сумму",
        },
        {"en": "divide each by their sum", "ru": "поделите каждую на их сумму"},
    ),
    Mistake(
        "winner_takes_all",
        "a mutation of right code",
        _made(shares=_shares_of_winner),
        {
            "en": "the value of the best key is taken whole instead of a mixture",
            "ru": "вместо смеси взято значение лучшего ключа целиком",
        },
        {"en": "weights = softmax(scores)", "ru": "weights = softmax(scores)"},
    ),
    Mistake(
        "plain_mean",
        "a mutation of right code",
        _made(shares=lambda scores: [1 / len(scores) for _ in scores]),
        {
            "en": "all that is read counts the same: the scores have no effect",
            "ru": "всё прочитанное весит одинаково: оценки ни на что не влияют",
        },
        {"en": "weights = softmax(scores)", "ru": "weights = softmax(scores)"},
    ),
    Mistake(
        "queries_and_keys_swapped",
        "a mutation of right code",
        _made(asks=lambda q, k: (k, q)),
        {
            "en": "the key of position i asks and the queries answer",
            "ru": "спрашивает ключ позиции i, а отвечают запросы",
        },
        {
            "en": "queries[i] with keys[j], not the other way round",
            "ru": "queries[i] с keys[j], а не наоборот",
        },
    ),
    Mistake(
        "keys_mixed",
        "a mutation of right code",
        _made(gives=lambda k, v: k),
        {"en": "keys are mixed where values belong", "ru": "смешаны ключи, а не значения"},
        {"en": "weight · values[j][c]", "ru": "weight · values[j][c]"},
    ),
    Mistake(
        "queries_compared_with_themselves",
        "a mutation of right code",
        _made(asks=lambda q, k: (q, q)),
        {
            "en": "queries are compared with queries; the keys are not used",
            "ru": "запросы сравниваются с запросами, ключи не использованы",
        },
        {"en": "queries[i] with keys[j]", "ru": "queries[i] с keys[j]"},
    ),
)
