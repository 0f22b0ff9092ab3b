"""Name a model that is not causal by the pattern of what moves what, whatever its weights are."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.causality.mistakes import CAUSALITY_MISTAKES, VOCAB_SIZE, tiny_causal_lm
from course_lib.contracts.causality.texts import (
    CausalityTexts,
    Rows,
    causality_tolerance,
    ids_for,
    logits_apart,
    reseed,
)
from course_lib.contracts.engine.diagnosis import Diagnosis, diagnose
from course_lib.contracts.engine.subject import Subject
from course_lib.contracts.engine.watch import Probe

Model = Callable[..., Any]


def explain(subject: Subject) -> Diagnosis:
    """Compare patterns on texts that the candidate and the catalogue's models can both read."""
    size, length = min(subject.seen.vocab_size, VOCAB_SIZE), subject.seen.length
    seen: dict[int, tuple[Any, list[Any]]] = {}

    def look(model: Model, number: int) -> Any:
        """Make all the calls for a model once; kept with the model, or its id would be reused."""
        if id(model) not in seen:
            seen[id(model)] = (model, _patterns(model, size, length))
        return seen[id(model)][1][number]

    probes = [Probe(partial(look, number=number)) for number in range(5)]
    with torch.no_grad():
        return diagnose(subject.candidate, CAUSALITY_MISTAKES, probes, tiny_causal_lm())


def _patterns(model: Model, size: int, length: int) -> list[Any]:
    """What moves what: in calls, by length, by place, by item, by padding."""

    def texts(most: int) -> CausalityTexts:
        """Without id 0, where there are enough others: it may be padding."""
        return CausalityTexts(size, min(length, most), seed=23, least=1 if size > 2 else 0)

    try:
        calls = _pattern_of_calls(model, texts(4))
        if not all(calls[:3]):
            return [calls, *["unsteady"] * 4]
        lengths = _pattern_of_lengths(model, texts(96))
        if lengths not in ("every length", "causal"):
            return [calls, lengths, *["by length"] * 3]
        places = _pattern_of_places(model, texts(8))
        return [
            *(calls, lengths, places),
            *(look(model, texts(4)) for look in (_pattern_of_items, _pattern_of_padding)),
        ]
    except Exception as error:
        return [f"raised {type(error).__name__}"] * 5


def _moved(model: Model, before: Rows | Tensor, after: Rows, seed: int | None = None) -> Tensor:
    """Which places of which items move; `before` may be logits that are known already. [B, T]"""
    logits: list[Tensor] = []
    for texts in (before, after):
        if seed is not None:
            reseed(seed)
        known = texts if isinstance(texts, Tensor) else model(ids_for(model, texts))
        logits.append(known.detach().clone())
    one, other = logits
    return ~(logits_apart(one, other).amax(-1) <= causality_tolerance(one.dtype))


def _is_steady(model: Model, text: tuple[int, ...]) -> bool:
    return not any(_moved(model, (text,), (text,)).any() for _ in range(3))


def _pattern_of_places(model: Model, texts: CausalityTexts) -> str | list[Any]:
    """Which later tokens are read, in words where there are words for it."""
    moves = torch.zeros(texts.length, texts.length, dtype=torch.bool)  # place i, by token j
    for _ in range(2):
        text = texts.text()
        base = model(ids_for(model, (text,))).detach().clone()
        for place in range(texts.length):
            for token in {texts.other(text[place]) for _ in range(2)}:
                changed = texts.changed_at(text, place, token)
                moves[:, place] |= _moved(model, base, (changed,))[0].cpu()
    future = sorted((i, j) for i, j in moves.nonzero().tolist() if j > i)
    if not future:
        return "causal"
    last = moves[-1, :-1].any().item()
    own = moves.diagonal()[-1].item()
    return [named_pattern(future, texts.length), last, own]


