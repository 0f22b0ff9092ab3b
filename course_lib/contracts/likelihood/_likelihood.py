"""The steps of a likelihood, right and wrong, of which mistaken losses are put together."""

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.engine.mistake import Mistake
from course_lib.contracts.likelihood._likelihood_texts import LIKELIHOOD_MISTAKE_TEXTS


def _next_token_pairs(*parts: Tensor) -> tuple[Tensor, ...]:
    logits, token_ids, real = parts
    return logits[:, :-1], token_ids[:, 1:], real[:, 1:]


def _rows_run_together(*parts: Tensor) -> tuple[Tensor, ...]:
    logits, token_ids, real = (part.flatten(0, 1).unsqueeze(0) for part in parts)
    return _next_token_pairs(logits, token_ids, real)


def _scored_against_zero(*parts: Tensor) -> tuple[Tensor, ...]:
    logits, token_ids, real = parts
    follows = torch.cat([token_ids[:, 1:], torch.zeros_like(token_ids[:, :1])], dim=1)
    return logits, follows, torch.cat([real[:, 1:], real[:, -1:]], dim=1)


def exact_cost(logits: Tensor, targets: Tensor) -> Tensor:
    """The nats of each target, one step of the right formula."""
    return -logits.log_softmax(-1).gather(-1, targets.unsqueeze(-1)).squeeze(-1)


def _cost_of_probs(
    logits: Tensor, targets: Tensor, nats: Callable[[Tensor], Tensor], axis: int = -1
) -> Tensor:
    return nats(logits.softmax(axis).gather(-1, targets.unsqueeze(-1)).squeeze(-1))


def _cost_unshielded(logits: Tensor, targets: Tensor) -> Tensor:
    chosen = logits.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    return logits.exp().sum(-1).log() - chosen


def _cost_smoothed(logits: Tensor, targets: Tensor) -> Tensor:
    return 0.9 * exact_cost(logits, targets) - 0.1 * logits.log_softmax(-1).mean(-1)


def _cost_unnormalised(logits: Tensor, targets: Tensor) -> Tensor:
    return -logits.gather(-1, targets.unsqueeze(-1)).squeeze(-1)


def _as_if_log_probs(logits: Tensor, axis: int) -> tuple[Tensor, Callable[..., Tensor]]:
    """Logits normalised over a wrong axis, and the cost that takes them for log-probabilities."""
    return logits.log_softmax(axis), _cost_unnormalised


def _moved_mask(ids: Tensor, valid: Tensor, by: int) -> Tensor:
    """The mask one place later (its first entry repeated) or earlier (nothing follows the end)."""
    if by > 0:
        return torch.cat([valid[:, :1], valid[:, :-1]], dim=1)
    return torch.cat([valid[:, 1:], torch.zeros_like(valid[:, :1])], dim=1)


def _total(costs: Tensor, real: Tensor) -> Tensor:
    return costs.masked_fill(~real, 0.0).sum()


def mean_of_tokens(costs: Tensor, real: Tensor, valid: Tensor) -> Tensor:
    """The mean over the tokens that count, one step of the right formula."""
    return _total(costs, real) / real.sum()


def _mean_of_rows(costs: Tensor, real: Tensor, valid: Tensor) -> Tensor:
    sums, counts = costs.masked_fill(~real, 0.0).sum(-1), real.sum(-1)
    return (sums[counts > 0] / counts[counts > 0]).mean()


