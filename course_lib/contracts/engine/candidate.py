"""Run a stranger's function under a contract: call it safely, say how it failed."""

import inspect
import random
import textwrap
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from course_lib.contracts.engine.call import is_float
from course_lib.report import Mismatch
from course_lib.text import say

_FINITE = "finite | конечное число"
_NO_ERROR = "no error | без ошибки"
_RETURNED = "no error, a result | не ошибка, а результат"
_RAISED = "it raised {error}: {message} | возникла ошибка {error}: {message}"
_RAISED_AT = " (at `{line}`) |  (в строке `{line}`)"


class Breach(Exception):
    """A demand that was not met; `hold` turns it into a ContractViolation.

    `kind` tells one way of failing from another while the input is cut down; `facts` says, or
    is called to say, what the failure proves; `clause` names the clause that is broken when it is
    not the one being run.
    """

    def __init__(
        self,
        kind: str,
        measured: float | str,
        allowed: float | str | None = None,
        *,
        mismatches: tuple[Mismatch, ...] = (),
        facts: str | Callable[[], str] = "",
        clause: str = "",
    ) -> None:
        super().__init__(kind)
        self.kind, self.measured, self.allowed = kind, measured, allowed
        self.mismatches, self.facts, self.clause = mismatches, facts, clause

    def told(self) -> str:
        """What the failure proves, in words."""
        return self.facts if isinstance(self.facts, str) else self.facts()


@contextmanager
def quiet_globals() -> Iterator[None]:
    """Run a block with fresh generators and plain flags; put everything back afterwards."""
    python_state, numpy_state = random.getstate(), np.random.get_state()
    torch_state, dtype = torch.get_rng_state(), torch.get_default_dtype()
    deterministic = _deterministic_flags()
    precision, threads = torch.get_float32_matmul_precision(), torch.get_num_threads()
    try:
        random.seed(18)
        np.random.seed(18)
        torch.default_generator.manual_seed(18)
        torch.set_default_dtype(torch.float32)
        if threads != 1:  # our tensors are small: a second thread only waits, and sums in any order
            torch.set_num_threads(1)
        if precision != "highest":
            torch.set_float32_matmul_precision("highest")
        with (
            torch.inference_mode(False),
            torch.enable_grad(),
            np.errstate(),
            warnings.catch_warnings(),
        ):
            yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)
        torch.set_rng_state(torch_state)
        torch.set_default_dtype(dtype)
        if _deterministic_flags() != deterministic:  # setting them imports torch's compiler
            torch.use_deterministic_algorithms(deterministic[0], warn_only=deterministic[1])
        if torch.get_float32_matmul_precision() != precision:
            torch.set_float32_matmul_precision(precision)
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)


def _deterministic_flags() -> tuple[bool, bool]:
    return (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )


def is_stub(candidate: Callable[..., Any], *args: Any, **kwargs: Any) -> bool:
    """Tell whether the simplest call of all says "not implemented"."""
    try:
        candidate(*args, **kwargs)
    except Exception as error:
        return isinstance(error, NotImplementedError)
    return False


def call_candidate(candidate: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call the candidate where it must not raise; an error is a breach with its cause chained."""
    try:
        return candidate(*args, **kwargs)
    except Exception as error:
        raise Breach(
            f"raised {type(error).__name__}",
            type(error).__name__,
            say(_NO_ERROR),
            facts=raised_facts(candidate, error),
        ) from error


def must_raise(
    wanted: type[Exception],
    candidate: Callable[..., Any],
    *args: Any,
    facts: str = "",
    **kwargs: Any,
) -> None:
    """Call the candidate where it must raise `wanted`; anything else is a breach."""
    try:
        candidate(*args, **kwargs)
    except wanted:
        return
    except Exception as error:
        raise Breach(
            f"raised {type(error).__name__}",
            type(error).__name__,
            wanted.__name__,
            facts="; ".join(text for text in (facts, raised_facts(candidate, error)) if text),
        ) from error
    returned = say(_RETURNED)
    raise Breach("accepted", returned, wanted.__name__, facts=facts)


def raised_facts(candidate: Callable[..., Any], error: Exception) -> str:
    """Say what was raised, and at which line of the candidate's own file."""
    message = textwrap.shorten(str(error), 160, placeholder=" …")
    text = say(_RAISED, error=type(error).__name__, message=message)
    code = getattr(inspect.unwrap(candidate), "__code__", None)
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.line for frame in frames if code and frame.filename == code.co_filename]
    if lines and lines[-1]:
        shown = textwrap.shorten(lines[-1], 80, placeholder=" …")
        text += say(_RAISED_AT, line=shown)
    return text


class ExportedNumbers(TorchFunctionMode):
    """Count the floating-point numbers that are taken out of torch while a function runs."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        exits = ("numpy", "tolist", "item", "__array__", "__float__", "__dlpack__")
        if getattr(func, "__name__", "") in exits and args[0].is_floating_point():
            self.count += args[0].numel()
        return func(*args, **(kwargs or {}))


def is_forward_only(candidate: Callable[..., Any], *args: Any, **kwargs: Any) -> bool:
    """Tell whether the candidate computes outside torch, where no gradient can follow.

    It does if its result hangs on no graph and it took out as many numbers as its tensors hold.
    """
    tracked = [
        value.detach().clone().requires_grad_() if is_float(value) else value for value in args
    ]
    exported = ExportedNumbers()
    try:
        with exported:
            result = candidate(*tracked, **kwargs)
    except Exception:
        result = None  # numpy refuses a tensor that requires a gradient
    parts = [result, *getattr(result, "__dict__", {}).values()]
    connected = any(isinstance(part, torch.Tensor) and part.requires_grad for part in parts)
    return not connected and exported.count >= sum(
        value.numel() for value in args if is_float(value)
    )


def finite_wanted() -> str:
    """What should have come in the place of NaN or infinity."""
    return say(_FINITE)
