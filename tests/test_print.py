"""A page on paper: words, code and figures; nothing to click, and what is folded says so."""

import pytest

from tests.browser import opened_browser, opened_page

pytestmark = [pytest.mark.delivery, pytest.mark.xdist_group("toy")]
AROUND = ".sidebar-drawer, .toc-drawer, .mobile-header, .related-pages, .headerlink, .page-tools"
FOLDED = {"en": "(folded)", "ru": "(свёрнуто)"}
SUMMARY = 'getComputedStyle(document.querySelector("summary"), "::after").content'


@pytest.fixture(scope="module")
def browser():
    with opened_browser() as browser:
        yield browser


@pytest.fixture
def site(toy):
    return toy.site


@pytest.fixture(params=FOLDED)
def paper(request, site, browser):
    """A section's page in one language, as printed by somebody who reads in the dark."""
    path = site / request.param / "module_02" / "why.html"
    with opened_page(browser, path, color_scheme="dark") as page:
        page.language = request.param
        assert page.locator(".sidebar-drawer").is_visible()
        page.emulate_media(media="print")
        yield page


def test_what_is_around_the_words_is_not_printed(paper):
    shown = paper.eval_on_selector_all(
        AROUND, "all => all.filter(e => e.getClientRects().length).map(e => e.className)"
    )
    assert shown == []
    assert paper.locator("h1").is_visible()


def test_the_words_have_the_whole_width(paper):
    article, body = (
        paper.eval_on_selector(name, "e => e.getBoundingClientRect().width")
        for name in ("article", "body")
    )
    assert article > 0.9 * body


def test_a_fold_that_is_shut_says_so_in_the_pages_language_and_an_open_one_does_not(paper):
    assert FOLDED[paper.language] in paper.evaluate(SUMMARY)
    paper.eval_on_selector("details", "fold => { fold.open = true; }")
    assert FOLDED[paper.language] not in paper.evaluate(SUMMARY)
    assert paper.locator("details pre").first.is_visible()


def test_it_is_printed_dark_on_white(paper):
    colours = paper.eval_on_selector(
        "body", "e => [getComputedStyle(e).color, getComputedStyle(e).backgroundColor]"
    )
    assert colours == ["rgb(0, 0, 0)", "rgb(255, 255, 255)"]


def test_a_link_out_of_the_site_shows_its_address_and_one_within_does_not(site, browser):
    with opened_page(browser, site / "en" / "index.html") as page:
        page.emulate_media(media="print")
        after = page.eval_on_selector_all(
            "article p a",
            "all => all.map(e => [e.getAttribute('href'), getComputedStyle(e, '::after').content])",
        )
    said = dict(after)
    assert "https://example.com/elsewhere" in said.pop("https://example.com/elsewhere")
    assert said
    assert all("html" not in content for content in said.values())


def test_the_style_of_paper_changes_nothing_on_a_screen(site):
    text = (site / "en" / "index.html").read_text(encoding="utf-8")
    (sheet,) = (line for line in text.split("<link ") if "print.css" in line)
    assert 'media="print"' in sheet


def test_chromium_prints_a_page(paper):
    assert paper.pdf(format="A4").startswith(b"%PDF")
