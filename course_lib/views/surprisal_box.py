"""Type a sentence, and see which of its words surprise a model."""

import html
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course_lib.live import load_widgets
from course_lib.plots.card import PALETTE, card_style, write_ticks
from course_lib.plots.checks import check_labels
from course_lib.text import written_number
from course_lib.views.base import Control, Show, View, dial, show_view
from course_lib.views.panels import panel_at, still_card
from course_lib.views.words import check_view_words, written_list

Score = Callable[[str], tuple[Sequence[str], Sequence[float]]]
Unknown = Callable[[str], Mapping[str, Sequence[str]]]
_MOST_TOKENS = 32


def view_surprisal_box(
    score: Score, unknown: Unknown, *, sentences: Sequence[str], words: Mapping[str, str]
) -> None:
    """Show the surprisal of every token; live, of any sentence that the reader types.

    Args:    score: sentence -> (its tokens, their surprisals), in the unit of words["y_label"];
             a token that cannot come has infinity
             unknown: sentence -> {word that the model does not know: known words like it};
             `unknown_words` makes such a dict
             sentences: to choose from, the first is shown first; at most 24
             words: sentence, examples, title (fields total, mean, count), y_label,
             alt (sentence, dearest, cost, costs, total, mean; costs are those of 0.05 and more),
             and what is said of a sentence that
             cannot be scored: unknown (words), near (word, near), blank, long (count, most)
    Raises:  ValueError for words that are missing or unknown, or given sentences not understood
    """
    view = _surprisal_view(score, unknown, list(sentences), words)
    show_view(view, lambda view, show: _text_box(view, show, score, unknown, words))


def _surprisal_view(
    score: Score, unknown: Unknown, sentences: list[str], words: Mapping[str, str]
) -> View:
    fields = {"unknown": "words", "near": "word near", "long": "count most"}
    fields |= {"title": "total mean count", "alt": "sentence dearest cost costs total mean"}
    check_view_words(words, "sentence", "examples", "y_label", "blank", **fields)
    check_labels("sentences", sentences, len(sentences), "example")
    for sentence in sentences:
        problem = _not_understood(sentence, score, unknown, words)
        if problem:
            raise ValueError(f"the sentence {sentence!r} cannot be scored: {problem}")
    options = {sentence: sentence for sentence in sentences}
    return View(
        "surprisal-box",
        [Control("sentence", words["sentence"], "choice", options, sentences[0])],
        lambda state: draw_surprisal_box(*_costs(score, state["sentence"]), words),
        lambda state: _told_sentence(state["sentence"], *_costs(score, state["sentence"]), words),
    )


def _costs(score: Score, sentence: str) -> tuple[list[str], list[float]]:
    tokens, costs = score(sentence)
    check_labels("tokens of score", list(tokens), len(costs), "surprisal")
    for token, cost in zip(tokens, costs, strict=True):
        if not cost >= 0:
            raise ValueError(f"the surprisal of {token!r} is {cost}; -log p is at least 0")
    return list(tokens), [float(cost) for cost in costs]


def _not_understood(sentence: str, score: Score, unknown: Unknown, words: Mapping[str, str]) -> str:
    """Say why a sentence has no surprisals, in the reader's words; "" when it has."""
    if not sentence.strip():
        return words["blank"]
    strange = unknown(sentence)
    if strange:
        told = [words["unknown"].format(words=", ".join(strange))]
        near = {word: close for word, close in strange.items() if close}
        told += [
            words["near"].format(word=word, near=", ".join(close)) for word, close in near.items()
        ]
        return " ".join(told)
    count = len(score(sentence)[0])
    if count == 0:
        return words["blank"]
    return words["long"].format(count=count, most=_MOST_TOKENS) if count > _MOST_TOKENS else ""


def draw_surprisal_box(tokens: list[str], costs: list[float], words: Mapping[str, str]) -> Figure:
    """Draw the cost of each token as a bar over it; what cannot come is hatched, and has ∞."""
    most = max([5.0, *(cost for cost in costs if math.isfinite(cost))])
    wide = max(10, len(tokens))
    least = 0.05 if len(tokens) <= 20 else 1.0  # where bars are narrow, numbers would touch
    with card_style():
        figure = still_card(7.5, 3.9)
        panel = panel_at(figure, 0.75, 0.5, 6.5, 2.2)
        for place, cost in enumerate(costs):
            height = _draw_cost(panel, place, cost, most)
            if cost >= least:
                panel.text(place, height + 0.02 * most, _cost_words(cost), ha="center", size=10)
        panel.set(xlim=(-0.7, wide - 0.3), ylim=(0, 1.18 * most))
        panel.set_xticks(range(len(tokens)), tokens, rotation=90)
        panel.tick_params(axis="x", length=0, pad=2)
        panel.grid(False, axis="x")
        panel.set_ylabel(words["y_label"])
        panel.set_title(words["title"].format(**_sums(costs)))
        return write_ticks(figure)


def _draw_cost(panel: Axes, place: int, cost: float, most: float) -> float:
    if math.isfinite(cost):
        height, look = round(cost, 2), {"color": PALETTE["blue"]}
    else:
        height, look = most, {"color": PALETTE["orange"], "ec": PALETTE["ink"], "hatch": "///"}
    panel.bar(place, height, width=0.72, **look)
    return height


def _sums(costs: list[float]) -> dict[str, str]:
    total = math.fsum(costs)
    return {
        "total": _cost_words(total),
        "mean": _cost_words(total / len(costs), 2),
        "count": written_number(len(costs)),
    }


def _cost_words(cost: float, digits: int = 1) -> str:
    return written_number(cost, digits) if math.isfinite(cost) else "∞"


def _told_sentence(
    sentence: str, tokens: list[str], costs: list[float], words: Mapping[str, str]
) -> str:
    dearest = max(range(len(costs)), key=costs.__getitem__)
    told = [f"{t} {_cost_words(c)}" for t, c in zip(tokens, costs, strict=True) if c >= 0.05]
    sums = _sums(costs)
    return words["alt"].format(
        sentence=sentence,
        dearest=tokens[dearest],
        cost=_cost_words(costs[dearest]),
        costs=written_list(told),
        total=sums["total"],
        mean=sums["mean"],
    )


def _text_box(
    view: View, show: Show, score: Score, unknown: Unknown, words: Mapping[str, str]
) -> list:
    """Make the widgets: the given sentences, a box to type in, and what is said about the typed."""
    widgets = load_widgets()
    (given,) = view.controls
    wide = {"width": "44em", "max_width": "100%"}
    free = {"description_width": "initial"}
    examples = dial(given)
    examples.description, examples.layout = words["examples"], wide
    box = widgets.Text(
        given.start, description=given.label, continuous_update=False, layout=wide, style=free
    )
    said = widgets.HTML('<p role="status"></p>')

    def typed(change: Any) -> None:
        problem = _not_understood(change.new, score, unknown, words)
        said.value = f'<p role="status">{html.escape(problem)}</p>'
        if not problem:
            show({"sentence": change.new})

    def chosen(change: Any) -> None:
        box.value = change.new

    box.observe(typed, "value")
    examples.observe(chosen, "value")
    return [examples, box, said]
