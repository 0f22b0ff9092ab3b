"""What the contract of weight tying demands and what it finds, in words."""

TYING_MEANINGS = {
    "result_form": {
        "en": "a module with .embedding.weight and .head.weight",
        "ru": "модуль с .embedding.weight и .head.weight",
    },
    "sizes": {
        "en": "both weights are [vocab_size, d_model]",
        "ru": "оба веса имеют форму [vocab_size, d_model]",
    },
    "one_parameter": {
        "en": "head.weight is embedding.weight: one Parameter, listed once",
        "ru": "head.weight is embedding.weight: один параметр, учтён 1 раз",
    },
    "gradient": {
        "en": "its gradient is the sum of what both uses give",
        "ru": "его градиент — сумма того, что дают оба применения",
    },
    "optimiser_step": {
        "en": "after a step still one, moved once (SGD, AdamW)",
        "ru": "после шага (SGD, AdamW) он всё так же один и сдвинут один раз",
    },
    "conversion": {
        "en": "another dtype, and still one Parameter",
        "ru": "другой тип чисел — и по-прежнему один параметр",
    },
    "deep_copy": {
        "en": "a deep copy is tied too, and shares nothing",
        "ru": "глубокая копия тоже связана, но общего с исходной нет",
    },
    "loading": {
        "en": "a state_dict comes back, and there is still one",
        "ru": "state_dict загружается, и параметр по-прежнему один",
    },
    "independent_builds": {
        "en": "two builds share nothing; sizes are those asked for",
        "ru": "у двух моделей нет ничего общего; размеры те, что заданы",
    },
}

TYING_FACTS = {
    "built": {"en": "as built", "ru": "сразу после создания"},
    "mode": {"en": "after train() or eval()", "ru": "после train() или eval()"},
    "step": {"en": "after an optimiser step", "ru": "после шага оптимизатора"},
    "conversion": {"en": "after .to(dtype)", "ru": "после .to(dtype)"},
    "copy": {"en": "after copy.deepcopy", "ru": "после copy.deepcopy"},
    "loading": {"en": "after load_state_dict", "ru": "после load_state_dict"},
    "not_module": {
        "en": "the result is a {came}, not a torch.nn.Module",
        "ru": "результат имеет тип {came}, а нужен torch.nn.Module",
    },
    "not_parameter": {
        "en": "{name}.weight is a {came}, not an nn.Parameter",
        "ru": "{name}.weight имеет тип {came}, а нужен nn.Parameter",
    },
    "not_float": {
        "en": "{name}.weight holds {came}, not floating-point numbers",
        "ru": "{name}.weight имеет тип {came}, а нужны числа с плавающей точкой",
    },
    "not_finite": {
        "en": "{name}.weight holds a NaN or an infinity",
        "ru": "в {name}.weight есть NaN или бесконечность",
    },
    "size": {
        "en": "{name}.weight has shape {came}, the call asks for {wanted}",
        "ru": "{name}.weight имеет форму {came}, а вызов требует {wanted}",
    },
    "two_unequal": {
        "en": "{when} there are two Parameters with different numbers",
        "ru": "{when} параметров два, и числа в них разные",
    },
    "two_equal": {
        "en": "{when} there are two Parameters: equal now, but in two places of memory",
        "ru": "{when} параметров два: сейчас они равны, но лежат в памяти отдельно",
    },
    "two_sharing": {
        "en": "{when} there are two Parameters over one memory, so one matrix is stepped twice",
        "ru": "{when} параметров два, а память одна: одна матрица делает два шага",
    },
    "two_frozen": {
        "en": "{when} there are two Parameters over one memory, and a frozen one never learns",
        "ru": "{when} параметров два, а память одна; замороженный не обучается",
    },
    "listed": {
        "en": "{when} parameters() lists the shared Parameter {came} times",
        "ru": "{when} общий параметр встречается в parameters() столько раз: {came}",
    },
    "replaced": {
        "en": "{when} another Parameter stands there than before",
        "ru": "{when} на его месте стоит другой параметр",
    },
    "frozen": {
        "en": "the shared Parameter does not require a gradient",
        "ru": "общий параметр не требует градиента",
    },
    "no_gradient": {
        "en": "no gradient reaches the shared Parameter",
        "ru": "до общего параметра не доходит градиент",
    },
    "gradient": {
        "en": "the gradient is not the sum of both uses; it is off by {came}",
        "ru": "градиент не равен сумме градиентов двух применений; отличие {came}",
    },
    "moved": {
        "en": "a step moves the shared Parameter otherwise than a lone one; it is off by {came}",
        "ru": "шаг сдвигает общий параметр не так, как одиночный; отличие {came}",
    },
    "not_converted": {
        "en": "after .to({wanted}) the weight is {came}",
        "ru": "после .to({wanted}) вес имеет тип {came}",
    },
    "copy_shared": {
        "en": "the deep copy holds the Parameter of the original",
        "ru": "в глубокой копии стоит параметр оригинала",
    },
    "copied": {
        "en": "the deep copy has other numbers; they are off by {came}",
        "ru": "в глубокой копии другие числа; отличие {came}",
    },
    "loaded": {
        "en": "the loaded numbers are not those that were saved; they are off by {came}",
        "ru": "загружены не те числа, что были сохранены; отличие {came}",
    },
    "builds_shared": {
        "en": "two builds return models that hold the same Parameter",
        "ru": "два вызова build вернули модели с одним и тем же параметром",
    },
    "builds_moved": {
        "en": "changing one model changes another of the same size; it is off by {came}",
        "ru": "изменение одной модели меняет другую того же размера; отличие {came}",
    },
}
