"""Say in which ways a wrong attention differs from the formula, if it equals a wrong formula."""

import math
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts._attention_case import AttentionCase, attention_inputs
from course_lib.contracts._candidate import (
    ContractSubject,
)
from course_lib.contracts._deviations import describe_deviations, matching_deviations

_ATTENTION_DEVIATIONS = {
    "scale": ("no_scale", "scale_inverse", "scale_square", "scale_d_v", "scale_t_k")
    + ("scale_width", "scale_after"),
    "softmax": ("over_queries", "over_first_axis", "over_heads", "over_all", "twice"),
    "mask": ("ignored", "inverted", "transposed", "added", "multiplied", "after_softmax")
    + ("first_item", "on_queries", "on_heads", "not_for_one_query"),
    "order": ("transposed_mix", "square_mix", "swapped", "square_swap"),
}

_ATTENTION_WAYS = {
    "no_scale": {
        "en": "the scores were not divided by √d_k (fix: q @ k.mT / math.sqrt(q.shape[-1]))",
        "ru": "оценки не делились на √d_k (исправление: q @ k.mT / math.sqrt(q.shape[-1]))",
    },
    "scale_inverse": {
        "en": "the scores were multiplied by √d_k instead of divided",
        "ru": "оценки умножались на √d_k, а не делились",
    },
    "scale_square": {
        "en": "the scores were divided by d_k instead of √d_k (or scaled twice)",
        "ru": "оценки делились на d_k вместо √d_k (или масштабировались дважды)",
    },
    "scale_d_v": {
        "en": "the scores were divided by √d_v, the width of the values, instead of √d_k",
        "ru": "оценки делились на √d_v (ширину значений) вместо √d_k",
    },
    "scale_t_k": {
        "en": "the scores were divided by √T_k, the number of keys, instead of √d_k",
        "ru": "оценки делились на √T_k (число ключей) вместо √d_k",
    },
    "scale_width": {
        "en": "the scores were divided by the root of the whole width, heads times d_k, "
        "instead of √d_k",
        "ru": "оценки делились на корень из полной ширины (число голов на d_k) вместо √d_k",
    },
    "scale_after": {
        "en": "the division by √d_k came after the softmax instead of before",
        "ru": "деление на √d_k стояло после softmax, а не до него",
    },
    "over_queries": {
        "en": "the softmax ran over the queries (fix: dim=-1, over the keys)",
        "ru": "softmax шёл по запросам (исправление: dim=-1, по ключам)",
    },
    "over_first_axis": {
        "en": "the softmax ran over the first axis, dim=0 (fix: dim=-1, over the keys)",
        "ru": "softmax шёл по первой оси, dim=0 (исправление: dim=-1, по ключам)",
    },
    "over_heads": {
        "en": "the softmax ran over the heads, dim=1 of four (fix: dim=-1, over the keys)",
        "ru": "softmax шёл по головам, dim=1 из четырёх (исправление: dim=-1, по ключам)",
    },
    "over_all": {
        "en": "the softmax ran over queries and keys together (fix: dim=-1 only)",
        "ru": "softmax шёл сразу по запросам и ключам (исправление: только dim=-1)",
    },
    "twice": {
        "en": "the softmax had been taken twice",
        "ru": "softmax применялся дважды",
    },
    "ignored": {
        "en": "no mask were applied (masked_fill, if you use it, returns a new tensor)",
        "ru": "маска не применялась вовсе (masked_fill, если он есть, возвращает новый тензор)",
    },
    "inverted": {
        "en": "True in the mask meant hidden (here True = may read)",
        "ru": "True в маске значило «закрыто» (здесь True = разрешено читать)",
    },
    "transposed": {
        "en": "queries and keys were swapped in the mask",
        "ru": "запросы и ключи в маске были переставлены",
    },
    "added": {
        "en": "the bool mask were added to the scores as 0 and 1, which hides nothing",
        "ru": "булева маска прибавлялась к оценкам как 0 и 1, а это ничего не закрывает",
    },
    "multiplied": {
        "en": "masked scores were set to 0 instead of -inf",
        "ru": "закрытые оценки заменялись на 0 вместо -inf",
    },
    "after_softmax": {
        "en": "the mask came after the softmax, so the weights that are left do not sum to 1",
        "ru": "маска накладывалась после softmax, и оставшиеся веса не дают в сумме 1",
    },
    "first_item": {
        "en": "the first item's mask were used for the whole batch",
        "ru": "маска первого элемента применялась ко всему пакету",
    },
    "on_queries": {
        "en": "a mask over the keys were laid over the queries ([T, 1] instead of [1, T])",
        "ru": "маска по ключам накладывалась на запросы ([T, 1] вместо [1, T])",
    },
    "on_heads": {
        "en": "the batch axis of the mask were laid over the heads",
        "ru": "ось пакета в маске попадала на ось голов",
    },
    "not_for_one_query": {
        "en": "the mask were skipped when there is a single query",
        "ru": "маска пропускалась, когда запрос один",
    },
    "swapped": {
        "en": "queries and keys were swapped: k @ q.mT instead of q @ k.mT",
        "ru": "запросы и ключи были переставлены: k @ q.mT вместо q @ k.mT",
    },
    "square_swap": {
        "en": "queries and keys were swapped when there are as many of each",
        "ru": "запросы и ключи были переставлены, когда тех и других поровну",
    },
    "square_mix": {
        "en": "the values were mixed with the transposed weights when the matrix is square",
        "ru": "значения смешивались с транспонированными весами, когда матрица квадратная",
    },
    "transposed_mix": {
        "en": "the values were mixed with the transposed weights",
        "ru": "значения смешивались с транспонированными весами",
    },
}


