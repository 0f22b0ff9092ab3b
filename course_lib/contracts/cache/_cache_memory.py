"""Caches that keep the wrong thing, too much or too little, or hand out what they keep."""

import numpy as np

from course_lib.contracts.cache._cache_steps import (
    cache_buffer_if_one,
    cache_chunks_noted,
    cache_chunks_taken,
    cache_ids_taken,
    cache_kept,
    cache_kept_but_rewound,
    cache_lost_by_growth,
    cache_nothing_kept,
    cache_one_layer_for_all,
    cache_past_window,
    cache_places_halved,
    cache_same_array,
    cache_shortened_once,
    cache_shuffled_by_growth,
    cache_singles_not_kept,
    cache_stale_slots,
    cache_swapped,
    cache_trimmed,
    cache_whole_buffer,
    cache_with,
)
from course_lib.contracts.cache._tiny_decoder import TinyDecoder
from course_lib.contracts.engine.mistake import Mistake

CACHE_MEMORY_MISTAKES = (
    Mistake(
        "cached_positions_shifted",
        "a mutation of right code",
        lambda: TinyDecoder(
            place=lambda decoder, cache, width: cache.length + 1 + np.arange(width)
        ),
        {
            "en": "with the cache all positions are off by a constant, from the first token on",
            "ru": "с кэшем все позиции сдвинуты на одно и то же число, с первого токена",
        },
        {"en": "the first token stands at 0", "ru": "первый токен стоит на позиции 0"},
    ),
    Mistake(
        "cached_pass_by_another_formula",
        "a mutation of right code",
        lambda: TinyDecoder(scale=lambda decoder, offset: 1.0, place=cache_places_halved),
        {
            "en": "the cached pass agrees with itself, but not with the full one: another formula",
            "ru": "проход с кэшем сам себе не противоречит, но с полным расходится: формула другая",
        },
        {"en": "one code for both passes", "ru": "один код для обоих проходов"},
    ),
    Mistake(
        "cache_not_reset",
        "casper-hansen/AutoAWQ#170",
        lambda: TinyDecoder(begin=cache_kept),
        {
            "en": "the second prompt goes on where the first one ended",
            "ru": "вторая затравка продолжает с того места, где кончилась первая",
        },
        {
            "en": "a new or emptied cache for every prompt",
            "ru": "новый или очищенный кэш для каждой затравки",
        },
    ),
    Mistake(
        "old_keys_kept",
        "turboderp-org/exllamav2#212",
        lambda: TinyDecoder(begin=cache_kept_but_rewound),
        {
            "en": "positions start anew, but the second prompt still reads the first one's keys",
            "ru": "позиции начаты заново, но вторая затравка ещё читает ключи первой",
        },
        {"en": "empty keys, values and length together", "ru": "очищайте ключи, значения и длину"},
    ),
    Mistake(
        "stale_slots_read",
        "nicedreamzapp/claude-code-local#46",
        lambda: TinyDecoder(
            begin=cache_kept_but_rewound, store=cache_stale_slots, see=cache_past_window
        ),
        {
            "en": "a prompt reads what a longer one left in the buffer",
            "ru": "затравка читает то, что оставила в буфере более длинная",
        },
        {
            "en": "read buffer[:length], not the whole buffer",
            "ru": "читайте buffer[:length], а не весь буфер",
        },
    ),
    Mistake(
        "whole_buffer_read",
        "a mutation of right code",
        lambda: TinyDecoder(store=cache_whole_buffer, see=cache_past_window),
        {
            "en": "the size of the buffer is taken for its length: empty places are attended to",
            "ru": "размер буфера принят за длину: внимание попадает и на пустые места",
        },
        {
            "en": "read buffer[:length], not the whole buffer",
            "ru": "читайте buffer[:length], а не весь буфер",
        },
    ),
    Mistake(
        "one_token_reads_the_buffer",
        "lucidrains/x-transformers@4465de5",
        lambda: TinyDecoder(store=cache_buffer_if_one, see=cache_past_window),
        {
            "en": "a single new token reads empty places of the buffer: it gets no mask",
            "ru": "единственный новый токен читает пустые места буфера: он без маски",
        },
        {
            "en": "read buffer[:length], not the whole buffer",
            "ru": "читайте buffer[:length], а не весь буфер",
        },
    ),
    Mistake(
        "trimmed_too_early",
        "clankur/einygpt#2",
        lambda: TinyDecoder(store=cache_with(cache_trimmed)),
        {
            "en": "old tokens are dropped although the context still has room",
            "ru": "старые токены отброшены, хотя в контексте ещё есть место",
        },
        {
            "en": "drop nothing before context_length is full",
            "ru": "не отбрасывайте, пока context_length не заполнен",
        },
    ),
    Mistake(
        "last_slot_overwritten",
        "a mutation of right code",
        lambda: TinyDecoder(
            store=cache_with(lambda past, decoder, width: tuple(part[:-1] for part in past))
        ),
        {
            "en": "every chunk is written over the last token before it",
            "ru": "каждый кусок записан поверх последнего токена перед ним",
        },
        {"en": "pointer += width, not width - 1", "ru": "указатель += width, а не width - 1"},
    ),
    Mistake(
        "pointer_one_short",
        "a mutation of right code",
        lambda: TinyDecoder(store=cache_shortened_once),
        {
            "en": "the second chunk is written over the last token of the first",
            "ru": "второй кусок записан поверх последнего токена первого",
        },
        {"en": "write at cache_length", "ru": "пишите с места cache_length"},
    ),
    Mistake(
        "growth_destroys_layout",
        "karpathy/nanochat@b062b42",
        lambda: TinyDecoder(store=cache_with(cache_shuffled_by_growth)),
        {
            "en": "when the buffer grows, what it held is mixed up",
            "ru": "когда буфер растёт, его прежнее содержимое перемешивается",
        },
        {
            "en": "allocate anew, then copy [..., :length, :]",
            "ru": "новый буфер, затем копия [..., :length, :]",
        },
    ),
    Mistake(
        "growth_loses_the_past",
        "a mutation of right code",
        lambda: TinyDecoder(store=cache_with(cache_lost_by_growth)),
        {
            "en": "when the buffer grows, what it held is lost",
            "ru": "когда буфер растёт, его прежнее содержимое теряется",
        },
        {
            "en": "allocate anew, then copy [..., :length, :]",
            "ru": "новый буфер, затем копия [..., :length, :]",
        },
    ),
    Mistake(
        "keys_and_values_swapped",
        "a mutation of right code",
        lambda: TinyDecoder(store=cache_swapped),
        {
            "en": "the past comes back from the cache with keys for values",
            "ru": "прошлое выходит из кэша с ключами на месте значений",
        },
        {"en": "keys, values = cache[layer]", "ru": "keys, values = cache[layer]"},
    ),
    Mistake(
        "one_cache_for_all_layers",
        "a mutation of right code",
        lambda: TinyDecoder(store=cache_one_layer_for_all),
        {
            "en": "all layers write to one cache, so that a layer reads another one's past",
            "ru": "все слои пишут в один кэш, и слой читает прошлое чужого слоя",
        },
        {"en": "keys and values for each layer", "ru": "ключи и значения у каждого слоя свои"},
    ),
    Mistake(
        "cache_keeps_something_else",
        "a mutation of right code",
        lambda: TinyDecoder(
            store=cache_with(lambda past, decoder, width: tuple(np.round(p, 1) for p in past))
        ),
        {
            "en": "what is kept is not what its own chunk used (rounded, before positions or norm)",
            "ru": (
                "хранится не то, что использовал сам кусок (округлено, взято до позиций или "
                "нормализации)"
            ),
        },
        {"en": "keep the same k and v", "ru": "храните те же k и v"},
    ),
    Mistake(
        "single_tokens_not_kept",
        "a mutation of right code",
        lambda: TinyDecoder(store=cache_singles_not_kept),
        {
            "en": "a chunk of one token is read but never joins the cache",
            "ru": "кусок из одного токена прочитан, но в кэш не попадает",
        },
        {"en": "append in every call", "ru": "дописывайте в кэш при каждом вызове"},
    ),
    Mistake(
        "past_not_read",
        "a mutation of right code",
        lambda: TinyDecoder(store=cache_nothing_kept),
        {
            "en": "a chunk reads only itself: the past is never attended to",
            "ru": "кусок читает только себя: прошлое не участвует во внимании",
        },
        {
            "en": "attend to cached and new keys together",
            "ru": "внимание на ключи из кэша и новые вместе",
        },
    ),
    Mistake(
        "each_chunk_starts_anew",
        "a mutation of right code",
        lambda: TinyDecoder(
            store=cache_nothing_kept, place=lambda decoder, cache, width: np.arange(width)
        ),
        {
            "en": "every chunk is taken for a text of its own, without a past",
            "ru": "каждый кусок принят за отдельный текст без прошлого",
        },
        {"en": "one cache for all chunks of a prompt", "ru": "один кэш на все куски затравки"},
    ),
    Mistake(
        "results_share_memory",
        "a mutation of right code",
        lambda: TinyDecoder(finish=cache_same_array),
        {
            "en": "the result is a view of a buffer that the next call overwrites",
            "ru": "результат — представление (view) буфера, который перезапишет следующий вызов",
        },
        {"en": "return a copy", "ru": "верните копию"},
    ),
    Mistake(
        "ids_used_up",
        "a mutation of right code",
        lambda: TinyDecoder(admit=cache_ids_taken),
        {
            "en": "the caller's ids are changed while they are read",
            "ru": "переданный список ids изменён при чтении",
        },
        {"en": "ids = list(ids)", "ru": "ids = list(ids)"},
    ),
    Mistake(
        "chunks_used_up",
        "a mutation of right code",
        lambda: TinyDecoder(admit=cache_chunks_noted, finish=cache_chunks_taken),
        {
            "en": "the caller's chunks are changed while they are read",
            "ru": "переданный список chunks изменён при чтении",
        },
        {"en": "for width in chunks, not chunks.pop(0)", "ru": "for width in chunks, без pop(0)"},
    ),
)
