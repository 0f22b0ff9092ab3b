"""Judge calls of attention: the numbers of one, and how those of several agree."""

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.attention.calls import drawn, joint_axes
from course_lib.contracts.attention.fields import field_facts, fine, spoiled_facts, sum_facts
from course_lib.contracts.engine.call import Call, Given
from course_lib.contracts.engine.candidate import Breach, call_candidate
from course_lib.contracts.engine.judge import Judge
from course_lib.contracts.engine.subject import Subject
from course_lib.report import Mismatch
from course_lib.text import say

WRONG_MASK = "wrong_cache_mask_max_error"
Fields = dict[str, Tensor]


def answer(subject: Subject, call: Call, given: Given | None = None) -> Fields:
    """The fields of the result, in form; what was given must be as it was."""
    given = given or call.fresh()
    result = call_candidate(subject.candidate, *given.positional, **given.keywords)
    subject.check_unchanged(call, given)
    return subject.terms.read(result, call)


def finite_answer(subject: Subject, call: Call) -> Fields:
    """The fields of the result, in form and finite."""
    got = answer(subject, call)
    for name, part in got.items():
        if not (finite := fine(name, part)).all():
            facts = spoiled_facts(name, int((~finite).sum()), subject.wanted(call), call)
            subject.check_finite({name: part}, facts=facts)
    return got


def formed(subject: Subject, call: Call, allowed: float) -> float:
    """The call returns what it must, finite, and leaves its arguments alone."""
    finite_answer(subject, call)
    return 0.0


def right(*names: str) -> Judge:
    """A judge: these fields are those of the references; a hidden key has weight exactly 0."""

    def judge(subject: Subject, call: Call, allowed: float) -> float:
        got, truth, worst = finite_answer(subject, call), subject.wanted(call), 0.0
        for name in names:
            if name in got:
                facts = partial(field_facts, name, call, got, truth, allowed)
                if name == "weights":
                    _check_hidden(got[name], truth["scores"])
                want = {name: truth[name]}
                worst = max(worst, subject.compare(call, got, want, allowed, facts=facts))
        return worst

    return judge


_HIDDEN_WEIGHT = (
    "{count} of {hidden} hidden keys have a weight; the largest is {most:.4g} | "
    "замаскированных ключей с ненулевым весом: {count} из {hidden}; наибольший — {most:.4g}"
)
_LOW_VISIBLE = (
    "; the visible scores lie at {low:.2g}, and only -inf is sure to lie below them | "
    "; видимые оценки здесь около {low:.2g}, и заведомо ниже них только -inf"
)


def _check_hidden(weights: Tensor, scores: Tensor) -> None:
    hidden = scores == -math.inf
    wrong = hidden & (weights != 0)
    if not wrong.any():
        return
    places = [tuple(place) for place in wrong.nonzero()[:3].tolist()]
    most, low = weights[wrong].abs().max().item(), scores[places[0][:-1]].max().item()
    counts = {"count": int(wrong.sum()), "hidden": int(hidden.sum())}
    facts = say(_HIDDEN_WEIGHT, **counts, most=most)
    if math.isfinite(low) and low < -1e3:
        facts += say(_LOW_VISIBLE, low=low)
    found = tuple(Mismatch("weights", place, weights[place].item(), 0.0) for place in places)
    raise Breach("hidden weight", most, 0.0, mismatches=found, facts=facts)


def shares(subject: Subject, call: Call, allowed: float) -> float:
    """The weights of each query must be shares: none negative, together 1."""
    weights = finite_answer(subject, call)["weights"].double()
    sums, facts = weights.sum(-1), partial(sum_facts, call, weights)
    label = "weights.sum(-1)"
    error = subject.compare(call, sums, torch.ones_like(sums), allowed, facts=facts, label=label)
    subject.compare(call, weights, weights.clamp(min=0.0), 0.0, label="weights")
    return error


