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
from course_lib.contracts.engine.mistake import mistakes

# fmt: off
CAUSALITY_MISTAKES = mistakes(
    None,
    mask_missing=("huggingface/transformers#48745",
        "attention hides nothing: the mask is missing, is added as 0 and 1, is undone by a second "
        "softmax, or is forgotten in one layer or head | "
        "внимание ничего не скрывает: маски нет, или она прибавлена как 0 и 1, или снята вторым "
        "softmax, или забыта в каком-то слое или голове",
        "scores.masked_fill(~allowed, -inf) in every layer | "
        "scores.masked_fill(~allowed, -inf) в каждом слое",
        lambda: tiny_causal_lm(allowed=open_rule)),
    summary_over_time=("espnet/espnet#5900",
        "a mean, a norm or a pooling is taken over the whole text, not over one token | "
        "среднее, нормализация или пулинг берётся по всему тексту, а не по токену",
        "each token alone: dim=-1 | каждый токен отдельно: dim=-1",
        lambda: tiny_causal_lm(norm=norm_over_time)),
    mask_inverted=("pytorch/pytorch#120668",
        "the mask is read the other way round: the future is open, the past is hidden | "
        "маска понята наоборот: будущее открыто, прошлое закрыто",
        "masked_fill(~allowed, -inf)", lambda: tiny_causal_lm(weigh=inverted_weights)),
    mask_transposed=("",
        "queries and keys of the mask are swapped: a token reads only the future | "
        "запросы и ключи маски переставлены: токен читает только будущее",
        "tril, not triu: rows are queries | tril, а не triu: строки — запросы",
        lambda: tiny_causal_lm(allowed=lambda ids: causal_rule(ids).mT)),
    read_backwards=("",
        "the text is read from its end, in both directions or in reverse | "
        "текст читается с конца или сразу в обе стороны",
        "no flip of the time axis | не переворачивайте ось времени", backwards_lm),
    one_ahead=("RVC-Boss/GPT-SoVITS#965",
        "the mask is one off: a token reads the next one, which it has to predict | "
        "маска сдвинута на один: токен читает следующий, который должен предсказать",
        "tril(0), not tril(1) | tril(0), а не tril(1)",
        lambda: tiny_causal_lm(allowed=one_ahead_rule)),
    symmetric_convolution=("xi029/Qwen3-VL-MoeLORA#4",
        "a convolution is padded on both sides, so it reads the tokens to the right | "
        "свёртка дополнена с обеих сторон и читает токены справа",
        "F.pad(x, (kernel - 1, 0)): left only | F.pad(x, (kernel - 1, 0)): слева",
        lambda: tiny_causal_lm(mix=with_neighbours)),
    next_token_added=("",
        "the target is among the inputs: what follows is added or concatenated | "
        "среди входов есть цель: следующий токен прибавлен или приписан",
        "input ids[:, :-1], targets ids[:, 1:] | вход ids[:, :-1], цели ids[:, 1:]",
        lambda: tiny_causal_lm(mix=with_next_token)),
    logits_shifted=("",
        "the logits are moved one place, so that place t tells what token t + 1 gives | "
        "логиты сдвинуты на одну позицию: на позиции t стоит то, что даёт токен t + 1",
        "shift the targets, not the logits | сдвигайте цели, а не логиты",
        lambda: tiny_causal_lm(finish=logits_one_early)),
    circular_convolution=("karpathy/nanochat#844",
        "the time axis is a circle (roll, FFT): the first tokens read the last ones | "
        "ось времени замкнута (roll, FFT): первые токены читают последние",
        "pad with zeros on the left | дополните нулями слева",
        lambda: tiny_causal_lm(mix=with_circular_past)),
    chunk_summary=("karpathy/nanochat#844",
        "every token gets a summary of its whole chunk, later tokens included | "
        "каждый токен получает сводку всего своего куска, включая более поздние токены",
        "summaries of finished chunks only | только сводки прошлых кусков",
        lambda: tiny_causal_lm(mix=with_chunk_means)),
    last_token_added=("",
        "the last token, taken for a summary of the text, reaches every place | "
        "последний токен, взятый как сводка текста, попадает на все позиции",
        "each place has only its own past | у каждой позиции только своё прошлое",
        lambda: tiny_causal_lm(mix=with_last_token)),
    mask_table_too_small=("",
        "texts longer than a stored mask are not masked | "
        "тексты длиннее хранимой маски идут без маски",
        "make the mask for the length that came | стройте маску по длине входа",
        lambda: tiny_causal_lm(allowed=small_table_rule)),
    mask_for_first_item=("facebookresearch/jepa#93",
        "only the first item of the batch is masked | "
        "маска действует только на первый элемент пакета",
        "let [T, T] broadcast over the batch | маска [T, T] на весь пакет",
        lambda: tiny_causal_lm(allowed=first_item_rule)),
    mask_lost_with_padding=("keras-team/keras#23038",
        "where there is padding (id 0), the causal mask gives way to the padding mask | "
        "там, где есть дополнение (id 0), причинная маска уступает маске дополнения",
        "causal & token_valid: both at once | causal & token_valid: обе сразу",
        lambda: tiny_causal_lm(allowed=padding_only_rule)),
    normalised_over_items=("",
        "a batch norm in training mode: the items of the batch change one another | "
        "нормализация по пакету в режиме обучения: элементы пакета влияют друг на друга",
        "LayerNorm, or model.eval() | LayerNorm или model.eval()",
        lambda: tiny_causal_lm(norm=norm_over_items)),
    items_mixed=("jsbaan/transformer-from-scratch#6",
        "the items of a batch reach one another: a reshape, a sort, a mean over axis 0 | "
        "элементы пакета смешаны: reshape, сортировка или среднее по его оси",
        "keep axis 0 apart, from input to logits | не трогайте ось 0 от входа до логитов",
        lambda: tiny_causal_lm(mix=with_items_mixed)),
    dropout_active=("karpathy/nanoGPT@7399dfe3",
        "dropout is on, and every call gives other logits | "
        "включён dropout, и каждый вызов даёт другие логиты",
        "call model.eval() first | сначала вызовите model.eval()", dropping_lm),
    earlier_call_remembered=("casper-hansen/AutoAWQ#170",
        "a state (a cache) of the earlier call is read by the next one | "
        "следующий вызов читает состояние (кэш), оставшееся от прежнего",
        "begin every call without a state | начинайте каждый вызов без состояния", remembering_lm),
    token_ids_overwritten=("",
        "the call writes into the caller's token_ids | вызов пишет в переданные token_ids",
        "token_ids = token_ids.clone() first | сначала token_ids.clone()", marking_lm),
)
# fmt: on
