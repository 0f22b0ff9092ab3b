"""Batched samplers that are wrong in one way each, as people reported them."""

import copy
from dataclasses import replace
from functools import partial

import numpy as np

from course_lib.contracts.engine.mistake import Mistake, mistakes
from course_lib.contracts.sampling.samplers import (
    at_sums,
    draw_rows,
    in_each_row,
    kept_rows,
    mistaken_sampler,
    softened_rows,
)
from course_lib.contracts.sampling.sampling_mistakes import SAMPLING_MISTAKES
from course_lib.contracts.sampling.steps import mistaken_distribution

_OF_DISTRIBUTIONS = (
    *("temperature_ignored", "temperature_multiplied", "temperature_twice"),
    *("temperature_after_filters", "one_more_kept", "one_less_kept", "top_k_ignored"),
    *("ties_kept", "higher_ids_kept", "top_p_ties_kept", "crossing_dropped", "extra_on_equality"),
    *("one_past_crossing", "top_p_ignored", "top_p_ignored_with_top_k", "top_p_of_whole_mass"),
    *("top_p_in_id_order", "min_p_instead", "softmax_again", "removed_filled_with_1e_10"),
)
_OWN_ROW = "every step along the last axis: axis=-1 | каждый шаг по последней оси: axis=-1"
_ARGMAX = "if temperature == 0: logits.argmax(-1)"
_CDF = (
    "(sums <= u).sum(-1), not past the last kept id | "
    "(sums <= u).sum(-1), но не дальше последнего оставленного"
)
_RNG = "draw from the rng that is given | берите случайность из переданного rng"
_GUMBEL = "(log_probs + rng.gumbel(size=shape)).argmax(-1)"
_RIGHT_ROWS = in_each_row(mistaken_distribution())


def sampler_of(mistake: Mistake) -> Mistake:
    """The same mistake, made by a sampler in the distribution that it draws from."""
    distributions = in_each_row(mistake.make())
    return replace(mistake, make=partial(mistaken_sampler, distribution=distributions))


def _first_rows_filter(logits, temperature, top_k, top_p):
    kept = _RIGHT_ROWS(logits[:1], temperature, top_k, top_p) > 0
    return kept_rows(softened_rows(logits / temperature) * kept)


def _first_row_unfiltered(logits, temperature, top_k, top_p):
    probs = _RIGHT_ROWS(logits, temperature, top_k, top_p)
    probs[:1] = _RIGHT_ROWS(logits[:1], temperature, None, None)
    return probs


def _other_rows_filter(logits, temperature, top_k, top_p):
    """The sorted ids of one row are mapped back by the order of the first."""
    probs = _RIGHT_ROWS(logits, temperature, top_k, top_p)
    if top_k is None and top_p is None:
        return probs
    order = np.argsort(-logits, axis=-1, kind="stable")
    falling = np.take_along_axis(probs, order, -1)
    mixed = np.zeros_like(probs)
    mixed[:, order[0]] = falling
    return mixed


def _over_the_batch(logits, temperature, top_k, top_p):
    kept = _RIGHT_ROWS(logits, temperature, top_k, top_p) > 0
    return kept_rows(softened_rows(logits / temperature, axis=0) * kept)


def _nucleus_of_the_batch(logits, temperature, top_k, top_p):
    probs = _RIGHT_ROWS(logits, temperature, top_k, None)
    if top_p is None or top_p == 1:
        return probs
    flat = probs.reshape(-1) / len(probs)
    order = np.argsort(-flat, kind="stable")
    keep = np.zeros(flat.shape, dtype=bool)
    keep[order] = flat[order].cumsum() - flat[order] < top_p
    keep = keep.reshape(probs.shape)
    keep[np.arange(len(probs)), probs.argmax(-1)] = True
    return kept_rows(probs * keep)


