"""The contract of sinusoidal positions: every pair of columns turns at its own rate."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.engine.call import Call
from course_lib.contracts.engine.candidate import Breach
from course_lib.contracts.engine.clause import Clause, Contract
from course_lib.contracts.engine.diagnosis import by_catalogue
from course_lib.contracts.engine.judge import formed, independent
from course_lib.contracts.engine.read import finite, tensor_of
from course_lib.contracts.engine.subject import Subject, Terms
from course_lib.contracts.position.mistakes import POSITION_MISTAKES, mistaken_encoding
from course_lib.contracts.position.tables import angles, by_hand, make, probes, tolerance, truth
from course_lib.report import ContractReport
from course_lib.text import say

_DTYPE = (
    "the table is {came}: too coarse for angles; wanted float32 or float64 | "
    "таблица имеет тип {came}: для углов он слишком груб; нужен float32 или float64"
)
_SHAPE = (
    "the table has shape {came}, the call asks for {wanted} | "
    "у таблицы форма {came}, а вызов требует {wanted}"
)
_ZERO = (
    "at position 0 every angle is 0: sin 0 = 0 and cos 0 = 1, in turn | "
    "на позиции 0 все углы равны 0: sin 0 = 0 и cos 0 = 1, попеременно"
)
_ANGLE = (
    "position {p}, columns {even} and {odd}: the angle must be {angle:.6g}; wrong in all: {count} "
    "of {size} numbers | позиция {p}, столбцы {even} и {odd}: угол должен быть {angle:.6g}; всего "
    "неверны {count} из {size} чисел"
)
_PAIR = (
    "in columns {even} and {odd} the squares sum to {came:.6g}, not to 1 | "
    "в столбцах {even} и {odd} сумма квадратов {came:.6g}, а не 1"
)
_PREFIX = (
    "the same position in a table of {longer} rows is another row | "
    "та же позиция в таблице из {longer} строк — другая строка"
)
_DISTANCE = (
    "rows {p} and {q} give another product than rows 0 and {gap}, as far apart | "
    "произведение строк {p} и {q} не то, что у строк 0 и {gap} на том же расстоянии"
)
_SAME_ROWS = (
    "rows {p} and {q} are {came:.2g} apart, where {wanted:.2g} is right | "
    "между строками {p} и {q} расстояние {came:.2g}, а верно {wanted:.2g}"
)
_REMEMBERED = (
    "after calls with other arguments the same call gives another table | "
    "после вызовов с другими аргументами тот же вызов даёт другую таблицу"
)


def _zero(subject: Subject, call: Call, allowed: float) -> float:
    """Row 0: all sines 0, all cosines 1."""
    first = torch.tensor([0.0, 1.0], dtype=torch.float64).repeat(1, call.d_model // 2)
    got, facts = subject.value(call)[:1], partial(say, _ZERO)
    return subject.compare(call, got, first, allowed, kind="first row", facts=facts)


def _prefix(subject: Subject, call: Call, allowed: float) -> float:
    """A longer table begins with the shorter one."""
    longer = call.length + 3
    short, long = subject.value(call), subject.value(call.but(length=longer))
    want, facts = long[: call.length], partial(say, _PREFIX, longer=longer)
    return subject.compare(call, short, want, allowed, kind="prefix", facts=facts)


def _pairs(subject: Subject, call: Call, allowed: float) -> float:
    """sin² + cos² = 1 in each pair."""
    sums = subject.value(call).double().square().unflatten(1, (-1, 2)).sum(-1)

    def facts() -> str:
        row, pair = ((sums - 1).abs() > allowed).nonzero()[0].tolist()
        return say(_PAIR, even=2 * pair, odd=2 * pair + 1, came=sums[row, pair].item())

    want, label = torch.ones_like(sums), "sin² + cos² (pair)"
    return subject.compare(call, sums, want, allowed, kind="pairs", facts=facts, label=label)


def _distance(subject: Subject, call: Call, allowed: float) -> float:
    """The product of two rows is the same wherever the two stand, if as far apart."""
    table, slack = subject.value(call).double(), 1e-5 * call.d_model
    products, places = table @ table.T, torch.arange(call.length)
    want = products[0][(places.unsqueeze(1) - places).abs()]

    def facts() -> str:
        p, q = ((products - want).abs() > slack).nonzero()[0].tolist()
        return say(_DISTANCE, p=p, q=q, gap=abs(p - q))

    label = "row · row"
    return subject.compare(call, products, want, slack, kind="distance", facts=facts, label=label)


def _table(subject: Subject, call: Call, allowed: float) -> float:
    """The whole table, each number within what rounding to float32 explains."""
    table, want, slack = subject.value(call), subject.wanted(call), tolerance(call)

    def facts() -> str:
        wrong = ~((table.double() - want).abs() <= slack)
        row, column = wrong.nonzero()[0].tolist()
        even, angle = column - column % 2, angles(call)[row, column // 2].item()
        count, size = int(wrong.sum()), wrong.numel()
        return say(_ANGLE, p=row, even=even, odd=even + 1, angle=angle, count=count, size=size)

    return subject.compare(call, table, want, slack, facts=facts)


def _closest(table: Tensor) -> float:
    """How far apart the two most similar rows are."""
    return torch.pdist(table.detach().double()).min().item()


def _distinct(subject: Subject, call: Call, allowed: float) -> float:
    """No two rows may be closer than half of what is right."""
    table = subject.value(call).double()
    if call.length < 2:
        return 0.0
    wanted = _closest(subject.wanted(call))
    if _closest(table) >= wanted / 2:
        return 0.0
    apart = torch.cdist(table, table, compute_mode="donot_use_mm_for_euclid_dist")
    apart.fill_diagonal_(torch.inf)
    p, q = divmod(int(apart.argmin()), call.length)
    came = apart[p, q].item()
    fact = say(_SAME_ROWS, p=p, q=q, came=came, wanted=wanted)
    raise Breach("same rows", f"{came:.2g}", f"≥ {wanted / 2:.2g}", facts=fact)


def _between(call: Call) -> list[Call]:
    longer, wider = call.but(length=call.length + 2), call.but(d_model=call.d_model + 2)
    return [longer, call.but(base=7.0), wider.but(base=None)]


def _widest(calls: list[Call]) -> float:
    """What the report shows as allowed: the widest of the tolerances of the calls."""
    return max(tolerance(call).max().item() for call in calls)


def _clauses(subject: Subject) -> list[Clause]:
    forms = [make(*size) for size in ((3, 4), (1, 2), (2, 6), (5, 2), (1, 8), (7, 10))]
    small = [make(*size) for size in ((5, 4), (4, 2), (6, 6), (3, 10))]
    sizes = ((4, 4), (9, 2), (2, 64), (70, 6), (64, 10), (200, 8), (17, 512), (50, 30))
    columns = [make(*size) for size in sizes]
    bases = [make(*n, b) for n in ((5, 4), (40, 12)) for b in (100.0, 2.0, 10_000.0, 1e6, 37.5)]
    bases += [make(5, 4), make(40, 12)]
    far, hand = [make(1300, 6), make(5300, 10), make(33_000, 4)], [make(4, 4)]
    # fmt: off
    return [
        Clause("result_form", "a finite tensor [length, d_model], float32 or float64 | "
               "конечный тензор [length, d_model], float32 или float64", formed, forms),
        Clause("first_position", "position 0 is (0, 1, 0, 1, …): sine, cosine, sine, … | "
               "позиция 0 — это (0, 1, 0, 1, …): синус, косинус, …", _zero, forms, 1e-6),
        Clause("length_free", "a row does not depend on how many rows follow it | "
               "строка не зависит от того, сколько строк после неё", _prefix, small, 2e-6),
        Clause("one_angle", "a pair of columns is sine and cosine of one angle | "
               "пара столбцов — синус и косинус одного угла", _pairs, small, 1e-5),
        Clause("shift_is_rotation", "how alike two rows are depends only on their distance | "
               "сходство двух строк зависит лишь от расстояния между ними",
               _distance, small, 1e-5 * max(call.d_model for call in small)),
        Clause("known_rows", "positions 1 to 3 are those worked out by hand | "
               "позиции 1–3 совпадают с посчитанными вручную", _table, hand, _widest(hand)),
        Clause("every_column", "pair i turns by p / base^(2i/d_model), any d_model | "
               "пара i повёрнута на p / base^(2i/d_model), любой d_model",
               _table, columns, _widest(columns)),
        Clause("base", "base is what the caller says, 10000 if nothing is said | "
               "base такой, как задан, а если не задан, то 10000", _table, bases, _widest(bases)),
        Clause("distinct", "700 positions, 700 different rows | 700 позиций — 700 разных строк",
               _distinct, [make(700, 8)]),
        Clause("far_positions", "right far out: beyond any table, to float32 accuracy | "
               "верно и вдали, за любой таблицей, с точностью float32", _table, far, _widest(far)),
        Clause("independent_results", "the same call, the same table, whatever came between | "
               "тот же вызов — та же таблица, что бы ни было между ними",
               independent(Tensor.zero_), [make(5, 4), make(6, 6, 50.0)]),
    ]
    # fmt: on


def _figures(subject: Subject, measured: dict[str, Any]) -> dict[str, float]:
    return {
        "table_max_error": measured["every_column"],
        "base_max_error": measured["base"],
        "far_max_error": measured["far_positions"],
        "smallest_distance": _closest(subject.candidate(700, 8)),
    }


_FLOATS = (torch.float32, torch.float64)
_TERMS = Terms(
    "sinusoidal_encoding",
    (truth, by_hand),
    finite(
        tensor_of(
            lambda call: [call.length, call.d_model], _FLOATS, misshapen=_SHAPE, mistyped=_DTYPE
        ),
        "table",
    ),
    misses=lambda got, want, call: (got - want).abs(),
    between=_between,
    again=_REMEMBERED,
    agree=1e-9,
    label="table",
)
POSITION = Contract(
    "position",
    _TERMS,
    _clauses,
    by_catalogue(POSITION_MISTAKES, probes, mistaken_encoding()),
    _figures,
)


def check_position_contract(sinusoidal_encoding: Callable[..., Any]) -> ContractReport:
    """Hold a table of sinusoidal positions to its formula, near and far.

        sinusoidal_encoding(length, d_model, *, base=10000.0) -> [length, d_model]
        table[p, 2i] = sin(p / base^(2i/d_model)),   table[p, 2i+1] = cos(p / base^(2i/d_model))

    Angles computed in float32 are accurate enough, those in sixteen bits are not; d_model is even.

    Raises:  ContractViolation when a clause is broken: with a small call and what was measured
    """
    return POSITION.check(sinusoidal_encoding)
