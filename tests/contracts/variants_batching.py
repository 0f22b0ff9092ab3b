"""Batches, right and wrong, beyond the catalogue."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from course_lib.contracts import check_batching_contract
from course_lib.contracts.batching.mistakes import BATCHING_MISTAKES
from course_lib.contracts.batching.tiny_batch import TinyBatch
from course_lib.contracts.cache.tiny_decoder import TinyDecoder

from .cached_models import TorchLM, refuse_more
from .trial import Fresh, named_by

CATALOGUE = BATCHING_MISTAKES
CLAUSES = [
    *("repeatable", "result_form", "batch_of_one", "equal_lengths", "different_lengths", "order"),
    *("exactly_full", "every_token", "independent_results", "arguments_unchanged"),
]


class Batch(NamedTuple):
    """What the contract of batching takes."""

    last_logits_one: Callable[..., Any]
    last_logits_batch: Callable[..., Any]
    vocab_size: int = 11
    context_length: int = 12


def CHECK(batch):
    return check_batching_contract(
        batch.last_logits_one,
        batch.last_logits_batch,
        vocab_size=batch.vocab_size,
        context_length=batch.context_length,
    )


def not_written(*_):
    raise NotImplementedError


STUB = Batch(not_written, not_written)


class TorchBatch(TorchLM):
    """A whole batch at once, padded on the left or on the right; `bug` names what is wrong."""

    def __init__(self, *, side="left", **options):
        super().__init__(**options)
        self.side = side

    def last_logits_one(self, prompt):
        return self.full_logits(prompt)[-1]

    def last_logits_batch(self, prompts):
        lengths = torch.tensor([len(prompt) for prompt in prompts])
        width, bug = int(lengths.max()), self.bug
        refuse_more([0] * width, self.context_length)
        shift = width - lengths if self.side == "left" else torch.zeros_like(lengths)
        ids = torch.full((len(prompts), width), self.vocab_size - 1)
        for row, prompt in enumerate(prompts):
            ids[row, shift[row] : shift[row] + len(prompt)] = torch.tensor(prompt)
        column = torch.arange(width)
        positions = (column - shift[:, None]).clamp(min=0)
        valid = (column >= shift[:, None]) & (column < (shift + lengths)[:, None])
        if bug == "shared_positions":
            positions = column.expand(len(prompts), -1)
        elif bug == "positions_shifted_the_wrong_way":
            positions = column + shift[:, None]
        elif bug == "pad_id_is_a_token":
            valid = ids != self.vocab_size - 1
        elif bug == "mask_upside_down":
            valid = ~valid
        elif bug == "first_mask_for_all":
            valid = valid[:1].expand(len(prompts), -1)
        if bug in ("padding_attended", "padding_is_a_prefix"):
            valid = torch.ones_like(valid)
        if bug == "padding_is_a_prefix":
            positions = column.expand(len(prompts), -1)
        mask = (column <= column[:, None]) & valid[:, None, :]
        mask = mask | torch.eye(width, dtype=torch.bool)
        x = self.tokens[ids] + self.places[positions]
        for layer in self.layers:
            q, k, v = (
                (self.norm(x) @ layer[name]).unflatten(-1, (self.heads, -1)).transpose(1, 2)
                for name in "qkv"
            )
            y = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None])
            x = x + y.transpose(1, 2).flatten(-2) @ layer["o"]
            x = x + torch.nn.functional.gelu(self.norm(x) @ layer["up"]) @ layer["down"]
        logits = self.norm(x) @ self.head
        last = torch.full_like(lengths, width - 1) if self.side == "left" else lengths - 1
        if bug == "first_length_for_all":
            last = lengths[:1].expand(len(prompts)) - 1
        elif bug == "one_column_early":
            last = (last - 1).clamp(min=0)
        elif bug == "last_column_read":
            last = torch.full_like(lengths, width - 1)
        result = logits[torch.arange(len(prompts)), last]
        if bug == "order_not_restored":
            result = result[lengths.argsort(descending=True, stable=True)]
        elif bug == "first_row_for_all":
            result = result[:1].expand_as(result)
        return result

    def batch(self):
        return Batch(self.last_logits_one, self.last_logits_batch, *self.sizes())


LEFT_BUGS = [
    *("shared_positions", "positions_shifted_the_wrong_way", "padding_attended"),
    *("padding_is_a_prefix", "pad_id_is_a_token", "mask_upside_down", "first_mask_for_all"),
    *("order_not_restored", "first_row_for_all"),
]
RIGHT_BUGS = ["first_length_for_all", "one_column_early"]


def torch_batch(**options):
    return Fresh(lambda: TorchBatch(**options).batch())


def one_after_another():
    model = TinyDecoder()

    def one(prompt):
        return model.full_logits(prompt)[-1].tolist()

    return Batch(one, lambda prompts: [one(prompt) for prompt in prompts])


def grouped_by_length():
    """No padding: prompts of one length at a time, put back in their places."""
    model = TorchBatch()

    def batch(prompts):
        result = torch.empty(len(prompts), model.vocab_size, dtype=model.dtype)
        for length in {len(prompt) for prompt in prompts}:
            places = [n for n, prompt in enumerate(prompts) if len(prompt) == length]
            result[places] = model.last_logits_batch([prompts[n] for n in places])
        return result.numpy()

    return Batch(model.last_logits_one, batch, *model.sizes())


def sorted_and_restored():
    model = TorchBatch(side="right")

    def batch(prompts):
        order = sorted(range(len(prompts)), key=lambda n: -len(prompts[n]))
        rows = model.last_logits_batch([prompts[n] for n in order])
        return [rows[order.index(n)] for n in range(len(prompts))]

    return Batch(model.last_logits_one, batch, *model.sizes())


def packed_with_blocks():
    """All prompts in one long row; a block of the mask each."""
    model = TinyDecoder()

    def batch(prompts):
        ids = [token for prompt in prompts for token in prompt]
        owner = np.repeat(np.arange(len(prompts)), [len(prompt) for prompt in prompts])
        places = np.concatenate([np.arange(len(prompt)) for prompt in prompts])
        allowed = (owner[:, None] == owner) & (places <= places[:, None])
        rows = model.rows_at(ids, places, allowed)
        return rows[np.flatnonzero(np.diff(owner, append=-1))]

    return Batch(lambda prompt: batch([prompt])[0], batch)


def bag_of_tokens(vocab_size=6, context_length=7):
    """No order and no attention: a mean of embeddings."""
    table = np.random.default_rng(2).normal(size=(vocab_size, vocab_size)).astype(np.float32)

    def one(prompt):
        return table[prompt].mean(0)

    return Batch(one, lambda prompts: np.stack([*map(one, prompts)]), vocab_size, context_length)


def changed(change, make=one_after_another):
    """A right batch with its rows changed: change(rows, prompts) -> result."""

    def build():
        right = make()

        def batch(prompts):
            return change(np.array(right.last_logits_batch(prompts)), prompts)

        return Batch(right.last_logits_one, batch, right.vocab_size, right.context_length)

    return Fresh(build)


def rows_off(where):
    """Rows for which where(row, prompts) is true are a little off."""

    def change(rows, prompts):
        off = [where(n, prompts) for n in range(len(prompts))]
        return rows + 0.01 * np.array(off, dtype=float)[:, None]

    return changed(change)


def with_noise():
    rng = np.random.default_rng(0)
    return changed(lambda rows, prompts: rows + rng.normal(size=rows.shape) * 1e-3).make()


def by_counts():
    """Remembers the first batch of each number of prompts."""
    right, seen = one_after_another(), {}

    def batch(prompts):
        return np.array(seen.setdefault(len(prompts), right.last_logits_batch(prompts)))

    return Batch(right.last_logits_one, batch)


def drifting_one():
    """Each call of the single prompt adds a little."""
    right, calls = one_after_another(), [0]

    def one(prompt):
        calls[0] += 1
        return np.array(right.last_logits_one(prompt)) + 1e-3 * calls[0]

    return Batch(one, right.last_logits_batch)


def one_in_a_buffer():
    model, buffer = TinyDecoder(), np.zeros(11)

    def one(prompt):
        buffer[:] = model.full_logits(prompt)[-1]
        return buffer

    return Batch(one, one_after_another().last_logits_batch)


def eats_the_prompt():
    model = TinyDecoder()

    def one(prompt):
        row = model.full_logits(prompt)[-1]
        prompt.pop()
        return row

    return Batch(one, one_after_another().last_logits_batch)


def without(token):
    """Prompts lose every such token; an empty one keeps it."""
    right = one_after_another()

    def batch(prompts):
        kept = [[t for t in prompt if t != token] or prompt for prompt in prompts]
        return right.last_logits_batch(kept)

    return Batch(right.last_logits_one, batch)


def merged_twins(rows, prompts):
    """A dictionary by prompt: the second of two equal prompts is lost."""
    return np.array(list({tuple(p): row for p, row in zip(prompts, rows, strict=True)}.values()))


def raises_when_mixed(rows, prompts):
    if len({len(prompt) for prompt in prompts}) > 1:
        raise ValueError("expected sequence of length 5 at dim 1 (got 2)")
    return rows


RIGHT = {
    "tiny batch": Fresh(TinyBatch),
    "tiny batch, other weights": Fresh(lambda: TinyBatch(7, 9, 3, 5)),
    "torch, padded left": torch_batch(),
    "torch, padded right": torch_batch(side="right", n_layers=3),
    "torch, float32": torch_batch(dtype=torch.float32, vocab_size=70, context_length=33),
    "torch, bfloat16": torch_batch(dtype=torch.bfloat16),
    "one after another": Fresh(one_after_another),
    "grouped by length": Fresh(grouped_by_length),
    "sorted and restored": Fresh(sorted_and_restored),
    "packed with blocks": Fresh(packed_with_blocks),
    "bag of tokens": Fresh(bag_of_tokens),
    "context of one": Fresh(lambda: TinyBatch(5, 1)),
    "vocabulary of one": Fresh(lambda: TinyBatch(1, 6)),
    "large vocabulary": Fresh(lambda: TinyBatch(200, 40)),
}
WRONG = {
    "noise": (Fresh(with_noise), "repeatable"),
    "remembered by number": (Fresh(by_counts), "batch_of_one"),
    "drifting alone": (Fresh(drifting_one), "repeatable"),
    "all columns": (changed(lambda rows, prompts: rows[:, None]), "result_form"),
    "squeezed": (changed(lambda rows, prompts: rows.squeeze()), "result_form"),
    "one dictionary": (changed(lambda rows, prompts: dict(enumerate(rows))), "result_form"),
    "twins merged": (changed(merged_twins), "result_form"),
    "NaN": (changed(lambda rows, prompts: np.where(rows > 20, np.nan, rows)), "result_form"),
    "only of one length": (changed(raises_when_mixed), "repeatable"),
    "log-probabilities": (
        changed(lambda rows, prompts: rows - np.log(np.exp(rows).sum(-1, keepdims=True))),
        "batch_of_one",
    ),
    "shortest is off": (
        rows_off(lambda n, prompts: len(prompts[n]) == 1 and len(prompts) > 2),
        "different_lengths",
    ),
    "rows after the longest": (
        rows_off(
            lambda n, prompts: n > max(range(len(prompts)), key=lambda m: len(prompts[m])) > 0
        ),
        "order",
    ),
    "many prompts": (rows_off(lambda n, prompts: n > 6), "order"),
    "second of equal prompts": (
        rows_off(lambda n, prompts: prompts[n] in prompts[:n]),
        "order",
    ),
    "next to a full prompt": (
        rows_off(lambda n, prompts: max(map(len, prompts)) == 12 > len(prompts[n])),
        "exactly_full",
    ),
    "full prompt": (rows_off(lambda n, prompts: len(prompts[n]) == 12), "exactly_full"),
    "last id dropped": (Fresh(lambda: without(10)), "every_token"),
    "EOS in front": (
        rows_off(lambda n, prompts: prompts[n][0] == 10 and len(prompts[n]) < 4),
        "every_token",
    ),
    "single prompt in a buffer": (Fresh(one_in_a_buffer), "independent_results"),
    "single prompt eaten": (Fresh(eats_the_prompt), "arguments_unchanged"),
    "torch: shared positions": (torch_batch(bug="shared_positions"), "different_lengths"),
    "torch: pads attended, float32": (
        torch_batch(bug="padding_attended", dtype=torch.float32),
        "different_lengths",
    ),
}
MISTAKES = named_by(
    batch_of_one=(
        "one_column_early mask_upside_down statistics_over_the_batch padded_to_the_context"
    ),
    equal_lengths=(
        "rows_reversed first_row_for_all neighbours_are_the_past mask_of_an_earlier_batch"
    ),
    different_lengths=(
        "shared_positions positions_shifted_the_wrong_way padding_attended padding_is_a_prefix "
        "last_column_read first_length_for_all first_mask_for_all cut_to_the_shortest "
        "ends_of_the_shortest_length first_token_lost"
    ),
    order="order_not_restored",
    every_token="pad_id_is_a_token",
    independent_results="batches_share_memory",
    arguments_unchanged="prompts_padded_in_place",
)

# ---------------------------------------------------------------- plain ones, to be mutated

PLAIN = TinyDecoder(7, 9)


def padded_on_the_left(prompts):
    width = max(len(prompt) for prompt in prompts)
    rows = []
    for prompt in prompts:
        pad = width - len(prompt)
        column = np.arange(width)
        seen = (column >= pad) & (column <= column[:, None]) | np.eye(width, dtype=bool)
        rows.append(PLAIN.rows_at([0] * pad + prompt, column - pad, seen)[-1])
    return np.stack(rows)


def padded_on_the_right(prompts):
    width = max(len(prompt) for prompt in prompts)
    column = np.arange(width)
    result = np.zeros((len(prompts), 7))
    for row, prompt in enumerate(prompts):
        ids = prompt + [3] * (width - len(prompt))
        logits = PLAIN.rows_at(ids, column, column <= column[:, None])
        result[row] = logits[len(prompt) - 1]
    return result


def in_order_of_length(prompts):
    order = sorted(range(len(prompts)), key=lambda n: len(prompts[n]))
    result = np.zeros((len(prompts), 7))
    for place in order:
        result[place] = PLAIN.full_logits(prompts[place])[-1]
    return result


def ADAPT(mutant):
    return Batch(lambda prompt: PLAIN.full_logits(prompt)[-1], mutant, 7, 9)


MUTATED = [padded_on_the_left, padded_on_the_right, in_order_of_length]
HIDDEN = "the padding is hidden, whatever it is"
FILLED = "every row is written"
ANY_ORDER = "each row is put in its place, in whatever order they come"
EQUIVALENT = {
    "padded_on_the_left:7 Lt: column <= column[:, None]": "the diagonal is added by np.eye",
    "padded_on_the_left:7 whole slice: :": "[:, None] as it was",
    "padded_on_the_left:8 +1: 0": HIDDEN,
    "padded_on_the_left:8 -1: 0": HIDDEN,
    "padded_on_the_left:9 call dropped: np.stack(rows)": "a list of rows is an array too",
    "padded_on_the_right:4 ones: np.zeros": FILLED,
    "padded_on_the_right:6 +1: 3": HIDDEN,
    "padded_on_the_right:6 -1: 3": HIDDEN,
    "padded_on_the_right:6 halved: 3": HIDDEN,
    "padded_on_the_right:7 whole slice: :": "[:, None] as it was",
    "in_order_of_length:2 call dropped: len(prompts[n])": ANY_ORDER,
    "in_order_of_length:2 call dropped: "
    "sorted(range(len(prompts)), key=lambda n: len(prompts[n]))": ANY_ORDER,
    "in_order_of_length:2 no key=: "
    "sorted(range(len(prompts)), key=lambda n: len(prompts[n]))": ANY_ORDER,
    "in_order_of_length:3 ones: np.zeros": FILLED,
}
SAYS = {
    "shared_positions": "just the shorter prompts",
    "cut_to_the_shortest": "just the longer prompts",
    "order_not_restored": "is what another prompt of the batch gives",
    "last_column_read": "is what the prompt and then padding give",
    "padding_is_a_prefix": "is what padding and then the prompt give",
    "one_column_early": "gives without its last token",
    "neighbours_are_the_past": "gives after all prompts before it",
    "prompts_padded_in_place": "the prompts became",
    "batches_share_memory": "a later call changed an earlier result",
}
UNNAMED = ["noise", "remembered by number", "drifting alone"]
