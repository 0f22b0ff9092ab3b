"""Predict, then run: what a learner expects is written down before the result can change it."""

import html
import math
import numbers
from collections.abc import Callable, Mapping
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
from course_lib.practice._practice_texts import practice_recalled, practice_words
from course_lib.practice._progress_file import PROGRESS_LARGEST_GUESS, ProgressFile
from course_lib.text import reader_language, written_digits


class Predictions:
    """The predictions of one notebook: the questions asked so far, and where guesses are kept."""

    def __init__(self, file: ProgressFile) -> None:
        self.file = file
        self.asked: dict[str, tuple[str, Mapping[str, str]]] = {}
        self.reminded = False

    def entry(self, name: str) -> dict[str, Any]:
        """What is recorded of one prediction; empty when nothing is."""
        return self.file.read()["predictions"].get(name, {})

    def guess(self, name: str) -> Any:
        """The recorded guess; None without one, or when today's question cannot have it."""
        guess = self.entry(name).get("guess")
        if name not in self.asked:
            return guess
        _, choices = self.asked[name]
        fits = guess in choices if choices else not isinstance(guess, str)
        return guess if fits else None

    def words(self, name: str, value: Any) -> str:
        """A guess or a result as the reader knows it: a choice in its words, a number short."""
        if isinstance(value, str):
            _, choices = self.asked.get(name, ("", {}))
            return choices.get(value, value)
        return written_digits(str(value) if isinstance(value, int) else f"{value:.6g}")

    def meet(self, name: str, question: str, choices: Mapping[str, str]) -> None:
        """Take note of a question."""
        _check_prediction(name, question, choices)
        self.asked[name] = question, dict(choices)

    def ask(self, name: str, question: str, choices: Mapping[str, str]) -> None:
        """Ask for a prediction: with controls where they work, else in words that tell how."""
        self.meet(name, question, choices)
        if self.guess(name) is not None:
            self.record(name, self.guess(name))  # it is known in this language too now
        page, text = _prediction_page(self, name)
        practice_show(page, text, _prediction_controls(self, name) if is_live() else None)

    def record(self, name: str, guess: Any) -> str:
        """Record a guess and say so; one that changes after the result was shown is late."""
        question, choices = self.asked[name]
        guess = _checked_guess(guess, choices)
        old = self.entry(name)
        said = {reader_language(): [question, self.words(name, guess)]}
        if guess == old.get("guess"):
            new = {**old, "said": {**old.get("said", {}), **said}}
        else:
            seen = old.get("seen", False)
            new = {"said": said, "guess": guess, "seen": seen, "late": seen}
        if new != old:
            self.file.change("predictions", name, new)
        return practice_words("recorded", guess=self.words(name, guess))

    def compare(self, name: str, actual: Any, within: float) -> None:
        """Hold the result against the prediction; without one, only tell the result."""
        actual = _checked_actual(actual, self.asked.get(name))
        guess = self.guess(name)
        if isinstance(guess, str) is not isinstance(actual, str):
            guess = None
        told = {"actual": self.words(name, actual)}
        if guess is None:
            self.file.change("predictions", name, {"guess": None, "seen": True})
            practice_say(practice_words("compare_nothing", **told))
            if not self.reminded:  # once for all: who runs everything at a stroke knows it by now
                practice_say(practice_words("compare_skipped"))
                self.reminded = True
            return
        held = _prediction_holds(guess, actual, within)
        new = {"guess": guess, "seen": True, "held": held}
        self.file.change("predictions", name, {**self.entry(name), **new})
        told["guess"] = self.words(name, guess)
        practice_say(practice_words("compare_held" if held else "compare_surprise", **told))
        if within and not isinstance(actual, str) and actual and math.isfinite(actual):
            print(_prediction_distance(guess, actual, within))

    def rows(self) -> list[tuple[str, str, str]]:
        """The table: question, guess, outcome; in the order asked, then what was kept before."""
        entries = self.file.read()["predictions"]
        kept = {name for name, entry in entries.items() if entry.get("guess") is not None}
        names = [*self.asked, *sorted(kept - self.asked.keys())]
        return [self._row(name, entries.get(name, {})) for name in names]

    def _row(self, name: str, entry: dict[str, Any]) -> tuple[str, str, str]:
        guess = entry.get("guess")
        words = "" if guess is None else self.words(name, guess)
        if name in self.asked:
            question, _ = self.asked[name]
        else:
            question, words = practice_recalled(entry.get("said", {}), (name, words))
        if guess is None:
            return question, practice_words("nothing"), ""
        outcome = {True: "held", False: "surprise", None: "waiting"}[entry.get("held")]
        late = practice_words("late") if entry.get("late") else ""
        return question, words, practice_words(outcome) + late


