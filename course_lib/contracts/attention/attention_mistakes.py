"""Attentions that are wrong in one way each, as people reported them."""

from course_lib.contracts.attention._attention_empty_rows import ATTENTION_EMPTY_ROW_MISTAKES
from course_lib.contracts.attention._attention_gradients import ATTENTION_GRADIENT_MISTAKES
from course_lib.contracts.attention._attention_masks import ATTENTION_MASK_MISTAKES
from course_lib.contracts.attention._attention_numerics import ATTENTION_NUMERIC_MISTAKES
from course_lib.contracts.attention._attention_refusals import ATTENTION_REFUSAL_MISTAKES
from course_lib.contracts.attention._attention_scale_softmax import ATTENTION_SCALE_MISTAKES
from course_lib.contracts.attention._attention_state import ATTENTION_STATE_MISTAKES

ATTENTION_MISTAKES = (
    ATTENTION_SCALE_MISTAKES
    + ATTENTION_MASK_MISTAKES
    + ATTENTION_STATE_MISTAKES
    + ATTENTION_NUMERIC_MISTAKES
    + ATTENTION_EMPTY_ROW_MISTAKES
    + ATTENTION_REFUSAL_MISTAKES
    + ATTENTION_GRADIENT_MISTAKES
)
