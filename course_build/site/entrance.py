"""The pages above the languages: the entrance, from which one is chosen, and the one for no page.

Each is one small file that asks for nothing else. A server shows the page for no page at any
address, of any depth; so it leads to whole addresses, or where the site has none, a line of script
finds the folder of the languages in the address that was asked for.
"""

import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from jinja2 import Template

from course_build.base.chrome import say
from course_build.base.settings import Settings
from course_build.site.cards import draw_mark
from course_build.site.meta import ENTRANCE, FIRST, Head

LOST = "404.html"
HERE = Path(__file__).resolve().parent
STYLE, TAGS = HERE / "entrance.css", HERE / "templates" / "head.html"
PAGE = """<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
{tags}
<style>
{style}</style>
</head>
<body>
<main>
{mark}
{body}
</main>
{script}</body>
</html>
"""
DOOR = (
    '<li><a href="{code}/index.html" lang="{code}" hreflang="{code}"><h2>{name} →</h2>'
    "<p>{motto}</p></a></li>"
)
SECTION = """<section lang="{code}">
<{level}>{lost}</{level}>
<p>{about}</p>
<p class="ways">{ways}</p>
</section>"""
WAY = '<a href="{root}{path}" data-path="{path}">{words}</a>'
SCRIPT = """<script>
const codes = {codes};
const parts = location.pathname.split("/");
const place = parts.findLastIndex((part) => codes.includes(part) || part === "404.html");
const root = place > 0 ? parts.slice(0, place).join("/") : "";
for (const way of document.querySelectorAll("[data-path]")) {{
  way.href = `${{root}}/${{way.dataset.path}}`;
}}
</script>
"""


def entrance(languages: Sequence[Mapping[str, str]], settings: Settings) -> bytes:
    """The page above the languages: a door to each."""
    doors = [
        DOOR.format(
            code=language["code"],
            name=html.escape(language["name"]),
            motto=html.escape(say(language["code"], "motto")),
        )
        for language in languages
    ]
    first = settings.languages[0]
    titles = {code: html.escape(settings.title(code)) for code in settings.languages}
    named = "".join(f'<span lang="{code}">{title}</span>' for code, title in titles.items())
    body = [f"<h1>{named}</h1>", '<ul class="doors">', *doors, "</ul>"]
    return _page(first, settings.title(first), _tags(settings), body)


def lost_pages(settings: Settings) -> dict[str, bytes]:
    """The page for no page, {path: content}: at the root, and in each language's folder."""
    orders = {LOST: settings.languages}
    for language in settings.languages:
        others = [code for code in settings.languages if code != language]
        orders[f"{language}/{LOST}"] = (language, *others)
    return {path: _lost(order, settings) for path, order in orders.items()}


def _lost(order: Sequence[str], settings: Settings) -> bytes:
    """Say in each language, the first one's reader first, that there is no such page."""
    body = []
    for code in order:
        ways = ((f"{code}/{FIRST}.html", "lost_start"), (f"{code}/search.html", "lost_search"))
        links = [
            WAY.format(root=settings.site or "/", path=path, words=html.escape(say(code, entry)))
            for path, entry in ways
        ]
        words = {"lost": say(code, "lost"), "about": say(code, "lost_about")}
        level = "h2" if body else "h1"
        words = {name: html.escape(text) for name, text in words.items()}
        body.append(SECTION.format(code=code, level=level, ways=" ".join(links), **words))
    first = order[0]
    script = "" if settings.site else SCRIPT.format(codes=json.dumps(list(settings.languages)))
    title = f"{say(first, 'lost')} · {settings.title(first)}"
    tags = '<meta name="robots" content="noindex">'
    return _page(first, title, tags, body, script)


def _tags(settings: Settings) -> str:
    """What the entrance tells searchers and networks; it speaks to all, in the first language."""
    first = settings.languages[0]
    address = settings.site and f"{settings.site}{ENTRANCE}"
    head = Head(
        name=FIRST,
        title=settings.title(first),
        description=say(first, "motto"),
        parents=(),
        language=first,
        languages=settings.languages,
        site_title=settings.title(first),
        address=address,
        base=settings.site,
        up="",
        is_first=True,
    )
    tags = Template(TAGS.read_text(encoding="utf-8")).render(head=head).strip()
    # of the other pages Sphinx tells it
    return tags + (f'\n<link rel="canonical" href="{html.escape(address)}">' if address else "")


def _page(language: str, title: str, tags: str, body: Sequence[str], script: str = "") -> bytes:
    mark = draw_mark().decode().strip().replace("<svg ", '<svg class="mark" aria-hidden="true" ', 1)
    return PAGE.format(
        language=language,
        title=html.escape(title),
        tags=tags,
        style=STYLE.read_text(encoding="utf-8"),
        mark=mark,
        body="\n".join(body),
        script=script,
    ).encode()
