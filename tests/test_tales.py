"""The tales: one grammar in two languages, whose probabilities are exact."""

import itertools
import math
import random
import re
from collections import Counter
from fractions import Fraction

import pytest

from course_lib import tales as tales_module
from course_lib import text
from course_lib.tales import (
    grammar_log_likelihood,
    grammar_next,
    is_a_tale,
    tale_windows,
    tale_words,
    tales,
    tell_tale,
)
from course_lib.tokens import Vocabulary

TOLD = tales(6000, seed=11)
LANGUAGES = ("en", "ru")

# A tale of each ending, in both languages; the English one is written by hand from the grammar.
SIDE_BY_SIDE = [
    (
        "Once Moon finds silver. Soon Wind hides silver. She searches everywhere. "
        "Then Wind returns silver, and Moon laughs. <end>",
        "Однажды Луна находит серебро. Вскоре Ветер прячет серебро. Она ищет повсюду. "
        "Потом Ветер возвращает серебро, и Луна смеётся. <end>",
        # once, Moon, finds, silver | soon, Wind, hides | she, searches | then | laughs
        (3, 5), (5, 23), (2, 4), (3, 8), (2, 4), (5, 21), (2, 3), (8, 16), (2, 4), (3, 8), (3, 7),
    ),
    (
        "Today Sun makes clocks. Suddenly Eclipse breaks clocks. It cries aloud. "
        "But Moon sees everything and mends clocks. Now Sun and Moon sing together. <end>",
        "Сегодня Солнце мастерит часы. Вдруг Затмение ломает часы. Оно плачет навзрыд. "
        "Но Луна видит всё и чинит часы. Теперь Солнце и Луна поют вместе. <end>",
        # today, Sun, makes, clocks | suddenly, Eclipse, breaks | it, cries, aloud | but, Moon, sees
        (1, 5), (5, 23), (1, 4), (2, 6), (1, 4), (4, 21), (2, 3), (8, 16), (3, 5), (2, 3),
        (3, 8), (5, 17), (2, 3), (2, 5),
    ),
    (
        "Here Frost bakes cookies. Overnight Star eats cookies. "
        "Finally Star bakes cookies, and Frost dances. <end>",
        "Вот Мороз печёт печенье. Ночью Звезда ест печенье. "
        "Наконец Звезда печёт печенье, и Мороз танцует. <end>",
        (1, 5), (1, 23), (1, 4), (1, 5), (1, 4), (1, 18), (2, 3), (2, 16), (1, 7),
    ),
]  # fmt: skip


@pytest.fixture(params=LANGUAGES)
def language(request, monkeypatch):
    monkeypatch.setattr(text, "LANGUAGE", request.param)
    return request.param


def vocabulary_of(language, monkeypatch):
    monkeypatch.setattr(text, "LANGUAGE", language)
    return Vocabulary(tale_words())


def all_endings(*beginning):
    """Every tale that begins so, with its exact probability given the beginning."""
    path = []  # (words of the offer, weights, which one is taken)
    while True:
        teller, words, prob = tell_tale(), [], Fraction(1)
        offer = next(teller)
        for depth in itertools.count():
            if depth == len(path):
                path.append([list(offer), list(offer.values()), 0])
            names, weights, taken = path[depth]
            if depth < len(beginning):
                taken = path[depth][2] = names.index(beginning[depth])
            else:
                prob *= Fraction(weights[taken], sum(weights))
            words.append(names[taken])
            try:
                offer = teller.send(names[taken])
            except StopIteration:
                break
        yield words, prob
        while path[-1][2] == len(path[-1][0]) - 1 and len(path) > len(beginning):
            path.pop()
        if len(path) == len(beginning):
            return
        path[-1][2] += 1


def entropy(weights):
    """Nats of one choice."""
    total = sum(weights)
    return -sum(w / total * math.log(w / total) for w in weights)


