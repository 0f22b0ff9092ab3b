"""Sampling distributions that write where they must not, or accept what they must refuse."""

import math

from course_lib.contracts.engine.mistake import Mistake
from course_lib.contracts.sampling._distributions import (
    mistaken_distribution,
    refuse_bad_sampling,
)

_REFUSE_K = {
    "en": "ValueError unless 1 <= top_k <= V",
    "ru": "ValueError, если не 1 <= top_k <= V",
}
_REFUSE_P = {"en": "ValueError unless 0 < top_p <= 1", "ru": "ValueError, если не 0 < top_p <= 1"}
_REFUSE_T = {
    "en": "ValueError unless temperature > 0",
    "ru": "ValueError, если не temperature > 0",
}
_REFUSE_Z = {"en": "ValueError unless all are finite", "ru": "ValueError, если не все конечны"}
_COPY = {"en": "work on a copy: list(logits)", "ru": "работайте с копией: list(logits)"}


def _distribution_dividing(logits, temperature=1.0, top_k=None, top_p=None):
    refuse_bad_sampling(logits, temperature, top_k, top_p)
    for token in range(len(logits)):
        logits[token] /= temperature
    return mistaken_distribution()(logits, 1.0, top_k, top_p)


def _distribution_erasing(logits, temperature=1.0, top_k=None, top_p=None):
    probs = mistaken_distribution()(logits, temperature, top_k, top_p)
    if top_k is not None or top_p is not None:
        for token, prob in enumerate(probs):
            logits[token] = logits[token] if prob else -math.inf
    return probs


def _distribution_sorting(logits, temperature=1.0, top_k=None, top_p=None):
    probs = mistaken_distribution()(logits, temperature, top_k, top_p)
    logits.sort(reverse=True)
    return probs


def _distribution_with_one_list():
    stored = []

    def token_distribution(logits, temperature=1.0, top_k=None, top_p=None):
        stored[:] = mistaken_distribution()(logits, temperature, top_k, top_p)
        return stored

    return token_distribution


def _accepting(*, warm=(), k=(), p=(), logits=()):
    """A distribution that accepts some of what it must refuse and answers as if it were legal.

    Each group holds the bad values that pass, as predicates; `answers` says with which arguments
    the answer is then made.
    """

    def token_distribution(logits_given, temperature=1.0, top_k=None, top_p=None):
        size = len(logits_given)
        broken = [z for z in logits_given if not math.isfinite(z)]
        if any(passes(temperature) for passes in warm):
            temperature = 1.0 if temperature < 0 else 1e-3
        if top_k is not None and any(passes(top_k, size) for passes in k):
            top_k = None
        if top_p is not None and any(passes(top_p) for passes in p):
            top_p = None
        if any(passes(broken, size) for passes in logits):
            logits_given = [z if math.isfinite(z) else 0.0 for z in logits_given] or [0.0]
        return mistaken_distribution()(logits_given, temperature, top_k, top_p)

    return token_distribution


def _not_positive(value):
    return value <= 0


def _over_size(value, size):
    return value > size


def _below_one(value, size):
    return value < 1


def _over_one(value):
    return value > 1


def _some_nan(broken, size):
    return any(math.isnan(z) for z in broken)


def _some_infinite(broken, size):
    return any(math.isinf(z) for z in broken)


def _some_minus_infinite(broken, size):
    return bool(broken) and set(broken) == {-math.inf}


def _not_one(broken, size):
    return size == 0


WRITING_MISTAKES = (
    Mistake(
        "logits_divided_in_place",
        "Adibvafa/CodonTransformer#20",
        lambda: _distribution_dividing,
        {
            "en": "the caller's logits are divided by the temperature, again in every call",
            "ru": "переданные логиты делятся на температуру, с каждым вызовом снова",
        },
        _COPY,
    ),
    Mistake(
        "logits_erased_in_place",
        "sgl-project/sglang#15648",
        lambda: _distribution_erasing,
        {
            "en": "the filters write -inf into the caller's logits",
            "ru": "фильтры пишут -inf в переданные логиты",
        },
        _COPY,
    ),
    Mistake(
        "logits_sorted_in_place",
        "a mutation of right code",
        lambda: _distribution_sorting,
        {
            "en": "the caller's logits are sorted",
            "ru": "переданный список логитов отсортирован на месте",
        },
        {"en": "sorted(logits), not logits.sort()", "ru": "sorted(logits), а не logits.sort()"},
    ),
    Mistake(
        "one_list_for_all",
        "a mutation of right code",
        _distribution_with_one_list,
        {
            "en": "one stored list is handed out each time, and a later call overwrites it",
            "ru": "каждый раз отдаётся один и тот же список, и следующий вызов его перезаписывает",
        },
        {"en": "return a new list", "ru": "возвращайте новый список"},
    ),
)

