"""Step through a generation, and see which keys and values are written, read and stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course_lib.plots.card import PALETTE, add_legend, card_style, write_ticks
from course_lib.plots.cells import closed_cell, open_cell, tint
from course_lib.plots.checks import check_labels, positive_array
from course_lib.text import written_number
from course_lib.views.base import Control, View, show_view
from course_lib.views.panels import panel_at, still_card, widest
from course_lib.views.words import check_view_words


def view_cache_steps(
    token_labels: Sequence[str],
    *,
    prompt_tokens: int,
    memory_per_token: float,
    words: Mapping[str, str],
) -> None:
    """Show the cache after the prefill and each decode step, or what is done without a cache.

    Step 0 reads the prompt. Each later step reads one new token; the last token is never read.

    Args:    token_labels: the prompt, then the new tokens, at most 12 of them; all at most 16
             memory_per_token: of one position's keys and values in all layers, in words["unit"]
             words: step, prefill, decode (field step), cache, with, without, keys, values,
             written, read, unused, title (stored, memory, unit), unit, work_title, now, so_far,
             alt (step, cache, token, written, read, stored, memory, unit, total)
    Raises:  ValueError for words that are missing or unknown, or no new token
    """
    show_view(_cache_view(list(token_labels), prompt_tokens, memory_per_token, words))


def _cache_view(
    labels: list[str], prompt_tokens: int, memory_per_token: float, words: Mapping[str, str]
) -> View:
    plain = "step prefill cache with without keys values written read unused unit"
    plain += " work_title now so_far"
    fields = {"decode": "step", "title": "stored memory unit"}
    told = "step cache token written read stored memory unit total"
    check_view_words(words, *plain.split(), **fields, alt=told)
    _check_step_view(labels, prompt_tokens, memory_per_token)
    after = [_told_step(step, words) for step in range(len(labels) - prompt_tokens)]
    steps = {label: step for step, label in enumerate(after)}
    kinds = {words["with"]: True, words["without"]: False}

    def step_of(state: Mapping[str, Any]) -> DecodeMoment:
        return DecodeMoment(prompt_tokens, state["step"], state["cache"], memory_per_token)

    return View(
        "cache-steps",
        [
            Control("step", words["step"], "range", steps, after[0]),
            Control("cache", words["cache"], "choice", kinds, words["with"]),
        ],
        lambda state: draw_cache_step(step_of(state), labels, words),
        lambda state: _told_cache(step_of(state), labels, words),
    )


@dataclass(frozen=True)
class DecodeMoment:
    """One step of a generation: for how many positions keys and values are computed, and read.

    Step 0 is the prefill of the whole prompt; each later step reads one new token.
    """

    prompt_tokens: int
    step: int
    cached: bool
    memory_per_token: float

    @property
    def length(self) -> int:
        """Return the positions that the step's queries attend to, at most."""
        return self.prompt_tokens + self.step

    @property
    def read(self) -> int:
        """Return the positions whose keys and values come from memory."""
        return self.length - 1 if self.cached and self.step else 0

    @property
    def written(self) -> int:
        """Return the positions whose keys and values are computed now."""
        return self.length - self.read

    @property
    def stored(self) -> int:
        """Return the positions that stay in memory after the step."""
        return self.length if self.cached else 0

    @property
    def total(self) -> int:
        """Return how often keys and values were computed since the start."""
        if self.cached:
            return self.length
        return sum(range(self.prompt_tokens, self.length + 1))


def _check_step_view(labels: list[str], prompt_tokens: int, memory_per_token: float) -> None:
    check_labels("token_labels", labels, len(labels), "token")
    if type(prompt_tokens) is not int or not 1 <= prompt_tokens < len(labels):
        raise ValueError(
            f"prompt_tokens must be from 1 to {len(labels) - 1}, so that a token is new; "
            f"got {prompt_tokens!r}"
        )
    if len(labels) > 16:
        raise ValueError(f"{len(labels)} tokens leave no room for their names; pass at most 16")
    positive_array("memory_per_token", [memory_per_token])


def _told_step(step: int, words: Mapping[str, str]) -> str:
    return words["decode"].format(step=step) if step else words["prefill"]


