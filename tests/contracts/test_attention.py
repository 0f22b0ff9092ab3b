"""The attention contract accepts what is right and refuses, by the right clause, what is wrong."""

import math
import random
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from course_lib import text
from course_lib.attention import scaled_dot_product_attention
from course_lib.contracts import check_attention_contract
from course_lib.contracts.attention.attention import attention_contract
from course_lib.contracts.attention.calls import (
    ask,
    attention_by_library,
    attention_by_loops,
    attention_gradients,
    broadcast_axes,
    drawn,
    some_allowed,
)
from course_lib.contracts.engine.diagnosis import MORE
from course_lib.contracts.engine.subject import wanted

from .right_attentions import (
    FORWARD_ONLY,
    by_einsum,
    by_library_output_only,
    by_logsumexp,
    opened,
)
from .trial import candidate, verdict, violation_of
from .variants_attention import CLAUSES, WRONG

FIGURES = {
    "output_max_error",
    "gradient_max_error",
    "wrong_cache_mask_max_error",
    "batch_broadcast",
    "zero_row_gradients",
    "permutation",
}


violation = partial(violation_of, check_attention_contract)


def refused(name):
    """The English violation of a wrong variant, worked out once for all the tests that read it."""
    return verdict("attention", "wrong", name).violation


def assert_fits_a_screen(caught):
    lines = str(caught).split("\n")
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 84


@pytest.mark.parametrize("attention", FORWARD_ONLY, ids=lambda f: f.__name__)
def test_right_attentions_outside_torch_are_accepted_and_the_report_says_what_is_missing(attention):
    report = check_attention_contract(attention)
    assert report.unchecked == ("gradients",)
    assert math.isnan(report["gradient_max_error"])
    assert [clause.name for clause in report.clauses] == [
        name for name in CLAUSES if name not in ("gradients", "zero_row_gradients")
    ]


def test_a_fault_outside_torch_is_found_all_the_same():
    def attention(q, k, v, allowed=None, *, empty_row="error"):
        return FORWARD_ONLY[0](q * 1.01, k, v, allowed, empty_row=empty_row)

    assert violation(attention).clause == "scores"


def test_the_courses_own_attention_is_accepted_on_every_clause():
    report = check_attention_contract(scaled_dot_product_attention)
    assert [clause.name for clause in report.clauses] == CLAUSES
    assert set(report) == FIGURES
    assert report.unchecked == ()


def test_the_figures_are_errors_near_zero_but_for_the_wrong_cache_mask():
    figures = dict(check_attention_contract(scaled_dot_product_attention))
    assert figures.pop("wrong_cache_mask_max_error") > 0.1
    assert all(0 <= figure < 1e-8 for figure in figures.values())


def test_an_attention_that_returns_only_the_output_can_be_checked():
    report = check_attention_contract(by_library_output_only, fields=("output",))
    assert report.unchecked == ("weights", "scores", "empty_rows")
    assert "not checked: weights, scores, empty_rows" in str(report)
    assert set(report) == FIGURES


@pytest.mark.parametrize(
    ("name", "mistake"),
    [
        ("not scaled", "not_scaled"),
        ("softmax over the queries", "softmax_over_queries"),
        ("mask inverted", "mask_inverted"),
        ("mask added as 0 and 1", "mask_added_as_0_and_1"),
        ("quiet filling -1e9", "finite_fill"),
        ("exp without the maximum", "exp_without_maximum"),
        ("k detached", "k_detached"),
        ("zero by default", "zero_by_default"),
        ("q scaled in place", "q_written_into"),
        ("NaN gradients of empty rows", "nan_repaired_forward_only"),
    ],
)
def test_the_output_alone_is_enough_to_refuse_and_to_name(name, mistake):
    attention, _ = WRONG[name]
    caught = violation(lambda *a, **k: attention(*a, **k).output, fields=("output",))
    assert mistake in caught.mistakes


def test_a_wrong_reported_field_passes_only_when_nobody_asks_for_it():
    attention, _ = WRONG["weights after dropout"]
    assert check_attention_contract(attention, fields=("output", "scores", "empty_rows"))
    violation(attention, fields=("output", "weights"))


