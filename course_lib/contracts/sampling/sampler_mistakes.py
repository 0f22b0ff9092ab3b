"""Batched samplers that are wrong in one way each, as people reported them."""

from functools import partial

from course_lib.contracts.engine.mistake import Mistake
from course_lib.contracts.sampling.draw_mistakes import (
    DRAW_MISTAKES,
    LOGIT_MISTAKES,
    SOURCE_MISTAKES,
)
from course_lib.contracts.sampling.row_mistakes import GREEDY_MISTAKES, ROW_MISTAKES
from course_lib.contracts.sampling.samplers import in_each_row, mistaken_sampler
from course_lib.contracts.sampling.sampling_mistakes import SAMPLING_MISTAKES

_OF_DISTRIBUTIONS = (
    *("temperature_ignored", "temperature_multiplied", "temperature_twice"),
    *("temperature_after_filters", "one_more_kept", "one_less_kept", "top_k_ignored"),
    *("ties_kept", "higher_ids_kept", "top_p_ties_kept", "crossing_dropped", "extra_on_equality"),
    *("one_past_crossing", "top_p_ignored", "top_p_ignored_with_top_k", "top_p_of_whole_mass"),
    *("top_p_in_id_order", "min_p_instead", "softmax_again", "removed_filled_with_1e_10"),
)


def sampler_of(distribution_mistake: Mistake) -> Mistake:
    """The same mistake, made by a sampler in the distribution that it draws from."""
    distributions = in_each_row(distribution_mistake.make())
    return Mistake(
        distribution_mistake.name,
        distribution_mistake.source,
        partial(mistaken_sampler, distribution=distributions),
        distribution_mistake.what,
        distribution_mistake.fix,
    )


SAMPLER_MISTAKES = (
    *(sampler_of(each) for each in SAMPLING_MISTAKES if each.name in _OF_DISTRIBUTIONS),
    *ROW_MISTAKES,
    *GREEDY_MISTAKES,
    *DRAW_MISTAKES,
    *SOURCE_MISTAKES,
    *LOGIT_MISTAKES,
)
