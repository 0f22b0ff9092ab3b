"""Name a model that is not causal by the pattern of what moves what, whatever its weights are."""

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_lib.contracts.causality.mistakes import CAUSALITY_MISTAKES
from course_lib.contracts.causality.texts import (
    CausalityTexts,
    Rows,
    causality_tolerance,
    ids_for,
    logits_apart,
)
from course_lib.contracts.causality.tiny_lm import VOCAB_SIZE, tiny_causal_lm
from course_lib.contracts.engine.diagnosis import Diagnosis, diagnose
from course_lib.contracts.engine.subject import Subject
from course_lib.contracts.engine.watch import Probe


def explain(subject: Subject) -> Diagnosis:
    """Compare patterns on texts that the candidate and the catalogue's models can both read."""
    size, length = min(subject.seen.vocab_size, VOCAB_SIZE), subject.seen.length
    seen: dict[int, tuple[Any, list]] = {}

    def look(model: Callable[..., Any], number: int) -> Any:
        """Make all the calls for a model once; kept with the model, or its id would be reused."""
        if id(model) not in seen:
            seen[id(model)] = (model, _patterns(model, size, length))
        return seen[id(model)][1][number]

    probes = [Probe(partial(look, number=number)) for number in range(5)]
    with torch.no_grad():
        return diagnose(subject.candidate, CAUSALITY_MISTAKES, probes, tiny_causal_lm())


def _patterns(model: Callable[..., Any], size: int, length: int) -> list:
    """What moves what: in calls, by length, by place, by item, by padding."""
    try:
        calls = _pattern_of_calls(model, size, length)
        if not all(calls[:3]):
            return [calls, *["unsteady"] * 4]
        lengths = _pattern_of_lengths(model, size, length)
        if lengths not in ("every length", "causal"):
            return [calls, lengths, *["by length"] * 3]
        looks = (_pattern_of_places, _pattern_of_items, _pattern_of_padding)
        return [calls, lengths, *(look(model, size, length) for look in looks)]
    except Exception as error:
        return [f"raised {type(error).__name__}"] * 5


def _pattern_texts(size: int, length: int, most: int) -> CausalityTexts:
    return CausalityTexts(size, min(length, most), seed=23)


def _least_id(size: int) -> int:
    """Texts without id 0, where there are enough others: it may be padding."""
    return 1 if size > 2 else 0


def _moved(
    model: Callable[..., Any], before: Rows | Tensor, after: Rows, seed: int | None = None
) -> Tensor:
    """Which places of which items move; `before` may be logits that are known already. [B, T]"""
    logits = [before] if isinstance(before, Tensor) else []
    for rows in (before, after)[len(logits) :]:
        if seed is not None:
            random.seed(seed)
            np.random.seed(seed)
            torch.default_generator.manual_seed(seed)
        logits.append(model(ids_for(model, rows)).detach().clone())
    apart = logits_apart(*logits)
    return ~(apart.amax(-1) <= causality_tolerance(logits[0].dtype))


def _is_steady(model: Callable[..., Any], text: tuple[int, ...]) -> bool:
    return not any(_moved(model, (text,), (text,)).any() for _ in range(3))


def _influence(model: Callable[..., Any], texts: CausalityTexts, least: int) -> Tensor:
    """Whether place i moves with token j, for some text and some other token. [T, T]"""
    length = texts.length
    moves = torch.zeros(length, length, dtype=torch.bool)
    for _ in range(2):
        text = texts.text(length, least=least)
        base = model(ids_for(model, (text,))).detach().clone()
        for place in range(length):
            for token in {texts.other(text[place], least=least) for _ in range(2)}:
                changed = texts.changed_at(text, place, token)
                moves[:, place] |= _moved(model, base, (changed,))[0].cpu()
    return moves


def _pattern_of_places(model: Callable[..., Any], size: int, length: int) -> str | list:
    """Which later tokens are read, in words where there are words for it."""
    texts, least = _pattern_texts(size, length, 8), _least_id(size)
    moves = _influence(model, texts, least)
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


