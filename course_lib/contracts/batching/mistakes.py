"""Batches of prompts of different lengths that are wrong in one way each."""

from typing import Any

import numpy as np

from course_lib.contracts.batching._batching_more import BATCHING_MORE_MISTAKES
from course_lib.contracts.batching._tiny_batch import TinyBatch, padded_right, seen_in_batch
from course_lib.contracts.engine.mistake import mistakes


def _batching_sorted(batch: TinyBatch, prompts: list[list[int]]) -> list[list[int]]:
    return sorted(prompts, key=len, reverse=True)


def _batching_causal_only(batch: TinyBatch, valid: np.ndarray, row: int) -> np.ndarray:
    return seen_in_batch(np.ones_like(valid[row]))


def _batching_shared_places(batch: TinyBatch, valid: np.ndarray) -> np.ndarray:
    return np.arange(len(valid))


def _batching_wrong_sign(batch: TinyBatch, valid: np.ndarray) -> np.ndarray:
    return np.arange(len(valid)) + int((~valid).sum())


def _batching_by_token(batch: TinyBatch, ids: np.ndarray, valid: np.ndarray) -> np.ndarray:
    return ids != 0


def _batching_first_column(batch: TinyBatch, valid: np.ndarray, row: int) -> Any:
    return int(valid[0].sum()) - 1


def _batching_early_column(batch: TinyBatch, valid: np.ndarray, row: int) -> Any:
    return max(int(valid[row].sum()) - 2, 0)


# fmt: off
BATCHING_MISTAKES = (
    *mistakes(
    None,
    shared_positions=("unslothai/unsloth#4078",
        "positions count the padding on the left too: a shorter prompt starts late | "
        "позиции считают и дополнение слева: короткая затравка начинается не с нуля",
        "positions = cumsum(valid) - 1", lambda: TinyBatch(place=_batching_shared_places)),
    positions_shifted_the_wrong_way=("lucidrains/x-transformers@013e60a",
        "the amount of padding is added to the positions instead of subtracted | "
        "длина дополнения прибавлена к позициям, а не вычтена",
        "positions = arange - padding | positions = arange - дополнение",
        lambda: TinyBatch(place=_batching_wrong_sign)),
    padding_attended=("Blaizzy/mlx-vlm#1946",
        "the padding lies in the past and is read like a token (or read out itself) | "
        "дополнение лежит в прошлом и читается как токен (или взята его строка)",
        "allowed = causal & valid_keys", lambda: TinyBatch(see=_batching_causal_only)),
    padding_is_a_prefix=("turboderp-org/exllamav2#606",
        "padding on the left is just more prompt: no mask, no positions of its own | "
        "дополнение слева стало частью затравки: ни маски, ни своих позиций",
        "hide it, and count positions from the first real token | "
        "закройте его; позиции — от первого настоящего токена",
        lambda: TinyBatch(place=_batching_shared_places, see=_batching_causal_only)),
    last_column_read=("huggingface/transformers#14521",
        "with padding on the right the last column is read, which is padding | "
        "при дополнении справа прочитан последний столбец, а это дополнение",
        "logits[row, length - 1]",
        lambda: TinyBatch(
            pad=padded_right, place=_batching_shared_places, see=_batching_causal_only)),
    one_column_early=("",
        "the column before the last real token is read | "
        "прочитан столбец перед последним настоящим токеном",
        "logits[row, length - 1]",
        lambda: TinyBatch(pad=padded_right, read=_batching_early_column)),
    first_length_for_all=("microsoft/onnxruntime-genai#1639",
        "the length of the first prompt is taken for all | длина первой затравки принята для всех",
        "logits[rows, lengths - 1]",
        lambda: TinyBatch(
            pad=padded_right, see=_batching_causal_only, read=_batching_first_column)),
    first_mask_for_all=("facebookresearch/jepa#93",
        "the padding mask of the first prompt is used for the whole batch | "
        "маска дополнения первой затравки применена ко всему пакету",
        "valid[:, None, None, :]",
        lambda: TinyBatch(see=lambda batch, valid, row: seen_in_batch(valid[0]))),
    mask_upside_down=("rasbt/LLMs-from-scratch#1061",
        "the padding mask is inverted: padding is read, the prompt is hidden | "
        "маска дополнения инвертирована: дополнение читается, а затравка закрыта",
        "True = may read | True = разрешено читать",
        lambda: TinyBatch(see=lambda batch, valid, row: seen_in_batch(~valid[row]))),
    pad_id_is_a_token=("microsoft/onnxruntime-genai#1694",
        "the mask is guessed from the ids: a real token with the padding's id vanishes | "
        "маска угадана по ids: настоящий токен с номером дополнения пропадает",
        "build the mask from the lengths | стройте маску по длинам",
        lambda: TinyBatch(know=_batching_by_token)),
    order_not_restored=("vllm-project/vllm#394",
        "rows come in the order of lengths, not in that of the prompts | "
        "строки идут по длине, а не в порядке затравок",
        "result[order] = rows", lambda: TinyBatch(arrange=_batching_sorted)),
    ),
    *BATCHING_MORE_MISTAKES,
)
# fmt: on
