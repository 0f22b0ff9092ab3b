"""Greedy generations that are wrong in one way each, as people reported them."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.engine.mistake import mistakes

Answer = tuple[list[int], str]


def _checked_prompt(ids: list[int], size: int, asked: int) -> list[int]:
    """Refuse a prompt that is longer than the context."""
    if len(ids) > size:
        raise ValueError(f"the prompt has {len(ids)} tokens, the context holds {size}")
    return ids


def mistaken_generation(
    *,
    guard: Callable[[list[int], int, int], list[int]] = _checked_prompt,
    asked: Callable[[int, list[int]], int] = lambda max_new_tokens, ids: max_new_tokens,
    before: Callable[[list[int], Any], str] = lambda ids, eos_id: "",
    enter: Callable[[Any], Any] = lambda model: model.eval(),
    room: Callable[[int], int] = lambda size: size,
    reason: Callable[[bool, bool], str] = lambda enough, full: (
        "length_limit" if enough else "context"
    ),
    feed: Callable[[list[int], int, int], list[int]] = lambda ids, start, size: ids,
    pick: Callable[[Tensor], Any] = lambda logits: logits[-1].argmax(),
    ends: Callable[..., bool] = lambda ids, start, eos_id, limit, size: ids[-1] == eos_id,
    leave: Callable[[Any, bool], Any] = lambda model, was: model.train(was),
    finish: Callable[..., Answer] = lambda prompt, ids, start, stop, eos_id: (ids[start:], stop),
) -> Callable[..., Answer]:
    """Greedy generation with some steps replaced; `reason` names what leaves no room for more."""

    def generate(model: Any, prompt: Any, max_new_tokens: int, eos_id: int | None = None) -> Answer:
        size, was = model.max_length, model.training
        ids = guard([int(token) for token in prompt], size, max_new_tokens)
        start, limit, stop = len(ids), asked(max_new_tokens, ids), before(ids, eos_id)
        enter(model)
        while not stop:
            enough, full = len(ids) - start >= limit, len(ids) >= room(size)
            if enough or full:
                stop = reason(enough, full)
                break
            ids.append(int(pick(model(torch.tensor(feed(ids, start, size))))))
            if ends(ids, start, eos_id, limit, size):
                stop = "eos"
        leave(model, was)
        return finish(prompt, ids, start, stop, eos_id)

    return generate


def _prompt_grown(prompt: list[int], ids: list[int], start: int, stop: str, *_: Any) -> Answer:
    """Leave the new ids in the caller's own list."""
    prompt[:] = ids
    return ids[start:], stop


def _refusing_late(model: Any, prompt: Any, *rest: Any, **named: Any) -> Answer:
    """Switch to eval before the prompt is looked at."""
    if len(prompt) > model.max_length:
        model.eval()
    return mistaken_generation()(model, prompt, *rest, **named)


