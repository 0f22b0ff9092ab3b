"""The command `proofread`: each rule finds its fault on its line, and lets good text be."""

import re
from pathlib import Path

import pytest

from course_build import cli
from course_build.proofreading.languages import TABLES
from course_build.proofreading.pieces import join
from course_build.proofreading.sentences import check_leftovers
from tests.builder.conftest import FRAME_LINES, SOURCE, code, code_twins, prose, said

ROOT = Path(__file__).resolve().parents[2]
GOOD = "A good sentence.", "Хорошее предложение."
FIRST = FRAME_LINES + 3  # the English text of the first cell after the frame
SECOND = FIRST + 5  # its Russian text, if the English has one line
pytestmark = pytest.mark.xdist_group("proofreading")  # one process loads the dictionaries


def proofread(repo, en=GOOD[0], ru=GOOD[1]):
    """Proofread a toy course with these twins in it; what was found comes back."""
    repo.source(prose("twins", en, ru))
    ran = repo.run("proofread")
    assert ran.code == (1 if ran.err else 0), (ran.out, ran.err)
    return ran.err


def rules(found):
    return re.findall(r"\[([\w-]+)\]$", found, re.MULTILINE)


def test_the_course_is_clean(capsys):
    assert cli.main(["proofread"], ROOT) == 0, capsys.readouterr().err


def test_a_clean_text_ends_with_the_counts_of_each_module_and_language(repo):
    repo.source(prose("twins", *GOOD))
    ran = repo.run("proofread")
    assert (ran.code, ran.err) == (0, "")
    first, second, *_ = ran.out.split("\n")
    assert re.fullmatch(r"module_03_toy en: 8 words, 0 findings, reading ease \d+", first)
    assert re.fullmatch(r"module_03_toy ru: 5 words, 0 findings, reading ease \d+", second)


def test_a_misspelling_is_found_on_its_line_with_a_word_to_write(repo):
    found = proofread(repo, en="One line.\n\nTwo `lines` with\na mistaek.", ru=GOOD[1])
    assert said(SOURCE, FIRST + 3, "twins", "spelling", "'mistaek' is in no dictionary").search(
        found
    )
    assert "-> write 'mistake'; if it is right, add it to notebooks/src/words.en.txt" in found
    found = proofread(repo, ru="Хорошее придложение.")
    assert said(SOURCE, SECOND, "twins", "spelling", "'придложение'").search(found)
    assert "write 'приложение' or 'предложение'" in found


def test_words_in_comments_strings_tables_and_pages_are_checked(repo):
    repo.source(
        code("comment", "# en: a wrod\n# ru: слво"),
        code_twins("strings", "f('good')\ng('wrod')", "f('добро')\ng('слво')"),
    )
    repo.write("course_lib/tables.py", 'A = {\n    "en": "wrod",\n    "ru": "слво",\n}\n')
    repo.write("README.md", "# Good\n\nwrod\n")
    repo.write("README.ru.md", "# Слово\n\nслво\n")
    found = repo.run("proofread").err
    assert rules(found) == ["spelling"] * 8
    for line, key in ((2, "comment"), (3, "comment"), (7, "strings"), (11, "strings")):
        assert said(SOURCE, FRAME_LINES + line, key, "spelling").search(found), (line, found)
    for path, line in (("course_lib/tables.py", 2), ("course_lib/tables.py", 3),
                       ("README.md", 3), ("README.ru.md", 3)):  # fmt: skip
        assert said(path, line, None, "spelling").search(found)


@pytest.mark.parametrize(
    "words",
    ["We normalise a neighbour's centred labels, favourite colours, and analyse them.",
     "The B-th GPT-2 has an MLP of x's, 8th and 3D.", "A `mistaek` and $mistaek$, d_mistaek too."],
)  # fmt: skip
def test_british_words_names_numbers_and_code_are_no_misspellings(repo, words):
    assert proofread(repo, en=words) == ""


def test_latin_words_in_russian_are_spelled_as_in_english(repo):
    assert proofread(repo, ru="Слово (mistake) и 8-й раз.") == ""
    assert rules(proofread(repo, ru="Слово (mistaek).")) == ["spelling"]


