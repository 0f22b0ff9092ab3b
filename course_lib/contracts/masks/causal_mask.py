"""The contract of the causal mask: who may read whom, with a cache and without."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.engine.call import Call, Calls
from course_lib.contracts.engine.candidate import Breach
from course_lib.contracts.engine.clause import Clause, Contract
from course_lib.contracts.engine.diagnosis import by_catalogue
from course_lib.contracts.engine.judge import formed, independent, refuses
from course_lib.contracts.engine.look import outcome, probed, written_into
from course_lib.contracts.engine.read import tensor_of
from course_lib.contracts.engine.subject import Subject, Terms
from course_lib.contracts.engine.watch import Probe
from course_lib.contracts.masks.mistakes import CAUSAL_MASK_MISTAKES, mistaken_mask
from course_lib.report import ContractReport, Mismatch
from course_lib.text import say

_DTYPE = (
    "the mask is {came}: attention reads only bool as may-read | "
    "маска имеет тип {came}: внимание понимает только bool"
)
_SHAPE = (
    "the mask has shape {came}, the call asks for {wanted} | "
    "у маски форма {came}, а вызов требует {wanted}"
)
_WRONG = "{count} of {size} entries | элементов: {count} из {size}"
_COUNT = "{came} True where {wanted} are right | значений True {came}, а верно {wanted}"


def _shorter(call: Call) -> Iterator[Call]:
    """Halve a size, then take one away; the offset last."""
    for name, size in call.args.items():
        if size > (0 if name == "query_offset" else 1):
            yield from (call.but(**{name: less}) for less in (size // 2, size - 1))


make = Calls("t_q, t_k, *, query_offset", shorter=_shorter)


def by_loops(call: Call) -> Tensor | None:
    """Ask for every pair of positions whether the key lies in the query's future."""
    if call.t_q * call.t_k >= 200:  # a long mask takes too long in Python
        return None
    offset = call.query_offset or 0
    rows = [[key <= query + offset for key in range(call.t_k)] for query in range(call.t_q)]
    return torch.tensor(rows, dtype=torch.bool)


def by_library(call: Call) -> Tensor:
    """Cut a rectangle of ones along a diagonal with torch's own function."""
    return torch.ones(call.t_q, call.t_k, dtype=torch.bool).tril(call.query_offset or 0)


def _between(call: Call) -> list[Call]:
    return [
        call.but(t_q=call.t_q + 1, t_k=call.t_k + 2, query_offset=1),
        call.but(query_offset=0),
    ]


def _compare(
    subject: Subject, call: Call, got: Tensor, want: Tensor, kind: str, facts: str = ""
) -> float:
    """Breach where entries differ; what is measured is how many, not by how much."""
    wrong = got != want
    if not wrong.any():
        return 0.0
    places = [tuple(place) for place in wrong.nonzero()[:3].tolist()]
    shown = tuple(Mismatch("allowed", p, bool(got[p]), bool(want[p])) for p in places)
    counted = say(_COUNT, came=int(got.sum()), wanted=int(want.sum()))
    count = say(_WRONG, count=int(wrong.sum()), size=wrong.numel())
    raise Breach(kind, count, "0", mismatches=shown, facts=facts or counted)


def _right(subject: Subject, call: Call, allowed: float) -> float:
    return _compare(subject, call, subject.value(call), subject.wanted(call), "wrong")


def _rows_of_full(subject: Subject, call: Call, allowed: float) -> float:
    """A step with a cached past must see what the same rows of the full mask see."""
    total = call.t_q + call.query_offset
    full = subject.value(call.but(t_q=total, t_k=total).but(query_offset=None))
    step = subject.value(call.but(t_k=total))
    return _compare(subject, call, step, full[call.query_offset :], "wrong rows")


