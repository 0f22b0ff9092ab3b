"""Batched samplers, right and wrong, beyond the catalogue."""

import bisect
import itertools
import math

import numpy as np
import torch

from course_lib.contracts import check_sampler_contract
from course_lib.contracts.sampling.sampler_mistakes import SAMPLER_MISTAKES
from course_lib.sampling import token_distribution

from .trial import Fresh, named_by

CHECK, CATALOGUE = check_sampler_contract, SAMPLER_MISTAKES
CLAUSES = [
    *("result_form", "arguments_unchanged", "greedy", "softmax", "temperature", "top_k", "top_p"),
    *("ties", "order", "generator", "independent_rows", "independent_pairs", "draw_ends"),
    *("extreme_logits", "large_vocabulary"),
]


def vectorised(logits, temperature, top_k, top_p, rng):
    """Ranks, masks and running sums of the whole batch at once."""
    if temperature == 0:
        return logits.argmax(-1)
    z = (logits.astype(np.float64) - logits.max(-1, keepdims=True)) / temperature
    order = np.argsort(-z, axis=-1, kind="stable")
    mass = np.exp(np.take_along_axis(z, order, -1))
    mass[:, top_k or mass.shape[-1] :] = 0.0
    if top_p is not None and top_p < 1:
        shares = mass / mass.sum(-1, keepdims=True)
        before = np.cumsum(shares, -1) - shares
        mass[before >= top_p] = 0.0
    sums = np.cumsum(mass, -1)
    drawn = rng.random((len(z), 1)) * sums[:, -1:]
    place = np.minimum((sums <= drawn).sum(-1), (mass > 0).sum(-1) - 1)
    return np.take_along_axis(order, place[:, None], -1)[:, 0]


def by_choice(logits, temperature, top_k, top_p, rng):
    """The distribution of each row, then numpy's own choice."""
    ids = []
    for row in logits.tolist():
        if temperature == 0:
            ids.append(row.index(max(row)))
        else:
            probs = token_distribution(row, temperature, top_k, top_p)
            ids.append(int(rng.choice(len(row), p=probs)))
    return ids


def kept_logits(row, temperature, top_k, top_p):
    """The kept ids, likeliest first, with the logarithms of their probabilities."""
    z = np.asarray(row, dtype=np.float64) / temperature
    ids = np.lexsort((np.arange(len(z)), -z))[:top_k]
    z = z[ids] - z.max()
    z = z - math.log(np.exp(z).sum())
    if top_p is not None and top_p < 1:
        count = int(np.searchsorted(np.cumsum(np.exp(z)), top_p)) + 1
        ids, z = ids[:count], z[:count]
    return ids, z


def by_gumbel(logits, temperature, top_k, top_p, rng):
    """The largest of log-probabilities plus Gumbel noise, among the kept tokens."""
    ids = np.zeros(len(logits), dtype=np.int32)
    for b, row in enumerate(logits):
        if temperature == 0:
            ids[b] = int(np.flatnonzero(row == row.max())[0])
            continue
        kept, z = kept_logits(row, temperature, top_k, top_p)
        ids[b] = kept[np.argmax(z + rng.gumbel(size=len(z)))]
    return ids


def by_race(logits, temperature, top_k, top_p, rng):
    """An exponential race over the whole vocabulary; removed tokens never arrive."""
    if temperature == 0:
        return torch.from_numpy(logits).argmax(-1)
    probs = np.stack([token_distribution(r, temperature, top_k, top_p) for r in logits.tolist()])
    with np.errstate(divide="ignore", invalid="ignore"):
        return torch.from_numpy((rng.exponential(size=probs.shape) / probs).argmin(-1))


def by_multinomial(logits, temperature, top_k, top_p, rng):
    """One throw of a die for each row, among the kept tokens."""
    if temperature == 0:
        return [int(np.argmax(row)) for row in logits]
    ids = []
    for row in logits:
        kept, z = kept_logits(row, temperature, top_k, top_p)
        probs = np.exp(z)
        ids.append(int(kept[rng.multinomial(1, probs / probs.sum()).argmax()]))
    return np.array(ids, dtype=np.uint16)


