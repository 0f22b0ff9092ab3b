"""Sampling distributions that are wrong in one way each, as people reported them."""

from course_lib.contracts.sampling.filter_mistakes import TOP_K_MISTAKES, TOP_P_MISTAKES
from course_lib.contracts.sampling.refusal_mistakes import ACCEPTING_MISTAKES, WRITING_MISTAKES
from course_lib.contracts.sampling.temperature_mistakes import (
    ENDING_MISTAKES,
    TEMPERATURE_MISTAKES,
)

SAMPLING_MISTAKES = (
    *TEMPERATURE_MISTAKES,
    *TOP_K_MISTAKES,
    *TOP_P_MISTAKES,
    *ENDING_MISTAKES,
    *WRITING_MISTAKES,
    *ACCEPTING_MISTAKES,
)
