"""The course's settings, from [tool.course] in pyproject.toml, some of them from outside."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field

from course_build.base.chrome import CHROME
from course_build.base.findings import CourseError, Finding
from course_build.base.places import SETTINGS_FILE

OUTSIDE = {"repository": "COURSE_REPOSITORY", "site": "COURSE_SITE"}  # known where it is published
ADDRESS = re.compile(r"""(https?://[^\s\0-\x1f\x7f/?#"'<>\\]+(/[^\s\0-\x1f\x7f?#"'<>\\]*)?)?""")


@dataclass(frozen=True)
class Settings:
    """Languages (the first is the source language), where the repository and the site live.

    The last of the languages may be drafts: incomplete or stale there is nothing to mend.
    """

    languages: tuple[str, ...]
    repository: str
    branch: str
    drafts: tuple[str, ...] = ()
    titles: Mapping[str, str] = field(default_factory=dict)
    site: str = ""

    @property
    def complete(self) -> tuple[str, ...]:
        """The languages in which everything must be there and confirmed."""
        return tuple(code for code in self.languages if code not in self.drafts)

    def title(self, language: str) -> str:
        """Say the course's title in a language, or as long as it has none in the source's."""
        return self.titles.get(language) or self.titles.get(self.languages[0], "")


def parse_settings(text: str, environment: Mapping[str, str] | None = None) -> Settings:
    """Read the settings, refusing any that the builder could not obey.

    Args:
        environment: its variables named in OUTSIDE go before the file, if they say anything
    """
    try:
        table = tomllib.loads(text).get("tool", {}).get("course", {})
    except tomllib.TOMLDecodeError as error:
        raise _error(f"not valid TOML: {error}", "correct the file") from error
    languages = table.get("languages")
    if not _is_list_of_names(languages):
        raise _error(
            f"[tool.course] languages must be a list of different codes, got {languages!r}",
            'write languages = ["en", "ru"], the source language first',
        )
    for language in languages:
        if language not in CHROME:
            raise _error(
                f"the builder has no words for the language {language!r}",
                f"add {language!r} to CHROME in course_build/base/chrome.py, or make it a draft",
            )
    drafts = table.get("drafts", [])
    if not _is_list_of_names([*languages, *drafts] if isinstance(drafts, list) else drafts):
        raise _error(
            f"[tool.course] drafts must be a list of codes that languages lacks, got {drafts!r}",
            'write drafts = ["de"], or drafts = [] where every translation is complete',
        )
    branch = table.get("branch", "main")
    if not (isinstance(branch, str) and re.fullmatch(r"[\w./-]+", branch)):
        raise _error(
            f"[tool.course] branch must be the name of a branch, got {branch!r}",
            'write branch = "main"',
        )
    return Settings(
        (*languages, *drafts),
        _repository(*_told("repository", table, environment or {})),
        branch,
        tuple(drafts),
        _titles(table.get("title", {})),
        _site(*_told("site", table, environment or {})),
    )


def _told(
    setting: str, table: Mapping[str, object], environment: Mapping[str, str]
) -> tuple[object, str]:
    """What a setting is, from outside or else from the file, and what it is called there."""
    variable = OUTSIDE[setting]
    if environment.get(variable):
        return environment[variable], variable
    return table.get(setting, ""), f"[tool.course] {setting}"


def _repository(slug: object, name: str) -> str:
    """Where the repository is, as owner/name; or nowhere."""
    if isinstance(slug, str) and re.fullmatch(r"([\w.-]+/[\w.-]+)?", slug):
        return slug
    raise _error(
        f'{name} must be "owner/name" or "", got {slug!r}',
        'write "owner/name", or "" to leave the links to Colab out',
        name,
    )


def _site(address: object, name: str) -> str:
    """The address that the pages' folder has on the web, with a slash at its end; or none."""
    if isinstance(address, str) and ADDRESS.fullmatch(address):
        return f"{address.rstrip('/')}/" if address else ""
    raise _error(
        f'{name} must be the address of the pages or "", got {address!r}',
        'write "https://example.org/course/", or "" to leave out all that needs an address',
        name,
    )


def _titles(table: object) -> dict[str, str]:
    if isinstance(table, dict) and all(isinstance(text, str) for text in table.values()):
        return table
    raise _error(
        f"[tool.course] title must name the course in each language, got {table!r}",
        'write title = { en = "...", ru = "..." }',
    )


def _is_list_of_names(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) > 0
        and all(isinstance(item, str) and re.fullmatch(r"[a-z]{2,3}", item) for item in value)
        and len(set(value)) == len(value)
    )


def _error(message: str, mend: str, name: str = "") -> CourseError:
    path, line = (name, None) if name in OUTSIDE.values() else (SETTINGS_FILE, 1)
    return CourseError([Finding(path, line, None, "settings", message, mend)])