def by_torch(logits, temperature, top_k, top_p, rng):
    """torch.multinomial, with a generator of its own that rng seeds."""
    z = torch.tensor(logits, dtype=torch.float64)
    values, order = z.sort(dim=-1, descending=True, stable=True)
    if temperature == 0:
        return order[:, 0]
    values = values / temperature
    if top_k is not None:
        values[:, top_k:] = -math.inf
    if top_p is not None and top_p < 1:
        probs = values.softmax(-1)
        values[probs.cumsum(-1) - probs >= top_p] = -math.inf
    generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
    place = torch.multinomial(values.softmax(-1), 1, generator=generator)
    return order.gather(-1, place).squeeze(-1)


def by_bisection(logits, temperature, top_k, top_p, rng):
    """Plain Python: running sums in lists, the last kept token for whatever rounding leaves."""
    ids = []
    for row in np.asarray(logits).tolist():
        if temperature == 0:
            ids.append(max(range(len(row)), key=lambda token: (row[token], -token)))
            continue
        probs = token_distribution(row, temperature, top_k, top_p)
        kept = [token for token, prob in enumerate(probs) if prob]
        sums = list(itertools.accumulate(probs[token] for token in kept))
        place = bisect.bisect_right(sums, rng.random())
        ids.append(kept[min(place, len(kept) - 1)])
    return tuple(ids)


def in_float32(logits, temperature, top_k, top_p, rng):
    """Single precision throughout, numbers of single precision drawn as well."""
    z = np.asarray(logits, dtype=np.float32)
    if temperature == 0:
        return z.argmax(-1)
    z = (z - z.max(-1, keepdims=True)) / np.float32(temperature)
    rank = np.argsort(np.argsort(-z, axis=-1, kind="stable"), axis=-1, kind="stable")
    mass = np.exp(z) * (rank < (z.shape[-1] if top_k is None else top_k))
    if top_p is not None and top_p < 1:
        shares = np.take_along_axis(mass, np.argsort(rank, -1), -1).astype(np.float64)
        shares /= shares.sum(-1, keepdims=True)
        sizes = (np.cumsum(shares, -1) - shares < top_p).sum(-1, keepdims=True)
        mass = mass * (rank < sizes)
    sums = np.cumsum(mass, -1, dtype=np.float32)
    drawn = rng.random((len(z), 1), dtype=np.float32) * sums[:, -1:]
    past = np.where(mass > 0, sums > drawn, False)
    last = z.shape[-1] - 1 - (mass[:, ::-1] > 0).argmax(-1)
    return np.where(past.any(-1), past.argmax(-1), last)


def by_rejection(logits, temperature, top_k, top_p, rng):
    """Propose any token, accept it in proportion to its probability."""
    ids = []
    for row in logits.tolist():
        if temperature == 0 or len(row) == 1:
            ids.append(int(np.argmax(row)))
            continue
        kept, z = kept_logits(row, temperature, top_k, top_p)
        heights = np.exp(z - z[0])
        while True:
            places = rng.integers(len(kept), size=16)
            accepted = places[rng.random(16) < heights[places]]
            if len(accepted):
                break
        ids.append(int(kept[accepted[0]]))
    return np.array(ids)


def wrong(change):
    """A right sampler whose answer is changed: change(ids, logits, rng)."""

    def sample(logits, temperature, top_k, top_p, rng):
        return change(vectorised(logits, temperature, top_k, top_p, rng), logits, rng)

    return sample


def first_id_kept():
    seen = {}

    def sample(logits, temperature, top_k, top_p, rng):
        ids = vectorised(logits, temperature, top_k, top_p, rng)
        return seen.setdefault((logits.shape, temperature, top_k, top_p), ids)

    return sample


def one_choice_for_equal_rows(logits, temperature, top_k, top_p, rng):
    """Remember the id of a row within the call, to be quick."""
    known = {}
    ids = []
    for row in logits:
        key = row.tobytes()
        if key not in known:
            known[key] = int(vectorised(row[None], temperature, top_k, top_p, rng)[0])
        ids.append(known[key])
    return ids


def in_blocks(logits, temperature, top_k, top_p, rng):
    """A seed for each block of sixteen rows, and the same seed inside."""
    ids = []
    for start in range(0, len(logits), 16):
        seed = int(rng.integers(2**60))
        for row in logits[start : start + 16]:
            own = np.random.default_rng(seed)
            ids.append(vectorised(row[None], temperature, top_k, top_p, own)[0])
    return np.array(ids)


