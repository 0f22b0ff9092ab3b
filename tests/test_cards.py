"""The social cards and the site's mark: pictures by code, small, of the size that networks ask."""

import io
from xml.etree import ElementTree

import pytest
from PIL import Image

from course_build.site.cards import CARD_SIZE, INK, draw_card, draw_mark

TITLES = [
    ("A course · Module 4", "The decoder-only language model", "Every claim is run."),
    ("Курс · Модуль 4", "Языковая модель «только декодировщик»", "Каждое утверждение проверено."),
    ("", "Ideas", ""),
]


def pixels(data):
    return Image.open(io.BytesIO(data)).convert("RGB")


@pytest.mark.parametrize("words", TITLES)
def test_a_card_is_small_and_always_the_same(words):
    data = draw_card(*words)
    assert data == draw_card(*words)
    assert len(data) < 100_000
    assert pixels(data).size == CARD_SIZE


@pytest.mark.parametrize("words", TITLES)
def test_nothing_of_a_card_touches_its_edge_or_the_words_the_stairs(words):
    width, height = CARD_SIZE
    image = pixels(draw_card(*words))
    ground = tuple(bytes.fromhex(INK[1:]))
    margins = [(0, 0, 50, height), (width - 50, 0, width, height), (0, 0, width, 50)]
    margins += [(0, height - 30, width, height), (700, 110, 725, 545)]
    for box in margins:
        assert image.crop(box).getcolors() == [((box[2] - box[0]) * (box[3] - box[1]), ground)], box


def test_a_long_title_is_set_smaller_and_one_that_fits_nowhere_is_refused():
    draw_card("", "word " * 40, "")
    with pytest.raises(ValueError, match="too long for a card"):
        draw_card("", "word " * 400, "")
    with pytest.raises(ValueError, match="too long for a card"):
        draw_card("", "Donaudampfschifffahrtsgesellschaftskapitän" * 2, "")


def test_other_words_are_another_card():
    cards = {draw_card(*words) for words in (("a", "b", "c"), ("x", "b", "c"), ("a", "b", "x"))}
    assert len(cards) == 3


def test_the_mark_is_a_staircase():
    root = ElementTree.fromstring(draw_mark())
    assert root.get("viewBox") == "-3 -3 39 39"
    assert len(root) == 1 + 4 + 3 + 2 + 1