def named_pattern(future: list[tuple[int, int]], length: int) -> str:
    """A word for a set of pairs: place i reads the later token j."""
    pairs = [(i, j) for i in range(length) for j in range(i + 1, length)]
    patterns = {"all": pairs}
    for reach in range(1, length - 1):
        chunk, whole = reach + 1, length // (reach + 1) * (reach + 1)
        blocks = [(i, j) for i, j in pairs if i // chunk == j // chunk]
        shapes = {
            "near": [(i, j) for i, j in pairs if j - i <= reach],
            "chunks": blocks if length >= chunk + 2 else [],  # one chunk may be a prefix
            "whole chunks": [pair for pair in blocks if pair[1] < whole >= 2 * chunk],
            "end": [pair for pair in pairs if pair[1] >= length - reach],
            "circle": [(i, j) for i, j in pairs if (i - j) % length <= reach],
        }
        patterns.update({f"{name} {reach}": shape for name, shape in shapes.items()})
    found = [name.split()[0] for name, pattern in patterns.items() if pattern == future]
    words = {"whole": "chunks", "circle": "end"}
    return words.get(found[0], found[0]) if found else str(future)


def _pattern_of_lengths(model: Model, texts: CausalityTexts) -> str:
    """At which lengths a single text leaks; three texts must agree."""
    lengths = sorted({n for n in (2, 3, 4, 5, 8, texts.length) if n <= texts.length})
    leaks = []
    for number in lengths:
        found = {_text_leaks(model, texts, number) for _ in range(3)}
        if len(found) > 1:
            return "some texts only"
        leaks.append(found.pop())
    first = leaks.index(True) if True in leaks else 0
    if all(leaks) or not any(leaks):
        return "every length" if leaks[-1] else "causal"
    if all(leaks[first:]) and _is_open_from_somewhere(model, texts):
        return "long texts only"
    return str(leaks)


def _is_open_from_somewhere(model: Model, texts: CausalityTexts) -> bool:
    """Whether all tokens from some place on are read from before it, as beyond a mask's end."""
    text = texts.text()
    base = model(ids_for(model, (text,))).detach().clone()
    moved = {
        place: _moved(model, base, (texts.changed_at(text, place),))[0]
        for place in texts.places(texts.length, most=16)
    }
    read = [place for place in moved if moved[place][0]]
    begin = min(read, default=texts.length)
    alike = read == [place for place in moved if place >= begin]
    return alike and bool(moved[begin][begin - 1]) and (begin == 1 or len(read) > 1)


def _text_leaks(model: Model, texts: CausalityTexts, length: int) -> bool:
    """Whether the first place moves with all later tokens, or any place with the last one."""
    text = texts.text(length)
    later, last = texts.changed_from(text, 1), texts.changed_at(text, length - 1)
    return bool(_moved(model, (text,), (later,))[0, 0]) or _reads_last(model, text, last)


def _reads_last(model: Model, text: tuple[int, ...], last: tuple[int, ...]) -> bool:
    """Whether an earlier place moves when the last token is another."""
    return bool(_moved(model, (text,), (last,))[0, :-1].any())


def _pattern_of_items(model: Model, texts: CausalityTexts) -> str | list[Any]:
    """Whether items move one another, and which of them read their own future."""
    rows = texts.rows(3, texts.length)
    moved = _moved(model, rows, (rows[0], texts.changed_from(rows[1], 0), rows[2]))
    if moved[0].any() or moved[2].any():
        return "items"
    later = tuple(texts.changed_from(row, 1) for row in rows)
    return _moved(model, rows, later)[:, 0].tolist()


def _pattern_of_padding(model: Model, texts: CausalityTexts) -> str | list[bool]:
    """Whether the future is read in texts with id 0 and in texts without."""
    if not texts.least:
        return "no such texts"
    last = texts.length - 1
    rows = (texts.text(), (0,) * last + (1,))
    return [_reads_last(model, text, texts.changed_at(text, last)) for text in rows]


def _pattern_of_calls(model: Model, texts: CausalityTexts) -> list[bool]:
    """Whether equal calls are equal: at once, with equal chance, after others; ids unchanged."""
    text, other = texts.text(), texts.text()
    model(ids_for(model, (text,)))
    plain = not any(_moved(model, (text,), (text,)).any() for _ in range(3))
    seeded = not _moved(model, (text,), (text,), seed=3).any()
    model(ids_for(model, (other,)))
    one = model(ids_for(model, (text,))).detach().clone()
    model(ids_for(model, (other[1:] + other[:1],)))
    after = not _moved(model, one, (text,)).any()
    ends = (texts.least, texts.vocab_size - 1)
    ids = ids_for(model, tuple((token,) * texts.length for token in ends))
    kept = ids.clone()
    model(ids)
    return [plain, seeded, bool(after), torch.equal(ids, kept)]
