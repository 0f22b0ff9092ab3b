"""The whole course, from the bytes of its files to the bytes of its notebooks; nothing written.

Each stage says everything it finds; a stage begins only when the ones before found nothing
broken. Stale translations do not stop the later stages: the caller decides about them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from course_build.base.decode import decode
from course_build.base.findings import CourseError, Finding, in_reading_order, stop_if_broken
from course_build.base.places import Files, is_page, notebook_path, prose_path, solved_path, stem_of
from course_build.base.settings import Settings
from course_build.library.clashes import check_clashes, own_imports
from course_build.library.definitions import Library
from course_build.library.embed import is_embed, plan_embedding
from course_build.library.meetings import check_meetings
from course_build.library.reading import read_library_module
from course_build.notebook.compose import NotebookCell, Parts, compose, solve
from course_build.notebook.exercises import check_exercises, leaks, solutions
from course_build.notebook.glossary_links import Linker, Place
from course_build.notebook.head import NAME, add_head, head_texts, module_number
from course_build.notebook.lint import code_faults, lint, long_prose, source_faults
from course_build.notebook.practice import check_practice
from course_build.notebook.quiz import check_quiz
from course_build.notebook.reference import Reference, load_reference
from course_build.notebook.render import render
from course_build.notebook.structure import check_structure, check_syntax
from course_build.pages.glossary_page import page_path, write_page
from course_build.pages.page_links import check_links, name_links, page_targets
from course_build.pages.prose_page import NAME as PAGE_NAME
from course_build.pages.prose_page import compose_page, page_head, read_page, write_prose
from course_build.source.cells import Cell, parse_source
from course_build.source.drafts import progress
from course_build.source.headings import check_heading_order
from course_build.source.language import check_comments
from course_build.source.twins import Unit, pair_twins, stale_twins
from course_build.text.glossary import Term, check_identifiers, read_glossary
from course_build.translation.code_twins import check_code_twins
from course_build.translation.parity import check_parity

Result = TypeVar("Result")
Apply = Callable[[Callable[[str], Result], Sequence[str]], Iterable[Result]]  # as map does


@dataclass(frozen=True)
class Course:
    """What a build made: path -> bytes, and the translations that are no longer confirmed."""

    notebooks: Mapping[str, bytes]
    solved: Mapping[str, bytes]
    stale: tuple[Finding, ...]
    pages: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Rendered:
    """What one source became, by language: both editions, and where each term is first used.

    Of a page of prose there is the page alone.
    """

    findings: tuple[Finding, ...]
    editions: Mapping[str, tuple[bytes, bytes]] = field(default_factory=dict)
    uses: Mapping[str, Mapping[str, Place]] = field(default_factory=dict)
    pages: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Renderer:
    """Renders one source at a time; what all of them share is read once."""

    files: Files
    settings: Settings
    languages: Sequence[str]
    terms: tuple[Term, ...]
    library: Library
    linker: Linker
    preview: bool

    def render(self, path: str) -> Rendered:
        """Render a source in every language, or find what is broken in it."""
        findings: list[Finding] = []
        render_units = self._render_page if is_page(path) else self._render_module
        check = read_page if is_page(path) else read_units
        try:
            text = decode(path, self.files.sources[path])
            cells = parse_source(path, text, self.settings.languages)
            units = check(cells, self.settings)
            stale = {code: self._stale(units, code) for code in self.languages}
            findings += [finding for found in stale.values() for finding in found]
            rendered = render_units(path, units, stale)
        except CourseError as error:
            return Rendered((*findings, *error.findings))
        return replace(rendered, findings=tuple(findings))

    def _stale(self, units: Sequence[Unit], language: str) -> list[Finding]:
        return stale_twins(units, language) if language in self.settings.complete else []

    def _told(
        self, units: Sequence[Unit], language: str, stale: Sequence[Finding]
    ) -> tuple[list[str], str]:
        """What the head of a notebook or page tells: the stale cells, a draft's progress."""
        keys = [str(finding.key) for finding in stale] if self.preview else []
        return keys, progress(units, language) if language in self.settings.drafts else ""

    def _render_module(
        self, path: str, units: Sequence[Unit], stale: Mapping[str, Sequence[Finding]]
    ) -> Rendered:
        settings = self.settings
        parts = gather_parts(units, self.library, self.files.references)
        composed = compose_all(replace(parts, drafts=settings.drafts), self.languages, settings)
        stems = [stem_of(source) for source in self.files.modules]
        rendered, uses = {}, {}
        for language, editions in composed.items():
            told = self._told(units, language, stale[language])
            head = head_texts(
                stem_of(path), stems, language, settings, *told, has_glossary=bool(self.terms)
            )
            name = f"{stem_of(path)}.{language}.ipynb"
            linked, uses[language] = link_editions(self.linker, *editions)
            learner, solved = (render(add_head(cells, head), name) for cells in linked)
            rendered[language] = learner, solved
        return Rendered((), rendered, uses)

    def _render_page(
        self, path: str, units: Sequence[Unit], stale: Mapping[str, Sequence[Finding]]
    ) -> Rendered:
        settings, source = self.settings, self.settings.languages[0]
        targets = page_targets(self.files, [term.key for term in self.terms])
        findings = [f for unit in units for f in check_links(unit.cells, targets)]
        pages = {}
        for language in self.languages:
            cells = compose_page(units, language, settings)
            findings += long_prose(cells)
            linked, _ = self.linker.link_cells(cells)
            told = self._told(units, language, stale[language])
            text = write_prose(linked, page_head(stem_of(path), language, settings, *told))
            pages[language] = name_links(text, language, source, targets).encode()
        stop_if_broken(findings)
        return Rendered((), pages=pages)


