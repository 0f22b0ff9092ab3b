"""Multi-head attentions that hide the wrong tokens: the future, the padding, or both."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from course_lib.contracts.engine.mistake import Mistake
from course_lib.contracts.heads._multi_heads import (
    HeadsCall,
    heads_past,
    heads_real,
    heads_softmax,
    mistaken_heads,
)


def _heads_by_causal(rule: Callable[[Tensor, Tensor], Tensor]) -> partial:
    """Another causal mask, rule(i, j) -> may read, wherever one is asked for."""

    def past(call: HeadsCall) -> Tensor:
        return rule(*call.positions) if call.causal else heads_past(call)

    return partial(mistaken_heads, past=past)


def _heads_first_causal(call: HeadsCall) -> Tensor:
    i, j = call.positions
    others = torch.arange(call.n_heads)[:, None, None] > 0
    return (j <= i) | others | (not call.causal)


def _heads_item_causal(call: HeadsCall) -> Tensor:
    i, j = call.positions
    others = torch.arange(call.x.shape[0])[:, None, None, None] > 0
    return (j <= i) | others | (not call.causal)


def _heads_causal_if(call: HeadsCall, wanted: bool) -> Tensor:
    i, j = call.positions
    return (j <= i) | (not (call.causal and wanted))


def _heads_causal_if_valid(call: HeadsCall) -> Tensor:
    return _heads_causal_if(call, call.token_valid is not None)


def _heads_valid_on_heads(call: HeadsCall) -> Tensor:
    """[B, T] laid over the heads as [1, B, 1, T], which fits where B equals H."""
    fits = call.x.shape[0] == call.n_heads
    return call.valid[None, :, None, :] if fits else heads_real(call)


def _heads_valid_tiled(call: HeadsCall) -> Tensor:
    """Rows of B * H heads in order of items, against padding repeated in order of heads."""
    items, n_heads = call.x.shape[0], call.n_heads
    return call.valid.repeat(n_heads, 1).unflatten(0, (items, n_heads)).unsqueeze(2)


def _heads_valid_lengths(call: HeadsCall) -> Tensor:
    """Only the number of real tokens counts: they are taken to be the first ones."""
    lengths = call.valid.sum(-1, keepdim=True)
    return (torch.arange(call.x.shape[1]) < lengths)[:, None, None, :]


def _heads_zeroed(call: HeadsCall) -> HeadsCall:
    zeroed = call.x * call.valid.unsqueeze(-1)
    return call._replace(x=zeroed, token_valid=None)


def _heads_valid_unless(call: HeadsCall, causal: bool) -> Tensor:
    return heads_real(call) | (call.causal is causal)


def _heads_nan_rows(scores: Tensor, keep: Tensor) -> Tensor:
    weights = heads_softmax(scores, keep)
    return weights.masked_fill(~keep.any(-1, keepdim=True), float("nan"))


HEADS_MASK_MISTAKES = (
    Mistake(
        "causal_ignored",
        "pytorch/pytorch#99282",
        _heads_by_causal(lambda i, j: j >= 0 * i),
        {"en": "causal=True has no effect", "ru": "causal=True ничего не меняет"},
        {"en": "if causal: allowed &= j <= i", "ru": "if causal: allowed &= j <= i"},
    ),
    Mistake(
        "causal_always",
        "a mutation of right code",
        partial(mistaken_heads, past=lambda call: heads_past(call._replace(causal=True))),
        {
            "en": "causal=False changes nothing: the future is hidden",
            "ru": "causal=False ничего не меняет: будущее закрыто",
        },
        {"en": "j <= i only if causal", "ru": "j <= i только при causal"},
    ),
    Mistake(
        "causal_inverted",
        "rasbt/LLMs-from-scratch#1061",
        _heads_by_causal(lambda i, j: j > i),
        {
            "en": "the causal mask is inverted: a token reads only the future",
            "ru": "причинная маска инвертирована: токен читает только будущее",
        },
        {"en": "True = may read: j <= i", "ru": "True = разрешено читать: j <= i"},
    ),
    Mistake(
        "causal_transposed",
        "huggingface/transformers#48745",
        _heads_by_causal(lambda i, j: j >= i),
        {
            "en": "the causal mask is turned round: a token reads itself and the future",
            "ru": "причинная маска транспонирована: токен читает себя и будущее",
        },
        {"en": "tril, not triu: rows are queries", "ru": "tril, а не triu: строки — запросы"},
    ),
    Mistake(
        "causal_blind_to_itself",
        "jadore801120/attention-is-all-you-need-pytorch#19",
        _heads_by_causal(lambda i, j: j < i),
        {
            "en": "a token cannot read itself, and the first one reads nothing",
            "ru": "токен не читает себя, а первый не читает ничего",
        },
        {"en": "j <= i: the diagonal stays", "ru": "j <= i: диагональ остаётся"},
    ),
    Mistake(
        "causal_one_ahead",
        "RVC-Boss/GPT-SoVITS#965",
        _heads_by_causal(lambda i, j: j <= i + 1),
        {"en": "a token reads the next one as well", "ru": "токен читает и следующий"},
        {"en": "tril(0), not tril(1)", "ru": "tril(0), а не tril(1)"},
    ),
    Mistake(
        "causal_for_first_head",
        "a mutation of right code",
        partial(mistaken_heads, past=_heads_first_causal),
        {
            "en": "the causal mask holds for head 0 only",
            "ru": "причинная маска действует только на голову 0",
        },
        {"en": "one mask [T, T] for all the heads", "ru": "одна маска [T, T] на все головы"},
    ),
    Mistake(
        "causal_for_first_item",
        "huggingface/candle#3582",
        partial(mistaken_heads, past=_heads_item_causal),
        {
            "en": "the causal mask holds for the first item of the batch only",
            "ru": "причинная маска действует только на первый элемент пакета",
        },
        {"en": "one mask [T, T] for the whole batch", "ru": "одна маска [T, T] на весь пакет"},
    ),
    Mistake(
        "causal_lost_when_padded",
        "lucidrains/x-transformers@d69d33c",
        partial(mistaken_heads, past=lambda call: _heads_causal_if(call, bool(call.valid.all()))),
        {
            "en": "the causal mask is lost where there is padding",
            "ru": "причинная маска теряется там, где есть дополнение",
        },
        {"en": "both masks: allowed & causal", "ru": "обе маски: allowed & causal"},
    ),
    Mistake(
        "causal_lost_without_padding",
        "facebookresearch/xformers#103",
        partial(mistaken_heads, past=_heads_causal_if_valid),
        {
            "en": "the causal mask is lost where token_valid is None",
            "ru": "причинная маска теряется при token_valid=None",
        },
        {"en": "build the causal mask in any case", "ru": "причинная маска нужна всегда"},
    ),
    Mistake(
        "padding_ignored",
        "hyunwoongko/transformer#40",
        partial(mistaken_heads, real=lambda call: torch.ones_like(heads_real(call))),
        {
            "en": "padding is read: token_valid is ignored, or laid over the queries, "
            "[B, 1, T, 1], instead of the keys",
            "ru": "дополнение читается: token_valid не учтён или лёг на запросы, "
            "[B, 1, T, 1], а не на ключи",
        },
        {"en": "token_valid[:, None, None, :]", "ru": "token_valid[:, None, None, :]"},
    ),
    Mistake(
        "padding_inverted",
        "InseeFrLab/torchTextClassifiers#92",
        partial(mistaken_heads, real=lambda call: ~heads_real(call)),
        {
            "en": "True in token_valid means padding (here True = a real token)",
            "ru": "True в token_valid значит «дополнение» (здесь True = настоящий токен)",
        },
        {
            "en": "key_padding_mask=~token_valid for torch's module",
            "ru": "key_padding_mask=~token_valid для модуля из torch",
        },
    ),
    Mistake(
        "padding_on_heads",
        "keras-team/keras-hub#2911",
        partial(mistaken_heads, real=_heads_valid_on_heads),
        {
            "en": "the batch axis of token_valid is laid over the heads, which fits if B = H",
            "ru": "ось пакета в token_valid попадает на ось голов: при B = H это незаметно",
        },
        {"en": "token_valid[:, None, None, :]", "ru": "token_valid[:, None, None, :]"},
    ),
    Mistake(
        "padding_of_first_item",
        "facebookresearch/jepa#93",
        partial(mistaken_heads, real=lambda call: heads_real(call)[:1]),
        {
            "en": "the first item's token_valid is used for the whole batch",
            "ru": "token_valid первого элемента применяется ко всему пакету",
        },
        {"en": "token_valid[:, None, None, :]", "ru": "token_valid[:, None, None, :]"},
    ),
    Mistake(
        "padding_in_wrong_order",
        "lsdefine/attention-is-all-you-need-keras#36",
        partial(mistaken_heads, real=_heads_valid_tiled),
        {
            "en": "padding is repeated head by head while the rows go item by item: it lands "
            "on other items",
            "ru": "дополнение повторено по головам, а строки идут по элементам: маска "
            "достаётся чужим элементам",
        },
        {
            "en": "token_valid.repeat_interleave(n_heads, dim=0)",
            "ru": "token_valid.repeat_interleave(n_heads, dim=0)",
        },
    ),
    Mistake(
        "padding_taken_for_lengths",
        "huggingface/transformers#35909",
        partial(mistaken_heads, real=_heads_valid_lengths),
        {
            "en": "real tokens are counted and taken to be the first ones: padding on the left "
            "is read",
            "ru": "настоящие токены посчитаны и приняты за первые: дополнение слева читается",
        },
        {"en": "use token_valid itself", "ru": "берите сам token_valid"},
    ),
    Mistake(
        "padding_zeroed",
        "ilivans/tf-rnn-attention#11",
        partial(mistaken_heads, begin=_heads_zeroed),
        {
            "en": "padding is set to zero but read: zeros take their share of the softmax",
            "ru": "дополнение обнулено, но читается: нули берут свою долю softmax",
        },
        {"en": "hide it: scores of -inf", "ru": "закройте его: оценки -inf"},
    ),
    Mistake(
        "padding_lost_when_causal",
        "AI-Hypercomputer/maxtext#878",
        partial(mistaken_heads, real=lambda call: _heads_valid_unless(call, True)),
        {
            "en": "padding is read where causal=True: one mask replaces the other",
            "ru": "при causal=True дополнение читается: одна маска заменила другую",
        },
        {"en": "both masks: allowed & causal", "ru": "обе маски: allowed & causal"},
    ),
    Mistake(
        "padding_only_when_causal",
        "a mutation of right code",
        partial(mistaken_heads, real=lambda call: _heads_valid_unless(call, False)),
        {
            "en": "padding is hidden only where causal=True",
            "ru": "дополнение закрыто только при causal=True",
        },
        {"en": "hide padding in any case", "ru": "закрывайте дополнение всегда"},
    ),
    Mistake(
        "mask_discarded",
        "opendilab/DI-engine#333",
        partial(mistaken_heads, weigh=lambda scores, keep: scores.softmax(-1)),
        {
            "en": "no mask takes effect, for example masked_fill without its result being kept",
            "ru": "ни одна маска не действует, например результат masked_fill потерян",
        },
        {
            "en": "scores = scores.masked_fill(~allowed, -math.inf)",
            "ru": "scores = scores.masked_fill(~allowed, -math.inf)",
        },
    ),
    Mistake(
        "nan_for_empty_rows",
        "pytorch/pytorch#41508",
        partial(mistaken_heads, weigh=_heads_nan_rows),
        {
            "en": "rows that may read nothing come back as NaN, and poison every gradient",
            "ru": "строки, которым нечего читать, возвращаются как NaN и портят все градиенты",
        },
        {"en": "masked_fill(empty_rows, 0)", "ru": "masked_fill(empty_rows, 0)"},
    ),
)
