"""What a reader does with the pages: search, change the language, copy code, choose the theme."""

import functools
import re
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.browser import AT_REST, NARROW, opened_browser, opened_page

pytestmark = pytest.mark.notebooks

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


@pytest.mark.parametrize("source", ["disk", "server"])
@pytest.mark.parametrize(
    ("language", "word", "status"),
    [("ru", "масками", "Найдено страниц: "), ("en", "masking", "Pages found: ")],
)
def test_search_finds_a_word_in_another_form(site, browser, served, source, language, word, status):
    start = site.as_uri() if source == "disk" else served
    with opened_page(browser, f"{start}/{language}/{SECTION}") as page:
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
        assert page.amiss == []


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("ru", "Ничего не найдено. Попробуйте одно слово или другое."),
        ("en", "Nothing was found. Try a single word, or another one."),
    ],
)
def test_what_is_not_found_is_said_in_the_language_of_the_page(site, browser, language, said):
    with opened_page(browser, f"{site.as_uri()}/{language}/search.html?q=абракадабра") as page:
        page.get_by_text(said).wait_for()
        assert page.amiss == []


def switch(page, code="ru"):
    """Follow the link to the page in another language, by keyboard; the address and place."""
    page.locator(f'nav.languages a[hreflang="{code}"]').focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/{code}/**")
    return page.url.rsplit(f"/{code}/", 1)[1]


@pytest.mark.parametrize("place", ["mask-after-ask", "causal-allowed", "mask-contract"])
def test_from_a_place_the_other_language_opens_at_the_same_place(site, browser, place):
    with opened_page(browser, f"{site.as_uri()}/en/{SECTION}#{place}") as page:
        page.evaluate(AT_REST)
        assert switch(page) == f"{SECTION}#{place}"
        page.evaluate(AT_REST)
        top = page.locator(f"#{place}").evaluate("place => place.getBoundingClientRect().top")
        assert 0 <= top < 300
        assert switch(page, "en") == f"{SECTION}#{place}"


def test_from_where_one_has_read_to_the_other_language_opens(site, browser):
    with opened_page(browser, f"{site.as_uri()}/en/{SECTION}") as page:
        assert switch(page) == SECTION
        page.go_back()
        page.evaluate(AT_REST)
        page.locator("#mask-kinds-ask").evaluate("place => place.scrollIntoView()")
        page.evaluate(AT_REST)
        assert switch(page) == f"{SECTION}#mask-kinds-ask"


def test_without_scripts_the_other_language_opens_at_the_same_page(site, browser):
    address = f"{site.as_uri()}/en/{SECTION}#mask-after-ask"
    with opened_page(browser, address, java_script_enabled=False, settled=False) as page:
        assert switch(page) == SECTION


@pytest.mark.parametrize(
    ("language", "done", "name"), [("en", "Copied!", "Copy"), ("ru", "Скопировано!", "Скопировать")]
)
def test_code_is_copied_by_keyboard_and_that_is_said(served, browser, language, done, name):
    permissions = ["clipboard-read", "clipboard-write"]
    with opened_page(browser, f"{served}/{language}/{SECTION}", permissions=permissions) as page:
        button = page.locator("#causal-allowed-use .copybtn")
        button.wait_for(state="attached")
        code = page.locator("#causal-allowed-use .cell_input pre").inner_text()
        button.focus()
        page.keyboard.press("Enter")
        page.get_by_role("status").get_by_text(done).wait_for(state="attached")
        assert page.evaluate("navigator.clipboard.readText()").strip() == code.strip()
        page.mouse.move(0, 0)
        assert button.evaluate("button => getComputedStyle(button).opacity") == "1"
        assert button.get_attribute("aria-label") == name
        assert page.locator(".cell_output .copybtn").count() == 0


def test_the_theme_one_chooses_stays_on_the_next_page(served, browser):
    with opened_page(browser, f"{served}/en/{SECTION}", color_scheme="light") as page:
        theme = page.locator(".theme-toggle-content .theme-toggle")
        backgrounds = set()
        for _ in range(3):
            theme.press("Enter")
            backgrounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert len(backgrounds) == 2
        chosen = page.evaluate("document.body.dataset.theme")
        page.locator(".next-page").click()
        page.wait_for_url("**/sdpa.html")
        assert page.evaluate("document.body.dataset.theme") == chosen


def test_the_notebook_of_a_page_can_be_had(served, browser):
    with opened_page(browser, f"{served}/ru/{SECTION}", accept_downloads=True) as page:
        with page.expect_download() as got:
            page.get_by_text("Скачать .ipynb").click()
        assert got.value.suggested_filename == "module_03_basic_transformer.ipynb"


def test_a_narrow_page_keeps_its_words_within_its_width(site, browser):
    with opened_page(browser, site / "ru" / SECTION, color_scheme="dark") as page:
        page.set_viewport_size(NARROW)
        page.evaluate(AT_REST)
        wide = """elements => elements.filter(element =>
            element.getBoundingClientRect().right > innerWidth + 1).map(e => e.textContent)"""
        assert page.eval_on_selector_all("article p, article h1, article h2", wide) == []


def test_where_more_is_to_the_right_the_edge_says_so_until_one_is_there(site, browser):
    with opened_page(browser, site / "en" / SECTION) as page:
        page.set_viewport_size(NARROW)
        page.evaluate(AT_REST)
        figure = page.locator(".figure").first
        assert "has-more" in figure.get_attribute("class")
        figure.evaluate("element => { element.scrollLeft = element.scrollWidth; }")
        page.evaluate(AT_REST)
        assert "has-more" not in figure.get_attribute("class")


def test_what_a_cell_prints_is_read_without_scrolling_sideways(site, browser):
    with opened_page(browser, site / "ru" / SECTION) as page:
        page.set_viewport_size(NARROW)
        page.evaluate(AT_REST)
        cut = "prints => prints.filter(each => each.scrollWidth > each.clientWidth).length"
        prints = ".cell_output .highlight pre"
        assert page.locator(prints).count() > 5
        assert page.eval_on_selector_all(prints, cut) == 0
