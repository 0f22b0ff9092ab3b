"""A contract that the learner wrote, held to functions right and wrong: testing as a skill."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from unittest import mock

from course_lib.contracts.engine.candidate import is_stub, raised_facts
from course_lib.contracts.engine.clause import Contract
from course_lib.contracts.engine.mistake import Mistake
from course_lib.report import ClauseResult, ContractReport, ContractViolation
from course_lib.text import localized, say

_SHARE = 0.8  # of the wrong ones: the rest are subtle, and one contract need not know them all
_RIGHT = (
    "a right function is accepted, however it is written | "
    "верная функция принята, как бы она ни была написана"
)
_WRONG = "most wrong functions are refused | большинство неверных функций отвергнуто"
_REFUSED = "refused is a right one, {who}: {why} | отвергнута верная: {who}; {why}"
_OTHERS = "wrong ones refused: {refused} of {count} | отвергнуто неверных: {refused} из {count}"
_SURVIVOR = "one that slips through: {what} | одна из пропущенных: {what}"
_FALSE = (
    "your contract returned False, and that refuses nothing: let it raise, with assert | "
    "ваш контракт вернул False, а это ничего не отвергает: пусть вызывает исключение, через assert"
)
_BARRED = (
    "the course's contract is no help here: write what it should hold to | "
    "контракт курса здесь не помощник: напишите, что нужно проверить"
)


@dataclass(frozen=True)
class Panel:
    """Functions that a contract of the learner is held to, each made afresh.

    Args:    right: who it is, "English | русский" -> what makes it; wrong: the catalogue's mistakes
    """

    right: Mapping[str, Callable[[], Any]]
    wrong: tuple[Mistake, ...]

    def score(self, my_contract: Callable[[Any], object]) -> ContractReport:
        """Count what a contract refuses: no right function, and at least 4 of 5 wrong ones.

            my_contract(candidate) raises, by an assert for example, or else accepts

        Raises:  ContractViolation when a right one is refused, or too many wrong ones slip through:
                 with one of these as a hint, the plainest first
        """
        if not callable(my_contract):
            raise TypeError(f"my_contract must be a function, got {type(my_contract).__name__}")
        with mock.patch.object(Contract, "check", _barred):
            if is_stub(my_contract, next(iter(self.right.values()))()):
                return ContractReport("score_contract", attempted=False)
            refusals = {who: _refusal(my_contract, make) for who, make in self.right.items()}
            slipped = [each for each in self.wrong if not _refusal(my_contract, each.make)]
        return self._reported(my_contract, {w: e for w, e in refusals.items() if e}, slipped)

    def _reported(
        self,
        my_contract: Callable[[Any], object],
        refusals: Mapping[str, Exception],
        slipped: list[Mistake],
    ) -> ContractReport:
        accepted, refused = len(self.right) - len(refusals), len(self.wrong) - len(slipped)
        wanted = math.ceil(_SHARE * len(self.wrong))
        rows = (
            _row("right_functions", _RIGHT, accepted, len(self.right), len(self.right)),
            _row("wrong_functions", _WRONG, refused, len(self.wrong), wanted),
        )
        hints = [say(_SURVIVOR, what=localized(slipped[0].what))] if slipped else []
        for who, error in refusals.items():
            told = say(_REFUSED, who=say(who), why=raised_facts(my_contract, error))
            counted = say(_OTHERS, refused=refused, count=len(self.wrong))
            raise ContractViolation("score_contract", rows[0], diagnosis=f"{told}; {counted}")
        if refused < wanted:
            raise ContractViolation("score_contract", rows[1], diagnosis="; ".join(hints))
        figures = {"right_accepted": accepted, "wrong_refused": refused, "wrong": len(self.wrong)}
        return ContractReport("score_contract", rows, figures, notes=tuple(hints))


def _row(name: str, meaning: str, came: int, of: int, wanted: int) -> ClauseResult:
    return ClauseResult(name, say(meaning), f"{came}/{of}", f"≥ {wanted}/{of}")


def _refusal(my_contract: Callable[[Any], object], make: Callable[[], Any]) -> Exception | None:
    """The error by which a contract refuses a candidate; None if it accepts."""
    try:
        answer = my_contract(make())
    except Exception as error:
        return error
    if answer is False:  # it would pass for a contract that finds nothing
        raise ContractViolation(
            "score_contract", ClauseResult("refusal", say(_FALSE), "False", "AssertionError")
        )
    return None


def _barred(contract: Contract, *_: Any, **__: Any) -> ContractReport:
    raise TypeError(say(_BARRED))
