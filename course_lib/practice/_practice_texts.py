"""What is said to a learner about progress, predictions and questions, in each language."""

from collections.abc import Mapping, Sequence

from course_lib.text import localized, reader_language

_PRACTICE_LEVELS = {
    "warm-up": {"en": "warm-up", "ru": "разминка"},
    "core": {"en": "core", "ru": "основное"},
    "stretch": {"en": "stretch", "ru": "со звёздочкой"},
}

_PRACTICE_TEXTS = {
    "damaged": {
        "en": "{file} is damaged, or not from this notebook. It is kept as {aside}; your progress "
        "begins anew.",
        "ru": "Файл {file} повреждён или принадлежит не этому блокноту. Он сохранён под именем "
        "{aside}, а счёт успехов начинается заново.",
    },
    "newer": {
        "en": "{file} was written by a newer edition of the course and stays as it is. Until this "
        "kernel ends, your progress is kept in memory only.",
        "ru": "Файл {file} записан более новой версией курса, и мы его не трогаем. Ваши успехи "
        "хранятся только в памяти ядра, до его остановки.",
    },
    "unreadable": {
        "en": "{file} cannot be read ({what}). It stays as it is. Until this kernel ends, your "
        "progress is kept in memory only.",
        "ru": "Файл {file} не читается ({what}), и мы его не трогаем. Ваши успехи хранятся "
        "только в памяти ядра, до его остановки.",
    },
    "unwritable": {
        "en": "{file} cannot be written here ({what}). Until this kernel ends, your progress is "
        "kept in memory only.",
        "ru": "Файл {file} не удаётся записать ({what}). Ваши успехи хранятся только в памяти "
        "ядра, до его остановки.",
    },
    "kept": {
        "en": "Kept in {file} beside this notebook; it never leaves your computer. Delete the "
        "file to begin anew.",
        "ru": "Хранится в файле {file} рядом с блокнотом и не покидает ваш компьютер. Чтобы "
        "начать заново, удалите файл.",
    },
    "count": {
        "en": "Contracts passed: {done} of {count}",
        "ru": "Выполнено контрактов: {done} из {count}",
    },
    "exercises": {"en": "Exercises", "ru": "Упражнения"},
    "exercise": {"en": "exercise", "ru": "упражнение"},
    "level": {"en": "level", "ru": "уровень"},
    "state": {"en": "state", "ru": "состояние"},
    "open": {"en": "○ not passed yet", "ru": "○ пока не выполнено"},
    "passed": {
        "en": "✓ passed, clauses checked: {count}",
        "ru": "✓ выполнено, проверено пунктов: {count}",
    },
    "broken": {
        "en": '✗ the clause "{clause}" is broken',
        "ru": "✗ нарушен пункт «{clause}»",
    },
    "holds": {
        "en": "✓ {contract}: every assert holds",
        "ru": "✓ {contract}: все утверждения выполнены",
    },
    "where": {"en": "in {function}: {line}", "ru": "в {function}: {line}"},
    "adopted": {
        "en": "From here on the lesson uses your {name}.",
        "ru": "Отныне урок пользуется вашей функцией {name}.",
    },
    "ours": {
        "en": "From here on the lesson uses the course's {name}; once yours passes, run this cell "
        "again and it takes its place.",
        "ru": "Пока урок пользуется функцией курса {name}; когда ваша пройдёт проверку, выполните "
        "эту ячейку снова — и она займёт её место.",
    },
    "like": {"en": "; behaves like {names}", "ru": "; ведёт себя как {names}"},
    "predictions": {"en": "Predictions", "ru": "Предсказания"},
    "question": {"en": "question", "ru": "вопрос"},
    "predicted": {"en": "predicted", "ru": "предсказано"},
    "outcome": {"en": "outcome", "ru": "что вышло"},
    "held": {"en": "✓ as predicted", "ru": "✓ как предсказано"},
    "surprise": {"en": "✗ a surprise", "ru": "✗ неожиданность"},
    "waiting": {"en": "○ not compared yet", "ru": "○ ещё не сравнили"},
    "late": {
        "en": " (predicted after the result was shown)",
        "ru": " (предсказано, когда результат уже показали)",
    },
    "nothing": {"en": "○ nothing yet", "ru": "○ пока ничего"},
    "quiz": {"en": "Quiz", "ru": "Вопросы для проверки"},
    "answered": {
        "en": "Quiz: {right} of {count} right",
        "ru": "Вопросы для проверки: верно {right} из {count}",
    },
    "answer": {"en": "your answer", "ru": "ваш ответ"},
    "right": {"en": "✓ right", "ru": "✓ верно"},
    "wrong": {"en": "✗ not right", "ru": "✗ неверно"},
    "predict": {"en": "Prediction", "ru": "Предсказание"},
    "predict_choice": {
        "en": "To record your prediction, put its word into this cell's call, for example "
        "{call}, and run the cell again.",
        "ru": "Чтобы записать предсказание, впишите имя ответа в вызов этой ячейки, например "
        "{call}, и выполните её ещё раз.",
    },
    "predict_number": {
        "en": "To record your prediction, put {call} into this cell's call, with a number in "
        "place of the dots, and run the cell again.",
        "ru": "Чтобы записать предсказание, впишите в вызов этой ячейки {call}, с числом вместо "
        "многоточия, и выполните её ещё раз.",
    },
    "recorded": {
        "en": "Recorded: {guess}. Read on and run the next cells to see what comes.",
        "ru": "Записано: {guess}. Читайте дальше и запускайте следующие ячейки: увидите, "
        "что выйдет.",
    },
    "record": {"en": "Record my prediction", "ru": "Записать предсказание"},
    "your_number": {"en": "Your number", "ru": "Ваше число"},
    "your_choice": {"en": "Your choice", "ru": "Ваш выбор"},
    "compare_held": {
        "en": "✓ As predicted. Predicted: {guess}; result: {actual}.",
        "ru": "✓ Как предсказано. Предсказано: {guess}; получилось: {actual}.",
    },
    "compare_surprise": {
        "en": "✗ A surprise. Predicted: {guess}; result: {actual}. It teaches more than a hit: "
        "find out why before you read on.",
        "ru": "✗ Неожиданность. Предсказано: {guess}; получилось: {actual}. Она учит большему, "
        "чем удача: разберитесь в её причине, прежде чем читать дальше.",
    },
    "compare_within": {
        "en": "Off by {off}%; up to {within}% counts as right.",
        "ru": "Отклонение — {off} %; верным считаем до {within} %.",
    },
    "compare_nothing": {
        "en": "○ The result: {actual}.",
        "ru": "○ Получилось: {actual}.",
    },
    "compare_skipped": {
        "en": "No prediction was recorded, which stops nothing (nor will it be said again); but "
        "who predicts first notices more.",
        "ru": "Предсказание не записано. Это ничему не мешает, и напоминать мы больше не будем; "
        "но кто сначала предсказывает, тот больше замечает.",
    },
    "elsewhere": {
        "en": " (in another language: run the cell of this question to read it here)",
        "ru": " (на другом языке: выполните ячейку с этим вопросом, и он появится здесь)",
    },
    "ask": {"en": "Quiz question", "ru": "Вопрос для проверки"},
    "ask_open": {
        "en": "Open a choice to read what it means.",
        "ru": "Раскройте ответ, чтобы прочитать пояснение.",
    },
    "ask_plain": {
        "en": "To record your answer, run {call} with the number of your choice.",
        "ru": "Чтобы записать свой ответ, выполните {call}, подставив его номер.",
    },
    "unasked": {
        "en": "The question {name} has not been asked yet: run its cell first.",
        "ru": "Вопрос {name} ещё не задан: сначала выполните его ячейку.",
    },
}


def practice_words(entry: str, **values: object) -> str:
    """One of the sentences in the reader's language."""
    return localized(_PRACTICE_TEXTS[entry], **values)


def practice_level(level: str) -> str:
    """A level's word in the reader's language."""
    return localized(_PRACTICE_LEVELS[level])


def practice_recalled(said: Mapping[str, Sequence[str]], unsaid: Sequence[str]) -> Sequence[str]:
    """The words that were recorded: in the reader's language, or in another one, which is said.

    Args:    said: language -> words, a question first; unsaid: what stands for no words at all
    """
    if not said:
        return unsaid
    if reader_language() in said:
        return said[reader_language()]
    question, *others = next(iter(said.values()))
    return [question + practice_words("elsewhere"), *others]
