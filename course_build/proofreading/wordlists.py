"""The project's lists of words, kept honest: nothing known already, nothing unused, no typos.

A list is a text file: one word a line, sorted. An entry that one edit would turn into a word of
the dictionary may be a misspelling, so it says after `#` why it is none.
"""

from collections.abc import Iterator
from itertools import pairwise

from course_build.base.findings import Finding
from course_build.proofreading.words import Entry, Words, edits, headwords

RULE = "word-list"


def read_entries(text: str) -> tuple[Entry, ...]:
    """The entries of a word list: one word a line, a reason after `#`."""
    entries = []
    for number, line in enumerate(text.split("\n"), 1):
        word, _, reason = line.partition("#")
        if word.strip():
            entries.append(Entry(word.strip(), reason.strip(), number))
    return tuple(entries)


def check_list(path: str, words: Words) -> Iterator[Finding]:
    """What is wrong with a list, after everything was read."""
    for before, entry in pairwise(words.entries):
        if _place(entry) < _place(before):
            message = f"{entry.word!r} stands after {before.word!r}"
            yield _finding(path, entry, message, "sort the list")
        elif entry.word == before.word:
            yield _finding(path, entry, f"{entry.word!r} stands here twice", "remove one")
    for entry in words.entries:
        near = _near(entry.word, words)
        if words.in_dictionary(entry.word):
            message = f"the dictionary knows {entry.word!r} already"
            yield _finding(path, entry, message, "remove the line")
        elif entry.word not in words.used:
            message = f"the course nowhere uses {entry.word!r}"
            yield _finding(path, entry, message, "remove the line")
        elif near and not entry.reason:
            message = f"{entry.word!r} is one edit from {near!r}: is it a misspelling?"
            mend = f"correct the texts; or write why not: {entry.word}  # reason"
            yield _finding(path, entry, message, mend)


def _place(entry: Entry) -> tuple[str, str]:
    return entry.word.casefold(), entry.word


def _near(word: str, words: Words) -> str | None:
    known = headwords(words.table.dictionary)
    return next((e for e in edits(word.casefold(), words.table.letters) if e in known), None)


def _finding(path: str, entry: Entry, message: str, mend: str) -> Finding:
    return Finding(path, entry.line, None, RULE, message, mend)
