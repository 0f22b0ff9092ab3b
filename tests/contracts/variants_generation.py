"""Generations, right and wrong, beyond the catalogue."""

import enum
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch

from course_lib.contracts import check_generation_contract
from course_lib.contracts.generation.mistakes import GENERATION_MISTAKES, mistaken_generation

from .trial import Fresh, named_by

CHECK, CATALOGUE = check_generation_contract, GENERATION_MISTAKES
CLAUSES = [
    *("result_form", "greedy_tokens", "eval_inside", "eos", "length_limit", "context"),
    *("reason_order", "flag_restored", "long_prompt", "prompt_unchanged", "repeatable"),
]


def check(model, prompt):
    if len(prompt) > model.max_length:
        raise ValueError("prompt longer than the context")


@contextmanager
def evaluating(model):
    was = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(was)


# ---------------------------------------------------------------- right


def plain_loop(model, prompt, max_new_tokens, eos_id=None):
    if len(prompt) > model.max_length:
        raise ValueError("prompt longer than the context")
    was = model.training
    model.eval()
    ids = list(prompt)
    reason = "length_limit"
    for _ in range(max_new_tokens):
        if len(ids) == model.max_length:
            reason = "context"
            break
        token = model(torch.tensor(ids))[-1].argmax().item()
        ids.append(token)
        if token == eos_id:
            reason = "eos"
            break
    model.train(was)
    return ids[len(prompt) :], reason


def fixed_number(model, prompt, max_new_tokens, eos_id=None):
    room = model.max_length - len(prompt)
    if room < 0:
        raise ValueError("prompt longer than the context")
    was = model.training
    model.train(False)
    new, done = [], False
    while len(new) < min(room, max_new_tokens) and not done:
        logits = model(torch.tensor([*prompt, *new]))
        new += logits.argmax(-1)[-1:].tolist()
        done = new[-1] == eos_id
    model.train(was)
    if done:
        return new, "eos"
    return new, "length_limit" if max_new_tokens <= room else "context"


class Ending(enum.StrEnum):
    EOS = "eos"
    LENGTH = "length_limit"
    CONTEXT = "context"


class Answer(NamedTuple):
    new_ids: torch.Tensor
    reason: str


def growing_tensor(model, prompt, max_new_tokens, eos_id=None):
    """Tensors all along, a named tuple and an enumeration back."""
    check(model, prompt)
    ids = torch.as_tensor(prompt, dtype=torch.long).clone()
    start = len(ids)
    with evaluating(model):
        while True:
            new = ids[start:]
            if len(new) and eos_id is not None and int(new[-1]) == eos_id:
                return Answer(new, Ending.EOS)
            if len(new) >= max_new_tokens:
                return Answer(new, Ending.LENGTH)
            if len(ids) >= model.max_length:
                return Answer(new, Ending.CONTEXT)
            ids = torch.cat([ids, model(ids)[-1:].argmax(-1)])


def only_tensors(model, prompt, max_new_tokens, eos_id=None):
    """Takes a tensor and nothing else."""
    return growing_tensor(model, prompt.long(), max_new_tokens, eos_id)


def recursive(model, prompt, max_new_tokens, eos_id=None):
    check(model, prompt)
    if max_new_tokens == 0:
        return [], "length_limit"
    if len(prompt) == model.max_length:
        return [], "context"
    with evaluating(model):
        token = int(model(torch.tensor(prompt))[-1].softmax(-1).argmax())
    if token == eos_id:
        return [token], "eos"
    rest, reason = recursive(model, [*prompt, token], max_new_tokens - 1, eos_id)
    return [token, *rest], reason


def in_numpy(model, prompt, max_new_tokens, eos_id=None):
    check(model, prompt)
    buffer = np.zeros(model.max_length, dtype=np.int64)
    buffer[: len(prompt)] = prompt
    end, reason = len(prompt), "length_limit"
    with evaluating(model):
        while end - len(prompt) < max_new_tokens:
            if end == model.max_length:
                reason = "context"
                break
            buffer[end] = np.argmax(model(torch.from_numpy(buffer[:end])).numpy()[-1])
            end += 1
            if eos_id is not None and buffer[end - 1] == eos_id:
                reason = "eos"
                break
    return buffer[len(prompt) : end], reason


