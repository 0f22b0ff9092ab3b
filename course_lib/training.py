"""Training: the next token is the label, so a text is its own answer sheet."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.arguments import check_finite_number, check_module, check_tensor, check_token_ids
from course_lib.integers import check_positive_int
from course_lib.tiny_lm import evaluating


def next_token_windows(token_ids: Tensor, context: int) -> Tensor:
    """Cut every stretch of context + 1 tokens out of a text: context inputs, one shift of targets.

    Shapes:  token_ids [T] long -> [T - context, context + 1] long
    Raises:  ValueError for a text of fewer than context + 1 tokens
    """
    _check_text(token_ids, context)
    return token_ids.unfold(0, context + 1, 1).clone()  # a copy: unfold's rows share memory


def predict_next(model: nn.Module, windows: Tensor) -> tuple[Tensor, Tensor]:
    """Let the model predict, at every position of every window, the token that came next.

    Shapes:  windows [B, T + 1] long -> logits [B, T, V] and targets [B, T]
    """
    _check_windows(model, windows)
    logits = model(windows[:, :-1])  # [B, T, V]: the last token has no successor to predict
    targets = windows[:, 1:]  # [B, T]: shifted once, here and nowhere else
    check_token_ids("windows", targets, "[B, T]", logits.shape[-1])
    return logits, targets


def next_token_loss(model: nn.Module, windows: Tensor) -> Tensor:
    """Return the mean cross-entropy of all the predictions, in nats per predicted token.

    Shapes:  windows [B, T + 1] long -> []
    """
    logits, targets = predict_next(model, windows)
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())  # [B·T, V] against [B·T]


def fit(
    model: nn.Module,
    next_batch: Callable[[int], Tensor],
    *,
    steps: int,
    learning_rate: float,
) -> list[float]:
    """Train the model in place with AdamW, without weight decay; return the loss of every step.

    Args:    next_batch: called with the step's number, returns windows [B, T + 1] long
    Raises:  FloatingPointError as soon as a loss is not finite
    """
    _check_fit(model, steps, learning_rate)
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, weight_decay=0.0)
    model.train()
    losses = []
    for step in range(steps):
        loss = next_token_loss(model, next_batch(step))
        _check_loss(loss, step)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())  # before this step's update
    return losses


def mean_nll(model: nn.Module, windows: Tensor) -> float:
    """Return the mean negative log-likelihood of the windows, in nats per predicted token."""
    with evaluating(model):
        return next_token_loss(model, windows).item()


def next_token_accuracy(model: nn.Module, windows: Tensor) -> float:
    """Return the share of predicted tokens whose likeliest guess is the one that came."""
    with evaluating(model):
        logits, targets = predict_next(model, windows)
    return (logits.argmax(dim=-1) == targets).double().mean().item()


def _check_text(token_ids: Any, context: Any) -> None:
    check_positive_int("context", context)
    check_tensor("token_ids", token_ids)
    if token_ids.dtype != torch.long:
        raise TypeError(f"token_ids must hold torch.long ids, got {token_ids.dtype}; call .long()")
    if token_ids.dim() != 1 or len(token_ids) <= context:
        raise ValueError(
            f"token_ids must be [T] with at least context + 1 = {context + 1} tokens, "
            f"got {list(token_ids.shape)}"
        )


def _check_windows(model: Any, windows: Any) -> None:
    check_module("model", model)
    check_tensor("windows", windows)
    if windows.dim() != 2 or windows.shape[1] < 2:
        raise ValueError(
            f"windows must be [B, T + 1] with T of at least 1, got {list(windows.shape)}"
        )


def _check_fit(model: Any, steps: Any, learning_rate: Any) -> None:
    check_module("model", model)
    check_positive_int("steps", steps)
    check_finite_number("learning_rate", learning_rate)
    if learning_rate <= 0:
        raise ValueError(f"learning_rate must be above 0, got {learning_rate}")


def _check_loss(loss: Tensor, step: int) -> None:
    if not torch.isfinite(loss):
        raise FloatingPointError(f"the loss of step {step} is {loss.item()}; lower learning_rate")
