"""Notebooks as slides: what is shown and what is said, and what a browser makes of the decks."""

import json
import re
from pathlib import Path

import pytest

from course_build.base.settings import SETTINGS_FILE, parse_settings
from course_build.teaching.slides import __main__ as command
from course_build.teaching.slides.deck import deck
from course_build.teaching.slides.pages import Written
from tests.browser import opened_browser, opened_page

from .conftest import LANGUAGES, ROOT, STEMS

pytestmark = pytest.mark.delivery

LEAST = 20  # pixels of the smallest letters, of a slide's 720
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
    """The slides after a title as (title, kinds of what it shows, notes)."""
    _, *stacks = deck([prose("title", "# Title"), *cells])
    return [[(slide.title, *contents(slide)) for slide in stack] for stack in stacks]


def contents(slide):
    """The kinds of what a slide shows, and its notes."""
    shown = [block.kind for block in slide.blocks if block.kind != "note"]
    return shown, [block.content for block in slide.blocks if block.kind == "note"]


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
            ("One", ["prose", "code", "text"], []),
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
    assert shown[1] == ["prose", "figure", "figure", "text"]


def test_that_nothing_was_predicted_is_not_shown_to_a_class():
    said = "tensor(1)\n○ The result is 1. You recorded\n  no prediction."
    [[slide]] = deck([prose("a", "# One"), code("b", "compare()", printed(said))])
    assert [block.content for block in slide.blocks] == ["compare()", "tensor(1)"]


def test_a_quiz_shows_its_choices_and_leaves_the_answers_to_the_speaker():
    asked = "<div><p>Why?</p><ol>{}</ol><p>Open one.</p></div>"
    choice = "<li><details><summary>so</summary><p>Right.</p></details></li>"
    quiz = {"output_type": "display_data", "data": {"text/html": asked.format(choice)}}
    cells = [code("q", "#@title Q\nask(p)", quiz, tags=["hide-input"])]
    [[*_, slide]] = deck([prose("a", "## Ten questions\n\nChoose."), *cells])
    assert [(block.kind, block.content) for block in slide.blocks] == [
        ("html", "<div><p>Why?</p><ol><li>so</li></ol></div>"),
        ("note", asked.format(choice)),
    ]


def test_after_its_check_an_exercise_is_over():
    [[*shown]] = slides(
        prose("a", "## One"),
        prose("z", "### Two\n\nLook."),
        prose("b", "### Exercise\n\nWrite it."),
        code("check", "check(x)", tags=["exercise-check"]),
        prose("hint", "<details>Look.</details>"),
        code("use", "x = 1"),
        prose("c", "And now?"),
    )
    assert [title for title, _, _ in shown] == ["One", "Two", "Exercise", "Two", "Two"]
    assert shown[2][2] == ["<details>Look.</details>"]


def test_a_deck_speaks_its_language_and_runs_nothing_that_an_output_brings():
    bad = {"output_type": "display_data", "data": {"text/html": "<script>x</script><p>y</p>"}}
    cells = [
        prose("t", "# A < B\n\nSee [a term](glossary.md#x) and $a < b$, $$c$$"),
        code("k", "x < 1", bad, figure('Three "words"'), figure()),
    ]
    written = Written("module_03_idea")
    page = written.page(deck(cells), "ru").decode()
    assert '<html lang="ru">' in page
    assert "<title>A &lt; B · Слайды</title>" in page
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


