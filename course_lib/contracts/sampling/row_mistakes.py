"""Batched samplers that mix up the rows, or mishandle temperature 0."""

import numpy as np

from course_lib.contracts.engine.mistake import mistakes
from course_lib.contracts.sampling.distributions import mistaken_distribution
from course_lib.contracts.sampling.samplers import (
    at_sums,
    draw_rows,
    in_each_row,
    kept_rows,
    mistaken_sampler,
    softened_rows,
)

_OWN_ROW = "every step along the last axis: axis=-1 | каждый шаг по последней оси: axis=-1"
_ARGMAX = "if temperature == 0: logits.argmax(-1)"
_RIGHT_ROWS = in_each_row(mistaken_distribution())


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


def _one_number(probs, rng):
    return at_sums(probs, np.full(len(probs), rng.random()))


def _shuffled_strata(probs, rng):
    places = rng.permutation(len(probs))
    return at_sums(probs, (places + rng.random(len(probs))) / len(probs))


def _mirrored(probs, rng):
    numbers = rng.random(len(probs))
    numbers[1::2] = 1 - numbers[: len(probs) // 2 * 2 : 2]
    return at_sums(probs, np.minimum(numbers, np.nextafter(1.0, 0.0)))


def _divided_by_zero(logits, rng):
    with np.errstate(all="ignore"):
        probs = softened_rows(logits / 0.0)
        return (probs.cumsum(-1) > rng.random(len(probs))[:, None]).argmax(-1)


def _tied_at_random(logits, rng):
    tied = logits == logits.max(-1, keepdims=True)
    return draw_rows(tied / tied.sum(-1, keepdims=True), rng)


# fmt: off
ROW_MISTAKES = mistakes(
    mistaken_sampler,
    one_number_for_all_rows=("karpathy/nanochat#38",
        "equal rows always get the same token, as when one random number serves all rows | "
        "равные строки всегда дают один токен, как при одном случайном числе на все строки",
        "rng.random(B): a number for each row | rng.random(B): число на каждую строку",
        {"draw": _one_number}),
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
)
# fmt: on

# fmt: off
GREEDY_MISTAKES = mistakes(
    mistaken_sampler,
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
        _ARGMAX, {"greedy": lambda logits, rng: draw_rows(softened_rows(logits / 1e-05), rng)}),
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
)
# fmt: on
