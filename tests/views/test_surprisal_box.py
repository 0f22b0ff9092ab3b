"""The surprisal box: costs are -log p, and a sentence nobody can score is answered kindly."""

import html
import math
import re

import pytest

from course_lib.tales import grammar_log_likelihood, tale_words, tales
from course_lib.tokens import Vocabulary, unknown_words
from course_lib.views import base

from .samples import PROBS, alts, call, displayed, frames, output


def test_the_words_say_what_each_token_cost():
    told = alts("surprisal_box")
    sun, moon, star = (-math.log(PROBS[word]) for word in ("sun", "moon", "star"))
    assert told["0"] == (
        f"Bars for Sun moon. Dearest: moon, {moon:.1f}. "
        f"Each that costs something: Sun {sun:.1f}, moon {moon:.1f}."
    )
    assert f"Dearest: star, {star:.1f}." in told["1"]
    first, second = (frame["svg"] for frame in frames("surprisal_box").values())
    assert f">{sun + moon:.1f} nats in all, {(sun + moon) / 2:.2f} a token</text>" in first
    drawn = re.findall(r">(\d\.\d)</text>", second)
    assert drawn[-3:] == [f"{cost:.1f}" for cost in (moon, star, sun)]


def test_with_the_grammar_of_the_tales_the_sum_is_the_texts_own():
    vocabulary = Vocabulary(tale_words())

    def score(sentence):
        token_ids = vocabulary.encode(sentence)
        costs = [abs(term) for term in grammar_log_likelihood(token_ids)]
        return [vocabulary.words[token] for token in token_ids], costs

    tale = tales(1, seed=3)[0][:-1]
    impossible = [*tale[:3], tale[0], *tale[4:]]
    sentences = [vocabulary.decode(tale), vocabulary.decode(impossible)]
    shown = frames(
        "surprisal_box",
        sentences=sentences,
        score=score,
        unknown=lambda text: unknown_words(vocabulary, text),
    )
    total = -math.fsum(grammar_log_likelihood(tale))
    assert f">{total:.1f} nats in all," in shown["0"]["svg"]
    assert "∞" not in shown["0"]["svg"]
    assert ">∞ nats in all, ∞ a token</text>" in shown["1"]["svg"]
    assert shown["1"]["svg"].count(">∞</text>") == len(tale) - 3
    assert f"Dearest: {vocabulary.words[tale[0]]}, ∞." in shown["1"]["alt"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sentences": ["Sun dragon."]}, "'Sun dragon.' cannot be scored: .* never met: dragon"),
        ({"sentences": ["sun " * 33]}, "33 tokens are too many, 32 fit"),
        ({"sentences": [" "]}, r"sentences\[0\] is blank"),
        ({"score": lambda text: (["sun"], [-1.0])}, "surprisal of 'sun' is -1.0"),
        ({"score": lambda text: (["sun"], [math.nan])}, "surprisal of 'sun' is nan"),
        ({"score": lambda text: (["sun"], [1.0, 2.0])}, "tokens of score must hold 2 labels"),
    ],
)
def test_what_cannot_be_scored_is_refused(changes, message):
    with displayed(), pytest.raises(ValueError, match=message):
        call("surprisal_box", "en", **changes)


# --- live ---


@pytest.fixture
def box(live_view):
    (examples, text, said), picture = live_view("surprisal_box")
    return examples, text, said, picture


def words_of(said):
    return html.unescape(re.sub(r"<[^>]*>", "", said.value))


def test_a_typed_sentence_gets_its_bars(box):
    _, text, said, picture = box
    assert text.value == "Sun moon."
    text.value = "star"
    assert f"Bars for star Dearest: star, {-math.log(PROBS['star']):.1f}." in picture.value
    assert words_of(said) == ""


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("", "Write a sentence."),
        ("   ", "Write a sentence."),
        ("Sunn dragon", "These words I have never met: Sunn, dragon. Sunn: did you mean sun?"),
        ("<b>moon</b>", "These words I have never met: <b>moon</b>."),
        ("sun " * 40, "40 tokens are too many, 32 fit."),
        (".", "Write a sentence."),
    ],
)
def test_what_cannot_be_scored_is_said_kindly_and_the_picture_stays(box, typed, answer):
    _, text, said, picture = box
    before = picture.value
    text.value = typed
    if typed == "":
        assert text.value == ""
    assert words_of(said) == answer
    assert '<p role="status">' in said.value
    assert "<b>" not in said.value
    assert picture.value == before
    text.value = "moon"
    assert words_of(said) == ""
    assert picture.value != before


def test_a_given_sentence_is_put_into_the_box(box):
    examples, text, _, picture = box
    examples.value = "Moon star sun."
    assert text.value == "Moon star sun."
    assert "Bars for Moon star sun." in picture.value


def test_the_russian_box_speaks_russian(live_view):
    (_, text, said), _ = live_view("surprisal_box", "ru")
    text.value = "Солнцо дракон"
    assert words_of(said) == (
        "Этих слов я не встречал: Солнцо, дракон. Солнцо: может быть, солнце?"
    )


def test_outside_ipython_the_first_picture_is_told(capsys, monkeypatch):
    monkeypatch.setattr(base, "get_ipython", lambda: None)
    call("surprisal_box", "en")
    assert capsys.readouterr().out.startswith("Bars for Sun moon.")
    assert output("surprisal_box", "en")[0]["text/plain"].startswith("Bars for Sun moon.")
