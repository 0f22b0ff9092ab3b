"""The sampling dial: what it draws and says is what the settings leave of the distribution."""

import itertools
import math
import re

import pytest

from course_lib.sampling import token_distribution

from .samples import LOGITS, VOCABULARY, call, displayed, frames, output

LABELS = VOCABULARY["en"]["labels"].split()
SETTINGS = list(itertools.product((0.5, 1.0, 2.0), (None, 3), (None, 0.9, 0.6)))


def left(temperature, top_k, top_p):
    """A nucleus by search: the smallest set of tokens that reaches the mass, of all sets."""
    weights = [math.exp(logit / temperature) for logit in LOGITS]
    tokens = range(len(LOGITS))
    if top_k:
        tokens = sorted(tokens, key=lambda t: -weights[t])[:top_k]
    total = sum(weights[t] for t in tokens)
    sets = (set(s) for n in range(1, 6) for s in itertools.combinations(tokens, n))
    mass = {frozenset(s): sum(weights[t] for t in s) / total for s in sets}
    reaching = [s for s, m in mass.items() if m >= (top_p or 1) - 1e-12]
    kept = min(reaching, key=lambda s: (len(s), -mass[s]))
    return [weights[t] / total / mass[kept] if t in kept else 0.0 for t in range(len(LOGITS))]


@pytest.mark.parametrize("place", range(18))
def test_each_picture_shows_what_its_settings_leave(place):
    state = list(itertools.product(range(3), range(2), range(3)))[place]
    frame = frames("sampling_dial")[",".join(map(str, state))]
    temperature, top_k, top_p = SETTINGS[place]
    probs = left(temperature, top_k, top_p)
    kept = [(label, p) for label, p in zip(LABELS, probs, strict=True) if p]
    said = ", ".join(f"{label} {f'{p:.2f}' if p >= 0.005 else '<0.01'}" for label, p in kept)
    setting = f"{temperature:.1f}, {top_k or 'off'}, {f'{top_p:.2f}' if top_p else 'off'}"
    assert frame["alt"] == (
        f"Bars. Setting by setting: {setting}. Possible are {len(kept)}, all 5. {said}."
    )
    assert f">{len(kept)} of 5 words can still come</text>" in frame["svg"]
    drawn = re.findall(r">(0|0\.\d\d|1\.00|&lt;0\.01)</text>", frame["svg"])
    ticks = 5  # of the axis: 0.00, 0.25 ... 1.00
    written = [f"{p:.2f}" if p >= 0.005 else "&lt;0.01" for p in probs]
    assert drawn[ticks:] == [w if p else "0" for w, p in zip(written, probs, strict=True)]


def test_the_librarys_own_sampling_gives_the_same_pictures():
    def ours(temperature, top_k, top_p):
        return token_distribution(LOGITS, temperature, top_k, top_p)

    assert frames("sampling_dial", distribution=ours) == frames("sampling_dial")


def test_a_chance_that_rounds_to_nothing_is_not_called_nothing():
    shown = frames("sampling_dial", distribution=lambda *_: [0.976, 0.0, 0.02, 0.0, 0.004])
    assert shown["1,0,0"]["alt"].endswith(
        "Possible are 3, all 5. Sun 0.98, Star 0.02, Eclipse <0.01."
    )
    assert shown["1,0,0"]["svg"].count(">&lt;0.01</text>") == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"distribution": lambda *_: [0.5, 0.4]}, "token_labels must hold 2 labels"),
        ({"distribution": lambda *_: [0.5, 0.4, 0, 0, 0]}, "must sum to 1"),
        ({"distribution": lambda *_: [1.5, -0.5, 0, 0, 0]}, "must sum to 1"),
        ({"distribution": lambda *_: [math.nan] * 5}, "every value must be finite"),
        ({"distribution": lambda *_: [1.0], "token_labels": ["a"]}, "1 tokens make no readable"),
    ],
)
def test_what_is_no_distribution_is_refused(changes, message):
    with displayed(), pytest.raises(ValueError, match=message):
        call("sampling_dial", "en", **changes)


def test_live_the_dials_are_finer(live_view):
    (temperature, top_k, top_p), picture = live_view("sampling_dial")
    assert list(temperature.options)[:2] == ["0.1", "0.2"]
    assert list(top_k.options) == ["off", "4", "3", "2", "1"]
    assert list(top_p.options)[:2] == ["off", "0.95"]
    assert (temperature.value, top_k.value, top_p.value) == ("1.0", "off", "off")
    before = picture.value
    temperature.value, top_k.value = "0.3", "2"
    assert picture.value != before
    probs = left(0.3, 2, None)
    assert f"Sun {probs[0]:.2f}, Moon {probs[1]:.2f}." in picture.value
    top_k.value, temperature.value = "off", "1.0"
    assert picture.value == before


def test_the_first_picture_is_that_of_the_model_itself():
    data, _ = output("sampling_dial", "en")
    assert "Setting by setting: 1.0, off, off." in data["text/plain"]
