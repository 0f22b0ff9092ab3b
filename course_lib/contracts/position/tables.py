"""Calls of a sinusoidal encoding, their right tables, and the calls on which mistakes show."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.engine.call import Call, Calls
from course_lib.contracts.engine.look import Look, outcome, probed, written_into
from course_lib.contracts.engine.subject import Subject
from course_lib.contracts.engine.watch import Probe

# Positions 0 to 3 of d_model = 4, base = 10000, worked out by hand: sin and cos of p and of p/100.
_BY_HAND = (
    (0.0, 1.0, 0.0, 1.0),
    (0.8414709848, 0.5403023059, 0.0099998333, 0.9999500004),
    (0.9092974268, -0.4161468365, 0.0199986667, 0.9998000067),
    (0.1411200081, -0.9899924966, 0.0299955002, 0.9995500337),
)


def _shorter(call: Call) -> Iterator[Call]:
    """Leave the base out, take fewer columns, then fewer rows."""
    if call.base is not None:
        yield call.but(base=None)
    for pairs in (call.d_model // 4, call.d_model // 2 - 1):
        if pairs > 0:
            yield call.but(d_model=2 * pairs)
    # row by row would take too long where a table goes wrong far out
    near = (call.length - 1,) if call.length <= 600 else ()
    for length in (call.length // 2, call.length * 7 // 8, *near):
        if length > 0:
            yield call.but(length=length)


make = Calls("length, d_model, *, base", shorter=_shorter)


def _base(call: Call) -> float:
    return 10_000.0 if call.base is None else float(call.base)


def _share(call: Call) -> Tensor:
    """The exponent of each pair of columns."""
    return torch.arange(0, call.d_model, 2, dtype=torch.float64) / call.d_model


def angles(call: Call) -> Tensor:
    """How far each pair of columns has turned at each position: [length, d_model / 2]."""
    return torch.arange(call.length, dtype=torch.float64).outer(_base(call) ** -_share(call))


def by_library(call: Call) -> Tensor:
    """Turn the number 1 by every angle in the complex plane; read off sine, then cosine."""
    turn = angles(call)
    turned = torch.polar(torch.ones_like(turn), turn)
    return torch.view_as_real(turned).flip(-1).flatten(1)


def by_loops(call: Call, position: int) -> list[float]:
    """One row, number by number, from the formula."""
    row = []
    for column in range(call.d_model):
        even = column - column % 2
        angle = position / math.pow(_base(call), even / call.d_model)
        row.append(math.cos(angle) if column % 2 else math.sin(angle))
    return row


def truth(call: Call) -> Tensor:
    """The right table; both references must agree on all rows, or on some of many."""
    table = by_library(call)
    rows: Sequence[int] = range(call.length)
    if call.length > 64:  # all the rows of a long table, one by one, take longer than a contract
        rows = sorted({0, 1, 2, 63, call.length // 3, call.length - 1})
    plain = torch.tensor([by_loops(call, row) for row in rows], dtype=torch.float64)
    if not (table[list(rows)] - plain).abs().max() <= 1e-9:
        raise RuntimeError(f"the two references for positions disagree on {call}")
    return table


def by_hand(call: Call) -> Tensor | None:
    """The rows that were worked out by hand, of a table that has no others."""
    if call.length > len(_BY_HAND) or call.d_model != 4 or call.base is not None:
        return None
    return torch.tensor(_BY_HAND[: call.length], dtype=torch.float64)


def tolerance(call: Call) -> Tensor:
    """What rounding to float32 explains: of the rate, of its product with the position, of both.

    The first pair turns by whole radians, which float32 holds exactly.
    """
    share = _share(call)
    roundings = torch.where(share == 0, 0.0, 4 + 2 * abs(math.log(_base(call))) * share)
    slack = 1e-5 + angles(call) * roundings * 2.0**-23
    return slack.repeat_interleave(2, dim=1)


def probes(subject: Subject) -> list[Probe]:
    """Fresh calls on which mistakes show."""
    sizes = [(5, 4), (4, 14, 30.0), (3, 16, 500.0), (6, 2), (3, 18, 10.0)]
    return [
        *probed(*(make(*size) for size in sizes), look=_lifted),
        *probed(make(50, 8), look=_lifted, core=False),
        *probed(make(3, 4), look=_width, core=False),
        *probed(make(400, 4), look=_far(200), core=False),
        *probed(make(9000, 4), look=_far(250), core=False),
        *probed(make(6, 10, 77.0), look=_after_another, core=False),
        *probed(make(5, 6), look=written_into(Tensor.zero_), core=False),
    ]


def _lifted(call: Call, encoding: Callable[..., Any]) -> Tensor:
    """The table, lifted so that tables of float32 and of float64 count as the same."""
    return 300 + outcome(call, encoding).double()


def _width(call: Call, encoding: Callable[..., Any]) -> str:
    """Whether the numbers have sixteen bits."""
    return "narrow" if outcome(call, encoding).element_size() < 4 else "wide"


def _far(near: int) -> Look:
    """How many of the last 64 rows differ, where the near ones are right but these are not."""

    def look(call: Call, encoding: Callable[..., Any]) -> str:
        want, table = by_library(call), outcome(call, encoding).double()
        first = min(near, len(table))
        if table.shape[1:] != want.shape[1:] or not _near(table[:first], want[:first]):
            return "wrong near too"
        if len(table) != call.length:
            return "too few rows" if len(table) < call.length else "too many rows"
        if _near(table, want, 1e-2):
            return "right"
        return f"{len(table[-64:].unique(dim=0))} rows differ"

    return look


def _near(table: Tensor, want: Tensor, slack: float = 1e-3) -> bool:
    return table.shape == want.shape and bool(((table - want).abs() < slack).all())


def _after_another(call: Call, encoding: Callable[..., Any]) -> Tensor:
    encoding(3, call.d_model)
    return _lifted(call, encoding)
