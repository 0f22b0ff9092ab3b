"""Where the course's files lie, relative to the repository, and what a build reads of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

SOURCES = "notebooks/src"
PACKAGE = "course_lib"
REFERENCES = "reference"
SETTINGS_FILE = "pyproject.toml"


@dataclass(frozen=True)
class Files:
    """Everything that a build reads: path -> bytes, paths relative to the repository."""

    sources: Mapping[str, bytes]
    library: Mapping[str, bytes]
    references: Mapping[str, bytes]
    glossary: Mapping[str, bytes] = field(default_factory=dict)


def stem_of(path: str) -> str:
    """A source's name without folder and ending."""
    return path.rsplit("/", 1)[-1].removesuffix(".py")


def notebook_path(language: str, stem: str) -> str:
    """Where the learner's notebook belongs."""
    return f"notebooks/{language}/{stem}.ipynb"


def solved_path(language: str, stem: str) -> str:
    """Where the notebook with the solutions in place belongs."""
    return f"build/solved/{language}/{stem}.ipynb"
