"""Views on a page: what is written there, and what it does in a browser, by keyboard, unseen."""

import html
import json
import re

import pytest

from course_build.outputs.views import VIEW, Control, Frame, View, read_view
from course_build.site.clean import clean_output, clean_svg
from course_build.site.sphinx_build import HERE
from course_build.site.views import clean_view, view_html
from tests.browser import opened_browser, opened_page

from .test_view_outputs import ALT, TOLD, changed, data

WHERE = "figures/module_03-see.svg"
FIGURE = '<div class="figure"><img src="figures/module_03-see.svg" alt="ALT"></div>'.replace(
    "ALT", ALT.format("1,0")
)
HOSTILE = "\"><script>document.documentElement.dataset.ran='yes'</script>&amp;"


@pytest.fixture(scope="module")
def shown():
    return view_html(read_view(data()), FIGURE, WHERE)


def test_every_other_picture_is_a_file_beside_the_figure(shown):
    _, files = shown
    assert files.keys() == {
        f"figures/module_03-see.{state}.svg" for state in ("0-0", "0-1", "0-2", "1-1", "1-2")
    }
    assert b"drawn 0,2" in files["figures/module_03-see.0-2.svg"]


def test_the_page_names_each_picture_and_its_words_and_holds_no_drawing(shown):
    page, files = shown
    told = json.loads(html.unescape(re.search(r'data-frames="([^"]*)"', page)[1]))
    assert list(told) == list(TOLD["frames"])
    assert told["1,0"] == ["module_03-see.svg", ALT.format("1,0")]
    assert told["0,2"] == ["module_03-see.0-2.svg", ALT.format("0,2")]
    assert "<svg" not in page
    assert FIGURE in page


def test_each_control_is_native_labelled_and_at_its_start(shown):
    page, _ = shown
    labels = re.findall(r'<label for="([^"]*)">([^<]*)</label><(\w+) id="([^"]*)"', page)
    assert [(a == d, text, tag) for a, text, tag, d in labels] == [
        (True, "First", "select"),
        (True, "Second", "input"),
    ]
    assert "<option>one</option><option selected>two</option>" in page
    assert 'type="range" min="0" max="2" step="1" value="0"' in page
    assert re.search(r'<output for="([^"]*)">x</output>', page)[1] == labels[1][0]
    assert '<div class="view-controls" hidden>' in page


def test_no_word_of_a_view_becomes_markup():
    frames = {"0": Frame("<svg/>", HOSTILE), "1": Frame("<svg/>", HOSTILE)}
    for kind in ("range", "choice"):
        control = Control(HOSTILE, kind, (HOSTILE, HOSTILE), 0)
        page, _ = view_html(View(HOSTILE, (control,), frames), FIGURE, WHERE)
        assert "<script" not in page
        assert json.loads(html.unescape(re.search(r'data-frames="([^"]*)"', page)[1]))["1"] == [
            "module_03-see.1.svg",
            HOSTILE,
        ]


def test_drawings_are_cleaned_and_one_that_is_none_takes_the_view_with_it():
    script = TOLD["frames"]["0,1"]["svg"].replace("<text>", "<script>1</script><text>")
    view = clean_view(data(changed("frames", "0,1", "svg", to=script)), clean_svg)
    assert "script" not in view.frames["0,1"].svg
    assert "drawn 0,1" in view.frames["0,1"].svg
    for broken in ("<svg", "<p>x</p>", ""):
        assert clean_view(data(changed("frames", "0,1", "svg", to=broken)), clean_svg) is None


def test_an_output_with_a_broken_view_is_still_a_figure():
    metadata = {"image/svg+xml": {"alt": "words"}}
    output = {"output_type": "display_data", "metadata": metadata}
    whole = clean_output({**output, "data": data()})
    assert set(whole["data"]) == {"image/svg+xml", VIEW}
    broken = clean_output({**output, "data": data(changed("frames", to=[]))})
    assert set(broken["data"]) == {"image/svg+xml"}