def entropy_of_a_tale():
    """Mean nats of a tale, from the weights as they stand written, choice by choice."""
    heroes = dict(zip("SMTCKRWFE", (5, 5, 3, 3, 2, 2, 1, 1, 1), strict=True))
    rascals = dict(zip("WEFRKCSMT", (5, 4, 4, 2, 2, 2, 1, 1, 1), strict=True))
    nats = entropy([3, 1, 1]) + entropy(heroes.values()) + entropy([2, 1, 1])
    nats += (2 * entropy([3, 2, 2, 1]) + entropy([2, 2, 1, 1]) + entropy([2, 2, 1])) / 4
    nats += entropy([2, 1, 1]) + entropy([2, 1])  # connective, prank
    spoilt = (1 / 4 + 1 / 4) * 2 / 3  # things break, food is eaten
    grief = spoilt * (entropy([3, 2]) + 3 / 5 * entropy([2, 1]) + 2 / 5 * entropy([2, 1]))
    grief += (1 - spoilt) * (entropy([2, 1, 1]) + 1 / 4 * entropy([2, 1]))
    nats += entropy([8, 3, 3, 2]) + 1 / 2 * (grief + entropy([3, 2, 3]))
    nats += 5 / 8 * entropy([3, 2, 1, 1]) + 3 / 8 * (entropy([2, 1]) + entropy([2, 2, 1]))
    for hero, p in heroes.items():
        others = {name: w for name, w in rascals.items() if name != hero}
        nats += p / 23 * entropy(others.values())
        for rascal, w in others.items():
            friends = [q for name, q in heroes.items() if name not in (hero, rascal)]
            nats += 3 / 8 * p / 23 * w / sum(others.values()) * entropy(friends)
    return nats


# --- both languages ---


@pytest.mark.parametrize("example", SIDE_BY_SIDE)
def test_the_two_languages_tell_the_same_tale_with_the_same_ids(example, monkeypatch):
    english, russian = example[:2]
    ids = vocabulary_of("en", monkeypatch).encode(english)
    assert vocabulary_of("ru", monkeypatch).encode(russian) == ids
    assert is_a_tale(ids)
    assert vocabulary_of("ru", monkeypatch).decode(ids) == russian
    assert vocabulary_of("en", monkeypatch).decode(ids) == english


@pytest.mark.parametrize("example", SIDE_BY_SIDE)
def test_the_likelihood_of_a_tale_is_the_product_of_its_choices_by_hand(example, monkeypatch):
    ids = vocabulary_of("en", monkeypatch).encode(example[0])
    by_hand = math.prod(Fraction(*choice) for choice in example[2:])
    assert math.fsum(grammar_log_likelihood(ids)) == pytest.approx(math.log(by_hand), abs=1e-12)
    chosen = sorted(Fraction(*choice) for choice in example[2:])
    free = sorted(p for p in map(math.exp, grammar_log_likelihood(ids)) if p < 1)
    assert free == pytest.approx([float(p) for p in chosen], abs=1e-12)


def test_every_tale_reads_back_as_the_same_ids(language):
    vocabulary = Vocabulary(tale_words())
    for ids in TOLD[:300]:
        assert vocabulary.encode(vocabulary.decode(ids)) == ids
    together = [token for ids in TOLD[:300] for token in ids]
    assert vocabulary.encode(vocabulary.decode(together)) == together


def test_the_words_are_as_many_and_all_different_in_both_languages(monkeypatch):
    sizes = {len(vocabulary_of(language, monkeypatch)) for language in LANGUAGES}
    assert sizes == {67}
    assert vocabulary_of("en", monkeypatch).encode("sun moon eclipse") == vocabulary_of(
        "ru", monkeypatch
    ).encode("солнце луна затмение")


def test_a_language_without_words_of_its_own_tells_english_tales(monkeypatch):
    english = vocabulary_of("en", monkeypatch)
    assert vocabulary_of("qtz", monkeypatch).words == english.words
    with pytest.raises(ValueError, match="no tale goes on with 'finds'"):
        grammar_next(english.encode("finds"))


def test_every_word_is_used_and_nothing_else():
    assert {token for ids in TOLD for token in ids} == set(range(len(tale_words())))


def test_a_word_list_of_one_language_only_holds_its_letters(language):
    letters = {"en": "a-z", "ru": "а-яё"}[language]
    for word in tale_words()[3:]:
        assert re.fullmatch(f"[{letters}]+", word.lower())


def test_the_pronoun_agrees_with_the_hero_in_both_languages(monkeypatch):
    genders = {
        "он": ("he", {"Ветер", "Дождь", "Мороз"}),
        "она": ("she", {"Луна", "Звезда", "Комета"}),
        "оно": ("it", {"Солнце", "Облако", "Затмение"}),
    }
    english = vocabulary_of("en", monkeypatch)
    russian = vocabulary_of("ru", monkeypatch)
    seen = Counter()
    for ids in TOLD:
        words = [russian.words[token] for token in ids]
        if words[10] in genders:
            pronoun, heroes = genders[words[10]]
            assert words[1] in heroes
            assert english.words[ids[10]] == pronoun
            seen[words[1]] += 1
    assert len(seen) == 9


# --- what is remembered ---


