"""The gallery of silent bugs: say what you expect of each, then compare with what was measured."""

from course_lib.report import ClauseResult, ContractReport
from course_lib.text import localized

_GALLERY_TEXTS = {
    "as_predicted": {"en": "as predicted", "ru": "как предсказано"},
    "otherwise": {"en": "a surprise", "ru": "неожиданность"},
    "headline": {
        "en": "○ check_predictions: a surprise: {names}",
        "ru": "○ check_predictions: неожиданность: {names}",
    },
    "surprise": {
        "en": "which test did you trust too much? Read on",
        "ru": "какой проверке вы слишком доверились? Читайте дальше",
    },
    "open": {
        "en": "write True or False for each of: {names}",
        "ru": "впишите True или False для каждого из имён: {names}",
    },
}


def check_predictions(
    predicted: dict[str, bool | None], measured: dict[str, bool]
) -> ContractReport:
    """Compare what was predicted with what was measured; a surprise is told and stops nothing.

    Args:    predicted: True or False for every name in measured; None = no prediction yet
    Raises:  ValueError for other names
    """
    if predicted.keys() != measured.keys():
        raise ValueError(f"the names are {list(measured)}, got {list(predicted)}")
    if None in predicted.values():
        note = localized(_GALLERY_TEXTS["open"], names=", ".join(measured))
        return ContractReport("check_predictions", attempted=False, notes=(note,))
    rows = tuple(_compared(name, said, measured[name]) for name, said in predicted.items())
    wrong = [row.name for row in rows if row.measured != row.allowed]
    figures = {"right": len(rows) - len(wrong)}
    if not wrong:
        return ContractReport("check_predictions", rows, figures, beside="predicted")
    headline = localized(_GALLERY_TEXTS["headline"], names=", ".join(wrong))
    notes = (localized(_GALLERY_TEXTS["surprise"]),)
    return ContractReport(
        "check_predictions", rows, figures, notes=notes, headline=headline, beside="predicted"
    )


def _compared(name: str, said: bool | None, measured: bool) -> ClauseResult:
    meaning = localized(_GALLERY_TEXTS["as_predicted" if said == measured else "otherwise"])
    return ClauseResult(name, meaning, str(measured), str(said))
