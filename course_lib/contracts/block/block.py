"""The contract of a pre-norm block: two sublayers beside a stream that nothing else touches."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.block.layers import (
    NAMES,
    BlockCall,
    Watcher,
    by_loops,
    direction,
    drawn,
    gradients,
    inputs,
)
from course_lib.contracts.block.mistakes import BLOCK_MISTAKES, mistaken_block
from course_lib.contracts.engine.call import same_values
from course_lib.contracts.engine.candidate import Breach, call_candidate, finite_wanted
from course_lib.contracts.engine.clause import Clause, Contract, tracked
from course_lib.contracts.engine.diagnosis import Probe, by_catalogue
from course_lib.contracts.engine.look import outcome, probed
from course_lib.contracts.engine.read import tensor_like
from course_lib.contracts.engine.subject import Subject, Terms
from course_lib.contracts.engine.words import say
from course_lib.report import ContractReport, Mismatch

_NOT_FINITE = (
    "{count} of {size} numbers are NaN or infinite | NaN или бесконечности: {count} из {size} чисел"
)
_CHANGED = (
    "after the call x holds other numbers: the sum was written into it | "
    "после вызова в x другие числа: сумма записана прямо в него"
)
_NEVER = "{name} was never called | {name} ни разу не вызван"
_OFTEN = "{name} was called {count} times | {name}: вызовов {count}"
_GIVEN = "{name} was not given {wanted} | {name} получил не {wanted}"
_SUM = (
    "every sublayer was given the right input: what is returned is summed wrongly | "
    "каждый подслой получил верный вход, но возвращаемое сложено неверно"
)
_AGAIN = (
    "the same call gave another result after other calls | "
    "тот же вызов после других вызовов дал другой результат"
)
_UNTRACKED = (
    "right while gradients are recorded, but another result under torch.no_grad() | "
    "верно, пока записываются градиенты, а под torch.no_grad() результат другой"
)
_NO_GRADIENT = (
    "no gradient reaches {name}: the graph is cut (detach, no_grad, .data, a new tensor) | "
    "градиент не доходит до {name}: граф разорван (detach, no_grad, .data, новый тензор)"
)
_GRADIENT = (
    "the result is right, but the gradient of {name} is not: one of its ways is cut | "
    "результат верен, а градиент {name} — нет: один из его путей оборван"
)
_WANTED = ("x", "norm1(x)", "x + attend(norm1(x))", "norm2(x + attend(norm1(x)))")
_MIXED = "norm past norm bend"
_EXACT = 1e-10


def _read(result: Any, call: BlockCall) -> Tensor:
    got = tensor_like("x")(result, call)
    broken = ~got.isfinite()
    if broken.any():
        place, told = tuple(broken.nonzero()[0].tolist()), finite_wanted()
        shown = (Mismatch("result", place, got[place].item(), told),)
        facts = say(_NOT_FINITE, count=int(broken.sum()), size=got.numel())
        raise Breach(
            "not finite",
            str(got[place].item()),
            told,
            mismatches=shown,
            facts=facts,
            clause="result_form",
        )
    return got


def _value(subject: Subject, call: BlockCall, layers: list[Watcher]) -> Tensor:
    """What comes back; a breach if it is no finite tensor like x, or if x is not as it was."""
    x = call.fresh().values["x"]
    result = call_candidate(subject.candidate, x, *layers)
    if not same_values(call.x, x):
        came, wanted = say("x changed | x изменился"), say("unchanged | без изменений")
        raise Breach("changed", came, wanted, facts=say(_CHANGED), clause="arguments_unchanged")
    return _read(result, call)


def _told(call: BlockCall, layers: list[Watcher]) -> str:
    """What the sublayers saw: who was left out, called too often, or given something else."""
    told, lost = [], False
    for name, layer, right, formula in zip(NAMES, layers, inputs(call), _WANTED, strict=False):
        if not layer.given:
            told.append(say(_NEVER, name=name))
        elif len(layer.given) > 1:
            told.append(say(_OFTEN, name=name, count=len(layer.given)))
        elif not lost and not _alike(layer.given[0], right):
            lost = True  # and what comes after follows from it
            told.append(say(_GIVEN, name=name, wanted=formula))
    return "; ".join(told or [say(_SUM)])


def _alike(given: Tensor, right: Tensor) -> bool:
    return given.shape == right.shape and torch.allclose(given.double(), right, 1e-5, 1e-7)


def _formed(subject: Subject, call: BlockCall, allowed: float) -> float:
    _value(subject, call, call.watched())
    return 0.0


def _right(subject: Subject, call: BlockCall, allowed: float) -> float:
    """Compare the result with the references, with gradients recorded and without."""
    want, layers = subject.wanted(call), call.watched()
    compare = partial(subject.compare, call, want=want, allowed=allowed, label="result")
    worst = compare(_value(subject, call, layers), facts=partial(_told, call, layers))
    with torch.no_grad():
        got = _value(subject, call, call.watched())
    return max(worst, compare(got, facts=say(_UNTRACKED), kind="untracked"))


def _steady(subject: Subject, call: BlockCall, allowed: float) -> float:
    """The same call, then others in between, then the same call once more."""
    held = _value(subject, call, call.watched())
    compare = partial(
        subject.compare,
        call,
        want=held.clone(),
        allowed=allowed,
        kind="again",
        facts=say(_AGAIN),
        label="result",
    )
    worst = compare(_value(subject, call, call.watched()))
    shape = call.x.shape
    for other in (call.but(x=call.x * 3 + 1), drawn(97, *shape), drawn(98, 4, 2, shape[-1] + 1)):
        _value(subject, other, other.watched())
    worst = max(worst, compare(held))  # before the next call could make it right again
    return max(worst, compare(_value(subject, call, call.watched())))


def _slopes(subject: Subject, call: BlockCall, allowed: float) -> float:
    """The gradients of x and of what the sublayers hold, through both of their ways."""
    if any(kind != "linear" for kind in call.kinds):
        return 0.0
    wanted, (leaves, layers) = gradients(call), call.tracked()
    result = call_candidate(subject.candidate, leaves[0], *layers)
    _read(result, call)
    loss, found = (result.double() * direction(result)).sum(), [None] * len(leaves)
    if loss.requires_grad:
        found = call_candidate(torch.autograd.grad, loss, leaves, allow_unused=True)
    worst = 0.0
    for name, got, want in zip(("x", *NAMES), found, wanted, strict=True):
        if got is None:
            lost, facts = str(list(want.shape)), say(_NO_GRADIENT, name=name)
            raise Breach(f"no gradient {name}", "None", lost, facts=facts)
        label, told = f"gradient of {name}", say(_GRADIENT, name=name)
        worst = max(worst, subject.compare(call, got, want, allowed, facts=told, label=label))
    return worst


def _sized(seed: int, kinds: str, **changes: Any) -> list[BlockCall]:
    """Calls of every shape: items or none, one item, one token, one number, equal sizes."""
    sizes = ((2, 3, 4), (3, 5), (1, 1, 2), (3, 3, 3), (2, 4, 1), (1, 6))
    return [drawn(seed + n, *s, kinds=kinds, **changes) for n, s in enumerate(sizes)]


def _any_size() -> list[BlockCall]:
    tiny = drawn(84, 2, 3, 4)
    odd = [tiny.but(x=-1e-5 * tiny.x.abs()), tiny.but(x=tiny.x.transpose(0, 1))]
    return [*(drawn(80 + n, 2, 3, 4, size=10.0**n) for n in (-8, -3, 3, 8)), *odd]


def _clauses(subject: Subject) -> list[Clause]:
    linear = _sized(10, "linear linear linear linear")
    same = [drawn(20, 2, 3, 4, kinds="same same same same")]
    same += [drawn(21, 3, 4, kinds=kinds) for kinds in ("same zero same zero", _MIXED)]
    large = [drawn(66, 9, 2, 3, kinds=_MIXED), drawn(67, 2, 70, 5, kinds=_MIXED)]
    large += [drawn(68, 70, 3, kinds=_MIXED), drawn(69, 1, 2, 70, kinds=_MIXED)]
    narrow = _sized(90, _MIXED, dtype=torch.float32)[:4]
    narrow.append(drawn(99, 2, 3, dtype=torch.float32, size=1e4))
    # fmt: off
    return [
        Clause("result_form", "a finite tensor of x's shape, as wide as x or wider | "
               "конечный тензор формы x, не менее точный, чем x", _formed, linear),
        Clause("arguments_unchanged", "x is as before the call, even where sublayers return it | "
               "x после вызова прежний, даже если подслой возвращает его",
               _formed, [*linear, *same]),
        Clause("repeatable", "the same call, the same result: nothing is remembered | "
               "тот же вызов — тот же результат: ничего не запоминается",
               _steady, linear[:2], 1e-12),
        Clause("stream_untouched", "attend and feed give 0: the result is x itself | "
               "attend и feed дают 0: результат — сам x",
               _right, _sized(30, "linear zero linear zero"), _EXACT),
        Clause("attend_alone", "feed gives 0: the result is x + attend(norm1(x)) | "
               "feed даёт 0: результат x + attend(norm1(x))",
               _right, _sized(40, "linear linear linear zero"), _EXACT),
        Clause("feed_alone", "attend gives 0: the result is x + feed(norm2(x)) | "
               "attend даёт 0: результат x + feed(norm2(x))",
               _right, _sized(50, "linear zero linear linear"), _EXACT),
        Clause("both_in_order", "feed reads, and is added to, the stream after attend | "
               "feed читает поток после attend и прибавляется к нему", _right, linear, _EXACT),
        Clause("real_sublayers", "norms, mixing of tokens and bends; [B, T, d] and [T, d] | "
               "нормализации, смешивание, нелинейности; [B, T, d], [T, d]",
               _right, [*_sized(60, _MIXED), *large], _EXACT),
        Clause("called_once", "a token passes each sublayer once (dropout, caches) | "
               "токен проходит каждый подслой один раз (dropout, кэш)",
               _right, _sized(70, _MIXED, counting=True)[:2], _EXACT),
        Clause("any_size", "streams tiny and huge | числа в потоке крошечные и огромные",
               _right, _any_size(), _EXACT),
        Clause("float32_inputs", "float32 in: right to float32 accuracy | "
               "вход float32: верно с точностью float32", _right, narrow, 3e-5),
        Clause("gradients", "gradients pass by the sublayers and through them | "
               "градиенты идут и мимо подслоёв, и сквозь них",
               _slopes, linear[:4], 1e-8, when=tracked),
    ]
    # fmt: on


def _probes(subject: Subject) -> list[Probe]:
    return [
        *probed(drawn(201, 2, 3, 5, kinds=_MIXED), drawn(202, 2, 4, 3)),
        *probed(drawn(203, 3, 4, kinds=_MIXED), core=False),
        *probed(drawn(204, 2, 3, 4), look=_seen_slopes, core=False),
        *probed(drawn(205, 2, 3, 4), look=_stream_kept, core=False),
        *probed(drawn(206, 2, 3, 4), look=_times_called, core=False),
        *probed(drawn(207, 2, 2, 4), look=_after_another, core=False),
    ]


def _seen_slopes(call: BlockCall, block: Callable[..., Any]) -> Any:
    """The gradients of x and of the four matrices; none where the call writes into x."""
    if not _stream_kept(call, block):
        return "stream changed"
    leaves, layers = call.tracked()
    result = block(leaves[0], *layers)
    if not result.requires_grad:
        return "no gradient"
    found = torch.autograd.grad((result * direction(result)).sum(), leaves, allow_unused=True)
    return ["none" if slope is None else slope for slope in found]


def _stream_kept(call: BlockCall, block: Callable[..., Any]) -> bool:
    given = call.fresh()
    given.to(block)
    return torch.equal(given.values["x"], call.x)


def _times_called(call: BlockCall, block: Callable[..., Any]) -> list[int]:
    """Which sublayers are called not at all, once, or more often."""
    given = call.fresh()
    given.to(block)
    return [min(len(given.values[name].given), 2) for name in NAMES]


def _after_another(call: BlockCall, block: Callable[..., Any]) -> Tensor:
    """After a call of the same size with other sublayers."""
    outcome(drawn(208, *call.x.shape), block)
    return outcome(call, block)


_TERMS = Terms("block", (by_loops, lambda call: inputs(call)[-1]), agree=1e-9)
BLOCK = Contract(
    "block",
    _TERMS,
    _clauses,
    by_catalogue(BLOCK_MISTAKES, _probes, mistaken_block()),
    {
        "stream_max_error": "stream_untouched",
        "output_max_error": ("attend_alone", "feed_alone", "both_in_order", "real_sublayers"),
        "gradient_max_error": "gradients",
        "float32_max_error": "float32_inputs",
    },
)


def check_block_contract(block: Callable[..., Any]) -> ContractReport:
    """Hold a pre-norm block to its order, its two sums and its untouched stream.

        block(x, norm1, attend, norm2, feed) -> x:
        x = x + attend(norm1(x));   x = x + feed(norm2(x))

    The four are functions of a tensor [B, T, d] or [T, d]. A block may be written in any way: only
    its result, its gradients and that each function works once are demanded.

    Raises:  ContractViolation when a clause is broken: with a small input and what was measured
    """
    return BLOCK.check(block)
