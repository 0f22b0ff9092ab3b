"""The figures of the chain rule, of surprise and of the next word: numbers and looks."""

import math
import re
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D, Bbox

from course_lib.plots import show
from course_lib.plots.card import PALETTE
from course_lib.plots.chain import draw_chain
from course_lib.plots.next_token import draw_next_token
from course_lib.plots.over_words import draw_over_words

SVG = "{http://www.w3.org/2000/svg}"
ALT = 'Кривая < 0.02 & "слово" > 0'

RUSSIAN = re.findall(
    r"\S+",
    """однажды Солнце находит жемчуг . вскоре Мороз прячет жемчуг . оно спрашивает всех . но
    Облако видит всё и возвращает жемчуг . теперь Солнце и Облако смеются вместе . <end>""",
)
ENGLISH = re.findall(
    r"\S+",
    """once Sun finds pearls . soon Frost hides pearls . it asks everyone . but
    Cloud sees everything and returns pearls . now Sun and Cloud laugh together . <end>""",
)
PROBS = [0.6, 0.217391, 0.5, 0.25, 1, 0.5, 0.181818, 0.666667, 1, 1, 0.5, 0.25, 1, 1, 0.375]
PROBS += [0.17, 0.666667, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0.4, 1, 1, 1]
COSTS = [-math.log(prob) + 0.0 for prob in PROBS]
WRONG = COSTS[:25] + [9.713] + COSTS[26:]
NEXT = [
    [0.217, 0.217, 0.13, 0.13, 0.087, 0.0869, 0.044, 0.044, 0.0434, 0.0002, 0.0001, 0.0],
    [0.322, 0.322, 0.116, 0.116, 0.052, 0.0516, 0.0129, 0.0129, 0.0004, 0.0, 0.0, 0.0],
    [0.1572, 0.1572, 0.12, 0.12, 0.098, 0.098, 0.069, 0.0693, 0.051, 0.02, 0.01, 0.007],
    [0.25, 0.25, 0.15, 0.15, 0.1, 0.1, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
]

DRAWINGS = {
    "chain-ru": (
        draw_chain,
        {
            "log_probs": [-cost for cost in COSTS[:16]],
            "token_labels": RUSSIAN[:16],
            "panel_titles": ("p(токен | все предыдущие)", "сумма логарифмов"),
            "x_labels": ("вероятность", "логарифм правдоподобия, нат"),
            "y_label": "токен, в порядке записи",
        },
    ),
    "chain-en": (
        draw_chain,
        {
            "log_probs": [-cost for cost in COSTS[:10]],
            "token_labels": ENGLISH[:10],
            "panel_titles": ("p(token | all before it)", "sum of the logarithms"),
            "x_labels": ("probability", "log-likelihood so far, nats"),
            "y_label": "token, in the order of writing",
        },
    ),
    "surprisal-ru": (
        draw_over_words,
        {
            "heights": [COSTS, WRONG],
            "token_labels": [RUSSIAN, RUSSIAN[:25] + ["Затмение"] + RUSSIAN[26:]],
            "marked": [[], [25]],
            "panel_titles": ("Сказка как она есть", "Она же, но в конце не то имя"),
            "y_label": "неожиданность, нат",
        },
    ),
    "surprisal-en": (
        draw_over_words,
        {
            "heights": [COSTS, WRONG],
            "token_labels": [ENGLISH, ENGLISH[:25] + ["Eclipse"] + ENGLISH[26:]],
            "marked": [[], [25]],
            "panel_titles": ("A tale as it should be", "The same, with a wrong name at the end"),
            "y_label": "surprisal, nats",
        },
    ),
    "next-ru": (
        draw_next_token,
        {
            "distributions": NEXT,
            "token_labels": ["Солнце", "Луна", "Звезда", "Облако", "Комета", "Дождь", "Ветер"]
            + ["Мороз", "Затмение", "колокольчики", "возвращает", "спрашивает"],
            "panel_titles": ("температура 1", "температура 0.5", "температура 2", "top-p 0.9"),
            "x_label": "вероятность",
            "y_label": "следующий токен",
        },
    ),
    "next-en": (
        draw_next_token,
        {
            "distributions": [row[:9] for row in NEXT[:3]],
            "token_labels": ["Sun", "Moon", "Star", "Cloud", "Comet", "Rain"]
            + ["Wind", "Frost", "Eclipse"],
            "panel_titles": ("temperature 1", "temperature 0.5", "temperature 2"),
            "x_label": "probability",
            "y_label": "next token",
        },
    ),
}
each_drawing = pytest.mark.parametrize("name", DRAWINGS)


def draw(name, **changes):
    verb, arguments = DRAWINGS[name]
    return verb(**{**arguments, **changes})


def written(figure, name):
    return show.figure_svg(figure, name, ALT)


@pytest.fixture(scope="module")
def figures():
    return {name: draw(name) for name in DRAWINGS}


@pytest.fixture(scope="module")
def svgs(figures):
    return {name: written(figure, name) for name, figure in figures.items()}


@pytest.fixture(scope="module")
def painted(svgs):
    return {name: list(painted_texts(svg)) for name, svg in svgs.items()}


def painted_texts(svg):
    """What is written in an SVG, and the box it covers there: (words, style, box)."""
    for element in ElementTree.fromstring(svg).iter(f"{SVG}text"):
        words, style = "".join(element.itertext()), element.get("style")
        turn = element.get("transform")
        points = float(re.search(r"([\d.]+)px", style).group(1))
        font = FontProperties(family="DejaVu Sans", weight="bold" if "700" in style else "normal")
        width = TextPath((0, 0), words, size=points, prop=font).get_extents().width
        anchor = re.search(r"text-anchor: (\w+)|$", style).group(1) or "start"
        left = {"start": 0, "middle": -width / 2, "end": -width}[anchor]
        numbers = [float(number) for number in re.findall(r"-?[\d.]+", turn)]
        if turn.startswith("translate"):  # translate(x y) or translate(x y) rotate(angle)
            numbers = [*numbers[2:], 0.0][:1] + numbers[:2]
        angle, x, y = numbers  # of rotate(angle x y)
        box = Bbox.from_extents(left, -0.75 * points, left + width, 0.2 * points)
        yield words, style, box.transformed(Affine2D().rotate_deg(angle).translate(x, y))


# --- the same every time ---


@pytest.mark.parametrize("name", ["chain-ru", "surprisal-ru", "next-ru"])
def test_a_figure_is_the_same_when_drawn_again_whatever_the_callers_style(svgs, name):
    theirs = {"font.size": 31.0, "axes.facecolor": "black", "axes.grid": False}
    with matplotlib.rc_context(theirs):
        assert written(draw(name), name) == svgs[name]


def test_a_trained_models_last_digits_leave_no_trace(svgs):
    def nudged(values):
        return [value + (1e-7 if i % 2 else -1e-7) if value else value
                for i, value in enumerate(values)]  # fmt: skip

    changes = {
        "chain-ru": {"log_probs": nudged([-cost for cost in COSTS[:16]])},
        "surprisal-ru": {"heights": [nudged(COSTS), nudged(WRONG)]},
        "next-ru": {"distributions": [nudged(row) for row in NEXT]},
    }
    for name, nudges in changes.items():
        assert written(draw(name, **nudges), name) == svgs[name]


def test_arguments_are_not_changed():
    table = np.array(NEXT)
    draw("next-ru", distributions=table)
    assert table.tolist() == NEXT


# --- what a reader gets ---


@each_drawing
def test_the_svg_fits_a_notebook_column_and_the_repository(svgs, name):
    root = ElementTree.fromstring(svgs[name])
    assert 300 <= int(root.get("width")) <= 720
    assert int(root.get("height")) <= 960
    assert len(svgs[name].encode()) < 120_000


@each_drawing
def test_no_label_is_clipped_or_covers_another_and_all_are_dark(svgs, painted, name):
    canvas = list(map(float, ElementTree.fromstring(svgs[name]).get("viewBox").split()))
    for index, (words, style, box) in enumerate(painted[name]):
        assert min(box.x0, box.y0, canvas[2] - box.x1, canvas[3] - box.y1) > 2, words
        assert re.search(r"fill: (#\w+)", style).group(1) in (
            PALETTE["ink"].lower(),
            PALETTE["muted"].lower(),
        )
        assert float(re.search(r"([\d.]+)px", style).group(1)) >= 10
        for other_words, _, other in painted[name][:index]:
            wide = min(box.x1, other.x1) - max(box.x0, other.x0)
            high = min(box.y1, other.y1) - max(box.y0, other.y0)
            assert wide < 0.5 or high < 0.5, f"{words!r} covers {other_words!r}"


def labels_of(value):
    if isinstance(value, str):
        return [value]
    inner = value if isinstance(value, list | tuple) else []
    return [label for item in inner for label in labels_of(item)]


@each_drawing
def test_every_label_is_written(painted, name):
    said = " ".join(words for words, _, _ in painted[name]).split()
    wanted = " ".join(labels_of(list(DRAWINGS[name][1].values()))).split()
    assert len(wanted) > 10
    assert set(wanted) <= set(said)


# --- that they show the numbers ---


def test_the_chain_has_a_bar_for_every_factor_and_the_sum_so_far(figures):
    factors, sums = figures["chain-ru"].get_axes()
    assert [bar.get_width() for bar in factors.patches] == [round(p, 3) for p in PROBS[:16]]
    assert [text.get_text() for text in factors.texts] == [f"{p:.3f}" for p in PROBS[:16]]
    (line,) = sums.get_lines()
    running = [math.fsum(-cost for cost in COSTS[: n + 1]) for n in range(16)]
    assert line.get_xdata().tolist() == pytest.approx(running, abs=0.0051)
    assert line.get_ydata().tolist() == list(range(16))
    assert [text.get_text() for text in sums.texts] == [f"\u2212{-s:.2f}" for s in running]
    assert factors.get_ylim() == sums.get_ylim() == (15.6, -0.6)  # the first token is on top
    assert factors.get_xlim() == (0, 1)
    assert sums.get_xlim()[0] < min(running)


def test_a_text_all_but_certain_costs_zero_without_a_sign():
    panel = draw("chain-en", log_probs=[-0.0] + [-0.0004] * 9).get_axes()[1]
    assert {text.get_text() for text in panel.texts} == {"0.00"}


def test_surprisal_has_a_bar_for_every_token_and_points_out_what_is_marked(figures):
    panels = figures["surprisal-ru"].get_axes()
    for panel, costs, marked in zip(panels, (COSTS, WRONG), ([], [25]), strict=True):
        assert [bar.get_height() for bar in panel.patches] == [round(cost, 2) for cost in costs]
        assert [i for i, bar in enumerate(panel.patches) if bar.get_hatch()] == marked
        orange = [to_rgb(bar.get_facecolor()) == to_rgb(PALETTE["orange"]) for bar in panel.patches]
        assert [i for i, is_orange in enumerate(orange) if is_orange] == marked
        said = {round(note.xy[0]): note.get_text() for note in panel.texts}
        assert said == {i: f"{cost:.1f}" for i, cost in enumerate(costs) if cost >= 1}
    assert panels[0].get_ylim() == panels[1].get_ylim()
    assert panels[0].get_ylim()[1] > 9.713


def test_a_marked_token_is_numbered_however_small():
    panel = draw("surprisal-en", marked=[[4], []]).get_axes()[0]
    assert {round(note.xy[0]): note.get_text() for note in panel.texts}[4] == "0.0"


def test_texts_of_different_lengths_keep_one_width_of_bar():
    labels = [RUSSIAN[:10], RUSSIAN]
    figure = draw("surprisal-ru", heights=[COSTS[:10], COSTS], token_labels=labels, marked=[[], []])
    assert len({panel.get_xlim() for panel in figure.get_axes()}) == 1
    zero = draw("surprisal-ru", heights=[[0.0]], token_labels=[["a"]], marked=[[]],
                panel_titles=["b"])  # fmt: skip
    assert zero.get_axes()[0].get_ylim() == (0, 1)


def test_next_token_has_a_bar_for_every_word_and_crosses_out_what_was_removed(figures):
    panels = figures["next-ru"].get_axes()
    assert len({panel.get_xlim() for panel in panels}) == 1
    for panel, row in zip(panels, NEXT, strict=True):
        assert [bar.get_width() for bar in panel.patches] == [round(share, 3) for share in row]
        words = ["<0.01" if 0 < p < 0.005 else f"{p:.2f}" if p else "0" for p in row]
        assert [text.get_text() for text in panel.texts] == words
        crosses = [line.get_ydata()[0] for line in panel.get_lines() if line.get_marker() == "x"]
        assert crosses == [i for i, share in enumerate(row) if share == 0]
        assert panel.get_ylim() == (11.6, -0.6)  # the first word is on top


# --- what is refused ---


@pytest.mark.parametrize(
    ("name", "changes", "error", "message"),
    [
        ("chain-en", {"log_probs": [-math.inf] * 10}, ValueError, "every value must be finite"),
        ("chain-en", {"log_probs": [[-1.0]]}, ValueError, "log_probs must have 1 axes"),
        ("chain-en", {"token_labels": ["a"]}, ValueError, "10 labels, one for each token; got 1"),
        ("chain-en", {"panel_titles": ["a"]}, ValueError, r"one for each panel .*; got 1"),
        ("chain-en", {"x_labels": ["a", " "]}, ValueError, r"x_labels\[1\] is blank"),
        ("chain-en", {"y_label": None}, TypeError, "y_label must be a str"),
        ("surprisal-en", {"heights": [COSTS, [math.nan]]}, ValueError, "must be finite"),
        ("surprisal-en", {"token_labels": [ENGLISH]}, ValueError, "must hold 2 lists"),
        ("surprisal-en", {"token_labels": [ENGLISH, ["a"]]}, ValueError, r"token_labels\[1\]"),
        ("surprisal-en", {"panel_titles": ["a"]}, ValueError, "one for each text; got 1"),
        ("surprisal-en", {"y_label": ""}, ValueError, "y_label is blank"),
        ("next-en", {"token_labels": ["a"]}, ValueError, "9 labels, one for each word; got 1"),
        ("next-en", {"panel_titles": ["a"]}, ValueError, "one for each policy; got 1"),
        ("next-en", {"x_label": " "}, ValueError, "x_label is blank"),
        ("next-en", {"y_label": 1}, TypeError, "y_label must be a str"),
    ],
)
def test_wrong_arguments_are_refused_in_words(name, changes, error, message):
    with pytest.raises(error, match=message):
        draw(name, **changes)
