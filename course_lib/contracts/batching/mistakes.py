"""Batches of prompts of different lengths that are wrong in one way each."""

from typing import Any

import numpy as np

from course_lib.contracts.batching._batching_more import BATCHING_MORE_MISTAKES
from course_lib.contracts.batching._tiny_batch import TinyBatch, padded_right, seen_in_batch
from course_lib.contracts.engine.mistake import Mistake


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


BATCHING_MISTAKES = (
    Mistake(
        "shared_positions",
        "unslothai/unsloth#4078",
        lambda: TinyBatch(place=_batching_shared_places),
        {
            "en": "positions count the padding on the left too: a shorter prompt starts late",
            "ru": "позиции считают и дополнение слева: короткая затравка начинается не с нуля",
        },
        {"en": "positions = cumsum(valid) - 1", "ru": "positions = cumsum(valid) - 1"},
    ),
    Mistake(
        "positions_shifted_the_wrong_way",
        "lucidrains/x-transformers@013e60a",
        lambda: TinyBatch(place=_batching_wrong_sign),
        {
            "en": "the amount of padding is added to the positions instead of subtracted",
            "ru": "длина дополнения прибавлена к позициям, а не вычтена",
        },
        {"en": "positions = arange - padding", "ru": "positions = arange - дополнение"},
    ),
    Mistake(
        "padding_attended",
        "Blaizzy/mlx-vlm#1946",
        lambda: TinyBatch(see=_batching_causal_only),
        {
            "en": "the padding lies in the past and is read like a token (or read out itself)",
            "ru": "дополнение лежит в прошлом и читается как токен (или взята его строка)",
        },
        {"en": "allowed = causal & valid_keys", "ru": "allowed = causal & valid_keys"},
    ),
    Mistake(
        "padding_is_a_prefix",
        "turboderp-org/exllamav2#606",
        lambda: TinyBatch(place=_batching_shared_places, see=_batching_causal_only),
        {
            "en": "padding on the left is just more prompt: no mask, no positions of its own",
            "ru": "дополнение слева стало частью затравки: ни маски, ни своих позиций",
        },
        {
            "en": "hide it, and count positions from the first real token",
            "ru": "закройте его; позиции — от первого настоящего токена",
        },
    ),
    Mistake(
        "last_column_read",
        "huggingface/transformers#14521",
        lambda: TinyBatch(
            pad=padded_right, place=_batching_shared_places, see=_batching_causal_only
        ),
        {
            "en": "with padding on the right the last column is read, which is padding",
            "ru": "при дополнении справа прочитан последний столбец, а это дополнение",
        },
        {"en": "logits[row, length - 1]", "ru": "logits[row, length - 1]"},
    ),
    Mistake(
        "one_column_early",
        "a mutation of right code",
        lambda: TinyBatch(pad=padded_right, read=_batching_early_column),
        {
            "en": "the column before the last real token is read",
            "ru": "прочитан столбец перед последним настоящим токеном",
        },
        {"en": "logits[row, length - 1]", "ru": "logits[row, length - 1]"},
    ),
    Mistake(
        "first_length_for_all",
        "microsoft/onnxruntime-genai#1639",
        lambda: TinyBatch(pad=padded_right, see=_batching_causal_only, read=_batching_first_column),
        {
            "en": "the length of the first prompt is taken for all",
            "ru": "длина первой затравки принята для всех",
        },
        {"en": "logits[rows, lengths - 1]", "ru": "logits[rows, lengths - 1]"},
    ),
    Mistake(
        "first_mask_for_all",
        "facebookresearch/jepa#93",
        lambda: TinyBatch(see=lambda batch, valid, row: seen_in_batch(valid[0])),
        {
            "en": "the padding mask of the first prompt is used for the whole batch",
            "ru": "маска дополнения первой затравки применена ко всему пакету",
        },
        {"en": "valid[:, None, None, :]", "ru": "valid[:, None, None, :]"},
    ),
    Mistake(
        "mask_upside_down",
        "rasbt/LLMs-from-scratch#1061",
        lambda: TinyBatch(see=lambda batch, valid, row: seen_in_batch(~valid[row])),
        {
            "en": "the padding mask is inverted: padding is read, the prompt is hidden",
            "ru": "маска дополнения инвертирована: дополнение читается, а затравка закрыта",
        },
        {"en": "True = may read", "ru": "True = разрешено читать"},
    ),
    Mistake(
        "pad_id_is_a_token",
        "microsoft/onnxruntime-genai#1694",
        lambda: TinyBatch(know=_batching_by_token),
        {
            "en": "the mask is guessed from the ids: a real token with the padding's id vanishes",
            "ru": "маска угадана по ids: настоящий токен с номером дополнения пропадает",
        },
        {"en": "build the mask from the lengths", "ru": "стройте маску по длинам"},
    ),
    Mistake(
        "order_not_restored",
        "vllm-project/vllm#394",
        lambda: TinyBatch(arrange=_batching_sorted),
        {
            "en": "rows come in the order of lengths, not in that of the prompts",
            "ru": "строки идут по длине, а не в порядке затравок",
        },
        {"en": "result[order] = rows", "ru": "result[order] = rows"},
    ),
    *BATCHING_MORE_MISTAKES,
)
