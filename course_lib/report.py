"""What a contract hands back: a report when it holds, a diagnosis when it does not."""

import html
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from course_lib.text import both, say

_REPORT_TEXTS = {
    "passed": "✓ {contract}: all {n} clauses hold | ✓ {contract}: выполнены все пункты ({n})",
    "not_attempted": "○ {contract}: not attempted | ○ {contract}: решения пока нет",
    "broken": '✗ {contract}: the clause "{clause}" is broken | ✗ {contract}: нарушен пункт '
    "«{clause}»",
    "held": "; clauses that hold before it: {held} of {count} | ; до него выполнено пунктов: "
    "{held} из {count}",
    "clause": "clause | пункт",
    "measured": "measured | измерено",
    "allowed": "tolerated | допустимо",
    "predicted": "predicted | предсказано",
    "meaning": "what it means | что это значит",
    "unchecked": "not checked: {names} | не проверено: {names}",
    "demanded": "demanded:  | требуется: ",
    "input": "failing input, cut down as far as it still fails: | вход, на котором видно "
    "нарушение (уменьшен, насколько удалось):",
    "differs": "first differences: | первые расхождения:",
    "mismatch": "{place}: got {got}, expected {expected} | {place}: получено {got}, ожидалось "
    "{expected}",
    "diagnosis": "diagnosis:  | диагноз: ",
    "fix": "fix | исправление",
    "too_big": "{dtype}, shape {shape}, from {low} to {high} | {dtype}, форма {shape}, от {low} "
    "до {high}",
    "no_error": "expected {wanted} from {call}, but no error came: it returned {result} | от "
    "{call} ожидалась ошибка {wanted}, но ошибки не было: получен результат {result}",
    "other_error": "expected {wanted} from {call}, but {came} came: {message} | от {call} "
    "ожидалась ошибка {wanted}, а возникла {came}: {message}",
}
_FIX = "|".join(both(_REPORT_TEXTS["fix"]).values())
_CODE_HINT = re.compile(rf" (\((?:{_FIX}): (?:[^()]|\((?:[^()]|\([^()]*\))*\))*\);?)(?= |$)")


@dataclass(frozen=True)
class ClauseResult:
    """One clause of a contract: its name, what it means, what was measured, what is allowed.

    A float in `allowed` is an upper bound; a string says what was wanted in words.
    """

    name: str
    meaning: str
    measured: float | str
    allowed: float | str


class Mismatch(NamedTuple):
    """One place where a result differs from what it must be."""

    field: str
    index: tuple[int, ...]  # type: ignore[assignment]  # no reader looks for tuple.index here
    got: object
    expected: object


