"""Sinusoidal encodings that are wrong in one way each, as people reported them."""

import math
from collections.abc import Callable
from functools import lru_cache, partial

import torch
from torch import Tensor

from course_lib.contracts.engine.mistake import Mistake
from course_lib.contracts.position._position_rates import POSITION_RATE_MISTAKES, mistaken_encoding


def _encoding_first_row_zero(length: int, d_model: int, *, base: float = 10_000.0) -> Tensor:
    table = mistaken_encoding()(length, d_model, base=base)
    return torch.cat((torch.zeros_like(table[:1]), table[1:]))


def _encoding_table_cut(length: int, d_model: int, *, base: float = 10_000.0) -> Tensor:
    return mistaken_encoding()(5000, d_model, base=base)[:length]


def _encoding_table_clamped(length: int, d_model: int, *, base: float = 10_000.0) -> Tensor:
    table = mistaken_encoding()(5000, d_model, base=base)
    return table[torch.arange(length).clamp(max=4999)]


def _encoding_shared() -> Callable[..., Tensor]:
    return lru_cache(mistaken_encoding())


def _encoding_first_base_kept() -> Callable[..., Tensor]:
    tables: dict[int, tuple[int, float]] = {}

    def sinusoidal_encoding(length: int, d_model: int, *, base: float = 10_000.0) -> Tensor:
        longest, first = tables.get(d_model, (0, base))
        tables[d_model] = (max(length, longest), first)
        return mistaken_encoding()(tables[d_model][0], d_model, base=first)[:length]

    return sinusoidal_encoding