# ---------------------------------------------------------------- one call and another

_AGREE = {
    "twice": "two calls in a row with the same arguments give different results | "
    "два вызова подряд с одними и теми же аргументами дают разные результаты",
    "random": "two calls in a row differ, but agree when torch's generator is reset before each: "
    "it draws random numbers | два вызова подряд различаются, но совпадают, если перед каждым "
    "сбрасывать генератор torch: функция берёт случайные числа",
    "after_others": "after calls with other arguments the first call gives another result | "
    "после вызовов с другими аргументами повтор первого вызова даёт другой результат",
    "overwritten": "a later call changed the tensors that an earlier call had returned | "
    "следующий вызов изменил тензоры, которые вернул предыдущий",
    "stale": "the arguments hold new numbers, but the result is that of the old ones | "
    "в аргументах уже новые числа, а результат получен по старым",
    "inherited": "just before, a call of the same shape with other numbers was made | "
    "прямо перед этим был вызов той же формы с другими числами",
    "keys_moved": "the keys, their values and their mask were moved on by one place together; the "
    "result must not notice | ключи, их значения и маска вместе сдвинуты на одно место; результат "
    "не должен измениться",
    "queries_turned": "the queries were put in reverse order; the rows of the result must follow | "
    "запросы взяты в обратном порядке; строки результата должны переставиться так же",
    "item_alone": "item {place} of the batch, given alone, gets the expected numbers, but others "
    "in the batch | элемент {place} батча, взятый отдельно, даёт ожидаемые числа, а внутри "
    "батча — другие",
    "row_alone": "query {place}, given alone, gets the expected numbers, but others among the rest "
    "| запрос {place}, взятый отдельно, даёт ожидаемые числа, а вместе с остальными — другие",
    "decoded": "expected is row {place} of the full causal pass | "
    "ожидается строка {place} полного причинного прохода",
    "wrong_mask": "with [1, 0, 0, …] as its mask the query may read the first key only | "
    "с маской [1, 0, 0, …] запрос вправе читать только первый ключ",
}


def _agree(
    subject: Subject, call: Call, got: Fields, want: Fields, allowed: float, fact: str, **more: Any
) -> float:
    """Compare two results of the candidate, field by field."""
    facts, common = partial(say, _AGREE[fact], **more), {name: want[name] for name in got}
    return subject.compare(call, got, common, allowed, kind=fact, facts=facts)


def _kept(fields: Fields) -> Fields:
    return {name: part.clone() for name, part in fields.items()}


def _moved(tensor: Tensor | None, change: Callable[[Tensor], Tensor]) -> Tensor | None:
    return None if tensor is None else change(tensor)


def repeatable(subject: Subject, call: Call, allowed: float) -> float:
    """A, A, B, A: same numbers each time, nothing overwritten, nothing remembered."""
    turned = _moved(call.allowed, lambda mask: mask.flip(-1))
    other = call.but(q=call.q.flip(-2) + 1, k=-call.k, v=2 * call.v, allowed=turned)
    held = finite_answer(subject, call)
    first, again = _kept(held), answer(subject, call)
    told = partial(_twice_facts, subject, call)
    worst = subject.compare(call, again, first, allowed, kind="twice", facts=told)
    different = _kept(answer(subject, other))
    _agree(subject, call, held, first, 0.0, "overwritten")
    answer(subject, drawn(55, 7, 9, 3, 4, 2))
    again = answer(subject, call)
    worst = max(worst, _agree(subject, call, again, first, allowed, "after_others"))
    given = call.fresh()
    answer(subject, call, given)
    for name, tensor in other.args.items():
        if isinstance(tensor, Tensor):
            given.values[name].copy_(tensor)
    _agree(subject, call, answer(subject, other, given), different, allowed, "stale")
    return worst


