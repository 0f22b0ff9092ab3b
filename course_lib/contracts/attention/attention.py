"""The contract of attention: what any implementation must do, and what it must not."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

from course_lib.contracts.attention import dangers, inputs, judges
from course_lib.contracts.attention.calls import attention_by_library, attention_by_loops
from course_lib.contracts.attention.fields import FIELDS, fine, reader
from course_lib.contracts.attention.judges import right
from course_lib.contracts.attention.probes import explain_attention, forward_only
from course_lib.contracts.engine.clause import Clause, Contract
from course_lib.contracts.engine.subject import Subject, Terms
from course_lib.report import ContractReport

_CHANGED = (
    "{name} changed | изменён {name}",
    "nothing changed | без изменений",
    "the call changed its argument {name}: work on a copy | "
    "вызов изменил свой аргумент {name}: работайте с копией",
)
everything = right("scores", "weights", "output", "empty_rows")
numbers = right("scores", "weights", "output")


def _followed(subject: Subject, clause: Clause) -> bool:
    return not forward_only(subject.candidate)


@cache  # the right answers are worked out once, whoever is checked
def _clauses(fields: tuple[str, ...]) -> list[Clause]:
    """The clauses, the ones that tell most about a mistake first."""
    plain, items, masked, holes = (
        inputs.plain(),
        inputs.items(),
        inputs.masked(),
        inputs.with_holes("zero"),
    )
    # fmt: off
    clauses = [
        Clause("result_form", "each field: a tensor of the right shape and dtype | "
               "каждое поле — тензор нужной формы и типа", judges.formed, inputs.forms()),
        Clause("arguments_unchanged", "q, k, v and allowed stay as they were | "
               "q, k, v и allowed после вызова прежние", judges.formed, [masked[0], plain[-1]]),
        Clause("repeatable", "the same call, the same result, whatever came between | "
               "тот же вызов — тот же результат, что бы ни было между ними",
               judges.repeatable, items[3:7], 1e-12),
        Clause("permutation", "key order does not matter; rows follow their queries | "
               "порядок ключей не важен, строки следуют за запросами",
               judges.permuted, items[:4], 1e-6),
        Clause("scores", "scores are q·k / √d_k | оценки равны q·k / √d_k",
               right("scores"), plain, 1e-10),
        Clause("row_sums", "weights of a query: none negative, together 1 | "
               "веса запроса неотрицательны, в сумме 1", judges.shares, plain, 1e-9),
        Clause("weights", "weights: softmax of the scores over the keys | "
               "веса — softmax оценок по ключам", right("weights"), plain, 1e-10),
        Clause("output", "output: weighted sum of the values | выход — взвешенная сумма значений",
               right("output", "empty_rows"), plain, 1e-10),
        Clause("masked_keys", "a hidden key (False): score -inf, weight exactly 0 | "
               "замаскированный ключ (False): оценка -inf, вес ровно 0", everything, masked, 1e-10),
        Clause("empty_row_error", "fully masked row: ValueError, also by default | "
               "полностью замаскированная строка — ValueError, и по умолчанию тоже",
               dangers.empty_row_refused, inputs.with_holes(None, "error")),
        Clause("row_in_batch", "a row alone gives the same as within the batch | "
               "строка отдельно даёт то же, что внутри батча", judges.alone, items, 1e-6),
        Clause("after_another", "right also just after another call of the same shape | "
               "верно и сразу после другого вызова той же формы",
               judges.after_another, items, 1e-10),
        Clause("cached_decode", "one query with its mask: last row of the full pass | "
               "один запрос с маской: последняя строка полного прохода",
               judges.decoded, inputs.squares(), 1e-10),
        Clause("mask_broadcast", "every legal mask shape lands on its own axes | "
               "маска любой допустимой формы ложится на свои оси",
               everything, inputs.mask_shapes(), 1e-10),
        Clause("batch_broadcast", "batch axes of q, k, v broadcast, also one only v has | "
               "оси батча q, k, v транслируются, даже если ось лишь у v",
               everything, inputs.joint_batches(), 1e-10),
        Clause("long_sequences", "longer than any block; whole blocks hidden | "
               "длиннее любого блока; целые блоки закрыты", everything, inputs.long(), 1e-10),
        Clause("memory_layout", "transposed and expanded inputs: the same result | "
               "транспонированные и расширенные входы: тот же результат",
               everything, inputs.layouts(), 1e-10),
        Clause("extreme_logits", "scores of ±800 to ±300000: finite and right | "
               "оценки от ±800 до ±300 000: результат конечен и верен",
               numbers, inputs.extremes(), 1e-8),
        Clause("hidden_keys", "a hidden key has no influence, however large | "
               "замаскированный ключ не влияет, как бы велик он ни был",
               numbers, inputs.hidden_keys(), 1e-8),
        Clause("any_mixture", "any sizes with any batch, mask, scale and layout | "
               "любые размеры с любыми осями, маской, масштабом", numbers, inputs.mixtures(), 1e-8),
        Clause("float32_inputs", "float32 in: right to float32 accuracy | "
               "вход float32: верно с точностью float32", numbers, inputs.single(), 2e-5),
        Clause("half_inputs", "16-bit in: scores and softmax in float32 at least | "
               "16-битный вход: оценки и softmax не грубее float32",
               dangers.right_to_half, inputs.halves(), 0.03125),
        Clause("nonfinite_inputs", "NaN, inf: an error, or no effect on rows blind to it | "
               "NaN, inf: ошибка или никакого влияния там, где их не видно",
               dangers.unspread, inputs.nonfinite(), 1e-10),
        Clause("gradients", "gradients of q, k and v equal the formula | "
               "градиенты q, k и v совпадают с формулой",
               dangers.right_slopes, inputs.sloping(), 1e-8, _followed),
        Clause("empty_row_zero", 'empty_row="zero": weights, output 0; the row flagged | '
               'empty_row="zero": веса и выход 0, строка отмечена',
               everything, inputs.zeroed(), 1e-10),
        Clause("zero_row_gradients", 'empty_row="zero": gradients finite and right | '
               'empty_row="zero": градиенты конечны и верны',
               dangers.right_slopes, holes, 1e-8, _followed),
        Clause("bad_masks", "not bool: TypeError; wrong or larger shape: ValueError | "
               "не bool: TypeError; форма неверна или велика: ValueError",
               dangers.mask_refused, inputs.refused()),
    ]
    # fmt: on
    asks = {"scores": "scores", "row_sums": "weights", "weights": "weights"}
    return [clause for clause in clauses if asks.get(clause.name, "output") in fields]


def _figures(subject: Subject, measured: dict[str, Any]) -> dict[str, float]:
    """The measured figures by name; NaN for gradients that could not be measured."""
    return {
        "output_max_error": measured["output"],
        "gradient_max_error": measured.get("gradients", math.nan),
        judges.WRONG_MASK: subject.figures[judges.WRONG_MASK],
        "batch_broadcast": measured["batch_broadcast"],
        "zero_row_gradients": measured.get("zero_row_gradients", math.nan),
        "permutation": measured["permutation"],
    }


def attention_contract(fields: tuple[str, ...]) -> Contract:
    """The contract of an attention of whose results these fields are looked at."""
    references = (attention_by_loops, attention_by_library)
    terms = Terms("attention", references, reader(fields), agree=1e-6, changed=_CHANGED, fine=fine)
    explain = partial(explain_attention, fields)
    return Contract("attention", terms, lambda subject: _clauses(fields), explain, _figures)


def check_attention_contract(
    attention: Callable[..., Any], *, fields: tuple[str, ...] = FIELDS
) -> ContractReport:
    """Hold an attention function to everything that attention must do.

        attention(q, k, v, allowed=None, *, empty_row="error")
            -> an object with .output .weights .scores .empty_rows

    A function that computes outside torch is checked forward only, and the report says so.

    Args:    fields: what to look at; with ("output",) the function may return a tensor alone
    Raises:  ContractViolation when a clause is broken: with a small input and what was measured
    """
    unknown = [name for name in fields if name not in FIELDS]
    if unknown or "output" not in fields:
        raise ValueError(f"fields must hold 'output' and may hold {FIELDS[1:]}, got {fields!r}")
    report = attention_contract(tuple(fields)).check(attention)
    unchecked = [name for name in FIELDS if name not in fields]
    unchecked += [name for name in report.unchecked if name == "gradients"]
    return replace(report, unchecked=tuple(unchecked)) if report.attempted else report
