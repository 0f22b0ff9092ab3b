"""The glossary: every term of the course, one word for it in each language.

The data lie beside the sources in glossary.toml; the page, the links and the proofreader read
them through here. What a language that is a draft lacks is not missed.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from course_build.base.findings import CourseError, Finding, stop_if_broken
from course_build.base.settings import Settings

GLOSSARY = "notebooks/src/glossary.toml"
KEY = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
FEWEST_WORDS, MOST_WORDS = 8, 25
MARKDOWN = re.compile(r"[`*_<>\[\]|$&\\\n]|  ")


@dataclass(frozen=True)
class Word:
    """A term in one language.

    `also`: other right ways to write it; `avoid`: what not to write, with the reason or "";
    `means`: a sentence for the learner; `seen`: how the term is recognised in a text.
    """

    name: str
    also: tuple[str, ...]
    avoid: tuple[tuple[str, str], ...]
    means: str
    seen: tuple[str, ...]


@dataclass(frozen=True)
class Term:
    """A term: its address on the page, its names in the code, its word in each language."""

    key: str
    identifiers: tuple[str, ...]
    words: Mapping[str, Word]
    line: int = 1


def read_glossary(text: str, settings: Settings) -> tuple[Term, ...]:
    """Read the glossary; raises CourseError with everything found wrong."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        place = int(line[1]) if line else 1
        raise CourseError([_finding(place, None, f"not valid TOML: {error}", "mend it")]) from error
    lines = _Lines(text)
    findings = list(_check_order(list(tables), lines))
    for key, table in tables.items():
        findings += _check_term(key, table, settings, lines)
    stop_if_broken(findings)
    terms = tuple(_term(key, table, settings, lines) for key, table in tables.items())
    stop_if_broken(
        f for language in settings.languages for f in _check_words(terms, language, lines)
    )
    return terms


def check_identifiers(terms: Iterable[Term], code: Iterable[bytes]) -> list[Finding]:
    """Every identifier stands somewhere in the code of the course."""
    known = b"\n".join(code)
    return [
        _finding(
            term.line,
            term.key,
            f"{name!r} stands nowhere in the library or the sources",
            "correct the identifier, or remove it",
        )
        for term in terms
        for name in term.identifiers
        if name.encode() not in known
    ]


class _Lines:
    """Where things stand in the file: tomllib does not say."""

    def __init__(self, text: str) -> None:
        self._headers: dict[str, int] = {}
        self._lines = text.split("\n")
        for number, line in enumerate(self._lines, 1):
            if header := re.fullmatch(r"\s*\[([^\[\]]+)\]\s*(#.*)?", line):
                self._headers[header[1].replace(" ", "").replace('"', "")] = number

    def of(self, *path: str, holding: str = "") -> int:
        """The line of a table, or its first line that holds a text (its tables' lines too)."""
        while path and ".".join(path) not in self._headers:
            path = path[:-1]
        name = ".".join(path)
        start = self._headers.get(name, 1)
        for number, line in enumerate(self._lines[start - 1 :], start):
            if number > start and line.startswith("[") and not line.startswith(f"[{name}."):
                break
            if holding in line:
                return number
        return start


def _check_order(keys: list[str], lines: _Lines) -> Iterator[Finding]:
    for before, key in zip(keys, keys[1:], strict=False):
        if key < before:
            message = f"{key!r} comes after {before!r}"
            yield _finding(lines.of(key), key, message, "keep the terms sorted by key")
            return


def _check_term(key: str, table: Any, settings: Settings, lines: _Lines) -> Iterator[Finding]:
    line = lines.of(key)
    if not KEY.fullmatch(key):
        yield _finding(line, key, f"the key {key!r}", "write small letters, digits, hyphens")
    if not isinstance(table, dict):
        yield _finding(line, key, f"{key} is not a table", f"write [{key}] and its words")
        return
    if not _are_texts(table.get("identifiers")):
        message = "identifiers is not a list of names"
        yield _finding(line, key, message, 'write identifiers = ["name"], or [] for none')
    for language in [*table.keys() - {"identifiers", *settings.languages}]:
        message = f"{language!r} is neither identifiers nor a language of the course"
        yield _finding(lines.of(key, language), key, message, "remove it")
    for language in settings.languages:
        if language in table:
            yield from _check_word(key, language, table[language], lines)
        elif language in settings.complete:
            message = f"{key} has no word in {language}"
            yield _finding(line, key, message, f"add [{key}.{language}] with name and means")


