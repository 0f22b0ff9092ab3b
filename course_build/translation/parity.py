"""Prose twins say the same as far as a machine can see: what a stamp cannot prove.

Every translation is compared with the source language, block by block and piece by piece. A
difference that is meant is allowed in the header of the translation, with its reason.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher

from course_build.base.findings import Finding
from course_build.source.allowances import ATTRIBUTE, allow, check_allowances
from course_build.source.cells import Cell
from course_build.source.twins import Unit
from course_build.text.blocks import Block, blocks
from course_build.text.pieces import Piece, pieces
from course_build.text.prose import parse_prose

EMPHASIS = {"strong_open": "bold", "em_open": "italic"}
Match = Callable[[Piece, Piece], bool]


def check_parity(unit: Unit) -> list[Finding]:
    """Compare the prose of every translation with the source text."""
    first = unit.first
    findings = [f for cell in unit.cells for f in check_allowances(cell, first)]
    for cell in unit.cells[1:]:
        if unit.is_stale(str(cell.lang)):
            continue  # its source has changed: that is said, and shown, elsewhere
        found = [*_compare_blocks(cell, first), *_compare_pieces(cell, first)]
        findings += allow(cell, found)
    return findings


def compare_pieces(
    kind: str, cell: Cell, here: Sequence[Piece], first: Cell, there: Sequence[Piece]
) -> list[Finding]:
    """One finding that names everything of this kind that only one of the twins has.

    Each place is compared with the same place: two that changed places are found too.
    """
    extra: list[Piece] = []
    missing: list[Piece] = []
    for place in sorted({piece.place for piece in (*here, *there)}):
        sides = [[piece for piece in side if piece.place == place] for side in (here, there)]
        more, less = _left_over(kind, *sides)
        extra += more
        missing += less
    if not extra and not missing:
        return []
    moved = _moved(extra, missing, MATCHES.get(kind, _same))
    for one, other in moved:
        extra.remove(one)
        missing.remove(other)
    told = [*_lines(extra, cell, first), *_lines(missing, first, cell)]
    told += [
        f"{cell.lang} (line {_line(cell, one)}) has {one.shown}; "
        f"{first.lang} (line {_line(first, other)}) has it in another place"
        for one, other in moved
    ]
    shown = [*extra, *(one for one, _ in moved)]
    return [_finding(kind, cell, shown[0].line if shown else None, told)]


def _left_over(
    kind: str, here: Sequence[Piece], there: Sequence[Piece]
) -> tuple[list[Piece], list[Piece]]:
    """What only one side has of this kind."""
    ours, theirs = ([p for p in side if p.kind == kind] for side in (here, there))
    extra, missing = unmatched(ours, theirs, MATCHES.get(kind, _same))
    if kind == "numbers":
        return _not_in_words(extra, there), _not_in_words(missing, here)
    return extra, missing


def _moved(
    extra: Sequence[Piece], missing: Sequence[Piece], match: Match
) -> list[tuple[Piece, Piece]]:
    """What one place lacks and another has."""
    left, pairs = list(missing), []
    for piece in extra:
        twin = next((other for other in left if match(piece, other)), None)
        if twin is not None:
            left.remove(twin)
            pairs.append((piece, twin))
    return pairs


def _not_in_words(left: Sequence[Piece], other: Sequence[Piece]) -> list[Piece]:
    """The numbers left over, without each 0 that the other text says in words."""
    words = sum(piece.kind == "zeros" for piece in other)
    zeros = [piece for piece in left if piece.same == "0"]
    return [piece for piece in left if piece.same != "0"] + zeros[words:]


def unmatched(
    here: Iterable[Piece], there: Iterable[Piece], match: Match
) -> tuple[list[Piece], list[Piece]]:
    """Pair off what is the same, then what may be a translation; return what is left over."""
    extra, missing = list(here), list(there)
    for agree in (_same, match):
        for piece in tuple(extra):
            twin = next((other for other in missing if agree(piece, other)), None)
            if twin is not None:
                extra.remove(piece)
                missing.remove(twin)
    return extra, missing


def _same(here: Piece, there: Piece) -> bool:
    return here.same == there.same


def _formula_matches(here: Piece, there: Piece) -> bool:
    (marks, ours), (their_marks, theirs) = here.same, there.same
    return marks == their_marks and ours.translates(theirs)


def _image_matches(here: Piece, there: Piece) -> bool:
    return here.same[0] == there.same[0]


MATCHES: dict[str, Match] = {
    "formulas": _formula_matches,
    "images": _image_matches,
}


def _compare_blocks(cell: Cell, first: Cell) -> Iterator[Finding]:
    here, there = blocks(parse_prose(cell.text)), blocks(parse_prose(first.text))
    shapes = _shape(cell), _shape(first)
    if shapes[0] == shapes[1]:
        return
    told: list[str] = []
    lines: list[int] = []
    for what, a, b, c, d in SequenceMatcher(None, *shapes, autojunk=False).get_opcodes():
        if what != "equal":
            lines += [block.line for block in here[a:b]]
            told += [*_block_lines(here[a:b], cell, first), *_block_lines(there[c:d], first, cell)]
    yield _finding("structure", cell, lines[0] if lines else None, told)


def _shape(cell: Cell) -> list[tuple[str, int]]:
    return [(block.what, block.depth) for block in blocks(parse_prose(cell.text))]


def _compare_pieces(cell: Cell, first: Cell) -> Iterator[Finding]:
    here, there = (pieces(parse_prose(c.text), str(c.lang)) for c in (cell, first))
    if _shape(cell) != _shape(first):
        here, there = ([replace(p, place=0) for p in side] for side in (here, there))
    for kind in ("structure", "formulas", "code", "links", "images", "numbers"):
        yield from compare_pieces(kind, cell, here, first, there)
    images = ([piece for piece in side if piece.kind == "images"] for side in (here, there))
    yield from _compare_alt_texts(cell, next(images), first, next(images))
    yield from _compare_emphasis(cell, here, first, there)


def _compare_alt_texts(
    cell: Cell, here: Sequence[Piece], first: Cell, there: Sequence[Piece]
) -> Iterator[Finding]:
    told = []
    for owner, side in ((cell, here), (first, there)):
        told += [
            f"{owner.lang} (line {_line(owner, piece)}): {piece.shown} has no alt text"
            for piece in side
            if not piece.same[1]
        ]
    kept = {piece.same for piece in there}
    told += [
        f"{cell.lang} (line {_line(cell, piece)}): the alt text of {piece.shown} "
        f"is that of {first.lang}: {piece.same[1]}"
        for piece in here
        if piece.same in kept and any(len(word) > 2 for word in _words(piece.same[1]))
    ]
    if told:
        yield _finding("images", cell, here[0].line if here else None, told)


def _compare_emphasis(
    cell: Cell, here: Sequence[Piece], first: Cell, there: Sequence[Piece]
) -> Iterator[Finding]:
    """Bold text is kept; of several words in italics a language may need one more or less."""
    for mark, name in EMPHASIS.items():
        ours, theirs = ([p for p in side if p.same == mark] for side in (here, there))
        apart = abs(len(ours) - len(theirs))
        if apart > 1 or (apart == 1 and (mark == "strong_open" or not ours or not theirs)):
            told = [
                f"{cell.lang} (line {_line(cell, *ours[:1])}) has {len(ours)} {name} passages, "
                f"{first.lang} (line {_line(first, *theirs[:1])}) has {len(theirs)}"
            ]
            yield _finding("emphasis", cell, ours[0].line if ours else None, told)


def _lines(found: Sequence[Piece], owner: Cell, other: Cell) -> list[str]:
    return [
        f"{owner.lang} (line {_line(owner, piece)}) has {piece.shown}; {_lacks(other)}"
        for piece in found
    ]


def _block_lines(found: Sequence[Block], owner: Cell, other: Cell) -> list[str]:
    return [
        f"{owner.lang} (line {_line(owner, block)}) has {block.what} here; {_lacks(other)}"
        for block in found
    ]


def _lacks(cell: Cell) -> str:
    return f"{cell.lang} (from line {cell.line}) lacks it"


def _line(cell: Cell, piece: Piece | Block | None = None) -> int:
    """Where a piece stands in the file; without a piece, where the cell begins."""
    return cell.line if piece is None else cell.text_line + piece.line - 1


def _words(text: str) -> list[str]:
    return [word for word in text.split() if any(c.isalpha() for c in word)]


def _finding(kind: str, cell: Cell, line: int | None, told: Sequence[str]) -> Finding:
    mend = f'make the {kind} of the twins agree, or allow it: {ATTRIBUTE}="{kind}: reason"'
    return cell.finding(f"parity-{kind}", "\n".join(told), mend, line=line)
