"""The pages of progress: a screen reader is told all of it, and a site's sanitiser keeps it."""

import re
from xml.etree import ElementTree

import pytest

from course_build.base.chrome import CHROME, LEVELS
from course_build.site.clean import clean_html, clean_output
from course_build.site.sphinx_build import HERE
from course_lib.practice._practice_texts import _PRACTICE_LEVELS
from course_lib.practice.progress import PROGRESS_LEVELS
from course_lib.practice.quiz import ask
from course_lib.text import both

from .conftest import judge
from .shown import words

CHOICES = {
    "the keys": (True, "Each query shares out one unit."),
    "the <queries>": (False, "Then columns sum to 1."),
    "both & none": (False, "A matrix has two axes."),
}


STATIC = HERE / "static"


@pytest.fixture
def filled(progress, outputs):
    """A learner in the middle of the module."""
    progress.check("mask", judge, "right")
    progress.check("attention", judge, "wrong")
    progress.predict("row", "Is 1 < 2?", {"yes": "yes & no", "no": "no"}, guess="yes")
    progress.predict("params", "How many?")
    ask(progress, "axis", "Along which axis?", CHOICES)
    return progress


def pages(progress, outputs):
    progress.show()
    progress.certificate("Ada <Lovelace>")
    return [bundle["text/html"] for bundle in outputs]


def test_every_page_is_well_formed_and_says_what_its_text_says(filled, outputs):
    for page in pages(filled, outputs):
        ElementTree.fromstring(page)
    assert all(set(bundle) == {"text/html", "text/plain"} for bundle in outputs)


def test_tables_have_a_caption_and_headers_with_a_scope(filled, outputs):
    filled.show()
    tables = outputs.page.findall(".//table")
    assert [words(table.find("caption")) for table in tables] == [
        "Exercises",
        "Predictions",
        "Quiz: 0 of 1 right",
    ]
    for table in tables:
        first, *rows = table.findall("tr")
        assert {cell.tag: cell.get("scope") for cell in first} == {"th": "col"}
        assert all([cell.tag for cell in row][:2] == ["th", "td"] for row in rows)
        assert all(row.find("th").get("scope") == "row" for row in rows)
        assert len({len(row) for row in [first, *rows]}) == 1


def test_the_bar_has_a_name_and_says_how_far_it_is(filled, outputs):
    filled.show()
    label = outputs.page.find(".//label")
    assert words(label).startswith("Contracts passed: 1 of 3")
    assert label.find("progress").attrib == {"value": "1", "max": "3"}


def test_nothing_is_said_by_colour_and_no_colour_is_named(filled, outputs):
    for page in pages(filled, outputs):
        named = re.findall(r"(?:color|background)\s*:\s*([^;\"]+)", page)
        assert set(named) <= {"inherit", "transparent"}
    filled.show()
    states = [words(row[2]) for row in outputs.page.findall(".//table")[0].findall("tr")[1:]]
    assert [state[0] for state in states] == ["✓", "✗", "○"]
    assert all(re.search(r"\w{4}", state) for state in states)


def test_every_choice_unfolds_to_its_explanation(filled, outputs):
    items = ElementTree.fromstring(outputs[-1]["text/html"]).findall(".//ol/li/details")
    assert [words(item.find("summary")) for item in items] == list(CHOICES)
    assert [words(item.find("p")) for item in items] == [
        "✓ right. Each query shares out one unit.",
        "✗ not right. Then columns sum to 1.",
        "✗ not right. A matrix has two axes.",
    ]


def test_a_site_shows_the_whole_page(filled, outputs):
    for page in pages(filled, outputs):
        cleaned = ElementTree.fromstring(clean_html(page))
        before = ElementTree.fromstring(page)
        assert [(n.tag, n.get("scope"), n.get("max")) for n in cleaned.iter() if n.tag != "tbody"]
        assert words(cleaned) == words(before)
        kept = [node.tag for node in cleaned.iter() if node.tag != "tbody"]
        assert kept == [node.tag for node in before.iter()]


def test_a_page_of_a_site_hides_how_to_record_an_answer_and_knows_no_other_class(outputs, progress):
    progress.predict("row", "Safe?", {"yes": "yes, it is", "no": "no"})
    progress.predict("params", "How many?")
    ask(progress, "axis", "Along which axis?", CHOICES)
    for page in outputs:
        cleaned = ElementTree.fromstring(clean_html(page["text/html"]))
        (hidden,) = [node for node in cleaned.iter() if node.get("class")]
        assert (hidden.tag, hidden.get("class")) == ("p", "course-call")
        assert words(hidden).startswith("To record your ")
        assert words(hidden) in page["text/plain"]
    assert "Open a choice" not in words(hidden)
    assert re.search(r"\.course-call \{\s*display: none;", (STATIC / "course.css").read_text())
    assert clean_html('<p class="sidebar course-call">a</p><b class="course-call">b</b>') == (
        '<p class="course-call">a</p><b>b</b>'
    )


def test_a_prediction_shows_its_words_as_they_are(outputs, progress):
    named = {"<i>a</i>": "<b>one</b> & 2", "b": "two"}
    progress.predict("row", "Is <u>1</u> < 2?", named)
    items = [words(item) for item in outputs.page.iter("li")]
    assert items == ["<i>a</i>: <b>one</b> & 2", "b: two"]
    assert "Prediction. Is <u>1</u> < 2?" in words(outputs.page)
    progress.predict("row", "Is 1 < 2?", named, guess="<i>a</i>")
    progress.predict("row", "Is 1 < 2?", named)
    assert words(outputs.page).count("<b>one</b> & 2") == 2
    assert {node.tag for node in outputs.page.iter()} == {"div", "p", "strong", "ul", "li", "code"}


def test_a_site_prefers_the_page_to_the_text(filled, outputs):
    bundle = {"output_type": "display_data", "data": outputs[-1], "metadata": {}}
    assert "<details><summary>the keys" in clean_output(bundle)["data"]["text/html"]


@pytest.mark.parametrize(
    "page",
    [
        '<details open="" ontoggle="x()"><summary onclick="x()">a</summary>b</details>',
        '<progress value="1" max="2" onclick="x()" id="a" class="b"></progress>',
        '<label for="a" onclick="x()">a</label>',
    ],
)
def test_the_new_elements_bring_nothing_that_runs(page):
    cleaned = clean_html(page)
    assert not re.search("on[a-z]+=|id=|class=|for=|open=", cleaned)


def test_the_russian_notebook_speaks_russian(filled, outputs, russian):
    shown, certificate = pages(filled, outputs)[-2:]
    head = [words(cell) for cell in ElementTree.fromstring(shown).iter("th")][:3]
    assert head == ["упражнение", "уровень", "состояние"]
    assert "Выполнено контрактов: 1 из 3" in shown
    assert "✗ нарушен пункт «rows»; ведёт себя как not_scaled" in shown
    assert "разминка" in certificate
    ask(filled, "axis", "Вдоль какой оси?", CHOICES)
    assert "Вопрос для проверки. Вдоль какой оси?" in outputs[-1]["text/html"]


def test_the_library_and_the_builder_call_a_level_the_same():
    assert tuple(_PRACTICE_LEVELS) == LEVELS == PROGRESS_LEVELS
    for level, texts in ((level, both(said)) for level, said in _PRACTICE_LEVELS.items()):
        assert {code: CHROME[code][level] for code in texts} == texts


def test_the_same_state_gives_the_same_bytes(filled, outputs):
    first = pages(filled, outputs)[-2:]
    second = pages(filled, outputs)[-2:]
    assert first == second
