"""Calls of a causal attention in lists, their right answers, and what shows a mistake."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from course_lib.contracts.attention.causal_attention_mistakes import CAUSAL_ATTENTION_MISTAKES
from course_lib.contracts.engine.candidate import ContractSubject
from course_lib.contracts.engine.diagnosis import Diagnosis, Probe, diagnose


@dataclass(frozen=True)
class CausalAttentionCase:
    """One text: the queries, keys and values of its positions, d_head numbers each."""

    queries: tuple[tuple[float, ...], ...]
    keys: tuple[tuple[float, ...], ...]
    values: tuple[tuple[float, ...], ...]

    def arguments(self) -> dict[str, Any]:
        """Name the arguments, for a message and for calling again; fresh lists each time."""
        tables = {name: [list(row) for row in getattr(self, name)] for name in self._names}
        return {**tables, "d_head": self.d_head}

    _names = ("queries", "keys", "values")

    @property
    def d_head(self) -> int:
        """The width of a head."""
        return len(self.queries[0])

    def smaller(self) -> Iterator["CausalAttentionCase"]:
        """Leave a position out, then a column; then make the numbers short."""
        tables = [getattr(self, name) for name in self._names]
        for gone in range(len(self.queries) - 1, -1, -1) if len(self.queries) > 1 else ():
            yield CausalAttentionCase(*(table[:gone] + table[gone + 1 :] for table in tables))
        if self.d_head > 1:
            yield CausalAttentionCase(*(tuple(row[:-1] for row in table) for table in tables))
        short = [tuple(tuple(float(round(x)) for x in row) for row in table) for table in tables]
        if short != tables:
            yield CausalAttentionCase(*short)


def causal_attention_case(positions: int, d_head: int, scale: float = 1.0) -> CausalAttentionCase:
    """A text of random numbers; the scores grow with the square of `scale`."""
    rng = np.random.default_rng(1000 * positions + d_head)
    numbers = rng.normal(size=(3, positions, d_head)).round(2)
    numbers[:2] *= scale
    return CausalAttentionCase(*(tuple(map(tuple, table)) for table in numbers.tolist()))


def causal_attention_by_loops(
    queries: list[list[float]], keys: list[list[float]], values: list[list[float]], d_head: int
) -> list[list[float]]:
    """The definition, number by number; log-sum-exp instead of a quotient."""
    output = []
    for i in range(len(queries)):
        scores = [
            math.fsum(queries[i][c] * keys[j][c] for c in range(d_head)) / d_head**0.5
            for j in range(i + 1)
        ]
        top = max(scores)
        log_total = top + math.log(math.fsum(math.exp(score - top) for score in scores))
        weights = [math.exp(score - log_total) for score in scores]
        output.append(
            [math.fsum(weights[j] * values[j][c] for j in range(i + 1)) for c in range(d_head)]
        )
    return output


def causal_attention_by_library(
    queries: list[list[float]], keys: list[list[float]], values: list[list[float]], d_head: int
) -> list[list[float]]:
    """The same by torch's own attention, in float64."""
    q, k, v = (torch.tensor(table, dtype=torch.float64) for table in (queries, keys, values))
    return F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0].tolist()


def explain_causal_attention(subject: ContractSubject) -> Diagnosis:
    """Name the catalogued mistakes that give the candidate's numbers on fresh texts."""
    cases = [causal_attention_case(*sizes) for sizes in ((4, 3), (6, 5), (1, 2), (5, 2))]
    probes = [Probe(partial(_causal_attention_probed, case=case)) for case in cases]
    loud = causal_attention_case(3, 3, scale=60.0)
    probes.append(Probe(partial(_causal_attention_probed, case=loud), core=False))
    reference = causal_attention_by_loops
    return diagnose(subject.candidate, CAUSAL_ATTENTION_MISTAKES, probes, reference)


def _causal_attention_probed(attention: Callable[..., Any], case: CausalAttentionCase) -> Any:
    rows = attention(*case.arguments().values())
    return torch.tensor([[float(x) for x in row] for row in rows], dtype=torch.float64)
