"""The exercise that hides three mistaken attentions behind letters."""

from collections.abc import Callable

from torch import Tensor

from course_lib.contracts.attention.attention_mistakes import ATTENTION_MISTAKES
from course_lib.contracts.attention.steps import MistakenResult
from course_lib.report import ClauseResult, ContractReport, ContractViolation
from course_lib.text import localized

_PLANTED_WORDS = (
    "not_scaled",
    "scale_by_d_v",
    "softmax_over_queries",
    "mask_inverted",
    "mask_added_as_0_and_1",
    "mask_after_softmax",
    "mask_skipped_for_one_query",
    "values_mixed_transposed",
    "finite_fill",
    "exp_without_maximum",
    "zero_by_default",
    "random_in_every_call",
)

_PLANTED_TEXTS = {
    "meaning": {
        "en": "each letter is answered by the word for its mistake",
        "ru": "для каждой буквы названо слово, обозначающее её ошибку",
    },
    "choice": {"en": "one of the {n} words", "ru": "одно из слов ({n})"},
    "other": {"en": "another of the {n} words", "ru": "другое из слов ({n})"},
    "words": {
        "en": "words to choose from: {words}",
        "ru": "слова на выбор: {words}",
    },
    "right": {"en": "right: {letters}", "ru": "верно: {letters}"},
    "wrong": {"en": "not right: {letters}", "ru": "неверно: {letters}"},
    "open": {"en": "still open: {letters}", "ru": "ещё без ответа: {letters}"},
}

_PLANTED_ANSWERS = {"A": "scale_by_d_v", "B": "mask_after_softmax", "C": "finite_fill"}


def attention_suspects() -> dict[str, Callable[..., MistakenResult]]:
    """Every wrong attention of the catalogue, made afresh, by the name of its mistake."""
    return {mistake.name: mistake.make() for mistake in ATTENTION_MISTAKES}


def planted_attentions() -> dict[str, Callable[..., MistakenResult]]:
    """Return three attentions, "A", "B" and "C", each with one bug for a contract to find."""
    made = {mistake.name: mistake.make for mistake in ATTENTION_MISTAKES}
    return {letter: _anonymous(made[word]()) for letter, word in _PLANTED_ANSWERS.items()}


def check_planted_answers(answers: dict[str, str | None]) -> ContractReport:
    """Say which of the three planted bugs are named rightly, without naming the others.

    Args:    answers: one word for each of "A", "B" and "C"; None = no answer yet
    Raises:  ContractViolation when an answer is wrong; ValueError for another letter
    """
    _check_letters(answers)
    given = {letter: answers.get(letter) for letter in _PLANTED_ANSWERS}
    right = [letter for letter, word in given.items() if word == _PLANTED_ANSWERS[letter]]
    opened = [letter for letter, word in given.items() if word is None]
    wrong = [letter for letter in given if letter not in right and letter not in opened]
    notes = _planted_notes(right, wrong, opened)
    if wrong:
        listed = all(given[letter] in _PLANTED_WORDS for letter in wrong)
        asked = "other" if listed else "choice"
        failed = ClauseResult(
            ", ".join(wrong),
            localized(_PLANTED_TEXTS["meaning"]),
            ", ".join(str(given[letter]) for letter in wrong),
            localized(_PLANTED_TEXTS[asked], n=len(_PLANTED_WORDS)),
        )
        raise ContractViolation("check_planted_answers", failed, diagnosis="; ".join(notes))
    if opened:
        return ContractReport("check_planted_answers", attempted=False, notes=notes)
    whats = {mistake.name: localized(mistake.what) for mistake in ATTENTION_MISTAKES}
    rows = tuple(ClauseResult(letter, whats[word], word, "✓") for letter, word in given.items())
    return ContractReport("check_planted_answers", rows, {"right": len(rows)})


def _anonymous(attention: Callable[..., MistakenResult]) -> Callable[..., MistakenResult]:
    """The same function under a name that tells nothing."""

    def suspect(
        q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None = None, *, empty_row: str = "error"
    ) -> MistakenResult:
        return attention(q, k, v, allowed, empty_row=empty_row)

    return suspect


def _check_letters(answers: dict[str, str | None]) -> None:
    if not isinstance(answers, dict):
        raise TypeError(f"answers must be a dict of letter: word, got {type(answers).__name__}")
    unknown = sorted(str(letter) for letter in answers if letter not in _PLANTED_ANSWERS)
    if unknown:
        raise ValueError(f"the letters are {list(_PLANTED_ANSWERS)}, got {unknown}")


def _planted_notes(right: list[str], wrong: list[str], opened: list[str]) -> tuple[str, ...]:
    groups = {"right": right, "wrong": wrong, "open": opened if right or wrong else []}
    notes = [
        localized(_PLANTED_TEXTS[name], letters=", ".join(letters))
        for name, letters in groups.items()
        if letters
    ]
    words = localized(_PLANTED_TEXTS["words"], words=", ".join(_PLANTED_WORDS))
    return (*notes, words)
