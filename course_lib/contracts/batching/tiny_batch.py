"""The tiny decoder, run on a padded batch, whose steps can be done wrongly."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from course_lib.contracts.cache.tiny_decoder import TinyDecoder, fitting_ids


class TinyBatch:
    """Last logits of one prompt, and of a batch of prompts that are padded on the left.

    `steps` replaces steps by name; each gets the batch first. Padding is token 0.
    """

    def __init__(
        self,
        vocab_size: int = 11,
        context_length: int = 12,
        n_layers: int = 2,
        seed: int = 18,
        **steps: Callable[..., Any],
    ) -> None:
        self.decoder = TinyDecoder(vocab_size, context_length, n_layers, seed)
        self.vocab_size, self.context_length = vocab_size, context_length
        self.steps = steps
        self.memory: Any = None  # what a wrong step keeps between calls

    def step(self, name: str, *args: Any) -> Any:
        """Take a step the way that was handed in, or else the right way."""
        return self.steps.get(name, _RIGHT[name])(self, *args)

    def last_logits_one(self, prompt: Sequence[int]) -> np.ndarray:
        """The logits after a prompt."""
        return self.decoder.full_logits(prompt)[-1]

    def last_logits_batch(self, prompts: list[list[int]]) -> np.ndarray:
        """The logits after each prompt, all in one padded batch."""
        for prompt in prompts:
            fitting_ids(self.decoder, prompt)
        prompts = self.step("arrange", prompts)
        width = self.step("width", prompts)
        ids, valid = self.step("pad", prompts, width)
        valid = self.step("know", ids, valid)
        rows = []
        for row in range(len(prompts)):
            positions = self.step("place", valid[row])
            logits = self.decoder.rows_at(ids[row], positions, self.step("see", valid, row))
            rows.append(logits[self.step("read", valid, row)])
        return self.step("finish", np.stack(rows), prompts)


def padded(left: bool) -> Callable[..., tuple]:
    """A step: padded ids and which of them are real, [B, T] both; prompts at one end."""

    def pad(batch: Any, prompts: list[list[int]], width: int) -> tuple:
        ids, valid = np.zeros((2, len(prompts), width), dtype=int)
        for row, prompt in enumerate(prompts):
            place = slice(width - len(prompt), None) if left else slice(len(prompt))
            ids[row, place], valid[row, place] = prompt, 1
        return ids, valid.astype(bool)

    return pad


padded_left = padded(left=True)
padded_right = padded(left=False)


def seen_in_batch(keys: np.ndarray) -> np.ndarray:
    """Causal, and only these keys; every token sees itself, so that no row is empty."""
    size = len(keys)
    return (np.tri(size, dtype=bool) & keys) | np.eye(size, dtype=bool)


_RIGHT = {
    "arrange": lambda batch, prompts: prompts,
    "width": lambda batch, prompts: max(map(len, prompts)),
    "pad": padded_left,
    "know": lambda batch, ids, valid: valid,
    "place": lambda batch, valid: np.maximum(np.cumsum(valid) - 1, 0),
    "see": lambda batch, valid, row: seen_in_batch(valid[row]),
    "read": lambda batch, valid, row: -1,
    "finish": lambda batch, rows, prompts: rows,
}
