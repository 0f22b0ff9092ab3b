"""Attentions that are wrong in one way each, as people reported them."""

from course_lib.contracts.attention.gradient_mistakes import ATTENTION_GRADIENT_MISTAKES
from course_lib.contracts.attention.mask_mistakes import ATTENTION_MASK_MISTAKES
from course_lib.contracts.attention.number_mistakes import ATTENTION_NUMERIC_MISTAKES
from course_lib.contracts.attention.refusal_mistakes import (
    ATTENTION_EMPTY_ROW_MISTAKES,
    ATTENTION_REFUSAL_MISTAKES,
)
from course_lib.contracts.attention.scale_softmax_mistakes import ATTENTION_SCALE_MISTAKES
from course_lib.contracts.attention.state_mistakes import ATTENTION_STATE_MISTAKES

ATTENTION_MISTAKES = (
    ATTENTION_SCALE_MISTAKES
    + ATTENTION_MASK_MISTAKES
    + ATTENTION_STATE_MISTAKES
    + ATTENTION_NUMERIC_MISTAKES
    + ATTENTION_EMPTY_ROW_MISTAKES
    + ATTENTION_REFUSAL_MISTAKES
    + ATTENTION_GRADIENT_MISTAKES
)
