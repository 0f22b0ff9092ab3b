"""Batches of prompts of different lengths that are wrong in one way each."""

import numpy as np

from course_lib.contracts.batching.tiny_batch import (
    TinyBatch,
    padded_left,
    padded_right,
    seen_in_batch,
)
from course_lib.contracts.engine.mistake import mistakes

_PLACES = "positions = cumsum(valid) - 1"
_LAST = "logits[row, length - 1]"
_LONGEST = "pad to the longest | дополняйте до самого длинного"


def _causal_only(batch: TinyBatch, valid: np.ndarray, row: int) -> np.ndarray:
    return seen_in_batch(np.ones_like(valid[row]))


def _shared_places(batch: TinyBatch, valid: np.ndarray) -> np.ndarray:
    return np.arange(len(valid))


def _joined(batch: TinyBatch, prompts: list[list[int]]) -> list[list[int]]:
    """Each prompt with all that stand before it in front, as far as the context goes."""
    joined = [
        [token for prompt in prompts[: n + 1] for token in prompt] for n in range(len(prompts))
    ]
    return [ids[-batch.context_length :] for ids in joined]


def _without_last(batch: TinyBatch, prompts: list[list[int]]) -> list[list[int]]:
    width = max(map(len, prompts))
    return [prompt if len(prompt) == width else prompt[1:] or prompt for prompt in prompts]


def _padded_in_place(batch: TinyBatch, prompts: list[list[int]]) -> list[list[int]]:
    """Work on copies, but leave the caller's prompts padded."""
    kept = [list(prompt) for prompt in prompts]
    width = max(map(len, prompts))
    for prompt in prompts:
        prompt[:] = [0] * (width - len(prompt)) + prompt
    return kept


def _old_mask(batch: TinyBatch, prompts: list[list[int]], width: int) -> tuple:
    """The first batch of each shape leaves its mask behind."""
    ids, valid = padded_left(batch, prompts, width)
    batch.memory = batch.memory or {}
    return ids, batch.memory.setdefault(valid.shape, valid)


def _one_buffer(batch: TinyBatch, rows: np.ndarray, prompts: list) -> np.ndarray:
    """Every result is a view of one array."""
    if batch.memory is None or len(batch.memory) < len(rows):
        batch.memory = np.zeros((max(len(rows), 16), batch.vocab_size))
    view = batch.memory[: len(rows)]
    view[...] = rows
    return view


