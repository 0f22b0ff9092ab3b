"""The figures: that they show the numbers, can be read by anyone, and are the same every time."""

import ast
import base64
import hashlib
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Rectangle
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D, Bbox

from course_lib.plots import card, show
from course_lib.plots.attention_map import draw_attention
from course_lib.plots.cache_growth import draw_cache_growth
from course_lib.plots.card import PALETTE, wrap_label
from course_lib.plots.growth import draw_growth
from course_lib.plots.loss import draw_loss
from course_lib.plots.mask_panels import draw_masks
from course_lib.plots.position_waves import draw_positions
from course_lib.plots.roofline import draw_roofline
from course_lib.plots.sampling_bars import draw_sampling
from course_lib.plots.show import show_figure
from course_lib.plots.variance import draw_variance

ROOT = Path(__file__).resolve().parent.parent
PLOTS = sorted((ROOT / "course_lib" / "plots").glob("*.py"))
SVG = "{http://www.w3.org/2000/svg}"

WAVES = [
    [(math.cos if c % 2 else math.sin)(p / 10_000 ** ((c - c % 2) / 8)) for c in range(8)]
    for p in range(81)
]
CAUSAL = np.tri(6, dtype=bool)
PADDING = np.tile([True, True, True, True, False, False], (6, 1))
CROSS = np.tile([True, True, True, True, True, False], (4, 1))
WEIGHTS = [[1.0, 0.0, 0.0], [0.33, 0.67, 0.0], [0.248, 0.248, 0.504]]
POLICIES = [
    [0.644, 0.237, 0.087, 0.032],
    [0.455, 0.276, 0.167, 0.102],
    [0.731, 0.269, 0.0, 0.0],
    [0.665, 0.245, 0.09, 0.0],
]
SIZES = [1, 4, 16, 64]

WORDS = {"title": "Заголовок рисунка", "x_label": "ключ, который читают", "y_label": "запрос"}
AXES = {"x_label": "шаг обучения", "y_label": "потеря, нат на токен"}

DRAWINGS = {
    "positions": (
        draw_positions,
        {
            "table": WAVES,
            "pairs": ((0, 1), (4, 5)),
            "panel_titles": ["Быстрая пара: координаты 0 и 1", "Медленная пара"],
            "series_labels": ["синус (чётный столбец)", "косинус (нечётный столбец)"],
            **AXES,
        },
    ),
    "masks": (
        draw_masks,
        {
            "masks": [PADDING, CAUSAL, PADDING & CAUSAL, CROSS],
            "panel_titles": ["Дополнение", "Причинная", "Обе вместе", "Перекрёстное внимание"],
            "legend": ["1: читать разрешено", "0: читать запрещено"],
            **AXES,
        },
    ),
    "attention": (
        draw_attention,
        {"weights": WEIGHTS, "token_labels": ["токен 0", "токен 1", "токен 2"], **WORDS},
    ),
    "loss": (
        draw_loss,
        {
            "curves": {
                "с причинной маской": [2 * 0.95**i for i in range(121)],
                "без причинной маски": [2 * 0.97**i for i in range(121)],
                "на случайных токенах": [1.8] * 121,
            },
            "level": (math.log(6), "ln 6: модель ничего не знает"),
            **WORDS,
        },
    ),
    "sampling": (
        draw_sampling,
        {
            "distributions": POLICIES,
            "panel_titles": ["температура 1", "температура 2", "top-k", "top-p (ядро)"],
            **AXES,
        },
    ),
    "variance": (
        draw_variance,
        {
            "d_k": SIZES,
            "unscaled": [1.01, 4.1, 15.8, 64.5],
            "scaled": [1.01, 1.02, 0.99, 1.01],
            "series_labels": ["q·k, измерено", "q·k / √d_k, измерено"],
            "theory_labels": ["теория: d_k", "теория: 1"],
            **WORDS,
        },
    ),
    "growth": (
        draw_growth,
        {
            "lengths": [32, 64, 128, 256, 512],
            "costs": {
                "каждый токен заново": [124.0, 502.0, 2070.0, 8910.0, 40700.0],
                "с кэшем": [7.6, 15.8, 33.6, 75.7, 186.0],
            },
            "slopes": [2.09, 1.15],
            "slope_labels": ["подогнанный наклон 2.09 ± 0.02", "подогнанный наклон 1.15 ± 0.03"],
            **WORDS,
        },
    ),
    "cache-growth": (
        draw_cache_growth,
        {
            "tokens": [2**power for power in range(7, 18)],
            "models": {
                "GPT-2 (12 × 768)": (3.69e-5, 0.249),
                "GPT-2 XL (48 × 1600)": (3.07e-4, 3.12),
                "GPT-3 (96 × 12288)": (4.72e-3, 349.0),
            },
            "legend": ["веса той же модели", "кэш сравнялся с весами"],
            **WORDS,
        },
    ),
    "roofline": (
        draw_roofline,
        {
            "bandwidth": 34,
            "peak": 240,
            "points": {
                "декодирование, снизу — батч": [
                    ("1", 0.5, 17.0),
                    ("8", 3.2, 108.0),
                    ("16", 5.15, 175.0),
                    ("32", 7.47, 240.0),
                    ("64", 9.64, 240.0),
                ],
                "предзаполнение, сверху — токены": [("64", 31.8, 240.0), ("1024", 477.5, 240.0)],
            },
            "legend": ["что допускает машина", "равновесие: 7,1 FLOP/байт"],
            **WORDS,
        },
    ),
}
each_drawing = pytest.mark.parametrize("name", DRAWINGS)
ALT = 'Кривая < 0.02 & "маска" > 0'


