"""What is worth seeing in a call of attention: each look gives one thing to compare.

A look at something special gives a word for it, not numbers, so that it shows one mistake only.
"""

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.attention._attention_case import AttentionCase, normal


def look_at_output(attention: Any, case: AttentionCase) -> Tensor:
    """The output, moved away from 0, so that outputs equal to five decimals look alike.

    Where a mistake leaves nothing to read, NaN and zeros are the same.
    """
    return _seen_output(_seen_call(attention, case)).double().nan_to_num(0.0) + 10.0


def look_whether_argument_changes(attention: Any, case: AttentionCase, name: str) -> bool:
    """Whether a call writes into this argument."""
    given = {each: tensor.clone() for each, tensor in case.arguments().items()}
    attention(*given.values())
    return not torch.equal(given[name], getattr(case, name))


def look_whether_answer_is_stale(attention: Any, case: AttentionCase) -> bool:
    """Whether new numbers in the same tensors get the old answer."""
    given = [tensor.clone() for tensor in case.positional]
    first = _seen_output(attention(*given)).clone()
    for tensor, before in zip(given, case.positional, strict=True):
        tensor.copy_(before.flip(0) + 1)
    return torch.equal(_seen_output(attention(*given)), first)


def look_whether_result_is_overwritten(attention: Any, case: AttentionCase) -> bool:
    """Whether a later call changes an earlier result."""
    first = _seen_output(_seen_call(attention, case))
    kept = first.clone()
    _seen_call(attention, replace(case, q=-case.q, v=2 * case.v))
    return not torch.equal(first, kept)


def look_whether_masks_differ(attention: Any, case: AttentionCase) -> bool:
    """Whether a second mask of the same shape is taken for the first."""
    ones = torch.ones(case.q.shape[-2], case.k.shape[-2], dtype=torch.bool)
    first, second = (
        _seen_output(_seen_call(attention, replace(case, allowed=mask))).clone()
        for mask in (ones.tril(1), ones.triu())
    )
    return not torch.equal(first, second)


def look_at_weights(attention: Any, case: AttentionCase) -> Any:
    """Whether the reported weights make the output; if not, in which known way not."""
    torch.default_generator.manual_seed(18)  # what is only reported may be random
    result = _seen_call(attention, case)
    weights, right = result.weights.double(), case.truth.weights
    if not weights.isfinite().all() or _seen_making(result, case):
        return "make the output"
    if _seen_close(weights, right, 1e-6):
        return "right"
    if _seen_close(weights, _seen_raw_scores(case).softmax(dim=-1), 1e-6):
        return "of the unmasked scores"
    ratios = (weights / right)[(weights > 0) & (right > 0)]
    scaled = _seen_close(ratios, ratios[:1].expand_as(ratios), 1e-5)
    return "some dropped" if scaled and not weights[right == 0].any() else weights


def look_at_sums(attention: Any, case: AttentionCase) -> str:
    """Whether the weights of a query sum to 1 but for a trifle."""
    result = _seen_call(attention, case)
    gap = 1 - result.weights.double().sum(dim=-1)
    low = bool(((gap > 1e-12) & (gap < 1e-3)).all())
    return "just below 1" if low and _seen_making(result, case) else "1 or not at all"


def look_at_scores(attention: Any, case: AttentionCase) -> Any:
    """Whether the weights are the softmax of the reported scores; if not, what these are.

    Only the two fields are held against each other, whatever they are.
    """
    result = _seen_call(attention, case)
    scores, weights = result.scores.double(), result.weights.double()
    hidden = case.truth.scores == -math.inf
    if not _seen_making(result, case):
        return "give the weights"  # for all that can be said
    if (weights[hidden] != 0).any():
        return "give the weights" if _seen_close(scores.softmax(-1), weights, 1e-6) else "other"
    visible = scores.masked_fill(hidden, -math.inf)
    if not _seen_close(visible.softmax(dim=-1), weights, 1e-6):
        return _seen_ratio(visible, weights, ~hidden & (weights > 0))
    if (scores[hidden] == -math.inf).all():
        return "give the weights"
    untouched = _seen_close(scores[hidden], _seen_raw_scores(case)[hidden], 1e-6)
    return "not masked" if untouched else "finite"