def test_names_thing_and_deed_are_remembered_to_the_end():
    names = tales_module._TALE_NAMES
    amends = {"hides": "returns", "steals": "returns", "breaks": "mends", "loses": "finds"}
    for ids in TOLD:
        words = [names[token] for token in ids]
        hero, thing, rascal, prank = words[1], words[3], words[6], words[7]
        assert hero != rascal
        assert words[8] == thing
        deed, *rest = words[words.index(thing, 9) - 1 :]
        assert deed == amends.get(prank, "bakes")
        if "together" in rest:
            start = len(words) - words[::-1].index("but")
            friend = words[start]
            assert friend not in (hero, rascal)
            assert rest[2:6] == ["now", hero, "and", friend]
        else:
            assert words[-4] == hero
            assert words[words.index(thing, 9) - 2] == rascal


def test_one_searches_for_what_is_gone_and_sighs_over_what_is_spoilt():
    names = tales_module._TALE_NAMES
    seen = {}
    for ids in TOLD:
        words = [names[token] for token in ids]
        if words[10] in ("he", "she", "it"):
            seen.setdefault(words[7], set()).add((words[11], words[12]))
    cries = {("cries", "aloud"), ("cries", "quietly")}
    gone = cries | {("searches", "everywhere"), ("asks", "everyone")}
    spoilt = cries | {("sighs", "sadly"), ("sighs", "quietly")}
    assert seen == dict.fromkeys(("hides", "steals", "loses"), gone) | dict.fromkeys(
        ("breaks", "eats"), spoilt
    )


def test_tales_have_three_to_five_sentences_and_end_with_end():
    sentences = Counter(ids.count(1) for ids in TOLD)
    assert set(sentences) == {3, 4, 5}
    for ids in TOLD:
        assert 20 <= len(ids) <= 30
        assert ids.count(0) == 1
        assert ids[-2:] == [1, 0]
        assert is_a_tale(ids)


# --- exact probabilities ---


@pytest.mark.parametrize(
    "beginning",
    [
        ("once", "Moon", "finds", "silver", ".", "soon"),
        ("today", "Eclipse", "makes", "boots", ".", "overnight"),
        ("here", "Frost", "bakes", "bread", ".", "soon", "Wind"),
    ],
)
def test_all_tales_with_one_beginning_have_probability_1_and_no_two_are_alike(beginning):
    ids_of = {name: token for token, name in enumerate(tales_module._TALE_NAMES)}
    total, seen = Fraction(0), set()
    for words, prob in all_endings(*beginning):
        total += prob
        seen.add(tuple(words))
        if len(seen) % 101 == 0:
            ids = [ids_of[word] for word in words]
            terms = grammar_log_likelihood(ids)[len(beginning) :]
            assert math.fsum(terms) == pytest.approx(math.log(prob), abs=1e-11)
    assert total == 1
    assert len(seen) == sum(1 for _ in all_endings(*beginning)) > 300


def test_the_tales_cost_what_the_entropy_of_their_choices_says():
    nats = [-math.fsum(grammar_log_likelihood(ids)) for ids in TOLD]
    mean = math.fsum(nats) / len(nats)
    error = math.sqrt(sum((cost - mean) ** 2 for cost in nats)) / len(nats)
    assert mean == pytest.approx(entropy_of_a_tale(), abs=4 * error)
    assert 4 * error < 0.12
    tokens = 20 + 4 / 2 + 3 / 8 * 6  # the shortest; half of them grieve; a rescue is longer by 6
    assert sum(map(len, TOLD)) / len(TOLD) == pytest.approx(tokens, abs=0.2)
    assert entropy_of_a_tale() / tokens == pytest.approx(0.5513058, abs=1e-7)


def test_the_next_tokens_sum_to_1_at_every_prefix_and_agree_with_the_likelihood():
    for ids in TOLD[:60]:
        terms = grammar_log_likelihood(ids)
        for position, token in enumerate(ids):
            probs = grammar_next(ids[:position])
            assert math.fsum(probs.values()) == pytest.approx(1, abs=1e-12)
            assert min(probs.values()) > 0
            assert terms[position] == pytest.approx(math.log(probs[token]), abs=1e-12)
            impossible = next(other for other in range(67) if other not in probs)
            assert grammar_log_likelihood([*ids[:position], impossible])[-1] == -math.inf


@pytest.mark.parametrize("length", [0, 1, 3, 6, 10])
def test_tales_are_drawn_with_the_frequencies_that_the_grammar_says(length):
    """Chi-square of the next token against its exact probability, over the commonest prefix."""
    (prefix, count), *_ = Counter(tuple(ids[:length]) for ids in TOLD).most_common(1)
    probs = grammar_next(list(prefix))
    seen = Counter(ids[length] for ids in TOLD if tuple(ids[:length]) == prefix)
    assert set(seen) <= set(probs)
    chi_square = sum((seen[t] - count * p) ** 2 / (count * p) for t, p in probs.items())
    degrees = len(probs) - 1
    assert degrees >= 1
    assert count >= 30 * len(probs) or length >= 6
    assert chi_square < degrees + 4 * math.sqrt(2 * degrees) + 4


