"""Caches whose chunks see the wrong keys, stand at the wrong positions or never end."""

from typing import Any

import numpy as np

from course_lib.contracts.cache._tiny_decoder import TinyCache, TinyDecoder, seen_keys
from course_lib.contracts.engine.mistake import Mistake


def _cache_top_left(decoder: TinyDecoder, width: int, n_keys: int, offset: int) -> np.ndarray:
    return seen_keys(width, n_keys, 0)


def _cache_top_left_if_wide(decoder: TinyDecoder, width: int, n_keys: int, offset: int) -> Any:
    return seen_keys(width, n_keys, 0 if width > 1 else n_keys - 1)


def _cache_open_later(decoder: TinyDecoder, width: int, n_keys: int, offset: int) -> np.ndarray:
    return seen_keys(width, n_keys, n_keys if offset else 0)


def _cache_open(decoder: TinyDecoder, width: int, n_keys: int, offset: int) -> np.ndarray:
    return np.ones((width, n_keys), dtype=bool)


def _cache_next_seen(decoder: TinyDecoder, width: int, n_keys: int, offset: int) -> np.ndarray:
    return seen_keys(width, n_keys, n_keys - width + 1)


def _cache_next_seen_later(decoder: TinyDecoder, width: int, n_keys: int, offset: int) -> Any:
    return seen_keys(width, n_keys, n_keys - width + (1 if offset else 0))


def _cache_one_ahead(decoder: TinyDecoder, cache: TinyCache, width: int) -> np.ndarray:
    return cache.length + np.arange(width) + (cache.length > 0)


def _cache_no_positions(decoder: TinyDecoder, cache: TinyCache, width: int) -> np.ndarray | None:
    return None if cache.length else np.arange(width)


def _cache_short_table(decoder: TinyDecoder, cache: TinyCache, width: int) -> np.ndarray:
    return np.minimum(cache.length + np.arange(width), decoder.context_length - 5)


def _cache_answers_anything(decoder: TinyDecoder, ids: list[int], *_: Any) -> list[int]:
    return ids


def _cache_last_tokens(decoder: TinyDecoder, ids: list[int], *_: Any) -> list[int]:
    return ids[-decoder.context_length :]


def _cache_first_tokens(decoder: TinyDecoder, ids: list[int], *_: Any) -> list[int]:
    return ids[: decoder.context_length]


def _cache_sliding(decoder: TinyDecoder, cache: TinyCache, layer: int, k: Any, v: Any) -> tuple:
    for past, new in ((cache.keys, k), (cache.values, v)):
        past[layer] = np.concatenate([past[layer], new])[-max(decoder.context_length, len(new)) :]
    return cache.keys[layer], cache.values[layer]


