"""Twins: the cells of one key, one in each language, adjacent and confirmed.

A stamp is the first 8 hex digits of the SHA-256 of the normalised source-language text that a
translation was last confirmed against.
"""

import hashlib
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from course_build.base.commands import cell_name, command
from course_build.base.findings import Finding
from course_build.source.cells import Cell


@dataclass(frozen=True)
class Unit:
    """What one key stands for: one cell shared by all languages, or one cell in each."""

    cells: tuple[Cell, ...]

    @property
    def first(self) -> Cell:
        return self.cells[0]

    def in_language(self, language: str) -> Cell:
        """The cell that a notebook in this language shows; the source's where it has none."""
        return next((cell for cell in self.cells if cell.lang == language), self.first)

    def is_stale(self, language: str) -> bool:
        """Is there a translation into this language that today's source text does not confirm?"""
        cell = self.in_language(language)
        return cell is not self.first and cell.stamp != stamp(self.first.text)

    def in_step(self, drafts: Collection[str]) -> "Unit":
        """This unit without the translations of an older text that a draft is allowed to have."""
        return Unit(
            tuple(c for c in self.cells if c.lang not in drafts or not self.is_stale(str(c.lang)))
        )


def stamp(text: str) -> str:
    """Stamp a source-language text; white space at line ends and around does not count."""
    # Systems end lines in three ways and write й in one character or two: no change to a reader.
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
    lines = [line.rstrip() for line in text.split("\n")]
    return hashlib.sha256("\n".join(lines).strip("\n").encode()).hexdigest()[:8]


def pair_twins(
    cells: Sequence[Cell], languages: Sequence[str], drafts: Collection[str] = ()
) -> tuple[list[Unit], list[Finding]]:
    """Group cells into units and say where a twin is missing, misplaced or different.

    Only a twin in one of the drafts may be missing.
    """
    units: list[Unit] = []
    findings: list[Finding] = []
    runs: dict[str, list[Cell]] = {}
    written = {(cell.key, cell.lang) for cell in cells}
    for run in _runs(cells):
        key = run[0].key
        if key in runs:
            if not _completes(run, runs[key], languages):
                findings.append(_duplicate(run[0], runs[key][0]))
            continue
        runs[key] = run
        wanted = [code for code in languages if code not in drafts or (key, code) in written]
        findings += _check_run(run, cells, wanted)
        units.append(Unit(tuple(run)))
    return units, findings


def stale_twins(units: Sequence[Unit], language: str) -> list[Finding]:
    """The translations into a language that are not confirmed against today's source text."""
    return [
        stale_twin(unit.first, unit.in_language(language))
        for unit in units
        if unit.is_stale(language)
    ]


def _runs(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Cut the cells into neighbours of one key that all have a language, or single shared cells."""
    runs: list[list[Cell]] = []
    for cell in cells:
        last = runs[-1][-1] if runs else None
        if last and last.key == cell.key and last.lang is not None and cell.lang is not None:
            runs[-1].append(cell)
        else:
            runs.append([cell])
    return runs


def _completes(run: list[Cell], earlier: list[Cell], languages: Sequence[str]) -> bool:
    """Is this run just the twins that an earlier run lacks (and that were reported there)?"""
    if earlier[0].lang is None:
        return False
    missing = set(languages) - {cell.lang for cell in earlier}
    return {cell.lang for cell in run} <= missing


def _check_run(run: list[Cell], cells: Sequence[Cell], languages: Sequence[str]) -> list[Finding]:
    first = run[0]
    if first.lang is None:
        return _check_shared(first, languages)
    order = [cell.lang for cell in run]
    findings = [
        _duplicate(cell, run[order.index(cell.lang)])
        for place, cell in enumerate(run)
        if cell.lang in order[:place]
    ]
    for language in languages:
        if language not in order:
            findings.append(_missing(first, language, cells))
    if not findings and order != list(languages):
        findings.append(
            first.finding(
                "swapped-order",
                f"the twins come as {', '.join(map(str, order))}",
                f"put them in the order {', '.join(languages)}",
            )
        )
    return findings or _check_alike(run)


def _check_shared(cell: Cell, languages: Sequence[str]) -> list[Finding]:
    findings = []
    if cell.kind == "markdown":
        findings.append(
            cell.finding(
                "no-language",
                "prose is never shared between languages",
                f'give it lang="{languages[0]}" and write its twins',
            )
        )
    if cell.stamp is not None:
        findings.append(_needless_stamp(cell))
    return findings


def _check_alike(run: list[Cell]) -> list[Finding]:
    """Twins have the same kind and attributes; the first, the source, bears no stamp."""
    first = run[0]
    findings = [_needless_stamp(first)] if first.stamp is not None else []
    for cell in run[1:]:
        if cell.kind != first.kind:
            message = f"a {cell.kind} cell is the twin of a {first.kind} cell (line {first.line})"
            findings.append(cell.finding("twin-kind", message, "make both the same kind"))
        for name in ("role", "exercise", "reference", "tags"):
            here, there = getattr(cell, name), getattr(first, name)
            if here != there:
                message = f"{name}={here!r} here, {name}={there!r} at line {first.line}"
                findings.append(
                    cell.finding("twin-attributes", message, f"give both the same {name}")
                )
    return findings


def _needless_stamp(cell: Cell) -> Finding:
    return cell.finding(
        "needless-stamp",
        f"the stamp {cell.stamp!r} on a cell that is not a translation",
        "remove it from the header",
    )


def _duplicate(cell: Cell, first: Cell) -> Finding:
    message = f"the key {cell.key!r} is already taken at line {first.line}"
    return cell.finding("duplicate-key", message, "give this cell another key")


def _missing(first: Cell, language: str, cells: Sequence[Cell]) -> Finding:
    for cell in cells:
        if cell.key == first.key and cell.lang == language:
            return cell.finding(
                "twin-not-adjacent",
                f"its {first.lang} twin is at line {first.line}, not directly before or after",
                "move the twins together",
            )
    return missing_twin(first, language)


def missing_twin(first: Cell, language: str) -> Finding:
    """Say that a cell has no twin in a language, and how its header begins."""
    name = cell_name(first.path, first.key)
    mend = (
        f"write it beside: {twin_header(first, language)}\n"
        f"       then: {command('diff', [name])}\n"
        f"             {command('confirm', [name])}"
    )
    finding = first.finding("missing-twin", f"the {language} twin is missing", mend)
    return replace(finding, lang=language)


def twin_header(first: Cell, language: str) -> str:
    """How the header of a cell's twin begins."""
    kind = "[markdown] " if first.kind == "markdown" else ""
    return f'# %% {kind}lang="{language}" key="{first.key}"'


def stale_twin(source: Cell, cell: Cell) -> Finding:
    """Say that a translation is not confirmed against today's source text."""
    message = f"the {cell.lang} text was not yet confirmed"
    if cell.stamp:
        message = f"the {source.lang} text changed after the {cell.lang} text was confirmed"
    name = cell_name(cell.path, cell.key)
    mend = f"diff {name}, correct the {cell.lang} text, confirm {name}"
    finding = cell.finding("stale-twin", message, mend)
    return replace(finding, stale=True, lang=cell.lang)
