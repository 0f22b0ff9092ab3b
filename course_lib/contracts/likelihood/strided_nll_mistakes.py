"""Losses of a long text by windows that are wrong in one way each, as people reported them."""

from functools import partial

import torch

from course_lib.contracts.engine.mistake import Mistake
from course_lib.contracts.likelihood._strided_more import STRIDED_END_MISTAKES
from course_lib.contracts.likelihood._strided_steps import (
    means_weighing,
    mistaken_strided_nll,
    strided_short_of_context,
    strided_trailing_again,
    strided_whole_windows,
    strided_windows_of,
    strided_windows_stepping,
    strided_windows_to_the_very_end,
    sum_over_all,
)

STRIDED_NLL_MISTAKES = (
    *STRIDED_END_MISTAKES,
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
            "ru": "одна сумма нат / одно число токенов",
        },
    ),
    Mistake(
        "first_window_overweighted",
        "huggingface/transformers#34138",
        partial(mistaken_strided_nll, reduce=means_weighing(1, 0)),
        {
            "en": "the mean of the first window is multiplied by its length, although it predicts "
            "one token less",
            "ru": "среднее первого окна умножено на его длину, хотя предсказано на токен меньше",
        },
        {"en": "weight each mean by len(nats)", "ru": "вес каждого среднего — len(nats)"},
    ),
    Mistake(
        "later_windows_underweighted",
        "huggingface/transformers#34138",
        partial(mistaken_strided_nll, reduce=means_weighing(0, -1)),
        {
            "en": "the means of the later windows are weighted by one token too few",
            "ru": "средние следующих окон взяты с весом на один токен меньше",
        },
        {"en": "weight each mean by len(nats)", "ru": "вес каждого среднего — len(nats)"},
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
        "boundary_token_costs_nothing",
        "huggingface/transformers#30975",
        partial(
            mistaken_strided_nll,
            fresh=lambda nats, begin, done, stride: nats[done - begin - (begin == 0) :],
            reduce=sum_over_all,
        ),
        {
            "en": "the first new token of every later window costs nothing, but is counted",
            "ru": "первый новый токен каждого следующего окна учтён как бесплатный",
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
        {
            "en": "divide by T - 1, the number of predictions",
            "ru": "делите на T - 1, число предсказаний",
        },
    ),
    Mistake(
        "sum_of_nats",
        "a mutation of right code",
        partial(mistaken_strided_nll, reduce=lambda parts, length: torch.cat(parts).sum()),
        {"en": "the nats are summed, not averaged", "ru": "наты сложены, а не усреднены"},
        {"en": "divide by T - 1", "ru": "делите на T - 1"},
    ),
    Mistake(
        "disjoint_windows",
        "EleutherAI/lm-evaluation-harness#339",
        partial(
            mistaken_strided_nll,
            windows=partial(strided_windows_stepping, step=lambda length, stride: length - 1),
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
        "huggingface/transformers#4415",
        partial(
            mistaken_strided_nll,
            windows=partial(strided_windows_stepping, step=lambda length, stride: length),
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
        "block_starts_cost_nothing",
        "marin-community/marin#4962",
        partial(
            mistaken_strided_nll,
            windows=partial(strided_windows_stepping, step=lambda length, stride: length),
            fresh=lambda nats, begin, done, stride: nats,
            reduce=sum_over_all,
        ),
        {
            "en": "the text is cut into separate blocks, whose first tokens cost nothing but count",
            "ru": "текст разрезан на отдельные блоки, и их первые токены учтены как бесплатные",
        },
        {"en": "overlapping windows: step by stride", "ru": "окна с перекрытием: шаг stride"},
    ),
    Mistake(
        "only_new_tokens_scored",
        "a mutation of right code",
        partial(mistaken_strided_nll, windows=strided_short_of_context),
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
            windows=partial(strided_windows_stepping, step=lambda length, stride: length - stride),
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
        partial(mistaken_strided_nll, windows=strided_whole_windows),
        {
            "en": "a last window that is not full is dropped, and the end of the text with it",
            "ru": "неполное последнее окно отброшено, а с ним и конец текста",
        },
        {
            "en": "end = min(begin + max_length, len(ids))",
            "ru": "end = min(begin + max_length, len(ids))",
        },
    ),
    Mistake(
        "trailing_windows_counted",
        "a mutation of right code",
        partial(
            mistaken_strided_nll,
            windows=strided_windows_to_the_very_end,
            fresh=strided_trailing_again,
        ),
        {
            "en": "windows after the one that reaches the end are counted again: nats[-0:] is all "
            "of them",
            "ru": "окна после достигшего конца учтены ещё раз: nats[-0:] — это все наты",
        },
        {"en": "stop when end == len(ids)", "ru": "остановитесь при end == len(ids)"},
    ),
    Mistake(
        "window_too_long",
        "a mutation of right code",
        partial(mistaken_strided_nll, windows=partial(strided_windows_of, width=1)),
        {
            "en": "a window has max_length + 1 tokens, more than the model can read",
            "ru": "в окне max_length + 1 токенов, больше, чем читает модель",
        },
        {"en": "ids[begin:begin + max_length]", "ru": "ids[begin:begin + max_length]"},
    ),
    Mistake(
        "window_too_short",
        "a mutation of right code",
        partial(mistaken_strided_nll, windows=partial(strided_windows_of, width=-1)),
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
        "jquesnelle/yarn#13",
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
            windows=partial(strided_windows_stepping, step=lambda length, stride: length),
            fresh=lambda nats, begin, done, stride: nats[len(nats) // 2 :],
        ),
        {
            "en": "separate windows, of which only the second half is counted: half of the text is "
            "skipped",
            "ru": "окна отдельные, и учтена лишь вторая половина каждого: половина текста "
            "пропущена",
        },
        {"en": "count every token after the last end", "ru": "считайте все новые токены"},
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
        {"en": "count the tokens after the last end", "ru": "считайте только новые токены"},
    ),
)
