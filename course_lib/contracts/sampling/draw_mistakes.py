"""Batched samplers that draw wrongly, from something else, or write where they must not."""

import copy

import numpy as np

from course_lib.contracts.engine.mistake import mistakes
from course_lib.contracts.sampling.distributions import mistaken_distribution
from course_lib.contracts.sampling.samplers import in_each_row, mistaken_sampler

_CDF = (
    "(sums <= u).sum(-1), not past the last kept id | "
    "(sums <= u).sum(-1), но не дальше последнего оставленного"
)
_RNG = "draw from the rng that is given | берите случайность из переданного rng"
_GUMBEL = "(log_probs + rng.gumbel(size=shape)).argmax(-1)"


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


# fmt: off
DRAW_MISTAKES = mistakes(
    mistaken_sampler,
    removed_when_the_draw_is_0=("NVIDIA/Megatron-Energon#260",
        "a draw of exactly 0.0 gives token 0 even if it is removed | "
        "если выпало ровно 0.0, получается токен 0, даже удалённый",
        "searchsorted(sums, u, side='right')", {"draw": _reaching}),
    past_the_end=("torch/torch7#453",
        "the sums end a little below 1, and a draw above them gives id V, which is no token | "
        "суммы кончаются чуть ниже 1, и число выше них даёт номер V: такого токена нет",
        _CDF, {"draw": _past_the_end}),
    clipped_to_the_end=("forcedotcom/distributions#89",
        "the sums end a little below 1, and a draw above them gives the last token, though removed "
        "| суммы кончаются чуть ниже 1, и число выше них даёт последний токен, хотя он удалён",
        _CDF, {"draw": _clipped_to_the_end}),
    half_precision_sums=("NVIDIA/Megatron-LM#7182",
        "sums in half precision lose the many small probabilities | "
        "суммы половинной точности теряют многие малые вероятности",
        "sums in float64 or float32 | суммы в float64 или float32", {"draw": _half_sums}),
    noise_subtracted=("chainer/chainerrl#104",
        "the Gumbel noise has the wrong sign | у шума Гумбеля неверный знак",
        _GUMBEL, {"draw": _by_noise(lambda rng, shape: -rng.gumbel(size=shape))}),
    noise_logistic=("aakhundov/tf-attend-infer-repeat#11",
        "the noise is log(u) - log(1 - u), right for two tokens only | "
        "шум log(u) - log(1 - u) верен только для двух токенов",
        _GUMBEL, {"draw": _by_noise(lambda rng, shape: rng.logistic(size=shape))}),
    sorted_place_returned=("",
        "the place after sorting comes back, not the id of the token | "
        "возвращается место после сортировки, а не номер токена",
        "np.take_along_axis(order, place, -1)", {"finish": _sorted_places}),
    batch_of_one_squeezed=("NVIDIA/tacotron2#303",
        "squeeze() takes away the batch axis too when the batch is 1 | "
        "squeeze() убирает и ось батча, когда в нём одна строка",
        "squeeze(-1)", {"finish": lambda ids, probs, greedily: np.squeeze(np.asarray(ids))}),
)
# fmt: on

# fmt: off
SOURCE_MISTAKES = mistakes(
    mistaken_sampler,
    global_generator=("bytedance/GRN#27",
        "the numbers come from the global numpy.random, not from rng | "
        "числа берутся из глобального numpy.random, а не из rng",
        _RNG, {"source": lambda rng: np.random}),
    reseeded_in_every_call=("ml-explore/mlx-lm#1620",
        "a generator with a fixed seed is made in every call: always the same draws | "
        "в каждом вызове создаётся генератор с одним зерном: выпадает всегда одно и то же",
        _RNG, {"source": lambda rng: np.random.default_rng(0)}),
    unseeded_generator=("",
        "a generator without a seed is made in every call: nothing can be repeated | "
        "в каждом вызове создаётся генератор без зерна: ничего не повторить",
        _RNG, {"source": lambda rng: np.random.default_rng()}),
    generator_copied=("",
        "a copy of rng is drawn from: rng stays, and the next call repeats the same | "
        "числа берутся из копии rng: сам он не сдвигается, и следующий вызов повторяет этот",
        _RNG, {"source": copy.deepcopy}),
)
# fmt: on

# fmt: off
LOGIT_MISTAKES = mistakes(
    None,
    logits_divided_in_place=("Adibvafa/CodonTransformer#20",
        "the caller's logits are divided by the temperature, again in every call | "
        "переданные логиты делятся на температуру, с каждым вызовом снова",
        "logits = logits / temperature, not /= | logits = logits / temperature, а не /=",
        lambda: _sampler_writing(_divide_in_place)),
    logits_erased_in_place=("sgl-project/sglang#15648",
        "the filters write -inf into the caller's logits | фильтры пишут -inf в переданные логиты",
        "work on a copy | работайте с копией", lambda: _sampler_writing(_erase_in_place)),
)
# fmt: on
