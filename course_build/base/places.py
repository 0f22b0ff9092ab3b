"""Where the course's files lie, relative to the repository, and what a build reads of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

NOTEBOOKS = "notebooks"
SOURCES = "notebooks/src"
PACKAGE = "course_lib"
REFERENCES = "reference"
SETTINGS_FILE = "pyproject.toml"
PAGE = "page_"  # how the name of a source begins that is a page of prose, not a module


@dataclass(frozen=True)
class Files:
    """Everything that a build reads: path -> bytes, paths relative to the repository."""

    sources: Mapping[str, bytes]
    library: Mapping[str, bytes]
    references: Mapping[str, bytes]
    glossary: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def modules(self) -> list[str]:
        """The paths of the sources that become notebooks; the others are pages of prose."""
        return [path for path in self.sources if not is_page(path)]


def stem_of(path: str) -> str:
    """A source's name without folder and ending."""
    return path.rsplit("/", 1)[-1].removesuffix(".py")


def is_page(path: str) -> bool:
    """Is this source a page of prose?"""
    return stem_of(path).startswith(PAGE)


def prose_path(language: str, stem: str) -> str:
    """Where the page of prose belongs, beside the notebooks of its language."""
    return f"notebooks/{language}/{stem.removeprefix(PAGE)}.md"


def notebook_path(language: str, stem: str) -> str:
    """Where the learner's notebook belongs."""
    return f"notebooks/{language}/{stem}.ipynb"


def solved_path(language: str, stem: str) -> str:
    """Where the notebook with the solutions in place belongs."""
    return f"build/solved/{language}/{stem}.ipynb"
