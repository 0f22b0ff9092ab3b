"""Greedy generations that are wrong in one way each, as people reported them."""

from course_lib.contracts.generation._generation_ends import GENERATION_END_MISTAKES
from course_lib.contracts.generation._generation_steps import GENERATION_STEP_MISTAKES

GENERATION_MISTAKES = (*GENERATION_STEP_MISTAKES, *GENERATION_END_MISTAKES)
