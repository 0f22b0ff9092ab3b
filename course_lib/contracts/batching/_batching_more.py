"""Batches that cut prompts, mix rows, or remember what they should not."""

import numpy as np

from course_lib.contracts.batching._tiny_batch import TinyBatch, padded_left
from course_lib.contracts.engine.mistake import mistakes


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


# fmt: off
BATCHING_MORE_MISTAKES = mistakes(
    None,
    rows_reversed=("",
        "the rows come in reverse order | строки идут в обратном порядке",
        "keep the order of the prompts | сохраняйте порядок затравок",
        lambda: TinyBatch(finish=lambda batch, rows, prompts: rows[::-1])),
    first_row_for_all=("",
        "every row repeats that of the first prompt | "
        "каждая строка повторяет строку первой затравки",
        "logits[:, -1], not logits[0, -1] | logits[:, -1], а не logits[0, -1]",
        lambda: TinyBatch(finish=lambda batch, rows, prompts: np.repeat(rows[:1], len(rows), 0))),
    cut_to_the_shortest=("",
        "all prompts are cut to the length of the shortest, their ends are lost | "
        "все затравки обрезаны до самой короткой, их концы потеряны",
        "pad to the longest | дополняйте до самой длинной",
        lambda: TinyBatch(arrange=_batching_front)),
    ends_of_the_shortest_length=("",
        "of all prompts only as many last tokens are kept as the shortest has | "
        "от всех затравок оставлено столько последних токенов, сколько в самой короткой",
        "pad to the longest | дополняйте до самой длинной",
        lambda: TinyBatch(arrange=_batching_end)),
    first_token_lost=("",
        "a padded prompt loses its first token: the mask hides one too many | "
        "дополненная затравка теряет первый токен: маска закрывает лишний",
        "valid = arange >= width - length", lambda: TinyBatch(arrange=_batching_without_last)),
    neighbours_are_the_past=("",
        "a prompt reads those before it in the batch: they were joined without a mask | "
        "затравка читает предыдущие в пакете: они соединены без маски",
        "each its own row or block of the mask | каждой своя строка или блок маски",
        lambda: TinyBatch(arrange=_batching_joined)),
    statistics_over_the_batch=("",
        "something is averaged over the batch: rows depend on their neighbours' tokens | "
        "что-то усреднено по пакету: строка зависит от токенов соседей",
        "no statistics along the batch axis | никаких средних по оси пакета",
        lambda: TinyBatch(finish=lambda batch, rows, prompts: rows - rows.mean(0) * 0.1)),
    padded_to_the_context=("ndif-team/nnsight#673",
        "always padded on the left to the full context, and positions count it | "
        "слева всегда дополнено до полного контекста, и позиции считают это дополнение",
        "positions = cumsum(valid) - 1",
        lambda: TinyBatch(width=lambda batch, prompts: batch.context_length,
                          place=lambda batch, valid: np.arange(len(valid)))),
    mask_of_an_earlier_batch=("",
        "the padding mask of an earlier batch of the same shape is used again | "
        "применена маска дополнения прежнего пакета той же формы",
        "a new mask for every batch | новая маска для каждого пакета",
        lambda: TinyBatch(pad=_batching_old_mask)),
    batches_share_memory=("",
        "the result is a view of a buffer that the next batch overwrites | "
        "результат — представление (view) буфера, который перезапишет следующий пакет",
        "return a copy | верните копию", lambda: TinyBatch(finish=_batching_one_buffer)),
    prompts_padded_in_place=("",
        "the padding is written into the caller's own prompts | "
        "дополнение записано прямо в переданные затравки",
        "pad copies | дополняйте копии", lambda: TinyBatch(arrange=_batching_padded_in_place)),
)
# fmt: on
