"""Generation for a batch: each row ends for itself, and every step can be watched."""

import numbers
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from course_lib.decoder_lm.batched import batched_sample, check_sampling_options
from course_lib.decoder_lm.typed_model import checked_text


class BatchGeneration:
    """Give the next token of every row at each step, None for a row that has ended.

    `tokens` holds the new tokens of each row so far, `reasons` why it ended: "eos" (the token is
    among them), else "length_limit", else "context"; None while it runs.
    """

    def __init__(self, decoder: Any, prompts: Sequence[Sequence[int]], **options: Any) -> None:
        self.decoder, self.options = decoder, options
        self.prompts = _checked_batch_options(decoder, prompts, **options)
        self.tokens: list[list[int]] = [[] for _ in self.prompts]
        self.reasons = [_stop_reason(self, row) for row in range(len(self.prompts))]
        self.newest: list[int | None] | None = None
        self.cut_short = False
        self.batch_number: int | None = None  # the decoder's, once the prompts are read

    def __iter__(self) -> Iterator[list[int | None]]:
        return self

    def __next__(self) -> list[int | None]:
        running = np.array([reason is None for reason in self.reasons])
        if not running.any():
            raise StopIteration
        if self.cut_short:
            raise RuntimeError("the last step failed or was interrupted: start the generation anew")
        self.cut_short = True
        logits = _next_logits(self, running)
        options = (self.options[name] for name in ("temperature", "top_p", "rng", "top_k"))
        drawn = batched_sample(logits[running], *options).tolist()
        newest: list[int | None] = [None] * len(running)
        for row, token in zip(np.flatnonzero(running).tolist(), drawn, strict=True):
            newest[row] = token
            self.tokens[row].append(token)
            self.reasons[row] = _stop_reason(self, row)
        self.newest = newest
        self.cut_short = False
        return list(newest)


def _next_logits(generation: "BatchGeneration", running: np.ndarray) -> np.ndarray:
    """Read the prompts at the first step, the newest tokens at every other."""
    decoder, newest = generation.decoder, generation.newest
    if newest is None:
        logits = decoder.prefill(generation.prompts)
        generation.batch_number = decoder.batch_number
        return logits
    if generation.batch_number != decoder.batch_number:
        raise RuntimeError(
            "the decoder has started another batch since; finish a generation before the next one, "
            "or give each its own FastDecoder"
        )
    if running.all():
        return decoder.decode_step(newest)
    ids = [0 if token is None else token for token in newest]  # 0 is not read: the row rests
    return decoder.decode_step(ids, active=running)


def _stop_reason(generation: "BatchGeneration", row: int) -> str | None:
    """Of several reasons the first counts: eos, the limit that was asked for, the context."""
    new, options = generation.tokens[row], generation.options
    if new and new[-1] == options["eos_id"]:
        return "eos"
    if len(new) == options["max_new_tokens"]:
        return "length_limit"
    if len(generation.prompts[row]) + len(new) == generation.decoder.shape.context_length:
        return "context"
    return None


def _checked_batch_options(
    decoder: Any,
    prompts: Any,
    max_new_tokens: Any,
    temperature: Any,
    top_k: Any,
    top_p: Any,
    rng: Any,
    eos_id: Any,
) -> list[list[int]]:
    for name, value in (("max_new_tokens", max_new_tokens), ("eos_id", eos_id)):
        optional = name == "eos_id" and value is None
        if not optional and (not isinstance(value, numbers.Integral) or isinstance(value, bool)):
            raise TypeError(f"{name} must be an integer, got {value!r} ({type(value).__name__})")
        if not optional and value < 0:
            raise ValueError(f"{name} must be at least 0, got {value}")
    check_sampling_options(temperature, top_p, top_k)
    if temperature > 0 and not hasattr(rng, "random"):
        raise ValueError(
            f"temperature={temperature} needs chance: pass rng=np.random.default_rng(seed), "
            f"got {rng!r}"
        )
    return checked_prompts(prompts, decoder.shape)


def checked_prompts(prompts: Any, shape: Any) -> list[list[int]]:
    """Return the prompts as lists of int, if there is one and the model can read each whole."""
    if not hasattr(prompts, "__len__") or not hasattr(prompts, "__getitem__"):
        raise TypeError(f"prompts must be a list of lists, got {type(prompts).__name__}")
    if len(prompts) == 0:
        raise ValueError("prompts is empty; give at least one list of token ids")
    return [checked_text(f"prompts[{row}]", prompts[row], shape) for row in range(len(prompts))]
