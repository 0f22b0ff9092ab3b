"""Caches whose chunks see the wrong keys, stand at the wrong positions or never end."""

from typing import Any

import numpy as np

from course_lib.contracts.cache.tiny_decoder import TinyCache, TinyDecoder, seen_keys
from course_lib.contracts.engine.mistake import mistakes


def _answers_anything(decoder: TinyDecoder, ids: list[int], *_: Any) -> list[int]:
    return ids


def _sliding(decoder: TinyDecoder, cache: TinyCache, layer: int, k: Any, v: Any) -> tuple:
    for past, new in ((cache.keys, k), (cache.values, v)):
        past[layer] = np.concatenate([past[layer], new])[-max(decoder.context_length, len(new)) :]
    return cache.keys[layer], cache.values[layer]


# fmt: off
CACHE_ROW_MISTAKES = mistakes(
    TinyDecoder,
    mask_top_left=("hyprstream/hyprstream#1521",
        "the mask of a later chunk starts at its upper left corner and hides the past | "
        "маска следующего куска начинается в левом верхнем углу и закрывает прошлое",
        "tril(diagonal=n_keys - n_queries)",
        {"see": lambda decoder, width, n_keys, offset: seen_keys(width, n_keys, 0)}),
    mask_top_left_if_wide=("pytorch/executorch#21749",
        "single tokens are right, but the mask of a wider chunk hides the past | "
        "по одному токену всё верно, но маска широкого куска закрывает прошлое",
        "tril(diagonal=n_keys - n_queries)",
        {"see": lambda decoder, width, n_keys, offset:
            seen_keys(width, n_keys, 0 if width > 1 else n_keys - 1)}),
    no_mask_in_later_chunks=("mlx-node/mlx-node#24",
        "a chunk that comes after a past gets no mask: its tokens read the future | "
        "кусок, у которого есть прошлое, остаётся без маски: его токены читают будущее",
        "mask every chunk of two tokens or more | маска нужна каждому куску от двух токенов",
        {"see": lambda decoder, width, n_keys, offset:
            seen_keys(width, n_keys, n_keys if offset else 0)}),
    no_mask_with_cache=("Mikyx-1/TinyLLM#17",
        "with a cache there is no mask at all: prefill reads the future | "
        "с кэшем маски нет вовсе: при предзаполнении токены читают будущее",
        "mask every chunk of two tokens or more | маска нужна каждому куску от двух токенов",
        {"see": lambda decoder, width, n_keys, offset: np.ones((width, n_keys), dtype=bool)}),
    one_ahead_with_cache=("",
        "inside a chunk a token reads the next one: the mask is one diagonal too wide | "
        "внутри куска токен читает следующий: маска шире на одну диагональ",
        "tril(diagonal=n_keys - n_queries)",
        {"see": lambda decoder, width, n_keys, offset:
            seen_keys(width, n_keys, n_keys - width + 1)}),
    one_ahead_in_later_chunks=("",
        "in a chunk that comes after a past, a token reads the next one too | "
        "в куске, у которого есть прошлое, токен читает и следующий",
        "tril(diagonal=n_keys - n_queries)",
        {"see": lambda decoder, width, n_keys, offset:
            seen_keys(width, n_keys, n_keys - width + (1 if offset else 0))}),
    positions_restart=("lucidrains/x-transformers#219",
        "positions start from 0 again in every chunk | в каждом куске позиции снова начинаются с 0",
        "positions = cache_length + arange(width)",
        {"place": lambda decoder, cache, width: np.arange(width)}),
    positions_count_calls=("",
        "the position grows by 1 a call, not by the width of the chunk | "
        "позиция растёт на 1 за вызов, а не на ширину куска",
        "position += width of the chunk | position += ширина куска",
        {"place": lambda decoder, cache, width: cache.calls + np.arange(width)}),
    positions_run_out=("rasbt/LLMs-from-scratch@28c65cd",
        "positions run past their table before the context is full, and are clamped | "
        "позиции выходят за таблицу раньше, чем полон контекст, и прижаты к её концу",
        "a table of context_length rows | таблица из context_length строк",
        {"place": lambda decoder, cache, width:
            np.minimum(cache.length + np.arange(width), decoder.context_length - 5)}),
    one_position_for_the_chunk=("",
        "all tokens of a chunk get the position of its first one | "
        "все токены куска получают позицию первого из них",
        "positions = cache_length + arange(width)",
        {"place": lambda decoder, cache, width: cache.length + np.zeros(width)}),
    later_positions_shifted=("",
        "after the first chunk all positions are off by a constant | "
        "после первого куска все позиции сдвинуты на одно и то же число",
        "the first new token stands at cache_length | "
        "первый новый токен стоит на позиции cache_length",
        {"place": lambda decoder, cache, width:
            cache.length + np.arange(width) + (cache.length > 0)}),
    later_chunks_without_positions=("",
        "after the first chunk no positions are added | "
        "после первого куска позиции не прибавляются",
        "add them in every chunk | прибавляйте их в каждом куске",
        {"place": lambda decoder, cache, width: None if cache.length else np.arange(width)}),
    later_chunks_by_another_formula=("",
        "after the first chunk the formula is another one (scale, norm, weights) | "
        "после первого куска формула другая (масштаб, нормализация, веса)",
        "one code for prefill and decode | один код и для промпта, и для шагов",
        {"scale": lambda decoder, offset: 1.0 if offset else 8 ** (-0.5)}),
    another_formula_from_some_length_on=("",
        "from some length on new tokens go through another formula | "
        "начиная с некоторой длины новые токены идут по другой формуле",
        "one code for all lengths | один код для всех длин",
        {"scale": lambda decoder, offset: 1.0 if offset >= 8 else 8 ** (-0.5)}),
    full_pass_without_mask=("meta-pytorch/torchtune#959",
        "without the cache there is no causal mask: every token reads every token | "
        "без кэша нет причинной маски: каждый токен читает каждый",
        "the full pass needs the mask too | маска нужна и полному проходу",
        {"see_full": lambda decoder, width: np.ones((width, width), dtype=bool)}),
    no_limit=("Nehanth/swarmllm#31",
        "more tokens than the context holds go through the cache without an error | "
        "токены сверх контекста проходят через кэш без ошибки",
        "raise if cache_length + width > context_length | "
        "исключение при cache_length + width > context_length",
        {"admit": _answers_anything}),
    oldest_dropped_when_full=("",
        "a full cache writes over its oldest tokens instead of refusing | "
        "полный кэш пишет поверх самых старых токенов вместо отказа",
        "raise if cache_length + width > context_length | "
        "исключение при cache_length + width > context_length",
        {"admit": _answers_anything, "store": _sliding}),
    front_cut_when_too_long=("ollama/ollama#14259",
        "the front of a text that is too long is cut off without an error | "
        "начало слишком длинного текста отрезано без ошибки",
        "raise if len(ids) > context_length | исключение при len(ids) > context_length",
        {"admit": lambda decoder, ids, *_: ids[-decoder.context_length :]}),
    end_cut_when_too_long=("",
        "the end of a text that is too long is left out without an error | "
        "конец слишком длинного текста отброшен без ошибки",
        "raise if len(ids) > context_length | исключение при len(ids) > context_length",
        {"admit": lambda decoder, ids, *_: ids[: decoder.context_length]}),
    full_pass_without_limit=("",
        "the full pass answers for more tokens than the context holds | "
        "полный проход отвечает и на текст длиннее контекста",
        "raise if len(ids) > context_length | исключение при len(ids) > context_length",
        {"admit_full": _answers_anything}),
)
# fmt: on
