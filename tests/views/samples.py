"""One call of each view in each language, as a notebook would write it, and what it displays."""

import math
from contextlib import contextmanager

import numpy as np
import pytest

from course_lib import text
from course_lib.views import base
from course_lib.views.cache_steps import view_cache_steps
from course_lib.views.mask_painter import view_mask_painter
from course_lib.views.position_dial import view_position_dial
from course_lib.views.roofline_batch import view_roofline_batch
from course_lib.views.sampling_dial import view_sampling_dial
from course_lib.views.surprisal_box import view_surprisal_box

SCORES = [[0.0, 1.0, 2.0], [1.0, 0.5, -0.5], [-1.0, 0.0, 3.0]]
CAUSAL = [[j <= i for j in range(3)] for i in range(3)]
EVERY = [[True] * 3] * 3
STRICT = [[j < i for j in range(3)] for i in range(3)]  # the first row is empty
LOGITS = [2.0, 1.5, 1.0, 0.2, -0.6]
PROBS = {"sun": 0.5, "moon": 0.25, "star": 0.01, "солнце": 0.5, "луна": 0.25, "звезда": 0.01}


def weigh(allowed):
    """A softmax over what is allowed, by hand; of an empty row, NaN."""
    weights = []
    for scores, row in zip(SCORES, allowed, strict=True):
        parts = [math.exp(s) if may else 0.0 for s, may in zip(scores, row, strict=True)]
        weights.append([part / sum(parts) if sum(parts) else math.nan for part in parts])
    return weights


def distribution(temperature, top_k, top_p):
    """The filters by brute force over prefixes of the sorted tokens; the logits are sorted."""
    probs = np.exp(np.array(LOGITS) / temperature)
    probs[top_k or len(probs) :] = 0
    probs /= probs.sum()
    if top_p is not None:
        enough = [n for n in range(1, len(probs) + 1) if probs[:n].sum() >= top_p]
        probs[enough[0] :] = 0
    return probs / probs.sum()


def table(base):
    """Sines and cosines, one by one."""
    rates = [base ** (-2 * pair / 8) for pair in range(4)]
    return [[wave(p * rate) for rate in rates for wave in (math.sin, math.cos)] for p in range(24)]


def work(batch, length):
    """A model of 1 GB of weights with 1 MB of cache a position."""
    return batch * 2e9, 1e9 + batch * length * 1e6


def score(sentence):
    tokens = sentence.removesuffix(".").split()
    return tokens, [-math.log(PROBS[token.lower()]) for token in tokens]


def unknown(sentence):
    near = {"sunn": ["sun"], "солнцо": ["солнце"]}
    strange = [t for t in sentence.removesuffix(".").split() if t.lower() not in PROBS]
    return {token: near.get(token.lower(), []) for token in strange}


def rows(table):
    """{language: {key: text}} of a table with a key and then a text for each language a row."""
    lines = [[cell.strip() for cell in line.split("|")] for line in table.strip().splitlines()]
    return {
        language: {line[0]: line[column] for line in lines}
        for column, language in enumerate(text_languages, 1)
    }