def _clauses(subject: Subject) -> list[Clause]:
    plain = [make(2, 2), make(1, 1), make(3, 5), make(5, 2)]
    squares = [make(size, size) for size in (2, 3, 5)]
    steps = [make(t_q, offset + t_q, offset) for t_q in (1, 2, 4) for offset in (1, 3, 6)]
    small = [make(t_q, t_k, o) for t_q in range(1, 6) for t_k in range(1, 7) for o in range(8)]
    long = [make(1, 9001, 9000), make(1, 9001, 7), make(3, 5000, 4500), make(2100, 3, 0)]
    # fmt: off
    return [
        Clause("result_form", "a bool tensor of shape [t_q, t_k] | булев тензор формы [t_q, t_k]",
               formed, plain),
        Clause("diagonal", "a token reads itself and the past, never the next token | "
               "токен читает себя и прошлое, но не следующий токен", _right, squares),
        Clause("default_offset", "no query_offset means 0: query 0 stands at position 0 | "
               "без query_offset сдвиг 0: запрос 0 на позиции 0", _right, plain),
        Clause("geometry", "every size and offset: key j is read if j ≤ i + offset | "
               "любые размеры и сдвиги: ключ j виден при j ≤ i + сдвиг", _right, small),
        Clause("cached_rows", "the rows of a cached step are those of the full mask | "
               "строки шага с кэшем — те же строки полной маски", _rows_of_full, steps),
        Clause("long_contexts", "right beyond the size of any stored table | "
               "верно за пределами любой заранее сохранённой таблицы",
               _right, [*long, make(1100, 1100)]),
        Clause("independent_results", "the same call, the same mask, whatever came between | "
               "тот же вызов — та же маска, что бы ни было между ними",
               independent(Tensor.logical_not_, _compare), [*squares, *steps[:3]]),
        Clause("negative_offset", "a negative offset is a ValueError | "
               "отрицательный сдвиг — ValueError",
               refuses(ValueError), [make(2, 3, -1), make(1, 5, -4)]),
    ]
    # fmt: on


def _seen(call: Call, causal_allowed: Callable[..., Any]) -> Any:
    """The mask as bool, also of a candidate that gives one to be added to the scores."""
    mask = outcome(call, causal_allowed)
    if isinstance(mask, Tensor) and mask.is_floating_point() and mask.isinf().any():
        return mask == 0
    return torch.as_tensor(mask).bool() if call.query_offset >= 0 else mask


def _probes(subject: Subject) -> list[Probe]:
    sizes = [(4, 4, 0), (2, 5, 3), (1, 5, 4), (3, 7, 2), (1, 6, 0), (3, 8, 1), (2, 6, 0)]
    return [
        *probed(*(make(*size) for size in sizes), look=_seen),
        *probed(make(2, 3, -1), look=_seen, core=False),
        *probed(make(5, 6, 1), look=written_into(Tensor.logical_not_), core=False),
    ]


def _figures(subject: Subject, measured: dict[str, Any]) -> dict[str, int]:
    """How many keys are readable: in a full mask, in a step without its offset, in one with it."""
    calls = {
        "full_mask_true": make(5, 5),
        "wrong_cache_mask_true": make(1, 5, 0),
        "cache_mask_true": make(1, 5, 4),
    }
    return {name: int(outcome(call, subject.candidate).sum()) for name, call in calls.items()}


_TERMS = Terms(
    "causal_allowed",
    (by_library, by_loops),
    tensor_of(lambda call: [call.t_q, call.t_k], (torch.bool,), misshapen=_SHAPE, mistyped=_DTYPE),
    between=_between,
    again="",  # how many entries differ says more
)
CAUSAL_MASK = Contract(
    "causal_mask",
    _TERMS,
    _clauses,
    by_catalogue(CAUSAL_MASK_MISTAKES, _probes, mistaken_mask()),
    _figures,
)


def check_causal_mask_contract(causal_allowed: Callable[..., Any]) -> ContractReport:
    """Hold a causal mask to its geometry, with a cached past and without.

        causal_allowed(t_q, t_k, *, query_offset=0) -> bool [t_q, t_k], True = may read

    Raises:  ContractViolation when a clause is broken: with a small call and what was measured
    """
    return CAUSAL_MASK.check(causal_allowed)
