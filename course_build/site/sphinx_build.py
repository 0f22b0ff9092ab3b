"""One language's pages by Sphinx, in a process of its own: Sphinx keeps state in globals."""

import hashlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_build.site.pages import ASSETS

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Site:
    """One language's pages: where they are made, and what they say around the text."""

    language: str
    title: str
    work: Path  # of Sphinx: the sources of the pages, what it remembers, what it writes
    languages: Sequence[Mapping[str, str]]  # code and name, for the switch
    address: str  # of the folder of all languages on the web; "" where it has none
    told: Mapping[str, Mapping[str, Any]]  # what the templates say of a page, by its name

    @property
    def sources(self) -> Path:
        return self.work / "sources"

    @property
    def pages(self) -> Path:
        return self.work / "pages"


def settings_of(site: Site) -> dict[str, Any]:
    """What differs from language to language in Sphinx's configuration."""
    assets = site.sources / ASSETS
    return {
        "language": site.language,
        "project": site.title,
        "html_title": site.title,
        "html_baseurl": f"{site.address}{site.language}/" if site.address else "",
        "html_context": {"languages": site.languages, "site": site.address, "told": site.told},
        "html_static_path": ["static", *([str(assets)] if assets.is_dir() else [])],
        "locale_dirs": [str(site.work / "locale")],
        "course_code": code_digest(),
        "course_titles": {name: told["title"] for name, told in site.told.items()},
    }


def code_digest() -> str:
    """What this code is: pages that another made are made anew, all of them."""
    files = sorted(path for kind in ("**/*.py", "**/*.html") for path in HERE.glob(kind))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def end_with_parent() -> None:
    """Let this process end with the one that started it, and at Ctrl-C, without a word.

    Nobody else would end it, and the next command would find it writing.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    multiprocessing.parent_process().join()
    os._exit(1)


def build(site: Site) -> int:
    """Build the pages; a warning is an error. Return Sphinx's exit code."""
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace, patch_docutils

    with patch_docutils(HERE), docutils_namespace():
        app = Sphinx(
            site.sources,
            HERE,
            site.pages,
            site.work / "doctrees",
            "html",
            confoverrides=settings_of(site),
            status=None,
            warning=sys.stderr,
            warningiserror=True,
        )
        app.build(force_all=True)  # reads what has changed, writes all: each page names the others
        return app.statuscode
