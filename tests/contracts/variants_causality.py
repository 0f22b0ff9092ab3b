"""Language models, causal and not, beyond the catalogue."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from course_lib.causality import CausalityProbe
from course_lib.contracts import check_causality_contract
from course_lib.contracts.causality.mistakes import CAUSALITY_MISTAKES
from course_lib.tiny_lm import TinyLM

from .language_models import (
    LM,
    Convolution,
    NormOverItems,
    NormOverTime,
    Recurrent,
    TorchLM,
    V,
    causal,
    masked,
    open_,
)
from .trial import Fresh, named_by

CATALOGUE = CAUSALITY_MISTAKES
CLAUSES = [
    *("result_form", "no_dropout", "arguments_unchanged", "independent_calls", "batch_items"),
    *("item_alone", "later_token", "every_token", "every_length"),
]
LENGTH = 9
TABLE = torch.randn(V, V, generator=torch.Generator().manual_seed(9), dtype=torch.float64)


def CHECK(model):
    return check_causality_contract(model, vocab_size=V, length=LENGTH)


def bag_of_the_past(token_ids):
    seen = TABLE[token_ids].cumsum(1)
    return seen / torch.arange(1, token_ids.shape[1] + 1).unsqueeze(-1)


def attention_by_loops(token_ids):
    rows = []
    for ids in token_ids.tolist():
        x = TABLE[ids]
        read = []
        for place in range(len(ids)):
            scores = x[: place + 1] @ x[place]
            read.append(torch.softmax(scores / 4, 0) @ x[: place + 1])
        rows.append(torch.stack(read))
    return torch.stack(rows)


def two_tokens_back(token_ids):
    x = TABLE[token_ids]
    padded = F.pad(x, (0, 0, 2, 0))
    return x + 0.5 * padded[:, 1:-1] - 0.25 * padded[:, :-2]


def masked_attention(token_ids):
    x = TABLE[token_ids]
    length = token_ids.shape[1]
    hidden = torch.triu(torch.ones(length, length, dtype=torch.bool), diagonal=1)
    weights = (x @ x.mT / 4).masked_fill(hidden, -math.inf).softmax(-1)
    return weights @ x


def with_numpy(token_ids):
    x = np.cumsum(TABLE.numpy()[token_ids.numpy()], axis=1)
    return torch.from_numpy(np.tanh(x))


def by_fft(token_ids, circular=False):
    x = TABLE[token_ids].float()
    length = x.shape[1]
    size = length if circular else 2 * length
    kernel = torch.exp(-0.3 * torch.arange(length)).unsqueeze(-1)
    spectrum = torch.fft.rfft(x, size, dim=1) * torch.fft.rfft(kernel, size, dim=0)
    return torch.fft.irfft(spectrum, size, dim=1)[:, :length]


def cached():
    model, past = LM(1), {}

    def stepwise(token_ids):
        past.clear()
        for place in range(token_ids.shape[1]):
            past[place] = model(token_ids[:, : place + 1])[:, -1:]
        return torch.cat(list(past.values()), 1)

    return stepwise


def probe(*, causal):
    model = CausalityProbe(causal=causal)
    return lambda token_ids: model(token_ids) @ model.embedding.weight.T


def tiny_lm(**options):
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(2)
        return TinyLM(vocab_size=V, d_model=16, n_heads=2, d_ff=32, max_length=LENGTH, **options)


def added(scores, allowed, fill=1.0):
    return (scores + fill * allowed).softmax(-1)


def twice(scores, allowed):
    return masked(scores, allowed).softmax(-1)


def filled(value):
    return lambda scores, allowed: scores.masked_fill(~allowed, value).softmax(-1)


def pad_only(ids):
    return ((ids != 0).unsqueeze(1) | torch.eye(ids.shape[1]).bool()).expand(-1, ids.shape[1], -1)


def when(condition, rule=open_):
    return lambda ids: rule(ids) if condition(ids) else causal(ids)


def lm(rule, **options):
    return LM(5, rules=[[rule] * 2] * 2, **options)


def future_added(part, only=None):
    """The bag of the past and a small part of the next token, or of one token only."""

    def model(token_ids):
        following = F.pad(TABLE[token_ids][:, 1:], (0, 0, 0, 1))
        if only is not None:
            following = following * F.pad(token_ids[:, 1:] == only, (0, 1)).unsqueeze(-1)
        return bag_of_the_past(token_ids) + part * following

    return model


def equal_token_ahead(token_ids):
    later = (token_ids.unsqueeze(-1) == token_ids.unsqueeze(1)).triu(1).any(-1)
    return bag_of_the_past(token_ids) + later.unsqueeze(-1)


def kept_by_shape():
    seen = {}
    return lambda ids: seen.setdefault(tuple(ids.shape), bag_of_the_past(ids)) + 0.0


def counting_calls():
    calls = []

    def model(token_ids):
        calls.append(1)
        return bag_of_the_past(token_ids) + 0.01 * len(calls) * TABLE[token_ids]

    return model


def one_buffer():
    buffer = torch.zeros(64, LENGTH, V, dtype=torch.float64)

    def model(token_ids):
        items, length = token_ids.shape
        buffer[:items, :length] = bag_of_the_past(token_ids)
        return buffer[:items, :length]

    return model


def sorted_items(token_ids):
    order = token_ids[:, 0].argsort()
    return bag_of_the_past(token_ids[order])


def dropping():
    model = LM(6, dropout=0.3)
    model.train()
    return model


def with_batch_norm(train):
    return LM(7, norm=NormOverItems()).train(train)


RIGHT = {
    "the course's own": Fresh(tiny_lm),
    "the course's own in float64": Fresh(lambda: tiny_lm().double()),
    "the course's probe": Fresh(lambda: probe(causal=True)),
    "one layer": LM(0, layers=1),
    "two layers": LM(1),
    "four layers of one head": LM(2, layers=4, heads=1),
    "torch's layers": TorchLM(),
    "torch's layers, post-norm": TorchLM(1, norm_first=False),
    "half precision": Fresh(lambda: LM(3).bfloat16()),
    "in training mode without dropout": Fresh(lambda: LM(4).train()),
    "dropout switched off": LM(5, dropout=0.5),
    "batch norm in eval mode": Fresh(lambda: with_batch_norm(False)),
    "large negative fill": lm(causal, weigh=filled(-1e9)),
    "a recurrent network": Recurrent(),
    "a causal convolution": Convolution(2, 0),
    "a long convolution by FFT": by_fft,
    "the past step by step": Fresh(cached),
    "bag of the past": bag_of_the_past,
    "attention by loops": attention_by_loops,
    "two tokens back": two_tokens_back,
    "masked attention": masked_attention,
    "with numpy": with_numpy,
    "blind to the past": lambda token_ids: TABLE[token_ids],
    "blind to everything": lambda token_ids: torch.zeros(*token_ids.shape, V),
    "log-probabilities": lambda token_ids: bag_of_the_past(token_ids).log_softmax(-1),
    "a constant added": lambda token_ids: bag_of_the_past(token_ids).float() + 3000.0,
    "tiny logits": lambda token_ids: bag_of_the_past(token_ids) * 1e-20,
    "one forbidden token": lambda token_ids: bag_of_the_past(token_ids).index_fill(
        -1, torch.tensor([3]), -1e9
    ),
    "positions from the end": lambda token_ids: (
        bag_of_the_past(token_ids) + torch.arange(token_ids.shape[1]).flip(0).unsqueeze(-1)
    ),
}
WRONG = {
    "no mask": (lm(open_), "later_token"),
    "no mask in the first layer": (
        LM(8, rules=[[open_] * 2, [causal] * 2]),
        "later_token",
    ),
    "no mask in the last layer": (LM(9, rules=[[causal] * 2, [open_] * 2]), "later_token"),
    "no mask in one head": (LM(8, rules=[[causal, open_], [causal] * 2]), "later_token"),
    "mask added as 0 and 1": (lm(causal, weigh=added), "later_token"),
    "second softmax": (lm(causal, weigh=twice), "later_token"),
    "a fill of -8": (lm(causal, weigh=filled(-8.0)), "later_token"),
    "weights hidden after softmax": (
        lm(causal, weigh=lambda scores, allowed: scores.softmax(-1) * allowed),
        "later_token",
    ),
    "padding mask only": (lm(pad_only), "later_token"),
    "torch's layers without a mask": (TorchLM(2, mask=False), "later_token"),
    "the course's probe, not causal": (Fresh(lambda: probe(causal=False)), "later_token"),
    "a norm over time": (LM(2, norm=NormOverTime()), "later_token"),
    "a bidirectional network": (Recurrent(bidirectional=True), "later_token"),
    "one ahead": (
        lm(lambda ids: torch.ones(ids.shape[1], ids.shape[1]).tril(1).bool()),
        "later_token",
    ),
    "a symmetric convolution": (Convolution(1, 1), "later_token"),
    "a circular FFT": (lambda ids: by_fft(ids, circular=True), "later_token"),
    "transposed mask": (lm(lambda ids: causal(ids).mT), "later_token"),
    "inverted mask": (
        lm(causal, weigh=lambda scores, allowed: filled(-1e9)(scores, ~allowed)),
        "later_token",
    ),
    "inverted mask, last row empty": (
        lm(causal, weigh=lambda scores, allowed: masked(scores, ~allowed)),
        "result_form",
    ),
    "a thousandth of the next token": (future_added(1e-3), "later_token"),
    "a hundred-thousandth of the next token": (future_added(1e-4), "later_token"),
    "one token leaks": (future_added(1.0, only=7), "later_token"),
    "equal tokens ahead": (equal_token_ahead, "later_token"),
    "only long texts": (lm(when(lambda ids: ids.shape[1] > 8)), "later_token"),
    "only texts of six": (lm(when(lambda ids: ids.shape[1] == 6)), "every_length"),
    "only while gradients are recorded": (
        lm(when(lambda ids: torch.is_grad_enabled())),
        "every_length",
    ),
    "only after padding": (
        lm(when(lambda ids: ids.shape[1] > 2 and not ids[:, :-1].any())),
        "every_token",
    ),
    "only texts of even length": (lm(when(lambda ids: ids.shape[1] % 2 == 0)), "later_token"),
    "only one text at a time": (lm(when(lambda ids: len(ids) == 1)), "item_alone"),
    "only the last rows": (
        lm(lambda ids: causal(ids) | (torch.arange(ids.shape[1]) > 6).unsqueeze(-1)),
        "later_token",
    ),
    "batch norm in training mode": (Fresh(lambda: with_batch_norm(True)), "result_form"),
    "mean over the batch": (
        lambda ids: bag_of_the_past(ids) + 0.1 * TABLE[ids].mean(0),
        "batch_items",
    ),
    "the items sorted": (sorted_items, "batch_items"),
    "divided by the batch size": (
        lambda ids: bag_of_the_past(ids) + TABLE[ids] / len(ids),
        "item_alone",
    ),
    "dropout": (Fresh(dropping), "no_dropout"),
    "noise": (lambda ids: bag_of_the_past(ids) + 0.01 * torch.randn(V), "no_dropout"),
    "counting calls": (Fresh(counting_calls), "independent_calls"),
    "kept by shape": (Fresh(kept_by_shape), "item_alone"),
    "one buffer": (Fresh(one_buffer), "independent_calls"),
    "ids sorted in place": (
        lambda ids: bag_of_the_past(ids.copy_(ids.sort(1).values)),
        "arguments_unchanged",
    ),
    "a tuple": (lambda ids: (bag_of_the_past(ids), None), "result_form"),
    "chosen tokens": (lambda ids: bag_of_the_past(ids).long(), "result_form"),
    "the last logits only": (lambda ids: bag_of_the_past(ids)[:, -1], "result_form"),
    "another vocabulary": (lambda ids: bag_of_the_past(ids)[..., :-1], "result_form"),
    "time first": (lambda ids: bag_of_the_past(ids).transpose(0, 1), "result_form"),
    "minus infinity": (lambda ids: bag_of_the_past(ids).log(), "result_form"),
    "raises": (lambda ids: bag_of_the_past(ids)[:, 1000], "result_form"),
}
MISTAKES = named_by(
    no_dropout="dropout_active",
    arguments_unchanged="token_ids_overwritten",
    independent_calls="earlier_call_remembered",
    batch_items="normalised_over_items items_mixed",
    item_alone="mask_for_first_item",
    later_token=(
        "mask_missing summary_over_time mask_inverted mask_transposed read_backwards one_ahead "
        "symmetric_convolution next_token_added logits_shifted circular_convolution chunk_summary "
        "last_token_added mask_table_too_small mask_lost_with_padding"
    ),
)
MUTATED = [bag_of_the_past, attention_by_loops, two_tokens_back, masked_attention]
STILL_CAUSAL = (  # another model, but none of its places reads a later token
    "bag_of_the_past:2 +1: 1",
    "bag_of_the_past:2 cumprod: TABLE[token_ids].cumsum",
    "bag_of_the_past:2 method dropped: TABLE[token_ids].cumsum(1)",
    "bag_of_the_past:3 Mult: seen / torch.arange(1, token_ids.shape[1] + 1).unsqueeze(-1)",
    "bag_of_the_past:3 call dropped: torch.arange(1, token_ids.shape[1] + 1).unsqueeze(-1)",
    "bag_of_the_past:3 halved: 1 (3)",
    "bag_of_the_past:3 left only: seen / torch.arange(1, token_ids.shape[1] + 1).unsqueeze(-1)",
    "bag_of_the_past:3 swapped: seen / torch.arange(1, token_ids.shape[1] + 1).unsqueeze(-1)",
    "attention_by_loops:8 +1: 4",
    "attention_by_loops:8 -1: 4",
    "attention_by_loops:8 Mult: scores / 4",
    "attention_by_loops:8 halved: 4",
    "attention_by_loops:8 left only: scores / 4",
    "attention_by_loops:8 swapped: scores / 4",
    "two_tokens_back:4 +1: 0.25",
    "two_tokens_back:4 +1: 0.5",
    "two_tokens_back:4 -1: 0.25",
    "two_tokens_back:4 -1: 0.5",
    "two_tokens_back:4 Add: x + 0.5 * padded[:, 1:-1] - 0.25 * padded[:, :-2]",
    "two_tokens_back:4 Sub: x + 0.5 * padded[:, 1:-1]",
    "two_tokens_back:4 halved: 0.25",
    "two_tokens_back:4 halved: 0.5",
    "two_tokens_back:4 left only: 0.25 * padded[:, :-2]",
    "two_tokens_back:4 left only: 0.5 * padded[:, 1:-1]",
    "two_tokens_back:4 left only: x + 0.5 * padded[:, 1:-1]",
    "two_tokens_back:4 left only: x + 0.5 * padded[:, 1:-1] - 0.25 * padded[:, :-2]",
    "two_tokens_back:4 right only: 0.25 * padded[:, :-2]",
    "two_tokens_back:4 right only: 0.5 * padded[:, 1:-1]",
    "two_tokens_back:4 right only: x + 0.5 * padded[:, 1:-1]",
    "two_tokens_back:4 right only: x + 0.5 * padded[:, 1:-1] - 0.25 * padded[:, :-2]",
    "two_tokens_back:4 swapped: x + 0.5 * padded[:, 1:-1] - 0.25 * padded[:, :-2]",
    "masked_attention:5 +1: 4",
    "masked_attention:5 -1: 4",
    "masked_attention:5 Mult: x @ x.mT / 4",
    "masked_attention:5 halved: 4",
    "masked_attention:5 left only: x @ x.mT / 4",
    "masked_attention:5 swapped: x @ x.mT / 4",
    "masked_attention:6 right only: weights @ x",
)
THE_SAME = (
    "bag_of_the_past:3 no sign: -1",
    "attention_by_loops:3 method dropped: token_ids.tolist()",
    "attention_by_loops:8 -1: 0",
    "two_tokens_back:4 whole slice: :",
    "two_tokens_back:4 whole slice: : (2)",
    "masked_attention:5 masked_fill_: (x @ x.mT / 4).masked_fill",
)
EQUIVALENT = {
    **dict.fromkeys(STILL_CAUSAL, "another causal model"),
    **dict.fromkeys(THE_SAME, "the same function"),
}
SAYS = {
    "dropout": "in training mode, where dropout is active: call model.eval() first",
    "noise": "equal calls differ by chance",
    "counting calls": "something is kept from the first",
    "one buffer": "later calls wrote into logits",
    "a tuple": "the result is a tuple, not a torch.Tensor",
    "inverted mask, last row empty": "not finite",
    "divided by the batch size": "alone gives other logits than in its batch",
    "mask_missing": "position 0 change with token 1, which comes 1 later",
    "last_token_added": "position 0 change with token 1, which comes 1 later",
    "items_mixed": "is the same in both calls, and its logits change",
}
UNNAMED = ["one token leaks", "equal tokens ahead", "only texts of even length", "kept by shape"]
