"""The contract of multi-head attention accepts what is right and refuses what is wrong."""

import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.contracts import check_multi_head_contract
from course_lib.contracts.heads import calls
from course_lib.contracts.heads.looks import explain
from course_lib.contracts.heads.steps import mistaken_heads

from .trial import violation_of
from .variants_causal_mask import mask_by_tril
from .variants_multi_head import (
    heads_by_sdpa,
    heads_in_numpy,
    heads_plainly,
    heads_with,
    merge,
    split,
)

violation = partial(violation_of, check_multi_head_contract)


def test_the_figures_of_the_librarys_attention_are_rounding_errors():
    report = check_multi_head_contract(heads_by_sdpa)
    assert report.unchecked == ()
    assert list(report) == [
        *("output_max_error", "gradient_max_error", "future_leak", "padding_leak", "permutation")
    ]
    assert max(report.values()) < 1e-8


def filled(fill):
    return lambda scores, keep: scores.masked_fill(~keep, fill).softmax(-1)


def added(fill):
    """Masks by adding a finite number, as many models do."""
    return lambda scores, keep: (scores + (~keep) * fill).softmax(-1)


def inverted(x, causal, token_valid):
    valid = torch.ones(x.shape[:2], dtype=torch.bool) if token_valid is None else token_valid
    return ~valid[:, None, None, :] & (mask_by_tril(x.shape[1], x.shape[1]) | (not causal))


def strictly_past(x, causal, token_valid):
    valid = torch.ones(x.shape[:2], dtype=torch.bool) if token_valid is None else token_valid
    past = mask_by_tril(x.shape[1], x.shape[1]) & ~torch.eye(x.shape[1], dtype=torch.bool)
    return valid[:, None, None, :] & (past | (not causal))


def nan_rows(scores, keep):
    return scores.masked_fill(~keep, -math.inf).softmax(-1)


def all_in(dtype):
    def multi_head(x, *args, **options):
        weights = (weight.to(dtype) for weight in args[:4])
        return heads_plainly(x.to(dtype), *weights, args[4], **options).to(x.dtype)

    return multi_head


def torch_module(*, batch_first=True, inverted=False, dropout=0.0):
    def multi_head(x, w_q, w_k, w_v, w_o, n_heads, *, causal, token_valid):
        module = torch.nn.MultiheadAttention(
            *(x.shape[-1], n_heads, dropout),
            bias=False,
            batch_first=batch_first,
            dtype=x.dtype,
        )
        weights = {"in_proj_weight": torch.cat([w_q.T, w_k.T, w_v.T]), "out_proj.weight": w_o.T}
        valid = torch.ones(x.shape[:2], dtype=torch.bool) if token_valid is None else token_valid
        hidden = valid if inverted else ~valid
        time = x.shape[1] if batch_first else x.shape[0]
        options = {
            "key_padding_mask": hidden if batch_first else hidden.T,
            "attn_mask": ~mask_by_tril(time, time) if causal else None,
        }
        return torch.func.functional_call(module, weights, (x, x, x), options)[0]

    return multi_head


def sdpa_without(name):
    """One of the two masks never reaches torch's function."""

    def multi_head(x, w_q, w_k, w_v, w_o, n_heads, *, causal, token_valid):
        q, k, v = (split(x @ w, n_heads) for w in (w_q, w_k, w_v))
        options = {"is_causal": causal}
        if name == "causal":
            options = {"attn_mask": None if token_valid is None else token_valid[:, None, None]}
        return merge(F.scaled_dot_product_attention(q, k, v, **options)) @ w_o

    return multi_head


def cut_by_reshape(x, n_heads):
    return torch.stack([row.reshape(n_heads, row.shape[0], -1) for row in x])


def shared_softmax(scores, keep):
    """Over the queries, with the padding asking too."""
    return scores.masked_fill(~keep, -1e30).softmax(2) * keep


