"""Sampling distributions that treat the temperature or the probabilities wrongly."""

import math
from functools import partial

from course_lib.contracts.engine.mistake import Mistake
from course_lib.contracts.sampling._distributions import (
    likeliest_first,
    mistaken_distribution,
    refuse_bad_sampling,
    softened,
    spread_over,
)

_DIVIDE = {"en": "softmax(logits / temperature)", "ru": "softmax(logits / temperature)"}
_RESCALE = {
    "en": "probs / probs.sum() after the filters",
    "ru": "probs / probs.sum() после фильтров",
}
_ERASE = {
    "en": "-inf, or leave the token out: probability 0",
    "ru": "-inf или без токена вовсе: вероятность 0",
}


def _distribution_without_maximum(logits, temperature=1.0, top_k=None, top_p=None):
    refuse_bad_sampling(logits, temperature, top_k, top_p)
    warm = [logit / temperature for logit in logits]
    parts = [math.exp(value) if value < 709 else math.inf for value in warm]
    total = sum(parts) or math.nan
    probs = [part / total for part in parts]
    kept = likeliest_first(list(logits))[:top_k]
    if top_p is not None and top_p < 1:
        whole, mass, count = sum(probs[token] for token in kept), 0.0, 0
        while count < len(kept) and mass < top_p:
            mass += probs[kept[count]] / whole
            count += 1
        kept = kept[:count]
    whole = sum(probs[token] for token in kept)
    return [probs[i] / whole if i in set(kept) else 0.0 for i in range(len(probs))]


def _filled_with(fill):
    """The removed tokens get a finite logit and so a probability."""

    def finish(values, kept, temperature):
        chosen = set(kept)
        filled = [value if i in chosen else fill for i, value in enumerate(values)]
        return softened(filled, temperature)

    return finish


def _share_of_all(values, kept, temperature):
    chosen, whole = set(kept), softened(values, temperature)
    return [prob if token in chosen else 0.0 for token, prob in enumerate(whole)]


TEMPERATURE_MISTAKES = (
    Mistake(
        "temperature_ignored",
        "RL-Align/RL-Kernel#81",
        partial(mistaken_distribution, choosing=lambda t: 1.0, ending=lambda t: 1.0),
        {"en": "the temperature has no effect", "ru": "температура ни на что не влияет"},
        _DIVIDE,
    ),
    Mistake(
        "temperature_multiplied",
        "bowang-lab/BLEEP#5",
        partial(mistaken_distribution, choosing=lambda t: 1 / t, ending=lambda t: 1 / t),
        {
            "en": "the logits are multiplied by the temperature: a high one sharpens",
            "ru": "логиты умножены на температуру: высокая заостряет, а не сглаживает",
        },
        _DIVIDE,
    ),
    Mistake(
        "temperature_twice",
        "google/gemma.cpp#981",
        partial(mistaken_distribution, choosing=lambda t: t * t, ending=lambda t: t * t),
        {
            "en": "the logits are divided by the temperature twice",
            "ru": "логиты делятся на температуру дважды",
        },
        {"en": "divide once", "ru": "делите один раз"},
    ),
    Mistake(
        "temperature_after_filters",
        "huggingface/transformers#8686",
        partial(mistaken_distribution, choosing=lambda t: 1.0),
        {
            "en": "the temperature comes after top-p: the nucleus is chosen at temperature 1",
            "ru": "температура применена после top-p: ядро выбрано при температуре 1",
        },
        {
            "en": "logits / temperature first, then the filters",
            "ru": "сначала logits / temperature, потом фильтры",
        },
    ),
    Mistake(
        "temperature_only_for_filters",
        "a mutation of right code",
        partial(mistaken_distribution, ending=lambda t: 1.0),
        {
            "en": "the temperature chooses the nucleus, but the result is made at temperature 1",
            "ru": "температура выбирает ядро, но результат получен при температуре 1",
        },
        {"en": "keep the divided logits for the result", "ru": "результат — из поделённых логитов"},
    ),
    Mistake(
        "temperature_on_probabilities",
        "a mutation of right code",
        partial(
            mistaken_distribution,
            soften=lambda values, t: softened(softened(values, 1.0), t),
        ),
        {
            "en": "the probabilities, not the logits, are divided by the temperature, and softmax "
            "is taken again",
            "ru": "на температуру делятся не логиты, а вероятности, и softmax берётся снова",
        },
        _DIVIDE,
    ),
    Mistake(
        "temperature_clamped",
        "sgl-project/mini-sglang#24",
        partial(
            mistaken_distribution, choosing=lambda t: max(t, 1e-5), ending=lambda t: max(t, 1e-5)
        ),
        {
            "en": "a small temperature is quietly replaced by a larger one",
            "ru": "малая температура молча заменена большей",
        },
        {"en": "no max(temperature, eps), no + eps", "ru": "без max(temperature, eps) и без + eps"},
    ),
)

