"""The right distribution, twice: by loops over sorted tokens, and by the library's tensors."""

import math
from collections.abc import Sequence

import torch


def by_loops(
    logits: Sequence[float],
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> list[float]:
    """Rank the tokens, keep the first k, then the shortest run of them that reaches top_p."""
    ranked = sorted(range(len(logits)), key=lambda token: (-logits[token], token))
    kept, top = ranked[:top_k], logits[ranked[0]]
    mass = [math.exp((logits[token] - top) / temperature) for token in kept]
    if top_p is not None and top_p < 1:
        total, reached, count = math.fsum(mass), 0.0, 0
        while reached < top_p:
            reached = math.fsum(mass[: count + 1]) / total
            count += 1
        kept, mass = kept[:count], mass[:count]
    total = math.fsum(mass)
    shares = dict(zip(kept, mass, strict=True))
    return [shares.get(token, 0.0) / total for token in range(len(logits))]


def by_library(
    logits: Sequence[float],
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> list[float]:
    """Sort, cut and accumulate with torch, in float64."""
    values = torch.tensor(logits, dtype=torch.float64)
    order = values.argsort(descending=True, stable=True)[:top_k]
    probs = (values[order] / temperature).softmax(-1)
    if top_p is not None and top_p < 1:
        before = probs.cumsum(-1) - probs  # the mass of the likelier ones
        # not the comparison alone: rounding may let a later one slip in between
        keep = (before < top_p) & (torch.arange(len(probs)) <= (before < top_p).sum() - 1)
        order, probs = order[keep], probs[keep] / probs[keep].sum()
    return torch.zeros_like(values).scatter(0, order, probs).tolist()