def draw(name, **changes):
    verb, arguments = DRAWINGS[name]
    return verb(**{**arguments, **changes})


@pytest.fixture(scope="module")
def figures():
    return {name: draw(name) for name in DRAWINGS}


@pytest.fixture(scope="module")
def svgs(figures):
    return {name: show.figure_svg(figure, name, ALT) for name, figure in figures.items()}


@pytest.fixture(scope="module")
def painted(svgs):
    return {name: list(painted_texts(svg)) for name, svg in svgs.items()}


def labels_of(value):
    """Every label in the arguments of a drawing verb."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [label for key, inner in value.items() for label in [key, *labels_of(inner)]]
    if isinstance(value, list | tuple):
        return [label for inner in value for label in labels_of(inner)]
    return []


def painted_texts(svg):
    """What is written in an SVG, and the box it covers there: (words, style, box)."""
    for text in ElementTree.fromstring(svg).iter(f"{SVG}text"):
        words, style, turn = "".join(text.itertext()), text.get("style"), text.get("transform")
        points = float(re.search(r"([\d.]+)px", style).group(1))
        bold = "bold" if "700" in style else "normal"
        font = FontProperties(family="DejaVu Sans", weight=bold)
        width = TextPath((0, 0), words, size=points, prop=font).get_extents().width
        anchor = re.search(r"text-anchor: (\w+)|$", style).group(1) or "start"
        left = {"start": 0, "middle": -width / 2, "end": -width}[anchor]
        numbers = [float(number) for number in re.findall(r"-?[\d.]+", turn)]
        if turn.startswith("translate"):  # translate(x y) or translate(x y) rotate(angle)
            numbers = [*numbers[2:], 0.0][:1] + numbers[:2]
        angle, x, y = numbers  # of rotate(angle x y)
        box = Bbox.from_extents(left, -0.75 * points, left + width, 0.2 * points)
        yield words, style, box.transformed(Affine2D().rotate_deg(angle).translate(x, y))


def contrast(one, other):
    def luminance(colour):
        parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    light, dark = sorted((luminance(to_rgb(one)), luminance(to_rgb(other))), reverse=True)
    return (light + 0.05) / (dark + 0.05)


# --- the same every time, and no trace left ---


def test_bytes_do_not_depend_on_the_hash_seed_and_pyplot_is_never_imported(svgs):
    code = (
        "import hashlib, sys\n"
        "import test_plots as t\n"
        "for name in t.DRAWINGS:\n"
        "    svg = t.show.figure_svg(t.draw(name), name, t.ALT)\n"
        "    print(hashlib.sha256(svg.encode()).hexdigest())\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONHASHSEED": "12345"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [
        hashlib.sha256(svg.encode()).hexdigest() for svg in svgs.values()
    ]


@each_drawing
def test_a_figure_is_the_same_when_drawn_and_written_again(svgs, name):
    figure = draw(name)
    assert show.figure_svg(figure, name, ALT) == svgs[name]
    assert show.figure_svg(figure, name, ALT) == svgs[name]


@each_drawing
def test_the_callers_style_changes_nothing_and_is_left_alone(svgs, name):
    theirs = {"font.size": 31.0, "axes.facecolor": "black", "axes.grid": False, "lines.marker": "*"}
    with matplotlib.rc_context({**theirs, "svg.fonttype": "path", "savefig.facecolor": "red"}):
        before = dict(matplotlib.rcParams)
        assert show.figure_svg(draw(name), name, ALT) == svgs[name]
        assert dict(matplotlib.rcParams) == before


def test_arguments_are_not_changed():
    table = np.array(WAVES)
    draw("positions", table=table)
    assert table.tolist() == WAVES


# --- what a reader, sighted or not, gets ---


@each_drawing
def test_the_svg_says_what_it_shows(svgs, name):
    root = ElementTree.fromstring(svgs[name])
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    assert root.get("aria-label") == ALT
    assert root[0].tag == f"{SVG}title"
    assert root[0].text == ALT


@each_drawing
def test_jupyterlab_finds_the_namespace_whatever_the_alt_text_says(svgs, name):
    assert re.search(r"<svg[^>]+xmlns=[^>]+svg", svgs[name]).start() == 0


@each_drawing
def test_the_svg_is_vector_text_that_fits_a_notebook_column(svgs, name):
    root = ElementTree.fromstring(svgs[name])
    assert len(svgs[name].encode()) < 120_000
    assert 300 <= int(root.get("width")) <= 720
    assert not list(root.iter(f"{SVG}image"))
    assert "Date" not in svgs[name]
    assert "metadata" not in svgs[name]
    assert svgs[name].endswith("</svg>\n")


@each_drawing
def test_every_label_is_in_the_svg_as_text_in_a_font_with_cyrillic(painted, name):
    wanted = " ".join(labels_of(list(DRAWINGS[name][1].values()))).split()
    assert set(wanted) <= set(" ".join(words for words, _, _ in painted[name]).split())
    for _, style, _ in painted[name]:
        assert "'DejaVu Sans', 'Verdana', 'Arial', sans-serif" in style
        assert float(re.search(r"([\d.]+)px", style).group(1)) >= 10  # a unit shows as a point


@each_drawing
def test_no_label_is_clipped_or_covers_another(svgs, painted, name):
    canvas = list(map(float, ElementTree.fromstring(svgs[name]).get("viewBox").split()))
    boxes = [(words, box) for words, _, box in painted[name]]
    for index, (words, box) in enumerate(boxes):
        assert min(box.x0, box.y0, canvas[2] - box.x1, canvas[3] - box.y1) > 2, words
        for other_words, other in boxes[:index]:
            wide = min(box.x1, other.x1) - max(box.x0, other.x0)
            high = min(box.y1, other.y1) - max(box.y0, other.y0)
            assert wide < 0.5 or high < 0.5, f"{words!r} covers {other_words!r}"


@each_drawing
def test_the_card_is_opaque_and_light_to_its_edges(figures, name):
    card = next(p for p in figures[name].artists if p.get_zorder() == -10)
    box = card.get_window_extent()
    assert card.get_alpha() is None
    assert to_rgb(card.get_facecolor()) == to_rgb(PALETTE["card"]) == (1, 1, 1)
    assert box.width >= figures[name].bbox.width - 3
    assert box.height >= figures[name].bbox.height - 3


@each_drawing
def test_all_words_are_dark_on_the_light_card(painted, name):
    for words, style, _ in painted[name]:
        colour = re.search(r"fill: (#\w+)", style).group(1)
        assert contrast(colour, PALETTE["card"]) > 7, words


@pytest.mark.parametrize("name", ["masks", "attention"])
def test_numbers_contrast_with_their_cells(figures, name):
    for axes in figures[name].get_axes():
        fills = [p.get_facecolor() for p in axes.patches if isinstance(p, Rectangle)]
        for fill in fills:
            assert contrast(fill[:3], PALETTE["ink"]) >= 4.5


@pytest.mark.parametrize("name", ["positions", "loss", "variance", "growth"])
def test_lines_differ_without_colour(figures, name):
    lines = [line for axes in figures[name].get_axes()[-1:] for line in axes.get_lines()]
    looks = {(line.get_linestyle(), str(line.get_marker()), line.is_dashed()) for line in lines}
    assert len(looks) == len(lines) >= 2


# --- that they show the numbers ---


def test_positions_draw_the_columns_they_name(figures):
    panels = figures["positions"].get_axes()
    for panel, columns in zip(panels, ((0, 1), (4, 5)), strict=True):
        drawn = [line.get_ydata().tolist() for line in panel.get_lines()]
        assert drawn == [[row[column] for row in WAVES] for column in columns]
    assert panels[0].get_shared_x_axes().joined(*panels)


def test_masks_write_1_where_reading_is_allowed_and_hatch_the_rest(figures):
    masks = DRAWINGS["masks"][1]["masks"]
    for panel, mask in zip(figures["masks"].get_axes(), masks, strict=True):
        digits = {(t.get_position()): t.get_text() for t in panel.texts}
        hatches = {p.get_xy(): p.get_hatch() for p in panel.patches}
        for (row, column), allowed in np.ndenumerate(mask):
            assert digits[column + 0.5, row + 0.52] == str(int(allowed))
            assert bool(hatches[column, row]) is not bool(allowed)


def test_masks_of_different_sizes_have_cells_of_one_size(figures):
    figure = figures["masks"]
    figure.draw_without_rendering()
    sizes = {
        tuple(
            round(float(d), 3)
            for d in axes.transData.transform((1, 0)) - axes.transData.transform((0, 1))
        )
        for axes in figure.get_axes()
    }
    assert len(sizes) == 1
    width, height = sizes.pop()
    assert width == pytest.approx(height)


def test_attention_writes_every_weight_and_hatches_only_exact_zeros():
    weights = [[1.0, 0.0], [0.0004, 0.9996]]
    panel = draw("attention", weights=weights, token_labels=["a", "b"]).get_axes()[0]
    assert [t.get_text() for t in panel.texts] == ["1.000", "0", "0.000", "1.000"]
    assert [bool(p.get_hatch()) for p in panel.patches] == [False, True, False, False]


def test_more_attention_is_darker(figures):
    fills = [p.get_facecolor() for p in figures["attention"].get_axes()[0].patches]
    darkness = {w: contrast(f[:3], "white") for w, f in zip(np.ravel(WEIGHTS), fills, strict=True)}
    ordered = [darkness[w] for w in sorted(w for w in darkness if w > 0)]
    assert ordered == sorted(ordered)
    assert ordered[0] < ordered[-1]


def test_loss_draws_every_step_from_1_on_a_log_axis_and_the_level(figures):
    panel = figures["loss"].get_axes()[0]
    *curves, level = panel.get_lines()
    for line, losses in zip(curves, DRAWINGS["loss"][1]["curves"].values(), strict=True):
        assert list(line.get_xdata()) == list(range(1, 122))
        assert line.get_ydata().tolist() == losses
    assert list(level.get_ydata()) == [math.log(6)] * 2
    assert panel.get_yscale() == "log"


def test_log_axes_are_written_in_plain_numbers(painted):
    texts = {name: [words for words, _, _ in painted[name]] for name in DRAWINGS}
    assert {"0.01", "0.1", "1"} <= set(texts["loss"])
    assert {"1", "10", *map(str, SIZES)} <= set(texts["variance"])
    assert not {"0.02", "0.05", "0.5"} & set(texts["loss"])  # too many over three decades
    narrow = show.figure_svg(draw("loss", curves={"a": [1.9, 0.1]}, level=None), "loss", ALT)
    assert {"0.1", "0.2", "0.5", "1"} <= {words for words, _, _ in painted_texts(narrow)}


def test_sampling_draws_bars_on_one_scale_and_crosses_out_what_was_removed(figures):
    panels = figures["sampling"].get_axes()
    assert len({panel.get_ylim() for panel in panels}) == 1
    for panel, probs in zip(panels, POLICIES, strict=True):
        kept = [i for i, prob in enumerate(probs) if prob]
        bars = [(round(bar.get_center()[0]), bar.get_height()) for bar in panel.patches]
        assert bars == [(i, probs[i]) for i in kept]
        crosses = [line.get_xdata()[0] for line in panel.get_lines() if line.get_marker() == "x"]
        assert crosses == [i for i in range(4) if i not in kept]
        words = [f"{prob:.2f}" if prob else "0" for prob in probs]
        assert [t.get_text() for t in panel.texts] == words


def test_sampling_never_writes_zero_on_a_token_that_was_kept():
    figure = draw("sampling", distributions=[[0.998, 0.002]], panel_titles=["t"])
    assert [t.get_text() for t in figure.get_axes()[0].texts] == ["1.00", "<0.01"]


def test_many_tokens_move_the_panels_to_more_rows():
    rows = [[1 / 12] * 12] * 3
    panels = draw("sampling", distributions=rows, panel_titles=list("abc")).get_axes()
    assert len({round(panel.get_position().y0, 3) for panel in panels}) == 3


def test_variance_draws_measured_points_over_both_theories(figures):
    lines = figures["variance"].get_axes()[0].get_lines()
    drawn = [(line.get_xdata().tolist(), line.get_ydata().tolist()) for line in lines]
    measured = DRAWINGS["variance"][1]
    assert drawn == [
        (SIZES, measured["unscaled"]),
        (SIZES, SIZES),
        (SIZES, measured["scaled"]),
        (SIZES, [1, 1, 1, 1]),
    ]
    assert [line.get_linestyle() for line in lines] == ["None", "--", "None", ":"]


@pytest.mark.parametrize("name", ["positions", "masks", "loss", "variance"])
def test_a_legend_names_everything_in_the_order_given(figures, name):
    legend = figures[name].legends[0]
    handles = [h.get_label() for h in legend.legend_handles]
    words = [t.get_text() for t in legend.get_texts()]
    arguments = DRAWINGS[name][1]
    wanted = {
        "positions": arguments.get("series_labels"),
        "masks": arguments.get("legend"),
        "loss": [*arguments.get("curves", {}), "ln 6: модель ничего не знает"],
        "variance": ["q·k, измерено", "теория: d_k", "q·k / √d_k, измерено", "теория: 1"],
    }[name]
    assert words == wanted
    assert len(handles) == len(wanted)


def test_the_legend_of_masks_hatches_what_may_not_be_read(figures):
    legend = figures["masks"].legends[0]
    assert [bool(handle.get_hatch()) for handle in legend.legend_handles] == [False, True]


def test_long_legends_grow_the_card_and_leave_the_body_its_size():
    short = draw("loss", curves={"a": [1, 2]}, level=None)
    long = draw("loss", curves={"слово " * 12: [1, 2], "ещё слово " * 7: [2, 3]}, level=None)
    assert long.get_figheight() > short.get_figheight()
    for figure in (short, long):
        figure.draw_without_rendering()
    heights = [f.get_axes()[0].get_window_extent().height / f.dpi for f in (short, long)]
    assert heights[0] == pytest.approx(heights[1], abs=0.02)


def test_labels_wrap_at_spaces_but_not_at_non_breaking_ones():
    assert wrap_label("one two", 20) == "one two"
    assert wrap_label("top-p (ядро), p\u00a0=\u00a00.9", 1.2) == "top-p (ядро),\np\u00a0=\u00a00.9"
    assert wrap_label("Перекрёстное", 0.1) == "Перекрёстное"


def test_tensors_arrays_and_lists_draw_the_same(svgs):
    torch = pytest.importorskip("torch", reason="tensors are drawn where torch is installed")
    for table in (np.array(WAVES), torch.tensor(WAVES, dtype=torch.float64)):
        figure = draw("positions", table=table)
        assert show.figure_svg(figure, "positions", ALT) == svgs["positions"]
    with pytest.raises(ValueError, match=r"table must be .*needs .detach\(\).cpu\(\) first"):
        draw("positions", table=torch.ones(3, 8, requires_grad=True))


# --- errors that teach ---


@pytest.mark.parametrize(
    ("name", "changes", "error", "message"),
    [
        ("positions", {"panel_titles": ["one"]}, ValueError, r"2 labels, one for each pair; got 1"),
        ("positions", {"panel_titles": list("abc")}, ValueError, "2 labels.*; got 3"),
        ("positions", {"panel_titles": "ab"}, TypeError, "must be a list of str; got 'ab'"),
        ("positions", {"series_labels": ["a", " "]}, ValueError, r"series_labels\[1\] is blank"),
        ("positions", {"series_labels": ["a", 1]}, TypeError, r"\[1\] must be a str; got int"),
        ("positions", {"x_label": ""}, ValueError, "x_label is blank; write the words"),
        ("positions", {"y_label": None}, TypeError, "y_label must be a str; got NoneType"),
        ("positions", {"pairs": ((0, 8), (4, 5))}, ValueError, r"from 0 to 7; got \(0, 8\)"),
        ("positions", {"pairs": ((0, True), (4, 5))}, ValueError, "two column numbers"),
        ("positions", {"pairs": ((0, 1, 2), (4, 5))}, ValueError, "two column numbers"),
        ("positions", {"pairs": ()}, ValueError, "at least one pair"),
        ("positions", {"table": [1.0, 2.0]}, ValueError, r"must have 2 axes; got 1: shape \(2,\)"),
        ("positions", {"table": [[1.0], [2.0, 3.0]]}, ValueError, "must be a rectangular table"),
        ("positions", {"table": [[math.nan] * 8]}, ValueError, r"table\[0, 0\] is nan; every"),
        ("positions", {"table": [["a"] * 8]}, TypeError, "table must hold numbers; got list"),
        ("positions", {"table": np.zeros((0, 8))}, ValueError, "is empty: shape .0, 8."),
        ("masks", {"masks": [CAUSAL.astype(float)] * 4}, TypeError, r"masks\[0\] must be bool"),
        ("masks", {"masks": [CAUSAL[0]] * 4}, ValueError, r"must be \[T_q, T_k\]; got shape \(6,"),
        ("masks", {"masks": []}, ValueError, "pass at least one mask"),
        ("masks", {"masks": [np.ones((2, 9), bool)] * 4}, ValueError, "leave no room for legible"),
        ("masks", {"legend": ["1"]}, ValueError, r"one for each value of a cell"),
        ("attention", {"weights": [[0.5, 0.5]]}, ValueError, r"must be square .*shape \(1, 2\)"),
        ("attention", {"weights": np.full((3, 3), 1.5)}, ValueError, r"lie in \[0, 1\]; got 1.5"),
        ("attention", {"weights": np.full((3, 3), -0.1)}, ValueError, "by softmax"),
        ("attention", {"weights": np.eye(13)}, ValueError, "13 tokens are too many"),
        ("attention", {"token_labels": ["a"]}, ValueError, "3 labels, one for each token; got 1"),
        ("attention", {"title": 3}, TypeError, "title must be a str; got int"),
        ("loss", {"curves": {}}, ValueError, "1 to 4 curves; got 0"),
        ("loss", {"curves": {str(i): [1.0] for i in range(5)}}, ValueError, "got 5"),
        ("loss", {"curves": [1.0]}, TypeError, "must map a label to its losses; got list"),
        ("loss", {"curves": {" ": [1.0]}}, ValueError, "a label of curves is blank"),
        ("loss", {"curves": {"a": [1.0, 0.0]}}, ValueError, r"\[1\] is 0; the axis is logarithmic"),
        ("loss", {"curves": {"a": [1.0, math.inf]}}, ValueError, r"\[1\] is inf"),
        ("loss", {"curves": {"a": []}}, ValueError, "is empty"),
        ("loss", {"level": 1.79}, TypeError, r"level must be \(value, label\) or None; got 1.79"),
        ("loss", {"level": (0.0, "ln 1")}, ValueError, "must be above 0"),
        ("loss", {"level": (1.0, "")}, ValueError, "the label of level is blank"),
        ("sampling", {"distributions": [[0.5, 0.4]] * 4}, ValueError, r"sum to 1; got .*sum 0.9"),
        ("sampling", {"distributions": [[1.5, -0.5]] * 4}, ValueError, "must be probabilities"),
        ("sampling", {"distributions": [[1 / 17] * 17] * 4}, ValueError, "17 tokens are too many"),
        ("sampling", {"panel_titles": ["a"]}, ValueError, "one for each distribution; got 1"),
        ("variance", {"scaled": [1.0]}, ValueError, "scaled must hold one variance for each d_k"),
        ("variance", {"unscaled": [0.0] * 4}, ValueError, r"unscaled\[0\] is 0"),
        ("variance", {"d_k": [0, 1, 2, 3]}, ValueError, r"d_k\[0\] is 0"),
        ("variance", {"series_labels": ["a"]}, ValueError, r"series \(unscaled, scaled\); got 1"),
        ("variance", {"theory_labels": ["a"]}, ValueError, r"line \(d_k, 1\); got 1"),
    ],
)
def test_wrong_arguments_are_refused_in_words(name, changes, error, message):
    with pytest.raises(error, match=message):
        draw(name, **changes)


# --- showing ---


def test_a_notebook_gets_one_output_with_svg_alt_and_name(figures, svgs, monkeypatch):
    shown = []
    monkeypatch.setattr(show, "get_ipython", lambda: object())
    monkeypatch.setattr(show, "display", lambda *args, **kwargs: shown.append((args, kwargs)))
    assert show_figure(figures["loss"], name="loss", alt=ALT) is None
    ((bundle,), options) = shown.pop()
    assert shown == []
    assert options == {"raw": True, "metadata": {"image/svg+xml": {"alt": ALT, "name": "loss"}}}
    assert set(bundle) == {"image/svg+xml", "text/html", "text/plain"}
    assert bundle["image/svg+xml"] == svgs["loss"]
    assert bundle["text/plain"] == ALT
    image = ElementTree.fromstring(
        bundle["text/html"].replace("<img", "<img/><img")[6:][:-1] + "/>"
    )
    assert image.get("alt") == ALT  # JupyterLab and nbconvert show this <img>, not the bare SVG
    packed = image.get("src").removeprefix("data:image/svg+xml;base64,")
    assert base64.b64decode(packed).decode() == svgs["loss"]


def test_outside_ipython_the_alt_text_is_printed(figures, capsys):
    show_figure(figures["attention"], name="attention", alt=" Две\n  строки ")
    assert capsys.readouterr().out == "Две строки\n"


def test_a_figure_of_measured_numbers_has_no_name_and_says_so(figures, monkeypatch):
    shown = []
    monkeypatch.setattr(show, "get_ipython", lambda: object())
    monkeypatch.setattr(show, "display", lambda *args, **kwargs: shown.append((args, kwargs)))
    show_figure(figures["roofline"], name=None, alt=ALT)
    show_figure(figures["roofline"], name=None, alt="Другая кривая")
    ((bundle,), options), ((other,), _) = shown
    assert options["metadata"] == {"image/svg+xml": {"alt": ALT, "measured": True}}
    ids = [set(re.findall(r'id="(p[0-9a-f]{10})"', b["image/svg+xml"])) for b in (bundle, other)]
    assert ids[0]
    assert not ids[0] & ids[1]  # two of them on one page keep their own clips


@pytest.mark.parametrize("name", ["", "Loss", "a_b", "a--b", "-a", "рисунок", "a/b", "a b"])
def test_a_name_that_no_file_may_have_is_refused(figures, name):
    with pytest.raises(ValueError, match=re.escape(f"single hyphens; got {name!r}")):
        show_figure(figures["attention"], name=name, alt="x")


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"alt": " \n "}, ValueError, "alt is blank; say in a sentence"),
        ({"alt": None}, TypeError, "alt must be a str; got NoneType"),
        ({"alt": "a\x00b"}, ValueError, "no screen reader can say"),
        ({"alt": "a\ud800b"}, ValueError, "no screen reader can say"),
        ({"name": 3}, TypeError, "name must be a str; got int"),
        ({"figure": [1]}, TypeError, "must be a matplotlib Figure.*got list"),
    ],
)
def test_a_figure_without_description_is_refused(changes, error, message):
    arguments = {"figure": Figure(), "name": "loss", "alt": "x", **changes}
    with pytest.raises(error, match=message):
        show_figure(**arguments)


def test_a_non_breaking_space_in_the_alt_text_is_kept():
    assert show.one_line_alt("кривая\u00a0— вниз\n и  вправо") == "кривая\u00a0— вниз и вправо"


# --- what the notebooks can embed ---


@pytest.mark.parametrize("path", PLOTS, ids=lambda path: path.stem)
def test_every_definition_fits_in_a_notebook_cell_and_knows_only_its_floor(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno - node.lineno < 40, node.name
        if isinstance(node, ast.ImportFrom) and node.module.startswith("course_lib"):
            own = node.module.startswith("course_lib.plots.")
            assert own or node.module == "course_lib.text", node.module
        if isinstance(node, ast.Import | ast.ImportFrom):
            assert "torch" not in ast.unparse(node)
            assert "pyplot" not in ast.unparse(node)


def test_an_axis_speaks_the_readers_language_and_finished_labels_stay(monkeypatch):
    def ticks():
        figure, body = card.new_card(5, 3)
        panel = body.subplots()
        panel.set(xlim=(-0.5, 0.5), xticks=[-0.5, 0.5], title="softmax(x / 0.5), v1.5")
        panel.set(ylim=(9_000, 300_000), yscale="log")
        card.plain_log_ticks(panel.yaxis)
        other = body.add_axes((0, 0, 0.1, 0.1), yticks=[0.5])
        other.set_yticks([0.5], ["x / 0.5"])
        plain = body.add_axes((0.5, 0, 0.1, 0.1), yticks=[0.5])
        card.settled(figure)
        axes = panel.xaxis, panel.yaxis, other.yaxis, plain.yaxis
        return panel.get_title(), [[t.get_text() for t in a.get_ticklabels()] for a in axes]

    english = ["−0.5", "0.5"], ["10000", "20000", "50000", "100000", "200000"], ["x / 0.5"], ["0.5"]
    title, (x, y, z, p) = ticks()
    assert (x, [t for t in y if t in english[1]], z, p) == english
    monkeypatch.setattr("course_lib.text.LANGUAGE", "ru")
    same, (x, y, z, p) = ticks()
    assert (same, x, z, p) == (title, ["−0,5", "0,5"], ["x / 0.5"], ["0,5"])
    assert {"10\N{NO-BREAK SPACE}000", "200\N{NO-BREAK SPACE}000"} <= set(y)
