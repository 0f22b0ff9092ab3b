"""Generations that end too early, too late, or for another reason than they say."""

from typing import Any

from course_lib.contracts.engine.mistake import mistakes
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


# fmt: off
GENERATION_END_MISTAKES = mistakes(
    mistaken_generation,
    end_left_out=("",
        "EOS itself is not among the new ids | самого EOS нет среди новых ids",
        "append the token, then compare | сначала добавьте токен, потом сравните",
        {"finish": _generation_end_cut}),
    never_stops_at_eos=("pegainfer-project/pegainfer#238",
        "EOS stops nothing: generation always runs to a limit | "
        "EOS ничего не останавливает: генерация всегда идёт до предела",
        'if token == eos_id: stop with "eos" | при token == eos_id остановка с «eos»',
        {"ends": lambda ids, start, eos_id, asked, size: False}),
    junk_after_eos=("lvyufeng/PocketLLM#133",
        "after EOS it goes on to the limit, and the junk is returned | "
        "после EOS генерация идёт до предела, и возвращается мусор",
        "leave the loop at EOS | выходите из цикла на EOS",
        {"ends": lambda ids, start, eos_id, asked, size: False, "finish": _generation_first_eos}),
    eos_zero_ignored=("openvinotoolkit/openvino.genai#3593",
        "eos_id = 0 counts as no EOS at all | eos_id = 0 принят за отсутствие EOS",
        "if eos_id is not None",
        {"ends": lambda ids, start, eos_id, asked, size: bool(eos_id) and ids[-1] == eos_id}),
    no_eos_means_zero=("anthony-chaudhary/fak#12604",
        "without an eos_id token 0 ends the text | без eos_id текст кончается на токене 0",
        "if eos_id is not None",
        {"ends": lambda ids, start, eos_id, asked, size:
            ids[-1] == (eos_id or 0)}),
    eos_in_prompt_stops=("",
        "an EOS inside the prompt ends the text after one new token | "
        "EOS внутри затравки обрывает текст после одного нового токена",
        "compare the new token only | сравнивайте только новый токен",
        {"ends": lambda ids, start, eos_id, asked, size: eos_id in ids}),
    eos_in_prompt_is_the_end=("",
        "a prompt with an EOS in it gets no new token at all | "
        "затравка с EOS внутри не получает ни одного нового токена",
        "compare the new token only | сравнивайте только новый токен",
        {"before": lambda ids, eos_id: "eos" if eos_id in ids else ""}),
    eos_at_last_token_called_length_limit=("",
        'EOS as the last allowed token is reported as "length_limit" | '
        "EOS на последнем разрешённом токене назван «length_limit»",
        "test for EOS before the limits | проверяйте EOS раньше пределов",
        {"ends": lambda ids, start, eos_id, asked, size:
            ids[-1] == eos_id and len(ids) - start < asked}),
    eos_in_last_place_called_context=("",
        'EOS in the last place of the context is reported as "context" | '
        "EOS на последнем месте контекста назван «context»",
        "test for EOS before the limits | проверяйте EOS раньше пределов",
        {"ends": lambda ids, start, eos_id, asked, size:
            ids[-1] == eos_id and len(ids) < size}),
    one_token_too_many=("",
        "one token more than max_new_tokens | новых токенов на один больше, чем max_new_tokens",
        "for _ in range(max_new_tokens)",
        {"asked": lambda max_new_tokens, ids: max_new_tokens + 1}),
    one_token_too_few=("",
        "one token less than max_new_tokens | новых токенов на один меньше, чем max_new_tokens",
        "for _ in range(max_new_tokens)",
        {"asked": lambda max_new_tokens, ids: max_new_tokens - 1}),
    at_least_one_token=("",
        "a token comes even where max_new_tokens is 0 | "
        "один токен выдан даже при max_new_tokens = 0",
        "test the limit before the model | проверьте предел до вызова модели",
        {"asked": lambda max_new_tokens, ids: max(max_new_tokens, 1)}),
    limit_counts_the_prompt=("",
        "max_new_tokens is taken for the length of prompt and answer together | "
        "max_new_tokens принят за длину затравки вместе с ответом",
        "count the new tokens only | считайте только новые токены",
        {"asked": lambda max_new_tokens, ids: max_new_tokens - len(ids)}),
    context_one_too_long=("Nehanth/swarmllm#31",
        "one token more than the context holds is generated | "
        "сгенерирован один токен сверх контекста",
        "while len(ids) < max_length", {"room": lambda size: size + 1}),
    context_one_too_short=("",
        "the last place of the context is never used | последнее место контекста не используется",
        "while len(ids) < max_length", {"room": lambda size: size - 1}),
    context_before_length_limit=("",
        'where both limits are reached at once it says "context" | '
        "когда оба предела достигнуты сразу, назван «context»",
        "test max_new_tokens first | сначала проверяйте max_new_tokens",
        {"full": _generation_context_first}),
    full_context_called_length_limit=("",
        'a full context is reported as "length_limit" | полный контекст назван «length_limit»',
        'return new_ids, "context"', {"full": _generation_always_length}),
    length_limit_called_context=("",
        'the limit of new tokens is reported as "context" | '
        "предел числа новых токенов назван «context»",
        'return new_ids, "length_limit"', {"full": _generation_always_context}),
)
# fmt: on
