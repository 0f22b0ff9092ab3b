"""Calls of a causal mask, their right answers, and the calls on which mistakes show."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.engine.candidate import ContractSubject
from course_lib.contracts.engine.diagnosis import Diagnosis, Probe, diagnose
from course_lib.contracts.masks.mistakes import CAUSAL_MASK_MISTAKES


@dataclass(frozen=True)
class MaskCase:
    """One call of a causal mask; `query_offset` None leaves the argument out."""

    t_q: int
    t_k: int
    query_offset: int | None = None

    def arguments(self) -> dict[str, Any]:
        """Name the arguments, for a message and for calling again."""
        named = {"t_q": self.t_q, "t_k": self.t_k}
        return named if self.query_offset is None else {**named, **self.keywords}

    @property
    def keywords(self) -> dict[str, int]:
        """The arguments by name."""
        return {} if self.query_offset is None else {"query_offset": self.query_offset}

    def smaller(self) -> Iterator["MaskCase"]:
        """Halve a size, then take one away; the offset last."""
        for name in ("t_q", "t_k", "query_offset"):
            size = getattr(self, name)
            least = 0 if name == "query_offset" else 1
            if size is not None and size > least:
                yield from (replace(self, **{name: less}) for less in (size // 2, size - 1))


def mask_by_loops(case: MaskCase) -> Tensor:
    """Ask for every pair of positions whether the key lies in the query's future."""
    offset = case.query_offset or 0
    rows = [[key <= query + offset for key in range(case.t_k)] for query in range(case.t_q)]
    return torch.tensor(rows, dtype=torch.bool)


def mask_by_library(case: MaskCase) -> Tensor:
    """Cut a rectangle of ones along a diagonal with torch's own function."""
    ones = torch.ones(case.t_q, case.t_k, dtype=torch.bool)
    return ones.tril(diagonal=case.query_offset or 0)


def explain_mask(subject: ContractSubject) -> Diagnosis:
    """Name the catalogued mistakes that give the candidate's masks on fresh calls."""
    sizes = (
        (4, 4, 0),
        (2, 5, 3),
        (1, 5, 4),
        (3, 7, 2),
        (1, 6, 0),
        (3, 8, 1),
        (2, 6, 0),
        (2, 3, -1),
    )
    probes = [
        Probe(partial(_mask_probed, case=MaskCase(*size)), core=size[2] >= 0) for size in sizes
    ]
    probes.append(Probe(_mask_written_into, core=False))
    return diagnose(subject.candidate, CAUSAL_MASK_MISTAKES, probes, _mask_reference)


def _mask_probed(causal_allowed: Callable[..., Any], case: MaskCase) -> Tensor:
    mask = causal_allowed(case.t_q, case.t_k, **case.keywords)
    if isinstance(mask, torch.Tensor) and mask.is_floating_point() and mask.isinf().any():
        return mask == 0  # made to be added to the scores
    return torch.as_tensor(mask).bool() if case.query_offset >= 0 else mask


def _mask_written_into(causal_allowed: Callable[..., Any]) -> bool:
    """Whether writing into one result changes the next."""
    first = causal_allowed(5, 6, query_offset=1)
    kept = first.clone()
    first.logical_not_()
    return torch.equal(causal_allowed(5, 6, query_offset=1), kept)


def _mask_reference(t_q: int, t_k: int, *, query_offset: int = 0) -> Tensor:
    if query_offset < 0:
        raise ValueError("query_offset must not be negative")
    return mask_by_loops(MaskCase(t_q, t_k, query_offset))
