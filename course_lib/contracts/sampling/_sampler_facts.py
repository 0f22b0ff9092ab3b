"""What the sampler's contract measures, in words of both languages."""

# fmt: off
SAMPLER_FACTS = {
    "no_ids": "the result is a {came}, of which no array of ids can be made | "
    "результат имеет тип {came}, массива номеров из него не получается",
    "dtype": "the ids are {came}; they must be integers | номера имеют тип {came}, а нужны целые",
    "shape": "the ids have shape {came}; one id for each row is shape {wanted} | "
    "форма номеров {came}, а по одному на строку — это {wanted}",
    "range":
        "id {came} is no token: the last one is {last} | номера {came} нет: последний токен {last}",
    "changed": "the call changed the caller's logits: work on a copy | "
    "вызов изменил переданные логиты: работайте с копией",
    "logits_changed": "logits changed | изменены логиты",
    "unchanged": "nothing changed | без изменений",
    "removed":
        "id {came} came {count} times in {draws} rows of the logits {row}, where only {kept} may "
    "come "
        "| номер {came} выпал в {count} из {draws} строк логитов {row}, а возможны только {kept}",
    "one_of": "one of {kept} | один из {kept}",
    "frequency":
        "in {draws} rows of the logits {row} token {token} came {count} times; right are about "
        "{wanted:.0f}: chance strays so far less than once in 10^{surprise:.0f} | "
        "токен {token} выпал в {count} из {draws} строк логитов {row}, а верно около {wanted:.0f}: "
        "случайно так бывает реже, чем раз на 10^{surprise:.0f}",
    "greedy": "at temperature 0 the answer is the highest logit, the lowest id of equal ones | "
    "при температуре 0 ответ — наибольший логит, из равных младший номер",
    "agree":
        "rows {lag} apart hold the same token in {count} of {pairs} pairs; independent ones would "
    "in "
        "about {wanted:.0f} | строки через {lag} дали один и тот же токен в {count} из {pairs} "
    "пар, а "
        "независимые дали бы примерно в {wanted:.0f}",
    "two_rows":
        "in {pairs} calls the two equal rows held the same token {count} times; independent ones "
    "would "
        "about {wanted:.0f} times | две равные строки дали один и тот же токен в {count} из "
    "{pairs} "
        "вызовов, а независимые дали бы примерно в {wanted:.0f}",
    "other_source":
        "two generators with the same seed gave different ids: chance comes from elsewhere too, or "
        "something is kept between calls | два генератора с одним зерном дали разные номера: "
        "случайность не только из rng, или что-то хранится между вызовами",
    "repeats": "the next call with the same generator gave the same ids: it has not moved on | "
    "следующий вызов с тем же генератором дал те же номера: генератор не сдвинулся",
    "seedless": "generators with different seeds gave the same ids: rng is not drawn from | "
    "генераторы с разными зёрнами дали одни и те же номера: rng не используется",
    "global_state": "the call moved a global generator (random, numpy.random or torch) | "
    "вызов сдвинул глобальный генератор (random, numpy.random или torch)",
}
# fmt: on
