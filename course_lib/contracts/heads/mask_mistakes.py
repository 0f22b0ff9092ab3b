"""Multi-head attentions that hide the wrong tokens: the future, the padding, or both."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.engine.mistake import mistakes
from course_lib.contracts.heads.calls import HeadsCall
from course_lib.contracts.heads.steps import (
    masked_softmax,
    mistaken_heads,
    past_keys,
    real_keys,
)


def _by_causal(rule: Callable[[Tensor, Tensor], Tensor]) -> dict[str, Any]:
    """Another causal mask, rule(i, j) -> may read, wherever one is asked for."""

    def past(call: HeadsCall) -> Tensor:
        return rule(*call.positions) if call.causal else past_keys(call)

    return {"past": past}


def _others(count: int, place: int) -> Tensor:
    """All but the first, along the axis so far before the last two."""
    return (torch.arange(count) > 0).reshape(-1, *(1,) * (place + 1))


def _valid_on_heads(call: HeadsCall) -> Tensor:
    """[B, T] laid over the heads as [1, B, 1, T], which fits where B equals H."""
    fits = call.x.shape[0] == call.n_heads
    return call.valid[None, :, None, :] if fits else real_keys(call)


def _valid_tiled(call: HeadsCall) -> Tensor:
    """Rows of B * H heads in order of items, against padding repeated in order of heads."""
    items, n_heads = call.x.shape[0], call.n_heads
    return call.valid.repeat(n_heads, 1).unflatten(0, (items, n_heads)).unsqueeze(2)


# fmt: off
MASK_MISTAKES = mistakes(
    mistaken_heads,
    causal_ignored=("pytorch/pytorch#99282",
        "causal=True has no effect | causal=True ничего не меняет",
        "if causal: allowed &= j <= i", _by_causal(lambda i, j: j >= 0 * i)),
    causal_always=("",
        "causal=False changes nothing: the future is hidden | "
        "causal=False ничего не меняет: будущее закрыто",
        "j <= i only if causal | j <= i только при causal",
        {"past": lambda call: past_keys(call.but(causal=True))}),
    causal_inverted=("rasbt/LLMs-from-scratch#1061",
        "the causal mask is inverted: a token reads only the future | "
        "причинная маска инвертирована: токен читает только будущее",
        "True = may read: j <= i | True = разрешено читать: j <= i",
        _by_causal(lambda i, j: j > i)),
    causal_transposed=("huggingface/transformers#48745",
        "the causal mask is turned round: a token reads itself and the future | "
        "причинная маска транспонирована: токен читает себя и будущее",
        "tril, not triu: rows are queries | tril, а не triu: строки — запросы",
        _by_causal(lambda i, j: j >= i)),
    causal_blind_to_itself=("jadore801120/attention-is-all-you-need-pytorch#19",
        "a token cannot read itself, and the first one reads nothing | "
        "токен не читает себя, а первый не читает ничего",
        "j <= i: the diagonal stays | j <= i: диагональ остаётся", _by_causal(lambda i, j: j < i)),
    causal_one_ahead=("RVC-Boss/GPT-SoVITS#965",
        "a token reads the next one as well | токен читает и следующий",
        "tril(0), not tril(1) | tril(0), а не tril(1)", _by_causal(lambda i, j: j <= i + 1)),
    causal_for_first_head=("",
        "the causal mask holds for head 0 only | причинная маска действует только на голову 0",
        "one mask [T, T] for all the heads | одна маска [T, T] на все головы",
        {"past": lambda call: past_keys(call) | _others(call.n_heads, 1)}),
    causal_for_first_item=("huggingface/candle#3582",
        "the causal mask holds for the first item of the batch only | "
        "причинная маска действует только на первый элемент батча",
        "one mask [T, T] for the whole batch | одна маска [T, T] на весь батч",
        {"past": lambda call: past_keys(call) | _others(len(call.x), 2)}),
    causal_lost_when_padded=("lucidrains/x-transformers@d69d33c",
        "the causal mask is lost where there is padding | "
        "причинная маска теряется там, где есть паддинг",
        "both masks: allowed & causal | обе маски: allowed & causal",
        {"past": lambda call: past_keys(call) | (not call.valid.all())}),
    causal_lost_without_padding=("facebookresearch/xformers#103",
        "the causal mask is lost where token_valid is None | "
        "причинная маска теряется при token_valid=None",
        "build the causal mask in any case | причинная маска нужна всегда",
        {"past": lambda call: past_keys(call) | (call.token_valid is None)}),
    padding_ignored=("hyunwoongko/transformer#40",
        "padding is read: token_valid is ignored, or laid over the queries, [B, 1, T, 1], instead "
        "of the keys | "
        "паддинг читается: token_valid не учтён или лёг на запросы, [B, 1, T, 1], а не на ключи",
        "token_valid[:, None, None, :]", {"real": lambda call: torch.ones_like(real_keys(call))}),
    padding_inverted=("InseeFrLab/torchTextClassifiers#92",
        "True in token_valid means padding (here True = a real token) | "
        "True в token_valid значит «паддинг» (здесь True = настоящий токен)",
        "key_padding_mask=~token_valid for torch's module | "
        "key_padding_mask=~token_valid для модуля из torch",
        {"real": lambda call: ~real_keys(call)}),
    padding_on_heads=("keras-team/keras-hub#2911",
        "the batch axis of token_valid is laid over the heads, which fits if B = H | "
        "ось батча в token_valid попадает на ось голов: при B = H это незаметно",
        "token_valid[:, None, None, :]", {"real": _valid_on_heads}),
    padding_of_first_item=("facebookresearch/jepa#93",
        "the first item's token_valid is used for the whole batch | "
        "token_valid первого элемента применяется ко всему батчу",
        "token_valid[:, None, None, :]", {"real": lambda call: real_keys(call)[:1]}),
    padding_in_wrong_order=("lsdefine/attention-is-all-you-need-keras#36",
        "padding is repeated head by head while the rows go item by item: it lands on other items "
        "| паддинг повторён по головам, а строки идут по элементам: маска достаётся чужим "
        "элементам",
        "token_valid.repeat_interleave(n_heads, dim=0)", {"real": _valid_tiled}),
    padding_taken_for_lengths=("huggingface/transformers#35909",
        "real tokens are counted and taken to be the first ones: padding on the left is read | "
        "настоящие токены посчитаны и приняты за первые: паддинг слева читается",
        "use token_valid itself | берите сам token_valid",
        {"real": lambda call: real_keys(call).sort(-1, descending=True).values}),
    padding_zeroed=("ilivans/tf-rnn-attention#11",
        "padding is set to zero but read: zeros take their share of the softmax | "
        "паддинг обнулён, но читается: нули берут свою долю softmax",
        "hide it: scores of -inf | закройте его: оценки -inf",
        {"begin": lambda call: call.but(x=call.x * call.valid[..., None], token_valid=None)}),
    padding_lost_when_causal=("AI-Hypercomputer/maxtext#878",
        "padding is read where causal=True: one mask replaces the other | "
        "при causal=True паддинг читается: одна маска заменила другую",
        "both masks: allowed & causal | обе маски: allowed & causal",
        {"real": lambda call: real_keys(call) | call.causal}),
    padding_only_when_causal=("",
        "padding is hidden only where causal=True | паддинг закрыт только при causal=True",
        "hide padding in any case | закрывайте паддинг всегда",
        {"real": lambda call: real_keys(call) | (not call.causal)}),
    mask_discarded=("opendilab/DI-engine#333",
        "no mask takes effect, for example masked_fill without its result being kept | "
        "ни одна маска не действует, например результат masked_fill потерян",
        "scores = scores.masked_fill(~allowed, -math.inf)",
        {"weigh": lambda scores, keep: scores.softmax(-1)}),
    nan_for_empty_rows=("pytorch/pytorch#41508",
        "rows that may read nothing come back as NaN, and poison every gradient | "
        "строки, которым нечего читать, возвращаются как NaN и портят все градиенты",
        "masked_fill(empty_rows, 0)",
        {"weigh": lambda scores, keep: masked_softmax(scores, keep).masked_fill(
            ~keep.any(-1, keepdim=True), math.nan)}),
)
# fmt: on