def by_generator(model, prompt, max_new_tokens, eos_id=None):
    """An endless stream, cut by who reads it; a window that never has to slide."""
    check(model, prompt)

    def stream():
        ids = list(prompt)
        while True:
            ids.append(int(model(torch.tensor(ids[-model.max_length :]))[-1].topk(1).indices))
            yield ids[-1]

    new, room = [], model.max_length - len(prompt)
    if max_new_tokens and room:
        with evaluating(model):
            for token in stream():
                new.append(token)
                if token == eos_id or len(new) == min(max_new_tokens, room):
                    break
    if eos_id is not None and new and new[-1] == eos_id:
        return tuple(new), "eos"
    return tuple(new), "length_limit" if len(new) == max_new_tokens else "context"


def flag_by_hand(model, prompt, max_new_tokens, eos_id=None):
    """Sets the flag itself; asks the model where it is, as code for a GPU does."""
    check(model, prompt)
    was, model.training = model.training, False
    device = next(model.parameters()).device
    run = mistaken_generation(enter=lambda m: None, leave=lambda m, w: None)
    result = run(model, torch.tensor(prompt, device=device), max_new_tokens, eos_id)
    model.training = was
    return list(result)


RIGHT = {
    "the catalogue's loop": mistaken_generation(),
    "plain loop": plain_loop,
    "fixed number": fixed_number,
    "growing tensor": growing_tensor,
    "only tensors": only_tensors,
    "recursive": recursive,
    "numpy": in_numpy,
    "by a generator": by_generator,
    "flag by hand": flag_by_hand,
}

# ---------------------------------------------------------------- wrong


def then(change):
    """The right answer, changed: change(new_ids, reason, case of the call) -> result."""

    def generate(model, prompt, max_new_tokens, eos_id=None):
        new, reason = plain_loop(model, prompt, max_new_tokens, eos_id)
        return change(new, reason, model, prompt, max_new_tokens, eos_id)

    return generate


def batched_call(model, prompt, max_new_tokens, eos_id=None):
    check(model, prompt)
    return [int(model(torch.tensor([prompt]))[0, -1].argmax())], "length_limit"


def flag_kept_on_early_return(model, prompt, max_new_tokens, eos_id=None):
    check(model, prompt)
    was = model.training
    model.eval()
    if len(prompt) == model.max_length and max_new_tokens:
        return [], "context"
    result = plain_loop(model, prompt, max_new_tokens, eos_id)
    model.train(was)
    return result


def flag_kept_at_eos(model, prompt, max_new_tokens, eos_id=None):
    was = model.training
    result = plain_loop(model, prompt, max_new_tokens, eos_id)
    if result[1] == "eos":
        model.eval()
    else:
        model.train(was)
    return result


def eval_once(model, prompt, max_new_tokens, eos_id=None):
    """Back to training after the first token."""
    run = mistaken_generation(pick=lambda logits: (model.train(), logits[-1].argmax())[1])
    return run(model, prompt, max_new_tokens, eos_id)


def wrong_error(model, prompt, max_new_tokens, eos_id=None):
    if len(prompt) > model.max_length:
        raise IndexError("index out of range in self")
    return plain_loop(model, prompt, max_new_tokens, eos_id)


def error_one_late(model, prompt, max_new_tokens, eos_id=None):
    if len(prompt) > model.max_length + 1:
        raise ValueError("too long")
    return plain_loop(model, prompt[: model.max_length], max_new_tokens, eos_id)


def remembers_prompts():
    seen = {}

    def generate(model, prompt, max_new_tokens, eos_id=None):
        check(model, prompt)
        key = (len(prompt), max_new_tokens, eos_id, model.max_length, model.case)
        if key[:4] not in seen:
            seen[key[:4]] = plain_loop(model, prompt, max_new_tokens, eos_id)
        return seen[key[:4]]

    return generate


def default_list(model, prompt, max_new_tokens, eos_id=None, new=[]):  # noqa: B006
    """A default list that outlives the call."""
    result, reason = plain_loop(model, prompt, max_new_tokens, eos_id)
    new.extend(result)
    return list(new), reason


