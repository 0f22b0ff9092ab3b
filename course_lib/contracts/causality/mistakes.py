"""Language models that read what they have to predict, or one another, as people reported them."""

from course_lib.contracts.causality._causality_steps import (
    backwards_lm,
    dropping_lm,
    first_item_rule,
    inverted_weights,
    logits_one_early,
    marking_lm,
    norm_over_items,
    norm_over_time,
    one_ahead_rule,
    open_rule,
    padding_only_rule,
    remembering_lm,
    small_table_rule,
    with_chunk_means,
    with_circular_past,
    with_items_mixed,
    with_last_token,
    with_neighbours,
    with_next_token,
)
from course_lib.contracts.causality._tiny_causal import causal_rule, tiny_causal_lm
from course_lib.contracts.engine.mistake import Mistake

CAUSALITY_MISTAKES = (
    Mistake(
        "mask_missing",
        "huggingface/transformers#48745",
        lambda: tiny_causal_lm(allowed=open_rule),
        {
            "en": "attention hides nothing: the mask is missing, is added as 0 and 1, is undone by "
            "a second softmax, or is forgotten in one layer or head",
            "ru": "внимание ничего не скрывает: маски нет, или она прибавлена как 0 и 1, "
            "или снята вторым softmax, или забыта в каком-то слое или голове",
        },
        {
            "en": "scores.masked_fill(~allowed, -inf) in every layer",
            "ru": "scores.masked_fill(~allowed, -inf) в каждом слое",
        },
    ),
    Mistake(
        "summary_over_time",
        "espnet/espnet#5900",
        lambda: tiny_causal_lm(norm=norm_over_time),
        {
            "en": "a mean, a norm or a pooling is taken over the whole text, not over one token",
            "ru": "среднее, нормализация или пулинг берётся по всему тексту, а не по токену",
        },
        {"en": "each token alone: dim=-1", "ru": "каждый токен отдельно: dim=-1"},
    ),
    Mistake(
        "mask_inverted",
        "pytorch/pytorch#120668",
        lambda: tiny_causal_lm(weigh=inverted_weights),
        {
            "en": "the mask is read the other way round: the future is open, the past is hidden",
            "ru": "маска понята наоборот: будущее открыто, прошлое закрыто",
        },
        {"en": "masked_fill(~allowed, -inf)", "ru": "masked_fill(~allowed, -inf)"},
    ),
    Mistake(
        "mask_transposed",
        "a mutation of right code",
        lambda: tiny_causal_lm(allowed=lambda ids: causal_rule(ids).mT),
        {
            "en": "queries and keys of the mask are swapped: a token reads only the future",
            "ru": "запросы и ключи маски переставлены: токен читает только будущее",
        },
        {"en": "tril, not triu: rows are queries", "ru": "tril, а не triu: строки — запросы"},
    ),
    Mistake(
        "read_backwards",
        "a mutation of right code",
        backwards_lm,
        {
            "en": "the text is read from its end, in both directions or in reverse",
            "ru": "текст читается с конца или сразу в обе стороны",
        },
        {"en": "no flip of the time axis", "ru": "не переворачивайте ось времени"},
    ),
    Mistake(
        "one_ahead",
        "RVC-Boss/GPT-SoVITS#965",
        lambda: tiny_causal_lm(allowed=one_ahead_rule),
        {
            "en": "the mask is one off: a token reads the next one, which it has to predict",
            "ru": "маска сдвинута на один: токен читает следующий, который должен предсказать",
        },
        {"en": "tril(0), not tril(1)", "ru": "tril(0), а не tril(1)"},
    ),
    Mistake(
        "symmetric_convolution",
        "xi029/Qwen3-VL-MoeLORA#4",
        lambda: tiny_causal_lm(mix=with_neighbours),
        {
            "en": "a convolution is padded on both sides, so it reads the tokens to the right",
            "ru": "свёртка дополнена с обеих сторон и читает токены справа",
        },
        {"en": "F.pad(x, (kernel - 1, 0)): left only", "ru": "F.pad(x, (kernel - 1, 0)): слева"},
    ),
    Mistake(
        "next_token_added",
        "a mutation of right code",
        lambda: tiny_causal_lm(mix=with_next_token),
        {
            "en": "the target is among the inputs: what follows is added or concatenated",
            "ru": "среди входов есть цель: следующий токен прибавлен или приписан",
        },
        {"en": "input ids[:, :-1], targets ids[:, 1:]", "ru": "вход ids[:, :-1], цели ids[:, 1:]"},
    ),
    Mistake(
        "logits_shifted",
        "a mutation of right code",
        lambda: tiny_causal_lm(finish=logits_one_early),
        {
            "en": "the logits are moved one place, so that place t tells what token t + 1 gives",
            "ru": "логиты сдвинуты на одну позицию: на позиции t стоит то, что даёт токен t + 1",
        },
        {"en": "shift the targets, not the logits", "ru": "сдвигайте цели, а не логиты"},
    ),
    Mistake(
        "circular_convolution",
        "karpathy/nanochat#844",
        lambda: tiny_causal_lm(mix=with_circular_past),
        {
            "en": "the time axis is a circle (roll, FFT): the first tokens read the last ones",
            "ru": "ось времени замкнута (roll, FFT): первые токены читают последние",
        },
        {"en": "pad with zeros on the left", "ru": "дополните нулями слева"},
    ),
    Mistake(
        "chunk_summary",
        "karpathy/nanochat#844",
        lambda: tiny_causal_lm(mix=with_chunk_means),
        {
            "en": "every token gets a summary of its whole chunk, later tokens included",
            "ru": "каждый токен получает сводку всего своего куска, включая более поздние токены",
        },
        {"en": "summaries of finished chunks only", "ru": "только сводки прошлых кусков"},
    ),
    Mistake(
        "last_token_added",
        "a mutation of right code",
        lambda: tiny_causal_lm(mix=with_last_token),
        {
            "en": "the last token, taken for a summary of the text, reaches every place",
            "ru": "последний токен, взятый как сводка текста, попадает на все позиции",
        },
        {"en": "each place has only its own past", "ru": "у каждой позиции только своё прошлое"},
    ),
    Mistake(
        "mask_table_too_small",
        "a mutation of right code",
        lambda: tiny_causal_lm(allowed=small_table_rule),
        {
            "en": "texts longer than a stored mask are not masked",
            "ru": "тексты длиннее хранимой маски идут без маски",
        },
        {"en": "make the mask for the length that came", "ru": "стройте маску по длине входа"},
    ),
    Mistake(
        "mask_for_first_item",
        "facebookresearch/jepa#93",
        lambda: tiny_causal_lm(allowed=first_item_rule),
        {
            "en": "only the first item of the batch is masked",
            "ru": "маска действует только на первый элемент пакета",
        },
        {"en": "let [T, T] broadcast over the batch", "ru": "маска [T, T] на весь пакет"},
    ),
    Mistake(
        "mask_lost_with_padding",
        "keras-team/keras#23038",
        lambda: tiny_causal_lm(allowed=padding_only_rule),
        {
            "en": "where there is padding (id 0), the causal mask gives way to the padding mask",
            "ru": "там, где есть дополнение (id 0), причинная маска уступает маске дополнения",
        },
        {"en": "causal & token_valid: both at once", "ru": "causal & token_valid: обе сразу"},
    ),
    Mistake(
        "normalised_over_items",
        "a mutation of right code",
        lambda: tiny_causal_lm(norm=norm_over_items),
        {
            "en": "a batch norm in training mode: the items of the batch change one another",
            "ru": "нормализация по пакету в режиме обучения: элементы пакета влияют друг на друга",
        },
        {"en": "LayerNorm, or model.eval()", "ru": "LayerNorm или model.eval()"},
    ),
    Mistake(
        "items_mixed",
        "jsbaan/transformer-from-scratch#6",
        lambda: tiny_causal_lm(mix=with_items_mixed),
        {
            "en": "the items of a batch reach one another: a reshape, a sort, a mean over axis 0",
            "ru": "элементы пакета смешаны: reshape, сортировка или среднее по его оси",
        },
        {
            "en": "keep axis 0 apart, from input to logits",
            "ru": "не трогайте ось 0 от входа до логитов",
        },
    ),
    Mistake(
        "dropout_active",
        "karpathy/nanoGPT@7399dfe3",
        dropping_lm,
        {
            "en": "dropout is on, and every call gives other logits",
            "ru": "включён dropout, и каждый вызов даёт другие логиты",
        },
        {"en": "call model.eval() first", "ru": "сначала вызовите model.eval()"},
    ),
    Mistake(
        "earlier_call_remembered",
        "casper-hansen/AutoAWQ#170",
        remembering_lm,
        {
            "en": "a state (a cache) of the earlier call is read by the next one",
            "ru": "следующий вызов читает состояние (кэш), оставшееся от прежнего",
        },
        {"en": "begin every call without a state", "ru": "начинайте каждый вызов без состояния"},
    ),
    Mistake(
        "token_ids_overwritten",
        "a mutation of right code",
        marking_lm,
        {
            "en": "the call writes into the caller's token_ids",
            "ru": "вызов пишет в переданные token_ids",
        },
        {"en": "token_ids = token_ids.clone() first", "ru": "сначала token_ids.clone()"},
    ),
)
