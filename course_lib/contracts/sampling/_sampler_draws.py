"""Batched samplers that draw wrongly, from something else, or write where they must not."""

import copy
from functools import partial

import numpy as np

from course_lib.contracts.engine.mistake import Mistake
from course_lib.contracts.sampling._distributions import mistaken_distribution
from course_lib.contracts.sampling._samplers import in_each_row, mistaken_sampler

_CDF = {
    "en": "(sums <= u).sum(-1), not past the last kept id",
    "ru": "(sums <= u).sum(-1), но не дальше последнего оставленного",
}
_RNG = {"en": "draw from the rng that is given", "ru": "берите случайность из переданного rng"}
_GUMBEL = {
    "en": "(log_probs + rng.gumbel(size=shape)).argmax(-1)",
    "ru": "(log_probs + rng.gumbel(size=shape)).argmax(-1)",
}


def _reaching(probs, rng):
    """The first running sum that reaches the number: at 0.0 that is token 0, removed or not."""
    sums, numbers = probs.cumsum(-1), rng.random(len(probs))
    last = probs.shape[-1] - 1 - (probs[:, ::-1] > 0).argmax(-1)
    return np.minimum((sums < numbers[:, None]).sum(-1), last)


def _past_the_end(probs, rng):
    return (probs.cumsum(-1) <= rng.random(len(probs))[:, None]).sum(-1)


def _clipped_to_the_end(probs, rng):
    return np.minimum(_past_the_end(probs, rng), probs.shape[-1] - 1)


def _half_sums(probs, rng):
    """Sums in half precision: what is added to a half of 1 is lost when it is small."""
    sums = np.cumsum(probs.astype(np.float16), axis=-1, dtype=np.float16).astype(np.float64)
    last = probs.shape[-1] - 1 - (probs[:, ::-1] > 0).argmax(-1)
    numbers = rng.random(len(probs)) * sums[:, -1]
    return np.minimum((sums <= numbers[:, None]).sum(-1), last)


def _by_noise(noise):
    def draw(probs, rng):
        with np.errstate(divide="ignore"):
            scores = np.log(probs)
        return np.where(probs > 0, scores + noise(rng, probs.shape), -np.inf).argmax(-1)

    return draw


def _sorted_places(ids, probs, greedily):
    if greedily:
        return ids
    order = np.argsort(-probs, axis=-1, kind="stable")
    return (order == ids[:, None]).argmax(-1)


def _sampler_writing(change):
    """A right sampler that then writes into the caller's logits."""

    def sample(logits, temperature, top_k, top_p, rng):
        ids = mistaken_sampler()(logits, temperature, top_k, top_p, rng)
        change(logits, temperature, top_k, top_p)
        return ids

    return sample


def _divide_in_place(logits, temperature, top_k, top_p):
    if temperature > 0:
        logits /= temperature


def _erase_in_place(logits, temperature, top_k, top_p):
    if temperature > 0 and (top_k is not None or top_p is not None):
        probs = in_each_row(mistaken_distribution())(logits, temperature, top_k, top_p)
        logits[probs == 0] = -np.inf


