"""Notebooks as slides: what is shown and what is said, and what a browser makes of the decks."""

import json
import re

import pytest

from course_build.settings import SETTINGS_FILE, parse_settings
from course_build.teaching.slides import __main__ as command
from course_build.teaching.slides.deck import DENSE, ROOM, Block, Slide, deck
from course_build.teaching.slides.pages import Written
from tests.browser import opened_browser

from .conftest import LANGUAGES, ROOT, STEMS

SVG = '<svg xmlns="http://www.w3.org/2000/svg" height="90pt" width="7" />'


def prose(key, text):
    return {"cell_type": "markdown", "id": key, "metadata": {}, "source": text}


def code(key, text, *outputs, tags=()):
    return {
        "cell_type": "code",
        "id": key,
        "metadata": {"tags": list(tags)},
        "source": text,
        "outputs": list(outputs),
    }


def printed(text):
    return {"output_type": "stream", "name": "stdout", "text": text}


def figure(alt="A line that rises from left to right."):
    data = {"image/svg+xml": SVG, "text/plain": alt}
    return {
        "output_type": "display_data",
        "data": data,
        "metadata": {"image/svg+xml": {"alt": alt}},
    }


def slides(*cells):
    """The slides after a title as (title, kinds of its blocks, notes)."""
    stacks = deck([prose("title", "# Title"), *cells])[1:]
    return [[(s.title, [b.kind for b in s.blocks], s.notes) for s in stack] for stack in stacks]


def test_a_section_is_a_stack_a_subsection_or_a_question_a_slide_of_it():
    found = slides(
        prose("a", "## One\n\nWhy?"),
        code("b", "x = 1", printed("1")),
        prose("c", "And now?"),
        code("d", "y = 2"),
        prose("e", "### Two\n\nHow?"),
        prose("f", "## Three"),
    )
    assert found == [
        [
            ("One", ["prose", "code", "output"], []),
            ("One", ["prose", "code"], []),
            ("Two", ["prose"], []),
        ],
        [("Three", [], [])],
    ]


def test_explanations_hints_and_solutions_are_said_not_shown():
    [[shown]] = slides(
        prose("a", "## One\n\nWrite it."),
        code("stub", "x = None", tags=["exercise"]),
        code("check", "check(x)", printed("not attempted"), tags=["exercise-check"]),
        prose("hint", "<details><summary>Hint</summary>\n\nLook.\n\n</details>"),
        prose("b-say", "It is one."),
    )
    assert shown[:2] == ("One", ["prose", "code"])
    assert [note[:9] for note in shown[2]] == ["<details>", "It is one"]


def test_machinery_records_and_what_draws_a_figure_stay_in_the_notebook():
    [[shown]] = slides(
        prose("a", "## One\n\nLook."),
        code("machinery", "#@title M", printed("words"), tags=["hide-input"]),
        code("folded-figure", "#@title M", figure(), tags=["hide-input"]),
        code("progress", "progress = Progress('m', {})", printed("table")),
        code("record", "progress.compare('x', 1)", printed("no prediction")),
        code("draw", "show_figure(f)", figure()),
        code("predict", "progress.predict('x', 'How many?')", printed("How many?")),
    )
    assert shown[1] == ["prose", "output", "output", "output"]


def test_what_does_not_fit_below_goes_to_the_next_slide_code_with_its_output():
    long = "\n".join("x = 1" for _ in range(12))
    [stack] = slides(
        prose("a", "## One\n\nLook."), code("b", long, printed("1")), code("c", long, printed("2"))
    )
    assert [kinds for _, kinds, _ in stack] == [["prose", "code", "output"], ["code", "output"]]
    [first, *_] = deck([prose("title", "# T"), code("b", long), code("c", long)])
    assert all(slide.height <= ROOM for slide in first)


@pytest.mark.parametrize(
    ("kind", "height", "dense"),
    [("prose", DENSE, False), ("prose", DENSE + 1, True), ("code", DENSE + 1, False)],
)
def test_much_prose_is_set_smaller_since_it_cannot_scroll(kind, height, dense):
    assert Slide("Title", 2, [Block(kind, "x", "key", height)]).is_dense is dense