@dataclass(frozen=True, eq=False, repr=False)
class ContractReport(Mapping[str, Any]):
    """What a contract measured on an implementation that keeps it.

    A mapping of figures by name, one row a clause in `clauses`, in `unchecked` what this call did
    not look at, in `notes` lines to read. A stub is not `attempted`; a `headline` is shown first.
    `beside` heads the column beside what was measured: "allowed" or "predicted".
    """

    contract: str
    clauses: tuple[ClauseResult, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)
    attempted: bool = True
    unchecked: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    headline: str = ""
    beside: str = "allowed"

    def __getitem__(self, name: str) -> float:
        return self.figures[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.figures)

    def __len__(self) -> int:
        return len(self.figures)

    def __str__(self) -> str:
        return _report_table(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return _report_html(self)


class ContractViolation(AssertionError):
    """A broken clause, with the evidence: the input, the places that differ, the diagnosis.

    `failing_input` maps argument names to values: calling the candidate with them shows the
    fault again. `diagnosis` says what was measured; `mistakes`, which catalogued ones it equals.
    """

    def __init__(
        self,
        contract: str,
        failed: ClauseResult,
        failing_input: dict[str, object] | None = None,
        mismatches: tuple[Mismatch, ...] = (),
        diagnosis: str = "",
        mistakes: tuple[str, ...] = (),
    ) -> None:
        failing_input = failing_input or {}
        super().__init__(contract, failed, failing_input, mismatches, diagnosis, mistakes)
        self.contract, self.clause, self.meaning = contract, failed.name, failed.meaning
        self.measured, self.allowed = failed.measured, failed.allowed
        self.failing_input, self.mismatches = failing_input, mismatches
        self.diagnosis, self.mistakes = diagnosis, mistakes
        self.held: dict[str, int] = {}  # how many clauses hold before this one, of what count

    def __str__(self) -> str:
        return _violation_text(self)

    __repr__ = __str__  # a notebook shows the last value of a cell by it

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def expect_raises(
    error_type: type[Exception], fn: Callable[..., object], *args: object, **kwargs: object
) -> str:
    """Call fn and return the message of the error that it must raise; else an AssertionError."""
    names = {"wanted": error_type.__name__, "call": getattr(fn, "__name__", str(fn))}
    try:
        result = fn(*args, **kwargs)
    except error_type as error:
        return str(error)
    except Exception as error:
        came = {"came": type(error).__name__, "message": error}
        raise AssertionError(say(_REPORT_TEXTS["other_error"], **names, **came)) from error
    names["result"] = textwrap.shorten(repr(result), 60)
    raise AssertionError(say(_REPORT_TEXTS["no_error"], **names))


def _report_headline(report: ContractReport) -> str:
    key = _REPORT_TEXTS["passed" if report.attempted else "not_attempted"]
    return report.headline or say(key, contract=report.contract, n=len(report.clauses))


def _report_figure(value: float | str, *, bound: bool = False) -> str:
    if isinstance(value, str):
        return value
    shown = str(value) if isinstance(value, int) else f"{value:.2g}"
    return f"≤ {shown}" if bound else shown


def _report_rows(report: ContractReport) -> list[tuple[str, str, str, str]]:
    """The table as text: a heading, then one row a clause."""
    first, second, third, last = (
        say(_REPORT_TEXTS[name]) for name in ("clause", "measured", report.beside, "meaning")
    )
    rows = [(first, second, third, last)]
    for clause in report.clauses:
        allowed = _report_figure(clause.allowed, bound=True)
        rows.append((clause.name, _report_figure(clause.measured), allowed, clause.meaning))
    return rows if report.clauses else []


def _report_table(report: ContractReport) -> str:
    rows = _report_rows(report)
    widths = [max(len(row[column]) for row in rows) for column in range(3)] if rows else []
    lines = [_report_headline(report)]
    for row in rows:
        start = "  " + "".join(cell.ljust(n + 2) for cell, n in zip(row, widths, strict=False))
        rest = " " * len(start)
        lines += textwrap.wrap(row[3], 88, initial_indent=start, subsequent_indent=rest) or [start]
    for note in _report_notes(report):
        lines += _report_wrapped(note, 2, 24)
    return "\n".join(lines)


def _report_wrapped(text: str, indent: int, most: int) -> list[str]:
    """Break a text into at most so many lines of at most 84 columns."""
    first, rest = " " * indent, " " * (indent + 2)
    return textwrap.wrap(
        text, 84, initial_indent=first, subsequent_indent=rest, max_lines=most, placeholder=" …"
    )


def _report_notes(report: ContractReport) -> tuple[str, ...]:
    if not report.unchecked:
        return report.notes
    unchecked = say(_REPORT_TEXTS["unchecked"], names=", ".join(report.unchecked))
    return (*report.notes, unchecked)


def _report_html(report: ContractReport) -> str:
    """The table for a notebook; it names no colour, so it reads on a light and a dark page."""
    cell = "border:1px solid currentColor;padding:.2em .6em;text-align:left;color:inherit;"
    plain = "background:transparent;"
    parts, lines = [f"<p><strong>{html.escape(_report_headline(report))}</strong></p>"], []
    for number, row in enumerate(_report_rows(report)):
        tags = ['th scope="row"', *["td"] * 3] if number else ['th scope="col"'] * 4
        pairs = zip(tags, row, strict=True)
        cells = "".join(f'<{tag} style="{cell}">{html.escape(t)}</{tag[:2]}>' for tag, t in pairs)
        lines.append(f'<tr style="{plain}">{cells}</tr>')
    style = f"border-collapse:collapse;font:inherit;color:inherit;{plain}"
    parts += [f'<table style="{style}">{"".join(lines)}</table>'] if lines else []
    parts += [f"<p>{html.escape(note)}</p>" for note in _report_notes(report)]
    return f'<div style="color:inherit;{plain}">{"".join(parts)}</div>'


def _violation_text(violation: ContractViolation) -> str:
    """The whole message; at most 24 lines of at most 84 columns."""
    head = say(_REPORT_TEXTS["broken"], contract=violation.contract, clause=violation.clause)
    measured, allowed = (say(_REPORT_TEXTS[key]) for key in ("measured", "allowed"))
    bound = _report_figure(violation.allowed, bound=True)
    figures = f"{measured}: {_report_figure(violation.measured)}; {allowed}: {bound}"
    if violation.held:
        figures += say(_REPORT_TEXTS["held"], **violation.held)
    demanded = say(_REPORT_TEXTS["demanded"]) + violation.meaning
    lines = [head, *_report_wrapped(demanded, 2, 2), *_report_wrapped(figures, 2, 2)]
    if violation.failing_input:
        lines.append("  " + say(_REPORT_TEXTS["input"]))
        arguments = violation.failing_input.items()
        shown = [line for argument in arguments for line in _violation_value(*argument)]
        lines += shown if len(shown) <= 8 else [*shown[:7], "    …"]
    if violation.mismatches:
        lines.append("  " + say(_REPORT_TEXTS["differs"]))
        lines += [_violation_mismatch(mismatch) for mismatch in violation.mismatches[:3]]
    if violation.diagnosis:
        diagnosis = say(_REPORT_TEXTS["diagnosis"]) + violation.diagnosis
        told, *more = _CODE_HINT.split(diagnosis)  # a hint stands whole, on a line of its own
        lines += _report_wrapped(told, 2, 24)
        for hint, after in zip(more[::2], more[1::2], strict=True):
            lines += [*_report_wrapped(hint, 4, 3), *_report_wrapped(after.strip(), 4, 24)]
    return "\n".join(lines if len(lines) <= 24 else [*lines[:23], "    …"])


def _violation_number(value: object, digits: int = 4) -> str:
    if value == 0:
        return "0"  # never "-0", never "False"
    if isinstance(value, bool):
        return "1"
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def _violation_nested(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_violation_nested(item) for item in value) + "]"
    return _violation_number(value)


def _violation_value(name: str, value: Any) -> list[str]:
    """An argument in one or a few lines: its numbers if they fit, else its shape and range."""
    nested = _violation_nested(value.tolist() if hasattr(value, "tolist") else value)
    text = str(value) if isinstance(value, bool) else nested
    kind = str(getattr(value, "dtype", "")).removeprefix("torch.")
    note = f"  ({kind})" if kind not in ("", "float64", "bool") else ""
    if len(text) > 190 and hasattr(value, "shape"):
        shape = list(value.shape)
        low, high = (_violation_number(end.item()) for end in (value.min(), value.max()))
        text = say(_REPORT_TEXTS["too_big"], dtype=kind, shape=shape, low=low, high=high)
        note = ""
    return _report_wrapped(f"{name} = {text}{note}", 4, 3)


def _violation_mismatch(mismatch: Mismatch) -> str:
    """One place that differs, with as many digits as it takes to see the difference."""
    got, expected = mismatch.got, mismatch.expected
    digits = next(
        (n for n in (6, 9, 12) if _violation_number(got, n) != _violation_number(expected, n)), 17
    )
    place = mismatch.field + (str(list(mismatch.index)) if mismatch.index else "")
    got, expected = (_violation_number(value, digits) for value in (got, expected))
    line = say(_REPORT_TEXTS["mismatch"], place=place, got=got, expected=expected)
    return "    " + textwrap.shorten(line, 80, placeholder=" …")
