"""Letters of another script that no eye can tell from the right ones, in words, names and code."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from course_build.base.findings import Finding
from course_build.proofreading.languages import LOOK_ALIKES, TABLES, script_of
from course_build.proofreading.pieces import SHARED, Piece
from course_build.proofreading.typography import READ
from course_build.proofreading.words import Words, is_mixed
from course_build.source.code import parse_code

RULE = "look-alike"
SCRIPTS = {table.script for table in TABLES.values()}
NAME_FIELDS = ("id", "attr", "arg", "name")
LETTERS = re.compile(r"\w*[^\W\d_]\w*")
ESCAPE = re.compile(r"\\[abfnrtv]")
OTHER = {**LOOK_ALIKES, **{other: letter for letter, other in LOOK_ALIKES.items()}}


def check_letters(path: str, text: str) -> Iterator[Finding]:
    """Words, in code too, that mix the scripts of the course's languages."""
    if text.isascii():
        return
    in_code = path.endswith(".py")
    for number, line in enumerate(text.split("\n"), 1):
        if not line.isascii():
            for word in LETTERS.finditer(ESCAPE.sub("  ", line) if in_code else line):
                strange = _strange_letters(word[0])
                if strange:
                    message = f"{word[0]!r} mixes alphabets: {strange}"
                    mend = "type the word again in one alphabet"
                    yield Finding(path, number, None, RULE, message, mend)
    if in_code:
        yield from _check_names(path, parse_code(text))


def _strange_letters(word: str) -> str:
    """The letters of a word that are in the rarer of its alphabets; nothing if it has but one."""
    letters = [letter for letter in word if letter.isalpha()]
    scripts = [script_of(letter) for letter in letters]
    if len(SCRIPTS.intersection(scripts)) < 2:
        return ""
    rare = min(sorted(set(scripts)), key=scripts.count)
    there = (one for one, script in zip(letters, scripts, strict=True) if script == rare)
    return f"{rare.capitalize()} are {', '.join(there)}"


def _check_names(path: str, tree: ast.AST) -> Iterator[Finding]:
    """Names in code that look like others: written wholly in Cyrillic letters that seem Latin."""
    for node in ast.walk(tree):
        for name in (getattr(node, field, None) for field in NAME_FIELDS):
            if isinstance(name, str) and name and not name.isascii():
                meant = "".join(OTHER.get(letter, letter) for letter in name)
                if meant.isascii() and not _strange_letters(name):
                    message = f"the name {name!r} is not in Latin letters"
                    yield Finding(path, node.lineno, None, RULE, message, f"type {meant!r} again")


def check_words(pieces: Iterable[Piece], words: Mapping[str, Words]) -> Iterator[Finding]:
    """Words written wholly in the other script's look-alikes, where the text's own is meant."""
    for piece in pieces:
        own = words.get(piece.language)
        if own is None or piece.kind == SHARED:
            continue
        for word in piece.words():
            meant = "".join(OTHER.get(letter, "") for letter in word[0])
            if script_of(word[0][0]) == own.table.script or len(meant) < len(word[0]):
                continue
            if _is_meant(piece, word, meant, words, own):
                message = f"{word[0]!r} is in the other alphabet: {piece.around(*word.span())}"
                yield piece.finding(word.start(), RULE, message, f"type {meant!r} again")


def _is_meant(
    piece: Piece, word: re.Match[str], meant: str, words: Mapping[str, Words], own: Words
) -> bool:
    if is_mixed(meant) or not own.in_dictionary(meant):  # MoE is a name
        return False
    if script_of(meant[0]) != own.table.script:
        return False
    if len(meant) == 1:  # c for с: a word only between words of prose, a name in any other place
        if word[0].isupper() or piece.kind not in READ:
            return False
        before, after = piece.text[: word.start()], piece.text[word.end() :]
        return _ends(before, own) and _ends(after[::-1], own)
    return not any(other.in_dictionary(word[0]) for other in words.values())


def _ends(text: str, own: Words) -> bool:
    """Say whether a text ends with a word in this language's script, then one space."""
    letters: Sequence[str] = text[-2:]
    return len(letters) == 2 and letters[1] in " \n" and script_of(letters[0]) == own.table.script
