"""Perplexities, right and wrong, beyond the catalogue."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from course_lib.contracts import check_perplexity_contract
from course_lib.contracts.likelihood.perplexity_mistakes import PERPLEXITY_MISTAKES

from .likelihoods import (
    RIGHT_LOSSES,
    assuming_right_padding,
    averaged_with_the_last,
    double_only,
    dropped_out,
    everything,
    first_row_only,
    lengths_of_the_first_row,
    log_of_softmax,
    median_not_mean,
    naive_in_half,
    nll_by_gather,
    padding_in_a_mean,
    shifting_in_place,
    short_rows_counted_once,
    with_logits,
)
from .trial import Fresh, named_by

CHECK, CATALOGUE = check_perplexity_contract, PERPLEXITY_MISTAKES
CLAUSES = [
    *("result_form", "certain_model", "uniform_model", "token_zero", "values", "padding"),
    *("unequal_lengths", "padding_anywhere", "extreme_logits", "half_precision"),
    "independent_results",
]


def exp_of(loss):
    return lambda *call: math.exp(float(loss(*call)))


def perplexity_by_sums(logits, token_ids, valid=None):
    before, targets = logits[:, :-1].double(), token_ids[:, 1:]
    nats = F.cross_entropy(before.transpose(1, 2), targets, reduction="none")
    counted = everything(token_ids, valid)[:, 1:]
    return math.exp(nats[counted].sum() / counted.sum())


def perplexity_by_bits(logits, token_ids, valid=None):
    counted = everything(token_ids, valid)[:, 1:]
    log_probs = logits[:, :-1].double().log_softmax(-1)[counted]
    chosen = log_probs.gather(-1, token_ids[:, 1:][counted][:, None])
    return 2 ** (-chosen.mean() / math.log(2))


def perplexity_in_numpy(logits, token_ids, valid=None):
    return np.exp(RIGHT_LOSSES["in numpy"](logits, token_ids, valid))


def perplexity_by_rows(logits, token_ids, valid=None):
    """Row by row, weighted by the number of predictions."""
    total, count = 0.0, 0
    for row in range(len(token_ids)):
        part = slice(row, row + 1)
        real = everything(token_ids, valid)[part]
        predicted = int(real[:, 1:].sum())
        if predicted:
            loss = nll_by_gather(logits[part], token_ids[part], real)
            total, count = total + loss * predicted, count + predicted
    return torch.tensor(total / count, dtype=torch.float64).exp()


def product_of_inverses(logits, token_ids, valid=None):
    """Right on paper: the n-th root of a product that overflows."""
    real = everything(token_ids, valid)[:, 1:]
    nats = F.cross_entropy(logits.double()[:, :-1].mT, token_ids[:, 1:], reduction="none")
    return nats[real].exp().prod() ** (1 / real.sum())


def root_of_a_product(logits, token_ids, valid=None):
    """Right on paper: the n-th root of a product that rounds to 0."""
    real = everything(token_ids, valid)[:, 1:]
    probs = logits.double()[:, :-1].softmax(-1).gather(-1, token_ids[:, 1:, None])[..., 0]
    return probs[real].prod() ** (-1 / int(real.sum()))


RIGHT = {
    **{f"exp of the loss {name}": exp_of(loss) for name, loss in RIGHT_LOSSES.items()},
    "by sums": perplexity_by_sums,
    "2 to the bits": perplexity_by_bits,
    "in numpy": perplexity_in_numpy,
    "row by row": perplexity_by_rows,
}
WRONG = {
    "infinite for a probability of 0": (
        lambda *call: float(np.exp(log_of_softmax(*call))),
        "extreme_logits",
    ),
    "a list": (lambda *call: [perplexity_by_sums(*call)], "result_form"),
    "a percentage": (lambda *call: f"{perplexity_by_sums(*call)}%", "result_form"),
    "bits to the e": (
        lambda *call: (nll_by_gather(*call) / math.log(2)) ** math.e,
        "certain_model",
    ),
    "expm1": (lambda *call: math.expm1(nll_by_gather(*call)), "certain_model"),
    "inverse": (lambda *call: 1 / perplexity_by_sums(*call), "uniform_model"),
    "exp of half": (lambda *call: math.exp(nll_by_gather(*call) / 2), "uniform_model"),
    "rounded": (lambda *call: float(round(perplexity_by_sums(*call))), "values"),
    "float16": (
        lambda *call: torch.tensor(perplexity_by_sums(*call)).half(),
        "values",
    ),
    "at most a million": (lambda *call: min(perplexity_by_sums(*call), 1e6), "extreme_logits"),
    "no more than the vocabulary": (
        lambda logits, *rest: min(perplexity_by_sums(logits, *rest), float(logits.shape[-1])),
        "values",
    ),
    "product of inverses": (product_of_inverses, "extreme_logits"),
    "root of a product of probabilities": (root_of_a_product, "extreme_logits"),
    "median": (exp_of(median_not_mean), "values"),
    "first row only": (exp_of(first_row_only), "values"),
    "temperature": (exp_of(with_logits(lambda logits: logits / 1.5)), "values"),
    "double only": (exp_of(double_only), "values"),
    "lengths of the first row": (exp_of(lengths_of_the_first_row), "unequal_lengths"),
    "short rows counted once": (exp_of(short_rows_counted_once), "unequal_lengths"),
    "assuming right padding": (exp_of(assuming_right_padding), "padding_anywhere"),
    "padding in a maximum": (exp_of(padding_in_a_mean), "padding"),
    "naive in half precision": (exp_of(naive_in_half), "half_precision"),
    "averaged with the last call": (
        Fresh(lambda: exp_of(averaged_with_the_last())),
        "certain_model",
    ),
    "random": (exp_of(dropped_out), "token_zero"),
    "shifts the logits in place": (exp_of(shifting_in_place), "independent_results"),
}
MISTAKES = named_by(
    certain_model=(
        "not_exponentiated square_root not_shifted shifted_twice shifted_backwards "
        "rows_run_together not_shifted_end_dropped not_shifted_start_dropped wrapped_around "
        "end_scored_as_zero probability_not_log raw_logits softmax_twice softmax_over_positions "
        "softmax_over_all_positions softmax_over_batch labels_smoothed"
    ),
    uniform_model=(
        "two_to_the_nats exp_to_the_bits last_column_lost second_column_lost last_token_dropped "
        "sum_not_mean per_row_not_token first_token_in_denominator sign_lost"
    ),
    token_zero="zero_is_padding zero_instead_of_mask zero_guessed_padding",
    values="mean_of_token_perplexities mean_of_row_perplexities",
    padding="padding_counted mask_not_shifted mask_inverted padding_in_denominator",
    unequal_lengths="mean_of_rows",
    extreme_logits=(
        "capped exp_in_float32 product_overflows probability_floor exp_overflows logits_clipped"
    ),
)
MUTATED = [perplexity_by_sums, perplexity_by_bits]
FIRST_AXIS = "the first axis is whole already"
EQUIVALENT = {
    "perplexity_by_sums:2 whole slice: :": FIRST_AXIS,
    "perplexity_by_sums:2 whole slice: : (2)": FIRST_AXIS,
    "perplexity_by_sums:2 method dropped: logits[:, :-1].double()": "exact to the rounding given",
    "perplexity_by_sums:3 swapaxes: before.transpose": "another name of transpose",
    "perplexity_by_sums:3 arguments swapped: before.transpose(1, 2)": "transpose is symmetric",
    "perplexity_by_sums:4 whole slice: :": FIRST_AXIS,
    "perplexity_by_bits:2 whole slice: :": FIRST_AXIS,
    "perplexity_by_bits:3 whole slice: :": FIRST_AXIS,
    "perplexity_by_bits:4 whole slice: :": FIRST_AXIS,
    "perplexity_by_bits:4 whole slice: : (2)": FIRST_AXIS,
    "perplexity_by_bits:4 no sign: -1": "of two axes the last is axis 1",
}
SAYS = {
    "two_to_the_nats": "the right answer is 2",
    "exp_in_float32": "the result is inf, although the right one is",
    "not_exponentiated": "the right answer is 1",
    "a percentage": "the result is str, not a number",
    "shifts the logits in place": "the function writes into the caller's logits",
}
