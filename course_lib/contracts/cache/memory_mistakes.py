"""Caches that keep the wrong thing, too much or too little, or hand out what they keep."""

import numpy as np

from course_lib.contracts.cache import steps
from course_lib.contracts.cache.tiny_decoder import TinyDecoder
from course_lib.contracts.engine.mistake import mistakes

# fmt: off
CACHE_MEMORY_MISTAKES = mistakes(
    TinyDecoder,
    cached_positions_shifted=("",
        "with the cache all positions are off by a constant, from the first token on | "
        "с кэшем все позиции сдвинуты на одно и то же число, с первого токена",
        "the first token stands at 0 | первый токен стоит на позиции 0",
        {"place": lambda decoder, cache, width: cache.length + 1 + np.arange(width)}),
    cached_pass_by_another_formula=("",
        "the cached pass agrees with itself, but not with the full one: another formula | "
        "проход с кэшем сам себе не противоречит, но с полным расходится: формула другая",
        "one code for both passes | один код для обоих проходов",
        {"scale": lambda decoder, offset: 1.0, "place": steps.places_halved}),
    cache_not_reset=("casper-hansen/AutoAWQ#170",
        "the second prompt goes on where the first one ended | "
        "второй промпт продолжает с того места, где кончился первый",
        "a new or emptied cache for every prompt | новый или очищенный кэш для каждого промпта",
        {"begin": steps.kept}),
    old_keys_kept=("turboderp-org/exllamav2#212",
        "positions start anew, but the second prompt still reads the first one's keys | "
        "позиции начаты заново, но второй промпт ещё читает ключи первого",
        "empty keys, values and length together | очищайте ключи, значения и длину",
        {"begin": steps.kept_but_rewound}),
    stale_slots_read=("nicedreamzapp/claude-code-local#46",
        "a prompt reads what a longer one left in the buffer | "
        "промпт читает то, что оставил в буфере более длинный",
        "read buffer[:length], not the whole buffer | читайте buffer[:length], а не весь буфер",
        {"begin": steps.kept_but_rewound, "store": steps.stale_slots, "see": steps.past_window}),
    whole_buffer_read=("",
        "the size of the buffer is taken for its length: empty places are attended to | "
        "размер буфера принят за длину: внимание попадает и на пустые места",
        "read buffer[:length], not the whole buffer | читайте buffer[:length], а не весь буфер",
        {"store": steps.whole_buffer, "see": steps.past_window}),
    one_token_reads_the_buffer=("lucidrains/x-transformers@4465de5",
        "a single new token reads empty places of the buffer: it gets no mask | "
        "единственный новый токен читает пустые места буфера: он без маски",
        "read buffer[:length], not the whole buffer | читайте buffer[:length], а не весь буфер",
        {"store": steps.buffer_if_one, "see": steps.past_window}),
    trimmed_too_early=("clankur/einygpt#2",
        "old tokens are dropped although the context still has room | "
        "старые токены отброшены, хотя в контексте ещё есть место",
        "drop nothing before context_length is full | "
        "не отбрасывайте, пока context_length не заполнен",
        {"store": steps.with_past(steps.trimmed)}),
    last_slot_overwritten=("",
        "every chunk is written over the last token before it | "
        "каждый кусок записан поверх последнего токена перед ним",
        "pointer += width, not width - 1 | указатель += width, а не width - 1",
        {"store": steps.with_past(
            lambda past, decoder, width: tuple(part[:-1] for part in past))}),
    pointer_one_short=("",
        "the second chunk is written over the last token of the first | "
        "второй кусок записан поверх последнего токена первого",
        "write at cache_length | пишите с места cache_length",
        {"store": steps.shortened_once}),
    growth_destroys_layout=("karpathy/nanochat@b062b42",
        "when the buffer grows, what it held is mixed up | "
        "когда буфер растёт, его прежнее содержимое перемешивается",
        "allocate anew, then copy [..., :length, :] | новый буфер, затем копия [..., :length, :]",
        {"store": steps.with_past(steps.shuffled_by_growth)}),
    growth_loses_the_past=("",
        "when the buffer grows, what it held is lost | "
        "когда буфер растёт, его прежнее содержимое теряется",
        "allocate anew, then copy [..., :length, :] | новый буфер, затем копия [..., :length, :]",
        {"store": steps.with_past(steps.lost_by_growth)}),
    keys_and_values_swapped=("",
        "the past comes back from the cache with keys for values | "
        "прошлое выходит из кэша с ключами на месте значений",
        "keys, values = cache[layer]", {"store": steps.swapped}),
    one_cache_for_all_layers=("",
        "all layers write to one cache, so that a layer reads another one's past | "
        "все слои пишут в один кэш, и слой читает прошлое чужого слоя",
        "keys and values for each layer | ключи и значения у каждого слоя свои",
        {"store": steps.one_layer_for_all}),
    cache_keeps_something_else=("",
        "what is kept is not what its own chunk used (rounded, before positions or norm) | "
        "хранится не то, что использовал сам кусок (округлено, взято до позиций или нормализации)",
        "keep the same k and v | храните те же k и v",
        {"store": steps.with_past(
            lambda past, decoder, width: tuple(np.round(p, 1) for p in past))}),
    single_tokens_not_kept=("",
        "a chunk of one token is read but never joins the cache | "
        "кусок из одного токена прочитан, но в кэш не попадает",
        "append in every call | дописывайте в кэш при каждом вызове",
        {"store": steps.singles_not_kept}),
    past_not_read=("",
        "a chunk reads only itself: the past is never attended to | "
        "кусок читает только себя: прошлое не участвует во внимании",
        "attend to cached and new keys together | внимание на ключи из кэша и новые вместе",
        {"store": steps.nothing_kept}),
    each_chunk_starts_anew=("",
        "every chunk is taken for a text of its own, without a past | "
        "каждый кусок принят за отдельный текст без прошлого",
        "one cache for all chunks of a prompt | один кэш на все куски промпта",
        {"store": steps.nothing_kept, "place": lambda decoder, cache, width: np.arange(width)}),
    results_share_memory=("",
        "the result is a view of a buffer that the next call overwrites | "
        "результат — представление (view) буфера, который перезапишет следующий вызов",
        "return a copy | верните копию", {"finish": steps.same_array}),
    ids_used_up=("",
        "the caller's ids are changed while they are read | "
        "переданный список ids изменён при чтении",
        "ids = list(ids)", {"admit": steps.ids_taken}),
    chunks_used_up=("",
        "the caller's chunks are changed while they are read | "
        "переданный список chunks изменён при чтении",
        "for width in chunks, not chunks.pop(0) | for width in chunks, без pop(0)",
        {"admit": steps.chunks_noted, "finish": steps.chunks_taken}),
    cached_pass_with_a_window=("",
        "with the cache a token reads only the last few tokens, fewer than the context holds | "
        "с кэшем токен читает лишь несколько последних токенов — меньше, чем вмещает контекст",
        "the same mask in both passes | одна маска в обоих проходах",
        {"see": steps.last_places}),
    prefix_not_compared=("",
        "a text that starts like the last one is answered from that one's cache, though it goes on "
        "differently | "
        "на текст, который начинается как прежний, отвечает кэш прежнего, хотя продолжение другое",
        "reuse only the tokens that are equal | берите только совпавшие токены",
        steps.decoder_with_prefix),
)
# fmt: on
