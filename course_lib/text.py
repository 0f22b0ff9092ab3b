"""Say a thing in the reader's language: one table a message, one constant for the language."""

LANGUAGE = "en"  # localized


def localized(texts: dict[str, str], **values: object) -> str:
    """Pick the text of the reader's language and fill in its fields.

    Args:
        texts: one template a language code, e.g. {"en": "{n} rows", "ru": "строк: {n}"}
        values: what goes into the fields of the template

    Raises:
        KeyError: the table has no text in the language that is set
    """
    if LANGUAGE not in texts:
        raise KeyError(f"no text in the language {LANGUAGE!r}; the table has {sorted(texts)}")
    return texts[LANGUAGE].format(**values)
