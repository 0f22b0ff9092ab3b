"""A page of prose in each language, from a source of markdown twins: page_NAME.py to NAME.md.

It is read like a module: the same keys, stamps, parity and proofreading. Like the glossary it
lies beside the notebooks; a heading stands under an anchor made of its cell's key.
"""

import re
from collections.abc import Collection, Sequence

from course_build.base.chrome import name_language, say
from course_build.base.findings import Finding, stop_if_broken
from course_build.base.places import PAGE
from course_build.base.settings import Settings
from course_build.library.embed import Embedding
from course_build.notebook.compose import NotebookCell, Parts, compose
from course_build.notebook.head import add_head
from course_build.source.cells import Cell
from course_build.source.headings import check_heading_order
from course_build.source.twins import Unit, pair_twins
from course_build.text.prose import heading
from course_build.translation.parity import check_parity

NAME = re.compile(rf"{PAGE}[a-z][a-z0-9]*")


def read_page(cells: Sequence[Cell], settings: Settings) -> list[Unit]:
    """Pair the twins of a page and check all but its links."""
    units, findings = pair_twins(cells, settings.languages, settings.drafts)
    stop_if_broken(findings)
    stop_if_broken(_check_page(units, settings.languages))
    return units


def _check_page(units: Sequence[Unit], languages: Sequence[str]) -> list[Finding]:
    """A page is prose that begins with its title, and its twins say the same."""
    firsts = [unit.first for unit in units]
    strange = [cell for cell in firsts if cell.kind != "markdown" or cell.role is not None]
    untitled = [cell for cell in units[0].cells if not heading(cell.text)]
    message, mend = "a page holds prose and nothing else", "make it plain Markdown, or remove it"
    return [
        *(cell.finding("page", message, mend) for cell in strange),
        *(
            cell.finding("title", "a page begins with its title", "make the first line `# Title`")
            for cell in untitled
        ),
        *check_heading_order(units, languages),
        *(finding for unit in units for finding in check_parity(unit)),
    ]


def compose_page(units: Sequence[Unit], language: str, settings: Settings) -> list[NotebookCell]:
    """The page's cells in one language."""
    parts = Parts(units, Embedding(), [], {}, settings.drafts)
    return compose(parts, language, settings.languages)


def page_head(
    stem: str, language: str, settings: Settings, stale: Collection[str], progress: str
) -> list[str]:
    """The paragraphs under the title: the twins, a draft's progress, in a preview the banner."""
    name = stem.removeprefix(PAGE)
    others = [code for code in settings.languages if code != language]
    twins = [f"{name_language(code)}: [{code}/{name}.md](../{code}/{name}.md)" for code in others]
    keys = ", ".join(f"`{key}`" for key in stale)
    banner = "> " + say(language, "preview", keys=keys) if stale else ""
    return [paragraph for paragraph in (" · ".join(twins), progress, banner) if paragraph]


def write_prose(cells: Sequence[NotebookCell], head: Sequence[str]) -> str:
    """Join the cells of one language under the page's head, anchors before their headings."""
    first, *others = add_head(cells, head)
    parts = [first.source]
    for cell in others:
        anchor = f'<a id="{cell.id}"></a>\n\n' if cell.source.startswith("#") else ""
        parts.append(anchor + cell.source)
    return "\n\n".join(parts) + "\n"
