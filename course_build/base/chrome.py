"""The builder's own words in every language of the course.

What an author writes lives in the sources; here is only what the builder adds around it.
The link to a notebook in another language is in that language, for those who look for it, and
shows where the file is: a notebook that was copied alone has no such neighbour.
Every language has the same entries with the same placeholders; a test compares them. A draft may
have none: then the first language's words are used.
"""

from collections.abc import Sequence

LEVELS = ("warm-up", "core", "stretch")  # of exercises, in every language; their words are below

CHROME: dict[str, dict[str, str]] = {
    "en": {
        "this": "This notebook in English",
        "other": "This notebook in the language {code}",
        "previous": "← Module {number}",
        "next": "Module {number} →",
        "module": "Module {number}",
        "colab": "Open in Colab",
        "machinery": "Machinery",
        "imports": "Imports",
        "ours": "Our version: open it when yours has passed, or when you are stuck",
        "library": "The course's library: what serves this lesson and is not taught in it",
        "library_about": "# Each line at the bottom is one file of it, packed: the notebook runs"
        " alone and offline.\n# To read what a name stands for, put two question marks after it:"
        " read_reference??",
        "library_changed": "this cell was changed: its digest should begin with {wanted}, it begins"
        " with {came}; take the cell anew",
        "library_other": "There is another course_lib, in {place}; this notebook uses its own.",
        "reference": "Reference numbers",
        "more": "and {count} more",
        "hint": "Hint {number} of {count}",
        "solution": "Solution",
        "quiz": "Quiz question {number} of {count}",
        "warm-up": "warm-up",
        "core": "core",
        "stretch": "stretch",
        "preview": "**Preview.** The English of these cells has changed since the translation was "
        "confirmed: {keys}.",
        "progress": "**A translation in progress:** {done} of {count} cells; the others are shown "
        "in English.",
        "untranslated": "*(English: not translated yet)*",
        "outdated": "*(The English text has changed since this was translated.)*",
        "language": "English",
        "glossary": "Glossary",
        "glossary_about": "Every term of the course, in alphabetical order: what it means, its "
        "name in other languages and in code, and where a module first uses it.",
        "glossary_also": "also: {names}",
        "glossary_code": "in code: {names}",
        "glossary_first": "first used: [Module {number}{section}]({target})",
        "motto": "Every claim is run. Every silent bug has a check.",
        "lost": "There is no such page",
        "lost_about": "The address may have a slip in it, or the page has moved.",
        "lost_start": "Go to the start of the course",
        "lost_search": "Search the course",
    },
    "ru": {
        "this": "Этот блокнот по-русски",
        "other": "Этот блокнот на языке {code}",
        "previous": "← Модуль {number}",
        "next": "Модуль {number} →",
        "module": "Модуль {number}",
        "colab": "Открыть в Colab",
        "machinery": "Служебный код",
        "imports": "Импорты",
        "ours": "Наш вариант: откройте, когда ваш пройдёт проверку или когда застрянете",
        "library": "Библиотека курса: то, что служит этому модулю, но не изучается в нём",
        "library_about": "# Каждая строка внизу — один её файл в сжатом виде: блокноту не нужны"
        " ни соседи, ни сеть.\n# Чтобы увидеть код, поставьте после имени два вопросительных знака:"
        " read_reference??",
        "library_changed": "ячейка изменена: её отпечаток должен начинаться с {wanted},"
        " а начинается с {came}; возьмите ячейку заново",
        "library_other": "Есть и другая course_lib, в {place}; у этого блокнота своя.",
        "reference": "Эталонные числа",
        "more": "и ещё {count}",
        "hint": "Подсказка {number} из {count}",
        "solution": "Решение",
        "quiz": "Вопрос {number} из {count}",
        "warm-up": "разминка",
        "core": "основное",
        "stretch": "со звёздочкой",
        "preview": "**Черновик.** Английский текст этих ячеек изменился с тех пор, как перевод "
        "был подтверждён: {keys}.",
        "progress": "**Перевод не закончен:** готово ячеек — {done} из {count}; остальные показаны "
        "по-английски.",
        "untranslated": "*(По-английски: перевода пока нет)*",
        "outdated": "*(Английский текст изменился после перевода.)*",
        "language": "Русский",
        "glossary": "Глоссарий",
        "glossary_about": "Все термины курса по алфавиту: что значит каждый, как он называется на "
        "других языках и в коде и где впервые встречается в модулях.",
        "glossary_also": "также: {names}",
        "glossary_code": "в коде: {names}",
        "glossary_first": "впервые: [модуль {number}{section}]({target})",
        "motto": "Каждое утверждение проверено кодом. На каждую тихую ошибку есть контракт.",
        "lost": "Такой страницы нет",
        "lost_about": "Возможно, в адресе опечатка или страница переехала.",
        "lost_start": "К началу курса",
        "lost_search": "Поиск по курсу",
    },
}


def say(language: str, entry: str, **values: object) -> str:
    """Say one of the builder's sentences in the notebook's language, or in the first of all."""
    words = CHROME.get(language) or next(iter(CHROME.values()))
    return words[entry].format(**values)


def name_edition(other: str, language: str) -> str:
    """Name the notebook in another language: in its own words, or by its code if it has none."""
    return say(other, "this") if other in CHROME else say(language, "other", code=other)


def name_language(code: str) -> str:
    """Name a language in its own words, or by its code if the builder has none."""
    return CHROME[code]["language"] if code in CHROME else code


def name_some(language: str, names: Sequence[str], width: int) -> str:
    """Join as many names as fit into the width, one at least, and say how many more there are."""
    text = ", ".join(names)
    kept = len(names)
    while len(text) > width and kept > 1:
        kept -= 1
        more = say(language, "more", count=len(names) - kept)
        text = f"{', '.join(names[:kept])} {more}"
    return text