def draw_cache_step(
    step: DecodeMoment, token_labels: list[str], words: Mapping[str, str]
) -> Figure:
    """Draw keys and values of every position, and how much has been computed."""
    size = len(token_labels)
    left = 0.3 + widest([words[name] for name in ("keys", "values", "now", "so_far")])
    cell = (7.2 - left) / size
    over = widest([f"→ {label}" for label in token_labels]) + 0.12
    legend = [words["written"], words["read"], words["unused"]]
    with card_style():
        figure = still_card(7.5, 0.45 + over + 1.0 + 1.45, legend)
        panel = panel_at(figure, left, 0.45 + over, size * cell, 0.9)
        work = panel_at(figure, left, 0.45 + over + 1.5, size * cell, 0.6)
        _draw_positions_of(panel, step, size)
        _name_tokens(panel, step, token_labels)
        panel.set_yticks([0.5, 1.5], [words["keys"], words["values"]])
        told = {"stored": step.stored, "memory": _memory(step), "unit": words["unit"]}
        figure.text(
            left / 7.5,
            1 - 0.3 / figure.get_figheight(),
            words["title"].format(**told),
            weight="bold",
            size=11.5,
        )
        _draw_work(work, step, size, words)
        add_legend(figure, [_new_cell(0, 0), open_cell(0, 0, 0.55), closed_cell(0, 0)], legend)
        return write_ticks(figure)


def _new_cell(left: float, top: float) -> Rectangle:
    fill, edge = tint(PALETTE["orange"], 0.6), PALETTE["card"]
    return Rectangle((left, top), 1, 1, facecolor=fill, edgecolor=edge, hatch="\\\\\\", lw=1.2)


def _draw_positions_of(panel: Axes, step: DecodeMoment, size: int) -> None:
    for position in range(size):
        for row in (0, 1):
            if position >= step.length:
                patch = closed_cell(position, row)
            elif position < step.read:
                patch = open_cell(position, row, 0.55)
            else:
                patch = _new_cell(position, row)
                panel.text(position + 0.5, row + 0.53, "+", ha="center", va="center", weight="bold")
            panel.add_patch(patch)
    panel.set(xlim=(0, size), ylim=(2, 0))
    panel.tick_params(length=0, pad=5)
    panel.grid(False)
    for side in ("left", "bottom"):
        panel.spines[side].set_visible(False)


def _name_tokens(panel: Axes, step: DecodeMoment, token_labels: list[str]) -> None:
    """Write the tokens above their positions: those read now in bold, the next with an arrow."""
    panel.set_xticks([])
    first = 0 if step.step == 0 else step.length - 1
    for position, label in enumerate(token_labels[: step.length + 1]):
        is_next = position == step.length
        weight = "bold" if first <= position < step.length else "normal"
        panel.text(
            position + 0.5,
            -0.12,
            f"→ {label}" if is_next else label,
            rotation=90,
            ha="center",
            va="bottom",
            weight=weight,
            size=10,
        )


def _draw_work(panel: Axes, step: DecodeMoment, size: int, words: Mapping[str, str]) -> None:
    last = DecodeMoment(step.prompt_tokens, size - 1 - step.prompt_tokens, False, 1.0)
    counts = (step.written, step.total)
    panel.barh([0, 1], counts, height=0.66, color=PALETTE["blue"])
    for row, count in enumerate(counts):
        panel.text(count + 0.01 * last.total, row + 0.02, f"{count}", va="center", ha="left")
    panel.set(xlim=(0, 1.08 * last.total), ylim=(1.5, -0.5), xticks=[])
    panel.set_yticks([0, 1], [words["now"], words["so_far"]])
    panel.set_title(words["work_title"], pad=5)
    panel.tick_params(length=0)
    panel.grid(False)
    panel.spines["bottom"].set_visible(False)


def _memory(step: DecodeMoment) -> str:
    memory = step.stored * step.memory_per_token
    return written_number(memory, 1 if 0 < memory < 10 else 0)


def _told_cache(step: DecodeMoment, token_labels: list[str], words: Mapping[str, str]) -> str:
    return words["alt"].format(
        step=_told_step(step.step, words),
        cache=words["with"] if step.cached else words["without"],
        token=token_labels[step.length - 1],
        written=step.written,
        read=step.read,
        stored=step.stored,
        memory=_memory(step),
        unit=words["unit"],
        total=step.total,
    )
