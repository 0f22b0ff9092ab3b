"""Choose anew what the packed files share: `python -m course_build.library.train`.

Every line of every payload changes with it, so it is done seldom: when much of the library was
rewritten. Lines that bring the most runs of letters which other files have too are taken first.
"""

import heapq
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from course_build.library.deflate import WINDOW
from course_build.library.payload import COMMON

RUN = 12  # letters: shorter runs gain little from being there
HEIGHTS = (1, 2, 4, 8)  # lines that are taken together
ROOT = Path(__file__).resolve().parents[2]


def chosen(texts: Iterable[bytes]) -> bytes:
    """The fragments of these texts that serve the others best, the best last: it is nearest."""
    files = [text.split(b"\n") for text in texts]
    counts: Counter[bytes] = Counter()
    for lines in files:
        counts.update(_runs(b"\n".join(lines)))
    pieces = {
        b"\n".join(lines[at : at + height]) + b"\n": None
        for lines in files for at in range(len(lines)) for height in HEIGHTS
    }  # fmt: skip
    covered: set[bytes] = set()

    def worth(piece: bytes) -> float:
        return sum(counts[run] - 1 for run in _runs(piece) - covered) / (len(piece) + 8)

    waiting = [(-worth(piece), piece) for piece in pieces]
    heapq.heapify(waiting)
    taken: list[bytes] = []
    while waiting and sum(map(len, taken)) < WINDOW:
        _, piece = heapq.heappop(waiting)
        now = worth(piece)
        if waiting and now < -waiting[0][0]:  # what was taken since has most of it
            heapq.heappush(waiting, (-now, piece))
        elif now > 0:
            taken.append(piece)
            covered |= _runs(piece)
    return b"".join(reversed(taken))[-WINDOW:]


def _runs(text: bytes) -> set[bytes]:
    return {text[at : at + RUN] for at in range(len(text) - RUN + 1)}


if __name__ == "__main__":
    COMMON.write_bytes(
        chosen(path.read_bytes() for path in sorted(ROOT.glob("course_lib/**/*.py")))
    )
