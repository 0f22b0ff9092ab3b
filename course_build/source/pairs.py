"""Each cell of the source language beside its translation into another: how the two stand."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from course_build.base.choosing import asked_wrongly, chosen_languages, chosen_modules
from course_build.base.commands import cell_name, some
from course_build.base.decode import decode
from course_build.base.findings import CourseError, Finding
from course_build.base.settings import Settings
from course_build.source.cells import Cell, parse_source
from course_build.source.twins import stamp

CONFIRMED, STALE, UNCONFIRMED, MISSING = "confirmed", "stale", "unconfirmed", "missing"
TO_READ = (STALE, UNCONFIRMED)


@dataclass(frozen=True)
class Pair:
    """A cell of the source language and its translation, if there is one."""

    source: Cell
    language: str
    translation: Cell | None

    @property
    def state(self) -> str:
        """confirmed, stale (the source has changed since), unconfirmed (no stamp) or missing."""
        if self.translation is None:
            return MISSING
        if self.translation.stamp is None:
            return UNCONFIRMED
        return CONFIRMED if self.translation.stamp == stamp(self.source.text) else STALE

    @property
    def written(self) -> Cell:
        """The translation of a pair that is not missing."""
        if self.translation is None:
            raise LookupError(f"{self.name} has no {self.language} text")
        return self.translation

    @property
    def name(self) -> str:
        """What the command line calls this cell."""
        return cell_name(self.source.path, self.source.key)


def pairs_of(cells: Sequence[Cell], languages: Sequence[str]) -> list[Pair]:
    """Pair a source's cells; the first of the languages is the source language."""
    first, *others = languages
    sources: dict[str, Cell] = {}
    translations: dict[tuple[str, str | None], Cell] = {}
    for cell in cells:
        if cell.lang == first:
            sources.setdefault(cell.key, cell)
        else:
            translations.setdefault((cell.key, cell.lang), cell)
    return [
        Pair(source, language, translations.get((key, language)))
        for key, source in sources.items()
        for language in others
    ]


def read_cells(path: str, data: bytes, languages: Sequence[str]) -> tuple[Cell, ...]:
    """Read a source's cells; it may be broken in any way but those that hide its cells."""
    return parse_source(path, decode(path, data), tuple(languages))


def read_pairs(path: str, data: bytes, languages: Sequence[str]) -> list[Pair]:
    """Read a source's pairs, as forgiving as read_cells."""
    return pairs_of(read_cells(path, data, languages), languages)


def translations_chosen(names: Sequence[str] | None, settings: Settings) -> list[str]:
    """The languages to translate into, among those that --lang names."""
    first = settings.languages[0]
    chosen = [code for code in chosen_languages(names, settings) if code != first]
    if names and not chosen:
        others = ", ".join(settings.languages[1:]) or "none: this course has one language"
        raise asked_wrongly(f"nothing is translated into {first!r}", f"choose from {others}")
    return chosen


def choose_pairs(
    names: Sequence[str], sources: Mapping[str, bytes], settings: Settings, langs: Sequence[str]
) -> list[Pair]:
    """The pairs that MODULE and MODULE:KEY name, each once: of a module all, of a key its own."""
    read: dict[str, list[Pair]] = {}
    chosen: dict[tuple[str, str, str], Pair] = {}
    for name in names:
        module, colon, key = name.partition(":")
        for path in chosen_modules([module], list(sources)):
            if path not in read:
                read[path] = read_pairs(path, sources[path], settings.languages)
            found = [pair for pair in read[path] if not colon or pair.source.key == key]
            if colon and not found:
                raise _unknown_key(path, key, read[path], settings.languages[0])
            for pair in found:
                if pair.language in langs:
                    chosen[path, pair.source.key, pair.language] = pair
    return list(chosen.values())


def _unknown_key(path: str, key: str, pairs: Sequence[Pair], first: str) -> CourseError:
    keys = list(dict.fromkeys(pair.source.key for pair in pairs))
    near = difflib.get_close_matches(key, keys)
    part = [known for known in keys if key and key in known and known not in near]
    message = f"no {first} cell with a translation has the key {key!r}"
    names = [cell_name(path, known) for known in [*near, *part] or keys]
    mend = f"choose one of {some(names)}"
    return CourseError([Finding(path, 1, None, "unknown-key", message, mend)])
