"""The map of the site for searchers: every page with its twins; and where that map is.

sphinx-sitemap 2.9, tried on these pages, writes one map a build, so here one a language. It leaves
out what speaks to all other languages and the page above them, writes none without an address, and
starts a server process in each build; putting its maps right is longer than writing one.
"""

import html
from collections.abc import Iterable, Sequence

from course_build.site.meta import ENTRANCE, FIRST, alternates

UNMAPPED = {"search"}  # by itself it says nothing
SITEMAP, ROBOTS = "sitemap.xml", "robots.txt"
PREVIEW = "http://localhost:8000/"  # where Python's own server shows a folder
MAP = """<?xml version='1.0' encoding='utf-8'?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:xhtml="http://www.w3.org/1999/xhtml">
{urls}
</urlset>
"""
URL = "  <url>\n    <loc>{}</loc>\n{}\n  </url>"
TWIN = '    <xhtml:link rel="alternate" hreflang="{}" href="{}" />'


def map_site(names: Iterable[str], languages: Sequence[str], site: str) -> dict[str, bytes]:
    """The files that tell searchers of the pages, {name: content}.

    A map names whole addresses: without one, those of a preview, of which no searcher is told.

    Args:
        names: the pages of each language without their ending, as module_03/masks
        site: its address, "" as long as it has none
    """
    base = site or PREVIEW
    pages = {f"{base}{ENTRANCE}": alternates(FIRST, languages, base, is_first=True)}
    for name in sorted(set(names) - UNMAPPED):
        twins = alternates(name, languages, base, is_first=name == FIRST)
        pages |= {address: twins for _, address in twins[: len(languages)]}
    urls = [
        URL.format(
            html.escape(address), "\n".join(TWIN.format(c, html.escape(t)) for c, t in twins)
        )
        for address, twins in pages.items()
    ]
    robots = "User-agent: *\nAllow: /\n" + (f"Sitemap: {site}{SITEMAP}\n" if site else "")
    return {SITEMAP: MAP.format(urls="\n".join(urls)).encode(), ROBOTS: robots.encode()}