@pytest.mark.parametrize(
    ("multi_head", "names"),
    [
        (heads_with(pairs=inverted, weigh=filled(-1e9)), {"padding_inverted"}),
        (heads_with(pairs=inverted, weigh=nan_rows), {"padding_inverted"}),
        (torch_module(inverted=True), {"padding_inverted"}),
        (torch_module(batch_first=False), {"batch_taken_for_time", "nan_for_empty_rows"}),
        (torch_module(dropout=0.2), {"dropout_always_on"}),
        (torch_module(), {"nan_for_empty_rows"}),
        (
            heads_with(pairs=strictly_past, weigh=filled(-1e9)),
            {"causal_blind_to_itself", "finite_fill_large"},
        ),
        (
            heads_with(pairs=strictly_past, weigh=nan_rows),
            {"causal_blind_to_itself", "nan_for_empty_rows"},
        ),
        (sdpa_without("padding"), {"padding_ignored"}),
        (sdpa_without("causal"), {"causal_ignored"}),
        (heads_with(weigh=filled(-1e9)), {"finite_fill_large"}),
        (heads_with(weigh=filled(-1e5)), {"finite_fill_small"}),
        (heads_with(weigh=added(-1e9)), {"finite_fill_large"}),
        (heads_with(weigh=added(-1e4)), {"finite_fill_small"}),
        (
            heads_with(pairs=strictly_past, weigh=added(-1e9)),
            {"causal_blind_to_itself", "finite_fill_large"},
        ),
        (heads_with(cut=cut_by_reshape), {"heads_cut_by_view"}),
        (heads_with(weigh=shared_softmax), {"softmax_over_queries"}),
        (all_in(torch.float32), {"float32_inside"}),
        (all_in(torch.float16), {"half_inside"}),
        (all_in(torch.bfloat16), {"half_inside"}),
        (
            heads_with(width=lambda x, q: x.shape[-1], cut=cut_by_reshape),
            {"scaled_by_d_model", "heads_cut_by_view"},
        ),
        (
            heads_with(out=lambda y, w: y, weigh=lambda s, k: s.softmax(-1)),
            {"w_o_missing", "mask_discarded"},
        ),
        (heads_with(width=lambda x, q: q.shape[-1] + 1), set()),
        (heads_with(out=lambda y, w: 1.01 * (y @ w)), set()),
    ],
)
def test_a_mistake_written_in_another_way_is_named_and_an_unknown_one_is_not(multi_head, names):
    assert set(violation(multi_head).mistakes) == names


def test_a_right_function_is_given_no_name():
    for multi_head in (heads_plainly, heads_in_numpy, mistaken_heads()):
        subject = cases_subject(multi_head)
        assert explain(subject).names == ()


def cases_subject(multi_head):
    return type("Subject", (), {"candidate": staticmethod(multi_head)})


def test_the_failing_input_of_a_violation_shows_the_fault_again():
    multi_head = mistaken_heads(real=lambda call: torch.ones(1, dtype=torch.bool))
    given = violation(multi_head).failing_input
    other = given | {"x": torch.where(given["token_valid"][..., None], given["x"], 7.0)}
    real = given["token_valid"]
    assert not torch.equal(multi_head(**given)[real], multi_head(**other)[real])
    assert given["x"].numel() <= 4


def test_a_function_outside_torch_is_forward_only_and_the_report_says_so():
    report = check_multi_head_contract(heads_in_numpy)
    assert report.unchecked == ("gradients",)
    assert math.isnan(report["gradient_max_error"])


def test_a_function_that_takes_no_float16_is_not_checked_with_it():
    def wide_only(x, *args, **options):
        if x.dtype == torch.float16:
            raise TypeError("float32 or float64")
        return heads_plainly(x, *args, **options)

    assert check_multi_head_contract(wide_only).unchecked == ("half_inputs",)


@settings(max_examples=40, deadline=None, database=None)
@given(st.integers(0, 10**6), *(st.integers(1, 4) for _ in range(4)), st.booleans(), st.data())
def test_the_two_references_agree_to_rounding(seed, items, tokens, heads, width, causal, data):
    rows = st.lists(st.integers(0, 1), min_size=tokens, max_size=tokens)
    valid = data.draw(st.lists(rows, min_size=items, max_size=items))
    call = calls.drawn(seed, items, tokens, heads, width, causal=causal, valid=valid)
    gap = calls.by_loops(call) - calls.by_library(call)
    assert gap[call.valid].abs().sum() < 1e-11
