"""Say a thing in the reader's language: one table a message, one constant for the language."""

LANGUAGE = "en"  # localized


def localized(texts: dict[str, str], **values: object) -> str:
    """Pick the text of the reader's language and fill in its fields.

    Args:
        texts: one template a language code, e.g. {"en": "{n} rows", "ru": "строк: {n}"}; the
            first stands in for a language that a translation has not reached yet
        values: what goes into the fields of the template
    """
    template = texts[LANGUAGE] if LANGUAGE in texts else next(iter(texts.values()))
    return template.format(**values)


def reader_language() -> str:
    """The code of the reader's language, as in "en"."""
    return LANGUAGE
