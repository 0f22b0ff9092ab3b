"""The command `proofread`: names, hyphens, words of another language, and what is in code."""

import pytest

from tests.builder.conftest import code_twins, said
from tests.builder.test_proofreading import proofread, rules

pytestmark = pytest.mark.xdist_group("proofreading")  # one process loads the dictionaries


def test_names_in_mixed_letters_need_no_list(repo):
    names = "LoRA, SwiGLU and YaRN in FlashAttention, by OpenAI and DeepSeek (ROCm too)."
    assert proofread(repo, en=names) == ""


def test_who_wrote_a_paper_needs_no_list(repo):
    repo.write("notebooks/src/words.en.txt", "al  # et al.\net  # et al.\n")
    assert proofread(repo, en="As Vaswani et al. show, so do Su et al. (2021).") == ""
    assert rules(proofread(repo, en="As vaswani et al. show, and Xiong.")) == ["spelling"] * 2


@pytest.mark.parametrize("word", ["FlashAtention", "LayerNrom", "layerNrom"])
def test_a_name_with_a_part_misspelled_or_near_a_listed_one_is_found(repo, word):
    repo.write("notebooks/src/words.en.txt", "LayerNorm\n")
    assert rules(proofread(repo, en=f"The LayerNorm and {word}.")) == ["spelling"]


def test_a_name_whose_letters_seem_cyrillic_is_latin(repo):
    assert proofread(repo, ru="Смесь (mixture, MoE) готова.") == ""
    assert "look-alike" in rules(proofread(repo, ru="Слова и Bce готовы."))


def test_who_wrote_a_paper_may_stand_in_russian(repo):
    assert proofread(repo, ru="Об этом писали давно (Xiong и\xa0др., 2020).") == ""


@pytest.mark.parametrize("word", ["так-же", "по-этому", "одно-значно"])
def test_a_russian_word_that_is_written_in_one_has_no_hyphen(repo, word):
    found = proofread(repo, ru=f"Слово {word} стоит здесь.")
    assert f"{word!r} is written in one" in found
    assert rules(found) == ["spelling"]


def test_words_with_their_hyphens_are_right(repo):
    assert proofread(repo, ru="Всё-таки кто-то из-за стола сказал по-русски: вектор-строка.") == ""
    assert proofread(repo, en="Re-use it, well-known and non-zero.") == ""


def test_a_russian_word_in_english_is_found_unless_it_is_quoted(repo):
    found = proofread(repo, en="Each слово is one token.")
    assert "a word that is not in the language en: Each слово is" in found
    assert rules(found) == ["leftover"]
    assert proofread(repo, en='The word "слово" (слово) is Russian.') == ""
    repo.source(code_twins("strings", "f('слово')", "f('слово тут')"))
    assert rules(repo.run("proofread").err) == ["leftover"]


def test_docstrings_and_comments_of_the_library_are_spelled(repo):
    text = '"""A wrod of numbers: sin², kᵀ, nrom."""\n\nnrom = 1  # the nrom, mistaek\n'
    repo.write("course_lib/tables.py", text)
    repo.write("course_lib/other.py", '"""Of nrom."""\n\n\ndef f():\n    """A sceond."""\n')
    found = proofread(repo)
    assert rules(found) == ["spelling"] * 3
    for path, line, word in (("tables", 1, "wrod"), ("tables", 3, "mistaek"),
                             ("other", 5, "sceond")):  # fmt: skip
        assert said(f"course_lib/{path}.py", line, None, "spelling", f"{word!r}").search(found)


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        ("Слово „лапки“ здесь.", "quotes"), ("Слово ‘внимание’ здесь.", "quotes"),
        ("Слово ,слог.", "space"), ("Слово , слог.", "space"),
    ],
)  # fmt: skip
def test_more_marks_that_may_not_stand_in_russian(repo, words, rule):
    assert rule in rules(proofread(repo, ru=words))


@pytest.mark.parametrize(
    "words", ["— Почему так?\xa0— Потому.", "Слово «внешнее „внутреннее“ слово» здесь."]
)
def test_a_dialogue_may_begin_with_a_dash_and_quotation_marks_may_nest(repo, words):
    assert proofread(repo, ru=words) == ""


def test_a_sentence_that_stands_in_both_code_twins_is_left_over(repo):
    alt = "alt='The grid shows what each token reads.'"
    repo.source(code_twins("figure", f"show('left', {alt})", f"show('слева', {alt})"))
    found = repo.run("proofread").err
    assert rules(found) == ["leftover"]
    assert "a sentence as in the en twin: The grid shows" in found
    repo.source(code_twins("figure", "show('left', name='chain')", "show('слева', name='chain')"))
    assert repo.run("proofread").err == ""


def test_a_hyphen_for_a_dash_is_found_in_strings_but_no_minus(repo):
    repo.source(code_twins("strings", "f('good')", "f('внимание - это поиск')"))
    assert rules(repo.run("proofread").err) == ["dash"]
    repo.source(code_twins("strings", "f('good')", "f('оценка a - b и 3 - 2')"))
    assert repo.run("proofread").err == ""
