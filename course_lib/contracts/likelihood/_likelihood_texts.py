"""What the mistakes of a likelihood are, where they were reported, and what to write instead."""

LIKELIHOOD_MISTAKE_TEXTS = {
    "not_shifted": (
        "huggingface/transformers#27517",
        {
            "en": "logits[t] are compared with token t, which the model has just read: a copy "
            "costs nothing",
            "ru": "logits[t] сравниваются с токеном t, который модель только что прочла: копия "
            "ничего не стоит",
        },
        {
            "en": "logits[:, :-1] against token_ids[:, 1:]",
            "ru": "logits[:, :-1] против token_ids[:, 1:]",
        },
    ),
    "shifted_twice": (
        "huggingface/transformers#47395",
        {
            "en": "the shift is made twice: logits[t] are compared with token t + 2",
            "ru": "сдвиг сделан дважды: logits[t] сравниваются с токеном t + 2",
        },
        {"en": "shift in one place only", "ru": "сдвигайте только в одном месте"},
    ),
    "shifted_backwards": (
        "a mutation of right code",
        {
            "en": "the shift goes the other way: logits[t] are compared with token t - 1",
            "ru": "сдвиг сделан в другую сторону: logits[t] сравниваются с токеном t - 1",
        },
        {
            "en": "logits[:, :-1] against token_ids[:, 1:]",
            "ru": "logits[:, :-1] против token_ids[:, 1:]",
        },
    ),
    "rows_run_together": (
        "huggingface/transformers#47394",
        {
            "en": "the batch is flattened before the shift, so that the end of a row predicts the "
            "start of the next",
            "ru": "пакет развёрнут до сдвига, и конец строки предсказывает начало следующей",
        },
        {"en": "shift along T first, then flatten", "ru": "сначала сдвиг по T, потом flatten"},
    ),
    "wrapped_around": (
        "a mutation of right code",
        {
            "en": "the targets are rolled, so that the last logits are scored against the first "
            "token",
            "ru": "цели прокручены по кругу, и последние логиты сравниваются с первым токеном",
        },
        {"en": "drop the last logits: logits[:, :-1]", "ru": "отбросьте последние: logits[:, :-1]"},
    ),
    "end_scored_as_zero": (
        "a mutation of right code",
        {
            "en": "the targets are filled up with token 0, and the last logits are scored against "
            "it",
            "ru": "цели дополнены токеном 0, и последние логиты сравниваются с ним",
        },
        {"en": "drop the last logits: logits[:, :-1]", "ru": "отбросьте последние: logits[:, :-1]"},
    ),
    "padding_counted": (
        "axolotl-ai-cloud/axolotl#3988",
        {
            "en": "valid is ignored: the predictions of padding are counted",
            "ru": "valid не учтён: считаются и предсказания дополнения",
        },
        {"en": "nats[valid[:, 1:]].mean()", "ru": "nats[valid[:, 1:]].mean()"},
    ),
    "mask_not_shifted": (
        "ml-explore/mlx-lm#1855",
        {
            "en": "a prediction counts if the token it is made from is real, so that the first "
            "padding token is counted",
            "ru": (
                "предсказание учтено, если настоящий токен стоит перед ним: "
                "сосчитан и первый токен дополнения"
            ),
        },
        {
            "en": "valid[:, 1:], shifted like the targets",
            "ru": "valid[:, 1:], со сдвигом, как и цели",
        },
    ),
    "last_token_dropped": (
        "a mutation of right code",
        {
            "en": "the last real token of each row is never counted",
            "ru": "последний настоящий токен каждой строки не учтён",
        },
        {
            "en": "shift the mask once: valid[:, 1:]",
            "ru": "сдвигайте маску один раз: valid[:, 1:]",
        },
    ),
    "mask_inverted": (
        "a mutation of right code",
        {
            "en": "True in valid is read as padding, while here True = real",
            "ru": "True в valid понято как дополнение, а здесь True = настоящий токен",
        },
        {"en": "nats[valid[:, 1:]].mean()", "ru": "nats[valid[:, 1:]].mean()"},
    ),
    "zero_is_padding": (
        "lucidrains/DALLE-pytorch#57",
        {
            "en": "token id 0 is left out as if it were padding",
            "ru": "токен с номером 0 пропущен, как будто это дополнение",
        },
        {"en": "let valid alone say what is padding", "ru": "о дополнении говорит только valid"},
    ),
    "zero_instead_of_mask": (
        "keras-team/keras-hub#63",
        {
            "en": "valid is not read: token id 0 is taken for padding, and nothing else",
            "ru": "valid не прочитан: дополнением сочтён токен с номером 0 и ничто другое",
        },
        {"en": "nats[valid[:, 1:]].mean()", "ru": "nats[valid[:, 1:]].mean()"},
    ),
    "zero_guessed_padding": (
        "wzhouad/RE_improved_baseline#3",
        {
            "en": "without padding in valid, token id 0 is guessed to be padding",
            "ru": "если valid не закрывает ничего, дополнением сочтён токен с номером 0",
        },
        {"en": "valid=None: every token counts", "ru": "valid=None: учитываются все токены"},
    ),
    "sum_not_mean": (
        "a mutation of right code",
        {"en": "the nats are summed, not averaged", "ru": "наты сложены, а не усреднены"},
        {"en": "divide by the number of predictions", "ru": "разделите на число предсказаний"},
    ),
    "mean_of_rows": (
        "meta-pytorch/torchtune#1875",
        {
            "en": "each row is averaged first and then the rows: tokens of short rows weigh more",
            "ru": "сначала усреднены строки, потом их средние: токены коротких строк весят больше",
        },
        {"en": "one sum / one count of all tokens", "ru": "одна сумма / одно число всех токенов"},
    ),
    "per_row_not_token": (
        "a mutation of right code",
        {
            "en": "the sum is divided by the number of rows, not of predicted tokens",
            "ru": "сумма разделена на число строк, а не на число предсказанных токенов",
        },
        {"en": "sum / valid[:, 1:].sum()", "ru": "sum / valid[:, 1:].sum()"},
    ),
    "padding_in_denominator": (
        "d2l-ai/d2l-en#2076",
        {
            "en": "padding adds no nats but is counted in the mean: more padding, lower loss",
            "ru": "дополнение не добавляет нат, но входит в делитель: "
            "чем его больше, тем меньше потери",
        },
        {"en": "sum / valid[:, 1:].sum()", "ru": "sum / valid[:, 1:].sum()"},
    ),
    "first_token_in_denominator": (
        "kimiyoung/transformer-xl#131",
        {
            "en": "the sum is divided by the number of tokens, but nothing predicts the first one",
            "ru": "сумма разделена на число токенов, хотя первый никто не предсказывает",
        },
        {"en": "T - 1 predictions: valid[:, 1:].sum()", "ru": "valid[:, 1:].sum(), то есть T - 1"},
    ),
    "sign_lost": (
        "IBM/unitxt#534",
        {
            "en": "the minus is missing: the log-probabilities are averaged as they are",
            "ru": "потерян минус: логарифмы вероятностей усреднены как есть",
        },
        {"en": "-log_softmax(...)", "ru": "-log_softmax(...)"},
    ),
    "bits_not_nats": (
        "huggingface/evaluate#241",
        {
            "en": "the result is in bits (logarithm of base 2), not in nats",
            "ru": "результат в битах (логарифм по основанию 2), а не в натах",
        },
        {"en": "the natural logarithm, no / log(2)", "ru": "натуральный логарифм, без / log(2)"},
    ),
    "probability_floor": (
        "a mutation of right code",
        {
            "en": "the probability (or its logarithm) is kept above a floor, so that a great "
            "surprise costs too little",
            "ru": "вероятность (или её логарифм) ограничена снизу, и неожиданный токен стоит "
            "слишком мало",
        },
        {
            "en": "log_softmax(...), no + eps and no clamp",
            "ru": "без + eps и без clamp: log_softmax(...)",
        },
    ),
    "probability_rounds_to_zero": (
        "pytorch/pytorch#1620",
        {
            "en": "the probability is formed first, rounds to 0, and its logarithm is infinite",
            "ru": "сначала вычислена вероятность, она округлилась до 0, и логарифм бесконечен",
        },
        {
            "en": "log_softmax(...), not log(softmax(...))",
            "ru": "log_softmax(...), а не log(softmax(...))",
        },
    ),
    "exp_overflows": (
        "pyg-team/pytorch_geometric#53",
        {
            "en": "the exponentials are summed without taking off the largest logit, and overflow",
            "ru": "экспоненты сложены без вычитания наибольшего логита и переполняются",
        },
        {"en": "logits.logsumexp(-1)", "ru": "logits.logsumexp(-1)"},
    ),
    "probability_not_log": (
        "pytorch/pytorch#10033",
        {
            "en": "the probability itself is averaged: nll_loss was given softmax",
            "ru": "усреднена сама вероятность: nll_loss получил softmax",
        },
        {
            "en": "nll_loss wants log_softmax(logits)",
            "ru": "для nll_loss нужен log_softmax(logits)",
        },
    ),
    "raw_logits": (
        "flowersteam/lamorel#51",
        {
            "en": "the logits are taken for log-probabilities: nothing normalises them",
            "ru": "логиты приняты за логарифмы вероятностей: нормировки нет",
        },
        {"en": "logits.log_softmax(-1)", "ru": "logits.log_softmax(-1)"},
    ),
    "softmax_twice": (
        "tflearn/tflearn#562",
        {
            "en": "softmax is taken before a loss that takes it itself",
            "ru": "softmax взят перед функцией потерь, которая берёт его сама",
        },
        {"en": "give cross_entropy the raw logits", "ru": "cross_entropy нужны сами логиты"},
    ),
    "softmax_over_positions": (
        "a mutation of right code",
        {
            "en": "softmax runs over the positions instead of the vocabulary",
            "ru": "softmax взят по позициям, а не по словарю",
        },
        {"en": "log_softmax(dim=-1)", "ru": "log_softmax(dim=-1)"},
    ),
    "softmax_over_all_positions": (
        "a mutation of right code",
        {
            "en": "softmax runs over all T positions instead of the vocabulary",
            "ru": "softmax взят по всем T позициям, а не по словарю",
        },
        {"en": "log_softmax(dim=-1)", "ru": "log_softmax(dim=-1)"},
    ),
    "softmax_over_batch": (
        "PetrochukM/PyTorch-NLP#2",
        {
            "en": "softmax runs over the batch instead of the vocabulary",
            "ru": "softmax взят по пакету, а не по словарю",
        },
        {"en": "log_softmax(dim=-1)", "ru": "log_softmax(dim=-1)"},
    ),
    "logits_clipped": (
        "a mutation of right code",
        {
            "en": "large logits are clipped before the softmax, and what they tell apart is lost",
            "ru": "большие логиты обрезаны перед softmax, и различие между ними пропало",
        },
        {"en": "log_softmax(logits), no clamp", "ru": "без clamp: log_softmax(logits)"},
    ),
    "labels_smoothed": (
        "a mutation of right code",
        {
            "en": "the labels are smoothed: a tenth of the cost is that of all other tokens",
            "ru": "метки сглажены: десятая часть потерь относится ко всем токенам словаря",
        },
        {"en": "label_smoothing=0 when measuring", "ru": "при измерении label_smoothing=0"},
    ),
    "last_column_lost": (
        "a mutation of right code",
        {"en": "the last position is never predicted", "ru": "последняя позиция не предсказана"},
        {"en": "token_ids[:, 1:], to the end", "ru": "token_ids[:, 1:] до конца"},
    ),
    "second_column_lost": (
        "nlp-with-transformers/notebooks#67",
        {
            "en": "the first prediction is dropped: token 1 is not scored",
            "ru": "первое предсказание отброшено: токен 1 не учтён",
        },
        {"en": "logits[:, :-1], from the start", "ru": "logits[:, :-1] с самого начала"},
    ),
}
