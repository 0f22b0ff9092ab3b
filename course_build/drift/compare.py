"""How outputs differ from those accepted: a change of a digit is seen, rounding is not.

Text must be equal, blanks beside numbers apart. A number must be equal, except that another
processor, which adds in another order, may move the last digits of a 32-bit sum:

- by ROUNDING of its value: less than any change in its first five digits;
- freely, when it is itself a rounding error, written with an exponent and below one of RESIDUES:
  an error that 64 bits explain must stay one that 64 bits explain. What stands after ≤ or < is a
  bound and no error.
"""

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from course_build.drift.accepted import NOTHING, Shown, by_cell
from course_build.text.word_diff import PLAIN, word_diff

ROUNDING = 9e-6  # of the value: some eighty steps of a 32-bit number
RESIDUES = (1e-9, 2e-5)  # what is at most this is a rounding error of 64 bits, of 32 bits
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)")
BLANKS = re.compile(r"[ \t]+")
BOUND = re.compile(r"(?:≤|<=?) *$")


@dataclass(frozen=True)
class Change:
    """One cell that differs: what happened to it, and the lines that tell."""

    key: str
    what: str
    lines: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join([f'cell "{self.key}": {self.what}', *(f"    {x}" for x in self.lines)])


def compare(before: Sequence[Shown], after: Sequence[Shown]) -> list[Change]:
    """Say cell by cell how the outputs differ; an empty list says that they do not."""
    old, new = by_cell(before), by_cell(after)
    changes = [Change(key, "shows nothing any more") for key in old if key not in new]
    for key, outputs in new.items():
        if key not in old:
            lines = [line for output in outputs for line in (output.kind, *_lines(output.text))]
            changes.append(Change(key, "shows something new", tuple(f"+ {x}" for x in lines)))
        else:
            changes += _changed(key, old[key], outputs)
    common = [key for key in old if key in new]
    return [*changes, *_moved(common, [key for key in new if key in old])]


def _changed(key: str, old: Sequence[Shown], new: Sequence[Shown]) -> Iterator[Change]:
    """Compare one cell's outputs one by one."""
    kinds = [", ".join(output.kind for output in outputs) for outputs in (old, new)]
    if kinds[0] != kinds[1]:
        yield Change(key, f"showed {kinds[0]}, now {kinds[1]}")
        return
    told = [line for a, b in zip(old, new, strict=True) for line in _differing(a.text, b.text)]
    if told:
        yield Change(key, "prints something else", tuple(told))


def _moved(old: Sequence[str], new: Sequence[str]) -> Iterator[Change]:
    """Name the cells that come in another order."""
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for kind, _, _, first, last in matcher.get_opcodes():
        if kind in ("insert", "replace"):
            place = f'after "{new[first - 1]}"' if first else "first"
            for key in new[first:last]:
                yield Change(key, f"moved: it now comes {place}")


def _differing(before: str, after: str) -> Iterator[str]:
    """Show each line that differs, with its numbers or its words marked."""
    old, new = _lines(before), _lines(after)
    matcher = difflib.SequenceMatcher(None, *([skeleton(x) for x in s] for s in (old, new)), False)
    for kind, i1, i2, j1, j2 in matcher.get_opcodes():
        for a, b in zip_longest(old[i1:i2], new[j1:j2]):
            if kind == "equal":
                marked = _numbers_marked(a, b)
                if marked:
                    yield f"~ {marked}"
            elif a is None:
                yield f"+ {b}"
            elif b is None:
                yield f"- {a}"
            else:
                yield f"~ {word_diff(a, b, PLAIN)}"


def _numbers_marked(before: str, after: str) -> str:
    """Mark the numbers that differ between two lines of one skeleton; "" when none does."""
    pieces, end, differs = [], 0, False
    for a, b in zip(NUMBER.finditer(before), NUMBER.finditer(after), strict=True):
        pieces += [after[end : b.start()], b[0]]
        end = b.end()
        if not same_number(a[0], b[0], bound=bool(BOUND.search(before[: a.start()]))):
            pieces[-1] = f"[-{a[0]}-]{{+{b[0]}+}} ({_relative(a[0], b[0])})"
            differs = True
    return "".join([*pieces, after[end:]]) if differs else ""


def skeleton(line: str) -> str:
    """Reduce a line to what must be equal letter by letter: all but its numbers."""
    return BLANKS.sub(" ", NUMBER.sub("0", line))


def same_number(before: str, after: str, *, bound: bool = False) -> bool:
    """Tell whether two printed numbers are one, another processor's rounding aside."""
    if before == after:
        return True
    a, b = _value(before), _value(after)
    if bound or (before + after).strip("-0123456789,") == "":
        return a == b  # a demand, or whole numbers
    if "e" in before + after and _precision(a) == _precision(b) != len(RESIDUES):
        return True
    return abs(a - b) <= ROUNDING * max(abs(a), abs(b))


def _precision(value: float) -> int:
    """Count the limits of RESIDUES that a value exceeds."""
    return sum(abs(value) > limit for limit in RESIDUES)


def _relative(before: str, after: str) -> str:
    a, b = _value(before), _value(after)
    if a == 0:
        return f"{b:+.2g} from 0"
    change = (b - a) / abs(a)
    return f"{change:+.2%}" if abs(change) >= 1e-4 else f"{change:+.1e} of its value"


def _value(number: str) -> float:
    return float(number.replace(",", ""))


def _lines(text: str) -> list[str]:
    return text.split("\n") if text else []


def difference(base: Sequence[Shown], other: Sequence[Shown]) -> list[Shown]:
    """List what another edition shows in the cells where it shows something else."""
    old, new = by_cell(base), by_cell(other)
    changed = {change.key for change in compare(base, other)}
    gone = [Shown(key, NOTHING) for key in old if key in changed and key not in new]
    return [output for key in new if key in changed for output in new[key]] + gone


def merged(accepted: Sequence[Shown], now: Sequence[Shown]) -> list[Shown]:
    """Take over what is shown now, but leave the accepted text where only rounding differs."""
    changed = {change.key for change in compare(accepted, now)}
    old = by_cell(accepted)
    return [
        output
        for key, outputs in by_cell(now).items()
        for output in (outputs if key in changed else old[key])
    ]
