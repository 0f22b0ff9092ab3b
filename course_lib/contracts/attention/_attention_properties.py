"""Judge attention beyond its numbers: order, neighbours, memory, refusals, gradients."""

import itertools
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from course_lib.contracts.attention._attention_case import (
    AttentionCase,
    attention_inputs,
)
from course_lib.contracts.attention._attention_judge import (
    attention_call,
    attention_compare,
    attention_finite,
)
from course_lib.contracts.engine.candidate import (
    ContractSubject,
)
from course_lib.text import localized

_PROPERTY_FACTS = {
    "twice": {
        "en": "two calls in a row with the same arguments give different results",
        "ru": "два вызова подряд с одними и теми же аргументами дают разные результаты",
    },
    "random": {
        "en": "two calls in a row differ, but agree when torch's generator is reset before each: "
        "it draws random numbers",
        "ru": "два вызова подряд различаются, но совпадают, если перед каждым сбрасывать генератор "
        "torch: функция берёт случайные числа",
    },
    "after_others": {
        "en": "after calls with other arguments the first call gives another result",
        "ru": "после вызовов с другими аргументами повтор первого вызова даёт другой результат",
    },
    "overwritten": {
        "en": "a later call changed the tensors that an earlier call had returned",
        "ru": "следующий вызов изменил тензоры, которые вернул предыдущий",
    },
    "stale": {
        "en": "the arguments hold new numbers, but the result is that of the old ones",
        "ru": "в аргументах уже новые числа, а результат получен по старым",
    },
    "inherited": {
        "en": "just before, a call of the same shape with other numbers was made",
        "ru": "прямо перед этим был вызов той же формы с другими числами",
    },
    "keys_moved": {
        "en": "the keys, their values and their mask were moved on by one place together; the "
        "result must not notice",
        "ru": (
            "ключи, их значения и маска вместе сдвинуты на одно место; результат не должен "
            "измениться"
        ),
    },
    "queries_turned": {
        "en": "the queries were put in reverse order; the rows of the result must follow",
        "ru": "запросы взяты в обратном порядке; строки результата должны переставиться так же",
    },
    "item_alone": {
        "en": "item {place} of the batch, given alone, gets the expected numbers, but others in "
        "the batch",
        "ru": (
            "элемент {place} пакета, взятый отдельно, даёт ожидаемые числа, а внутри пакета — "
            "другие"
        ),
    },
    "row_alone": {
        "en": "query {place}, given alone, gets the expected numbers, but others among the rest",
        "ru": (
            "запрос {place}, взятый отдельно, даёт ожидаемые числа, а вместе с остальными — другие"
        ),
    },
    "decoded": {
        "en": "expected is row {place} of the full causal pass",
        "ru": "ожидается строка {place} полного причинного прохода",
    },
    "wrong_mask": {
        "en": "with [1, 0, 0, …] as its mask the query may read the first key only",
        "ru": "с маской [1, 0, 0, …] запрос вправе читать только первый ключ",
    },
}


def judge_repeatable(subject: ContractSubject, case: AttentionCase) -> float:
    """A, A, B, A: same numbers each time, nothing overwritten, nothing remembered."""
    allowed = None if case.allowed is None else case.allowed.flip(-1)
    other = replace(case, q=case.q.flip(-2) + 1, k=-case.k, v=2 * case.v, allowed=allowed)
    longer = AttentionCase(*attention_inputs(55, 7, 9, 3, 4, 2))
    first = attention_call(subject, case)
    attention_finite(first, case)
    kept = {name: value.clone() for name, value in first.items()}
    second = attention_call(subject, case)
    facts = partial(_attention_twice_facts, subject, case)
    worst = max(
        attention_compare(name, value, kept[name], 1e-12, facts, "twice")
        for name, value in second.items()
    )
    answer = {name: value.clone() for name, value in attention_call(subject, other).items()}
    _attention_agree(first, kept, "overwritten", 0.0)
    attention_call(subject, longer)
    again = attention_call(subject, case)
    worst = max(worst, _attention_agree(again, kept, "after_others", 1e-12))
    moving = replace(case, **{n: t.clone() for n, t in case.arguments().items() if n in "qkv"})
    if allowed is not None:
        moving = replace(moving, allowed=case.allowed.clone())
    attention_call(subject, moving)
    for name, value in other.arguments().items():
        if isinstance(value, Tensor):
            getattr(moving, name).copy_(value)
    _attention_agree(attention_call(subject, moving), answer, "stale", 1e-12)
    return worst


def judge_after_another(subject: ContractSubject, case: AttentionCase) -> float:
    """The numbers are right also just after a call of the same shape with other numbers."""
    allowed = None if case.allowed is None else case.allowed.flip(-1)
    attention_call(subject, replace(case, k=case.k + 1, v=-case.v, allowed=allowed))
    got = attention_call(subject, case)
    attention_finite(got, case)
    want = case.truth._asdict()
    return _attention_agree(got, want, "inherited", 1e-10)


