"""Sinusoidal encodings that are wrong in one way each, as people reported them."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.engine.mistake import mistakes


def mistaken_encoding(
    *,
    count: Callable[[Tensor], Tensor] = lambda positions: positions,
    scale: Callable[[float], float] = lambda base: base,
    default: float = 10_000.0,
    rate: Callable[[Tensor, int, float], Any] = lambda i, d, base: base ** -(2 * i / d),
    turn: Callable[[Tensor, Tensor], Tensor] = lambda positions, rate: positions * rate,
    weave: Callable[[Tensor, Tensor], Tensor] = lambda s, c: torch.stack((s, c), -1).flatten(1),
) -> Callable[..., Tensor]:
    """A sinusoidal encoding with one of its steps replaced; `rate` may give one rate or two."""

    def sinusoidal_encoding(length: int, d_model: int, *, base: float = default) -> Tensor:
        positions = count(torch.arange(length, dtype=torch.float64)).double().unsqueeze(-1)
        pair = torch.arange(d_model // 2, dtype=torch.float64)
        rates = rate(pair, d_model, scale(base))
        sine_rate, cosine_rate = rates if isinstance(rates, tuple) else (rates, rates)
        return weave(turn(positions, sine_rate).sin(), turn(positions, cosine_rate).cos())

    return sinusoidal_encoding


def _of_5000(choose: Callable[[Tensor, int], Tensor]) -> Callable[..., Tensor]:
    """An encoding that takes its rows from a stored table: choose(table, length)."""
    encoding = mistaken_encoding()
    return lambda length, d_model, **base: choose(encoding(5000, d_model, **base), length)


def _first_base_kept() -> Callable[..., Tensor]:
    tables: dict[int, tuple[int, float]] = {}

    def sinusoidal_encoding(length: int, d_model: int, *, base: float = 10_000.0) -> Tensor:
        longest, first = tables.get(d_model, (0, base))
        tables[d_model] = (max(length, longest), first)
        return mistaken_encoding()(tables[d_model][0], d_model, base=first)[:length]

    return sinusoidal_encoding


# fmt: off
POSITION_MISTAKES = mistakes(
    mistaken_encoding,
    exponent_by_column=("jadore801120/attention-is-all-you-need-pytorch#32",
        "the exponent counts columns, 2 · column / d_model, instead of pairs | "
        "показатель считает столбцы, 2 · столбец / d_model, а не пары",
        "base ** (2 * (column // 2) / d_model)",
        {"rate": lambda i, d, base: (base ** -(4 * i / d), base ** -((4 * i + 2) / d))}),
    cosine_exponent_shifted=("luhengshiwo/LLMForEverybody#106",
        "the cosine has its own exponent (2i + 1) / d_model, so pairs do not turn as one | "
        "у косинуса свой показатель (2i + 1) / d_model, и пара не вращается как целое",
        "one angle for both: sin(p * rate), cos(p * rate) | "
        "угол на пару один: sin(p * rate), cos(p * rate)",
        {"rate": lambda i, d, base: (base ** -(2 * i / d), base ** -((2 * i + 1) / d))}),
    cosine_of_next_pair=("YutaroOgawa/pytorch_advanced#79",
        "the cosine takes the exponent of the next pair, 2(i + 1) / d_model | "
        "косинус берёт показатель следующей пары, 2(i + 1) / d_model",
        "2 * i / d_model for both | 2 * i / d_model для обоих",
        {"rate": lambda i, d, base: (base ** -(2 * i / d), base ** -(2 * (i + 1) / d))}),
    exponent_doubled=("",
        "the factor 2 is applied to an index that already goes in steps of 2 | "
        "множитель 2 применён к индексу, который и так идёт с шагом 2",
        "arange(0, d_model, 2) / d_model, without another 2 | "
        "arange(0, d_model, 2) / d_model, без ещё одной двойки",
        {"rate": lambda i, d, base: base ** -(4 * i / d)}),
    exponent_halved=("",
        "the exponent is i / d_model: the slow half of the rates is never reached | "
        "показатель i / d_model: до медленной половины частот дело не доходит",
        "2 * i / d_model", {"rate": lambda i, d, base: base ** -(i / d)}),
    exponent_to_the_end=("hojonathanho/diffusion#15",
        "the exponent is i / (d_model/2 - 1), as in tensor2tensor, not as in the paper | "
        "показатель i / (d_model/2 - 1), как в tensor2tensor, а не как в статье",
        "i / (d_model / 2)", {"rate": lambda i, d, base: base ** -(i / max(d / 2 - 1, 1))}),
    exponent_over_d_minus_one=("",
        "the exponent is divided by d_model - 1 | показатель делится на d_model - 1",
        "2 * i / d_model", {"rate": lambda i, d, base: base ** -(2 * i / (d - 1))}),
    exponent_floored=("Kyubyong/transformer#81",
        "whole-number division makes every exponent 0: all pairs turn alike | "
        "деление нацело обнуляет все показатели: все пары вращаются одинаково",
        "2 * i / d_model, not // | 2 * i / d_model, а не //",
        {"rate": lambda i, d, base: base ** -(2 * i // d)}),
    log_step_floored=("zju3dv/LoFTR#41",
        "the step of the logarithm, -log(base) / d_model, is rounded down by // | "
        "шаг логарифма, -log(base) / d_model, округлён вниз операцией //",
        "exp(arange(0, d_model, 2) * (-log(base) / d_model))",
        {"rate": lambda i, d, base: torch.exp(2 * i * (-math.log(base) / d // 1))}),
    log_of_another_base=("",
        "exp takes a decimal logarithm: base ** x is exp(x * ln(base)) | "
        "в exp стоит десятичный логарифм, а base ** x — это exp(x * ln(base))",
        "math.log(base)", {"rate": lambda i, d, base: torch.exp(-math.log10(base) * 2 * i / d)}),
    rate_inverted=("hkproj/pytorch-transformer#2",
        "positions are multiplied by base ** (2i/d_model): later pairs turn wildly | "
        "позиции умножаются на base ** (2i/d_model): дальние пары вертятся как попало",
        "position / base ** (2 * i / d_model)", {"rate": lambda i, d, base: base ** (2 * i / d)}),
    power_upside_down=("ivanvovk/WaveGrad#12",
        "the index is raised to the power 1/base, not 1/base to the power of the index | "
        "индекс возводится в степень 1/base, а не 1/base в степень индекса",
        "(1 / base) ** (2 * i / d_model)", {"rate": lambda i, d, base: (2 * i / d) ** (1 / base)}),
    no_power_at_all=("",
        "base is multiplied by the exponent instead of raised to it: 0 divides pair 0 | "
        "base умножается на показатель, а не возводится в него: пара 0 делится на 0",
        "base ** (2 * i / d_model)", {"rate": lambda i, d, base: 1 / (base * 2 * i / d)}),
    default_base_1000=("maxjcohen/transformer#62",
        "the default base is 1000 | base по умолчанию равен 1000",
        "base=10_000.0", {"default": 1000.0}),
    base_ignored=("",
        "base is ignored: always 10000 | base не учтён: всегда 10000",
        "base ** (2 * i / d_model), not a number written out | "
        "base ** (2 * i / d_model), а не число в коде", {"scale": lambda base: 10_000.0}),
    base_always_1000=("maxjcohen/transformer#62",
        "base is ignored: always 1000 | base не учтён: всегда 1000",
        "base ** (2 * i / d_model)", {"scale": lambda base: 1000.0}),
    rates_in_half=("vllm-project/vllm#54620",
        "the rates are rounded to float16, and the error grows with the position | "
        "частоты округлены до float16, и ошибка растёт с позицией",
        "compute angles in float64, cast last | углы — в float64, приведение в конце",
        {"rate": lambda i, d, base: (base ** -(2 * i / d)).half()}),
    cosine_first=("flashinfer-ai/flashinfer#3819",
        "sine and cosine are swapped: cosine stands in the even columns | "
        "синус и косинус переставлены: в чётных столбцах стоит косинус",
        "table[:, 0::2] = sin, table[:, 1::2] = cos",
        {"weave": lambda s, c: torch.stack((c, s), -1).flatten(1)}),
    sines_then_cosines=("tensorflow/tensor2tensor#1423",
        "all sines, then all cosines: the columns are not interleaved | "
        "сначала все синусы, потом все косинусы: столбцы не чередуются",
        "stack((sin, cos), dim=-1).flatten(1)", {"weave": lambda s, c: torch.cat((s, c), -1)}),
    cosines_then_sines=("huggingface/diffusers#1369",
        "all cosines, then all sines, as in diffusion models | "
        "сначала все косинусы, потом все синусы, как в диффузионных моделях",
        "stack((sin, cos), dim=-1).flatten(1)", {"weave": lambda s, c: torch.cat((c, s), -1)}),
    sines_only=("",
        "the odd columns hold sines too | в нечётных столбцах тоже синусы",
        "table[:, 1::2] = cos", {"weave": lambda s, c: torch.stack((s, s), -1).flatten(1)}),
    table_in_half=("",
        "the table comes in sixteen bits: two or three digits are left | "
        "таблица в 16 битах: от чисел остаются два-три знака",
        "float32 or float64 | float32 или float64",
        {"weave": lambda s, c: torch.stack((s, c), -1).flatten(1).half()}),
    positions_in_bfloat16=("huggingface/candle#3520",
        "positions are counted in bfloat16: beyond 256 neighbours become the same | "
        "позиции считаются в bfloat16: после 256 соседние совпадают",
        "arange(length, dtype=torch.float64)", {"count": lambda positions: positions.bfloat16()}),
    positions_in_float16=("NVIDIA/Megatron-LM#535",
        "positions are counted in float16: beyond 2048 neighbours become the same | "
        "позиции считаются в float16: после 2048 соседние совпадают",
        "arange(length, dtype=torch.float64)", {"count": lambda positions: positions.half()}),
    angles_in_bfloat16=("huggingface/candle#3520",
        "angles are computed in bfloat16: two digits are left, and far rows collapse | "
        "углы считаются в bfloat16: остаются два знака, а дальние строки совпадают",
        "compute angles in float64, cast last | углы — в float64, приведение в конце",
        {"turn": lambda p, rate: (p.bfloat16() * rate.bfloat16()).double()}),
    angles_in_float16=("vllm-project/vllm#54620",
        "angles are computed in float16, and the error grows with the position | "
        "углы считаются в float16, и ошибка растёт с позицией",
        "compute angles in float64, cast last | углы — в float64, приведение в конце",
        {"turn": lambda p, rate: (p.half() * rate.half()).double()}),
    counts_from_one=("facebookresearch/fairseq#1177",
        "positions count from 1 | позиции считаются с 1",
        "arange(length): from 0 | arange(length): с 0", {"count": lambda positions: positions + 1}),
    first_row_zero=("kaushalshetty/Positional-Encoding#1",
        "row 0 is all zeros, as if position 0 were padding | "
        "строка 0 вся из нулей, как если бы позиция 0 была паддингом",
        "position 0 is (0, 1, 0, 1, ...) | позиция 0: (0, 1, 0, 1, ...)",
        {"weave": lambda s, c:
            torch.stack((s, c), -1).flatten(1) * (torch.arange(len(s)) > 0).unsqueeze(-1)}),
    positions_normalised=("",
        "positions are divided by the length: a row depends on how many rows follow | "
        "позиции делятся на длину: строка зависит от того, сколько строк после неё",
        "whole positions 0, 1, 2, ... | целые позиции 0, 1, 2, ...",
        {"count": lambda positions: positions / len(positions)}),
    angles_in_degrees=("",
        "angles are taken for degrees | углы приняты за градусы",
        "radians: sin(position * rate) | радианы: sin(position * rate)",
        {"count": lambda positions: torch.deg2rad(positions)}),
    whole_turns=("",
        "angles are multiplied by 2π: the first pair never moves | "
        "углы умножены на 2π: первая пара стоит на месте",
        "sin(position * rate)", {"count": lambda positions: 2 * math.pi * positions}),
    table_cut=("NVIDIA/TensorRT-Model-Connect#1060",
        "a stored table is cut to the length, and a longer call gets too few rows | "
        "хранимая таблица обрезается по длине, и длинному вызову строк не хватает",
        "compute `length` rows in every call | считайте `length` строк каждый раз",
        lambda: _of_5000(lambda table, length: table[:length])),
    table_clamped=("",
        "beyond a stored table every position gets its last row | "
        "за пределами хранимой таблицы все позиции получают её последнюю строку",
        "compute `length` rows in every call | считайте `length` строк каждый раз",
        lambda: _of_5000(lambda table, length: table[torch.arange(length).clamp(max=4999)])),
    first_base_kept=("",
        "the table is stored by d_model, and a later call with another base gets it | "
        "таблица хранится по d_model, и вызов с другим base получает её же",
        "store by (d_model, base), or not at all | храните по (d_model, base) или не храните вовсе",
        _first_base_kept),
    encoding_shared=("",
        "a stored table is handed out, and what its reader writes stays in it | "
        "наружу отдана хранимая таблица, и записанное в неё остаётся",
        "return a copy: table.clone() | верните копию: table.clone()",
        lambda: lru_cache(mistaken_encoding())),
)
# fmt: on
