"""Judge attention where it is dangerous: refusals, narrow and broken numbers, gradients."""

from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from course_lib.contracts.attention._attention_case import (
    AttentionCase,
    AttentionRefusal,
    attention_gradients,
    normal,
)
from course_lib.contracts.attention._attention_facts import ATTENTION_FACTS
from course_lib.contracts.attention._attention_judge import (
    attention_call,
    attention_compare,
    attention_finite,
    attention_form,
)
from course_lib.contracts.engine.candidate import (
    Breach,
    ContractSubject,
    call_candidate,
    must_raise,
)
from course_lib.text import localized

_DANGER_FACTS = {
    "mask_given": {
        "en": "the mask is {dtype} of shape {shape}; the scores have shape {wanted}",
        "ru": "маска имеет тип {dtype} и форму {shape}, а оценки — форму {wanted}",
    },
    "empty_came_back": {
        "en": "a row with nothing to read came back as {row}",
        "ru": "строка, которой нечего читать, дала {row}",
    },
    "half": {
        "en": "the same numbers given as float64 give the right result",
        "ru": "те же числа в float64 дают верный результат",
    },
    "spread": {
        "en": "a number that is not finite reached a row that cannot see it (0 · NaN is NaN)",
        "ru": "NaN или бесконечность дошли до строки, которая их не видит (0 · NaN = NaN)",
    },
}


def judge_refusal(subject: ContractSubject, case: AttentionRefusal) -> float:
    """The call raises the error that the case names."""
    dtype, shape = str(case.allowed.dtype).removeprefix("torch."), list(case.allowed.shape)
    wanted = [*case.joint, case.q.shape[-2], case.k.shape[-2]]
    text = localized(_DANGER_FACTS["mask_given"], dtype=dtype, shape=shape, wanted=wanted)
    must_raise(case.wanted, subject.candidate, *case.positional, facts=text, **case.keywords)
    return 0.0


def judge_empty_row_error(subject: ContractSubject, case: AttentionCase) -> float:
    """The call raises ValueError, since a row has nothing to read."""
    try:
        must_raise(ValueError, subject.candidate, *case.positional, **case.keywords)
    except Breach as breach:
        if breach.kind == "accepted":
            fields = attention_call(subject, case)
            row = fields["output"][case.truth.empty_rows][0].tolist()
            shown = [round(number, 4) for number in row]
            breach.facts = localized(_DANGER_FACTS["empty_came_back"], row=shown)
        raise
    return 0.0


def judge_half(subject: ContractSubject, case: AttentionCase) -> float:
    """Narrow inputs: the scores to float32 accuracy, the rest to the accuracy of the input."""
    tolerance = {torch.float16: 8, torch.bfloat16: 4}[case.q.dtype] * torch.finfo(case.q.dtype).eps
    fields = attention_call(subject, case)
    attention_finite(fields, case)
    wide = replace(case, q=case.q.double(), k=case.k.double(), v=case.v.double())
    facts = partial(_attention_wide_facts, subject, wide)
    worst = 0.0
    for name, bound in (("scores", 1e-5), ("weights", tolerance), ("output", tolerance)):
        if name in fields:
            want = getattr(case.truth, name)
            worst = max(worst, attention_compare(name, fields[name], want, bound, facts))
    return worst


def judge_nonfinite(subject: ContractSubject, case: AttentionCase) -> float:
    """Either any error, or the rows that cannot see the bad number are right."""
    try:
        subject.candidate(*case.positional, **case.keywords)
    except Exception:
        return 0.0
    fields = attention_call(subject, case)
    clean = replace(
        case, **{name: getattr(case, name).nan_to_num(0.0, 0.0, 0.0) for name in ("q", "k", "v")}
    )
    bad_query = ~case.q.isfinite().all(-1)
    bad_key = ~(case.k.isfinite().all(-1) & case.v.isfinite().all(-1))
    sees = (case.allowed & bad_key.unsqueeze(-2)).any(-1)
    blind = (~bad_query & ~sees).expand(clean.truth.empty_rows.shape)
    facts = partial(localized, _DANGER_FACTS["spread"])
    worst = 0.0
    for name, value in fields.items():
        want = getattr(clean.truth, name)
        got = value[blind]
        if got.numel():
            worst = max(worst, attention_compare(name, got, want[blind], 1e-10, facts))
    return worst


def judge_gradients(subject: ContractSubject, case: AttentionCase) -> float:
    """Gradients of a weighted sum of the output, against the formula."""
    leaves = [t.detach().clone().requires_grad_() for t in (case.q, case.k, case.v)]
    tracked = AttentionCase(*leaves, allowed=case.allowed, empty_row=case.empty_row)
    result = call_candidate(subject.candidate, *tracked.positional, **tracked.keywords)
    attention_form(subject, case, result)
    output = result if isinstance(result, Tensor) else result.output
    facts = partial(_attention_training_facts, subject, case)
    attention_compare("output", output.detach(), case.truth.output, 1e-9, facts)
    if not output.requires_grad and case.truth.empty_rows.all():
        return 0.0  # nothing is read, so nothing need hang on q, k and v
    if not output.requires_grad:
        text = localized(ATTENTION_FACTS["detached"])
        raise Breach("detached", "requires_grad=False", "requires_grad=True", facts=text)
    cotangent = normal(99, *output.shape)
    loss = (output * cotangent).sum()
    given = call_candidate(torch.autograd.grad, loss, leaves, allow_unused=True)
    got = dict(zip(("q", "k", "v"), given, strict=True))
    want = dict(zip(("q", "k", "v"), attention_gradients(case, cotangent), strict=True))
    lost = [n for n in "qkv" if (got[n] is None or not got[n].any()) and want[n].abs().max() > 1e-6]
    spoiled = [name for name in "qkv" if got[name] is not None and got[name].isnan().any()]
    text = localized(ATTENTION_FACTS["no_gradient"], names=", ".join(lost)) if lost else ""
    if spoiled:
        text = localized(ATTENTION_FACTS["nan_gradient"], names=", ".join(spoiled))
    worst = 0.0
    for name, gradient in got.items():
        full = torch.zeros_like(want[name]) if gradient is None else gradient
        worst = max(worst, attention_compare(f"{name}.grad", full, want[name], 1e-8, text))
    return worst


def _attention_wide_facts(subject: ContractSubject, wide: AttentionCase) -> str:
    """Whether the same numbers, given as float64, are handled rightly."""
    try:
        exact = attention_call(subject, wide)["output"]
        attention_compare("output", exact, wide.truth.output, 1e-8)
    except Breach:
        return ""
    return localized(_DANGER_FACTS["half"])


def _attention_training_facts(subject: ContractSubject, case: AttentionCase) -> str:
    """Whether the output is right for the same numbers that do not require a gradient."""
    right = (attention_call(subject, case)["output"] - case.truth.output).abs().max() <= 1e-8
    return localized(ATTENTION_FACTS["training_only"]) if right else ""
