"""Say in which ways a wrong multi-head attention differs, if it equals a wrong formula."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts._candidate import (
    ContractSubject,
)
from course_lib.contracts._deviations import describe_deviations, matching_deviations
from course_lib.contracts._multi_head_case import HeadsCase, heads_case

_HEADS_DEVIATIONS = {
    "scale": ("unscaled", "whole_width"),
    "split": ("view_split", "interleaved_split"),
    "merge": ("view_merge", "interleaved_merge"),
    "weights": ("q_for_k", "k_for_v", "transposed_weights", "no_w_o", "transposed_w_o"),
    "softmax": ("softmax_queries", "softmax_heads"),
    "causal": ("never_causal", "always_causal", "future_only", "strictly_past", "next_too"),
    "padding": ("padding_read", "padding_inverted", "padding_on_heads") + ("padding_of_first",),
}

_HEADS_WAYS = {
    "unscaled": {
        "en": "the scores were not divided by √d_head",
        "ru": "оценки не делились на √d_head",
    },
    "whole_width": {
        "en": "the scores were divided by √d_model instead of √d_head",
        "ru": "оценки делились на √d_model вместо √d_head",
    },
    "view_split": {
        "en": "the heads were cut with view(B, H, T, d_head), without a transpose: tokens mix",
        "ru": "головы выделялись через view(B, H, T, d_head) без transpose: токены смешиваются",
    },
    "interleaved_split": {
        "en": "head h took every H-th column instead of d_head columns in a row",
        "ru": "голова h брала каждый H-й столбец, а не d_head столбцов подряд",
    },
    "view_merge": {
        "en": "the heads were joined with view(B, T, d_model), without a transpose: tokens mix",
        "ru": "головы соединялись через view(B, T, d_model) без transpose: токены смешиваются",
    },
    "interleaved_merge": {
        "en": "the columns of the heads were interleaved instead of put side by side",
        "ru": "столбцы голов чередовались, а не шли головой за головой",
    },
    "q_for_k": {
        "en": "w_q made the keys and w_k the queries",
        "ru": "w_q давала ключи, а w_k — запросы",
    },
    "k_for_v": {
        "en": "w_k made the values and w_v the keys",
        "ru": "w_k давала значения, а w_v — ключи",
    },
    "transposed_weights": {
        "en": "the weights were applied as x @ w.T (here: x @ w)",
        "ru": "веса применялись как x @ w.T (здесь: x @ w)",
    },
    "no_w_o": {
        "en": "the output projection w_o were left out",
        "ru": "выходная проекция w_o была пропущена",
    },
    "transposed_w_o": {
        "en": "w_o alone were applied transposed",
        "ru": "одна только w_o применялась транспонированной",
    },
    "softmax_queries": {
        "en": "the softmax ran over the queries",
        "ru": "softmax шёл по запросам",
    },
    "softmax_heads": {
        "en": "the softmax ran over the heads",
        "ru": "softmax шёл по головам",
    },
    "never_causal": {
        "en": "causal=True changed nothing: the future is read",
        "ru": "causal=True ничего не меняло: будущее читается",
    },
    "always_causal": {
        "en": "causal=False changed nothing: the future is hidden",
        "ru": "causal=False ничего не меняло: будущее закрыто",
    },
    "future_only": {
        "en": "the causal mask were turned round: a token reads itself and the future",
        "ru": "причинная маска была перевёрнута: токен читает себя и будущее",
    },
    "strictly_past": {
        "en": "a token could not read itself",
        "ru": "токен не мог читать себя",
    },
    "next_too": {
        "en": "a token could read the next one as well",
        "ru": "токен мог читать и следующий",
    },
    "padding_read": {
        "en": "padding were read: token_valid ignored, or laid over the queries, [B, 1, T, 1], "
        "instead of the keys",
        "ru": "дополнение читалось: token_valid не учтён или лёг на запросы, [B, 1, T, 1], "
        "а не на ключи",
    },
    "padding_inverted": {
        "en": "True in token_valid meant padding (here True = a real token)",
        "ru": "True в token_valid значило «дополнение» (здесь True = настоящий токен)",
    },
    "padding_on_heads": {
        "en": "the batch axis of token_valid were laid over the heads",
        "ru": "ось пакета в token_valid попадала на ось голов",
    },
    "padding_of_first": {
        "en": "the first item's token_valid were used for the whole batch",
        "ru": "token_valid первого элемента применялся ко всему пакету",
    },
}


def explain_heads(subject: ContractSubject) -> str:
    """Name the deviations from the formula that reproduce the candidate on fresh inputs."""
    plain, masked = _heads_plain_probes(), _heads_masked_probes()
    bare = [_heads_answer(subject.candidate, probe) for probe in plain]
    given = [_heads_answer(subject.candidate, probe) for probe in masked]

    def imitates(deviation: dict[str, str], probes: list[HeadsCase]) -> bool:
        imitation = _heads_imitation(deviation)
        answers = [_heads_answer(imitation, probe) for probe in probes]
        pairs = list(zip(answers, bare if probes is plain else given, strict=False))
        return all(_heads_same(*pair) for pair in pairs) and any(a is not None for a in answers)

    found = [{}]
    if not imitates({}, plain):
        parts = {p: ways for p, ways in _HEADS_DEVIATIONS.items() if p not in ("causal", "padding")}
        parts |= {"causal": ("always_causal",), "padding": ("padding_inverted",)}
        found = matching_deviations(parts, lambda deviation: imitates(deviation, plain))
    if len(found) == 1 and not imitates(found[0], masked):
        parts = {part: _HEADS_DEVIATIONS[part] for part in ("causal", "padding")}
        more = matching_deviations(parts, lambda way: imitates({**found[0], **way}, masked))
        found = [{**found[0], **way} for way in more] or found
    return describe_deviations([each for each in found if each], _HEADS_WAYS)


def _heads_plain_probes() -> list[HeadsCase]:
    return [heads_case(900, 2, 4, 2, 3), heads_case(910, 1, 3, 3, 2)]


def _heads_masked_probes() -> list[HeadsCase]:
    right = [[1, 1, 1, 0], [1, 1, 0, 0]]
    return [
        heads_case(920, 2, 4, 2, 3, causal=True),
        heads_case(930, 2, 4, 2, 3, valid=right),
        heads_case(940, 2, 4, 2, 2, causal=True, valid=right),
    ]


def _heads_answer(multi_head: Callable[..., Any], probe: HeadsCase) -> Tensor | None:
    """The rows of the real tokens; None where the function raises or returns NaN or no tensor."""
    try:
        output = multi_head(*(_heads_copy(a) for a in probe.positional), **probe.keywords)
    except Exception:
        return None
    if not isinstance(output, Tensor) or output.shape != probe.x.shape:
        return None
    rows = output.detach().double()[probe.valid]
    return None if rows.isnan().any() else rows


def _heads_copy(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def _heads_same(one: Tensor | None, other: Tensor | None) -> bool:
    if one is None or other is None:
        return one is other
    return torch.allclose(one, other, rtol=1e-9, atol=1e-9)


def _heads_imitation(deviation: dict[str, str]) -> Callable[..., Tensor]:
    """Multi-head attention by the textbook formula, wrong in the given ways."""
    ways = set(deviation.values())

    def multi_head(
        x: Tensor,
        w_q: Tensor,
        w_k: Tensor,
        w_v: Tensor,
        w_o: Tensor,
        n_heads: int,
        *,
        causal: bool,
        token_valid: Tensor,
    ) -> Tensor:
        w_q, w_k = (w_k, w_q) if "q_for_k" in ways else (w_q, w_k)
        w_k, w_v = (w_v, w_k) if "k_for_v" in ways else (w_k, w_v)
        if "transposed_weights" in ways:
            w_q, w_k, w_v, w_o = w_q.T, w_k.T, w_v.T, w_o.T
        w_o = w_o.T if "transposed_w_o" in ways else w_o
        q, k, v = (_heads_wrong_split(ways, x @ w, n_heads) for w in (w_q, w_k, w_v))
        width = {"unscaled": 1, "whole_width": x.shape[-1]}.get(deviation.get("scale"), q.shape[-1])
        keep = _heads_wrong_mask(ways, causal, token_valid, n_heads)
        scores = (q @ k.mT / math.sqrt(width)).masked_fill(~keep, -math.inf)
        axis = -2 if "softmax_queries" in ways else 1 if "softmax_heads" in ways else -1
        weights = scores.softmax(axis).nan_to_num(0.0)
        merged = _heads_wrong_merge(ways, weights @ v)
        return merged if "no_w_o" in ways else merged @ w_o

    return multi_head


def _heads_wrong_split(ways: set[str], x: Tensor, n_heads: int) -> Tensor:
    items, tokens, width = x.shape
    if "view_split" in ways:
        return x.reshape(items, n_heads, tokens, width // n_heads)
    if "interleaved_split" in ways:
        return x.reshape(items, tokens, width // n_heads, n_heads).permute(0, 3, 1, 2)
    return x.reshape(items, tokens, n_heads, width // n_heads).transpose(1, 2)


def _heads_wrong_merge(ways: set[str], x: Tensor) -> Tensor:
    items, n_heads, tokens, d_head = x.shape
    if "view_merge" in ways:
        return x.reshape(items, tokens, n_heads * d_head)
    if "interleaved_merge" in ways:
        return x.permute(0, 2, 3, 1).reshape(items, tokens, n_heads * d_head)
    return x.transpose(1, 2).reshape(items, tokens, n_heads * d_head)


def _heads_wrong_mask(ways: set[str], causal: bool, token_valid: Tensor, n_heads: int) -> Tensor:
    """May-read [B, H or 1, T, T] under a wrong rule; rows of padding do not matter."""
    items, tokens = token_valid.shape
    i, j = torch.arange(tokens).unsqueeze(-1), torch.arange(tokens)
    keep = j >= 0 * i
    if "always_causal" in ways or (causal and "never_causal" not in ways):
        keep = j <= i
    if causal and "future_only" in ways:
        keep = j >= i
    if causal and "strictly_past" in ways:
        keep = j < i
    if causal and "next_too" in ways:
        keep = j <= i + 1
    valid = ~token_valid if "padding_inverted" in ways else token_valid
    if "padding_of_first" in ways:
        valid = valid[:1].expand(items, tokens)
    if "padding_read" in ways:
        return keep.expand(items, 1, tokens, tokens)
    if "padding_on_heads" in ways and items == n_heads:
        return keep & valid[None, :, None, :]
    return keep & valid[:, None, None, :]
