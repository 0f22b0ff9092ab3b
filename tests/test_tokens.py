"""The vocabulary: from text to ids and back, in both languages, and loud about the unknown."""

import pytest

from course_lib.tokens import Vocabulary, unknown_words

SIGNS = ["<end>", ".", ",", "!", "?", ":", ";", "…", "»", ")", "«", "(", "—"]
ENGLISH = Vocabulary([*SIGNS, "Moon", "sun", "hides", "well-known", "don't", "and"])
RUSSIAN = Vocabulary([*SIGNS, "Луна", "солнце", "прячет", "где-то", "ещё", "и"])

TEXTS = [
    (ENGLISH, "Moon hides, and sun hides. Sun hides!", [13, 15, 2, 18, 14, 15, 1, 14, 15, 3]),
    (RUSSIAN, "Луна прячет, и солнце прячет. Солнце ещё!", [13, 15, 2, 18, 14, 15, 1, 14, 17, 3]),
    (ENGLISH, "Sun hides? Well-known: don't… And", [14, 15, 4, 16, 5, 17, 7, 18]),
    (RUSSIAN, "Где-то — «солнце» (и луна); ещё", None),
    (RUSSIAN, "«Солнце прячет.» И", None),
    (ENGLISH, "Sun. <end> Moon <end>", [14, 1, 0, 13, 0]),
]


@pytest.mark.parametrize(("vocabulary", "words", "ids"), TEXTS)
def test_a_well_spaced_text_is_cut_into_its_tokens(vocabulary, words, ids):
    encoded = vocabulary.encode(words)
    assert ids is None or encoded == ids
    found = [vocabulary.words[token].lower() for token in encoded]
    assert "".join(found) == words.replace(" ", "").lower()


@pytest.mark.parametrize(("vocabulary", "words"), [case[:2] for case in TEXTS])
def test_the_text_of_the_ids_is_the_text_they_came_from(vocabulary, words):
    if "луна" in words:
        words = words.replace("луна", "Луна")  # a name is written as the vocabulary has it
    assert vocabulary.decode(vocabulary.encode(words)) == words


@pytest.mark.parametrize(("vocabulary", "words"), [case[:2] for case in TEXTS])
def test_the_text_so_far_is_the_beginning_of_the_whole_text(vocabulary, words):
    ids = vocabulary.encode(words)
    whole = vocabulary.decode(ids)
    shown = ""
    for length in range(len(ids) + 1):
        so_far = vocabulary.decode(ids[:length])
        assert so_far.startswith(shown)
        assert whole.startswith(so_far)
        shown = so_far
    assert shown == whole


def test_capitals_and_spaces_do_not_count_when_reading():
    assert ENGLISH.encode("MOON  hides\n,and Sun") == ENGLISH.encode("moon hides, and sun")
    assert RUSSIAN.encode("ЛУНА ЕЩЁ") == [13, 17]


def test_no_space_stands_before_a_closing_sign_or_after_an_opening_one():
    for token, sign in enumerate(SIGNS[1:10], start=1):
        assert ENGLISH.decode([14, token, 15]).lower() == f"sun{sign} hides"
    for token, sign in enumerate(SIGNS[10:12], start=10):
        assert ENGLISH.decode([14, token, 15]) == f"Sun {sign}hides"
    assert ENGLISH.decode([14, 12, 15]) == "Sun — hides"


def test_a_sentence_begins_with_a_capital_and_nothing_else_does():
    assert ENGLISH.decode([14, 14, 1, 14, 14]) == "Sun sun. Sun sun"
    assert ENGLISH.decode([14, 2, 14, 5, 14, 6, 14]) == "Sun, sun: sun; sun"
    assert ENGLISH.decode([0, 14, 3, 10, 14, 8, 14]) == "<end> Sun! «Sun» sun"
    assert RUSSIAN.decode([14, 1, 8, 14]) == "Солнце.» Солнце"
    assert Vocabulary(["kV", "."]).decode([0, 1, 0, 0]) == "KV. KV kV"  # the rest stays as it is


def test_bare_words_and_the_size_are_there_for_labels():
    assert ENGLISH.words[:3] == ("<end>", ".", ",")
    assert ENGLISH.words[14] == "sun"
    assert len(ENGLISH) == len(ENGLISH.words) == 19
    assert ENGLISH.encode("") == []
    assert ENGLISH.decode([]) == ""


def test_every_id_is_its_word_and_back():
    for vocabulary in (ENGLISH, RUSSIAN):
        for token, word in enumerate(vocabulary.words):
            assert vocabulary.encode(word) == [token]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("Mon hides", r"^'Mon' is not among the 19 words .*; did you mean 'moon'\?"),
        ("dragon", r"^'dragon' is not among the 19 words of this vocabulary; see \.words"),
        ("moon * sun", r"'\*' is not among"),
        ("<pad>", "'<pad>' is not among"),
        ("moon/sun", "'/' is not among"),
        ("-sun", "'-' is not among"),
        ("sun_", "'sun_' is not among .*did you mean 'sun'"),
    ],
)
def test_an_unknown_word_is_named_and_a_near_one_offered(words, message):
    with pytest.raises(ValueError, match=message):
        ENGLISH.encode(words)


def test_the_letter_yo_is_missed_with_a_hint():
    with pytest.raises(ValueError, match="'еще' is not among .*did you mean 'ещё'"):
        RUSSIAN.encode("еще")


def test_the_words_that_are_missing_are_told_with_those_like_them():
    assert unknown_words(ENGLISH, "Sunn, dragon! SUN") == {"Sunn": ["sun"], "dragon": []}
    assert unknown_words(Vocabulary(["Moon", "sun"]), "moom") == {"moom": ["Moon"]}
    assert unknown_words(ENGLISH, "") == {}


@pytest.mark.parametrize("token", [19, -1, 1.0, True, "sun", None])
def test_an_id_outside_the_vocabulary_is_refused(token):
    with pytest.raises(ValueError, match=r"token_ids\[1\] must be an id from 0 to 18, got "):
        ENGLISH.decode([0, token])


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        (["sun", "Sun"], ValueError, r"'Sun' stands twice \(as 'sun'\): capitals do not count"),
        (["sun moon"], ValueError, r"'sun moon' is not one token: .* \['sun', 'moon'\]"),
        ([""], ValueError, r"'' is not one token"),
        ([" sun"], ValueError, "' sun' is not one token"),
        ([], TypeError, r"words must be a non-empty list of str, got \[\]"),
        ("sun", TypeError, "words must be a non-empty list of str, got 'sun'"),
        ([3], TypeError, r"words must hold str, got 3 \(int\)"),
    ],
)
def test_words_that_a_text_could_not_hold_are_refused(words, error, message):
    with pytest.raises(error, match=message):
        Vocabulary(words)


def test_a_text_must_be_a_str():
    with pytest.raises(TypeError, match="text must be a str, got list"):
        ENGLISH.encode(["sun"])


def test_the_callers_list_may_change_later():
    words = ["a", "b"]
    vocabulary = Vocabulary(words)
    words[0] = "c"
    assert vocabulary.encode("a b") == [0, 1]
