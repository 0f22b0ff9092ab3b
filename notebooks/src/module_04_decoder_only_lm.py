# %% [markdown] lang="en" key="title"
r"""
# Module 4. The decoder-only language model

One model, told three times: in plain loops, with its failures as types, and fast. The claim: the three are *the same model*. You will see it checked on logits, not on a lucky piece of text.

**By the end you can** write a language model and its key-value cache, tell six classic cache bugs apart by their symptoms, say what limits prefill and decoding on your machine, and load real GPT-2 weights into a model you know inside out.
"""

# %% [markdown] lang="ru" key="title" en="a282c803"
r"""
# Модуль 4. Языковая модель из одного декодера (decoder-only)

Одна модель в трёх вариантах: первый — на простых циклах, во втором у каждого отказа своё исключение, третий — быстрый. Главное утверждение: все три — *одна и та же модель*. Вы проверите это на логитах, а не на удачно подобранном тексте.

**К концу модуля вы сможете** написать языковую модель и её KV-кэш, распознать по симптомам шесть классических ошибок кэша, сказать, что ограничивает предзаполнение, а что — пошаговое декодирование на вашем компьютере, и загрузить настоящие веса GPT-2 в модель, которую знаете изнутри.
"""

# %% [markdown] lang="en" key="before-you-start"
r"""
**Before you start.** This module continues [Module 3](module_03_basic_transformer.ipynb): masks, blocks, sampling and contracts are explained there. The same words and the same sampling rule are used here, and the same contracts guard both. A CPU is enough. Running everything takes about a minute; reading it and doing every exercise, six to eight hours: plan four sittings.

As before, cells titled *Machinery* are folded, and you can do the whole module without opening one.
"""

# %% [markdown] lang="ru" key="before-you-start" en="aa8c7faa"
r"""
**Прежде чем начать.** Этот модуль продолжает [модуль 3](module_03_basic_transformer.ipynb): там объяснены маски, блоки, сэмплирование и контракты. Термины и правило сэмплирования здесь те же, и проверяются оба модуля одними и теми же контрактами. Обычного процессора достаточно. Полный запуск занимает около минуты, чтение со всеми упражнениями — от шести до восьми часов: заложите четыре вечера.

Как и раньше, ячейки с заголовком *Служебный код* свёрнуты, и пройти модуль можно, не открыв ни одной.
"""

# %% [markdown] lang="en" key="setup-ask"
r"""
## 0. The workbench

The same bench as in Module 3: install only what is missing, fix the seed, keep PyTorch to one thread (NumPy keeps its own), and check the digest of the numbers promised in advance.
"""

# %% [markdown] lang="ru" key="setup-ask" en="c7113260"
r"""
## 0. Рабочее место

Всё как в модуле 3: доустанавливаем то, чего не хватает, задаём зерно генератора, оставляем PyTorch один поток (NumPy своими распоряжается сам) и сверяем отпечаток обещанных заранее чисел.
"""

# %% key="setup"
import importlib.util
import subprocess
import sys

wanted = ("torch", "numpy", "matplotlib")
missing = [name for name in wanted if importlib.util.find_spec(name) is None]
if missing:
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *missing], check=True)
print("pip install:", " ".join(missing) or "-")

# %% key="imports" role="imports"
import json
import math
import random
import tempfile
from dataclasses import fields
from functools import partial
from pathlib import Path

import numpy as np
import torch

# %% key="parameters" tags=["parameters"]
# en: one seed for everything random; training steps; a folder with real GPT-2 weights, if any
# ru: одно зерно для всего случайного; число шагов обучения; папка с весами GPT-2, если она есть
seed = 18
steps = 400
gpt2_folder = ""

# %% key="determinism" tags=["measured"]
torch.manual_seed(seed)
torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)
np.set_printoptions(precision=4, suppress=True)
print(f"torch {torch.__version__} | numpy {np.__version__} | seed {seed}")

# %% key="reference-json" role="reference" reference="module_04"
from course_lib.reference import reference_json, reference_sha256

REFERENCE_JSON = reference_json("module_04")
REFERENCE_SHA256 = reference_sha256("module_04")

# %% key="reference-reader" role="library"
from course_lib.reference import read_reference

# %% key="expect-raises" role="library"
from course_lib.report import ContractViolation, expect_raises

# %% [markdown] lang="en" key="reference-ask"
r"""
The folded cells hold the promised numbers, `read_reference`, which checks their digest before it hands them out, and `expect_raises`, which makes a call that must fail and returns its error message.
"""

# %% [markdown] lang="ru" key="reference-ask" en="f44cf999"
r"""
В свёрнутых ячейках лежат обещанные числа, функция `read_reference`, которая сверяет их отпечаток, прежде чем выдать, и `expect_raises`: она делает вызов, который обязан закончиться ошибкой, и возвращает текст этой ошибки.
"""

# %% key="reference-use"
reference = read_reference(REFERENCE_JSON, REFERENCE_SHA256)
pinned = reference["text"]
print(REFERENCE_SHA256)
print(*sorted(reference), sep=", ")

# %% [markdown] lang="en" key="reference-say"
r"""
The reference holds a whole model: two layers, two heads, the six tokens of Module 3's `TinyLM`, with logits, likelihoods and a continuation that a separate program computed in float64 and another confirmed in 50-digit arithmetic. Every stage below is held to it.
"""

# %% [markdown] lang="ru" key="reference-say" en="cf6faf16"
r"""
В эталоне — целая модель: два слоя, две головы, шесть токенов из `TinyLM` модуля 3, а при ней логиты, правдоподобия и продолжение. Одна программа вычислила их в float64, другая подтвердила в арифметике с 50 знаками. По ним мы и проверим каждый вариант.
"""

# %% [markdown] lang="en" key="progress-ask"
r"""
### Your record

`Progress` remembers what you try, pass and predict in this module. It keeps one small file, `module_04.progress.json`, beside the notebook: a restart does not lose it, and it never leaves your machine.

Exercises come in three levels: a *warm-up* takes minutes, *core* is what the module is about, *stretch* asks for an idea of your own. Their hints open one by one, from a nudge to almost the answer; think a while before each.
"""

# %% [markdown] lang="ru" key="progress-ask" en="61e61054"
r"""
### Дневник

`Progress` помнит, за что вы в этом модуле брались, что решили и что предсказали. Всё это — один небольшой файл `module_04.progress.json` рядом с блокнотом: перезапуск ему не страшен, и с вашего компьютера он никуда не уходит.

Уровней у упражнений три: *разминка* займёт несколько минут, *основное* — то, ради чего написан модуль, а упражнение *со звёздочкой* потребует самостоятельной идеи. Подсказки открываются по одной, от намёка до почти готового ответа; перед каждой подумайте ещё немного.
"""

# %% key="progress-record" role="library"
from course_lib.practice.progress import Progress

# %% lang="en" key="progress"
progress = Progress(
    "module_04",
    {
        "attention": ("warm-up", "1. Causal attention in loops"),
        "cache": ("core", "2. Add the cache to the naive generator"),
        "gallery": ("warm-up", "3. Predict before you run"),
        "fix": ("core", "4. Three bugs, and only the contract to help"),
        "contract": ("stretch", "5. Write the contract of a cache"),
        "nucleus": ("core", "6. Top-p for a batch"),
        "balance": ("stretch", "7. Where decoding stops waiting for memory"),
    },
)

# %% lang="ru" key="progress" en="f11280f4"
progress = Progress(
    "module_04",
    {
        "attention": ("warm-up", "1. Причинное внимание в циклах"),
        "cache": ("core", "2. Добавьте кэш к генератору на циклах"),
        "gallery": ("warm-up", "3. Сначала предскажите"),
        "fix": ("core", "4. Три ошибки, и в помощь только контракт"),
        "contract": ("stretch", "5. Напишите контракт кэша"),
        "nucleus": ("core", "6. Top-p для батча"),
        "balance": ("stretch", "7. Где декодирование перестаёт ждать память"),
    },
)

# %% [markdown] lang="en" key="chain-ask"
r"""
## 1. A text has a probability

A language model answers one question: how likely is this text? There are too many texts to list, but one rule cuts the question into small ones without any approximation, the *chain rule*:

$$p(x_1, \dots, x_n) = \prod_{i=1}^{n} p(x_i \mid x_1, \dots, x_{i-1}).$$

To see it at work we need texts whose true probabilities are known. Here is a little grammar that tells tales (folded: `tales` tells them, `grammar_log_likelihood` knows what each word costs), the world our model will learn.
"""

# %% [markdown] lang="ru" key="chain-ask" en="d82cc4d4"
r"""
## 1. У текста есть вероятность

Языковая модель отвечает на один вопрос: насколько вероятен этот текст? Все тексты не перечислишь, но есть правило, которое без всяких приближений разбивает вопрос на маленькие, — *цепное правило*:

$$p(x_1, \dots, x_n) = \prod_{i=1}^{n} p(x_i \mid x_1, \dots, x_{i-1}).$$

Чтобы увидеть его в работе, нужны тексты, чьи вероятности известны. Вот маленькая грамматика, которая рассказывает сказки (она свёрнута: `tales` рассказывает, `grammar_log_likelihood` знает цену каждого слова); этот мир и предстоит выучить нашей модели.
"""

# %% key="tales" role="library"
from course_lib.tales import grammar_log_likelihood, is_a_tale, tale_windows, tale_words, tales
from course_lib.tokens import Vocabulary

# %% key="tales-use"
vocabulary = Vocabulary(tale_words())
stories = tales(300, seed=seed)
for story in stories[:3]:
    print(vocabulary.decode(story))
print(len(vocabulary), "|", stories[0])

# %% [markdown] lang="en" key="tales-say"
r"""
Each word is one *token*, a number to the model. Watch the names: whoever comes first acts again at the end, so the last sentence cannot be guessed from the one before it. The next cell asks the grammar for the true probability of every word.
"""

# %% [markdown] lang="ru" key="tales-say" en="38a9c037"
r"""
Каждое слово — один *токен*, для модели это просто число. Следите за именами: кто назван первым, тот действует и в конце, так что последнее предложение по предыдущему не угадать. Следующая ячейка спрашивает у грамматики истинную вероятность каждого слова.
"""

# %% key="chain-use"
terms = grammar_log_likelihood(stories[0])
log_p = math.fsum(terms)
print([round(math.exp(term), 2) for term in terms])
print(f"{log_p=:.3f} p={math.exp(log_p):.2e}")
assert math.isclose(math.prod(math.exp(term) for term in terms), math.exp(log_p))

# %% [markdown] lang="en" key="chain-say"
r"""
Most words are certain, a few are real choices. The product of all these probabilities is the probability of the whole tale; the sum of their logarithms, in nats, says the same, and that sum is what everybody computes. Why?
"""

# %% [markdown] lang="ru" key="chain-say" en="44290667"
r"""
Большинство слов предрешено, и лишь немногие — настоящий выбор. Произведение всех этих вероятностей — вероятность целой сказки; сумма их логарифмов, в натах, говорит то же самое, и считают всегда её. Почему?
"""

# %% [markdown] lang="en" key="product-ask"
r"""
**Predict, then run.** Now and then a cell asks what you expect before the machine says what is so. Choose an answer, run on, and the cell after the computation sets the two side by side. A wrong guess costs nothing, and is what one remembers longest. The first: a text of four hundred words, each with probability one tenth.
"""

# %% [markdown] lang="ru" key="product-ask" en="7aead421"
r"""
**Сначала предскажите, потом запускайте.** Время от времени ячейка спросит, чего вы ждёте, — раньше, чем ответит машина. Выберите ответ и запускайте следующие ячейки: та, что вычисляет, поставит ожидание и результат рядом. За ошибку платить не придётся, а помнится она дольше всего. Для начала: текст из четырёхсот слов, у каждого вероятность одна десятая.
"""

# %% lang="en" key="predict-product"
progress.predict(
    "product",
    "Multiply 400 probabilities of 0.1 as Python floats. What comes out?",
    {
        "tiny": "a very small number, about 1e-400",
        "zero": "exactly 0.0",
        "stop": "an error: too small for a float",
    },
)

# %% lang="ru" key="predict-product" en="a5d853ee"
progress.predict(
    "product",
    "Перемножим 400 вероятностей по 0,1, как это делает Python. Что получится?",
    {
        "tiny": "очень малое число, около 1e-400",
        "zero": "ровно 0,0",
        "stop": "ошибка: для типа float число слишком мало",
    },
)

# %% key="underflow"
probability, logarithm = 1.0, 0.0
for _ in range(400):
    probability *= 0.1
    logarithm += math.log(0.1)
print(probability, round(logarithm, 3))
assert probability == 0.0 and math.isclose(logarithm, 400 * math.log(0.1))

# %% key="compare-product"
progress.compare("product", "zero" if probability == 0 else "tiny")

# %% [markdown] lang="en" key="underflow-say"
r"""
Four hundred words at one in ten each, and the product is *exactly zero*: the smallest positive double is about $5\cdot10^{-324}$. The sum is an unremarkable $-921.034$. From here on we never compute with the probability of a whole text, and never clamp a logarithm to keep it tidy.
"""

# %% [markdown] lang="ru" key="underflow-say" en="88ec431f"
r"""
Четыреста слов с вероятностью одна десятая — и произведение равно *в точности нулю*: наименьшее положительное число типа double — около $5\cdot10^{-324}$. А сумма — ничем не примечательные $-921{,}034$. Поэтому дальше вероятность целого текста мы нигде не вычисляем и ни один логарифм не подрезаем ради приличия.
"""

# %% key="drawing-chain" role="library"
from course_lib.plots.chain import draw_chain
from course_lib.plots.show import show_figure
from course_lib.text import written_digits

# %% lang="en" key="chain-figure"
figure = draw_chain(
    terms,
    token_labels=[vocabulary.words[token] for token in stories[0]],
    panel_titles=["each word", "all so far"],
    x_labels=["p(word | all words before)", "log p of the text so far, nats"],
    y_label="word",
)
show_figure(
    figure,
    name="chain",
    alt="The words of one tale from top to bottom. Left, a bar for the probability of each word "
    "given all before it: most are 1, the names, deeds and things are lower. Right, the sum of "
    "the logarithms falls in steps, only at the uncertain words, to about −10 nats.",
)

# %% lang="ru" key="chain-figure" en="04c2e7cd"
figure = draw_chain(
    terms,
    token_labels=[vocabulary.words[token] for token in stories[0]],
    panel_titles=["каждое слово", "нарастающим итогом"],
    x_labels=["p(слово | все прежние слова)", "log p прочитанного текста, нат"],
    y_label="слово",
)
show_figure(
    figure,
    name="chain",
    alt="Слова одной сказки сверху вниз. Слева полосы — вероятность каждого слова при всех "
    "прежних: у большинства она равна 1, у имён, дел и вещей меньше. Справа сумма логарифмов "
    "спускается ступенями, и только там, где слово не предрешено, — примерно до −10 нат.",
)

# %% [markdown] lang="en" key="chain-price"
r"""
The rule is exact for any order of the words, and a decoder-only model picks one: left to right. That choice has a price. To *score* a finished text, all its terms can be computed at once. To *write* one, each word has to be known before the next can be asked for. Training and scoring are parallel, generation is sequential; half of this module is about living with that.
"""

# %% [markdown] lang="ru" key="chain-price" en="0a5b2976"
r"""
Правило остаётся точным при любом порядке слов, а модель из одного декодера выбирает один: слева направо. У этого выбора есть цена. Чтобы *оценить* готовый текст, все слагаемые можно вычислить разом; а когда текст *пишут*, о следующем слове не спросить, пока не известно предыдущее. Обучение и оценка параллельны, генерация последовательна; половина модуля — о том, как с этим жить.
"""

# %% [markdown] lang="en" key="plain-ask"
r"""
## 2. Stage one: the definition, in loops

The first telling uses nothing but Python's floats, lists and `math`. It is slow on purpose: every number is in sight, and it shares no line with the faster versions it will judge. We begin with `softmax`; because it subtracts the largest score first, even a thousand does not overflow.
"""

# %% [markdown] lang="ru" key="plain-ask" en="b2fecb3b"
r"""
## 2. Первый вариант: определение, записанное циклами

Первый вариант обходится числами и списками Python да модулем `math`. Он нарочно медленный: каждое число на виду, и ни одной общей строки с быстрыми вариантами, которым он будет судьёй. Начнём с `softmax`: он сначала вычитает наибольшую оценку, поэтому и тысяча его не переполнит.
"""

# %% key="plain-softmax"
from course_lib.decoder_lm.plain import softmax

# %% key="plain-softmax-use"
print(softmax([1.0, 1.0, 1.0]), softmax([1000.0, 999.0]))

# %% [markdown] lang="en" key="ex-attention-statement"
r"""
### Exercise 1 (warm-up). Causal attention in loops

Position $i$ reads positions $0 \dots i$ and nothing later. For one head: scores are dot products divided by $\sqrt{d_\text{head}}$, then `softmax`, then the weighted mixture of the values. Lists of floats in, lists of floats out. Write it before you read ours.
"""

# %% [markdown] lang="ru" key="ex-attention-statement" en="f268e0dc"
r"""
### Упражнение 1 (разминка). Причинное внимание в циклах

Позиция $i$ читает позиции $0 \dots i$ и ничего дальше. Для одной головы: оценки — скалярные произведения, делённые на $\sqrt{d_\text{head}}$, затем `softmax`, затем взвешенная смесь значений. На входе и на выходе — списки чисел. Напишите сами, прежде чем читать наш вариант.
"""

# %% key="ex-attention" role="stub" exercise="attention"
def my_causal_attention(queries, keys, values, d_head):
    # en: queries, keys, values: T lists of d_head floats; returns T lists of d_head floats
    # ru: queries, keys, values: T списков по d_head чисел; возвращает T списков по d_head чисел
    raise NotImplementedError

# %% key="causal-attention-contract" role="library"
from course_lib.contracts import check_causal_attention_contract

# %% key="ex-attention-check" role="check" exercise="attention"
progress.check("attention", check_causal_attention_contract, my_causal_attention)

# %% [markdown] lang="en" key="ex-attention-hint-1" role="hint" exercise="attention"
r"""
Here causality needs no mask: the loop over the keys simply stops at the query's own position. Which slice of `keys` is that?
"""

# %% [markdown] lang="ru" key="ex-attention-hint-1" en="df21cacd" role="hint" exercise="attention"
r"""
Для причинности маска здесь не нужна: цикл по ключам просто останавливается на позиции самого запроса. Какой это срез списка `keys`?
"""

# %% [markdown] lang="en" key="ex-attention-hint-2" role="hint" exercise="attention"
r"""
For each `i`: a list of scores over `keys[: i + 1]`, its softmax, and then, for each column, the sum of weight times value over `values[: i + 1]`.
"""

# %% [markdown] lang="ru" key="ex-attention-hint-2" en="fb703278" role="hint" exercise="attention"
r"""
Для каждого `i`: список оценок по `keys[: i + 1]`, его softmax, а затем для каждого столбца сумма произведений веса на значение по `values[: i + 1]`.
"""

# %% key="ex-attention-solution" role="solution" exercise="attention"
def my_causal_attention(queries, keys, values, d_head):
    outputs = []
    for i, query in enumerate(queries):
        pairs = (zip(query, key, strict=True) for key in keys[: i + 1])
        scores = [math.fsum(a * b for a, b in pair) / math.sqrt(d_head) for pair in pairs]
        weights = softmax(scores)
        columns = zip(*values[: i + 1], strict=True)
        outputs.append([math.fsum(w * x for w, x in zip(weights, c, strict=True)) for c in columns])
    return outputs

# %% [markdown] lang="en" key="plain-attention-ask"
r"""
Ours, `causal_attention`, does the same for several heads: a vector of width $h \cdot d_\text{head}$ is cut into $h$ pieces, and each attends by itself.
"""

# %% [markdown] lang="ru" key="plain-attention-ask" en="de6a842f"
r"""
Наш вариант, `causal_attention`, делает то же для нескольких голов: вектор ширины $h \cdot d_\text{head}$ разрезается на $h$ частей, и в каждой внимание своё.
"""

# %% key="plain-attention"
from course_lib.decoder_lm.plain import causal_attention

# %% key="plain-attention-use"
check_causal_attention_contract(causal_attention)

# %% [markdown] lang="en" key="plain-parts-ask"
r"""
The remaining parts are old acquaintances: `linear` multiplies by a matrix and adds a bias, `layer_norm` gives every vector mean 0 and variance 1 and then applies a learned gain and bias, and `gelu` is the smooth bend between two linear layers.
"""

# %% [markdown] lang="ru" key="plain-parts-ask" en="82da9c2e"
r"""
Остальные части — старые знакомые: `linear` умножает на матрицу и прибавляет смещение (bias), `layer_norm` приводит каждый вектор к среднему 0 и дисперсии 1, а затем применяет обученные множитель и смещение; `gelu` — плавный изгиб между двумя линейными слоями.
"""

# %% key="plain-linear"
from course_lib.decoder_lm.plain import linear

# %% key="plain-norm"
from course_lib.decoder_lm.plain import layer_norm

# %% key="plain-gelu"
from course_lib.decoder_lm.plain import gelu

# %% [markdown] lang="en" key="gelu-ask"
r"""
One detail differs from Module 3. There GELU was exact, $z\,\Phi(z)$, by way of `erf`; GPT-2 was trained with an approximation by `tanh`, and its weights need the function they were trained with. How large is the difference?
"""

# %% [markdown] lang="ru" key="gelu-ask" en="3d78f5f4"
r"""
Одна деталь здесь не такая, как в модуле 3. Там GELU была точной, $z\,\Phi(z)$, через `erf`; GPT-2 же обучали с приближением через `tanh`, и её весам нужна та функция, с которой их обучили. Велика ли разница?
"""

# %% key="gelu-use"
grid = [step / 1000 for step in range(-6000, 6001)]
exact = [z * (1 + math.erf(z / math.sqrt(2))) / 2 for z in grid]
gap, where = max((abs(gelu(z) - e), z) for z, e in zip(grid, exact, strict=True))
print(f"{gap=:.2e} {where=:+.3f}")
assert 4.6e-4 < gap < 4.8e-4

# %% [markdown] lang="en" key="gelu-say"
r"""
At most about $4.7\cdot10^{-4}$ for each number: invisible in a picture, yet it enters every block. A model run with the wrong form raises no error; only a comparison of numbers notices.

Now the parts go together: `block` adds to the stream what attention reads, then what the feed-forward network makes of it; `forward` wraps the blocks between the embeddings and the logits.
"""

# %% [markdown] lang="ru" key="gelu-say" en="ddb7f940"
r"""
Самое большее — около $4{,}7\cdot10^{-4}$ на число: на графике этого не видно, а входит разница в каждый блок. С чужой формой модель работает без единой жалобы; подмену выдаёт только сравнение чисел.

Теперь соберём части: `block` прибавляет к потоку то, что прочитало внимание, затем то, что сделала из этого полносвязная сеть; `forward` ставит блоки между эмбеддингами и логитами.
"""

# %% key="plain-block"
from course_lib.decoder_lm.plain import block

# %% key="plain-forward"
from course_lib.decoder_lm.plain import forward

# %% [markdown] lang="en" key="block-say"
r"""
That is the whole model. Two remarks carry over from Module 3: the residual stream is normalised *before* each sublayer, and once more before the *unembedding*, the matrix that turns a vector into one logit per token. Does the model reproduce the promised logits?
"""

# %% [markdown] lang="ru" key="block-say" en="046e2cc9"
r"""
Вот и вся модель. Из модуля 3 остаются в силе два замечания: остаточный поток нормируется *до* каждого подслоя и ещё раз перед *выходной матрицей*, которая превращает вектор в логиты, по одному на токен. Воспроизводит ли модель обещанные логиты?
"""

# %% key="plain-use"
params, ids = reference["parameters"], pinned["token_ids"]
sizes = (params, reference["shape"]["d_head"], reference["shape"]["n_layers"])
logits = forward(ids, *sizes)
pairs = zip(logits, pinned["logits"], strict=True)
error = max(abs(x - y) for ours, theirs in pairs for x, y in zip(ours, theirs, strict=True))
for row in logits:
    print(*(f"{logit:8.4f}" for logit in row))
print(f"{error=:.0e}")
assert error < 1e-11

# %% [markdown] lang="en" key="parallel-ask"
r"""
### Why all predictions are valid at once

The rows of this table answer eight different questions, one per prefix. In the loop, each position reads only its own past; so the row of position $i$ must be what a pass over the first $i+1$ tokens alone would give. Is it, to the last bit?
"""

# %% [markdown] lang="ru" key="parallel-ask" en="b02d29ef"
r"""
### Почему все предсказания можно брать сразу

Строки этой таблицы отвечают на восемь разных вопросов, по одному на префикс. В цикле каждая позиция читает только своё прошлое; значит, строка позиции $i$ должна быть такой, какую дал бы проход по одним лишь первым $i+1$ токенам. Так ли это, вплоть до последнего бита?
"""

# %% lang="en" key="predict-bits"
progress.predict(
    "bits",
    "How do the rows of one long pass compare with those of eight passes over prefixes?",
    {
        "far": "different: the later tokens help a little",
        "near": "equal up to rounding, in the sixteenth digit",
        "bits": "equal, to the last bit",
    },
)

# %% lang="ru" key="predict-bits" en="2cd1632e"
progress.predict(
    "bits",
    "Отличаются ли строки одного длинного прохода от строк восьми проходов по префиксам?",
    {
        "far": "да: поздние токены немного помогают",
        "near": "только округлением, в шестнадцатом знаке",
        "bits": "нет: они равны до последнего бита",
    },
)

# %% key="parallel-use"
alone = [forward(ids[: n + 1], *sizes)[-1] for n in range(len(ids))]
assert alone == logits
print(len(ids), alone == logits)

# %% key="compare-bits"
progress.compare("bits", "bits" if alone == logits else "near")

# %% [markdown] lang="en" key="parallel-say"
r"""
Equal, bit for bit. This is what the causal mask buys: one pass over a text of $n$ tokens gives all $n$ predictions, none of which has seen its answer. That is why training is parallel. During training each prediction starts from the *true* prefix (teacher forcing); during generation it starts from the model's own words, mistakes included.
"""

# %% [markdown] lang="ru" key="parallel-say" en="0b6e97fd"
r"""
Строки равны бит в бит. Вот что даёт причинная маска: за один проход по тексту из $n$ токенов получаются все $n$ предсказаний, и ни одно не видело своего ответа. Поэтому обучение и идёт параллельно. При обучении каждое предсказание отталкивается от *истинного* префикса (teacher forcing), а при генерации — от собственных слов модели, вместе с её ошибками.
"""

# %% [markdown] lang="en" key="likelihood-ask"
r"""
### Loss, likelihood, perplexity

Three names for one sum. The log-likelihood (`exact_log_likelihood`) adds the log-probabilities of tokens $x_2 \dots x_n$, each given what came before; the first token is given, not predicted, and that is why tales will be scored after `<end>`. The loss, `training_loss`, is the mean of these terms with its sign changed, also called cross-entropy; `perplexity` is the exponential of the loss.
"""

