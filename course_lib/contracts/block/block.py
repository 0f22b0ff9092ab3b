"""The contract of a pre-norm block: two sublayers beside a stream that nothing else touches."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from course_lib.contracts.block._block_behaviour import explain_block
from course_lib.contracts.block._block_case import block_case
from course_lib.contracts.block._block_judge import (
    judge_block,
    judge_block_form,
    judge_block_gradients,
    judge_block_state,
)
from course_lib.contracts.engine.candidate import (
    ContractSubject,
    hold_clause,
    is_forward_only,
    is_stub,
    quiet_globals,
)
from course_lib.report import ClauseResult, ContractReport

_BLOCK_MEANINGS = {
    "result_form": {
        "en": "a finite tensor of x's shape, as wide as x or wider",
        "ru": "конечный тензор формы x, не менее точный, чем x",
    },
    "arguments_unchanged": {
        "en": "x is as before the call, even where sublayers return it",
        "ru": "x после вызова прежний, даже если подслой возвращает его",
    },
    "repeatable": {
        "en": "the same call, the same result: nothing is remembered",
        "ru": "тот же вызов — тот же результат: ничего не запоминается",
    },
    "stream_untouched": {
        "en": "attend and feed give 0: the result is x itself",
        "ru": "attend и feed дают 0: результат — сам x",
    },
    "attend_alone": {
        "en": "feed gives 0: the result is x + attend(norm1(x))",
        "ru": "feed даёт 0: результат x + attend(norm1(x))",
    },
    "feed_alone": {
        "en": "attend gives 0: the result is x + feed(norm2(x))",
        "ru": "attend даёт 0: результат x + feed(norm2(x))",
    },
    "both_in_order": {
        "en": "feed reads, and is added to, the stream after attend",
        "ru": "feed читает поток после attend и прибавляется к нему",
    },
    "real_sublayers": {
        "en": "norms, mixing of tokens and bends; [B, T, d] and [T, d]",
        "ru": "нормализации, смешивание, нелинейности; [B, T, d], [T, d]",
    },
    "called_once": {
        "en": "a token passes each sublayer once (dropout, caches)",
        "ru": "токен проходит каждый подслой один раз (dropout, кэш)",
    },
    "any_size": {
        "en": "streams tiny and huge",
        "ru": "числа в потоке крошечные и огромные",
    },
    "float32_inputs": {
        "en": "float32 in: right to float32 accuracy",
        "ru": "вход float32: верно с точностью float32",
    },
    "gradients": {
        "en": "gradients pass by the sublayers and through them",
        "ru": "градиенты идут и мимо подслоёв, и сквозь них",
    },
}


def check_block_contract(block: Callable[..., Any]) -> ContractReport:
    """Hold a pre-norm block to its order, its two sums and its untouched stream.

        block(x, norm1, attend, norm2, feed) -> x:
        x = x + attend(norm1(x));   x = x + feed(norm2(x))

    The four are functions of a tensor [B, T, d] or [T, d]. A block may be written in any way: only
    its result, its gradients and that each function works once are demanded.

    Raises:  ContractViolation when a clause is broken: with a small input and what was measured
    """
    if not callable(block):
        raise TypeError(f"block must be a function, got {type(block).__name__}")
    subject = ContractSubject("check_block_contract", block, _BLOCK_MEANINGS, explain_block)
    first = block_case(0, 1, 2, 3)
    with quiet_globals():
        if is_stub(block, first.x, *first.watched()):
            return ContractReport(subject.contract, attempted=False)
        clauses = tuple(_block_clauses(subject))
    errors = {clause.name: clause.measured for clause in clauses}
    summed = ("attend_alone", "feed_alone", "both_in_order", "real_sublayers")
    figures = {
        "stream_max_error": errors["stream_untouched"],
        "output_max_error": max(errors[name] for name in summed),
        "gradient_max_error": errors.get("gradients", float("nan")),
        "float32_max_error": errors["float32_inputs"],
    }
    unchecked = () if "gradients" in errors else ("gradients",)
    return ContractReport(subject.contract, clauses, figures, unchecked=unchecked)


def _block_clauses(subject: ContractSubject) -> Iterator[ClauseResult]:
    """Run the clauses one by one, the ones that tell most about a mistake first."""
    hold = partial(hold_clause, subject)
    exact = partial(judge_block, tolerance=1e-10)
    mixed = "norm past norm bend"
    sizes = ((2, 3, 4), (3, 5), (1, 1, 2), (3, 3, 3), (2, 4, 1), (1, 6))

    def cases(seed: int, kinds: str, **changes: Any) -> list[Any]:
        return [block_case(seed + n, *s, kinds=kinds, **changes) for n, s in enumerate(sizes)]

    linear = cases(10, "linear linear linear linear")
    same = [block_case(20, 2, 3, 4, kinds="same same same same")]
    same += [block_case(21, 3, 4, kinds=kinds) for kinds in ("same zero same zero", mixed)]
    yield hold("result_form", None, judge_block_form, linear)
    yield hold("arguments_unchanged", None, judge_block_form, [*linear, *same])
    yield hold("repeatable", 1e-12, judge_block_state, linear[:2])
    yield hold("stream_untouched", 1e-10, exact, cases(30, "linear zero linear zero"))
    yield hold("attend_alone", 1e-10, exact, cases(40, "linear linear linear zero"))
    yield hold("feed_alone", 1e-10, exact, cases(50, "linear zero linear linear"))
    yield hold("both_in_order", 1e-10, exact, linear)
    large = [block_case(66 + n, *s, kinds=mixed) for n, s in enumerate(((9, 2, 3), (2, 70, 5)))]
    large += [block_case(68, 70, 3, kinds=mixed), block_case(69, 1, 2, 70, kinds=mixed)]
    yield hold("real_sublayers", 1e-10, exact, [*cases(60, mixed), *large])
    yield hold("called_once", 1e-10, exact, cases(70, mixed, counting=True)[:2])
    sized = [block_case(80 + n, 2, 3, 4, size=10.0**n) for n in (-8, -3, 3, 8)]
    tiny = block_case(84, 2, 3, 4)
    sized += [replace(tiny, x=-1e-5 * tiny.x.abs()), replace(tiny, x=tiny.x.transpose(0, 1))]
    yield hold("any_size", 1e-10, exact, sized)
    narrow = cases(90, mixed, dtype=torch.float32)[:4]
    narrow.append(block_case(99, 2, 3, dtype=torch.float32, size=1e4))
    yield hold("float32_inputs", 3e-5, partial(judge_block, tolerance=3e-5), narrow)
    if not is_forward_only(subject.candidate, linear[0].x, *linear[0].watched()):
        yield hold("gradients", 1e-8, judge_block_gradients, linear[:4])
