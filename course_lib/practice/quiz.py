"""A question with an explanation for every choice, the right one and the wrong ones."""

import html
from collections.abc import Mapping
from typing import Any

from course_lib.live import is_live, load_widgets
from course_lib.practice._practice_output import (
    practice_call,
    practice_choices,
    practice_page,
    practice_paragraph,
    practice_say,
    practice_show,
    practice_status,
    practice_title,
)
from course_lib.practice._practice_texts import practice_words
from course_lib.practice.progress import Progress
from course_lib.text import reader_language


def ask(
    progress: Progress, name: str, question: str, choices: Mapping[str, tuple[bool, str]]
) -> None:
    """Ask a question: with radio buttons where they work, else as choices that unfold.

    Args:    choices: words -> (is it right, explanation), in the order shown; one is right
    Raises:  ValueError when not exactly one choice is right, or one is not explained
    """
    _check_question(name, question, choices)
    progress.questions[name] = question, dict(choices)
    page, text = _question_pages(progress, name)
    practice_show(page, text, _question_controls(progress, name) if is_live() else None)


def answer(progress: Progress, name: str, choice: int) -> None:
    """Answer a question in plain code: record the choice, counted from 1, and explain it.

    Raises:  ValueError for a question that was not asked, or a choice that it does not have
    """
    practice_say(_explain_answer(progress, name, choice))


def _check_question(name: str, question: str, choices: Mapping[str, tuple[bool, str]]) -> None:
    if not (isinstance(name, str) and name and isinstance(question, str) and question.strip()):
        raise ValueError(f"a question needs a name and words; got {name!r}, {question!r}")
    rights = [right for right, _ in choices.values()]
    if len(rights) < 2 or rights.count(True) != 1 or rights.count(False) != len(rights) - 1:
        raise ValueError(f"{name!r}: exactly one of two or more choices is right; got {rights}")
    silent = [words for words, (_, told) in choices.items() if not told.strip()]
    if silent:
        raise ValueError(f"{name!r}: every choice needs an explanation; none for {silent}")


def _explain_answer(progress: Progress, name: str, choice: int) -> str:
    """Record a choice and say why it is right or not."""
    if name not in progress.questions:
        raise ValueError(practice_words("unasked", name=repr(name)))
    question, choices = progress.questions[name]
    if type(choice) is not int or not 1 <= choice <= len(choices):
        raise ValueError(f"choice must be a whole number from 1 to {len(choices)}; got {choice!r}")
    right, told = list(choices.values())[choice - 1]
    said = progress.file.read()["quiz"].get(name, {}).get("said", {})
    said = {**said, reader_language(): [question]}
    progress.file.change("quiz", name, {"said": said, "choice": choice, "right": right})
    return _judged_choice(right, told)


def _judged_choice(right: bool, told: str) -> str:
    return f"{practice_words('right' if right else 'wrong')}. {told}"


def _given_answer(progress: Progress, name: str) -> int | None:
    """The choice that was recorded before, if the question still has it."""
    choice = progress.file.read()["quiz"].get(name, {}).get("choice", 0)
    return choice if 1 <= choice <= len(progress.questions[name][1]) else None


def _question_pages(progress: Progress, name: str) -> tuple[str, str]:
    """The question as a page, each choice with its explanation folded, and as text without."""
    question, choices = progress.questions[name]
    title = f"{practice_words('ask')}. {question}"
    call = f'answer(progress, "{name}", 1)'
    how = practice_words("ask_plain", call=call)
    items = "".join(
        f"<li><details><summary>{html.escape(words)}</summary>"
        f"<p>{html.escape(_judged_choice(right, told))}</p></details></li>"
        for words, (right, told) in choices.items()
    )
    page = practice_page(
        practice_paragraph(title, strong=True),
        f"<ol>{items}</ol>",
        practice_paragraph(practice_words("ask_open")),
        practice_call(how),
    )
    lines = [f"  {number}. {words}" for number, words in enumerate(choices, 1)]
    return page, "\n".join([title, *lines, how])


def _question_controls(progress: Progress, name: str) -> Any:
    """Radio buttons, and below them the explanation of the one chosen last."""
    widgets = load_widgets()
    question, choices = progress.questions[name]
    told = widgets.HTML()

    def choose(choice: int) -> None:
        told.value = practice_status(_explain_answer(progress, name, choice))

    options = [(words, number) for number, words in enumerate(choices, 1)]
    radio = practice_choices(options, _given_answer(progress, name))
    if radio.value is not None:
        choose(radio.value)
    radio.observe(lambda change: choose(change["new"]), names="value")
    return widgets.VBox([practice_title(f"{practice_words('ask')}. {question}"), radio, told])
