"""Typography: marks and spaces, as one table of patterns for every language.

A pattern finds what is wrong; hidden code and formulas stand in the text as HOLE.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from course_build.base.findings import Finding
from course_build.proofreading.pieces import HOLE, Piece

ALL = ""  # the rules for every language
READ = ("prose", "page")
RUNNING = (*READ, "comment")  # texts without arithmetic in them
WRAPPED = (*READ, "string", "table")  # texts whose lines may break anywhere
EVERYWHERE = (*RUNNING, "string", "table")
NBSP = "\N{NO-BREAK SPACE}"
UNITS = {
    "en": "kB|MB|GB|TB|KiB|MiB|GiB|ms|µs|ns|[MGT]FLOPs?",
    "ru": "кБ|КБ|МБ|ГБ|ТБ|КиБ|МиБ|ГиБ|мс|мкс|нс|с(?=[.,;:)/]|$)|%|[MGT]FLOPs?",
}


@dataclass(frozen=True)
class Mark:
    """What may not stand in a text, and what should."""

    rule: str
    pattern: str
    message: str
    mend: str
    kinds: tuple[str, ...] = EVERYWHERE


MARKS = {
    ALL: (
        Mark("space", rf"(?<=[^\s{HOLE}])[ {NBSP}]{{2,}}(?=[^\s{HOLE}])", "more than one space",
             "write one", RUNNING),
        Mark("space", rf"(?<=\w)[ {NBSP}]+(?:[.:!?](?=\s|$)|[,;](?!\d))",
             "a space before a punctuation mark", "take the space away"),
        Mark("space", r"(?<=[^\W\d_]{2})[,;!?](?=[^\W\d_]{2})", "no space after a punctuation mark",
             "add the space"),
        Mark("ellipsis", r"(?<=\w)\.\.\.", "three points", "write the one character …"),
        Mark("dash", r"(?<=\s)--(?=\s)", "two hyphens stand for a dash", "write a dash"),
        Mark("doubled-word", r"(?i)(?<![\w-])([^\W\d_]{2,})\s+\1(?![\w-])", "a word stands twice",
             "take one away", RUNNING),
    ),
    "en": (
        Mark("quotes", "[“”„«»](?![а-яё])(?<![а-яё].)", "curly quotation marks",
             'write straight ones, as everywhere in the English: "..."'),
        Mark("quotes", "[‘’]", "a curly apostrophe", "write a straight one: '"),
        Mark("dash", r"(?<=[a-z]{2}) [-–—] (?=[a-z]{2})|(?<=\w)—(?=\w)", "a dash",
             "use a colon, a comma or a new sentence, as everywhere in the English", RUNNING),
        Mark("number", r"(?<![\d,.])\d+,\d{1,2}(?![\d,])", "a decimal comma", "write a point"),
        Mark("number", rf"\d(?:{UNITS['en']})(?!\w)", "a number touches its unit",
             "put a space between"),
    ),
    "ru": (
        Mark("quotes", '"', "a straight quotation mark", "write «ёлочки», inside them „лапки“"),
        Mark("quotes", r"“(?=\w)|”|‘|(?<!\w)’|’(?!\w)", "a foreign quotation mark",
             "write «ёлочки», inside them „лапки“"),
        Mark("quotes", "«(?=[^»]*«)", "quotation marks inside others of their kind",
             "write the inner ones „лапки“"),
        Mark("quotes", r"„(?=[^»]*(?:«|\Z))", "inner quotation marks without outer ones",
             "write «ёлочки»"),
        Mark("quotes", r"«(?=[^»]*\Z)", "a quotation that does not end", "add the closing »"),
        Mark("dash", rf"(?<=[^\s{NBSP}])[ \n]+—", "a dash that may begin a line",
             "put a no-break space before the dash", WRAPPED),
        Mark("dash", r"(?<=\S)—|—(?!\s)", "a dash without spaces",
             "put a no-break space before it and a space after it"),
        Mark("dash", rf"(?<=[\w»){HOLE}]),?\s[-–]\s(?=[«а-яё])", "a hyphen or a short dash",
             "write — with a no-break space before it", RUNNING),
        Mark("dash", r"(?<=[а-яё]{2})\s[-–]\s(?=[а-яё]{2})", "a hyphen or a short dash",
             "write — with a no-break space before it", ("string", "table")),
        Mark("dash", r"(?<![\w.,-])\d+-\d+(?![\w-])", "a hyphen in a range of numbers",
             "write –"),
        Mark("number", r"(?<![\d.])(?<![A-Za-z] )\d+\.\d+(?!\d|\.\d)", "a decimal point",
             "write a comma", READ),
        Mark("number", rf"\d ?(?:{UNITS['ru']})(?!\w)", "a number may part from its unit",
             "put a no-break space between"),
    ),
}  # fmt: skip


def check_typography(pieces: Iterable[Piece]) -> Iterator[Finding]:
    """Every mark that may not stand where it stands."""
    for piece in pieces:
        for mark in (*MARKS[ALL], *MARKS.get(piece.language, ())):
            if piece.kind in mark.kinds:
                for found in re.finditer(mark.pattern, piece.text):
                    message = f"{mark.message}: {piece.around(*found.span())}"
                    yield piece.finding(found.start(), mark.rule, message, mark.mend)