def test_a_half_written_attention_is_a_violation_not_a_stub():
    def attention(q, k, v, allowed=None, *, empty_row="error"):
        if allowed is not None:
            raise NotImplementedError("masks")
        return by_einsum(q, k, v, empty_row=empty_row)

    assert "NotImplementedError: masks" in violation(attention).diagnosis


def test_the_failing_input_of_a_violation_shows_the_fault_again():
    attention, _ = WRONG["mask after the softmax"]
    caught = violation(attention)
    wrong, right = attention(**caught.failing_input), by_einsum(**caught.failing_input)
    assert not torch.allclose(wrong.output, right.output)
    assert sum(value.numel() for value in caught.failing_input.values()) <= 8
    first = caught.mismatches[0]
    assert getattr(wrong, first.field)[first.index].item() == pytest.approx(first.got)
    assert getattr(right, first.field)[first.index].item() == pytest.approx(first.expected)


FIELDS = ".output, .weights, .scores, .empty_rows"
MESSAGES_ON_FIELDS = {
    "en": (
        "{came} without {lacking}",
        "an object with {fields}",
        "the fields must come back together, in one object (fix: {code})",
    ),
    "ru": (
        "{came} без {lacking}",
        "объект с полями {fields}",
        "поля нужно вернуть вместе, в одном объекте (исправление: {code})",
    ),
}


@pytest.mark.parametrize("language", ["en", "ru"])
@pytest.mark.parametrize(
    ("finish", "came", "lacking"),
    [
        (lambda output: output, "Tensor", FIELDS),
        (lambda output: None, "None", FIELDS),
        (lambda output: (output, output), "tuple", FIELDS),
        (lambda output: SimpleNamespace(output=output), "SimpleNamespace", FIELDS[9:]),
    ],
    ids=["tensor", "None", "tuple", "output only"],
)
def test_a_result_without_fields_is_told_what_to_return_and_nothing_is_guessed(
    finish, came, lacking, language, monkeypatch
):
    def attention(q, k, v, allowed=None, *, empty_row="error"):
        return finish((q @ k.mT).softmax(dim=-1) @ v)  # not scaled, not masked: not the point yet

    monkeypatch.setattr(text, "LANGUAGE", language)
    caught = violation(attention)
    code = "return AttentionResult(output, weights, scores, empty_rows)"
    values = {"came": came, "lacking": lacking, "fields": FIELDS, "code": code}
    expected = tuple(line.format(**values) for line in MESSAGES_ON_FIELDS[language])
    assert caught.clause == "result_form"
    told = caught.diagnosis.partition("; ")[0] if came == "None" else caught.diagnosis
    assert (caught.measured, caught.allowed, told) == expected
    assert caught.diagnosis.endswith(("`return` missing?", "`return`?")) == (came == "None")
    assert_fits_a_screen(caught)


@pytest.mark.parametrize(
    ("language", "measured", "allowed"),
    [
        ("en", "None without .output", "a torch.Tensor or an object with .output"),
        ("ru", "None без .output", "torch.Tensor или объект с полем .output"),
    ],
)
def test_where_the_output_is_enough_a_tensor_is_said_to_do(
    language, measured, allowed, monkeypatch
):
    monkeypatch.setattr(text, "LANGUAGE", language)
    caught = violation(lambda *args, **kwargs: None, fields=("output",))
    asked = {"en": "is a `return` missing?", "ru": "не забыт ли `return`?"}[language]
    assert (caught.measured, caught.allowed, caught.diagnosis) == (measured, allowed, asked)


@pytest.mark.parametrize("language", ["en", "ru"])
@pytest.mark.parametrize("name", ["not scaled", "root of d_v", "root cut to an integer"])
def test_the_ratio_in_the_diagnosis_is_that_of_the_numbers_shown(name, language, monkeypatch):
    monkeypatch.setattr(text, "LANGUAGE", language)
    caught = violation(WRONG[name][0])
    d_k = caught.failing_input["q"].shape[-1]
    ratio = caught.mismatches[0].got / caught.mismatches[0].expected
    assert f"{ratio:.4g} " in caught.diagnosis
    assert f"(d_k = {d_k}, √d_k = {math.sqrt(d_k):.4g})" in caught.diagnosis


@pytest.mark.parametrize(
    ("language", "words"),
    [("en", "no mask is applied (masked_fill, if it is there,")]
    + [("ru", "маска не применяется (masked_fill, если он есть,")],
)
def test_masked_fill_is_only_a_possibility(language, words):
    said = verdict("attention", "mistake", "mask_ignored", language)
    assert words in said.violation.diagnosis


