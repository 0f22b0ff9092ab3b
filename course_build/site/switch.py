"""From one language to another: the names of the languages, and the site's entrance."""

import html
from collections.abc import Mapping, Sequence

from course_build.settings import Settings

ENTRANCE = """<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="stylesheet" href="{language}/_static/entrance.css">
</head>
<body>
<main>
<h1>{title}</h1>
<ul>
{links}
</ul>
</main>
</body>
</html>
"""
LINK = '<li><a href="{code}/index.html" lang="{code}" hreflang="{code}">{title} ({name})</a></li>'


def named_languages(codes: Sequence[str]) -> list[dict[str, str]]:
    """Name each language in itself, as its readers look for it: English, Русский."""
    from babel import Locale, UnknownLocaleError

    named = []
    for code in codes:
        try:
            name = Locale.parse(code).get_display_name(code)
        except (UnknownLocaleError, ValueError):
            name = code
        named.append({"code": code, "name": name[:1].upper() + name[1:]})
    return named


def entrance(languages: Sequence[Mapping[str, str]], settings: Settings) -> bytes:
    """The page above the languages: a link to each."""
    links = [
        LINK.format(**language, title=html.escape(settings.title(language["code"])))
        for language in languages
    ]
    source = settings.languages[0]
    title = html.escape(settings.title(source))
    return ENTRANCE.format(language=source, title=title, links="\n".join(links)).encode()
