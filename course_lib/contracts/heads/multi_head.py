"""The contract of multi-head self-attention as a function of its input and its weights."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.engine.candidate import Breach, call_candidate, finite_wanted
from course_lib.contracts.engine.clause import Clause, Contract, tracked
from course_lib.contracts.engine.judge import formed
from course_lib.contracts.engine.read import malformed, tensor
from course_lib.contracts.engine.subject import Subject, Terms
from course_lib.contracts.heads import calls
from course_lib.contracts.heads.calls import TENSORS, HeadsCall, by_library, drawn
from course_lib.contracts.heads.looks import explain
from course_lib.report import ContractReport, Mismatch
from course_lib.text import say

_FACTS = {
    "shape": "the output has shape {came}, the input {wanted} | "
    "у выхода форма {came}, у входа {wanted}",
    "dtype": "the output is {came}, the input {wanted} | выход имеет тип {came}, вход — {wanted}",
    "not_finite": "rows {rows} of item {item} are not finite | "
    "в строках {rows} элемента {item} есть NaN или бесконечности",
    "twice": "two calls in a row give different results | два вызова подряд дают разные результаты",
    "after_others": "after a call with other arguments the first call gives another result | "
    "после вызова с другими аргументами повтор первого вызова даёт другой результат",
    "overwritten": "a later call changed the tensor that an earlier call had returned | "
    "следующий вызов изменил тензор, который вернул предыдущий",
    "permuted": "the tokens were put in reverse order; the rows must follow | "
    "токены взяты в обратном порядке; строки должны переставиться так же",
    "future": "only the tokens after position {place} were changed | "
    "изменены только токены после позиции {place}",
    "content": "only the padding was changed | изменён только паддинг",
    "alone": "item {place}, given alone and without its padding, gives the expected numbers | "
    "элемент {place}, взятый отдельно и без паддинга, даёт ожидаемые числа",
    "detached": "the output is cut off from its inputs (detach, no_grad, .data) | "
    "выход отрезан от входов (detach, no_grad, .data)",
    "no_gradient": "no gradient reaches {name} | градиент не доходит до {name}",
}


def _read(output: Any, call: HeadsCall) -> Tensor:
    x, output = call.x, tensor(output)
    if output.shape != x.shape:
        came, wanted = list(output.shape), list(x.shape)
        raise malformed("shape", _FACTS["shape"], str(wanted), came=came, wanted=wanted)
    if not output.is_floating_point() or output.dtype.itemsize < x.dtype.itemsize:
        raise malformed("dtype", _FACTS["dtype"], str(x.dtype), came=output.dtype, wanted=x.dtype)
    broken = ~output.isfinite().all(-1)
    if broken.any():
        item = int(broken.any(-1).nonzero()[0])
        rows = broken[item].nonzero().flatten().tolist()
        index, told = (item, rows[0], 0), finite_wanted()
        got, facts = output[index].item(), say(_FACTS["not_finite"], rows=rows, item=item)
        shown = (Mismatch("output", index, got, told),)
        raise Breach("not finite", str(got), told, mismatches=shown, facts=facts)
    return output


def _compare(
    subject: Subject,
    call: HeadsCall,
    got: Tensor,
    want: Tensor,
    rows: Tensor,
    allowed: float,
    facts: str = "",
    kind: str = "wrong",
) -> float:
    """The largest error over the given rows [B, T]; what else comes there does not matter."""
    seen = torch.where(rows.unsqueeze(-1), got.double(), want.double())
    return subject.compare(call, seen, want, allowed, kind=kind, facts=facts, label="output")


def _right(subject: Subject, call: HeadsCall, allowed: float) -> float:
    """The rows of the real tokens equal both references."""
    got = subject.value(call)
    return _compare(subject, call, got, subject.wanted(call), call.valid, allowed)


def _steady(subject: Subject, call: HeadsCall, allowed: float) -> float:
    """A, A, B, A: same numbers each time, and nothing overwritten."""
    first, rows = subject.value(call), torch.ones_like(call.valid)
    kept = first.clone()

    def agree(got: Tensor, kind: str, fact: str) -> float:
        return _compare(subject, call, got, kept, rows, allowed, say(fact), kind)

    agree(subject.value(call), "twice", _FACTS["twice"])
    other = call.but(x=call.x.flip(1) + 1, w_v=-call.w_v)
    subject.value(other.but(token_valid=call.token_valid.flip(1)))
    agree(first, "overwritten", _FACTS["overwritten"])
    return agree(subject.value(call), "after_others", _FACTS["after_others"])


def _permuted(subject: Subject, call: HeadsCall, allowed: float) -> float:
    """Tokens in reverse order give rows in reverse order."""
    base, turned = subject.value(call), subject.value(call.but(x=call.x.flip(1)))
    return _compare(
        subject, call, turned, base.flip(1), call.valid, allowed, say(_FACTS["permuted"])
    )


def _future_blind(subject: Subject, call: HeadsCall, allowed: float) -> float:
    """Changing the tokens after each position must leave the rows up to it as they were."""
    base, worst = subject.value(call), 0.0
    for place in range(call.x.shape[1] - 1):
        later = torch.arange(call.x.shape[1]) > place
        got = subject.value(call.but(x=torch.where(later[:, None], 3 - 2 * call.x, call.x)))
        facts, rows = say(_FACTS["future"], place=place), call.valid & ~later
        worst = max(worst, _compare(subject, call, got, base, rows, allowed, facts))
    return worst


def _padding_mute(subject: Subject, call: HeadsCall, allowed: float) -> float:
    """Small, huge and swapped contents of the padding must give the same real rows."""
    base, worst, facts = subject.value(call), 0.0, say(_FACTS["content"])
    for content in (torch.zeros_like(call.x), 50 * call.x.flip(1), 1e4 + 0 * call.x):
        got = subject.value(call.but(x=torch.where(call.valid.unsqueeze(-1), call.x, content)))
        worst = max(worst, _compare(subject, call, got, base, call.valid, allowed, facts))
    return worst


def _alone(subject: Subject, call: HeadsCall, allowed: float) -> float:
    """Each item alone, its padding cut off, against the same item in the batch."""
    together, worst = subject.value(call), 0.0
    for item, real in enumerate(call.valid):
        x, valid = call.x[item : item + 1, real], real[real].unsqueeze(0)
        expected, rows = torch.zeros_like(together), torch.zeros_like(call.valid)
        alone = subject.value(call.but(x=x, token_valid=valid))[0]
        expected[item, real], rows[item] = alone.to(together.dtype), real
        facts = say(_FACTS["alone"], place=item)
        worst = max(worst, _compare(subject, call, together, expected, rows, allowed, facts))
    return worst


def _slopes(subject: Subject, call: HeadsCall, allowed: float) -> float:
    """Gradients of the real rows; weights that the function copied away are left out."""
    (given, leaves), want = call.tracked(TENSORS), calls.gradients(call)
    output = call_candidate(subject.candidate, *given.positional, **given.keywords)
    _read(output, call)
    if not output.requires_grad:
        flags = [f"requires_grad={flag}" for flag in (False, True)]
        raise Breach("detached", *flags, facts=say(_FACTS["detached"]))
    loss = (output * calls.direction(call)).sum()
    got = call_candidate(torch.autograd.grad, loss, leaves, allow_unused=True)
    found = dict(zip(TENSORS, got, strict=True))
    full = {n: torch.zeros_like(want[n]) if found[n] is None else found[n] for n in TENSORS}
    if all(found[name] is None for name in TENSORS[1:]):
        full = {"x": full["x"]}
    worst = 0.0
    for name in sorted(full, key=lambda name: bool(full[name].any())):  # what is lost comes first
        facts, label = "", f"{name}.grad"
        if not full[name].any():
            facts = say(_FACTS["no_gradient"], name=name)
        error = subject.compare(call, full[name], want[name], allowed, facts=facts, label=label)
        worst = max(worst, error)
    return worst


def _takes(subject: Subject, clause: Clause) -> bool:
    """Whether this is a call that the function knows; None and 16-bit numbers need not be."""
    try:
        clause.calls[0].fresh().to(subject.candidate)
    except Exception:
        return False
    return True


def _clauses(subject: Subject) -> list[Clause]:
    single = [drawn(10, 1, 3, 1, 3), drawn(11, 2, 4, 1, 5), drawn(12, 1, 1, 1, 2)]
    sizes = [(1, 2, 2, 2), (2, 4, 2, 3), (3, 2, 3, 2), (1, 5, 3, 5), (2, 3, 6, 1), (2, 1, 2, 3)]
    sizes += [(3, 3, 3, 3), (2, 3, 4, 2)]
    many, padded = [drawn(20 + n, *size) for n, size in enumerate(sizes)], calls.padding()
    causal = [call.but(causal=True) for call in many]
    mute = [padded[0], padded[1], padded[6]]
    bare = [call.but(token_valid=None) for call in (*many[:3], *causal[:3])]
    few = [many[1], causal[3], padded[0]]
    half = [call.of_dtype(torch.float16) for call in (*few, *padded[1:3])]
    # fmt: off
    return [
        Clause("result_form", "a tensor [B, T, d_model], as wide as the input, finite | "
               "конечный тензор [B, T, d_model] не менее точный, чем вход",
               formed, [single[0], many[1], *padded]),
        Clause("arguments_unchanged", "the call leaves its arguments as they were | "
               "аргументы после вызова прежние", formed, [many[1], causal[1], padded[0]]),
        Clause("repeatable", "the same call, the same result, whatever came between | "
               "тот же вызов — тот же результат, что бы ни было между ними",
               _steady, [many[1], padded[1], causal[1]], 1e-12),
        Clause("one_head", "one head is plain attention between the projections | "
               "одна голова — обычное внимание между проекциями", _right, single, 1e-10),
        Clause("permutation", "without a mask, reordered tokens give reordered rows | "
               "без маски перестановка токенов переставляет строки", _permuted, many, 1e-6),
        Clause("many_heads", "H heads, each on its own d_head columns, then w_o | "
               "H голов, каждая на своих d_head столбцах, затем w_o",
               _right, [*many, drawn(30, 1, 2, 2, 65)], 1e-10),
        Clause("future_blind", "changing later tokens leaves earlier rows alone | "
               "замена поздних токенов не меняет ранних строк", _future_blind, causal, 1e-6),
        Clause("causal", "causal=True: a row reads its own and earlier tokens | "
               "causal=True: строка читает свой и прежние токены", _right, causal, 1e-10),
        Clause("padding_content", "what stands in the padding does not matter | "
               "содержимое паддинга не имеет значения", _padding_mute, mute, 1e-6),
        Clause("row_in_batch", "an item gives alone what it gives in the batch | "
               "элемент отдельно даёт то же, что внутри батча",
               _alone, [many[1], many[2], *mute], 1e-6),
        Clause("padding", "padding is not read, wherever it lies | "
               "паддинг не читается, где бы он ни стоял", _right, padded, 1e-10),
        Clause("without_padding", "token_valid=None means that every token is real | "
               "token_valid=None значит, что все токены настоящие",
               _right, bare, 1e-10, when=_takes),
        Clause("long_sequences", "longer than any block, with whole blocks of padding | "
               "длиннее любого блока, с блоками из одного паддинга", _right, calls.long(), 1e-10),
        Clause("memory_layout", "transposed input and weights: the same result | "
               "транспонированные вход и веса: тот же результат",
               _right, [calls.strided(call) for call in (many[1], causal[7], padded[0])], 1e-10,
               when=_takes),
        Clause("extreme_logits", "scores in the thousands: finite and right | "
               "оценки в тысячах: результат конечен и верен",
               _right, calls.extreme(many[1], padded[:3]), 1e-8),
        Clause("float32_inputs", "float32 in: right to float32 accuracy | "
               "вход float32: верно с точностью float32",
               _right, [call.of_dtype(torch.float32) for call in few], 2e-5),
        Clause("half_inputs", "float16 in: right to float16 accuracy, finite | "
               "вход float16: результат конечен и верен с точностью float16",
               _right, half, 2e-2, when=_takes),
        Clause("gradients", "the gradient reaches the input and every weight, right | "
               "градиент доходит до входа и до всех весов, и он верен",
               _slopes, [many[1], causal[1], padded[0], padded[2]], 1e-8, when=tracked),
    ]
    # fmt: on


_TERMS = Terms("multi_head", (calls.by_loops, by_library), _read, agree=1e-6)
MULTI_HEAD = Contract(
    "multi_head",
    _TERMS,
    _clauses,
    explain,
    {
        "output_max_error": ("many_heads", "causal", "padding"),
        "gradient_max_error": "gradients",
        "future_leak": "future_blind",
        "padding_leak": "padding_content",
        "permutation": "permutation",
    },
)


def check_multi_head_contract(multi_head: Callable[..., Any]) -> ContractReport:
    """Hold multi-head self-attention to its heads, its masks and its projections.

        multi_head(x, w_q, w_k, w_v, w_o, n_heads, *, causal, token_valid) -> [B, T, d_model]

    Weights [d_model, d_model] act as x @ w; head h owns columns h*d_head to (h+1)*d_head. Of rows
    that are padding only finite numbers are asked.

    Raises:  ContractViolation when a clause is broken: with a small input and what was measured
    """
    return MULTI_HEAD.check(multi_head)
