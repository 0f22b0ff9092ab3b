"""Sampling distributions that are wrong in one way each, as people reported them."""

import math

from course_lib.contracts.engine.mistake import mistakes
from course_lib.contracts.sampling import steps

_DIVIDE = "softmax(logits / temperature)"
_RESCALE = "probs / probs.sum() after the filters | probs / probs.sum() после фильтров"
_ERASE = "-inf, or leave the token out: probability 0 | -inf или без токена вовсе: вероятность 0"
_EXACTLY_K = (
    "order[:k] of a stable sort, no threshold | order[:k] устойчивой сортировки, без порога"
)
_STABLE = "sort by (-logit, id) | сортируйте по (-logit, id)"
_FALLING = "sort in descending order | сортируйте по убыванию"
_NUCLEUS = "keep = cumsum - probs < top_p, sorted | keep = cumsum - probs < top_p, по убыванию"
_BELOW_ONE = "if top_p < 1: filter | фильтруйте только при top_p < 1"
_REFUSE_K = "ValueError unless 1 <= top_k <= V | ValueError, если не 1 <= top_k <= V"
_REFUSE_P = "ValueError unless 0 < top_p <= 1 | ValueError, если не 0 < top_p <= 1"
_REFUSE_T = "ValueError unless temperature > 0 | ValueError, если не temperature > 0"
_REFUSE_Z = "ValueError unless all are finite | ValueError, если не все конечны"
_COPY = "work on a copy: list(logits) | работайте с копией: list(logits)"

