"""A candidate before its contract: what it gives, what is right, how far off it is."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.engine.call import Call, Given, changed
from course_lib.contracts.engine.candidate import Breach, call_candidate, finite_wanted
from course_lib.contracts.engine.diagnosis import Diagnosis
from course_lib.report import Mismatch
from course_lib.text import say

_CHANGED = (
    "after the call `{name}` holds other numbers than before: the function writes into the "
    "caller's {name} | после вызова в `{name}` другие числа, чем до него: функция пишет в "
    "переданный аргумент {name}"
)
_UNCHANGED = "arguments unchanged | аргументы не изменены"
_AGAIN = (
    "the same call gave another result after other calls: {first}, then {again} | тот же вызов "
    "после других вызовов дал другой результат: {first}, потом {again}"
)
_NOT_FINITE = (
    "the result is {came}, although the right one is {want} | результат {came}, хотя верный "
    "конечен: {want}"
)

Result = Tensor | dict[str, Tensor]  # one tensor, or several by the names of their fields


def relative(got: Tensor, want: Tensor, call: Call) -> Tensor:
    """The error, relative above 1."""
    return (got - want).abs() / want.abs().clamp(min=1.0)


@dataclass(frozen=True)
class Terms:
    """What the judges of one contract need to know of its function.

    `asked` names the function; `references` give the right answer from a call, and must agree to
    `agree` (one may give None for a call it does not cover); `read` takes what came back to
    tensors, or raises a Breach of "result_form"; `misses` measures an error, and `told` that
    of a refused one, where another scale is easier to read; `between` gives other calls to make
    between two equal ones; `facts` says what a wrong result proves; `kept_by` is the clause that a
    changed argument breaks, `changed` what came, what should have and how that is told; `again`
    tells of a call that gives something else when it is made again; `label` names a result of one
    field, if the function's name does not; with `differentiable` the answer must be right without
    recording gradients too; `fine` says which numbers of a field may come: the finite ones.
    """

    asked: str
    references: tuple[Callable[[Any], Any], ...] = ()
    read: Callable[[Any, Call], Any] = lambda result, call: result
    misses: Callable[[Tensor, Tensor, Any], Tensor] = relative
    between: Callable[[Any], Any] = lambda call: ()
    facts: Callable[[Any, Any, Any, float], str] = lambda call, got, want, allowed: ""
    agree: float = 1e-10
    kept_by: str = "arguments_unchanged"
    changed: tuple[str, str, str] = ("{name}", _UNCHANGED, _CHANGED)
    again: str = _AGAIN
    label: str = ""
    differentiable: bool = False
    fine: Callable[[str, Tensor], Tensor] = lambda name, part: part.isfinite()
    told: Callable[[Tensor, Tensor, Any], Tensor] | None = None


def wanted(terms: Terms, call: Call) -> Any:
    """The right answer to a call, on which the references agree; worked out once a call."""
    if terms.asked not in call.kept:
        first, *others = (reference(call) for reference in terms.references)
        for other in others:
            if other is not None and not _agree(first, other, terms.agree):
                raise RuntimeError(f"the references for {terms.asked} disagree on {call}")
        call.kept[terms.asked] = first
    return call.kept[terms.asked]


@dataclass(frozen=True)
class Subject:
    """A candidate before its contract: what is asked of it, and how a mistake is explained.

    `meanings` says each clause in every language; `options` are the contract's own arguments
    (vocab_size, fields); `seen` is what an observer made of the candidate beforehand; `figures`
    takes what judges measure on the way.
    """

    contract: str
    candidate: Callable[..., Any]
    meanings: dict[str, dict[str, str]]
    explain: Callable[[Any], Diagnosis]
    terms: Terms
    options: Mapping[str, Any] = field(default_factory=dict)
    seen: Any = None
    figures: dict[str, float] = field(default_factory=dict)

    def wanted(self, call: Call) -> Any:
        """The right answer, on which the references agree."""
        return wanted(self.terms, call)

    def value(self, call: Call, want: Any = None) -> Any:
        """What the candidate gives: in form, finite, its arguments as they were.

        Args:    want: what is right, to be told if NaN or infinity comes
        """
        got = self.terms.read(self.result(call), call)
        self.check_finite(got, want)
        return got

    def result(self, call: Call) -> Any:
        """Whatever comes back from the call, once its arguments are seen to be as they were."""
        given = call.fresh()
        result = call_candidate(self.candidate, *given.positional, **given.keywords)
        self.check_unchanged(call, given)
        return result

    def check_unchanged(self, call: Call, given: Given) -> None:
        """Breach if the candidate wrote into what it was given."""
        for name in changed(call, given):
            came, wanted, facts = (say(text, name=name) for text in self.terms.changed)
            raise Breach("changed", came, wanted, facts=facts, clause=self.terms.kept_by)

    def check_finite(self, got: Any, want: Any = None, label: str = "", facts: str = "") -> None:
        """Breach on NaN and infinities."""
        right = parts(want, "") if want is not None else {}
        for name, part in parts(got, "").items():
            if not (fine := self.terms.fine(name, part)).all():
                place = tuple((~fine).nonzero()[0].tolist()) if part.dim() else ()
                expected = right[name][place].item() if name in right else finite_wanted()
                shown = f"{expected:.6g}" if isinstance(expected, float) else expected
                came = part[place].item()
                told = facts or say(_NOT_FINITE, came=came, want=shown)
                wrong = (Mismatch(name or label or self._label, place, came, expected),)
                raise Breach("not finite", str(came), finite_wanted(), mismatches=wrong, facts=told)

    @property
    def _label(self) -> str:
        return self.terms.label or self.terms.asked

    def compare(
        self,
        call: Call,
        got: Any,
        want: Any,
        allowed: float | Tensor,
        *,
        kind: str = "wrong",
        facts: str | Callable[[], str] = "",
        label: str = "",
        truth: Any = None,
        came: Any = None,
    ) -> float:
        """The largest error; a breach, with the first places that differ, if it is too large.

        Args:    allowed: one bound, or one for each number
                 facts: says, or is called to say, what the failure proves
                 label: names what is compared; by default the function, or the field
                 truth: is shown as expected where `want` is not what is right
                 came: is shown as got where `got` is not what this very call gives
        """
        worst, label = 0.0, label or self._label
        seen, right = got if came is None else came, want if truth is None else truth
        for name, part in parts(want, label).items():
            error = self._errors(call, parts(got, label)[name], part)
            worst = max(worst, error.max().item() if error.numel() else 0.0)
            if (wrong := error > allowed).any():
                told = self._errors(call, parts(got, label)[name], part, self.terms.told)
                pair = (parts(each, label)[name] for each in (seen, right))
                places = first_places(name, wrong, *pair)
                bound = torch.as_tensor(allowed).expand(wrong.shape)[wrong][0].item()
                most = told[wrong].max().item()
                raise Breach(f"{kind} {name}", most, bound, mismatches=places, facts=facts)
        return worst

    def _errors(self, call: Call, got: Tensor, want: Tensor, misses: Any = None) -> Tensor:
        """The errors, number by number: none where both are the same, infinite for NaN."""
        errors = (misses or self.terms.misses)(got.double(), want.double(), call)
        return torch.where(got == want, 0.0, errors).nan_to_num(math.inf, math.inf)


def first_places(name: str, wrong: Tensor, got: Tensor, want: Tensor) -> tuple[Mismatch, ...]:
    """The first three places that are wrong, for a message."""
    places = (tuple(place) for place in wrong.nonzero()[:3].tolist())
    return tuple(Mismatch(name, p, got[p].item(), want[p].item()) for p in places)


def parts(result: Any, label: str) -> dict[str, Tensor]:
    """The fields of a result; a tensor alone is the one field with this label."""
    return result if isinstance(result, dict) else {label: result}


def _agree(one: Any, other: Any, near: float) -> bool:
    pairs = [(part, parts(other, "")[name]) for name, part in parts(one, "").items()]
    return all(
        a.shape == b.shape and torch.allclose(a.double(), b.double(), rtol=near, atol=near)
        for a, b in pairs
    )