POSITION_MISTAKES = (
    *POSITION_RATE_MISTAKES,
    Mistake(
        "cosine_first",
        "flashinfer-ai/flashinfer#3819",
        partial(mistaken_encoding, weave=lambda s, c: torch.stack((c, s), -1).flatten(1)),
        {
            "en": "sine and cosine are swapped: cosine stands in the even columns",
            "ru": "синус и косинус переставлены: в чётных столбцах стоит косинус",
        },
        {
            "en": "table[:, 0::2] = sin, table[:, 1::2] = cos",
            "ru": "table[:, 0::2] = sin, table[:, 1::2] = cos",
        },
    ),
    Mistake(
        "sines_then_cosines",
        "tensorflow/tensor2tensor#1423",
        partial(mistaken_encoding, weave=lambda s, c: torch.cat((s, c), -1)),
        {
            "en": "all sines, then all cosines: the columns are not interleaved",
            "ru": "сначала все синусы, потом все косинусы: столбцы не чередуются",
        },
        {
            "en": "stack((sin, cos), dim=-1).flatten(1)",
            "ru": "stack((sin, cos), dim=-1).flatten(1)",
        },
    ),
    Mistake(
        "cosines_then_sines",
        "huggingface/diffusers#1369",
        partial(mistaken_encoding, weave=lambda s, c: torch.cat((c, s), -1)),
        {
            "en": "all cosines, then all sines, as in diffusion models",
            "ru": "сначала все косинусы, потом все синусы, как в диффузионных моделях",
        },
        {
            "en": "stack((sin, cos), dim=-1).flatten(1)",
            "ru": "stack((sin, cos), dim=-1).flatten(1)",
        },
    ),
    Mistake(
        "sines_only",
        "a mutation of right code",
        partial(mistaken_encoding, weave=lambda s, c: torch.stack((s, s), -1).flatten(1)),
        {"en": "the odd columns hold sines too", "ru": "в нечётных столбцах тоже синусы"},
        {"en": "table[:, 1::2] = cos", "ru": "table[:, 1::2] = cos"},
    ),
    Mistake(
        "table_in_half",
        "a mutation of right code",
        partial(
            mistaken_encoding,
            weave=lambda s, c: torch.stack((s, c), -1).flatten(1).half(),
        ),
        {
            "en": "the table comes in sixteen bits: two or three digits are left",
            "ru": "таблица в 16 битах: от чисел остаются два-три знака",
        },
        {"en": "float32 or float64", "ru": "float32 или float64"},
    ),
    Mistake(
        "positions_in_bfloat16",
        "huggingface/candle#3520",
        partial(mistaken_encoding, count=lambda positions: positions.bfloat16()),
        {
            "en": "positions are counted in bfloat16: beyond 256 neighbours become the same",
            "ru": "позиции считаются в bfloat16: после 256 соседние совпадают",
        },
        {
            "en": "arange(length, dtype=torch.float64)",
            "ru": "arange(length, dtype=torch.float64)",
        },
    ),
    Mistake(
        "positions_in_float16",
        "NVIDIA/Megatron-LM#535",
        partial(mistaken_encoding, count=lambda positions: positions.half()),
        {
            "en": "positions are counted in float16: beyond 2048 neighbours become the same",
            "ru": "позиции считаются в float16: после 2048 соседние совпадают",
        },
        {
            "en": "arange(length, dtype=torch.float64)",
            "ru": "arange(length, dtype=torch.float64)",
        },
    ),
    Mistake(
        "angles_in_bfloat16",
        "huggingface/candle#3520",
        partial(mistaken_encoding, turn=lambda p, rate: (p.bfloat16() * rate.bfloat16()).double()),
        {
            "en": "angles are computed in bfloat16: two digits are left, and far rows collapse",
            "ru": "углы считаются в bfloat16: остаются два знака, а дальние строки совпадают",
        },
        {
            "en": "compute angles in float64, cast last",
            "ru": "углы — в float64, приведение в конце",
        },
    ),
    Mistake(
        "angles_in_float16",
        "vllm-project/vllm#54620",
        partial(mistaken_encoding, turn=lambda p, rate: (p.half() * rate.half()).double()),
        {
            "en": "angles are computed in float16, and the error grows with the position",
            "ru": "углы считаются в float16, и ошибка растёт с позицией",
        },
        {
            "en": "compute angles in float64, cast last",
            "ru": "углы — в float64, приведение в конце",
        },
    ),
    Mistake(
        "counts_from_one",
        "facebookresearch/fairseq#1177",
        partial(mistaken_encoding, count=lambda positions: positions + 1),
        {"en": "positions count from 1", "ru": "позиции считаются с 1"},
        {"en": "arange(length): from 0", "ru": "arange(length): с 0"},
    ),
    Mistake(
        "first_row_zero",
        "kaushalshetty/Positional-Encoding#1",
        lambda: _encoding_first_row_zero,
        {
            "en": "row 0 is all zeros, as if position 0 were padding",
            "ru": "строка 0 вся из нулей, как если бы позиция 0 была дополнением",
        },
        {"en": "position 0 is (0, 1, 0, 1, ...)", "ru": "позиция 0: (0, 1, 0, 1, ...)"},
    ),
    Mistake(
        "positions_normalised",
        "a mutation of right code",
        partial(mistaken_encoding, count=lambda positions: positions / len(positions)),
        {
            "en": "positions are divided by the length: a row depends on how many rows follow",
            "ru": "позиции делятся на длину: строка зависит от того, сколько строк после неё",
        },
        {"en": "whole positions 0, 1, 2, ...", "ru": "целые позиции 0, 1, 2, ..."},
    ),
    Mistake(
        "angles_in_degrees",
        "a mutation of right code",
        partial(mistaken_encoding, count=lambda positions: torch.deg2rad(positions)),
        {"en": "angles are taken for degrees", "ru": "углы приняты за градусы"},
        {"en": "radians: sin(position * rate)", "ru": "радианы: sin(position * rate)"},
    ),
    Mistake(
        "whole_turns",
        "a mutation of right code",
        partial(mistaken_encoding, count=lambda positions: 2 * math.pi * positions),
        {
            "en": "angles are multiplied by 2π: the first pair never moves",
            "ru": "углы умножены на 2π: первая пара стоит на месте",
        },
        {"en": "sin(position * rate)", "ru": "sin(position * rate)"},
    ),
    Mistake(
        "table_cut",
        "NVIDIA/TensorRT-Model-Connect#1060",
        lambda: _encoding_table_cut,
        {
            "en": "a stored table is cut to the length, and a longer call gets too few rows",
            "ru": "хранимая таблица обрезается по длине, и длинному вызову строк не хватает",
        },
        {"en": "compute `length` rows in every call", "ru": "считайте `length` строк каждый раз"},
    ),
    Mistake(
        "table_clamped",
        "a mutation of right code",
        lambda: _encoding_table_clamped,
        {
            "en": "beyond a stored table every position gets its last row",
            "ru": "за пределами хранимой таблицы все позиции получают её последнюю строку",
        },
        {"en": "compute `length` rows in every call", "ru": "считайте `length` строк каждый раз"},
    ),
    Mistake(
        "first_base_kept",
        "a mutation of right code",
        _encoding_first_base_kept,
        {
            "en": "the table is stored by d_model, and a later call with another base gets it",
            "ru": "таблица хранится по d_model, и вызов с другим base получает её же",
        },
        {
            "en": "store by (d_model, base), or not at all",
            "ru": "храните по (d_model, base) или не храните вовсе",
        },
    ),
    Mistake(
        "encoding_shared",
        "a mutation of right code",
        _encoding_shared,
        {
            "en": "a stored table is handed out, and what its reader writes stays in it",
            "ru": "наружу отдана хранимая таблица, и записанное в неё остаётся",
        },
        {"en": "return a copy: table.clone()", "ru": "верните копию: table.clone()"},
    ),
)