def look_at_digits(attention: Any, case: AttentionCase) -> bool:
    """Whether the numbers of float64 inputs, if right, are more than float32 can hold."""
    result = _seen_call(attention, case)
    parts = {"output": _seen_output(result)}
    parts |= {n: getattr(result, n) for n in ("weights", "scores") if hasattr(result, n)}
    return not any(
        torch.equal(part, part.float().to(part.dtype))
        and _seen_close(part, getattr(case.truth, name), 1e-5)
        for name, part in parts.items()
    )


def look_at_narrow(attention: Any, case: AttentionCase) -> str:
    """How right the output of narrow inputs is, if that of the same numbers in float64 is right."""
    if not _seen_close(look_at_output(attention, _seen_wide(case)) - 10.0, case.truth.output, 1e-5):
        return "never right"
    output = _seen_output(_seen_call(attention, case))
    if not output.isfinite().all():
        return "not finite"
    if _seen_close(output, case.truth.output, 1e-5 if case.q.dtype == torch.float32 else 0.03):
        return "right"
    return "too coarse" if _seen_close(output, case.truth.output, 0.03) else "wrong"


def look_at_score_width(attention: Any, case: AttentionCase) -> bool:
    """Whether the reported scores are wider than 16 bits."""
    return _seen_call(attention, case).scores.dtype.itemsize > 2


def look_at_nan(attention: Any, case: AttentionCase) -> bool:
    """Whether rows that cannot see a NaN stay free of it; an error is as good."""
    try:
        output = _seen_output(_seen_call(attention, case))
    except Exception:
        return True
    return bool(output.isfinite().all())


def look_at_training(attention: Any, case: AttentionCase) -> str:
    """Whether inputs that require a gradient give the same output as those that do not."""
    output, _ = _seen_gradients(attention, case)
    torch.default_generator.manual_seed(18)
    if _seen_close(output, _seen_output(_seen_call(attention, case)), 1e-9):
        return "the same"
    again, _ = _seen_gradients(attention, case, seed=19)
    return "another" if _seen_close(output, again, 1e-9) else "another each time"


def look_at_gradients(attention: Any, case: AttentionCase) -> Any:
    """Which of q, k and v get no gradient; if all get one, the gradients."""
    output, gradients = _seen_gradients(attention, case)
    if not _seen_close(output, case.truth.output, 1e-5):
        return "another output"
    lost = [
        name for name, got in zip("qkv", gradients, strict=True) if got is None or not got.any()
    ]
    if lost or not output.requires_grad:
        return [*lost, output.requires_grad]
    return [gradient + 10.0 for gradient in gradients]


def look_at_hidden_gradient(attention: Any, case: AttentionCase) -> bool:
    """Whether gradients are finite when a hidden key would overflow."""
    output, gradients = _seen_gradients(attention, case)
    return bool(output.isnan().any()) or not _seen_nan(gradients)


def look_at_empty_gradient(attention: Any, case: AttentionCase) -> bool:
    """Whether gradients are finite although a row is empty."""
    output, gradients = _seen_gradients(attention, case)
    return bool(output.isnan().any()) or not _seen_nan(gradients)


def look_at_empty_row(attention: Any, case: AttentionCase) -> str:
    """What comes back for a row with nothing to read."""
    rows = _seen_output(_seen_call(attention, case))[..., 1, :].double()
    if rows.isnan().all():
        return "NaN"
    if not rows.any():
        return "zeros"
    if not _seen_close(rows, case.v.mean(dim=-2), 1e-6):
        return "other"
    full = replace(case, allowed=case.allowed | ~case.allowed.any(-1, keepdim=True))
    hides = _seen_close(look_at_output(attention, full) - 10.0, full.truth.output, 1e-5)
    return "the mean of all" if hides else "other"


def look_at_flags(attention: Any, case: AttentionCase) -> Tensor:
    """The flags of the empty rows, if the output is right; else the right ones, as if so."""
    result = _seen_call(attention, case)
    flags = result.empty_rows
    if not _seen_close(_seen_output(result), case.truth.output, 1e-5):
        flags = case.truth.empty_rows
    return flags.expand(case.joint + case.q.shape[-2:-1])


def look_at_empty_scores(attention: Any, case: AttentionCase) -> bool:
    """Whether the reported scores of an empty row are -inf, if those of other hidden keys are."""
    low = _seen_call(attention, case).scores == -math.inf
    hidden = ~case.allowed
    hidden[..., 1, :] = False
    return bool(low[..., 1, :].all() or not low[hidden].all())


