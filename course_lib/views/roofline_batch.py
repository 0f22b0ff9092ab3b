"""Slide the batch along the roofline, and see what binds a decode step: memory or arithmetic."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from course_lib.plots.card import (
    PALETTE,
    SERIES_LOOKS,
    add_legend,
    card_style,
    plain_log_ticks,
    write_ticks,
)
from course_lib.plots.checks import positive_array
from course_lib.plots.roofline import draw_roof
from course_lib.text import written_digits, written_number
from course_lib.views.base import Control, View, show_view
from course_lib.views.panels import panel_at, still_card, widest
from course_lib.views.words import check_view_words

_FREE = {"facecolor": PALETTE["card"], "edgecolor": "none", "pad": 0.6}  # of the lines behind it


def view_roofline_batch(
    work: Callable[[int, int], tuple[float, float]],
    *,
    bandwidth: float,
    peak: float,
    batches: Sequence[int],
    lengths: Sequence[int],
    words: Mapping[str, str],
) -> None:
    """Show where a decode step of this batch lands, and where the other batches do.

    Args:    work: (batch, length) -> (FLOP, bytes) of one step, one new token for each text;
             length: the positions that each new token reads
             bandwidth, peak: of the machine, in GB/s and GFLOP/s
             batches, lengths: what the controls offer, the first of each shown first; at most 24
             words: batch, length, title, x_label, y_label, roof, balance, others, now, by_memory,
             by_arithmetic, times_title, verdict (fields bound, rate, tokens),
             alt (batch, length, intensity, rate, peak, bound, tokens)
    Raises:  ValueError for words that are missing or unknown, or an amount that is not above 0
    """
    show_view(_batch_view(work, bandwidth, peak, batches, lengths, words))


def _batch_view(
    work: Callable[[int, int], tuple[float, float]],
    bandwidth: float,
    peak: float,
    batches: Sequence[int],
    lengths: Sequence[int],
    words: Mapping[str, str],
) -> View:
    plain = "batch length title x_label y_label roof balance others now by_memory by_arithmetic"
    told = "batch length intensity rate peak bound tokens"
    fields = {"verdict": "bound rate tokens", "alt": told}
    check_view_words(words, *plain.split(), "times_title", **fields)
    positive_array("bandwidth and peak", [bandwidth, peak])
    landed = {
        (batch, length): BatchStep(batch, length, *work(batch, length), bandwidth, peak)
        for batch in batches
        for length in lengths
    }
    numbers = {
        name: {written_number(value): value for value in sorted(values)}
        for name, values in (("batch", batches), ("length", lengths))
    }
    return View(
        "roofline-batch",
        [
            Control(name, words[name], "range", numbers[name], written_number(first))
            for name, first in (("batch", batches[0]), ("length", lengths[0]))
        ],
        lambda state: draw_roofline_batch(
            landed[state["batch"], state["length"]], list(landed.values()), words
        ),
        lambda state: _told_batch(landed[state["batch"], state["length"]], words),
    )


@dataclass(frozen=True)
class BatchStep:
    """One decode step of a batch on a machine: where it lands under the roof, and how long it is.

    Args:    moved: bytes; bandwidth, peak: in GB/s and GFLOP/s
    """

    batch: int
    length: int
    flops: float
    moved: float
    bandwidth: float
    peak: float

    def __post_init__(self) -> None:
        positive_array("batch, length, FLOP and bytes of work", list(vars(self).values()))

    @property
    def intensity(self) -> float:
        """Return the FLOP for each byte."""
        return self.flops / self.moved

    @property
    def rate(self) -> float:
        """Return the most GFLOP/s that the roof allows."""
        return min(self.peak, self.intensity * self.bandwidth)

    @property
    def times(self) -> tuple[float, float]:
        """Return the milliseconds of moving the bytes, and of the arithmetic."""
        return self.moved / self.bandwidth / 1e6, self.flops / self.peak / 1e6

    @property
    def tokens_per_second(self) -> float:
        """Return the new tokens of all texts together, in a second, at most."""
        return 1000 * self.batch / max(self.times)


def draw_roofline_batch(
    step: BatchStep, every: Sequence[BatchStep], words: Mapping[str, str]
) -> Figure:
    """Draw a step under the roof among the steps of its length, and what its time goes to."""
    legend = [words[name] for name in ("roof", "balance", "others", "now")]
    left = max(0.9, 0.35 + widest([words["by_memory"], words["by_arithmetic"]]))
    spread = [each.intensity for each in every] + [step.peak / step.bandwidth]
    limits = min(spread) / 2, max(spread) * 2.5
    with card_style():
        figure = still_card(7.5, 5.0, legend)
        panel = panel_at(figure, left, 0.45, 7.2 - left, 2.7)
        times = panel_at(figure, left, 4.15, 7.2 - left, 0.6)
        roof = draw_roof(panel, step.bandwidth, step.peak, *limits)
        others = [each for each in every if each.length == step.length and each is not step]
        marks = _draw_steps(panel, step, others)
        slowest = min(each.rate for each in every)
        panel.set(xlim=limits, ylim=(slowest / 2.2, step.peak * 2.2))
        plain_log_ticks(panel.xaxis)
        plain_log_ticks(panel.yaxis)
        panel.set(title=words["title"], xlabel=words["x_label"], ylabel=words["y_label"])
        verdict = words["verdict"].format(**_bound(step, words))
        place = {"transform": panel.transAxes, "ha": "right", "weight": "bold"}
        panel.text(0.985, 0.06, verdict, bbox=_FREE, zorder=5, **place)
        _draw_times(times, step, words)
        balance = Line2D([], [], color=PALETTE["muted"], lw=1.2, ls=(0, (1, 2)))
        add_legend(figure, [roof, balance, *marks], legend)
        return write_ticks(figure)


def _draw_steps(panel: Axes, step: BatchStep, others: Sequence[BatchStep]) -> list[Line2D]:
    points = [each.intensity for each in others], [each.rate for each in others]
    quiet = {"color": PALETTE["muted"], "mfc": PALETTE["card"], "ls": "none", "marker": "o"}
    (rest,) = panel.plot(*points, ms=6, mew=1.4, zorder=3, **quiet)
    look = {**SERIES_LOOKS[0], "linestyle": "none", "ms": 12}
    (mark,) = panel.plot([step.intensity], [step.rate], zorder=4, **look)
    panel.plot([step.intensity] * 2, [1e-12, step.rate], lw=1.2, ls="--", color=PALETTE["blue"])
    named = [step.intensity]
    for each in [step, *sorted(others, key=lambda other: other.batch)]:
        near = min(abs(math.log(each.intensity / other)) for other in named)
        if each is step or near > 0.35:  # the names of crowded points would cover each other
            named.append(each.intensity)
            place = {"xytext": (-7, 7), "textcoords": "offset points", "ha": "right"}
            weight = "bold" if each is step else "normal"
            panel.annotate(
                str(each.batch), (each.intensity, each.rate), weight=weight, bbox=_FREE, **place
            )
    return [rest, mark]


def _draw_times(panel: Axes, step: BatchStep, words: Mapping[str, str]) -> None:
    most = max(step.times)
    panel.barh([0, 1], step.times, height=0.66, color=PALETTE["blue"])
    for row, time in enumerate(step.times):
        weight = "bold" if time == most else "normal"
        written = written_digits(f"{time:.3g}" if time < 1000 else f"{time:,.0f}")
        panel.text(time + 0.01 * most, row + 0.02, written, va="center", weight=weight)
    panel.set(xlim=(0, 1.12 * most), ylim=(1.5, -0.5), xticks=[])
    panel.set_yticks([0, 1], [words["by_memory"], words["by_arithmetic"]])
    panel.set_title(words["times_title"], pad=5)
    panel.tick_params(length=0)
    panel.grid(False)
    panel.spines["bottom"].set_visible(False)


def _bound(step: BatchStep, words: Mapping[str, str]) -> dict[str, str]:
    moving, computing = step.times
    return {
        "bound": words["by_memory"] if moving > computing else words["by_arithmetic"],
        "rate": written_number(step.rate, 0 if step.rate >= 100 else 1),
        "tokens": written_number(step.tokens_per_second),
    }


def _told_batch(step: BatchStep, words: Mapping[str, str]) -> str:
    return words["alt"].format(
        batch=written_number(step.batch),
        length=written_number(step.length),
        intensity=written_number(step.intensity, 2),
        peak=written_number(step.peak),
        **_bound(step, words),
    )