def _pattern_of_lengths(model: Callable[..., Any], size: int, length: int) -> str:
    """At which lengths a single text leaks; three texts must agree."""
    texts, least = _pattern_texts(size, length, 96), _least_id(size)
    lengths = sorted({n for n in (2, 3, 4, 5, 8, texts.length) if n <= texts.length})
    leaks = []
    for number in lengths:
        found = {_text_leaks(model, texts, number, least) for _ in range(3)}
        if len(found) > 1:
            return "some texts only"
        leaks.append(found.pop())
    first = leaks.index(True) if True in leaks else 0
    if all(leaks) or not any(leaks):
        return "every length" if leaks[-1] else "causal"
    if all(leaks[first:]) and _is_open_from_somewhere(model, texts, least):
        return "long texts only"
    return str(leaks)


def _is_open_from_somewhere(model: Callable[..., Any], texts: CausalityTexts, least: int) -> bool:
    """Whether all tokens from some place on are read from before it, as beyond a mask's end."""
    text = texts.text(texts.length, least=least)
    base = model(ids_for(model, (text,))).detach().clone()
    moved = {
        place: _moved(
            model, base, (texts.changed_at(text, place, texts.other(text[place], least=least)),)
        )[0]
        for place in texts.places(texts.length, most=16)
    }
    read = [place for place in moved if moved[place][0]]
    begin = min(read, default=texts.length)
    alike = read == [place for place in moved if place >= begin]
    return alike and bool(moved[begin][begin - 1]) and (begin == 1 or len(read) > 1)


def _text_leaks(model: Callable[..., Any], texts: CausalityTexts, length: int, least: int) -> bool:
    """Whether the first place moves with all later tokens, or any place with the last one."""
    text = texts.text(length, least=least)
    later = (text[0], *(texts.other(token, least=least) for token in text[1:]))
    last = texts.changed_at(text, length - 1, texts.other(text[-1], least=least))
    return bool(_moved(model, (text,), (later,))[0, 0]) or bool(
        _moved(model, (text,), (last,))[0, :-1].any()
    )


def _pattern_of_items(model: Callable[..., Any], size: int, length: int) -> str | list:
    """Whether items move one another, and which of them read their own future."""
    texts, least = _pattern_texts(size, length, 4), _least_id(size)
    rows = tuple(texts.text(texts.length, least=least) for _ in range(3))
    other = tuple(texts.other(token, least=least) for token in rows[1])
    moved = _moved(model, rows, (rows[0], other, rows[2]))
    if moved[0].any() or moved[2].any():
        return "items"
    later = tuple((row[0], *(texts.other(token, least=least) for token in row[1:])) for row in rows)
    return _moved(model, rows, later)[:, 0].tolist()


def _pattern_of_padding(model: Callable[..., Any], size: int, length: int) -> str | list:
    """Whether the future is read in texts with id 0 and in texts without."""
    texts = _pattern_texts(size, length, 4)
    if size < 3:
        return "no such texts"
    plain, padded = texts.text(texts.length, least=1), (0,) * (texts.length - 1) + (1,)
    leaks = []
    for text in (plain, padded):
        changed = texts.changed_at(text, texts.length - 1, texts.other(text[-1], least=1))
        leaks.append(bool(_moved(model, (text,), (changed,))[0, :-1].any()))
    return leaks


def _pattern_of_calls(model: Callable[..., Any], size: int, length: int) -> list[bool]:
    """Whether equal calls are equal: at once, with equal chance, after others; ids unchanged."""
    texts, least = _pattern_texts(size, length, 4), _least_id(size)
    text, other = (texts.text(texts.length, least=least) for _ in range(2))
    model(ids_for(model, (text,)))
    plain = _is_steady(model, text)
    seeded = not _moved(model, (text,), (text,), seed=3).any()
    model(ids_for(model, (other,)))
    one = model(ids_for(model, (text,))).detach().clone()
    model(ids_for(model, (other[1:] + other[:1],)))
    two = model(ids_for(model, (text,))).detach()
    after = bool((logits_apart(one, two) <= causality_tolerance(one.dtype)).all())
    ids = torch.cat([ids_for(model, ((token,) * texts.length,)) for token in (least, size - 1)])
    kept = ids.clone()
    model(ids)
    return [plain, seeded, after, torch.equal(ids, kept)]
