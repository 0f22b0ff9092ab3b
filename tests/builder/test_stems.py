"""Phrases are found in the forms that a text puts them in, and only those."""

import subprocess
import sys
import unicodedata

import pymorphy3
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_build.text.stems import Finder, are_forms, find, stems


def found(phrase, text, language):
    return [text[match.start : match.end] for match in find(phrase, text, language)]


@pytest.mark.parametrize(
    ("phrase", "text", "language"),
    [
        ("причинная маска", "причинной маски", "ru"),
        ("причинная маска", "Причинными масками", "ru"),
        ("самовнимание", "самовниманием", "ru"),
        ("оценка", "оценок", "ru"),
        ("затравка", "затравок", "ru"),
        ("голова", "голов", "ru"),
        ("токен", "токенов", "ru"),
        ("подслой", "подслою", "ru"),
        ("подслой", "подслоёв", "ru"),
        ("цепное правило", "цепным правилом", "ru"),
        ("KV-кэш", "KV-кэшей", "ru"),
        ("перекрёстное внимание", "перекрестном внимании", "ru"),
        ("кэш ключей и значений", "кэша ключей\nи значений", "ru"),
        ("модель «крыши»", "модели «крыши»", "ru"),
        ("смещение (bias)", "смещения (bias)", "ru"),
        ("причинность", "причинностью", "ru"),
        ("mask", "masks", "en"),
        ("query", "Queries", "en"),
        ("batch", "batches", "en"),
        ("bias", "biases", "en"),
        ("decoder", "decoder's", "en"),
        ("decoder", "decoder’s", "en"),
        ("key-value cache", "key-value caches", "en"),
        ("causal mask", "causal\u00a0masks", "en"),
        ("Maske", "Masken", "de"),
    ],
)
def test_a_phrase_is_found_in_its_other_forms(phrase, text, language):
    assert found(phrase, f"Вот {text}, say.", language) == [text]


@pytest.mark.parametrize(
    ("phrase", "text", "language"),
    [
        ("внимание", "самовнимание", "ru"),
        ("причинность", "по этой причине", "ru"),
        ("декодер", "автокодировщик, кодировщик", "ru"),
        ("кодировщик", "кодировщик-декодировщик", "ru"),
        ("top-k", "top-p", "ru"),
        ("кэш ключей и значений", "кэш, ключей и значений", "ru"),
        ("причинная маска", "причинная", "ru"),
        ("смещение (bias)", "смещение, bias", "ru"),
        ("attention", "self-attention and attentive", "en"),
        ("decoding", "the decoder decodes", "en"),
        ("sampling", "a sample", "en"),
        ("padding", "a padded text", "en"),
        ("head", "n_heads", "en"),
        ("[scores], $", "scores, as", "en"),
    ],
)
def test_what_only_looks_like_it_is_not_found(phrase, text, language):
    assert found(phrase, f"Вот {text} here.", language) == []


def test_a_language_without_a_stemmer_is_matched_by_exact_words():
    assert found("vaht", "Vaht vahte", "xx") == ["Vaht"]


def test_every_word_of_a_match_has_its_place():
    text = "О причинной  маске."
    [match] = find("причинная маска", text, "ru")
    assert [text[start:end] for start, end in match.words] == ["причинной", "маске"]


def test_overlapping_phrases_are_all_found():
    finder = Finder(["mask", "causal mask"], "en")
    matches = [(match.phrase, match.start) for match in finder.find("the causal mask, a mask")]
    assert matches == [("causal mask", 4), ("mask", 11), ("mask", 19)]


@pytest.mark.parametrize(
    "word", ["внимание", "оценка", "ключ", "пакет", "утечка", "граница", "кусок", "зерно", "потери"]
)
def test_every_form_that_a_russian_dictionary_knows_is_found(word):
    [noun, *_] = [p for p in pymorphy3.MorphAnalyzer().parse(word) if p.tag.POS == "NOUN"]
    forms = {form.word for form in noun.lexeme}
    assert [form for form in forms if not are_forms(word, form, "ru")] == []
    assert len(forms) >= 6


@given(st.text(), st.sampled_from(["en", "ru", "de", "xx"]))
def test_any_text_can_be_searched(text, language):
    for match in Finder(["mask", "причинная маска", "a"], language).find(text):
        assert 0 <= match.start < match.end <= len(text)


@given(st.sampled_from(["причинной маски", "Ёмкости слоёв"]), st.sampled_from(["NFC", "NFD"]))
def test_how_a_letter_is_encoded_does_not_matter(text, form):
    words = unicodedata.normalize(form, text).split()
    assert [stems(word, "ru") for word in words] == [stems(word, "ru") for word in text.split()]


def test_pystemmer_changes_nothing_where_it_is_installed():
    code = (
        "import sys, types; sys.modules['Stemmer'] = types.SimpleNamespace("
        "algorithms=None, Stemmer=lambda name: None);"
        "from course_build.text.stems import stems; print(*stems('masks', 'en'))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["mask"]