def build_course(
    files: Files,
    settings: Settings,
    paths: Sequence[str],
    languages: Sequence[str],
    *,
    preview: bool = False,
    apply: Apply[Any] = map,
) -> Course:
    """Render the sources at these paths in these languages; raises CourseError.

    A preview says in the notebook itself which of its cells are stale. `apply` renders each
    source: in this process, or as parallel.spread does.
    """
    stop_if_broken(check_names(files.sources))
    terms = read_terms(files, settings)
    library = Library(files.library, read_library_module)
    renderer = Renderer(files, settings, languages, terms, library, Linker(terms), preview)
    results = dict(zip(paths, apply(renderer.render, paths), strict=True))
    findings = [finding for rendered in results.values() for finding in rendered.findings]
    stop_if_broken(findings)
    notebooks, solved, pages = {}, {}, {}
    uses: dict[str, dict[str, Mapping[str, Place]]] = {language: {} for language in languages}
    for path, rendered in results.items():
        for language, editions in rendered.editions.items():
            stem = stem_of(path)
            notebooks[notebook_path(language, stem)], solved[solved_path(language, stem)] = editions
            uses[language][stem] = rendered.uses[language]
        for language, page in rendered.pages.items():
            pages[prose_path(language, stem_of(path))] = page
    if terms and set(files.modules) <= set(paths):  # the page tells of all the modules
        pages |= {page_path(code): write_page(terms, code, settings, uses[code]) for code in uses}
    return Course(notebooks, solved, in_reading_order(findings), pages)


def read_terms(files: Files, settings: Settings) -> tuple[Term, ...]:
    """The terms of the course's glossary; a course need not have one."""
    terms = tuple(
        term
        for path, data in files.glossary.items()
        for term in read_glossary(decode(path, data), settings)
    )
    code = [*files.sources.values(), *files.library.values()]
    stop_if_broken(check_identifiers(terms, code))
    return terms