# fmt: off
BATCHING_MISTAKES = mistakes(
    TinyBatch,
    shared_positions=("unslothai/unsloth#4078",
        "positions count the padding on the left too: a shorter prompt starts late | "
        "позиции считают и паддинг слева: короткий промпт начинается не с нуля",
        _PLACES, {"place": _shared_places}),
    positions_shifted_the_wrong_way=("lucidrains/x-transformers@013e60a",
        "the amount of padding is added to the positions instead of subtracted | "
        "длина паддинга прибавлена к позициям, а не вычтена",
        "positions = arange - padding | positions = arange - паддинг",
        {"place": lambda batch, valid: np.arange(len(valid)) + int((~valid).sum())}),
    padding_attended=("Blaizzy/mlx-vlm#1946",
        "the padding lies in the past and is read like a token (or read out itself) | "
        "паддинг лежит в прошлом и читается как токен (или взята его строка)",
        "allowed = causal & valid_keys", {"see": _causal_only}),
    padding_is_a_prefix=("turboderp-org/exllamav2#606",
        "padding on the left is just more prompt: no mask, no positions of its own | "
        "паддинг слева стал частью промпта: ни маски, ни своих позиций",
        "hide it, and count positions from the first real token | "
        "закройте его; позиции — от первого настоящего токена",
        {"place": _shared_places, "see": _causal_only}),
    last_column_read=("huggingface/transformers#14521",
        "with padding on the right the last column is read, which is padding | "
        "при паддинге справа прочитан последний столбец, а это паддинг",
        _LAST, {"pad": padded_right, "place": _shared_places, "see": _causal_only}),
    one_column_early=("",
        "the column before the last real token is read | "
        "прочитан столбец перед последним настоящим токеном",
        _LAST,
        {"pad": padded_right, "read": lambda batch, valid, row: max(int(valid[row].sum()) - 2, 0)}),
    first_length_for_all=("microsoft/onnxruntime-genai#1639",
        "the length of the first prompt is taken for all | длина первого промпта принята для всех",
        "logits[rows, lengths - 1]",
        {"pad": padded_right, "see": _causal_only, "read": lambda batch, valid, row:
            int(valid[0].sum()) - 1}),
    first_mask_for_all=("facebookresearch/jepa#93",
        "the padding mask of the first prompt is used for the whole batch | "
        "маска паддинга первого промпта применена ко всему батчу",
        "valid[:, None, None, :]", {"see": lambda batch, valid, row: seen_in_batch(valid[0])}),
    mask_upside_down=("rasbt/LLMs-from-scratch#1061",
        "the padding mask is inverted: padding is read, the prompt is hidden | "
        "маска паддинга инвертирована: паддинг читается, а промпт замаскирован",
        "True = may read | True = разрешено читать",
        {"see": lambda batch, valid, row: seen_in_batch(~valid[row])}),
    pad_id_is_a_token=("microsoft/onnxruntime-genai#1694",
        "the mask is guessed from the ids: a real token with the padding's id vanishes | "
        "маска угадана по ids: настоящий токен с номером паддинга пропадает",
        "build the mask from the lengths | стройте маску по длинам",
        {"know": lambda batch, ids, valid: ids != 0}),
    order_not_restored=("vllm-project/vllm#394",
        "rows come in the order of lengths, not in that of the prompts | "
        "строки идут по длине, а не в порядке затравок",
        "result[order] = rows",
        {"arrange": lambda batch, prompts: sorted(prompts, key=len, reverse=True)}),
    rows_reversed=("",
        "the rows come in reverse order | строки идут в обратном порядке",
        "keep the order of the prompts | сохраняйте порядок затравок",
        {"finish": lambda batch, rows, prompts: rows[::-1]}),
    first_row_for_all=("",
        "every row repeats that of the first prompt | "
        "каждая строка повторяет строку первого промпта",
        "logits[:, -1], not logits[0, -1] | logits[:, -1], а не logits[0, -1]",
        {"finish": lambda batch, rows, prompts: np.repeat(rows[:1], len(rows), 0)}),
    cut_to_the_shortest=("",
        "all prompts are cut to the length of the shortest, their ends are lost | "
        "все промпты обрезаны до самого короткого, их концы потеряны",
        _LONGEST,
        {"arrange": lambda batch, prompts:
            [prompt[: min(map(len, prompts))] for prompt in prompts]}),
    ends_of_the_shortest_length=("",
        "of all prompts only as many last tokens are kept as the shortest has | "
        "от всех затравок оставлено столько последних токенов, сколько в самой короткой",
        _LONGEST,
        {"arrange": lambda batch, prompts:
            [prompt[-min(map(len, prompts)) :] for prompt in prompts]}),
    first_token_lost=("",
        "a padded prompt loses its first token: the mask hides one too many | "
        "промпт с паддингом теряет первый токен: маска закрывает лишний",
        "valid = arange >= width - length", {"arrange": _without_last}),
    neighbours_are_the_past=("",
        "a prompt reads those before it in the batch: they were joined without a mask | "
        "промпт читает предыдущие в батче: они соединены без маски",
        "each its own row or block of the mask | каждой своя строка или блок маски",
        {"arrange": _joined}),
    statistics_over_the_batch=("",
        "something is averaged over the batch: rows depend on their neighbours' tokens | "
        "что-то усреднено по батчу: строка зависит от токенов соседей",
        "no statistics along the batch axis | никаких средних по оси батча",
        {"finish": lambda batch, rows, prompts: rows - rows.mean(0) * 0.1}),
    padded_to_the_context=("ndif-team/nnsight#673",
        "always padded on the left to the full context, and positions count it | "
        "слева всегда дополнено до полного контекста, и позиции считают этот паддинг",
        _PLACES, {"width": lambda batch, prompts: batch.context_length, "place": _shared_places}),
    mask_of_an_earlier_batch=("",
        "the padding mask of an earlier batch of the same shape is used again | "
        "применена маска паддинга прежнего батча той же формы",
        "a new mask for every batch | новая маска для каждого батча", {"pad": _old_mask}),
    batches_share_memory=("",
        "the result is a view of a buffer that the next batch overwrites | "
        "результат — представление (view) буфера, который перезапишет следующий батч",
        "return a copy | верните копию", {"finish": _one_buffer}),
    prompts_padded_in_place=("",
        "the padding is written into the caller's own prompts | "
        "паддинг записан прямо в переданные промпты",
        "pad copies | дополняйте копии", {"arrange": _padded_in_place}),
)
# fmt: on
