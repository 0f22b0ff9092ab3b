"""From one language to another: the names of the languages."""

from collections.abc import Sequence


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
