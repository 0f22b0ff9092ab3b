"""Log-likelihoods of a text, right and wrong, beyond the catalogue."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from course_lib.contracts import check_log_likelihood_contract
from course_lib.contracts.likelihood.log_likelihood_mistakes import LOG_LIKELIHOOD_MISTAKES
from course_lib.likelihood import token_nll

from .trial import Fresh, named_by

CHECK, CATALOGUE = check_log_likelihood_contract, LOG_LIKELIHOOD_MISTAKES
CLAUSES = [
    *("result_form", "certain_model", "uniform_model", "values", "nothing_clamped"),
    *("long_text", "float32_logits", "independent_results"),
]


def sum_by_gather(logits, token_ids):
    log_probs = logits[:-1].double().log_softmax(-1)
    return log_probs.gather(1, token_ids[1:, None]).sum().item()


def sum_by_cross_entropy(logits, token_ids):
    return -F.cross_entropy(logits[:-1].double(), token_ids[1:], reduction="sum")


def sum_by_loops(logits, token_ids):
    """The course's token_nll, number by number, and an exact sum."""
    rows, tokens = logits.tolist(), token_ids.tolist()
    return -math.fsum(token_nll(rows[t - 1], tokens[t]) for t in range(1, len(tokens)))


def sum_by_chain(logits, token_ids):
    total = 0.0
    for t in range(1, len(token_ids)):
        before = logits[t - 1].double()
        total += float(before[token_ids[t]] - before.logsumexp(-1))
    return total


def sum_in_numpy(logits, token_ids):
    z = logits.numpy()[:-1].astype(np.float64)
    mass = np.logaddexp.reduce(z, axis=-1)
    return (z[np.arange(len(z)), token_ids.numpy()[1:]] - mass).sum()


def sum_of_a_distribution(logits, token_ids):
    guesses = torch.distributions.Categorical(logits=logits[:-1].double())
    return guesses.log_prob(token_ids[1:]).sum()


def mean_times_length(logits, token_ids):
    return -F.cross_entropy(logits.double()[:-1], token_ids[1:]) * (len(token_ids) - 1)


def sum_in_given_dtype(logits, token_ids):
    return logits[:-1].log_softmax(-1)[torch.arange(len(token_ids) - 1), token_ids[1:]].sum()


RIGHT = {
    "by gather": sum_by_gather,
    "by cross_entropy": sum_by_cross_entropy,
    "the course's token_nll in loops": sum_by_loops,
    "by the chain rule": sum_by_chain,
    "in numpy": sum_in_numpy,
    "of a distribution": sum_of_a_distribution,
    "mean times length": mean_times_length,
    "in the given dtype": sum_in_given_dtype,
}


def of_terms(change):
    """The sum of log-probabilities that are changed one by one."""

    def exact_log_likelihood(logits, token_ids):
        log_probs = F.log_softmax(logits[:-1].double(), dim=-1)
        return float(change(log_probs.gather(1, token_ids[1:, None])).sum())

    return exact_log_likelihood


def of_logits(change):
    return lambda logits, token_ids: sum_by_gather(change(logits), token_ids)


def growing():
    total = [0.0]

    def exact_log_likelihood(logits, token_ids):
        total[0] += sum_by_gather(logits, token_ids)
        return total[0]

    return exact_log_likelihood


def marking_the_end(logits, token_ids):
    result = sum_by_gather(logits, token_ids)
    token_ids[-1] = 0
    return result


def double_weights(logits, token_ids):
    one_hot = F.one_hot(token_ids[1:], logits.shape[-1]).double()
    return (logits[:-1].log_softmax(-1).unsqueeze(1) @ one_hot.unsqueeze(-1)).sum()


