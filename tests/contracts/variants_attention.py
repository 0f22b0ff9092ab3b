"""Attentions, right and wrong, on trial."""

from course_lib.attention import scaled_dot_product_attention
from course_lib.contracts import check_attention_contract
from course_lib.contracts.attention.attention_mistakes import ATTENTION_MISTAKES

from . import right_attentions, wrong_attentions, wrong_attentions_more
from .right_attentions import by_bmm, by_logsumexp, by_online_softmax, written_plainly

CHECK, CATALOGUE = check_attention_contract, ATTENTION_MISTAKES
CLAUSES = [
    *("result_form", "arguments_unchanged", "repeatable", "permutation", "scores", "row_sums"),
    *("weights", "output", "masked_keys", "empty_row_error", "row_in_batch", "after_another"),
    *("cached_decode", "mask_broadcast", "batch_broadcast", "long_sequences", "memory_layout"),
    *("extreme_logits", "hidden_keys", "any_mixture", "float32_inputs", "half_inputs"),
    *("nonfinite_inputs", "gradients", "empty_row_zero", "zero_row_gradients", "bad_masks"),
]


def STUB(q, k, v, allowed=None, *, empty_row="error"):
    raise NotImplementedError


RIGHT = {
    "the course's own": scaled_dot_product_attention,
    "a module": right_attentions.AsModule(),
    **{each.__name__: each for each in right_attentions.RIGHT},
    **{each.__name__: each for each in right_attentions.FORWARD_ONLY},
}


def only_where(condition, name):
    """Right, but for the calls of one kind, where it makes a catalogued mistake."""
    mistaken = next(mistake for mistake in ATTENTION_MISTAKES if mistake.name == name).make()

    def attention(q, k, v, allowed=None, **policy):
        function = mistaken if condition(q, k, v) else scaled_dot_product_attention
        return function(q, k, v, allowed, **policy)

    return attention


