"""What each page tells of itself in its head, as built; with an address and without one."""

from html.parser import HTMLParser
from urllib.parse import urljoin
from xml.etree import ElementTree

import pytest
from docutils import nodes

from course_build.site.__main__ import build_site
from course_build.site.meta import LONGEST, describe, locale_of
from course_build.site.sitemap import PREVIEW
from tests.toy_site import ADDRESS, WORDS, write_toy

pytestmark = pytest.mark.xdist_group("toy")  # nearly all ask for the same pages
SPACES = {"s": "http://www.sitemaps.org/schemas/sitemap/0.9", "x": "http://www.w3.org/1999/xhtml"}
LOST = "404.html"


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """The pages of a course that has no address."""
    root = write_toy(tmp_path_factory.mktemp("bare"))
    assert build_site(root, {}) == 0
    return root / "build" / "site"


@pytest.fixture
def placed(toy):
    """The pages of a course that has an address on the web."""
    return toy.site


class Head(HTMLParser):
    """What stands in a page's head: its language, title, links and meta tags."""

    def __init__(self, text):
        super().__init__()
        self.lang, self.title, self.links, self.meta, self._in_title = "", "", [], [], False
        self.feed(text.partition("<body")[0])

    def handle_starttag(self, tag, attrs):
        self._in_title = tag == "title"
        if tag == "html":
            self.lang = dict(attrs)["lang"]
        if tag in ("link", "meta"):
            (self.links if tag == "link" else self.meta).append(dict(attrs))

    def handle_data(self, data):
        if self._in_title:
            self.title, self._in_title = data, False

    def tags(self, name):
        return [m["content"] for m in self.meta if name in (m.get("name"), m.get("property"))]

    def tag(self, name):
        (content,) = self.tags(name)
        return content

    def link(self, rel):
        return [link["href"] for link in self.links if link["rel"] == rel]

    @property
    def alternates(self):
        links = [link for link in self.links if link["rel"] == "alternate"]
        found = {link["hreflang"]: link["href"] for link in links}
        assert len(found) == len(links)
        return found


def heads(site, *, searched=True):
    """Of every page, its path and what its head tells; the pages for no page apart."""
    found = {}
    for path in sorted(site.rglob("*.html")):
        if path.name != LOST and (searched or path.name != "search.html"):
            found[path.relative_to(site).as_posix()] = Head(path.read_text(encoding="utf-8"))
    assert len(found) == 1 + 2 * (6 + searched)
    return found


def test_each_page_says_its_language_and_leads_to_its_twins_and_to_what_speaks_to_all(bare):
    for path, head in heads(bare).items():
        language = path.split("/")[0] if "/" in path else "en"
        assert head.lang == language
        assert head.alternates.keys() == {"en", "ru", "x-default"}
        targets = {code: (bare / path).parent / href for code, href in head.alternates.items()}
        assert all(target.is_file() for target in targets.values())
        shown = {code: target.resolve() for code, target in targets.items()}
        assert path == "index.html" or shown[language] == (bare / path).resolve()
        first = path.endswith("index.html") and path.count("/") < 2
        assert shown["x-default"] == (bare / "index.html" if first else shown["en"]).resolve()


def test_an_address_makes_alternates_and_canonical_addresses_whole(placed):
    for path, head in heads(placed).items():
        assert head.link("canonical") == [ADDRESS + path]
        for code, href in head.alternates.items():
            assert href.startswith(ADDRESS)
            assert (placed / href.removeprefix(ADDRESS)).is_file(), (path, code)
        assert head.tag("og:url") == ADDRESS + path
        assert head.tag("og:image").startswith(ADDRESS)


@pytest.mark.parametrize("site", ["bare", "placed"])
def test_the_card_of_a_page_is_its_modules_or_the_courses(site, request):
    folder = request.getfixturevalue(site)
    for path, head in heads(folder).items():
        language, *middle, _ = ("en/index.html" if path == "index.html" else path).split("/")
        card = folder / language / "_static" / "cards" / f"{(*middle, 'course')[0]}.png"
        shown = urljoin(ADDRESS + path, head.tag("og:image"))
        assert folder / shown.removeprefix(ADDRESS) == card
        assert card.read_bytes().startswith(b"\x89PNG")
        assert head.tag("og:image:width") == "1200"
        assert head.tag("og:image:alt") == head.tag("og:title")
        assert head.tag("twitter:card") == "summary_large_image"


