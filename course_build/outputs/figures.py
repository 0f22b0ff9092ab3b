"""Take the course's figures out of the executed notebooks, and keep figures/ equal to them.

    python -m course_build.outputs.figures [--check]

A figure is an output that carries an SVG, its name and its alt text; figures/LANGUAGE/ holds each
as module_NN-NAME.svg, for every language but the drafts. One that is marked as measured in that run
needs no name and gets no file: the next run would draw another. Notebooks whose executed copies are
missing, failed or older than their source cells are run first. Exit codes: 0 done; 1 figures are
stale, missing or orphaned; 2 broken (a notebook fails, a figure has no alt text or lacks its twin
in another language).
"""

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from course_build.base.files import write_files
from course_build.base.findings import CourseError, Finding
from course_build.base.settings import SETTINGS_FILE, parse_settings
from course_build.outputs.executed import (
    MEASURED,
    fresh_copies,
    is_measured,
    joined,
    outputs,
    read_notebook,
)
from course_build.outputs.views import VIEW, Frame, read_view

ROOT = Path(__file__).resolve().parents[2]
FEWEST_WORDS = 5  # of an alt text, besides those that stand in the figure anyway
LARGEST = 120_000  # bytes; a notebook carries each figure twice
SVG = "image/svg+xml"
SVG_ROOT = "{http://www.w3.org/2000/svg}svg"
SVG_TEXT = "{http://www.w3.org/2000/svg}text"
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
MODULE = re.compile(r"module_\d\d")
NUMBER = re.compile(r"(?<![\w#])-?\d+(?:\.\d+)?")  # not inside an id or a colour
HASHED_ID = re.compile(r"\b[a-z][0-9a-f]{10}\b")  # of shapes: moves with their last digit
TOLERANCE = 0.1  # points: less than the eye sees, more than another processor's rounding moves


@dataclass(frozen=True)
class Figure:
    """One figure as its notebook shows it."""

    notebook: str
    key: str
    name: str
    alt: str
    svg: str
    measured: bool = False

    @property
    def file_name(self) -> str:
        return f"{MODULE.match(Path(self.notebook).name).group()}-{self.name}.svg"

    def finding(self, rule: str, message: str, mend: str) -> Finding:
        return Finding(self.notebook, 1, self.key, rule, message, mend)


def figures_in(path: str, content: bytes) -> list[Figure]:
    """List the figures of one executed notebook; anything shown without a name or alt is broken."""
    figures, findings = [], []
    notebook = read_notebook(path, content)
    tagged = {cell["id"] for cell in notebook["cells"] if is_measured(cell)}
    for key, output in outputs(notebook):
        pictures = [kind for kind in output.get("data", {}) if kind.startswith("image/")]
        if not pictures:
            continue
        if pictures != [SVG]:
            message = f"a picture of kind {', '.join(pictures)}, without alt text"
            mend = "show it with show_figure(figure, name=..., alt=...)"
            findings.append(Finding(path, 1, key, "figure-kind", message, mend))
            continue
        told = output.get("metadata", {}).get(SVG, {})
        svg = joined(output["data"][SVG])
        measured = told.get("measured") is True
        figure = Figure(path, key, told.get("name") or "", told.get("alt") or "", svg, measured)
        problems = problems_of(figure) + problems_of_view(figure, output["data"])
        if not problems and measured != (key in tagged):
            message = f"a cell is tagged {MEASURED!r} if and only if its figure is measured"
            mend = f'name the figure, or pass name=None and write tags=["{MEASURED}"]'
            problems.append(figure.finding("figure-measured", message, mend))
        findings += problems
        if not problems and not measured:
            figures.append(figure)
    findings += repeated(figures)
    if findings:
        raise CourseError(findings)
    return figures


