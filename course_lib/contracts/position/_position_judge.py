"""Judge one table of positions: its form, its first row, its angles, its neighbours."""

from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.engine.candidate import (
    Breach,
    ContractSubject,
    call_candidate,
    finite_wanted,
)
from course_lib.contracts.position._position_case import (
    PositionCase,
    position_angles,
    position_tolerance,
    position_truth,
)
from course_lib.report import Mismatch
from course_lib.text import localized

_POSITION_FACTS = {
    "not_tensor": {
        "en": "the result is a {came}, not a torch.Tensor",
        "ru": "результат имеет тип {came}, а нужен torch.Tensor",
    },
    "dtype": {
        "en": "the table is {came}: too coarse for angles; wanted float32 or float64",
        "ru": "таблица имеет тип {came}: для углов он слишком груб; нужен float32 или float64",
    },
    "shape": {
        "en": "the table has shape {came}, the call asks for {wanted}",
        "ru": "у таблицы форма {came}, а вызов требует {wanted}",
    },
    "not_finite": {
        "en": "{count} of {size} numbers are NaN or infinite",
        "ru": "NaN или бесконечности: {count} из {size} чисел",
    },
    "zero": {
        "en": "at position 0 every angle is 0: sin 0 = 0 and cos 0 = 1, in turn",
        "ru": "на позиции 0 все углы равны 0: sin 0 = 0 и cos 0 = 1, попеременно",
    },
    "angle": {
        "en": "position {p}, columns {even} and {odd}: the angle must be {angle:.6g}; "
        "wrong in all: {count} of {size} numbers",
        "ru": "позиция {p}, столбцы {even} и {odd}: угол должен быть {angle:.6g}; "
        "всего неверны {count} из {size} чисел",
    },
    "pair": {
        "en": "in columns {even} and {odd} the squares sum to {came:.6g}, not to 1",
        "ru": "в столбцах {even} и {odd} сумма квадратов {came:.6g}, а не 1",
    },
    "prefix": {
        "en": "the same position in a table of {longer} rows is another row",
        "ru": "та же позиция в таблице из {longer} строк — другая строка",
    },
    "distance": {
        "en": "rows {p} and {q} give another product than rows 0 and {gap}, as far apart",
        "ru": "произведение строк {p} и {q} не то, что у строк 0 и {gap} на том же расстоянии",
    },
    "same_rows": {
        "en": "rows {p} and {q} are {came:.2g} apart, where {wanted:.2g} is right",
        "ru": "между строками {p} и {q} расстояние {came:.2g}, а верно {wanted:.2g}",
    },
    "shared": {
        "en": "the caller wrote into an earlier result, and it came back: copy the stored table",
        "ru": "записанное в прежний результат оказалось в новом: отдавайте копию хранимой таблицы",
    },
    "remembered": {
        "en": "after calls with other arguments the same call gives another table",
        "ru": "после вызовов с другими аргументами тот же вызов даёт другую таблицу",
    },
}

# Positions 0 to 3 of d_model = 4, base = 10000, worked out by hand: sin and cos of p and of p/100.
_POSITION_BY_HAND = (
    (0.0, 1.0, 0.0, 1.0),
    (0.8414709848, 0.5403023059, 0.0099998333, 0.9999500004),
    (0.9092974268, -0.4161468365, 0.0199986667, 0.9998000067),
    (0.1411200081, -0.9899924966, 0.0299955002, 0.9995500337),
)


def position_call(subject: ContractSubject, case: PositionCase) -> Tensor:
    """Call the candidate; breach unless a finite float tensor of the right shape comes back."""
    table = call_candidate(subject.candidate, case.length, case.d_model, **case.keywords)
    wanted = [case.length, case.d_model]
    if not isinstance(table, Tensor):
        raise _position_malformed("not_tensor", came=type(table).__name__, wanted="torch.Tensor")
    if table.dtype not in (torch.float32, torch.float64):
        raise _position_malformed("dtype", came=table.dtype, wanted="torch.float32, float64")
    if list(table.shape) != wanted:
        raise _position_malformed("shape", came=list(table.shape), wanted=wanted)
    finite = torch.isfinite(table)
    if not finite.all():
        place = tuple((~finite).nonzero()[0].tolist())
        got, count = table[place].item(), int((~finite).sum())
        raise Breach(
            "not finite",
            str(got),
            finite_wanted(),
            mismatches=(Mismatch("table", place, got, finite_wanted()),),
            facts=localized(_POSITION_FACTS["not_finite"], count=count, size=table.numel()),
            clause="result_form",
        )
    return table.detach()


def _position_malformed(fact: str, **values: Any) -> Breach:
    text = localized(_POSITION_FACTS[fact], **values)
    came, wanted = str(values["came"]), str(values["wanted"])
    return Breach(fact, came, wanted, facts=text, clause="result_form")


def _position_compare(
    got: Tensor, want: Tensor, slack: Tensor | float, kind: str, facts: str = "", name: str = ""
) -> float:
    """Return the largest error; breach where one is over its own slack."""
    slack = torch.as_tensor(slack, dtype=torch.float64).expand(want.shape)
    error = (got.double() - want).abs()
    wrong = ~(error <= slack)
    if not wrong.any():
        return error.max().item()
    places = [tuple(place) for place in wrong.nonzero()[:3].tolist()]
    mismatches = tuple(
        Mismatch(name or "table", p, got.double()[p].item(), want[p].item()) for p in places
    )
    most, allowed = error[wrong].max().item(), slack[places[0]].item()
    raise Breach(kind, most, allowed, mismatches=mismatches, facts=facts)


