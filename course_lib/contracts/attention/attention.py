"""The contract of attention: what any implementation must do, and what it must not."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

from course_lib.contracts.attention._attention_behaviour import (
    attention_is_forward_only,
    explain_attention,
)
from course_lib.contracts.attention._attention_case import attention_inputs
from course_lib.contracts.attention._attention_dangers import (
    judge_empty_row_error,
    judge_gradients,
    judge_half,
    judge_nonfinite,
    judge_refusal,
)
from course_lib.contracts.attention._attention_inputs import (
    attention_calls,
    attention_empty_rows,
    attention_extremes,
    attention_float32,
    attention_gradient_cases,
    attention_halves,
    attention_hidden_blocks,
    attention_hidden_extremes,
    attention_items,
    attention_joint_batches,
    attention_layouts,
    attention_long,
    attention_mask_shapes,
    attention_masked,
    attention_nonfinite,
    attention_plain,
    attention_refusals,
    attention_squares,
    attention_with_policy,
)
from course_lib.contracts.attention._attention_judge import (
    ATTENTION_FIELDS,
    judge_attention,
    judge_form,
    judge_row_sums,
)
from course_lib.contracts.attention._attention_mixtures import attention_mixtures
from course_lib.contracts.attention._attention_properties import (
    judge_after_another,
    judge_cached_decode,
    judge_permutation,
    judge_repeatable,
    judge_row_alone,
)
from course_lib.contracts.engine.candidate import (
    ContractSubject,
    hold_clause,
    is_stub,
    quiet_globals,
)
from course_lib.report import ClauseResult, ContractReport

_ATTENTION_MEANINGS = {
    "result_form": {
        "en": "each field: a tensor of the right shape and dtype",
        "ru": "каждое поле — тензор нужной формы и типа",
    },
    "arguments_unchanged": {
        "en": "q, k, v and allowed stay as they were",
        "ru": "q, k, v и allowed после вызова прежние",
    },
    "repeatable": {
        "en": "the same call, the same result, whatever came between",
        "ru": "тот же вызов — тот же результат, что бы ни было между ними",
    },
    "permutation": {
        "en": "key order does not matter; rows follow their queries",
        "ru": "порядок ключей не важен, строки следуют за запросами",
    },
    "scores": {
        "en": "scores are q·k / √d_k",
        "ru": "оценки равны q·k / √d_k",
    },
    "row_sums": {
        "en": "weights of a query: none negative, together 1",
        "ru": "веса запроса неотрицательны, в сумме 1",
    },
    "weights": {
        "en": "weights: softmax of the scores over the keys",
        "ru": "веса — softmax оценок по ключам",
    },
    "output": {
        "en": "output: weighted sum of the values",
        "ru": "выход — взвешенная сумма значений",
    },
    "masked_keys": {
        "en": "a hidden key (False): score -inf, weight exactly 0",
        "ru": "закрытый ключ (False): оценка -inf, вес ровно 0",
    },
    "empty_row_error": {
        "en": "fully masked row: ValueError, also by default",
        "ru": "полностью закрытая строка — ValueError, и по умолчанию тоже",
    },
    "row_in_batch": {
        "en": "a row alone gives the same as within the batch",
        "ru": "строка отдельно даёт то же, что внутри пакета",
    },
    "after_another": {
        "en": "right also just after another call of the same shape",
        "ru": "верно и сразу после другого вызова той же формы",
    },
    "cached_decode": {
        "en": "one query with its mask: last row of the full pass",
        "ru": "один запрос с маской: последняя строка полного прохода",
    },
    "mask_broadcast": {
        "en": "every legal mask shape lands on its own axes",
        "ru": "маска любой допустимой формы ложится на свои оси",
    },
    "batch_broadcast": {
        "en": "batch axes of q, k, v broadcast, also one only v has",
        "ru": "оси пакета q, k, v транслируются, даже если ось лишь у v",
    },
    "long_sequences": {
        "en": "longer than any block; whole blocks hidden",
        "ru": "длиннее любого блока; целые блоки закрыты",
    },
    "memory_layout": {
        "en": "transposed and expanded inputs: the same result",
        "ru": "транспонированные и расширенные входы: тот же результат",
    },
    "extreme_logits": {
        "en": "scores of ±800 to ±300000: finite and right",
        "ru": "оценки от ±800 до ±300 000: результат конечен и верен",
    },
    "any_mixture": {
        "en": "any sizes with any batch, mask, scale and layout",
        "ru": "любые размеры с любыми осями, маской, масштабом",
    },
    "hidden_keys": {
        "en": "a hidden key has no influence, however large",
        "ru": "закрытый ключ не влияет, как бы велик он ни был",
    },
    "float32_inputs": {
        "en": "float32 in: right to float32 accuracy",
        "ru": "вход float32: верно с точностью float32",
    },
    "half_inputs": {
        "en": "16-bit in: scores and softmax in float32 at least",
        "ru": "16-битный вход: оценки и softmax не грубее float32",
    },
    "nonfinite_inputs": {
        "en": "NaN, inf: an error, or no effect on rows blind to it",
        "ru": "NaN, inf: ошибка или никакого влияния там, где их не видно",
    },
    "gradients": {
        "en": "gradients of q, k and v equal the formula",
        "ru": "градиенты q, k и v совпадают с формулой",
    },
    "empty_row_zero": {
        "en": 'empty_row="zero": weights, output 0; the row flagged',
        "ru": 'empty_row="zero": веса и выход 0, строка отмечена',
    },
    "zero_row_gradients": {
        "en": 'empty_row="zero": gradients finite and right',
        "ru": 'empty_row="zero": градиенты конечны и верны',
    },
    "bad_masks": {
        "en": "not bool: TypeError; wrong or larger shape: ValueError",
        "ru": "не bool: TypeError; форма неверна или велика: ValueError",
    },
}


def check_attention_contract(
    attention: Callable[..., Any],
    *,
    fields: tuple[str, ...] = ("output", "weights", "scores", "empty_rows"),
) -> ContractReport:
    """Hold an attention function to everything that attention must do.

        attention(q, k, v, allowed=None, *, empty_row="error")
            -> an object with .output .weights .scores .empty_rows

    A function that computes outside torch is checked forward only, and the report says so.

    Args:    fields: what to look at; with ("output",) the function may return a tensor alone
    Raises:  ContractViolation when a clause is broken: with a small input and what was measured
    """
    subject = _attention_subject(attention, fields)
    with quiet_globals():
        if is_stub(attention, *attention_inputs(0, 2, 3, 5, 4)):
            return ContractReport(subject.contract, attempted=False)
        clauses = tuple(_attention_clauses(subject))
    unchecked = [name for name in ATTENTION_FIELDS if name not in fields]
    unchecked += ["gradients"] if all(row.name != "gradients" for row in clauses) else []
    figures = _attention_figures(subject, clauses)
    return ContractReport(subject.contract, clauses, figures, unchecked=tuple(unchecked))


def _attention_clauses(subject: ContractSubject) -> Iterator[ClauseResult]:
    """Run the clauses one by one, the ones that tell most about a mistake first."""
    hold = partial(hold_clause, subject)
    exact = partial(judge_attention, tolerance=1e-10)
    everything = exact("scores", "weights", "output", "empty_rows")
    extreme = judge_attention("scores", "weights", "output", tolerance=1e-8)
    plain, items = attention_plain(), attention_items()
    yield hold("result_form", None, judge_form, attention_calls())
    yield hold("arguments_unchanged", None, judge_form, [*attention_masked()[:3], plain[-1]])
    yield hold("repeatable", 1e-12, judge_repeatable, items[3:7])
    yield hold("permutation", 1e-6, judge_permutation, items[:4])
    if "scores" in subject.fields:
        yield hold("scores", 1e-10, exact("scores"), plain)
    if "weights" in subject.fields:
        yield hold("row_sums", 1e-9, judge_row_sums, plain)
        yield hold("weights", 1e-10, exact("weights"), plain)
    yield hold("output", 1e-10, exact("output", "empty_rows"), plain)
    yield hold("masked_keys", 1e-10, everything, attention_masked())
    refused = attention_empty_rows(None, "error")
    yield hold("empty_row_error", None, judge_empty_row_error, refused)
    yield hold("row_in_batch", 1e-6, judge_row_alone, items)
    yield hold("after_another", 1e-10, judge_after_another, items)
    yield hold("cached_decode", 1e-10, judge_cached_decode, attention_squares())
    yield hold("mask_broadcast", 1e-10, everything, attention_mask_shapes())
    yield hold("batch_broadcast", 1e-10, everything, attention_joint_batches())
    yield hold("long_sequences", 1e-10, everything, attention_long())
    yield hold("memory_layout", 1e-10, everything, attention_layouts())
    yield hold("extreme_logits", 1e-8, extreme, attention_extremes())
    hidden = [*attention_hidden_extremes(), *attention_hidden_blocks()]
    yield hold("hidden_keys", 1e-8, extreme, hidden)
    yield hold("any_mixture", 1e-8, extreme, attention_mixtures())
    loose = judge_attention("scores", "weights", "output", tolerance=2e-5)
    narrow = [*attention_float32(), *attention_mixtures(torch.float32, 60)]
    yield hold("float32_inputs", 2e-5, loose, narrow)
    yield hold("half_inputs", 0.03125, judge_half, attention_halves())
    yield hold("nonfinite_inputs", 1e-10, judge_nonfinite, attention_nonfinite())
    zeroed, forward_only = attention_empty_rows("zero"), attention_is_forward_only(subject)
    if not forward_only:
        yield hold("gradients", 1e-8, judge_gradients, attention_gradient_cases())
    yield hold("empty_row_zero", 1e-10, everything, [*zeroed, *attention_with_policy()])
    if not forward_only:
        yield hold("zero_row_gradients", 1e-8, judge_gradients, zeroed)
    yield hold("bad_masks", None, judge_refusal, attention_refusals())


def _attention_figures(
    subject: ContractSubject, clauses: tuple[ClauseResult, ...]
) -> dict[str, float]:
    """The measured figures by name; NaN for gradients that could not be measured."""
    errors = {clause.name: clause.measured for clause in clauses}
    return {
        "output_max_error": errors["output"],
        "gradient_max_error": errors.get("gradients", math.nan),
        "wrong_cache_mask_max_error": subject.figures["wrong_cache_mask_max_error"],
        "batch_broadcast": errors["batch_broadcast"],
        "zero_row_gradients": errors.get("zero_row_gradients", math.nan),
        "permutation": errors["permutation"],
    }


def _attention_subject(attention: Callable[..., Any], fields: tuple[str, ...]) -> ContractSubject:
    if not callable(attention):
        raise TypeError(f"attention must be a function, got {type(attention).__name__}")
    unknown = [name for name in fields if name not in ATTENTION_FIELDS]
    if unknown or "output" not in fields:
        raise ValueError(
            f"fields must hold 'output' and may hold {ATTENTION_FIELDS[1:]}, got {fields!r}"
        )
    return ContractSubject(
        "check_attention_contract",
        attention,
        _ATTENTION_MEANINGS,
        explain_attention,
        tuple(fields),
    )
