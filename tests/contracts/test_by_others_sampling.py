"""Sampling as others ship it: what agrees passes, what differs is named by its convention."""

import math

import numpy as np
import pytest
import torch

from course_lib.contracts import (
    ContractViolation,
    check_sampler_contract,
    check_sampling_contract,
)

from .variants_sampling import checked


def by_warpers(top_k_warper=None, top_p_warper=None, dtype=torch.float64):
    """transformers' processors in a row, behind the checks that this course demands."""
    from transformers.generation.logits_process import (
        TemperatureLogitsWarper,
        TopKLogitsWarper,
        TopPLogitsWarper,
    )

    def distribution(logits, temperature=1.0, top_k=None, top_p=None):
        checked(logits, temperature, top_k, top_p)
        scores = torch.tensor([logits], dtype=dtype)
        steps = [TemperatureLogitsWarper(float(temperature))]
        steps += [(top_k_warper or TopKLogitsWarper)(top_k)] if top_k else []
        steps += [(top_p_warper or TopPLogitsWarper)(float(top_p))] if top_p else []
        for step in steps:
            scores = step(None, scores)
        return scores.softmax(-1)[0]

    return distribution


def by_ranks(k):
    """Exactly k, the lower ids of equal logits: the convention of this course."""

    def warper(_, scores):
        order = scores.argsort(dim=-1, descending=True, stable=True)[..., :k]
        kept = torch.full_like(scores, -math.inf)
        return kept.scatter(-1, order, scores.gather(-1, order))

    return warper


def by_runs(p):
    def warper(_, scores):
        if p == 1:
            return scores
        values, order = scores.sort(dim=-1, descending=True, stable=True)
        probs = values.softmax(-1)
        values[probs.cumsum(-1) - probs >= p] = -math.inf
        return torch.empty_like(scores).scatter(-1, order, values)

    return warper


def refusal(distribution):
    with pytest.raises(ContractViolation) as caught:
        check_sampling_contract(distribution)
    return caught.value


def test_their_temperature_passes_behind_this_courses_filters():
    assert check_sampling_contract(by_warpers(by_ranks, by_runs)).attempted


def test_their_top_k_keeps_ties():
    caught = refusal(by_warpers(None, by_runs))
    assert caught.clause == "top_k_ties"
    assert caught.mistakes == ("ties_kept",)


def test_their_top_p_keeps_the_higher_ids_of_equal_logits():
    caught = refusal(by_warpers(by_ranks, None))
    assert "top_p_higher_ids" in caught.mistakes


def test_their_chain_is_named_by_both_conventions():
    assert {"ties_kept", "top_p_higher_ids"} <= set(refusal(by_warpers()).mistakes)


def test_min_p_is_no_top_p():
    from transformers.generation.logits_process import MinPLogitsWarper

    assert "min_p_instead" in refusal(by_warpers(by_ranks, MinPLogitsWarper)).mistakes


def without_ties(logits, temperature, top_k, top_p, rng):
    """A loop in the manner of small GPT repositories: threshold top-k, then multinomial."""
    scores = torch.tensor(logits) / (temperature or 1.0)
    if temperature == 0:
        return scores.argmax(-1)
    if top_k is not None:
        least = scores.topk(min(top_k, scores.shape[-1])).values[:, -1:]
        scores = scores.masked_fill(scores < least, -math.inf)
    probs = scores.softmax(-1)
    if top_p is not None and top_p < 1:
        values, order = probs.sort(dim=-1, descending=True, stable=True)
        values = values * (values.cumsum(-1) - values < top_p)
        probs = torch.zeros_like(probs).scatter(-1, order, values)
    generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
    return torch.multinomial(probs, 1, generator=generator)[:, 0]


def test_a_threshold_sampler_differs_in_its_ties_only():
    with pytest.raises(ContractViolation) as caught:
        check_sampler_contract(without_ties)
    assert caught.value.clause == "ties"
    assert caught.value.mistakes == ("ties_kept",)


def test_the_same_sampler_passes_once_exactly_k_survive():
    def exact(logits, temperature, top_k, top_p, rng):
        if top_k is not None:
            order = np.argsort(-logits, axis=-1, kind="stable")[:, top_k:]
            logits = logits.astype(np.float64)
            np.put_along_axis(logits, order, -np.inf, -1)
        return without_ties(logits, temperature, None, top_p, rng)

    assert check_sampler_contract(exact).attempted