text_languages = ("en", "ru")
WORDS = {
    "mask_painter": rows("""
        mask | Mask | Маска
        own_mask | painted by you | нарисована вами
        paint | Press a cell to open or hide it | Нажмите клетку, чтобы открыть или скрыть её
        mask_title | who may read whom | кто кого может читать
        weights_title | attention weights | веса внимания
        x_label | key | ключ
        y_label | query | запрос
        open | 1: may read | 1: можно читать
        hidden | 0: hidden | 0: скрыто
        empty | empty row: nothing to read | пустая строка: читать нечего
        alt | Two grids, the mask {mask} and its weights. {rows} | Две сетки, маска {mask}. {rows}
        row | {query} reads {reads} | {query} читает {reads}
        empty_row | {query} reads nothing, weights {weight} | {query}: читать нечего, веса {weight}
    """),
    "sampling_dial": rows("""
        temperature | Temperature | Температура
        top_k | Top-k | Top-k
        top_p | Top-p | Top-p
        off | off | нет
        title | {kept} of {total} words can still come | могут прийти слова: {kept} из {total}
        x_label | probability | вероятность
        before | temperature 1, no filter | температура 1, без фильтров
        after | with these settings | с этими настройками
        removed | removed | убрано
        alt | Bars. Setting by setting: {temperature}, {top_k}, {top_p}. Possible are {kept}, \
all {total}. {probs} | Столбцы для таких настроек: {temperature}, {top_k}, {top_p}. Возможны \
{kept} из {total}. {probs}
    """),
    "position_dial": rows("""
        position | Position | Позиция
        base | Base | Основание
        waves_title | the sines at position {position} | синусы в позиции {position}
        dot_title | dot product with position {position} | произведение с позицией {position}
        x_label | position | позиция
        wave_label | value | значение
        dot_label | dot product | произведение
        pair | pair {pair} | пара {pair}
        here | this position | эта позиция
        alt | Waves, a peak at {position}, base {base}: {own}, next {near}, at {distance} {far}. \
        | Волны, пик в {position}, основание {base}: {own}, рядом {near}, через {distance} {far}.
    """),
    "cache_steps": rows("""
        step | Step | Шаг
        prefill | prefill | предзаполнение
        decode | decode step {step} | шаг декодирования {step}
        cache | Cache | Кэш
        with | with a cache | с кэшем
        without | without a cache | без кэша
        keys | keys | ключи
        values | values | значения
        written | computed now | вычислено сейчас
        read | stored earlier, read now | сохранено раньше, читается
        unused | not there yet | ещё нет
        title | stored: {stored} positions, {memory} {unit} | хранится: {stored}, {memory} {unit}
        unit | KB | КБ
        work_title | keys and values computed, in positions | вычислено ключей и значений, позиции
        now | in this step | на этом шаге
        so_far | since the start | с начала
        alt | Grid at {step}, {cache}: {token}, new {written}, read {read}, kept {stored}, \
{memory} {unit}, all {total}. | Сетка, {step}, {cache}: {token}, новых {written}, читается {read}, \
хранится {stored}, {memory} {unit}, всего {total}.
    """),
    "roofline_batch": rows("""
        batch | Batch | Пакет
        length | Tokens behind each text | Токенов за каждым текстом
        title | a step on an example machine | шаг на машине для примера
        x_label | FLOP per byte | FLOP на байт
        y_label | GFLOP/s | GFLOP/с
        roof | what the machine allows | что позволяет машина
        balance | balance | равновесие
        others | other batches | другие пакеты
        now | this batch | этот пакет
        by_memory | memory | память
        by_arithmetic | arithmetic | вычисления
        times_title | time of the step, ms | время шага, мс
        verdict | bound by {bound}: {tokens} tokens/s | предел — {bound}: {tokens} токенов/с
        alt | Batch {batch}, length {length}: intensity {intensity}, rate {rate} of {peak}, \
{tokens} tokens in a second, bound by {bound}. | Пакет {batch}, длина {length}: интенсивность \
{intensity}, {rate} из {peak}, {tokens} токенов за секунду, предел ставит {bound}.
    """),
    "surprisal_box": rows("""
        sentence | Sentence | Предложение
        examples | Given sentences | Готовые предложения
        title | {total} nats in all, {mean} a token | всего {total} ната, на токен {mean}
        y_label | surprise, nats | удивление, нат
        alt | Bars for {sentence} Dearest: {dearest}, {cost}. Each that costs something: {costs}. \
        | Столбцы: {sentence} Дороже всех {dearest}, {cost}. Что-то стоили: {costs}.
        unknown | These words I have never met: {words}. | Этих слов я не встречал: {words}.
        near | {word}: did you mean {near}? | {word}: может быть, {near}?
        blank | Write a sentence. | Напишите предложение.
        long | {count} tokens are too many, {most} fit. | Токенов {count}, помещается {most}.
    """),
}
TOKENS = rows("labels | sun moon eclipse | солнце луна затмение")
VOCABULARY = rows("labels | Sun Moon Star Rain Eclipse | Солнце Луна Звезда Дождь Затмение")
STORY = rows("labels | Once Sun finds amber . Soon | Однажды Солнце находит янтарь . Вскоре")
MASKS = rows("labels | causal,none,strict | причинная,без маски,строгая")
SENTENCES = rows("labels | Sun moon.,Moon star sun. | Солнце луна.,Луна звезда солнце.")


def call(name, language, **changes):
    """Call a view as a notebook of this language does, some of the arguments changed."""
    places = dict(zip(MASKS[language]["labels"].split(","), (CAUSAL, EVERY, STRICT), strict=True))
    calls = {
        "mask_painter": lambda a: view_mask_painter(
            a.pop("weigh", weigh), a.pop("presets", places), **a
        ),
        "sampling_dial": lambda a: view_sampling_dial(a.pop("distribution", distribution), **a),
        "position_dial": lambda a: view_position_dial(a.pop("table", table), **a),
        "cache_steps": lambda a: view_cache_steps(**a),
        "roofline_batch": lambda a: view_roofline_batch(a.pop("work", work), **a),
        "surprisal_box": lambda a: view_surprisal_box(
            a.pop("score", score), a.pop("unknown", unknown), **a
        ),
    }
    given = {
        "mask_painter": {"token_labels": TOKENS[language]["labels"].split()},
        "sampling_dial": {"token_labels": VOCABULARY[language]["labels"].split()},
        "position_dial": {"positions": (0, 5, 23), "bases": (10_000, 10)},
        "cache_steps": {
            "token_labels": STORY[language]["labels"].split(),
            "prompt_tokens": 3,
            "memory_per_token": 12.5,
        },
        "roofline_batch": {
            "bandwidth": 100.0,
            "peak": 1000.0,
            "batches": (1, 4, 16),
            "lengths": (10, 1000),
        },
        "surprisal_box": {"sentences": SENTENCES[language]["labels"].split(",")},
    }
    arguments = {**given[name], "words": WORDS[name][language], **changes}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "LANGUAGE", language)
        calls[name](arguments)


@contextmanager
def displayed(live=False):
    """Collect what views display, as in a notebook that nobody watches, or somebody does."""
    shown = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "get_ipython", lambda: object())
        patch.setattr(base, "is_live", lambda: live)
        patch.setattr(base, "display", lambda data, **told: shown.append((data, told)))
        yield shown


def output(name, language, live=False, **changes):
    """What one call displays: (data, metadata)."""
    with displayed(live) as shown:
        call(name, language, **changes)
    ((data, told),) = shown
    assert told["raw"] is True
    return data, told["metadata"]


def frames(name, language="en", **changes):
    """The pictures of all states: {state: {svg, alt}}."""
    return output(name, language, **changes)[0][base.VIEW_KIND]["frames"]


def alts(name, language="en", **changes):
    """Every state's description."""
    return {state: each["alt"] for state, each in frames(name, language, **changes).items()}
