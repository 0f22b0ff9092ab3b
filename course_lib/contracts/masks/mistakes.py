"""Causal masks that are wrong in one way each, as people reported them."""

from collections.abc import Callable
from functools import lru_cache, partial

import torch
from torch import Tensor

from course_lib.contracts.engine.mistake import Mistake


def mistaken_mask(rule: Callable[[Tensor, Tensor, int, int], Tensor]) -> Callable[..., Tensor]:
    """A causal mask by another rule: rule(i [T_q, 1], j [T_k], offset, corner) -> may read."""

    def causal_allowed(t_q: int, t_k: int, *, query_offset: int = 0) -> Tensor:
        if query_offset < 0:
            raise ValueError(f"query_offset={query_offset} must not be negative")
        i, j = torch.arange(t_q).unsqueeze(-1), torch.arange(t_k)
        return rule(i, j, query_offset, t_k - t_q).expand(t_q, t_k).clone()

    return causal_allowed


def _mask_unchecked(t_q: int, t_k: int, *, query_offset: int = 0) -> Tensor:
    return torch.ones(t_q, t_k, dtype=torch.bool).tril(query_offset)


def _mask_clipped(t_q: int, t_k: int, *, query_offset: int = 0) -> Tensor:
    return _mask_unchecked(t_q, t_k, query_offset=max(query_offset, 0))


def _mask_shared() -> Callable[..., Tensor]:
    return lru_cache(mistaken_mask(lambda i, j, offset, corner: j <= i + offset))


CAUSAL_MASK_MISTAKES = (
    Mistake(
        "mask_inverted",
        "rasbt/LLMs-from-scratch#1061",
        partial(mistaken_mask, rule=lambda i, j, offset, corner: j > i + offset),
        {
            "en": "True means hidden, while here True = may read",
            "ru": "True значит «закрыто», а здесь True = разрешено читать",
        },
        {"en": "j <= i + query_offset", "ru": "j <= i + query_offset"},
    ),
    Mistake(
        "mask_transposed",
        "huggingface/transformers#48745",
        partial(mistaken_mask, rule=lambda i, j, offset, corner: j >= i + offset),
        {
            "en": "queries and keys are swapped, so that a token reads the future",
            "ru": "запросы и ключи переставлены, и токен читает будущее",
        },
        {"en": "tril, not triu: rows are queries", "ru": "tril, а не triu: строки — запросы"},
    ),
    Mistake(
        "blind_to_itself",
        "jadore801120/attention-is-all-you-need-pytorch#19",
        partial(mistaken_mask, rule=lambda i, j, offset, corner: j < i + offset),
        {
            "en": "a token cannot read itself, and the first one reads nothing",
            "ru": "токен не читает себя, а первый не читает ничего",
        },
        {"en": "tril(0), j <= i: the diagonal stays", "ru": "tril(0), j <= i: диагональ остаётся"},
    ),
    Mistake(
        "one_ahead",
        "RVC-Boss/GPT-SoVITS#965",
        partial(mistaken_mask, rule=lambda i, j, offset, corner: j <= i + offset + 1),
        {
            "en": "a token reads the next one, which it has to predict",
            "ru": "токен читает следующий, который ему предстоит предсказать",
        },
        {"en": "tril(0), not tril(1)", "ru": "tril(0), а не tril(1)"},
    ),
    Mistake(
        "offset_ignored",
        "hyprstream/hyprstream#1521",
        partial(mistaken_mask, rule=lambda i, j, offset, corner: j <= i),
        {
            "en": "query_offset is ignored (or a stored table is cut to [:t_q, :t_k]): the cached "
            "past is hidden",
            "ru": "query_offset не учтён (или хранимая таблица обрезана до [:t_q, :t_k]): прошлое "
            "в кэше закрыто",
        },
        {
            "en": "j <= i + query_offset, or tril(query_offset)",
            "ru": "j <= i + query_offset или tril(query_offset)",
        },
    ),
    Mistake(
        "bottom_right",
        "pytorch/pytorch#103082",
        partial(mistaken_mask, rule=lambda i, j, offset, corner: j <= i + corner),
        {
            "en": "the mask is aligned at its lower right corner, whatever query_offset says",
            "ru": "маска выровнена по правому нижнему углу, что бы ни говорил query_offset",
        },
        {"en": "tril(query_offset)", "ru": "tril(query_offset)"},
    ),
    Mistake(
        "offset_subtracted",
        "lucidrains/x-transformers@013e60a",
        partial(mistaken_mask, rule=lambda i, j, offset, corner: j <= i - offset),
        {
            "en": "the offset is subtracted instead of added",
            "ru": "сдвиг вычитается, а не прибавляется",
        },
        {"en": "j <= i + query_offset", "ru": "j <= i + query_offset"},
    ),
    Mistake(
        "offset_twice",
        "a mutation of right code",
        partial(mistaken_mask, rule=lambda i, j, offset, corner: j <= i + 2 * offset),
        {"en": "the offset is added twice", "ru": "сдвиг прибавлен дважды"},
        {
            "en": "add it to the query's position only",
            "ru": "прибавьте его только к позиции запроса",
        },
    ),
    Mistake(
        "offset_from_corner",
        "ml-explore/mlx#2967",
        partial(mistaken_mask, rule=lambda i, j, offset, corner: j <= i + corner + offset),
        {
            "en": "the offset is added to an alignment at the lower right corner",
            "ru": "сдвиг прибавлен к выравниванию по правому нижнему углу",
        },
        {"en": "tril(query_offset)", "ru": "tril(query_offset)"},
    ),
    Mistake(
        "one_query_reads_all",
        "lucidrains/x-transformers@4465de5",
        partial(
            mistaken_mask,
            rule=lambda i, j, offset, corner: (j <= i + offset) | (len(i) == 1),
        ),
        {
            "en": "a single query reads every key, also those beyond its own position",
            "ru": "единственный запрос читает все ключи, даже стоящие после него",
        },
        {"en": "the rule holds for t_q == 1 too", "ru": "правило верно и при t_q == 1"},
    ),
    Mistake(
        "everything_open",
        "paiml/entrenar#310",
        partial(mistaken_mask, rule=lambda i, j, offset, corner: j >= 0 * i),
        {"en": "every token reads every token", "ru": "каждый токен читает каждый"},
        {"en": "j <= i + query_offset", "ru": "j <= i + query_offset"},
    ),
    Mistake(
        "negative_offset_computed",
        "a mutation of right code",
        lambda: _mask_unchecked,
        {
            "en": "a negative offset passes and gives rows that read nothing",
            "ru": "отрицательный сдвиг проходит и даёт строки, которые ничего не читают",
        },
        {"en": "raise ValueError if query_offset < 0", "ru": "ValueError при query_offset < 0"},
    ),
    Mistake(
        "negative_offset_clipped",
        "rasbt/LLMs-from-scratch@28c65cd",
        lambda: _mask_clipped,
        {
            "en": "a negative offset is quietly taken for 0",
            "ru": "отрицательный сдвиг молча заменён нулём",
        },
        {"en": "raise ValueError if query_offset < 0", "ru": "ValueError при query_offset < 0"},
    ),
    Mistake(
        "shared_table",
        "a mutation of right code",
        _mask_shared,
        {
            "en": "a stored table is handed out, and what its reader writes stays in it",
            "ru": "наружу отдана хранимая таблица, и записанное в неё остаётся",
        },
        {"en": "return a copy: table.clone()", "ru": "верните копию: table.clone()"},
    ),
)
