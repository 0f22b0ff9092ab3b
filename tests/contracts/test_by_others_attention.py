"""Attentions by others under the contracts: accepted where conventions agree, else named."""

import pytest
import torch

from course_lib.contracts import (
    ContractViolation,
    check_attention_contract,
    check_causal_mask_contract,
    check_multi_head_contract,
)

from .others_attention import (
    at_the_door,
    gpt2,
    gpt2_eager,
    llama,
    llama_eager,
    rotary_positions,
    torch_is_causal,
    torch_lower_right,
    torch_module,
    torch_module_by_pairs,
    torch_sdpa,
    torch_sdpa_with_bias,
    transformers_sdpa,
)


def check_output(attention):
    return check_attention_contract(attention, fields=("output",))


def refused(check, candidate):
    with pytest.raises(ContractViolation) as caught:
        check(candidate)
    return caught.value


@pytest.mark.parametrize("attention", [torch_sdpa, torch_sdpa_with_bias, transformers_sdpa])
def test_torchs_attention_passes_once_its_refusals_are_translated(attention):
    report = check_output(at_the_door(attention))
    assert report.unchecked == ("weights", "scores", "empty_rows")


@pytest.mark.parametrize("attention", [torch_sdpa, torch_sdpa_with_bias, transformers_sdpa])
def test_torchs_zeros_for_a_row_that_reads_nothing_are_named(attention):
    said = refused(check_output, attention)
    assert said.clause == "empty_row_error"
    assert {"error_policy_ignored", "nan_spreads"} <= set(said.mistakes)


def test_a_mask_of_least_numbers_averages_a_row_that_reads_nothing():
    said = refused(check_output, gpt2_eager)
    assert said.clause == "empty_row_error"
    assert "empty_row_averaged" in said.mistakes
    checked = refused(check_output, at_the_door(gpt2_eager))
    assert "zero_policy_averages" in checked.mistakes


def test_scores_in_the_inputs_own_16_bits_are_named():
    said = refused(check_output, at_the_door(gpt2_eager))
    assert said.clause == "half_inputs"
    assert "scores_in_16_bits" in said.mistakes


def test_a_softmax_in_float32_is_too_coarse_for_float64():
    said = refused(check_output, at_the_door(llama_eager))
    assert said.clause == "output"
    assert 1e-10 < said.measured < 1e-6


@pytest.mark.parametrize(
    ("multi_head", "unchecked"),
    [
        pytest.param(torch_module_by_pairs, (), id="torch's module"),
        pytest.param(gpt2("eager"), ("memory_layout",), id="GPT-2, eager"),
        pytest.param(gpt2("sdpa"), ("memory_layout",), id="GPT-2, sdpa"),
        pytest.param(llama("sdpa"), (), id="Llama, sdpa"),
    ],
)
def test_heads_by_others_pass_where_their_conventions_are_translated(multi_head, unchecked):
    """GPT-2's Conv1D calls view, which refuses a transposed x; the report says so."""
    assert check_multi_head_contract(multi_head).unchecked == unchecked


def few(n_heads):
    """Half as many heads of keys, where they can be halved."""
    return n_heads if n_heads % 2 else n_heads // 2


@pytest.mark.parametrize(
    ("multi_head", "clause", "names"),
    [
        (torch_module(), "result_form", {"nan_for_empty_rows"}),
        (torch_module(padding=torch.clone), "result_form", {"padding_inverted"}),
        (
            torch_module(batch_first=False),
            "result_form",
            {"batch_taken_for_time", "nan_for_empty_rows"},
        ),
        (torch_module(dropout=0.1), "result_form", {"dropout_always_on"}),
        (llama("eager"), "result_form", {"float32_inside", "nan_for_empty_rows"}),
        (llama("sdpa", kv_heads=few), "many_heads", {"kv_heads_grouped"}),
        (llama("sdpa", rotary_positions), "permutation", {"positions_rotated_in"}),
    ],
    ids=[
        "NaN for padding that may read nothing",
        "True in key_padding_mask hides",
        "time first",
        "dropout is on in a new module",
        "softmax in float32, the least float64 becomes -inf there",
        "grouped keys",
        "rotary positions",
    ],
)
def test_another_convention_is_refused_and_named(multi_head, clause, names):
    said = refused(check_multi_head_contract, multi_head)
    assert said.clause == clause
    assert set(said.mistakes) == names
    assert said.__cause__ is None


def test_torchs_is_causal_aligns_the_first_query_with_the_first_key():
    """A cached step with is_causal=True hides the cache: the flag takes no offset."""
    said = refused(check_causal_mask_contract, torch_is_causal)
    assert said.mistakes == ("offset_ignored",)
    assert said.failing_input == {"t_q": 1, "t_k": 2, "query_offset": 1}


@pytest.mark.filterwarnings("ignore:Lower right causal bias")
def test_torchs_lower_right_bias_aligns_the_last_query_with_the_last_key():
    assert refused(check_causal_mask_contract, torch_lower_right).mistakes == ("bottom_right",)
