"""The palette, measured: WCAG's contrasts, and series that differ in greyscale too."""

import itertools
import re

import pytest
from matplotlib.colors import to_rgb

from course_build.run.jobs import ROOT
from course_lib.plots.card import PALETTE, SERIES_LOOKS

WORDS = {"ink", "muted"}
GROUND = {"border", "card"}  # of the card itself; nothing is said by them
SERIES = sorted(PALETTE.keys() - WORDS - GROUND)
TEXT, GRAPHICS = 4.5, 3.0  # WCAG 2.1, 1.4.3 and 1.4.11
STEP = 1.3  # between the greys of two series; they differ in dash and marker besides
CELLS = re.compile(r"fill: (#[0-9a-f]{6}); stroke: #(?:ffffff|d8dee9)")  # a number stands in each

FIGURES = sorted(ROOT.glob("figures/*/*.svg"))


def luminance(colour):
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(one, other):
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_contrast_is_measured_as_wcag_defines_it():
    assert contrast("black", "white") == pytest.approx(21)
    assert contrast("#777777", "white") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("name", sorted(WORDS))
def test_words_can_be_read_on_the_card(name):
    assert contrast(PALETTE[name], PALETTE["card"]) >= TEXT


@pytest.mark.parametrize("name", SERIES)
def test_a_series_can_be_seen_on_the_card(name):
    assert contrast(PALETTE[name], PALETTE["card"]) >= GRAPHICS


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(SERIES, 2)))
def test_two_series_differ_in_greyscale(one, other):
    assert contrast(PALETTE[one], PALETTE[other]) >= STEP


def test_every_series_has_its_own_dash_and_marker():
    for name in ("color", "linestyle", "marker"):
        assert len({look[name] for look in SERIES_LOOKS}) == len(SERIES_LOOKS)


def test_the_card_stands_out_from_a_dark_page():
    assert contrast(PALETTE["card"], "#111111") >= GRAPHICS


@pytest.mark.delivery  # the committed figures are made last, by `make figures`
@pytest.mark.parametrize("path", FIGURES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_committed_figure_is_drawn_in_colours_that_can_be_seen(path):
    svg = path.read_text(encoding="utf-8").lower()
    drawn = set(re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", svg))
    ground = {PALETTE[name].lower() for name in GROUND} | set(CELLS.findall(svg))
    faint = {c for c in drawn - ground if contrast(c, PALETTE["card"]) < GRAPHICS}
    assert faint == set()
    cells = set(CELLS.findall(svg))
    assert {cell for cell in cells if contrast(cell, PALETTE["ink"]) < TEXT} == set()
