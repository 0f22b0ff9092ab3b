"""Judge one call of attention: its form, its numbers, its gradients, and what it leaves alone."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.attention._attention_case import AttentionCase, broadcast_axes
from course_lib.contracts.attention._attention_facts import (
    ATTENTION_FACTS,
    attention_facts,
    attention_range_facts,
    attention_sum_facts,
)
from course_lib.contracts.engine.candidate import (
    Breach,
    ContractSubject,
    call_candidate,
    finite_wanted,
)
from course_lib.report import Mismatch
from course_lib.text import localized

ATTENTION_FIELDS = ("output", "weights", "scores", "empty_rows")


def attention_call(subject: ContractSubject, case: AttentionCase) -> dict[str, Tensor]:
    """Call the candidate; return the fields that are asked for, their form checked."""
    before = {name: _attention_copy(value) for name, value in case.arguments().items()}
    result = call_candidate(subject.candidate, *case.positional, **case.keywords)
    for name, value in case.arguments().items():
        if isinstance(value, Tensor) and not _attention_same_bits(value, before[name]):
            if value.shape == before[name].shape:
                value.copy_(before[name])
            raise Breach(
                "changed",
                localized(ATTENTION_FACTS["changed_argument"], name=name),
                localized(ATTENTION_FACTS["unchanged"]),
                facts=localized(ATTENTION_FACTS["changed"], name=name),
                clause="arguments_unchanged",
            )
    return attention_form(subject, case, result)


def attention_form(subject: ContractSubject, case: AttentionCase, result: Any) -> dict[str, Tensor]:
    """Take the fields out of a result; breach unless each has the right type, shape and dtype."""
    if subject.fields == ("output",) and isinstance(result, Tensor):
        fields = {"output": result}
    else:
        if not all(hasattr(result, name) for name in subject.fields):
            raise _attention_without_fields(subject, result)
        fields = {name: getattr(result, name) for name in subject.fields}
    for name, value in fields.items():
        if not isinstance(value, Tensor):
            raise _attention_malformed("not_tensor", name=name, came=type(value).__name__)
        if value.device != case.q.device:
            came, wanted = value.device, case.q.device
            raise _attention_malformed("device", name=name, came=came, wanted=wanted)
        _attention_check_shape(case, name, value)
        _attention_check_dtype(case, name, value)
        fields[name] = value.detach().expand(_attention_wanted_shape(case, name))
    return fields


def attention_finite(fields: dict[str, Tensor], case: AttentionCase) -> None:
    """Breach on NaN and on infinities, except -inf among the scores."""
    for name, value in fields.items():
        fine = torch.isfinite(value) if name != "scores" else ~(value.isnan() | (value == math.inf))
        if not fine.all():
            index = tuple((~fine).nonzero()[0].tolist())
            text = localized(ATTENTION_FACTS["not_finite"], name=name, count=int((~fine).sum()))
            got = value[index].item()
            raise Breach(
                "not finite",
                str(got),
                finite_wanted(),
                mismatches=(Mismatch(name, index, got, finite_wanted()),),
                facts=text + attention_range_facts(case),
            )


def attention_compare(
    name: str,
    got: Tensor,
    want: Tensor,
    tolerance: float,
    facts: str | Callable[[], str] = "",
    kind: str = "wrong",
) -> float:
    """Return the largest error, relative above 1; breach when it is over the tolerance.

    Args:    facts: says, or is called to say, what a failure proves
    """
    wide, want = got.double(), want.double()
    if torch.equal(wide, want):
        return 0.0
    error = (wide - want).abs() / want.abs().clamp(min=1.0)
    error = torch.where(wide == want, 0.0, error)  # also where both are -inf
    error = error.nan_to_num(math.inf, math.inf)
    worst = error.max().item()
    if worst <= tolerance:
        return worst
    places = [tuple(place) for place in (error > tolerance).nonzero()[:3].tolist()]
    pick = (lambda x: bool(x)) if want.dtype == torch.bool or name == "empty_rows" else float
    mismatches = tuple(
        Mismatch(name, place, pick(wide[place].item()), pick(want[place].item()))
        for place in places
    )
    raise Breach(f"{kind} {name}", worst, tolerance, mismatches=mismatches, facts=facts)


def judge_form(subject: ContractSubject, case: AttentionCase) -> float:
    """The call returns what it must, finite, and leaves its arguments alone."""
    attention_finite(attention_call(subject, case), case)
    return 0.0


def judge_attention(*names: str, tolerance: float) -> Any:
    """Make a judge that compares these fields with the references."""

    def judge(subject: ContractSubject, case: AttentionCase) -> float:
        truth = case.truth
        fields = attention_call(subject, case)
        attention_finite(fields, case)
        worst = 0.0
        for name in names:
            if name not in fields:
                continue
            got, want = fields[name], getattr(truth, name)
            facts = partial(attention_facts, name, case, fields, tolerance)
            if name == "weights":
                _attention_hidden_weights(case, got)
            worst = max(worst, attention_compare(name, got, want, tolerance, facts))
        return worst

    return judge


def judge_row_sums(subject: ContractSubject, case: AttentionCase) -> float:
    """The weights of each query must be shares: none negative, together 1."""
    fields = attention_call(subject, case)
    attention_finite(fields, case)
    weights = fields["weights"].double()
    ones = torch.ones(weights.shape[:-1], dtype=torch.float64)
    facts = partial(attention_sum_facts, case, weights)
    error = attention_compare("weights.sum(-1)", weights.sum(-1), ones, 1e-9, facts)
    attention_compare("weights", weights, weights.clamp(min=0.0), 0.0)
    return error


def _attention_copy(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, Tensor) else value


def _attention_same_bits(value: Tensor, before: Tensor) -> bool:
    if value.shape != before.shape or value.dtype != before.dtype:
        return False
    if torch.equal(value, before):
        return True
    return bool(((value == before) | (value.isnan() & before.isnan())).all())


def _attention_malformed(fact: str, **values: Any) -> Breach:
    text = localized(ATTENTION_FACTS[fact], **values)
    wanted = str(values.get("wanted", "torch.Tensor"))
    return Breach(fact, str(values["came"]), wanted, facts=text, clause="result_form")


def _attention_without_fields(subject: ContractSubject, result: Any) -> Breach:
    """Say what came, which fields it lacks and what to return instead."""
    came = "None" if result is None else type(result).__name__
    lacking = ", ".join(f".{name}" for name in subject.fields if not hasattr(result, name))
    alone = subject.fields == ("output",)
    wanted = localized(
        ATTENTION_FACTS["tensor_or_object" if alone else "result_object"],
        names=", ".join(f".{name}" for name in subject.fields),
    )
    measured = localized(ATTENTION_FACTS["no_field"], came=came, names=lacking)
    facts = "" if alone else localized(ATTENTION_FACTS["result_fix"])
    return Breach("no_field", measured, wanted, facts=facts, clause="result_form")


def _attention_wanted_shape(case: AttentionCase, name: str) -> tuple[int, ...]:
    t_q, t_k, d_v = case.q.shape[-2], case.k.shape[-2], case.v.shape[-1]
    last = {"output": (t_q, d_v), "empty_rows": (t_q,)}.get(name, (t_q, t_k))
    return case.joint + last


def _attention_check_shape(case: AttentionCase, name: str, value: Tensor) -> None:
    """The shape that the arguments call for; axes that only v brings may stay unexpanded."""
    wanted, shape = _attention_wanted_shape(case, name), tuple(value.shape)
    if shape == wanted:
        return
    if name == "empty_rows":
        fits = len(shape) > 0 and _attention_broadcasts(shape, wanted)
    elif name in ("weights", "scores"):
        batch = broadcast_axes(case.q.shape[:-2], case.k.shape[:-2])
        least = batch + wanted[-2:]
        fits = _attention_broadcasts(shape, wanted) and _attention_broadcasts(least, shape)
    else:
        fits = False
    if not fits:
        raise _attention_malformed("shape", name=name, came=list(shape), wanted=list(wanted))


def _attention_broadcasts(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    try:
        return broadcast_axes(shape, wanted) == wanted
    except ValueError:
        return False


def _attention_check_dtype(case: AttentionCase, name: str, value: Tensor) -> None:
    """bool for the flags; floats at least as wide as the inputs; scores at least float32."""
    given, came = case.q.dtype, value.dtype
    narrow = (torch.float16, torch.bfloat16)
    least = torch.float32 if name == "scores" and given in narrow else given
    widths = {torch.float16: 1, torch.bfloat16: 1, torch.float32: 2, torch.float64: 3}
    if name == "empty_rows":
        fits, wanted = came == torch.bool, "torch.bool"
    else:
        fits = widths.get(came, 0) >= widths[least]
        wanted = localized(ATTENTION_FACTS["float_or_wider"], given=least)
    if not fits:
        raise _attention_malformed("dtype", name=name, came=came, given=given, wanted=wanted)


def _attention_hidden_weights(case: AttentionCase, weights: Tensor) -> None:
    """A hidden key must have weight exactly 0: not small, zero."""
    if case.allowed is None:
        return
    hidden = case.truth.scores == -math.inf
    wrong = hidden & (weights != 0)
    if wrong.any():
        places = [tuple(place) for place in wrong.nonzero()[:3].tolist()]
        most = weights[wrong].abs().max().item()
        facts = localized(
            ATTENTION_FACTS["hidden_weight"],
            count=int(wrong.sum()),
            hidden=int(hidden.sum()),
            most=most,
        )
        low = case.truth.scores[places[0][:-1]].max().item()
        if math.isfinite(low) and low < -1e3:
            facts += localized(ATTENTION_FACTS["low_visible"], low=low)
        mismatches = tuple(Mismatch("weights", p, weights[p].item(), 0.0) for p in places)
        raise Breach("hidden weight", most, 0.0, mismatches=mismatches, facts=facts)
