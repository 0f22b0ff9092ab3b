"""The classic cache bugs: the contract refuses and names each; everyday tests let most of it by."""

from functools import partial

import numpy as np
import pytest

from course_lib import text
from course_lib.cache_bugs import CACHE_BUGS, everyday_tests
from course_lib.contracts import ContractViolation, check_cache_contract
from course_lib.contracts.cache.mistakes import CACHE_MISTAKES
from course_lib.decoder_lm.errors import ContextOverflow
from course_lib.decoder_lm.shape import ModelShape, as_arrays, random_parameters
from course_lib.decoder_lm.simple import SimpleDecoder

CLAUSES = {
    "mask_top_left": "single_tokens",
    "no_mask_in_later_chunks": "chunkings",
    "positions_restart": "single_tokens",
    "cache_not_reset": "repeatable",
    "trimmed_too_early": "exactly_full",
    "one_token_reads_the_buffer": "one_chunk",
}
MODELS = [  # layers, width, heads, context, vocabulary, dtype
    (2, 12, 3, 16, 11, np.float64),
    (1, 8, 2, 20, 7, np.float64),
    (2, 16, 4, 24, 30, np.float32),
    (3, 16, 2, 48, 40, np.float32),
]
FIRST, SECOND = [3, 7, 4, 1, 5, 9, 2, 6], [5, 3, 5, 8, 9, 0]
LONG = [(7 * t * t + 3 * t + 1) % 11 for t in range(20)]


def decoder(name, sizes=MODELS[0], seed=1):
    *sizes, dtype = sizes
    shape = ModelShape(*sizes)
    params = as_arrays(random_parameters(shape, 4 * shape.d_model, seed), dtype)
    return CACHE_BUGS.get(name, SimpleDecoder)(params, shape)


def refusal(model):
    sizes = {"vocab_size": model.shape.vocab_size, "context_length": model.shape.context_length}
    with pytest.raises(ContractViolation) as caught:
        check_cache_contract(model.full_logits, model.cached_logits, **sizes)
    return caught.value


def passing(name, first):
    """The everyday tests that a decoder passes, in a model of its own for each test."""
    shape = ModelShape(n_layers=2, d_model=24, n_heads=3, context_length=32, vocab_size=20)
    make = partial(CACHE_BUGS.get(name, SimpleDecoder), random_parameters(shape, 48, 1), shape)
    done = everyday_tests(make, first, SECOND, 8)
    return {test for test, passed in done.items() if passed}


def test_six_bugs_are_entries_of_the_catalogue():
    assert set(CACHE_BUGS) == set(CLAUSES)
    assert set(CACHE_BUGS) <= {mistake.name for mistake in CACHE_MISTAKES}


@pytest.mark.parametrize("name", CACHE_BUGS)
def test_a_bug_is_a_step_or_two_and_nothing_else(name):
    """The arithmetic, and how chunks are read, are those of the right decoder."""
    steps = {"begin", "positions", "allowed", "remember"}
    changed = {each for each in vars(CACHE_BUGS[name]) if not each.startswith("__")}
    assert changed - {"window"} <= steps
    assert changed & steps
    assert CACHE_BUGS[name].__doc__.count("\n") == 0


@pytest.mark.parametrize("name", CACHE_BUGS)
def test_the_full_pass_is_right_whatever_the_bug(name):
    got, want = decoder(name), decoder("right")
    assert (got.full_logits(LONG[:9]) == want.full_logits(LONG[:9])).all()


@pytest.mark.parametrize("sizes", MODELS, ids=str)
@pytest.mark.parametrize("name", CACHE_BUGS)
def test_the_contract_refuses_each_bug_and_names_it(name, sizes):
    assert name in refusal(decoder(name, sizes)).mistakes


@pytest.mark.parametrize("language", ["en", "ru"])
@pytest.mark.parametrize("name", CACHE_BUGS)
def test_the_refusal_names_the_clause_the_bug_and_the_fix_in_both_languages(
    name, language, monkeypatch
):
    monkeypatch.setattr(text, "LANGUAGE", language)
    violation = refusal(decoder(name))
    told = " ".join(str(violation).split())
    entry = next(mistake for mistake in CACHE_MISTAKES if mistake.name == name)
    assert violation.clause == CLAUSES[name]
    assert f"{name}: {entry.what[language]}" in told
    assert entry.fix[language] in told


def test_of_too_long_a_window_only_its_length_shows():
    """Nothing tells a lost past from another formula, so the contract names both."""
    named = refusal(decoder("trimmed_too_early")).mistakes
    assert named == ("another_formula_from_some_length_on", "trimmed_too_early")
    others = [refusal(decoder(name)).mistakes for name in CACHE_BUGS if name != named[1]]
    assert others == [(name,) for name in CACHE_BUGS if name != named[1]]


