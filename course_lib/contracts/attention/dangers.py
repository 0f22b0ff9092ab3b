"""Judge attention where it is dangerous: refusals, narrow and broken numbers, gradients."""

from functools import partial

import torch
from torch import Tensor

from course_lib.contracts.attention.calls import attention_gradients, joint_axes, normal
from course_lib.contracts.attention.judges import answer, finite_answer
from course_lib.contracts.engine.call import Call
from course_lib.contracts.engine.candidate import Breach, call_candidate, must_raise
from course_lib.contracts.engine.subject import Subject
from course_lib.text import say

_FACTS = {
    "mask_given": "the mask is {dtype} of shape {shape}; the scores have shape {wanted} | "
    "маска имеет тип {dtype} и форму {shape}, а оценки — форму {wanted}",
    "empty_came_back": "a row with nothing to read came back as {row} | "
    "строка, которой нечего читать, дала {row}",
    "half": "the same numbers given as float64 give the right result | "
    "те же числа в float64 дают верный результат",
    "spread": "a number that is not finite reached a row that cannot see it (0 · NaN is NaN) | "
    "NaN или бесконечность дошли до строки, которая их не видит (0 · NaN = NaN)",
    "detached": ".output is cut off from q, k and v: no gradient can reach them (detach, no_grad, "
    ".data, .item() or a computation outside torch) | .output отрезан от q, k и v: градиент до "
    "них не доходит (detach, no_grad, .data, .item() или вычисление вне torch)",
    "nan_gradient": "the output is right, but the gradient of {names} is NaN | "
    "выход верен, но в градиенте {names} — NaN",
    "training_only": "inputs that require a gradient give another output than the same numbers "
    "without | входы, требующие градиента, дают не тот выход, что те же числа без него",
    "no_gradient": "no gradient reaches {names}: the graph on the way to the output is cut | "
    "градиент не доходит до {names}: граф на пути к выходу разорван",
}


def mask_refused(subject: Subject, call: Call, allowed: float) -> float:
    """TypeError for a mask that is not bool, ValueError for a shape that does not fit."""
    mask, wanted = call.allowed, [*joint_axes(call), call.q.shape[-2], call.k.shape[-2]]
    dtype, given = str(mask.dtype).removeprefix("torch."), call.fresh()
    facts = say(_FACTS["mask_given"], dtype=dtype, shape=list(mask.shape), wanted=wanted)
    error = ValueError if mask.dtype == torch.bool else TypeError
    must_raise(error, subject.candidate, *given.positional, facts=facts, **given.keywords)
    return 0.0


def empty_row_refused(subject: Subject, call: Call, allowed: float) -> float:
    """ValueError, since a row has nothing to read."""
    given = call.fresh()
    try:
        must_raise(ValueError, subject.candidate, *given.positional, **given.keywords)
    except Breach as breach:
        if breach.kind == "accepted":
            output = answer(subject, call)["output"]
            row = output[subject.wanted(call)["empty_rows"]][0].tolist()
            breach.facts = say(_FACTS["empty_came_back"], row=[round(number, 4) for number in row])
        raise
    return 0.0


def right_to_half(subject: Subject, call: Call, allowed: float) -> float:
    """Narrow inputs: the scores to float32 accuracy, the rest to the accuracy of the input."""
    kind = call.q.dtype
    coarse = {torch.float16: 8, torch.bfloat16: 4}[kind] * torch.finfo(kind).eps
    got, truth, worst = finite_answer(subject, call), subject.wanted(call), 0.0
    facts = partial(_wide_facts, subject, call.of_dtype(torch.float64))
    for name, bound in (("scores", 1e-5), ("weights", coarse), ("output", coarse)):
        if name in got:
            error = subject.compare(call, got, {name: truth[name]}, bound, facts=facts)
            worst = max(worst, error)
    return worst


def _wide_facts(subject: Subject, wide: Call) -> str:
    """Whether the same numbers, given as float64, are handled rightly."""
    try:
        want = {"output": subject.wanted(wide)["output"]}
        subject.compare(wide, answer(subject, wide), want, 1e-8)
    except Breach:
        return ""
    return say(_FACTS["half"])


def unspread(subject: Subject, call: Call, allowed: float) -> float:
    """Either any error, or the rows that cannot see the bad number are right."""
    given = call.fresh()
    try:
        given.to(subject.candidate)
    except Exception:
        return 0.0
    got = answer(subject, call)
    clean = call.but(**{name: call.args[name].nan_to_num(0.0, 0.0, 0.0) for name in "qkv"})
    bad_query = ~call.q.isfinite().all(-1)
    bad_key = ~(call.k.isfinite().all(-1) & call.v.isfinite().all(-1))
    mask = torch.tensor([True]) if call.allowed is None else call.allowed
    sees = (mask & bad_key.unsqueeze(-2)).any(-1)
    blind, truth = ~bad_query & ~sees, subject.wanted(clean)
    if not blind.any():
        return 0.0
    got = {name: part[blind] for name, part in got.items()}
    want, facts = {name: truth[name][blind] for name in got}, partial(say, _FACTS["spread"])
    return subject.compare(call, got, want, allowed, facts=facts)


def right_slopes(subject: Subject, call: Call, allowed: float) -> float:
    """Gradients of a weighted sum of the output, against the formula."""
    (given, leaves), truth = call.tracked("qkv"), subject.wanted(call)
    result = call_candidate(subject.candidate, *given.positional, **given.keywords)
    got, told = subject.terms.read(result, call), partial(_training_facts, subject, call)
    subject.compare(call, got, {"output": truth["output"]}, 1e-9, facts=told)
    output = result if isinstance(result, Tensor) else result.output
    if not output.requires_grad:
        if truth["empty_rows"].all():
            return 0.0  # nothing is read, so nothing need hang on q, k and v
        facts = say(_FACTS["detached"])
        raise Breach("detached", "requires_grad=False", "requires_grad=True", facts=facts)
    direction = normal(99, *output.shape)
    loss = (output * direction).sum()
    found = call_candidate(torch.autograd.grad, loss, leaves, allow_unused=True)
    want = attention_gradients(call, truth["weights"], direction)
    return _compare_slopes(subject, call, dict(zip("qkv", found, strict=True)), want, allowed)


def _compare_slopes(
    subject: Subject,
    call: Call,
    got: dict[str, Tensor | None],
    want: dict[str, Tensor],
    allowed: float,
) -> float:
    lost = [n for n in "qkv" if (got[n] is None or not got[n].any()) and want[n].abs().max() > 1e-6]
    spoiled = [name for name in "qkv" if got[name] is not None and got[name].isnan().any()]
    facts = say(_FACTS["no_gradient"], names=", ".join(lost)) if lost else ""
    if spoiled:
        facts = say(_FACTS["nan_gradient"], names=", ".join(spoiled))
    full = {f"{n}.grad": torch.zeros_like(want[n]) if got[n] is None else got[n] for n in "qkv"}
    named = {f"{name}.grad": slope for name, slope in want.items()}
    return subject.compare(call, full, named, allowed, facts=facts)


def _training_facts(subject: Subject, call: Call) -> str:
    """Whether the output is right for the same numbers that do not require a gradient."""
    gap = answer(subject, call)["output"] - subject.wanted(call)["output"]
    return say(_FACTS["training_only"]) if gap.abs().max() <= 1e-8 else ""