def test_a_deck_speaks_its_language_and_runs_nothing_that_an_output_brings():
    bad = {"output_type": "display_data", "data": {"text/html": "<script>x</script><p>y</p>"}}
    cells = [
        prose("t", "# A < B\n\nSee [a term](glossary.md#x) and $a < b$, $$c$$"),
        code("k", "x < 1", bad, figure('Three "words"'), figure()),
    ]
    written = Written("module_03_idea")
    page = written.page(deck(cells), "ru").decode()
    assert '<html lang="ru">' in page
    assert "<title>A &lt; B</title>" in page
    assert "See a term and" in page
    assert r"\(a &lt; b\)" in page
    assert r"\[c\]" in page
    assert "<script>x" not in page
    assert sorted(written.figures) == [
        "figures/module_03_idea-k-2.svg",
        "figures/module_03_idea-k.svg",
    ]
    assert 'alt="Three &quot;words&quot;"' in page


def test_the_scripts_are_those_of_the_package_and_ask_no_host():
    files = command.scripts()
    assert {"_reveal/LICENSE", "_reveal/dist/reveal.js", "_reveal/deck.css"} <= files.keys()
    sheets = b"".join(content for name, content in files.items() if name.endswith(".css"))
    assert b"@import" not in sheets
    assert not re.search(rb"url\(\s*[\"']?(?:https?:)?//", sheets)


MEASURED = """async () => {
  const found = [];
  for (const slide of Reveal.getSlides()) {
    const { h, v } = Reveal.getIndices(slide);
    Reveal.slide(h, v);
    await Promise.all([...slide.querySelectorAll("img")].map((image) => image.decode()));
    const boxes = [...slide.querySelectorAll(":scope > pre, :scope > .output, :scope > img")];
    const seen = boxes.map((box) => box.clientHeight);
    const low = slide.scrollHeight - slide.clientHeight;
    const wide = slide.scrollWidth - slide.clientWidth;
    const out = boxes.filter((box) => box.offsetTop + box.offsetHeight > 720).length;
    found.push({ place: `${h}/${v}`, low, wide, out, least: Math.min(...seen, 999) });
  }
  return found;
}"""


@pytest.fixture(scope="module")
def folder(executed, tmp_path_factory):
    """The decks of the notebooks that were executed for all tests."""
    settings = parse_settings((ROOT / SETTINGS_FILE).read_text(encoding="utf-8"))
    copies = {language: {} for language in LANGUAGES}
    for (edition, language, name), outcome in sorted(executed.items()):
        if edition == "learner":
            copies[language][f"{name}.ipynb"] = outcome.job.executed.read_bytes()
    folder = tmp_path_factory.mktemp("slides")
    made = command.slides_of(copies, settings, True) | command.scripts()
    for path, content in made.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    command.copy_mathjax(folder / "_mathjax")
    return folder


@pytest.fixture(scope="module")
def browser():
    with opened_browser() as browser:
        yield browser


@pytest.mark.notebooks
@pytest.mark.parametrize("stem", STEMS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_slide_fits_and_the_deck_asks_nothing_of_the_network(folder, browser, language, stem):
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    page.set_default_timeout(120_000)
    said, asked = [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    try:
        page.goto((folder / language / f"{stem}.html").as_uri())
        page.wait_for_function("window.Reveal && Reveal.isReady()")
        found = page.evaluate(MEASURED)
        broken = page.locator("mjx-merror").count()
        formulas = page.locator("mjx-container").count()
        notes = page.locator("aside.notes details").count()
    finally:
        page.close()
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert [slide for slide in found if slide["low"] > 0 or slide["wide"] > 0] == []
    assert [slide for slide in found if slide["out"] or slide["least"] < 24] == []
    assert len(found) > 100
    assert (broken, formulas > 20, notes > 10) == (0, True, True)


def test_slides_that_cannot_be_made_leave_the_last_good_ones(monkeypatch, tmp_path, capsys):
    (tmp_path / SETTINGS_FILE).write_bytes((ROOT / SETTINGS_FILE).read_bytes())
    cells = [prose("title", "# Title\n\nWords.")]
    good = {"en": {"module_03_a.ipynb": json.dumps({"cells": cells}).encode()}}
    monkeypatch.setattr(command, "copy_mathjax", lambda folder: None)
    monkeypatch.setattr(command, "fresh_copies", lambda *given: good)
    assert command.main([], tmp_path) == 0
    page = tmp_path / command.FOLDER / "en" / "module_03_a.html"
    before = page.read_bytes()
    bad = {"en": {**good["en"], "module_04_b.ipynb": b"{"}}
    monkeypatch.setattr(command, "fresh_copies", lambda *given: bad)
    assert command.main([], tmp_path) == 2
    assert "not a notebook" in capsys.readouterr().err
    assert page.read_bytes() == before
    monkeypatch.setattr(command, "fresh_copies", lambda *given: {"en": {}})
    assert command.main([], tmp_path) == 0
    assert not page.exists()