# %% [markdown] lang="ru" key="likelihood-ask" en="6daa8c44"
r"""
### Потери, правдоподобие, перплексия

Три имени одной суммы. Логарифмическое правдоподобие (`exact_log_likelihood`) складывает логарифмы вероятностей токенов $x_2 \dots x_n$, каждого — при всех предыдущих; первый токен дан, а не предсказан, поэтому сказки мы будем оценивать после `<end>`. Потери, `training_loss`, — среднее этих слагаемых с обратным знаком, или кросс-энтропия; перплексия, `perplexity`, — экспонента потерь.
"""

# %% key="plain-log-probability" role="library"
from course_lib.decoder_lm.plain import log_probability

# %% key="plain-likelihood"
from course_lib.decoder_lm.plain import exact_log_likelihood

# %% key="plain-loss"
from course_lib.decoder_lm.plain import perplexity, training_loss

# %% key="plain-likelihood-use"
total = exact_log_likelihood(ids, *sizes)
print(f"{total=:.6f} {training_loss(ids, *sizes)=:.6f} {perplexity(ids, *sizes)=:.6f}")
assert math.isclose(total, pinned["log_likelihood"], rel_tol=1e-11)
assert math.isclose(perplexity(ids, *sizes), math.exp(-total / (len(ids) - 1)))

# %% [markdown] lang="en" key="exact-ask"
r"""
The word *exact* in `exact_log_likelihood` is a promise. Make one token nearly impossible through its bias and see what is left of the number.
"""

# %% [markdown] lang="ru" key="exact-ask" en="77931213"
r"""
Слово *exact* («точное») в имени `exact_log_likelihood` — обещание. С помощью смещения сделаем один токен почти невозможным и посмотрим, что останется от числа.
"""

# %% key="exact-use"
unlikely = {**params, "unembedding_bias": [0.0, 0.0, 0.0, 0.0, 0.0, -500.0]}
text = [0, 5]
print(f"{exact_log_likelihood(text, unlikely, *sizes[1:]):.6f}")
probability = softmax(forward([0], unlikely, *sizes[1:])[0])[5]
print(round(math.log(max(probability, 1e-9)), 1))

# %% [markdown] lang="en" key="exact-say"
r"""
About five hundred nats stay five hundred. The second line is how it is often done: form the probability, keep it off zero with a small constant, take the logarithm. It reports $-20.7$, and a comparison of two models built on such numbers is decided by the constant.
"""

# %% [markdown] lang="ru" key="exact-say" en="467cd014"
r"""
Около пятисот нат так и остаются пятьюстами. Вторая строка показывает, как часто поступают: вычисляют вероятность, отодвигают её от нуля маленькой константой и берут логарифм. Выходит $-20{,}7$, и если сравнивать модели по таким числам, исход решит константа.
"""

# %% [markdown] lang="en" key="generate-ask"
r"""
### Speaking, the slow way

To write on, `generate` takes the last row of logits, chooses a token, appends it, and starts again from the beginning. Nothing is remembered between the steps.
"""

# %% [markdown] lang="ru" key="generate-ask" en="d187358a"
r"""
### Говорить, но медленно

Чтобы продолжить текст, `generate` берёт последнюю строку логитов, выбирает токен, дописывает его и начинает всё сначала. От шага к шагу не запоминается ничего.
"""

# %% key="plain-generate"
from course_lib.decoder_lm.plain import generate

# %% key="plain-generate-use"
greedy = reference["greedy"]
told = generate(greedy["prompt"], *sizes, greedy["max_new_tokens"], 0.0, None)
print(greedy["prompt"], "->", told)
assert told == greedy["token_ids"]
print(expect_raises(ValueError, generate, [0], *sizes, 3, -1.0, random.Random(seed)))

# %% [markdown] lang="en" key="generate-say"
r"""
Temperature 0 is greedy, a negative one is refused, and every step appends exactly one token. Remember the waste: step $t$ recomputes everything that step $t-1$ already knew. Section 5 removes it, section 9 measures it.
"""

# %% [markdown] lang="ru" key="generate-say" en="c4b960b5"
r"""
Температура 0 — жадный выбор, отрицательная отвергнута, и каждый шаг дописывает ровно один токен. Запомните, как это расточительно: шаг $t$ заново вычисляет всё, что уже знал шаг $t-1$. Раздел 5 с этим покончит, раздел 9 — измерит.
"""

# %% [markdown] lang="en" key="typed-ask"
r"""
## 3. Stage two: failures as types

The loops are right but say little when misused. The second telling computes the same numbers with float64 arrays, and gives each way of going wrong a type of its own: `ShapeMismatch`, `ContextOverflow`, `CacheExhausted`, `CausalityViolation`. A type can be caught, tested and read in a log; a wrong number cannot.

The first to raise one is `ModelShape`, which keeps the sizes of a model.
"""

# %% [markdown] lang="ru" key="typed-ask" en="336bbf7c"
r"""
## 3. Второй вариант: у каждого отказа свой тип

Циклы верны, но если обращаться с ними неправильно, почти ничего не объяснят. Второй вариант вычисляет те же числа на массивах float64, а каждому способу ошибиться даёт собственный тип: `ShapeMismatch` (не сходятся размеры), `ContextOverflow` (текст длиннее контекста), `CacheExhausted` (кэш полон), `CausalityViolation` (нарушена причинность). Исключение своего типа можно перехватить, проверить тестом и увидеть в журнале; неверное число — нельзя.

Первым такой отказ выдаст `ModelShape`, где хранятся размеры модели.
"""

# %% key="typed-errors" role="library"
from course_lib.decoder_lm.errors import (
    CacheExhausted,
    CausalityViolation,
    ContextOverflow,
    ShapeMismatch,
)

# %% key="typed-errors-use"
for error in (ShapeMismatch, ContextOverflow, CacheExhausted, CausalityViolation):
    print(f"{error.__name__}({error.__base__.__name__})")

# %% key="typed-shape" role="library"
from course_lib.decoder_lm.shape import ModelShape

# %% key="typed-shape-use"
gpt2_small = ModelShape(
    n_layers=12, d_model=768, n_heads=12, context_length=1024, vocab_size=50257
)
print(gpt2_small.d_head, gpt2_small.scale, f"{gpt2_small.cache_bytes(batch=1)=:,}")
assert gpt2_small.cache_bytes(batch=1) in [row["bytes"] for row in reference["cache_bytes"]]
print(expect_raises(ShapeMismatch, ModelShape, 12, 768, 10, 1024, 50257))
tiny = ModelShape(n_layers=2, d_model=4, n_heads=2, context_length=8, vocab_size=6)

# %% key="typed-shape-source"
print(f"{2 * 12 * 1024 * 768 * 2=:,}")
assert gpt2_small.cache_bytes(batch=1) == 2 * 12 * 1024 * 768 * 2

# %% [markdown] lang="en" key="typed-shape-say"
r"""
Sizes travel together, and what follows from them is computed, never typed in twice; ten heads cannot share 768 columns, and the model is refused. The last number of the first line is the memory of a full cache of keys and values at two bytes a number: 38 million bytes for one text. What is kept there, and why it may be kept, we shall see in a moment.
"""

# %% [markdown] lang="ru" key="typed-shape-say" en="aa029aaf"
r"""
Размеры хранятся вместе, а всё, что из них следует, вычисляется, а не вписывается второй раз; 768 столбцов на десять голов не разделить, и такой модели отказано. Последнее число первой строки — память под полный кэш ключей и значений при двух байтах на число: 38 миллионов байт на один текст. Что там хранится и почему это можно хранить, увидим совсем скоро.
"""

# %% [markdown] lang="en" key="fit-context-ask"
r"""
### A prompt that does not fit

What should happen to a prompt longer than the context? Many programs drop its beginning and answer; then the model has never seen the question. `fit_context` refuses, says by how many tokens the text is too long, and drops its front only when told to.
"""

# %% [markdown] lang="ru" key="fit-context-ask" en="cccff883"
r"""
### Промпт, который не помещается

Что делать с промптом, который длиннее контекста? Многие программы отбрасывают его начало и отвечают как ни в чём не бывало — а вопроса модель и не видела. `fit_context` отказывает, сообщает, на сколько токенов текст длиннее, и отбрасывает начало, только если ей это велели.
"""

# %% key="fit-context"
from course_lib.decoder_lm.typed_model import fit_context

# %% key="fit-context-use"
long_prompt = ids + [3]
print(expect_raises(ContextOverflow, fit_context, long_prompt, tiny))
print(fit_context(long_prompt, tiny, allow_truncation=True))

# %% [markdown] lang="en" key="choice-ask"
r"""
### Choosing a token

The rule is Module 3's: temperature, then top-k, then top-p on the renormalised survivors, ties to the lower id. Here the settings are a `SamplingConfig`, a frozen value that cannot be nonsense; `sample_token` draws. The second printed line is what the reference promises, the first what five thousand draws gave, and Module 3's own function is the judge.
"""

# %% [markdown] lang="ru" key="choice-ask" en="28cdaeaa"
r"""
### Выбор токена

Правило — из модуля 3: температура, затем top-k, затем top-p по уцелевшим после перенормировки, при равенстве — меньший номер. Настройки здесь — неизменяемый объект `SamplingConfig`, который с бессмысленными значениями не создать; выбирает токен `sample_token`. Вторая напечатанная строка — то, что обещает эталон, первая — то, что дали пять тысяч жребиев, а судья — функция из самого модуля 3.
"""

# %% key="choice-parts" role="library"
from course_lib.decoder_lm.choice import SamplingConfig

# %% key="choice-probs" role="library"
from course_lib.decoder_lm.choice import sampling_probs

# %% key="choice-draw"
from course_lib.decoder_lm.choice import sample_token

# %% key="choice-module-3" role="library"
from course_lib.sampling import token_distribution

# %% key="choice-use"
print(*(f"{field.name}={field.default}" for field in fields(SamplingConfig)))
setting = reference["sampling"]["settings"][-1]
config = SamplingConfig(**{name: setting[name] or 0 for name in ("temperature", "top_k", "top_p")})
rng, sampled = random.Random(seed), reference["sampling"]["logits"]
drawn = [sample_token(sampled, config, rng) for _ in range(5_000)]
print([round(drawn.count(token) / len(drawn), 3) for token in range(tiny.vocab_size)])
print([round(p, 3) for p in setting["probs"]])
module_3 = token_distribution(sampled, config.temperature, config.top_k, config.top_p)
assert np.allclose(sampling_probs(np.array(sampled), config), module_3, atol=1e-12)

# %% [markdown] lang="en" key="score-ask"
r"""
### The probability under the model

A sampler's settings change what is *said*, not what the model *believes*. So a `TokenScore` carries the log-probability at temperature 1, without truncation, whatever the settings were; `stable_log_softmax` computes it without ever forming the probability. The same numbers can then score a text that somebody else wrote.
"""

# %% [markdown] lang="ru" key="score-ask" en="ade3ec28"
r"""
### Вероятность по мнению модели

Настройки сэмплирования меняют то, что *сказано*, но не то, что модель *думает*. Поэтому `TokenScore` хранит логарифм вероятности при температуре 1 и без отсечения, каковы бы ни были настройки; `stable_log_softmax` получает его, не вычисляя самой вероятности. А значит, теми же числами можно оценить и чужой текст.
"""

# %% key="score-parts"
from course_lib.decoder_lm.choice import TokenScore, stable_log_softmax

# %% key="score-show"
beliefs = stable_log_softmax(sampled)
token, nats = TokenScore(drawn[0], float(beliefs[drawn[0]]))
print(f"{token=} {nats=:.3f} {math.exp(nats)=:.3f}")
print(stable_log_softmax([800.0, 0.0]), math.exp(-800.0))
assert stable_log_softmax([800.0, 0.0])[1] == -800.0

# %% [markdown] lang="en" key="stats-ask"
r"""
### Two kinds of work

Reading a prompt (*prefill*) and writing a reply (*decoding*) cost very differently, so `DecodeStats` counts them apart: how many tokens share one pass over the weights?
"""

# %% [markdown] lang="ru" key="stats-ask" en="5c6f7c52"
r"""
### Два рода работы

Чтение промпта (*предзаполнение*) и сочинение ответа (*пошаговое декодирование*) обходятся очень по-разному, поэтому `DecodeStats` считает их порознь: сколько токенов приходится на один проход по весам?
"""

# %% key="stats-show"
from course_lib.decoder_lm.stats import DecodeStats

# %% key="stats-use"
counted = DecodeStats()
counted.record_prefill(500)
print(counted.tokens_per_weight_read)
for _ in range(500):
    counted.record_decode()
print(counted, f"{counted.tokens_per_weight_read:.2f}")
counted.record_decode(batch=64)
print(f"{counted.weight_reads=} {counted.decode_tokens=}")

# %% [markdown] lang="en" key="stats-say"
r"""
Reading pushed 500 tokens through each weight while the weight was at hand: a long prefill is limited by arithmetic, it is *compute-bound*. Decoding one text fetches all the weights anew for every token: it is *memory-bound*. Reading and writing together come to two tokens per pass. Sections 7 and 9 are about this number.
"""

# %% [markdown] lang="ru" key="stats-say" en="c3bc05c6"
r"""
Чтение пропустило через каждый вес 500 токенов, пока вес был под рукой: длинное предзаполнение *ограничено вычислениями*. Пошаговое декодирование одного текста ради каждого токена читает все веса заново: оно *ограничено памятью*. А чтение и письмо вместе — это два токена на проход. Разделы 7 и 9 — об этом числе.
"""

# %% [markdown] lang="en" key="cache-why-ask"
r"""
### Why the past may be stored

The key and the value of position $j$ are computed from the residual stream at $j$, which has read positions $0 \dots j$ and nothing else. A later token can therefore change neither. Is that so in every layer and every head? Compare the keys and values of a text with those of its beginning. `KeyValueCache` will hold them; `forward_pass` computes them, with `attend_with_past` (folded) as its attention.
"""

# %% [markdown] lang="ru" key="cache-why-ask" en="f092c77b"
r"""
### Почему прошлое можно хранить

Ключ и значение позиции $j$ вычисляются из остаточного потока в $j$, а тот прочитал позиции $0 \dots j$ и больше ничего. Значит, ни ключа, ни значения более поздний токен изменить не может. Так ли это в каждом слое и в каждой голове? Сравним ключи и значения текста с ключами и значениями его начала. Хранить их будет `KeyValueCache`, а вычисляет `forward_pass`, где вниманием занята `attend_with_past` (она свёрнута).
"""

# %% key="typed-cache"
from course_lib.decoder_lm.typed_cache import KeyValueCache

# %% key="typed-forward" role="library"
from course_lib.decoder_lm.typed_model import attend_with_past

# %% key="typed-model" role="library"
from course_lib.decoder_lm.shape import as_arrays, as_lists

# %% key="typed-pass"
from course_lib.decoder_lm.typed_model import forward_pass

# %% [markdown] lang="en" key="typed-decoder-ask"
r"""
`forward_pass` is the whole model over *new* positions, given keys and values of the past. `CachedModel`, the decoder around it, adds the order of things: check first, then compute, and let the cache advance only when nothing can fail any more.
"""

# %% [markdown] lang="ru" key="typed-decoder-ask" en="04993cf7"
r"""
`forward_pass` — это вся модель, применённая к *новым* позициям при известных ключах и значениях прошлого. Обёртка-декодер, `CachedModel`, отвечает за порядок действий: сначала проверить, затем вычислить, а кэш продвинуть лишь тогда, когда сорваться уже нечему.
"""

# %% key="typed-decoder"
from course_lib.decoder_lm.typed import CachedModel

# %% [markdown] lang="en" key="typed-model-note"
r"""
`TypedModel`, folded, holds the parameters and scores a text without a cache. What is left is to write, and `TypedDecoder` does it: choose, remember the model's own opinion of the choice, and stop for a reason.
"""

# %% [markdown] lang="ru" key="typed-model-note" en="b1084e98"
r"""
Класс `TypedModel` (он свёрнут) хранит параметры и оценивает текст без кэша. Осталось научить модель писать, и это делает `TypedDecoder`: выбирает токен, запоминает, что о нём думает сама модель, и останавливается по названной причине.
"""

# %% key="typed-generate"
from course_lib.decoder_lm.typed import TypedDecoder

# %% [markdown] lang="en" key="cache-why-back"
r"""
Back to the question: do the keys and values of the first five tokens change when three more follow?
"""

# %% [markdown] lang="ru" key="cache-why-back" en="09f58f4c"
r"""
Вернёмся к вопросу: изменятся ли ключи и значения первых пяти токенов, если за ними последуют ещё три?
"""

# %% key="cache-why"
typed = TypedDecoder(as_arrays(params, np.float64), tiny)
typed.prefill(ids)
keys, values = typed.cache.keys().copy(), typed.cache.values().copy()
typed.prefill(ids[:5])
print(keys.shape, f"{np.abs(typed.cache.keys() - keys[:, :, :5]).max():.0e}")
assert np.allclose(typed.cache.keys(), keys[:, :, :5], rtol=0, atol=1e-12)
assert np.allclose(typed.cache.values(), values[:, :, :5], rtol=0, atol=1e-12)

# %% [markdown] lang="en" key="cache-why-say"
r"""
They do not change, so they need not be computed again: that is what permits a key-value cache. The *query* of a past position is never needed again, so it is not stored. The permission has two conditions. Attention must be causal: in an encoder a new token changes the old vectors. And positions must stay: drop the front of the text, and every key is the key of another place.
"""

# %% [markdown] lang="ru" key="cache-why-say" en="b18736c2"
r"""
Они не меняются, а значит, и вычислять их снова незачем: вот почему KV-кэш вообще законен. *Запрос* прошлой позиции больше никогда не понадобится, поэтому его не хранят. Условий у этого два. Внимание обязано быть причинным: в энкодере новый токен меняет старые векторы. И позиции обязаны оставаться на месте: отбросьте начало текста — и каждый ключ окажется ключом чужого места.
"""

# %% [markdown] lang="en" key="typed-cache-ask"
r"""
The cache is allocated once, for the whole context. `append` takes all layers and heads of a position together and checks them before it writes, so no error can leave it half-advanced. What happens at the end?
"""

# %% [markdown] lang="ru" key="typed-cache-ask" en="a38135e4"
r"""
Память под кэш выделяется один раз, сразу на весь контекст. `append` принимает все слои и головы позиции вместе и проверяет их до записи, так что никакая ошибка не оставит кэш продвинутым наполовину. А что происходит, когда место кончается?
"""

# %% key="typed-cache-use"
typed.prefill(ids)
print(f"{typed.cache.length=} {tiny.context_length=}")
print(expect_raises(CacheExhausted, typed.cache.append, keys[:, :, 0], values[:, :, 0]))
print(expect_raises(CacheExhausted, typed.decode, 0))
print(expect_raises(ContextOverflow, typed.extend, [0]))
assert typed.cache.length == tiny.context_length

# %% [markdown] lang="en" key="typed-cache-say"
r"""
Two types for two faults. The cache, and a single step of `decode` with it, says that it is full; `extend`, which checks a whole piece of text before the cache is touched, says that the *text* has no room left and what you can do. In every case nothing was written.

Now the promise itself: the same text, cut in four ways.
"""

# %% [markdown] lang="ru" key="typed-cache-say" en="0446ee54"
r"""
Два типа для двух отказов. Кэш, а с ним и одиночный шаг `decode`, сообщает, что он полон; `extend`, который проверяет весь кусок ещё до обращения к кэшу, — что места нет *тексту*, и подсказывает, что делать. Во всех случаях ничего не записано.

Теперь само обещание: один и тот же текст, разрезанный четырьмя способами.
"""

# %% key="typed-equality"
full = typed.full_logits(ids)
print(f"{np.abs(full - pinned['logits']).max()=:.0e}")
for chunks in ([1] * 8, [8], [4, 2, 1, 1], [3, 2, 3]):
    typed.reset()
    parts = np.split(np.array(ids), np.cumsum(chunks)[:-1])
    cached = np.concatenate([typed.extend(part.tolist()) for part in parts])
    print(chunks, f"{np.abs(cached - full).max():.0e}")
    assert np.abs(cached - full).max() < 1e-10

# %% [markdown] lang="en" key="typed-equality-say"
r"""
The second stage is the same model as the first, and its cache changes nothing but the cost. The chunkings were compared by their *logits*: comparing generated texts would hide any error too small to change the winner. Now let it write, and then score what it wrote.
"""

# %% [markdown] lang="ru" key="typed-equality-say" en="684ae874"
r"""
Второй вариант — та же модель, что и первый, а его кэш не меняет ничего, кроме стоимости. Разбиения мы сравнивали по *логитам*: сравнение написанных текстов скрыло бы любую ошибку, слишком малую, чтобы сменить победителя. А теперь пусть модель напишет текст и сама же его оценит.
"""

# %% key="score-use"
spoken, reason = typed.generate(ids[:3], 5, SamplingConfig(temperature=0.7, seed=seed))
print(reason, *(f"{s.token=} {s.log_probability=:.6f}" for s in spoken), sep="\n")
again = typed.score([*ids[:3], *(score.token for score in spoken)])[2:]
assert [round(s.log_probability, 9) for s in again] == [round(s.log_probability, 9) for s in spoken]
greedily = SamplingConfig(temperature=0.0)
limits = ((6, None), (1, 0), (99, None))
print([typed.generate([3, 1], n, greedily, eos_id=e)[1] for n, e in limits])
scored = typed.score(ids)
assert math.isclose(math.fsum(s.log_probability for s in scored), total, rel_tol=1e-12)

# %% [markdown] lang="en" key="reasons-say"
r"""
The scores are the model's own, though the draw was made at temperature 0.7: scoring the finished text gives the same numbers. Generation ends with a reason, the first that applies of `eos`, `length_limit` and `context`: in the second call of the list the first two applied at once. And the scores of a given text add up to its log-likelihood from section 2.
"""

# %% [markdown] lang="ru" key="reasons-say" en="3285cd89"
r"""
Оценки — собственное мнение модели, хотя жребий бросали при температуре 0,7: оценка готового текста даёт те же числа. Генерация, закончившись, называет причину — первую подходящую из `eos`, `length_limit` и `context`; во втором вызове из списка подошли сразу две первые. А оценки токенов заданного текста в сумме дают его логарифмическое правдоподобие из раздела 2.
"""

# %% [markdown] lang="en" key="assert-causal-ask"
r"""
### A better witness

A check of causality could look at the attention weights the model *reports*, as `assert_causal` does. But reported weights and output are two different things: `assert_causal_by_perturbation` changes later tokens and watches the earlier logits. Here is a model that can show a clean lower triangle and cheats all the same.
"""

# %% [markdown] lang="ru" key="assert-causal-ask" en="1531be77"
r"""
### Свидетель понадёжнее

Причинность можно проверять по весам внимания, о которых модель *сообщает*, — так делает `assert_causal`. Но то, о чём модель сообщает, и то, что она выдаёт, — разные вещи: `assert_causal_by_perturbation` меняет поздние токены и следит за логитами до них. Вот модель, которая предъявит безупречный нижний треугольник и всё равно жульничает.
"""

# %% key="assert-causal"
from course_lib.decoder_lm.causal_guard import assert_causal

# %% key="assert-causal-2"
from course_lib.decoder_lm.causal_guard import assert_causal_by_perturbation

# %% key="assert-causal-use"
def cheat(token_ids):
    honest = typed.full_logits(token_ids)
    return honest + 0.01 * honest[-1]


assert_causal(typed.attention_weights(ids))
assert_causal_by_perturbation(typed.full_logits, ids, tiny.vocab_size)
print(expect_raises(CausalityViolation, assert_causal_by_perturbation, cheat, ids, 6))

# %% [markdown] lang="en" key="assert-causal-say"
r"""
The triangle was clean; the output still moved when a later token changed. Believe the perturbation, not the weights on display.
"""

# %% [markdown] lang="ru" key="assert-causal-say" en="9c4c19dc"
r"""
Треугольник был безупречен, а выход всё равно сдвинулся, когда изменился более поздний токен. Верьте проверке возмущением, а не весам, выставленным напоказ.
"""

# %% [markdown] lang="en" key="twin-ask"
r"""
## 4. A model with something to say

The pinned model is too small to talk. Let us train one that can, in about ten seconds. Gradients are PyTorch's business, so here is the model once more, a *twin* in PyTorch's own layers (`TwinAttention` in `TwinBlock` in `TorchTwin`): an independent witness that shares no arithmetic with the other stages.
"""

# %% [markdown] lang="ru" key="twin-ask" en="8e8a91a8"
r"""
## 4. Модель, которой есть что сказать

Модель из эталона слишком мала, чтобы говорить. Обучим ту, что сможет, — примерно за десять секунд. Градиенты — дело PyTorch, поэтому вот та же модель ещё раз, *двойник* из собственных слоёв PyTorch (`TwinAttention` внутри `TwinBlock`, а тот внутри `TorchTwin`): независимый свидетель, у которого с остальными вариантами нет ни строки общей арифметики.
"""

# %% key="twin-attention" role="library"
from course_lib.decoder_lm.twin import TwinAttention

# %% key="twin-block"
from course_lib.decoder_lm.twin import TwinBlock

# %% key="twin" role="library"
from course_lib.decoder_lm.twin import TorchTwin

# %% [markdown] lang="en" key="windows-ask"
r"""
`fit` is Module 3's training loop; it is fed `tale_windows`, each beginning where a tale begins, after `<end>`. `mean_nll` measures the loss on fresh ones. The grammar tells us the best loss that any model can reach on average on fresh tales: the grammar's own mean surprise. So we ask not whether the loss is small, but how close it comes to that floor.
"""

# %% [markdown] lang="ru" key="windows-ask" en="ecf954cb"
r"""
`fit` — цикл обучения из модуля 3; он получает окна `tale_windows`, и каждое начинается там же, где сказка, — после `<end>`. `mean_nll` измеряет потери на новых окнах. Грамматика знает, ниже каких потерь на новых сказках в среднем не опустится никакая модель: это среднее удивление самой грамматики. Поэтому спросим не о том, малы ли потери, а о том, насколько близко они подошли к этой нижней границе.
"""

# %% key="training-parts" role="library"
from course_lib.decoder_lm.shape import random_parameters
from course_lib.tiny_lm import evaluating, greedy_continuation
from course_lib.training import fit, mean_nll

# %% key="train-setup"
context = 48
sizes_of = {"n_layers": 2, "d_model": 64, "n_heads": 4, "vocab_size": len(vocabulary)}
shape = ModelShape(**sizes_of, context_length=context)
windows = torch.tensor(tale_windows(16 * steps, context, seed=seed))
fresh = tale_windows(100, context, seed=seed + 1)
fresh_terms = [grammar_log_likelihood(window[1:]) for window in fresh]
floor = -sum(map(math.fsum, fresh_terms)) / (100 * context)
print(f"{floor=:.4f} {math.log(len(vocabulary))=:.3f}")

