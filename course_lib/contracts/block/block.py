"""The contract of a pre-norm block: two sublayers beside a stream that nothing else touches."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.block.layers import (
    NAMES,
    BlockCall,
    by_loops,
    direction,
    drawn,
    gradients,
    inputs,
)
from course_lib.contracts.block.mistakes import BLOCK_MISTAKES, mistaken_block
from course_lib.contracts.engine import look
from course_lib.contracts.engine.call import Call
from course_lib.contracts.engine.clause import Clause, Contract, tracked
from course_lib.contracts.engine.diagnosis import by_catalogue
from course_lib.contracts.engine.judge import formed, right, slopes, steady, unless
from course_lib.contracts.engine.look import arguments_kept, outcome, probed
from course_lib.contracts.engine.read import finite, tensor_like
from course_lib.contracts.engine.subject import Subject, Terms
from course_lib.contracts.engine.watch import Probe
from course_lib.report import ContractReport
from course_lib.text import say

_CHANGED = (
    "x changed | x изменился",
    "unchanged | без изменений",
    "after the call x holds other numbers: the sum was written into it | "
    "после вызова в x другие числа: сумма записана прямо в него",
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
_GRADIENT = (
    "the result is right, but the gradient of {name} is not: one of its ways is cut | "
    "результат верен, а градиент {name} — нет: один из его путей оборван"
)
_WANTED = ("x", "norm1(x)", "x + attend(norm1(x))", "norm2(x + attend(norm1(x)))")
_MIXED = "norm past norm bend"
_EXACT = 1e-10


def _told(call: BlockCall, got: Tensor, want: Tensor, allowed: float) -> str:
    """What the sublayers saw: who was left out, called too often, or given something else."""
    told, lost, seen = [], False, call.kept["watched"]
    for name, layer, wanted, formula in zip(NAMES, seen, inputs(call), _WANTED, strict=False):
        if not layer.given:
            told.append(say(_NEVER, name=name))
        elif len(layer.given) > 1:
            told.append(say(_OFTEN, name=name, count=len(layer.given)))
        elif not lost and not _alike(layer.given[0], wanted):
            lost = True  # and what comes after follows from it
            told.append(say(_GIVEN, name=name, wanted=formula))
    return "; ".join(told or [say(_SUM)])


def _alike(given: Tensor, wanted: Tensor) -> bool:
    return given.shape == wanted.shape and torch.allclose(given.double(), wanted, 1e-5, 1e-7)


def _between(call: BlockCall) -> list[Call]:
    shape = call.x.shape
    return [call, call.but(x=call.x * 3 + 1), drawn(97, *shape), drawn(98, 4, 2, shape[-1] + 1)]


def _bent(subject: Subject, call: BlockCall) -> bool:
    """Whether the gradients of this call are not known: some sublayer is not linear."""
    return any(kind != "linear" for kind in call.kinds)


def _sized(seed: int, kinds: str, **changes: Any) -> list[BlockCall]:
    """Calls of every shape: items or none, one item, one token, one number, equal sizes."""
    sizes = ((2, 3, 4), (3, 5), (1, 1, 2), (3, 3, 3), (2, 4, 1), (1, 6))
    return [drawn(seed + n, *s, kinds=kinds, **changes) for n, s in enumerate(sizes)]


def _any_size() -> list[Call]:
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
    sloped = unless(_bent, slopes(gradients, direction, wrong=_GRADIENT))
    # fmt: off
    return [
        Clause("result_form", "a finite tensor of x's shape, as wide as x or wider | "
               "конечный тензор формы x, не менее точный, чем x", formed, linear),
        Clause("arguments_unchanged", "x is as before the call, even where sublayers return it | "
               "x после вызова прежний, даже если подслой возвращает его",
               formed, [*linear, *same]),
        Clause("repeatable", "the same call, the same result: nothing is remembered | "
               "тот же вызов — тот же результат: ничего не запоминается",
               steady, linear[:2], 1e-12),
        Clause("stream_untouched", "attend and feed give 0: the result is x itself | "
               "attend и feed дают 0: результат — сам x",
               right, _sized(30, "linear zero linear zero"), _EXACT),
        Clause("attend_alone", "feed gives 0: the result is x + attend(norm1(x)) | "
               "feed даёт 0: результат x + attend(norm1(x))",
               right, _sized(40, "linear linear linear zero"), _EXACT),
        Clause("feed_alone", "attend gives 0: the result is x + feed(norm2(x)) | "
               "attend даёт 0: результат x + feed(norm2(x))",
               right, _sized(50, "linear zero linear linear"), _EXACT),
        Clause("both_in_order", "feed reads, and is added to, the stream after attend | "
               "feed читает поток после attend и прибавляется к нему", right, linear, _EXACT),
        Clause("real_sublayers", "norms, mixing of tokens and bends; [B, T, d] and [T, d] | "
               "нормализации, смешивание, нелинейности; [B, T, d], [T, d]",
               right, [*_sized(60, _MIXED), *large], _EXACT),
        Clause("called_once", "a token passes each sublayer once (dropout, caches) | "
               "токен проходит каждый подслой один раз (dropout, кэш)",
               right, _sized(70, _MIXED, counting=True)[:2], _EXACT),
        Clause("any_size", "streams tiny and huge | числа в потоке крошечные и огромные",
               right, _any_size(), _EXACT),
        Clause("float32_inputs", "float32 in: right to float32 accuracy | "
               "вход float32: верно с точностью float32", right, narrow, 3e-5),
        Clause("gradients", "gradients pass by the sublayers and through them | "
               "градиенты идут и мимо подслоёв, и сквозь них",
               sloped, linear[:4], 1e-8, when=tracked),
    ]
    # fmt: on


def _probes(subject: Subject) -> list[Probe]:
    return [
        *probed(drawn(201, 2, 3, 5, kinds=_MIXED), drawn(202, 2, 4, 3)),
        *probed(drawn(203, 3, 4, kinds=_MIXED), core=False),
        *probed(drawn(204, 2, 3, 4), look=look.gradients(direction), core=False),
        *probed(drawn(205, 2, 3, 4), look=arguments_kept, core=False),
        *probed(drawn(206, 2, 3, 4), look=_times_called, core=False),
        *probed(drawn(207, 2, 2, 4), look=_after_another, core=False),
    ]


def _times_called(call: BlockCall, block: Callable[..., Any]) -> list[int]:
    """Which sublayers are called not at all, once, or more often."""
    given = call.fresh()
    given.to(block)
    return [min(len(given.values[name].given), 2) for name in NAMES]


def _after_another(call: BlockCall, block: Callable[..., Any]) -> Tensor:
    """After a call of the same size with other sublayers."""
    outcome(drawn(208, *call.x.shape), block)
    return outcome(call, block)


_TERMS = Terms(
    "block",
    (by_loops, lambda call: inputs(call)[-1]),
    finite(tensor_like("x"), "result"),
    between=_between,
    facts=_told,
    agree=1e-9,
    changed=_CHANGED,
    again=_AGAIN,
    label="result",
    differentiable=True,
)
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
