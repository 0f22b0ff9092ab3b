"""A tiny language model: everything of the module in one network that trains in seconds."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.arguments import (
    check_bool,
    check_heads,
    check_module,
    check_same_device,
    check_token_ids,
)
from course_lib.integers import check_positive_int
from course_lib.layers import DecoderBlock


class TinyLM(nn.Module):
    """Predict the next token: embeddings, one block, and the embeddings again as the output.

    Shapes:  token_ids [B, T] long, T <= max_length -> logits [B, T, V]; logits[:, t] predict t + 1
    """

    def __init__(
        self,
        *,
        vocab_size: int = 6,
        d_model: int = 24,
        n_heads: int = 4,
        d_ff: int = 48,
        max_length: int = 32,
    ) -> None:
        super().__init__()
        _check_tiny_sizes(vocab_size, d_model, n_heads, d_ff, max_length)
        self.vocab_size = vocab_size
        self.max_length = max_length
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.position_embedding = nn.Embedding(max_length, d_model)
        self.block = DecoderBlock(d_model, n_heads, d_ff)
        self.ln_final = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size, bias=False)
        self.head.weight = self.token_embedding.weight  # weight tying: one Parameter, two uses
        for embedding in (self.token_embedding, self.position_embedding):
            nn.init.normal_(embedding.weight, std=0.05)  # small logits: the first loss is near ln V

    def forward(self, token_ids: Tensor) -> Tensor:
        _check_model_input(token_ids, self.token_embedding.weight, self.max_length)
        positions = torch.arange(token_ids.shape[1], device=token_ids.device)  # [T]
        x = self.token_embedding(token_ids) + self.position_embedding(positions)  # [B, T, d_model]
        return self.head(self.ln_final(self.block(x)))  # [B, T, V]

    def generate(
        self, token_ids: Tensor, new_tokens: int, *, sliding_window: bool = False
    ) -> Tensor:
        """Continue greedily; see `greedy_continuation`."""
        return greedy_continuation(self, token_ids, new_tokens, sliding_window=sliding_window)


def greedy_continuation(
    model: nn.Module, token_ids: Tensor, new_tokens: int, *, sliding_window: bool = False
) -> Tensor:
    """Append the likeliest next token, again and again.

    Args:    model: token_ids [B, T] -> logits [B, T, V], with a vocab_size and a max_length
             sliding_window: past max_length, read only the last max_length tokens; without it,
             a continuation that would have to forget the front of the prompt is refused
    Shapes:  token_ids [B, T] long -> [B, T + new_tokens], the prompt included
    """
    _check_continuation(model, token_ids, new_tokens, sliding_window)
    with evaluating(model):
        for _ in range(new_tokens):
            logits = model(token_ids[:, -model.max_length :])[:, -1]  # [B, V]
            next_id = logits.argmax(dim=-1, keepdim=True)  # [B, 1]
            token_ids = torch.cat((token_ids, next_id), dim=1)
    return token_ids


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Switch dropout and gradients off inside; give every module its own mode back afterwards."""
    check_module("model", model)
    was_training = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in was_training.items():
            module.training = mode


def _check_tiny_sizes(
    vocab_size: Any, d_model: Any, n_heads: Any, d_ff: Any, max_length: Any
) -> None:
    check_positive_int("vocab_size", vocab_size)
    check_heads(d_model, n_heads)
    check_positive_int("d_ff", d_ff)
    check_positive_int("max_length", max_length)


def _check_model_input(token_ids: Any, embedding: Tensor, max_length: int) -> None:
    check_token_ids("token_ids", token_ids, "[B, T]", embedding.shape[0])
    check_same_device("token_ids", token_ids, "the model", embedding)
    if token_ids.shape[1] > max_length:
        raise ValueError(
            f"token_ids has {token_ids.shape[1]} positions, past max_length={max_length}"
        )


def _check_continuation(model: Any, token_ids: Any, new_tokens: Any, sliding_window: Any) -> None:
    check_token_ids("token_ids", token_ids, "[B, T]", model.vocab_size)
    check_positive_int("new_tokens", new_tokens)
    check_bool("sliding_window", sliding_window)
    positions = token_ids.shape[1] + new_tokens - 1  # the last token is written, never read
    if positions > model.max_length and not sliding_window:
        raise ValueError(
            f"a prompt of {token_ids.shape[1]} tokens and {new_tokens} new ones need {positions} "
            f"positions, past max_length={model.max_length}; shorten them, or pass "
            f"sliding_window=True to let the model forget the front"
        )