# %% key="train-function"
def new_twin() -> TorchTwin:
    start = random_parameters(shape, d_ff=128, seed=seed)
    start["unembedding_bias"][:] = 0
    model = TorchTwin.from_parameters(start, shape)
    model.head.bias.requires_grad_(False)
    return model


def train(model: torch.nn.Module, steps: int) -> list[float]:
    losses: list[float] = []

    def next_batch(step: int) -> torch.Tensor:
        done = len(losses) + step
        if done % 50 == 0:
            print(done, end=" ", flush=True)
        return windows[16 * done : 16 * done + 16]

    for share, learning_rate in ((0.75, 4e-3), (0.25, 6e-4)):
        losses += fit(model, next_batch, steps=int(share * steps), learning_rate=learning_rate)
    return losses

# %% [markdown] lang="en" key="train-ask"
r"""
Every batch is seen once; a smaller learning rate in the last quarter lets the weights settle. The bias of the last layer stays 0, because GPT-2 has none and section 10 will write this model in GPT-2's format. The numbers that appear count the steps.
"""

# %% [markdown] lang="ru" key="train-ask" en="7fc615d2"
r"""
Каждый батч встречается лишь однажды; в последней четверти скорость обучения меньше, чтобы веса успокоились. Смещение последнего слоя остаётся нулевым: у GPT-2 его нет, а в разделе 10 мы запишем эту модель в формате GPT-2. Числа, которые появляются по ходу дела, — номера шагов.
"""

# %% key="train"
twin = new_twin()
losses = train(twin, steps)
loss = mean_nll(twin, torch.tensor(fresh))
print(f"\n{losses[0]=:.2f} {losses[-1]=:.3f} {loss=:.3f} {floor=:.3f}")
assert 0.98 * floor < loss < 1.06 * floor

# %% [markdown] lang="en" key="train-say"
r"""
The loss began above $\ln 67 = 4.2$, worse than knowing nothing, and on fresh tales came within six per cent of the floor. From here on one dict of numbers, `params`, is *the* model, and every stage reads it. Let the typed stage speak first.
"""

# %% [markdown] lang="ru" key="train-say" en="51e2c1de"
r"""
Вначале потери были выше $\ln 67 = 4{,}2$ — хуже, чем при полном незнании, а в конце, на новых сказках, превышали границу меньше чем на шесть процентов. Отныне *модель* — это один словарь Python с числами, `params`, и каждый вариант читает его. Первым пусть говорит вариант с типами.
"""

# %% key="speak"
params = twin.to_parameters()
typed = TypedDecoder(params, shape)
for text_seed in range(3):
    config = SamplingConfig(temperature=0.7, seed=text_seed)
    spoken, reason = typed.generate([0], 40, config, eos_id=0)
    told = [score.token for score in spoken]
    print(reason, is_a_tale(told), vocabulary.decode(told))

# %% [markdown] lang="en" key="speak-say"
r"""
`is_a_tale` asks the grammar whether it could have told exactly this. One mistake anywhere, and the answer is no. These three were told at a cautious temperature; what share of fifty is right at temperature 1?
"""

# %% [markdown] lang="ru" key="speak-say" en="f0f002c6"
r"""
`is_a_tale` спрашивает грамматику, могла ли она рассказать именно это. Одна ошибка в любом месте — и ответ «нет». Эти три рассказаны при осторожной температуре; а какая доля из пятидесяти верна при температуре 1?
"""

# %% lang="en" key="predict-share"
progress.predict("share", "How many of fifty tales, told at temperature 1, have no mistake at all?")

# %% lang="ru" key="predict-share" en="b81549b5"
progress.predict(
    "share", "Сколько сказок из пятидесяти, рассказанных при температуре 1, совсем без ошибок?"
)

# %% key="speak-share"
drawn = [typed.generate([0], 40, SamplingConfig(seed=n), eos_id=0)[0] for n in range(50)]
right = [is_a_tale([score.token for score in tale]) for tale in drawn]
print(f"{sum(right) / len(right)=:.2f}")
assert 0.5 < sum(right) / len(right) < 1

# %% key="compare-share"
progress.compare("share", sum(right), within=0.1)

# %% [markdown] lang="en" key="speak-share-say"
r"""
The loss is within a few per cent of the floor, and still a good part of the tales contain a mistake: twenty tokens or more must be right in a row, and each is drawn from the model's own, slightly wrong, distribution, after words it chose itself. And yet the loss foretold it. A right tale costs the model, on average, its loss above the floor times the length of a tale; so at least $e^{-\text{gap} \cdot \text{length}}$ of its tales are right. The real share is a little higher.
"""

# %% [markdown] lang="ru" key="speak-share-say" en="6ef77c5d"
r"""
Потери почти у самой границы, а ошибка есть в заметной части сказок: верными должны быть двадцать и больше токенов подряд, а каждый берётся из собственного, слегка неверного распределения модели — после слов, которые выбрала она сама. И всё же потери это предсказывали. Верная сказка в среднем обходится модели в превышение над границей, умноженное на длину сказки; значит, верных сказок не меньше $e^{-\text{превышение} \cdot \text{длина}}$. На деле их чуть больше.
"""

# %% key="share-bound"
tale_length = 100 * context / sum(window[1:].count(0) for window in fresh)
least_right = math.exp(-(loss - floor) * tale_length)
print(f"{loss - floor=:.4f} {tale_length=:.1f} {least_right=:.2f} {sum(right) / len(right)=:.2f}")
assert least_right < sum(right) / len(right) + 0.1

# %% [markdown] lang="en" key="lost-mask-ask"
r"""
### Break it: lose the mask

Now train the same twin with one difference: the attention forgets to be causal. Nothing complains. What will become of its loss on fresh tales?
"""

# %% [markdown] lang="ru" key="lost-mask-ask" en="9fc5a81b"
r"""
### Сломаем: потеряем маску

Теперь обучим того же двойника с одним отличием: внимание забывает о причинности. И никаких жалоб. Какими станут потери на новых сказках?
"""

# %% lang="en" key="predict-mask"
progress.predict(
    "mask",
    "What will the loss on fresh tales be without the causal mask?",
    {
        "up": "higher than with it: the model is broken",
        "level": "the same: the future is of no use to it",
        "down": "below the floor, where no honest model can be",
    },
)

# %% lang="ru" key="predict-mask" en="06cbaf4c"
progress.predict(
    "mask",
    "Какими окажутся потери на новых сказках без причинной маски?",
    {
        "up": "выше, чем с ней: модель сломана",
        "level": "такими же: от будущего ей нет проку",
        "down": "ниже границы, куда честной модели не попасть",
    },
)

# %% key="lost-mask"
def forgetful(layer, x, remember=None):
    q, k, v = layer.qkv(x).unflatten(-1, (3, layer.n_heads, -1)).permute(2, 0, 3, 1, 4)
    mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    return layer.out(mixed.transpose(1, 2).flatten(2))


leaky = new_twin()
for block_of_leaky in leaky.blocks:
    block_of_leaky.attn.forward = partial(forgetful, block_of_leaky.attn)