# fmt: off
GENERATION_MISTAKES = mistakes(
    mistaken_generation,
    first_row_read=("", "the next token is read from the logits of the first position | "
        "следующий токен взят из логитов первой позиции", "logits[-1].argmax()",
        {"pick": lambda logits: logits[0].argmax()}),
    last_row_but_one_read=("", "the next token is read from the last position but one | "
        "следующий токен взят из предпоследней позиции", "logits[-1].argmax()",
        {"pick": lambda logits: logits[-2:][0].argmax()}),
    all_rows_at_once=("",
        "argmax runs over all positions together | argmax берётся сразу по всем позициям",
        "logits[-1].argmax()", {"pick": lambda logits: logits.argmax() % logits.shape[-1]}),
    least_likely_chosen=("", "the least likely token is chosen | выбран наименее вероятный токен",
        "argmax, not argmin | argmax, а не argmin", {"pick": lambda logits: logits[-1].argmin()}),
    drawn_at_random=("", "tokens are drawn at random, here the likeliest one is asked for | "
        "токены выбраны случайно, а нужен самый вероятный", "logits[-1].argmax()",
        {"pick": lambda logits: torch.multinomial(logits[-1].float().softmax(-1), 1)[0]}),
    only_the_last_token_fed=("",
        "the model is given the last token alone: without a cache it has no past | "
        "модели даётся один лишь последний токен: без кэша у неё нет прошлого",
        "model(all ids so far) | model(все ids)", {"feed": lambda ids, start, size: ids[-1:]}),
    only_the_prompt_fed=("",
        "the new tokens are never given to the model: it answers the prompt each time | "
        "новые токены не передаются модели: она каждый раз отвечает на промпт",
        "model(prompt + new ids) | model(промпт + новые ids)",
        {"feed": lambda ids, start, size: ids[:start]}),
    sliding_window=("ollama/ollama#17427",
        "the window slides: what no longer fits is forgotten without a word | "
        "окно скользит: что не помещается, молча забывается",
        'ValueError for the prompt, stop with "context" | '
        "ValueError для промпта, остановка с «context»",
        {"guard": lambda ids, size, asked: ids,
         "room": lambda size: 10 ** 9,
         "feed": lambda ids, start, size: ids[-size:]}),
    long_prompt_accepted=("ollama/ollama#3839",
        "a prompt that is too long is cut, or handed back, without an error | "
        "слишком длинный промпт обрезан или возвращён без ошибки",
        "raise ValueError if the prompt exceeds max_length | "
        "ValueError, если промпт длиннее max_length",
        {"guard": lambda ids, size, asked: ids[-size:]}),
    room_made_for_new_tokens=("EleutherAI/lm-evaluation-harness#2585",
        "the prompt is cut at the front to make room for max_new_tokens | "
        "начало промпта отрезано, чтобы уместить max_new_tokens",
        'keep it all; stop with "context" | оставьте его целым; остановка с «context»',
        {"guard": lambda ids, size, asked: ids[-max(size - asked, 1):]}),
    no_eval=("d2l-ai/d2l-en@4c2b6d39", "the model is left in training mode: dropout is on | "
        "модель осталась в режиме обучения: dropout включён",
        "model.eval() before the loop | model.eval() перед циклом", {"enter": lambda model: None}),
    left_in_eval=("", "the model stays in eval mode: training goes on without dropout | "
        "модель остаётся в режиме eval: обучение продолжится без dropout",
        "model.train(was_training)", {"leave": lambda model, was: None}),
    left_in_eval_by_a_refusal=("",
        "eval comes before the check of the prompt: after a refusal the model stays in eval mode | "
        "eval вызван до проверки промпта: после отказа модель остаётся в режиме eval",
        "try: … finally: model.train(was)", lambda: _refusing_late),
    always_left_in_training=("", "a model that was in eval mode is left in training mode | "
        "модель, бывшая в режиме eval, оставлена в режиме обучения", "model.train(was_training)",
        {"leave": lambda model, was: model.train()}),
    prompt_returned_too=("", "the prompt is returned together with the new ids | "
        "вместе с новыми ids возвращён и промпт", "return ids[len(prompt):]",
        {"finish": lambda prompt, ids, start, stop, eos_id: (ids, stop)}),
    prompt_grows=("", "the new ids are appended to the caller's own prompt | "
        "новые ids дописаны прямо в переданный промпт", "ids = list(prompt)",
        {"finish": _prompt_grown}),
    end_left_out=("", "EOS itself is not among the new ids | самого EOS нет среди новых ids",
        "append the token, then compare | сначала добавьте токен, потом сравните",
        {"finish": lambda prompt, ids, start, stop, eos_id:
            (ids[start : -1 if stop == "eos" else None], stop)}),
    never_stops_at_eos=("pegainfer-project/pegainfer#238",
        "EOS stops nothing: generation always runs to a limit | "
        "EOS ничего не останавливает: генерация всегда идёт до предела",
        'if token == eos_id: stop with "eos" | при token == eos_id остановка с «eos»',
        {"ends": lambda ids, start, eos_id, limit, size: False}),
    junk_after_eos=("lvyufeng/PocketLLM#133",
        "after EOS it goes on to the limit, and the junk is returned | "
        "после EOS генерация идёт до предела, и возвращается мусор",
        "leave the loop at EOS | выходите из цикла на EOS",
        {"ends": lambda ids, start, eos_id, limit, size: False,
         "finish": lambda prompt, ids, start, stop, eos_id:
             (ids[start:], "eos" if eos_id in ids[start:] else stop)}),
    eos_zero_ignored=("openvinotoolkit/openvino.genai#3593", "eos_id = 0 counts as no EOS at all | "
        "eos_id = 0 принят за отсутствие EOS", "if eos_id is not None",
        {"ends": lambda ids, start, eos_id, limit, size: bool(eos_id) and ids[-1] == eos_id}),
    no_eos_means_zero=("anthony-chaudhary/fak#12604", "without an eos_id token 0 ends the text | "
        "без eos_id текст кончается на токене 0", "if eos_id is not None",
        {"ends": lambda ids, start, eos_id, limit, size: ids[-1] == (eos_id or 0)}),
    eos_in_prompt_stops=("", "an EOS inside the prompt ends the text after one new token | "
        "EOS внутри промпта обрывает текст после одного нового токена",
        "compare the new token only | сравнивайте только новый токен",
        {"ends": lambda ids, start, eos_id, limit, size: eos_id in ids}),
    eos_in_prompt_is_the_end=("", "a prompt with an EOS in it gets no new token at all | "
        "промпт с EOS внутри не получает ни одного нового токена",
        "compare the new token only | сравнивайте только новый токен",
        {"before": lambda ids, eos_id: "eos" if eos_id in ids else ""}),
    eos_at_last_token_called_length_limit=("",
        'EOS as the last allowed token is reported as "length_limit" | '
        "EOS на последнем разрешённом токене назван «length_limit»",
        "test for EOS before the limits | проверяйте EOS раньше пределов",
        {"ends": lambda ids, start, eos_id, limit, size:
            ids[-1] == eos_id and len(ids) - start < limit}),
    eos_in_last_place_called_context=("",
        'EOS in the last place of the context is reported as "context" | '
        "EOS на последнем месте контекста назван «context»",
        "test for EOS before the limits | проверяйте EOS раньше пределов",
        {"ends": lambda ids, start, eos_id, limit, size: ids[-1] == eos_id and len(ids) < size}),
    one_token_too_many=("", "one token more than max_new_tokens | "
        "новых токенов на один больше, чем max_new_tokens", "for _ in range(max_new_tokens)",
        {"asked": lambda max_new_tokens, ids: max_new_tokens + 1}),
    one_token_too_few=("", "one token less than max_new_tokens | "
        "новых токенов на один меньше, чем max_new_tokens", "for _ in range(max_new_tokens)",
        {"asked": lambda max_new_tokens, ids: max_new_tokens - 1}),
    at_least_one_token=("", "a token comes even where max_new_tokens is 0 | "
        "один токен выдан даже при max_new_tokens = 0",
        "test the limit before the model | проверьте предел до вызова модели",
        {"asked": lambda max_new_tokens, ids: max(max_new_tokens, 1)}),
    limit_counts_the_prompt=("",
        "max_new_tokens is taken for the length of prompt and answer together | "
        "max_new_tokens принят за длину промпта вместе с ответом",
        "count the new tokens only | считайте только новые токены",
        {"asked": lambda max_new_tokens, ids: max_new_tokens - len(ids)}),
    context_one_too_long=("Nehanth/swarmllm#31",
        "one token more than the context holds is generated | "
        "сгенерирован один токен сверх контекста",
        "while len(ids) < max_length", {"room": lambda size: size + 1}),
    context_one_too_short=("",
        "the last place of the context is never used | последнее место контекста не используется",
        "while len(ids) < max_length", {"room": lambda size: size - 1}),
    context_before_length_limit=("", 'where both limits are reached at once it says "context" | '
        "когда оба предела достигнуты сразу, назван «context»",
        "test max_new_tokens first | сначала проверяйте max_new_tokens",
        {"reason": lambda enough, full: "context" if full else "length_limit"}),
    full_context_called_length_limit=("",
        'a full context is reported as "length_limit" | полный контекст назван «length_limit»',
        'return new_ids, "context"', {"reason": lambda enough, full: "length_limit"}),
    length_limit_called_context=("", 'the limit of new tokens is reported as "context" | '
        "предел числа новых токенов назван «context»", 'return new_ids, "length_limit"',
        {"reason": lambda enough, full: "context"}),
)
# fmt: on
