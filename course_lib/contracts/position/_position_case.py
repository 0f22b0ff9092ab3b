"""Calls of a sinusoidal encoding, their right tables, and the calls on which mistakes show."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.engine.candidate import ContractSubject
from course_lib.contracts.engine.diagnosis import Diagnosis, Probe, diagnose
from course_lib.contracts.position.mistakes import POSITION_MISTAKES

POSITION_BASE = 10_000.0


@dataclass(frozen=True)
class PositionCase:
    """One call of a sinusoidal encoding; `base` None leaves the argument out."""

    length: int
    d_model: int
    base: float | None = None

    def arguments(self) -> dict[str, Any]:
        """Name the arguments, for a message and for calling again."""
        return {"length": self.length, "d_model": self.d_model, **self.keywords}

    @property
    def keywords(self) -> dict[str, float]:
        """The arguments by name."""
        return {} if self.base is None else {"base": self.base}

    def smaller(self) -> Iterator["PositionCase"]:
        """Leave the base out, take fewer columns, then fewer rows."""
        if self.base is not None:
            yield replace(self, base=None)
        for pairs in (self.d_model // 4, self.d_model // 2 - 1):
            if pairs > 0:
                yield replace(self, d_model=2 * pairs)
        near = (self.length - 1,) if self.length <= 600 else ()
        for length in (self.length // 2, self.length * 7 // 8, *near):
            if length > 0:
                yield replace(self, length=length)


def position_angles(case: PositionCase) -> Tensor:
    """How far each pair of columns has turned at each position: [length, d_model / 2]."""
    base = POSITION_BASE if case.base is None else case.base
    share = torch.arange(0, case.d_model, 2, dtype=torch.float64) / case.d_model
    return torch.arange(case.length, dtype=torch.float64).outer(float(base) ** -share)


def position_by_library(case: PositionCase) -> Tensor:
    """Turn the number 1 by every angle in the complex plane; read off sine, then cosine."""
    angles = position_angles(case)
    turned = torch.polar(torch.ones_like(angles), angles)
    return torch.view_as_real(turned).flip(-1).flatten(1)


def position_by_loops(case: PositionCase, position: int) -> list[float]:
    """One row, number by number, from the formula."""
    base = POSITION_BASE if case.base is None else case.base
    row = []
    for column in range(case.d_model):
        even = column - column % 2
        angle = position / math.pow(base, even / case.d_model)
        row.append(math.cos(angle) if column % 2 else math.sin(angle))
    return row


def position_truth(case: PositionCase) -> Tensor:
    """The right table; both references must agree on all rows, or on some of many."""
    table = position_by_library(case)
    rows = range(case.length)
    if case.length > 64:
        rows = sorted({0, 1, 2, 63, case.length // 3, case.length - 1})
    plain = torch.tensor([position_by_loops(case, row) for row in rows], dtype=torch.float64)
    if not (table[list(rows)] - plain).abs().max() <= 1e-9:
        raise RuntimeError(f"the two references for positions disagree on {case}")
    return table


def position_tolerance(case: PositionCase) -> Tensor:
    """What rounding to float32 explains: of the rate, of its product with the position, of both.

    The first pair turns by whole radians, which float32 holds exactly.
    """
    base = POSITION_BASE if case.base is None else case.base
    share = torch.arange(0, case.d_model, 2, dtype=torch.float64) / case.d_model
    roundings = torch.where(share == 0, 0.0, 4 + 2 * abs(math.log(base)) * share)
    slack = 1e-5 + position_angles(case) * roundings * 2.0**-23
    return slack.repeat_interleave(2, dim=1)


def explain_positions(subject: ContractSubject) -> Diagnosis:
    """Name the catalogued mistakes that give the candidate's tables on fresh calls."""
    sizes = ((5, 4, None), (4, 14, 30.0), (3, 16, 500.0), (6, 2, None), (3, 18, 10.0))
    probes = [Probe(partial(_position_probed, case=PositionCase(*size))) for size in sizes]
    probes += [
        Probe(partial(_position_probed, case=PositionCase(50, 8)), core=False),
        Probe(partial(_position_width, length=3), core=False),
        Probe(partial(_position_far, length=400, near=200), core=False),
        Probe(partial(_position_far, length=9000, near=250), core=False),
        Probe(_position_after_another, core=False),
        Probe(_position_written_into, core=False),
    ]
    return diagnose(subject.candidate, POSITION_MISTAKES, probes, _position_reference)


def _position_probed(encoding: Callable[..., Any], case: PositionCase) -> Tensor:
    """The table, lifted so that tables of all widths count as the same."""
    return 300 + encoding(case.length, case.d_model, **case.keywords).double()


def _position_width(encoding: Callable[..., Any], length: int) -> str:
    """Whether the numbers have sixteen bits."""
    return "narrow" if encoding(length, 4).element_size() < 4 else "wide"


def _position_far(encoding: Callable[..., Any], length: int, near: int) -> str:
    """How many of the last 64 rows differ, where the near ones are right but these are not."""
    want = position_by_library(PositionCase(length, 4))
    table = encoding(length, 4).double()
    near = min(near, len(table))
    if list(table.shape[1:]) != [4] or not _position_near(table[:near], want[:near]):
        return "wrong near too"
    if len(table) != length:
        return "too few rows" if len(table) < length else "too many rows"
    if _position_near(table, want, 1e-2):
        return "right"
    return f"{len(table[-64:].unique(dim=0))} rows differ"


def _position_near(table: Tensor, want: Tensor, slack: float = 1e-3) -> bool:
    return table.shape == want.shape and bool(((table - want).abs() < slack).all())


def _position_after_another(encoding: Callable[..., Any]) -> Tensor:
    encoding(3, 10)
    return _position_probed(encoding, PositionCase(6, 10, 77.0))


def _position_written_into(encoding: Callable[..., Any]) -> bool:
    """Whether writing into one table changes the next."""
    first = encoding(5, 6)
    kept = first.clone()
    first.zero_()
    return torch.equal(encoding(5, 6), kept)


def _position_reference(length: int, d_model: int, *, base: float = POSITION_BASE) -> Tensor:
    return position_by_library(PositionCase(length, d_model, base))
