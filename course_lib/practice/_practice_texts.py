"""What is said to a learner about progress, predictions and questions, in each language."""

from collections.abc import Mapping, Sequence

from course_lib.text import reader_language, say

_PRACTICE_LEVELS = {
    "warm-up": "warm-up | разминка",
    "core": "core | основное",
    "stretch": "stretch | со звёздочкой",
}

_PRACTICE_TEXTS = {
    "damaged": "{file} is damaged, or not from this notebook. It is kept as {aside}; your "
    "progress begins anew. | Файл {file} повреждён или принадлежит не этому блокноту. Он "
    "сохранён под именем {aside}, а счёт успехов начинается заново.",
    "newer": "{file} was written by a newer edition of the course and stays as it is. Until this "
    "kernel ends, your progress is kept in memory only. | Файл {file} записан более новой "
    "версией курса, и мы его не трогаем. Ваши успехи хранятся только в памяти ядра, до его "
    "остановки.",
    "unreadable": "{file} cannot be read ({what}). It stays as it is. Until this kernel ends, "
    "your progress is kept in memory only. | Файл {file} не читается ({what}), и мы его не "
    "трогаем. Ваши успехи хранятся только в памяти ядра, до его остановки.",
    "unwritable": "{file} cannot be written here ({what}). Until this kernel ends, your progress "
    "is kept in memory only. | Файл {file} не удаётся записать ({what}). Ваши успехи хранятся "
    "только в памяти ядра, до его остановки.",
    "kept": "Kept in {file} beside this notebook; it never leaves your computer. Delete the file "
    "to begin anew. | Хранится в файле {file} рядом с блокнотом и не покидает ваш компьютер. "
    "Чтобы начать заново, удалите файл.",
    "count": "Contracts passed: {done} of {count} | Выполнено контрактов: {done} из {count}",
    "exercises": "Exercises | Упражнения",
    "exercise": "exercise | упражнение",
    "level": "level | уровень",
    "state": "state | состояние",
    "open": "○ not passed yet | ○ пока не выполнено",
    "passed": "✓ passed, clauses checked: {count} | ✓ выполнено, проверено пунктов: {count}",
    "broken": '✗ the clause "{clause}" is broken | ✗ нарушен пункт «{clause}»',
    "holds": "✓ {contract}: every assert holds | ✓ {contract}: все утверждения выполнены",
    "where": "in {function}: {line} | в {function}: {line}",
    "adopted": "From here on the lesson uses your {name}. | Отныне урок пользуется вашей "
    "функцией {name}.",
    "ours": "From here on the lesson uses the course's {name}; once yours passes, run this cell "
    "again and it takes its place. | Пока урок пользуется функцией курса {name}; когда ваша "
    "пройдёт проверку, выполните эту ячейку снова — и она займёт её место.",
    "like": "; behaves like {names} | ; ведёт себя как {names}",
    "predictions": "Predictions | Предсказания",
    "question": "question | вопрос",
    "predicted": "predicted | предсказано",
    "outcome": "outcome | что вышло",
    "held": "✓ as predicted | ✓ как предсказано",
    "surprise": "✗ a surprise | ✗ неожиданность",
    "waiting": "○ not compared yet | ○ ещё не сравнили",
    "late": " (predicted after the result was shown) |  (предсказано, когда результат уже "
    "показали)",
    "nothing": "○ nothing yet | ○ пока ничего",
    "quiz": "Quiz | Вопросы для проверки",
    "answered": "Quiz: {right} of {count} right | Вопросы для проверки: верно {right} из {count}",
    "answer": "your answer | ваш ответ",
    "right": "✓ right | ✓ верно",
    "wrong": "✗ not right | ✗ неверно",
    "predict": "Prediction | Предсказание",
    "predict_choice": "To record your prediction, put its word into this cell's call, for "
    "example {call}, and run the cell again. | Чтобы записать предсказание, впишите имя ответа в "
    "вызов этой ячейки, например {call}, и выполните её ещё раз.",
    "predict_number": "To record your prediction, put {call} into this cell's call, with a "
    "number in place of the dots, and run the cell again. | Чтобы записать предсказание, впишите "
    "в вызов этой ячейки {call}, с числом вместо многоточия, и выполните её ещё раз.",
    "recorded": "Recorded: {guess}. Read on and run the next cells to see what comes. | "
    "Записано: {guess}. Читайте дальше и запускайте следующие ячейки: увидите, что выйдет.",
    "record": "Record my prediction | Записать предсказание",
    "your_number": "Your number | Ваше число",
    "your_choice": "Your choice | Ваш выбор",
    "compare_held": "✓ As predicted. Predicted: {guess}; result: {actual}. | ✓ Как предсказано. "
    "Предсказано: {guess}; получилось: {actual}.",
    "compare_surprise": "✗ A surprise. Predicted: {guess}; result: {actual}. It teaches more "
    "than a hit: find out why before you read on. | ✗ Неожиданность. Предсказано: {guess}; "
    "получилось: {actual}. Она учит большему, чем удача: разберитесь в её причине, прежде чем "
    "читать дальше.",
    "compare_within": "Off by {off}%; up to {within}% counts as right. | Отклонение — {off} %; "
    "верным считаем до {within} %.",
    "compare_nothing": "○ The result: {actual}. | ○ Получилось: {actual}.",
    "compare_skipped": "No prediction was recorded, which stops nothing (nor will it be said "
    "again); but who predicts first notices more. | Предсказание не записано. Это ничему не "
    "мешает, и напоминать мы больше не будем; но кто сначала предсказывает, тот больше замечает.",
    "elsewhere": " (in another language: run the cell of this question to read it here) |  (на "
    "другом языке: выполните ячейку с этим вопросом, и он появится здесь)",
    "ask": "Quiz question | Вопрос для проверки",
    "ask_open": "Open a choice to read what it means. | Раскройте ответ, чтобы прочитать "
    "пояснение.",
    "ask_plain": "To record your answer, run {call} with the number of your choice. | Чтобы "
    "записать свой ответ, выполните {call}, подставив его номер.",
    "unasked": "The question {name} has not been asked yet: run its cell first. | Вопрос {name} "
    "ещё не задан: сначала выполните его ячейку.",
}


def practice_words(entry: str, **values: object) -> str:
    """One of the sentences in the reader's language."""
    return say(_PRACTICE_TEXTS[entry], **values)


def practice_level(level: str) -> str:
    """A level's word in the reader's language."""
    return say(_PRACTICE_LEVELS[level])


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
