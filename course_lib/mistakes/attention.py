"""Attentions that are wrong in one way each, and the exercise that hides three of them."""

from collections.abc import Callable

from torch import Tensor

from course_lib.mistakes._attentions import (
    MistakenResult,
    attention_filled_finitely,
    attention_mask_added,
    attention_mask_inverted,
    attention_mask_skipped,
    attention_masked_after_softmax,
    attention_mixed_transposed,
    attention_over_queries,
    attention_overflowing,
    attention_scaled_by_values,
    attention_scaling_in_place,
    attention_silent_on_empty_rows,
    attention_with_dropout,
)
from course_lib.report import ClauseResult, ContractReport, ContractViolation
from course_lib.text import localized

ATTENTION_MISTAKES = {
    "scale": {
        "en": "the scores are divided by something else than √d_k",
        "ru": "оценки делятся не на √d_k, а на что-то другое",
    },
    "softmax_axis": {
        "en": "the softmax does not run over the keys",
        "ru": "softmax идёт не по ключам",
    },
    "mask_polarity": {
        "en": "True in the mask is taken for hidden",
        "ru": "True в маске понимается как «закрыто»",
    },
    "mask_added": {
        "en": "the bool mask is added to the scores as 0 and 1",
        "ru": "булева маска прибавляется к оценкам как 0 и 1",
    },
    "mask_after_softmax": {
        "en": "the mask comes after the softmax, nothing is renormalised",
        "ru": "маска стоит после softmax, веса не перенормированы",
    },
    "mask_skipped": {
        "en": "the mask is skipped when there is a single query",
        "ru": "маска пропускается, когда запрос один",
    },
    "finite_fill": {
        "en": "masked scores get a finite number instead of -inf",
        "ru": "закрытые оценки получают конечное число вместо -inf",
    },
    "overflow": {
        "en": "exp is taken without subtracting the row's maximum",
        "ru": "exp берётся без вычитания максимума строки",
    },
    "value_mixing": {
        "en": "the values are mixed by the transposed weights",
        "ru": "значения смешиваются транспонированными весами",
    },
    "empty_row": {
        "en": "a fully masked row passes without an error",
        "ru": "полностью закрытая строка проходит без ошибки",
    },
    "argument_changed": {
        "en": "the call writes into its arguments",
        "ru": "вызов пишет в свои аргументы",
    },
    "dropout": {
        "en": "dropout is on in every call",
        "ru": "dropout включён при каждом вызове",
    },
}

_PLANTED_TEXTS = {
    "meaning": {
        "en": "each letter is answered by the word for its mistake",
        "ru": "для каждой буквы названо слово, обозначающее её ошибку",
    },
    "choice": {"en": "one of the {n} words", "ru": "одно из слов ({n})"},
    "words": {
        "en": "words to choose from: {words}",
        "ru": "слова на выбор: {words}",
    },
    "right": {"en": "right: {letters}", "ru": "верно: {letters}"},
    "wrong": {"en": "not right: {letters}", "ru": "неверно: {letters}"},
    "open": {"en": "still open: {letters}", "ru": "ещё без ответа: {letters}"},
}

_PLANTED_ANSWERS = {"A": "scale", "B": "mask_after_softmax", "C": "finite_fill"}


def planted_attentions() -> dict[str, Callable[..., MistakenResult]]:
    """Return three attentions, "A", "B" and "C", each with one bug for a contract to find."""
    return {
        "A": _anonymous(attention_scaled_by_values),
        "B": _anonymous(attention_masked_after_softmax),
        "C": _anonymous(attention_filled_finitely),
    }


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
        failed = ClauseResult(
            ", ".join(wrong),
            localized(_PLANTED_TEXTS["meaning"]),
            ", ".join(str(given[letter]) for letter in wrong),
            localized(_PLANTED_TEXTS["choice"], n=len(ATTENTION_MISTAKES)),
        )
        raise ContractViolation("check_planted_answers", failed, diagnosis="; ".join(notes))
    if opened:
        return ContractReport("check_planted_answers", attempted=False, notes=notes)
    rows = tuple(
        ClauseResult(letter, localized(ATTENTION_MISTAKES[word]), word, "✓")
        for letter, word in given.items()
    )
    return ContractReport("check_planted_answers", rows, {"right": len(rows)})


def attention_mistakes() -> dict[str, Callable[..., MistakenResult]]:
    """Return one runnable attention for each kind of mistake, by the name of the kind."""
    return {
        "scale": attention_scaled_by_values,
        "softmax_axis": attention_over_queries,
        "mask_polarity": attention_mask_inverted,
        "mask_added": attention_mask_added,
        "mask_after_softmax": attention_masked_after_softmax,
        "mask_skipped": attention_mask_skipped,
        "finite_fill": attention_filled_finitely,
        "overflow": attention_overflowing,
        "value_mixing": attention_mixed_transposed,
        "empty_row": attention_silent_on_empty_rows,
        "argument_changed": attention_scaling_in_place,
        "dropout": attention_with_dropout,
    }


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
    words = localized(_PLANTED_TEXTS["words"], words=", ".join(ATTENTION_MISTAKES))
    return (*notes, words)
