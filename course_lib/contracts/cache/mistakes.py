"""Key-value caches that are wrong in one way each, as people reported them."""

import numpy as np

from course_lib.contracts.cache import steps
from course_lib.contracts.cache.tiny_decoder import TinyDecoder, seen_keys, stored
from course_lib.contracts.engine.mistake import mistakes

_DIAGONAL = "tril(diagonal=n_keys - n_queries)"
_MASK = "mask every chunk of two tokens or more | маска нужна каждому куску от двух токенов"
_PLACES = "positions = cache_length + arange(width)"
_TOO_LONG = "raise if len(ids) > context_length | исключение при len(ids) > context_length"
_FULL = (
    "raise if cache_length + width > context_length | "
    "исключение при cache_length + width > context_length"
)
_WRITTEN = "read buffer[:length], not the whole buffer | читайте buffer[:length], а не весь буфер"
_COPIED = "allocate anew, then copy [..., :length, :] | новый буфер, затем копия [..., :length, :]"

# fmt: off
CACHE_MISTAKES = mistakes(
    TinyDecoder,
    mask_top_left=("hyprstream/hyprstream#1521",
        "the mask of a later chunk starts at its upper left corner and hides the past | "
        "маска следующего куска начинается в левом верхнем углу и закрывает прошлое",
        _DIAGONAL, {"see": lambda decoder, width, n_keys, offset: seen_keys(width, n_keys, 0)}),
    mask_top_left_if_wide=("pytorch/executorch#21749",
        "single tokens are right, but the mask of a wider chunk hides the past | "
        "по одному токену всё верно, но маска широкого куска закрывает прошлое",
        _DIAGONAL,
        {"see": lambda decoder, width, n_keys, offset:
            seen_keys(width, n_keys, 0 if width > 1 else n_keys - 1)}),
    no_mask_in_later_chunks=("mlx-node/mlx-node#24",
        "a chunk that comes after a past gets no mask: its tokens read the future | "
        "кусок, у которого есть прошлое, остаётся без маски: его токены читают будущее",
        _MASK,
        {"see": lambda decoder, width, n_keys, offset:
            seen_keys(width, n_keys, n_keys if offset else 0)}),
    no_mask_with_cache=("Mikyx-1/TinyLLM#17",
        "with a cache there is no mask at all: prefill reads the future | "
        "с кэшем маски нет вовсе: при предзаполнении токены читают будущее",
        _MASK,
        {"see": lambda decoder, width, n_keys, offset: np.ones((width, n_keys), dtype=bool)}),
    one_ahead_with_cache=("",
        "inside a chunk a token reads the next one: the mask is one diagonal too wide | "
        "внутри куска токен читает следующий: маска шире на одну диагональ",
        _DIAGONAL,
        {"see": lambda decoder, width, n_keys, offset:
            seen_keys(width, n_keys, n_keys - width + 1)}),
    one_ahead_in_later_chunks=("",
        "in a chunk that comes after a past, a token reads the next one too | "
        "в куске, у которого есть прошлое, токен читает и следующий",
        _DIAGONAL,
        {"see": lambda decoder, width, n_keys, offset:
            seen_keys(width, n_keys, n_keys - width + (1 if offset else 0))}),
    positions_restart=("lucidrains/x-transformers#219",
        "positions start from 0 again in every chunk | в каждом куске позиции снова начинаются с 0",
        _PLACES, {"place": lambda decoder, cache, width: np.arange(width)}),
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
        _PLACES, {"place": lambda decoder, cache, width: cache.length + np.zeros(width)}),
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
        _FULL, {"admit": steps.anything}),
    oldest_dropped_when_full=("",
        "a full cache writes over its oldest tokens instead of refusing | "
        "полный кэш пишет поверх самых старых токенов вместо отказа",
        _FULL, {"admit": steps.anything, "store": steps.slid}),
    front_cut_when_too_long=("ollama/ollama#14259",
        "the front of a text that is too long is cut off without an error | "
        "начало слишком длинного текста отрезано без ошибки",
        _TOO_LONG, {"admit": lambda decoder, ids, *_: ids[-decoder.context_length :]}),
    end_cut_when_too_long=("",
        "the end of a text that is too long is left out without an error | "
        "конец слишком длинного текста отброшен без ошибки",
        _TOO_LONG, {"admit": lambda decoder, ids, *_: ids[: decoder.context_length]}),
    full_pass_without_limit=("",
        "the full pass answers for more tokens than the context holds | "
        "полный проход отвечает и на текст длиннее контекста",
        _TOO_LONG, {"admit_full": steps.anything}),
    cached_positions_shifted=("",
        "with the cache all positions are off by a constant, from the first token on | "
        "с кэшем все позиции сдвинуты на одно и то же число, с первого токена",
        "the first token stands at 0 | первый токен стоит на позиции 0",
        {"place": lambda decoder, cache, width: cache.length + 1 + np.arange(width)}),
    cached_pass_by_another_formula=("",
        "the cached pass agrees with itself, but not with the full one: another formula | "
        "проход с кэшем сам себе не противоречит, но с полным расходится: формула другая",
        "one code for both passes | один код для обоих проходов",
        {"scale": lambda decoder, offset: 1.0, "place": lambda decoder, cache, width:
            (cache.length + np.arange(width) + 0.5) / 2}),
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
        _WRITTEN,
        {"begin": steps.kept_but_rewound, "store": steps.in_slots, "see": steps.past_window}),
    whole_buffer_read=("",
        "the size of the buffer is taken for its length: empty places are attended to | "
        "размер буфера принят за длину: внимание попадает и на пустые места",
        _WRITTEN, {"store": steps.whole_buffer, "see": steps.past_window}),
    one_token_reads_the_buffer=("lucidrains/x-transformers@4465de5",
        "a single new token reads empty places of the buffer: it gets no mask | "
        "единственный новый токен читает пустые места буфера: он без маски",
        _WRITTEN, {"store": steps.buffer_if_one, "see": steps.past_window}),
    trimmed_too_early=("clankur/einygpt#2",
        "old tokens are dropped although the context still has room | "
        "старые токены отброшены, хотя в контексте ещё есть место",
        "drop nothing before context_length is full | "
        "не отбрасывайте, пока context_length не заполнен",
        {"store": steps.joined_to(lambda decoder, past, new: past[4 - decoder.context_length :])}),
    last_slot_overwritten=("",
        "every chunk is written over the last token before it | "
        "каждый кусок записан поверх последнего токена перед ним",
        "pointer += width, not width - 1 | указатель += width, а не width - 1",
        {"store": steps.joined_to(lambda decoder, past, new: past[:-1])}),
    pointer_one_short=("",
        "the second chunk is written over the last token of the first | "
        "второй кусок записан поверх последнего токена первого",
        "write at cache_length | пишите с места cache_length",
        {"store": stored(lambda decoder, cache, past, new:
            np.concatenate([past[:-1] if cache.calls == 1 else past, new]))}),
    growth_destroys_layout=("karpathy/nanochat@b062b42",
        "when the buffer grows, what it held is mixed up | "
        "когда буфер растёт, его прежнее содержимое перемешивается",
        _COPIED, {"store": steps.joined_to(steps.shuffled_by_growth)}),
    growth_loses_the_past=("",
        "when the buffer grows, what it held is lost | "
        "когда буфер растёт, его прежнее содержимое теряется",
        _COPIED,
        {"store": steps.joined_to(lambda decoder, past, new:
            0 * past if steps.must_grow(past, new) else past)}),
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
        {"store": steps.joined_to(lambda decoder, past, new: np.round(past, 1))}),
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
        "the same mask in both passes | одна маска в обоих проходах", {"see": steps.last_places}),
    prefix_not_compared=("",
        "a text that starts like the last one is answered from that one's cache, though it goes "
        "on differently | на текст, который начинается как прежний, отвечает кэш прежнего, хотя "
        "продолжение другое",
        "reuse only the tokens that are equal | берите только совпавшие токены",
        steps.decoder_with_prefix),
)
# fmt: on