ENDING_MISTAKES = (
    Mistake(
        "not_renormalised",
        "facebookresearch/fairseq#882",
        partial(mistaken_distribution, finish=_share_of_all),
        {
            "en": "the survivors keep their old probabilities, which no longer sum to 1",
            "ru": "у оставшихся прежние вероятности, и в сумме они не дают 1",
        },
        _RESCALE,
    ),
    Mistake(
        "softmax_again",
        "openai/gpt-2#51",
        partial(
            mistaken_distribution,
            finish=lambda values, kept, t: softened(spread_over(values, kept, t), 1.0),
        ),
        {
            "en": "a softmax is taken of the probabilities, and removed tokens come back",
            "ru": "softmax берётся от вероятностей, и удалённые токены возвращаются",
        },
        {"en": "softmax once, of the logits", "ru": "softmax один раз, от логитов"},
    ),
    Mistake(
        "sorted_result",
        "lucidrains/PaLM-rlhf-pytorch#60",
        partial(
            mistaken_distribution,
            finish=lambda values, kept, t: sorted(spread_over(values, kept, t), reverse=True),
        ),
        {
            "en": "the probabilities come back sorted, not in the order of the ids",
            "ru": "вероятности возвращаются отсортированными, а не по номерам токенов",
        },
        {"en": "result[order] = sorted_probs", "ru": "result[order] = sorted_probs"},
    ),
    Mistake(
        "removed_filled_with_1e_10",
        "karpathy/minGPT@d708b1e",
        partial(mistaken_distribution, finish=_filled_with(1e-10)),
        {
            "en": "removed logits become 1e-10, about 0, where exp is 1: they keep a probability",
            "ru": "удалённые логиты заменены на 1e-10, почти 0, а exp(0) = 1: вероятность у них "
            "есть",
        },
        _ERASE,
    ),
    Mistake(
        "removed_filled_with_minus_1e4",
        "huggingface/transformers#10484",
        partial(mistaken_distribution, finish=_filled_with(-1e4)),
        {
            "en": "removed logits become about -1e4: smaller ones among the survivors lose to them",
            "ru": "удалённые логиты заменены примерно на -1e4: им проиграют ещё меньшие из "
            "оставшихся",
        },
        _ERASE,
    ),
    Mistake(
        "removed_filled_with_minus_1e9",
        "hyunwoongko/transformer#40",
        partial(mistaken_distribution, finish=_filled_with(-1e9)),
        {
            "en": "removed logits become about -1e9: smaller ones among the survivors lose to them",
            "ru": "удалённые логиты заменены примерно на -1e9: им проиграют ещё меньшие из "
            "оставшихся",
        },
        _ERASE,
    ),
    Mistake(
        "no_maximum_subtracted",
        "pyg-team/pytorch_geometric#53",
        lambda: _distribution_without_maximum,
        {
            "en": "exp is taken of the logits as they are: it overflows, or all of it becomes 0",
            "ru": "exp берётся от логитов как есть: переполнение или одни нули",
        },
        {"en": "exp(z - max(z))", "ru": "exp(z - max(z))"},
    ),
)
