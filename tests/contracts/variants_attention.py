"""Attentions, right and wrong, on trial."""

from course_lib.attention import scaled_dot_product_attention
from course_lib.contracts import check_attention_contract
from course_lib.contracts.attention.attention_mistakes import ATTENTION_MISTAKES

from . import right_attentions, wrong_attentions, wrong_attentions_more
from .right_attentions import by_bmm, by_logsumexp, by_online_softmax, written_plainly
from .trial import named_by

CHECK, CATALOGUE = check_attention_contract, ATTENTION_MISTAKES
CLAUSES = [
    *("result_form", "arguments_unchanged", "repeatable", "permutation", "scores", "row_sums"),
    *("weights", "output", "masked_keys", "empty_row_error", "row_in_batch", "after_another"),
    *("cached_decode", "mask_broadcast", "batch_broadcast", "long_sequences", "memory_layout"),
    *("extreme_logits", "hidden_keys", "any_mixture", "float32_inputs", "half_inputs"),
    *("nonfinite_inputs", "gradients", "empty_row_zero", "zero_row_gradients", "bad_masks"),
]


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
MISTAKES = named_by(
    result_form="plus_infinity_fill scores_reported_in_16_bits",
    arguments_unchanged="q_written_into k_written_into v_written_into mask_written_into",
    repeatable=(
        "random_in_every_call result_kept_by_address one_buffer_for_results weights_after_dropout"
    ),
    permutation="always_causal values_mixed_transposed q_and_k_swapped earlier_calls_remembered",
    scores=(
        "not_scaled scale_inverse scale_squared scale_of_one_side scale_by_d_v scale_by_key_count "
        "scale_by_query_count scale_by_whole_width scale_cut_to_integer scale_after_softmax "
        "cosine_scores scores_before_scaling"
    ),
    row_sums=(
        "softmax_over_queries softmax_over_axis_0 softmax_over_axis_1 softmax_over_all "
        "softmax_missing sigmoid_for_softmax weights_not_normalised epsilon_in_denominator "
        "float32_inside"
    ),
    weights="softmax_twice softmax_twice_masked_again powers_of_two weights_averaged_over_heads",
    output="keys_mixed_for_values values_of_first_item empty_rows_inverted",
    masked_keys=(
        "mask_ignored mask_for_show mask_inverted mask_transposed mask_added_as_0_and_1 "
        "mask_multiplied mask_filled_with_nearly_0 mask_after_softmax mask_of_first_query "
        "mask_skipped_for_one_query mask_diagonal_open mask_kept_by_shape finite_fill_small "
        "finite_fill least_number_fill partly_hidden_rows_flagged weights_before_mask "
        "scores_before_mask"
    ),
    empty_row_error=(
        "empty_row_nan empty_row_averaged error_policy_gives_nan error_policy_averages "
        "zero_by_default error_policy_ignored empty_row_seen_if_all_are"
    ),
    row_in_batch="mask_of_first_item mask_on_heads",
    mask_broadcast="mask_on_queries padding_on_queries mask_axes_guessed",
    long_sequences="last_block_dropped",
    extreme_logits="exp_without_maximum one_maximum_for_all scores_clamped",
    hidden_keys="mask_renormalised_late finite_fill_unreported maximum_of_hidden_keys",
    float32_inputs="bfloat16_inside",
    half_inputs="scores_in_16_bits softmax_in_16_bits",
    nonfinite_inputs="nan_spreads",
    gradients=(
        "random_while_training where_after_exp output_detached q_detached k_detached v_detached "
        "weights_detached straight_through row_sum_detached"
    ),
    empty_row_zero=(
        "zero_policy_gives_nan zero_policy_averages empty_rows_not_flagged empty_row_scores_zeroed"
    ),
    zero_row_gradients="nan_repaired_forward_only",
    bad_masks=(
        "any_dtype_of_mask float_mask_taken_as_bool integer_mask_taken_as_bool float_mask_added "
        "large_mask_cut mask_enlarges_result"
    ),
)
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
SAYS = {
    "not scaled": "not_scaled: the scores are not divided by √d_k",
    "root of d_v": "the scores are divided by √d_v",
    "root cut to an integer": "every score is 1.414 times the right one (d_k = 2",
    "softmax over the queries": "the weights of each key (column) sum to 1",
    "softmax over axis 0": "the first axis, dim=0",
    "mask inverted": "True in the mask means hidden",
    "mask transposed when square": "queries and keys are swapped in the mask",
    "mask added as 0 and 1": "the bool mask is added to the scores",
    "mask after the softmax": "the mask comes after the softmax",
    "mask never applied": "the weights come from the scores before it",
    "masked scores -1e4": "a masked score is -10000 and must be -inf",
    "first item's mask for all": "the first item's mask is used for the whole batch",
    "no mask for one query": "the mask is skipped when there is a single query",
    "values mixed by transposed weights": "are mixed with the transposed weights",
    "exp without the maximum": "exp(x) of float64 ends at x = 709",
    "scores in the input's half": "float16 ends at 65504",
    "always float32": "fits float32 exactly",
    "dropout always on": "it draws random numbers",
    "q scaled in place": "changed its argument q",
    "k detached": "no gradient reaches k",
    "no_grad inside": ".output is cut off from q, k and v",
    "dropout while training": "inputs that require a gradient give another output",
    "result kept by address": "the arguments hold new numbers",
    "one buffer for all results": "a later call changed the tensors",
    "keys of an earlier call": "a call of the same shape with other numbers was made",
    "NaN gradients of empty rows": "the output is right, but the gradient of",
    "error policy ignored": "a row with nothing to read came back as",
    "weights after dropout": "the keys, their values and their mask were moved",
    "weights averaged over heads": "these weights did not make it",
}
UNNAMED = [
    *("output normalised", "a bias towards late keys", "scaled after the softmax"),
    *("a trace of weight", "last row of the mask", "causal keys always open", "masks tiled"),
    *("scores capped softly", "one more in the denominator", "heads and tokens confused"),
    *("blocks not rescaled", "own backward without the scale", "a clamp in the gradient"),
    *("values in reverse in a batch", "weights turned round", "a window of 512"),
    *("the largest takes all", "no scale while training", "a third batch axis lost"),
]
