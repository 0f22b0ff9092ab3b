"""One command begins a translation: a line in the settings, and nothing else changes."""

import tomllib

import pytest

from course_build.base.findings import CourseError
from course_build.interchange.add_language import with_draft

from .conftest import SETTINGS, SOURCE, code, prose

LAYOUTS = {
    "none yet": (
        '[tool.course]\nlanguages = ["en", "ru"]    # the first\nbranch = "main"\n',
        '[tool.course]\nlanguages = ["en", "ru"]    # the first\n'
        'drafts = ["qtz"]    # may be incomplete\nbranch = "main"\n',
    ),
    "an empty list": (
        '[tool.course]\ndrafts = []  # none\nlanguages = ["en"]\n',
        '[tool.course]\ndrafts = ["qtz"]  # none\nlanguages = ["en"]\n',
    ),
    "one already": (
        '[tool.course]\nlanguages = ["en"]\ndrafts = ["de"]   # so far\n',
        '[tool.course]\nlanguages = ["en"]\ndrafts = ["de", "qtz"]   # so far\n',
    ),
    "over several lines": (
        '[tool.course]\nlanguages = [\n    "en",\n    "ru",\n]\ndrafts = [\n    "de",\n]\n[z]\n',
        '[tool.course]\nlanguages = [\n    "en",\n    "ru",\n]\n'
        'drafts = [\n    "de", "qtz",\n]\n[z]\n',
    ),
    "another table's languages": (
        '[a]\nlanguages = ["x"]\ndrafts = ["y"]\n\n[tool.course]\nlanguages = ["en"]',
        '[a]\nlanguages = ["x"]\ndrafts = ["y"]\n\n[tool.course]\nlanguages = ["en"]\n'
        'drafts = ["qtz"]    # may be incomplete',
    ),
}


@pytest.mark.parametrize(("before", "after"), LAYOUTS.values(), ids=LAYOUTS.keys())
def test_the_files_comments_and_layout_stay(before, after):
    assert with_draft(before, "qtz") == after
    assert tomllib.loads(after)["tool"]["course"]["drafts"][-1] == "qtz"


@pytest.mark.parametrize(
    "text",
    [
        'tool.course.languages = ["en"]\n',
        '[tool]\ncourse = { languages = ["en"] }\n',
        '[tool.course]\nlanguages = ["en"]\n[b]\ndrafts = ["y"]\n',
        '[tool.course]\nlanguages = ["en"]\ndrafts = [\n  "de" # German\n]\n',
    ],
)
def test_what_cannot_be_edited_with_care_is_left_to_the_author(text):
    with pytest.raises(CourseError, match=r'write drafts = \["qtz"\] below languages yourself'):
        with_draft(text, "qtz")


def test_a_language_is_added_and_the_next_commands_are_named(repo):
    repo.build(prose("p"))
    before = repo.read(SOURCE)
    ran = repo.run("add-language", "qtz")
    assert ran.code == 0, ran.err
    for words in ("build_notebooks.py\n", "export --lang qtz", "import build/po/qtz/", "status"):
        assert words in ran.out
    assert repo.read(SOURCE) == before
    assert repo.run().code == 0
    assert "not translated yet" in repo.text("p", "qtz")
    assert repo.run("--check").code == 0


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("en", "already has the language 'en'"),
        ("ru", "already has the language 'ru'"),
        ("german", "'german' is not a language's code"),
        ("DE", "'DE' is not"),
        ("../x", "'../x' is not"),
    ],
)
def test_a_language_that_cannot_be_added_changes_nothing(repo, code, words):
    repo.source()
    ran = repo.run("add-language", code)
    assert ran.code == 2
    assert words in ran.err
    assert repo.read("pyproject.toml") == SETTINGS


def test_a_language_is_not_added_twice(repo):
    repo.source()
    assert repo.run("add-language", "qtz").code == 0
    after = repo.read("pyproject.toml")
    ran = repo.run("add-language", "qtz")
    assert ran.code == 2
    assert "its languages are en, ru, qtz" in ran.err
    assert repo.read("pyproject.toml") == after


def test_a_code_that_comments_already_begin_with_is_refused(repo):
    repo.source(code("x", "# id: a number\nx = 1"))
    assert repo.run().code == 0
    ran = repo.run("add-language", "id")
    assert ran.code == 2
    assert 'cell "x": [comment-pair]' in ran.err
    assert repo.read("pyproject.toml") == SETTINGS