# Each step of the formula, with the ways of getting it wrong: {name of the mistake: (step, way)}.
LIKELIHOOD_STEPS = {
    "not_shifted": ("align", lambda *parts: parts),
    "not_shifted_end_dropped": ("align", lambda *parts: tuple(part[:, :-1] for part in parts)),
    "not_shifted_start_dropped": ("align", lambda *parts: tuple(part[:, 1:] for part in parts)),
    "last_column_lost": (
        "align",
        lambda *parts: tuple(part[:, :-1] for part in _next_token_pairs(*parts)),
    ),
    "second_column_lost": (
        "align",
        lambda *parts: tuple(part[:, 1:] for part in _next_token_pairs(*parts)),
    ),
    "shifted_twice": (
        "align",
        lambda logits, ids, real: (logits[:, :-2], ids[:, 2:], real[:, 2:]),
    ),
    "shifted_backwards": (
        "align",
        lambda logits, ids, real: (logits[:, 1:], ids[:, :-1], real[:, :-1]),
    ),
    "rows_run_together": ("align", _rows_run_together),
    "wrapped_around": (
        "align",
        lambda logits, ids, real: (logits, ids.roll(-1, 1), real.roll(-1, 1)),
    ),
    "end_scored_as_zero": ("align", _scored_against_zero),
    "padding_counted": ("counted", lambda ids, valid: torch.ones_like(valid)),
    "mask_not_shifted": ("counted", partial(_moved_mask, by=1)),
    "last_token_dropped": ("counted", partial(_moved_mask, by=-1)),
    "mask_inverted": ("counted", lambda ids, valid: valid if valid.all() else ~valid),
    "zero_is_padding": ("counted", lambda ids, valid: valid & (ids != 0)),
    "zero_instead_of_mask": ("counted", lambda ids, valid: ids != 0),
    "zero_guessed_padding": (
        "counted",
        lambda ids, valid: ids != 0 if valid.all() else valid,
    ),
    "sum_not_mean": ("reduce", lambda costs, real, valid: _total(costs, real)),
    "mean_of_rows": ("reduce", _mean_of_rows),
    "per_row_not_token": ("reduce", lambda costs, real, valid: _total(costs, real) / len(valid)),
    "padding_in_denominator": (
        "reduce",
        lambda costs, real, valid: _total(costs, real) / real.numel(),
    ),
    "first_token_in_denominator": (
        "reduce",
        lambda costs, real, valid: _total(costs, real) / valid.sum(),
    ),
    "sign_lost": ("reduce", lambda *parts: -mean_of_tokens(*parts)),
    "bits_not_nats": ("reduce", lambda *parts: mean_of_tokens(*parts) / math.log(2)),
    "probability_floor": (
        "cost",
        partial(_cost_of_probs, nats=lambda probs: -(probs + 1e-12).log()),
    ),
    "probability_rounds_to_zero": ("cost", partial(_cost_of_probs, nats=lambda p: -p.log())),
    "exp_overflows": ("cost", _cost_unshielded),
    "probability_not_log": ("cost", partial(_cost_of_probs, nats=lambda probs: -probs)),
    "raw_logits": ("cost", _cost_unnormalised),
    "softmax_twice": (
        "cost",
        lambda logits, targets: exact_cost(logits.softmax(-1), targets),
    ),
    "softmax_over_positions": (
        "cost",
        partial(_cost_of_probs, nats=lambda probs: -probs.log(), axis=-2),
    ),
    "softmax_over_all_positions": ("prepare", lambda logits: _as_if_log_probs(logits, 1)),
    "softmax_over_batch": ("prepare", lambda logits: _as_if_log_probs(logits, 0)),
    "logits_clipped": (
        "cost",
        lambda logits, targets: exact_cost(logits.clamp(-50, 50), targets),
    ),
    "labels_smoothed": ("cost", _cost_smoothed),
}


def costs_and_weights(
    logits: Tensor, token_ids: Tensor, valid: Tensor | None, steps: dict[str, Callable[..., Any]]
) -> tuple[Tensor, Tensor, Tensor]:
    """The nats of each prediction, which of them count, and the whole mask: all but the end."""
    valid = torch.ones_like(token_ids, dtype=torch.bool) if valid is None else valid
    counted = steps.get("counted", lambda ids, real: real)(token_ids, valid)
    align = steps.get("align", _next_token_pairs)
    prepare = steps.get("prepare", lambda wide: (wide, exact_cost))
    wide, cost = prepare(logits.double())
    guesses, targets, real = align(wide, token_ids, counted)
    return steps.get("cost", cost)(guesses, targets), real, valid


def mistaken_nll(**steps: Callable[..., Any]) -> Callable[..., float]:
    """A next-token loss with some of its steps (align, counted, cost, reduce) replaced."""

    def next_token_nll(logits: Tensor, token_ids: Tensor, valid: Tensor | None = None) -> float:
        return steps.get("reduce", mean_of_tokens)(
            *costs_and_weights(logits, token_ids, valid, steps)
        ).item()

    return next_token_nll


def likelihood_mistakes(
    build: Callable[..., Callable[..., float]], names: Iterable[str]
) -> tuple[Mistake, ...]:
    """The named mistakes, each in one step of the formula that `build` puts together."""
    found = []
    for name in names:
        step, way = LIKELIHOOD_STEPS[name]
        alike = "not_shifted" if name.startswith("not_shifted") else name
        source, what, fix = LIKELIHOOD_MISTAKE_TEXTS[alike]
        found.append(Mistake(name, source, partial(build, **{step: way}), what, fix))
    return tuple(found)
