"""Sinusoidal encodings, right and wrong, beyond the catalogue."""

import math

import numpy as np
import torch

from course_lib.contracts import check_position_contract
from course_lib.contracts.position.mistakes import POSITION_MISTAKES
from course_lib.positions import sinusoidal_encoding

from .trial import Fresh, named_by

CHECK, CATALOGUE = check_position_contract, POSITION_MISTAKES
CLAUSES = [
    *("result_form", "first_position", "length_free", "one_angle", "shift_is_rotation"),
    *("known_rows", "every_column", "base", "distinct", "far_positions", "independent_results"),
]


def positions_by_stack(length, d_model, *, base=10_000.0):
    positions = torch.arange(length, dtype=torch.float64).unsqueeze(1)
    rates = base ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angles = positions * rates
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)


def positions_by_slices(length, d_model, *, base=10_000.0):
    """In float32, with exp and log, as most tutorials write it."""
    table = torch.zeros(length, d_model)
    positions = torch.arange(0, length, dtype=torch.float).unsqueeze(1)
    step = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(base) / d_model))
    table[:, 0::2] = torch.sin(positions * step)
    table[:, 1::2] = torch.cos(positions * step)
    return table


def positions_by_columns(length, d_model, *, base=10_000.0):
    """In float32, with a power: column by column."""
    table = torch.empty(length, d_model)
    for column in range(d_model):
        wave = torch.cos if column % 2 else torch.sin
        power = torch.tensor(float(base)) ** (2 * (column // 2) / d_model)
        table[:, column] = wave(torch.arange(length) / power)
    return table


def positions_in_float32_by_pow(length, d_model, *, base=10_000.0):
    rates = 1.0 / (base ** (torch.arange(0, d_model, 2).float() / d_model))
    angles = torch.outer(torch.arange(length).float(), rates)
    return torch.stack([angles.sin(), angles.cos()], dim=2).reshape(length, d_model)


def positions_by_loops(length, d_model, *, base=10_000.0):
    table = []
    for position in range(length):
        row = []
        for even in range(0, d_model, 2):
            angle = position / base ** (even / d_model)
            row += [math.sin(angle), math.cos(angle)]
        table.append(row)
    return torch.tensor(table)


def positions_assigned_one_by_one(length, d_model, *, base=10_000.0):
    table = np.zeros((length, d_model))
    for p in range(length):
        for i in range(0, d_model, 2):
            table[p, i] = math.sin(p / (base ** (i / d_model)))
            table[p, i + 1] = math.cos(p / (base ** (i / d_model)))
    return torch.from_numpy(table).float()


def positions_in_numpy(length, d_model, *, base=10_000.0):
    columns = np.arange(d_model)
    angles = np.arange(length)[:, None] / np.power(float(base), 2 * (columns // 2) / d_model)
    angles[:, 0::2] = np.sin(angles[:, 0::2])
    angles[:, 1::2] = np.cos(angles[:, 1::2])
    return torch.as_tensor(angles)


def positions_by_phase(length, d_model, *, base=10_000.0):
    """A cosine is a sine a quarter of a turn ahead."""
    columns = torch.arange(d_model, dtype=torch.float64)
    even = columns - columns % 2
    positions = torch.arange(length, dtype=torch.float64)[:, None]
    return torch.sin(positions / base ** (even / d_model) + columns % 2 * math.pi / 2)


def positions_by_turning(length, d_model, *, base=10_000.0):
    """Each row is the one before it, turned by one step: powers of a unit complex number."""
    rates = torch.tensor(base, dtype=torch.float64) ** (
        -torch.arange(0, d_model, 2, dtype=torch.float64) / d_model
    )
    turn = torch.polar(torch.ones_like(rates), rates)
    powers = turn ** torch.arange(length, dtype=torch.float64)[:, None]
    return torch.stack((powers.imag, powers.real), dim=-1).reshape(length, d_model)


def positions_as_parameter(length, d_model, *, base=10_000.0):
    return torch.nn.Parameter(positions_by_stack(length, d_model, base=base).float())


def table_grown_on_demand():
    """A stored table, kept by its arguments, made longer when it must be, copied out."""
    tables = {}

    def encoding(length, d_model, *, base=10_000.0):
        table = tables.get((d_model, base))
        if table is None or len(table) < length:
            table = tables[d_model, base] = positions_by_stack(2 * length, d_model, base=base)
        return table[:length].clone()

    return encoding


def spoilt(change):
    def encoding(length, d_model, *, base=10_000.0):
        return change(positions_by_stack(length, d_model, base=base))

    return encoding


def counted(count, rate=lambda even, d_model, base: base ** (-even / d_model)):
    def encoding(length, d_model, *, base=10_000.0):
        positions = count(torch.arange(length, dtype=torch.float64))[:, None].double()
        even = torch.arange(0, d_model, 2, dtype=torch.float64)
        angles = positions * rate(even, d_model, base)
        return torch.stack((angles.sin(), angles.cos()), -1).flatten(1)

    return encoding


def angles_in(dtype):
    def encoding(length, d_model, *, base=10_000.0):
        positions = torch.arange(length, dtype=torch.float64)[:, None].to(dtype)
        rates = (base ** (-torch.arange(0, d_model, 2).double() / d_model)).to(dtype)
        angles = (positions * rates).float()
        return torch.stack((angles.sin(), angles.cos()), -1).flatten(1)

    return encoding


def first_table_kept():
    kept = {}

    def encoding(length, d_model, *, base=10_000.0):
        return kept.setdefault((length, d_model), positions_by_stack(length, d_model, base=base))

    return encoding


def buffer_filled_again():
    """One buffer for all calls of one size."""
    buffers = {}

    def encoding(length, d_model, *, base=10_000.0):
        shape = (length, d_model)
        buffer = buffers.setdefault(shape, torch.empty(*shape, dtype=torch.float64))
        return buffer.copy_(positions_by_stack(length, d_model, base=base))

    return encoding


def with_noise():
    generator = torch.Generator().manual_seed(0)

    def encoding(length, d_model, *, base=10_000.0):
        table = positions_by_stack(length, d_model, base=base)
        noise = torch.randn(table.shape, generator=generator, dtype=torch.float64)
        return table + 1e-9 * noise

    return encoding


def sine_in_even_rows(length, d_model, *, base=10_000.0):
    """Sine and cosine alternate along the wrong axis."""
    even = torch.arange(d_model) // 2 * 2
    angles = torch.arange(length)[:, None] / base ** (even / d_model)
    return torch.where(torch.arange(length)[:, None] % 2 == 0, angles.sin(), angles.cos())


def fails_on_one_row(length, d_model, *, base=10_000.0):
    return positions_by_stack(length, d_model, base=base)[1:].pow(1).new_tensor(
        [[0.0, 1.0] * (d_model // 2)]
    ).expand(length, -1) / (length - 1)


RIGHT = {
    "the course's own": sinusoidal_encoding,
    "by stacking": positions_by_stack,
    "by slices in float32": positions_by_slices,
    "column by column in float32": positions_by_columns,
    "pow in float32": positions_in_float32_by_pow,
    "by loops": positions_by_loops,
    "one by one": positions_assigned_one_by_one,
    "in numpy": positions_in_numpy,
    "by phase": positions_by_phase,
    "by turning": positions_by_turning,
    "a parameter": positions_as_parameter,
    "a view of columns": lambda length, d_model, **base: (
        positions_by_stack(length, d_model, **base).T.contiguous().T
    ),
    "a table grown on demand": Fresh(table_grown_on_demand),
}
WRONG = {
    "a numpy array": (lambda *s, **b: positions_by_stack(*s, **b).numpy(), "result_form"),
    "a batch axis": (lambda *s, **b: positions_by_stack(*s, **b)[None], "result_form"),
    "transposed": (lambda n, d, **b: positions_by_stack(n, d, **b).T, "result_form"),
    "bfloat16": (lambda *s, **b: positions_by_stack(*s, **b).bfloat16(), "result_form"),
    "one row too many": (lambda n, d, **b: positions_by_stack(n + 1, d, **b), "result_form"),
    "nothing": (lambda *s, **b: None, "result_form"),
    "divides by zero": (fails_on_one_row, "result_form"),
    "scaled by the width": (spoilt(lambda t: t * t.shape[1] ** 0.5), "first_position"),
    "starts at minus one": (counted(lambda p: p - 1), "first_position"),
    "sine in even rows": (sine_in_even_rows, "first_position"),
    "counts backwards": (counted(lambda p: p.flip(0)), "first_position"),
    "linspace": (counted(lambda p: torch.linspace(0, 50, len(p))), "length_free"),
    "fading": (spoilt(lambda t: t * 0.99 ** torch.arange(len(t))[:, None]), "one_angle"),
    "rounded to two decimals": (spoilt(lambda t: t.round(decimals=2)), "one_angle"),
    "squared positions": (counted(lambda p: p * p), "shift_is_rotation"),
    "logarithm of positions": (counted(torch.log1p), "shift_is_rotation"),
    "sine negated": (counted(lambda p: -p), "known_rows"),
    "columns reversed": (
        counted(lambda p: p, lambda e, d, base: (base ** (-e / d)).flip(0)),
        "known_rows",
    ),
    "another formula for rates": (
        counted(lambda p: p, lambda e, d, base: torch.linspace(1, 0.01, len(e))),
        "every_column",
    ),
    "right for one width": (counted(lambda p: p, lambda e, d, b: b ** (-e / 4)), "every_column"),
    "base 10001": (
        lambda n, d, *, base=10_001.0: positions_by_stack(n, d, base=base),
        "every_column",
    ),
    "rates rounded": (
        counted(lambda p: p, lambda e, d, b: (b ** (-e / d) * 1e4).round() / 1e4),
        "every_column",
    ),
    "angles in float16": (angles_in(torch.float16), "every_column"),
    "angles in bfloat16": (angles_in(torch.bfloat16), "shift_is_rotation"),
    "whole base only": (
        lambda n, d, *, base=10_000: positions_by_stack(n, d, base=int(base)),
        "base",
    ),
    "base wanted twice over": (
        lambda n, d, *, base=10_000.0: positions_by_stack(n, d, base=max(base, 10.0)),
        "base",
    ),
    "wraps at 512": (counted(lambda p: p % 512), "distinct"),
    "stays at 300": (counted(lambda p: p.clamp(max=300)), "distinct"),
    "wraps at 1024": (counted(lambda p: p % 1024), "far_positions"),
    "sixteen-bit integers": (
        counted(lambda p: p.long().to(torch.int16).double()),
        "far_positions",
    ),
    "adds steps up in float32": (
        counted(lambda p: p, lambda e, d, b: (b ** (-e / d)).float() * (1 + 2e-6)),
        "every_column",
    ),
    "first table kept": (Fresh(first_table_kept), "base"),
    "buffer filled again": (Fresh(buffer_filled_again), "independent_results"),
    "noise": (Fresh(with_noise), "independent_results"),
}
MISTAKES = named_by(
    result_form="no_power_at_all table_in_half table_cut",
    first_position=(
        "cosine_first sines_then_cosines cosines_then_sines sines_only counts_from_one "
        "first_row_zero"
    ),
    length_free="positions_normalised",
    one_angle="exponent_by_column cosine_exponent_shifted cosine_of_next_pair",
    shift_is_rotation="angles_in_bfloat16",
    known_rows=(
        "exponent_doubled exponent_halved exponent_to_the_end exponent_over_d_minus_one "
        "exponent_floored log_step_floored log_of_another_base rate_inverted power_upside_down "
        "default_base_1000 base_always_1000 angles_in_degrees whole_turns"
    ),
    every_column="rates_in_half angles_in_float16",
    base="base_ignored first_base_kept",
    distinct="positions_in_bfloat16",
    far_positions="positions_in_float16 table_clamped",
    independent_results="encoding_shared",
)
MUTATED = [positions_by_stack, positions_by_slices, positions_by_columns, positions_in_numpy]
EQUIVALENT = {
    f"{function}:{label}": reason
    for reason, labels in {
        "whole numbers below 2^24, and rates in float32, are accurate enough": [
            ("positions_by_stack", "2 no dtype=: torch.arange(length, dtype=torch.float64)"),
            ("positions_by_stack", "3 no dtype=: torch.arange(0, d_model, 2, dtype=torch.float64)"),
            ("positions_by_slices", "4 no dtype=: torch.arange(0, length, dtype=torch.float)"),
            ("positions_by_slices", "4 int: torch.float"),
            ("positions_by_slices", "5 int: torch.arange(0, d_model, 2).float"),
            ("positions_by_slices", "5 method dropped: torch.arange(0, d_model, 2).float()"),
            ("positions_by_columns", "6 call dropped: torch.tensor(float(base))"),
            ("positions_by_columns", "6 call dropped: float(base)"),
            ("positions_in_numpy", "3 call dropped: float(base)"),
        ],
        "every number is written over": [("positions_by_slices", "3 ones: torch.zeros")],
        "[0::2] and [:] begin at the beginning anyway": [
            ("positions_by_slices", "6 whole slice: :"),
            ("positions_by_slices", "6 whole slice: 0::2"),
            ("positions_by_slices", "7 whole slice: :"),
            ("positions_by_columns", "7 whole slice: :"),
            ("positions_in_numpy", "3 whole slice: :"),
            ("positions_in_numpy", "4 whole slice: :"),
            ("positions_in_numpy", "4 whole slice: : (2)"),
            ("positions_in_numpy", "4 whole slice: 0::2"),
            ("positions_in_numpy", "4 whole slice: 0::2 (2)"),
            ("positions_in_numpy", "5 whole slice: :"),
            ("positions_in_numpy", "5 whole slice: : (2)"),
        ],
        "both columns of a pair hold the same angle": [("positions_in_numpy", "4 +1: 0 (2)")],
    }.items()
    for function, label in labels
}
SAYS = {
    "stays at 300": "rows 300 and 301 are 0 apart",
    "fading": "in columns 0 and 1 the squares sum to 0.98",
    "bfloat16": "too coarse for angles",
    "linspace": "the same position in a table of 5 rows is another row",
    "first table kept": "behaves exactly like encoding_shared",
    "base_ignored": "the angle must be 0.1",
    "no_power_at_all": "numbers are NaN or infinite",
    "encoding_shared": "wrote into an earlier result, and it came back",
}
UNNAMED = ["sine negated", "wraps at 512", "rates rounded", "noise"]