# fmt: off
SAMPLING_MISTAKES = mistakes(
    steps.mistaken_distribution,
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
        _DIVIDE, {"soften": lambda values, t: steps.softened(steps.softened(values, 1.0), t)}),
    temperature_clamped=("sgl-project/mini-sglang#24",
        "a small temperature is quietly replaced by a larger one | "
        "малая температура молча заменена большей",
        "no max(temperature, eps), no + eps | без max(temperature, eps) и без + eps",
        {"choosing": lambda t: max(t, 1e-5), "ending": lambda t: max(t, 1e-5)}),
    one_more_kept=("kingoflolz/mesh-transformer-jax#164",
        "k + 1 tokens are kept | оставлено k + 1 токенов",
        "order[:k]", {"cut": lambda ranked, values, k, p: ranked[:k + 1]}),
    one_less_kept=("",
        "k - 1 tokens are kept | оставлено k - 1 токенов",
        "order[:k]", {"cut": lambda ranked, values, k, p: ranked[:max(k - 1, 1)]}),
    top_k_ignored=("",
        "top_k has no effect | top_k ни на что не влияет",
        "keep order[:k] only | оставьте только order[:k]",
        {"cut": lambda ranked, values, k, p: ranked}),
    top_k_ignored_with_top_p=("",
        "top_k has no effect when top_p is given | при заданном top_p top_k не действует",
        "one filter after the other, no else | фильтры один за другим, без else",
        {"cut": lambda ranked, values, k, p: ranked[:k] if p is None else ranked}),
    least_likely_kept=("",
        "top-k keeps the least likely tokens | top-k оставляет наименее вероятные токены",
        _FALLING, {"cut": lambda ranked, values, k, p: ranked[-k:]}),
    ties_kept=("vllm-project/vllm#50979",
        "every token that ties with the k-th is kept, though exactly k must survive | "
        "остаются все токены, равные k-му, хотя должно остаться ровно k",
        _EXACTLY_K, {"cut": steps.ties_of_the_last}),
    top_k_higher_ids=("vllm-project/vllm#15478",
        "of equal logits top-k keeps the higher ids | "
        "из равных логитов top-k оставляет старшие номера",
        _STABLE, {"cut": steps.higher_ids_of_k}),
    higher_ids_kept=("apple/axlearn#1022",
        "of equal logits both filters keep the higher ids, as a reversed sort does | "
        "из равных логитов оба фильтра оставляют старшие номера (перевёрнутая сортировка)",
        _STABLE, {"rank": steps.higher_ids_first}),
    top_p_higher_ids=("",
        "of equal logits top-p keeps the higher ids, as an ascending sort does | "
        "из равных логитов top-p оставляет старшие номера (сортировка по возрастанию)",
        _STABLE, {"nucleus": steps.higher_ids_of_p}),
    top_p_ties_kept=("AI-Hypercomputer/maxtext#950",
        "every token that ties with the last of the nucleus is kept: a threshold, not a rank | "
        "остаются все токены, равные последнему в ядре: порог вместо места в ряду",
        "cut the sorted ids, not the values | отрезайте отсортированные номера, а не значения",
        {"nucleus": steps.ties_of_nucleus}),
    crossing_dropped=("rasbt/reasoning-from-scratch#164",
        "the token that crosses top_p is dropped, though it belongs to the nucleus | "
        "токен, на котором сумма переходит top_p, отброшен, хотя он входит в ядро",
        _NUCLEUS, {"nucleus": steps.without_crossing}),
    extra_on_equality=("huggingface/transformers#18976",
        "one token more is kept when the sum equals top_p exactly | "
        "при сумме, в точности равной top_p, остаётся лишний токен",
        _NUCLEUS, {"nucleus":
            lambda kept, shares, p: steps.run_until(kept, shares, lambda mass: mass > p)}),
    one_past_crossing=("",
        "one token more than the nucleus is kept | остаётся на один токен больше, чем в ядре",
        _NUCLEUS,
        {"nucleus": lambda kept, shares, p: kept[: len(steps.shortest_run(kept, shares, p)) + 1]}),
    top_p_ignored=("paiml/aprender#2080",
        "top_p has no effect | top_p ни на что не влияет",
        _NUCLEUS, {"nucleus": lambda kept, shares, p: kept}),
    top_p_ignored_with_top_k=("shiyu-coder/Kronos#262",
        "top_p has no effect when top_k is given | при заданном top_k top_p не действует",
        "no return after the first filter | без return после первого фильтра",
        lambda: steps.by_k_alone),
    top_p_of_whole_mass=("ml-explore/mlx-lm#388",
        "top_p measures the whole distribution, as when it comes before top-k, not what top-k "
        "left | top_p отмеряет всё распределение, как если бы шёл до top-k, а не то, что top-k "
        "оставил",
        "renormalise after top-k, then cumsum | перенормируйте после top-k, затем cumsum",
        {"measure": lambda ranked, kept: ranked}),
    top_p_in_id_order=("dmlc/gluon-nlp#1481",
        "top-p adds the tokens up in the order of their ids, unsorted | "
        "top-p складывает токены по порядку номеров, без сортировки",
        "sort in descending order first | сначала сортировка по убыванию",
        {"nucleus": lambda kept, shares, p: steps.shortest_run(sorted(kept), shares, p)}),
    top_p_from_the_tail=("ml-explore/mlx-examples#602",
        "top-p adds up from the least likely token and keeps the tail | "
        "top-p складывает с наименее вероятного токена и оставляет хвост",
        _FALLING, {"nucleus": lambda kept, shares, p: steps.shortest_run(kept[::-1], shares, p)}),
    top_p_complement=("lucidrains/x-transformers#184",
        "the nucleus has the mass 1 - top_p | масса ядра равна 1 - top_p",
        "compare with top_p | сравнивайте с top_p",
        {"nucleus": lambda kept, shares, p:
            steps.shortest_run(kept, shares, 1 if p == 1 else 1 - p)}),
    min_p_instead=("",
        "top_p works as min-p: kept is what has at least p of the largest probability | "
        "top_p действует как min-p: остаётся всё, что не меньше доли p от наибольшей вероятности",
        _NUCLEUS,
        {"nucleus": lambda kept, shares, p:
            kept if p == 1 else [i for i in kept if shares[i] >= p * max(shares.values())]}),
    p_one_filters=("",
        "with top_p=1 rounding reaches 1.0 early and the tail is removed | "
        "при top_p=1 округлённая сумма раньше времени достигает 1.0, и хвост удалён",
        _BELOW_ONE, {"nucleus":
            lambda kept, shares, p: steps.run_until(kept, shares, lambda mass: mass >= p)}),
    p_one_is_greedy=("BlinkDL/ChatRWKV#170",
        "with top_p=1 only the likeliest token is left | "
        "при top_p=1 остаётся только самый вероятный токен",
        _BELOW_ONE,
        {"nucleus": lambda kept, shares, p:
            steps.shortest_run(kept, shares, p if p < 1 else 1e-9)}),
    tiny_p_leaves_nothing=("ml-explore/mlx-lm#1912",
        "with a tiny top_p no token is left, not even the likeliest | "
        "при крошечном top_p не остаётся ни одного токена",
        "the likeliest token always stays | самый вероятный токен остаётся всегда",
        {"nucleus": lambda kept, shares, p:
            steps.shortest_run(kept, shares, p) if 1 - p < 1 else []}),
    not_renormalised=("facebookresearch/fairseq#882",
        "the survivors keep their old probabilities, which no longer sum to 1 | "
        "у оставшихся прежние вероятности, и в сумме они не дают 1",
        _RESCALE, {"finish": steps.share_of_all}),
    softmax_again=("openai/gpt-2#51",
        "a softmax is taken of the probabilities, and removed tokens come back | "
        "softmax берётся от вероятностей, и удалённые токены возвращаются",
        "softmax once, of the logits | softmax один раз, от логитов",
        {"finish": lambda *kept: steps.softened(steps.spread_over(*kept), 1.0)}),
    sorted_result=("lucidrains/PaLM-rlhf-pytorch#60",
        "the probabilities come back sorted, not in the order of the ids | "
        "вероятности возвращаются отсортированными, а не по номерам токенов",
        "result[order] = sorted_probs",
        {"finish": lambda *kept: sorted(steps.spread_over(*kept), reverse=True)}),
    removed_filled_with_1e_10=("karpathy/minGPT@d708b1e",
        "removed logits become 1e-10, about 0, where exp is 1: they keep a probability | "
        "удалённые логиты заменены на 1e-10, почти 0, а exp(0) = 1: вероятность у них есть",
        _ERASE, {"finish": steps.filled_with(1e-10)}),
    removed_filled_with_minus_1e4=("huggingface/transformers#10484",
        "removed logits become about -1e4: smaller ones among the survivors lose to them | "
        "удалённые логиты заменены примерно на -1e4: им проиграют ещё меньшие из оставшихся",
        _ERASE, {"finish": steps.filled_with(-1e4)}),
    removed_filled_with_minus_1e9=("hyunwoongko/transformer#40",
        "removed logits become about -1e9: smaller ones among the survivors lose to them | "
        "удалённые логиты заменены примерно на -1e9: им проиграют ещё меньшие из оставшихся",
        _ERASE, {"finish": steps.filled_with(-1e9)}),
    no_maximum_subtracted=("pyg-team/pytorch_geometric#53",
        "exp is taken of the logits as they are: it overflows, or all of it becomes 0 | "
        "exp берётся от логитов как есть: переполнение или одни нули",
        "exp(z - max(z))", {"soften": steps.softened_as_they_are}),
    logits_divided_in_place=("Adibvafa/CodonTransformer#20",
        "the caller's logits are divided by the temperature, again in every call | "
        "переданные логиты делятся на температуру, с каждым вызовом снова",
        _COPY, steps.then_writing(lambda logits, t, probs: [logit / t for logit in logits])),
    logits_erased_in_place=("sgl-project/sglang#15648",
        "the filters write -inf into the caller's logits | фильтры пишут -inf в переданные логиты",
        _COPY,
        steps.then_writing(lambda logits, t, probs:
            [logit if prob else -math.inf for logit, prob in zip(logits, probs, strict=True)])),
    logits_sorted_in_place=("",
        "the caller's logits are sorted | переданный список логитов отсортирован на месте",
        "sorted(logits), not logits.sort() | sorted(logits), а не logits.sort()",
        steps.then_writing(lambda logits, t, probs: sorted(logits, reverse=True))),
    one_list_for_all=("",
        "one stored list is handed out each time, and a later call overwrites it | "
        "каждый раз отдаётся один и тот же список, и следующий вызов его перезаписывает",
        "return a new list | возвращайте новый список", steps.with_one_list),
    nothing_checked=("",
        "bad arguments are not refused, and the result is meaningless | "
        "плохие аргументы не отвергаются, и результат лишён смысла",
        "check first, raise ValueError | сначала проверки с ValueError",
        steps.taking(temperature=steps.not_positive, top_k=steps.over_size,
            top_p=steps.over_one, logits=steps.not_finite)),
    temperature_unchecked=("jmisilo/clip-gpt-captioning#46",
        "a temperature of 0 or below is accepted | температура 0 и ниже принимается",
        _REFUSE_T, steps.taking(temperature=steps.not_positive)),
    zero_temperature_accepted=("karpathy/nanoGPT#739",
        "a temperature of 0 is accepted, as greedy or by a division; here it is an error | "
        "температура 0 принимается (как жадный выбор или с делением), а должна быть ошибка",
        _REFUSE_T, steps.taking(temperature=lambda t, size: t == 0)),
    negative_temperature_accepted=("",
        "a negative temperature is accepted, which makes the unlikeliest the likeliest | "
        "принимается отрицательная температура, при которой самый невероятный токен вероятнее "
        "всего",
        _REFUSE_T, steps.taking(temperature=lambda t, size: t < 0)),
    top_k_over_v_accepted=("karpathy/nanoGPT@91d02510",
        "a top_k above V is quietly cut to V | top_k больше V молча урезан до V",
        _REFUSE_K, steps.taking(top_k=steps.over_size)),
    top_k_zero_accepted=("InhwanBae/LMTrajectory#4",
        "top_k=0 is accepted as off; here None means off | "
        "top_k=0 принимается как «выключено», а здесь выключает None",
        _REFUSE_K, steps.taking(top_k=lambda k, size: k == 0)),
    top_k_below_one_accepted=("ggml-org/llama.cpp#13173",
        "a top_k of 0 or below is accepted; here None means off | "
        "top_k ниже 1 принимается, а здесь выключает None",
        _REFUSE_K, steps.taking(top_k=steps.not_positive)),
    top_k_unchecked=("",
        "any top_k is accepted | принимается любой top_k",
        _REFUSE_K, steps.taking(top_k=lambda k, size: not 1 <= k <= size)),
    top_p_over_one_accepted=("",
        "a top_p above 1 is accepted | принимается top_p больше 1",
        _REFUSE_P, steps.taking(top_p=steps.over_one)),
    top_p_below_zero_accepted=("",
        "a top_p of 0 or below is accepted | принимается top_p, равный 0 или меньше",
        _REFUSE_P, steps.taking(top_p=steps.not_positive)),
    top_p_unchecked=("",
        "any top_p is accepted | принимается любой top_p",
        _REFUSE_P, steps.taking(top_p=lambda p, size: not 0 < p <= 1)),
    nan_logits_accepted=("",
        "logits with NaN are accepted | принимаются логиты с NaN",
        _REFUSE_Z, steps.taking(logits=lambda logits, size: any(map(math.isnan, logits)))),
    infinite_logits_accepted=("QwenLM/Qwen3-TTS#355",
        "infinite logits are accepted | принимаются бесконечные логиты",
        _REFUSE_Z, steps.taking(logits=lambda logits, size: any(map(math.isinf, logits)))),
    minus_infinite_logits_accepted=("",
        "logits of -inf are accepted as tokens removed earlier | "
        "логиты -inf считаются удалёнными раньше токенами",
        _REFUSE_Z, steps.taking(logits=lambda logits, size: min(logits, default=0.0) == -math.inf)),
    non_finite_logits_accepted=("ohdearquant/lattice#295",
        "logits that are not finite are accepted | принимаются логиты с NaN или бесконечностью",
        _REFUSE_Z, steps.taking(logits=steps.not_finite)),
    empty_logits_accepted=("",
        "an empty list of logits is accepted | принимается пустой список логитов",
        "ValueError if there are no logits | ValueError, если логитов нет",
        steps.taking(logits=lambda logits, size: size == 0)),
)
# fmt: on
