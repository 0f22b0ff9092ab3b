"""The map of the site for searchers: every page with its twins; and where that map is.

sphinx-sitemap writes one map a build, so here one a language, with the search page and without
what speaks to all other languages; one map for all is as short.
"""

from collections.abc import Iterable, Sequence
from xml.etree import ElementTree

from course_build.site.meta import ENTRANCE, FIRST, alternates

UNMAPPED = {"search", "genindex"}  # by themselves they say nothing
SITEMAP, ROBOTS = "sitemap.xml", "robots.txt"
SPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
XHTML = "http://www.w3.org/1999/xhtml"
PREVIEW = "http://localhost:8000/"  # where Python's own server shows a folder


def map_site(names: Iterable[str], languages: Sequence[str], site: str) -> dict[str, bytes]:
    """The files that tell searchers of the pages, {name: content}.

    A map names whole addresses: without one, those of a preview, of which no searcher is told.

    Args:
        names: the pages of each language without their ending, as module_03/masks
        site: its address, "" as long as it has none
    """
    found, base = sorted(set(names) - UNMAPPED), site or PREVIEW
    spaces = {"xmlns": SPACE, "xmlns:xhtml": XHTML}  # registering one would change all of Python's
    root = ElementTree.Element("urlset", spaces)
    _add(root, f"{base}{ENTRANCE}", alternates(FIRST, languages, base, is_first=True))
    for name in found:
        twins = alternates(name, languages, base, is_first=name == FIRST)
        for _, address in twins[: len(languages)]:
            _add(root, address, twins)
    ElementTree.indent(root)
    sitemap = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    robots = "User-agent: *\nAllow: /\n" + (f"Sitemap: {site}{SITEMAP}\n" if site else "")
    return {SITEMAP: sitemap + b"\n", ROBOTS: robots.encode()}


def _add(root: ElementTree.Element, address: str, twins: Iterable[tuple[str, str]]) -> None:
    url = ElementTree.SubElement(root, "url")
    ElementTree.SubElement(url, "loc").text = address
    for code, twin in twins:
        link = {"rel": "alternate", "hreflang": code, "href": twin}
        ElementTree.SubElement(url, "xhtml:link", link)
