"""The glossary's data: what is refused, where it says so, and what the course's own file holds."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from course_build.base.files import read_files
from course_build.base.findings import CourseError
from course_build.base.settings import SETTINGS_FILE, parse_settings
from course_build.pages.glossary_page import collate
from course_build.text.glossary import GLOSSARY, read_glossary

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = parse_settings('[tool.course]\nlanguages = ["en", "ru"]\n')
MEANS = "One two three four five six seven eight."
TERM = f"""\
[mask]
identifiers = ["allowed"]

[mask.en]
name = "mask"
means = "{MEANS}"

[mask.ru]
name = "маска"
means = "{MEANS}"
"""


def term(key, en, ru):
    text = TERM.replace("[mask", f"[{key}").replace('"mask"', f'"{en}"')
    return text.replace("маска", ru).replace('["allowed"]', "[]")


def refuse(text, settings=SETTINGS):
    with pytest.raises(CourseError) as caught:
        read_glossary(text, settings)
    return str(caught.value)


def test_a_term_has_a_word_in_each_language():
    [mask] = read_glossary(TERM, SETTINGS)
    assert (mask.key, mask.identifiers, mask.line) == ("mask", ("allowed",), 1)
    assert mask.words["ru"].name == "маска"
    assert mask.words["ru"].seen == ("маска",)


def test_other_ways_to_write_and_words_to_avoid():
    text = TERM.replace('name = "маска"', 'name = "маска"\nalso = ["м"]') + (
        '[mask.ru.avoid]\n"шаблон" = "другое"\n"трафарет" = ""\n'
    )
    [mask] = read_glossary(text, SETTINGS)
    assert mask.words["ru"].also == ("м",)
    assert mask.words["ru"].avoid == (("шаблон", "другое"), ("трафарет", ""))
    assert mask.words["ru"].seen == ("маска", "м")


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ('["allowed"]', '"allowed"', 1, "not a list of names"),
        ('identifiers = ["allowed"]', "", 1, "not a list of names"),
        ('name = "маска"', "", 8, "the name is missing"),
        ('name = "mask"', 'name = " mask"', 4, "the name is missing"),
        ('name = "mask"', 'name = "mask"\nextra = 1', 6, "'extra' is not known"),
        ('name = "mask"', 'name = "mask"\nalso = ["m", "m"]', 6, "also is not a list"),
        ('name = "mask"', 'name = "mask"\nseen = ["a [b] [c]"]', 4, "one run of words"),
        ('name = "mask"', 'name = "mask"\nseen = ["a []"]', 4, "one run of words"),
        ('name = "mask"', 'name = "mask"\navoid = ["x"]', 4, "not a table of reasons"),
        (f'name = "mask"\nmeans = "{MEANS}"', 'name = "mask"', 4, "means is missing"),
        ("six seven eight.", "six seven.", 6, "7 words; between 8 and 25"),
        ("eight.", "eight", 6, "not a sentence"),
        ("One", "one", 6, "not a sentence"),
        ("seven", "`seven`", 6, "'`' in a sentence"),
        ("[mask.ru]", "[mask.de]", 1, "mask has no word in ru"),
        ("[mask.ru]", "[mask.de]", 8, "'de' is neither identifiers nor a language"),
    ],
)
def test_what_is_wrong_with_a_term_is_said_with_its_line(old, new, line, words):
    assert old in TERM
    said = refuse(TERM.replace(old, new, 1))
    start = re.escape(f'{GLOSSARY}:{line}: cell "mask": [glossary]')
    assert re.search(f"^{start}\n    .*{re.escape(words)}", said, re.MULTILINE), said


def test_broken_toml_is_said_with_its_line():
    assert f"{GLOSSARY}:2: [glossary]" in refuse("[mask]\nname = \n")


def test_terms_are_sorted_by_key():
    said = refuse(term("query", "query", "запрос") + term("key", "key", "ключ"))
    assert "'key' comes after 'query'" in said


@pytest.mark.parametrize("key", ["Mask", "the mask", "маска", "-"])
def test_a_key_is_an_address(key):
    assert f"the key {key!r}" in refuse(TERM.replace("[mask", f'["{key}"'))


@pytest.mark.parametrize("word", ["ключ", "КЛЮЧ"])
def test_no_word_stands_for_two_terms(word):
    said = refuse(term("key", "key", "ключ") + term("query", "query", word))
    assert "already the word for key" in said


def test_yo_makes_no_other_word():
    assert "already the word" in refuse(term("a", "a", "зачёт") + term("b", "b", "зачет"))


def test_no_word_is_right_and_to_be_avoided():
    said = refuse(TERM + '[mask.ru.avoid]\n"Ключ" = ""\n' + term("query", "query", "ключ"))
    assert f'{GLOSSARY}:12: cell "mask": [glossary]' in said
    assert "'Ключ' is to be avoided and is the word for query" in said


def test_a_draft_language_may_lack_words():
    settings = replace(SETTINGS, languages=("en", "ru", "de"), drafts=("de",))
    [mask] = read_glossary(TERM, settings)
    assert set(mask.words) == {"en", "ru"}


def test_the_alphabet_has_yo_after_ye_and_ignores_marks_and_punctuation():
    words = ["ёж", "еж", "«жулик»", "жук", "top-k", "über", "zoo"]
    assert sorted(words, key=collate) == ["top-k", "über", "zoo", "еж", "ёж", "жук", "«жулик»"]


@pytest.fixture(scope="module")
def terms():
    settings = parse_settings((ROOT / SETTINGS_FILE).read_text(encoding="utf-8"))
    return read_glossary((ROOT / GLOSSARY).read_text(encoding="utf-8"), settings)


def test_every_identifier_of_the_course_stands_in_its_code(terms):
    files = read_files(ROOT)
    code = b"\n".join([*files.sources.values(), *files.library.values()]).decode()
    known = set(re.findall(r"\w+", code))
    assert [name for term in terms for name in term.identifiers if name not in known] == []
    assert len(terms) > 90