def once_per_model():
    seen = {}

    def generate(model, prompt, max_new_tokens, eos_id=None):
        if id(model) in seen:
            return [], "context"
        seen[id(model)] = model
        return plain_loop(model, prompt, max_new_tokens, eos_id)

    return generate


def overfed(model, prompt, max_new_tokens, eos_id=None):
    """Looks at one token more than fits, and throws it away."""
    result = plain_loop(model, prompt, max_new_tokens, eos_id)
    with evaluating(model):
        model(torch.tensor([*prompt, *result[0], 0]))
    return result


def all_must_fit(model, prompt, max_new_tokens, eos_id=None):
    if len(prompt) + max_new_tokens > model.max_length:
        raise ValueError("too long")
    return plain_loop(model, prompt, max_new_tokens, eos_id)


def no_empty_prompt_limit(model, prompt, max_new_tokens, eos_id=None):
    if max_new_tokens == 0:
        raise ValueError("max_new_tokens must be positive")
    return plain_loop(model, prompt, max_new_tokens, eos_id)


def absolute(logits):
    return logits[-1].abs().argmax()


def one_list_for_all():
    kept = []

    def generate(model, prompt, max_new_tokens, eos_id=None):
        kept[:], reason = plain_loop(model, prompt, max_new_tokens, eos_id)
        return kept, reason

    return generate


def remembers_eos():
    """An EOS once given stays in force."""
    kept = {"eos": None}

    def generate(model, prompt, max_new_tokens, eos_id=None):
        kept["eos"] = kept["eos"] if eos_id is None else eos_id
        return plain_loop(model, prompt, max_new_tokens, kept["eos"])

    return generate


