"""Questions are folded and numbered, and a question that could mislead is not built."""

import pytest

from course_build.base.chrome import CHROME

from .conftest import SOURCE, code, code_twins, prose

MAKER = code("maker", "def ask(progress, name, question, choices):\n    pass\n\n\nprogress = None")
CHOICES = [("one", True, "It is."), ("two", False, "It is not."), ("three", False, "Nor this.")]


def written(name="q", choices=CHOICES, word="Why"):
    rows = "".join(f'    "{said}": ({right}, "{told}"),\n' for said, right, told in choices)
    return f'ask(progress, "{name}", "{word}?", {{\n{rows}}})'


def question(key="q", en=None, ru=None, **made):
    en = en or written(made.pop("name", key), **made)
    twins = code_twins(key, en, ru or en.replace("Why", "Почему"))
    return twins.replace(f'key="{key}"', f'key="{key}" role="quiz"')


def refuse(repo, *questions):
    return repo.refuse(MAKER, prose("p"), *questions)


def test_questions_are_folded_and_numbered_in_the_readers_language(repo):
    repo.build(MAKER, prose("p"), question("first"), question("second"))
    assert repo.text("first").startswith('#@title Quiz question 1 of 2\nask(progress, "first"')
    assert repo.text("second", "ru").startswith("#@title Вопрос 2 из 2\nask(progress")
    assert repo.cell("second", "ru")["metadata"] == {
        "cellView": "form",
        "jupyter": {"source_hidden": True},
        "tags": ["hide-input"],
    }


def test_an_answer_may_be_long_without_a_longest_cell(repo):
    told = [(said, right, "Because. " * 200) for said, right, _ in CHOICES]
    repo.build(MAKER, prose("p"), question(choices=told))


@pytest.mark.parametrize(
    ("choices", "rule", "told"),
    [
        (CHOICES[:2], "quiz-choices", "2 different choices of 2"),
        (
            [*CHOICES, *[(c, False, "No.") for c in "ab"]],
            "quiz-choices",
            "5 different choices of 5",
        ),
        ([*CHOICES, CHOICES[1]], "quiz-choices", "3 different choices of 4"),
        ([(c, False, t) for c, _, t in CHOICES], "quiz-right", "0 choices are right"),
        ([(c, True, t) for c, _, t in CHOICES], "quiz-right", "3 choices are right"),
        ([*CHOICES, ("four", False, " ")], "quiz-choice", "the choice 'four' has no verdict"),
        ([*CHOICES, (" ", False, "No.")], "quiz-choice", "has no verdict or no words"),
        ([*CHOICES, ("four", 0, "No.")], "quiz-choice", "the choice 'four' has no verdict"),
        ([("none", None, "Yes."), *CHOICES[1:]], "quiz-choice", "the choice 'none' has no verdict"),
    ],
)
def test_choices_that_mislead_are_refused(repo, choices, rule, told):
    err = refuse(repo, question(choices=choices))
    assert f'cell "q": [{rule}]' in err
    assert err.startswith(f"{SOURCE}:")
    assert told in err
    assert "-> " in err


@pytest.mark.parametrize(
    "text",
    [
        written() + "\n" + written("r"),
        "x = " + written(),
        written().replace("ask(", "print("),
        written().replace('"Why?"', "words"),
        written().replace('"Why?"', '" "'),
        written().replace("progress, ", ""),
        'ask(progress, "q", "Why?", dict(a=(True, "b")))',
        written().replace("})", "}, more=1)"),
    ],
)
def test_a_cell_that_is_not_one_question_is_refused(repo, text):
    err = refuse(repo, question(en=text))
    assert 'cell "q": [quiz-form]' in err
    assert '-> write ask(progress, "name", "Question?", {' in err


def test_what_only_the_translation_breaks_is_found(repo):
    err = refuse(repo, question(ru=written(word="Почему").replace("It is not.", " ")))
    assert err.count("[quiz-choice]") == 1


def test_two_questions_of_one_name_are_refused(repo):
    err = refuse(repo, question("first", name="q"), question("second", name="q"))
    assert 'cell "second": [quiz-name]' in err
    assert "the question 'q' is already in cell \"first\"" in err


def test_a_right_choice_that_is_always_the_first_is_refused(repo):
    questions = [question(f"q{number}") for number in range(3)]
    err = refuse(repo, *questions)
    assert 'cell "q2": [quiz-order]' in err
    assert "the right choice is number 1 in all 3 questions" in err
    turned = question("q2", choices=CHOICES[::-1])
    repo.build(MAKER, prose("p"), *questions[:2], turned)


def test_a_question_that_all_languages_share_is_refused(repo):
    shared = code("q", written(), ' role="quiz"')
    assert 'cell "q": [quiz-language]' in refuse(repo, shared)


def test_a_question_in_an_open_cell_is_refused(repo):
    err = refuse(repo, code_twins("q", written(), written(word="Почему")))
    assert 'cell "q": [quiz-role]' in err
    assert '-> give the cell role="quiz"' in err


def test_the_levels_have_words_in_every_language():
    for words in CHROME.values():
        assert {"warm-up", "core", "stretch", "quiz"} <= words.keys()