def half_logits(logits, temperature, top_k, top_p, rng):
    with np.errstate(over="ignore", invalid="ignore"):
        return vectorised(logits.astype(np.float16), temperature, top_k, top_p, rng)


def torch_global(logits, temperature, top_k, top_p, rng):
    if temperature == 0:
        return logits.argmax(-1)
    probs = [token_distribution(row, temperature, top_k, top_p) for row in logits.tolist()]
    return torch.multinomial(torch.tensor(probs), 1).squeeze(-1)


def seeds_numpy(logits, temperature, top_k, top_p, rng):
    np.random.seed(int(rng.integers(2**31)))
    return vectorised(logits, temperature, top_k, top_p, rng)


def without_maximum(logits, temperature, top_k, top_p, rng):
    if temperature == 0:
        return logits.argmax(-1)
    with np.errstate(all="ignore"):
        mass = np.exp(logits / temperature)
    probs = [token_distribution(row, temperature, top_k, top_p) for row in logits.tolist()]
    mass = np.where(np.array(probs) > 0, mass, 0.0)
    with np.errstate(all="ignore"):
        sums = np.cumsum(mass / mass.sum(-1, keepdims=True), -1)
    past = rng.random((len(mass), 1)) < sums
    return np.where(past.any(-1), past.argmax(-1), np.argmax(probs, -1))


def temperature_one_when_filtered(logits, temperature, top_k, top_p, rng):
    warm = 1.0 if top_k and top_p is None and temperature else temperature
    return vectorised(logits, warm, top_k, top_p, rng)


def first_thousand(logits, temperature, top_k, top_p, rng):
    return vectorised(logits[:, :1000], temperature, top_k and min(top_k, 1000), top_p, rng)


