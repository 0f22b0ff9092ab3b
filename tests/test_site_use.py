"""What a reader does with the pages: search, change the language, copy code, choose the theme."""

import functools
import re
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.browser import AT_REST, NARROW, SETTLED, opened_browser, opened_page, turn_to

pytestmark = pytest.mark.delivery

SECTION = "module_03/masks.html"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def browser():
    with opened_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def served(site):
    """The address of the pages as a server on this machine gives them."""
    with ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))
    ) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def tab(site, browser):
    """A tab in which pages from the disk are opened, one after the other."""
    with opened_page(browser, site / "en" / SECTION) as page:
        yield page


@pytest.fixture(scope="module")
def desk(served, browser):
    """A tab in which pages from a server are opened; its reader may copy."""
    permissions = ["clipboard-read", "clipboard-write"]
    address = f"{served}/en/{SECTION}"
    with opened_page(browser, address, permissions=permissions, color_scheme="light") as page:
        yield page


@pytest.fixture(scope="module")
def narrow(site, browser):
    """A section on a telephone in the dark."""
    with opened_page(browser, site / "ru" / SECTION, color_scheme="dark") as page:
        page.set_viewport_size(NARROW)
        page.evaluate(AT_REST)
        yield page


@pytest.mark.parametrize(
    ("source", "language", "word", "status", "nothing"),
    [
        ("disk", "ru", "масками", "Найдено страниц: ",
         "Ничего не найдено. Попробуйте одно слово или другое."),
        ("server", "en", "masking", "Pages found: ",
         "Nothing was found. Try a single word, or another one."),
    ],
)  # fmt: skip
def test_search_finds_a_word_in_another_form_and_says_what_it_did(
    site, served, tab, desk, source, language, word, status, nothing
):
    page, start = (tab, site.as_uri()) if source == "disk" else (desk, served)
    turn_to(page, f"{start}/{language}/{SECTION}")
    box = page.locator(".sidebar-search")
    box.fill(word)
    box.press("Enter")
    found = page.locator("#search-results li a")
    found.first.wait_for()
    page.get_by_text(status).wait_for()
    addresses = found.evaluate_all("links => links.map(link => link.href)")
    assert any(address.split("?")[0].endswith(SECTION) for address in addresses)
    titles = found.all_inner_texts()
    assert len(set(titles)) == len(titles)
    if source == "server":
        shown = page.locator("#search-results li p")
        shown.first.wait_for()
        assert not re.search(r"^\.{3}|\.{3}$|\\\(", shown.first.inner_text())
    found.first.click()
    page.wait_for_load_state()
    assert page.locator("article h1").is_visible()
    turn_to(page, f"{start}/{language}/search.html?q=абракадабра")
    page.get_by_text(nothing).wait_for()
    assert page.amiss == []