def _twice_facts(subject: Subject, call: Call) -> str:
    """Whether a reset of the generator, and nothing else, makes many calls in a row agree."""
    agree = []
    for before in (lambda: None, partial(torch.default_generator.manual_seed, 0)):
        first, *others = [(before(), answer(subject, call)["output"].clone()) for _ in range(40)]
        agree.append(all(torch.equal(first[1], other) for _, other in others))
    return say(_AGREE["random" if agree == [False, True] else "twice"])


def after_another(subject: Subject, call: Call, allowed: float) -> float:
    """The numbers are right also just after a call of the same shape with other numbers."""
    turned = _moved(call.allowed, lambda mask: mask.flip(-1))
    answer(subject, call.but(k=call.k + 1, v=-call.v, allowed=turned))
    got = finite_answer(subject, call)
    return _agree(subject, call, got, subject.wanted(call), allowed, "inherited")


def permuted(subject: Subject, call: Call, allowed: float) -> float:
    """Moving the keys changes nothing; turning the queries round turns the rows round."""
    base = finite_answer(subject, call)
    mask = _moved(call.allowed, lambda mask: mask.roll(1, -1))
    got = answer(subject, call.but(k=call.k.roll(1, -2), v=call.v.roll(1, -2), allowed=mask))
    over_keys = {name: base[name].roll(1, -1) for name in base if name in ("weights", "scores")}
    worst = _agree(subject, call, got, base | over_keys, allowed, "keys_moved")
    mask = _moved(call.allowed, lambda mask: mask.flip(-2))
    got = answer(subject, call.but(q=call.q.flip(-2), allowed=mask))
    rows = {name: part.flip(-1 if name == "empty_rows" else -2) for name, part in base.items()}
    return max(worst, _agree(subject, call, got, rows, allowed, "queries_turned"))


def alone(subject: Subject, call: Call, allowed: float) -> float:
    """Each item of the batch, and each query, gives alone what it gives in company."""
    together, worst, axes = finite_answer(subject, call), 0.0, joint_axes(call)
    wide = {name: part.expand(axes + part.shape[-2:]) for name, part in call.args.items()}
    for place in itertools.product(*map(range, axes)):
        one = answer(subject, call.but(**{name: part[place] for name, part in wide.items()}))
        part, told = {name: field[place] for name, field in together.items()}, list(place)
        worst = max(worst, _agree(subject, call, part, one, allowed, "item_alone", place=told))
    for row in range(call.q.shape[-2]):
        only = slice(row, row + 1)
        mask = _moved(call.allowed, lambda mask, only=only: mask[..., only, :])
        one = answer(subject, call.but(q=call.q[..., only, :], allowed=mask))
        part = {
            name: field[..., only] if name == "empty_rows" else field[..., only, :]
            for name, field in together.items()
        }
        worst = max(worst, _agree(subject, call, part, one, allowed, "row_alone", place=row))
    return worst


def decoded(subject: Subject, call: Call, allowed: float) -> float:
    """The last queries alone, as a cache feeds them, against the full causal pass."""
    length, worst = call.q.shape[-2], 0.0
    causal = torch.ones(length, call.k.shape[-2], dtype=torch.bool).tril()
    full = answer(subject, call.but(allowed=causal))["output"]
    for start in (length - 1, max(0, length - 2)):
        step = call.but(q=call.q[..., start:, :], allowed=causal[start:])
        got = {"output": finite_answer(subject, step)["output"]}
        want = {"output": full[..., start:, :]}
        worst = max(worst, _agree(subject, call, got, want, allowed, "decoded", place=start))
    wrong = step.but(q=step.q[..., -1:, :], allowed=causal[:1])
    got = {"output": answer(subject, wrong)["output"]}
    worst = max(worst, _agree(subject, call, got, subject.wanted(wrong), allowed, "wrong_mask"))
    distance = (got["output"] - full[..., -1:, :]).abs().max().item()
    subject.figures[WRONG_MASK] = max(distance, subject.figures.get(WRONG_MASK, 0.0))
    return worst