def explain_attention(subject: ContractSubject) -> str:
    """Name the deviations from the formula that reproduce the candidate on fresh inputs."""
    plain, masked = _attention_plain_probes(), _attention_masked_probes()
    bare = _attention_answers(subject.candidate, plain)
    given = _attention_answers(subject.candidate, masked)

    def imitates(deviation: dict[str, str], probes: list[AttentionCase]) -> bool:
        answers = _attention_answers(_attention_imitation(deviation), probes)
        pairs = list(zip(answers, bare if probes is plain else given, strict=False))
        return all(_attention_same(*pair) for pair in pairs) and any(
            answer is not None for answer in answers
        )

    found = [{}]
    if not imitates({}, plain):
        parts = {part: ways for part, ways in _ATTENTION_DEVIATIONS.items() if part != "mask"}
        found = matching_deviations(parts, lambda deviation: imitates(deviation, plain))
    for probes in (masked, masked[:2]):  # all the calls, or those with a mask for each query
        if len(found) != 1 or imitates(found[0], probes):
            break
        ways = [{**found[0], "mask": way} for way in _ATTENTION_DEVIATIONS["mask"]]
        found = [deviation for deviation in ways if imitates(deviation, probes)] or found
    return describe_deviations([each for each in found if each], _ATTENTION_WAYS)


def _attention_plain_probes() -> list[AttentionCase]:
    """Small calls without a mask, on which every deviation but those of the mask shows."""
    sizes = [(3, 4, 5, 2), (4, 4, 3, 2), (3, 2, 5, 4, 2, 2), (1, 4, 3, 5)]
    return [AttentionCase(*attention_inputs(900 + 10 * n, *s)) for n, s in enumerate(sizes)]


def _attention_masked_probes() -> list[AttentionCase]:
    """Small calls with a mask; each mask, turned and inverted, leaves every row a key to read."""
    rows = torch.tensor([[1, 0, 0, 1], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]], dtype=torch.bool)
    items = torch.stack([torch.eye(3) + torch.eye(3).roll(1, 1), torch.eye(3).roll(1, 0)]).bool()
    keys = torch.tensor([True, False, True, True])
    return [
        AttentionCase(*attention_inputs(940, 4, 4, 3, 2), allowed=rows),
        AttentionCase(*attention_inputs(950, 3, 3, 5, 4, 2, 2), allowed=items.unsqueeze(1)),
        AttentionCase(*attention_inputs(960, 4, 4, 5, 3), allowed=keys),
        AttentionCase(*attention_inputs(970, 1, 4, 3, 5), allowed=keys),
    ]


