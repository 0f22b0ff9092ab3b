"""Multi-head attentions that are wrong in one way each, as people reported them."""

from course_lib.contracts.heads._multi_head_layout import HEADS_LAYOUT_MISTAKES
from course_lib.contracts.heads._multi_head_masks import HEADS_MASK_MISTAKES
from course_lib.contracts.heads._multi_head_numbers import HEADS_NUMBER_MISTAKES
from course_lib.contracts.heads._multi_head_state import HEADS_STATE_MISTAKES
from course_lib.contracts.heads._multi_head_weights import HEADS_WEIGHT_MISTAKES

MULTI_HEAD_MISTAKES = (
    *HEADS_NUMBER_MISTAKES,
    *HEADS_WEIGHT_MISTAKES,
    *HEADS_LAYOUT_MISTAKES,
    *HEADS_MASK_MISTAKES,
    *HEADS_STATE_MISTAKES,
)
