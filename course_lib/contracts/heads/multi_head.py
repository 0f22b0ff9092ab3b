"""The contract of multi-head self-attention as a function of its input and its weights."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from course_lib.contracts.engine.candidate import (
    ContractSubject,
    hold_clause,
    is_forward_only,
    is_stub,
    quiet_globals,
)
from course_lib.contracts.heads._multi_head_behaviour import explain_heads
from course_lib.contracts.heads._multi_head_case import HeadsCase, heads_case
from course_lib.contracts.heads._multi_head_judge import (
    heads_takes,
    judge_heads,
    judge_heads_alone,
    judge_heads_content,
    judge_heads_form,
    judge_heads_future,
    judge_heads_gradients,
    judge_heads_order,
    judge_heads_state,
)
from course_lib.report import ClauseResult, ContractReport

_HEADS_MEANINGS = {
    "result_form": {
        "en": "a tensor [B, T, d_model], as wide as the input, finite",
        "ru": "конечный тензор [B, T, d_model] не менее точный, чем вход",
    },
    "arguments_unchanged": {
        "en": "the call leaves its arguments as they were",
        "ru": "аргументы после вызова прежние",
    },
    "repeatable": {
        "en": "the same call, the same result, whatever came between",
        "ru": "тот же вызов — тот же результат, что бы ни было между ними",
    },
    "one_head": {
        "en": "one head is plain attention between the projections",
        "ru": "одна голова — обычное внимание между проекциями",
    },
    "many_heads": {
        "en": "H heads, each on its own d_head columns, then w_o",
        "ru": "H голов, каждая на своих d_head столбцах, затем w_o",
    },
    "permutation": {
        "en": "without a mask, reordered tokens give reordered rows",
        "ru": "без маски перестановка токенов переставляет строки",
    },
    "causal": {
        "en": "causal=True: a row reads its own and earlier tokens",
        "ru": "causal=True: строка читает свой и прежние токены",
    },
    "future_blind": {
        "en": "changing later tokens leaves earlier rows alone",
        "ru": "замена поздних токенов не меняет ранних строк",
    },
    "padding": {
        "en": "padding is not read, wherever it lies",
        "ru": "дополнение не читается, где бы оно ни стояло",
    },
    "padding_content": {
        "en": "what stands in the padding does not matter",
        "ru": "содержимое дополнения не имеет значения",
    },
    "row_in_batch": {
        "en": "an item gives alone what it gives in the batch",
        "ru": "элемент отдельно даёт то же, что внутри пакета",
    },
    "without_padding": {
        "en": "token_valid=None means that every token is real",
        "ru": "token_valid=None значит, что все токены настоящие",
    },
    "long_sequences": {
        "en": "longer than any block, with whole blocks of padding",
        "ru": "длиннее любого блока, с блоками из одного дополнения",
    },
    "memory_layout": {
        "en": "transposed input and weights: the same result",
        "ru": "транспонированные вход и веса: тот же результат",
    },
    "extreme_logits": {
        "en": "scores in the thousands: finite and right",
        "ru": "оценки в тысячах: результат конечен и верен",
    },
    "float32_inputs": {
        "en": "float32 in: right to float32 accuracy",
        "ru": "вход float32: верно с точностью float32",
    },
    "half_inputs": {
        "en": "float16 in: right to float16 accuracy, finite",
        "ru": "вход float16: результат конечен и верен с точностью float16",
    },
    "gradients": {
        "en": "the gradient reaches the input and every weight, right",
        "ru": "градиент доходит до входа и до всех весов, и он верен",
    },
}


def check_multi_head_contract(multi_head: Callable[..., Any]) -> ContractReport:
    """Hold multi-head self-attention to its heads, its masks and its projections.

        multi_head(x, w_q, w_k, w_v, w_o, n_heads, *, causal, token_valid) -> [B, T, d_model]

    Weights [d_model, d_model] act as x @ w; head h owns columns h*d_head to (h+1)*d_head. Of rows
    that are padding only finite numbers are asked.

    Raises:  ContractViolation when a clause is broken: with a small input and what was measured
    """
    if not callable(multi_head):
        raise TypeError(f"multi_head must be a function, got {type(multi_head).__name__}")
    subject = ContractSubject(
        "check_multi_head_contract", multi_head, _HEADS_MEANINGS, explain_heads
    )
    first = heads_case(0, 1, 2, 1, 3)
    with quiet_globals():
        if is_stub(multi_head, *first.positional, **first.keywords):
            return ContractReport(subject.contract, attempted=False)
        clauses = tuple(_heads_clauses(subject))
    errors = {clause.name: clause.measured for clause in clauses}
    figures = {
        "output_max_error": max(errors["many_heads"], errors["causal"], errors["padding"]),
        "gradient_max_error": errors.get("gradients", float("nan")),
        "future_leak": errors["future_blind"],
        "padding_leak": errors["padding_content"],
        "permutation": errors["permutation"],
    }
    optional = ("without_padding", "memory_layout", "half_inputs", "gradients")
    unchecked = tuple(name for name in optional if name not in errors)
    return ContractReport(subject.contract, clauses, figures, unchecked=unchecked)


def _heads_clauses(subject: ContractSubject) -> Iterator[ClauseResult]:
    """Run the clauses one by one, the ones that tell most about a mistake first."""
    hold = partial(hold_clause, subject)
    single = [heads_case(10, 1, 3, 1, 3), heads_case(11, 2, 4, 1, 5), heads_case(12, 1, 1, 1, 2)]
    sizes = [(1, 2, 2, 2), (2, 4, 2, 3), (3, 2, 3, 2), (1, 5, 3, 5), (2, 3, 6, 1), (2, 1, 2, 3)]
    sizes += [(3, 3, 3, 3), (2, 3, 4, 2)]
    many = [heads_case(20 + n, *size) for n, size in enumerate(sizes)]
    wide = heads_case(30, 1, 2, 2, 65)
    causal = [replace(case, causal=True) for case in many]
    padded = _heads_padded()
    right = [padded[0], padded[1], padded[6]]
    yield hold("result_form", None, judge_heads_form, [single[0], many[1], *padded])
    yield hold("arguments_unchanged", None, judge_heads_form, [many[1], causal[1], padded[0]])
    yield hold("repeatable", 1e-12, judge_heads_state, [many[1], padded[1], causal[1]])
    yield hold("one_head", 1e-10, judge_heads, single)
    yield hold("permutation", 1e-6, judge_heads_order, many)
    yield hold("many_heads", 1e-10, judge_heads, [*many, wide])
    yield hold("future_blind", 1e-6, judge_heads_future, causal)
    yield hold("causal", 1e-10, judge_heads, causal)
    yield hold("padding_content", 1e-6, judge_heads_content, right)
    yield hold("row_in_batch", 1e-6, judge_heads_alone, [many[1], many[2], *right])
    yield hold("padding", 1e-10, judge_heads, padded)
    bare = [replace(case, token_valid=None) for case in (*many[:3], *causal[:3])]
    if heads_takes(subject, bare[0]):
        yield hold("without_padding", 1e-10, judge_heads, bare)
    yield hold("long_sequences", 1e-10, judge_heads, _heads_long())
    strided = [_heads_strided(case) for case in (many[1], causal[7], padded[0])]
    if heads_takes(subject, strided[0]):
        yield hold("memory_layout", 1e-10, judge_heads, strided)
    extreme = [
        replace(case, w_q=case.w_q * 60, w_k=case.w_k * 60) for case in (many[1], *padded[:3])
    ]
    extreme += [_heads_all_low(case, size) for case in padded[:3] for size in (1e3, 1e6, 1e12)]
    yield hold("extreme_logits", 1e-8, partial(judge_heads, tolerance=1e-8), extreme)
    narrow = [_heads_as(torch.float32, case) for case in (many[1], causal[3], padded[0])]
    yield hold("float32_inputs", 2e-5, partial(judge_heads, tolerance=2e-5), narrow)
    half = [_heads_as(torch.float16, case) for case in (many[1], causal[3], *padded[:3])]
    if heads_takes(subject, half[0]):
        yield hold("half_inputs", 2e-2, partial(judge_heads, tolerance=2e-2), half)
    if not is_forward_only(subject.candidate, *many[1].positional, **many[1].keywords):
        tracked = [many[1], causal[1], padded[0], padded[2]]
        yield hold("gradients", 1e-8, judge_heads_gradients, tracked)


def _heads_padded() -> list[HeadsCase]:
    """Padding on the right, on the left and in the middle; as many items as heads, and not."""
    right = [[1, 1, 1, 1], [1, 1, 0, 0]]
    left, middle = [[0, 0, 1, 1], [0, 1, 1, 1]], [[1, 0, 1, 1], [1, 1, 0, 1], [1, 0, 0, 1]]
    lengths = [[1, 1, 1], [1, 0, 0], [1, 1, 0]]
    return [
        heads_case(40, 2, 4, 2, 3, valid=right),
        heads_case(41, 2, 4, 3, 2, valid=right),
        heads_case(42, 2, 4, 2, 3, valid=left, causal=True),
        heads_case(43, 3, 4, 2, 2, valid=middle),
        heads_case(44, 3, 3, 3, 2, valid=lengths, causal=True),
        heads_case(45, 2, 4, 2, 3, valid=left),
        heads_case(46, 2, 4, 1, 5, valid=right[::-1]),
    ]


def _heads_all_low(case: HeadsCase, size: float) -> HeadsCase:
    """Similar tokens and opposite projections: every score lies at about minus the size."""
    return replace(case, x=1 + 0.1 * case.x, w_k=-size * case.w_q)


def _heads_long() -> list[HeadsCase]:
    """Past blocks of 64 and of 512; whole blocks are padding, first or last, or scattered."""
    valid = torch.ones(2, 131, dtype=torch.int64)
    valid[0, :70], valid[1, 64:] = 0, 0
    return [
        heads_case(50, 2, 131, 1, 1, valid=valid.tolist()),
        heads_case(51, 1, 131, 2, 1, causal=True),
        heads_case(52, 1, 521, 1, 1, valid=[[n % 5 == 0 for n in range(521)]]),
    ]


def _heads_strided(case: HeadsCase) -> HeadsCase:
    """The same numbers, laid out in memory with their first two axes exchanged."""
    names = ("x", "w_q", "w_k", "w_v", "w_o")
    tensors = {name: getattr(case, name).transpose(0, 1).contiguous() for name in names}
    return replace(case, **{name: tensor.transpose(0, 1) for name, tensor in tensors.items()})


def _heads_as(dtype: torch.dtype, case: HeadsCase) -> HeadsCase:
    names = ("x", "w_q", "w_k", "w_v", "w_o")
    return replace(case, **{name: getattr(case, name).to(dtype) for name in names})
