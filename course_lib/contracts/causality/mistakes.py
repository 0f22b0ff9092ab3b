"""Language models that read what they have to predict, or one another, as people reported them."""

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.contracts.engine.mistake import mistakes

VOCAB_SIZE = 11
_WIDTH = 6


class _Numbers(NamedTuple):
    """The embeddings, the output matrix and, for each layer, query, key, value and output."""

    embedding: Tensor
    head: Tensor
    layers: tuple[Tensor, ...]


@lru_cache(maxsize=1)
def numbers() -> _Numbers:
    """Draw the numbers once, from a generator of their own."""
    generator = torch.Generator().manual_seed(31)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    layers = tuple(drawn(4, _WIDTH, _WIDTH) / math.sqrt(_WIDTH) for _ in range(2))
    return _Numbers(drawn(VOCAB_SIZE, _WIDTH), drawn(_WIDTH, VOCAB_SIZE), layers)


def causal_rule(token_ids: Tensor, ahead: int = 0) -> Tensor:
    """May query i read key j: no key after the query, or so many more. [T, T]"""
    length = token_ids.shape[1]
    return torch.ones(length, length, dtype=torch.bool).tril(ahead)


def token_norm(x: Tensor, axes: tuple[int, ...] = (-1,)) -> Tensor:
    """Give every token mean 0 and variance 1 over its own numbers, or over these axes."""
    centred = x - x.mean(axes, keepdim=True)
    return centred / (centred.square().mean(axes, keepdim=True) + 1e-5).sqrt()


def tiny_causal_lm(
    *,
    mix: Callable[[Tensor, Tensor], Tensor] = lambda x, token_ids: x,
    allowed: Callable[[Tensor], Tensor] = causal_rule,
    weigh: Callable[[Tensor, Tensor], Tensor] = lambda scores, allowed: scores.masked_fill(
        ~allowed, -math.inf
    ).softmax(-1),
    norm: Callable[[Tensor], Tensor] = token_norm,
    finish: Callable[[Tensor, Tensor], Tensor] = lambda logits, token_ids: logits,
) -> Callable[[Tensor], Tensor]:
    """A language model of two layers, token_ids [B, T] -> logits [B, T, V]; each step a function.

    `mix` changes the embeddings, `finish` the logits; both get the token ids too.
    """
    embedding, head, layers = numbers()

    def model(token_ids: Tensor) -> Tensor:
        position = torch.arange(token_ids.shape[1], dtype=torch.float64).unsqueeze(-1)
        different = torch.sin(position * torch.arange(1, _WIDTH + 1) * 0.7)  # at every length
        x = mix(embedding[token_ids] + different, token_ids)
        may_read = allowed(token_ids)
        for query, key, value, out in layers:
            h = norm(x)
            scores = h @ query @ (h @ key).mT / math.sqrt(_WIDTH)
            x = x + weigh(scores, may_read) @ (h @ value) @ out
        return finish(norm(x) @ head, token_ids)

    return model


def _remembering_lm() -> Callable[[Tensor], Tensor]:
    """A model that adds the last token of the call before."""
    before = [torch.zeros(1, 1, 1, dtype=torch.float64)]

    def with_the_past(x: Tensor, token_ids: Tensor) -> Tensor:
        seen, before[0] = before[0], x[:1, -1:].clone()
        return x + seen

    return tiny_causal_lm(mix=with_the_past)


