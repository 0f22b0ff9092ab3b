"""Each definition that a notebook shows is named in the prose beside it, in its language."""

from pathlib import Path

import pytest

from course_build.base.files import read_files
from course_build.base.settings import SETTINGS_FILE, parse_settings
from course_build.building.course import read_units
from course_build.notebook.explained import unexplained
from course_build.source.cells import parse_source
from course_build.source.twins import pair_twins
from course_build.text.glossary import GLOSSARY, read_glossary

from .conftest import SETTINGS, code, prose

ROOT = Path(__file__).resolve().parents[2]
TOY = parse_settings(SETTINGS)
TERMS = read_glossary(
    """
[scaling]
identifiers = ["scale"]

[scaling.en]
name = "scaling rule"
means = "A rule that says by how much a number is to be divided."

[scaling.ru]
name = "правило масштаба"
means = "Правило, которое говорит, на сколько нужно разделить каждое из чисел."
""",
    TOY,
)
EMBED = code("e", "from course_lib.scaling import scale")


def found(*cells, language="en"):
    units, findings = pair_twins(
        parse_source("s.py", "\n".join(cells), TOY.languages), ("en", "ru")
    )
    assert findings == []
    return [f.message for f in unexplained(units, TERMS, language)]


SILENT = prose("silent")
NAMED = {
    "before": (prose("b", "Now `scale`."), EMBED, SILENT),
    "after": (SILENT, EMBED, prose("a", "That was `scale(x)`.")),
    "in the middle of code": (prose("b", "Now `x = scale(2)`."), EMBED),
    "with its word": (prose("b", "Two *scaling rules* follow."), EMBED),
    "with code between": (prose("b", "Now `scale`."), code("c", "x = 1"), EMBED),
    "not where it is packed": (SILENT, EMBED.replace('"e"', '"e" role="library"')),
    "not where nothing is embedded": (SILENT, code("c", "from math import pi")),
}
NOT_NAMED = {
    "nowhere": (SILENT, EMBED, prose("a")),
    "as a plain word": (prose("b", "We scale it."), EMBED),
    "as a part of a name": (prose("b", "Now `rescale` and `scale_it`."), EMBED),
    "too early": (prose("b", "Now `scale`."), SILENT, EMBED),
    "too late": (EMBED, SILENT, prose("a", "Now `scale`.")),
    "in a formula": (prose("b", "$scale$"), EMBED),
}


@pytest.mark.parametrize("cells", NAMED.values(), ids=NAMED.keys())
def test_a_definition_is_named_beside_it(cells):
    assert found(*cells) == []


@pytest.mark.parametrize("cells", NOT_NAMED.values(), ids=NOT_NAMED.keys())
def test_a_definition_that_no_text_beside_it_names_is_found(cells):
    [message] = found(*cells)
    assert "in en, scale is shown and not named" in message


def test_every_language_is_asked_for_itself():
    cells = (prose("b", "Now `scale`.", "Теперь код."), EMBED)
    assert found(*cells) == []
    assert found(*cells, language="ru") == [
        "in ru, scale is shown and not named in the prose beside it, 'b'"
    ]
    assert found(prose("b", "Now.", "По правилам масштаба."), EMBED, language="ru") == []


def test_every_definition_of_the_course_is_explained_in_every_language():
    settings = parse_settings((ROOT / SETTINGS_FILE).read_text(encoding="utf-8"))
    terms = read_glossary((ROOT / GLOSSARY).read_text(encoding="utf-8"), settings)
    files = read_files(ROOT)
    assert files.modules
    for path in files.modules:
        text = files.sources[path].decode()
        units = read_units(parse_source(path, text, settings.languages), settings)
        for language in settings.complete:
            assert list(map(str, unexplained(units, terms, language))) == []
