"""Sampling distributions that are wrong in one way each, as people reported them."""

from course_lib.contracts.sampling._sampling_calls import ACCEPTING_MISTAKES, WRITING_MISTAKES
from course_lib.contracts.sampling._sampling_temperatures import (
    ENDING_MISTAKES,
    TEMPERATURE_MISTAKES,
)
from course_lib.contracts.sampling._sampling_top_k import TOP_K_MISTAKES
from course_lib.contracts.sampling._sampling_top_p import TOP_P_MISTAKES

SAMPLING_MISTAKES = (
    *TEMPERATURE_MISTAKES,
    *TOP_K_MISTAKES,
    *TOP_P_MISTAKES,
    *ENDING_MISTAKES,
    *WRITING_MISTAKES,
    *ACCEPTING_MISTAKES,
)
