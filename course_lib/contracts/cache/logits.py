"""Read logits of any framework: as float64, with the precision that they really have."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from course_lib.contracts.engine.candidate import Breach
from course_lib.report import Mismatch
from course_lib.text import say

# What rounding may do to a logit, as a share of the largest one.
LOGIT_TOLERANCES = {"float64": 1e-9, "float32": 1e-4, "float16": 2e-2, "bfloat16": 5e-2}

# fmt: off
_TEXTS = {
    "not_array":
        "the result is no array of numbers but a {came} | результат не массив чисел: его тип "
    "{came}",
    "shape": "the logits have shape {came}, the call asks for {wanted} | "
    "у логитов форма {came}, а вызов требует {wanted}",
    "not_finite": "{count} of {size} logits are NaN or infinite | "
    "NaN или бесконечности: {count} из {size} логитов",
    "finite": "finite numbers | конечные числа",
}
# fmt: on


class LogitArray(NamedTuple):
    """Logits as float64, and the name of the precision they were computed in."""

    values: np.ndarray
    kind: str


def logit_array(value: Any) -> LogitArray:
    """Turn a result into numbers; TypeError or ValueError if it holds none."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        if value.is_complex():
            raise TypeError("complex numbers")
        value = (value.float() if value.dtype == torch.bfloat16 else value).numpy()
    if isinstance(value, (str, bytes, dict, set)) or value is None:
        raise TypeError("no numbers")
    if isinstance(value, (list, tuple)):
        value = [logit_array(part).values if hasattr(part, "shape") else part for part in value]
    array = np.asarray(value)
    if array.dtype.kind not in "fiu" and "bfloat16" not in str(array.dtype):
        raise TypeError(f"an array of {array.dtype}")
    values = array.astype(np.float64)
    return LogitArray(values, _kind(values))


def _kind(values: np.ndarray) -> str:
    """The narrowest type that holds all the numbers: they were rounded to it, whatever it is now.

    A model in half precision often hands its logits out as float32, and a list has no type.
    """
    finite = values[np.isfinite(values)]
    if finite.size == 0 or (finite == np.round(finite)).all():
        return "float64"
    with np.errstate(over="ignore"):
        single = finite.astype(np.float32)
        if (single != finite).any():
            return "float64"
        if (single.view(np.uint32) & 0xFFFF == 0).all():
            return "bfloat16"
        return "float16" if (single.astype(np.float16) == single).all() else "float32"


def read_logits(value: Any, shape: tuple[int, ...]) -> LogitArray:
    """Demand finite numbers of the given shape; anything else is a breach of the form."""
    try:
        array = logit_array(value)
    except Exception as error:
        text = say(_TEXTS["not_array"], came=type(value).__name__)
        raise _breach("not_array", type(value).__name__, str(list(shape)), text) from error
    if array.values.shape != shape:
        came = str(list(array.values.shape))
        text = say(_TEXTS["shape"], came=came, wanted=list(shape))
        raise _breach("shape", came, str(list(shape)), text)
    bad = int((~np.isfinite(array.values)).sum())
    if bad:
        text = say(_TEXTS["not_finite"], count=bad, size=array.values.size)
        raise _breach("not_finite", str(bad), say(_TEXTS["finite"]), text)
    return array


def _breach(kind: str, came: str, wanted: str, text: str) -> Breach:
    return Breach(kind, came, wanted, facts=text, clause="result_form")


def logit_error(got: np.ndarray, want: np.ndarray) -> float:
    """The largest difference as a share of the largest right logit."""
    scale = max(float(np.abs(want).max(initial=0.0)), 1e-30)
    return float(np.abs(got - want).max(initial=0.0)) / scale


def logit_mismatches(got: np.ndarray, want: np.ndarray, field: str = "logits") -> tuple:
    """The first places that differ by more than a tenth of the largest difference."""
    gap = np.abs(got - want)
    places = np.argwhere(gap > 0.1 * gap.max())[:3]
    return tuple(
        Mismatch(field, tuple(map(int, place)), float(got[tuple(place)]), float(want[tuple(place)]))
        for place in places
    )


def scribble_over(value: Any) -> None:
    """Write into a result, as its owner may; a result that cannot be written to is left alone."""
    try:
        if isinstance(value, torch.Tensor):
            value.detach().zero_()
        elif isinstance(value, np.ndarray):
            value[...] = 0
        elif isinstance(value, list):
            for place, part in enumerate(value):
                if isinstance(part, list):
                    scribble_over(part)
                elif isinstance(part, float):
                    value[place] = 0.0
    except Exception:
        return


class LogitObserver:
    """Functions that give logits, watched: each different call is made once and kept."""

    def __init__(self, vocab_size: int, context_length: int) -> None:
        self.vocab_size, self.context_length = vocab_size, context_length
        self.kept: dict[tuple, np.ndarray | None] = {}
        self.relations: dict[Callable[..., Any], Any] = {}
        self.kind = "float64"  # the precision with the widest tolerance among those that came

    def look(self, call: Callable[[], Any]) -> np.ndarray | None:
        """The logits of one of the first calls, None where it fails; a stub is let speak."""
        try:
            array = logit_array(call())
        except NotImplementedError:
            raise
        except Exception:
            return None
        self.kind = max(self.kind, array.kind, key=LOGIT_TOLERANCES.__getitem__)
        return array.values.copy()

    def once(self, key: tuple, call: Callable[[], Any]) -> np.ndarray | None:
        """The logits of a call, made once; None where it fails."""
        if key not in self.kept:
            try:
                self.kept[key] = logit_array(call()).values.copy()
            except Exception:
                self.kept[key] = None
        return self.kept[key]

    def relation(self, relation: Callable[[Any], Any]) -> Any:
        """A relation between the answers, looked at once."""
        if relation not in self.relations:
            try:
                self.relations[relation] = relation(self)
            except Exception as error:
                self.relations[relation] = f"raised {type(error).__name__}"
        return self.relations[relation]
