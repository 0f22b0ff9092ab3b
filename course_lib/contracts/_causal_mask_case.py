"""Calls of a causal mask, their right answers, and the wrong rules that can be told apart."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts._candidate import ContractSubject
from course_lib.contracts._deviations import describe_deviations


@dataclass(frozen=True)
class MaskCase:
    """One call of a causal mask; `query_offset` None leaves the argument out."""

    t_q: int
    t_k: int
    query_offset: int | None = None

    def arguments(self) -> dict[str, Any]:
        """Name the arguments, for a message and for calling again."""
        named = {"t_q": self.t_q, "t_k": self.t_k}
        return named if self.query_offset is None else {**named, **self.keywords}

    @property
    def keywords(self) -> dict[str, int]:
        """The arguments by name."""
        return {} if self.query_offset is None else {"query_offset": self.query_offset}

    def smaller(self) -> Iterator["MaskCase"]:
        """Halve a size, then take one away; the offset last."""
        for name in ("t_q", "t_k", "query_offset"):
            size = getattr(self, name)
            least = 0 if name == "query_offset" else 1
            if size is not None and size > least:
                yield from (replace(self, **{name: less}) for less in (size // 2, size - 1))


def mask_by_loops(case: MaskCase) -> Tensor:
    """Ask for every pair of positions whether the key lies in the query's future."""
    offset = case.query_offset or 0
    rows = [[key <= query + offset for key in range(case.t_k)] for query in range(case.t_q)]
    return torch.tensor(rows, dtype=torch.bool)


def mask_by_library(case: MaskCase) -> Tensor:
    """Cut a rectangle of ones along a diagonal with torch's own function."""
    ones = torch.ones(case.t_q, case.t_k, dtype=torch.bool)
    return ones.tril(diagonal=case.query_offset or 0)


_MASK_WAYS = {
    "inverted": {
        "en": "True meant hidden (here True = may read)",
        "ru": "True значило «закрыто» (здесь True = разрешено читать)",
    },
    "transposed": {
        "en": "queries and keys were swapped, so that a token reads the future",
        "ru": "запросы и ключи были переставлены, и токен читает будущее",
    },
    "strict": {
        "en": "a token could not read itself (j < i + offset instead of j ≤ i + offset)",
        "ru": "токен не мог читать себя (j < i + смещение вместо j ≤ i + смещение)",
    },
    "one_ahead": {
        "en": "a token could read the next one (an off-by-one: tril(1), or j ≤ i + offset + 1)",
        "ru": "токен мог читать следующий (промах на единицу: tril(1), или j ≤ i + смещение + 1)",
    },
    "no_offset": {
        "en": "query_offset were ignored: the cached past is hidden",
        "ru": "query_offset не учитывался: прошлое в кэше закрыто",
    },
    "bottom_right": {
        "en": "the mask were aligned at its lower right corner, whatever query_offset says",
        "ru": "маска выравнивалась по правому нижнему углу, что бы ни говорил query_offset",
    },
    "offset_back": {
        "en": "the offset were subtracted instead of added",
        "ru": "смещение вычиталось, а не прибавлялось",
    },
    "offset_twice": {
        "en": "the offset were added twice",
        "ru": "смещение прибавлялось дважды",
    },
    "offset_corner": {
        "en": "the offset were added to an alignment at the lower right corner",
        "ru": "смещение прибавлялось к выравниванию по правому нижнему углу",
    },
    "open": {"en": "everything were allowed", "ru": "было разрешено всё"},
}


def explain_mask(subject: ContractSubject) -> str:
    """Name the wrong rules that give the candidate's masks on fresh calls."""
    probes = [MaskCase(4, 4, 0), MaskCase(2, 5, 3), MaskCase(1, 5, 4), MaskCase(3, 7, 2)]
    probes += [MaskCase(1, 6, 0), MaskCase(3, 8, 1)]
    given = [_mask_answer(subject.candidate, probe) for probe in probes]
    found = [
        {"rule": way}
        for way in _MASK_WAYS
        if all(
            mask is not None and torch.equal(mask, _mask_imitation(way, probe))
            for mask, probe in zip(given, probes, strict=True)
        )
    ]
    return describe_deviations(found, _MASK_WAYS)


def _mask_answer(causal_allowed: Callable[..., Any], case: MaskCase) -> Tensor | None:
    try:
        mask = causal_allowed(case.t_q, case.t_k, **case.keywords)
    except Exception:
        return None
    return mask if isinstance(mask, Tensor) and mask.dtype == torch.bool else None


def _mask_imitation(way: str, case: MaskCase) -> Tensor:
    i, j = torch.arange(case.t_q).unsqueeze(-1), torch.arange(case.t_k)
    offset, corner = case.query_offset or 0, case.t_k - case.t_q
    rules = {
        "inverted": j > i + offset,
        "transposed": j >= i + offset,
        "strict": j < i + offset,
        "one_ahead": j <= i + offset + 1,
        "no_offset": j <= i,
        "bottom_right": j <= i + corner,
        "offset_back": j <= i - offset,
        "offset_twice": j <= i + 2 * offset,
        "offset_corner": j <= i + corner + offset,
        "open": j >= 0 * i,
    }
    return rules[way]
