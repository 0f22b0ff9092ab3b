"""The built pages among themselves: links, anchors, the same in every language."""

import os
from urllib.parse import unquote, urlsplit

import pytest

from course_build.site.sections import folder_of
from tests.pages import LOST, NAMES, PAGES, SETTINGS, Markup

pytestmark = pytest.mark.delivery


@pytest.fixture(scope="module")
def marked(site):
    """The markup of every page, but of those that answer to addresses of any depth."""
    paths = [path for path in sorted(site.glob("**/*.html")) if path.name != LOST]
    return {path.resolve(): Markup(path) for path in paths}


def test_the_site_has_the_pages_that_are_looked_at_here(site):
    built = {path.relative_to(site).as_posix() for path in site.glob("**/*.html")}
    assert sorted(built) == sorted(PAGES)


def test_no_link_within_the_site_leads_nowhere(site, marked):
    lost = []
    for path, page in marked.items():
        for link, _ in page.links:
            address = urlsplit(link)
            if address.scheme or address.netloc:
                continue
            target = (path.parent / unquote(address.path)).resolve() if address.path else path
            place = unquote(address.fragment)
            known = {"", *marked[target].ids} if target in marked else {place}
            if not target.is_file() or place not in known:
                lost.append(f"{path.relative_to(site)}: {link}")
    assert lost == []


def test_no_place_has_two_meanings(site, marked):
    for path, page in marked.items():
        assert len(page.ids) == len(set(page.ids)), path.relative_to(site)


@pytest.mark.parametrize("name", NAMES)
def test_a_place_has_the_same_name_in_every_language(site, marked, name):
    pages = {code: marked[(site / code / name).resolve()] for code in SETTINGS.languages}
    first, *others = ({*page.ids} for page in pages.values())
    assert [other ^ first for other in others] == [set() for _ in others]


@pytest.mark.parametrize("language", SETTINGS.languages)
def test_previous_and_next_lead_through_all_pages_and_back(site, marked, language):
    folder, ways = (site / language).resolve(), {}
    for way in ("next-page", "prev-page"):
        place = (folder / "index.html") if way == "next-page" else ways["next-page"][-1]
        seen = ways[way] = [place]
        while found := [link for link, given in marked[place].links if given.get("class") == way]:
            place = (place.parent / found[0]).resolve()
            seen.append(place)
    assert ways["next-page"] == ways["prev-page"][::-1]
    assert {path.relative_to(folder).as_posix() for path in seen} == {*NAMES} - {"search.html"}


def test_every_cell_of_every_module_can_be_linked_to(site, marked, executed):
    from course_build.outputs.executed import read_notebook
    from course_build.run.jobs import ROOT

    for language in SETTINGS.languages:
        for path in (ROOT / "notebooks" / language).glob("module_*.ipynb"):
            folder = (site / language / folder_of(path.stem)).resolve()
            pages = [page for each, page in marked.items() if each.parent == folder]
            known = {place for page in pages for place in page.ids}
            cells = read_notebook(path.name, path.read_bytes())["cells"]
            assert {cell["id"] for cell in cells} - known == set()
            assert (folder / path.name).read_bytes() == path.read_bytes()


def test_a_link_to_another_language_says_which(site, marked):
    silent = []
    for path, page in marked.items():
        own = path.relative_to(site.resolve()).parts[0]
        for link, given in page.links:
            target = os.path.relpath((path.parent / urlsplit(link).path).resolve(), site.resolve())
            code = target.split(os.sep)[0]
            is_read = "rel" not in given and "src" not in given
            if is_read and code in SETTINGS.languages and code != own:
                told = {given.get("hreflang"), given.get("lang")}
                silent += [f"{path}: {link}"] if told != {code} else []
    assert silent == []
