"""The glossary as a page in each language, beside the notebooks that link to it.

Each term stands under an anchor made of its key. That anchor, and not the one that a reader's
program makes of the heading, is what links name: it is the same in every language and needs no
letters that an address would have to encode.
"""

import unicodedata
from collections.abc import Mapping, Sequence

from course_build.base.chrome import name_language, say
from course_build.base.settings import Settings
from course_build.notebook.glossary_links import PAGE, Place
from course_build.notebook.head import module_number
from course_build.text.glossary import Term, Word


def page_path(language: str) -> str:
    """Where the glossary's page belongs."""
    return f"notebooks/{language}/{PAGE}"


def write_page(
    terms: Sequence[Term],
    language: str,
    settings: Settings,
    uses: Mapping[str, Mapping[str, Place]],
) -> bytes:
    """Write the page; `uses` says for each module in which place it first uses each term."""
    others = [code for code in settings.languages if code != language]
    twins = [f"{say(code, 'glossary')}: [{code}/{PAGE}](../{code}/{PAGE})" for code in others]
    paragraphs = [f"# {say(language, 'glossary')}", *([" · ".join(twins)] if twins else [])]
    paragraphs.append(say(language, "glossary_about"))
    for term in sorted(terms, key=lambda term: collate(_word(term, language, settings).name)):
        word = _word(term, language, settings)
        facts = [*_names(term, word, language, others), *_first_use(term.key, language, uses)]
        paragraphs += [f'<a id="{term.key}"></a>', f"## {word.name}", word.means]
        paragraphs += [" · ".join(facts)] if facts else []
    return ("\n\n".join(paragraphs) + "\n").encode()


def collate(name: str) -> list[float]:
    """The place of a word in the alphabet: ё after е, marks on other letters do not count."""
    letters = [letter for letter in name.casefold() if letter.isalnum() or letter == " "]
    return [ord("е") + 0.5 if letter == "ё" else ord(_plain(letter)) for letter in letters]


def _plain(letter: str) -> str:
    base = unicodedata.normalize("NFD", letter)[0]
    return base if base.isascii() else letter


def _word(term: Term, language: str, settings: Settings) -> Word:
    """The term's word in a language; while a draft has none, the source language's."""
    return term.words.get(language) or term.words[settings.languages[0]]


def _names(term: Term, word: Word, language: str, others: Sequence[str]) -> list[str]:
    """The other names of a term: twins, short forms, identifiers."""
    parts = [
        f"{name_language(code)}: [{term.words[code].name}](../{code}/{PAGE}#{term.key})"
        for code in others
        if code in term.words
    ]
    if word.also:
        parts.append(say(language, "glossary_also", names=", ".join(word.also)))
    if term.identifiers:
        names = ", ".join(f"`{name}`" for name in term.identifiers)
        parts.append(say(language, "glossary_code", names=names))
    return parts


def _first_use(key: str, language: str, uses: Mapping[str, Mapping[str, Place]]) -> list[str]:
    """The way to the first section that uses a term, if any does."""
    for stem in sorted(uses):
        if key in uses[stem]:
            place = uses[stem][key]
            section = f": {place.section}" if place.section else ""
            target = f"{stem}.ipynb#{place.key}"
            number = module_number(stem)
            return [say(language, "glossary_first", number=number, section=section, target=target)]
    return []