@pytest.mark.parametrize(
    ("name", "mistakes"),
    [
        ("divided by d_k", {"scale_squared"}),
        ("library after scaling by hand", {"scale_squared"}),
        ("library with scale 1", {"not_scaled"}),
        ("library with the other polarity", {"mask_inverted"}),
        ("library always causal", {"always_causal", "mask_ignored"}),
        ("library with dropout", {"random_in_every_call"}),
        ("tutorial without a scale", {"not_scaled"}),
        ("tutorial with its mask inverted", {"mask_inverted"}),
        (
            "tutorial over the queries",
            {"softmax_over_queries", "nan_spreads", "scores_reported_in_16_bits"},
        ),
        ("three axes unsqueezed", {"mask_axes_guessed"}),
        ("always float32", {"float32_inside", "scores_reported_in_16_bits"}),
        ("last block not mixed", {"last_block_dropped"}),
        ("masked scores tiny", {"mask_multiplied", "mask_filled_with_nearly_0"}),
        ("a float mask is a bias", {"float_mask_added"}),
        ("integers pass for masks", {"integer_mask_taken_as_bool"}),
        ("softmax of 16 bits", {"softmax_in_16_bits"}),
        ("q scaled in place", {"q_written_into", "q_detached"}),
        ("cosine similarity", {"cosine_scores", "not_scaled"}),
    ],
)
def test_a_known_mistake_is_named_however_it_is_written(name, mistakes):
    assert set(refused(name).mistakes) == mistakes


def test_a_tutorial_without_checks_hears_first_of_what_is_broken_first():
    caught = refused("tutorial without checks")
    assert caught.clause == "empty_row_error"
    assert caught.mistakes[0] == "empty_row_nan"
    assert MORE.split(" | ")[0] in caught.diagnosis


@pytest.mark.parametrize(
    ("name", "field", "got", "expected"),
    [
        ("masked scores -1e4", "scores", -1e4, -math.inf),
        ("NaN gradients of empty rows", "q.grad", math.nan, 0.0),
        ("exp without the maximum", "output", math.nan, "finite"),
        ("empty rows not flagged", "empty_rows", False, True),
        ("a trace of weight", "weights", pytest.approx(math.exp(-30)), 0.0),
    ],
)
def test_the_first_difference_is_shown_also_where_it_is_no_number(name, field, got, expected):
    first = refused(name).mismatches[0]
    assert (first.field, first.expected) == (field, expected)
    assert (
        first.got == pytest.approx(got, nan_ok=True) if isinstance(got, float) else first.got == got
    )


@pytest.mark.parametrize(
    ("power", "bias", "mistakes"),
    [
        (0, lambda keep: keep.double(), {"not_scaled", "mask_added_as_0_and_1"}),
        (0, lambda keep: torch.where(keep, -math.inf, 0.0), {"not_scaled", "mask_inverted"}),
        (-1, lambda keep: 0.0, {"scale_squared", "mask_ignored"}),
    ],
)
def test_two_bugs_at_once_are_named_together(power, bias, mistakes):
    def attention(q, k, v, allowed=None, *, empty_row="error"):
        q, k, v, keep, empty = opened(q, k, v, allowed, empty_row)
        scores = (q @ k.mT * q.shape[-1] ** power).expand(keep.shape)
        if allowed is not None:
            scores = scores + bias(keep)
        return scores.softmax(-1).masked_fill(empty[..., None], 0.0) @ v

    assert mistakes <= set(violation(attention, fields=("output",)).mistakes)


def test_a_fault_that_equals_no_known_one_is_not_given_a_name():
    def attention(q, k, v, allowed=None, *, empty_row="error"):
        result = by_einsum(q, k, v, allowed, empty_row=empty_row)
        result.output = result.output + 0.01 * result.output.abs()
        return result

    caught = violation(attention)
    assert caught.mistakes == ()
    assert "like" not in caught.diagnosis


