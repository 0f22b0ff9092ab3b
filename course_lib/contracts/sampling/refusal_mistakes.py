"""Sampling distributions that write where they must not, or accept what they must refuse."""

import math

from course_lib.contracts.engine.mistake import mistakes
from course_lib.contracts.sampling.distributions import (
    mistaken_distribution,
    refuse_bad_sampling,
)

_REFUSE_K = "ValueError unless 1 <= top_k <= V | ValueError, если не 1 <= top_k <= V"
_REFUSE_P = "ValueError unless 0 < top_p <= 1 | ValueError, если не 0 < top_p <= 1"
_REFUSE_T = "ValueError unless temperature > 0 | ValueError, если не temperature > 0"
_REFUSE_Z = "ValueError unless all are finite | ValueError, если не все конечны"
_COPY = "work on a copy: list(logits) | работайте с копией: list(logits)"


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


# fmt: off
WRITING_MISTAKES = mistakes(
    None,
    logits_divided_in_place=("Adibvafa/CodonTransformer#20",
        "the caller's logits are divided by the temperature, again in every call | "
        "переданные логиты делятся на температуру, с каждым вызовом снова",
        _COPY, lambda: _distribution_dividing),
    logits_erased_in_place=("sgl-project/sglang#15648",
        "the filters write -inf into the caller's logits | фильтры пишут -inf в переданные логиты",
        _COPY, lambda: _distribution_erasing),
    logits_sorted_in_place=("",
        "the caller's logits are sorted | переданный список логитов отсортирован на месте",
        "sorted(logits), not logits.sort() | sorted(logits), а не logits.sort()",
        lambda: _distribution_sorting),
    one_list_for_all=("",
        "one stored list is handed out each time, and a later call overwrites it | "
        "каждый раз отдаётся один и тот же список, и следующий вызов его перезаписывает",
        "return a new list | возвращайте новый список", _distribution_with_one_list),
)
# fmt: on

# fmt: off
ACCEPTING_MISTAKES = mistakes(
    None,
    nothing_checked=("",
        "bad arguments are not refused, and the result is meaningless | "
        "плохие аргументы не отвергаются, и результат лишён смысла",
        "check first, raise ValueError | сначала проверки с ValueError",
        lambda: _accepting(
            warm=[_not_positive], k=[_over_size], p=[_over_one],
            logits=[_some_nan, _some_infinite])),
    temperature_unchecked=("jmisilo/clip-gpt-captioning#46",
        "a temperature of 0 or below is accepted | температура 0 и ниже принимается",
        _REFUSE_T, lambda: _accepting(warm=[_not_positive])),
    zero_temperature_accepted=("karpathy/nanoGPT#739",
        "a temperature of 0 is accepted, as greedy or by a division; here it is an error | "
        "температура 0 принимается (как жадный выбор или с делением), а должна быть ошибка",
        _REFUSE_T, lambda: _accepting(warm=[lambda t: t == 0])),
    negative_temperature_accepted=("",
        "a negative temperature is accepted, which makes the unlikeliest the likeliest | "
        "принимается отрицательная температура, при которой самый невероятный токен вероятнее "
        "всего",
        _REFUSE_T, lambda: _accepting(warm=[lambda t: t < 0])),
    top_k_over_v_accepted=("karpathy/nanoGPT@91d02510",
        "a top_k above V is quietly cut to V | top_k больше V молча урезан до V",
        _REFUSE_K, lambda: _accepting(k=[_over_size])),
    top_k_zero_accepted=("InhwanBae/LMTrajectory#4",
        "top_k=0 is accepted as off; here None means off | "
        "top_k=0 принимается как «выключено», а здесь выключает None",
        _REFUSE_K, lambda: _accepting(k=[lambda k, size: k == 0])),
    top_k_below_one_accepted=("ggml-org/llama.cpp#13173",
        "a top_k of 0 or below is accepted; here None means off | "
        "top_k ниже 1 принимается, а здесь выключает None",
        _REFUSE_K, lambda: _accepting(k=[_below_one])),
    top_k_unchecked=("",
        "any top_k is accepted | принимается любой top_k",
        _REFUSE_K, lambda: _accepting(k=[_below_one, _over_size])),
    top_p_over_one_accepted=("",
        "a top_p above 1 is accepted | принимается top_p больше 1",
        _REFUSE_P, lambda: _accepting(p=[_over_one])),
    top_p_below_zero_accepted=("",
        "a top_p of 0 or below is accepted | принимается top_p, равный 0 или меньше",
        _REFUSE_P, lambda: _accepting(p=[_not_positive])),
    top_p_unchecked=("",
        "any top_p is accepted | принимается любой top_p",
        _REFUSE_P, lambda: _accepting(p=[_not_positive, _over_one])),
    nan_logits_accepted=("",
        "logits with NaN are accepted | принимаются логиты с NaN",
        _REFUSE_Z, lambda: _accepting(logits=[_some_nan])),
    infinite_logits_accepted=("QwenLM/Qwen3-TTS#355",
        "infinite logits are accepted | принимаются бесконечные логиты",
        _REFUSE_Z, lambda: _accepting(logits=[_some_infinite])),
    minus_infinite_logits_accepted=("",
        "logits of -inf are accepted as tokens removed earlier | "
        "логиты -inf считаются удалёнными раньше токенами",
        _REFUSE_Z, lambda: _accepting(logits=[_some_minus_infinite])),
    non_finite_logits_accepted=("ohdearquant/lattice#295",
        "logits that are not finite are accepted | принимаются логиты с NaN или бесконечностью",
        _REFUSE_Z, lambda: _accepting(logits=[_some_nan, _some_infinite])),
    empty_logits_accepted=("",
        "an empty list of logits is accepted | принимается пустой список логитов",
        "ValueError if there are no logits | ValueError, если логитов нет",
        lambda: _accepting(logits=[_not_one])),
)
# fmt: on
