"""The decoder with its failure modes as types: it prefills, decodes with a cache, and scores."""

import numbers
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from course_lib.decoder_lm.causal_guard import assert_causal, assert_causal_by_perturbation
from course_lib.decoder_lm.choice import (
    SamplingConfig,
    TokenScore,
    sample_token,
    stable_log_softmax,
)
from course_lib.decoder_lm.errors import (
    CacheExhausted,
    CausalityViolation,
    ContextOverflow,
    ShapeMismatch,
)
from course_lib.decoder_lm.shape import ModelShape
from course_lib.decoder_lm.stats import DecodeStats
from course_lib.decoder_lm.typed_cache import KeyValueCache
from course_lib.decoder_lm.typed_model import (
    TypedModel,
    checked_id,
    checked_text,
    fit_context,
    forward_pass,
)

__all__ = [
    "CacheExhausted",
    "CausalityViolation",
    "ContextOverflow",
    "DecodeStats",
    "KeyValueCache",
    "ModelShape",
    "SamplingConfig",
    "ShapeMismatch",
    "TokenScore",
    "TypedDecoder",
    "assert_causal",
    "assert_causal_by_perturbation",
    "fit_context",
    "sample_token",
    "stable_log_softmax",
]


class CachedModel(TypedModel):
    """Remember the text: each position is computed once, and `stats` counts through all texts.

    A step that is refused, or that fails, leaves the cache as it was.
    """

    def __init__(self, params: dict[str, Any], shape: ModelShape) -> None:
        super().__init__(params, shape)
        self.cache, self.stats = KeyValueCache(shape), DecodeStats()

    def reset(self) -> None:
        """Forget the text."""
        self.cache.reset()

    def prefill(self, token_ids: Sequence[int]) -> np.ndarray:
        """Forget the last text and read a new one: [T, V]."""
        ids = checked_text("token_ids", token_ids, self.shape)
        self.reset()
        return self.extend(ids)

    def extend(self, token_ids: Sequence[int]) -> np.ndarray:
        """Read the next piece of a given text in one pass: [width, V]."""
        ids = checked_text("token_ids", token_ids, self.shape)
        _check_room(len(ids), self.cache.length, self.shape)
        logits = self._advance(ids)
        self.stats.record_prefill(len(ids))
        return logits

    def decode(self, token_id: int) -> np.ndarray:
        """Read one more token and predict the next: [V]."""
        token = checked_id("token_id", token_id, self.shape)
        _check_not_full(self.cache.length, self.shape)
        logits = self._advance([token])[0]
        self.stats.record_decode()
        return logits

    def _advance(self, ids: list[int]) -> np.ndarray:
        step = forward_pass(ids, self.cache.keys(), self.cache.values(), self.params, self.shape)
        self.cache.append(step.keys, step.values)  # after all that can fail
        return step.logits


class TypedDecoder(CachedModel):
    """The whole model: it scores a text, reads one, and writes one."""

    def generate(
        self,
        prompt: Sequence[int],
        max_new_tokens: int,
        config: SamplingConfig | None = None,
        eos_id: int | None = None,
    ) -> tuple[list[TokenScore], Literal["eos", "length_limit", "context"]]:
        """Continue the prompt; return the new tokens with their scores, and why they ended.

        Of several reasons to stop the first counts: "eos" (it is returned with the others),
        "length_limit", "context" (prompt and new tokens fill it).

        Args:    config: None draws from the model's own distribution, SamplingConfig()
        Raises:  ContextOverflow for a prompt that does not fit; ValueError, TypeError
        """
        ids = checked_text("prompt", prompt, self.shape)
        config = SamplingConfig() if config is None else config
        _check_generation(max_new_tokens, config, eos_id, self.shape)
        rng = np.random.default_rng(config.seed)
        room = self.shape.context_length - len(ids)
        new: list[TokenScore] = []
        while True:
            if new and new[-1].token == eos_id:
                return new, "eos"
            if len(new) == max_new_tokens:
                return new, "length_limit"
            if len(new) == room:
                return new, "context"
            logits = self.decode(new[-1].token) if new else self.prefill(ids)[-1]  # [V]
            token = sample_token(logits, config, rng)
            new.append(TokenScore(token, float(stable_log_softmax(logits)[token])))


def _check_room(width: int, length: int, shape: ModelShape) -> None:
    if length + width > shape.context_length:
        raise ContextOverflow(
            f"{length} positions are read and {width} more were given, but context_length is "
            f"{shape.context_length}; give at most {shape.context_length - length}, or prefill a "
            f"text shortened with fit_context"
        )


def _check_not_full(length: int, shape: ModelShape) -> None:
    if length >= shape.context_length:
        raise CacheExhausted(
            f"all {length} positions of the context are used; stop here, or prefill a text "
            f"shortened with fit_context"
        )


def _check_generation(max_new_tokens: Any, config: Any, eos_id: Any, shape: ModelShape) -> None:
    if not isinstance(max_new_tokens, numbers.Integral) or isinstance(max_new_tokens, bool):
        raise TypeError(f"max_new_tokens must be an integer, got {max_new_tokens!r}")
    if max_new_tokens < 0:
        raise ValueError(f"max_new_tokens must be at least 0, got {max_new_tokens}")
    if not isinstance(config, SamplingConfig):
        raise TypeError(f"config must be a SamplingConfig, got {type(config).__name__}")
    if eos_id is not None:
        checked_id("eos_id", eos_id, shape)
