"""Judge a generation: its answer against the rule, and what it did to its arguments."""

from dataclasses import replace
from typing import Any

from course_lib.contracts.engine.candidate import (
    Breach,
    ContractSubject,
    call_candidate,
    must_raise,
)
from course_lib.contracts.engine.words import say
from course_lib.contracts.generation._generation_model import (
    GenerationCase,
    ScriptedModel,
    generation_by_model,
    generation_by_rule,
)
from course_lib.contracts.generation._generation_probes import generation_arguments
from course_lib.report import Mismatch

_GENERATION_REASONS = ("eos", "length_limit", "context")

# fmt: off
_GENERATION_FACTS = {
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
    "prompt": "the prompt became {came} | затравка стала такой: {came}",
}
# fmt: on


def generation_call(
    subject: ContractSubject, case: GenerationCase, as_tensor: bool
) -> tuple[list[int], str, list[Any]]:
    """Call the candidate; breach unless a pair of ids and a reason comes back."""
    arguments, keywords = generation_arguments(case, as_tensor=as_tensor)
    result = call_candidate(subject.candidate, *arguments, **keywords)
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise _generation_malformed("not_pair", type(result).__name__, "(new_ids, reason)")
    ids, reason = result
    new = _generation_ids(ids)
    if new is None:
        raise _generation_malformed("not_ids", str(ids)[:60], "[int, …]")
    if not isinstance(reason, str) or reason not in _GENERATION_REASONS:
        raise _generation_malformed("reason", repr(reason)[:60], " | ".join(_GENERATION_REASONS))
    _generation_not_overfed(arguments[0])
    return new, str(reason), arguments


def _generation_ids(value: Any) -> list[int] | None:
    """The ids as plain integers; None if they are something else."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(value, (list, tuple)):
        return None
    plain = [item.item() if hasattr(item, "item") else item for item in value]
    if not all(isinstance(item, int) and not isinstance(item, bool) for item in plain):
        return None
    return plain


def _generation_not_overfed(model: ScriptedModel) -> None:
    longest = max(model.lengths, default=0)
    if longest > model.max_length:
        facts = say(_GENERATION_FACTS["overfed"], n=longest, size=model.max_length)
        raise Breach("overfed", longest, str(model.max_length), facts=facts, clause="context")


def _generation_malformed(fact: str, came: str, wanted: str) -> Breach:
    text = say(_GENERATION_FACTS[fact], came=came)
    return Breach(fact, came, wanted, facts=text, clause="result_form")


def judge_generation_form(subject: ContractSubject, case: GenerationCase, as_tensor: bool) -> float:
    """Demand a pair of ids and a reason."""
    generation_call(subject, case, as_tensor)
    return 0.0


def judge_generation(subject: ContractSubject, case: GenerationCase, as_tensor: bool) -> float:
    """Both references must agree with each other, and the candidate with them."""
    if len(case.prompt) > case.max_length:
        return 0.0
    want, right = generation_by_rule(case)
    if (want, right) != generation_by_model(case):
        raise RuntimeError(f"the two references for the generation disagree on {case}")
    got, reason, _ = generation_call(subject, case, as_tensor)
    _generation_compare((got, reason), (want, right), "wrong")
    return 0.0


def _generation_compare(got: tuple, want: tuple, kind: str) -> None:
    if got == want:
        return
    ids, right = got[0], want[0]
    places = [n for n in range(max(len(ids), len(right))) if ids[n : n + 1] != right[n : n + 1]]
    mismatches = [
        Mismatch(
            "new_ids",
            (n,),
            ids[n] if n < len(ids) else "—",
            right[n] if n < len(right) else "—",
        )
        for n in places[:3]
    ]
    if got[1] != want[1]:
        mismatches = [*mismatches[:2], Mismatch("reason", (), got[1], want[1])]
    values = {"got": ids, "reason": got[1], "want": right, "right": want[1]}
    facts = say(_GENERATION_FACTS["answer"], **values)
    kind = kind if places else f"{kind} reason"
    raise Breach(
        kind, f"{ids}, {got[1]}", f"{right}, {want[1]}", mismatches=tuple(mismatches), facts=facts
    )


def judge_generation_mode(subject: ContractSubject, case: GenerationCase, as_tensor: bool) -> float:
    """No call of the model may find it in training mode."""
    _, _, arguments = generation_call(subject, case, as_tensor)
    modes = arguments[0].modes
    if any(modes):
        facts = say(_GENERATION_FACTS["training"], n=len(modes), k=sum(modes))
        raise Breach("training", sum(modes), "0", facts=facts)
    return 0.0


def judge_generation_flag(subject: ContractSubject, case: GenerationCase, as_tensor: bool) -> float:
    """The mode after the call must be that before it."""
    if len(case.prompt) > case.max_length:
        return 0.0
    _, _, arguments = generation_call(subject, case, as_tensor)
    _generation_flag_kept(case, arguments[0].training)
    return 0.0


def _generation_flag_kept(case: GenerationCase, after: bool) -> None:
    if after is not case.training:
        facts = say(_GENERATION_FACTS["flag"], before=case.training, after=after)
        modes = f"training = {after}", f"training = {case.training}"
        raise Breach("flag", *modes, facts=facts, clause="flag_restored")


def judge_generation_refusal(
    subject: ContractSubject, case: GenerationCase, as_tensor: bool
) -> float:
    """Too long a prompt must be a ValueError, and leave the model in its mode."""
    if len(case.prompt) > case.max_length and case.max_new_tokens:
        arguments, keywords = generation_arguments(case, as_tensor=as_tensor)
        must_raise(ValueError, subject.candidate, *arguments, **keywords)
        _generation_flag_kept(case, arguments[0].training)
    return 0.0


def judge_generation_prompt(
    subject: ContractSubject, case: GenerationCase, as_tensor: bool
) -> float:
    """The caller's prompt must be as it was."""
    if len(case.prompt) > case.max_length:
        return 0.0
    _, _, arguments = generation_call(subject, case, as_tensor)
    after = [int(token) for token in arguments[1]]
    if after != list(case.prompt):
        facts = say(_GENERATION_FACTS["prompt"], came=after)
        raise Breach("prompt", str(after), str(list(case.prompt)), facts=facts)
    return 0.0


def judge_generation_again(
    subject: ContractSubject, case: GenerationCase, as_tensor: bool
) -> float:
    """The same answer after another model and another prompt, and from the same model."""
    if len(case.prompt) > case.max_length:
        return 0.0
    first, reason, arguments = generation_call(subject, case, as_tensor)
    kept, model = (list(first), reason), arguments[0]
    fresh, keywords = generation_arguments(case, as_tensor=as_tensor)
    result = call_candidate(subject.candidate, *fresh, **keywords)
    other = replace(case, prompt=(5, *case.prompt[1:]), rule="place", max_new_tokens=3)
    generation_call(subject, other, as_tensor)
    if _generation_ids(result[0]) != first:
        came = _generation_ids(result[0])
        facts = say(_GENERATION_FACTS["overwritten"])
        raise Breach("overwritten", str(came), str(first), facts=facts)
    again, reason, _ = generation_call(subject, case, as_tensor)
    _generation_compare((again, reason), kept, "other")
    fresh, keywords = generation_arguments(case, as_tensor=as_tensor)
    result = call_candidate(subject.candidate, model, *fresh[1:], **keywords)
    _generation_compare((_generation_ids(result[0]), result[1]), kept, "other")
    return 0.0