CACHE_ROW_MISTAKES = (
    Mistake(
        "mask_top_left",
        "hyprstream/hyprstream#1521",
        lambda: TinyDecoder(see=_cache_top_left),
        {
            "en": "the mask of a later chunk starts at its upper left corner and hides the past",
            "ru": "маска следующего куска начинается в левом верхнем углу и закрывает прошлое",
        },
        {"en": "tril(diagonal=n_keys - n_queries)", "ru": "tril(diagonal=n_keys - n_queries)"},
    ),
    Mistake(
        "mask_top_left_if_wide",
        "pytorch/executorch#21749",
        lambda: TinyDecoder(see=_cache_top_left_if_wide),
        {
            "en": "single tokens are right, but the mask of a wider chunk hides the past",
            "ru": "по одному токену всё верно, но маска широкого куска закрывает прошлое",
        },
        {"en": "tril(diagonal=n_keys - n_queries)", "ru": "tril(diagonal=n_keys - n_queries)"},
    ),
    Mistake(
        "no_mask_in_later_chunks",
        "mlx-node/mlx-node#24",
        lambda: TinyDecoder(see=_cache_open_later),
        {
            "en": "a chunk that comes after a past gets no mask: its tokens read the future",
            "ru": "кусок, у которого есть прошлое, остаётся без маски: его токены читают будущее",
        },
        {
            "en": "mask every chunk of two tokens or more",
            "ru": "маска нужна каждому куску от двух токенов",
        },
    ),
    Mistake(
        "no_mask_with_cache",
        "Mikyx-1/TinyLLM#17",
        lambda: TinyDecoder(see=_cache_open),
        {
            "en": "with a cache there is no mask at all: prefill reads the future",
            "ru": "с кэшем маски нет вовсе: при предзаполнении токены читают будущее",
        },
        {
            "en": "mask every chunk of two tokens or more",
            "ru": "маска нужна каждому куску от двух токенов",
        },
    ),
    Mistake(
        "one_ahead_with_cache",
        "a mutation of right code",
        lambda: TinyDecoder(see=_cache_next_seen),
        {
            "en": "inside a chunk a token reads the next one: the mask is one diagonal too wide",
            "ru": "внутри куска токен читает следующий: маска шире на одну диагональ",
        },
        {"en": "tril(diagonal=n_keys - n_queries)", "ru": "tril(diagonal=n_keys - n_queries)"},
    ),
    Mistake(
        "one_ahead_in_later_chunks",
        "a mutation of right code",
        lambda: TinyDecoder(see=_cache_next_seen_later),
        {
            "en": "in a chunk that comes after a past, a token reads the next one too",
            "ru": "в куске, у которого есть прошлое, токен читает и следующий",
        },
        {"en": "tril(diagonal=n_keys - n_queries)", "ru": "tril(diagonal=n_keys - n_queries)"},
    ),
    Mistake(
        "positions_restart",
        "lucidrains/x-transformers#219",
        lambda: TinyDecoder(place=lambda decoder, cache, width: np.arange(width)),
        {
            "en": "positions start from 0 again in every chunk",
            "ru": "в каждом куске позиции снова начинаются с 0",
        },
        {
            "en": "positions = cache_length + arange(width)",
            "ru": "positions = cache_length + arange(width)",
        },
    ),
    Mistake(
        "positions_count_calls",
        "a mutation of right code",
        lambda: TinyDecoder(place=lambda decoder, cache, width: cache.calls + np.arange(width)),
        {
            "en": "the position grows by 1 a call, not by the width of the chunk",
            "ru": "позиция растёт на 1 за вызов, а не на ширину куска",
        },
        {"en": "position += width of the chunk", "ru": "position += ширина куска"},
    ),
    Mistake(
        "positions_run_out",
        "rasbt/LLMs-from-scratch@28c65cd",
        lambda: TinyDecoder(place=_cache_short_table),
        {
            "en": "positions run past their table before the context is full, and are clamped",
            "ru": "позиции выходят за таблицу раньше, чем полон контекст, и прижаты к её концу",
        },
        {"en": "a table of context_length rows", "ru": "таблица из context_length строк"},
    ),
    Mistake(
        "one_position_for_the_chunk",
        "a mutation of right code",
        lambda: TinyDecoder(place=lambda decoder, cache, width: cache.length + np.zeros(width)),
        {
            "en": "all tokens of a chunk get the position of its first one",
            "ru": "все токены куска получают позицию первого из них",
        },
        {
            "en": "positions = cache_length + arange(width)",
            "ru": "positions = cache_length + arange(width)",
        },
    ),
    Mistake(
        "later_positions_shifted",
        "a mutation of right code",
        lambda: TinyDecoder(place=_cache_one_ahead),
        {
            "en": "after the first chunk all positions are off by a constant",
            "ru": "после первого куска все позиции сдвинуты на одно и то же число",
        },
        {
            "en": "the first new token stands at cache_length",
            "ru": "первый новый токен стоит на позиции cache_length",
        },
    ),
    Mistake(
        "later_chunks_without_positions",
        "a mutation of right code",
        lambda: TinyDecoder(place=_cache_no_positions),
        {
            "en": "after the first chunk no positions are added",
            "ru": "после первого куска позиции не прибавляются",
        },
        {"en": "add them in every chunk", "ru": "прибавляйте их в каждом куске"},
    ),
    Mistake(
        "later_chunks_by_another_formula",
        "a mutation of right code",
        lambda: TinyDecoder(scale=lambda decoder, offset: 1.0 if offset else 8**-0.5),
        {
            "en": "after the first chunk the formula is another one (scale, norm, weights)",
            "ru": "после первого куска формула другая (масштаб, нормализация, веса)",
        },
        {"en": "one code for prefill and decode", "ru": "один код и для затравки, и для шагов"},
    ),
    Mistake(
        "another_formula_from_some_length_on",
        "a mutation of right code",
        lambda: TinyDecoder(scale=lambda decoder, offset: 1.0 if offset >= 8 else 8**-0.5),
        {
            "en": "from some length on new tokens go through another formula",
            "ru": "начиная с некоторой длины новые токены идут по другой формуле",
        },
        {"en": "one code for all lengths", "ru": "один код для всех длин"},
    ),
    Mistake(
        "full_pass_without_mask",
        "meta-pytorch/torchtune#959",
        lambda: TinyDecoder(see_full=lambda decoder, width: np.ones((width, width), dtype=bool)),
        {
            "en": "without the cache there is no causal mask: every token reads every token",
            "ru": "без кэша нет причинной маски: каждый токен читает каждый",
        },
        {"en": "the full pass needs the mask too", "ru": "маска нужна и полному проходу"},
    ),
    Mistake(
        "no_limit",
        "Nehanth/swarmllm#31",
        lambda: TinyDecoder(admit=_cache_answers_anything),
        {
            "en": "more tokens than the context holds go through the cache without an error",
            "ru": "токены сверх контекста проходят через кэш без ошибки",
        },
        {
            "en": "raise if cache_length + width > context_length",
            "ru": "исключение при cache_length + width > context_length",
        },
    ),
    Mistake(
        "oldest_dropped_when_full",
        "a mutation of right code",
        lambda: TinyDecoder(admit=_cache_answers_anything, store=_cache_sliding),
        {
            "en": "a full cache writes over its oldest tokens instead of refusing",
            "ru": "полный кэш пишет поверх самых старых токенов вместо отказа",
        },
        {
            "en": "raise if cache_length + width > context_length",
            "ru": "исключение при cache_length + width > context_length",
        },
    ),
    Mistake(
        "front_cut_when_too_long",
        "ollama/ollama#14259",
        lambda: TinyDecoder(admit=_cache_last_tokens),
        {
            "en": "the front of a text that is too long is cut off without an error",
            "ru": "начало слишком длинного текста отрезано без ошибки",
        },
        {
            "en": "raise if len(ids) > context_length",
            "ru": "исключение при len(ids) > context_length",
        },
    ),
    Mistake(
        "end_cut_when_too_long",
        "a mutation of right code",
        lambda: TinyDecoder(admit=_cache_first_tokens),
        {
            "en": "the end of a text that is too long is left out without an error",
            "ru": "конец слишком длинного текста отброшен без ошибки",
        },
        {
            "en": "raise if len(ids) > context_length",
            "ru": "исключение при len(ids) > context_length",
        },
    ),
    Mistake(
        "full_pass_without_limit",
        "a mutation of right code",
        lambda: TinyDecoder(admit_full=_cache_answers_anything),
        {
            "en": "the full pass answers for more tokens than the context holds",
            "ru": "полный проход отвечает и на текст длиннее контекста",
        },
        {
            "en": "raise if len(ids) > context_length",
            "ru": "исключение при len(ids) > context_length",
        },
    ),
)
