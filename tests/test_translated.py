"""Whoever reads a translation meets the source language only in code, names and docstrings."""

import json

import pytest

from course_build.base.files import read_files
from course_build.base.settings import SETTINGS_FILE, parse_settings
from course_build.building.course import read_units
from course_build.run.jobs import EDITIONS, ROOT
from course_build.source.cells import parse_source
from course_build.source.code import comments, parse_code
from course_build.source.language import select_comments
from course_build.translation.untranslated import (
    foreign_script,
    foreign_words,
    listed_names,
    names_in,
    untranslated,
)
from course_lib.machine import describe_machine

SETTINGS = parse_settings((ROOT / SETTINGS_FILE).read_text(encoding="utf-8"))
SCRIPTS = {code: foreign_script(code, SETTINGS.languages[0]) for code in SETTINGS.complete}
TRANSLATIONS = [code for code, script in SCRIPTS.items() if script]
MODULES = sorted(path.stem for path in ROOT.glob("notebooks/src/module_*.py"))

each_translation = pytest.mark.parametrize("language", TRANSLATIONS)
each_module = pytest.mark.parametrize("name", MODULES)


def machines_own_names(script):
    """What its processor is called."""
    return set(foreign_words(describe_machine().processor, script, [])) - {"unknown"}


def test_there_is_a_translation_to_look_through():
    assert TRANSLATIONS
    assert MODULES


@each_translation
@each_module
@pytest.mark.parametrize("edition", EDITIONS)
def test_outputs_hold_no_word_of_the_source_language(executed, edition, language, name):
    path = executed[edition, language, name].job.executed
    notebook = json.loads(path.read_text(encoding="utf-8"))
    script = SCRIPTS[language]
    left = untranslated(notebook, script, machines_own_names(script))
    assert [f"{text.key}, {text.where}: {' '.join(words)}" for text, words in left] == []


@each_translation
@each_module
def test_comments_in_the_notebooks_own_code_are_translated(language, name):
    """Code that is embedded keeps the library's comments."""
    data = read_files(ROOT).sources[f"notebooks/src/{name}.py"].decode()
    units = read_units(parse_source(name, data, SETTINGS.languages), SETTINGS)
    cells = [unit.in_language(language) for unit in units if unit.first.kind == "code"]
    names = listed_names() | names_in(parse_code(cell.text) for cell in cells)
    left = []
    for cell in cells:
        kept = select_comments(cell.text, language, SETTINGS.languages)
        for _, _, comment in comments("\n".join(line for _, line in kept)):
            words = foreign_words(comment, SCRIPTS[language], names)
            left += [f"{cell.key}: {comment}: {' '.join(words)}"] if words else []
    assert left == []
