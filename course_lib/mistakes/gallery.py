"""The gallery of silent bugs: say what you expect of each, then compare with what was measured."""

from course_lib.report import ClauseResult, ContractReport, ContractViolation
from course_lib.text import localized

_GALLERY_TEXTS = {
    "meaning": {
        "en": "predicted before it was measured",
        "ru": "предсказано до измерения",
    },
    "surprise": {
        "en": "a surprise: {names}. Find out what you took for granted, then write what was "
        "measured",
        "ru": (
            "неожиданность: {names}. Разберитесь, что вы приняли как должное, и впишите измеренное"
        ),
    },
    "open": {
        "en": "write True or False for each of: {names}",
        "ru": "впишите True или False для каждого из имён: {names}",
    },
}


def check_predictions(
    predicted: dict[str, bool | None], measured: dict[str, bool]
) -> ContractReport:
    """Compare what was predicted with what was measured, and name the surprises.

    Args:    predicted: True or False for every name in measured; None = no prediction yet
    Raises:  ContractViolation when a prediction is wrong; ValueError for other names
    """
    if predicted.keys() != measured.keys():
        raise ValueError(f"the names are {list(measured)}, got {list(predicted)}")
    if None in predicted.values():
        note = localized(_GALLERY_TEXTS["open"], names=", ".join(measured))
        return ContractReport("check_predictions", attempted=False, notes=(note,))
    meaning = localized(_GALLERY_TEXTS["meaning"])
    rows = tuple(
        ClauseResult(name, meaning, str(said), str(measured[name]))
        for name, said in predicted.items()
    )
    wrong = [row for row in rows if row.measured != row.allowed]
    if wrong:
        names = ", ".join(row.name for row in wrong)
        failed = ClauseResult(names, meaning, wrong[0].measured, wrong[0].allowed)
        diagnosis = localized(_GALLERY_TEXTS["surprise"], names=names)
        raise ContractViolation("check_predictions", failed, diagnosis=diagnosis)
    return ContractReport("check_predictions", rows, {"right": len(rows)})