WRONG = {
    "a list": (lambda *call: [sum_by_gather(*call)], "result_form"),
    "one number a token": (
        lambda logits, ids: torch.zeros(len(ids)),
        "result_form",
    ),
    "none": (lambda *call: None, "result_form"),
    "with the first token's id": (
        lambda logits, ids: sum_by_gather(logits, ids) + float(logits[0].log_softmax(-1)[ids[0]]),
        "certain_model",
    ),
    "uniform first token": (
        lambda logits, ids: sum_by_gather(logits, ids) - math.log(logits.shape[-1]),
        "certain_model",
    ),
    "zero left out": (
        lambda logits, ids: float(
            (F.log_softmax(logits[:-1].double(), -1).gather(1, ids[1:, None])[ids[1:] != 0]).sum()
        ),
        "uniform_model",
    ),
    "temperature": (of_logits(lambda logits: logits / 0.7), "values"),
    "absolute logits": (of_logits(lambda logits: logits.abs()), "values"),
    "at least -100": (of_terms(lambda terms: terms.clamp(min=-100)), "nothing_clamped"),
    "at least log 1e-300": (of_terms(lambda terms: terms.clamp(min=-690)), "nothing_clamped"),
    "nan_to_num": (
        lambda logits, ids: float(
            torch.nan_to_num(
                logits[:-1].double().softmax(-1).gather(1, ids[1:, None]).log(), neginf=-1e9
            ).sum()
        ),
        "nothing_clamped",
    ),
    "logits clipped": (of_logits(lambda logits: logits.clamp(-50, 50)), "nothing_clamped"),
    "first 1024 tokens": (
        lambda logits, ids: sum_by_gather(logits[:1024], ids[:1024]),
        "long_text",
    ),
    "last 2048 tokens": (
        lambda logits, ids: sum_by_gather(logits[-2048:], ids[-2048:]),
        "long_text",
    ),
    "float32 running sum": (
        of_terms(lambda terms: terms.float().cumsum(0)[-1:]),
        "long_text",
    ),
    "rounded to 6 decimals": (
        lambda *call: round(sum_by_gather(*call), 3),
        "uniform_model",
    ),
    "float64 only": (double_weights, "float32_logits"),
    "grows": (Fresh(growing), "certain_model"),
    "marks the end": (marking_the_end, "independent_results"),
    "random": (
        lambda logits, ids: sum_by_gather(logits * (1 + 1e-3 * torch.rand(())), ids),
        "values",
    ),
}
MISTAKES = named_by(
    certain_model=(
        "not_shifted shifted_twice shifted_backwards wrapped_around not_shifted_end_dropped "
        "not_shifted_start_dropped end_scored_as_zero probability_not_log raw_logits "
        "softmax_twice softmax_over_positions softmax_over_all_positions labels_smoothed "
        "first_token_scored probability_returned"
    ),
    uniform_model=(
        "mean_not_sum divided_by_length sign_flipped second_token_lost last_token_lost in_bits"
    ),
    nothing_clamped=(
        "probability_floor probability_rounds_to_zero exp_overflows logits_clipped log_of_product"
    ),
    long_text="summed_in_float32",
)
MUTATED = [sum_by_gather, sum_by_chain, sum_in_numpy]
EQUIVALENT = {
    "sum_by_gather:2 method dropped: logits[:-1].double()": "float64 stays, float32 is exact to "
    "its rounding",
    "sum_by_gather:2 whole slice: :-1": "gather reads only as many rows as it has indices",
    "sum_by_gather:2 no sign: -1": "of two axes the last is axis 1",
    "sum_by_gather:3 method dropped: log_probs.gather(1, token_ids[1:, None]).sum().item()": "a "
    "tensor with no axes is a number",
    "sum_by_chain:4 method dropped: logits[t - 1].double()": "exact to the rounding given",
    "sum_by_chain:5 call dropped: float(before[token_ids[t]] - before.logsumexp(-1))": "a tensor "
    "with no axes is a number",
    "sum_by_chain:5 -1: 1": "1 without its sign is the only axis counted from the front, 0",
    "sum_in_numpy:2 method dropped: logits.numpy()[:-1].astype(np.float64)": "exact to the "
    "rounding given",
    "sum_in_numpy:3 no sign: -1": "of two axes the last is axis 1",
    "sum_in_numpy:4 method dropped: token_ids.numpy()": "numpy takes the tensor as indices",
}
SAYS = {
    "probability_floor": "predicted tokens: 1; the right answer is -",
    "probability_rounds_to_zero": "the result is -inf, although the right one is",
    "mean_not_sum": "predicted tokens: 2; the right answer is -",
    "marks the end": "the function writes into the caller's token_ids",
}
