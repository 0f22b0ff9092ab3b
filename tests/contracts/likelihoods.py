"""Next-token losses written in many ways, right and wrong, for the contracts that share them."""

import itertools
import math

import numpy as np
import torch
import torch.nn.functional as F

from course_lib.likelihood import token_nll
from course_lib.training import next_token_loss


def everything(token_ids, valid):
    return torch.ones_like(token_ids, dtype=torch.bool) if valid is None else valid


def nll_by_gather(logits, token_ids, valid=None):
    log_probs = torch.log_softmax(logits.double(), dim=-1)
    nats = -log_probs[:, :-1].gather(2, token_ids[:, 1:, None])[:, :, 0]
    if valid is None:
        return nats.mean().item()
    counted = valid[:, 1:]
    return nats[counted].sum().item() / counted.sum().item()


def nll_by_ignoring(logits, token_ids, valid=None):
    labels = token_ids[:, 1:].clone()
    if valid is not None:
        labels[~valid[:, 1:]] = -100
    flat = logits[:, :-1].double().flatten(0, 1)
    return F.cross_entropy(flat, labels.flatten(), ignore_index=-100)


def nll_by_logsumexp(logits, token_ids, valid=None):
    before = logits[:, :-1].double()
    chosen = torch.take_along_dim(before, token_ids[:, 1:].unsqueeze(-1), dim=-1).squeeze(-1)
    weights = everything(token_ids, valid)[:, 1:].double()
    return ((before.logsumexp(dim=-1) - chosen) * weights).sum() / weights.sum()


def nll_by_loops(logits, token_ids, valid=None):
    total, count = 0.0, 0
    for row, tokens, real in zip(
        logits.tolist(), token_ids.tolist(), everything(token_ids, valid).tolist(), strict=True
    ):
        for t in range(1, len(tokens)):
            if real[t]:
                total += token_nll(row[t - 1], tokens[t])
                count += 1
    return total / count


class Recited(torch.nn.Module):
    def __init__(self, logits):
        super().__init__()
        self.logits = logits

    def forward(self, token_ids):
        return self.logits


def nll_of_the_course(logits, token_ids, valid=None):
    """Every prediction as a window of two tokens, of which the course takes the mean loss."""
    counted = everything(token_ids, valid)[:, 1:]
    windows = torch.stack([token_ids[:, :-1], token_ids[:, 1:]], dim=-1)[counted]
    return next_token_loss(Recited(logits[:, :-1][counted].unsqueeze(1).double()), windows)


def nll_in_numpy(logits, token_ids, valid=None):
    z = logits.double().numpy()[:, :-1]
    z = z - z.max(axis=-1, keepdims=True)
    log_probs = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    rows, places = np.indices(log_probs.shape[:2])
    chosen = log_probs[rows, places, token_ids.numpy()[:, 1:]]
    return np.average(-chosen, weights=everything(token_ids, valid).numpy()[:, 1:])


def nll_by_one_hot(logits, token_ids, valid=None):
    one_hot = F.one_hot(token_ids[:, 1:], logits.shape[-1]).double()
    nats = -torch.einsum("btv,btv->bt", F.log_softmax(logits[:, :-1].double(), -1), one_hot)
    return float(nats[everything(token_ids, valid)[:, 1:]].mean())


def nll_over_classes(logits, token_ids, valid=None):
    nats = F.cross_entropy(logits.double()[:, :-1].mT, token_ids[:, 1:], reduction="none")
    counted = everything(token_ids, valid)[:, 1:]
    return nats.masked_fill(~counted, 0).sum() / counted.count_nonzero()


def nll_in_float32(logits, token_ids, valid=None):
    """As large libraries have it: logits to float32, labels padded at the end, then shifted."""
    labels = token_ids.masked_fill(~everything(token_ids, valid), -100)
    shifted = F.pad(labels, (0, 1), value=-100)[:, 1:].contiguous()
    flat = logits.float().reshape(-1, logits.shape[-1])
    total = F.cross_entropy(flat, shifted.reshape(-1), ignore_index=-100, reduction="sum")
    return total / (shifted != -100).sum()


def nll_in_given_dtype(logits, token_ids, valid=None):
    counted = everything(token_ids, valid)[:, 1:]
    return F.cross_entropy(logits[:, :-1][counted], token_ids[:, 1:][counted]).item()


def nll_from_real_to_real(logits, token_ids, valid=None):
    """A prediction made from padding does not count: another reading of left padding."""
    real = everything(token_ids, valid)
    return nll_by_gather(
        logits, token_ids, torch.cat([real[:, :1], real[:, 1:] & real[:, :-1]], dim=1)
    )


def nll_online(logits, token_ids, valid=None):
    """The largest logit and the mass so far, token by token of the vocabulary."""
    before = logits[:, :-1].double()
    top = torch.full(before.shape[:-1], -math.inf, dtype=torch.float64)
    mass = torch.zeros_like(top)
    for column in before.unbind(-1):
        higher = torch.maximum(top, column)
        mass = mass * (top - higher).exp() + (column - higher).exp()
        top = higher
    chosen = before.gather(-1, token_ids[:, 1:].unsqueeze(-1)).squeeze(-1)
    nats = mass.log() + top - chosen
    return nats[everything(token_ids, valid)[:, 1:]].mean().numpy()


