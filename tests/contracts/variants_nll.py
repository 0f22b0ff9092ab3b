"""Next-token losses, right and wrong, beyond the catalogue."""

import torch

from course_lib.contracts import check_nll_contract
from course_lib.contracts.likelihood.nll_mistakes import NLL_MISTAKES

from .likelihoods import (
    RIGHT_LOSSES,
    assuming_right_padding,
    averaged_with_the_last,
    counter,
    counting_from_one,
    cut_to_the_most_real,
    double_only,
    dropped_out,
    everything,
    far_ids_lost,
    first_row_only,
    kept_by_ids,
    lengths_of_the_first_row,
    median_not_mean,
    most_common_only,
    naive_in_half,
    nll_by_gather,
    nll_by_ignoring,
    nll_by_logsumexp,
    padding_in_a_mean,
    shifting_in_place,
    short_rows_counted_once,
    with_logits,
)
from .trial import Fresh, named_by

CHECK, CATALOGUE = check_nll_contract, NLL_MISTAKES
CLAUSES = [
    *("result_form", "certain_model", "uniform_model", "token_zero", "values", "padding"),
    *("unequal_lengths", "padding_anywhere", "extreme_logits", "half_precision"),
    "independent_results",
]


def of_result(change):
    return lambda *call: change(nll_by_gather(*call))


RIGHT = RIGHT_LOSSES
WRONG = {
    "cut to the most real tokens": (cut_to_the_most_real, "padding_anywhere"),
    "kept by the ids": (Fresh(kept_by_ids), "extreme_logits"),
    "ids in a byte": (far_ids_lost, "values"),
    "a row of one number": (of_result(lambda loss: torch.tensor([loss])), "result_form"),
    "a string": (of_result(str), "result_form"),
    "nothing": (of_result(lambda loss: None), "result_form"),
    "one number a row": (
        lambda logits, ids, valid=None: torch.zeros(len(ids)),
        "result_form",
    ),
    "truth": (of_result(bool), "result_form"),
    "complex": (of_result(complex), "result_form"),
    "a pair": (of_result(lambda loss: (loss, 1)), "result_form"),
    "first row only": (first_row_only, "values"),
    "median": (median_not_mean, "values"),
    "mean over the ids": (most_common_only, "values"),
    "ids from one": (counting_from_one, "certain_model"),
    "temperature": (with_logits(lambda logits: logits / 1.5), "values"),
    "clipped at 30": (with_logits(lambda logits: logits.clamp(-30, 30)), "extreme_logits"),
    "rounded to 16 bit": (with_logits(lambda logits: logits.bfloat16()), "values"),
    "a constant": (lambda *call: 0.0, "uniform_model"),
    "always uniform": (
        lambda logits, ids, valid=None: float(torch.tensor(logits.shape[-1]).log()),
        "certain_model",
    ),
    "absolute value": (with_logits(lambda logits: logits.abs()), "values"),
    "double only": (double_only, "values"),
    "lengths of the first row": (lengths_of_the_first_row, "unequal_lengths"),
    "short rows counted once": (short_rows_counted_once, "unequal_lengths"),
    "assuming right padding": (assuming_right_padding, "padding_anywhere"),
    "padding in a maximum": (padding_in_a_mean, "padding"),
    "zero is padding where there is a mask": (
        lambda logits, ids, valid=None: nll_by_gather(
            logits, ids, None if valid is None else valid & (ids != 0)
        ),
        "token_zero",
    ),
    "zero ends the text": (
        lambda logits, ids, valid=None: nll_by_gather(
            logits, ids, everything(ids, valid) & ((ids == 0).cumsum(1) < 3)
        ),
        "token_zero",
    ),
    "naive in half precision": (naive_in_half, "half_precision"),
    "averaged with the last call": (Fresh(averaged_with_the_last), "certain_model"),
    "random": (dropped_out, "token_zero"),
    "drifts": (Fresh(counter), "uniform_model"),
    "shifts the logits in place": (shifting_in_place, "independent_results"),
}
MISTAKES = named_by(
    certain_model=(
        "not_shifted shifted_twice shifted_backwards rows_run_together not_shifted_end_dropped "
        "not_shifted_start_dropped wrapped_around end_scored_as_zero probability_not_log "
        "raw_logits softmax_twice softmax_over_positions softmax_over_all_positions "
        "softmax_over_batch labels_smoothed"
    ),
    uniform_model=(
        "last_column_lost second_column_lost last_token_dropped sum_not_mean per_row_not_token "
        "first_token_in_denominator sign_lost bits_not_nats"
    ),
    token_zero="zero_is_padding zero_instead_of_mask zero_guessed_padding",
    padding=(
        "padding_counted mask_not_shifted mask_inverted padding_in_denominator mask_remembered"
    ),
    unequal_lengths="mean_of_rows",
    extreme_logits="probability_floor probability_rounds_to_zero exp_overflows logits_clipped",
    independent_results="labels_written_into_ids",
)
MUTATED = [nll_by_gather, nll_by_ignoring, nll_by_logsumexp]
FIRST_AXIS = "the first axis is whole already"
EQUIVALENT = {
    "nll_by_gather:2 method dropped: logits.double()": "the dtype given is exact to its rounding",
    "nll_by_gather:3 whole slice: :": FIRST_AXIS,
    "nll_by_gather:3 whole slice: : (2)": FIRST_AXIS,
    "nll_by_gather:3 whole slice: : (3)": FIRST_AXIS,
    "nll_by_gather:3 whole slice: : (4)": FIRST_AXIS,
    "nll_by_gather:3 whole slice: :-1": "gather reads only as many positions as it has indices",
    "nll_by_gather:3 -1: 0": "the last entry of an axis of one is its first",
    "nll_by_gather:5 method dropped: nats.mean().item()": "a tensor with no axes is a number",
    "nll_by_gather:6 whole slice: :": FIRST_AXIS,
    "nll_by_gather:7 method dropped: nats[counted].sum().item()": "a tensor with no axes, too",
    "nll_by_gather:7 method dropped: counted.sum().item()": "a tensor with no axes, too",
    "nll_by_ignoring:2 whole slice: :": FIRST_AXIS,
    "nll_by_ignoring:4 whole slice: :": FIRST_AXIS,
    "nll_by_ignoring:5 whole slice: :": FIRST_AXIS,
    "nll_by_ignoring:5 method dropped: logits[:, :-1].double()": "exact to the rounding given",
    "nll_by_ignoring:6 no ignore_index=: "
    "F.cross_entropy(flat, labels.flatten(), ignore_index=-100)": "-100 is its default",
    "nll_by_logsumexp:2 whole slice: :": FIRST_AXIS,
    "nll_by_logsumexp:2 method dropped: logits[:, :-1].double()": "exact to the rounding given",
    "nll_by_logsumexp:3 whole slice: :": FIRST_AXIS,
    "nll_by_logsumexp:4 whole slice: :": FIRST_AXIS,
    "nll_by_logsumexp:4 method dropped: everything(token_ids, valid)[:, 1:].double()": "True "
    "multiplies as 1 and is summed as 1",
}
SAYS = {
    "mean_of_rows": "predicted tokens: 3; the right answer is",
    "padding_counted": "with other numbers in the padding it gives",
    "zero_is_padding": "renamed into each other it gives",
    "exp_overflows": "the result is inf, although the right one is",
    "labels_written_into_ids": "the function writes into the caller's token_ids",
    "averaged with the last call": "predicted tokens: ",
    "one number a row": "the result is Tensor [1], not a number",
}