def _check_word(key: str, language: str, word: Any, lines: _Lines) -> Iterator[Finding]:
    line = lines.of(key, language)
    if not isinstance(word, dict):
        yield _finding(line, key, f"{language} is not a table", f"write [{key}.{language}]")
        return
    for name in sorted(word.keys() - {"name", "also", "avoid", "means", "seen"}):
        message = f"{name!r} is not known"
        yield _finding(
            lines.of(key, language, holding=name), key, message,
            "a word has name, also, avoid, means, seen",
        )  # fmt: skip
    if not _is_text(word.get("name")):
        yield _finding(line, key, "the name is missing", 'write name = "..."')
    for name in ("also", "seen"):
        if not _are_texts(word.get(name, [])):
            message = f"{name} is not a list of texts"
            yield _finding(
                lines.of(key, language, holding=name), key, message, f'write {name} = ["..."]'
            )
    for seen in word.get("seen", ()):
        if not re.fullmatch(r"[^\[\]]+|[^\[\]]*\[[^\[\]]*\w[^\[\]]*\][^\[\]]*", str(seen)):
            message = f"seen {seen!r} does not mark one run of words"
            yield _finding(line, key, message, "put [ and ] around the words of the term, once")
    if not _are_reasons(word.get("avoid", {})):
        message, mend = "avoid is not a table of reasons", 'write "wrong word" = "reason", or ""'
        yield _finding(line, key, message, mend)
    yield from _check_meaning(key, word.get("means"), lines.of(key, language, holding="means"))


def _check_meaning(key: str, means: Any, line: int) -> Iterator[Finding]:
    if not _is_text(means):
        yield _finding(line, key, "means is missing", "write one sentence for the learner")
        return
    count = len(re.findall(r"[\w'’-]*\w[\w'’-]*", means))
    if not FEWEST_WORDS <= count <= MOST_WORDS:
        message = f"{count} words; between {FEWEST_WORDS} and {MOST_WORDS} are wanted"
        yield _finding(line, key, message, "shorten the sentence, or say more")
    if not means[0].isupper() or means[-1] not in ".?":
        yield _finding(line, key, "not a sentence", "begin with a capital, end with . or ?")
    if found := MARKDOWN.search(means):
        message = f"{found[0]!r} in a sentence that is also shown where Markdown is not"
        yield _finding(line, key, message, "say it in plain words")


def _term(key: str, table: dict[str, Any], settings: Settings, lines: _Lines) -> Term:
    words = {code: _word(table[code]) for code in settings.languages if code in table}
    return Term(key, tuple(table["identifiers"]), words, lines.of(key))


def _word(table: dict[str, Any]) -> Word:
    name, also = table["name"], tuple(table.get("also", ()))
    seen = tuple(table.get("seen", (name, *also)))
    return Word(name, also, tuple(table.get("avoid", {}).items()), table["means"], seen)


def _check_words(terms: tuple[Term, ...], language: str, lines: _Lines) -> Iterator[Finding]:
    """In a language no word stands for two terms, and none that is right is also to be avoided."""
    right: dict[str, str] = {}
    here = [(term.key, term.words[language]) for term in terms if language in term.words]
    for key, word in here:
        for name in (word.name, *word.also):
            owner = right.setdefault(like(name), key)
            if owner != key:
                line = lines.of(key, language, holding=name)
                message = f"{name!r} is already the word for {owner}"
                yield _finding(line, key, message, "choose another word for one of them")
    for key, word in here:
        for name, _ in word.avoid:
            if like(name) in right:
                line = lines.of(key, language, holding=name)
                message = f"{name!r} is to be avoided and is the word for {right[like(name)]}"
                yield _finding(line, key, message, "decide which of the two it is")


def like(name: str) -> str:
    """A word without what does not make it another word: case and the dots of ё."""
    return name.casefold().replace("ё", "е")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value.strip() == value != ""


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value)) and len(set(value)) == len(value)


def _are_reasons(value: Any) -> bool:
    return isinstance(value, dict) and all(
        _is_text(name) and isinstance(reason, str) for name, reason in value.items()
    )


def _finding(line: int, key: str | None, message: str, mend: str) -> Finding:
    return Finding(GLOSSARY, line, key, "glossary", message, mend)
