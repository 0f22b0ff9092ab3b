"""Two guards against reading the future: one looks at the weights, one at what comes out.

A lost mask gives no error and a wonderful loss. Weights are easy to inspect but only a report;
the perturbation asks the model itself.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from course_lib.decoder_lm.errors import CausalityViolation, ShapeMismatch


def assert_causal(attention_weights: Any) -> None:
    """Require that no query gives any weight to a key after its own position.

    The queries are the last T_q of the T_k positions, as when a chunk is read into a cache.

    Shapes:  attention_weights [..., T_q, T_k], T_k >= T_q
    Raises:  CausalityViolation with the largest such weight; ShapeMismatch; ValueError for NaN
    """
    weights = _checked_weights(attention_weights)
    width, length = weights.shape[-2:]
    future = ~np.tri(width, length, length - width, dtype=bool)  # [T_q, T_k]
    leaks = np.where(future, np.abs(weights), 0.0)
    count = np.count_nonzero(leaks)
    if count > 0:
        place = np.unravel_index(leaks.argmax(), leaks.shape)
        query, key = place[-2] + length - width, place[-1]
        raise CausalityViolation(
            f"{count} attention weights reach into the future; the largest is "
            f"{leaks.max():.3g}, from position {query} to position {key} "
            f"(index {[int(part) for part in place]}); mask the scores before the softmax"
        )


def assert_causal_by_perturbation(model: Any, token_ids: Sequence[int], vocab_size: int) -> None:
    """Require that no later token, changed or cut off, moves an earlier row of logits.

    Whatever the model says of its attention: this looks at nothing but its output. Each token but
    the first is changed in two ways, then left out with all that follow.

    Args:    model: token_ids -> logits [T, V], or an object with such a method `full_logits`;
             what rounding may do, 1000 times the epsilon of the logits' dtype, is allowed
    Raises:  CausalityViolation that names the token and the row; ValueError for fewer than two
             tokens or ids, or for logits that are not finite
    """
    _check_perturbation(token_ids, vocab_size)
    logits_of: Callable[[list[int]], Any] = getattr(model, "full_logits", model)
    ids = [int(token) for token in token_ids]
    before = _finite_logit_rows(logits_of(ids), len(ids))
    allowed = 1000 * np.finfo(before.dtype).eps * max(1.0, float(np.abs(before).max()))
    for place in range(1, len(ids)):
        for change, text in _futures(ids, place, vocab_size):
            after = _finite_logit_rows(logits_of(text), len(text))
            moved = np.abs(after[:place] - before[:place]).max(axis=-1)  # [place]
            if moved.max() > allowed:
                raise CausalityViolation(
                    f"{change} moved the logits at position {moved.argmax()} by "
                    f"{moved.max():.3g} (rounding explains {allowed:.1g}): the output reads its "
                    f"own future; look for a lost, shifted or misaligned causal mask"
                )


def _futures(ids: list[int], place: int, vocab_size: int) -> list[tuple[str, list[int]]]:
    """Texts that agree with `ids` before `place`, each with what was done to it."""
    others = sorted({(ids[place] + step) % vocab_size for step in (1, vocab_size // 2)})
    found = [
        (
            f"changing the token at position {place} from {ids[place]} to {other}",
            [*ids[:place], other, *ids[place + 1 :]],
        )
        for other in others
        if other != ids[place]
    ]
    return [*found, (f"cutting the text before position {place}", ids[:place])]


def _checked_weights(attention_weights: Any) -> np.ndarray:
    weights = np.asarray(attention_weights, dtype=np.float64)
    if weights.ndim < 2 or weights.size == 0 or weights.shape[-1] < weights.shape[-2]:
        raise ShapeMismatch(
            f"attention_weights must have shape [..., T_q, T_k] with T_k >= T_q >= 1, "
            f"got {list(weights.shape)}"
        )
    if not np.isfinite(weights).all():
        raise ValueError(
            f"{np.sum(~np.isfinite(weights))} attention weights are NaN or infinite; pass the "
            f"weights after the softmax, and look for rows that may read nothing"
        )
    return weights


def _check_perturbation(token_ids: Any, vocab_size: Any) -> None:
    if len(token_ids) < 2:
        raise ValueError(f"{len(token_ids)} tokens have no future to change; give at least 2")
    if vocab_size < 2:
        raise ValueError(f"{vocab_size=} leaves no other token to change to; give at least 2")


def _finite_logit_rows(logits: Any, length: int) -> np.ndarray:
    rows = np.asarray(logits)
    if rows.ndim != 2 or len(rows) != length:
        raise ShapeMismatch(f"the model must return logits [{length}, V], got {list(rows.shape)}")
    if rows.dtype.kind in "iu":
        rows = rows.astype(np.float64)
    if rows.dtype.kind != "f" or rows.dtype.itemsize < 4:
        raise TypeError(f"the logits are {rows.dtype}: too coarse to show a leak; use float32")
    if not np.isfinite(rows).all():
        raise ValueError("the model returned logits that are NaN or infinite: nothing is proved")
    return rows