def every_other_number(logits, temperature, top_k, top_p, rng):
    """Two rows share a number, as where a block of two has one thread."""
    if temperature == 0:
        return logits.argmax(-1)
    numbers = np.repeat(rng.random((len(logits) + 1) // 2), 2)[: len(logits)]
    ids = []
    for row, number in zip(logits.tolist(), numbers, strict=True):
        probs = token_distribution(row, temperature, top_k, top_p)
        kept = [token for token, prob in enumerate(probs) if prob]
        sums = np.cumsum([probs[token] for token in kept])
        ids.append(kept[min(int((sums <= number).sum()), len(kept) - 1)])
    return ids


RIGHT = {
    "vectorised": vectorised,
    "by choice": by_choice,
    "by Gumbel noise": by_gumbel,
    "by a race": by_race,
    "by multinomial": by_multinomial,
    "by torch": by_torch,
    "by bisection": by_bisection,
    "in float32": in_float32,
    "by rejection": by_rejection,
}
WRONG = {
    "floats": (wrong(lambda ids, logits, rng: ids.astype(float)), "result_form"),
    "a column": (wrong(lambda ids, logits, rng: ids[:, None]), "result_form"),
    "one-hot rows": (wrong(lambda ids, logits, rng: ids[:, None] == np.arange(9)), "result_form"),
    "one id": (wrong(lambda ids, logits, rng: int(ids[0])), "result_form"),
    "no result": (wrong(lambda ids, logits, rng: None), "result_form"),
    "truth values": (wrong(lambda ids, logits, rng: ids > 0), "result_form"),
    "ids from one": (wrong(lambda ids, logits, rng: ids + 1), "result_form"),
    "words": (wrong(lambda ids, logits, rng: [str(i) for i in ids]), "result_form"),
    "as bytes": (wrong(lambda ids, logits, rng: ids.astype(np.uint8)), "large_vocabulary"),
    "rows shuffled": (wrong(lambda ids, logits, rng: rng.permutation(ids)), "greedy"),
    "rows sorted": (wrong(lambda ids, logits, rng: np.sort(ids)), "greedy"),
    "first ids kept": (Fresh(first_id_kept), "generator"),
    "one choice for equal rows": (one_choice_for_equal_rows, "softmax"),
    "a seed for each block": (in_blocks, "softmax"),
    "two rows share a number": (every_other_number, "independent_rows"),
    "half precision": (half_logits, "greedy"),
    "torch's global generator": (torch_global, "generator"),
    "numpy seeded": (seeds_numpy, "generator"),
    "exp without the maximum": (without_maximum, "extreme_logits"),
    "temperature dropped with top_k": (temperature_one_when_filtered, "top_k"),
    "first thousand tokens": (first_thousand, "draw_ends"),
}
MISTAKES = named_by(
    result_form="batch_of_one_squeezed",
    arguments_unchanged="logits_divided_in_place logits_erased_in_place",
    greedy=(
        "zero_temperature_divides zero_temperature_samples zero_temperature_clamped "
        "greedy_ties_at_random greedy_ties_to_the_last"
    ),
    softmax=(
        "softmax_again one_number_for_all_rows first_rows_order_for_all softmax_over_the_batch "
        "always_greedy noise_subtracted noise_logistic sorted_place_returned"
    ),
    temperature="temperature_ignored temperature_multiplied temperature_twice",
    top_k=(
        "one_more_kept one_less_kept top_k_ignored removed_filled_with_1e_10 "
        "first_rows_filter_for_all"
    ),
    top_p=(
        "crossing_dropped one_past_crossing top_p_ignored top_p_in_id_order min_p_instead "
        "first_row_unfiltered"
    ),
    ties="ties_kept higher_ids_kept top_p_ties_kept extra_on_equality nucleus_of_the_whole_batch",
    order="temperature_after_filters top_p_ignored_with_top_k top_p_of_whole_mass",
    generator="global_generator reseeded_in_every_call unseeded_generator generator_copied",
    independent_pairs="rows_share_out_the_unit rows_mirrored",
    draw_ends="removed_when_the_draw_is_0 past_the_end clipped_to_the_end",
    large_vocabulary="half_precision_sums",
)
MUTATED = [vectorised, by_bisection]
EQUIVALENT = {
    **{
        f"vectorised:{line} no sign: -1": "axis 1 is axis -1 of two"
        for line in (4, 5, 6, 7, 8, 10, 11, 13, 16)
    },
    "vectorised:5 method dropped: logits.astype(np.float64)": "float32 is exact enough",
    "vectorised:6 no axis=: np.argsort(-z, axis=-1, kind='stable')": "the default",
    "vectorised:8 whole slice: :": "the same slice",
    "vectorised:9 LtE: top_p < 1": "at p = 1 rounding removes less than 1e-15",
    "vectorised:9 +1: 1": "at p = 1 rounding removes less than 1e-15",
    "vectorised:14 whole slice: :": "the same slice",
    "vectorised:15 no sign: -1": "axis 1 is axis -1 of two",
    "vectorised:15 no sign: -1 (2)": "axis 1 is axis -1 of two",
    "vectorised:15 Lt: sums <= drawn": "place 0 is always kept, and equality is a matter of taste",
    **{
        f"vectorised:15 {what}": "drawn is below the last sum: u * total < total for u < 1"
        for what in (
            *("-1: 0", "-1: 1", "GtE: mass > 0", "Add: (mass > 0).sum(-1) - 1"),
            "left only: (mass > 0).sum(-1) - 1",
        )
    },
    "vectorised:15 arguments swapped: np.minimum((sums <= drawn).sum(-1), "
    "(mass > 0).sum(-1) - 1)": "a minimum is symmetric",
    "vectorised:16 -1: 0": "one column",
    "vectorised:16 whole slice: :": "the same slice",
    "vectorised:16 whole slice: : (2)": "the same slice",
    "by_bisection:4 call dropped: np.asarray(logits)": "it is an array",
    "by_bisection:4 method dropped: np.asarray(logits).tolist()": "rows of an array are sequences",
    "by_bisection:12 arguments swapped: min(place, len(kept) - 1)": "a minimum is symmetric",
    "by_bisection:13 call dropped: tuple(ids)": "a list is accepted",
}
UNNAMED = [
    *("floats", "one id", "truth values", "ids from one", "rows shuffled", "rows sorted"),
    *("a seed for each block", "half precision", "as bytes"),
]
SAYS = {
    "one_more_kept": "where only [0, 1] may come",
    "temperature_ignored": "chance strays so far less than once in 10^",
    "past_the_end": "is no token",
    "rows_share_out_the_unit": "independent ones would about",
    "generator_copied": "it has not moved on",
    "reseeded_in_every_call": "gave the same ids",
    "numpy seeded": "moved a global generator",
    "a column": "one id for each row is shape",
    "floats": "they must be integers",
}
