"""Sampling distributions that treat the temperature or the probabilities wrongly."""

import math

from course_lib.contracts.engine.mistake import mistakes
from course_lib.contracts.sampling.distributions import (
    likeliest_first,
    mistaken_distribution,
    refuse_bad_sampling,
    softened,
    spread_over,
)

_DIVIDE = "softmax(logits / temperature)"
_RESCALE = "probs / probs.sum() after the filters | probs / probs.sum() после фильтров"
_ERASE = "-inf, or leave the token out: probability 0 | -inf или без токена вовсе: вероятность 0"


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


# fmt: off
TEMPERATURE_MISTAKES = mistakes(
    mistaken_distribution,
    temperature_ignored=("RL-Align/RL-Kernel#81",
        "the temperature has no effect | температура ни на что не влияет",
        _DIVIDE, {"choosing": lambda t: 1.0, "ending": lambda t: 1.0}),
    temperature_multiplied=("bowang-lab/BLEEP#5",
        "the logits are multiplied by the temperature: a high one sharpens | "
        "логиты умножены на температуру: высокая заостряет, а не сглаживает",
        _DIVIDE, {"choosing": lambda t: 1 / t, "ending": lambda t: 1 / t}),
    temperature_twice=("google/gemma.cpp#981",
        "the logits are divided by the temperature twice | логиты делятся на температуру дважды",
        "divide once | делите один раз", {"choosing": lambda t: t * t, "ending": lambda t: t * t}),
    temperature_after_filters=("huggingface/transformers#8686",
        "the temperature comes after top-p: the nucleus is chosen at temperature 1 | "
        "температура применена после top-p: ядро выбрано при температуре 1",
        "logits / temperature first, then the filters | "
        "сначала logits / temperature, потом фильтры", {"choosing": lambda t: 1.0}),
    temperature_only_for_filters=("",
        "the temperature chooses the nucleus, but the result is made at temperature 1 | "
        "температура выбирает ядро, но результат получен при температуре 1",
        "keep the divided logits for the result | результат — из поделённых логитов",
        {"ending": lambda t: 1.0}),
    temperature_on_probabilities=("",
        "the probabilities, not the logits, are divided by the temperature, and softmax is taken "
        "again | на температуру делятся не логиты, а вероятности, и softmax берётся снова",
        _DIVIDE, {"soften": lambda values, t: softened(softened(values, 1.0), t)}),
    temperature_clamped=("sgl-project/mini-sglang#24",
        "a small temperature is quietly replaced by a larger one | "
        "малая температура молча заменена большей",
        "no max(temperature, eps), no + eps | без max(temperature, eps) и без + eps",
        {"choosing": lambda t: max(t, 1e-05), "ending": lambda t: max(t, 1e-05)}),
)
# fmt: on

# fmt: off
ENDING_MISTAKES = mistakes(
    mistaken_distribution,
    not_renormalised=("facebookresearch/fairseq#882",
        "the survivors keep their old probabilities, which no longer sum to 1 | "
        "у оставшихся прежние вероятности, и в сумме они не дают 1",
        _RESCALE, {"finish": _share_of_all}),
    softmax_again=("openai/gpt-2#51",
        "a softmax is taken of the probabilities, and removed tokens come back | "
        "softmax берётся от вероятностей, и удалённые токены возвращаются",
        "softmax once, of the logits | softmax один раз, от логитов",
        {"finish": lambda values, kept, t: softened(spread_over(values, kept, t), 1.0)}),
    sorted_result=("lucidrains/PaLM-rlhf-pytorch#60",
        "the probabilities come back sorted, not in the order of the ids | "
        "вероятности возвращаются отсортированными, а не по номерам токенов",
        "result[order] = sorted_probs",
        {"finish": lambda values, kept, t: sorted(spread_over(values, kept, t), reverse=True)}),
    removed_filled_with_1e_10=("karpathy/minGPT@d708b1e",
        "removed logits become 1e-10, about 0, where exp is 1: they keep a probability | "
        "удалённые логиты заменены на 1e-10, почти 0, а exp(0) = 1: вероятность у них есть",
        _ERASE, {"finish": _filled_with(1e-10)}),
    removed_filled_with_minus_1e4=("huggingface/transformers#10484",
        "removed logits become about -1e4: smaller ones among the survivors lose to them | "
        "удалённые логиты заменены примерно на -1e4: им проиграют ещё меньшие из оставшихся",
        _ERASE, {"finish": _filled_with(-10000.0)}),
    removed_filled_with_minus_1e9=("hyunwoongko/transformer#40",
        "removed logits become about -1e9: smaller ones among the survivors lose to them | "
        "удалённые логиты заменены примерно на -1e9: им проиграют ещё меньшие из оставшихся",
        _ERASE, {"finish": _filled_with(-1000000000.0)}),
    no_maximum_subtracted=("pyg-team/pytorch_geometric#53",
        "exp is taken of the logits as they are: it overflows, or all of it becomes 0 | "
        "exp берётся от логитов как есть: переполнение или одни нули",
        "exp(z - max(z))", lambda: _distribution_without_maximum),
)
# fmt: on
