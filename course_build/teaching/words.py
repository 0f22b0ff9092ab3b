"""What the exports for teachers say around the authors' text, in every language of the course.

Every language has the same entries with the same placeholders; a test compares them. A draft may
have none: then the first language's words are used.
"""

WORDS: dict[str, dict[str, str]] = {
    "en": {
        "warm-up": "warm-up",
        "core": "core",
        "stretch": "stretch",
        "student": "**Student edition:** the hints are here, the solutions are not.",
        "teacher": "**Teacher's edition:** the solutions stand in place of the stubs, and under "
        "each check is a note for you. Do not hand this file out.",
        "note": "**Teacher's note.** Exercise `{exercise}`: {level}; points in the nbgrader "
        "export: {points}.",
        "free": "It is graded by its worked answer, not against the catalogue of mistakes.",
        "prediction": "A wrong prediction is told as a surprise and costs no points: what counts "
        "is to have predicted.",
        "stub": "What the learner begins with",
        "mistakes": "Mistakes of the catalogue that this check knows: {count}",
        "columns": "| mistake | what it does | what to write instead |",
        "slides": "Slides",
    },
    "ru": {
        "warm-up": "разминка",
        "core": "основное",
        "stretch": "со звёздочкой",
        "student": "**Издание для учащихся:** подсказки есть, решений нет.",
        "teacher": "**Издание для преподавателя:** вместо заготовок стоят решения, а под каждой "
        "проверкой — заметка для вас. Не раздавайте этот файл.",
        "note": "**Заметка для преподавателя.** Упражнение `{exercise}`: {level}; баллов при "
        "экспорте в nbgrader: {points}.",
        "free": "Ответ сверяется с готовым, а не с каталогом ошибок.",
        "prediction": "Неверное предсказание отмечено как неожиданность и баллов не отнимает: "
        "важно, что оно сделано.",
        "stub": "С чего начинает учащийся",
        "mistakes": "Ошибки из каталога, которые узнаёт эта проверка: {count}",
        "columns": "| ошибка | что при ней происходит | что написать вместо неё |",
        "slides": "Слайды",
    },
}


def say(language: str, entry: str, **values: object) -> str:
    """Say one of these in the reader's language, or in the first of all."""
    words = WORDS.get(language) or next(iter(WORDS.values()))
    return words[entry].format(**values)
