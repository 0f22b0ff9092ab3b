"""The contract of sinusoidal positions: every pair of columns turns at its own rate."""

from collections.abc import Callable, Iterator
from typing import Any

from course_lib.contracts.engine.candidate import (
    ContractSubject,
    hold_clause,
    is_stub,
    quiet_globals,
)
from course_lib.contracts.position._position_case import (
    PositionCase,
    explain_positions,
    position_tolerance,
)
from course_lib.contracts.position._position_judge import (
    closest_positions,
    judge_position_anchors,
    judge_position_distance,
    judge_position_form,
    judge_position_pairs,
    judge_position_prefix,
    judge_position_state,
    judge_position_table,
    judge_position_zero,
    judge_positions_distinct,
)
from course_lib.report import ClauseResult, ContractReport

_POSITION_MEANINGS = {
    "result_form": {
        "en": "a finite tensor [length, d_model], float32 or float64",
        "ru": "конечный тензор [length, d_model], float32 или float64",
    },
    "first_position": {
        "en": "position 0 is (0, 1, 0, 1, …): sine, cosine, sine, …",
        "ru": "позиция 0 — это (0, 1, 0, 1, …): синус, косинус, …",
    },
    "length_free": {
        "en": "a row does not depend on how many rows follow it",
        "ru": "строка не зависит от того, сколько строк после неё",
    },
    "one_angle": {
        "en": "a pair of columns is sine and cosine of one angle",
        "ru": "пара столбцов — синус и косинус одного угла",
    },
    "known_rows": {
        "en": "positions 1 to 3 are those worked out by hand",
        "ru": "позиции 1–3 совпадают с посчитанными вручную",
    },
    "shift_is_rotation": {
        "en": "how alike two rows are depends only on their distance",
        "ru": "сходство двух строк зависит лишь от расстояния между ними",
    },
    "every_column": {
        "en": "pair i turns by p / base^(2i/d_model), any d_model",
        "ru": "пара i повёрнута на p / base^(2i/d_model), любой d_model",
    },
    "base": {
        "en": "base is what the caller says, 10000 if nothing is said",
        "ru": "base такой, как задан, а если не задан, то 10000",
    },
    "distinct": {
        "en": "700 positions, 700 different rows",
        "ru": "700 позиций — 700 разных строк",
    },
    "far_positions": {
        "en": "right far out: beyond any table, to float32 accuracy",
        "ru": "верно и вдали, за любой таблицей, с точностью float32",
    },
    "independent_results": {
        "en": "the same call, the same table, whatever came between",
        "ru": "тот же вызов — та же таблица, что бы ни было между ними",
    },
}


def check_position_contract(sinusoidal_encoding: Callable[..., Any]) -> ContractReport:
    """Hold a table of sinusoidal positions to its formula, near and far.

        sinusoidal_encoding(length, d_model, *, base=10000.0) -> [length, d_model]
        table[p, 2i] = sin(p / base^(2i/d_model)),   table[p, 2i+1] = cos(p / base^(2i/d_model))

    Angles computed in float32 are accurate enough, those in sixteen bits are not; d_model is even.

    Raises:  ContractViolation when a clause is broken: with a small call and what was measured
    """
    if not callable(sinusoidal_encoding):
        came = type(sinusoidal_encoding).__name__
        raise TypeError(f"sinusoidal_encoding must be a function, got {came}")
    subject = ContractSubject(
        "check_position_contract", sinusoidal_encoding, _POSITION_MEANINGS, explain_positions
    )
    with quiet_globals():
        if is_stub(sinusoidal_encoding, 2, 4):
            return ContractReport(subject.contract, attempted=False)
        clauses = tuple(_position_clauses(subject))
        closest = closest_positions(sinusoidal_encoding(700, 8))
    errors = {clause.name: clause.measured for clause in clauses}
    figures = {
        "table_max_error": errors["every_column"],
        "base_max_error": errors["base"],
        "far_max_error": errors["far_positions"],
        "smallest_distance": closest,
    }
    return ContractReport(subject.contract, clauses, figures)


def _position_clauses(subject: ContractSubject) -> Iterator[ClauseResult]:
    """Run the clauses one by one, the ones that tell most about a mistake first."""
    forms = [PositionCase(*size) for size in ((3, 4), (1, 2), (2, 6), (5, 2), (1, 8), (7, 10))]
    small = [PositionCase(*size) for size in ((5, 4), (4, 2), (6, 6), (3, 10))]
    sizes = ((4, 4), (9, 2), (2, 64), (70, 6), (64, 10), (200, 8), (17, 512), (50, 30))
    columns = [PositionCase(*size) for size in sizes]
    bases = [
        PositionCase(length, d_model, base)
        for length, d_model in ((5, 4), (40, 12))
        for base in (100.0, 2.0, 10_000.0, 1e6, 37.5)
    ]
    bases += [PositionCase(5, 4), PositionCase(40, 12)]
    far = [PositionCase(*size) for size in ((1300, 6), (5300, 10), (33_000, 4))]
    yield _held(subject, "result_form", judge_position_form, forms)
    yield _held(subject, "first_position", judge_position_zero, forms)
    yield _held(subject, "length_free", judge_position_prefix, small)
    yield _held(subject, "one_angle", judge_position_pairs, small)
    yield _held(subject, "shift_is_rotation", judge_position_distance, small)
    yield _held(subject, "known_rows", judge_position_anchors, [PositionCase(4, 4)])
    yield _held(subject, "every_column", judge_position_table, columns)
    yield _held(subject, "base", judge_position_table, bases)
    yield hold_clause(subject, "distinct", None, judge_positions_distinct, [PositionCase(700, 8)])
    yield _held(subject, "far_positions", judge_position_table, far)
    states = [PositionCase(5, 4), PositionCase(6, 6, 50.0)]
    yield hold_clause(subject, "independent_results", None, judge_position_state, states)


def _held(
    subject: ContractSubject, name: str, judge: Callable[..., float], cases: list[PositionCase]
) -> ClauseResult:
    """Hold a clause on errors; the report shows the widest of the tolerances of its cases."""
    fixed = {"first_position": 1e-6, "length_free": 2e-6, "one_angle": 1e-5}
    widest = max(position_tolerance(case).max().item() for case in cases)
    products = 1e-5 * max(case.d_model for case in cases)
    allowed = {**fixed, "result_form": None, "shift_is_rotation": products}.get(name, widest)
    return hold_clause(subject, name, allowed, judge, cases)
