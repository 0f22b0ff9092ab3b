"""Losses of a long text by windows that are wrong in one way each, as people reported them."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.engine.mistake import mistakes

Windows = Iterable[tuple[int, int]]  # begin and end


def strided_windows(length: int, max_length: int, stride: int) -> Windows:
    """Begin and end of the windows, one step of the right formula."""
    for begin in range(0, length, stride):
        yield begin, min(begin + max_length, length)
        if begin + max_length >= length:
            return


def mistaken_strided_nll(
    *,
    windows: Callable[[int, int, int], Windows] = strided_windows,
    fresh: Callable[..., Tensor] = lambda nats, begin, done, stride: nats[done - begin - 1 :],
    reduce: Callable[..., Any] = lambda nats, length, parts: nats.mean(),
) -> Callable[..., float]:
    """A strided loss with some of its steps replaced: `fresh` are the nats that a window counts."""

    def strided_nll(
        score: Callable[[Any], Tensor], ids: Tensor, max_length: int, stride: int
    ) -> float:
        parts, done = [], 1
        for begin, end in windows(len(ids), max_length, stride):
            nats = torch.as_tensor(score(ids[begin:end]))
            parts.append(fresh(nats, begin, done, stride))
            done = end
        return float(reduce(torch.cat(parts), len(ids), parts))

    return strided_nll


def _first_new_lost(nats: Tensor, begin: int, done: int, stride: int) -> Tensor:
    return nats[done - begin - (begin == 0) :]


def _means_weighing(first: int, later: int) -> Callable[..., Any]:
    """Window means, each weighted by its number of new tokens and so many more."""

    def reduce(nats: Tensor, length: int, parts: Sequence[Tensor]) -> Any:
        weights = [len(part) + (later if place else first) for place, part in enumerate(parts)]
        pairs = zip(weights, parts, strict=True)
        return sum(weight * part.mean() for weight, part in pairs if weight > 0) / sum(weights)

    return reduce


def _blocks(length: int, max_length: int, stride: int) -> Windows:
    return strided_windows(length, max_length, max_length)


# fmt: off
STRIDED_NLL_MISTAKES = mistakes(
    mistaken_strided_nll,
    stride_tokens_of_the_last_too=("",
        "every later window counts its last stride tokens, though the last one may bring fewer new "
        "ones | каждое следующее окно считает последние stride токенов, хотя в последнем новых "
        "может быть меньше",
        "count the tokens after the last end | считайте только новые токены",
        {"fresh": lambda nats, begin, done, stride: nats[-stride:] if begin else nats}),
    perplexity_not_nats=("", "the exponential of the mean comes back: a perplexity, not nats | "
        "возвращена экспонента среднего, то есть перплексия, а не наты",
        "the mean itself, no exp | само среднее, без exp",
        {"reduce": lambda nats, length, parts: nats.mean().exp()}),
    strided_in_bits=("", "the result is in bits (logarithm of base 2), not in nats | "
        "результат в битах (логарифм по основанию 2), а не в натах", "no / log(2) | без / log(2)",
        {"reduce": lambda nats, length, parts: nats.mean() / math.log(2)}),
    window_means_unweighted=("huggingface/transformers#34138",
        "each window is averaged first and then the windows, although they count different numbers "
        "of tokens | "
        "сначала усреднены окна, потом их средние, хотя новых токенов в окнах не поровну",
        "one sum of nats / one count of tokens | одна сумма нат / одно число токенов",
        {"reduce": lambda nats, length, parts:
            torch.stack([part.mean() for part in parts if len(part)]).mean()}),
    first_window_overweighted=("huggingface/transformers#34138",
        "the mean of the first window is multiplied by its length, although it predicts one token "
        "less | среднее первого окна умножено на его длину, хотя предсказано на токен меньше",
        "weight each mean by len(nats) | вес каждого среднего — len(nats)",
        {"reduce": _means_weighing(1, 0)}),
    later_windows_underweighted=("huggingface/transformers#34138",
        "the means of the later windows are weighted by one token too few | "
        "средние следующих окон взяты с весом на один токен меньше",
        "weight each mean by len(nats) | вес каждого среднего — len(nats)",
        {"reduce": _means_weighing(0, -1)}),
    overlap_counted_again=("huggingface/transformers#4415",
        "every window counts all its tokens: those in the overlap are counted several times | "
        "каждое окно считает все свои токены: перекрытие сосчитано несколько раз",
        "count only the tokens after the last end | считайте только новые токены",
        {"fresh": lambda nats, *_: nats}),
    boundary_token_lost=("huggingface/transformers#30975",
        "the first new token of every later window is counted by nobody | "
        "первый новый токен каждого следующего окна не учтён никем",
        "nats[end_before - begin - 1:]", {"fresh": _first_new_lost}),
    boundary_token_costs_nothing=("huggingface/transformers#30975",
        "the first new token of every later window costs nothing, but is counted | "
        "первый новый токен каждого следующего окна учтён как бесплатный",
        "nats[end_before - begin - 1:]",
        {"fresh": _first_new_lost,
         "reduce": lambda nats, length, parts: nats.sum() / (length - 1)}),
    boundary_token_twice=("", "the last token of every window is counted again in the next | "
        "последний токен каждого окна учтён ещё раз в следующем", "nats[end_before - begin - 1:]",
        {"fresh": lambda nats, begin, done, stride: nats[max(done - begin - 2, 0):]}),
    divided_by_all_tokens=("kimiyoung/transformer-xl#131",
        "the sum is divided by T, but the first token is predicted by nothing | "
        "сумма разделена на T, хотя первый токен не предсказан ничем",
        "divide by T - 1, the number of predictions | делите на T - 1, число предсказаний",
        {"reduce": lambda nats, length, parts: nats.sum() / length}),
    sum_of_nats=("", "the nats are summed, not averaged | наты сложены, а не усреднены",
        "divide by T - 1 | делите на T - 1", {"reduce": lambda nats, length, parts: nats.sum()}),
    disjoint_windows=("EleutherAI/lm-evaluation-harness#339",
        "stride is ignored: the windows share one token, and the next ones have hardly any context "
        "| stride не учтён: у окон один общий токен, и следующие почти без контекста",
        "range(0, len(ids), stride)",
        {"windows": lambda length, most, stride: strided_windows(length, most, most - 1)}),
    text_cut_into_blocks=("huggingface/transformers#4415",
        "the text is cut into separate blocks, and the first token of each is never predicted | "
        "текст разрезан на отдельные блоки, и первый токен каждого не предсказан",
        "overlapping windows: step by stride | окна с перекрытием: шаг stride",
        {"windows": _blocks, "fresh": lambda nats, *_: nats}),
    block_starts_cost_nothing=("marin-community/marin#4962",
        "the text is cut into separate blocks, whose first tokens cost nothing but count | "
        "текст разрезан на отдельные блоки, и их первые токены учтены как бесплатные",
        "overlapping windows: step by stride | окна с перекрытием: шаг stride",
        {"windows": _blocks, "fresh": lambda nats, *_: nats,
         "reduce": lambda nats, length, parts: nats.sum() / (length - 1)}),
    only_new_tokens_scored=("",
        "a window holds only its new tokens, without the context that fits | "
        "в окне только новые токены, без контекста, который ещё помещается",
        "score(ids[begin:end]), count the end | score(ids[begin:end]), берите конец",
        {"windows": lambda length, most, stride:
            [(begin and begin + most - stride - 1, end)
             for begin, end in strided_windows(length, most, stride)]}),
    stride_is_overlap=("chiphuyen/stanford-tensorflow-tutorials#3",
        "stride is taken for the overlap: the windows move by max_length - stride | "
        "stride принят за перекрытие: окна сдвигаются на max_length - stride",
        "range(0, len(ids), stride)",
        {"windows": lambda length, most, stride: strided_windows(length, most, most - stride)}),
    last_window_dropped=("NVIDIA/DeepLearningExamples#177",
        "a last window that is not full is dropped, and the end of the text with it | "
        "неполное последнее окно отброшено, а с ним и конец текста",
        "end = min(begin + max_length, len(ids))", {"windows": lambda length, most, stride:
            [pair for pair in strided_windows(length, most, stride) if pair[1] - pair[0] == most]
            or [(0, length)]}),
    trailing_windows_counted=("",
        "windows after the one that reaches the end are counted again: nats[-0:] is all of them | "
        "окна после достигшего конца учтены ещё раз: nats[-0:] — это все наты",
        "stop when end == len(ids) | остановитесь при end == len(ids)",
        {"windows": lambda length, most, stride:
            [(begin, min(begin + most, length)) for begin in range(0, length - 1, stride)],
         "fresh": lambda nats, begin, done, stride: nats[-(begin + 1 + len(nats) - done):]}),
    window_too_long=("", "a window has max_length + 1 tokens, more than the model can read | "
        "в окне max_length + 1 токенов, больше, чем читает модель", "ids[begin:begin + max_length]",
        {"windows": lambda length, most, stride: strided_windows(length, most + 1, stride)}),
    window_too_short=("",
        "a window has max_length - 1 tokens: one token of context less than fits | "
        "в окне max_length - 1 токенов: контекст на токен короче возможного",
        "ids[begin:begin + max_length]",
        {"windows": lambda length, most, stride:
            strided_windows(length, max(most - 1, 2), stride)}),
    whole_text_at_once=("", "the whole text is scored at once, however long it is | "
        "весь текст оценён разом, какой бы длины он ни был",
        "windows of at most max_length tokens | окна не длиннее max_length токенов",
        {"windows": lambda length, max_length, stride: [(0, length)]}),
    text_truncated=("jquesnelle/yarn#13",
        "only the first max_length tokens are scored, the rest is cut off | "
        "оценены только первые max_length токенов, остальное отрезано",
        "go on to the end by stride | продолжайте до конца с шагом stride",
        {"windows": lambda length, max_length, stride: [(0, min(max_length, length))]}),
    half_of_each_window=("ggml-org/llama.cpp#2714",
        "separate windows, of which only the second half is counted: half of the text is skipped | "
        "окна отдельные, и учтена лишь вторая половина каждого: половина текста пропущена",
        "count every token after the last end | считайте все новые токены",
        {"windows": _blocks, "fresh": lambda nats, begin, done, stride: nats[len(nats) // 2:]}),
    stride_tokens_each=("",
        "every window counts its last stride tokens: the start of the text is lost, the end "
        "counted twice | "
        "каждое окно считает последние stride токенов: начало текста потеряно, конец учтён дважды",
        "count the tokens after the last end | считайте только новые токены",
        {"fresh": lambda nats, begin, done, stride: nats[-stride:]}),
)
# fmt: on