def problems_of(figure: Figure) -> list[Finding]:
    """Say what a figure lacks to stand alone."""
    found = []
    if figure.measured and figure.name:
        message = f"the figure {figure.name!r} is measured in each run and has a name for a file"
        found.append(figure.finding("figure-name", message, "pass name=None to show_figure"))
    elif not figure.measured and not NAME.fullmatch(figure.name):
        message = f"a figure's name must be a-z, 0-9 and hyphens, got {figure.name!r}"
        found.append(figure.finding("figure-name", message, "pass name= to show_figure"))
    if not figure.alt.strip():
        message = f"the figure {figure.name!r} has no alt text"
        found.append(figure.finding("figure-alt", message, "pass alt= to show_figure"))
    try:
        root = ElementTree.fromstring(figure.svg)
    except ElementTree.ParseError as error:
        root, problem = None, f"is not XML: {error}"
    else:
        problem = None if root.tag == SVG_ROOT else f"has the root {root.tag}, not svg"
    if problem:
        message = f"the figure {figure.name!r} {problem}"
        found.append(figure.finding("figure-svg", message, "show it with show_figure"))
    elif figure.alt.strip() and root.get("aria-label") != figure.alt:
        message = f"the SVG of {figure.name!r} does not carry its alt text as aria-label"
        found.append(figure.finding("figure-svg", message, "show it with show_figure"))
    elif figure.alt.strip() and len(own_words(figure.alt, root)) < FEWEST_WORDS:
        message = f"the alt text of {figure.name!r} hardly says more than its labels: {figure.alt}"
        found.append(figure.finding("figure-alt", message, "say what is to be seen in the figure"))
    size = len(figure.svg.encode())
    if size > LARGEST:
        message = f"the figure {figure.name!r} has {size} bytes; at most {LARGEST} are allowed"
        found.append(figure.finding("figure-size", message, "draw fewer points or cells"))
    return found


def problems_of_view(figure: Figure, data: Mapping[str, Any]) -> list[Finding]:
    """Say what the pictures of a view lack; the first must be the figure."""
    if VIEW not in data:
        return []
    view = read_view(data)
    if view is None or view.frames[view.start] != Frame(figure.svg, figure.alt):
        message = f"the view {figure.name!r} is not whole, or does not begin with its figure"
        return [figure.finding("figure-view", message, "show it with show_view")]
    pictures = [replace(figure, svg=f.svg, alt=f.alt) for f in view.frames.values()]
    others = [picture for picture in pictures if picture != figure]
    return [finding for picture in others for finding in problems_of(picture)]


def own_words(alt: str, root: ElementTree.Element) -> list[str]:
    """List the words of an alt text that are not written in the figure: what it tells itself."""
    drawn = " ".join("".join(text.itertext()) for text in root.iter(SVG_TEXT))
    known = set(re.findall(r"\w+", drawn.casefold()))
    return [word for word in re.findall(r"\w+", alt.casefold()) if word not in known]


def repeated(figures: Sequence[Figure]) -> list[Finding]:
    """Name the figures that share a file with an earlier one."""
    seen: dict[str, Figure] = {}
    found = []
    for figure in figures:
        first = seen.setdefault(figure.file_name, figure)
        if first is not figure:
            message = f"cell {first.key!r} already shows a figure named {figure.name!r}"
            found.append(figure.finding("figure-name", message, "give each its own name"))
    return found


def check_twins(figures: Mapping[str, Sequence[Figure]]) -> None:
    """Require every figure in every language, described in that language."""
    found = []
    by_file = {language: {f.file_name: f for f in each} for language, each in figures.items()}
    for language, mine in by_file.items():
        for other, theirs in by_file.items():
            for file_name in mine.keys() - theirs.keys():
                message = f"the figure {mine[file_name].name!r} is missing in {other!r}"
                mend = "show it under the same name in every language"
                found.append(mine[file_name].finding("figure-twin", message, mend))
            for file_name in mine.keys() & theirs.keys() if language < other else ():
                if mine[file_name].alt == theirs[file_name].alt:
                    message = f"its alt text is the same in {language!r} and {other!r}"
                    found.append(
                        theirs[file_name].finding("figure-alt", message, "translate the alt text")
                    )
    if found:
        raise CourseError(found)