def check_names(paths: Iterable[str]) -> list[Finding]:
    """Every source is named module_NN_idea.py, each number once, or page_name.py."""
    findings = []
    numbers: dict[int, str] = {}
    for path in paths:
        stem = stem_of(path)
        if PAGE_NAME.fullmatch(stem):
            continue
        if not NAME.fullmatch(stem):
            message = f"{stem!r} is not a module's name"
            mend = "name it module_NN_idea.py, or for a page of prose page_name.py, in lower case"
        elif module_number(stem) in numbers:
            message = f"{numbers[module_number(stem)]} has the same number"
            mend = "give one of them another number"
        else:
            numbers[module_number(stem)] = path
            continue
        findings.append(Finding(path, 1, None, "source-name", message, mend))
    return findings


def read_units(cells: Sequence[Cell], settings: Settings) -> list[Unit]:
    """Pair the twins and check everything that needs no library."""
    units, findings = pair_twins(cells, settings.languages, settings.drafts)
    stop_if_broken([*findings, *check_syntax(cells)])
    in_step = [unit.in_step(settings.drafts) for unit in units]
    code = [unit for unit in in_step if unit.first.kind == "code"]
    prose = [unit for unit in in_step if unit.first.kind == "markdown"]
    stop_if_broken(
        [
            *check_structure(units),
            *check_heading_order(units, settings.languages),
            *check_exercises(units),
            *check_practice(units),
            *check_quiz(units),
            *source_faults([cell for unit in in_step for cell in unit.cells]),
            *(f for unit in code for f in check_code_twins(unit)),
            *(f for unit in prose for f in check_parity(unit)),
            *(f for unit in code for cell in unit.cells
              for f in check_comments(cell, settings.languages, settings.drafts)),
        ]
    )  # fmt: skip
    # A draft's prose is shown though the source has changed since; its code would not run.
    return [
        unit if unit.first.kind == "markdown" else step
        for unit, step in zip(units, in_step, strict=True)
    ]


def gather_parts(units: Sequence[Unit], library: Library, references: Mapping[str, bytes]) -> Parts:
    """Embed the library and the reference numbers, and gather the imports."""
    embedding = plan_embedding([u.first for u in units if is_embed(u.first)], library)
    findings = [*embedding.findings, *check_clashes(units, embedding)]
    findings += [] if findings else check_meetings(units, embedding, library)
    loaded: dict[str, Reference] = {}
    for unit in units:
        if unit.first.role == "reference":
            try:
                loaded[unit.first.key] = load_reference(unit.first, references)
            except CourseError as error:
                findings += error.in_cell(unit.first.key)
    stop_if_broken(findings)
    return Parts(units, embedding, [*own_imports(units), *embedding.imports], loaded)


def compose_all(
    parts: Parts, languages: Sequence[str], settings: Settings
) -> dict[str, tuple[list[NotebookCell], list[NotebookCell]]]:
    """The learner's and the solved edition in each language, checked as a learner meets them."""
    composed = {}
    findings: list[Finding] = []
    for language in languages:
        learner = compose(parts, language, settings.languages)
        composed[language] = learner, solve(learner, parts, language, settings.languages)
        findings += [*lint(learner), *find_leaks(parts.units, learner)]
    # Solutions are shared by the languages, so one solved notebook speaks for all.
    _, solved = composed[languages[0]]
    stop_if_broken([*findings, *code_faults(solved)])
    return composed


def link_editions(
    linker: Linker, learner: Sequence[NotebookCell], solved: Sequence[NotebookCell]
) -> tuple[list[list[NotebookCell]], dict[str, Place]]:
    """Link the glossary in both editions, and name the place that first uses each term."""
    linked, places = linker.link_cells(learner)
    same = zip(solved, learner, linked, strict=True)
    return [linked, [new if cell is old else cell for cell, old, new in same]], places


def find_leaks(units: Sequence[Unit], cells: Sequence[NotebookCell]) -> list[Finding]:
    """The solutions that a learner can read elsewhere in the notebook."""
    stubs = {unit.first.exercise: unit.first for unit in units if unit.first.role == "stub"}
    return [
        finding
        for name, solution in solutions(units).items()
        for finding in leaks(
            solution,
            stubs[name],
            [(c.id, text) for c in cells if c.id != solution.key for text in c.texts],
        )
    ]