WRONG = {
    **wrong_attentions.WRONG,
    **wrong_attentions_more.WRONG,
    "mask ignored where q is large": (
        only_where(lambda q, k, v: q.abs().max() > 50, "mask_ignored"),
        "any_mixture",
    ),
    "values mixed transposed for one item": (
        only_where(lambda q, k, v: q.dim() > 2 and q.shape[0] == 1, "values_mixed_transposed"),
        "any_mixture",
    ),
}
MISTAKES = {
    "not_scaled": "scores",
    "scale_inverse": "scores",
    "scale_squared": "scores",
    "scale_of_one_side": "scores",
    "scale_by_d_v": "scores",
    "scale_by_key_count": "scores",
    "scale_by_query_count": "scores",
    "scale_by_whole_width": "scores",
    "scale_cut_to_integer": "scores",
    "scale_after_softmax": "scores",
    "cosine_scores": "scores",
    "softmax_over_queries": "row_sums",
    "softmax_over_axis_0": "row_sums",
    "softmax_over_axis_1": "row_sums",
    "softmax_over_all": "row_sums",
    "softmax_twice": "weights",
    "softmax_twice_masked_again": "weights",
    "softmax_missing": "row_sums",
    "sigmoid_for_softmax": "row_sums",
    "weights_not_normalised": "row_sums",
    "powers_of_two": "weights",
    "epsilon_in_denominator": "row_sums",
    "mask_ignored": "masked_keys",
    "mask_for_show": "masked_keys",
    "mask_inverted": "masked_keys",
    "mask_transposed": "masked_keys",
    "mask_added_as_0_and_1": "masked_keys",
    "mask_multiplied": "masked_keys",
    "mask_filled_with_nearly_0": "masked_keys",
    "mask_after_softmax": "masked_keys",
    "mask_renormalised_late": "hidden_keys",
    "mask_of_first_item": "row_in_batch",
    "mask_of_first_query": "masked_keys",
    "mask_on_queries": "mask_broadcast",
    "padding_on_queries": "mask_broadcast",
    "mask_on_heads": "row_in_batch",
    "mask_axes_guessed": "mask_broadcast",
    "mask_skipped_for_one_query": "masked_keys",
    "mask_diagonal_open": "masked_keys",
    "always_causal": "permutation",
    "values_mixed_transposed": "permutation",
    "q_and_k_swapped": "permutation",
    "keys_mixed_for_values": "output",
    "values_of_first_item": "output",
    "last_block_dropped": "long_sequences",
    "random_in_every_call": "repeatable",
    "random_while_training": "gradients",
    "q_written_into": "arguments_unchanged",
    "k_written_into": "arguments_unchanged",
    "v_written_into": "arguments_unchanged",
    "mask_written_into": "arguments_unchanged",
    "mask_kept_by_shape": "masked_keys",
    "result_kept_by_address": "repeatable",
    "one_buffer_for_results": "repeatable",
    "earlier_calls_remembered": "permutation",
    "finite_fill_small": "masked_keys",
    "finite_fill": "masked_keys",
    "finite_fill_unreported": "hidden_keys",
    "least_number_fill": "masked_keys",
    "plus_infinity_fill": "result_form",
    "exp_without_maximum": "extreme_logits",
    "one_maximum_for_all": "extreme_logits",
    "maximum_of_hidden_keys": "hidden_keys",
    "scores_clamped": "extreme_logits",
    "scores_in_16_bits": "half_inputs",
    "softmax_in_16_bits": "half_inputs",
    "float32_inside": "row_sums",
    "bfloat16_inside": "float32_inputs",
    "nan_spreads": "nonfinite_inputs",
    "where_after_exp": "gradients",
    "empty_row_nan": "empty_row_error",
    "empty_row_averaged": "empty_row_error",
    "error_policy_gives_nan": "empty_row_error",
    "error_policy_averages": "empty_row_error",
    "zero_by_default": "empty_row_error",
    "error_policy_ignored": "empty_row_error",
    "empty_row_seen_if_all_are": "empty_row_error",
    "zero_policy_gives_nan": "empty_row_zero",
    "zero_policy_averages": "empty_row_zero",
    "nan_repaired_forward_only": "zero_row_gradients",
    "empty_rows_not_flagged": "empty_row_zero",
    "empty_rows_inverted": "output",
    "partly_hidden_rows_flagged": "masked_keys",
    "empty_row_scores_zeroed": "empty_row_zero",
    "any_dtype_of_mask": "bad_masks",
    "float_mask_taken_as_bool": "bad_masks",
    "integer_mask_taken_as_bool": "bad_masks",
    "float_mask_added": "bad_masks",
    "large_mask_cut": "bad_masks",
    "mask_enlarges_result": "bad_masks",
    "output_detached": "gradients",
    "q_detached": "gradients",
    "k_detached": "gradients",
    "v_detached": "gradients",
    "weights_detached": "gradients",
    "straight_through": "gradients",
    "row_sum_detached": "gradients",
    "weights_after_dropout": "repeatable",
    "weights_before_mask": "masked_keys",
    "weights_averaged_over_heads": "weights",
    "scores_before_mask": "masked_keys",
    "scores_before_scaling": "scores",
    "scores_reported_in_16_bits": "result_form",
}
MUTATED = [written_plainly, by_logsumexp, by_bmm, by_online_softmax]
_SYMMETRIC = "symmetric in its arguments"
_EMPTY = "a constant for empty rows, whose weights are 0 whatever it is"
_FRESH = "in place on a tensor that nobody else holds"
_SAME = "the slice is whole already"
EQUIVALENT = {
    "written_plainly:17 arguments swapped: torch.promote_types(q.dtype, torch.float32)": _SYMMETRIC,
    "written_plainly:19 method dropped: scores.expand(shape)": "masked_fill broadcasts",
    "written_plainly:20 +1: 0.0": _EMPTY,
    "written_plainly:20 -1: 0.0": _EMPTY,
    "written_plainly:20 method dropped: scores.masked_fill(empty[..., None], 0.0)": "NaN of an "
    "empty row is set to 0 after the softmax, and its gradient by the mask before it",
    "written_plainly:3 any: k.isfinite().all": "a NaN in a hidden key is masked with its score",
    "written_plainly:3 any: q.isfinite().all": "a NaN in a query stays in its own row",
    "written_plainly:4 call dropped: ValueError('q, k and v must be finite')": "any error will do",
    "written_plainly:9 call dropped: TypeError('not bool')": "raising a str is a TypeError",
    "by_logsumexp:3 arguments swapped: k.transpose(-1, -2)": _SYMMETRIC,
    "by_logsumexp:3 swapaxes: k.transpose": "another name of the same",
    "by_logsumexp:5 left only: keep | empty[..., None]": "NaN of an empty row is replaced after "
    "the exp, and its gradient by the mask before it",
    "by_bmm:10 +1: 1.0": _EMPTY,
    "by_bmm:10 halved: 1.0": _EMPTY,
    "by_bmm:10 masked_fill_: parts.sum(-1, keepdim=True).masked_fill": _FRESH,
    "by_bmm:6 arguments swapped: flat[1].transpose(1, 2)": _SYMMETRIC,
    "by_bmm:6 swapaxes: flat[1].transpose": "another name of the same",
    "by_bmm:7 masked_fill_: scores.reshape(keep.shape).masked_fill": _FRESH,
    "by_bmm:9 +1: 0.0": _EMPTY,
    "by_bmm:9 -1: 0.0": _EMPTY,
    "by_online_softmax:10 whole slice: :": _SAME,
    "by_online_softmax:11 method dropped: piece.expand(*batch, t_q, piece.shape[-1])": "masked_"
    "fill broadcasts",
    "by_online_softmax:13 arguments swapped: torch.maximum(top, piece.detach().amax(-1, "
    "keepdim=True))": _SYMMETRIC,
    "by_online_softmax:13 method dropped: piece.detach()": "the output does not depend on the "
    "shift, so its gradient through the shift is 0",
    "by_online_softmax:14 +1: 0.0": _EMPTY,
    "by_online_softmax:14 -1: 0.0": _EMPTY,
    "by_online_softmax:17 whole slice: :": _SAME,
    "by_online_softmax:20 +1: 1.0": _EMPTY,
    "by_online_softmax:20 halved: 1.0": _EMPTY,
    "by_online_softmax:20 masked_fill_: total.masked_fill": _FRESH,
    "by_online_softmax:21 +1: 0.0": _EMPTY,
    "by_online_softmax:21 -1: 0.0": _EMPTY,
    "by_online_softmax:21 masked_fill_: top.masked_fill": _FRESH,
}
