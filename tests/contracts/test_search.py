"""Search for wrong functions that survive: right, but for the calls of one kind.

Hypothesis draws a catalogued mistake, a condition and a legal call. The function makes the mistake
only where the condition holds; if that shows in the drawn call, the contract must refuse it.
"""

import functools
import math
from unittest import mock

import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from course_lib.attention import scaled_dot_product_attention
from course_lib.contracts import (
    ContractViolation,
    check_attention_contract,
    check_sampling_contract,
)
from course_lib.contracts.attention.attention_mistakes import ATTENTION_MISTAKES
from course_lib.contracts.engine import clause as _clause
from course_lib.contracts.engine.diagnosis import Diagnosis
from course_lib.contracts.sampling.sampling_mistakes import SAMPLING_MISTAKES
from course_lib.sampling import token_distribution

FEW = settings(max_examples=150, deadline=None, derandomize=True, print_blob=False)


def refused(check, candidate):
    with (
        mock.patch.object(_clause, "cut_down", lambda judge, case, breach: (case, breach)),
        mock.patch.object(_clause, "named_by", return_value=Diagnosis()),
    ):
        try:
            check(candidate)
        except ContractViolation:
            return True
    return False


# ---------------------------------------------------------------- attention

ATTENTION_CONDITIONS = {
    "always": lambda q, k, v, allowed: True,
    "one query": lambda q, k, v, allowed: q.shape[-2] == 1,
    "one key": lambda q, k, v, allowed: k.shape[-2] == 1,
    "as many queries as keys": lambda q, k, v, allowed: q.shape[-2] == k.shape[-2],
    "more keys than queries": lambda q, k, v, allowed: q.shape[-2] < k.shape[-2],
    "more queries than keys": lambda q, k, v, allowed: q.shape[-2] > k.shape[-2],
    "equal widths": lambda q, k, v, allowed: q.shape[-1] == v.shape[-1],
    "odd width": lambda q, k, v, allowed: q.shape[-1] % 2 == 1,
    "two axes": lambda q, k, v, allowed: q.dim() == 2,
    "three axes": lambda q, k, v, allowed: q.dim() == 3,
    "four axes": lambda q, k, v, allowed: q.dim() == 4,
    "one item": lambda q, k, v, allowed: q.dim() > 2 and q.shape[0] == 1,
    "mask": lambda q, k, v, allowed: allowed is not None,
    "no mask": lambda q, k, v, allowed: allowed is None,
    "mask of one axis": lambda q, k, v, allowed: allowed is not None and allowed.dim() == 1,
    "mask with all axes": lambda q, k, v, allowed: (
        allowed is not None and allowed.dim() == q.dim() > 2
    ),
    "float32": lambda q, k, v, allowed: q.dtype == torch.float32,
    "float64": lambda q, k, v, allowed: q.dtype == torch.float64,
    "large": lambda q, k, v, allowed: q.abs().max() > 50,
    "small": lambda q, k, v, allowed: q.abs().max() < 0.1,
    "not contiguous": lambda q, k, v, allowed: not k.is_contiguous(),
}


@st.composite
def attention_calls(draw):
    """Any sizes, axes, mask, kind of number and scale; every row may read something."""
    t_q, t_k, d_k, d_v = (draw(st.integers(1, 6)) for _ in range(4))
    batch = draw(st.sampled_from([(), (1,), (2,), (3, 2), (2, 2)]))
    dtype = draw(st.sampled_from([torch.float64, torch.float32]))
    scale = draw(st.sampled_from([1e-3, 1.0, 1.0, 100.0]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 99)))

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)

    q, k, v = normal(*batch, t_q, d_k) * scale, normal(*batch, t_k, d_k), normal(*batch, t_k, d_v)
    if draw(st.booleans()):
        k = k.mT.contiguous().mT
    shapes = [None, (t_k,), (t_q, t_k), (*batch, 1, t_k), (*batch, t_q, t_k)]
    shape = draw(st.sampled_from(shapes))
    if shape is None:
        return q, k, v, None
    allowed = torch.rand(shape, generator=generator) < 0.6
    allowed[..., draw(st.integers(0, t_k - 1))] = True
    return q, k, v, allowed


def attention_mixture(name, condition):
    mistaken = next(each for each in ATTENTION_MISTAKES if each.name == name).make()
    holds = ATTENTION_CONDITIONS[condition]

    def attention(q, k, v, allowed=None, **policy):
        function = mistaken if holds(q, k, v, allowed) else scaled_dot_product_attention
        return function(q, k, v, allowed, **policy)

    return attention


