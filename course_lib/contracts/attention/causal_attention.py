"""The contract of causal attention in plain lists: the right past, and nothing but the past."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.contracts.attention.causal_attention_mistakes import CAUSAL_ATTENTION_MISTAKES
from course_lib.contracts.engine.call import Given
from course_lib.contracts.engine.candidate import Breach, call_candidate, finite_wanted
from course_lib.contracts.engine.clause import Clause, Contract
from course_lib.contracts.engine.diagnosis import Probe, by_catalogue
from course_lib.contracts.engine.look import probed
from course_lib.contracts.engine.read import malformed
from course_lib.contracts.engine.subject import Subject, Terms
from course_lib.report import ContractReport, Mismatch
from course_lib.text import say

_FACTS = {
    "not_rows": "the result is a {came}, the text asks for {wanted} | "
    "результат — {came}, а текст требует {wanted}",
    "lengths": "the rows hold {came} numbers, the text asks for {wanted} | "
    "в строках чисел: {came}, а текст требует {wanted}",
    "shape": "the result has shape {came}, the text asks for {wanted} | "
    "у результата форма {came}, а текст требует {wanted}",
    "leak": "only later positions were changed, and this output moved | "
    "изменены только более поздние позиции, а этот выход сдвинулся",
    "edited": "{name} was changed by the call: work on a copy | "
    "вызов изменил {name}: работайте с копией",
}
_ERROR = 1e-9  # what doubles may lose in a sum, whichever way it is taken

# ---------------------------------------------------------------- texts and what is right

Rows = list[list[float]]
_TABLES = ("queries", "keys", "values")


@dataclass(frozen=True)
class CausalText:
    """One text: the queries, keys and values of its positions, as rows that nobody can change.

    The engine's own call copies a list, but not the lists in it.
    """

    queries: tuple[tuple[float, ...], ...]
    keys: tuple[tuple[float, ...], ...]
    values: tuple[tuple[float, ...], ...]
    # worked out of this text once
    kept: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def arguments(self) -> dict[str, Any]:
        """Name the arguments, for a message and for calling again; fresh lists each time."""
        tables = {name: [list(row) for row in getattr(self, name)] for name in _TABLES}
        return {**tables, "d_head": len(self.queries[0])}

    def fresh(self) -> Given:
        """The arguments for one call."""
        return Given(self.arguments(), frozenset())

    def smaller(self) -> Iterator["CausalText"]:
        """Leave a position out, then a column; then make the numbers short."""
        tables = [getattr(self, name) for name in _TABLES]
        for gone in range(len(self.queries) - 1, -1, -1) if len(self.queries) > 1 else ():
            yield CausalText(*(table[:gone] + table[gone + 1 :] for table in tables))
        if len(self.queries[0]) > 1:
            yield CausalText(*(tuple(row[:-1] for row in table) for table in tables))
        short = [tuple(tuple(float(round(x)) for x in row) for row in table) for table in tables]
        if short != tables:
            yield CausalText(*short)


def drawn(positions: int, d_head: int, scale: float = 1.0) -> CausalText:
    """A text of random numbers; the scores grow with the square of `scale`."""
    rng = np.random.default_rng(1000 * positions + d_head)
    numbers = rng.normal(size=(3, positions, d_head)).round(2)
    numbers[:2] *= scale
    return CausalText(*(tuple(map(tuple, table)) for table in numbers.tolist()))


def causal_attention_by_loops(queries: Rows, keys: Rows, values: Rows, d_head: int) -> Rows:
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


def causal_attention_by_library(queries: Rows, keys: Rows, values: Rows, d_head: int) -> Rows:
    """The same by torch's own attention, in float64."""
    q, k, v = (torch.tensor(table, dtype=torch.float64) for table in (queries, keys, values))
    return F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0].tolist()


# ---------------------------------------------------------------- judges


def _rows(subject: Subject, arguments: dict[str, Any]) -> Tensor:
    """Call the candidate; breach unless finite numbers of the right shape come back."""
    rows = call_candidate(subject.candidate, *arguments.values())
    wanted = [len(arguments["queries"]), arguments["d_head"]]
    try:
        table = [[float(number) for number in row] for row in rows]
    except (TypeError, ValueError):
        raise _malformed("not_rows", _spelled(rows), "list[list[float]]") from None
    lengths = [len(row) for row in table]
    if len(set(lengths)) > 1:
        raise _malformed("lengths", lengths, [wanted[1]] * wanted[0])
    table = torch.tensor(table, dtype=torch.float64)
    if list(table.shape) != wanted:
        raise _malformed("shape", list(table.shape), wanted)
    if not table.isfinite().all():
        place = tuple((~table.isfinite()).nonzero()[0].tolist())
        came, told = table[place].item(), finite_wanted()
        wrong = Mismatch("output", place, came, told)
        raise Breach("not finite", str(came), told, mismatches=(wrong,))
    return table


def _spelled(value: Any) -> str:
    """Spell out what lists hold, as list[list[float | NoneType]]."""
    if not isinstance(value, list | tuple):
        return type(value).__name__
    inside = " | ".join(sorted({_spelled(item) for item in value}))
    return f"{type(value).__name__}[{inside}]"


