"""The contract of greedy generation: which tokens, where it ends, and for which reason."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from course_lib.contracts.engine.candidate import ContractSubject, hold_clause, quiet_globals
from course_lib.contracts.generation._generation_judge import (
    judge_generation,
    judge_generation_again,
    judge_generation_flag,
    judge_generation_form,
    judge_generation_mode,
    judge_generation_prompt,
    judge_generation_refusal,
)
from course_lib.contracts.generation._generation_model import GenerationCase, generation_by_rule
from course_lib.contracts.generation._generation_probes import (
    explain_generation,
    generation_arguments,
)
from course_lib.report import ClauseResult, ContractReport

_GENERATION_MEANINGS = {
    "result_form": {
        "en": "a pair: the new ids, and one of the three reasons",
        "ru": "пара: новые ids и одна из трёх причин",
    },
    "greedy_tokens": {
        "en": "each token is the likeliest one after all before it",
        "ru": "каждый токен — самый вероятный после всех прежних",
    },
    "eval_inside": {
        "en": "the model is in eval mode whenever it is called",
        "ru": "при каждом вызове модель в режиме eval",
    },
    "eos": {
        "en": "a new EOS ends the text, is in it, and is the reason",
        "ru": "новый EOS завершает текст, входит в него и назван причиной",
    },
    "length_limit": {
        "en": "never more than max_new_tokens; 0 gives none",
        "ru": "не больше max_new_tokens; 0 не даёт ни одного",
    },
    "context": {
        "en": "prompt and new ids together fill max_length, no more",
        "ru": "затравка и новые ids вместе заполняют max_length, не больше",
    },
    "reason_order": {
        "en": "of several reasons: eos, then length_limit, then context",
        "ru": "причин несколько: eos, затем length_limit, затем context",
    },
    "flag_restored": {
        "en": "afterwards the model is in the mode it was in before",
        "ru": "после вызова модель в том же режиме, что и до него",
    },
    "long_prompt": {
        "en": "a prompt longer than max_length is a ValueError",
        "ru": "затравка длиннее max_length — ValueError",
    },
    "prompt_unchanged": {
        "en": "the caller's prompt is left as it was",
        "ru": "переданная затравка остаётся прежней",
    },
    "repeatable": {
        "en": "the same call, the same answer, whatever came between",
        "ru": "тот же вызов — тот же ответ, что бы ни было между ними",
    },
}


def check_generation_contract(generate: Callable[..., Any]) -> ContractReport:
    """Hold a greedy generation to its tokens, its ends and the mode of the model.

        generate(model, prompt, max_new_tokens, eos_id=None) -> (new_ids, reason)

    The model is `model(ids [T] long) -> logits [T, V]` with `.max_length`, `.training`, `.eval()`
    and `.train(mode)`. The prompt is a list of int; a function that cannot take one gets a long
    tensor. The new ids may be a list, a tuple, an array or a tensor of integers.

    Raises:  ContractViolation when a clause is broken: with a small call and what was measured
    """
    if not callable(generate):
        raise TypeError(f"generate must be a function, got {type(generate).__name__}")
    with quiet_globals():
        try:
            as_tensor = _generation_wants_tensor(generate)
        except NotImplementedError:
            return ContractReport("check_generation_contract", attempted=False)
        subject = ContractSubject(
            "check_generation_contract",
            generate,
            _GENERATION_MEANINGS,
            lambda _: explain_generation(generate, as_tensor=as_tensor),
        )
        clauses = tuple(_generation_clauses(subject, as_tensor))
        calls = [_generation_model_calls(generate, n, as_tensor) for n in (1, 5)]
        figures = {"calls_for_1_token": calls[0], "calls_for_5_tokens": calls[1]}
    return ContractReport(subject.contract, clauses, figures)


def _generation_wants_tensor(generate: Callable[..., Any]) -> bool:
    """Whether the function fails on a list of ids and takes a tensor of them."""
    for as_tensor in (False, True):
        arguments, keywords = generation_arguments(GenerationCase((1, 2), 2), as_tensor=as_tensor)
        try:
            generate(*arguments, **keywords)
        except NotImplementedError:
            raise
        except Exception:
            continue
        return as_tensor
    return False


def _generation_model_calls(generate: Callable[..., Any], count: int, as_tensor: bool) -> int:
    arguments, keywords = generation_arguments(GenerationCase((1, 2), count), as_tensor=as_tensor)
    generate(*arguments, **keywords)
    return len(arguments[0].lengths)


def _generation_clauses(subject: ContractSubject, as_tensor: bool) -> Iterator[ClauseResult]:
    hold = partial(hold_clause, subject)
    answer = partial(judge_generation, as_tensor=as_tensor)
    greedy = [
        GenerationCase(p, n, None, 14) for p in ((1,), (2, 5), (3, 1, 4, 1, 6)) for n in (1, 4)
    ]
    greedy = [replace(case, training=False) for case in greedy]
    greedy += [replace(case, rule="place", name_eos=False) for case in greedy[1:4]]
    greedy += [replace(greedy[3], size=size, vocab_size=5) for size in (1e-3, 300.0)]
    greedy += [replace(greedy[5], vocab_size=400, eos_id=400, max_length=500)]
    modes = [replace(case, training=True) for case in (greedy[1], greedy[3], greedy[6])]
    states = [replace(case, training=mode) for case in greedy[:3] for mode in (True, False)]
    states += [replace(modes[0], max_new_tokens=0), replace(modes[0], max_length=1)]
    states += [replace(modes[0], eos_id=_generation_second(modes[0]))]
    yield hold("result_form", None, partial(judge_generation_form, as_tensor=as_tensor), greedy[:2])
    yield hold("greedy_tokens", None, answer, greedy)
    yield hold("eval_inside", None, partial(judge_generation_mode, as_tensor=as_tensor), modes)
    yield hold("eos", None, answer, generation_eos_cases())
    limits = [replace(case, max_new_tokens=n) for case in greedy[1:4] for n in (0, 1, 2, 3, 7)]
    limits += [replace(limits[0], max_length=size, max_new_tokens=0) for size in (3, 99)]
    yield hold("length_limit", None, answer, limits)
    room = [
        GenerationCase((3, 1, 4)[:length], asked, None, size, training=False)
        for length in (1, 3)
        for size in (length, length + 1, length + 4)
        for asked in (size - length + 1, size + 9)
    ]
    yield hold("context", None, answer, room)
    yield hold("reason_order", None, answer, _generation_order_cases())
    yield hold("flag_restored", None, partial(judge_generation_flag, as_tensor=as_tensor), states)
    long = [
        replace(case, prompt=(3, 1, 4, 1, 5, 2, 6)[:size], max_length=limit, max_new_tokens=asked)
        for case in (greedy[0], replace(greedy[0], eos_id=1, training=True))
        for size, limit in ((2, 1), (4, 3), (7, 3), (7, 6))
        for asked in (1, 3, 9)
    ]
    yield hold("long_prompt", None, partial(judge_generation_refusal, as_tensor=as_tensor), long)
    kept = partial(judge_generation_prompt, as_tensor=as_tensor)
    yield hold("prompt_unchanged", None, kept, [*greedy[:4], room[1], limits[0]])
    again = partial(judge_generation_again, as_tensor=as_tensor)
    yield hold("repeatable", None, again, [greedy[1], greedy[5], modes[0]])


def _generation_second(case: GenerationCase) -> int:
    return generation_by_rule(case)[0][1]


def generation_eos_cases() -> list[GenerationCase]:
    """EOS as the first token, later, never, in the prompt, as token 0, as the last token."""
    script = (6, 5, 4, 3, 2, 1, 0, 3, 2, 6, 5, 4)
    base = GenerationCase((2, 2), 9, 4, 12, rule="script", script=script, training=False)
    cases = [replace(base, eos_id=eos) for eos in (4, 3, 1, 0)]
    cases += [replace(base, eos_id=eos, max_new_tokens=6) for eos in (8, 100)]
    cases += [replace(base, prompt=prompt) for prompt in ((4, 2), (2, 4), (4, 4))]
    inside = replace(base, eos_id=3)
    cases += [replace(inside, prompt=prompt) for prompt in ((3, 2), (2, 3), (3, 3))]
    cases += [replace(inside, prompt=(3, 2), eos_id=6, max_new_tokens=n) for n in (2, 4)]
    zero = replace(base, prompt=(0, 5), eos_id=0, max_new_tokens=7)
    cases += [zero, replace(zero, eos_id=None), replace(zero, eos_id=None, name_eos=False)]
    return [*cases, *(replace(case, training=True) for case in cases[:4])]


def _generation_order_cases() -> list[GenerationCase]:
    """Two or three reasons at once."""
    base = GenerationCase((3, 1), 3, None, 5, training=False)
    tokens, _ = generation_by_rule(base)
    three = replace(base, eos_id=tokens[2]) if tokens[2] not in tokens[:2] else base
    wide = replace(three, max_length=9)
    late = replace(three, max_new_tokens=8)
    first = [replace(base, eos_id=tokens[0], max_new_tokens=1, max_length=n) for n in (3, 9)]
    none = [replace(base, prompt=(3, 1)[:n], max_length=n, max_new_tokens=0) for n in (1, 2)]
    return [base, three, wide, late, *first, *none]