def switch(page, code):
    """Follow the link to the page in another language, by keyboard; the address and place."""
    page.locator(f'nav.languages a[hreflang="{code}"]').focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/{code}/**")
    return page.url.rsplit(f"/{code}/", 1)[1]


def test_from_a_place_the_other_language_opens_at_the_same_place(site, tab):
    turn_to(tab, f"{site.as_uri()}/en/{SECTION}")
    ways = ("mask-after-ask", "ru"), ("causal-allowed", "en"), ("mask-contract", "ru")
    for place, code in ways:
        tab.evaluate("place => { location.hash = place }", place)
        tab.evaluate(AT_REST)
        assert switch(tab, code) == f"{SECTION}#{place}"
        tab.evaluate(SETTLED)
        tab.evaluate(AT_REST)
        top = tab.locator(f"#{place}").evaluate("place => place.getBoundingClientRect().top")
        assert 0 <= top < 300


def test_from_where_one_has_read_to_the_other_language_opens(site, tab):
    turn_to(tab, f"{site.as_uri()}/en/{SECTION}")
    assert switch(tab, "ru") == SECTION
    tab.locator("#mask-kinds-ask").evaluate("place => place.scrollIntoView()")
    tab.evaluate(AT_REST)
    assert switch(tab, "en") == f"{SECTION}#mask-kinds-ask"


def test_without_scripts_the_other_language_opens_at_the_same_page(site, browser):
    address = f"{site.as_uri()}/en/{SECTION}#mask-after-ask"
    with opened_page(browser, address, java_script_enabled=False, settled=False) as page:
        assert switch(page, "ru") == SECTION


@pytest.mark.parametrize(
    ("language", "done", "name"), [("en", "Copied!", "Copy"), ("ru", "Скопировано!", "Скопировать")]
)
def test_code_is_copied_by_keyboard_and_that_is_said(served, desk, language, done, name):
    turn_to(desk, f"{served}/{language}/{SECTION}")
    button = desk.locator("#causal-allowed-use .copybtn")
    button.wait_for(state="attached")
    code = desk.locator("#causal-allowed-use .cell_input pre").inner_text()
    button.focus()
    desk.keyboard.press("Enter")
    desk.get_by_role("status").get_by_text(done).wait_for(state="attached")
    assert desk.evaluate("navigator.clipboard.readText()").strip() == code.strip()
    desk.mouse.move(0, 0)
    assert button.evaluate("button => getComputedStyle(button).opacity") == "1"
    assert button.get_attribute("aria-label") == name
    assert desk.locator(".cell_output .copybtn").count() == 0


def test_the_notebook_of_a_page_can_be_had(served, desk):
    turn_to(desk, f"{served}/ru/{SECTION}")
    with desk.expect_download() as got:
        desk.get_by_text("Скачать .ipynb").click()
    assert got.value.suggested_filename == "module_03_basic_transformer.ipynb"


def test_the_theme_one_chooses_stays_on_the_next_page(served, desk):
    turn_to(desk, f"{served}/en/{SECTION}")
    theme = desk.locator(".theme-toggle-content .theme-toggle")
    backgrounds = set()
    for _ in range(3):
        theme.press("Enter")
        backgrounds.add(desk.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(backgrounds) == 2
    theme.press("Enter")
    chosen = desk.evaluate("document.body.dataset.theme")
    assert chosen != "auto"
    desk.locator(".next-page").click()
    desk.wait_for_url("**/sdpa.html")
    assert desk.evaluate("document.body.dataset.theme") == chosen


def test_a_narrow_page_keeps_its_words_within_its_width(narrow):
    wide = """elements => elements.filter(element =>
        element.getBoundingClientRect().right > innerWidth + 1).map(e => e.textContent)"""
    assert narrow.eval_on_selector_all("article p, article h1, article h2", wide) == []


def test_where_more_is_to_the_right_the_edge_says_so_until_one_is_there(narrow):
    figure = narrow.locator(".figure").first
    assert "has-more" in figure.get_attribute("class")
    figure.evaluate("element => { element.scrollLeft = element.scrollWidth; }")
    narrow.evaluate(AT_REST)
    assert "has-more" not in figure.get_attribute("class")


def test_what_a_cell_prints_is_read_without_scrolling_sideways(narrow):
    cut = "prints => prints.filter(each => each.scrollWidth > each.clientWidth).length"
    prints = ".cell_output .highlight pre"
    assert narrow.locator(prints).count() > 5
    assert narrow.eval_on_selector_all(prints, cut) == 0


@pytest.mark.parametrize(("icon", "drawer"), [("nav", ".sidebar-drawer"), ("toc", ".toc-drawer")])
def test_the_drawers_of_a_narrow_page_open_by_keyboard(narrow, icon, drawer):
    button = narrow.locator(f".{icon}-overlay-icon [role=button]").locator("visible=true").first
    assert button.get_attribute("aria-label").strip()
    for key, state in (("Enter", "true"), ("Escape", "true"), (" ", "false"), (" ", "true")):
        button.press(key)
        assert button.get_attribute("aria-expanded") == state
        narrow.evaluate(AT_REST)
        assert narrow.locator(drawer).is_visible() == (state == "true")
    button.press("Enter")