def _shuffled_strata(probs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    places = rng.permutation(len(probs))
    return at_sums(probs, (places + rng.random(len(probs))) / len(probs))


def _mirrored(probs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    numbers = rng.random(len(probs))
    numbers[1::2] = 1 - numbers[: len(probs) // 2 * 2 : 2]
    return at_sums(probs, np.minimum(numbers, np.nextafter(1.0, 0.0)))


def _divided_by_zero(logits: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    with np.errstate(all="ignore"):
        probs = softened_rows(logits / 0.0)
        return (probs.cumsum(-1) > rng.random(len(probs))[:, None]).argmax(-1)


def _tied_at_random(logits: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    tied = logits == logits.max(-1, keepdims=True)
    return draw_rows(tied / tied.sum(-1, keepdims=True), rng)


def _past_the_end(probs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (probs.cumsum(-1) <= rng.random(len(probs))[:, None]).sum(-1)


def _by_noise(noise):
    def draw(probs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        with np.errstate(divide="ignore"):
            scores = np.log(probs)
        return np.where(probs > 0, scores + noise(rng, probs.shape), -np.inf).argmax(-1)

    return draw


def _sorted_places(ids, probs, greedily):
    if greedily:
        return ids
    order = np.argsort(-probs, axis=-1, kind="stable")
    return (order == ids[:, None]).argmax(-1)


def _half_sums(probs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Sums in half precision: what is added to a half of 1 is lost when it is small."""
    sums = np.cumsum(probs.astype(np.float16), axis=-1, dtype=np.float16).astype(np.float64)
    return at_sums(probs, rng.random(len(probs)) * sums[:, -1], sums=sums)


def _divided_in_place(logits, temperature, top_k, top_p):
    """The logits of a caller who has float64 are his own array."""
    probs = _RIGHT_ROWS(logits, temperature, top_k, top_p)
    logits /= temperature
    return probs


def _erased_in_place(logits, temperature, top_k, top_p):
    probs = _RIGHT_ROWS(logits, temperature, top_k, top_p)
    logits[probs == 0] = -np.inf
    return probs


# fmt: off
_OF_SAMPLERS = mistakes(
    mistaken_sampler,
    one_number_for_all_rows=("karpathy/nanochat#38",
        "equal rows always get the same token, as when one random number serves all rows | "
        "равные строки всегда дают один токен, как при одном случайном числе на все строки",
        "rng.random(B): a number for each row | rng.random(B): число на каждую строку",
        {"draw": lambda probs, rng: at_sums(probs, np.full(len(probs), rng.random()))}),
    rows_share_out_the_unit=("",
        "the rows draw without replacement from slices of [0, 1), so that they depend on one "
        "another | строки выбирают части отрезка [0, 1) без возвращения и потому зависимы",
        "rng.random(B), nothing permuted | rng.random(B), без перестановок",
        {"draw": _shuffled_strata}),
    rows_mirrored=("",
        "every second row uses 1 - u of the row before it | "
        "каждая вторая строка берёт 1 - u предыдущей",
        "rng.random(B)", {"draw": _mirrored}),
    first_rows_filter_for_all=("facebookresearch/jepa#93",
        "what the filters keep in the first row is kept in all rows | "
        "то, что фильтры оставили в первой строке, оставлено во всех",
        _OWN_ROW, {"distribution": _first_rows_filter}),
    first_rows_order_for_all=("Blaizzy/mlx-vlm#1094",
        "sorted places of every row are mapped back by the order of the first row | "
        "места после сортировки переводятся в номера по порядку первой строки",
        "np.take_along_axis(order, place, -1)", {"distribution": _other_rows_filter}),
    first_row_unfiltered=("fishaudio/fish-speech#1326",
        "the filters do not act on the first row: [0] is a row here, not the first token | "
        "на первую строку фильтры не действуют: [0] здесь — строка, а не первый токен",
        "remove[..., 0] = False", {"distribution": _first_row_unfiltered}),
    softmax_over_the_batch=("DeepReinforcementLearning/DeepReinforcementLearningInAction#32",
        "the softmax runs over the rows of the batch, not over the tokens | "
        "softmax идёт по строкам батча, а не по токенам",
        _OWN_ROW, {"distribution": _over_the_batch}),
    nucleus_of_the_whole_batch=("",
        "top-p sorts and sums the whole batch at once | "
        "top-p сортирует и складывает весь батч сразу",
        _OWN_ROW, {"distribution": _nucleus_of_the_batch}),
    zero_temperature_divides=("karpathy/nanoGPT#738",
        "temperature 0 is divided by | логиты делятся на температуру 0",
        _ARGMAX, {"greedy": _divided_by_zero}),
    zero_temperature_samples=("google-deepmind/gemma#573",
        "temperature 0 leaves the logits undivided and samples as at temperature 1 | "
        "при температуре 0 логиты не делятся, и выбор идёт как при температуре 1",
        _ARGMAX, {"greedy": lambda logits, rng: draw_rows(softened_rows(logits), rng)}),
    zero_temperature_clamped=("sgl-project/mini-sglang#24",
        "temperature 0 becomes a small one: ties and near ties are drawn at random | "
        "температура 0 заменена малой: между равными и почти равными выбор случаен",
        _ARGMAX, {"greedy": lambda logits, rng: draw_rows(softened_rows(logits / 1e-5), rng)}),
    greedy_ties_at_random=("vllm-project/tpu-inference#3580",
        "at temperature 0 one of the equal logits is drawn at random | "
        "при температуре 0 из равных логитов выбор случаен",
        _ARGMAX, {"greedy": _tied_at_random}),
    greedy_ties_to_the_last=("",
        "at temperature 0 the last of equal logits is taken, as a sort does | "
        "при температуре 0 из равных логитов берётся последний (как при сортировке)",
        _ARGMAX, {"greedy": lambda logits, rng: logits.shape[-1] - 1 - logits[:, ::-1].argmax(-1)}),
    always_greedy=("huggingface/transformers#22405",
        "the likeliest token is taken at any temperature | "
        "при любой температуре берётся самый вероятный токен",
        "draw when temperature > 0 | при temperature > 0 выбирайте случайно",
        {"distribution": lambda logits, t, k, p: _RIGHT_ROWS(logits, t, 1, None)}),
    removed_when_the_draw_is_0=("NVIDIA/Megatron-Energon#260",
        "a draw of exactly 0.0 gives token 0 even if it is removed | "
        "если выпало ровно 0.0, получается токен 0, даже удалённый",
        "searchsorted(sums, u, side='right')",
        {"draw": lambda probs, rng: at_sums(probs, rng.random(len(probs)), np.less)}),
    past_the_end=("torch/torch7#453",
        "the sums end a little below 1, and a draw above them gives id V, which is no token | "
        "суммы кончаются чуть ниже 1, и число выше них даёт номер V: такого токена нет",
        _CDF, {"draw": _past_the_end}),
    clipped_to_the_end=("forcedotcom/distributions#89",
        "the sums end a little below 1, and a draw above them gives the last token, though "
        "removed | суммы кончаются чуть ниже 1, и число выше них даёт последний токен, хотя он "
        "удалён",
        _CDF,
        {"draw": lambda probs, rng: np.minimum(_past_the_end(probs, rng), probs.shape[-1] - 1)}),
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
    logits_divided_in_place=("Adibvafa/CodonTransformer#20",
        "the caller's logits are divided by the temperature, again in every call | "
        "переданные логиты делятся на температуру, с каждым вызовом снова",
        "logits = logits / temperature, not /= | logits = logits / temperature, а не /=",
        {"distribution": _divided_in_place}),
    logits_erased_in_place=("sgl-project/sglang#15648",
        "the filters write -inf into the caller's logits | фильтры пишут -inf в переданные логиты",
        "work on a copy | работайте с копией", {"distribution": _erased_in_place}),
)
# fmt: on
SAMPLER_MISTAKES = (
    *(sampler_of(each) for each in SAMPLING_MISTAKES if each.name in _OF_DISTRIBUTIONS),
    *_OF_SAMPLERS,
)
