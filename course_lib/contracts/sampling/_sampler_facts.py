"""What the sampler's contract measures, in words of both languages."""

SAMPLER_FACTS = {
    "no_ids": {
        "en": "the result is a {came}, of which no array of ids can be made",
        "ru": "результат имеет тип {came}, массива номеров из него не получается",
    },
    "dtype": {
        "en": "the ids are {came}; they must be integers",
        "ru": "номера имеют тип {came}, а нужны целые",
    },
    "shape": {
        "en": "the ids have shape {came}; one id for each row is shape {wanted}",
        "ru": "форма номеров {came}, а по одному на строку — это {wanted}",
    },
    "range": {
        "en": "id {came} is no token: the last one is {last}",
        "ru": "номера {came} нет: последний токен {last}",
    },
    "changed": {
        "en": "the call changed the caller's logits: work on a copy",
        "ru": "вызов изменил переданные логиты: работайте с копией",
    },
    "logits_changed": {"en": "logits changed", "ru": "изменены логиты"},
    "unchanged": {"en": "nothing changed", "ru": "без изменений"},
    "removed": {
        "en": "id {came} came {count} times in {draws} rows of the logits {row}, where only {kept} "
        "may come",
        "ru": (
            "номер {came} выпал в {count} из {draws} строк логитов {row}, а возможны только {kept}"
        ),
    },
    "one_of": {"en": "one of {kept}", "ru": "один из {kept}"},
    "frequency": {
        "en": "in {draws} rows of the logits {row} token {token} came {count} times; right are "
        "about {wanted:.0f}: chance strays so far less than once in 10^{surprise:.0f}",
        "ru": (
            "токен {token} выпал в {count} из {draws} строк логитов {row}, а верно около "
            "{wanted:.0f}: случайно так бывает реже, чем раз на 10^{surprise:.0f}"
        ),
    },
    "greedy": {
        "en": "at temperature 0 the answer is the highest logit, the lowest id of equal ones",
        "ru": "при температуре 0 ответ — наибольший логит, из равных младший номер",
    },
    "agree": {
        "en": "rows {lag} apart hold the same token in {count} of {pairs} pairs; independent ones "
        "would in about {wanted:.0f}",
        "ru": "строки через {lag} дали один и тот же токен в {count} из {pairs} пар, а "
        "независимые дали бы примерно в {wanted:.0f}",
    },
    "two_rows": {
        "en": "in {pairs} calls the two equal rows held the same token {count} times; independent "
        "ones would about {wanted:.0f} times",
        "ru": (
            "две равные строки дали один и тот же токен в {count} из {pairs} вызовов, а "
            "независимые дали бы примерно в {wanted:.0f}"
        ),
    },
    "other_source": {
        "en": "two generators with the same seed gave different ids: "
        "chance comes from elsewhere too, or something is kept between calls",
        "ru": (
            "два генератора с одним зерном дали разные номера: случайность не только из rng, или "
            "что-то хранится между вызовами"
        ),
    },
    "repeats": {
        "en": "the next call with the same generator gave the same ids: it has not moved on",
        "ru": "следующий вызов с тем же генератором дал те же номера: генератор не сдвинулся",
    },
    "seedless": {
        "en": "generators with different seeds gave the same ids: rng is not drawn from",
        "ru": "генераторы с разными зёрнами дали одни и те же номера: rng не используется",
    },
    "global_state": {
        "en": "the call moved a global generator (random, numpy.random or torch)",
        "ru": "вызов сдвинул глобальный генератор (random, numpy.random или torch)",
    },
}
