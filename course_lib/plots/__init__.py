"""Drawing verbs: numbers and finished labels in, a matplotlib Figure out. No model, ever."""

from course_lib.plots.attention_map import draw_attention
from course_lib.plots.loss import draw_loss
from course_lib.plots.mask_panels import draw_masks
from course_lib.plots.position_waves import draw_positions
from course_lib.plots.sampling_bars import draw_sampling
from course_lib.plots.show import show_figure
from course_lib.plots.variance import draw_variance

__all__ = [
    "draw_attention",
    "draw_loss",
    "draw_masks",
    "draw_positions",
    "draw_sampling",
    "draw_variance",
    "show_figure",
]
