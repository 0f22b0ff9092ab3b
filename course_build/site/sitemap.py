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


def map_site(names: Iterable[str], languages: Sequence[str], site: str) -> dict[str, bytes]:
    """The files that tell searchers of the pages, {name: content}; none without an address.

    Args:
        names: the pages of each language without their ending, as module_03/masks
    """
    if not site:
        return {}
    found = sorted(set(names) - UNMAPPED)
    spaces = {"xmlns": SPACE, "xmlns:xhtml": XHTML}  # registering one would change all of Python's
    root = ElementTree.Element("urlset", spaces)
    _add(root, f"{site}{ENTRANCE}", alternates(FIRST, languages, site, is_first=True))
    for name in found:
        twins = alternates(name, languages, site, is_first=name == FIRST)
        for _, address in twins[: len(languages)]:
            _add(root, address, twins)
    ElementTree.indent(root)
    sitemap = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    robots = f"User-agent: *\nAllow: /\nSitemap: {site}{SITEMAP}\n"
    return {SITEMAP: sitemap + b"\n", ROBOTS: robots.encode()}


def _add(root: ElementTree.Element, address: str, twins: Iterable[tuple[str, str]]) -> None:
    url = ElementTree.SubElement(root, "url")
    ElementTree.SubElement(url, "loc").text = address
    for code, twin in twins:
        link = {"rel": "alternate", "hreflang": code, "href": twin}
        ElementTree.SubElement(url, "xhtml:link", link)