def _malformed(kind: str, came: Any, wanted: Any) -> Breach:
    return malformed(kind, _FACTS[kind], str(wanted), came=came, wanted=wanted)


def _formed(subject: Subject, text: CausalText, allowed: float) -> float:
    _rows(subject, text.arguments())
    return 0.0


def _right(subject: Subject, text: CausalText, allowed: float) -> float:
    got, want = _rows(subject, text.arguments()), subject.wanted(text)
    return subject.compare(text, got, want, allowed)


def _future_unread(subject: Subject, text: CausalText, allowed: float) -> float:
    """Change the last position beyond recognition: every other output stays."""
    changed = text.arguments()
    if len(text.queries) < 2:
        return 0.0
    before = _rows(subject, text.arguments())[:-1]
    for name, number in zip(_TABLES, (3.0, -5.0, 900.0), strict=True):
        changed[name][-1] = [number] * changed["d_head"]
    got, facts = _rows(subject, changed)[:-1], say(_FACTS["leak"])
    return subject.compare(text, got, before, allowed, kind="leak", facts=facts)


def _again(subject: Subject, text: CausalText, allowed: float) -> float:
    first = _rows(subject, text.arguments())
    _rows(subject, drawn(4, 2).arguments())
    again = _rows(subject, text.arguments())
    return subject.compare(text, again, first, allowed, kind="remembered")


def _unedited(subject: Subject, text: CausalText, allowed: float) -> float:
    given = text.arguments()
    _rows(subject, given)
    for name, table in text.arguments().items():
        if given[name] != table:
            raise Breach("edited", name, "", facts=say(_FACTS["edited"], name=name))
    return 0.0


# ---------------------------------------------------------------- the contract


def _clauses(subject: Subject) -> list[Clause]:
    sizes = [(positions, d_head) for positions in (1, 2, 3, 5, 8) for d_head in (1, 2, 3, 5)]
    texts = [drawn(*each) for each in sizes]
    firsts = [drawn(1, d_head) for d_head in (1, 2, 3, 7)]
    longer = [drawn(*each) for each in ((40, 3), (3, 17), (70, 2))]
    loud = [drawn(*each, scale=s) for each in sizes[1:] for s in (30.0, 200.0)]
    # fmt: off
    return [
        Clause("result_form", "one list of d_head finite numbers per position | "
               "по списку из d_head конечных чисел на каждую позицию", _formed, texts[:8]),
        Clause("first_position", "the first position reads only itself: its own value | "
               "первая позиция читает только себя: на выходе её же значение",
               _right, firsts, _ERROR),
        Clause("values", "the mixture of values, by loops and by the library | "
               "смесь значений — по циклам и по библиотеке", _right, [*texts, *longer], _ERROR),
        Clause("future_unread", "whatever comes later, an output stays as it was | "
               "что бы ни шло дальше, выход остаётся прежним", _future_unread, texts[4:], _ERROR),
        Clause("large_scores", "scores in the thousands neither overflow nor go astray | "
               "при оценках в тысячи ничего не переполняется", _right, loud, _ERROR),
        Clause("repeatable", "the same text, the same result, whatever came between | "
               "тот же текст — тот же результат, что бы ни было между",
               _again, texts[4:12], _ERROR),
        Clause("arguments_unchanged", "queries, keys and values are left as they were | "
               "queries, keys и values остаются прежними", _unedited, texts[2:9]),
    ]
    # fmt: on


def _probes(subject: Subject) -> list[Probe]:
    """Fresh texts on which mistakes show."""

    def table(text: CausalText, attention: Any) -> torch.Tensor:
        rows = text.fresh().to(attention)
        return torch.tensor([[float(x) for x in row] for row in rows], dtype=torch.float64)

    texts = [drawn(*sizes) for sizes in ((4, 3), (6, 5), (1, 2), (5, 2))]
    loud = drawn(3, 3, scale=60.0)
    return [*probed(*texts, look=table), *probed(loud, look=table, core=False)]


def _reference(attention: Callable[..., Rows]) -> Callable[[CausalText], Tensor]:
    return lambda text: torch.tensor(attention(**text.arguments()), dtype=torch.float64)


_TERMS = Terms(
    "causal_attention",
    (_reference(causal_attention_by_loops), _reference(causal_attention_by_library)),
    misses=lambda got, want, text: (got - want).abs(),
    label="output",
)
CAUSAL_ATTENTION = Contract(
    "causal_attention",
    _TERMS,
    _clauses,
    by_catalogue(CAUSAL_ATTENTION_MISTAKES, _probes, causal_attention_by_loops),
    {"output_max_error": ("values", "large_scores"), "leak": "future_unread"},
)


def check_causal_attention_contract(causal_attention: Callable[..., Any]) -> ContractReport:
    """Hold a causal attention of one head, in plain lists, to its definition.

        causal_attention(queries, keys, values, d_head) -> T lists of d_head numbers

    Raises:  ContractViolation when a clause is broken: with a small text and what was measured
    """
    return CAUSAL_ATTENTION.check(causal_attention)
