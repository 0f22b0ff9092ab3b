"""The line under a notebook's title: the other language, the neighbours, Colab; and the banner."""

import re
from collections.abc import Sequence
from dataclasses import replace

from course_build.base.chrome import name_edition, say
from course_build.base.settings import Settings
from course_build.notebook.compose import Line, NotebookCell
from course_build.notebook.glossary_links import PAGE

NAME = re.compile(r"module_(\d\d)_[a-z0-9]+(_[a-z0-9]+)*")
COLAB = "https://colab.research.google.com"


def module_number(stem: str) -> int:
    """The number in a module's file name."""
    return int(stem.split("_")[1])


def head_texts(
    stem: str,
    stems: Sequence[str],
    language: str,
    settings: Settings,
    stale_keys: Sequence[str],
    progress: str = "",
    has_glossary: bool = False,
) -> list[str]:
    """The paragraphs under the title: the links, a draft's progress, in a preview the banner."""
    paragraphs = [links(stem, stems, language, settings, has_glossary), progress]
    if stale_keys:
        keys = ", ".join(f"`{key}`" for key in stale_keys)
        paragraphs.append("> " + say(language, "preview", keys=keys))
    return [paragraph for paragraph in paragraphs if paragraph]


def add_head(cells: Sequence[NotebookCell], paragraphs: Sequence[str]) -> list[NotebookCell]:
    """Put paragraphs under the title, the first line of the first cell."""
    first = cells[0]
    texts = [text for paragraph in paragraphs for text in ("", paragraph)]
    if texts and len(first.lines) > 1 and first.lines[1].text.strip():
        texts.append("")
    head = [Line(text, first.origin.path, first.origin.line) for text in texts]
    return [replace(first, lines=(first.lines[0], *head, *first.lines[1:])), *cells[1:]]


def links(
    stem: str, stems: Sequence[str], language: str, settings: Settings, has_glossary: bool = False
) -> str:
    """The links of one notebook, as one line of Markdown."""
    ordered = sorted(stems)
    place = ordered.index(stem)
    parts = [
        f"{name_edition(other, language)}: [{other}/{stem}.ipynb](../{other}/{stem}.ipynb)"
        for other in settings.languages
        if other != language
    ]
    for entry, neighbour in (("previous", place - 1), ("next", place + 1)):
        if 0 <= neighbour < len(ordered):
            target = ordered[neighbour]
            label = say(language, entry, number=module_number(target))
            parts.append(f"[{label}]({target}.ipynb)")
    if has_glossary:
        parts.append(f"[{say(language, 'glossary')}]({PAGE})")
    if settings.repository:
        badge = f"![{say(language, 'colab')}]({COLAB_BADGE})"
        parts.append(f"[{badge}]({in_colab(stem, language, settings)})")
    return " · ".join(parts)


def in_colab(stem: str, language: str, settings: Settings) -> str:
    """Where Colab opens a notebook of the course's repository."""
    path = f"blob/{settings.branch}/notebooks/{language}/{stem}.ipynb"
    return f"{COLAB}/github/{settings.repository}/{path}"


COLAB_BADGE = f"{COLAB}/assets/colab-badge.svg"
