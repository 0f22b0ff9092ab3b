"""Generations that choose, feed, switch or hand over wrongly."""

from typing import Any

import torch

from course_lib.contracts.engine.mistake import mistakes
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


# fmt: off
GENERATION_STEP_MISTAKES = mistakes(
    mistaken_generation,
    first_row_read=("",
        "the next token is read from the logits of the first position | "
        "следующий токен взят из логитов первой позиции",
        "logits[-1].argmax()", {"pick": lambda logits: logits[0].argmax()}),
    last_row_but_one_read=("",
        "the next token is read from the last position but one | "
        "следующий токен взят из предпоследней позиции",
        "logits[-1].argmax()", {"pick": lambda logits: logits[-2:][0].argmax()}),
    all_rows_at_once=("",
        "argmax runs over all positions together | argmax берётся сразу по всем позициям",
        "logits[-1].argmax()", {"pick": lambda logits: logits.argmax() % logits.shape[-1]}),
    least_likely_chosen=("",
        "the least likely token is chosen | выбран наименее вероятный токен",
        "argmax, not argmin | argmax, а не argmin", {"pick": lambda logits: logits[-1].argmin()}),
    drawn_at_random=("",
        "tokens are drawn at random, here the likeliest one is asked for | "
        "токены выбраны случайно, а нужен самый вероятный",
        "logits[-1].argmax()", {"pick": _generation_drawn}),
    only_the_last_token_fed=("",
        "the model is given the last token alone: without a cache it has no past | "
        "модели даётся один лишь последний токен: без кэша у неё нет прошлого",
        "model(all ids so far) | model(все ids)", {"feed": lambda ids, start, size: ids[-1:]}),
    only_the_prompt_fed=("",
        "the new tokens are never given to the model: it answers the prompt each time | "
        "новые токены не передаются модели: она каждый раз отвечает на затравку",
        "model(prompt + new ids) | model(затравка + новые ids)",
        {"feed": lambda ids, start, size: ids[:start]}),
    sliding_window=("ollama/ollama#17427",
        "the window slides: what no longer fits is forgotten without a word | "
        "окно скользит: что не помещается, молча забывается",
        'ValueError for the prompt, stop with "context" | '
        "ValueError для затравки, остановка с «context»",
        {"guard": lambda ids, size, asked: ids,
         "room": lambda size: 10 ** 9,
         "feed": lambda ids, start, size: ids[-size:]}),
    long_prompt_accepted=("ollama/ollama#3839",
        "a prompt that is too long is cut, or handed back, without an error | "
        "слишком длинная затравка обрезана или возвращена без ошибки",
        "raise ValueError if the prompt exceeds max_length | "
        "ValueError, если затравка длиннее max_length",
        {"guard": lambda ids, size, asked: ids[-size:]}),
    room_made_for_new_tokens=("EleutherAI/lm-evaluation-harness#2585",
        "the prompt is cut at the front to make room for max_new_tokens | "
        "начало затравки отрезано, чтобы уместить max_new_tokens",
        'keep it all; stop with "context" | оставьте её целой; остановка с «context»',
        {"guard": lambda ids, size, asked: ids[-max(size - asked, 1):]}),
    no_eval=("d2l-ai/d2l-en@4c2b6d39",
        "the model is left in training mode: dropout is on | "
        "модель осталась в режиме обучения: dropout включён",
        "model.eval() before the loop | model.eval() перед циклом", {"enter": lambda model: None}),
    left_in_eval=("",
        "the model stays in eval mode: training goes on without dropout | "
        "модель остаётся в режиме eval: обучение продолжится без dropout",
        "model.train(was_training)", {"leave": lambda model, was: None}),
    left_in_eval_by_a_refusal=("",
        "eval comes before the check of the prompt: after a refusal the model stays in eval mode | "
        "eval вызван до проверки затравки: после отказа модель остаётся в режиме eval",
        "try: … finally: model.train(was)", lambda: _generation_refusing_late),
    always_left_in_training=("",
        "a model that was in eval mode is left in training mode | "
        "модель, бывшая в режиме eval, оставлена в режиме обучения",
        "model.train(was_training)", {"leave": lambda model, was: model.train()}),
    prompt_returned_too=("",
        "the prompt is returned together with the new ids | "
        "вместе с новыми ids возвращена и затравка",
        "return ids[len(prompt):]",
        {"finish": lambda prompt, ids, start, stop, asked, eos: (ids, stop)}),
    prompt_grows=("",
        "the new ids are appended to the caller's own prompt | "
        "новые ids дописаны прямо в переданную затравку",
        "ids = list(prompt)", {"finish": _generation_prompt_grown}),
)
# fmt: on