WRONG = {
    "one list for all": (Fresh(one_list_for_all), "repeatable"),
    "remembers EOS": (Fresh(remembers_eos), "eos"),
    "ids alone": (then(lambda new, *_: new), "result_form"),
    "reason first": (then(lambda new, reason, *_: (reason, new)), "result_form"),
    "other words": (then(lambda new, reason, *_: (new, reason.replace("_", " "))), "result_form"),
    "capital letters": (then(lambda new, reason, *_: (new, reason.upper())), "result_form"),
    "no reason": (then(lambda new, reason, *_: (new, None)), "result_form"),
    "floats": (then(lambda new, reason, *_: ([float(n) for n in new], reason)), "result_form"),
    "two axes": (then(lambda new, reason, *_: (torch.tensor([new]), reason)), "result_form"),
    "text": (then(lambda new, reason, *_: ("".join(map(str, new)), reason)), "result_form"),
    "batch axis": (batched_call, "result_form"),
    "absolute value": (mistaken_generation(pick=absolute), "greedy_tokens"),
    "second best": (
        mistaken_generation(pick=lambda logits: logits[-1].topk(2).indices[1]),
        "greedy_tokens",
    ),
    "reversed": (then(lambda new, reason, *_: (new[::-1], reason)), "greedy_tokens"),
    "window of four": (
        mistaken_generation(feed=lambda ids, start, size: ids[-4:]),
        "greedy_tokens",
    ),
    "rounded to eighths": (
        mistaken_generation(pick=lambda logits: (logits[-1] * 0.01).round().argmax()),
        "greedy_tokens",
    ),
    "ids below 256": (
        then(lambda new, reason, *_: ([n % 256 for n in new], reason)),
        "greedy_tokens",
    ),
    "a hundred at most": (
        mistaken_generation(pick=lambda logits: logits[-1, :100].argmax()),
        "greedy_tokens",
    ),
    "back to training": (eval_once, "greedy_tokens"),
    "EOS twice": (
        then(lambda new, reason, *_: (new + new[-1:] * (reason == "eos"), reason)),
        "eos",
    ),
    "EOS cut and named limit": (
        then(
            lambda new, reason, *_: (new[:-1], "length_limit") if reason == "eos" else (new, reason)
        ),
        "eos",
    ),
    "prompt ending in EOS": (
        then(
            lambda new, reason, model, prompt, n, eos: (
                ([], "eos") if prompt[-1] == eos else (new, reason)
            )
        ),
        "eos",
    ),
    "first token never EOS": (
        mistaken_generation(
            ends=lambda ids, start, eos_id, asked, size: ids[-1] == eos_id and len(ids) > start + 1
        ),
        "eos",
    ),
    "zero refused": (no_empty_prompt_limit, "length_limit"),
    "limit of five": (
        mistaken_generation(asked=lambda max_new_tokens, ids: min(max_new_tokens, 5)),
        "eos",
    ),
    "overfed": (overfed, "context"),
    "all must fit": (all_must_fit, "context"),
    "context error": (
        then(
            lambda new, reason, *_: (new, reason) if reason != "context" else 1 / 0,
        ),
        "context",
    ),
    "flag kept on early return": (flag_kept_on_early_return, "flag_restored"),
    "flag kept at EOS": (flag_kept_at_eos, "flag_restored"),
    "another error": (wrong_error, "long_prompt"),
    "error one token late": (error_one_late, "long_prompt"),
    "remembers": (Fresh(remembers_prompts), "greedy_tokens"),
    "default list": (default_list, "greedy_tokens"),
    "once per model": (Fresh(once_per_model), "repeatable"),
    "no eval and sliding": (
        mistaken_generation(
            enter=lambda model: None,
            guard=lambda ids, size, asked: ids,
            room=lambda size: 10**9,
            feed=lambda ids, start, size: ids[-size:],
        ),
        "eval_inside",
    ),
}
MISTAKES = named_by(
    greedy_tokens=(
        "first_row_read last_row_but_one_read all_rows_at_once least_likely_chosen "
        "drawn_at_random only_the_last_token_fed only_the_prompt_fed prompt_returned_too "
        "no_eos_means_zero one_token_too_many one_token_too_few limit_counts_the_prompt "
        "length_limit_called_context"
    ),
    eval_inside="no_eval",
    eos=(
        "end_left_out never_stops_at_eos junk_after_eos eos_zero_ignored eos_in_prompt_stops "
        "eos_in_prompt_is_the_end"
    ),
    length_limit="at_least_one_token",
    context=(
        "sliding_window room_made_for_new_tokens context_one_too_long context_one_too_short "
        "full_context_called_length_limit"
    ),
    reason_order=(
        "eos_at_last_token_called_length_limit eos_in_last_place_called_context "
        "context_before_length_limit"
    ),
    flag_restored="left_in_eval left_in_eval_by_a_refusal always_left_in_training",
    long_prompt="long_prompt_accepted",
    prompt_unchanged="prompt_grows",
)
MUTATED = [plain_loop, fixed_number, growing_tensor]
TENSORS = "tensors of one integer are integers too"
TWO_AXES = "the last of two axes is axis 1"
EQUIVALENT = {
    "plain_loop:12 method dropped: model(torch.tensor(ids))[-1].argmax().item()": TENSORS,
    "fixed_number:10 method dropped: logits.argmax(-1)[-1:].tolist()": TENSORS,
    "fixed_number:10 no sign: -1": TWO_AXES,
    "fixed_number:8 arguments swapped: min(room, max_new_tokens)": "min is symmetric",
    "growing_tensor:15 no sign: -1": TWO_AXES,
    "growing_tensor:4 call dropped: torch.as_tensor(prompt, dtype=torch.long)": "takes tensors",
    "growing_tensor:4 detach: torch.as_tensor(prompt, dtype=torch.long).clone": "cat copies",
    "growing_tensor:4 method dropped: torch.as_tensor(prompt, dtype=torch.long).clone()": "same",
    "growing_tensor:4 no dtype=: torch.as_tensor(prompt, dtype=torch.long)": "integers are long",
    "growing_tensor:9 call dropped: int(new[-1])": TENSORS,
}
SAYS = {
    "no_eval": "found it in training mode",
    "left_in_eval": "before the call training was True, after it False",
    "prompt_grows": "the prompt became",
    "overfed": "the model was given 2 tokens, it holds 1",
    "ids alone": "no pair (new_ids, reason)",
    "capital letters": "the reason is 'LENGTH_LIMIT'",
    "floats": "no flat sequence of integers",
    "another error": "IndexError",
}
UNNAMED = ["reversed", "second best", "window of four", "limit of five"]
