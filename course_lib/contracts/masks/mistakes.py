"""Causal masks that are wrong in one way each, as people reported them."""

from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor

from course_lib.contracts.engine.mistake import mistakes


def mistaken_mask(
    rule: Callable[[Tensor, Tensor, int, int], Tensor] = lambda i, j, offset, _: j <= i + offset,
) -> Callable[..., Tensor]:
    """A causal mask by another rule: rule(i [T_q, 1], j [T_k], offset, corner) -> may read."""

    def causal_allowed(t_q: int, t_k: int, *, query_offset: int = 0) -> Tensor:
        if query_offset < 0:
            raise ValueError(f"query_offset={query_offset} must not be negative")
        i, j = torch.arange(t_q).unsqueeze(-1), torch.arange(t_k)
        return rule(i, j, query_offset, t_k - t_q).expand(t_q, t_k).clone()

    return causal_allowed


def _unchecked(t_q: int, t_k: int, *, query_offset: int = 0) -> Tensor:
    return torch.ones(t_q, t_k, dtype=torch.bool).tril(query_offset)


def _clipped(t_q: int, t_k: int, *, query_offset: int = 0) -> Tensor:
    return _unchecked(t_q, t_k, query_offset=max(query_offset, 0))


# fmt: off
CAUSAL_MASK_MISTAKES = mistakes(
    mistaken_mask,
    mask_inverted=("rasbt/LLMs-from-scratch#1061",
        "True means hidden, while here True = may read | "
        "True значит «закрыто», а здесь True = разрешено читать",
        "j <= i + query_offset", {"rule": lambda i, j, offset, corner: j > i + offset}),
    mask_transposed=("huggingface/transformers#48745",
        "queries and keys are swapped, so that a token reads the future | "
        "запросы и ключи переставлены, и токен читает будущее",
        "tril, not triu: rows are queries | tril, а не triu: строки — запросы",
        {"rule": lambda i, j, offset, corner: j >= i + offset}),
    blind_to_itself=("jadore801120/attention-is-all-you-need-pytorch#19",
        "a token cannot read itself, and the first one reads nothing | "
        "токен не читает себя, а первый не читает ничего",
        "tril(0), j <= i: the diagonal stays | tril(0), j <= i: диагональ остаётся",
        {"rule": lambda i, j, offset, corner: j < i + offset}),
    one_ahead=("RVC-Boss/GPT-SoVITS#965",
        "a token reads the next one, which it has to predict | "
        "токен читает следующий, который ему предстоит предсказать",
        "tril(0), not tril(1) | tril(0), а не tril(1)",
        {"rule": lambda i, j, offset, corner: j <= i + offset + 1}),
    offset_ignored=("hyprstream/hyprstream#1521",
        "query_offset is ignored (or a stored table is cut to [:t_q, :t_k]): the cached past is "
        "hidden | query_offset не учтён (или хранимая таблица обрезана до [:t_q, :t_k]): прошлое в "
        "кэше закрыто",
        "j <= i + query_offset, or tril(query_offset) | "
        "j <= i + query_offset или tril(query_offset)",
        {"rule": lambda i, j, offset, corner: j <= i}),
    bottom_right=("pytorch/pytorch#103082",
        "the mask is aligned at its lower right corner, whatever query_offset says | "
        "маска выровнена по правому нижнему углу, что бы ни говорил query_offset",
        "tril(query_offset)", {"rule": lambda i, j, offset, corner: j <= i + corner}),
    offset_subtracted=("lucidrains/x-transformers@013e60a",
        "the offset is subtracted instead of added | сдвиг вычитается, а не прибавляется",
        "j <= i + query_offset", {"rule": lambda i, j, offset, corner: j <= i - offset}),
    offset_twice=("",
        "the offset is added twice | сдвиг прибавлен дважды",
        "add it to the query's position only | прибавьте его только к позиции запроса",
        {"rule": lambda i, j, offset, corner: j <= i + 2 * offset}),
    offset_from_corner=("ml-explore/mlx#2967",
        "the offset is added to an alignment at the lower right corner | "
        "сдвиг прибавлен к выравниванию по правому нижнему углу",
        "tril(query_offset)", {"rule": lambda i, j, offset, corner: j <= i + corner + offset}),
    one_query_reads_all=("lucidrains/x-transformers@4465de5",
        "a single query reads every key, also those beyond its own position | "
        "единственный запрос читает все ключи, даже стоящие после него",
        "the rule holds for t_q == 1 too | правило верно и при t_q == 1",
        {"rule": lambda i, j, offset, corner: (j <= i + offset) | (len(i) == 1)}),
    everything_open=("paiml/entrenar#310",
        "every token reads every token | каждый токен читает каждый",
        "j <= i + query_offset", {"rule": lambda i, j, offset, corner: j >= 0 * i}),
    negative_offset_computed=("",
        "a negative offset passes and gives rows that read nothing | "
        "отрицательный сдвиг проходит и даёт строки, которые ничего не читают",
        "raise ValueError if query_offset < 0 | ValueError при query_offset < 0",
        lambda: _unchecked),
    negative_offset_clipped=("rasbt/LLMs-from-scratch@28c65cd",
        "a negative offset is quietly taken for 0 | отрицательный сдвиг молча заменён нулём",
        "raise ValueError if query_offset < 0 | ValueError при query_offset < 0",
        lambda: _clipped),
    shared_table=("",
        "a stored table is handed out, and what its reader writes stays in it | "
        "наружу отдана хранимая таблица, и записанное в неё остаётся",
        "return a copy: table.clone() | верните копию: table.clone()",
        lambda: lru_cache(mistaken_mask())),
)
# fmt: on