def _marking_lm() -> Callable[[Tensor], Tensor]:
    """A model that writes a first token into the ids it is given."""
    model = tiny_causal_lm()

    def marked(token_ids: Tensor) -> Tensor:
        token_ids[:, 0] = 1
        return model(token_ids)

    return marked


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
        lambda: tiny_causal_lm(allowed=lambda ids: causal_rule(ids) | True)),
    summary_over_time=("espnet/espnet#5900",
        "a mean, a norm or a pooling is taken over the whole text, not over one token | "
        "среднее, нормализация или пулинг берётся по всему тексту, а не по токену",
        "each token alone: dim=-1 | каждый токен отдельно: dim=-1",
        lambda: tiny_causal_lm(norm=partial(token_norm, axes=(1, 2)))),
    mask_inverted=("pytorch/pytorch#120668",
        "the mask is read the other way round: the future is open, the past is hidden | "
        "маска понята наоборот: будущее открыто, прошлое закрыто", "masked_fill(~allowed, -inf)",
        lambda: tiny_causal_lm(weigh=lambda scores, allowed:
            scores.masked_fill(allowed, -math.inf).softmax(-1).nan_to_num(0.0))),
    mask_transposed=("",
        "queries and keys of the mask are swapped: a token reads only the future | "
        "запросы и ключи маски переставлены: токен читает только будущее",
        "tril, not triu: rows are queries | tril, а не triu: строки — запросы",
        lambda: tiny_causal_lm(allowed=lambda ids: causal_rule(ids).mT)),
    read_backwards=("", "the text is read from its end, in both directions or in reverse | "
        "текст читается с конца или сразу в обе стороны",
        "no flip of the time axis | не переворачивайте ось времени",
        lambda: lambda ids: tiny_causal_lm()(ids.flip(1)).flip(1)),
    one_ahead=("RVC-Boss/GPT-SoVITS#965",
        "the mask is one off: a token reads the next one, which it has to predict | "
        "маска сдвинута на один: токен читает следующий, который должен предсказать",
        "tril(0), not tril(1) | tril(0), а не tril(1)",
        lambda: tiny_causal_lm(allowed=lambda ids: causal_rule(ids, 1))),
    symmetric_convolution=("xi029/Qwen3-VL-MoeLORA#4",
        "a convolution is padded on both sides, so it reads the tokens to the right | "
        "свёртка дополнена с обеих сторон и читает токены справа",
        "F.pad(x, (kernel - 1, 0)): left only | F.pad(x, (kernel - 1, 0)): слева",
        lambda: tiny_causal_lm(mix=lambda x, ids:
            0.5 * F.pad(x, (0, 0, 1, 0))[:, :-1] + x - 0.7 * F.pad(x, (0, 0, 0, 1))[:, 1:])),
    next_token_added=("", "the target is among the inputs: what follows is added or concatenated | "
        "среди входов есть цель: следующий токен прибавлен или приписан",
        "input ids[:, :-1], targets ids[:, 1:] | вход ids[:, :-1], цели ids[:, 1:]",
        lambda: tiny_causal_lm(mix=lambda x, ids:
            x + 0.6 * F.pad(numbers().embedding[ids[:, 1:]], (0, 0, 0, 1)))),
    logits_shifted=("",
        "the logits are moved one place, so that place t tells what token t + 1 gives | "
        "логиты сдвинуты на одну позицию: на позиции t стоит то, что даёт токен t + 1",
        "shift the targets, not the logits | сдвигайте цели, а не логиты",
        lambda: tiny_causal_lm(finish=lambda logits, ids: logits.roll(-1, 1))),
    circular_convolution=("karpathy/nanochat#844",
        "the time axis is a circle (roll, FFT): the first tokens read the last ones | "
        "ось времени замкнута (roll, FFT): первые токены читают последние",
        "pad with zeros on the left | дополните нулями слева",
        lambda: tiny_causal_lm(mix=lambda x, ids: x + 0.6 * x.roll(1, 1))),
    chunk_summary=("karpathy/nanochat#844",
        "every token gets a summary of its whole chunk, later tokens included | "
        "каждый токен получает сводку всего своего куска, включая более поздние токены",
        "summaries of finished chunks only | только сводки прошлых кусков",
        lambda: tiny_causal_lm(mix=lambda x, ids:
            x + torch.cat([part.mean(1, True).expand_as(part) for part in x.split(3, 1)], 1))),
    last_token_added=("", "the last token, taken for a summary of the text, reaches every place | "
        "последний токен, взятый как сводка текста, попадает на все позиции",
        "each place has only its own past | у каждой позиции только своё прошлое",
        lambda: tiny_causal_lm(mix=lambda x, ids: x + x[:, -1:])),
    mask_table_too_small=("", "texts longer than a stored mask are not masked | "
        "тексты длиннее хранимой маски идут без маски",
        "make the mask for the length that came | стройте маску по длине входа",
        lambda: tiny_causal_lm(allowed=lambda ids: causal_rule(ids) | (ids.shape[1] > 4))),
    mask_for_first_item=("facebookresearch/jepa#93", "only the first item of the batch is masked | "
        "маска действует только на первый элемент батча",
        "let [T, T] broadcast over the batch | маска [T, T] на весь батч",
        lambda: tiny_causal_lm(allowed=lambda ids:
            causal_rule(ids) | (torch.arange(len(ids)) > 0)[:, None, None])),
    mask_lost_with_padding=("keras-team/keras#23038",
        "where there is padding (id 0), the causal mask gives way to the padding mask | "
        "там, где есть паддинг (id 0), причинная маска уступает маске паддинга",
        "causal & token_valid: both at once | causal & token_valid: обе сразу",
        lambda: tiny_causal_lm(allowed=lambda ids: causal_rule(ids) |
            (ids != 0)[:, None] & (ids == 0).any(1)[:, None, None])),
    normalised_over_items=("",
        "a batch norm in training mode: the items of the batch change one another | "
        "нормализация по батчу в режиме обучения: элементы батча влияют друг на друга",
        "LayerNorm, or model.eval() | LayerNorm или model.eval()",
        lambda: tiny_causal_lm(norm=partial(token_norm, axes=(0, 1)))),
    items_mixed=("jsbaan/transformer-from-scratch#6",
        "the items of a batch reach one another: a reshape, a sort, a mean over axis 0 | "
        "элементы батча смешаны: reshape, сортировка или среднее по его оси",
        "keep axis 0 apart, from input to logits | не трогайте ось 0 от входа до логитов",
        lambda: tiny_causal_lm(mix=lambda x, ids: x + 0.5 * x.transpose(0, 1).reshape(x.shape))),
    dropout_active=("karpathy/nanoGPT@7399dfe3",
        "dropout is on, and every call gives other logits | "
        "включён dropout, и каждый вызов даёт другие логиты",
        "call model.eval() first | сначала вызовите model.eval()",
        lambda: tiny_causal_lm(mix=lambda x, ids: F.dropout(x, 0.2))),
    earlier_call_remembered=("casper-hansen/AutoAWQ#170",
        "a state (a cache) of the earlier call is read by the next one | "
        "следующий вызов читает состояние (кэш), оставшееся от прежнего",
        "begin every call without a state | начинайте каждый вызов без состояния", _remembering_lm),
    token_ids_overwritten=("",
        "the call writes into the caller's token_ids | вызов пишет в переданные token_ids",
        "token_ids = token_ids.clone() first | сначала token_ids.clone()", _marking_lm),
)
# fmt: on
