"""All languages' notebooks and texts to what Sphinx reads, and what its templates say of a page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from course_build.base.settings import Settings
from course_build.library.payload import excerpt
from course_build.notebook.glossary_links import PAGE
from course_build.notebook.head import in_colab, links
from course_build.outputs.executed import joined, read_notebook
from course_build.site.minutes import minutes
from course_build.site.pages import Links, index_page, module_sources, page_text
from course_build.site.sections import Section, places, plain, split
from course_build.source.header import LIBRARY_KEY

INDEX, WELCOME = "index", "welcome"
BINDER = "https://mybinder.org/v2/gh"


@dataclass
class Pages:
    """One language's pages: the sources, {name: content}, and for each page what is told of it."""

    sources: dict[str, bytes] = field(default_factory=dict)
    told: dict[str, dict[str, Any]] = field(default_factory=dict)


def all_pages(
    copies: Mapping[str, Mapping[str, bytes]],
    texts: Mapping[str, Mapping[str, str]],
    settings: Settings,
    rendered: Settings,
) -> dict[str, Pages]:
    """The pages of every language.

    Args:
        copies: the executed notebooks, {language: {path: content}}
        texts: the pages of prose, {language: {name without its ending: Markdown}}
        rendered: the settings that the notebooks were rendered with; their links are those
    """
    first = next(iter(copies.values()))
    times = {page.name: minutes(page.cells) for pages in cut(first).values() for page in pages}
    return {
        language: _pages(language, notebooks, texts.get(language, {}), settings, rendered, times)
        for language, notebooks in copies.items()
    }


def cut(notebooks: Mapping[str, bytes]) -> dict[str, list[Section]]:
    """The sections of each module, {stem: ...}, in the modules' order."""
    named = _readable(notebooks)
    return {stem: split(named[stem], stem) for stem in sorted(named)}


def _readable(notebooks: Mapping[str, bytes]) -> dict[str, dict[str, Any]]:
    """The notebooks by stem; of the packed library a page shows how each line begins."""
    named = {PurePosixPath(path).stem: read_notebook(path, notebooks[path]) for path in notebooks}
    for notebook in named.values():
        for cell in notebook["cells"]:
            if cell["id"] == LIBRARY_KEY:
                cell["source"] = excerpt(joined(cell["source"]))
    return named


def _pages(
    language: str,
    notebooks: Mapping[str, bytes],
    texts: Mapping[str, str],
    settings: Settings,
    rendered: Settings,
    times: Mapping[str, int],
) -> Pages:
    made, sections = Pages(), cut(notebooks)
    cells, has_glossary = places(sections), PurePosixPath(PAGE).stem in texts
    named = _readable(notebooks)
    for stem, pages in sections.items():
        head = links(stem, list(sections), language, rendered, has_glossary)
        made.sources |= module_sources(named[stem], stem, pages, head, cells)
        made.told |= _told(stem, language, pages, settings, times)
    cells[WELCOME] = {"": INDEX}
    written = {name: page_text(text, Links(name, cells)) for name, text in texts.items()}
    welcome = written.pop(WELCOME, "")
    made.sources |= {f"{name}.md": text.encode() for name, text in written.items()}
    order = [*(pages[0].name for pages in sections.values()), *sorted(written)]
    made.sources[f"{INDEX}.md"] = index_page(settings.title(language), order, welcome)
    return made


def _told(
    stem: str,
    language: str,
    pages: Sequence[Section],
    settings: Settings,
    times: Mapping[str, int],
) -> dict[str, dict[str, Any]]:
    """What the templates say of a module's pages: the notebook, the time, the contents."""
    opening = {"notebook": f"{stem}.ipynb"}
    if settings.repository:
        path = quote(f"notebooks/{language}/{stem}.ipynb", safe="")
        opening["colab"] = in_colab(stem, language, settings)
        opening["binder"] = f"{BINDER}/{settings.repository}/{settings.branch}?labpath={path}"
    module = plain(pages[0].title)
    told = {
        page.name: {
            **opening,
            "minutes": times.get(page.name, 0),
            "title": plain(page.title) + (f" · {module}" if page is not pages[0] else ""),
        }
        for page in pages
    }
    told[pages[0].name]["contents"] = [
        {
            "link": f"{page.file_name}.html",
            "title": plain(page.title),
            "minutes": times.get(page.name, 0),
        }
        for page in pages[1:]
    ]
    told[pages[0].name]["minutes"] = sum(times.get(page.name, 0) for page in pages)
    return told
