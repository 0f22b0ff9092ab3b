"""Losses of a long text by windows that are wrong in one way each, as people reported them."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from course_lib.mistakes.catalogue import Mistake


def strided_windows(length: int, max_length: int, stride: int) -> Iterable[tuple[int, int]]:
    """Begin and end of the windows, one step of the right formula."""
    for begin in range(0, length, stride):
        yield begin, min(begin + max_length, length)
        if begin + max_length >= length:
            return


def _windows_stepping(
    length: int, max_length: int, stride: int, step: Callable[[int, int], int]
) -> Iterable[tuple[int, int]]:
    return strided_windows(length, max_length, step(max_length, stride))


def _windows_of(length: int, max_length: int, stride: int, width: int) -> Iterable[tuple[int, int]]:
    return strided_windows(length, max(max_length + width, 2), stride)


def _windows_to_the_very_end(length: int, max_length: int, stride: int) -> list[tuple[int, int]]:
    starts = range(0, length - 1, stride)
    return [(begin, min(begin + max_length, length)) for begin in starts]


def _whole_windows(length: int, max_length: int, stride: int) -> list[tuple[int, int]]:
    windows = list(strided_windows(length, max_length, stride))
    return [window for window in windows if window[1] - window[0] == max_length] or windows


def _short_of_context(length: int, max_length: int, stride: int) -> Iterable[tuple[int, int]]:
    """New tokens only, and the one before them."""
    done = 1
    for _, end in strided_windows(length, max_length, stride):
        yield done - 1, end
        done = end


def new_nats(nats: Tensor, begin: int, done: int, stride: int) -> Tensor:
    """The nats of the tokens that no earlier window counted, one step of the right formula."""
    return nats[done - begin - 1 :]


def _trailing_again(nats: Tensor, begin: int, done: int, stride: int) -> Tensor:
    fresh = begin + 1 + len(nats) - done
    return nats[-fresh:] if fresh else nats


def mean_of_all(parts: Sequence[Tensor], length: int) -> Tensor:
    """The mean over all counted tokens, one step of the right formula."""
    return torch.cat(list(parts)).mean()


def mistaken_strided_nll(**steps: Callable[..., Any]) -> Callable[..., float]:
    """A strided loss with some of its steps (windows, fresh, reduce) replaced."""

    def strided_nll(
        score: Callable[[Any], Tensor], ids: Tensor, max_length: int, stride: int
    ) -> float:
        parts, done = [], 1
        windows = steps.get("windows", strided_windows)
        for begin, end in windows(len(ids), max_length, stride):
            nats = torch.as_tensor(score(ids[begin:end]))
            parts.append(steps.get("fresh", new_nats)(nats, begin, done, stride))
            done = end
        return float(steps.get("reduce", mean_of_all)(parts, len(ids)))

    return strided_nll


STRIDED_NLL_MISTAKES = (
    Mistake(
        "window_means_unweighted",
        "huggingface/transformers#34138",
        partial(
            mistaken_strided_nll,
            reduce=lambda parts, length: torch.stack([p.mean() for p in parts if len(p)]).mean(),
        ),
        {
            "en": "each window is averaged first and then the windows, although they count "
            "different numbers of tokens",
            "ru": "сначала усреднены окна, потом их средние, хотя новых токенов в окнах не поровну",
        },
        {
            "en": "one sum of nats / one count of tokens",
            "ru": "одна сумма натов / одно число токенов",
        },
    ),
    Mistake(
        "overlap_counted_again",
        "huggingface/transformers#4415",
        partial(mistaken_strided_nll, fresh=lambda nats, begin, done, stride: nats),
        {
            "en": "every window counts all its tokens: those in the overlap are counted several "
            "times",
            "ru": "каждое окно считает все свои токены: перекрытие сосчитано несколько раз",
        },
        {"en": "count only the tokens after the last end", "ru": "считайте только новые токены"},
    ),
    Mistake(
        "boundary_token_lost",
        "huggingface/transformers#30975",
        partial(
            mistaken_strided_nll,
            fresh=lambda nats, begin, done, stride: nats[done - begin - (begin == 0) :],
        ),
        {
            "en": "the first new token of every later window is counted by nobody",
            "ru": "первый новый токен каждого следующего окна не учтён никем",
        },
        {"en": "nats[end_before - begin - 1:]", "ru": "nats[end_before - begin - 1:]"},
    ),
    Mistake(
        "boundary_token_twice",
        "a mutation of right code",
        partial(
            mistaken_strided_nll,
            fresh=lambda nats, begin, done, stride: nats[max(done - begin - 2, 0) :],
        ),
        {
            "en": "the last token of every window is counted again in the next",
            "ru": "последний токен каждого окна учтён ещё раз в следующем",
        },
        {"en": "nats[end_before - begin - 1:]", "ru": "nats[end_before - begin - 1:]"},
    ),
    Mistake(
        "divided_by_all_tokens",
        "kimiyoung/transformer-xl#131",
        partial(mistaken_strided_nll, reduce=lambda parts, length: torch.cat(parts).sum() / length),
        {
            "en": "the sum is divided by T, but the first token is predicted by nothing",
            "ru": "сумма разделена на T, хотя первый токен не предсказан ничем",
        },
        {"en": "divide by len(ids) - 1", "ru": "делите на len(ids) - 1"},
    ),
    Mistake(
        "sum_of_nats",
        "a mutation of right code",
        partial(mistaken_strided_nll, reduce=lambda parts, length: torch.cat(parts).sum()),
        {"en": "the nats are summed, not averaged", "ru": "наты сложены, а не усреднены"},
        {"en": "divide by len(ids) - 1", "ru": "делите на len(ids) - 1"},
    ),
    Mistake(
        "disjoint_windows",
        "EleutherAI/lm-evaluation-harness#339",
        partial(
            mistaken_strided_nll,
            windows=partial(_windows_stepping, step=lambda max_length, stride: max_length - 1),
        ),
        {
            "en": "stride is ignored: the windows share one token, and the next ones have hardly "
            "any context",
            "ru": "stride не учтён: у окон один общий токен, и следующие почти без контекста",
        },
        {"en": "range(0, len(ids), stride)", "ru": "range(0, len(ids), stride)"},
    ),
    Mistake(
        "text_cut_into_blocks",
        "marin-community/marin#4962",
        partial(
            mistaken_strided_nll,
            windows=partial(_windows_stepping, step=lambda max_length, stride: max_length),
            fresh=lambda nats, begin, done, stride: nats,
        ),
        {
            "en": "the text is cut into separate blocks, and the first token of each is never "
            "predicted",
            "ru": "текст разрезан на отдельные блоки, и первый токен каждого не предсказан",
        },
        {"en": "overlapping windows: step by stride", "ru": "окна с перекрытием: шаг stride"},
    ),
    Mistake(
        "only_new_tokens_scored",
        "a mutation of right code",
        partial(mistaken_strided_nll, windows=_short_of_context),
        {
            "en": "a window holds only its new tokens, without the context that fits",
            "ru": "в окне только новые токены, без контекста, который ещё помещается",
        },
        {"en": "score(ids[begin:end]), count the end", "ru": "score(ids[begin:end]), берите конец"},
    ),
    Mistake(
        "stride_is_overlap",
        "chiphuyen/stanford-tensorflow-tutorials#3",
        partial(
            mistaken_strided_nll,
            windows=partial(_windows_stepping, step=lambda max_length, stride: max_length - stride),
        ),
        {
            "en": "stride is taken for the overlap: the windows move by max_length - stride",
            "ru": "stride принят за перекрытие: окна сдвигаются на max_length - stride",
        },
        {"en": "range(0, len(ids), stride)", "ru": "range(0, len(ids), stride)"},
    ),
    Mistake(
        "last_window_dropped",
        "NVIDIA/DeepLearningExamples#177",
        partial(mistaken_strided_nll, windows=_whole_windows),
        {
            "en": "a last window that is not full is dropped, and the end of the text with it",
            "ru": "неполное последнее окно отброшено, а с ним и конец текста",
        },
        {
            "en": "end = min(begin + max_length, len(ids))",
            "ru": "min(begin + max_length, len(ids))",
        },
    ),
    Mistake(
        "trailing_windows_counted",
        "a mutation of right code",
        partial(mistaken_strided_nll, windows=_windows_to_the_very_end, fresh=_trailing_again),
        {
            "en": "windows after the one that reaches the end are counted again: nats[-0:] is all "
            "of them",
            "ru": "окна после достигшего конца учтены ещё раз: nats[-0:] — это все наты",
        },
        {"en": "stop when end == len(ids)", "ru": "остановитесь при end == len(ids)"},
    ),
    Mistake(
        "window_too_long",
        "a mutation of right code",
        partial(mistaken_strided_nll, windows=partial(_windows_of, width=1)),
        {
            "en": "a window has max_length + 1 tokens, more than the model can read",
            "ru": "в окне max_length + 1 токенов, больше, чем читает модель",
        },
        {"en": "ids[begin:begin + max_length]", "ru": "ids[begin:begin + max_length]"},
    ),
    Mistake(
        "window_too_short",
        "a mutation of right code",
        partial(mistaken_strided_nll, windows=partial(_windows_of, width=-1)),
        {
            "en": "a window has max_length - 1 tokens: one token of context less than fits",
            "ru": "в окне max_length - 1 токенов: контекст на токен короче возможного",
        },
        {"en": "ids[begin:begin + max_length]", "ru": "ids[begin:begin + max_length]"},
    ),
    Mistake(
        "whole_text_at_once",
        "a mutation of right code",
        partial(mistaken_strided_nll, windows=lambda length, max_length, stride: [(0, length)]),
        {
            "en": "the whole text is scored at once, however long it is",
            "ru": "весь текст оценён разом, какой бы длины он ни был",
        },
        {"en": "windows of at most max_length tokens", "ru": "окна не длиннее max_length токенов"},
    ),
    Mistake(
        "text_truncated",
        "EleutherAI/lm-evaluation-harness#3115",
        partial(
            mistaken_strided_nll,
            windows=lambda length, max_length, stride: [(0, min(max_length, length))],
        ),
        {
            "en": "only the first max_length tokens are scored, the rest is cut off",
            "ru": "оценены только первые max_length токенов, остальное отрезано",
        },
        {"en": "go on to the end by stride", "ru": "продолжайте до конца с шагом stride"},
    ),
    Mistake(
        "half_of_each_window",
        "ggml-org/llama.cpp#2714",
        partial(
            mistaken_strided_nll,
            windows=partial(_windows_stepping, step=lambda max_length, stride: max_length),
            fresh=lambda nats, begin, done, stride: nats[len(nats) // 2 :],
        ),
        {
            "en": "separate windows, of which only the second half is counted: half of the text is "
            "skipped",
            "ru": "окна отдельные, и учтена лишь вторая половина каждого: половина текста "
            "пропущена",
        },
        {"en": "count every token after the last end", "ru": "считайте все токены после конца"},
    ),
    Mistake(
        "stride_tokens_each",
        "a mutation of right code",
        partial(mistaken_strided_nll, fresh=lambda nats, begin, done, stride: nats[-stride:]),
        {
            "en": "every window counts its last stride tokens: the start of the text is lost, the "
            "end counted twice",
            "ru": "каждое окно считает последние stride токенов: начало текста потеряно, конец "
            "учтён дважды",
        },
        {"en": "count the tokens after the last end", "ru": "считайте токены после конца окна"},
    ),
)