RIGHT_LOSSES = {
    "by gather": nll_by_gather,
    "by ignore_index": nll_by_ignoring,
    "by logsumexp and weights": nll_by_logsumexp,
    "the course's token_nll in loops": nll_by_loops,
    "the course's training loss": nll_of_the_course,
    "in numpy": nll_in_numpy,
    "by one-hot and einsum": nll_by_one_hot,
    "over classes": nll_over_classes,
    "in float32": nll_in_float32,
    "in the given dtype": nll_in_given_dtype,
    "from real to real": nll_from_real_to_real,
    "online softmax": nll_online,
}


def with_logits(change):
    """A loss whose logits are changed first."""

    def next_token_nll(logits, token_ids, valid=None):
        return nll_by_gather(change(logits), token_ids, valid)

    return next_token_nll


def assuming_right_padding(logits, token_ids, valid=None):
    lengths = everything(token_ids, valid).sum(-1)
    valid = torch.arange(token_ids.shape[1]) < lengths.unsqueeze(-1)
    return nll_by_gather(logits, token_ids, valid)


def lengths_of_the_first_row(logits, token_ids, valid=None):
    real = everything(token_ids, valid)
    return nll_by_gather(logits, token_ids, real[:1].expand_as(real))


def short_rows_counted_once(logits, token_ids, valid=None):
    real = everything(token_ids, valid)
    counts = (real.sum(-1) - 1).clamp(min=1)
    weighed = [
        nll_by_gather(row[None], ids[None], mask[None]) * int(mask.sum() - 1)
        if mask.sum() > 1
        else 0
        for row, ids, mask in zip(logits, token_ids, real, strict=True)
    ]
    return sum(weighed) / int(counts.sum())


def first_row_only(logits, token_ids, valid=None):
    return nll_by_gather(logits[:1], token_ids[:1], None if valid is None else valid[:1])


def padding_in_a_mean(logits, token_ids, valid=None):
    """Padding is multiplied away, and the logits of padding enter through a shared maximum."""
    real = everything(token_ids, valid)
    level = logits.double().amax(dim=(1, 2), keepdim=True) * (~real).any() * 0.1
    return nll_by_gather(logits.double() * (1 + level.clamp(max=1)), token_ids, real)


def averaged_with_the_last():
    seen = []

    def next_token_nll(logits, token_ids, valid=None):
        seen.append(nll_by_gather(logits, token_ids, valid))
        return sum(seen[-2:]) / len(seen[-2:])

    return next_token_nll


def dropped_out(logits, token_ids, valid=None):
    return nll_by_gather(logits * (1 + 1e-3 * torch.rand(())), token_ids, valid)


def counter():
    calls = itertools.count()

    def next_token_nll(logits, token_ids, valid=None):
        return nll_by_gather(logits, token_ids, valid) + 1e-5 * next(calls)

    return next_token_nll


def shifting_in_place(logits, token_ids, valid=None):
    if not logits.is_floating_point() or logits.dtype != torch.float64:
        return nll_by_gather(logits, token_ids, valid)
    logits -= logits.amax(-1, keepdim=True)
    return nll_by_gather(logits, token_ids, valid)


def naive_in_half(logits, token_ids, valid=None):
    if logits.dtype in (torch.float16, torch.bfloat16):
        probs = logits.float().softmax(-1).to(logits.dtype)
        return nll_by_gather(probs.log(), token_ids, valid)
    return nll_by_gather(logits, token_ids, valid)


def counting_from_one(logits, token_ids, valid=None):
    return nll_by_gather(logits, (token_ids - 1) % logits.shape[-1], valid)


def most_common_only(logits, token_ids, valid=None):
    """The mean of each distinct token id, then over the ids."""
    real = everything(token_ids, valid)[:, 1:]
    nats = F.cross_entropy(logits.double()[:, :-1].mT, token_ids[:, 1:], reduction="none")
    ids = token_ids[:, 1:][real]
    return float(torch.stack([nats[real][ids == each].mean() for each in ids.unique()]).mean())


def median_not_mean(logits, token_ids, valid=None):
    nats = F.cross_entropy(logits.double()[:, :-1].mT, token_ids[:, 1:], reduction="none")
    return float(nats[everything(token_ids, valid)[:, 1:]].median())


def double_only(logits, token_ids, valid=None):
    """Breaks for anything but float64, as constants of a fixed dtype do."""
    eye = torch.eye(logits.shape[-1], dtype=torch.float64)
    picked = logits[:, :-1] @ eye
    return nll_by_gather(torch.cat([picked, logits[:, -1:]], 1), token_ids, valid)


def cut_to_the_most_real(logits, token_ids, valid=None):
    """Right only if all padding stands on the right."""
    most = int(everything(token_ids, valid).sum(-1).max())
    cut = [part if part is None else part[:, :most] for part in (logits, token_ids, valid)]
    return nll_by_gather(*cut)


def kept_by_ids():
    """A loss that is computed once for each text, whatever the model says."""
    kept = {}

    def loss(logits, token_ids, valid=None):
        key = (*token_ids.flatten().tolist(), *everything(token_ids, valid).flatten().tolist())
        return kept.setdefault(key, nll_by_gather(logits, token_ids, valid))

    return loss


def log_of_softmax(logits, token_ids, valid=None):
    """Infinite as soon as a probability rounds to 0, and quiet about it."""
    nats = -logits.double().softmax(-1).log()[:, :-1]
    chosen = nats.gather(-1, token_ids[:, 1:, None])[..., 0]
    return chosen[everything(token_ids, valid)[:, 1:]].mean().item()


def far_ids_lost(logits, token_ids, valid=None):
    """Ids that a byte cannot hold."""
    return nll_by_gather(logits, token_ids % 256, valid)
