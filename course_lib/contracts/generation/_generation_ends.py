"""Generations that end too early, too late, or for another reason than they say."""

from functools import partial
from typing import Any

from course_lib.contracts.engine.mistake import Mistake
from course_lib.contracts.generation._generation_loop import mistaken_generation


def _generation_context_first(ids: list[int], start: int, asked: int, room: int) -> str:
    if len(ids) >= room:
        return "context"
    return "length_limit" if len(ids) - start >= asked else ""


def _generation_always_length(ids: list[int], start: int, asked: int, room: int) -> str:
    return "length_limit" if len(ids) - start >= asked or len(ids) >= room else ""


def _generation_always_context(ids: list[int], start: int, asked: int, room: int) -> str:
    return "context" if len(ids) - start >= asked or len(ids) >= room else ""


def _generation_end_cut(
    prompt: Any, ids: list[int], start: int, stop: str, asked: int, eos_id: int | None
) -> tuple:
    return ids[start : -1 if stop == "eos" else None], stop


def _generation_first_eos(
    prompt: Any, ids: list[int], start: int, stop: str, asked: int, eos_id: int | None
) -> tuple:
    """Find out only afterwards that there was an end."""
    return ids[start:], "eos" if eos_id in ids[start:] else stop


GENERATION_END_MISTAKES = (
    Mistake(
        "end_left_out",
        "a mutation of right code",
        partial(mistaken_generation, finish=_generation_end_cut),
        {
            "en": "EOS itself is not among the new ids",
            "ru": "самого EOS нет среди новых ids",
        },
        {"en": "append the token, then compare", "ru": "сначала добавьте токен, потом сравните"},
    ),
    Mistake(
        "never_stops_at_eos",
        "pegainfer-project/pegainfer#238",
        partial(mistaken_generation, ends=lambda ids, start, eos_id, asked, size: False),
        {
            "en": "EOS stops nothing: generation always runs to a limit",
            "ru": "EOS ничего не останавливает: генерация всегда идёт до предела",
        },
        {
            "en": 'if token == eos_id: stop with "eos"',
            "ru": "при token == eos_id остановка с «eos»",
        },
    ),
    Mistake(
        "junk_after_eos",
        "lvyufeng/PocketLLM#133",
        partial(
            mistaken_generation,
            ends=lambda ids, start, eos_id, asked, size: False,
            finish=_generation_first_eos,
        ),
        {
            "en": "after EOS it goes on to the limit, and the junk is returned",
            "ru": "после EOS генерация идёт до предела, и возвращается мусор",
        },
        {"en": "leave the loop at EOS", "ru": "выходите из цикла на EOS"},
    ),
    Mistake(
        "eos_zero_ignored",
        "openvinotoolkit/openvino.genai#3593",
        partial(
            mistaken_generation,
            ends=lambda ids, start, eos_id, asked, size: bool(eos_id) and ids[-1] == eos_id,
        ),
        {
            "en": "eos_id = 0 counts as no EOS at all",
            "ru": "eos_id = 0 принят за отсутствие EOS",
        },
        {"en": "if eos_id is not None", "ru": "if eos_id is not None"},
    ),
    Mistake(
        "no_eos_means_zero",
        "anthony-chaudhary/fak#12604",
        partial(
            mistaken_generation,
            ends=lambda ids, start, eos_id, asked, size: ids[-1] == (eos_id or 0),
        ),
        {
            "en": "without an eos_id token 0 ends the text",
            "ru": "без eos_id текст кончается на токене 0",
        },
        {"en": "if eos_id is not None", "ru": "if eos_id is not None"},
    ),
    Mistake(
        "eos_in_prompt_stops",
        "a mutation of right code",
        partial(
            mistaken_generation,
            ends=lambda ids, start, eos_id, asked, size: eos_id in ids,
        ),
        {
            "en": "an EOS inside the prompt ends the text after one new token",
            "ru": "EOS внутри затравки обрывает текст после одного нового токена",
        },
        {"en": "compare the new token only", "ru": "сравнивайте только новый токен"},
    ),
    Mistake(
        "eos_in_prompt_is_the_end",
        "a mutation of right code",
        partial(mistaken_generation, before=lambda ids, eos_id: "eos" if eos_id in ids else ""),
        {
            "en": "a prompt with an EOS in it gets no new token at all",
            "ru": "затравка с EOS внутри не получает ни одного нового токена",
        },
        {"en": "compare the new token only", "ru": "сравнивайте только новый токен"},
    ),
    Mistake(
        "eos_at_last_token_called_length_limit",
        "a mutation of right code",
        partial(
            mistaken_generation,
            ends=lambda ids, start, eos_id, asked, size: (
                ids[-1] == eos_id and len(ids) - start < asked
            ),
        ),
        {
            "en": 'EOS as the last allowed token is reported as "length_limit"',
            "ru": "EOS на последнем разрешённом токене назван «length_limit»",
        },
        {"en": "test for EOS before the limits", "ru": "проверяйте EOS раньше пределов"},
    ),
    Mistake(
        "eos_in_last_place_called_context",
        "a mutation of right code",
        partial(
            mistaken_generation,
            ends=lambda ids, start, eos_id, asked, size: ids[-1] == eos_id and len(ids) < size,
        ),
        {
            "en": 'EOS in the last place of the context is reported as "context"',
            "ru": "EOS на последнем месте контекста назван «context»",
        },
        {"en": "test for EOS before the limits", "ru": "проверяйте EOS раньше пределов"},
    ),
    Mistake(
        "one_token_too_many",
        "a mutation of right code",
        partial(mistaken_generation, asked=lambda max_new_tokens, ids: max_new_tokens + 1),
        {
            "en": "one token more than max_new_tokens",
            "ru": "новых токенов на один больше, чем max_new_tokens",
        },
        {"en": "for _ in range(max_new_tokens)", "ru": "for _ in range(max_new_tokens)"},
    ),
    Mistake(
        "one_token_too_few",
        "a mutation of right code",
        partial(mistaken_generation, asked=lambda max_new_tokens, ids: max_new_tokens - 1),
        {
            "en": "one token less than max_new_tokens",
            "ru": "новых токенов на один меньше, чем max_new_tokens",
        },
        {"en": "for _ in range(max_new_tokens)", "ru": "for _ in range(max_new_tokens)"},
    ),
    Mistake(
        "at_least_one_token",
        "a mutation of right code",
        partial(mistaken_generation, asked=lambda max_new_tokens, ids: max(max_new_tokens, 1)),
        {
            "en": "a token comes even where max_new_tokens is 0",
            "ru": "один токен выдан даже при max_new_tokens = 0",
        },
        {"en": "test the limit before the model", "ru": "проверьте предел до вызова модели"},
    ),
    Mistake(
        "limit_counts_the_prompt",
        "a mutation of right code",
        partial(mistaken_generation, asked=lambda max_new_tokens, ids: max_new_tokens - len(ids)),
        {
            "en": "max_new_tokens is taken for the length of prompt and answer together",
            "ru": "max_new_tokens принят за длину затравки вместе с ответом",
        },
        {"en": "count the new tokens only", "ru": "считайте только новые токены"},
    ),
    Mistake(
        "context_one_too_long",
        "Nehanth/swarmllm#31",
        partial(mistaken_generation, room=lambda size: size + 1),
        {
            "en": "one token more than the context holds is generated",
            "ru": "сгенерирован один токен сверх контекста",
        },
        {"en": "while len(ids) < max_length", "ru": "while len(ids) < max_length"},
    ),
    Mistake(
        "context_one_too_short",
        "a mutation of right code",
        partial(mistaken_generation, room=lambda size: size - 1),
        {
            "en": "the last place of the context is never used",
            "ru": "последнее место контекста не используется",
        },
        {"en": "while len(ids) < max_length", "ru": "while len(ids) < max_length"},
    ),
    Mistake(
        "context_before_length_limit",
        "a mutation of right code",
        partial(mistaken_generation, full=_generation_context_first),
        {
            "en": 'where both limits are reached at once it says "context"',
            "ru": "когда оба предела достигнуты сразу, назван «context»",
        },
        {"en": "test max_new_tokens first", "ru": "сначала проверяйте max_new_tokens"},
    ),
    Mistake(
        "full_context_called_length_limit",
        "a mutation of right code",
        partial(mistaken_generation, full=_generation_always_length),
        {
            "en": 'a full context is reported as "length_limit"',
            "ru": "полный контекст назван «length_limit»",
        },
        {"en": 'return new_ids, "context"', "ru": 'return new_ids, "context"'},
    ),
    Mistake(
        "length_limit_called_context",
        "a mutation of right code",
        partial(mistaken_generation, full=_generation_always_context),
        {
            "en": 'the limit of new tokens is reported as "context"',
            "ru": "предел числа новых токенов назван «context»",
        },
        {"en": 'return new_ids, "length_limit"', "ru": 'return new_ids, "length_limit"'},
    ),
)