def judge_permutation(subject: ContractSubject, case: AttentionCase) -> float:
    """Moving the keys changes nothing; turning the queries round turns the rows round."""
    base = attention_call(subject, case)
    attention_finite(base, case)
    keys = replace(
        case,
        k=case.k.roll(1, -2),
        v=case.v.roll(1, -2),
        allowed=None if case.allowed is None else case.allowed.roll(1, -1),
    )
    moved = attention_call(subject, keys)
    over_keys = {name: base[name].roll(1, -1) for name in base if name in ("weights", "scores")}
    worst = _attention_agree(moved, {**base, **over_keys}, "keys_moved", 1e-6)
    queries = replace(
        case,
        q=case.q.flip(-2),
        allowed=None if case.allowed is None else case.allowed.flip(-2),
    )
    turned = attention_call(subject, queries)
    rows = {name: value.flip(-1 if name == "empty_rows" else -2) for name, value in base.items()}
    return max(worst, _attention_agree(turned, rows, "queries_turned", 1e-6))


def judge_row_alone(subject: ContractSubject, case: AttentionCase) -> float:
    """Each item of the batch, and each query, gives alone what it gives in company."""
    together = attention_call(subject, case)
    attention_finite(together, case)
    worst = 0.0
    for place in itertools.product(*(range(size) for size in case.joint)):
        alone = attention_call(subject, _attention_item(case, place))
        part = {name: value[place] for name, value in together.items()}
        worst = max(worst, _attention_agree(part, alone, "item_alone", 1e-6, list(place)))
    for row in range(case.q.shape[-2]):
        one = slice(row, row + 1)
        allowed = None if case.allowed is None else case.allowed[..., one, :]
        alone = attention_call(subject, replace(case, q=case.q[..., one, :], allowed=allowed))
        part = {
            name: value[..., one] if name == "empty_rows" else value[..., one, :]
            for name, value in together.items()
        }
        worst = max(worst, _attention_agree(part, alone, "row_alone", 1e-6, row))
    return worst


def judge_cached_decode(subject: ContractSubject, case: AttentionCase) -> float:
    """The last queries alone, as a cache feeds them, against the full causal pass."""
    length = case.k.shape[-2]
    causal = torch.ones(case.q.shape[-2], length, dtype=torch.bool).tril()
    full = attention_call(subject, replace(case, allowed=causal))["output"]
    worst = 0.0
    for start in (case.q.shape[-2] - 1, max(0, case.q.shape[-2] - 2)):
        step = replace(case, q=case.q[..., start:, :], allowed=causal[start:])
        got = attention_call(subject, step)
        attention_finite(got, case)
        facts = partial(localized, _PROPERTY_FACTS["decoded"], place=start)
        worst = max(
            worst, attention_compare("output", got["output"], full[..., start:, :], 1e-10, facts)
        )
    wrong = replace(step, q=case.q[..., -1:, :], allowed=causal[:1])
    got = attention_call(subject, wrong)["output"]
    facts = partial(localized, _PROPERTY_FACTS["wrong_mask"])
    worst = max(worst, attention_compare("output", got, wrong.truth.output, 1e-10, facts))
    distance = (got - full[..., -1:, :]).abs().max().item()
    figures = subject.figures
    figures["wrong_cache_mask_max_error"] = max(
        distance, figures.get("wrong_cache_mask_max_error", 0.0)
    )
    return worst


def _attention_twice_facts(subject: ContractSubject, case: AttentionCase) -> str:
    """Whether a reset of the generator, and nothing else, makes many calls in a row agree."""
    free, reset = [], []
    for outputs, before in ((free, lambda: None), (reset, _attention_reset)):
        for _ in range(40):
            before()
            outputs.append(attention_call(subject, case)["output"].clone())
    free_agree, reset_agree = (
        all(torch.equal(outputs[0], output) for output in outputs) for outputs in (free, reset)
    )
    fact = "random" if reset_agree and not free_agree else "twice"
    return localized(_PROPERTY_FACTS[fact])


def _attention_reset() -> None:
    torch.default_generator.manual_seed(0)


def _attention_item(case: AttentionCase, place: tuple[int, ...]) -> AttentionCase:
    rows = (case.q.shape[-2], case.k.shape[-2])
    allowed = None if case.allowed is None else case.allowed.expand(case.joint + rows)[place]
    q, k, v = (
        tensor.expand(case.joint + tensor.shape[-2:])[place] for tensor in (case.q, case.k, case.v)
    )
    return replace(case, q=q, k=k, v=v, allowed=allowed)


def _attention_agree(
    got: dict[str, Tensor], want: dict[str, Tensor], fact: str, tolerance: float, place: object = ""
) -> float:
    """Compare two results of the candidate, field by field."""
    facts = partial(localized, _PROPERTY_FACTS[fact], place=place)
    return max(
        attention_compare(name, value, want[name], tolerance, facts, kind=fact)
        for name, value in got.items()
    )
