"""The course's pages, as people meet them who see, hear or move in other ways: axe's rules hold.

Every page is visited once, and asked for all that its own words could get wrong. Axe looks where
something is new: at as few pages as hold, in each language, every element of any page in every
parent that it has anywhere; at each of them in one theme wide, and narrow in the other theme. What
is wide and light in one language is wide and dark in the next.
"""

import itertools

import pytest

from tests.browser import AT_REST, NARROW, ONE_OF_EACH, WIDE, opened_browser, opened_page, turn_to
from tests.pages import ENTRANCE, LOST, PAGES, SETTINGS, Markup, one_of_each

pytestmark = pytest.mark.delivery

STANDARDS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
UNDECIDED = {  # rule: why axe cannot decide, and why that is no harm
    "color-contrast": "words that another element covers, as a long line that scrolls in its box; "
    "the same colours are decided where nothing covers them",
}
LAPTOP = {"width": 1366, "height": 768}  # the page between its navigation and its contents
SCHEMES = ("light", "dark")
TOLD = """() => {
  const shown = (elements) => elements.map((element) => element.outerHTML.slice(0, 200));
  const all = (selector) => [...document.querySelectorAll(selector)];
  const name = (element) => [
    element.textContent, element.getAttribute("aria-label"), element.title,
    ...[...element.querySelectorAll("img")].map((image) => image.alt),
  ].some((words) => words?.trim());
  return {
    language: document.documentElement.lang,
    twins: all("nav.languages a").map((link) => link.href),
    headings: all("h1, h2, h3, h4, h5, h6").map((heading) => Number(heading.tagName[1])),
    formulas: all("span.math, div.math").length - all("mjx-container").length,
    silent: shown(all("mjx-container").filter((formula) =>
      !formula.querySelector("mjx-assistive-mml math")?.textContent.trim()
      || formula.querySelector("[data-mjx-error]"))),
    bare: shown(all("table").filter((table) =>
      ![...table.querySelectorAll("th")].some((head) => head.textContent.trim()))),
    unnamed: shown([...all("a[href], button, summary, h1, h2, h3, h4").filter((e) => !name(e)),
      ...all("img").filter((image) => !image.alt.trim())]),
    said: all("[aria-label], [placeholder], [title]").flatMap((element) =>
      ["aria-label", "placeholder", "title"].map((kind) => element.getAttribute(kind))
        .filter(Boolean)),
  };
}"""
ACROSS = """() => [
  document.documentElement.scrollWidth > innerWidth ? "the page" : "",
  ...[...document.querySelectorAll("article *")].filter((element) =>
    element.scrollWidth > element.clientWidth && element.tabIndex < 0
    && ["auto", "scroll"].includes(getComputedStyle(element).overflowX),
  ).map((element) => element.outerHTML.slice(0, 200)),
].filter(Boolean)"""
JUDGE = """(options) => axe.run(options).then(({ violations, incomplete }) => [
  violations.flatMap(({ id, nodes }) => nodes.slice(0, 3).map((node) =>
    `${id}: ${node.html.slice(0, 300)}\\n    ${node.failureSummary}`)),
  incomplete.map(({ id }) => id),
])"""
OPTIONS = {  # its paths to elements are not asked for, which would take it half of its time
    "runOnly": STANDARDS,
    "resultTypes": ["violations", "incomplete"],
    "preload": False,
    "selectors": False,
}


@pytest.fixture(scope="module")
def browser():
    with opened_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def seen(site, browser):
    """What each page tells of itself, and what runs over its edge: wide, narrow or between."""
    found = {}
    with opened_page(browser, site / ENTRANCE, color_scheme="light") as page:
        for name in PAGES:
            page.set_viewport_size(WIDE)
            turn_to(page, site / name)
            found[name] = page.evaluate(TOLD) | {"asked": page.asked + page.amiss, "across": []}
            page.asked, page.amiss = [], []
            for size in (WIDE, LAPTOP, NARROW):
                page.set_viewport_size(size)
                page.evaluate(AT_REST)
                found[name]["across"] += page.evaluate(ACROSS)
    return found


@pytest.fixture(scope="module")
def localized(seen):
    """The pages of one language: not where the reader chooses one, or has gone astray."""
    found = {name: told for name, told in seen.items() if "/" in name and not name.endswith(LOST)}
    assert len(found) > 30
    return found


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        ("asked", "it asks another host, or its console complains"),
        ("bare", "a table does not say what its cells are; for axe it would be layout"),
        ("unnamed", "a link, button, heading or picture has no words"),
        ("across", "the page scrolls sideways, or a part that does cannot be focused"),
    ],
)
def test_on_no_page_anything_is_amiss(seen, kind, fault):
    assert {name: told[kind] for name, told in seen.items() if told[kind]} == {}, fault


def test_every_formula_can_be_read_as_text(localized):
    silent = {n: told["silent"] for n, told in localized.items() if told["silent"]}
    assert silent == {}
    assert [name for name, told in localized.items() if told["formulas"]] == []


def test_headings_begin_with_one_title_and_skip_no_level(localized):
    for name, told in localized.items():
        levels = told["headings"]
        assert levels.count(1) == 1, name
        steps = [below - above for above, below in itertools.pairwise(levels)]
        assert max(steps, default=0) <= 1, name


def test_a_page_names_its_language_and_leads_to_its_twins(localized, site):
    for name, told in localized.items():
        language, file_name = name.split("/", 1)
        assert told["language"] == language
        others = [code for code in SETTINGS.languages if code != language]
        assert told["twins"] == [(site / other / file_name).as_uri() for other in others]


def test_what_only_a_screen_reader_says_is_in_the_language_of_the_page(localized):
    """The theme is written in English; Russian is the translation that we promise."""
    said = {n: told["said"] for n, told in localized.items() if n.startswith("ru/")}
    assert len(said) > 15
    assert [(name, words) for name in said for words in said[name] if words.isascii()] == []


def test_axe_finds_no_violation_wide_or_narrow_light_or_dark(site, browser):
    from axe_playwright_python.sync_playwright import Axe

    found, schemes = {}, dict(zip(SETTINGS.languages, itertools.cycle(SCHEMES)))
    with opened_page(browser, site / ENTRANCE) as page:
        for name in looked_at(site):
            wide = schemes.get(name.split("/")[0], SCHEMES[0])
            narrow = SCHEMES[wide == SCHEMES[0]]
            page.set_viewport_size(WIDE)
            page.emulate_media(color_scheme=wide)
            turn_to(page, site / name)
            page.evaluate(ONE_OF_EACH)
            page.evaluate(AT_REST)
            page.evaluate(Axe().axe_script)
            found[name, wide, "wide"], undecided = page.evaluate(JUDGE, OPTIONS)
            assert set(undecided) <= set(UNDECIDED), name
            page.set_viewport_size(NARROW)
            page.emulate_media(color_scheme=narrow)
            page.evaluate(AT_REST)  # what scrolls now can be focused a frame later
            found[name, narrow, "narrow"], _ = page.evaluate(JUDGE, OPTIONS)
    assert {place: lines for place, lines in found.items() if lines} == {}


def looked_at(site):
    """The entrance, and of each language pages that together hold all there is to see."""
    return [ENTRANCE] + [
        f"{language}/{name}"
        for language in SETTINGS.languages
        for name in one_of_each(
            {
                path.relative_to(site / language).as_posix(): Markup(path).kinds
                for path in (site / language).glob("**/*.html")
            }
        )
    ]