DRAW_MISTAKES = (
    Mistake(
        "removed_when_the_draw_is_0",
        "NVIDIA/Megatron-Energon#260",
        partial(mistaken_sampler, draw=_reaching),
        {
            "en": "a draw of exactly 0.0 gives token 0 even if it is removed",
            "ru": "если выпало ровно 0.0, получается токен 0, даже удалённый",
        },
        {"en": "searchsorted(sums, u, side='right')", "ru": "searchsorted(sums, u, side='right')"},
    ),
    Mistake(
        "past_the_end",
        "torch/torch7#453",
        partial(mistaken_sampler, draw=_past_the_end),
        {
            "en": "the sums end a little below 1, and a draw above them gives id V, which is no "
            "token",
            "ru": "суммы кончаются чуть ниже 1, и число выше них даёт номер V: такого токена нет",
        },
        _CDF,
    ),
    Mistake(
        "clipped_to_the_end",
        "forcedotcom/distributions#89",
        partial(mistaken_sampler, draw=_clipped_to_the_end),
        {
            "en": "the sums end a little below 1, and a draw above them gives the last token, "
            "though removed",
            "ru": "суммы кончаются чуть ниже 1, и число выше них даёт последний токен, хотя он "
            "удалён",
        },
        _CDF,
    ),
    Mistake(
        "half_precision_sums",
        "NVIDIA/Megatron-LM#7182",
        partial(mistaken_sampler, draw=_half_sums),
        {
            "en": "sums in half precision lose the many small probabilities",
            "ru": "суммы половинной точности теряют многие малые вероятности",
        },
        {"en": "sums in float64 or float32", "ru": "суммы в float64 или float32"},
    ),
    Mistake(
        "noise_subtracted",
        "chainer/chainerrl#104",
        partial(mistaken_sampler, draw=_by_noise(lambda rng, shape: -rng.gumbel(size=shape))),
        {"en": "the Gumbel noise has the wrong sign", "ru": "у шума Гумбеля неверный знак"},
        _GUMBEL,
    ),
    Mistake(
        "noise_logistic",
        "aakhundov/tf-attend-infer-repeat#11",
        partial(mistaken_sampler, draw=_by_noise(lambda rng, shape: rng.logistic(size=shape))),
        {
            "en": "the noise is log(u) - log(1 - u), right for two tokens only",
            "ru": "шум log(u) - log(1 - u) верен только для двух токенов",
        },
        _GUMBEL,
    ),
    Mistake(
        "sorted_place_returned",
        "a mutation of right code",
        partial(mistaken_sampler, finish=_sorted_places),
        {
            "en": "the place after sorting comes back, not the id of the token",
            "ru": "возвращается место после сортировки, а не номер токена",
        },
        {
            "en": "np.take_along_axis(order, place, -1)",
            "ru": "np.take_along_axis(order, place, -1)",
        },
    ),
    Mistake(
        "batch_of_one_squeezed",
        "NVIDIA/tacotron2#303",
        partial(mistaken_sampler, finish=lambda ids, probs, greedily: np.squeeze(np.asarray(ids))),
        {
            "en": "squeeze() takes away the batch axis too when the batch is 1",
            "ru": "squeeze() убирает и ось пакета, когда в нём одна строка",
        },
        {"en": "squeeze(-1)", "ru": "squeeze(-1)"},
    ),
)

SOURCE_MISTAKES = (
    Mistake(
        "global_generator",
        "bytedance/GRN#27",
        partial(mistaken_sampler, source=lambda rng: np.random),
        {
            "en": "the numbers come from the global numpy.random, not from rng",
            "ru": "числа берутся из глобального numpy.random, а не из rng",
        },
        _RNG,
    ),
    Mistake(
        "reseeded_in_every_call",
        "ml-explore/mlx-lm#1620",
        partial(mistaken_sampler, source=lambda rng: np.random.default_rng(0)),
        {
            "en": "a generator with a fixed seed is made in every call: always the same draws",
            "ru": "в каждом вызове создаётся генератор с одним зерном: выпадает всегда одно и то "
            "же",
        },
        _RNG,
    ),
    Mistake(
        "unseeded_generator",
        "a mutation of right code",
        partial(mistaken_sampler, source=lambda rng: np.random.default_rng()),
        {
            "en": "a generator without a seed is made in every call: nothing can be repeated",
            "ru": "в каждом вызове создаётся генератор без зерна: ничего не повторить",
        },
        _RNG,
    ),
    Mistake(
        "generator_copied",
        "a mutation of right code",
        partial(mistaken_sampler, source=copy.deepcopy),
        {
            "en": "a copy of rng is drawn from: rng stays, and the next call repeats the same",
            "ru": "числа берутся из копии rng: сам он не сдвигается, и следующий вызов повторяет "
            "этот",
        },
        _RNG,
    ),
)

LOGIT_MISTAKES = (
    Mistake(
        "logits_divided_in_place",
        "Adibvafa/CodonTransformer#20",
        lambda: _sampler_writing(_divide_in_place),
        {
            "en": "the caller's logits are divided by the temperature, again in every call",
            "ru": "переданные логиты делятся на температуру, с каждым вызовом снова",
        },
        {
            "en": "logits = logits / temperature, not /=",
            "ru": "logits = logits / temperature, а не /=",
        },
    ),
    Mistake(
        "logits_erased_in_place",
        "sgl-project/sglang#15648",
        lambda: _sampler_writing(_erase_in_place),
        {
            "en": "the filters write -inf into the caller's logits",
            "ru": "фильтры пишут -inf в переданные логиты",
        },
        {"en": "work on a copy", "ru": "работайте с копией"},
    ),
)
