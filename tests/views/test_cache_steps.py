"""The steps of the cache: counts and memory from the definition, token by token."""

import re

import pytest

from .samples import STORY, alts, call, displayed, frames

TOKENS = STORY["en"]["labels"].split()  # 3 of the prompt, then 3 new ones
KV_BYTES = 2 * 4 * 16 * 2  # keys and values of 4 layers, 16 numbers wide, two bytes each


def generated(cached):
    """Run a generation with a list for a cache: (new, read, kept, all so far) after each step."""
    cache, total, seen = [], 0, []
    for end in range(3, 6):
        before = list(cache) if cached else []
        new = [position for position in range(end) if position not in before]
        total += len(new)
        cache = before + new if cached else []
        seen.append((len(new), len(before), len(cache), total))
    return seen


@pytest.mark.parametrize("cached", [True, False])
def test_the_words_say_what_a_generation_does(cached):
    told = alts("cache_steps")
    for step, (new, read, kept, total) in enumerate(generated(cached)):
        phase = f"decode step {step}" if step else "prefill"
        memory = f"{kept * 12.5:.0f}"
        assert told[f"{step},{int(not cached)}"] == (
            f"Grid at {phase}, {'with' if cached else 'without'} a cache: {TOKENS[2 + step]}, "
            f"new {new}, read {read}, kept {kept}, {memory} KB, all {total}."
        )


def test_the_last_token_is_never_read():
    told = " ".join(alts("cache_steps").values())
    assert f": {TOKENS[-2]}," in told
    assert f": {TOKENS[-1]}," not in told


def test_memory_is_positions_times_the_bytes_of_one():
    told = alts("cache_steps", memory_per_token=KV_BYTES / 1024)
    assert f" {5 * KV_BYTES / 1024:.1f} KB" in told["2,0"]
    assert " 0 KB" in told["2,1"]


def test_the_grid_shows_new_old_and_missing_positions():
    shown = frames("cache_steps")
    pluses = {state: len(re.findall(r">\+</text>", f["svg"])) for state, f in shown.items()}
    assert pluses == {"0,0": 6, "1,0": 2, "2,0": 2, "0,1": 6, "1,1": 8, "2,1": 10}
    assert f">→ {TOKENS[4]}</text>" in shown["1,0"]["svg"]
    assert f">{TOKENS[5]}</text>" not in shown["1,0"]["svg"]  # nobody knows it yet
    assert ">stored: 4 positions, 50 KB</text>" in shown["1,0"]["svg"]


def test_each_bar_of_the_work_has_its_name_and_its_count_in_one_row():
    found = re.findall(r' y="([\d.]+)"[^>]*>([^<]+)<', frames("cache_steps")["1,1"]["svg"])
    heights = {words: float(y) for y, words in found}
    assert heights["in this step"] == pytest.approx(heights["4"], abs=3)
    assert heights["since the start"] == pytest.approx(heights["7"], abs=3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prompt_tokens": 6}, "prompt_tokens must be from 1 to 5.*got 6"),
        ({"prompt_tokens": 0}, "prompt_tokens must be from 1 to 5"),
        ({"memory_per_token": 0}, "memory_per_token"),
        ({"token_labels": ["a", "b", "c", " "]}, r"token_labels\[3\] is blank"),
        ({"token_labels": list("abcdefghijklmnopq")}, "17 tokens leave no room"),
        ({"token_labels": list("abcdefghijklmn"), "prompt_tokens": 1}, "26 pictures are too many"),
    ],
)
def test_what_cannot_be_drawn_is_refused(changes, message):
    with displayed(), pytest.raises(ValueError, match=message):
        call("cache_steps", "en", **changes)


def test_live_the_step_slides_and_the_cache_can_be_left_out(live_view):
    (step, cache), picture = live_view("cache_steps")
    assert list(step.options) == ["prefill", "decode step 1", "decode step 2"]
    step.value = "decode step 2"
    assert "new 1, read 4, kept 5, 62 KB, all 5." in picture.value
    cache.value = "without a cache"
    assert "new 5, read 0, kept 0, 0 KB, all 12." in picture.value
