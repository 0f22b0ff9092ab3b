"""The loop of greedy generation, whose steps can be done wrongly."""

from collections.abc import Callable
from typing import Any

import torch


def mistaken_generation(**steps: Callable[..., Any]) -> Callable[..., tuple[list[int], str]]:
    """Greedy generation with some steps replaced, by name; without any it is right."""
    take = {**RIGHT_GENERATION, **steps}

    def generate(
        model: Any, prompt: Any, max_new_tokens: int, eos_id: int | None = None
    ) -> tuple[list[int], str]:
        size = model.max_length
        ids = take["guard"]([int(token) for token in prompt], size, max_new_tokens)
        start, asked, was = len(ids), take["asked"](max_new_tokens, ids), model.training
        stop = take["before"](ids, eos_id)
        take["enter"](model)
        while not stop:
            stop = take["full"](ids, start, asked, take["room"](size))
            if stop:
                break
            fed = take["feed"](ids, start, size)
            ids.append(int(take["pick"](model(torch.tensor(fed)))))
            if take["ends"](ids, start, eos_id, asked, size):
                stop = "eos"
        take["leave"](model, was)
        return take["finish"](prompt, ids, start, stop, asked, eos_id)

    return generate


def checked_prompt(ids: list[int], size: int, asked: int) -> list[int]:
    """Refuse a prompt that is longer than the context."""
    if len(ids) > size:
        raise ValueError(f"the prompt has {len(ids)} tokens, the context holds {size}")
    return ids


def reached_limit(ids: list[int], start: int, asked: int, room: int) -> str:
    """Name the limit that leaves no room for another token: the asked number comes first."""
    if len(ids) - start >= asked:
        return "length_limit"
    return "context" if len(ids) >= room else ""


RIGHT_GENERATION = {
    "guard": checked_prompt,
    "asked": lambda max_new_tokens, ids: max_new_tokens,
    "before": lambda ids, eos_id: "",
    "enter": lambda model: model.eval(),
    "room": lambda size: size,
    "full": reached_limit,
    "feed": lambda ids, start, size: ids,
    "pick": lambda logits: logits[-1].argmax(),
    "ends": lambda ids, start, eos_id, asked, size: ids[-1] == eos_id,
    "leave": lambda model, was: model.train(was),
    "finish": lambda prompt, ids, start, stop, asked, eos_id: (ids[start:], stop),
}