def test_the_masks_of_the_bugs_are_what_their_names_say():
    def mask(name, width=2, length=3):
        model = decoder(name)
        model.length = length
        return ["".join(map(str, row)) for row in model.allowed(width).astype(int)]

    assert mask("right") == ["11110", "11111"]
    assert mask("mask_top_left") == ["10000", "11000"]
    assert mask("no_mask_in_later_chunks") == ["11111", "11111"]
    assert mask("no_mask_in_later_chunks", length=0) == ["10", "11"]
    assert mask("one_token_reads_the_buffer") == ["11110" + 11 * "0", "11111" + 11 * "0"]
    assert mask("one_token_reads_the_buffer", 1) == [16 * "1"]
    assert mask("trimmed_too_early") == ["11110", "11111"]
    assert mask("trimmed_too_early", length=11) == ["0" + 11 * "1" + "0", "0" + 12 * "1"]
    assert mask("trimmed_too_early", 13, 1)[0] == "01" + 12 * "0"


def test_everyday_tests_pass_on_the_right_decoder():
    assert len(passing("right", FIRST)) == len(passing("right", LONG)) == 7


SEEN_BY = {  # the everyday tests that fail, for a prompt of 8 tokens and for one of 20
    "mask_top_left": (
        {"prefill_then_steps", "single_tokens", "two_chunks"},
        {"prefill_then_steps", "single_tokens", "two_chunks"},
    ),
    "no_mask_in_later_chunks": ({"two_chunks"}, {"two_chunks"}),
    "positions_restart": (
        {"prefill_then_steps", "single_tokens", "two_chunks"},
        {"prefill_then_steps", "single_tokens", "two_chunks"},
    ),
    "cache_not_reset": ({"second_prompt"}, {"second_prompt"}),
    "trimmed_too_early": (set(), {"prefill_then_steps", "single_tokens", "two_chunks"}),
    "one_token_reads_the_buffer": (
        {"prefill_then_steps", "single_tokens"},
        {"prefill_then_steps", "single_tokens"},
    ),
}


@pytest.mark.parametrize("name", CACHE_BUGS)
def test_which_everyday_tests_see_a_bug(name):
    """All but the text, which depends on the weights."""
    everyday = passing("right", FIRST) - {"same_text"}
    for prompt, seen in zip((FIRST, LONG), SEEN_BY[name], strict=True):
        assert passing(name, prompt) - {"same_text"} == everyday - seen


def test_each_bug_passes_two_everyday_tests_and_no_everyday_test_sees_them_all():
    done = {name: passing(name, FIRST) for name in CACHE_BUGS}
    assert all(len(tests) >= 2 for tests in done.values())
    for test in passing("right", FIRST):
        assert any(test in tests for tests in done.values())


def test_old_text_uses_the_context_up():
    """Without a reset the second prompt is answered, wrongly, and some later one is refused."""
    model = decoder("cache_not_reset")
    first = model.cached_logits(FIRST, [8])
    assert np.abs(model.cached_logits(FIRST, [8]) - first).max() > 0.01
    with pytest.raises(ContextOverflow, match="16 tokens read and 8 new ones do not fit"):
        model.cached_logits(FIRST, [8])


def test_a_second_prompt_that_finds_no_room_fails_its_test():
    """In a context of 13, 8 tokens of old text and 6 new ones do not fit."""
    shape = ModelShape(n_layers=1, d_model=8, n_heads=2, context_length=13, vocab_size=20)
    for name, passes in (("right", True), ("cache_not_reset", False)):
        make = partial(CACHE_BUGS.get(name, SimpleDecoder), random_parameters(shape, 8, 1), shape)
        assert everyday_tests(make, FIRST, SECOND, 2)["second_prompt"] is passes


def test_a_wrong_text_is_seen_by_the_text_test():
    """Of the bug that an argmax shows in this very model."""
    assert "same_text" not in passing("positions_restart", FIRST)
    assert "same_text" in passing("no_mask_in_later_chunks", FIRST)


def test_a_decoder_that_gives_no_numbers_is_not_finite():
    class Hidden(SimpleDecoder):
        """Some rows may read nothing."""

        def allowed(self, width):
            return super().allowed(width) & (np.arange(self.length + width) > 0)

    shape = ModelShape(1, 4, 2, 16, 20)
    make = partial(Hidden, random_parameters(shape, 4, 1), shape)
    with np.errstate(invalid="ignore"):
        done = everyday_tests(make, FIRST, SECOND, 2)
    assert not done["finite"]
    assert not done["one_chunk"]