# --- in a browser ---

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>A page</title>
<link rel="stylesheet" href="views.css"><main>{}</main><script src="views.js"></script>"""


@pytest.fixture(scope="module")
def browser():
    with opened_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def path(shown, tmp_path_factory):
    """A page with two views, one of them in a copy with other files."""
    folder = tmp_path_factory.mktemp("views")
    page, files = shown
    other, more = view_html(
        read_view(data()), FIGURE.replace("-see", "-other"), WHERE.replace("-see", "-other")
    )
    files = {**files, **more, WHERE: TOLD["frames"]["1,0"]["svg"].encode()}
    files[WHERE.replace("-see", "-other")] = files[WHERE]
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    for name in ("views.js", "views.css"):
        (folder / name).write_bytes((HERE / "static" / name).read_bytes())
    (folder / "page.html").write_text(PAGE.format(page + other), encoding="utf-8")
    return folder / "page.html"


@pytest.fixture
def page(browser, path):
    with opened_page(browser, path) as page:
        yield page


def picture(page, which=0):
    """The picture's file and words, once it has been loaded."""
    page.wait_for_function(
        "n => { const i = document.images[n]; return i.complete && i.naturalWidth > 0 }", arg=which
    )
    return page.evaluate(
        "n => [document.images[n].src.split('/').pop(), document.images[n].alt]", which
    )


def test_arrow_keys_move_a_slider_and_its_picture_words_and_value(page):
    slider = page.get_by_label("Second").first
    assert slider.is_visible()
    assert picture(page) == ["module_03-see.svg", ALT.format("1,0")]
    slider.press("ArrowRight")
    assert picture(page) == ["module_03-see.1-1.svg", ALT.format("1,1")]
    slider.press("End")
    assert picture(page) == ["module_03-see.1-2.svg", ALT.format("1,2")]
    assert slider.get_attribute("aria-valuetext") == "z"
    assert page.locator("output").first.inner_text() == "z"
    slider.press("Home")
    assert picture(page) == ["module_03-see.svg", ALT.format("1,0")]
    assert picture(page, 1)[0] == "module_03-other.svg"


def test_a_list_is_chosen_from_by_keyboard(page):
    chooser = page.get_by_label("First").first
    chooser.focus()
    chooser.press("ArrowUp")
    assert picture(page) == ["module_03-see.0-0.svg", ALT.format("0,0")]
    page.get_by_label("Second").first.press("ArrowRight")
    assert picture(page) == ["module_03-see.0-1.svg", ALT.format("0,1")]


def test_controls_are_reached_by_tab_in_their_order(page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.labels[0].textContent") == "First"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.labels[0].textContent") == "Second"


def test_what_the_picture_shows_is_told_once_the_slider_rests(page):
    told = page.locator(".view-words").first
    assert told.get_attribute("aria-live") == "polite"
    assert told.inner_text() == ""
    page.evaluate("""() => {
        window.said = [];
        const words = document.querySelector(".view-words");
        new MutationObserver(() => said.push(words.textContent))
            .observe(words, { childList: true });
    }""")
    slider = page.get_by_label("Second").first
    slider.press("ArrowRight")
    slider.press("ArrowRight")
    page.wait_for_function("window.said.length > 0")
    assert page.evaluate("said") == [ALT.format("1,2")]


def test_nothing_moves_by_itself(page):
    before = picture(page)
    page.wait_for_timeout(700)
    assert picture(page) == before
    assert page.evaluate("document.getAnimations().length") == 0


def test_pictures_are_asked_for_only_when_somebody_turns_to_the_view(browser, path):
    context = browser.new_context()
    page = context.new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url.rsplit("/", 1)[-1]))
    page.goto(path.as_uri())
    page.wait_for_load_state("load")
    assert sorted(name for name in asked if name.endswith(".svg")) == [
        "module_03-other.svg",
        "module_03-see.svg",
    ]
    page.get_by_label("Second").first.focus()
    page.wait_for_timeout(200)
    assert {"module_03-see.1-1.svg", "module_03-see.0-0.svg"} <= set(asked)
    assert "module_03-see.0-2.svg" not in asked
    context.close()


def test_without_scripts_there_is_the_figure_and_nothing_that_does_nothing(browser, path):
    with opened_page(browser, path, java_script_enabled=False) as page:
        assert page.locator("img").first.is_visible()
        assert page.locator("img").first.get_attribute("alt") == ALT.format("1,0")
        for control in page.locator("select, input, label, output").all():
            assert not control.is_visible()


def test_a_page_without_a_view_has_no_error(browser, tmp_path):
    (tmp_path / "views.js").write_bytes((HERE / "static" / "views.js").read_bytes())
    (tmp_path / "page.html").write_text(PAGE.format("<p>words</p>"), encoding="utf-8")
    errors = []
    context = browser.new_context()
    page = context.new_page()
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto((tmp_path / "page.html").as_uri())
    assert errors == []
    context.close()


def test_axe_finds_no_violation_in_a_view(page):
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag22aa"]})
    assert [rule["id"] for rule in found.response["violations"]] == []