def _attention_answers(attention: Any, probes: list[AttentionCase]) -> list[Tensor | None]:
    return [_attention_output(attention, probe) for probe in probes]


def _attention_output(attention: Any, probe: AttentionCase) -> Tensor | None:
    """The output on a probe; None where the function raises or returns NaN or no tensor."""
    positional = [tensor.clone() for tensor in probe.positional]
    try:
        result = attention(*positional, **probe.keywords)
    except Exception:
        return None
    output = result if isinstance(result, Tensor) else getattr(result, "output", None)
    if not isinstance(output, Tensor) or output.isnan().any():
        return None
    return output.detach()


def _attention_same(one: Tensor | None, other: Tensor | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.shape == other.shape and torch.allclose(
        one.double(), other.double(), rtol=1e-9, atol=1e-9
    )


def _attention_imitation(deviation: dict[str, str]) -> Any:
    """Attention by the textbook formula, wrong in the given ways."""
    scale, softmax = deviation.get("scale", ""), deviation.get("softmax", "")
    masking, order = deviation.get("mask", ""), deviation.get("order", "")

    def attention(q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None = None) -> Tensor:
        d_k, d_v, t_k = q.shape[-1], v.shape[-1], k.shape[-2]
        square = q.shape[-2] == t_k and order in ("square_mix", "square_swap")
        heads = q.shape[-3] if q.dim() > 2 else 1
        divisors = {
            "no_scale": 1.0,
            "scale_after": 1.0,
            "scale_inverse": 1 / math.sqrt(d_k),
            "scale_square": d_k,
            "scale_d_v": math.sqrt(d_v),
            "scale_t_k": math.sqrt(t_k),
            "scale_width": math.sqrt(heads * d_k),
        }
        if order == "swapped" or (square and order == "square_swap"):
            q, k = k, q
        scores = q @ k.mT / divisors.get(scale, math.sqrt(d_k))
        keep = _attention_wrong_mask(masking, allowed, scores)
        if keep is not None and masking == "added":
            scores = scores + keep
        elif keep is not None and masking == "multiplied":
            scores = scores.masked_fill(~keep, 0.0)
        elif keep is not None and masking != "after_softmax":
            scores = scores.masked_fill(~keep, -math.inf)
        weights = _attention_wrong_softmax(softmax, scores)
        if keep is not None and masking == "after_softmax":
            weights = weights * keep
        if scale == "scale_after":
            weights = weights / math.sqrt(d_k)
        turned = order == "transposed_mix" or (square and order == "square_mix")
        return (weights.mT if turned else weights) @ v

    return attention


def _attention_wrong_softmax(softmax: str, scores: Tensor) -> Tensor:
    if softmax == "over_all":
        return scores.flatten(-2).softmax(-1).reshape(scores.shape)
    if softmax == "twice":
        return scores.softmax(-1).softmax(-1)
    axis = {"over_queries": -2, "over_first_axis": 0, "over_heads": -3}.get(softmax, -1)
    return scores.softmax(axis)


def _attention_wrong_mask(masking: str, allowed: Tensor | None, scores: Tensor) -> Tensor | None:
    if allowed is None or masking == "ignored":
        return None
    if masking == "not_for_one_query" and scores.shape[-2] == 1:
        return None
    if masking == "inverted":
        return ~allowed
    if masking == "transposed":
        square = scores.shape[-2] == scores.shape[-1]
        return allowed.expand(scores.shape).mT if square else allowed
    if masking == "first_item":
        return allowed[:1] if allowed.dim() > 2 else allowed
    if masking == "on_queries":
        return allowed.unsqueeze(-1) if allowed.dim() == 1 else allowed
    if masking == "on_heads":
        return allowed.transpose(0, 1) if allowed.dim() == 4 else allowed
    return allowed