def look_at_large_row(
    attention: Any, case: AttentionCase, ordinary: AttentionCase, row: int
) -> list[str]:
    """What a row of large scores gives, beside another and alone, if ordinary ones are right."""
    if not _seen_close(look_at_output(attention, ordinary) - 10.0, ordinary.truth.output, 1e-5):
        return ["never right"]
    alone = replace(case, q=case.q[row : row + 1])
    calls = ((case, row), (alone, 0))
    return [
        _seen_words(_seen_output(_seen_call(attention, each))[place], each, place)
        for each, place in calls
    ]


def look_at_hidden_key(attention: Any, case: AttentionCase, large: AttentionCase) -> str:
    """What becomes of a hidden key when scores are large, if it stays hidden otherwise."""
    if not _seen_close(look_at_output(attention, case) - 10.0, case.truth.output, 1e-5):
        return "never right"
    return _seen_words(_seen_output(_seen_call(attention, large))[0], large, 0)


def _seen_call(attention: Any, case: AttentionCase) -> Any:
    """Call with copies, so that nothing that is written into an argument lasts."""
    return attention(*(tensor.clone() for tensor in case.positional), **case.keywords)


def _seen_output(result: Any) -> Tensor:
    """The output of a result, be it a field or the result itself."""
    return (result if isinstance(result, Tensor) else result.output).detach()


def _seen_close(got: Tensor, want: Tensor, tolerance: float) -> bool:
    got, want = got.detach().double(), want.detach().double()
    return got.shape == want.shape and bool(((got - want).abs() <= tolerance).all())


def _seen_words(output: Tensor, case: AttentionCase, row: int) -> str:
    hidden = case.v if case.allowed is None else case.v[~case.allowed]
    known = {
        "right": case.truth.output[row],
        "the mean": case.v.mean(dim=-2),
        "the hidden value": hidden[0],
        "zeros": torch.zeros_like(output),
    }
    if output.isnan().all():
        return "NaN"
    return next((word for word, want in known.items() if _seen_close(output, want, 1e-5)), "other")


def _seen_wide(case: AttentionCase) -> AttentionCase:
    return replace(case, q=case.q.double(), k=case.k.double(), v=case.v.double())


def _seen_making(result: Any, case: AttentionCase) -> bool:
    """Whether the reported weights make the output."""
    return _seen_close(result.weights.double() @ case.v, result.output, 1e-5)


def _seen_raw_scores(case: AttentionCase) -> Tensor:
    return case.q @ case.k.mT / math.sqrt(case.q.shape[-1])


def _seen_ratio(scores: Tensor, weights: Tensor, places: Tensor) -> Any:
    """The factor by which the scores must be multiplied to give the weights, if there is one."""
    logs = _seen_centred(torch.where(places, weights.log(), 0.0), places)
    spread = _seen_centred(torch.where(places, scores, 0.0), places)
    ratio = (logs * spread).sum() / (spread * spread).sum()
    return ["scaled", ratio.item()] if _seen_close(logs, spread * ratio, 1e-6) else "other"


def _seen_centred(values: Tensor, places: Tensor) -> Tensor:
    """Take away the mean over the places; 0 elsewhere."""
    mean = values.sum(dim=-1, keepdim=True) / places.sum(dim=-1, keepdim=True).clamp(min=1)
    return torch.where(places, values - mean, 0.0)


def _seen_gradients(
    attention: Any, case: AttentionCase, seed: int = 18
) -> tuple[Tensor, list[Tensor | None]]:
    """The output of a call and its gradients; the same draws each time, if there are any."""
    leaves = [tensor.clone().requires_grad_() for tensor in (case.q, case.k, case.v)]
    rest = [] if case.allowed is None else [case.allowed.clone()]
    torch.default_generator.manual_seed(seed)
    result = attention(*leaves, *rest, **case.keywords)
    output = result if isinstance(result, Tensor) else result.output
    if not output.requires_grad:
        return output, [None, None, None]
    loss = (output * normal(1160, *output.shape)).sum()
    return output, list(torch.autograd.grad(loss, leaves, allow_unused=True))


def _seen_nan(gradients: list[Tensor | None]) -> bool:
    return any(gradient is not None and gradient.isnan().any() for gradient in gradients)