@functools.cache
def attention_refused(name, condition):
    return refused(check_attention_contract, attention_mixture(name, condition))


def attention_shows(name, call):
    """Whether the mistake, made everywhere, changes the output of this call, or ends it."""
    right = scaled_dot_product_attention(*call).output.double()
    copies = [None if each is None else each.clone() for each in call]
    try:
        got = attention_mixture(name, "always")(*copies).output.double()
    except Exception:
        return True
    return got.shape != right.shape or not torch.allclose(got, right, rtol=1e-3, atol=1e-3)


@given(attention_calls(), st.data())
@FEW
def test_attention_that_is_wrong_in_one_kind_of_call_is_refused(call, data):
    holding = [name for name, holds in ATTENTION_CONDITIONS.items() if holds(*call)]
    showing = [each.name for each in ATTENTION_MISTAKES if attention_shows(each.name, call)]
    assume(showing)
    name, condition = data.draw(st.sampled_from(showing)), data.draw(st.sampled_from(holding))
    assert attention_refused(name, condition)


# ---------------------------------------------------------------- sampling

SAMPLING_CONDITIONS = {
    "always": lambda logits, options: True,
    "two tokens": lambda logits, options: len(logits) == 2,
    "more than four tokens": lambda logits, options: len(logits) > 4,
    "ties": lambda logits, options: len(set(logits)) < len(logits),
    "no ties": lambda logits, options: len(set(logits)) == len(logits),
    "cold": lambda logits, options: options.get("temperature", 1) < 1,
    "hot": lambda logits, options: options.get("temperature", 1) > 1,
    "top-k alone": lambda logits, options: "top_k" in options and "top_p" not in options,
    "top-p alone": lambda logits, options: "top_p" in options and "top_k" not in options,
    "both filters": lambda logits, options: "top_p" in options and "top_k" in options,
    "k is 1": lambda logits, options: options.get("top_k") == 1,
    "k is V": lambda logits, options: options.get("top_k") == len(logits),
    "sorted": lambda logits, options: list(logits) == sorted(logits, reverse=True),
    "not sorted": lambda logits, options: list(logits) != sorted(logits, reverse=True),
}


@st.composite
def sampling_calls(draw):
    logits = draw(st.lists(st.integers(-6, 6).map(float), min_size=2, max_size=7))
    options = {}
    if draw(st.booleans()):
        options["temperature"] = draw(st.sampled_from([0.5, 0.7, 1.5, 2.0]))
    if draw(st.booleans()):
        options["top_k"] = draw(st.integers(1, len(logits)))
    if draw(st.booleans()):
        options["top_p"] = draw(st.sampled_from([0.05, 0.3, 0.61, 0.83, 0.97]))
    return logits, options


def sampling_mixture(name, condition):
    mistaken = next(each for each in SAMPLING_MISTAKES if each.name == name).make()

    def distribution(logits, temperature=1.0, top_k=None, top_p=None):
        options = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
        given = {key: value for key, value in options.items() if value is not None}
        if temperature == 1.0:
            del given["temperature"]
        holds = len(logits) > 0 and SAMPLING_CONDITIONS[condition](logits, given)
        return (mistaken if holds else token_distribution)(logits, **options)

    return distribution


@functools.cache
def sampling_refused(name, condition):
    return refused(check_sampling_contract, sampling_mixture(name, condition))


def sampling_shows(name, logits, options):
    """Whether the mistake, made everywhere, changes the distribution of this call, or ends it."""
    right = token_distribution(logits, **options)
    try:
        got = list(sampling_mixture(name, "always")(list(logits), **options))
    except Exception:
        return True
    pairs = zip(got, right, strict=False)
    return len(got) != len(right) or not all(math.isclose(*pair, abs_tol=1e-3) for pair in pairs)


@given(sampling_calls(), st.data())
@FEW
def test_sampling_that_is_wrong_in_one_kind_of_call_is_refused(call, data):
    holding = [name for name, holds in SAMPLING_CONDITIONS.items() if holds(*call)]
    showing = [each.name for each in SAMPLING_MISTAKES if sampling_shows(each.name, *call)]
    assume(showing)
    name, condition = data.draw(st.sampled_from(showing)), data.draw(st.sampled_from(holding))
    assert sampling_refused(name, condition)