AMISS = Path(__file__).with_name("amiss.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def write(tmp_path_factory):
    """Write the decks of executed notebooks, {language: {path: notebook}}, into a folder."""
    settings = parse_settings((ROOT / SETTINGS_FILE).read_text(encoding="utf-8"))

    def write(copies):
        folder = tmp_path_factory.mktemp("slides")
        made = command.slides_of(copies, settings, True) | command.scripts()
        for path, content in made.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        command.copy_mathjax(folder / "_mathjax")
        return folder

    return write


@pytest.fixture(scope="module")
def folder(executed, write):
    """The decks of the notebooks that were executed for all tests."""
    copies = {language: {} for language in LANGUAGES}
    for (edition, language, name), outcome in sorted(executed.items()):
        if edition == "learner":
            copies[language][f"{name}.ipynb"] = outcome.job.executed.read_bytes()
    return write(copies)


@pytest.fixture(scope="module")
def browser():
    with opened_browser() as browser:
        yield browser


@pytest.mark.parametrize("stem", STEMS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_slide_fits_and_the_deck_asks_nothing_of_the_network(folder, browser, language, stem):
    with opened_page(browser, folder / language / f"{stem}.html") as page:
        assert page.evaluate(AMISS, LEAST) == []
        assert [url for url in page.asked if not url.startswith(("file:", "data:"))] == []
        assert page.amiss == []
        assert page.locator("mjx-merror").count() == 0
        assert page.locator("mjx-container").count() > 20
        assert page.locator("aside.notes details").count() > 10
        assert page.evaluate("Reveal.getTotalSlides()") > 100
        page.keyboard.press("ArrowDown")
        page.wait_for_function("location.hash == '#/before-you-start'")


LAID = """() => Reveal.getSlides().map((slide) => ({
  title: slide.querySelector("h1, h2, h3").innerText,
  letters: ["--code", "--words"].map((name) => parseInt(slide.style.getPropertyValue(name))),
  kinds: [...slide.querySelectorAll(":scope > [data-key]")].map((box) => box.className),
  lines: [...slide.querySelectorAll("pre.code > span")].map((line) => line.innerText),
  said: slide.querySelectorAll("aside").length,
  html: slide.innerHTML,
}))"""


@pytest.fixture(scope="module")
def laid(write, browser):
    """Lay cells out as a deck; return what its slides show, and what its console complains of."""

    def laid(*cells):
        notebook = {"cells": [prose("title", "# Title\n\nLook."), *cells]}
        folder = write({"en": {"module_03_a.ipynb": json.dumps(notebook).encode()}})
        with opened_page(browser, folder / "en/module_03_a.html") as page:
            return page.evaluate(LAID)[1:], page.amiss

    return laid


@pytest.mark.smoke
def test_what_finds_no_room_goes_to_the_next_slide_code_with_its_output_and_its_words(laid):
    long = "\n".join(["x = 1"] * 12)
    first = [prose("a", "## One\n\nLook."), code("b", long, printed("1")), prose("b-say", "So.")]
    shown, amiss = laid(*first, code("c", long, printed("2")), prose("c-say", "And so."))
    assert [slide["kinds"] for slide in shown] == [["prose", "code", "output"], ["code", "output"]]
    assert [(slide["title"], slide["said"]) for slide in shown] == [("One", 1), ("One", 1)]
    assert amiss == []


def test_the_letters_are_as_large_as_a_slide_lets_them_be(laid):
    long, wide = "\n".join(["x = 1"] * 20), f"x = '{'y' * 85}'"
    shown, _ = laid(
        *(prose("a", "## Few\n\nLook."), code("few", "x = 1")),
        *(prose("b", "## Many"), code("many", long)),
        *(prose("c", "## Wide\n\nLook."), code("wide", wide)),
    )
    assert [slide["title"] for slide in shown] == ["Few", "Many", "Wide"]
    few, many, broad = (slide["letters"] for slide in shown)
    assert few == [28, 28]
    assert LEAST <= many[0] < 24
    assert broad == [LEAST, 28]


@pytest.mark.parametrize(
    ("lines", "first"),
    [
        (["a = 1"] * 14 + [""] + ["b = 1"] * 14, 14),
        (["f(", *["    1,"] * 13, ")"] + ["y = 1"] * 14, 15),
        (["for x in y:"] + ["    a = x"] * 14 + ["b = 1"] * 14, 15),
        ([f"x = {n}" for n in range(60)], 15),
    ],
)
def test_code_is_cut_at_a_blank_line_or_where_a_statement_ends(laid, lines, first):
    shown, amiss = laid(prose("a", "## One"), code("b", "\n".join(lines)))
    _, *pieces = shown  # the heading has a slide of its own, which each piece repeats
    found = [line.rstrip("\n") for piece in pieces for line in piece["lines"]]
    assert list(filter(None, found)) == list(filter(None, lines))
    assert len(pieces[0]["lines"]) == first
    assert pieces[0]["kinds"] == ["code goes-on"]
    assert pieces[-1]["kinds"] == ["code continued"]
    assert amiss == []


def test_a_table_is_cut_between_rows_and_what_stands_around_it_is_shown_once(laid):
    rows = [f"<td>{n}</td>" for n in range(30)]
    table = "<table><tr><th>n</th></tr>{}</table>".format("".join(f"<tr>{r}</tr>" for r in rows))
    told = {"output_type": "display_data", "data": {"text/html": f"<p>A.</p>{table}<p>Z.</p>"}}
    typed = "| n |\n|---|\n" + "".join(f"| {n} |\n" for n in range(30))
    for cells in (
        [prose("a", "## One"), code("b", "#@title B", told)],
        [prose("a", f"## One\n\nA.\n\n{typed}\n\nZ.")],
    ):
        shown, amiss = laid(*cells)
        found = [slide["html"] for slide in shown if "<table>" in slide["html"]]
        assert len(found) > 2
        assert re.findall("<td>.*?</td>", "".join(found)) == rows
        assert [text.count("<th>") for text in found] == [1] * len(found)
        assert [text.count("A.") for text in found] == [1] + [0] * (len(found) - 1)
        assert [text.count("Z.") for text in found] == [0] * (len(found) - 1) + [1]
        assert amiss == []


def test_what_no_slide_can_hold_is_named(laid):
    _, amiss = laid(
        prose("good", "## One\n\nLook."),
        code("endless", "x = 1", printed("y" * 3000)),
        prose("formula", "Look.\n\n$$" + "x" * 200 + "$$"),
    )
    told = 'cell "{}": too large for a slide in any letters'
    assert amiss == [told.format("endless"), told.format("formula")]


PLANTED = """() => {
  const block = (key) => document.querySelector(`#${key} pre`);
  block("high").innerHTML += "<span>x</span>".repeat(30);
  block("wide").style.whiteSpace = "pre";
  block("wide").innerHTML += "x".repeat(200);
  block("scrolls").style.cssText = "height: 20px; overflow: auto";
  block("scrolls").innerHTML += "<span>x</span>".repeat(5);
  block("small").innerHTML += "<small style='font-size: 19px'>x</small>";
  const pixel = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA7";
  block("mute").outerHTML = `<img class="figure" src="${pixel}">`;
}"""


def test_what_a_slide_cuts_and_letters_that_are_too_small_are_named(write, browser):
    keys = ("good", "high", "wide", "scrolls", "small", "mute")
    cells = [cell for key in keys for cell in (prose(key, f"## A {key} one"), code("x", "x = 1"))]
    folder = write({"en": {"module_03_a.ipynb": json.dumps({"cells": cells}).encode()}})
    with opened_page(browser, folder / "en/module_03_a.html") as page:
        assert page.evaluate(AMISS, LEAST) == []
        page.evaluate(PLANTED)
        found = page.evaluate(AMISS, LEAST)
    told = [re.sub(r"\d+", "N", sentence) for sentence in found]
    assert told == [
        'slide "high": its <pre> is cut by N pixels',
        'slide "wide": its <pre> is cut by N pixels',
        'slide "scrolls": its <pre> is cut by N pixels',
        'slide "small": its <small> has letters under N pixels',
        'slide "mute": its <img> has no words for who cannot see it',
    ]


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
