"""Judge a generation: its answer against the rule, and what it did to its arguments."""

from dataclasses import replace
from typing import Any

from course_lib.contracts.engine.call import Given
from course_lib.contracts.engine.candidate import Breach, call_candidate, must_raise
from course_lib.contracts.engine.subject import Subject
from course_lib.contracts.generation.model import (
    GenerationCase,
    generation_by_model,
    generation_by_rule,
)
from course_lib.report import Mismatch
from course_lib.text import say

_REASONS = ("eos", "length_limit", "context")

# fmt: off
_FACTS = {
    "not_pair": "the result is no pair (new_ids, reason): {came} | "
    "результат — не пара (new_ids, reason): {came}",
    "not_ids": "the new ids are no flat sequence of integers: {came} | "
    "новые ids — не плоская последовательность целых чисел: {came}",
    "reason": "the reason is {came} | причина названа так: {came}",
    "answer": "got {got}, {reason}; right is {want}, {right} | "
    "получено {got}, {reason}; верно {want}, {right}",
    "training": "of {n} calls of the model {k} found it in training mode | "
    "вызовов модели {n}, из них в режиме обучения {k}",
    "flag": "before the call training was {before}, after it {after} | "
    "до вызова training = {before}, после {after}",
    "overfed": "the model was given {n} tokens, it holds {size} | "
    "модели дано токенов {n}, а помещается {size}",
    "overwritten": "a later call changed the ids that an earlier one had returned | "
    "следующий вызов изменил ids, которые вернул предыдущий",
    "prompt": "the prompt became {came} | промпт стал таким: {came}",
}
# fmt: on


def _answer(subject: Subject, given: Given) -> tuple[list[int], str]:
    """Call the candidate; breach unless a pair of ids and a reason comes back."""
    result = call_candidate(subject.seen, *given.positional, **given.keywords)
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise _malformed("not_pair", type(result).__name__, "(new_ids, reason)")
    ids, reason = result
    new = _plain_ids(ids)
    if new is None:
        raise _malformed("not_ids", str(ids)[:60], "[int, …]")
    if not isinstance(reason, str) or reason not in _REASONS:
        raise _malformed("reason", repr(reason)[:60], " | ".join(_REASONS))
    model = given.values["model"]
    if model.overfed:
        n, size = max(model.lengths), model.max_length
        facts = say(_FACTS["overfed"], n=n, size=size)
        raise Breach("overfed", n, str(size), facts=facts, clause="context")
    return new, str(reason)


def _plain_ids(value: Any) -> list[int] | None:
    """The ids as plain integers; None if they are something else."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(value, (list, tuple)):
        return None
    plain = [item.item() if hasattr(item, "item") else item for item in value]
    if not all(isinstance(item, int) and not isinstance(item, bool) for item in plain):
        return None
    return plain


def _malformed(fact: str, came: str, wanted: str) -> Breach:
    text = say(_FACTS[fact], came=came)
    return Breach(fact, came, wanted, facts=text, clause="result_form")


def formed(subject: Subject, case: GenerationCase, allowed: float) -> None:
    """Demand a pair of ids and a reason."""
    _used(subject, case)


def right(subject: Subject, case: GenerationCase, allowed: float) -> None:
    """Both references must agree with each other, and the candidate with them."""
    want = generation_by_rule(case)
    if want != generation_by_model(case):
        raise RuntimeError(f"the two references for the generation disagree on {case}")
    _compare(_answer(subject, case.fresh()), want, "wrong")


def _compare(got: tuple[Any, str], want: tuple[list[int], str], kind: str) -> None:
    if got == want:
        return
    ids, right = got[0], want[0]
    places = [n for n in range(max(len(ids), len(right))) if ids[n : n + 1] != right[n : n + 1]]
    mismatches = [
        Mismatch("new_ids", (n,), *(each[n] if n < len(each) else "—" for each in (ids, right)))
        for n in places[:3]
    ]
    if got[1] != want[1]:
        mismatches = [*mismatches[:2], Mismatch("reason", (), got[1], want[1])]
    facts = say(_FACTS["answer"], got=ids, reason=got[1], want=right, right=want[1])
    kind = kind if places else f"{kind} reason"
    told = (f"{ids}, {reason}" for ids, reason in (got, want))
    raise Breach(kind, *told, mismatches=tuple(mismatches), facts=facts)


def in_eval(subject: Subject, case: GenerationCase, allowed: float) -> None:
    """No call of the model may find it in training mode."""
    modes = _used(subject, case)["model"].modes
    if any(modes):
        facts = say(_FACTS["training"], n=len(modes), k=sum(modes))
        raise Breach("training", sum(modes), "0", facts=facts)


def _used(subject: Subject, case: GenerationCase) -> dict[str, Any]:
    """The arguments of a call that went well, afterwards."""
    given = case.fresh()
    _answer(subject, given)
    return given.values


def flag_restored(subject: Subject, case: GenerationCase, allowed: float) -> None:
    """The mode after the call must be that before it."""
    _flag_kept(case, _used(subject, case)["model"].training)


def _flag_kept(case: GenerationCase, after: bool) -> None:
    if after is not case.training:
        facts = say(_FACTS["flag"], before=case.training, after=after)
        modes = f"training = {after}", f"training = {case.training}"
        raise Breach("flag", *modes, facts=facts, clause="flag_restored")


def refused(subject: Subject, case: GenerationCase, allowed: float) -> None:
    """Too long a prompt must be a ValueError, and leave the model in its mode."""
    if case.max_new_tokens:  # asked for nothing, a function need not look at the prompt
        given = case.fresh()
        must_raise(ValueError, subject.seen, *given.positional, **given.keywords)
        _flag_kept(case, given.values["model"].training)


def prompt_kept(subject: Subject, case: GenerationCase, allowed: float) -> None:
    """The caller's prompt must be as it was."""
    after = _used(subject, case)["prompt"]
    if after != list(case.prompt):
        facts = say(_FACTS["prompt"], came=after)
        raise Breach("prompt", str(after), str(list(case.prompt)), facts=facts)


def again(subject: Subject, case: GenerationCase, allowed: float) -> None:
    """The same answer after another model and another prompt, and from the same model."""
    used = case.fresh()
    first = _answer(subject, used)
    given = case.fresh()
    result = call_candidate(subject.seen, *given.positional, **given.keywords)
    other = replace(case, prompt=(5, *case.prompt[1:]), rule="place", max_new_tokens=3)
    _answer(subject, other.fresh())
    if (came := _plain_ids(result[0])) != first[0]:
        facts = say(_FACTS["overwritten"])
        raise Breach("overwritten", str(came), str(first[0]), facts=facts)
    _compare(_answer(subject, case.fresh()), first, "other")
    given = Given({**case.arguments(), "model": used.values["model"]}, given.named)
    result = call_candidate(subject.seen, *given.positional, **given.keywords)
    _compare((_plain_ids(result[0]), result[1]), first, "other")
