"""Batches of prompts, and what their rows are held to."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from course_lib.contracts.batching.observer import BatchObserver, Prompts, listed
from course_lib.contracts.cache.logits import read_logits, scribble_over
from course_lib.contracts.engine.candidate import Breach, call_candidate
from course_lib.contracts.engine.subject import Subject
from course_lib.text import say

# fmt: off
_FACTS = {
    "rows": "rows that differ from the prompt alone (of {total}): {rows} | "
    "строки, где ответ не такой, как на тот же промпт в одиночку (из {total}): {rows}",
    "shorter": "just the shorter prompts | это как раз более короткие промпты",
    "longer": "just the longer prompts | это как раз более длинные промпты",
    "another prompt": "row {row} is what another prompt of the batch gives | "
    "строка {row} — это ответ на другой промпт батча",
    "last token missing": "row {row} is what the prompt gives without its last token | "
    "строка {row} — это ответ на промпт без последнего токена",
    "first token missing": "row {row} is what the prompt gives without its first token | "
    "строка {row} — это ответ на промпт без первого токена",
    "front only": "row {row} is what the front part of the prompt gives | "
    "строка {row} — это ответ на одно лишь начало промпта",
    "end only": "row {row} is what the end part of the prompt gives | "
    "строка {row} — это ответ на один лишь конец промпта",
    "after the prompts before it":
        "row {row} is what the prompt gives after all prompts before it | "
        "строка {row} — это ответ на все предыдущие промпты и этот вслед за ними",
    "with padding in front": "row {row} is what padding and then the prompt give | "
    "строка {row} — это ответ на паддинг и промпт вслед за ним",
    "with padding behind": "row {row} is what the prompt and then padding give | "
    "строка {row} — это ответ на промпт и паддинг вслед за ним",
    "trace": "the same batch gives other logits after another batch | "
    "тот же батч после другого батча даёт другие логиты",
    "overwritten":
        "a later call changed an earlier result | следующий вызов изменил прежний результат",
    "came back": "the caller wrote into a result, and it came back | "
    "то, что записали в прежний результат, оказалось в новом",
    "edited": "the prompts became {after} | промпты стали такими: {after}",
}
# fmt: on


@dataclass(frozen=True)
class BatchCase:
    """The prompts of a batch; `between` is a batch that is given between two calls."""

    prompts: Prompts
    between: Prompts = ()

    def arguments(self) -> dict[str, Any]:
        """Name the arguments, for a message and for calling again."""
        named = {"prompts": listed(self.prompts)}
        if self.between:
            named["prompts_between"] = listed(self.between)
        return named

    def smaller(self) -> Iterator["BatchCase"]:
        """One prompt less, then one token less."""
        if self.between:
            return
        for place in range(len(self.prompts)):
            rest = (*self.prompts[:place], *self.prompts[place + 1 :])
            if rest:
                yield replace(self, prompts=rest)
        for place, prompt in enumerate(self.prompts):
            for shorter in (prompt[1:], prompt[:-1]):
                if shorter:
                    cut = (*self.prompts[:place], shorter, *self.prompts[place + 1 :])
                    yield replace(self, prompts=cut)


def _call(seen: BatchObserver, prompts: Prompts) -> tuple[np.ndarray, Any]:
    raw = call_candidate(seen.batch, listed(prompts))
    return read_logits(raw, (len(prompts), seen.vocab_size)).values.copy(), raw


def _one_by_one(seen: BatchObserver, prompts: Prompts) -> np.ndarray:
    shape = (seen.vocab_size,)
    rows = [read_logits(call_candidate(seen.one, list(each)), shape).values for each in prompts]
    return np.stack(rows)


def formed(subject: Subject, case: BatchCase, allowed: float) -> float:
    """Demand numbers of the right shape from both functions."""
    seen = subject.seen
    _one_by_one(seen, case.prompts)
    _call(seen, case.prompts)
    return 0.0


def rows_alone(subject: Subject, case: BatchCase, allowed: float) -> float:
    """Each row must equal its prompt alone."""
    seen = subject.seen
    want = _one_by_one(seen, case.prompts)
    got, _ = _call(seen, case.prompts)
    return seen.compared(got, want, "wrong", partial(_row_facts, seen, case, got, want))


def _row_facts(seen: BatchObserver, case: BatchCase, got: np.ndarray, want: np.ndarray) -> str:
    """Which rows are wrong, how their lengths compare, and what the first of them equals."""
    lengths = [len(prompt) for prompt in case.prompts]
    wrong = [n for n in range(len(want)) if not seen.same(got[n], want[n])]
    rows = ", ".join(map(str, wrong[:8])) + (" …" if len(wrong) > 8 else "")
    told = [say(_FACTS["rows"], rows=rows, total=len(want))]
    for name, end in (("shorter", max(lengths)), ("longer", min(lengths))):
        if wrong and wrong == [n for n, length in enumerate(lengths) if length != end]:
            told.append(say(_FACTS[name]))
            break
    label = seen.label(case.prompts, wrong[0]) if wrong else ""
    if label in _FACTS:
        told.append(say(_FACTS[label], row=wrong[0]))
    return "; ".join(told)


def repeated(subject: Subject, case: BatchCase, allowed: float) -> float:
    """The first batch of all, again, with others of the same shape and of other shapes between."""
    seen = subject.seen
    kept, worst = seen.first, 0.0
    alone = _one_by_one(seen, case.prompts)
    for other in (case.between, case.prompts[:1], case.between[:2], case.between * 2):
        got, _ = _call(seen, case.prompts)
        if kept is None:
            return 0.0  # what the first call was will be said by another clause
        facts = say(_FACTS["trace"])
        worst = max(worst, seen.compared(got, kept, "trace", facts))
        _call(seen, other)
        again = _one_by_one(seen, case.prompts)
        worst = max(worst, seen.compared(again, alone, "trace", facts))
    return worst


def results_kept(subject: Subject, case: BatchCase, allowed: float) -> float:
    """Later calls leave earlier results alone, and what is written into one does not return."""
    seen = subject.seen
    kept, raw = _call(seen, case.prompts)
    _call(seen, tuple(prompt[::-1] for prompt in case.prompts))
    _call(seen, tuple(seen.prompt(len(prompt), 9) for prompt in case.prompts))
    now = read_logits(raw, kept.shape).values
    facts = say(_FACTS["overwritten"])
    seen.compared(now, kept, "overwritten", facts)
    single = call_candidate(seen.one, list(case.prompts[0]))
    alone = read_logits(single, (seen.vocab_size,)).values.copy()
    call_candidate(seen.one, list(seen.prompt(len(case.prompts[0]), 9)))
    now = read_logits(single, alone.shape).values
    seen.compared(now[None], alone[None], "overwritten", facts)
    scribble_over(raw)
    got, _ = _call(seen, case.prompts)
    return seen.compared(got, kept, "came back", say(_FACTS["came back"]))


def prompts_kept(subject: Subject, case: BatchCase, allowed: float) -> float:
    """The prompts must be as they were, after both functions."""
    seen = subject.seen
    before, together, apart = (listed(case.prompts) for _ in range(3))
    call_candidate(seen.batch, together)
    for prompt in apart:
        call_candidate(seen.one, prompt)
    for after in (together, apart):
        if after != before:
            facts = say(_FACTS["edited"], after=after)
            raise Breach("edited", str(after), str(before), facts=facts)
    return 0.0