def test_without_an_address_nothing_claims_one_and_the_map_is_of_a_preview(bare):
    for head in heads(bare).values():
        assert head.link("canonical") == []
        assert head.tags("og:url") == []
        assert not head.tag("og:image").startswith(("http", "/"))
    assert (bare / "robots.txt").read_text(encoding="utf-8") == "User-agent: *\nAllow: /\n"
    root = ElementTree.parse(bare / "sitemap.xml").getroot()
    named = [url.find("s:loc", SPACES).text for url in root]
    assert sorted(named) == sorted(PREVIEW + path for path in heads(bare, searched=False))


@pytest.mark.parametrize("site", ["bare", "placed"])
def test_titles_and_descriptions_are_there_and_no_two_are_the_same(site, request):
    found = heads(request.getfixturevalue(site), searched=False)
    titles = [head.title for path, head in found.items() if path != "index.html"]
    assert len(set(titles)) == len(titles)
    told = [head.tag("description") for path, head in found.items()]
    assert len(set(told)) == len(told)
    assert all(20 < len(each) <= LONGEST for each in told)
    for head in found.values():
        assert head.tag("og:description") == head.tag("description")


def test_a_head_speaks_the_pages_language_and_shows_its_letters(bare):
    section = heads(bare)["ru/module_02/why.html"]
    assert section.title == "1. Зачем d_k & so on · Модуль 2. Идея и её d_k"
    assert section.tag("og:site_name") == "Курс и «ещё»"
    assert section.tag("og:locale") == "ru_RU"
    assert section.tags("og:locale:alternate") == ["en_US"]
    first = heads(bare)["en/index.html"]
    assert first.title == "Why en"
    assert first.tag("og:type") == "website"
    assert first.tag("description").startswith("Why <welcome>: Masks say")
    assert section.tag("description").startswith("Зачем? Маски")


def test_the_search_page_is_kept_from_searchers_and_others_are_not(bare):
    for path, head in heads(bare).items():
        assert head.tags("robots") == (["noindex"] if path.endswith("search.html") else [])


def test_every_page_has_the_mark(bare):
    for path, head in heads(bare).items():
        (href,) = [link["href"] for link in head.links if link["rel"] == "icon"]
        assert ((bare / path).parent / href).read_bytes().startswith(b"<svg ")


def test_the_map_names_every_page_with_its_twins(placed):
    root = ElementTree.parse(placed / "sitemap.xml").getroot()
    named = {url.find("s:loc", SPACES).text: url for url in root.findall("s:url", SPACES)}
    pages = {ADDRESS + path: head for path, head in heads(placed, searched=False).items()}
    assert named.keys() == pages.keys()
    for address, url in named.items():
        twins = {link.get("hreflang"): link.get("href") for link in url.findall("x:link", SPACES)}
        assert twins == pages[address].alternates
    robots = (placed / "robots.txt").read_text(encoding="utf-8")
    assert f"Sitemap: {ADDRESS}sitemap.xml\n" in robots


def paragraph(*texts):
    return nodes.paragraph("", "", *(nodes.Text(t) if isinstance(t, str) else t for t in texts))


def document(*paragraphs):
    from docutils.utils import new_document

    made = new_document("x")
    made += nodes.section("", nodes.title("", "Title"), *paragraphs)
    return made


def test_a_description_is_whole_sentences_of_the_running_text():
    said = "One sentence of forty characters, or so. "
    quoted = nodes.block_quote("", paragraph("Not this."))
    formula = nodes.math("", r"\sqrt{d_k}")
    first = paragraph(said, "And now a root: ", formula, ".\nMore.")
    told = describe(document(quoted, first, paragraph("x" * 200)))
    assert told == f"{said}And now a root: d_k. More."
    assert describe(document(paragraph(said * 9))) == (said * 4).strip()
    assert describe(document(paragraph("Short."), paragraph("Also short."))) == "Short. Also short."
    assert describe(document()) == ""


def test_a_long_sentence_is_cut_between_words_and_says_so():
    told = describe(document(paragraph("word, " * 99)))
    assert told.endswith("word…")
    assert len(told) <= LONGEST


def test_a_language_has_the_country_of_most_readers():
    wanted = {"en": "en_US", "ru": "ru_RU", "de": "de_DE", "qq": "qq"}
    assert {code: locale_of(code) for code in wanted} == wanted
    assert set(WORDS) == {"en", "ru"}