def test_after_end_a_new_tale_begins():
    one, other = TOLD[:2]
    assert grammar_log_likelihood(one + other) == [
        *grammar_log_likelihood(one),
        *grammar_log_likelihood(other),
    ]
    assert grammar_next(one) == grammar_next([])
    assert grammar_log_likelihood([]) == []


def test_of_an_impossible_text_nothing_more_is_known():
    ids = list(TOLD[0])
    wrong = next(token for token in range(4, 13) if token not in ids)
    ids[1:2] = [wrong]
    ids[6] = wrong  # nobody is hero and rascal at once
    terms = grammar_log_likelihood(ids)
    assert all(map(math.isfinite, terms[:6]))
    assert terms[6:] == [-math.inf] * (len(ids) - 6)
    assert not is_a_tale(ids)
    with pytest.raises(ValueError, match=r"no tale goes on with '\w+' \(token 6\) after 'once "):
        grammar_next(ids)


def test_a_tale_is_whole_and_only_one():
    one, other = TOLD[:2]
    assert is_a_tale(one)
    assert not is_a_tale(one[:-1])
    assert not is_a_tale(one[1:])
    assert not is_a_tale(one + other)
    assert not is_a_tale(one + other[:3])
    assert not is_a_tale([])
    assert not is_a_tale([0])


def test_a_wrong_name_at_the_end_is_impossible():
    caught = 0
    for ids in TOLD[:200]:
        for token in range(4, 13):
            changed = list(ids)
            changed[-4 if 2 in ids else -5] = token
            caught += not is_a_tale(changed)
    assert caught == 200 * 8


# --- deterministic ---


def test_the_same_seed_tells_the_same_tales_and_leaves_the_common_generator_alone():
    random.seed(1)
    before = random.getstate()
    assert tales(5, seed=3) == tales(5, seed=3)
    assert tales(5, seed=3) == tales(9, seed=3)[:5]
    assert tales(5, seed=3) != tales(5, seed=4)
    assert random.getstate() == before


def test_the_tales_of_a_seed_are_these_on_every_machine(monkeypatch):
    """They ask only for random(), whose numbers Python promises for ever."""
    vocabulary = vocabulary_of("en", monkeypatch)
    assert vocabulary.decode(tales(3, seed=1)[2]) == (
        "Here Rain makes lanterns. Soon Cloud breaks lanterns. "
        "Finally Cloud mends lanterns, and Rain laughs. <end>"
    )


def test_windows_begin_with_end_and_go_on_from_tale_to_tale():
    windows = tale_windows(40, 48, seed=5)
    assert [len(window) for window in windows] == [49] * 40
    for window in windows:
        assert window[0] == 0
        assert all(map(math.isfinite, grammar_log_likelihood(window[1:])))
    told = iter(tales(200, seed=5))
    for window in windows:  # the rows are the same tales, told on in one breath
        whole = []
        while len(whole) < 48:
            whole += next(told)
        assert window[1:] == whole[:48]
    for context in (1, 20, 21, 25, 31):  # 21: a tale of 20 tokens ends just one too early
        assert {len(window) for window in tale_windows(20, context, seed=5)} == {context + 1}
    assert tale_windows(3, 20, seed=6) == tale_windows(3, 20, seed=6) != tale_windows(3, 20, 7)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tales(0, seed=1), ValueError, "count must be at least 1, got 0"),
        (lambda: tales(2.0, seed=1), TypeError, "count must be an integer, got 2.0"),
        (lambda: tales(1, seed=-1), ValueError, "seed must be at least 0, got -1"),
        (lambda: tales(1, seed=None), TypeError, "seed must be an integer, got None"),
        (lambda: tale_windows(0, 4, 1), ValueError, "count must be at least 1"),
        (lambda: tale_windows(1, 0, 1), ValueError, "context must be at least 1"),
        (lambda: tale_windows(1, 4, -1), ValueError, "seed must be at least 0"),
        (lambda: grammar_next("once"), TypeError, "list of token ids, got str; a text becomes one"),
        (lambda: grammar_next([67]), ValueError, r"token_ids\[0\] must be an id from 0 to 66"),
        (lambda: grammar_log_likelihood([16, -1]), ValueError, r"\[1\] .*, got -1"),
        (lambda: grammar_log_likelihood([True]), ValueError, r"\[0\] must be an id .* got True"),
        (lambda: is_a_tale(3), TypeError, "token_ids must be a list of token ids, got int"),
    ],
)
def test_wrong_arguments_are_refused_in_words(call, error, message):
    with pytest.raises(error, match=message):
        call()
