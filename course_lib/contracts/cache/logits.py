"""Read logits of any framework: as float64, with the precision that they really have."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch

from course_lib.contracts.engine.candidate import Breach
from course_lib.contracts.engine.diagnosis import Diagnosis, diagnose
from course_lib.contracts.engine.mistake import Mistake
from course_lib.contracts.engine.read import malformed
from course_lib.contracts.engine.watch import Probe
from course_lib.integers import check_int_at_least
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
    "not_finite": "{came} of {size} logits are NaN or infinite | "
    "NaN или бесконечности: {came} из {size} логитов",
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
    wanted = list(shape)
    try:
        array = logit_array(value)
    except Exception as error:
        came = type(value).__name__
        raise malformed("not_array", _TEXTS["not_array"], str(wanted), came=came) from error
    if array.values.shape != shape:
        came = list(array.values.shape)
        raise malformed("shape", _TEXTS["shape"], str(wanted), came=came, wanted=wanted)
    if bad := int((~np.isfinite(array.values)).sum()):
        finite, size = say(_TEXTS["finite"]), array.values.size
        raise malformed("not_finite", _TEXTS["not_finite"], finite, came=bad, size=size)
    return array


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


def sizes_at_the_door(
    name: str, function: Any, vocab_size: int, context_length: int
) -> dict[str, int]:
    """The sizes of a model whose other function is looked at, too, before anything is asked."""
    if not callable(function):
        raise TypeError(f"{name} must be a function, got {type(function).__name__}")
    check_int_at_least("vocab_size", vocab_size, 1)
    check_int_at_least("context_length", context_length, 1)
    return {"vocab_size": vocab_size, "context_length": context_length}


class LogitObserver:
    """Functions that give logits, watched: each different call is made once and kept."""

    by_row = False  # whether an error is a share of its own row's largest logit

    def __init__(self, vocab_size: int, context_length: int) -> None:
        self.vocab_size, self.context_length = vocab_size, context_length
        self.kept: dict[Any, Any] = {}  # the logits of calls, and relations between them
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

    def once(self, key: Any, call: Callable[[], Any], failed: Callable[[Exception], Any]) -> Any:
        """What comes of a call that is made once, or what is told where it fails."""
        if key not in self.kept:
            try:
                self.kept[key] = call()
            except Exception as error:
                self.kept[key] = failed(error)
        return self.kept[key]

    def logits(self, key: Any, call: Callable[[], Any]) -> np.ndarray | None:
        """The logits of a call, made once; None where it fails."""
        return self.once(key, lambda: logit_array(call()).values.copy(), lambda error: None)

    def relation(self, relation: Callable[[Any], Any]) -> Any:
        """A relation between the answers, looked at once."""
        raised = "raised {0.__class__.__name__}".format
        return self.once(relation, lambda: relation(self), raised)

    def rows_equal(self, one: Any, other: Any, share: float = 1.0) -> list[bool]:
        """Row by row, whether two results agree up to rounding; none if they are not comparable."""
        if one is None or other is None or one.shape != other.shape or one.ndim != 2:
            return []
        scale = max(float(np.abs(other).max(initial=0.0)), 1e-30)
        with np.errstate(invalid="ignore"):
            gaps = np.abs(one - other).max(-1, initial=0.0)
        return [bool(gap <= share * LOGIT_TOLERANCES[self.kind] * scale) for gap in gaps]

    def same(self, one: Any, other: Any, share: float = 1.0) -> bool:
        """Whether two results, or two rows, agree up to rounding."""
        one, other = (each[None] if np.ndim(each) == 1 else each for each in (one, other))
        rows = self.rows_equal(one, other, share)
        return bool(rows) and all(rows)

    def aliased(
        self,
        first: Callable[[], Any],
        second: Callable[[], Any],
        meant: Callable[[np.ndarray], bool],
    ) -> bool | str:
        """Whether a second call changes what the first gave, or a written result comes back.

        `meant` says whether the second is right to give what the first did.
        """
        held = first()
        kept = logit_array(held).values.copy()
        if self.same(logit_array(second()).values, kept) and not meant(kept):
            return "the first result once more"
        changed = not np.array_equal(logit_array(held).values, kept)
        scribble_over(held)
        return changed or not self.same(logit_array(first()).values, kept)

    def compared(self, got: np.ndarray, want: np.ndarray, kind: str, facts: Any) -> float:
        """The largest error, as a share of the largest right logit; or a breach."""
        pairs = zip(got, want, strict=True) if self.by_row else [(got, want)]
        error = max(logit_error(*pair) for pair in pairs)
        if error <= LOGIT_TOLERANCES[self.kind]:
            return error
        raise Breach(kind, error, mismatches=logit_mismatches(got, want), facts=facts)


def explained(
    seen: LogitObserver,
    catalogue: Sequence[Mistake],
    right: Callable[[], Any],
    probes: Sequence[Probe],
) -> Diagnosis:
    """Name the mistakes that stand in the same relations to themselves, whatever the weights."""
    watched = [
        replace(each, make=lambda make=each.make: _watched(type(seen), make)) for each in catalogue
    ]
    return diagnose(seen, watched, probes, _watched(type(seen), right))


@lru_cache(maxsize=128)
def _watched(observer: Any, make: Callable[[], Any]) -> LogitObserver:
    """A mistake of the catalogue, or right code, under observation: the same each time."""
    return observer.of(make())