def test_a_word_list_adds_words_and_in_russian_all_their_forms(repo):
    repo.write("notebooks/src/words.en.txt", "softmax\n")
    repo.write("notebooks/src/words.ru.txt", "эмбеддинг\n")
    assert (
        proofread(repo, "Softmax, two softmaxs?", "Эмбеддинги, эмбеддингов и эмбеддингами.") == ""
    )
    assert rules(proofread(repo, "The softmax.", "Эмбеддинг, эмбедингов.")) == ["spelling"]


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ("softmax\nsentence\n", "knows 'sentence' already"),
        ("softmax\nzzyzx\n", "nowhere uses 'zzyzx'"),
        ("softmax\ntemprature\n", "'temprature' is one edit from 'temperature'"),
        ("softmax\nsoftmax\n", "twice"),
        ("zeroth\nsoftmax\n", "sort"),
    ],
)
def test_a_word_list_holds_no_misspelling_nothing_known_unused_twice_or_out_of_order(
    repo, entries, words
):
    repo.write("notebooks/src/words.en.txt", entries)
    found = proofread(repo, en="A softmax of temprature, zeroth.")
    assert "notebooks/src/words.en.txt:2: [word-list]" in found
    assert words in found


def test_an_entry_that_resembles_a_word_stays_with_a_reason(repo):
    repo.write("notebooks/src/words.en.txt", "temprature  # quoted from a paper\n")
    assert proofread(repo, en="A temprature.") == ""


def test_one_word_has_one_spelling(repo):
    found = proofread(repo, en="To normalise and to normalize.")
    assert rules(found) == ["two-spellings"]
    assert "write 'normalise' here" in found
    assert proofread(repo, en="To normalize.") == ""


@pytest.mark.parametrize("wrong", ["Еще раз.", "Идет дождь.", "Вдвоем."])
def test_yo_is_written_where_every_reading_of_a_word_has_it(repo, wrong):
    assert rules(proofread(repo, ru=wrong)) == ["dots"]


def test_yo_is_not_demanded_where_a_word_may_be_another(repo):
    assert proofread(repo, ru="Все знают, что мы узнаем. Это совершенно её дело.") == ""


@pytest.mark.parametrize(
    ("rule", "wrong"),
    [
        ("quotes", 'Слово "слово".'), ("quotes", "Слово “слово”."),
        ("quotes", "Слово «слово «слово» слово»."), ("quotes", "Слово «слово."),
        ("dash", "Слово — слово."), ("dash", "Слово\n— слово."), ("dash", "Слово-\n\nслово—слово."),
        ("dash", "Слово - слово."), ("dash", "Слово – слово."), ("dash", "Слово -- слово."),
        ("dash", "Слова 3-5."), ("number", "Это 3.5 слова."),
        ("number", "Это 3.5."),
        ("dash", "Слово `x` - слово."),
        ("number", "Это 3 ГБ."),
        ("number", "Это 3ГБ."), ("number", "Это 5%."), ("space", "Одно  слово."),
        ("space", "Слово , слово."), ("space", "Слово,слово."), ("ellipsis", "Слово..."),
        ("doubled-word", "Это слово слово."),
    ],
)  # fmt: skip
def test_russian_typography(repo, rule, wrong):
    found = proofread(repo, ru=wrong)
    assert rules(found) == [rule], found


def test_good_russian_typography_is_left_alone(repo):
    good = (
        "«Слово „слово“ слово»\u00a0— слово, слово; 3,5 слова, 34\u00a0ГБ/с "
        "и 99\u00a0%: 3–5 слов…\n"
        "Python 3.11, T − 1, что-то, раздел 2, 8-й, `x - y` и $x - y$, 4 с лишним. Да, да."
    )
    assert proofread(repo, ru=good) == ""


@pytest.mark.parametrize(
    ("rule", "wrong"),
    [
        ("quotes", "A “good” sentence."), ("quotes", "A sentence’s words."),
        ("dash", "A sentence - good."), ("dash", "A sentence – good."), ("dash", "Good—very."),
        ("number", "It is 3,5 words."), ("number", "It is 34GB."), ("space", "Good  words."),
        ("space", "Good , words."), ("ellipsis", "Good..."), ("doubled-word", "The the good word."),
    ],
)  # fmt: skip
def test_english_typography(repo, rule, wrong):
    assert rules(proofread(repo, en=wrong)) == [rule]


def test_good_english_typography_is_left_alone(repo):
    good = "\"Good\" isn't 3.5, 1,000, 34 GB or 99 %: T - 1, well-known; 0, 1, 2… 'So'. That is it."
    assert proofread(repo, en=good) == ""


def test_letters_of_another_alphabet_are_found_in_words(repo):
    found = proofread(repo, "A g\N{CYRILLIC SMALL LETTER O}od word.", "Хорoшее слово.")
    assert rules(found).count("look-alike") == 2
    assert "Cyrillic are \N{CYRILLIC SMALL LETTER O}" in found
    assert "Latin are o" in found


def test_a_word_wholly_in_the_other_alphabet_is_found(repo):
    assert "type 'с' again" in proofread(repo, ru="Слово c предлогом.")
    assert "type 'сера' again" in proofread(repo, ru="Это cepa, а не слово.")
    assert proofread(repo, ru="Вектор $c$ с предлогом, вектор `c` и A.") == ""