def extract(copies: Mapping[str, Mapping[str, bytes]]) -> dict[str, bytes]:
    """Turn executed notebooks, {language: {path: content}}, into {path under figures/: SVG}."""
    findings: list[Finding] = []
    figures: dict[str, list[Figure]] = {language: [] for language in copies}
    for language, notebooks in copies.items():
        for path, content in notebooks.items():
            try:
                figures[language] += figures_in(path, content)
            except CourseError as error:
                findings += error.findings
    if findings:
        raise CourseError(findings)
    check_twins(figures)
    return {
        f"{language}/{figure.file_name}": figure.svg.encode()
        for language, each in figures.items()
        for figure in each
    }


def same_picture(old: bytes, new: bytes) -> bool:
    """Tell whether two SVGs look alike: all text equal, no coordinate moved visibly."""
    if old == new:
        return True
    try:
        before, after = renumbered(old.decode()), renumbered(new.decode())
    except UnicodeDecodeError:
        return False
    if NUMBER.sub("0", before) != NUMBER.sub("0", after):
        return False
    moves = zip(NUMBER.findall(before), NUMBER.findall(after), strict=True)
    return all(abs(float(a) - float(b)) <= TOLERANCE for a, b in moves) and (
        words_in(before) == words_in(after)
    )


def renumbered(svg: str) -> str:
    """Give the ids that matplotlib hashes from shapes their numbers in reading order."""
    numbers: dict[str, int] = {}
    return HASHED_ID.sub(lambda m: f"#{numbers.setdefault(m.group(), len(numbers))}", svg)


def words_in(svg: str) -> list[str]:
    """List what can be read in an SVG: there, no digit may differ."""
    return re.findall(r">([^<>]*)</(?:text|tspan|title)>|aria-label=\"([^\"]*)\"", svg)


def compare(wanted: Mapping[str, bytes], folder: Path) -> list[Finding]:
    """Say how figures/ differs from what the notebooks show; nothing is deleted."""
    found = []
    for name, svg in sorted(wanted.items()):
        path = folder / name
        if not path.is_file():
            message = "the notebooks show this figure, the file is missing"
        elif not same_picture(path.read_bytes(), svg):
            message = "the file differs from what the notebooks show"
        else:
            continue
        found.append(Finding(f"figures/{name}", 1, None, "figure-stale", message, "make figures"))
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        name = path.relative_to(folder).as_posix()
        hidden = path.name.startswith(".")
        if path.is_file() and not hidden and name not in wanted:
            message = "no notebook shows this figure"
            mend = "delete the file, or show the figure again"
            found.append(Finding(f"figures/{name}", 1, None, "figure-orphan", message, mend))
    return found


def main(argv: list[str] | None = None, root: Path = ROOT) -> int:
    """Bring figures/ up to date, or with --check say whether it is."""
    parser = argparse.ArgumentParser("python -m course_build.outputs.figures", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    only_check = parser.parse_args(argv).check
    folder = root / "figures"
    try:
        settings = parse_settings((root / SETTINGS_FILE).read_text(encoding="utf-8"))
        wanted = extract(fresh_copies(root, settings.complete))
        findings = compare(wanted, folder)
        if not only_check:
            stale = [f.path for f in findings if f.rule == "figure-stale"]
            write_files(root, {path: wanted[path.removeprefix("figures/")] for path in stale})
            print("".join(f"wrote {path}\n" for path in stale), end="")
            findings = [f for f in findings if f.rule != "figure-stale"]
    except CourseError as error:
        print(error, file=sys.stderr)
        return 2
    except OSError as error:
        print(f"broken: {error}", file=sys.stderr)
        return 2
    for finding in findings:
        print(finding, file=sys.stderr)
    print(f"{len(wanted)} figures in {len(settings.complete)} languages, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
