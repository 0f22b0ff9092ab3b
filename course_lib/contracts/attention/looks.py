"""What is worth seeing in a call of attention: each look gives one thing to compare.

A look at something special gives a word for it, not numbers, so that it shows one mistake only.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.attention.calls import attention_by_library, joint_axes, normal
from course_lib.contracts.engine.call import Call


def truth(call: Call) -> dict[str, Tensor]:
    """What is right, worked out once a call."""
    if "truth" not in call.kept:
        call.kept["truth"] = attention_by_library(call)
    return call.kept["truth"]


def see(call: Call, attention: Any) -> Any:
    """Call with copies, so that nothing that is written into an argument lasts."""
    return call.fresh().to(attention)


def output_of(result: Any) -> Tensor:
    """The output of a result, be it a field or the result itself."""
    return (result if isinstance(result, Tensor) else result.output).detach()


def close(got: Tensor, want: Tensor, near: float) -> bool:
    """Whether two tensors are the same but for so much."""
    got, want = got.detach().double(), want.detach().double()
    return got.shape == want.shape and bool(((got - want).abs() <= near).all())


def right_in(call: Call, attention: Any) -> bool:
    """Whether the output of an ordinary call is right; NaN is as good as 0."""
    return close(
        output_of(see(call, attention)).double().nan_to_num(0.0), truth(call)["output"], 1e-5
    )


def at_output(call: Call, attention: Any) -> Tensor:
    """The output, moved away from 0, so that outputs equal to five decimals look alike.

    Where a mistake leaves nothing to read, NaN and zeros are the same.
    """
    return output_of(see(call, attention)).double().nan_to_num(0.0) + 10.0


# ---------------------------------------------------------------- weights and scores


def at_weights(call: Call, attention: Any) -> Any:
    """Whether the reported weights make the output; if not, in which known way not."""
    torch.default_generator.manual_seed(18)  # what is only reported may be random
    result = see(call, attention)
    weights, right = result.weights.double(), truth(call)["weights"]
    if not weights.isfinite().all() or _made(result, call):
        return "make the output"
    if close(weights, right, 1e-6):
        return "right"
    if close(weights, _raw_scores(call).softmax(dim=-1), 1e-6):
        return "of the unmasked scores"
    ratios = (weights / right)[(weights > 0) & (right > 0)]
    scaled = close(ratios, ratios[:1].expand_as(ratios), 1e-5)
    return "some dropped" if scaled and not weights[right == 0].any() else weights


def at_sums(call: Call, attention: Any) -> str:
    """Whether the weights of a query sum to 1 but for a trifle."""
    result = see(call, attention)
    gap = 1 - result.weights.double().sum(dim=-1)
    low = bool(((gap > 1e-12) & (gap < 1e-3)).all())
    return "just below 1" if low and _made(result, call) else "1 or not at all"


def at_scores(call: Call, attention: Any) -> Any:
    """Whether the weights are the softmax of the reported scores; if not, what these are.

    Only the two fields are held against each other, whatever they are.
    """
    result = see(call, attention)
    scores, weights = result.scores.double(), result.weights.double()
    hidden = truth(call)["scores"] == -math.inf
    if not _made(result, call):
        return "give the weights"  # for all that can be said
    if (weights[hidden] != 0).any():
        return "give the weights" if close(scores.softmax(-1), weights, 1e-6) else "other"
    visible = scores.masked_fill(hidden, -math.inf)
    if not close(visible.softmax(dim=-1), weights, 1e-6):
        return _ratio(visible, weights, ~hidden & (weights > 0))
    if (scores[hidden] == -math.inf).all():
        return "give the weights"
    untouched = close(scores[hidden], _raw_scores(call)[hidden], 1e-6)
    return "not masked" if untouched else "finite"


def _made(result: Any, call: Call) -> bool:
    """Whether the reported weights make the output."""
    return close(result.weights.double() @ call.v, result.output, 1e-5)


def _raw_scores(call: Call) -> Tensor:
    return call.q @ call.k.mT / math.sqrt(call.q.shape[-1])


def _ratio(scores: Tensor, weights: Tensor, places: Tensor) -> Any:
    """The factor by which the scores must be multiplied to give the weights, if there is one."""
    logs = _centred(torch.where(places, weights.log(), 0.0), places)
    spread = _centred(torch.where(places, scores, 0.0), places)
    ratio = (logs * spread).sum() / (spread * spread).sum()
    return ["scaled", ratio.item()] if close(logs, spread * ratio, 1e-6) else "other"


def _centred(values: Tensor, places: Tensor) -> Tensor:
    """Take away the mean over the places; 0 elsewhere."""
    mean = values.sum(dim=-1, keepdim=True) / places.sum(dim=-1, keepdim=True).clamp(min=1)
    return torch.where(places, values - mean, 0.0)


# ---------------------------------------------------------------- numbers


def has_digits(call: Call, attention: Any) -> bool:
    """Whether the numbers of float64 inputs, if right, are more than float32 can hold."""
    result = see(call, attention)
    parts = {"output": output_of(result)}
    parts |= {n: getattr(result, n) for n in ("weights", "scores") if hasattr(result, n)}
    return not any(
        torch.equal(part, part.float().to(part.dtype)) and close(part, truth(call)[name], 1e-5)
        for name, part in parts.items()
    )


def at_narrow(call: Call, attention: Any) -> str:
    """How right the output of narrow inputs is, if that of the same numbers in float64 is right."""
    if not right_in(call.of_dtype(torch.float64), attention):
        return "never right"
    output, want = output_of(see(call, attention)), truth(call)["output"]
    if not output.isfinite().all():
        return "not finite"
    if close(output, want, 1e-5 if call.q.dtype == torch.float32 else 0.03):
        return "right"
    return "too coarse" if close(output, want, 0.03) else "wrong"


def wide_scores(call: Call, attention: Any) -> bool:
    """Whether the reported scores are wider than 16 bits."""
    return see(call, attention).scores.dtype.itemsize > 2


def free_of_nan(call: Call, attention: Any) -> bool:
    """Whether rows that cannot see a NaN stay free of it; an error is as good."""
    try:
        output = output_of(see(call, attention))
    except Exception:
        return True
    return bool(output.isfinite().all())


def at_large_row(ordinary: Call, row: int) -> Callable[[Call, Any], list[str]]:
    """A look: a row of large scores, beside another and alone, if ordinary ones are right."""

    def look(call: Call, attention: Any) -> list[str]:
        if not right_in(ordinary, attention):
            return ["never right"]
        alone = call.but(q=call.q[row : row + 1])
        return [_in_words(each, attention, place) for each, place in ((call, row), (alone, 0))]

    return look


def at_hidden_key(ordinary: Call) -> Callable[[Call, Any], str]:
    """A look: a hidden key when scores are large, if it stays hidden in an ordinary call."""

    def look(call: Call, attention: Any) -> str:
        return _in_words(call, attention, 0) if right_in(ordinary, attention) else "never right"

    return look


def _in_words(call: Call, attention: Any, row: int) -> str:
    output = output_of(see(call, attention))[row]
    hidden = call.v if call.allowed is None else call.v[~call.allowed]
    known = {
        "right": truth(call)["output"][row],
        "the mean": call.v.mean(dim=-2),
        "the hidden value": hidden[0],
        "zeros": torch.zeros_like(output),
    }
    if output.isnan().all():
        return "NaN"
    return next((word for word, want in known.items() if close(output, want, 1e-5)), "other")


# ---------------------------------------------------------------- gradients


def at_training(call: Call, attention: Any) -> str:
    """Whether inputs that require a gradient give the same output as those that do not."""
    output, _ = _gradients(call, attention)
    torch.default_generator.manual_seed(18)
    if close(output, output_of(see(call, attention)), 1e-9):
        return "the same"
    again, _ = _gradients(call, attention, seed=19)
    return "another" if close(output, again, 1e-9) else "another each time"


def at_gradients(call: Call, attention: Any) -> Any:
    """Which of q, k and v get no gradient; if all get one, the gradients."""
    output, slopes = _gradients(call, attention)
    if not close(output, truth(call)["output"], 1e-5):
        return "another output"
    lost = [name for name, got in zip("qkv", slopes, strict=True) if got is None or not got.any()]
    if lost or not output.requires_grad:
        return [*lost, output.requires_grad]
    return [slope + 10.0 for slope in slopes]


def finite_gradients(call: Call, attention: Any) -> bool:
    """Whether gradients are finite, if the output is."""
    output, slopes = _gradients(call, attention)
    spoiled = any(slope is not None and slope.isnan().any() for slope in slopes)
    return bool(output.isnan().any()) or not spoiled


def _gradients(call: Call, attention: Any, seed: int = 18) -> tuple[Tensor, list[Tensor | None]]:
    """The output of a call and its gradients; the same draws each time, if there are any."""
    given, leaves = call.tracked("qkv")
    torch.default_generator.manual_seed(seed)
    result = given.to(attention)
    output = result if isinstance(result, Tensor) else result.output
    if not output.requires_grad:
        return output, [None, None, None]
    loss = (output * normal(1160, *output.shape)).sum()
    return output, list(torch.autograd.grad(loss, leaves, allow_unused=True))


# ---------------------------------------------------------------- rows with nothing to read


def at_empty_row(call: Call, attention: Any) -> str:
    """What comes back for a row with nothing to read."""
    rows = output_of(see(call, attention))[..., 1, :].double()
    if rows.isnan().all():
        return "NaN"
    if not rows.any():
        return "zeros"
    if not close(rows, call.v.mean(dim=-2), 1e-6):
        return "other"
    full = call.but(allowed=call.allowed | ~call.allowed.any(-1, keepdim=True))
    return "the mean of all" if right_in(full, attention) else "other"


def at_flags(call: Call, attention: Any) -> Tensor:
    """The flags of the empty rows, if the output is right; else the right ones, as if so."""
    result, want = see(call, attention), truth(call)
    right = close(output_of(result), want["output"], 1e-5)
    flags = result.empty_rows if right else want["empty_rows"]
    return flags.expand(*joint_axes(call), call.q.shape[-2])


def hidden_scores(call: Call, attention: Any) -> bool:
    """Whether the reported scores of an empty row are -inf, if those of other hidden keys are."""
    low = see(call, attention).scores == -math.inf
    hidden = ~call.allowed
    hidden[..., 1, :] = False
    return bool(low[..., 1, :].all() or not low[hidden].all())