train(leaky, steps // 2)
leaky_loss = mean_nll(leaky, torch.tensor(fresh))
print(f"\n{leaky_loss=:.3f} {floor=:.3f}")
assert leaky_loss < 0.8 * floor

# %% key="compare-mask"
outcome = "down" if leaky_loss < floor else "up" if leaky_loss > loss else "level"
progress.compare("mask", outcome)

# %% [markdown] lang="en" key="lost-mask-honest-ask"
r"""
Far *below* the grammar's own surprise, where no honest model can be, and in half the steps: it reads the answer and copies it. Generation will not show it the answer. Ask both models as generation asks, prefix by prefix, each time with nothing behind the last token.
"""

# %% [markdown] lang="ru" key="lost-mask-honest-ask" en="14cbd38f"
r"""
Намного *ниже* удивления самой грамматики, куда честной модели не попасть, — и всего за половину шагов: модель читает ответ и списывает. Но при генерации ответ ей никто не покажет. Спросим обе модели так, как спрашивает генерация: префикс за префиксом, и за последним токеном каждый раз ничего нет.
"""

# %% key="lost-mask-honest"
def nats_by_prefixes(model: torch.nn.Module, text: list[int]) -> float:
    with evaluating(model):
        rows = [model(torch.tensor([text[:n]]))[0, -1].log_softmax(-1) for n in range(1, len(text))]
    return -sum(row[token].item() for row, token in zip(rows, text[1:], strict=True)) / len(rows)

# %% lang="en" key="lost-mask-honest-use"
for name, model in {"causal": twin, "leaky": leaky}.items():
    at_once = mean_nll(model, torch.tensor(fresh[:5]))
    asked = sum(nats_by_prefixes(model, window) for window in fresh[:5]) / 5
    print(f"{name:10} {at_once=:.3f} {asked=:.3f}")
    assert math.isclose(at_once, asked, rel_tol=1e-9) == (model is twin)

# %% lang="ru" key="lost-mask-honest-use" en="9106a239"
for name, model in {"причинная": twin, "с утечкой": leaky}.items():
    at_once = mean_nll(model, torch.tensor(fresh[:5]))
    asked = sum(nats_by_prefixes(model, window) for window in fresh[:5]) / 5
    print(f"{name:10} {at_once=:.3f} {asked=:.3f}")
    assert math.isclose(at_once, asked, rel_tol=1e-9) == (model is twin)

# %% [markdown] lang="en" key="lost-mask-say"
r"""
For the causal model both numbers are one number (the cell checks it): that is what makes training in parallel legitimate. For the leaky one they are two, and the one on the training curve has never looked better. A lost mask is catastrophic and silent; a floor known in advance gives it away, and so does the contract of causality.
"""

# %% [markdown] lang="ru" key="lost-mask-say" en="3ff67fdf"
r"""
У причинной модели оба числа совпадают (ячейка это проверяет) — потому параллельное обучение и законно. У модели с утечкой они разные, а кривая обучения выглядит лучше, чем когда-либо. Потерянная маска — ошибка катастрофическая и тихая; её выдаёт нижняя граница, известная заранее, а ещё — контракт причинности.
"""

# %% key="causality-contract" role="library"
from course_lib.contracts import check_causality_contract

# %% key="lost-mask-contract"
sizes_of_leaky = {"vocab_size": len(vocabulary), "length": 12}
print(str(check_causality_contract(twin, **sizes_of_leaky)).splitlines()[0])
print(expect_raises(ContractViolation, check_causality_contract, leaky, **sizes_of_leaky))

# %% [markdown] lang="en" key="surprise-ask"
r"""
### A model that notices

A model that gives every word a probability can also be surprised: by $-\log p$ nats. Take a tale it has never seen, and the same tale with one name swapped at the end. What should the bars show?
"""

# %% [markdown] lang="ru" key="surprise-ask" en="c1e13ddd"
r"""
### Модель, которая замечает

Модель, которая даёт вероятность каждому слову, умеет и удивляться: на $-\log p$ нат. Возьмём сказку, которой она не видела, и ту же сказку, где в конце подменено одно имя. Что должны показать столбцы?
"""

# %% key="surprise"
story = tales(20, seed=seed + 2)[12]
hero, place = story[1], len(story) - 1 - story[::-1].index(story[1])
spoiled = list(story)
spoiled[place] = next(t for t in (8, 5, 6) if t not in story)
surprisals = []
for text in (story, spoiled):
    scores = typed.score([0, *text])
    surprisals.append([abs(score.log_probability) for score in scores])
print(vocabulary.decode(story), vocabulary.decode(spoiled), sep="\n")
print(f"{surprisals[0][place]=:.2f} {surprisals[1][place]=:.2f}")
assert surprisals[1][place] > surprisals[0][place] + 3
assert int(np.argmax(surprisals[1])) == place

# %% key="drawing-surprisal" role="library"
from course_lib.plots.next_token import draw_next_token
from course_lib.plots.over_words import draw_over_words

# %% lang="en" key="surprisal-figure"
figure = draw_over_words(
    surprisals,
    token_labels=[[vocabulary.words[token] for token in text] for text in (story, spoiled)],
    marked=[[], [place]],
    panel_titles=["as the grammar told it", "one name swapped"],
    y_label="surprise, nats",
)
show_figure(
    figure,
    name="surprisal",
    alt="Surprise at each word of a tale, in nats, in two panels. Above, the tale as it was told: "
    "the hero costs 3.3 nats, other choices one or two, the last name almost nothing. Below, "
    "the same tale with another name at the end: one tall bar stands out at exactly that word.",
)

# %% lang="ru" key="surprisal-figure" en="142af6b7"
figure = draw_over_words(
    surprisals,
    token_labels=[[vocabulary.words[token] for token in text] for text in (story, spoiled)],
    marked=[[], [place]],
    panel_titles=["как рассказала грамматика", "подменено одно имя"],
    y_label="удивление, нат",
)
show_figure(
    figure,
    name="surprisal",
    alt="Удивление на каждом слове сказки, в натах, на двух панелях. Вверху сказка как есть: "
    "герой стоит 3,3 ната, остальной выбор — один-два, последнее имя — почти ничего. Внизу та же "
    "сказка с другим именем в конце: ровно на этом слове выделяется один высокий столбец.",
)

# %% [markdown] lang="en" key="surprise-say"
r"""
One bar stands out, at the swapped name; the words around it are as expected as before. Nobody trained the model to find mistakes. The exact likelihood finds them, word by word, and would do so in a line of a log or a step of a program as well. A model that had forgotten who came first would not notice.
"""

# %% [markdown] lang="ru" key="surprise-say" en="df239ec5"
r"""
Выделяется один столбец — на подменённом имени; слова вокруг него удивляют не больше прежнего. Искать ошибки модель никто не учил. Их находит точное правдоподобие, слово за словом, — и так же нашло бы в строке журнала или в шаге программы. Модель, забывшая, кто был назван первым, ничего бы не заметила.
"""

# %% [markdown] lang="en" key="look-back-ask"
r"""
### Where it looks

How does it remember the hero? Just before the last name, its one tool for looking back is attention: here are the weights of every head, Module 3's formula on the trained numbers. Will some head look at the hero, named once, many tokens ago?
"""

# %% [markdown] lang="ru" key="look-back-ask" en="7bbd5753"
r"""
### Куда она смотрит

Как модель помнит героя? Перед последним именем взглянуть назад она может только вниманием; вот веса всех голов — формула из модуля 3 с обученными числами. Посмотрит ли какая-нибудь голова на героя, названного однажды и много токенов назад?
"""

# %% key="look-back"
def attention_weights(model: torch.nn.Module, ids: list[int]) -> torch.Tensor:
    x = model.token_embedding(torch.tensor(ids)) + model.position_embedding.weight[: len(ids)]
    future = torch.ones(len(ids), len(ids), dtype=torch.bool).triu(1)
    tables = []
    for block in model.blocks:
        heads = block.attn.qkv(block.ln1(x)).unflatten(-1, (3, block.attn.n_heads, -1))
        q, k, _ = heads.permute(1, 2, 0, 3)  # [H, T, d_head]
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        tables.append(scores.masked_fill(future, -math.inf).softmax(-1))
        x = block(x[None])[0]
    return torch.stack(tables)  # [n_layers, H, T, T]


so_far, hero_place = [0, *story[:place]], 2
read = attention_weights(twin, so_far)[:, :, -1].detach()
layer, head = divmod(int(read[:, :, hero_place].argmax()), shape.n_heads)
back, on_hero = len(so_far) - 1 - hero_place, read[layer, head, hero_place].item()
print(f"{layer=} {head=} {back=} {on_hero=:.2f}")
assert so_far[hero_place] == hero and on_hero > 0.5

# %% lang="en" key="look-back-figure"
figure = draw_over_words(
    [read[layer, head].tolist()],
    token_labels=[[vocabulary.words[token] for token in so_far]],
    marked=[[hero_place]],
    panel_titles=["the last word reads the hero"],
    y_label="weight of attention",
)
show_figure(
    figure,
    name="look-back",
    alt="Attention weights of one head before the last name of a tale: nearly all of the weight "
    "stands on one early word, the hero's name; every other word has next to none.",
)

# %% lang="ru" key="look-back-figure" en="d62e77a1"
figure = draw_over_words(
    [read[layer, head].tolist()],
    token_labels=[[vocabulary.words[token] for token in so_far]],
    marked=[[hero_place]],
    panel_titles=["последнее слово читает героя"],
    y_label="вес внимания",
)
show_figure(
    figure,
    name="look-back",
    alt="Веса внимания одной головы перед последним именем сказки: почти весь вес стоит на одном "
    "слове в начале, имени героя; на остальных его почти нет.",
)

# %% [markdown] lang="en" key="look-back-say"
r"""
One head has learned to fetch the hero; nobody told it to. A weight says where a vector was read, not what was made of it, so a picture of attention is evidence and no proof: the proof was the bar above, the price of a wrong name.
"""

# %% [markdown] lang="ru" key="look-back-say" en="d00e600c"
r"""
Одна голова научилась доставать героя, хотя никто её этому не учил. Вес говорит, откуда прочитан вектор, но не о том, что с ним сделано дальше; поэтому картинка внимания — улика, а не доказательство. Доказательством был столбец выше: цена неверного имени.
"""

# %% [markdown] lang="en" key="surprise-view-ask"
r"""
Now surprise it yourself, with `view_surprisal_box` (folded). The model knows 67 words, those of the tales: what is the smallest change to a tale that it finds shocking, and what can you change without its noticing?
"""

# %% [markdown] lang="ru" key="surprise-view-ask" en="eb7c340f"
r"""
А теперь удивите модель сами — с помощью `view_surprisal_box` (функция свёрнута). Модель знает 67 слов — те, что бывают в сказках. Какая самая малая перемена в сказке её потрясёт, а какой она и не заметит?
"""

# %% key="surprise-view-parts" role="library"
from course_lib.tokens import unknown_words
from course_lib.views.surprisal_box import view_surprisal_box

# %% lang="en" key="surprise-view-words" role="folded"
surprise_words = {
    "sentence": "Sentence",
    "examples": "To begin with",
    "title": "{total} nats in all, {mean} a token",
    "y_label": "surprise, nats",
    "alt": "Bars of surprise, word by word, for: {sentence} The dearest is {dearest} with "
    "{cost} nats; all: {costs}",
    "unknown": "The model does not know these words: {words}.",
    "near": "{word}: did you mean {near}?",
    "blank": "Write a sentence, and each of its words gets a bar.",
    "long": "{count} tokens are too many for the picture; {most} fit.",
}

# %% lang="ru" key="surprise-view-words" en="d211036e" role="folded"
surprise_words = {
    "sentence": "Предложение",
    "examples": "Для начала",
    "title": "всего {total} ната, на токен {mean}",
    "y_label": "удивление, нат",
    "alt": "Столбцы удивления, слово за словом, для текста: {sentence} Дороже всех {dearest}: "
    "{cost} ната; все: {costs}",
    "unknown": "Этих слов модель не знает: {words}.",
    "near": "{word}: может быть, {near}?",
    "blank": "Напишите предложение, и у каждого его слова появится столбец.",
    "long": "Токенов {count}, а на рисунке помещается {most}.",
}

# %% lang="en" key="surprise-view"
def surprise_of(sentence):
    token_ids = vocabulary.encode(sentence)
    words = [vocabulary.words[token] for token in token_ids]
    return words, [-score.log_probability for score in typed.score([0, *token_ids])]


view_surprisal_box(
    surprise_of,
    lambda sentence: unknown_words(vocabulary, sentence),
    sentences=(
        "Once Sun finds bread.",
        "Once Sun bakes bread. Soon Wind eats bread. Soon Wind eats bread.",
        "Once Sun bakes bread. Suddenly Sun eats bread.",
        "Bread bakes Sun.",
    ),
    words=surprise_words,
)

# %% lang="ru" key="surprise-view" en="230730b6"
def surprise_of(sentence):
    token_ids = vocabulary.encode(sentence)
    words = [vocabulary.words[token] for token in token_ids]
    return words, [-score.log_probability for score in typed.score([0, *token_ids])]


view_surprisal_box(
    surprise_of,
    lambda sentence: unknown_words(vocabulary, sentence),
    sentences=(
        "Однажды Солнце находит хлеб.",
        "Однажды Солнце печёт хлеб. Вскоре Ветер ест хлеб. Вскоре Ветер ест хлеб.",
        "Однажды Солнце печёт хлеб. Вдруг Солнце ест хлеб.",
        "Хлеб печёт Солнце.",
    ),
    words=surprise_words,
)

# %% key="surprise-view-pies"
with_bread = tales(20, seed=20)[12]
with_pies = [token + (token == with_bread[3]) for token in with_bread]
print(vocabulary.decode(with_pies))
texts = (with_bread, with_pies)
costs = [[-score.log_probability for score in typed.score([0, *ids])] for ids in texts]
moved = np.abs(np.subtract(*costs)).max()
print(f"{moved=:.2f}")
assert moved < 1.0

# %% [markdown] lang="en" key="surprise-view-say"
r"""
Bread that somebody *finds* costs more than nine nats; a sentence told twice costs most where it begins again, and the words after it go on paying. A hero who eats his own bread costs little more than three: that rule the model has learnt badly. And with pies for bread throughout, hardly a bar moves.
"""

# %% [markdown] lang="ru" key="surprise-view-say" en="9efa5736"
r"""
Хлеб, который *нашли*, стоит больше девяти нат; предложение, рассказанное дважды, дороже всего там, где начинается снова, — и следующие слова тоже обходятся дорого. Герой, который съел собственный хлеб, стоит чуть больше трёх: это правило модель усвоила плохо. А если всюду вместо хлеба пироги, столбцы почти не шелохнутся.
"""

# %% [markdown] lang="en" key="next-token-ask"
r"""
### What it would say next

After the first word of a tale, what are the candidates, and what do the settings of Module 3 do to them? Now the distribution is a real one.
"""

# %% [markdown] lang="ru" key="next-token-ask" en="119b0c0f"
r"""
### Что модель сказала бы дальше

Какие слова возможны после первого слова сказки и что с ними делают настройки из модуля 3? Теперь распределение настоящее.
"""

# %% key="next-token"
row = typed.prefill([0, story[0]])[-1]
likely = np.argsort(-row, kind="stable")[:9]
policies = (SamplingConfig(), SamplingConfig(temperature=0.5), SamplingConfig(top_p=0.8))
distributions = [sampling_probs(row, policy)[likely] for policy in policies]
print(vocabulary.decode([story[0]]), [round(float(p), 2) for p in distributions[0]])

# %% lang="en" key="next-token-figure"
figure = draw_next_token(
    distributions,
    token_labels=[vocabulary.words[token] for token in likely],
    panel_titles=["temperature 1", "temperature 0.5", "top-p 0.8"],
    x_label="probability",
    y_label="next word",
)
show_figure(
    figure,
    name="next-token",
    alt="The nine likeliest words after the first word of a tale, all of them names, under three "
    "policies. At temperature 1 the two favourites have about a quarter and a fifth. At "
    "temperature 0.5 they have about two fifths and a quarter. With top-p 0.8 the "
    "four least likely names have a cross and 0 in place of a bar.",
)

# %% lang="ru" key="next-token-figure" en="2ca5bd61"
figure = draw_next_token(
    distributions,
    token_labels=[vocabulary.words[token] for token in likely],
    panel_titles=["температура 1", "температура 0,5", "top-p 0,8"],
    x_label="вероятность",
    y_label="следующее слово",
)
show_figure(
    figure,
    name="next-token",
    alt="Девять самых вероятных слов после первого слова сказки — все имена — при трёх настройках. "
    "При температуре 1 у двух любимцев около четверти и пятой части вероятности, при 0,5 — около "
    "двух пятых и четверти. При top-p 0,8 у четырёх наименее вероятных имён вместо полосы "
    "крестик и 0.",
)

# %% [markdown] lang="en" key="next-token-say"
r"""
Temperature moves all probabilities and removes no word; top-p removes, and what is left is shared out again. A word with a cross has probability exactly 0: it can never be drawn. So a result without its settings beside it can be compared with nothing.
"""

# %% [markdown] lang="ru" key="next-token-say" en="ca35369c"
r"""
Температура сдвигает все вероятности, но ни одного слова не убирает; top-p убирает, а вероятность заново делится между оставшимися. У слова с крестиком вероятность ровно 0: оно не выпадет никогда. Поэтому результат, рядом с которым не указаны настройки, сравнивать не с чем.
"""

# %% [markdown] lang="en" key="simple-ask"
r"""
## 5. The key-value cache

Section 3 stored the past in a cache that guards every step. Here is the smallest cache: process only the *new* tokens, and let them read stored keys and values of the old ones. New tokens may come one at a time (decoding) or many at once (prefill, or a long prompt in chunks); the code is the same.

Three steps decide whether it is right, and each gets a method of its own: `positions`, `allowed`, `remember`. First the model, `SimpleModel`, with its attention, `attend_heads`.
"""

# %% [markdown] lang="ru" key="simple-ask" en="6dd1bbfd"
r"""
## 5. Кэш ключей и значений

Раздел 3 хранил прошлое в кэше, который проверяет каждый шаг. Вот самый маленький кэш: обрабатываем только *новые* токены, а они читают сохранённые ключи и значения старых. Новые токены могут приходить по одному (пошаговое декодирование) или помногу (предзаполнение, в том числе кусками); код один и тот же.

Верен ли кэш, решают три шага, и у каждого свой метод: `positions`, `allowed`, `remember`. Но сначала сама модель, `SimpleModel`, с её вниманием, `attend_heads`.
"""

# %% key="simple-parts" role="library"
from course_lib.decoder_lm.simple import norm_rows, part_heads, tanh_gelu

# %% key="simple-attend"
from course_lib.decoder_lm.simple import attend_heads

# %% key="simple-model"
from course_lib.decoder_lm.simple import SimpleModel

# %% [markdown] lang="en" key="simple-model-say"
r"""
`run` is the model once more. All it has to know about a cache is one function, `remember`: it takes the new keys and values of a layer and gives back all that may be read. Without a cache it returns just what it got; in `SimpleDecoder` it puts the past in front.
"""

# %% [markdown] lang="ru" key="simple-model-say" en="a5190db5"
r"""
`run` — снова вся модель. О кэше ей достаточно знать одну функцию, `remember`: получив новые ключи и значения слоя, она возвращает все, какие можно читать. Без кэша это те же, что она получила; в `SimpleDecoder` перед новыми стоят прошлые.
"""

# %% key="simple"
from course_lib.decoder_lm.simple import SimpleDecoder

# %% [markdown] lang="en" key="simple-mask-ask"
r"""
Of the three, the mask is the one most often wrong. With $n$ tokens stored and $w$ new ones, new query $i$ (counted from 0) stands at position $n+i$, so it may read keys $0 \dots n+i$. Here is the mask for four stored and three new tokens.
"""

# %% [markdown] lang="ru" key="simple-mask-ask" en="df9bdc7f"
r"""
Из этих трёх шагов чаще всего ошибаются в маске. Если сохранено $n$ токенов и пришло $w$ новых, то новый запрос $i$ (считая с 0) стоит на позиции $n+i$ и может читать ключи $0 \dots n+i$. Вот маска для четырёх сохранённых и трёх новых токенов.
"""

# %% key="simple-mask-use"
simple = SimpleDecoder(params, shape)
prompt = [0, *story]
simple.extend(prompt[:4])
print(simple.allowed(3).astype(int))
assert (simple.allowed(3).sum(axis=1) == [5, 6, 7]).all()

# %% [markdown] lang="en" key="simple-mask-say"
r"""
The triangle sits at the *lower right*. A single new token has a row of ones: it may read all that is stored and itself, so decoding needs no mask. That is no exception to causality but a consequence of it: the future is *not yet* in the cache.
"""

# %% [markdown] lang="ru" key="simple-mask-say" en="125ab610"
r"""
Треугольник стоит *в правом нижнем углу*. У единственного нового токена в строке одни единицы: он читает всё сохранённое и себя, поэтому при пошаговом декодировании маска не нужна. Это не исключение из причинности, а её следствие: будущего в кэше *ещё нет*.
"""

# %% key="cache-contract" role="library"
from course_lib.contracts import check_cache_contract

# %% key="simple-contract"
check_cache_contract(
    simple.full_logits, simple.cached_logits, vocab_size=len(vocabulary), context_length=context
)

# %% [markdown] lang="en" key="simple-contract-say"
r"""
The contract says what "the cache is right" means: equal logits for every chunking, for two prompts one after the other, up to exactly the context, and an exception beyond it. It needs no second implementation: the same model without its cache is the judge. It cannot see a fault that both passes share; section 8 looks for those.
"""

# %% [markdown] lang="ru" key="simple-contract-say" en="962ac2a8"
r"""
Контракт определяет, что значит «кэш верен»: логиты равны при любом разбиении, для двух промптов подряд и вплоть до контекста, заполненного целиком, а дальше — исключение. Вторая реализация ему не нужна: судья — та же модель без кэша. Ошибку, общую для обоих проходов, он не увидит; такие ищет раздел 8.
"""

# %% [markdown] lang="en" key="token-bytes-ask"
r"""
### What one token leaves behind

A token is one number, a word of a few letters. GPT-2 small has 12 layers of width 768, with 12 heads in each; say every number takes two bytes. How much does one more token leave in the cache?
"""

# %% [markdown] lang="ru" key="token-bytes-ask" en="da642f5c"
r"""
### Что оставляет после себя один токен

Токен — это одно число, слово из нескольких букв. У GPT-2 small 12 слоёв ширины 768, в каждом 12 голов; пусть любое число занимает два байта. Сколько оставит в кэше ещё один токен?
"""

# %% lang="en" key="predict-token-bytes"
progress.predict("token-bytes", "How many bytes does one token take in the cache of GPT-2 small?")

# %% lang="ru" key="predict-token-bytes" en="d6699cc3"
progress.predict("token-bytes", "Сколько байтов занимает один токен в кэше GPT-2 small?")

# %% key="token-bytes"
token_bytes = gpt2_small.cache_bytes(batch=1) // gpt2_small.context_length
print(f"{token_bytes=:,}")
assert token_bytes == 2 * 12 * 768 * 2

# %% key="compare-token-bytes"
progress.compare("token-bytes", token_bytes, within=0.1)

# %% [markdown] lang="en" key="token-bytes-say"
r"""
A key *and* a value, in *each* layer, 768 numbers of two bytes: $2 \cdot 12 \cdot 768 \cdot 2 = 36\,864$ bytes. The number of heads does not matter: they share the width. It adds up step by step, and section 9 will set it against the weights.
"""

# %% [markdown] lang="ru" key="token-bytes-say" en="a9ca1d3f"
r"""
И ключ, *и* значение, в *каждом* слое, по 768 чисел, в числе два байта: $2 \cdot 12 \cdot 768 \cdot 2 = 36\,864$ байта. Число голов роли не играет: ширину они делят между собой. Шаг за шагом это накапливается; раздел 9 сравнит накопленное с весами.
"""

# %% [markdown] lang="en" key="cache-view-ask"
r"""
Watch the cache grow. Of these nine words four are the prompt and five are written. What will step 1 compute, and what will it only read? `view_cache_steps` (folded) shows keys and values step by step.
"""

# %% [markdown] lang="ru" key="cache-view-ask" en="98187f9b"
r"""
Посмотрите, как растёт кэш. Из этих девяти слов четыре — промпт, пять написаны моделью. Что вычислит шаг 1, а что только прочитает? Ключи и значения шаг за шагом показывает `view_cache_steps` (функция свёрнута).
"""

# %% key="cache-view-parts" role="library"
from course_lib.views.cache_steps import view_cache_steps

# %% lang="en" key="cache-view-words" role="folded"
cache_words = {
    "step": "Step",
    "prefill": "prefill",
    "decode": "decoding step {step}",
    "cache": "Cache",
    "with": "with a cache",
    "without": "without a cache",
    "keys": "keys",
    "values": "values",
    "written": "computed now",
    "read": "stored earlier, read now",
    "unused": "not there yet",
    "title": "stored: {stored} positions, {memory} {unit}",
    "unit": "kB",
    "work_title": "keys and values computed, in positions",
    "now": "in this step",
    "so_far": "since the start",
    "alt": "Keys and values, {step}, {cache}. The step reads the token {token}: computed for "
    "{written} positions, {total} since the start; taken from memory for {read}; stored "
    "{stored}, {memory} {unit}.",
}

# %% lang="ru" key="cache-view-words" en="f6a8d993" role="folded"
cache_words = {
    "step": "Шаг",
    "prefill": "предзаполнение",
    "decode": "шаг декодирования {step}",
    "cache": "Кэш",
    "with": "с кэшем",
    "without": "без кэша",
    "keys": "ключи",
    "values": "значения",
    "written": "вычислено сейчас",
    "read": "сохранено раньше, читается",
    "unused": "ещё нет",
    "title": "хранится позиций: {stored} ({memory} {unit})",
    "unit": "кБ",
    "work_title": "вычислено ключей и значений, в позициях",
    "now": "на этом шаге",
    "so_far": "с самого начала",
    "alt": "Ключи и значения, {step}, {cache}. На входе шага токен «{token}»; вычислено "
    "позиций — {written}, с самого начала — {total}; взято из памяти — {read}; "
    "хранится — {stored}, {memory} {unit}.",
}

# %% lang="en" key="cache-view"
view_cache_steps(
    [vocabulary.words[token] for token in story[:9]],
    prompt_tokens=4,
    memory_per_token=token_bytes / 1000,
    words=cache_words,
)

# %% lang="ru" key="cache-view" en="f5dab2c3"
view_cache_steps(
    [vocabulary.words[token] for token in story[:9]],
    prompt_tokens=4,
    memory_per_token=token_bytes / 1000,
    words=cache_words,
)

# %% [markdown] lang="en" key="cache-view-say"
r"""
Go to the last step, then take the cache away and put it back. With it, a step computes one position and *reads* the rest; without it, nothing is stored, and the step computes them all. And look at the token: the word that a step has just written gets no key before it is read by the next.
"""

# %% [markdown] lang="ru" key="cache-view-say" en="402594f5"
r"""
Дойдите до последнего шага, затем отключите кэш и включите снова. С кэшем шаг вычисляет одну позицию, а остальные *читает*; без него не хранится ничего, и вычислять приходится все. И обратите внимание на токен: у слова, которое шаг только что написал, ключа ещё нет — он появится, когда слово прочитает следующий шаг.
"""

# %% [markdown] lang="en" key="ex-cache-statement"
r"""
### Exercise 2 (core). Add the cache to the naive generator

Back to plain lists. Write two functions for the pinned model, `model, d_head, n_layers = sizes` (mind: `params` is the trained one by now). `my_begin(model)` returns an empty cache. `my_extend(model, past, ids)` reads the next tokens of a text into it and returns their logits, one list per token. A text that is too long raises an exception. The chunks come one by one, and nobody shows you the earlier ones again; products are counted, so that computing the past anew is refused.
"""

# %% [markdown] lang="ru" key="ex-cache-statement" en="06ba41c7"
r"""
### Упражнение 2 (основное). Добавьте кэш к генератору на циклах

Вернёмся к спискам. Напишите две функции для модели из эталона, `model, d_head, n_layers = sizes` (осторожно: в `params` теперь обученная модель). `my_begin(model)` возвращает пустой кэш. `my_extend(model, past, ids)` читает в него следующие токены текста и возвращает их логиты, по списку на токен. На слишком длинный текст отвечайте исключением. Куски приходят по одному, и прежних вам больше не покажут; произведения подсчитываются, так что вычислять прошлое заново не выйдет.
"""

# %% key="ex-cache" role="stub" exercise="cache"
def my_begin(model):
    # en: an empty cache: whatever my_extend will want to remember
    # ru: пустой кэш — всё, что захочет помнить my_extend
    raise NotImplementedError


def my_extend(model, past, ids):
    # en: ids are the next tokens of the text; `linear`, `layer_norm`, `gelu`, `softmax` are at hand
    # ru: ids — следующие токены текста; `linear`, `layer_norm`, `gelu`, `softmax` под рукой
    raise NotImplementedError

# %% key="ex-cache-counters" role="library"
from course_lib.flops import ProductTally, counted_lists

# %% key="ex-cache-check" role="check" exercise="cache"
def my_cached_logits(ids, chunks, model=sizes[0]):
    past, rows = my_begin(model), []
    for width in chunks:
        rows += my_extend(model, past, ids[len(rows) : len(rows) + width])
    return rows


def check_cache_and_work(full_logits, cached_logits):
    report = check_cache_contract(full_logits, cached_logits, vocab_size=6, context_length=8)
    whole, stepwise = ProductTally(), ProductTally()
    ids = [0, 3, 1, 4, 2, 5, 0, 3]
    full_logits(ids, counted_lists(sizes[0], whole))
    cached_logits(ids, [1] * len(ids), counted_lists(sizes[0], stepwise))
    once, spent = whole.flops().total, stepwise.flops().total
    assert spent <= once, f"eight steps cost {spent:,} operations, one full pass costs {once:,}"
    return report


progress.check(
    "cache",
    check_cache_and_work,
    lambda ids, model=sizes[0]: forward(ids, model, *sizes[1:]),
    my_cached_logits,
)

# %% [markdown] lang="en" key="ex-cache-hint-1" role="hint" exercise="cache"
r"""
What does a later token need from an earlier one? Only its key and its value, in every layer: all the rest may be forgotten as soon as its logits are out. What, then, has to outlive a chunk, and how does the next one know where in the text it stands?
"""

# %% [markdown] lang="ru" key="ex-cache-hint-1" en="2d31245d" role="hint" exercise="cache"
r"""
Что нужно более позднему токену от более раннего? Только его ключ и значение, в каждом слое; всё остальное можно забыть, едва выданы его логиты. Что же должно пережить кусок — и откуда следующий кусок узнает, на каком месте текста он стоит?
"""

# %% [markdown] lang="en" key="ex-cache-hint-2" role="hint" exercise="cache"
r"""
Keep a pair of lists for each block, one for keys and one for values; their length says how many tokens have been read. Token number `t` of the whole text stands at position `t`: count tokens across all chunks, never from zero again.
"""

# %% [markdown] lang="ru" key="ex-cache-hint-2" en="8ddc553c" role="hint" exercise="cache"
r"""
Заведите для каждого блока пару списков: для ключей и для значений; их длина скажет, сколько токенов уже прочитано. Токен номер `t` во всём тексте стоит на позиции `t`: ведите счёт сквозь все куски, не начиная снова с нуля.
"""

# %% [markdown] lang="en" key="ex-cache-hint-3" role="hint" exercise="cache"
r"""
The shortest right way treats every chunk as single tokens: for each token, append its key and value to the lists of the layer, then attend over all of them. Then no mask is needed, whatever the chunk.
"""

# %% [markdown] lang="ru" key="ex-cache-hint-3" en="7864d749" role="hint" exercise="cache"
r"""
Самый короткий верный путь — и куски обрабатывать по одному токену: дописать его ключ и значение к спискам слоя, затем применить внимание ко всему, что в них накопилось. Тогда маска не нужна, какими бы ни были куски.
"""

# %% [markdown] lang="en" key="ex-cache-hint-4" role="hint" exercise="cache"
r"""
Heads: columns `h * d_head : (h + 1) * d_head` of the query, of each stored key and of each stored value belong together.
"""

# %% [markdown] lang="ru" key="ex-cache-hint-4" en="3a53097a" role="hint" exercise="cache"
r"""
Головы: столбцы `h * d_head : (h + 1) * d_head` запроса, каждого сохранённого ключа и каждого сохранённого значения составляют одну голову.
"""

# %% key="ex-cache-solution" role="solution" exercise="cache"
def my_begin(model):
    return [([], []) for _ in model["blocks"]]


def my_attend(query, keys, values, d_head):
    output = []
    for start in range(0, len(query), d_head):
        piece = slice(start, start + d_head)
        dots = [sum(a * b for a, b in zip(query[piece], key[piece])) for key in keys]
        weights = softmax([dot / math.sqrt(d_head) for dot in dots])
        columns = zip(*(value[piece] for value in values))
        output += [sum(w * x for w, x in zip(weights, column)) for column in columns]
    return output


def my_extend(model, past, ids):
    rows, read = [], len(past[0][0])
    if read + len(ids) > len(model["position_embedding"]):
        raise ValueError(f"{read} tokens read and {len(ids)} new ones do not fit in the context")
    for place, token in enumerate(ids, start=read):
        positions = model["position_embedding"][place]
        x = [a + b for a, b in zip(model["token_embedding"][token], positions)]
        for p, (keys, values) in zip(model["blocks"], past):
            normed = layer_norm([x], p["ln1_gain"], p["ln1_bias"])
            keys += linear(normed, p["wk"], p["bk"])
            values += linear(normed, p["wv"], p["bv"])
            mixed = my_attend(linear(normed, p["wq"], p["bq"])[0], keys, values, sizes[1])
            x = [a + b for a, b in zip(x, linear([mixed], p["wo"], p["bo"])[0])]
            wide = linear(layer_norm([x], p["ln2_gain"], p["ln2_bias"]), p["w1"], p["b1"])
            bent = [[gelu(value) for value in wide[0]]]
            x = [a + b for a, b in zip(x, linear(bent, p["w2"], p["b2"])[0])]
        final = layer_norm([x], model["final_gain"], model["final_bias"])
        rows += linear(final, model["unembedding"], model["unembedding_bias"])
    return rows

# %% [markdown] lang="en" key="bugs-ask"
r"""
## 6. A gallery of cache bugs

A cache can be wrong in ways that no crash reveals. Six of them keep coming back in public bug reports; here each is a few changed lines of `SimpleDecoder`, running the model you trained.
"""

# %% [markdown] lang="ru" key="bugs-ask" en="9cf86b70"
r"""
## 6. Кунсткамера ошибок кэша

Кэш может ошибаться так, что никакой сбой этого не выдаст. Шесть таких ошибок снова и снова всплывают в баг-трекерах открытых проектов; здесь каждая — несколько изменённых строк `SimpleDecoder`, а модель — та, которую вы обучили.
"""

# %% key="bugs-masks"
from course_lib.cache_bugs import MaskTopLeft, NoMaskInLaterChunks, PositionsRestart

# %% key="bugs-memory"
from course_lib.cache_bugs import CacheNotReset, TrimmedTooEarly

# %% key="bugs-buffer"
from course_lib.cache_bugs import OneTokenReadsTheBuffer

# %% [markdown] lang="en" key="bugs-table"
r"""
| class | bug | what is wrong |
|---|---|---|
| `MaskTopLeft` | `mask_top_left` | the triangle of a chunk starts at the very first key |
| `NoMaskInLaterChunks` | `no_mask_in_later_chunks` | a chunk with a past reads its own future |
| `PositionsRestart` | `positions_restart` | positions are counted from the chunk's beginning |
| `CacheNotReset` | `cache_not_reset` | the second prompt goes on where the first ended |
| `TrimmedTooEarly` | `trimmed_too_early` | a window that the model does not have drops keys still needed |
| `OneTokenReadsTheBuffer` | `one_token_reads_the_buffer` | empty places of the buffer are read as keys |
"""

# %% [markdown] lang="ru" key="bugs-table" en="fc8b2e80"
r"""
| класс | ошибка | что не так |
|---|---|---|
| `MaskTopLeft` | `mask_top_left` | треугольник куска начинается с самого первого ключа |
| `NoMaskInLaterChunks` | `no_mask_in_later_chunks` | кусок, у которого есть прошлое, читает своё будущее |
| `PositionsRestart` | `positions_restart` | позиции отсчитываются от начала куска |
| `CacheNotReset` | `cache_not_reset` | второй промпт продолжает с места, где кончился первый |
| `TrimmedTooEarly` | `trimmed_too_early` | окно, которого у модели нет, выбрасывает ещё нужные ключи |
| `OneTokenReadsTheBuffer` | `one_token_reads_the_buffer` | пустые места буфера читаются как ключи |
"""

# %% [markdown] lang="en" key="ex-gallery-statement"
r"""
### Exercise 3 (warm-up). Predict before you run

The test people write first: one prompt through the cache, a continuation, and the text compared with the one without a cache. Which bugs will pass it? Write `True` or `False` for each.

`everyday_tests` (folded) calls it `same_text`, and beside it compares logits with the full pass: in one chunk (`one_chunk`), in two (`two_chunks`), token by token (`single_tokens`), half and then token by token (`prefill_then_steps`), after another prompt (`second_prompt`). `finite` only asks whether they are finite.
"""

# %% [markdown] lang="ru" key="ex-gallery-statement" en="b7b9cacd"
r"""
### Упражнение 3 (разминка). Сначала предскажите

Проверка, которую пишут первой: один промпт через кэш, продолжение — и текст сравнивают с тем, что вышел без кэша. Какие ошибки её пройдут? Впишите для каждой `True` или `False`.

В свёрнутой `everyday_tests` она называется `same_text`, а рядом логиты сравниваются с полным проходом: когда текст подан одним куском (`one_chunk`), двумя (`two_chunks`), по токену (`single_tokens`), первая половина разом, а дальше по токену (`prefill_then_steps`), после другого промпта (`second_prompt`). `finite` спрашивает лишь, конечны ли логиты.
"""

# %% key="ex-gallery" role="stub" exercise="gallery"
# en: True = the text comes out the same, though the bug is there
# ru: True — текст выйдет тот же, хотя ошибка есть
my_prediction = {
    "mask_top_left": None,
    "no_mask_in_later_chunks": None,
    "positions_restart": None,
    "cache_not_reset": None,
    "trimmed_too_early": None,
    "one_token_reads_the_buffer": None,
}

# %% key="everyday" role="library"
from course_lib.cache_bugs import CACHE_BUGS, everyday_tests
from course_lib.mistakes.gallery import check_predictions
from course_lib.decoder_lm.simple import greedy_tokens, greedy_tokens_anew

# %% key="everyday-use"
first_prompt, second_prompt = [0, *fresh[0][1:9]], [0, *fresh[1][1:7]]
results = {}
for name, bug in CACHE_BUGS.items():
    make = partial(bug, params, shape)
    results[name] = everyday_tests(make, first_prompt, second_prompt, count=12)
    print(f"{name:27}", *(test for test, ok in results[name].items() if not ok), sep="  ")
passed = {name: tests["same_text"] for name, tests in results.items()}
caught = {test: sum(not tests[test] for tests in results.values()) for test in results[name]}
print(caught)
assert caught["finite"] == caught["one_chunk"] == 0 and caught["second_prompt"] == 1
assert max(count for test, count in caught.items() if test != "same_text") == 3

# %% key="ex-gallery-check" role="check" exercise="gallery"
progress.check("gallery", check_predictions, my_prediction, passed)

# %% [markdown] lang="en" key="ex-gallery-hint-1" role="hint" exercise="gallery"
r"""
Leave the code alone for now. Go down the table and ask of each bug *when* it does harm: in the first chunk, in a later one, at a single token, in a second prompt, in a text as long as the context?
"""

# %% [markdown] lang="ru" key="ex-gallery-hint-1" en="dff3b842" role="hint" exercise="gallery"
r"""
Код пока отложите. Пройдите по таблице и спросите о каждой ошибке, *когда* она вредит: в первом куске, в следующем, на одиночном токене, во втором промпте, в тексте длиной с контекст?
"""

# %% [markdown] lang="en" key="ex-gallery-hint-2" role="hint" exercise="gallery"
r"""
In this test the prompt is one chunk and everything after it comes token by token. Which of the bugs touch neither of the two? And does a touched logit always change the winner?
"""

# %% [markdown] lang="ru" key="ex-gallery-hint-2" en="a36fb18e" role="hint" exercise="gallery"
r"""
В этой проверке промпт — один кусок, а дальше всё идёт по одному токену. Какие ошибки не задевают ни того ни другого? И всегда ли задетый логит меняет победителя?
"""

# %% key="ex-gallery-solution" role="solution" exercise="gallery"
my_prediction = {
    "mask_top_left": False,
    "no_mask_in_later_chunks": True,
    "positions_restart": False,
    "cache_not_reset": True,
    "trimmed_too_early": False,
    "one_token_reads_the_buffer": True,
}

# %% [markdown] lang="en" key="bugs-say"
r"""
Each line lists the tests that *catch* the bug; the last line counts how many bugs each test catches. Finite logits and a prompt in one chunk catch none. The comparison of texts catches half: an error too small to change the winner leaves the text alone. No single test catches more than three of the six, and three bugs are seen by one test only.
"""

# %% [markdown] lang="ru" key="bugs-say" en="862743d6"
r"""
В каждой строке — проверки, которые *ловят* ошибку; последняя строка показывает, сколько ошибок ловит каждая проверка. Конечность логитов и промпт одним куском не ловят ни одной. Сравнение текстов ловит половину: если ошибка мала и победитель прежний, текст тот же. Ни одна проверка не ловит больше трёх из шести, а три ошибки заметны каждая лишь одной проверке.
"""

# %% key="bugs-contract"
for name, bug in CACHE_BUGS.items():
    wrong, text_sizes = bug(params, shape), {"vocab_size": 67, "context_length": context}
    try:
        check_cache_contract(wrong.full_logits, wrong.cached_logits, **text_sizes)
        print(f"{name:27} ✓")
    except ContractViolation as broken:
        print(f"{name:27} ✗ {broken.clause}: {', '.join(broken.mistakes)}")

# %% [markdown] lang="en" key="bugs-contract-say"
r"""
Now the contract, which compares logits, chunking by chunking, prompt after prompt. It refuses all six and calls five by name alone; the trimmed window it cannot tell from another formula for long texts, and says so.
"""

# %% [markdown] lang="ru" key="bugs-contract-say" en="5d177959"
r"""
А вот контракт: он сравнивает логиты, разбиение за разбиением, промпт за промптом. Он отвергает все шесть и пять называет однозначно; обрезанное окно снаружи не отличить от другой формулы для длинных текстов — так он и говорит.
"""

# %% [markdown] lang="en" key="ex-fix-statement"
r"""
### Exercise 4 (core). Three bugs, and only the contract to help

Somebody replaced the growing arrays by one slab, as section 7 will do, and made three mistakes, one in each method. Do not search by reading: run the check, believe what it measured, mend, run it again.
"""

# %% [markdown] lang="ru" key="ex-fix-statement" en="a6feb64c"
r"""
### Упражнение 4 (основное). Три ошибки, и в помощь только контракт

Кто-то заменил растущие массивы одним, выделенным заранее (так поступит и раздел 7), и допустил три ошибки, по одной в каждом методе. Не ищите их глазами: запустите проверку, поверьте тому, что она измерила, исправьте и запустите снова.
"""

# %% key="ex-fix" role="stub" exercise="fix"
class SlabDecoder(SimpleDecoder):
    # en: delete this method when you begin; three lines below it are wrong
    # ru: удалите этот метод, когда начнёте; ниже него неверны три строки
    def cached_logits(self, ids, chunks):
        raise NotImplementedError

    def begin(self):
        s = self.shape
        size = (2, s.n_layers, s.n_heads, s.context_length, s.d_head)
        if not hasattr(self, "slab"):
            self.slab, self.length = np.zeros(size), 0

    def allowed(self, width):
        if width > 1:
            return np.tri(width, self.shape.context_length, dtype=bool)
        return np.arange(self.shape.context_length)[None] <= self.length

    def remember(self, layer, k, v):
        end = self.length + k.shape[1]
        if end >= self.shape.context_length:
            self.slab[:, layer] = np.roll(self.slab[:, layer], -1, axis=2)
        self.slab[0, layer, :, self.length : end] = k
        self.slab[1, layer, :, self.length : end] = v
        return self.slab[0, layer], self.slab[1, layer]

# %% key="ex-fix-check" role="check" exercise="fix"
slab_shape = ModelShape(n_layers=2, d_model=12, n_heads=3, context_length=16, vocab_size=11)
slab_decoder = SlabDecoder(random_parameters(slab_shape, d_ff=24, seed=1), slab_shape)


def check_slab(full_logits, cached_logits):
    report = check_cache_contract(full_logits, cached_logits, vocab_size=11, context_length=16)
    slab = getattr(slab_decoder, "slab", None)
    kept = slab is not None and slab.any()
    assert kept or not report.attempted, "the keys and values stand in one slab, self.slab"
    return report


progress.check(
    "fix",
    check_slab,
    slab_decoder.full_logits,
    slab_decoder.cached_logits,
)

# %% [markdown] lang="en" key="ex-fix-hint-1" role="hint" exercise="fix"
r"""
First refusal: the report says "15 tokens read and 3 new ones do not fit", although every prompt starts a new text. Which line should see to that, and does it run for the second prompt? (While the other two bugs are there, the report may name a neighbour of your mistake: believe what was measured.)
"""

# %% [markdown] lang="ru" key="ex-fix-hint-1" en="dff2925c" role="hint" exercise="fix"
r"""
Первый отказ: в отчёте сказано «15 tokens read and 3 new ones do not fit» — пятнадцать токенов прочитано, три новых не помещаются, — хотя каждый промпт начинает новый текст. Какая строка должна об этом позаботиться и выполняется ли она для второго промпта? (Пока в коде есть две другие ошибки, отчёт может назвать не вашу, а соседнюю: верьте тому, что измерено.)
"""

# %% [markdown] lang="en" key="ex-fix-hint-2" role="hint" exercise="fix"
r"""
Second: chunks `[1, 2]` fail, one chunk does not. Run `slab_decoder.begin()`, `slab_decoder.extend([5])`, then print `slab_decoder.allowed(2)`: the first of the two new tokens must read the old one and itself. The offset of the triangle is the number of tokens *stored*.
"""

# %% [markdown] lang="ru" key="ex-fix-hint-2" en="3245a7b1" role="hint" exercise="fix"
r"""
Второй: куски `[1, 2]` дают ошибку, один кусок — нет. Выполните `slab_decoder.begin()`, `slab_decoder.extend([5])` и напечатайте `slab_decoder.allowed(2)`: первый из двух новых токенов должен читать старый и себя. Сдвиг треугольника — число *сохранённых* токенов.
"""

# %% [markdown] lang="en" key="ex-fix-hint-3" role="hint" exercise="fix"
r"""
Third: only the last row of an exactly full context is wrong. The slab has 16 places, numbered from 0; a chunk that ends in place 15 has `end` = 16. Is there room for it, and what does the method do then?
"""

# %% [markdown] lang="ru" key="ex-fix-hint-3" en="96146038" role="hint" exercise="fix"
r"""
Третий: неверна только последняя строка ровно заполненного контекста. В массиве 16 мест, нумерация с нуля; у куска, который кончается на месте 15, `end` равен 16. Хватает ли ему места и что в этом случае делает метод?
"""

# %% key="ex-fix-solution" role="solution" exercise="fix"
class SlabDecoder(SimpleDecoder):
    def begin(self):
        s = self.shape
        size = (2, s.n_layers, s.n_heads, s.context_length, s.d_head)
        if not hasattr(self, "slab"):
            self.slab = np.zeros(size)
        self.length = 0

    def allowed(self, width):
        return np.tri(width, self.shape.context_length, k=self.length, dtype=bool)

    def remember(self, layer, k, v):
        end = self.length + k.shape[1]
        self.slab[0, layer, :, self.length : end] = k
        self.slab[1, layer, :, self.length : end] = v
        return self.slab[0, layer], self.slab[1, layer]

# %% [markdown] lang="en" key="ex-fix-say"
r"""
Three clauses, three places: what came before, what a chunk may read, what a full context keeps. One short prompt, token by token, would have caught none of them.
"""

# %% [markdown] lang="ru" key="ex-fix-say" en="ff360803"
r"""
Три пункта, три места: что было раньше, что может читать кусок, что хранит полный контекст. Один короткий промпт, токен за токеном, не поймал бы ни одной из трёх ошибок.
"""

# %% [markdown] lang="en" key="ex-contract-statement"
r"""
### Exercise 5 (stretch). Write the contract of a cache

`check_cache_contract` has judged you twice. Now write one. It gets a `model` with `full_logits(ids)` and `cached_logits(ids, chunks)`, arrays [T, vocab_size], and with its `vocab_size` and `context_length`; `chunks` are widths that sum to `len(ids)`. Where the cache changes the logits, or more than `context_length` tokens are accepted, raise.

The assert is all but given: equal logits. What you train is the choice of *texts and chunks*. `score_contract` runs your contract on 43 wrong models and 6 right ones; accept every right one and refuse at least four in five of the others.
"""

# %% [markdown] lang="ru" key="ex-contract-statement" en="608520bd"
r"""
### Упражнение 5 (со звёздочкой). Напишите контракт кэша

`check_cache_contract` проверял вас уже дважды. Теперь напишите контракт сами. Он получает `model` с методами `full_logits(ids)` и `cached_logits(ids, chunks)`, которые возвращают массивы [T, vocab_size], и с числами `vocab_size` и `context_length`; `chunks` — длины кусков, в сумме `len(ids)`. Если кэш меняет логиты или модель принимает больше `context_length` токенов, вызовите исключение.

Само условие почти дано: логиты равны. Учитесь здесь выбирать *тексты и куски*. `score_contract` прогоняет ваш контракт на 43 неверных моделях и 6 верных; примите все верные и отвергните хотя бы четыре из пяти остальных.
"""

# %% key="ex-contract" role="stub" exercise="contract"
def my_cache_contract(model) -> None:
    # en: raise, by an assert for example, where the cache is wrong; otherwise return nothing
    # ru: вызовите исключение, если кэш неверен; иначе просто выйдите
    raise NotImplementedError

# %% key="contract-panel" role="library"
from course_lib.mistakes.cache_panel import score_contract

# %% key="ex-contract-check" role="check" exercise="contract"
progress.check("contract", score_contract, my_cache_contract)

# %% [markdown] lang="en" key="ex-contract-hint-1" role="hint" exercise="contract"
r"""
Equal up to rounding: some models compute in single precision, so allow 1e-5 of the largest logit. And do not count on a vocabulary of 11 or a context of 12: ask the model.
"""

# %% [markdown] lang="ru" key="ex-contract-hint-1" en="fcc4e403" role="hint" exercise="contract"
r"""
Равны с точностью до округления: часть моделей считает с одинарной точностью, поэтому допустите 1e-5 от наибольшего логита. И не рассчитывайте на словарь из 11 токенов и контекст 12: спросите у модели.
"""

# %% [markdown] lang="en" key="ex-contract-hint-2" role="hint" exercise="contract"
r"""
Fill the context exactly. Cut it as one chunk, as single tokens, as a long prompt with a short rest, as three tokens and then one by one. Which of the bugs of this section shows under which cut?
"""

# %% [markdown] lang="ru" key="ex-contract-hint-2" en="8f3ad1f2" role="hint" exercise="contract"
r"""
Заполните контекст ровно до конца. Разрежьте его так: один кусок; отдельные токены; длинный промпт с коротким остатком; три токена, а дальше по одному. Какая из ошибок этого раздела видна при каком разбиении?
"""

# %% [markdown] lang="en" key="ex-contract-hint-3" role="hint" exercise="contract"
r"""
Then what surrounds the numbers: the caller's two lists after the call; a result after the next call; a second prompt that begins like the last one; one token too many, in each of the two methods, wherever the cut is.
"""

# %% [markdown] lang="ru" key="ex-contract-hint-3" en="f903e18f" role="hint" exercise="contract"
r"""
Теперь то, что вокруг чисел: оба переданных списка после вызова; результат после следующего вызова; второй промпт с тем же началом, что у предыдущего; один лишний токен — в обоих методах и при любом разбиении.
"""

# %% key="ex-contract-solution" role="solution" exercise="contract"
def my_cache_contract(model) -> None:
    size = model.context_length
    ids = [(3 * n * n + n) % model.vocab_size for n in range(size + 1)]

    def compare(ids, chunks):
        passed_in = list(ids), list(chunks)
        full, cached = model.full_logits(list(ids)), model.cached_logits(*passed_in)
        assert passed_in == (ids, chunks), "the arguments were changed"
        assert abs(cached - full).max() <= 1e-5 * abs(full).max(), (ids, chunks)
        came = cached.copy()
        model.cached_logits(ids[::-1], chunks)
        assert (cached == came).all(), "an earlier result was changed"

    for chunks in ([size], [1] * size, [size - 2, 2], [3, *[1] * (size - 3)], [2] * (size // 2)):
        compare(ids[:size], chunks)
    compare([*ids[:3], ids[0], *ids[4:6]], [6])
    expect_raises(Exception, model.full_logits, ids)
    for chunks in ([size + 1], [size, 1], [1, size]):
        expect_raises(Exception, model.cached_logits, ids, chunks)

# %% [markdown] lang="en" key="fast-ask"
r"""
## 7. Stage three: fast

The third telling does what the second does, in float32, and wastes nothing. What takes the time? For one new token every weight is fetched from memory and used once, so the arithmetic is a trifle, and everything that is *not* fetching weights is waste: allocating, copying, starting many small operations, computing in twice the width. First the memory, `KvCache`.
"""

# %% [markdown] lang="ru" key="fast-ask" en="bd868a0c"
r"""
## 7. Третий вариант: быстро

Третий вариант делает то же, что второй, но в float32 и ничего не тратя зря. На что уходит время? Ради одного нового токена каждый вес читается из памяти и идёт в дело один раз, так что сама арифметика — мелочь, а всё, что *не* чтение весов, — пустая трата: выделение памяти, копирование, запуск множества мелких операций, вычисления с двойной точностью. Начнём с памяти, `KvCache`.
"""

# %% key="kv-cache"
from course_lib.decoder_lm.kv_cache import KvCache

# %% key="kv-cache-use"
slab = KvCache(n_layers=2, batch=1, n_heads=4, context_length=context, d_head=16)
rows = np.ones((1, 4, 3, 16), dtype=np.float32)
all_keys, all_values = slab.append(0, rows, rows)
print(all_keys.shape, np.shares_memory(all_keys, slab.keys), f"{slab.bytes()=:,}")
print(expect_raises(RuntimeError, slab.append, 0, rows, rows))
print(expect_raises(RuntimeError, slab.advance, 3))

# %% [markdown] lang="en" key="kv-cache-say"
r"""
One slab, allocated once; what `append` returns are *views* of the whole history, and nothing is copied. The position is the last axis but one, so that what a head reads lies in one piece. All layers write at the same place and only `advance` moves it, once per step. Writing a layer twice, or advancing while one is missing, is an error at once, not a slightly wrong text later.

The attention that reads these views, `cached_attention`, writes its weights over its scores (`softmax_in_place`) and masks only the part that has a future.
"""

# %% [markdown] lang="ru" key="kv-cache-say" en="693d9b6a"
r"""
Память выделяется один раз; `append` возвращает *представления (view)* всей истории, и ничего не копируется. Позиция — предпоследняя ось, поэтому всё, что читает голова, лежит одним куском. Все слои пишут с одной и той же позиции, и сдвигает её только `advance`, один раз за шаг. Дважды записать слой или сдвинуться, когда одного слоя не хватает, — это ошибка сразу, а не чуть неверный текст потом.

Внимание, которое читает эти представления, — `cached_attention`: веса оно пишет поверх оценок (`softmax_in_place`), а маской закрывает только ту часть, у которой есть будущее.
"""

# %% key="softmax-in-place"
from course_lib.decoder_lm.cached_attention import softmax_in_place

# %% key="cached-attention"
from course_lib.decoder_lm.cached_attention import cached_attention

# %% key="cached-attention-use"
draw = np.random.default_rng(seed)
q, k, v = (draw.normal(size=(1, 2, 5, 4)).astype(np.float32) for _ in range(3))
whole = cached_attention(q, k, v)
ends = range(1, 6)
pieces = [cached_attention(q[:, :, n - 1 : n], k[:, :, :n], v[:, :, :n]) for n in ends]
print(f"{np.abs(np.concatenate(pieces, axis=2) - whole).max():.0e}")
assert np.allclose(np.concatenate(pieces, axis=2), whole, atol=1e-6)

# %% [markdown] lang="en" key="cached-attention-say"
r"""
Five queries at once, with the mask, give what five single queries give without any. One new query needs no mask because of what is *in* the cache; several need it, and get it. And the queries, keys and values themselves? `fused_qkv_decode` makes all three in one go.
"""

# %% [markdown] lang="ru" key="cached-attention-say" en="104a433f"
r"""
Пять запросов сразу, с маской, дают то же, что пять одиночных без всякой маски. Одному новому запросу маска не нужна благодаря тому, что *лежит* в кэше; нескольким нужна, и они её получают. А откуда берутся сами запросы, ключи и значения? `fused_qkv_decode` вычисляет все три разом.
"""

# %% key="fused-qkv"
from course_lib.decoder_lm.cached_attention import fused_qkv_decode

# %% key="fused-use"
row = draw.normal(size=(1, 8)).astype(np.float32)
matrices = [draw.normal(size=(8, 8)).astype(np.float32) for _ in range(3)]
fused = fused_qkv_decode(row, np.hstack(matrices), n_heads=2)
for part, matrix in zip(fused, matrices, strict=True):
    assert np.allclose(part.reshape(1, 8), row @ matrix, atol=1e-6)
print([part.shape for part in fused])

# %% [markdown] lang="en" key="fused-say"
r"""
Query, key and value are three products with the same vector; with the matrices side by side they are one product, one start instead of three. (The decoder below packs its weights so, with the bias as one more row.) Is such a trick worth its line? We measure with `alternate`: the candidates run in turn, and what counts is the ratio (the times are seconds).
"""

# %% [markdown] lang="ru" key="fused-say" en="ce6b3d74"
r"""
Запрос, ключ и значение — это три произведения с одним и тем же вектором; если поставить матрицы рядом, произведение одно: один запуск вместо трёх. (Так упакованы веса и в декодере ниже, а смещение — ещё одна строка матрицы.) Стоит ли такой приём лишней строки кода? Измерим с помощью `alternate`: кандидаты работают по очереди, а важно только отношение времён (сами времена — в секундах).
"""

# %% key="measured" role="library"
from course_lib.machine import Measured, describe_machine

# %% key="measuring" role="library"
from course_lib.machine import alternate

# %% key="tricks-setup"
wide = 768
x32 = draw.normal(size=(1, wide)).astype(np.float32)
joined = draw.normal(size=(wide, 3 * wide)).astype(np.float32)
apart = [np.ascontiguousarray(part) for part in np.split(joined, 3, axis=1)]
column_major, out = np.asfortranarray(joined), np.empty((1, 3 * wide), np.float32)
x64, joined64, out64 = x32.astype(float), joined.astype(float), np.empty((1, 3 * wide))
thirds = [np.empty((1, wide), np.float32) for _ in range(3)]
history, new_row = np.ones((12, 1000, 64), np.float32), np.ones((12, 1, 64), np.float32)

# %% lang="en" key="tricks" tags=["measured"]
candidates = {
    "one product, x @ W": lambda: np.matmul(x32, joined, out=out),
    "three products": lambda: [np.matmul(x32, w, out=o) for w, o in zip(apart, thirds)],
    "weights in columns": lambda: np.matmul(x32, column_major, out=out),
    "einsum": lambda: np.einsum("bi,ij->bj", x32, joined, out=out),
    "float64": lambda: np.matmul(x64, joined64, out=out64),
    "write one row": lambda: np.copyto(history[:, -1:], new_row),
    "join the history": lambda: np.concatenate([history, new_row], axis=1),
}
print(describe_machine())
timed, first = alternate(candidates, repeats=15), "one product, x @ W"
for name, seconds in timed.items():
    first = "write one row" if "row" in name else first
    print(f"{name:24} {seconds.median / timed[first].median:6.2f}  ", seconds)

# %% lang="ru" key="tricks" en="d612282c" tags=["measured"]
candidates = {
    "одно произведение, x @ W": lambda: np.matmul(x32, joined, out=out),
    "три произведения": lambda: [np.matmul(x32, w, out=o) for w, o in zip(apart, thirds)],
    "матрица по столбцам": lambda: np.matmul(x32, column_major, out=out),
    "einsum": lambda: np.einsum("bi,ij->bj", x32, joined, out=out),
    "float64": lambda: np.matmul(x64, joined64, out=out64),
    "запись одной строки": lambda: np.copyto(history[:, -1:], new_row),
    "склейка истории": lambda: np.concatenate([history, new_row], axis=1),
}
print(describe_machine())
timed, first = alternate(candidates, repeats=15), "одно произведение, x @ W"
for name, seconds in timed.items():
    first = "запись одной строки" if "запись" in name else first
    print(f"{name:24} {seconds.median / timed[first].median:6.2f}  ", seconds)

# %% [markdown] lang="en" key="tricks-say"
r"""
The first column is a ratio: the products against the first of them, joining against writing one row. Read it for *your* machine. float64 moves twice the bytes; joining copies the whole history for the sake of one row; `einsum` may miss the fast product. How a matrix lies in memory can matter most of all, or not at all, depending on the library that NumPy was built with.

What else can be spared?
"""

# %% [markdown] lang="ru" key="tricks-say" en="b54606ef"
r"""
Первый столбец — отношение: произведения сравниваются с первым из них, склейка — с записью одной строки. Смотрите, что вышло на *вашем* компьютере. float64 перемещает вдвое больше байтов; склейка копирует всю историю ради одной строки; `einsum` может пройти мимо быстрого произведения. Расположение матрицы в памяти иногда важнее всего, а иногда не значит ничего — смотря с какой библиотекой собран NumPy.

На чём ещё можно сэкономить?
"""

# %% [markdown] lang="en" key="tricks-table"
r"""
| what is not done in a step | because |
|---|---|
| subtract the mean, multiply by the gain, add the bias | all that is added to the stream is centred, the rest is in the next matrix |
| divide scores by $\sqrt{d_\text{head}}$ | the queries' matrix was divided by it |
| multiply inside GELU | two factors are in the matrices around it |
| add biases | a column of ones meets the bias, one more row of the matrix |
| repack weights | one text: whole matrices; several: blocks that fit a core's cache |
| wait for one core | heads and columns are shared among threads |

`FastDecoder` is all of this together; its model and the loop over a batch are packed; the sampler you will write yourself.
"""

# %% [markdown] lang="ru" key="tricks-table" en="1a576852"
r"""
| чего шаг не делает | почему |
|---|---|
| не вычитает среднее, не умножает на множитель, не прибавляет смещение | всё, что прибавляется к потоку, центрировано, остальное — в следующей матрице |
| не делит оценки на $\sqrt{d_\text{head}}$ | на него уже поделена матрица запросов |
| не умножает внутри GELU | два множителя внесены в матрицы вокруг |
| не прибавляет смещения | столбец единиц умножается на смещение — ещё одну строку матрицы |
| не переупаковывает веса | для одного текста — целые матрицы, для нескольких — блоки, которые помещаются в кэш ядра |
| не ждёт одного ядра процессора | головы и столбцы поделены между потоками |

Всё это вместе — `FastDecoder`; сама модель и цикл по батчу упакованы, а сэмплер вы напишете сами.
"""

# %% key="fast-rest" role="library"
from course_lib.decoder_lm.fast import generate_batch

# %% key="fast"
from course_lib.decoder_lm.fast import FastDecoder

# %% key="fast-use"
fast = FastDecoder(as_arrays(params, np.float32), shape)
text = [0, *story]
before = typed.full_logits(text)
print(f"{np.abs(fast.full_logits(text) - before).max()=:.0e}")
assert np.abs(fast.full_logits(text) - before).max() < 1e-4

# %% [markdown] lang="en" key="fast-batch-ask"
r"""
### A batch of unequal texts, streaming

Decoding fetches every weight for one token, so let it fetch them for several texts at once. Their prompts differ in length, they end at different times, and each row must be what it would have been alone. `generate` hands out each step's tokens as soon as they exist.
"""

# %% [markdown] lang="ru" key="fast-batch-ask" en="cfab9bf1"
r"""
### Батч текстов разной длины, по токену за раз

Пошаговое декодирование читает каждый вес ради одного токена — пусть читает сразу для нескольких текстов. Промпты разной длины, кончаются тексты в разное время, и каждая строка обязана быть такой, какой была бы в одиночку. `generate` отдаёт токены каждого шага, как только они готовы.
"""

# %% key="fast-stream"
prompts = [[0], [0, *fresh[0][1:4]], [0, *fresh[1][1:10]]]
stream = fast.generate(prompts, 40, temperature=0.7, rng=np.random.default_rng(seed), eos_id=0)
for step in stream:
    print("" if step[1] is None else vocabulary.words[step[1]], end=" ", flush=True)
print()
for prompt, tokens, reason in zip(prompts, stream.tokens, stream.reasons, strict=True):
    print(f"{reason:8}", vocabulary.decode(prompt[1:]), "|", vocabulary.decode(tokens))
print(fast.stats, f"{fast.stats.tokens_per_weight_read:.1f}")

# %% key="fast-alone"
together = fast.generate(prompts, 30, eos_id=0)
list(together)
for prompt, tokens, reason in zip(prompts, together.tokens, together.reasons, strict=True):
    alone = fast.generate([prompt], 30, eos_id=0)
    list(alone)
    assert (alone.tokens[0], alone.reasons[0]) == (tokens, reason)

# %% key="batching-contract" role="library"
from course_lib.contracts import check_batching_contract

# %% key="fast-contracts"
check_batching_contract(
    lambda one: fast.prefill([one])[0],
    fast.prefill,
    vocab_size=len(vocabulary),
    context_length=context,
)

# %% [markdown] lang="en" key="fast-contracts-say"
r"""
Under greedy decoding each row said what it says alone, and stopped for the same reason. The contract asks the same of the logits: lengths from one token to the full context, equal and unequal, whatever the neighbours. Batching is where padding, positions and stop reasons go wrong together, and where nobody reads all the texts.
"""

# %% [markdown] lang="ru" key="fast-contracts-say" en="f47f489e"
r"""
При жадном декодировании каждая строка сказала то же, что в одиночку, и остановилась по той же причине. Контракт требует того же от логитов: длины от одного токена до полного контекста, равные и неравные, с любыми соседями. Паддинг, позиции и причины остановки ломаются разом именно в батчах, и как раз там никто не перечитывает все тексты.
"""

# %% [markdown] lang="en" key="ex-nucleus-statement"
r"""
### Exercise 6 (core). Top-p for a batch

Write `my_sample(logits, temperature, top_k, top_p, rng)` for logits `[B, V]`: one id per row, Module 3's rule in every row, `None` switches a filter off, temperature 0 is greedy. `rng.random()` gives one number in $[0, 1)$. A removed token must never be drawn, not even when that number is exactly 0.
"""

# %% [markdown] lang="ru" key="ex-nucleus-statement" en="c6f42fc8"
r"""
### Упражнение 6 (основное). Top-p для батча

Напишите `my_sample(logits, temperature, top_k, top_p, rng)` для логитов `[B, V]`: по одному номеру на строку, в каждой строке правило модуля 3, `None` отключает фильтр, температура 0 — жадный выбор. `rng.random()` даёт число из $[0, 1)$. Убранный токен не должен выпасть никогда, даже если это число равно в точности 0.
"""

# %% key="ex-nucleus" role="stub" exercise="nucleus"
def my_sample(logits, temperature, top_k, top_p, rng):
    # en: returns B ids; sort each row once, by falling logit and rising id
    # ru: возвращает B номеров; сортируйте строку один раз: логит по убыванию, номер по возрастанию
    raise NotImplementedError

# %% key="sampler-contract" role="library"
from course_lib.contracts import check_sampler_contract

# %% key="ex-nucleus-check" role="check" exercise="nucleus"
progress.check("nucleus", check_sampler_contract, my_sample)

# %% [markdown] lang="en" key="ex-nucleus-hint-1" role="hint" exercise="nucleus"
r"""
Write the rule for one row, then go over the rows. Samplers go wrong in three places: equal logits, the token that crosses the threshold, and random numbers at the very ends of their interval. What does your code do at each?
"""

# %% [markdown] lang="ru" key="ex-nucleus-hint-1" en="3fe58b2b" role="hint" exercise="nucleus"
r"""
Напишите правило для одной строки, а потом пройдите по строкам. Ошибаются сэмплеры в трёх местах: на равных логитах, на токене, который переходит порог, и на случайных числах у самых краёв промежутка. Что делает в каждом из них ваш код?
"""

# %% [markdown] lang="en" key="ex-nucleus-hint-2" role="hint" exercise="nucleus"
r"""
`np.argsort(-row, kind="stable")` gives exactly this order. After top-k take the softmax of what is left, and only then the cumulative sum for top-p.
"""

# %% [markdown] lang="ru" key="ex-nucleus-hint-2" en="6fa5d88c" role="hint" exercise="nucleus"
r"""
`np.argsort(-row, kind="stable")` даёт именно этот порядок. После top-k возьмите softmax по оставшимся и только потом — накопленную сумму для top-p.
"""

# %% [markdown] lang="en" key="ex-nucleus-hint-3" role="hint" exercise="nucleus"
r"""
To draw: multiply the random number by the *last* cumulative sum (it may be 0.9999999), and take the first place whose sum is strictly above it: `np.searchsorted(mass, u, side="right")`. Ours, `batched_sample`, does the same, row by row.
"""

# %% [markdown] lang="ru" key="ex-nucleus-hint-3" en="bcb003e9" role="hint" exercise="nucleus"
r"""
Жребий: умножьте случайное число на *последнюю* накопленную сумму (она может быть и 0,9999999) и возьмите первое место, где сумма строго больше него: `np.searchsorted(mass, u, side="right")`. Наша функция, `batched_sample`, делает то же строка за строкой.
"""

# %% key="ex-nucleus-solution" role="solution" exercise="nucleus"
def my_sample(logits, temperature, top_k, top_p, rng):
    chosen = []
    for row in np.asarray(logits, dtype=np.float64):
        order = np.argsort(-row, kind="stable")
        if temperature == 0:
            chosen.append(int(order[0]))
            continue
        kept = order[:top_k]
        shares = np.exp((row[kept] - row[kept[0]]) / temperature)
        shares = shares / shares.sum()
        if top_p is not None and top_p < 1:
            count = 1 + int(np.searchsorted(np.cumsum(shares), top_p))
            kept, shares = kept[:count], shares[:count]
        mass = np.cumsum(shares)
        place = np.searchsorted(mass, rng.random() * mass[-1], side="right")
        chosen.append(int(kept[min(place, np.searchsorted(mass, mass[-1]))]))
    return np.array(chosen)

# %% key="batched-sample" role="ours"
from course_lib.decoder_lm.batched import batched_sample

# %% [markdown] lang="en" key="theorem-ask"
r"""
## 8. The equality theorem, executed

With the simple cache of section 5 and the PyTorch twin as witnesses, five programs now claim to be one model. The claim is about every logit:

$$\text{full pass} \;=\; \text{prefill} + \text{decode} \;=\; \text{any chunking}.$$

In float64 the difference may reach $10^{-10}$, in float32 $10^{-4}$. The text fills the context exactly; the judge is the first telling, in loops.
"""

# %% [markdown] lang="ru" key="theorem-ask" en="b464a782"
r"""
## 8. Исполняемая теорема о равенстве

Вместе со свидетелями — простым кэшем из раздела 5 и двойником на PyTorch — уже пять программ утверждают, что они — одна и та же модель. Утверждение касается каждого логита:

$$\text{полный проход} \;=\; \text{предзаполнение} + \text{пошаговое декодирование} \;=\; \text{любое разбиение}.$$

В float64 разность может доходить до $10^{-10}$, в float32 — до $10^{-4}$. Текст заполняет контекст целиком; судья — первый вариант, на циклах.
"""

# %% [markdown] lang="en" key="theorem-five"
r"""
| program | written in | what it keeps of the past | section |
|---|---|---|---|
| plain | loops over numbers | nothing | 2 |
| typed | NumPy, float64 | `KeyValueCache`, the whole context allocated | 3 |
| twin | PyTorch, float64 | the same, as tensors | 4 |
| simple | NumPy, float64 | arrays that grow by a chunk | 5 |
| fast | NumPy, float32 | `KvCache`, one slab for a batch | 7 |
"""

# %% [markdown] lang="ru" key="theorem-five" en="dd13f685"
r"""
| программа | на чём написана | что хранит от прошлого | раздел |
|---|---|---|---|
| plain | циклы над числами | ничего | 2 |
| typed | NumPy, float64 | `KeyValueCache`, память сразу на весь контекст | 3 |
| twin | PyTorch, float64 | то же самое, тензорами | 4 |
| simple | NumPy, float64 | массивы, растущие с каждым куском | 5 |
| fast | NumPy, float32 | `KvCache`, один массив на весь батч | 7 |
"""

# %% key="theorem-cut"
def cut(ids, chunks):
    ends = np.cumsum(chunks).tolist()
    return [ids[end - width : end] for width, end in zip(chunks, ends, strict=True)]

# %% key="theorem-stages"
full_text = fresh[2][:context]
truth = np.array(forward(full_text, as_lists(params), shape.d_head, shape.n_layers))


def by_typed(ids, chunks):
    first, *others = cut(ids, chunks)
    rows = [typed.prefill(first)]
    for piece in others:
        rows.append(typed.decode(piece[0])[None] if len(piece) == 1 else typed.extend(piece))
    return np.concatenate(rows)


def by_fast(ids, chunks):
    first, *others = cut(ids, chunks)
    rows = [fast.prefill([first[:1]])]
    rows += [fast.extend([first[1:]])[0]] if len(first) > 1 else []
    assert np.allclose(fast.prefill([first])[0], rows[-1][-1], atol=1e-4)
    for piece in others:
        one = len(piece) == 1
        rows.append(fast.decode_step(piece).copy() if one else fast.extend([piece])[0])
    return np.concatenate(rows)

# %% key="theorem-twin"
def by_twin(ids, chunks):
    remembered = twin.start()
    rows = [twin.extend(torch.tensor([piece]), remembered)[0] for piece in cut(ids, chunks)]
    return torch.cat(rows).numpy()

# %% [markdown] lang="en" key="theorem-read"
r"""
Prompts are prefilled, single tokens decoded, other chunks extended, by each stage in its own way.
"""

# %% [markdown] lang="ru" key="theorem-read" en="2a26ea1e"
r"""
Промпт каждый вариант читает предзаполнением, одиночные токены — пошаговым декодированием, прочие куски — продолжением, и каждый — по-своему.
"""

# %% key="theorem"
stages = {
    "typed": (by_typed, 1e-10),
    "simple": (simple.cached_logits, 1e-10),
    "twin": (by_twin, 1e-10),
    "fast": (by_fast, 1e-4),
}
chunkings = {"[n]": [48], "[1]*n": [1] * 48, "[40, 5, 3]": [40, 5, 3]}
chunkings["[3, 2, 4, ...]"] = [3, 2, 4] * 5 + [3]
for name, (cached, allowed_error) in stages.items():
    errors = [np.abs(cached(full_text, cuts) - truth).max() for cuts in chunkings.values()]
    print(f"{name:7}", *(f"{error:.0e}" for error in errors))
    assert max(errors) < allowed_error

# %% [markdown] lang="en" key="theorem-pinned-ask"
r"""
And the numbers promised in advance? Plain and typed met them in sections 2 and 3; here are the other three.
"""

# %% [markdown] lang="ru" key="theorem-pinned-ask" en="0c404b45"
r"""
А числа, обещанные заранее? Первый вариант, на циклах, и второй, с типами, сверены с ними в разделах 2 и 3; вот остальные три программы.
"""

# %% key="theorem-pinned"
pinned_arrays = as_arrays(reference["parameters"], np.float64)
simple_tiny, fast_tiny = SimpleDecoder(pinned_arrays, tiny), FastDecoder(pinned_arrays, tiny)
twin_tiny = TorchTwin.from_parameters(pinned_arrays, tiny)
for logits in (simple_tiny.full_logits(ids), twin_tiny(torch.tensor([ids]))[0].detach().numpy()):
    assert np.abs(logits - pinned["logits"]).max() < 1e-10
print(f"{np.abs(fast_tiny.full_logits(ids) - pinned['logits']).max()=:.0e}")

# %% [markdown] lang="en" key="theorem-again"
r"""
Now two prompts through one decoder, A, B, and A again: a cache that remembers too much would answer A differently the second time. And one token beyond the context must be refused by each stage, with nothing changed.
"""

# %% [markdown] lang="ru" key="theorem-again" en="dbafd2db"
r"""
Теперь пропустим через один декодер два промпта: A, B и снова A. Кэш, который помнит лишнее, во второй раз ответил бы на A иначе. А каждый вариант обязан отвергнуть даже один токен сверх контекста и ничего при этом не изменить.
"""

# %% key="theorem-again-use"
a, b = fresh[3][:20], fresh[4][:33]
for name, (cached, _) in stages.items():
    answers = [cached(ids, [len(ids)]) for ids in (a, b, a)]
    assert np.array_equal(answers[0], answers[2])
    cached(full_text, [context])
full_twin = twin.start()
twin.extend(torch.tensor([full_text]), full_twin)
by_name = {"typed": typed.extend, "simple": simple.extend, "fast": fast.decode_step}
by_name["twin"] = lambda ids: twin.extend(torch.tensor([ids]), full_twin)
for name, refuses in by_name.items():
    print(f"{name:7}", expect_raises(ContextOverflow, refuses, [0]))
lengths_now = (typed.cache.length, simple.length, int(fast.lengths[0]), full_twin.length)
assert lengths_now == (context,) * 4

# %% [markdown] lang="en" key="theorem-text"
r"""
Logits this close give the same greedy text unless the two largest nearly tie; equal texts, as section 6 showed, say little about logits. The contract of the cache, which knows none of our stages, comes to the same verdict on all of them.
"""

# %% [markdown] lang="ru" key="theorem-text" en="44da3fd8"
r"""
Столь близкие логиты дают один и тот же жадный текст, если только два наибольших логита не совпадают почти в точности; а вот равенство текстов, как показал раздел 6, мало говорит о логитах. Контракт кэша, который ни об одном из наших вариантов не знает, выносит всем тот же вердикт.
"""

# %% key="theorem-contracts"
one_text = {"vocab_size": len(vocabulary), "context_length": context}
full_passes = {
    "typed": typed.full_logits,
    "simple": simple.full_logits,
    "twin": lambda ids: twin(torch.tensor([ids]))[0].detach().numpy(),
    "fast": fast.full_logits,
}
for name, full_pass in full_passes.items():
    report = check_cache_contract(full_pass, stages[name][0], **one_text)
    print(f"{name:7}", str(report).splitlines()[0])

# %% [markdown] lang="en" key="cost-ask"
r"""
## 9. What it costs

### Counting

The product of an $m \times k$ and a $k \times n$ matrix takes $mkn$ multiplications and as many additions: $2mkn$ floating-point operations, *FLOPs*. All else in the model is small beside them. So the cost of a pass can be written as a formula, `forward_flops`, and, better, *counted*: run the model of section 2 on numbers that keep count.
"""

# %% [markdown] lang="ru" key="cost-ask" en="b6035cf2"
r"""
## 9. Сколько это стоит

### Подсчёт

Произведение матриц $m \times k$ и $k \times n$ — это $mkn$ умножений и столько же сложений: $2mkn$ операций с плавающей точкой (*FLOP*). Рядом с ними всё остальное в модели мало. Поэтому стоимость прохода можно записать формулой, `forward_flops`, а лучше — *посчитать*: прогнать модель из раздела 2 на числах, которые ведут счёт.
"""

# %% key="flops-terms" role="library"
from course_lib.flops import FlopCount

# %% key="flops-formula"
from course_lib.flops import forward_flops

# %% key="flops-generation" role="library"
from course_lib.flops import generation_flops

# %% [markdown] lang="en" key="flops-read"
r"""
Two formulas, then: `forward_flops` for one pass, and `generation_flops` for a generation made of passes. The folded counters, `counted_lists` and `counted_arrays`, are numbers that add up the products they take part in; the code they run through is unchanged.
"""

# %% [markdown] lang="ru" key="flops-read" en="8729844f"
r"""
Итак, формул две: `forward_flops` — для одного прохода и `generation_flops` — для генерации, которая из проходов состоит. Свёрнутые счётчики, `counted_lists` и `counted_arrays`, — это числа, которые подсчитывают произведения со своим участием; код, через который они проходят, не изменён.
"""

# %% key="flops-counters" role="library"
from course_lib.flops import counted_arrays

# %% key="flops-counted"
tally = ProductTally()
generate([3, 1], counted_lists(reference["parameters"], tally), 2, 2, 6, 0.0, None)
naive = generation_flops(tiny, d_ff=8, prompt_tokens=2, new_tokens=6, cached=False)
print(f"{tally.flops().total=:,} {naive.total=:,}")
assert tally.flops() == naive and naive.total == reference["flops"][0]["naive"]

# %% key="flops-counted-cached"
tally = ProductTally()
counting = SimpleDecoder(as_arrays(reference["parameters"], np.float64), tiny)
counting.params = counted_arrays(counting.params, tally)
counting.cached_logits(greedy["token_ids"][:-1], [1] * 7)
with_cache = generation_flops(tiny, d_ff=8, prompt_tokens=2, new_tokens=6, cached=True)
print(f"{tally.flops().total=:,} {with_cache.total=:,}")
assert tally.flops() == with_cache and with_cache.total == reference["flops"][0]["cached"]

# %% [markdown] lang="en" key="flops-say"
r"""
Equal to the last operation, in loops without a cache and in arrays with one. Without it, each new token costs a pass over all before it; with it, all of them together cost *one* pass over the text. (Logits are counted at every position; a prefill that wants only the last row saves the others.) Within a pass, which term is the largest?
"""

# %% [markdown] lang="ru" key="flops-say" en="95b81171"
r"""
Совпало до последней операции: и в циклах без кэша, и в массивах с кэшем. Без кэша каждый новый токен стоит прохода по всему, что было до него, а с кэшем все они вместе — *одного* прохода по тексту. (Логиты посчитаны на каждой позиции; предзаполнение, которому нужна лишь последняя строка, экономит на остальных.) А внутри прохода какое слагаемое самое большое?
"""

# %% key="flops-dominant"
for n in (512, 9_215, 9_216):
    print(f"{n=:5} {forward_flops(gpt2_small, 3072, n).dominant}")
assert 9_216 == 12 * gpt2_small.d_model

# %% [markdown] lang="en" key="growth-ask"
r"""
### How it grows

For a block of the usual proportions attention overtakes the linear layers at a length of $12\,d_\text{model}$. Keep that in mind when you read "with a cache, cubic becomes quadratic": it is true of one term. *Attention* falls from $n^3$ to $n^2$, the *linear layers* from $n^2$ to $n$, and which of them you see depends on $n / d_\text{model}$. Here is the formula for width 64 on log-log axes, where a power is a straight line and its exponent the slope.
"""

# %% [markdown] lang="ru" key="growth-ask" en="52361263"
r"""
### Как это растёт

В блоке обычных пропорций внимание обгоняет линейные слои при длине $12\,d_\text{model}$. Вспомните об этом, когда прочтёте, что «с кэшем кубический рост становится квадратичным»: это верно для одного слагаемого. *Внимание* дешевеет с $n^3$ до $n^2$, *линейные слои* — с $n^2$ до $n$, а что из этого увидите вы, зависит от $n / d_\text{model}$. Вот формула при ширине 64 в двойном логарифмическом масштабе, где степень — прямая, а её показатель — наклон.
"""

# %% lang="en" key="predict-savings"
progress.predict(
    "savings", "Width 64, 512 new tokens: how many times the operations without a cache?"
)

# %% lang="ru" key="predict-savings" en="48ab0936"
progress.predict(
    "savings", "Ширина 64, 512 новых токенов: во сколько раз больше операций без кэша?"
)

# %% [markdown] lang="en" key="growth-read"
r"""
Two folded helpers do the reading: `fit_slope` lays a line through the points, `local_slopes` takes the slope between neighbours.
"""

# %% [markdown] lang="ru" key="growth-read" en="2e68887e"
r"""
Читать наклоны помогают две свёрнутые функции: `fit_slope` проводит прямую по всем точкам, `local_slopes` берёт наклон между соседними.
"""

# %% key="growth-parts" role="library"
from course_lib.growth import Slope, fit_slope, local_slopes
from course_lib.plots.growth import draw_growth

# %% key="growth-counted"
wide_shape = ModelShape(n_layers=2, d_model=64, n_heads=4, context_length=512, vocab_size=256)
lengths, far = [32, 64, 128, 256, 512], [8_192, 16_384]
flops, slopes = {}, {}
for cached in (False, True):
    cost = lambda n: generation_flops(wide_shape, 256, 1, n, cached=cached).total / 1e6
    flops[cached] = [cost(n) for n in lengths]
    slopes[cached] = fit_slope(lengths, flops[cached])
    at_far = local_slopes(far, [cost(n) for n in far])[0]
    print(f"{cached=!s:5} {slopes[cached]=!s} {at_far=:.2f}")

# %% key="compare-savings"
progress.compare("savings", round(flops[False][-1] / flops[True][-1]), within=0.2)

# %% [markdown] lang="en" key="savings-say"
r"""
Neither twice nor 512 times as many, but 225 times, a little less than $n/2$: without a cache, step $t$ pays again for all $t$ tokens, and $1 + 2 + \dots + n$ is about $n^2/2$; with it, each token is paid for once. Here are both costs at all five lengths.
"""

# %% [markdown] lang="ru" key="savings-say" en="fbfd6414"
r"""
Не вдвое и не в 512 раз больше, а в 225 — чуть меньше, чем $n/2$: без кэша шаг $t$ снова платит за все $t$ токенов, а $1 + 2 + \dots + n$ — это примерно $n^2/2$; с кэшем за каждый токен платят однажды. Вот обе стоимости на всех пяти длинах.
"""

# %% lang="en" key="growth-figure"
figure = draw_growth(
    lengths,
    {"without a cache": flops[False], "with a cache": flops[True]},
    slopes=[slopes[False].slope, slopes[True].slope],
    slope_labels=[f"slope {written_digits(str(slopes[cached]))}" for cached in (False, True)],
    title="Operations to write n tokens, width 64",
    x_label="n, tokens",
    y_label="MFLOP, by formula",
)
show_figure(
    figure,
    name="growth",
    alt="Operations by the formula for writing 32 to 512 tokens on log-log axes. Without a cache "
    "the points rise with a slope of about 2.1, with a cache with one of about 1.15; at 512 tokens "
    "the two are more than a hundred times apart.",
)

# %% lang="ru" key="growth-figure" en="75415720"
figure = draw_growth(
    lengths,
    {"без кэша": flops[False], "с кэшем": flops[True]},
    slopes=[slopes[False].slope, slopes[True].slope],
    slope_labels=[f"наклон {written_digits(str(slopes[cached]))}" for cached in (False, True)],
    title="Сколько операций стоят n токенов, ширина 64",
    x_label="n, токенов",
    y_label="MFLOP, по формуле",
)
show_figure(
    figure,
    name="growth",
    alt="Операции по формуле для 32–512 токенов в двойном логарифмическом масштабе. Без кэша "
    "точки поднимаются с наклоном около 2,1, с кэшем — около 1,15; при 512 токенах разница "
    "больше чем в сто раз.",
)

# %% [markdown] lang="en" key="growth-say"
r"""
The slopes are near 2 and 1, not 3 and 2: at these lengths the linear layers dominate. Only at 16 thousand tokens, 256 times the width, do they come near 3 and 2. The error is small because the points nearly lie on a line; it does not promise that the line goes on. And what does the clock say, beside the formula over the same lengths?
"""

# %% [markdown] lang="ru" key="growth-say" en="c970a81e"
r"""
Наклоны близки к 2 и 1, а не к 3 и 2: при таких длинах преобладают линейные слои. Только при 16 тысячах токенов, то есть при длине в 256 раз больше ширины, наклоны подходят к 3 и 2. Погрешность мала, потому что точки лежат почти на прямой; что прямая продолжится, она не обещает. А что скажут часы — рядом с формулой на тех же длинах?
"""

# %% key="growth-measured" tags=["measured"]
slow = SimpleDecoder(as_arrays(random_parameters(wide_shape, 256, seed), np.float32), wide_shape)
walls = {False: [], True: []}
clocked = [16, 32, 64, 128]
for n in clocked:
    seconds = alternate(
        {
            "naive": lambda: greedy_tokens_anew(slow, [0], n),
            "cached": lambda: greedy_tokens(slow, [0], n),
        },
        repeats=3,
    )
    walls[False].append(seconds["naive"].median)
    walls[True].append(seconds["cached"].median)
    print(n, *(f"{name}: {each}" for name, each in seconds.items()))
print(describe_machine())
measured = {cached: fit_slope(clocked, walls[cached]) for cached in walls}
for cached, slope in measured.items():
    steps_of = [generation_flops(wide_shape, 256, 1, n, cached=cached).total for n in clocked]
    print(f"{cached=!s:5} {slope=!s} {fit_slope(clocked, steps_of)=!s}")

# %% lang="en" key="growth-measured-figure" tags=["measured"]
figure = draw_growth(
    clocked,
    {"without a cache": walls[False], "with a cache": walls[True]},
    slopes=[measured[False].slope, measured[True].slope],
    slope_labels=[f"slope {written_digits(str(measured[cached]))}" for cached in (False, True)],
    title="Time to write n tokens, on your machine",
    x_label="n, tokens",
    y_label="seconds",
)
show_figure(
    figure,
    name=None,
    alt="Measured time against the number of tokens on log-log axes, without and with a cache; "
    "the numbers are printed above.",
)

# %% lang="ru" key="growth-measured-figure" en="cb1f68a3" tags=["measured"]
figure = draw_growth(
    clocked,
    {"без кэша": walls[False], "с кэшем": walls[True]},
    slopes=[measured[False].slope, measured[True].slope],
    slope_labels=[f"наклон {written_digits(str(measured[cached]))}" for cached in (False, True)],
    title="Время на n токенов на вашем компьютере",
    x_label="n, токенов",
    y_label="секунды",
)
show_figure(
    figure,
    name=None,
    alt="Измеренное время в зависимости от числа токенов в двойном логарифмическом масштабе, без "
    "кэша и с ним; числа напечатаны выше.",
)

# %% [markdown] lang="en" key="growth-measured-say"
r"""
On a quiet machine the measured slopes come out smaller than those of the formula over the same lengths: a step of a small model spends most of its time *starting* many small operations, which does not grow with $n$. A busy machine may bend them either way; the spread tells. Counting tells you what must happen in the end; the clock tells you what happens here. Both are true, and neither replaces the other.
"""

# %% [markdown] lang="ru" key="growth-measured-say" en="6fa5418c"
r"""
На свободном компьютере измеренные наклоны выходят меньше, чем у формулы на тех же длинах: время шага маленькой модели уходит в основном на *запуск* множества мелких операций, а он от $n$ не зависит. Занятый компьютер может исказить их в любую сторону — это видно по разбросу. Подсчёт говорит, что будет в конце концов; часы — что происходит здесь. Верно и то и другое, и одно другого не заменяет.
"""

# %% [markdown] lang="en" key="roofline-ask"
r"""
### The roof over your machine

Two numbers describe a machine: how many bytes a second it reads, its *memory bandwidth*, and how many operations a second it computes; the second divided by the first is the balance. Work has one number, its *arithmetic intensity*: operations per byte read. Below the balance memory limits, above it arithmetic does: this is the *roofline* model. First `arithmetic_intensity`, a formula that leaves out the cache.
"""

# %% [markdown] lang="ru" key="roofline-ask" en="23d51107"
r"""
### Крыша над вашим компьютером

Компьютер описывают два числа: сколько байтов в секунду он читает (*пропускная способность памяти*) и сколько операций в секунду выполняет; второе, делённое на первое, — точка равновесия. Работу описывает одно — *арифметическая интенсивность*, число операций на прочитанный байт. Ниже равновесия ограничивает память, выше — вычисления; это *модель «крыши»* (roofline). Сначала `arithmetic_intensity` — формула, в которой кэша нет.
"""

# %% key="intensity"
from course_lib.decoder_lm.fast import arithmetic_intensity

# %% key="roofline-parts" role="library"
from course_lib.flops import PassBytes, decode_step_flops, pass_bytes
from course_lib.machine import gemm_rate, read_bandwidth
from course_lib.plots.roofline import draw_roofline
from course_lib.roofline import Roofline, balance_batch

# %% [markdown] lang="en" key="intensity-ask"
r"""
The formula has no cache; `decode_step_flops` and `pass_bytes` (folded) count with it. GPT-2 small decodes in float32, with a thousand tokens behind every text. Instead of one text, take 64 at once: their operations are 64 times as many, and all of them share the weights.
"""

# %% [markdown] lang="ru" key="intensity-ask" en="84547895"
r"""
В формуле кэша нет; `decode_step_flops` и `pass_bytes` (они свёрнуты) считают и его. GPT-2 small декодирует в float32, у каждого текста в кэше тысяча токенов. Возьмём вместо одного текста сразу 64: операций становится в 64 раза больше, а веса у всех общие.
"""

# %% lang="en" key="predict-intensity"
progress.predict("intensity", "Batch 64 instead of 1: how many times the operations per byte?")

# %% lang="ru" key="predict-intensity" en="be0b4270"
progress.predict(
    "intensity", "64 текста в батче вместо 1: во сколько раз больше операций на байт?"
)

# %% key="intensity-use"
for row in reference["arithmetic_intensity"]:
    given = (row["parameters"], row["batch"], row["bytes_per_parameter"])
    assert arithmetic_intensity(*given) == row["flops_per_byte"]
reached = {}
for batch in (1, 8, 64):
    step_flops = decode_step_flops(gpt2_small, 3072, batch, length=1_000).total
    step_bytes = pass_bytes(gpt2_small, 3072, batch, length=1_000).total
    simple_answer = arithmetic_intensity(row["parameters"], batch, bytes_per_parameter=4)
    reached[batch] = step_flops / step_bytes
    print(f"{batch=:2} {simple_answer=:4.1f} {reached[batch]=:.2f}")

# %% key="compare-intensity"
progress.compare("intensity", round(reached[64] / reached[1], 1), within=0.2)

# %% [markdown] lang="en" key="intensity-say"
r"""
A batch multiplies the intensity, until the cache counts: each text brings its own, which nobody shares. With a thousand tokens behind every text, 64 texts reach a fraction of what the one-line formula promises. Now an example machine, with 34 GB/s and 240 GFLOP/s, and the most that GPT-2 small can reach on it.
"""

# %% [markdown] lang="ru" key="intensity-say" en="2ebbce80"
r"""
С ростом батча растёт и интенсивность, пока не вмешается кэш: у каждого текста он свой, и делить его не с кем. Когда у каждого текста в кэше тысяча токенов, 64 текста достигают лишь части того, что обещает формула в одну строку. Теперь условная машина — 34 ГБ/с и 240 GFLOP/с — и предел, до которого на ней может дойти GPT-2 small.
"""

# %% key="prefill-flops"
def prefill_flops(shape: ModelShape, d_ff: int, tokens: int) -> int:
    count = forward_flops(shape, d_ff, tokens)
    return count.linear + count.attention + count.unembedding // tokens

# %% lang="en" key="roofline-figure"
example = Roofline(bandwidth=34.0, peak=240.0)
points = {"decode, batch": [], "prefill, tokens": []}
for batch in (1, 4, 16, 64):
    work = decode_step_flops(gpt2_small, 3072, batch, 128).total
    intensity = work / pass_bytes(gpt2_small, 3072, batch, 128).total
    points["decode, batch"].append((str(batch), intensity, example.attainable(intensity)))
for tokens in (128, 1024):
    intensity = prefill_flops(gpt2_small, 3072, tokens)
    intensity /= pass_bytes(gpt2_small, 3072, 1, tokens).total
    reach = example.attainable(intensity)
    points["prefill, tokens"].append((str(tokens), intensity, reach))
figure = draw_roofline(
    34.0,
    240.0,
    points,
    title="GPT-2 small in float32 on an example machine",
    x_label="FLOP per byte",
    y_label="GFLOP/s",
    legend=["what the machine allows", "balance"],
)
show_figure(
    figure,
    name="roofline",
    alt="A roofline for 34 GB/s and 240 GFLOP/s, balance near 7 FLOP per byte. Decoding with "
    "batch 1 and 4 lies on the slope, limited by memory; batch 16 is just below the corner, "
    "batch 64 beyond it, at twice the balance; prefill of 128 and 1024 tokens lies on the flat "
    "roof, limited by arithmetic.",
)

# %% lang="ru" key="roofline-figure" en="5577f2aa"
example = Roofline(bandwidth=34.0, peak=240.0)
points = {"декодирование, батч": [], "предзаполнение, токенов": []}
for batch in (1, 4, 16, 64):
    work = decode_step_flops(gpt2_small, 3072, batch, 128).total
    intensity = work / pass_bytes(gpt2_small, 3072, batch, 128).total
    points["декодирование, батч"].append((str(batch), intensity, example.attainable(intensity)))
for tokens in (128, 1024):
    intensity = prefill_flops(gpt2_small, 3072, tokens)
    intensity /= pass_bytes(gpt2_small, 3072, 1, tokens).total
    reach = example.attainable(intensity)
    points["предзаполнение, токенов"].append((str(tokens), intensity, reach))
figure = draw_roofline(
    34.0,
    240.0,
    points,
    title="GPT-2 small в float32 на условной машине",
    x_label="FLOP на байт",
    y_label="GFLOP/с",
    legend=["что позволяет машина", "равновесие"],
)
show_figure(
    figure,
    name="roofline",
    alt="Крыша для 34 ГБ/с и 240 GFLOP/с, равновесие около 7 FLOP на байт. Декодирование с батчем "
    "1 и 4 лежит на склоне — ограничено памятью; батч 16 — чуть ниже излома, 64 — за ним, при "
    "вдвое большей интенсивности; предзаполнение 128 и 1024 токенов — на плоской крыше, "
    "ограничено вычислениями.",
)

# %% [markdown] lang="en" key="roofline-view-ask"
r"""
Walk along the roof yourself: `view_roofline_batch` (folded) lets you choose the batch and the number of tokens behind each text. Where does a batch stop paying for short texts, and where for long ones?
"""

# %% [markdown] lang="ru" key="roofline-view-ask" en="d22e9a31"
r"""
Пройдите по крыше сами: в `view_roofline_batch` (функция свёрнута) можно выбрать размер батча и число токенов в кэше у каждого текста. Где увеличивать батч уже нет смысла для коротких текстов, а где — для длинных?
"""

# %% key="roofline-view-parts" role="library"
from course_lib.views.roofline_batch import view_roofline_batch

# %% lang="en" key="roofline-view"
def step_work(batch, length):
    moved = pass_bytes(gpt2_small, 3072, batch, length).total
    return decode_step_flops(gpt2_small, 3072, batch, length).total, moved


view_roofline_batch(
    step_work,
    bandwidth=34.0,
    peak=240.0,
    batches=(1, 4, 8, 16, 32, 64),
    lengths=(128, 1000),
    words={
        "batch": "Batch",
        "length": "Tokens behind each text",
        "title": "a step of decoding on the example machine",
        "x_label": "FLOP per byte",
        "y_label": "GFLOP/s",
        "roof": "what the machine allows",
        "balance": "balance",
        "others": "other batches",
        "now": "this batch",
        "by_memory": "memory",
        "by_arithmetic": "arithmetic",
        "times_title": "time of a step, ms: the longer one counts",
        "verdict": "the limit is {bound}: at most {tokens} tokens/s",
        "alt": "With batch {batch} and {length} tokens behind each text a step does {intensity} "
        "FLOP per byte: at most {rate} of {peak} GFLOP/s, {tokens} tokens per second; the limit is "
        "{bound}.",
    },
)

# %% lang="ru" key="roofline-view" en="2830bef1"
def step_work(batch, length):
    moved = pass_bytes(gpt2_small, 3072, batch, length).total
    return decode_step_flops(gpt2_small, 3072, batch, length).total, moved


view_roofline_batch(
    step_work,
    bandwidth=34.0,
    peak=240.0,
    batches=(1, 4, 8, 16, 32, 64),
    lengths=(128, 1000),
    words={
        "batch": "Размер батча",
        "length": "Токенов в кэше у каждого текста",
        "title": "шаг декодирования на условной машине",
        "x_label": "FLOP на байт",
        "y_label": "GFLOP/с",
        "roof": "что позволяет машина",
        "balance": "равновесие",
        "others": "другие размеры",
        "now": "этот размер",
        "by_memory": "память",
        "by_arithmetic": "вычисления",
        "times_title": "время шага, мс: важно то, что дольше",
        "verdict": "предел — {bound}; токенов/с не больше {tokens}",
        "alt": "Текстов в батче {batch}, токенов в кэше у каждого {length}: шаг делает "
        "{intensity} FLOP на байт, не больше {rate} из {peak} GFLOP/с; токенов в секунду не "
        "больше {tokens}; предел — {bound}.",
    },
)

# %% [markdown] lang="en" key="roofline-view-say"
r"""
With 128 tokens behind each text the point climbs the slope and reaches the flat roof between 16 and 32 texts: until then, almost every new text comes free. With a thousand it never leaves the slope: each text has a cache of its own to read, and more texts bring hardly more tokens per second.
"""

# %% [markdown] lang="ru" key="roofline-view-say" en="c2c3e89b"
r"""
Когда у каждого текста в кэше 128 токенов, точка поднимается по склону и где-то между 16 и 32 текстами выходит на плоскую крышу: до тех пор каждый новый текст достаётся почти даром. А при тысяче она так и остаётся на склоне: каждому тексту надо читать собственный кэш, и новые тексты почти не прибавляют токенов в секунду.
"""

# %% [markdown] lang="en" key="roofline-own-ask"
r"""
And your machine? The next cell measures both its numbers, `bandwidth` in GB/s and `peak` in GFLOP/s, then really runs decoding steps and a prefill of a model with random weights, and puts each where it landed. It prints tokens per second, and `bound`, the most that the roof allows; 70 is the mean number of positions that a step reads.
"""

# %% [markdown] lang="ru" key="roofline-own-ask" en="6d508a11"
r"""
А ваш компьютер? Следующая ячейка измеряет оба его числа — `bandwidth` в ГБ/с и `peak` в GFLOP/с, — затем по-настоящему выполняет шаги декодирования и предзаполнение на модели со случайными весами и отмечает, куда попала каждая точка. Печатаются токены в секунду и `bound` — предел, который допускает крыша; 70 — среднее число позиций, которые читает шаг.
"""

# %% key="roofline-own" tags=["measured"]
medium = ModelShape(n_layers=4, d_model=768, n_heads=12, context_length=128, vocab_size=4096)
runner = FastDecoder(as_arrays(random_parameters(medium, 3072, seed), np.float32), medium)
bandwidth, peak = read_bandwidth(repeats=7, side=5600), gemm_rate(repeats=7)
mine = Roofline(bandwidth.median, peak.median)
print(describe_machine(), f"{bandwidth=!s}", f"{peak=!s}", sep="\n")
landed = {"decode": [], "prefill": []}
for batch in (1, 8, 64):
    runner.prefill([[1] * 64] * batch)
    took = alternate({"step": lambda: runner.decode_step([1] * batch)}, repeats=9)["step"]
    work = decode_step_flops(medium, 3072, batch, 70).total
    moved = pass_bytes(medium, 3072, batch, 70).total
    landed["decode"].append((str(batch), work / moved, work / took.median / 1e9))
    bound = batch / mine.least_seconds(work, moved)
    print(f"{batch=:2} {took.rate(batch)!s} {bound=:,.0f}")
took = alternate({"read": lambda: runner.prefill([[1] * 128])}, repeats=5)["read"]
work, moved = prefill_flops(medium, 3072, 128), pass_bytes(medium, 3072, 1, 128).total
landed["prefill"].append(("128", work / moved, work / took.median / 1e9))
print(f"prefill {took.rate(128)!s} bound={128 / mine.least_seconds(work, moved):,.0f}")

# %% lang="en" key="roofline-own-figure" tags=["measured"]
figure = draw_roofline(
    mine.bandwidth,
    mine.peak,
    {"decode, batch": landed["decode"], "prefill, tokens": landed["prefill"]},
    title="Your machine, as measured just now",
    x_label="FLOP per byte",
    y_label="GFLOP/s",
    legend=["what the machine allows", "balance"],
)
show_figure(
    figure,
    name=None,
    alt="The measured roofline of this machine with the measured points of decoding and prefill; "
    "the numbers are printed above.",
)

# %% lang="ru" key="roofline-own-figure" en="13389838" tags=["measured"]
figure = draw_roofline(
    mine.bandwidth,
    mine.peak,
    {"декодирование, батч": landed["decode"], "предзаполнение, токенов": landed["prefill"]},
    title="Ваш компьютер, измерено только что",
    x_label="FLOP на байт",
    y_label="GFLOP/с",
    legend=["что позволяет машина", "равновесие"],
)
show_figure(
    figure,
    name=None,
    alt="Измеренная крыша этого компьютера и измеренные точки декодирования и предзаполнения; "
    "сами числа напечатаны выше.",
)

# %% [markdown] lang="en" key="roofline-own-say"
r"""
On most machines decoding one text sits on the slope, a larger batch climbs it, and prefill is up near the flat roof; look where yours are. A point above the slope is no miracle: a model this small may partly stay in the processor's cache, while the slope was measured on main memory. A point below it is time spent neither reading nor multiplying. And a point above the flat roof means that the peak was measured while something else ran: run the cell again.
"""

# %% [markdown] lang="ru" key="roofline-own-say" en="f91bd3d5"
r"""
На большинстве машин декодирование одного текста лежит на склоне, батч побольше поднимается по нему, а предзаполнение — наверху, у плоской крыши; посмотрите, где ваши точки. Точка выше склона — не чудо: такая маленькая модель может отчасти остаться в кэше процессора, а склон измерен по основной памяти. Точка ниже — это время, потраченное не на чтение и не на умножение. А точка над плоской крышей значит, что, пока измерялся пик, работало что-то ещё: запустите ячейку снова.
"""

# %% [markdown] lang="en" key="cache-size-ask"
r"""
### When the cache outgrows the weights

A batch makes the weights cheap and the cache expensive. For real models at two bytes a number: how many tokens, over all texts of a batch, until the cache is as large as the model itself?
"""

# %% [markdown] lang="ru" key="cache-size-ask" en="8f835510"
r"""
### Когда кэш перерастает веса

С батчем веса обходятся дешевле, а кэш дороже. Возьмём настоящие модели при двух байтах на число: при скольких токенах, считая по всем текстам батча, кэш становится таким же большим, как сама модель?
"""

# %% key="cache-size-parts" role="library"
from course_lib.flops import cache_break_even
from course_lib.plots.cache_growth import draw_cache_growth

# %% key="cache-size"
billions = {"GPT-2 small": (12, 768, 0.124), "GPT-2 XL": (48, 1600, 1.558)}
billions["Llama 2 7B"] = (32, 4096, 6.738)
memory = {}
for name, (n_layers, d_model, parameters) in billions.items():
    per_token = 2 * n_layers * d_model * 2 / 1e9
    memory[name] = (per_token, 2 * parameters)
    weights, tokens = 2 * parameters, 2 * parameters / per_token
    print(f"{name:12} {weights=:6.2f} {tokens=:8,.0f}")
print(f"{cache_break_even(gpt2_small, 3072, tied=True)=:,.0f} {6 * 768 + 50257 // 24=:,}")

# %% lang="en" key="cache-size-figure"
figure = draw_cache_growth(
    [100, 300, 1_000, 3_000, 10_000, 30_000, 100_000],
    memory,
    title="Memory of the cache, two bytes a number",
    x_label="batch × tokens",
    y_label="GB",
    legend=["memory of the weights", "equal"],
)
show_figure(
    figure,
    name="cache-growth",
    alt="Cache memory against batch times tokens for three models on log-log axes, each a straight "
    "line, with its weights as a dotted level. Rings mark where the lines meet their levels, near "
    "7, 10 and 26 thousand tokens.",
)

# %% lang="ru" key="cache-size-figure" en="4e6c3f57"
figure = draw_cache_growth(
    [100, 300, 1_000, 3_000, 10_000, 30_000, 100_000],
    memory,
    title="Память кэша, два байта на число",
    x_label="размер батча × токены",
    y_label="ГБ",
    legend=["память весов", "поровну"],
)
show_figure(
    figure,
    name="cache-growth",
    alt="Память кэша в зависимости от произведения батча на число токенов для трёх моделей, "
    "двойной логарифмический масштаб: три прямые, веса — пунктирные уровни. Кружками отмечено, где "
    "прямые доходят до своих уровней: примерно при 7, 10 и 26 тысячах токенов.",
)

# %% [markdown] lang="en" key="cache-size-say"
r"""
About seven thousand tokens for GPT-2 small: seven full contexts, a small batch. The last line has the count and the rule of thumb $6\,d_\text{model} + V / (2\,n_\text{layers})$, which leaves out biases and positions. This is why it is *users*, not models, that fill a server's memory.
"""

# %% [markdown] lang="ru" key="cache-size-say" en="c0e9aa27"
r"""
Около семи тысяч токенов для GPT-2 small: семь полных контекстов, небольшой батч. В последней строке — точный подсчёт и приближённое правило $6\,d_\text{model} + V / (2\,n_\text{layers})$, которое не учитывает смещения и позиции. Вот почему память сервера заполняют не модели, а *пользователи*.
"""

# %% [markdown] lang="en" key="gpu-batch-ask"
r"""
### How large a batch?

If a batch shares the weights, a batch large enough must bring arithmetic level with reading. Take a GPU that reads 3.35 TB/s and computes 990 TFLOP/s, and a model of seven billion parameters in two bytes each; the texts are short, so leave the cache out.
"""

# %% [markdown] lang="ru" key="gpu-batch-ask" en="457af78c"
r"""
### Насколько большим должен быть батч?

Раз веса у батча общие, то при достаточно большом батче вычисления догонят чтение. Возьмём видеокарту, которая читает 3,35 ТБ/с и выполняет 990 TFLOP/с, и модель с семью миллиардами параметров по два байта; тексты короткие, так что кэш отбросим.
"""

# %% lang="en" key="predict-gpu-batch"
progress.predict(
    "gpu-batch",
    "7 billion parameters on a large GPU: from which batch on is arithmetic as slow as reading?",
)

# %% lang="ru" key="predict-gpu-batch" en="cff3951e"
progress.predict(
    "gpu-batch",
    "7 миллиардов параметров на большой видеокарте: начиная с какого размера батча вычисления "
    "занимают не меньше времени, чем чтение?",
)

# %% [markdown] lang="en" key="ex-balance-statement"
r"""
### Exercise 7 (stretch). Where decoding stops waiting for memory

A step reads the weights once, and one cache for each text; each text brings its own operations. From which batch on does arithmetic take at least as long as reading? Bandwidth in bytes/s, peak in FLOP/s; the answer need not be a whole number, and it is `math.inf` if no batch is large enough.
"""

# %% [markdown] lang="ru" key="ex-balance-statement" en="f3259a6f"
r"""
### Упражнение 7 (со звёздочкой). Где декодирование перестаёт ждать память

Шаг читает веса один раз и по кэшу на каждый текст; каждый текст приносит и свои операции. Начиная с какого размера батча вычисления занимают не меньше времени, чем чтение? Пропускная способность — в байтах в секунду, пик — в FLOP/с; ответ не обязан быть целым, а если не хватит никакого батча, это `math.inf`.
"""

# %% key="ex-balance" role="stub" exercise="balance"
def my_balance_batch(bandwidth, peak, weight_bytes, row_flops, row_cache_bytes):
    # en: row_flops, row_cache_bytes: of one text in one step
    # ru: row_flops, row_cache_bytes — у одного текста за один шаг
    raise NotImplementedError

# %% key="examples-check" role="library"
from course_lib.mistakes.examples import check_examples

# %% lang="en" key="ex-balance-check" role="check" exercise="balance"
names = ("bandwidth", "peak", "weight_bytes", "row_flops", "row_cache_bytes")
machines = {
    "gpt2-small": ((34e9, 240e9, 498e6, 249e6, 0.0), 14.117647),
    "gpt2-small, 100 tokens": ((34e9, 240e9, 498e6, 249e6, 7_372_800), 17.848055),
    "gpt2-small, 1000 tokens": ((34e9, 240e9, 498e6, 249e6, 73_728_000), math.inf),
    "7B on a large GPU": ((3.35e12, 990e12, 14e9, 14e9, 0.0), 295.522388),
    "70B, a large cache: later, not never": ((3.35e12, 990e12, 140e9, 140e9, 60e6), 338.378906),
    "a cache read as fast as it is computed with: never": ((1e9, 1e12, 1e9, 1e9, 1e6), math.inf),
}
progress.check(
    "balance",
    check_examples,
    my_balance_batch,
    {name: (dict(zip(names, numbers, strict=True)), n) for name, (numbers, n) in machines.items()},
)

# %% lang="ru" key="ex-balance-check" en="8565c614" role="check" exercise="balance"
names = ("bandwidth", "peak", "weight_bytes", "row_flops", "row_cache_bytes")
machines = {
    "gpt2-small": ((34e9, 240e9, 498e6, 249e6, 0.0), 14.117647),
    "gpt2-small, 100 токенов": ((34e9, 240e9, 498e6, 249e6, 7_372_800), 17.848055),
    "gpt2-small, 1000 токенов": ((34e9, 240e9, 498e6, 249e6, 73_728_000), math.inf),
    "7B на большой видеокарте": ((3.35e12, 990e12, 14e9, 14e9, 0.0), 295.522388),
    "70B, большой кэш: позже, но не никогда": ((3.35e12, 990e12, 140e9, 140e9, 60e6), 338.378906),
    "кэш читается столько же, сколько считается: никогда": ((1e9, 1e12, 1e9, 1e9, 1e6), math.inf),
}
progress.check(
    "balance",
    check_examples,
    my_balance_batch,
    {name: (dict(zip(names, numbers, strict=True)), n) for name, (numbers, n) in machines.items()},
)

# %% [markdown] lang="en" key="ex-balance-hint-1" role="hint" exercise="balance"
r"""
A step does two things at once, it reads and it multiplies, and the slower one sets the pace. One more text in the batch: what does it add to the reading, what to the multiplying, and what is paid only once?
"""

# %% [markdown] lang="ru" key="ex-balance-hint-1" en="8a3c7e65" role="hint" exercise="balance"
r"""
Шаг делает два дела сразу — читает и умножает, — и темп задаёт более медленное. В батч добавили ещё один текст: что он добавляет к чтению, что — к умножениям, а за что платят лишь однажды?
"""

# %% [markdown] lang="en" key="ex-balance-hint-2" role="hint" exercise="balance"
r"""
Write both times as functions of the batch $B$ and set them equal: one is $B \cdot a$, the other $w + B \cdot c$.
"""

# %% [markdown] lang="ru" key="ex-balance-hint-2" en="81660361" role="hint" exercise="balance"
r"""
Запишите оба времени как функции размера батча $B$ и приравняйте: одно — $B \cdot a$, другое — $w + B \cdot c$.
"""

# %% [markdown] lang="en" key="ex-balance-hint-3" role="hint" exercise="balance"
r"""
$B = w / (a - c)$. When is there no such $B$?
"""

# %% [markdown] lang="ru" key="ex-balance-hint-3" en="cbf04269" role="hint" exercise="balance"
r"""
$B = w / (a - c)$. Когда такого $B$ нет?
"""

# %% key="ex-balance-solution" role="solution" exercise="balance"
def my_balance_batch(bandwidth, peak, weight_bytes, row_flops, row_cache_bytes):
    spare = row_flops / peak - row_cache_bytes / bandwidth
    return weight_bytes / bandwidth / spare if spare > 0 else math.inf

# %% key="gpu-batch"
gpu_batch = balance_batch(Roofline(3_350, 990_000), row_flops=14e9, weight_bytes=14e9)
cpu_texts = {"row_flops": 249e6, "weight_bytes": 498e6, "row_cache_bytes": 73_728_000}
print(f"{gpu_batch=:.1f} {balance_batch(Roofline(34, 240), **cpu_texts)=}")

# %% key="compare-gpu-batch"
progress.compare("gpu-batch", round(gpu_batch, 1), within=0.2)

# %% [markdown] lang="en" key="balance-say"
r"""
The "hundreds" one often reads of belong to a large GPU with short texts. On our example processor, decoding in float32 turns compute-bound at a dozen or two; with a thousand tokens behind every text it never does, because then even one text's cache takes longer to read than its arithmetic takes.
"""

# %% [markdown] lang="ru" key="balance-say" en="0d995c33"
r"""
«Сотни», о которых часто пишут, относятся к большой видеокарте и коротким текстам. На процессоре из нашего примера декодирование в float32 упирается в вычисления уже на втором десятке текстов; а если у каждого текста в кэше тысяча токенов — никогда: кэш даже одного текста читать дольше, чем выполнять его вычисления.
"""

# %% key="fewer-bytes"
one_byte = balance_batch(Roofline(3_350, 990_000), row_flops=14e9, weight_bytes=7e9)
print(f"{one_byte=:.1f} {gpu_batch / one_byte=:.1f}")

# %% [markdown] lang="en" key="fewer-bytes-say"
r"""
Three famous speed-ups follow from this roof, and none does less arithmetic. *Batching* shares one reading of the weights among many texts. *Quantisation* stores a weight in one byte instead of two: half the reading, so a single text is twice as fast, and the balance falls to 147.8. In *speculative decoding* a small model guesses a few tokens and the large one checks them all at once, as in a prefill: several tokens for one reading.
"""

# %% [markdown] lang="ru" key="fewer-bytes-say" en="60f2f215"
r"""
Из этой крыши следуют три известных ускорения, и вычислений ни в одном не меньше. *Батч*: одно чтение весов делится между многими текстами. *Квантизация*: вес занимает один байт вместо двух, читать вдвое меньше, поэтому одиночный текст идёт вдвое быстрее, а равновесие опускается до 147,8. *Спекулятивное декодирование*: малая модель угадывает несколько токенов, большая проверяет их все разом, как при предзаполнении, — несколько токенов за одно чтение.
"""

# %% [markdown] lang="en" key="weights-ask"
r"""
## 10. Real weights

A trained model travels as a file of its numbers, a *checkpoint*. The public format for it, *safetensors*, is refreshingly plain: eight bytes with the length of a header, the header in JSON, then the numbers. Nothing in it can be executed, which is not true of the older *pickle* files. Let us write one: our model, under the names that GPT-2 was published with (`gpt2_names`).
"""

# %% [markdown] lang="ru" key="weights-ask" en="98793d0c"
r"""
## 10. Настоящие веса

Обученная модель хранится и передаётся файлом с её числами — *чекпойнтом*. Общепринятый формат, *safetensors*, на удивление прост: восемь байтов с длиной заголовка, заголовок в JSON, потом числа. Исполнять в нём нечего, чего не скажешь о старых файлах *pickle*. Запишем такой файл: нашу модель под теми именами, с которыми опубликована GPT-2 (`gpt2_names`).
"""

# %% key="save-names"
def gpt2_names(params: dict) -> dict[str, np.ndarray]:
    tensors = {"wte.weight": params["token_embedding"], "wpe.weight": params["position_embedding"]}
    ours = "ln1_gain ln1_bias wo bo ln2_gain ln2_bias w1 b1 w2 b2".split()
    theirs = "ln_1.weight ln_1.bias attn.c_proj.weight attn.c_proj.bias ln_2.weight ln_2.bias"
    theirs = [*theirs.split(), "mlp.c_fc.weight", "mlp.c_fc.bias"]
    theirs += ["mlp.c_proj.weight", "mlp.c_proj.bias"]
    for layer, p in enumerate(params["blocks"]):
        tensors |= {f"h.{layer}.{new}": p[old] for old, new in zip(ours, theirs, strict=True)}
        joined = np.concatenate([p["wq"], p["wk"], p["wv"]], axis=1)
        tensors[f"h.{layer}.attn.c_attn.weight"] = joined
        tensors[f"h.{layer}.attn.c_attn.bias"] = np.concatenate([p["bq"], p["bk"], p["bv"]])
    tensors |= {"ln_f.weight": params["final_gain"], "ln_f.bias": params["final_bias"]}
    return tensors | {"lm_head.weight": params["unembedding"].T}

# %% key="save-file"
def save_safetensors(path: Path, tensors: dict[str, np.ndarray]) -> None:
    header, numbers = {}, b""
    for name, array in tensors.items():
        raw = np.ascontiguousarray(array, dtype="<f4").tobytes()
        place = [len(numbers), len(numbers) + len(raw)]
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": place}
        numbers += raw
    described = json.dumps(header).encode()
    path.write_bytes(len(described).to_bytes(8, "little") + described + numbers)


folder = Path(tempfile.mkdtemp()) / "tales"
folder.mkdir()
save_safetensors(folder / "model.safetensors", gpt2_names(params))
config = {"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 4, "n_inner": 128}
config |= {"n_positions": context, "vocab_size": len(vocabulary), "tie_word_embeddings": False}
config["activation_function"] = "gelu_new"
(folder / "config.json").write_text(json.dumps(config))
print(f"{(folder / 'model.safetensors').stat().st_size=:,}")

# %% [markdown] lang="en" key="load-ask"
r"""
Reading is the harder half, because a file can be anything: cut off in the middle, made for other sizes, in sixteen bits, or hostile. `load_gpt2` checks all of it before it hands out a number, and then *maps* the file: the arrays are views of it, not copies. The fast decoder packs a copy of its own, in the order in which it will read.
"""

# %% [markdown] lang="ru" key="load-ask" en="1f9bcfd1"
r"""
Читать труднее, ведь файл может оказаться каким угодно: оборванным на середине, от модели других размеров, в шестнадцати битах, вредоносным. `load_gpt2` проверяет всё это, прежде чем отдать хоть одно число, а затем *отображает* файл в память: массивы — его представления, а не копии. Свою копию, уложенную в порядке чтения, делает потом быстрый декодер.
"""

# %% key="load-file" role="library"
from course_lib.decoder_lm.safetensors_file import SafetensorsFile
from course_lib.decoder_lm.weights import load_gpt2_shape

# %% key="load-gpt2" role="library"
from course_lib.decoder_lm.weights import load_gpt2

# %% key="load-use"
loaded = FastDecoder(load_gpt2(folder), load_gpt2_shape(folder))
gap = np.abs(loaded.full_logits(text) - fast.full_logits(text)).max()
print(f"{gap=:.0e}")
assert gap < 1e-4
whole_file = (folder / "model.safetensors").read_bytes()
(folder / "model.safetensors").write_bytes(whole_file[:-4])
print(expect_raises(ValueError, load_gpt2, folder))
_ = (folder / "model.safetensors").write_bytes(whole_file)

# %% [markdown] lang="en" key="load-say"
r"""
The same model, from a file; cut four bytes off, and the file is refused. (The tests of the course do this with checkpoints made by the `transformers` library, up to GPT-2 small's true size: logits agree to $10^{-4}$, greedy tokens are the same.)
"""

# %% [markdown] lang="ru" key="load-say" en="b6f2f029"
r"""
Та же модель, но из файла; отрежьте четыре байта — и файл отвергнут. (Тесты курса делают то же с чекпойнтами, созданными библиотекой `transformers`, вплоть до настоящего размера GPT-2 small: логиты совпадают с точностью до $10^{-4}$, жадные токены те же.)
"""

# %% [markdown] lang="en" key="speak-real-ask"
r"""
### Let it speak

With internet you can give the same code the real GPT-2 (0.5 GB; it also needs `pip install tokenizers`). Fetch four files from `openai-community/gpt2`: `model.safetensors`, `config.json`, `vocab.json` and `merges.txt`, for example by `hf download openai-community/gpt2 --local-dir gpt2`; name the folder in the parameters cell and run the notebook again. Without them, the tale-teller goes on.
"""

# %% [markdown] lang="ru" key="speak-real-ask" en="095721ba"
r"""
### Пусть говорит

Если есть интернет, тому же коду можно дать настоящую GPT-2 (0,5 ГБ; понадобится и `pip install tokenizers`). Возьмите четыре файла из `openai-community/gpt2`: `model.safetensors`, `config.json`, `vocab.json` и `merges.txt` — например, командой `hf download openai-community/gpt2 --local-dir gpt2`, — впишите папку в ячейку параметров и запустите блокнот ещё раз. Без них продолжит сказочник.
"""

# %% key="speak-real"
source = Path(gpt2_folder) if gpt2_folder else folder
encode, beginning = (lambda words: [0, *vocabulary.encode(words)]), vocabulary.decode(story[:5])
decode = lambda token_ids: vocabulary.decode(token_ids[1:])
if gpt2_folder:
    from tokenizers import ByteLevelBPETokenizer

    files = [source / name for name in ("vocab.json", "merges.txt")]
    assert all(map(Path.is_file, files)), files
    tokenizer = ByteLevelBPETokenizer(*map(str, files))
    encode, decode = (lambda words: tokenizer.encode(words).ids), tokenizer.decode
    beginning = "The sun went down, and the moon"
speaker = FastDecoder(load_gpt2(source), load_gpt2_shape(source))
ids_so_far, shown = encode(beginning), ""
draw_words = np.random.default_rng(seed)
for (token,) in speaker.generate([ids_so_far], 40, temperature=0.7, top_p=0.9, rng=draw_words):
    ids_so_far.append(token)
    told = decode(ids_so_far)
    if not told.endswith("\ufffd"):
        print(told[len(shown) :], end="", flush=True)
        shown = told
print("\n", speaker.stats)

# %% [markdown] lang="en" key="speak-real-say"
r"""
Word by word, as each is chosen. No line of the code knows how large the model is. What took GPT-2's authors so much work is a file of numbers; the code in this notebook is the whole model.
"""

# %% [markdown] lang="ru" key="speak-real-say" en="954d57d4"
r"""
Слова появляются одно за другим, как только выбраны. Ни одна строка кода не знает, велика ли модель. То, на что у авторов GPT-2 ушло столько труда, — файл с числами; а код из этого блокнота — вся модель целиком.
"""

# %% [markdown] lang="en" key="families"
r"""
## 11. Other ways to own a likelihood

The chain rule gives our family of models its exact likelihood, and its sequential generation. Others pay elsewhere. A **variational autoencoder** generates in one pass, but knows only a *lower bound* of its likelihood. A **normalizing flow** knows it exactly, at the price that each layer must be invertible with a computable Jacobian determinant and cannot change the dimension. A **diffusion model** obtains it by integrating an ordinary differential equation, as exactly as its solver and its estimate of a divergence allow.
"""

# %% [markdown] lang="ru" key="families" en="43a6570f"
r"""
## 11. Другие пути к правдоподобию

Цепное правило даёт нашему семейству моделей точное правдоподобие — и последовательную генерацию. Другие платят иначе. **Вариационный автокодировщик** (VAE) порождает пример за один проход, но знает лишь *нижнюю границу* правдоподобия. **Нормализующий поток** знает его точно, но такой ценой: каждый слой обязан быть обратимым, с вычислимым определителем матрицы Якоби, и не может менять размерность. **Диффузионная модель** получает его, интегрируя обыкновенное дифференциальное уравнение, — настолько точно, насколько позволяют численный метод и оценка дивергенции.
"""

# %% [markdown] lang="en" key="families-say"
r"""
So "exact" is worth a second look whenever models are compared by likelihood. A bound, an estimate and a sum of logarithms are three different things; a density over pixels is not a probability of tokens; and a probability of tokens is exact for this *cutting* of the text into tokens, under this model. Ours is the sum, and section 2 showed that it stays one at five hundred nats.
"""

# %% [markdown] lang="ru" key="families-say" en="64a8b653"
r"""
Поэтому, когда модели сравнивают по правдоподобию, к слову «точное» стоит присмотреться. Граница, оценка и сумма логарифмов — три разные вещи; плотность вероятности для пикселей — это не вероятность токенов; а вероятность токенов точна для этого *разбиения* текста на токены и для этой модели. У нас — сумма, и раздел 2 показал, что она остаётся собой и при пятистах натах.
"""

# %% [markdown] lang="en" key="recap-ask"
r"""
## 12. What you have checked

The last cell holds the likelihood, the sampler, the causality and the cache of this module to their contracts once more. Put your own functions in, and run it again.
"""

# %% [markdown] lang="ru" key="recap-ask" en="5c333268"
r"""
## 12. Что вы проверили

Последняя ячейка ещё раз проверяет контрактами правдоподобие, сэмплер, причинность и кэш этого модуля. Подставьте собственные функции и запустите ячейку снова.
"""

# %% key="recap-parts" role="library"
from course_lib.contracts import check_log_likelihood_contract

# %% key="recap-contracts"
def log_likelihood_of(logits, token_ids):
    scores = stable_log_softmax(logits[:-1])
    return math.fsum(float(row[token]) for row, token in zip(scores, token_ids[1:], strict=True))


def module_sampler(logits, temperature, top_k, top_p, rng):
    return batched_sample(logits, temperature, top_p, rng, top_k)


for report in (
    check_log_likelihood_contract(log_likelihood_of),
    check_causal_attention_contract(causal_attention),
    check_sampler_contract(module_sampler),
    check_causality_contract(twin, **sizes_of_leaky),
    check_cache_contract(fast.full_logits, by_fast, **one_text),
):
    print(str(report).splitlines()[0])

# %% [markdown] lang="en" key="recap-proved"
r"""
**Checked here, not believed:** the chain rule adds up; one pass gives all predictions, bit for bit; a lost mask gets below the grammar's own surprise; five programs agree on every logit, however the text is cut, up to exactly the context; one contract refuses all six cache bugs; FLOPs counted equal the formula; a file of numbers is the model.
"""

# %% [markdown] lang="ru" key="recap-proved" en="d7ce6716"
r"""
**Проверено, а не принято на веру:** цепное правило выполняется; один проход даёт все предсказания, бит в бит; с потерянной маской потери опускаются ниже удивления самой грамматики; пять программ сходятся в каждом логите, как ни режь текст, вплоть до контекста, заполненного целиком; один контракт отвергает все шесть ошибок кэша; посчитанные операции равны формуле; файл с числами и есть модель.
"""

# %% [markdown] lang="en" key="recap-bugs"
r"""
**Silent bugs met on the way**

| bug | what gives it away |
|---|---|
| probability formed and clamped | 500 nats become 20.7 |
| GELU of the other form | a comparison of numbers |
| no causal mask | a loss below the floor |
| cache: mask at the top left | a chunk after a past differs |
| cache: no mask in later chunks | the same: the chunk reads ahead |
| cache: positions restart | the second chunk differs |
| cache: not reset | prompts A, B, A |
| cache: trimmed too early | the exactly full context |
| cache: buffer read to its end | single tokens differ |
| prompt shortened in silence | an answer to another question |
"""

# %% [markdown] lang="ru" key="recap-bugs" en="650d0a96"
r"""
**Тихие ошибки, встреченные по пути**

| ошибка | что её выдаёт |
|---|---|
| вероятность вычислена и отодвинута от нуля | 500 нат превращаются в 20,7 |
| GELU другой формы | сравнение чисел |
| нет причинной маски | потери ниже нижней границы |
| кэш: маска слева вверху | у куска с прошлым другие логиты |
| кэш: нет маски в следующих кусках | то же: кусок читает вперёд |
| кэш: позиции начаты заново | отличается второй кусок |
| кэш: не сброшен | промпты A, B, A |
| кэш: обрезан слишком рано | контекст, заполненный целиком |
| кэш: буфер прочитан до конца | отличаются одиночные токены |
| промпт молча укоротили | ответ на другой вопрос |
"""

# %% [markdown] lang="en" key="recap-terms"
r"""
**Terms introduced:** chain rule, log-likelihood, key-value cache, prefill, decode, memory-bound, compute-bound, arithmetic intensity, memory bandwidth, roofline, checkpoint, FLOP, surprise.
"""

# %% [markdown] lang="ru" key="recap-terms" en="1ec99f49"
r"""
**Введённые термины:** цепное правило, логарифмическое правдоподобие, KV-кэш, предзаполнение, пошаговое декодирование, ограничено памятью, ограничено вычислениями, арифметическая интенсивность, пропускная способность памяти, модель «крыши» (roofline), чекпойнт, FLOP, удивление.
"""

# %% [markdown] lang="en" key="quiz-ask"
r"""
## 13. Ten questions

No points and no clock. Every answer is explained, the wrong ones too: behind each is something that somebody believed while a program went quietly wrong. What the explanations claim was executed above, or is checked by the cell after the last question.
"""

# %% [markdown] lang="ru" key="quiz-ask" en="b2533dfa"
r"""
## 13. Десять вопросов

Ни баллов, ни секундомера. Объяснён каждый ответ, и неверный тоже: за каждым стоит то, во что кто-то верил, пока программа тихо ошибалась. Всё, что сказано в пояснениях, проверено кодом — выше или в ячейке после последнего вопроса.
"""

# %% key="quiz-ask-parts" role="library"
from course_lib.practice.quiz import answer, ask

# %% lang="en" key="quiz-clamp" role="quiz"
ask(
    progress,
    "clamp",
    "A token has log-probability −500. What does math.log(max(p, 1e-9)) report?",
    {
        "−500: the constant replaces only exact zeros": (
            False,
            "max replaces everything below the constant, and e to the −500 is below it, though "
            "it is not zero.",
        ),
        "about −20.7, whatever the token": (
            True,
            "That is ln 1e-9. All tokens rarer than one in a billion look alike, and the "
            "constant decides which of two models wins. A sum of logarithms keeps the 500.",
        ),
        "minus infinity: e to the −500 is zero": (
            False,
            "A float holds it easily, about 7e-218. And even a true zero would have been "
            "replaced by the constant.",
        ),
    },
)

# %% lang="ru" key="quiz-clamp" en="ed15f6a4" role="quiz"
ask(
    progress,
    "clamp",
    "Логарифм вероятности токена равен −500. Что покажет math.log(max(p, 1e-9))?",
    {
        "−500: константа заменяет только настоящий ноль": (
            False,
            "max заменяет всё, что меньше константы, а e в степени −500 меньше её, хотя и не "
            "ноль.",
        ),
        "около −20,7, каким бы ни был токен": (
            True,
            "Это ln 1e-9. Все токены реже одного на миллиард становятся неразличимы, и "
            "какая из двух моделей лучше, решает константа. Сумма логарифмов сохраняет все 500.",
        ),
        "минус бесконечность: e в степени −500 — это ноль": (
            False,
            "Для типа float это обычное число, около 7e-218. Но и настоящий ноль константа бы "
            "заменила.",
        ),
    },
)

# %% lang="en" key="quiz-floor" role="quiz"
ask(
    progress,
    "floor",
    "On fresh tales a model's mean loss is far below the grammar's own. What happened?",
    {
        "It overfits": (
            False,
            "A model that overfits is good on what it has seen, worse on what it has not. "
            "These tales are fresh.",
        ),
        "It is large enough to see finer patterns": (
            False,
            "What the grammar draws at random follows no pattern. On average no model gets "
            "below the floor, however large it is.",
        ),
        "It sees the answers": (
            True,
            "Nothing else leads there. In section 4 it was a lost mask: 0.03 nats at once, "
            "1.9 when asked prefix by prefix.",
        ),
        "Its temperature is too low": (
            False,
            "Temperature is a setting of sampling. The loss is taken from the model's own "
            "probabilities, at temperature 1.",
        ),
    },
)

# %% lang="ru" key="quiz-floor" en="9acd9a47" role="quiz"
ask(
    progress,
    "floor",
    "На новых сказках средние потери модели намного ниже, чем у самой грамматики. Что случилось?",
    {
        "Модель переобучилась": (
            False,
            "Переобученная модель хороша на том, что видела, и хуже на том, чего не видела. А "
            "эти сказки новые.",
        ),
        "Модель так велика, что видит закономерности потоньше": (
            False,
            "Там, где грамматика бросает жребий, закономерностей нет. В среднем ниже границы не "
            "опустится никакая модель, как бы велика она ни была.",
        ),
        "Модель видит ответы": (
            True,
            "Других путей туда нет. В разделе 4 виновата потерянная маска: 0,03 ната, "
            "если считать разом, и 1,9, если спрашивать префикс за префиксом.",
        ),
        "Слишком низкая температура": (
            False,
            "Температура — настройка сэмплирования. Потери считают по собственным вероятностям "
            "модели, при температуре 1.",
        ),
    },
)

# %% lang="en" key="quiz-stored" role="quiz"
ask(
    progress,
    "stored",
    "Why may the keys and values of past tokens be stored?",
    {
        "After training, the weights no longer change": (
            False,
            "They do not change in a model without a mask either, and there a later token moves "
            "earlier logits.",
        ),
        "A key does not depend on the place of its token": (
            False,
            "It does: the position embedding is in it. Remove the first word, and the keys of "
            "all the others change.",
        ),
        "The error is too small to change the text": (
            False,
            "There is no error to speak of: cached and full logits agree to 1e-10. A larger "
            "difference is a bug.",
        ),
        "No later token can change them": (
            True,
            "In every layer, position j has read 0 to j and nothing else. Take the causal "
            "mask away, and the permission is gone.",
        ),
    },
)

# %% lang="ru" key="quiz-stored" en="5fa218de" role="quiz"
ask(
    progress,
    "stored",
    "Почему ключи и значения прошлых токенов можно хранить?",
    {
        "После обучения веса больше не меняются": (
            False,
            "Не меняются они и в модели без маски, а там поздний токен сдвигает логиты более "
            "ранних.",
        ),
        "Ключ не зависит от того, где стоит токен": (
            False,
            "Зависит: в ключ входит позиционный эмбеддинг. Уберите первое слово — и ключи всех "
            "остальных изменятся.",
        ),
        "Погрешность слишком мала, чтобы изменить текст": (
            False,
            "Погрешности, можно сказать, и нет: с кэшем и без него логиты совпадают до 1e-10. "
            "Разница побольше — это ошибка.",
        ),
        "Более поздние токены не могут их изменить": (
            True,
            "В каждом слое позиция j прочитала позиции от 0 до j и больше ничего. Нет "
            "причинной маски — нет и права хранить.",
        ),
    },
)

# %% lang="en" key="quiz-chunk" role="quiz"
ask(
    progress,
    "chunk",
    "Four tokens are stored, a chunk of three arrives. Which keys may its first token read?",
    {
        "0 to 4": (
            True,
            "The four stored ones and its own. The rows of this mask hold 5, 6 and 7 ones.",
        ),
        "0 only": (
            False,
            "That is mask_top_left: a triangle that forgets the four keys in front of it.",
        ),
        "0 to 6: with a cache no mask is needed": (
            False,
            "True of a single new token. In a chunk it is no_mask_in_later_chunks: the first "
            "token would read the two after it.",
        ),
        "0 to 3: only what is in the past": (
            False,
            "A token reads itself as well. Without the diagonal, the first token of a text "
            "would have nothing to read.",
        ),
    },
)

# %% lang="ru" key="quiz-chunk" en="e4304857" role="quiz"
ask(
    progress,
    "chunk",
    "Сохранено четыре токена, приходит кусок из трёх. Какие ключи вправе читать первый его токен?",
    {
        "с 0 по 4": (
            True,
            "Четыре сохранённых и свой собственный. В строках этой маски 5, 6 и 7 единиц.",
        ),
        "только 0": (
            False,
            "Это mask_top_left: треугольник, который забыл о четырёх ключах перед собой.",
        ),
        "с 0 по 6: при кэше маска не нужна": (
            False,
            "Это верно для одного нового токена. В куске это no_mask_in_later_chunks: первый "
            "токен читал бы два следующих.",
        ),
        "с 0 по 3: только прошлое": (
            False,
            "Токен читает и себя. Без диагонали первому токену текста было бы нечего читать.",
        ),
    },
)

# %% lang="en" key="quiz-same-text" role="quiz"
ask(
    progress,
    "same-text",
    "Greedy text comes out the same with the cache and without. What does this show?",
    {
        "The logits are equal, up to rounding": (
            False,
            "Only the winners are equal. one_token_reads_the_buffer wrote the same text in "
            "section 6, with wrong logits at single tokens.",
        ),
        "Little: three of six bugs do the same": (
            True,
            "An error that does not change the winner leaves no trace in the text. Compare "
            "logits.",
        ),
        "The cache is right, at least for this prompt": (
            False,
            "no_mask_in_later_chunks wrote the same text, too; cut this very prompt in two "
            "chunks, and its logits are wrong.",
        ),
    },
)

# %% lang="ru" key="quiz-same-text" en="02e18884" role="quiz"
ask(
    progress,
    "same-text",
    "При жадном декодировании текст с кэшем и без него один и тот же. О чём это говорит?",
    {
        "Логиты равны с точностью до округления": (
            False,
            "Равны только победители. Ошибка one_token_reads_the_buffer написала в разделе 6 "
            "тот же текст, а логиты одиночных токенов у неё неверны.",
        ),
        "Мало о чём: так же ведут себя три ошибки из шести": (
            True,
            "Если победитель прежний, ошибка не оставит в тексте следа. Сравнивайте "
            "логиты.",
        ),
        "Кэш верен — хотя бы для этого промпта": (
            False,
            "Ошибка no_mask_in_later_chunks тоже написала тот же текст; но разрежьте эту самую "
            "промпт на два куска — и логиты неверны.",
        ),
    },
)

# %% lang="en" key="quiz-reset" role="quiz"
ask(
    progress,
    "reset",
    "Which test notices a cache that is not emptied between two users?",
    {
        "One prompt, token by token": (
            False,
            "The first text finds the cache empty: cache_not_reset passes this test.",
        ),
        "A look whether all logits are finite": (
            False,
            "A stranger's keys are perfectly finite numbers. This test caught none of the six "
            "bugs.",
        ),
        "A second prompt after the first": (
            True,
            "In section 6 no other test caught it. Better still A, B, A: both answers "
            "to A must be equal.",
        ),
        "One prompt, cut in chunks of many sizes": (
            False,
            "However the first text is cut, it finds the cache empty. What is missing is a "
            "second text.",
        ),
    },
)

# %% lang="ru" key="quiz-reset" en="0e69740e" role="quiz"
ask(
    progress,
    "reset",
    "Какая проверка заметит кэш, который не очищают между двумя пользователями?",
    {
        "Один промпт, токен за токеном": (
            False,
            "Первый текст застаёт кэш пустым: cache_not_reset эту проверку проходит.",
        ),
        "Проверка, что все логиты конечны": (
            False,
            "Чужие ключи — вполне конечные числа. Эта проверка не поймала ни одной ошибки из "
            "шести.",
        ),
        "Второй промпт после первого": (
            True,
            "В разделе 6 ни одна другая проверка эту ошибку не поймала. А ещё лучше A, "
            "B, A: оба ответа на A обязаны совпасть.",
        ),
        "Один промпт, разрезанный на куски разной длины": (
            False,
            "Как ни режь первый текст, он застаёт кэш пустым. Не хватает второго текста.",
        ),
    },
)

# %% lang="en" key="quiz-too-long" role="quiz"
ask(
    progress,
    "long_prompt",
    "The context holds 1024 tokens, the prompt has 1100. What should a decoder do?",
    {
        "Refuse, and say by how many tokens it is too long": (
            True,
            "Only who wrote the prompt knows what may be left out; then fit_context "
            "shortens it, when told to.",
        ),
        "Leave out the first 76 tokens and answer": (
            False,
            "The answer then belongs to another question, and nobody is told. Public bug "
            "reports know this one well.",
        ),
        "Let the 76 oldest keys fall out of the cache": (
            False,
            "The other keys were made for their old places. The cell above compared them with "
            "new ones: they differ.",
        ),
    },
)

# %% lang="ru" key="quiz-too-long" en="ca513671" role="quiz"
ask(
    progress,
    "long_prompt",
    "В контексте 1024 места, в промпте 1100 токенов. Что должен сделать декодер?",
    {
        "Отказаться и сказать, сколько в промпте лишних токенов": (
            True,
            "Чем можно пожертвовать, знает только автор промпта; тогда fit_context его "
            "укоротит, но лишь по его указанию.",
        ),
        "Отбросить первые 76 токенов и ответить": (
            False,
            "Это будет ответ на другой вопрос, и никто об этом не узнает. В баг-трекерах "
            "на такое жаловались не раз.",
        ),
        "Вытеснить из кэша 76 самых старых ключей": (
            False,
            "Остальные ключи вычислены для прежних мест. Ячейка выше сравнила их с новыми: они "
            "разные.",
        ),
    },
)

# %% lang="en" key="quiz-one-text" role="quiz"
ask(
    progress,
    "one-text",
    "Why does decoding a single text leave most of a machine's arithmetic idle?",
    {
        "Each step computes all past keys anew": (
            False,
            "That is decoding without a cache. With one, the pinned model needs 4,816 "
            "operations instead of 17,776.",
        ),
        "Attention takes quadratic time at each step": (
            False,
            "One query meets n keys: linear. It is all steps together that are quadratic, and "
            "arithmetic would not be idle then.",
        ),
        "The whole model is read for one token": (
            True,
            "Half an operation for each byte read in float32, where the example machine "
            "could do seven.",
        ),
    },
)

# %% lang="ru" key="quiz-one-text" en="694c0978" role="quiz"
ask(
    progress,
    "one-text",
    "Почему при декодировании одного текста вычислительная мощность машины почти вся "
    "простаивает?",
    {
        "Каждый шаг заново вычисляет все прошлые ключи": (
            False,
            "Это декодирование без кэша. С ним модели из эталона нужно 4816 операций вместо "
            "17 776.",
        ),
        "Внимание на каждом шаге требует квадратичного времени": (
            False,
            "Один запрос встречает n ключей: это линейно. Квадратичны все шаги вместе, да и "
            "вычислители тогда бы не простаивали.",
        ),
        "Вся модель читается ради одного токена": (
            True,
            "В float32 это пол-операции на прочитанный байт, а условная машина успела "
            "бы семь.",
        ),
    },
)

# %% lang="en" key="quiz-no-batch" role="quiz"
ask(
    progress,
    "no_batch",
    "A thousand tokens behind every text. From which batch on does the example machine "
    "wait for arithmetic?",
    {
        "From 14": (
            False,
            "That is the answer without the cache: 240 / 34 operations per byte, two bytes of "
            "weight for each operation.",
        ),
        "From 64: there must be such a batch": (
            False,
            "At 64 the intensity has reached 3.5, and no batch takes it to the balance of 7: "
            "each text brings its own cache.",
        ),
        "From about 300": (
            False,
            "That is the large GPU, in two-byte numbers and without a cache.",
        ),
        "From none": (
            True,
            "One text's cache takes longer to read than its arithmetic takes, and more "
            "texts bring more of both.",
        ),
    },
)

# %% lang="ru" key="quiz-no-batch" en="40be7121" role="quiz"
ask(
    progress,
    "no_batch",
    "У каждого текста в кэше тысяча токенов. С какого размера батча условная машина упрётся в "
    "вычисления?",
    {
        "С 14": (
            False,
            "Это ответ без кэша: 240 / 34 операций на байт, а на операцию приходится два байта "
            "весов.",
        ),
        "С 64: какой-нибудь батч да подойдёт": (
            False,
            "При 64 интенсивность дошла до 3,5, и до равновесия, до 7, её не доведёт никакой "
            "батч: у каждого текста свой кэш.",
        ),
        "Примерно с 300": (
            False,
            "Это большая видеокарта, при двух байтах на число и без кэша.",
        ),
        "Ни с какого": (
            True,
            "Кэш одного текста читать дольше, чем выполнять его вычисления, а новые "
            "тексты добавляют и того и другого.",
        ),
    },
)

# %% lang="en" key="quiz-slopes" role="quiz"
ask(
    progress,
    "slopes",
    "Width 64, up to 512 tokens: slopes 2.1 and 1.15, not the 3 and 2 of attention. Why?",
    {
        "The cache does not cover attention": (
            False,
            "It does, in every layer. The operations counted equal the formula, to the last one.",
        ),
        "At these lengths the linear layers cost more": (
            True,
            "Their cost goes from quadratic to linear. At 16 thousand tokens the slopes "
            "are 2.89 and 1.93.",
        ),
        "Clocks are too coarse to show it": (
            False,
            "No clock was asked: these slopes are of operations, by formula.",
        ),
        "Attention is really linear in the length": (
            False,
            "For one new token, yes. For all n of them it is quadratic with a cache and cubic "
            "without.",
        ),
    },
)

# %% lang="ru" key="quiz-slopes" en="765306ff" role="quiz"
ask(
    progress,
    "slopes",
    "Ширина 64, до 512 токенов: наклоны 2,1 и 1,15, а не 3 и 2, как у внимания. Почему?",
    {
        "Кэш не распространяется на внимание": (
            False,
            "Распространяется, в каждом слое. Посчитанные операции равны формуле, вплоть до "
            "последней.",
        ),
        "При таких длинах дороже линейные слои": (
            True,
            "Их стоимость падает с квадратичной до линейной. При 16 тысячах токенов "
            "наклоны — 2,89 и 1,93.",
        ),
        "Часы для этого слишком грубы": (
            False,
            "Часов никто не спрашивал: это наклоны числа операций, по формуле.",
        ),
        "На самом деле внимание линейно по длине": (
            False,
            "Для одного нового токена — да. А для всех n оно квадратично с кэшем и кубично без "
            "него.",
        ),
    },
)

# %% key="quiz-facts"
# en: 1 e to the −500 is not zero; 3 a key knows its place; 5 and 6 which tests pass
# ru: 1 e в степени −500 — не ноль; 3 ключ знает своё место; 5 и 6 какие проверки проходят
assert 0 < math.exp(-500) < 1e-200
kept = {}
for words in (text, text[1:]):
    typed.prefill(words)
    kept[len(words)] = typed.cache.keys().copy()
stale, anew = kept[len(text)][:, :, 1:], kept[len(text) - 1]
moved = np.abs(stale - anew).max(axis=(0, 1, 3)).min()
assert stale.shape == anew.shape and moved > 0.1
passes = {name: {test for test, ok in tests.items() if ok} for name, tests in results.items()}
assert "single_tokens" not in passes["one_token_reads_the_buffer"]
assert "two_chunks" not in passes["no_mask_in_later_chunks"]
assert {"finite", "single_tokens", "two_chunks"} <= passes["cache_not_reset"]
# en: 8 attention of one step is linear in the length; 9 the limit of any batch
# ru: 8 внимание одного шага линейно по длине; 9 предел для любого батча
reading = [decode_step_flops(gpt2_small, 3072, 1, n).attention for n in (256, 512)]
assert reading[1] == 2 * reading[0]
endless = decode_step_flops(gpt2_small, 3072, 10**6, 1_000).total
endless /= pass_bytes(gpt2_small, 3072, 10**6, 1_000).total
assert reached[64] < endless < example.balance
print(f"{moved=:.2f} {endless=:.2f} {example.balance=:.2f}")

# %% [markdown] lang="en" key="quiz-say"
r"""
## 14. What the record says

Here is everything `progress` holds: exercises with what the contracts said, predictions, answers. `certificate` sums it up under a name, with a digest of the contracts passed; it says itself what it does not prove. To fill a gap, run its cell again, and then these two.
"""

# %% [markdown] lang="ru" key="quiz-say" en="b2c1e192"
r"""
## 14. Что в дневнике

Здесь всё, что накопил `progress`: упражнения и вердикты контрактов, предсказания, ответы. `certificate` подводит итог под вашим именем и ставит отпечаток выполненных контрактов; чего он не доказывает, он говорит сам. Если что-то не выполнено, запустите ту ячейку ещё раз, а потом обе эти.
"""

# %% key="progress-show"
progress.show()

# %% lang="en" key="certificate"
progress.certificate("Ada")

# %% lang="ru" key="certificate" en="35bbdda0"
progress.certificate("Ада")

# %% [markdown] lang="en" key="recap-next"
r"""
**Where you stand.** Everything that a large decoder-only model does at its core is in this notebook, small enough to be checked. What comes on top (other positions, grouped heads, eight-bit numbers, many machines) changes its cost and its reach, and each change can be held to the same contracts.
"""

# %% [markdown] lang="ru" key="recap-next" en="f9541d45"
r"""
**Чего вы достигли.** Всё, что составляет суть большой модели из одного декодера, есть в этом блокноте — только такого размера, что его можно проверить. То, что добавляют сверху (другие способы кодировать позиции, группы запросов (GQA), восьмибитные числа, работа на многих машинах), меняет её стоимость и возможности, и каждое изменение можно проверить теми же контрактами.
"""