def judge_position_form(subject: ContractSubject, case: PositionCase) -> float:
    """The call returns what it must."""
    position_call(subject, case)
    return 0.0


def judge_position_zero(subject: ContractSubject, case: PositionCase) -> float:
    """Row 0: all sines 0, all cosines 1."""
    first = position_call(subject, case)[:1]
    want = torch.tensor([0.0, 1.0], dtype=torch.float64).repeat(1, case.d_model // 2)
    facts = localized(_POSITION_FACTS["zero"])
    return _position_compare(first, want, 1e-6, "first row", facts)


def judge_position_prefix(subject: ContractSubject, case: PositionCase) -> float:
    """A longer table begins with the shorter one."""
    longer = case.length + 3
    short = position_call(subject, case)
    long = position_call(subject, PositionCase(longer, case.d_model, case.base))
    facts = localized(_POSITION_FACTS["prefix"], longer=longer)
    return _position_compare(short, long[: case.length].double(), 2e-6, "prefix", facts)


def judge_position_pairs(subject: ContractSubject, case: PositionCase) -> float:
    """sin² + cos² = 1 in each pair."""
    table = position_call(subject, case).double()
    sums = table.square().unflatten(1, (-1, 2)).sum(-1)
    off = (sums - 1).abs()
    if off.max() <= 1e-5:
        return off.max().item()
    row, pair = divmod(int((off > 1e-5).flatten().nonzero()[0]), case.d_model // 2)
    facts = localized(
        _POSITION_FACTS["pair"], even=2 * pair, odd=2 * pair + 1, came=sums[row, pair].item()
    )
    return _position_compare(
        sums, torch.ones_like(sums), 1e-5, "pairs", facts, name="sin² + cos² (pair)"
    )


def judge_position_distance(subject: ContractSubject, case: PositionCase) -> float:
    """The product of two rows is the same wherever the two stand, if as far apart."""
    table = position_call(subject, case).double()
    products = table @ table.T
    gaps = (torch.arange(case.length).unsqueeze(1) - torch.arange(case.length)).abs()
    want = products[0][gaps]
    wrong = ((products - want).abs() > 1e-5 * case.d_model).nonzero()
    facts = ""
    if len(wrong):
        p, q = wrong[0].tolist()
        facts = localized(_POSITION_FACTS["distance"], p=p, q=q, gap=abs(p - q))
    name = "row · row"
    return _position_compare(products, want, 1e-5 * case.d_model, "distance", facts, name)


def judge_position_anchors(subject: ContractSubject, case: PositionCase) -> float:
    """The first rows of d_model = 4 are those worked out by hand."""
    if case.d_model != 4 or case.length > 4 or case.base is not None:
        return 0.0
    want = torch.tensor(_POSITION_BY_HAND[: case.length], dtype=torch.float64)
    if not (want - position_truth(case)).abs().max() <= 1e-9:
        raise RuntimeError("the references for positions disagree with the rows done by hand")
    return _position_told(position_call(subject, case), case, want)


def judge_position_table(subject: ContractSubject, case: PositionCase) -> float:
    """The whole table, each number within what rounding to float32 explains."""
    return _position_told(position_call(subject, case), case, position_truth(case))


def _position_told(table: Tensor, case: PositionCase, want: Tensor) -> float:
    slack = position_tolerance(case)
    wrong = ~((table.double() - want).abs() <= slack)
    facts = ""
    if wrong.any():
        row, column = wrong.nonzero()[0].tolist()
        angle = position_angles(case)[row, column // 2].item()
        even, count = column - column % 2, int(wrong.sum())
        facts = localized(
            _POSITION_FACTS["angle"],
            p=row,
            even=even,
            odd=even + 1,
            angle=angle,
            count=count,
            size=wrong.numel(),
        )
    return _position_compare(table, want, slack, "wrong", facts)


def closest_positions(table: Tensor) -> float:
    """How far apart the two most similar rows are."""
    return torch.pdist(table.detach().double()).min().item()


def judge_positions_distinct(subject: ContractSubject, case: PositionCase) -> float:
    """No two rows may be closer than half of what is right."""
    table = position_call(subject, case).double()
    if case.length < 2:
        return 0.0
    wanted = closest_positions(position_truth(case))
    if closest_positions(table) >= wanted / 2:
        return 0.0
    apart = torch.cdist(table, table, compute_mode="donot_use_mm_for_euclid_dist")
    apart.fill_diagonal_(torch.inf)
    p, q = divmod(int(apart.argmin()), case.length)
    came = apart[p, q].item()
    facts = localized(_POSITION_FACTS["same_rows"], p=p, q=q, came=came, wanted=wanted)
    raise Breach("same rows", f"{came:.2g}", f"≥ {wanted / 2:.2g}", facts=facts)


def judge_position_state(subject: ContractSubject, case: PositionCase) -> float:
    """Other calls in between, and a caller who writes into the result, change nothing."""
    first = position_call(subject, case)
    kept = first.clone().double()
    position_call(subject, PositionCase(case.length + 2, case.d_model, case.base))
    position_call(subject, PositionCase(case.length, case.d_model, 7.0))
    position_call(subject, PositionCase(case.length, case.d_model + 2))
    remembered = localized(_POSITION_FACTS["remembered"])
    _position_compare(first, kept, 0.0, "overwritten", remembered)
    again = position_call(subject, case)
    _position_compare(again, kept, 0.0, "remembered", remembered)
    try:
        first.zero_()
    except RuntimeError:
        return 0.0  # an expanded view cannot be written into
    facts = localized(_POSITION_FACTS["shared"])
    return _position_compare(position_call(subject, case), kept, 0.0, "shared", facts)
