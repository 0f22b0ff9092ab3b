"""A cell's header: the attributes that jupytext read from it, each known and of its type."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from course_build.base.findings import Finding

ROLES = {
    "imports": "code",
    "reference": "code",
    "folded": "code",
    "library": "code",
    "ours": "code",
    "stub": "code",
    "check": "code",
    "hint": "markdown",
    "solution": "code",
    "quiz": "code",
}
ATTRIBUTES = ("key", "lang", "tags", "role", "exercise", "reference", "differs")
LIBRARY_KEY = "course-lib"  # of the cell that carries the library
KEY = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
LONGEST_KEY = 50  # nbformat allows an id 64 characters, and quizzes take some
# What jupytext notes for its own way back to a script: nobody wrote it in the header.
JUPYTEXT_OWN = ("cell_marker", "lines_to_next_cell")


@dataclass(frozen=True)
class Header:
    """What a header says; the kind is markdown or code."""

    kind: str
    key: str
    lang: str | None
    stamp: str | None
    role: str | None
    exercise: str | None
    reference: str | None
    tags: tuple[str, ...]
    differs: str | None


def key_in(written: str) -> str | None:
    """The key as far as it can be seen in a header that may be broken."""
    seen = re.search(r'\bkey="([^"]*)"', written)
    return seen[1] if seen else None


def with_stamp(written: str, name: str, fresh: str) -> str:
    """Set a header's stamp: where one stands, else at once after the key; an empty one goes."""
    old = re.compile(rf"(\s+){re.escape(name)}\s*=\s*(\"[^\"]*\"|'[^']*')")
    new = f'{name}="{fresh}"'
    if old.search(written):
        return old.sub(rf"\g<1>{new}" if fresh else "", written)
    key = re.compile(r"(?<=\s)key\s*=\s*(\"[^\"]*\"|'[^']*')")
    return key.sub(rf"\g<0> {new}", written.rstrip(), count=1)


def read_header(
    path: str, line: int, written: str, read: Mapping[str, Any], languages: Sequence[str]
) -> tuple[Header | None, list[Finding]]:
    """Understand one header; what is wrong with it is said all at once.

    `read` is the cell as jupytext made it. The stamp is an attribute with the source language's
    name.
    """
    attributes = {
        name: value for name, value in read["metadata"].items() if name not in JUPYTEXT_OWN
    }
    kind = read["cell_type"]
    problems = _problems(written, kind, attributes, languages)
    if problems:
        return None, [Finding(path, line, key_in(written), *problem) for problem in problems]
    return Header(
        kind=kind, key=attributes["key"], lang=attributes.get("lang"),
        stamp=attributes.get(languages[0]),
        role=attributes.get("role"), exercise=attributes.get("exercise"),
        reference=attributes.get("reference"), tags=tuple(attributes.get("tags", ())),
        differs=attributes.get("differs"),
    ), []  # fmt: skip


Problem = tuple[str, str, str]


def _problems(
    written: str, kind: str, attributes: Mapping[str, Any], languages: Sequence[str]
) -> list[Problem]:
    """Everything wrong with a header, as (rule, message, mend)."""
    if "incorrectly_encoded_metadata" in attributes or kind == "raw":
        mend = 'write name="value" or tags=["a", "b"], one space between'
        return [("cell-header", f"the attributes cannot be read: {written}", mend)]
    known = (*ATTRIBUTES, languages[0])
    problems: list[Problem] = []
    for name, value in attributes.items():
        if name not in known:
            message = f"unknown attribute {name!r} in: {written}"
            problems.append(("unknown-attribute", message, f"use only {', '.join(known)}"))
        elif name == "tags" and not _are_tags(value):
            message = f"tags={value!r} is not a list of words"
            problems.append(("attribute-type", message, 'write tags=["a", "b"]'))
        elif name != "tags" and not isinstance(value, str):
            message = f"{name}={value!r} is not a string"
            problems.append(("attribute-type", message, f'write {name}="..."'))
        if len(re.findall(rf"(?<!\S){re.escape(name)}\s*=", written)) > 1:
            message = f"{name} is given twice in: {written}"
            problems.append(("attribute-twice", message, "keep one of them"))
    return problems or _value_problems(kind, attributes, languages)


def _value_problems(
    kind: str, attributes: Mapping[str, Any], languages: Sequence[str]
) -> list[Problem]:
    key, lang, role = (attributes.get(name) for name in ("key", "lang", "role"))
    problems: list[Problem] = []
    for name in ("exercise", "reference"):
        if not re.fullmatch(r"[\w-]+", attributes.get(name, "none")):
            message = f"{name}={attributes[name]!r} is not a name"
            problems.append(("name", message, "use letters, digits, hyphens and underscores"))
    if key is None:
        problems.append(("no-key", "a cell without a key", 'add key="..." to its header'))
    elif not KEY.fullmatch(key) or len(key) > LONGEST_KEY:
        mend = f"use lower-case letters, digits, single hyphens, at most {LONGEST_KEY} characters"
        problems.append(("key", f"key={key!r} cannot be a cell id", mend))
    elif key == LIBRARY_KEY:
        message = f"the key {key} belongs to the builder"
        problems.append(("key", message, "choose another key"))
    if lang is not None and lang not in languages:
        problems.append(("unknown-language", f"lang={lang!r}", f"use {' or '.join(languages)}"))
    if role is not None and role not in ROLES:
        problems.append(("unknown-role", f"role={role!r}", f"use one of {', '.join(ROLES)}"))
    elif role is not None and ROLES[role] != kind:
        message = f"role={role!r} on a {kind} cell"
        problems.append(("role-kind", message, f"it belongs on a {ROLES[role]} cell"))
    return problems


def _are_tags(value: Sequence[str]) -> bool:
    """jupytext has made sure of a list of different strings; they must also be there, and words."""
    return bool(value) and all(re.fullmatch(r"[\w-]+", tag) for tag in value)
