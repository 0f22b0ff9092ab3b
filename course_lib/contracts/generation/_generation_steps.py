"""Generations that choose, feed, switch or hand over wrongly."""

from functools import partial
from typing import Any

import torch

from course_lib.contracts.engine.mistake import Mistake
from course_lib.contracts.generation._generation_loop import mistaken_generation


def _generation_prompt_grown(
    prompt: Any, ids: list[int], start: int, stop: str, asked: int, eos_id: int | None
) -> tuple:
    """Leave the new ids in the caller's own list."""
    if isinstance(prompt, list):
        prompt[:] = ids
    else:
        prompt.resize_(len(ids)).copy_(torch.tensor(ids))
    return ids[start:], stop


def _generation_refusing_late(
    model: Any, prompt: Any, max_new_tokens: int, eos_id: int | None = None
) -> tuple:
    """Switch to eval before the prompt is looked at."""
    if len(prompt) > model.max_length:
        model.eval()
    return mistaken_generation()(model, prompt, max_new_tokens, eos_id)


def _generation_drawn(logits: torch.Tensor) -> torch.Tensor:
    return torch.multinomial(logits[-1].float().softmax(-1), 1)[0]


GENERATION_STEP_MISTAKES = (
    Mistake(
        "first_row_read",
        "a mutation of right code",
        partial(mistaken_generation, pick=lambda logits: logits[0].argmax()),
        {
            "en": "the next token is read from the logits of the first position",
            "ru": "следующий токен взят из логитов первой позиции",
        },
        {"en": "logits[-1].argmax()", "ru": "logits[-1].argmax()"},
    ),
    Mistake(
        "last_row_but_one_read",
        "a mutation of right code",
        partial(mistaken_generation, pick=lambda logits: logits[-2:][0].argmax()),
        {
            "en": "the next token is read from the last position but one",
            "ru": "следующий токен взят из предпоследней позиции",
        },
        {"en": "logits[-1].argmax()", "ru": "logits[-1].argmax()"},
    ),
    Mistake(
        "all_rows_at_once",
        "a mutation of right code",
        partial(mistaken_generation, pick=lambda logits: logits.argmax() % logits.shape[-1]),
        {
            "en": "argmax runs over all positions together",
            "ru": "argmax берётся сразу по всем позициям",
        },
        {"en": "logits[-1].argmax()", "ru": "logits[-1].argmax()"},
    ),
    Mistake(
        "least_likely_chosen",
        "a mutation of right code",
        partial(mistaken_generation, pick=lambda logits: logits[-1].argmin()),
        {"en": "the least likely token is chosen", "ru": "выбран наименее вероятный токен"},
        {"en": "argmax, not argmin", "ru": "argmax, а не argmin"},
    ),
    Mistake(
        "drawn_at_random",
        "a mutation of right code",
        partial(mistaken_generation, pick=_generation_drawn),
        {
            "en": "tokens are drawn at random, here the likeliest one is asked for",
            "ru": "токены выбраны случайно, а нужен самый вероятный",
        },
        {"en": "logits[-1].argmax()", "ru": "logits[-1].argmax()"},
    ),
    Mistake(
        "only_the_last_token_fed",
        "a mutation of right code",
        partial(mistaken_generation, feed=lambda ids, start, size: ids[-1:]),
        {
            "en": "the model is given the last token alone: without a cache it has no past",
            "ru": "модели даётся один лишь последний токен: без кэша у неё нет прошлого",
        },
        {"en": "model(all ids so far)", "ru": "model(все ids)"},
    ),
    Mistake(
        "only_the_prompt_fed",
        "a mutation of right code",
        partial(mistaken_generation, feed=lambda ids, start, size: ids[:start]),
        {
            "en": "the new tokens are never given to the model: it answers the prompt each time",
            "ru": "новые токены не передаются модели: она каждый раз отвечает на затравку",
        },
        {"en": "model(prompt + new ids)", "ru": "model(затравка + новые ids)"},
    ),
    Mistake(
        "sliding_window",
        "ollama/ollama#17427",
        partial(
            mistaken_generation,
            guard=lambda ids, size, asked: ids,
            room=lambda size: 10**9,
            feed=lambda ids, start, size: ids[-size:],
        ),
        {
            "en": "the window slides: what no longer fits is forgotten without a word",
            "ru": "окно скользит: что не помещается, молча забывается",
        },
        {
            "en": 'ValueError for the prompt, stop with "context"',
            "ru": "ValueError для затравки, остановка с «context»",
        },
    ),
    Mistake(
        "long_prompt_accepted",
        "ollama/ollama#3839",
        partial(mistaken_generation, guard=lambda ids, size, asked: ids[-size:]),
        {
            "en": "a prompt that is too long is cut, or handed back, without an error",
            "ru": "слишком длинная затравка обрезана или возвращена без ошибки",
        },
        {
            "en": "raise ValueError if the prompt exceeds max_length",
            "ru": "ValueError, если затравка длиннее max_length",
        },
    ),
    Mistake(
        "room_made_for_new_tokens",
        "EleutherAI/lm-evaluation-harness#2585",
        partial(
            mistaken_generation,
            guard=lambda ids, size, asked: ids[-max(size - asked, 1) :],
        ),
        {
            "en": "the prompt is cut at the front to make room for max_new_tokens",
            "ru": "начало затравки отрезано, чтобы уместить max_new_tokens",
        },
        {
            "en": 'keep it all; stop with "context"',
            "ru": "оставьте её целой; остановка с «context»",
        },
    ),
    Mistake(
        "no_eval",
        "d2l-ai/d2l-en@4c2b6d39",
        partial(mistaken_generation, enter=lambda model: None),
        {
            "en": "the model is left in training mode: dropout is on",
            "ru": "модель осталась в режиме обучения: dropout включён",
        },
        {"en": "model.eval() before the loop", "ru": "model.eval() перед циклом"},
    ),
    Mistake(
        "left_in_eval",
        "a mutation of right code",
        partial(mistaken_generation, leave=lambda model, was: None),
        {
            "en": "the model stays in eval mode: training goes on without dropout",
            "ru": "модель остаётся в режиме eval: обучение продолжится без dropout",
        },
        {"en": "model.train(was_training)", "ru": "model.train(was_training)"},
    ),
    Mistake(
        "left_in_eval_by_a_refusal",
        "a mutation of right code",
        lambda: _generation_refusing_late,
        {
            "en": "eval comes before the check of the prompt: after a refusal the model stays in "
            "eval mode",
            "ru": "eval вызван до проверки затравки: после отказа модель остаётся в режиме eval",
        },
        {"en": "try: … finally: model.train(was)", "ru": "try: … finally: model.train(was)"},
    ),
    Mistake(
        "always_left_in_training",
        "a mutation of right code",
        partial(mistaken_generation, leave=lambda model, was: model.train()),
        {
            "en": "a model that was in eval mode is left in training mode",
            "ru": "модель, бывшая в режиме eval, оставлена в режиме обучения",
        },
        {"en": "model.train(was_training)", "ru": "model.train(was_training)"},
    ),
    Mistake(
        "prompt_returned_too",
        "a mutation of right code",
        partial(
            mistaken_generation, finish=lambda prompt, ids, start, stop, asked, eos: (ids, stop)
        ),
        {
            "en": "the prompt is returned together with the new ids",
            "ru": "вместе с новыми ids возвращена и затравка",
        },
        {"en": "return ids[len(prompt):]", "ru": "return ids[len(prompt):]"},
    ),
    Mistake(
        "prompt_grows",
        "a mutation of right code",
        partial(mistaken_generation, finish=_generation_prompt_grown),
        {
            "en": "the new ids are appended to the caller's own prompt",
            "ru": "новые ids дописаны прямо в переданную затравку",
        },
        {"en": "ids = list(prompt)", "ru": "ids = list(prompt)"},
    ),
)