@pytest.mark.parametrize("language", ["en", "ru"])
def test_the_report_fits_the_screen_uncut(language, monkeypatch):
    monkeypatch.setattr(text, "LANGUAGE", language)
    report = str(check_attention_contract(by_einsum))
    assert max(map(len, report.split("\n"))) <= 88
    assert "…" not in report
    precision = {"en": "softmax in float32 at least", "ru": "softmax не грубее float32"}[language]
    assert precision in " ".join(report.split())


def test_both_languages_measure_the_same():
    english = refused("root of d_v")
    russian = verdict("attention", "wrong", "root of d_v", "ru").violation
    assert (english.clause, english.measured) == (russian.clause, russian.measured)
    assert english.mismatches == russian.mismatches
    assert "√d_v" in russian.diagnosis
    assert english.diagnosis != russian.diagnosis


def test_the_verdict_is_the_same_whatever_ran_before():
    attention = candidate(WRONG["dropout always on"][0])
    before = str(violation(attention))
    torch.rand(7), random.random(), np.random.rand(3)
    assert str(violation(attention)) == before
    again = dict(check_attention_contract(by_einsum))
    assert dict(check_attention_contract(by_einsum)) == again


def test_the_contract_works_where_gradients_are_switched_off():
    with torch.no_grad():
        assert check_attention_contract(by_einsum)["gradient_max_error"] < 1e-8
    with torch.inference_mode():
        assert check_attention_contract(by_logsumexp)["gradient_max_error"] < 1e-8


def test_the_contract_ignores_the_default_dtype():
    torch.set_default_dtype(torch.float64)
    try:
        figures = dict(check_attention_contract(by_einsum))
    finally:
        torch.set_default_dtype(torch.float32)
    assert figures == dict(check_attention_contract(by_einsum))


@pytest.mark.parametrize("fields", [(), ("weights",), ("output", "logits")])
def test_unknown_fields_are_an_error_at_the_door(fields):
    with pytest.raises(ValueError, match="fields must hold 'output'"):
        check_attention_contract(by_einsum, fields=fields)


def test_the_loops_know_the_answer_worked_out_by_hand():
    """q = k = 0 shares the weight evenly among what may be read."""
    zeros, v = torch.zeros(3, 1).double(), torch.tensor([[1.0], [2.0], [3.0]]).double()
    call = ask(zeros, zeros, v, torch.ones(3, 3).tril().bool())
    assert attention_by_loops(call)["output"].flatten().tolist() == [1.0, 1.5, 2.0]


def test_the_two_references_agree_to_rounding():
    call = drawn(1, 3, 5, 4, 2, 2, 3, allowed=some_allowed(2, 2, 1, 3, 5))
    one, other = attention_by_loops(call), attention_by_library(call)
    for name, field in one.items():
        torch.testing.assert_close(field, other[name], rtol=0, atol=1e-14)  # -inf is -inf too


def test_references_that_disagree_stop_the_contract():
    """Here the library's has NaN in its place; the contract asks both by the same `wanted`."""
    terms = attention_contract(("output",)).terms
    by_loops, by_library = terms.references
    nan = math.nan * by_library(drawn(1, 3, 5, 4, 2))["output"]
    spoiled = replace(terms, references=(by_loops, lambda call: by_library(call) | {"output": nan}))
    with pytest.raises(RuntimeError, match="the references for attention disagree"):
        wanted(spoiled, drawn(1, 3, 5, 4, 2))


def test_the_gradient_formula_equals_autograd():
    call = drawn(3, 3, 4, 5, 2, 2, allowed=some_allowed(4, 3, 4))
    leaves = [call.args[name].clone().requires_grad_() for name in "qkv"]
    weight = torch.randn(2, 3, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    (by_einsum(*leaves, call.allowed).output * weight).sum().backward()
    slopes = attention_gradients(call, attention_by_loops(call)["weights"], weight)
    for leaf, formula in zip(leaves, slopes.values(), strict=True):
        assert (leaf.grad - formula).abs().max() < 1e-14


def test_shapes_broadcast_as_torch_says():
    assert broadcast_axes((2, 1), (3,), ()) == (2, 3)
    with pytest.raises(ValueError, match="do not broadcast"):
        broadcast_axes((2,), (3,))


def test_drawn_masks_leave_every_row_something_to_read_and_something_hidden():
    mask = some_allowed(0, 50, 4)
    assert mask.any(-1).all()
    assert not mask.all(-1).any()
    assert some_allowed(0, 3, 1).all()