def _check_prediction(name: str, question: str, choices: Mapping[str, str]) -> None:
    if not (isinstance(name, str) and name and isinstance(question, str) and question.strip()):
        raise ValueError(f"a prediction needs a name and a question; got {name!r}, {question!r}")
    if len(choices) == 1 or not all(isinstance(w, str) and w for w in choices.values()):
        raise ValueError(f"choices must hold two or more, name -> words; got {choices!r}")


def _checked_guess(guess: Any, choices: Mapping[str, str]) -> Any:
    if choices:
        if guess not in choices:
            raise ValueError(f"guess must be one of {list(choices)}; got {guess!r}")
        return guess
    if isinstance(guess, bool) or not isinstance(guess, numbers.Real):
        raise TypeError(f"guess must be a number; got {guess!r}")
    number = int(guess) if isinstance(guess, numbers.Integral) else float(guess)
    if not abs(number) <= PROGRESS_LARGEST_GUESS:
        raise ValueError("guess must be finite, and no larger than a float can be")
    return number


def _checked_actual(actual: Any, asked: tuple[str, Mapping[str, str]] | None) -> Any:
    """A choice's name, or a number; tensors and arrays of one number are taken too."""
    if hasattr(actual, "item"):
        actual = actual.item()
    if isinstance(actual, bool) or not isinstance(actual, str | numbers.Real):
        raise TypeError(f"actual must be the name of a choice or a number; got {actual!r}")
    if asked and (actual not in asked[1] if asked[1] else isinstance(actual, str)):
        wanted = f"one of {list(asked[1])}" if asked[1] else "a number"
        raise ValueError(f"actual must be {wanted}, as was asked; got {actual!r}")
    if isinstance(actual, str):
        return actual
    return int(actual) if isinstance(actual, numbers.Integral) else float(actual)


def _prediction_holds(guess: Any, actual: Any, within: float) -> bool:
    if isinstance(guess, str) or isinstance(actual, str):
        return guess == actual
    return math.isfinite(actual) and abs(guess - actual) <= within * abs(actual)


def _prediction_distance(guess: float, actual: float, within: float) -> str:
    off = abs(guess - actual) / abs(actual)
    percent = (written_digits(f"{100 * share:.3g}") for share in (off, within))
    return practice_words("compare_within", **dict(zip(("off", "within"), percent, strict=True)))


def _prediction_page(predictions: Predictions, name: str) -> tuple[str, str]:
    """The question as a page and as text, with how to answer it in plain code."""
    question, choices = predictions.asked[name]
    call = f'guess="{next(iter(choices))}"' if choices else "guess=..."
    how = practice_words("predict_choice" if choices else "predict_number", call=call)
    guess = predictions.guess(name)
    said = "" if guess is None else practice_words("recorded", guess=predictions.words(name, guess))
    title = f"{practice_words('predict')}. {question}"
    items = "".join(
        f"<li><code>{html.escape(word)}</code>: {html.escape(words)}</li>"
        for word, words in choices.items()
    )
    page = practice_page(
        practice_paragraph(title, strong=True),
        f"<ul>{items}</ul>" if items else "",
        practice_call(how),
        practice_paragraph(said) if said else "",
    )
    lines = [title, *(f"  {word}: {words}" for word, words in choices.items()), how]
    return page, "\n".join([*lines, *([said] if said else [])])


def _prediction_controls(predictions: Predictions, name: str) -> Any:
    """Radio buttons for choices, a number with a button otherwise; both go by keyboard."""
    widgets = load_widgets()
    question, choices = predictions.asked[name]
    guess = predictions.guess(name)
    told = widgets.HTML()

    def record(value: Any) -> None:
        told.value = practice_status(predictions.record(name, value))

    if choices:
        options = [(words, word) for word, words in choices.items()]
        control = practice_choices(options, guess)
        control.observe(lambda change: record(change["new"]), names="value")
    else:
        control = _number_control(guess or 0, record)
    if guess is not None:
        record(guess)
    title = practice_title(f"{practice_words('predict')}. {question}")
    return widgets.VBox([title, control, told])


def _number_control(value: float, record: Callable[[float], None]) -> Any:
    """A field for a number and a button that records it."""
    widgets = load_widgets()
    number = widgets.FloatText(
        value=value,
        description=practice_words("your_number"),
        style={"description_width": "initial"},
    )
    button = widgets.Button(
        description=practice_words("record"), layout=widgets.Layout(width="auto")
    )
    button.on_click(lambda _: record(number.value))
    return widgets.HBox([number, button])