def test_names_and_comments_in_code_have_one_alphabet(repo):
    repo.source(code("mixed", "d_m\N{CYRILLIC SMALL LETTER O}del = 1  # а wоrd\nx = 'а\\nбв'"))
    repo.write("course_lib/names.py", "def f(\N{CYRILLIC SMALL LETTER ES}):\n    return 'й'\n")
    found = repo.run("proofread").err
    assert rules(found) == ["look-alike"] * 3
    assert "course_lib/names.py:1: [look-alike]" in found
    assert f"{SOURCE}:{FRAME_LINES + 2}: [look-alike]" in found


def test_a_sentence_left_in_the_other_language_is_found(repo):
    found = proofread(repo, ru="Слово. Nobody has translated this sentence yet.")
    assert "leftover" in rules(found)
    assert rules(proofread(repo, en="A word. Это предложение забыли перевести совсем.")) == [
        "leftover"
    ]


def test_names_titles_and_code_are_no_leftovers(repo):
    good = "Статья («Attention is all you need now») и `if not this or that` в Python, NumPy."
    repo.write("notebooks/src/words.en.txt", "NumPy  # a package\n")
    assert proofread(repo, ru=good) == ""


def test_a_message_that_was_not_translated_is_found_and_code_is_not(repo):
    repo.source(prose("twins", *GOOD))
    message = '"the model reads the future"'
    code_ = '"scores = scores + mask, if not causal or none"'
    repo.write(
        "course_lib/tables.py",
        f'A = {{"en": {message}, "ru": {message}}}\nB = {{"en": {code_}, "ru": {code_}}}\n',
    )
    found = repo.run("proofread").err
    assert rules(found) == ["leftover"]
    assert "course_lib/tables.py:1: [leftover]" in found


class Known:
    """A dictionary of a few words in Latin letters."""

    def __init__(self, words):
        self.table, self.words = TABLES["en"], words.split()

    def in_dictionary(self, word):
        return word in self.words


def test_a_leftover_is_found_between_languages_of_one_script():
    words = {"en": Known("in the model reads a mask over it"), "xx": Known("over het mask is")}

    def found(text):
        piece = join([(1, text)], ("file", "key", "xx", "prose"))
        return list(check_leftovers([piece], words, "en"))

    assert found("the model reads over it")
    assert not found("over het mask over het mask")
    assert not found("over mask over mask over")


GLOSSARY = """[causal-mask]
identifiers = []

[causal-mask.en]
name = "causal mask"
means = "A mask that lets a position read itself and what stands before it."

[causal-mask.ru]
name = "причинная маска"
means = "Маска, которая разрешает позиции читать только себя и то, что стоит раньше."

[causal-mask.ru.avoid]
"каузальная маска" = "калька"
"вложение" = ""
"""


def test_a_word_to_avoid_names_the_term_in_any_form(repo):
    repo.write("notebooks/src/glossary.toml", GLOSSARY)
    found = proofread(repo, ru="Слово о каузальной маске.")
    assert said(SOURCE, SECOND, "twins", "term", "'каузальной маске' is not").search(found)
    assert "(калька)" in found
    assert "write 'причинная маска'" in found
    assert proofread(repo, ru="Слово о причинной маске, вложенной внутрь.") == ""


def test_a_language_without_a_dictionary_is_named_and_nothing_fails(repo):
    settings = '[tool.course]\nlanguages = ["en", "ru"]\ndrafts = ["xx"]\n'
    repo.write("pyproject.toml", settings)
    repo.source(
        prose("twins", *GOOD),
        '# %% [markdown] lang="en" key="new"\nr"""\nGood.\n"""\n\n'
        '# %% [markdown] lang="ru" key="new" en="b1a9d0f4"\nr"""\nСлово.\n"""\n\n'
        '# %% [markdown] lang="xx" key="new" en="b1a9d0f4"\nr"""\nQwrtp zxcvb.\n"""\n',
    )
    ran = repo.run("proofread")
    assert (ran.code, ran.err) == (0, "")
    assert "module_03_toy xx: 2 words, 0 findings, spelling not checked: no dictionary" in ran.out


def test_only_what_was_chosen_is_read(repo):
    repo.source(prose("twins", "A wrod.", "Слво."))
    repo.write("README.md", "wrod\n")
    repo.write("notebooks/src/words.en.txt", "softmax\n")
    assert rules(repo.run("proofread", "--module", "3").err) == ["spelling"] * 2
    ran = repo.run("proofread", "--lang", "ru")
    assert rules(ran.err) == ["spelling"]
    assert "Слво" in ran.err
    assert " en:" not in ran.out


def test_a_broken_source_ends_with_2(repo):
    repo.write(SOURCE, "x = 1\n")
    assert repo.run("proofread").code == 2
