"""The last touch to a page's HTML: titles without TeX where none is set, words of other languages.

Sphinx calls `finish_page` for each page before it fills in the template.
"""

import html
import re
from typing import Any

from course_build.site.meta import plain_title

ACROSS = r'(<a [^>]*?href="(?:\.\./)+({codes})/[^"]*")'  # a link to another language's page


def finish_page(app: Any, name: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Change the title, the neighbours' titles and the body in the template's context.

    Sphinx gives the title for a list of results, which names the module too.
    """
    if name in app.env.titles:
        context["title"] = app.builder.render_partial(app.env.titles[name])["title"]
    for neighbour in ("prev", "next"):
        if context.get(neighbour):
            told = context[neighbour]
            context[neighbour] = {**told, "title": html.escape(plain_title(told["title"]))}
    if "body" in context:
        codes = [language["code"] for language in app.config.html_context["languages"]]
        context["body"] = with_languages(context["body"], codes)


def with_languages(body: str, codes: list[str]) -> str:
    """Say of a link to another language's page, and of its words, which language that is."""
    return re.sub(ACROSS.format(codes="|".join(codes)), r'\1 lang="\2" hreflang="\2"', body)
