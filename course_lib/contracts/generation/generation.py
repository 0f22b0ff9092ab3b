"""The contract of greedy generation: which tokens, where it ends, and for which reason."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial, wraps
from typing import Any

import torch

from course_lib.contracts.engine.clause import Clause, Contract
from course_lib.contracts.engine.diagnosis import Diagnosis, diagnose
from course_lib.contracts.engine.look import outcome, probed
from course_lib.contracts.engine.subject import Subject, Terms
from course_lib.contracts.engine.watch import Probe
from course_lib.contracts.generation import judges
from course_lib.contracts.generation.mistakes import GENERATION_MISTAKES, Answer
from course_lib.contracts.generation.model import GenerationCase, generation_by_rule
from course_lib.report import ContractReport


def _observe(generate: Callable[..., Any], options: Mapping[str, Any]) -> Callable[..., Any]:
    """The function as one that takes a list of ids, also if it takes nothing but a tensor."""
    for taking in (generate, _taking_lists(generate)):
        try:
            GenerationCase((1, 2), 2).fresh().to(taking)
        except NotImplementedError:
            raise
        except Exception:
            continue
        return taking
    return generate


def _taking_lists(generate: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(generate)  # so that an error still shows the line of the candidate
    def taking(model: Any, prompt: list[int], *rest: Any, **named: Any) -> Any:
        ids = torch.tensor(prompt)
        result = generate(model, ids, *rest, **named)
        prompt[:] = ids.tolist()  # what became of the one is seen on the other
        return result

    return taking


def _clauses(subject: Subject) -> list[Clause]:
    prompts = ((1,), (2, 5), (3, 1, 4, 1, 6))
    greedy = [GenerationCase(p, n, None, 14, training=False) for p in prompts for n in (1, 4)]
    greedy += [replace(case, rule="place", name_eos=False) for case in greedy[1:4]]
    greedy += [replace(greedy[3], size=size, vocab_size=5) for size in (1e-3, 300.0)]
    greedy += [replace(greedy[5], vocab_size=400, eos_id=400, max_length=500)]
    modes = [replace(case, training=True) for case in (greedy[1], greedy[3], greedy[6])]
    states = [replace(case, training=mode) for case in greedy[:3] for mode in (True, False)]
    states += [replace(modes[0], max_new_tokens=0), replace(modes[0], max_length=1)]
    states += [replace(modes[0], eos_id=generation_by_rule(modes[0])[0][1])]
    limits = [replace(case, max_new_tokens=n) for case in greedy[1:4] for n in (0, 1, 2, 3, 7)]
    limits += [replace(limits[0], max_length=size, max_new_tokens=0) for size in (3, 99)]
    room = _context_cases()
    # fmt: off
    return [
        Clause("result_form", "a pair: the new ids, and one of the three reasons | "
               "пара: новые ids и одна из трёх причин", judges.formed, greedy[:2]),
        Clause("greedy_tokens", "each token is the likeliest one after all before it | "
               "каждый токен — самый вероятный после всех прежних", judges.right, greedy),
        Clause("eval_inside", "the model is in eval mode whenever it is called | "
               "при каждом вызове модель в режиме eval", judges.in_eval, modes),
        Clause("eos", "a new EOS ends the text, is in it, and is the reason | "
               "новый EOS завершает текст, входит в него и назван причиной",
               judges.right, _eos_cases()),
        Clause("length_limit", "never more than max_new_tokens; 0 gives none | "
               "не больше max_new_tokens; 0 не даёт ни одного", judges.right, limits),
        Clause("context", "prompt and new ids together fill max_length, no more | "
               "промпт и новые ids вместе заполняют max_length, не больше", judges.right, room),
        Clause("reason_order", "of several reasons: eos, then length_limit, then context | "
               "причин несколько: eos, затем length_limit, затем context",
               judges.right, _order_cases()),
        Clause("flag_restored", "afterwards the model is in the mode it was in before | "
               "после вызова модель в том же режиме, что и до него", judges.flag_restored, states),
        Clause("long_prompt", "a prompt longer than max_length is a ValueError | "
               "промпт длиннее max_length — ValueError", judges.refused, _long_cases()),
        Clause("prompt_unchanged", "the caller's prompt is left as it was | "
               "переданный промпт остаётся прежним",
               judges.prompt_kept, [*greedy[:4], room[1], limits[0]]),
        Clause("repeatable", "the same call, the same answer, whatever came between | "
               "тот же вызов — тот же ответ, что бы ни было между ними",
               judges.again, [greedy[1], greedy[5], modes[0]]),
    ]
    # fmt: on


def _eos_cases() -> list[GenerationCase]:
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


def _context_cases() -> list[GenerationCase]:
    """A context that is full at once, after one token and after several."""
    return [
        GenerationCase((3, 1, 4)[:length], asked, None, size, training=False)
        for length in (1, 3)
        for size in (length, length + 1, length + 4)
        for asked in (size - length + 1, size + 9)
    ]


def _order_cases() -> list[GenerationCase]:
    """Two or three reasons at once."""
    base = GenerationCase((3, 1), 3, None, 5, training=False)
    tokens, _ = generation_by_rule(base)
    three = replace(base, eos_id=tokens[2]) if tokens[2] not in tokens[:2] else base
    wide = replace(three, max_length=9)
    late = replace(three, max_new_tokens=8)
    first = [replace(base, eos_id=tokens[0], max_new_tokens=1, max_length=n) for n in (3, 9)]
    none = [replace(base, prompt=(3, 1)[:n], max_length=n, max_new_tokens=0) for n in (1, 2)]
    return [base, three, wide, late, *first, *none]


def _long_cases() -> list[GenerationCase]:
    """Prompts that are too long by one token or by several."""
    base = GenerationCase((1,), 1, None, 14, training=False)
    return [
        replace(case, prompt=(3, 1, 4, 1, 5, 2, 6)[:size], max_length=limit, max_new_tokens=asked)
        for case in (base, replace(base, eos_id=1, training=True))
        for size, limit in ((2, 1), (4, 3), (7, 3), (7, 6))
        for asked in (1, 3, 9)
    ]


def _figures(subject: Subject, measured: dict[str, Any]) -> dict[str, int]:
    """How often the model is called: once a token, unless a function calls it for nothing."""
    figures = {}
    for count, name in ((1, "calls_for_1_token"), (5, "calls_for_5_tokens")):
        given = GenerationCase((1, 2), count).fresh()
        given.to(subject.seen)
        figures[name] = len(given.values["model"].lengths)
    return figures


def _probes() -> list[Probe]:
    plain = GenerationCase((4, 1), 4, max_length=11, rule="script", script=tuple(range(9)))
    sums = GenerationCase((3, 1, 4), 4, None, 10, 9)
    script = partial(replace, plain, vocab_size=9)
    ends = script(prompt=(1,), script=(3, 2, 1, 0, 4, 5), max_new_tokens=4)
    crowded = script(prompt=(4, 1, 2, 2), max_length=6, eos_id=5, max_new_tokens=5)
    answers = [
        sums,
        GenerationCase((5,), 3, None, 9, 8, training=False),
        replace(sums, level=500.0),
        GenerationCase((2, 6), 3, 99, 9, 8, "place"),
        script(eos_id=4, max_new_tokens=6),
        script(eos_id=2),
        script(prompt=(8, 4, 8), eos_id=8, max_new_tokens=3),
        script(eos_id=5),
        crowded,
        script(prompt=(4, 1, 2), max_length=6, max_new_tokens=9),
        script(prompt=(4, 1, 2), max_length=6, max_new_tokens=3),
        script(prompt=(4, 1, 2, 3), max_length=4, max_new_tokens=2),
        script(max_new_tokens=0),
        script(prompt=(4, 1, 2, 3), max_length=4, max_new_tokens=0),
        replace(ends, eos_id=0),
        replace(ends, name_eos=False),
    ]
    long = [
        script(prompt=(1, 2, 3, 4, 5), max_length=4, max_new_tokens=2),
        script(prompt=(1, 2, 3, 4, 5, 6, 7), max_length=4, max_new_tokens=5),
    ]
    return [
        *probed(*answers, look=_answer),
        *probed(*long, look=lambda case, generate: outcome(case, generate) and "answered"),
        *probed(sums, replace(sums, training=False), look=_after),
        *probed(replace(long[0], training=True), look=_refused, core=False),
        *probed(crowded, look=_after, core=False),
    ]


def _reference(model: Any, prompt: Any, max_new_tokens: int, eos_id: Any = None) -> Answer:
    """Right, by the rule of the model alone."""
    case = replace(model.case, prompt=tuple(prompt), max_new_tokens=max_new_tokens, eos_id=eos_id)
    return generation_by_rule(case)


def _answer(case: GenerationCase, generate: Any) -> list[Any]:
    if case.eos_id is None:  # an earlier EOS must not be remembered, nor taken for a default
        generate(case.model(), list(case.prompt), 1, 10**6)
    new_ids, reason = outcome(case, generate)
    return [[int(token) for token in new_ids], str(reason)]


def _after(case: GenerationCase, generate: Any) -> list[bool]:
    """What has become of the arguments: the mode, whether the model was overfed, the prompt."""
    given = case.fresh()
    given.to(generate)
    model, prompt = given.values["model"], given.values["prompt"]
    return [model.training, model.overfed, tuple(prompt) == case.prompt]


def _refused(case: GenerationCase, generate: Any) -> str:
    """In which mode a refusal leaves the model."""
    given = case.fresh()
    try:
        given.to(generate)
    except ValueError:
        return "refused" if given.values["model"].training else "refused in eval mode"
    return "answered"


def _explain(subject: Subject) -> Diagnosis:
    """Name the catalogued mistakes that give the candidate's answers on fresh calls."""
    return diagnose(subject.seen, GENERATION_MISTAKES, _probes(), _reference)


GENERATION = Contract(
    "generation", Terms("generate"), _clauses, _explain, figures=_figures, observe=_observe
)


def check_generation_contract(generate: Callable[..., Any]) -> ContractReport:
    """Hold a greedy generation to its tokens, its ends and the mode of the model.

        generate(model, prompt, max_new_tokens, eos_id=None) -> (new_ids, reason)

    The model is `model(ids [T] long) -> logits [T, V]` with `.max_length`, `.training`, `.eval()`
    and `.train(mode)`. The prompt is a list of int; a function that cannot take one gets a long
    tensor. The new ids may be a list, a tuple, an array or a tensor of integers.

    Raises:  ContractViolation when a clause is broken: with a small call and what was measured
    """
    return GENERATION.check(generate)