ACCEPTING_MISTAKES = (
    Mistake(
        "nothing_checked",
        "a mutation of right code",
        lambda: _accepting(
            warm=[_not_positive], k=[_over_size], p=[_over_one], logits=[_some_nan, _some_infinite]
        ),
        {
            "en": "bad arguments are not refused, and the result is meaningless",
            "ru": "плохие аргументы не отвергаются, и результат лишён смысла",
        },
        {"en": "check first, raise ValueError", "ru": "сначала проверки с ValueError"},
    ),
    Mistake(
        "temperature_unchecked",
        "jmisilo/clip-gpt-captioning#46",
        lambda: _accepting(warm=[_not_positive]),
        {"en": "a temperature of 0 or below is accepted", "ru": "температура 0 и ниже принимается"},
        _REFUSE_T,
    ),
    Mistake(
        "zero_temperature_accepted",
        "karpathy/nanoGPT#739",
        lambda: _accepting(warm=[lambda t: t == 0]),
        {
            "en": "a temperature of 0 is accepted, as greedy or by a division; here it is an error",
            "ru": "температура 0 принимается (как жадный выбор или с делением), а должна быть "
            "ошибка",
        },
        _REFUSE_T,
    ),
    Mistake(
        "negative_temperature_accepted",
        "a mutation of right code",
        lambda: _accepting(warm=[lambda t: t < 0]),
        {
            "en": "a negative temperature is accepted, which makes the unlikeliest the likeliest",
            "ru": "принимается отрицательная температура, при которой самый невероятный токен "
            "вероятнее всего",
        },
        _REFUSE_T,
    ),
    Mistake(
        "top_k_over_v_accepted",
        "karpathy/nanoGPT@91d02510",
        lambda: _accepting(k=[_over_size]),
        {"en": "a top_k above V is quietly cut to V", "ru": "top_k больше V молча урезан до V"},
        _REFUSE_K,
    ),
    Mistake(
        "top_k_zero_accepted",
        "InhwanBae/LMTrajectory#4",
        lambda: _accepting(k=[lambda k, size: k == 0]),
        {
            "en": "top_k=0 is accepted as off; here None means off",
            "ru": "top_k=0 принимается как «выключено», а здесь выключает None",
        },
        _REFUSE_K,
    ),
    Mistake(
        "top_k_below_one_accepted",
        "ggml-org/llama.cpp#13173",
        lambda: _accepting(k=[_below_one]),
        {
            "en": "a top_k of 0 or below is accepted; here None means off",
            "ru": "top_k ниже 1 принимается, а здесь выключает None",
        },
        _REFUSE_K,
    ),
    Mistake(
        "top_k_unchecked",
        "a mutation of right code",
        lambda: _accepting(k=[_below_one, _over_size]),
        {"en": "any top_k is accepted", "ru": "принимается любой top_k"},
        _REFUSE_K,
    ),
    Mistake(
        "top_p_over_one_accepted",
        "a mutation of right code",
        lambda: _accepting(p=[_over_one]),
        {"en": "a top_p above 1 is accepted", "ru": "принимается top_p больше 1"},
        _REFUSE_P,
    ),
    Mistake(
        "top_p_below_zero_accepted",
        "a mutation of right code",
        lambda: _accepting(p=[_not_positive]),
        {"en": "a top_p of 0 or below is accepted", "ru": "принимается top_p, равный 0 или меньше"},
        _REFUSE_P,
    ),
    Mistake(
        "top_p_unchecked",
        "a mutation of right code",
        lambda: _accepting(p=[_not_positive, _over_one]),
        {"en": "any top_p is accepted", "ru": "принимается любой top_p"},
        _REFUSE_P,
    ),
    Mistake(
        "nan_logits_accepted",
        "a mutation of right code",
        lambda: _accepting(logits=[_some_nan]),
        {"en": "logits with NaN are accepted", "ru": "принимаются логиты с NaN"},
        _REFUSE_Z,
    ),
    Mistake(
        "infinite_logits_accepted",
        "QwenLM/Qwen3-TTS#355",
        lambda: _accepting(logits=[_some_infinite]),
        {"en": "infinite logits are accepted", "ru": "принимаются бесконечные логиты"},
        _REFUSE_Z,
    ),
    Mistake(
        "minus_infinite_logits_accepted",
        "a mutation of right code",
        lambda: _accepting(logits=[_some_minus_infinite]),
        {
            "en": "logits of -inf are accepted as tokens removed earlier",
            "ru": "логиты -inf считаются удалёнными раньше токенами",
        },
        _REFUSE_Z,
    ),
    Mistake(
        "non_finite_logits_accepted",
        "ohdearquant/lattice#295",
        lambda: _accepting(logits=[_some_nan, _some_infinite]),
        {
            "en": "logits that are not finite are accepted",
            "ru": "принимаются логиты с NaN или бесконечностью",
        },
        _REFUSE_Z,
    ),
    Mistake(
        "empty_logits_accepted",
        "a mutation of right code",
        lambda: _accepting(logits=[_not_one]),
        {"en": "an empty list of logits is accepted", "ru": "принимается пустой список логитов"},
        {"en": "ValueError if there are no logits", "ru": "ValueError, если логитов нет"},
    ),
)
