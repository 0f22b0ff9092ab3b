"""What may come back from a candidate: one number, or a tensor like an argument."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.engine.call import Call
from course_lib.contracts.engine.candidate import Breach, finite_wanted
from course_lib.report import Mismatch
from course_lib.text import say

_NUMBER = (
    "the result is {came}, not a number (a float, or a tensor with no axes) | результат — {came}, "
    "а нужно число (float или тензор без осей)"
)
_TENSOR = (
    "the result is a {came}, not a torch.Tensor | результат имеет тип {came}, а нужен torch.Tensor"
)
_SHAPE = (
    "the result has shape {came}, {like} has {wanted} | у результата форма {came}, а у {like} — "
    "{wanted}"
)
_DTYPE = (
    "the result is {came}, narrower than {like} or not a float | результат имеет тип {came}: он "
    "менее точен, чем тип {like}, или не с плавающей точкой"
)
_NOT_FINITE = (
    "{count} of {size} numbers are NaN or infinite | NaN или бесконечности: {count} из {size} чисел"
)
_WIDER = "{given} or wider | {given} или шире"
_WIDTHS = {torch.float16: 1, torch.bfloat16: 1, torch.float32: 2, torch.float64: 3}

Read = Callable[[Any, Call], Tensor]  # takes what a call gave to what is compared


def malformed(
    kind: str, fact: str, allowed: str, mismatches: tuple[Mismatch, ...] = (), **values: Any
) -> Breach:
    """A breach of "result_form": `came` is what was measured, the rest fills the fact in."""
    came, facts = str(values["came"]), say(fact, **values)
    return Breach(kind, came, allowed, mismatches=mismatches, facts=facts, clause="result_form")


def number(result: Any, call: Call) -> Tensor:
    """One number: a float, or what has no axes."""
    value = result.detach() if isinstance(result, Tensor) else result
    strange = isinstance(value, (bool, str, bytes, complex, type(None)))
    if isinstance(value, Tensor):
        strange = value.is_complex() or value.dtype == torch.bool
    if not strange and getattr(value, "shape", ()) == ():
        try:
            return torch.tensor(float(value), dtype=torch.float64)
        except (TypeError, ValueError, RuntimeError, OverflowError):
            pass
    shape = getattr(result, "shape", None)
    came = type(result).__name__ + ("" if shape is None else f" {list(shape)}")
    raise malformed("not a number", _NUMBER, "float", came=came)


def tensor(result: Any) -> Tensor:
    """A tensor, without its graph."""
    if not isinstance(result, Tensor):
        raise malformed("not a tensor", _TENSOR, "torch.Tensor", came=type(result).__name__)
    return result.detach()


def tensor_of(
    shape: Callable[[Call], list[int]],
    dtypes: tuple[torch.dtype, ...],
    *,
    misshapen: str,
    mistyped: str,
) -> Read:
    """A tensor in one of these dtypes, of the shape that a call asks for.

    Args:    misshapen: says that {came} is another shape than {wanted}
             mistyped: says that {came} is another dtype
    """
    names = ", ".join(str(dtype).removeprefix("torch.") for dtype in dtypes)

    def read(result: Any, call: Call) -> Tensor:
        got, wanted = tensor(result), shape(call)
        if got.dtype not in dtypes:
            raise malformed("dtype", mistyped, f"torch.{names}", came=got.dtype)
        if list(got.shape) != wanted:
            came = list(got.shape)
            raise malformed("shape", misshapen, str(wanted), came=came, wanted=wanted)
        return got

    return read


def finite(read: Read, label: str) -> Read:
    """What is read with another reader, if all of its numbers are finite; else it has no form."""

    def read_finite(result: Any, call: Call) -> Tensor:
        got = read(result, call)
        if (broken := ~got.isfinite()).any():
            place, told = tuple(broken.nonzero()[0].tolist()), finite_wanted()
            came, count, size = got[place].item(), int(broken.sum()), got.numel()
            shown, facts = (Mismatch(label, place, came, told),), {"count": count, "size": size}
            raise malformed("not finite", _NOT_FINITE, told, shown, came=came, **facts)
        return got

    return read_finite


def tensor_like(name: str) -> Read:
    """A tensor with the shape of an argument, in its dtype or a wider one."""

    def read(result: Any, call: Call) -> Tensor:
        like = call.args[name]
        result = tensor(result)
        if result.shape != like.shape:
            came, wanted = list(result.shape), list(like.shape)
            raise malformed("shape", _SHAPE, str(wanted), came=came, like=name, wanted=wanted)
        if _WIDTHS.get(result.dtype, 0) < _WIDTHS[like.dtype]:
            least = say(_WIDER, given=like.dtype)
            raise malformed("dtype", _DTYPE, least, came=result.dtype, like=name)
        return result

    return read
