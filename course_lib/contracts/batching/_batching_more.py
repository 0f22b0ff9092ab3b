"""Batches that cut prompts, mix rows, or remember what they should not."""

import numpy as np

from course_lib.contracts.batching._tiny_batch import TinyBatch, padded_left
from course_lib.contracts.engine.mistake import Mistake


def _batching_joined(batch: TinyBatch, prompts: list[list[int]]) -> list[list[int]]:
    """Each prompt with all that stand before it in front, as far as the context goes."""
    joined = [
        [token for prompt in prompts[: n + 1] for token in prompt] for n in range(len(prompts))
    ]
    return [ids[-batch.context_length :] for ids in joined]


def _batching_front(batch: TinyBatch, prompts: list[list[int]]) -> list[list[int]]:
    return [prompt[: min(map(len, prompts))] for prompt in prompts]


def _batching_end(batch: TinyBatch, prompts: list[list[int]]) -> list[list[int]]:
    return [prompt[-min(map(len, prompts)) :] for prompt in prompts]


def _batching_without_last(batch: TinyBatch, prompts: list[list[int]]) -> list[list[int]]:
    width = max(map(len, prompts))
    return [prompt if len(prompt) == width else prompt[1:] or prompt for prompt in prompts]


def _batching_padded_in_place(batch: TinyBatch, prompts: list[list[int]]) -> list[list[int]]:
    """Work on copies, but leave the caller's prompts padded."""
    kept = [list(prompt) for prompt in prompts]
    width = max(map(len, prompts))
    for prompt in prompts:
        prompt[:] = [0] * (width - len(prompt)) + prompt
    return kept


def _batching_old_mask(batch: TinyBatch, prompts: list[list[int]], width: int) -> tuple:
    """The first batch of each shape leaves its mask behind."""
    ids, valid = padded_left(batch, prompts, width)
    batch.memory = batch.memory or {}
    return ids, batch.memory.setdefault(valid.shape, valid)


def _batching_one_buffer(batch: TinyBatch, rows: np.ndarray, prompts: list) -> np.ndarray:
    """Every result is a view of one array."""
    if batch.memory is None or len(batch.memory) < len(rows):
        batch.memory = np.zeros((max(len(rows), 16), batch.vocab_size))
    view = batch.memory[: len(rows)]
    view[...] = rows
    return view


BATCHING_MORE_MISTAKES = (
    Mistake(
        "rows_reversed",
        "a mutation of right code",
        lambda: TinyBatch(finish=lambda batch, rows, prompts: rows[::-1]),
        {"en": "the rows come in reverse order", "ru": "строки идут в обратном порядке"},
        {"en": "keep the order of the prompts", "ru": "сохраняйте порядок затравок"},
    ),
    Mistake(
        "first_row_for_all",
        "a mutation of right code",
        lambda: TinyBatch(finish=lambda batch, rows, prompts: np.repeat(rows[:1], len(rows), 0)),
        {
            "en": "every row repeats that of the first prompt",
            "ru": "каждая строка повторяет строку первой затравки",
        },
        {"en": "logits[:, -1], not logits[0, -1]", "ru": "logits[:, -1], а не logits[0, -1]"},
    ),
    Mistake(
        "cut_to_the_shortest",
        "a mutation of right code",
        lambda: TinyBatch(arrange=_batching_front),
        {
            "en": "all prompts are cut to the length of the shortest, their ends are lost",
            "ru": "все затравки обрезаны до самой короткой, их концы потеряны",
        },
        {"en": "pad to the longest", "ru": "дополняйте до самой длинной"},
    ),
    Mistake(
        "ends_of_the_shortest_length",
        "a mutation of right code",
        lambda: TinyBatch(arrange=_batching_end),
        {
            "en": "of all prompts only as many last tokens are kept as the shortest has",
            "ru": "от всех затравок оставлено столько последних токенов, сколько в самой короткой",
        },
        {"en": "pad to the longest", "ru": "дополняйте до самой длинной"},
    ),
    Mistake(
        "first_token_lost",
        "a mutation of right code",
        lambda: TinyBatch(arrange=_batching_without_last),
        {
            "en": "a padded prompt loses its first token: the mask hides one too many",
            "ru": "дополненная затравка теряет первый токен: маска закрывает лишний",
        },
        {"en": "valid = arange >= width - length", "ru": "valid = arange >= width - length"},
    ),
    Mistake(
        "neighbours_are_the_past",
        "a mutation of right code",
        lambda: TinyBatch(arrange=_batching_joined),
        {
            "en": "a prompt reads those before it in the batch: they were joined without a mask",
            "ru": "затравка читает предыдущие в пакете: они соединены без маски",
        },
        {"en": "each its own row or block of the mask", "ru": "каждой своя строка или блок маски"},
    ),
    Mistake(
        "statistics_over_the_batch",
        "a mutation of right code",
        lambda: TinyBatch(finish=lambda batch, rows, prompts: rows - rows.mean(0) * 0.1),
        {
            "en": "something is averaged over the batch: rows depend on their neighbours' tokens",
            "ru": "что-то усреднено по пакету: строка зависит от токенов соседей",
        },
        {"en": "no statistics along the batch axis", "ru": "никаких средних по оси пакета"},
    ),
    Mistake(
        "padded_to_the_context",
        "ndif-team/nnsight#673",
        lambda: TinyBatch(
            width=lambda batch, prompts: batch.context_length,
            place=lambda batch, valid: np.arange(len(valid)),
        ),
        {
            "en": "always padded on the left to the full context, and positions count it",
            "ru": "слева всегда дополнено до полного контекста, и позиции считают это дополнение",
        },
        {"en": "positions = cumsum(valid) - 1", "ru": "positions = cumsum(valid) - 1"},
    ),
    Mistake(
        "mask_of_an_earlier_batch",
        "a mutation of right code",
        lambda: TinyBatch(pad=_batching_old_mask),
        {
            "en": "the padding mask of an earlier batch of the same shape is used again",
            "ru": "применена маска дополнения прежнего пакета той же формы",
        },
        {"en": "a new mask for every batch", "ru": "новая маска для каждого пакета"},
    ),
    Mistake(
        "batches_share_memory",
        "a mutation of right code",
        lambda: TinyBatch(finish=_batching_one_buffer),
        {
            "en": "the result is a view of a buffer that the next batch overwrites",
            "ru": "результат — представление (view) буфера, который перезапишет следующий пакет",
        },
        {"en": "return a copy", "ru": "верните копию"},
    ),
    Mistake(
        "prompts_padded_in_place",
        "a mutation of right code",
        lambda: TinyBatch(arrange=_batching_padded_in_place),
        {
            "en": "the padding is written into the caller's own prompts",
            "ru": "дополнение записано прямо в переданные затравки",
        },
        {"en": "pad copies", "ru": "дополняйте копии"},
    ),
)
