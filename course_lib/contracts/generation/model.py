"""Scripted models for a generation: every next token is known, and every call is written down."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.contracts.engine.call import Given


@dataclass(frozen=True)
class GenerationCase:
    """One call of a generation and the model it gets.

    rule: "sum" (the next token hangs on all tokens), "place" (on how many there are) or "script":
        then `script` tells the token after each number of tokens. In training mode the model
        answers otherwise, as dropout does.
    """

    prompt: tuple[int, ...]
    max_new_tokens: int
    eos_id: int | None = None
    max_length: int = 12
    vocab_size: int = 7
    rule: str = "sum"
    script: tuple[int, ...] = ()
    training: bool = True
    name_eos: bool = True
    size: float = 1.0
    level: float = 0.0

    def model(self) -> "ScriptedModel":
        """A fresh model."""
        return ScriptedModel(self)

    def arguments(self) -> dict[str, Any]:
        """Name the arguments, for a message and for calling again."""
        prompt, count = list(self.prompt), self.max_new_tokens
        named = {"model": self.model(), "prompt": prompt, "max_new_tokens": count}
        return {**named, "eos_id": self.eos_id} if self.name_eos else named

    def fresh(self) -> Given:
        """The arguments of one call: a model that was not called yet, a prompt to spoil."""
        return Given(self.arguments(), frozenset({"eos_id"}))

    @property
    def fits(self) -> bool:
        """Whether the context holds the prompt."""
        return len(self.prompt) <= self.max_length

    def smaller(self) -> Iterator["GenerationCase"]:
        """Fewer new tokens, a shorter prompt, a shorter context; what did not fit does not then."""
        return (case for case in self._smaller() if case.fits is self.fits)

    def _smaller(self) -> Iterator["GenerationCase"]:
        if self.max_new_tokens > 0:
            yield replace(self, max_new_tokens=self.max_new_tokens - 1)
        if len(self.prompt) > 1:
            yield replace(self, prompt=self.prompt[1:])
            if self.max_length > 1:
                yield replace(self, prompt=self.prompt[1:], max_length=self.max_length - 1)
        if self.max_length > 2:
            yield replace(self, max_length=self.max_length - 1)

    def next_token(self, ids: tuple[int, ...]) -> int:
        """The token after these, out of training."""
        if self.rule == "place":
            return (3 * len(ids) + 1) % self.vocab_size
        if self.rule == "script":
            return self.script[len(ids) % len(self.script)]
        return (sum((2 + n) * token for n, token in enumerate(ids)) + len(ids)) % self.vocab_size


class ScriptedModel(nn.Module):
    """A model(ids [T] long) -> logits [T, V] that follows a rule and remembers how it was used."""

    def __init__(self, case: GenerationCase) -> None:
        super().__init__()
        self.case, self.max_length = case, case.max_length
        self.anchor = nn.Parameter(torch.zeros(1))  # so that code that asks for a device finds one
        self.lengths: list[int] = []
        self.modes: list[bool] = []
        self.train(case.training)

    @property
    def overfed(self) -> bool:
        """Whether some call was longer than the context."""
        return max(self.lengths, default=0) > self.max_length

    def forward(self, ids: Tensor) -> Tensor:
        """Logits without ties; the rule's token is the largest, the one before it the least."""
        if not isinstance(ids, Tensor) or ids.is_floating_point() or ids.dim() != 1:
            came = list(ids.shape) if isinstance(ids, Tensor) else type(ids).__name__
            raise TypeError(f"the model takes token ids [T] of dtype long, got {came}")
        if len(ids) == 0:
            raise IndexError("the model was given no tokens")
        self.lengths.append(len(ids))
        self.modes.append(self.training)
        tokens, size = tuple(ids.tolist()), self.case.vocab_size
        rows = []
        for end in range(1, len(tokens) + 1):
            best = self.case.next_token(tokens[:end])
            if self.training:
                best = (best + 1 + len(self.lengths) % (size - 1)) % size
            rows.append([self._logit(v, best, end) for v in range(size)])
        return torch.tensor(rows)

    def _logit(self, token: int, best: int, end: int) -> float:
        """Negative numbers, the largest of all in the second row: it matters which row is read."""
        ahead = (best - token) % self.case.vocab_size  # 0: the best, 1: the least
        rank = self.case.vocab_size if ahead == 0 else ahead - 1
        return self.case.level + self.case.size * (rank * 1.5 - 40.0 - 3.0 * abs(end - 2))

    def __repr__(self) -> str:
        """The rule in a line, for a message."""
        case = self.case
        rule = {
            "sum": f"(sum((2 + n) * ids[n]) + len(ids)) % {case.vocab_size}",
            "place": f"(3 * len(ids) + 1) % {case.vocab_size}",
            "script": f"{list(case.script)}[len(ids)]",
        }[case.rule]
        return f"next token {rule}; max_length {case.max_length}, training {case.training}"


def generation_by_rule(case: GenerationCase) -> tuple[list[int], str]:
    """The right answer without a model: the rule, applied until something ends it."""
    ids, new = list(case.prompt), list[int]()
    if not case.fits:
        raise ValueError("the prompt is longer than the context")
    while True:
        if new and case.eos_id is not None and new[-1] == case.eos_id:
            return new, "eos"
        if len(new) == case.max_new_tokens:
            return new, "length_limit"
        if len(ids) == case.max_length:
            return new, "context"
        token = case.next_token(tuple(ids))
        ids.append(token)
        new.append(token)


def generation_by_model(case: GenerationCase) -> tuple[list[int], str]:
    """The right answer with torch: all tokens that fit first, then cut where the first end is."""
    if not case.fits:
        raise ValueError("the prompt is longer than the context")
    model = case.model().eval()
    ids = torch.tensor(case.prompt)
    fits = min(case.max_new_tokens, case.max_length - len(case.prompt))
    for _ in range(fits):
        ids = torch.cat([ids, model(ids)[-1].argmax().view(1)])
    new = ids[len(case.prompt) :]
    ends = (new == -1 if case.eos_id is None else new == case.eos_id).nonzero().flatten()
    if len(ends):
        return new[: int(ends[0]) + 1].tolist(), "eos"
    return new.tolist(), "length_limit" if fits == case.max_new_tokens else "context"
