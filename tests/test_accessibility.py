"""The course's pages, as people meet them who see, hear or move in other ways: axe's rules hold.

Each page is opened once; what changes it stands last.
"""

import subprocess
import sys
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest

from course_build.run.jobs import ROOT
from course_build.settings import SETTINGS_FILE, parse_settings
from course_build.site.sources import WELCOME, cut
from tests.browser import NARROW, ONE_OF_EACH, WIDE, opened_browser, opened_page

pytestmark = pytest.mark.notebooks

SETTINGS = parse_settings((ROOT / SETTINGS_FILE).read_text(encoding="utf-8"))
LANGUAGES = {language: ROOT / "notebooks" / language for language in SETTINGS.languages}


def pages_of(folder):
    """The pages that one language's notebooks and texts become."""
    modules = cut({path.name: path.read_bytes() for path in folder.glob("module_*.ipynb")})
    texts = {path.stem for path in folder.glob("*.md")} - {WELCOME}
    return ["index", "search", *texts, *(page.name for each in modules.values() for page in each)]


PAGES = ["index.html"] + [
    f"{language}/{name}.html"
    for language, folder in LANGUAGES.items()
    for name in sorted(pages_of(folder))
]

STANDARDS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
UNDECIDED = {  # rule: why axe cannot decide, and why that is no harm
    "color-contrast": "words that another element covers, as a long line that scrolls in its box; "
    "the same colours are decided where nothing covers them",
}


@pytest.fixture(scope="module")
def site(executed):
    """The pages, built from the notebooks that were executed for all tests."""
    command = [sys.executable, "-m", "course_build.site"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ROOT / "build" / "site"


@pytest.fixture(scope="module")
def browser():
    with opened_browser() as browser:
        yield browser


@pytest.fixture(scope="module", params=PAGES)
def page(request, site, browser):
    with opened_page(browser, site / request.param, color_scheme="light") as page:
        page.name = request.param
        yield page


@pytest.fixture
def localized_page(page):
    """A page of one language: not the one from which the reader chooses a language."""
    if "/" not in page.name:
        pytest.skip("the entrance has no twin and no formula")
    return page


def judge(page, **options):
    """Ask axe; return its findings, three of each rule, and the rules it could not decide."""
    from axe_playwright_python.sync_playwright import Axe

    wanted = {"runOnly": STANDARDS, "resultTypes": ["violations", "incomplete"], "preload": False}
    found = Axe().run(page, options={**wanted, **options}).response
    lines = [
        f"{rule['id']}: {' '.join(map(str, node['target']))}\n    {node['html'][:200]}\n"
        f"    {node['failureSummary']}"
        for rule in found["violations"]
        for node in rule["nodes"][:3]
    ]
    return lines, {rule["id"] for rule in found["incomplete"]}


def test_the_site_has_the_pages_that_are_looked_at_here(site):
    assert sorted(path.relative_to(site).as_posix() for path in site.glob("**/*.html")) == sorted(
        PAGES
    )


class Places(HTMLParser):
    """The addresses that a page names, and the places in it that can be named."""

    def __init__(self, path):
        super().__init__()
        self.links, self.ids = [], {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src"):
                self.links.append(value)
            elif name == "id":
                self.ids.add(value)


def test_no_link_within_the_site_leads_nowhere(site):
    pages = {path.resolve(): Places(path) for path in site.glob("**/*.html")}
    lost = []
    for path, page in pages.items():
        for link in page.links:
            address = urlsplit(link)
            if address.scheme or address.netloc:
                continue
            target = (path.parent / unquote(address.path)).resolve() if address.path else path
            known = pages[target].ids if target in pages else {unquote(address.fragment)}
            if not target.exists() or unquote(address.fragment) not in known:
                lost.append(f"{path.relative_to(site)}: {link}")
    assert lost == []


def test_nothing_comes_from_another_host(page):
    assert page.asked == []


def test_every_formula_can_be_read_as_text(localized_page):
    silent = """formulas => formulas.filter(formula =>
        !formula.querySelector("mjx-assistive-mml math")?.textContent.trim()
        || formula.querySelector("[data-mjx-error]")).map(formula => formula.outerHTML)"""
    assert localized_page.eval_on_selector_all("mjx-container", silent) == []
    written = localized_page.locator("span.math, div.math").count()
    assert localized_page.locator("mjx-container").count() == written


def test_every_table_says_what_its_cells_are(page):
    """For axe a table without headers is layout."""
    bare = """tables => tables.filter(table =>
        ![...table.querySelectorAll("th")].some(head => head.textContent.trim()))
        .map(table => table.outerHTML.slice(0, 200))"""
    assert page.eval_on_selector_all("table", bare) == []


def test_a_page_names_its_language_and_leads_to_its_twins(localized_page, site):
    language, file_name = localized_page.name.split("/", 1)
    assert localized_page.get_attribute("html", "lang") == language
    switch = localized_page.eval_on_selector_all(
        "nav.languages a", "links => links.map(link => link.href)"
    )
    others = [code for code in SETTINGS.languages if code != language]
    assert switch == [(site / other / file_name).as_uri() for other in others]


def test_what_only_a_screen_reader_says_is_in_the_language_of_the_page(localized_page):
    if not localized_page.name.startswith("ru/"):
        pytest.skip("the theme is written in English; Russian is the translation we promise")
    said = localized_page.eval_on_selector_all(
        "[aria-label], [placeholder], [title]",
        """elements => elements.flatMap(element => ["aria-label", "placeholder", "title"]
            .map(name => element.getAttribute(name)).filter(Boolean))""",
    )
    assert [words for words in said if words.isascii()] == []


def test_what_scrolls_sideways_can_be_focused(page):
    for size in (NARROW, WIDE):
        page.set_viewport_size(size)
        page.wait_for_timeout(300)
        missed = page.eval_on_selector_all(
            "article *",
            """elements => elements.filter(element => element.scrollWidth > element.clientWidth
                && ["auto", "scroll"].includes(getComputedStyle(element).overflowX)
                && element.tabIndex < 0).map(element => element.outerHTML.slice(0, 200))""",
        )
        assert missed == []


def test_the_drawers_of_a_narrow_page_open_by_keyboard(localized_page):
    localized_page.set_viewport_size(NARROW)
    drawer = localized_page.locator(".sidebar-drawer")
    assert not drawer.is_visible()
    localized_page.locator(".nav-overlay-icon [role=button]").press("Enter")
    assert drawer.is_visible()
    localized_page.evaluate("document.getElementById('__navigation').click()")
    localized_page.set_viewport_size(WIDE)


def test_axe_finds_no_violation_wide_or_narrow_light_or_dark(page):
    page.evaluate(ONE_OF_EACH)
    found, undecided = judge(page)
    assert found == []
    assert undecided <= set(UNDECIDED)
    page.emulate_media(color_scheme="dark")
    assert judge(page, runOnly=["color-contrast"])[0] == []
    page.set_viewport_size(NARROW)
    assert judge(page)[0] == []
