# %% [markdown] lang="en" key="title"
r"""
# Module 3. The basic Transformer

The models you talk to are stacks of refined versions of one block. Here you build that block yourself, from a dot product up to a small language model that trains in seconds, and you check each step instead of trusting it.

**By the end you can** write masked attention from memory, say what every tensor's shape is and why, recognise the classic silent bugs by their symptoms, and tell which test would have caught each one.
"""

# %% [markdown] lang="ru" key="title" en="170a314b"
r"""
# Модуль 3. Базовый Transformer

Модели, с которыми вы разговариваете, сложены из усовершенствованных вариантов одного и того же блока. Здесь вы соберёте его сами, от скалярного произведения до маленькой языковой модели, которая обучается за секунды, и ничего не примете на веру: каждый шаг проверите.

**К концу модуля вы сможете** написать внимание с маской по памяти, назвать форму каждого тензора и объяснить её, узнать классические тихие ошибки по симптомам и сказать, какая проверка поймала бы каждую.
"""

# %% [markdown] lang="en" key="before-you-start"
r"""
**Before you start.** A CPU is enough; no graphics card is used. Running everything takes under a minute; reading it and doing every exercise, six to eight hours: plan four sittings. You need Python, matrix multiplication and the idea of a gradient; some PyTorch helps.

Cells titled *Machinery* are folded: argument checks, drawing, the insides of *contracts* (section 4 explains them). You can do the whole module without opening one.
"""

# %% [markdown] lang="ru" key="before-you-start" en="396c420c"
r"""
**Прежде чем начать.** Достаточно обычного процессора, видеокарта не нужна. Полный запуск занимает меньше минуты, чтение со всеми упражнениями — от шести до восьми часов: заложите четыре вечера. Понадобятся Python, умножение матриц и представление о градиенте; немного PyTorch не помешает.

Ячейки с заголовком *Служебный код* свёрнуты: там проверки аргументов, рисование и внутренности *контрактов* (о них — в разделе 4). Пройти модуль можно, не открыв ни одной.
"""

# %% [markdown] lang="en" key="setup-ask"
r"""
## 0. A workbench you can trust

The first cell installs only what is missing. In an environment that has everything, Colab included, it does nothing and needs no network.
"""

# %% [markdown] lang="ru" key="setup-ask" en="0231dfa6"
r"""
## 0. Рабочее место, на которое можно положиться

Первая ячейка устанавливает лишь то, чего не хватает. Там, где всё уже есть (например, в Colab), она не делает ничего и обходится без сети.
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
import functools
import itertools
import math
import random
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# %% key="parameters" tags=["parameters"]
# en: one seed for everything random; training steps of section 10's two tests
# ru: одно зерно для всего случайного; число шагов обучения в двух проверках раздела 10
seed = 18
steps = 121
random_steps = 150

# %% [markdown] lang="en" key="determinism-ask"
r"""
A claim that changes from run to run cannot be checked. So the next cell fixes the seed, keeps to one thread (the order of additions changes the last digits) and asks PyTorch for deterministic algorithms only.
"""

# %% [markdown] lang="ru" key="determinism-ask" en="9d86cbea"
r"""
Утверждение, которое меняется от запуска к запуску, проверить нельзя. Поэтому следующая ячейка задаёт зерно генератора, оставляет один поток (порядок сложений меняет последние цифры) и разрешает PyTorch только детерминированные алгоритмы.
"""

# %% key="determinism" tags=["measured"]
torch.manual_seed(seed)
torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)
torch.set_printoptions(precision=4, sci_mode=False)
print(f"torch {torch.__version__} | device cpu | seed {seed}")

# %% [markdown] lang="en" key="lookup-ask"
r"""
## 1. Attention is a soft lookup

A dictionary lookup compares your query with every key and returns the value of the one that matches. Attention does the same, but softly: it compares, turns the comparisons into shares that add up to one, and returns the *mixture* of all values in those shares.

One example will stay with us: three tokens (pieces of text, here words), `sun`, `moon` and `eclipse`, each with a query, a key and a value of two numbers.
"""

# %% [markdown] lang="ru" key="lookup-ask" en="e81ab787" differs="code: the three words of the example are translated"
r"""
## 1. Внимание — это мягкий поиск

Поиск в словаре сравнивает запрос с каждым ключом и возвращает значение совпавшего. Внимание делает то же, но мягко: сравнивает, превращает сравнения в доли, дающие в сумме единицу, и возвращает *смесь* всех значений в этих долях.

Один пример останется с нами надолго: три токена (кусочка текста, здесь — слова) `солнце`, `луна` и `затмение`, у каждого запрос, ключ и значение из двух чисел.
"""

# %% key="example-vectors"
q = k = torch.tensor([[1, 0], [0, 1], [1, 1]], dtype=torch.float64)
v = torch.tensor([[1, 0], [0, 2], [3, 1]], dtype=torch.float64)
print("q = k =", q.tolist())
print("v =", v.tolist())

# %% [markdown] lang="en" key="example-vectors-say"
r"""
Read the columns of `q` and `k` as two features: "has to do with the sun" and "has to do with the moon". The sun has the first, the moon the second, an eclipse both. Queries equal keys here only to keep the arithmetic in your head; in a model they come from two different learned matrices.
"""

# %% [markdown] lang="ru" key="example-vectors-say" en="98864cc1"
r"""
Столбцы `q` и `k` читайте как два признака: «про солнце» и «про луну». У солнца есть первый, у луны — второй, у затмения — оба. Запросы здесь равны ключам только затем, чтобы всё считалось в уме; в модели их дают две разные обучаемые матрицы.
"""

# %% [markdown] lang="en" key="scores-ask"
r"""
### Matching: does this key answer this query?

The match of query $i$ and key $j$ is their dot product, large when the same features are large in both:

$$m_{ij} = \sum_{c=1}^{d_k} q_{ic}\, k_{jc}.$$

Before you run the loop, predict the nine numbers.
"""

# %% [markdown] lang="ru" key="scores-ask" en="29e2ec56"
r"""
### Совпадение: отвечает ли ключ на запрос?

Мера совпадения запроса $i$ и ключа $j$ — их скалярное произведение; оно велико, когда у обоих велики одни и те же признаки:

$$m_{ij} = \sum_{c=1}^{d_k} q_{ic}\, k_{jc}.$$

Прежде чем запустить цикл, предскажите все девять чисел.
"""

# %% key="scores-loop"
matches_loop = torch.zeros(3, 3, dtype=torch.float64)
for i in range(3):
    for j in range(3):
        matches_loop[i, j] = sum(q[i, c] * k[j, c] for c in range(2))
print(matches_loop)

# %% key="scores-matrix"
matches = q @ k.T
print((matches - matches_loop).abs().max().item())
assert torch.equal(matches, matches_loop)

# %% [markdown] lang="en" key="scores-say"
r"""
Row $i$ belongs to the token that asks, column $j$ to the token that is asked. The eclipse matches itself with 2 and each of the others with 1. The whole table is one matrix product, $QK^\top$, equal to the loop to the last bit: small whole numbers are exact in floating point; elsewhere we shall compare with a tolerance.
"""

# %% [markdown] lang="ru" key="scores-say" en="63d730a0"
r"""
Строка $i$ принадлежит тому, кто спрашивает, столбец $j$ — тому, кого спрашивают. У затмения совпадение с собой равно 2, с каждым из остальных — 1. Вся таблица — одно матричное произведение $QK^\top$; с результатом цикла оно совпадает до последнего бита: небольшие целые числа в арифметике с плавающей точкой точны; во всех остальных случаях будем сравнивать с допуском.
"""

# %% [markdown] lang="en" key="softmax-ask"
r"""
### Weights: scores become shares

Divided by $\sqrt{d_k} = \sqrt2$, the matches are called *scores*, $s_{ij}$; section 2 shows why we divide. We want positive shares that sum to one, and a larger score must give a larger share. The softmax does this in every row:

$$w_{ij} = \frac{e^{s_{ij}}}{\sum_{j'} e^{s_{ij'}}}.$$
"""

# %% [markdown] lang="ru" key="softmax-ask" en="01ab56b7"
r"""
### Веса: оценки становятся долями

Совпадения, делённые на $\sqrt{d_k} = \sqrt2$, называют *оценками* $s_{ij}$; зачем делить, покажет раздел 2. Нужны положительные доли, дающие в сумме единицу, и чем больше оценка, тем больше должна быть доля. Такие доли в каждой строке даёт softmax:

$$w_{ij} = \frac{e^{s_{ij}}}{\sum_{j'} e^{s_{ij'}}}.$$
"""

# %% key="softmax-by-hand"
scores = matches / math.sqrt(2)
exponents = torch.exp(scores)
weights = exponents / exponents.sum(dim=-1, keepdim=True)
print(weights)
print(weights.sum(dim=-1))

# %% [markdown] lang="en" key="softmax-say"
r"""
Each row sums to 1: every token spends exactly one unit of attention. The eclipse (last row) gives about half of it to itself and a quarter to each of the others. Now the same along the wrong axis: the shapes fit just as well.
"""

# %% [markdown] lang="ru" key="softmax-say" en="7f122e3e"
r"""
Сумма каждой строки равна 1: каждый токен тратит ровно одну единицу внимания. Затмение (последняя строка) отдаёт около половины себе и по четверти остальным. Теперь то же вдоль неверной оси: формы сходятся ничуть не хуже.
"""

# %% key="softmax-axis"
over_queries = torch.softmax(scores, dim=0)
print(over_queries.sum(dim=-1))
assert torch.allclose(torch.softmax(scores, dim=-1), weights)

# %% [markdown] lang="en" key="softmax-axis-say"
r"""
Taken along the queries (`dim=0`), the softmax lets the eclipse spend 1.31 units and each of the others 0.85: nobody complains, and the model is wrong. The axis of the softmax is always the axis of the keys.
"""

# %% [markdown] lang="ru" key="softmax-axis-say" en="4f4211c2"
r"""
Если взять softmax вдоль запросов (`dim=0`), затмение потратит 1,31 единицы, а остальные — по 0,85: никто не возразит, а модель будет неверна. Ось softmax — это всегда ось ключей.
"""

# %% [markdown] lang="en" key="output-ask"
r"""
### Output: a mixture of values

The last step spends the shares: output $i$ is the average of all values, weighted by row $i$.

$$o_i = \sum_j w_{ij}\, v_j \qquad\text{or}\qquad O = WV.$$
"""

# %% [markdown] lang="ru" key="output-ask" en="b4555344"
r"""
### Выход: смесь значений

На последнем шаге доли тратятся: выход $i$ — это среднее всех значений, взвешенное строкой $i$.

$$o_i = \sum_j w_{ij}\, v_j \qquad\text{или}\qquad O = WV.$$
"""

# %% key="output-matrix"
output = weights @ v
print(output)
assert (v.min(dim=0).values <= output).all() and (output <= v.max(dim=0).values).all()

# %% [markdown] lang="en" key="output-say"
r"""
An average never leaves the range of what it averages, and the assertion checks just that, column by column. This is the whole idea of attention in three lines: compare, normalise, mix. Everything else in the module is about doing these three things safely.
"""

# %% [markdown] lang="ru" key="output-say" en="ed956a73"
r"""
Среднее никогда не выходит за пределы того, что усредняется; именно это и проверено здесь, столбец за столбцом. Вот и вся идея внимания в трёх строках: сравнить, нормировать, смешать. Остальная часть модуля — о том, как делать эти три вещи надёжно.
"""

# %% [markdown] lang="en" key="reference-ask"
r"""
### The numbers we promise in advance

Is any of this right? Expected values must not come from the code under test. The folded cell below holds them as text: a small program computed them with nothing but Python floats, and a second one, in 50-digit arithmetic, agrees with each to a few units in the last place.

Before any number is used, the text must hash to the published digest. That catches accidents, though not a forger who changes both.
"""

# %% [markdown] lang="ru" key="reference-ask" en="d2f70055"
r"""
### Числа, обещанные заранее

Верно ли всё это? Ожидаемые значения не должны браться из проверяемого кода. Свёрнутая ячейка ниже хранит их в виде текста. Вычислила их маленькая программа, которая обходится обычными числами Python с плавающей точкой; вторая, считающая с 50 знаками, подтвердила каждое с точностью до нескольких единиц последнего разряда.

Прежде чем использовать хотя бы одно число, мы сверяем отпечаток текста с опубликованным. Это спасает от случайных искажений, но не от злоумышленника, который подменит и то и другое.
"""

# %% key="reference-json" role="reference" reference="module_03"
from course_lib.reference import reference_json, reference_sha256

REFERENCE_JSON = reference_json("module_03")
REFERENCE_SHA256 = reference_sha256("module_03")

# %% key="reference-reader" role="library"
from course_lib.reference import read_reference

# %% key="reference-use"
reference = read_reference(REFERENCE_JSON, REFERENCE_SHA256)
assert reference["schema_version"] == 1
print(REFERENCE_SHA256)
example = reference["attention"]
error = weights[2] - torch.tensor(example["weights"][2], dtype=torch.float64)
print(f"{error.abs().max().item():.0e}")
assert v.tolist() == example["v"] and error.abs().max() < 1e-12

# %% [markdown] lang="en" key="reference-say"
r"""
The digest matched, and so did the weights of the eclipse. (The other rows stand there with a mask; section 3 comes to it.) From here on `reference[...]` is a promise made before the code ran. One more small tool, `expect_raises`, shows that a wrong call *fails*, and with what message, without stopping the notebook.
"""

# %% [markdown] lang="ru" key="reference-say" en="d980a7b1"
r"""
Отпечаток совпал, и веса затмения тоже. (Остальные строки записаны там с маской, до неё дойдёт раздел 3.) С этого места `reference[...]` — обещание, данное до запуска кода. Ещё один маленький инструмент, `expect_raises`, показывает, что неверный вызов действительно *падает* и с каким сообщением; блокнот при этом работает дальше.
"""

# %% key="expect-raises"
from course_lib.report import expect_raises

# %% key="expect-raises-use"
edited = REFERENCE_JSON.replace("2.5", "2.6")
print(expect_raises(ValueError, read_reference, edited, REFERENCE_SHA256))

# %% [markdown] lang="en" key="expect-raises-say"
r"""
One digit was changed, and the text was refused. (Messages of the library are in English, like its code; contracts speak the language of the notebook.)
"""

# %% [markdown] lang="ru" key="expect-raises-say" en="4785a191"
r"""
Изменилась одна цифра — и текст отвергнут. (Сообщения библиотеки, как и её код, на английском; контракты говорят на языке блокнота.)
"""

# %% [markdown] lang="en" key="projections-ask"
r"""
### Where queries, keys and values come from

Every token arrives as one vector $x$. Three learned matrices look at it in three roles: what am I looking for, what do I offer for comparison, what do I hand over if I am chosen:

$$q = xW_Q, \qquad k = xW_K, \qquad v = xW_V.$$

Would one matrix for queries and keys be enough? Compare each table of matches with its transpose.
"""

# %% [markdown] lang="ru" key="projections-ask" en="df79369c"
r"""
### Откуда берутся запросы, ключи и значения

Каждый токен приходит в виде одного вектора $x$. Три обучаемые матрицы отводят ему три роли: что я ищу, что предъявляю для сравнения, что отдам, если меня выберут:

$$q = xW_Q, \qquad k = xW_K, \qquad v = xW_V.$$

Хватило бы одной матрицы на запросы и ключи? Сравните каждую таблицу совпадений с ней же, но транспонированной.
"""

# %% key="projections"
generator = torch.Generator().manual_seed(seed)
x, w_q, w_k = (torch.randn(3, 3, generator=generator, dtype=torch.float64) for _ in range(3))
shared = (x @ w_q) @ (x @ w_q).T
separate = (x @ w_q) @ (x @ w_k).T
print(shared, separate, sep="\n")
assert torch.allclose(shared, shared.T) and not torch.allclose(separate, separate.T, atol=0.1)

# %% [markdown] lang="en" key="projections-say"
r"""
With one shared matrix the table is symmetric: a pronoun cannot match its noun better than the noun matches the pronoun. Two matrices lift this restriction. Since one sequence plays all three roles, such attention is called *self-attention*.
"""

# %% [markdown] lang="ru" key="projections-say" en="8d5b535d"
r"""
С одной общей матрицей таблица симметрична: местоимение не может подходить к своему существительному лучше, чем существительное — к местоимению. Две матрицы снимают это ограничение. Все три роли играет одна и та же последовательность, поэтому такое внимание называют *самовниманием*.
"""

# %% [markdown] lang="en" key="cost-ask"
r"""
### What it costs

The table has a row and a column for every token. Double the text, and what happens to the table? Count the pairs and the multiplications for width 64, for three lengths.
"""

# %% [markdown] lang="ru" key="cost-ask" en="35fef035"
r"""
### Сколько это стоит

В таблице по строке и по столбцу на каждый токен. Удвойте текст — что станет с таблицей? Посчитаем пары и умножения при ширине 64 для трёх длин.
"""

# %% key="attention-cost"
for length in (512, 1_024, 2_048):
    pairs = length * length
    multiplications = 2 * 64 * pairs
    print(f"{length=:5} {pairs=:9,} {multiplications=:11,}")

# %% [markdown] lang="en" key="attention-cost-say"
r"""
Twice the length, four times the pairs. Each pair costs 64 multiplications to compare and 64 to mix the values, and once a scaling, a mask and an exponential; everything outside attention grows in proportion to the length. Module 4 measures where the square begins to matter.
"""

# %% [markdown] lang="ru" key="attention-cost-say" en="864bf25f"
r"""
Вдвое длиннее текст — вчетверо больше пар. Каждая пара стоит 64 умножения при сравнении и ещё 64 при смешивании значений, а заодно деление, маску и экспоненту; всё, что вне внимания, растёт пропорционально длине. С какой длины этот квадрат начинает сказываться, мы измерим в модуле 4.
"""

# %% [markdown] lang="en" key="scaling-ask"
r"""
## 2. Why divide by the square root of $d_k$?

Suppose the numbers in $q$ and $k$ are independent, with mean 0 and variance 1. Each product $q_c k_c$ then has variance 1 too, and variances of independent terms add up:

$$\mathrm{Var}(q \cdot k) = \sum_{c=1}^{d_k} \mathrm{Var}(q_c k_c) = d_k.$$

With 64 features a typical match is $\sqrt{64} = 8$ away from zero. Dividing by $\sqrt{d_k}$ brings the variance back to 1. That is a claim about numbers, so it can be measured: `score_variance` draws many random pairs and returns both variances.
"""

# %% [markdown] lang="ru" key="scaling-ask" en="5ab44839"
r"""
## 2. Зачем делить на корень из $d_k$?

Пусть числа в $q$ и $k$ независимы, со средним 0 и дисперсией 1. Тогда у каждого произведения $q_c k_c$ дисперсия тоже 1, а дисперсии независимых слагаемых складываются:

$$\mathrm{Var}(q \cdot k) = \sum_{c=1}^{d_k} \mathrm{Var}(q_c k_c) = d_k.$$

При 64 признаках типичное совпадение отстоит от нуля на $\sqrt{64} = 8$. Деление на $\sqrt{d_k}$ возвращает дисперсию к 1. Это утверждение о числах — значит, его можно проверить измерением: `score_variance` берёт много случайных пар и возвращает обе дисперсии.
"""

# %% key="score-variance"
from course_lib.scaling import score_variance

# %% key="score-variance-use"
promise = reference["scaling_experiment"]
unscaled, scaled = score_variance(promise["d_k"], promise["samples"], seed=promise["seed"])
print(f"{unscaled=:.2f} {scaled=:.3f}")
assert abs(unscaled / promise["unscaled_variance_target"] - 1) < promise["relative_tolerance"]
assert abs(scaled / promise["scaled_variance_target"] - 1) < promise["relative_tolerance"]

# %% [markdown] lang="en" key="score-variance-say"
r"""
Over 50,000 random pairs the variance is within 8% of the theory, before and after scaling. One width could be luck, so the picture repeats the experiment for eight widths. Look for two things: the slope of the upper line, and the flatness of the lower one.
"""

# %% [markdown] lang="ru" key="score-variance-say" en="81fb2f46"
r"""
По 50 000 случайных пар дисперсия отличается от теоретической меньше чем на 8 % — и до деления, и после. С одной шириной могло и повезти, поэтому на рисунке опыт повторён для восьми. Посмотрите на две вещи: каков наклон верхней линии и горизонтальна ли нижняя.
"""

# %% key="variance-data"
widths = [2**power for power in range(1, 9)]
variances = [score_variance(width, 4_000, seed=seed) for width in widths]

# %% key="drawing" role="library"
from course_lib.plots.show import show_figure
from course_lib.plots.variance import draw_variance

# %% lang="en" key="variance-figure"
figure = draw_variance(
    widths,
    [unscaled for unscaled, _ in variances],
    [scaled for _, scaled in variances],
    title="Variance of attention scores",
    x_label="key width d_k",
    y_label="variance",
    series_labels=("q · k", "q · k / √d_k"),
    theory_labels=("theory: d_k", "theory: 1"),
)
show_figure(
    figure,
    name="variance",
    alt="Log-log plot of score variance against key width from 2 to 256: without the "
    "division it climbs along the line d_k; with the division it stays on the line 1.",
)

# %% lang="ru" key="variance-figure" en="10486d1c"
figure = draw_variance(
    widths,
    [unscaled for unscaled, _ in variances],
    [scaled for _, scaled in variances],
    title="Дисперсия оценок внимания",
    x_label="ширина ключа d_k",
    y_label="дисперсия",
    series_labels=("q · k", "q · k / √d_k"),
    theory_labels=("теория: d_k", "теория: 1"),
)
show_figure(
    figure,
    name="variance",
    alt="Дисперсия оценок при ширине ключа от 2 до 256, обе оси логарифмические: без деления "
    "она растёт вдоль прямой d_k, после деления остаётся на прямой 1.",
)

# %% [markdown] lang="en" key="variance-say"
r"""
The upper line has slope 1: variance is proportional to $d_k$. The lower one is flat at 1.
"""

# %% [markdown] lang="ru" key="variance-say" en="7039cad7"
r"""
У верхней линии наклон 1: дисперсия пропорциональна $d_k$. Нижняя идёт горизонтально на уровне 1.
"""

# %% [markdown] lang="en" key="progress-ask"
r"""
### A notebook that keeps score

Nine exercises wait along the way. A *warm-up* takes minutes, a *core* exercise is what its section is for, a *stretch* one may cost an evening. Hints lead from vague to concrete: open the next only when the last has stopped helping.

`Progress` writes what you achieve into a small file beside the notebook, `module_03.progress.json`. It survives restarts and never leaves your machine. To begin afresh, delete it and restart the kernel.
"""

# %% [markdown] lang="ru" key="progress-ask" en="697e6e47"
r"""
### Блокнот, который ведёт счёт

По дороге вас ждут девять упражнений. *Разминка* займёт несколько минут, *основное* — то, ради чего написан раздел, а упражнение *со звёздочкой* может отнять и вечер. Подсказки ведут от намёка к подробностям: открывайте следующую, только когда предыдущая перестала помогать.

Свои успехи вы найдёте рядом с блокнотом, в маленьком файле `module_03.progress.json`: его ведёт `Progress`. Перезапуск ему не страшен, и никуда с вашего компьютера он не уходит. Чтобы начать заново, удалите файл и перезапустите ядро.
"""

# %% key="progress-code" role="library"
from course_lib.report import ContractReport, ContractViolation
from course_lib.practice.progress import Progress

# %% lang="en" key="progress"
progress = Progress(
    "module_03",
    {
        "mask-offset": ("warm-up", "1. Write the causal mask"),
        "attention": ("core", "2. Write attention yourself"),
        "hardened": ("stretch", "3. Harden it"),
        "planted": ("stretch", "4. Find the planted bug"),
        "merge-heads": ("core", "5. Merge the heads"),
        "nll": ("core", "6. The loss of a padded batch"),
        "gallery": ("warm-up", "7. Predict before you run"),
        "sampling": ("core", "8. Write top-k and top-p"),
        "contract": ("stretch", "9. Write a contract"),
    },
)
progress.show()

# %% lang="ru" key="progress" en="00a69d22"
progress = Progress(
    "module_03",
    {
        "mask-offset": ("warm-up", "1. Напишите причинную маску"),
        "attention": ("core", "2. Напишите внимание сами"),
        "hardened": ("stretch", "3. Укрепите внимание"),
        "planted": ("stretch", "4. Найдите подброшенную ошибку"),
        "merge-heads": ("core", "5. Соедините головы"),
        "nll": ("core", "6. Потери на батче с паддингом"),
        "gallery": ("warm-up", "7. Сначала предскажите"),
        "sampling": ("core", "8. Напишите top-k и top-p"),
        "contract": ("stretch", "9. Напишите контракт"),
    },
)
progress.show()

# %% [markdown] lang="en" key="progress-say"
r"""
On a first visit all nine are open. Now and then a cell asks you to *predict* what the next one will show: choose or type your guess, or, where nothing can be clicked, write it into the call as `guess=...`. A wrong guess costs nothing; it shows where intuition fails.
"""

# %% [markdown] lang="ru" key="progress-say" en="9817be7f"
r"""
Если вы здесь впервые, все девять ещё впереди. Иногда ячейка попросит *предсказать*, что покажет следующая: выберите или впишите ответ, а там, где нажимать не на что, допишите его в вызов: `guess=...`. Промах ничем не грозит, зато видно, где подводит интуиция.
"""

# %% [markdown] lang="en" key="saturation-ask"
r"""
### Break it: what large scores do

Why does a variance of 64 hurt? Because the softmax exponentiates differences. Take 1,000 random queries, 16 random keys of width 64, and ask how much of its attention an average query gives to its favourite key. An even split would give $1/16$.
"""

# %% [markdown] lang="ru" key="saturation-ask" en="ddc9ada7"
r"""
### Сломаем: что делают большие оценки

Чем плоха дисперсия 64? Тем, что softmax берёт экспоненту от разностей. Возьмём 1000 случайных запросов, 16 случайных ключей ширины 64 и посмотрим, какую долю внимания запрос в среднем отдаёт любимому ключу. При дележе поровну вышло бы $1/16$.
"""

# %% lang="en" key="predict-favourite"
progress.predict(
    "favourite",
    "What share of its attention (0 to 1) goes to the favourite key if scores are not divided?",
)

# %% lang="ru" key="predict-favourite" en="fca87aab"
progress.predict(
    "favourite",
    "Какая доля внимания (от 0 до 1) достанется любимому ключу, если оценки не делить?",
)

# %% key="saturation"
generator = torch.Generator().manual_seed(seed)
queries = torch.randn(1_000, 64, generator=generator, dtype=torch.float64)
keys = torch.randn(16, 64, generator=generator, dtype=torch.float64)
even_split = 1 / 16
favourites = []
for divisor in (1.0, math.sqrt(64)):
    shares = torch.softmax(queries @ keys.T / divisor, dim=-1)
    favourite = shares.max(dim=-1).values.mean().item()
    favourites.append(favourite)
    print(f"{divisor=:.0f} {favourite=:.2f} {even_split=:.2f}")
progress.compare("favourite", round(favourites[0], 2), within=0.1)

# %% [markdown] lang="en" key="saturation-say"
r"""
Without the division 83% of the attention goes to one key before anything has been learned; with it, 23%. What does that do to learning? Measure the gradient that reaches each query: below what size does the weakest tenth stay, and what size does the strongest tenth exceed?
"""

# %% [markdown] lang="ru" key="saturation-say" en="b5b07bdb"
r"""
Без деления 83 % внимания достаётся одному ключу ещё до всякого обучения, с делением — 23 %. Как это скажется на обучении? Измерим норму градиента, который доходит до каждого запроса: ниже какой величины она у слабейших десяти процентов и выше какой — у сильнейших десяти?
"""

# %% key="saturation-gradient"
for divisor in (1.0, math.sqrt(64)):
    asked = queries.clone().requires_grad_()
    mixed = torch.softmax(asked @ keys.T / divisor, dim=-1) @ keys
    sizes = torch.autograd.grad(mixed.sum(), asked)[0].norm(dim=-1)
    low, high = (sizes.quantile(share).item() for share in (0.1, 0.9))
    print(f"{divisor=:.0f} {low=:.3f} {high=:.1f} {high / low=:.0f}")

# %% [markdown] lang="en" key="saturation-gradient-say"
r"""
Saturation does not make every gradient small; it makes them wild. Some queries learn next to nothing while others lurch, a thousandfold apart; with the division the two sizes differ about twofold. And nothing crashes in either case: a missing scale, like the wrong axis in section 1, is a *silent bug*, wrong numbers without an error.
"""

# %% [markdown] lang="ru" key="saturation-gradient-say" en="6a8cc3b1"
r"""
Насыщение не делает все градиенты маленькими — оно делает их неуправляемыми. Одни запросы почти не учатся, другие бросает из стороны в сторону, и разрыв тысячекратный; с делением эти две величины различаются примерно вдвое. И ни в том ни в другом случае ничего не падает: пропущенное деление, как и неверная ось в разделе 1, — это *тихая ошибка*: числа неверны, а сообщения об ошибке нет.
"""

# %% [markdown] lang="en" key="overflow-ask"
r"""
### Break it: the softmax that overflows

The formula of the softmax is innocent on paper and dangerous in floating point. What does $e^{1000}$ give? And does the answer change if we first subtract the largest score, which cancels in the fraction?
"""

# %% [markdown] lang="ru" key="overflow-ask" en="73a9c37c"
r"""
### Сломаем: softmax, который переполняется

Формула softmax на бумаге невинна, а в арифметике с плавающей точкой опасна. Чему равно $e^{1000}$? И изменится ли ответ, если сначала вычесть наибольшую оценку — ведь в дроби она сокращается?
"""

# %% key="overflow"
large = torch.tensor([1000.0, 999.0])
naive = torch.exp(large) / torch.exp(large).sum()
shifted = torch.exp(large - large.max())
stable = shifted / shifted.sum()
print(naive, stable)
assert naive.isnan().all() and torch.allclose(stable, torch.tensor([1.0, 0.0]).softmax(dim=0))

# %% [markdown] lang="en" key="overflow-say"
r"""
Infinity over infinity is `nan`. The shifted version is right, because only differences matter: 1000 and 999 behave just like 1 and 0. Library softmaxes shift for you; hand-written ones have forgotten to, even in real projects ([pytorch_geometric#53](https://github.com/pyg-team/pytorch_geometric/issues/53)).
"""

# %% [markdown] lang="ru" key="overflow-say" en="5131593b"
r"""
Бесконечность, делённая на бесконечность, — это `nan`. Вариант со сдвигом верен: важны только разности, и 1000 с 999 ведут себя так же, как 1 с 0. Библиотечные реализации softmax делают сдвиг сами, а в написанных вручную его забывают сделать, причём и в настоящих проектах ([pytorch_geometric#53](https://github.com/pyg-team/pytorch_geometric/issues/53)).
"""

# %% [markdown] lang="en" key="masks-ask"
r"""
## 3. Masks: who may read whom

A language model predicts the next token, so while it trains, position 3 must not read position 4: the answer is written there. A *mask* says who may read whom. Ours is always called `allowed`, and `True` always means "may read".
"""

# %% [markdown] lang="ru" key="masks-ask" en="d0683af1"
r"""
## 3. Маски: кто кого может читать

Языковая модель предсказывает следующий токен, поэтому при обучении позиция 3 не должна читать позицию 4: там записан ответ. Кто кого может читать, говорит *маска*. У нас она всегда называется `allowed` («разрешено»), и `True` всегда значит «можно читать».
"""

# %% [markdown] lang="en" key="causal-ask"
r"""
### The causal mask

Query $i$ may read key $j$ when the key is not in its future: $j \le i$. Count in your head how many of the 25 pairs among five tokens are allowed.
"""

# %% [markdown] lang="ru" key="causal-ask" en="c4bdcd52"
r"""
### Причинная маска

Запрос $i$ может читать ключ $j$, если ключ не в его будущем: $j \le i$. Сосчитайте в уме, сколько из 25 пар пяти токенов разрешено.
"""

# %% [markdown] lang="en" key="ex-mask-statement"
r"""
### Exercise 1 (warm-up). Write the causal mask

Write the function from its meaning, before you read ours: query `i` of the call stands at absolute position `query_offset + i`, and it may read every key at that position or before. A negative offset has no meaning, so raise a `ValueError`.

The check holds it to a *contract* and stops nothing. When a promise is broken, it shows what was demanded, what was measured, a small input on which it fails, and the mistake's name if it knows it.
"""

# %% [markdown] lang="ru" key="ex-mask-statement" en="a7007e29"
r"""
### Упражнение 1 (разминка). Напишите причинную маску

Напишите функцию, исходя из её смысла и не заглядывая в нашу: запрос `i` этого вызова стоит на абсолютной позиции `query_offset + i` и может читать любой ключ на этой позиции и раньше. Отрицательный сдвиг не имеет смысла: вызовите исключение `ValueError`.

Проверка сверяет функцию с *контрактом* и ничего не останавливает. Если обещание нарушено, она покажет, что требовалось, что измерено, небольшой вход, на котором это видно, и название ошибки, если узнала её.
"""

# %% key="ex-mask" role="stub" exercise="mask-offset"
def my_causal_allowed(t_q: int, t_k: int, *, query_offset: int = 0, device=None) -> Tensor:
    # en: return a bool tensor [t_q, t_k]; True = may read
    # ru: верните булев тензор [t_q, t_k]; True — можно читать
    raise NotImplementedError

# %% key="mask-contract" role="library"
from course_lib.contracts import check_causal_mask_contract

# %% key="ex-mask-check" role="check" exercise="mask-offset"
progress.check("mask-offset", check_causal_mask_contract, my_causal_allowed)

# %% [markdown] lang="en" key="ex-mask-hint-1" role="hint" exercise="mask-offset"
r"""
Write down two small vectors first: the positions of the queries and the positions of the keys. Which of them does the offset shift?
"""

# %% [markdown] lang="ru" key="ex-mask-hint-1" en="29eb6bed" role="hint" exercise="mask-offset"
r"""
Сначала запишите два коротких вектора: позиции запросов и позиции ключей. К какому из них прибавляется сдвиг?
"""

# %% [markdown] lang="en" key="ex-mask-hint-2" role="hint" exercise="mask-offset"
r"""
`torch.arange(t_q) + query_offset` are the queries' positions. Compare a column of shape `[t_q, 1]` with a row of shape `[1, t_k]`, and broadcasting makes the table.
"""

# %% [markdown] lang="ru" key="ex-mask-hint-2" en="a4a56ada" role="hint" exercise="mask-offset"
r"""
`torch.arange(t_q) + query_offset` — позиции запросов. Сравните столбец формы `[t_q, 1]` со строкой формы `[1, t_k]` — таблицу построит транслирование (broadcasting).
"""

# %% key="ex-mask-solution" role="solution" exercise="mask-offset"
def my_causal_allowed(t_q: int, t_k: int, *, query_offset: int = 0, device=None) -> Tensor:
    if query_offset < 0:
        raise ValueError(f"query_offset={query_offset} is negative")
    query_positions = query_offset + torch.arange(t_q, device=device)
    return torch.arange(t_k, device=device)[None, :] <= query_positions[:, None]

# %% key="causal-allowed" role="ours"
from course_lib.masks import causal_allowed

# %% key="causal-allowed-use"
causal_allowed = progress.adopt("mask-offset", my_causal_allowed, causal_allowed)
print(causal_allowed(5, 5).int())
assert causal_allowed(5, 5).sum() == 15

# %% [markdown] lang="en" key="causal-say"
r"""
The diagonal is allowed (a token may read itself) and everything above it is closed: $1+2+3+4+5 = 15$ pairs. `causal_allowed` is yours from here on, if it passed. Its `query_offset` is the absolute position of the first query, and it matters as soon as queries and keys do not start together.
"""

# %% [markdown] lang="ru" key="causal-say" en="59bde4ac"
r"""
Диагональ разрешена (токен может читать себя), всё выше неё закрыто: $1+2+3+4+5 = 15$ пар. С этого места `causal_allowed` — ваша, если она прошла проверку. Её `query_offset` — это сдвиг запросов, абсолютная позиция первого из них; он становится важен, как только запросы и ключи начинаются с разных позиций.
"""

# %% [markdown] lang="en" key="offset-ask"
r"""
### One query, five keys

While generating, a model that keeps its old keys asks one new query, at position 4, about keys 0 to 4. How many of them should this query read? The cell prints the mask with offset 0 and with offset 4.
"""

# %% [markdown] lang="ru" key="offset-ask" en="d53e23d0"
r"""
### Один запрос, пять ключей

При генерации модель, которая хранит старые ключи, задаёт один новый запрос: он стоит на позиции 4, а ключи — на позициях от 0 до 4. Сколько ключей он должен прочесть? Ячейка печатает маску при сдвиге 0 и при сдвиге 4.
"""

# %% lang="en" key="predict-offset-zero"
progress.predict("offset-zero", "With offset 0, how many of the five keys does the new query read?")

# %% lang="ru" key="predict-offset-zero" en="5e344de5"
progress.predict("offset-zero", "Сколько из пяти ключей прочтёт новый запрос при сдвиге 0?")

# %% key="offset-use"
for offset in (0, 4):
    print(f"{offset=}", causal_allowed(1, 5, query_offset=offset).int().tolist())
assert causal_allowed(1, 5, query_offset=0).sum() == 1
assert causal_allowed(1, 5, query_offset=4).sum() == 5
progress.compare("offset-zero", causal_allowed(1, 5, query_offset=0).sum().item())

# %% [markdown] lang="en" key="offset-say"
r"""
With offset 0 the newest token sees only the oldest one: shapes fit, nothing fails, and the model forgets the whole conversation. This is the classic bug of key-value caches; a well-loved course had to mend the mask in its own cache chapter ([LLMs-from-scratch#697](https://github.com/rasbt/LLMs-from-scratch/issues/697)).
"""

# %% [markdown] lang="ru" key="offset-say" en="1b94338b"
r"""
При сдвиге 0 самый новый токен видит лишь самый старый: формы сходятся, ничего не падает, а модель забывает весь разговор. Это классическая ошибка KV-кэшей: даже в одном всеми любимом курсе маску в главе о кэше пришлось чинить ([LLMs-from-scratch#697](https://github.com/rasbt/LLMs-from-scratch/issues/697)).
"""

# %% [markdown] lang="en" key="mask-before-ask"
r"""
### A mask works before the softmax

A closed pair gets the score $-\infty$, so that $e^{-\infty} = 0$ and the remaining shares still sum to 1. Let us give our three tokens a causal mask: the sun may read only itself, the moon two tokens, the eclipse all three.
"""

# %% [markdown] lang="ru" key="mask-before-ask" en="4f01813d"
r"""
### Маска действует до softmax

Закрытая пара получает оценку $-\infty$: тогда $e^{-\infty} = 0$, а сумма оставшихся долей по-прежнему равна 1. Дадим нашим трём токенам причинную маску: солнце читает только себя, луна — два токена, затмение — все три.
"""

# %% key="mask-before"
allowed = causal_allowed(3, 3)
masked = (q @ k.T / math.sqrt(2)).masked_fill(~allowed, -math.inf)
weights = torch.softmax(masked, dim=-1)
print(weights)
expected = torch.tensor(example["weights"], dtype=torch.float64)
assert (weights - expected).abs().max() < 1e-12

# %% [markdown] lang="en" key="mask-before-say"
r"""
The moon used to share its attention among three; now the eclipse's share has gone back to the two it may read, about 0.33 and 0.67. All nine numbers agree with the reference to $10^{-12}$. Row 2 is what it was: the last token never had a future to hide.
"""

# %% [markdown] lang="ru" key="mask-before-say" en="fcc805f4"
r"""
Раньше луна делила внимание на троих; теперь долю затмения поделили те двое, кого луна может читать: солнцу досталось примерно 0,33, ей самой — 0,67. Все девять чисел совпали с эталоном с точностью до $10^{-12}$. Строка 2 не изменилась: у последнего токена и не было будущего, которое надо скрывать.
"""

# %% [markdown] lang="en" key="mask-after-ask"
r"""
### Break it: mask after the softmax

It is tempting to compute the softmax first and then multiply by the mask. The forbidden weights are zero either way. The sun may read only itself, so change the eclipse's key: should the sun's row notice?
"""

# %% [markdown] lang="ru" key="mask-after-ask" en="b97d1ed1"
r"""
### Сломаем: маска после softmax

Так и тянет сначала вычислить softmax, а потом умножить его на маску. Запрещённые веса в обоих случаях нулевые. Солнце может читать только себя; изменим ключ затмения — должна ли строка солнца это заметить?
"""

# %% key="mask-after"
other_keys = k.clone()
other_keys[2] = torch.tensor([2.0, 0.0])
for some_keys in (k, other_keys):
    late = torch.softmax(q @ some_keys.T / math.sqrt(2), dim=-1) * allowed
    print(late[0], late.sum(dim=-1), sep="\n")
assert late[0, 0] < 0.3

# %% [markdown] lang="en" key="mask-after-say"
r"""
It does: 0.40 becomes 0.28. The hidden key is gone from the mixture but not from the denominator, so the future still speaks, and the first rows no longer sum to 1. No shape and no error reveals it.
"""

# %% [markdown] lang="ru" key="mask-after-say" en="9f095563"
r"""
Она замечает: 0,40 превращается в 0,28. Замаскированный ключ исчез из смеси, но не из знаменателя: будущее по-прежнему подаёт голос, а суммы первых строк уже не равны 1. Ни формы, ни сообщения об ошибке этого не выдадут.
"""

# %% [markdown] lang="en" key="finite-fill-ask"
r"""
### Break it: "minus ten thousand is infinite enough"

Many programs hide a pair by adding a large negative number instead of $-\infty$ ([transformers#10484](https://github.com/huggingface/transformers/issues/10484)). Give the hidden key a score of 20,000, far above the others. Which of the two masks holds?
"""

# %% [markdown] lang="ru" key="finite-fill-ask" en="7c8fe615"
r"""
### Сломаем: «минус десять тысяч — почти бесконечность»

Многие программы закрывают пару, прибавляя вместо $-\infty$ отрицательное число, большое по модулю ([transformers#10484](https://github.com/huggingface/transformers/issues/10484)). Дадим замаскированному ключу оценку 20 000, намного больше остальных. Какая из двух масок выдержит?
"""

# %% key="finite-fill"
loud = torch.tensor([1.0, 2.0, 20_000.0])
hidden = torch.tensor([False, False, True])
finite = torch.softmax(loud - 10_000.0 * hidden, dim=-1)
infinite = torch.softmax(loud.masked_fill(hidden, -math.inf), dim=-1)
print(finite, infinite, sep="\n")
assert finite[2] == 1.0 and infinite[2] == 0.0

# %% [markdown] lang="en" key="finite-fill-say"
r"""
The finite mask was outbid: all attention went to the hidden key. A large number works until a score is larger; minus infinity cannot be outbid, as long as one key stays open.
"""

# %% [markdown] lang="ru" key="finite-fill-say" en="c73fd920"
r"""
Конечная маска проиграла: всё внимание ушло замаскированному ключу. Большое число работает, пока оценка не окажется больше; минус бесконечность не перебить ничем, лишь бы один ключ оставался открытым.
"""

# %% [markdown] lang="en" key="mask-kinds-ask"
r"""
### Four masks you will meet

*Padding* is filler that makes the texts of a *batch* (texts processed together) equally long; its mask hides it. A *causal* mask hides the future. A language model on padded text needs *both*, joined by a logical "and". In *cross-attention* four queries of one text read six keys of another, here with the last key hidden.
"""

# %% [markdown] lang="ru" key="mask-kinds-ask" en="42c29e52"
r"""
### Четыре маски, которые вам встретятся

*Паддинг* (дополнение) — заполнитель, который уравнивает длины текстов в *батче* (так называют тексты, которые обрабатывают вместе), и маска его прячет. *Причинная* маска прячет будущее. Языковой модели на тексте с паддингом нужны *обе*, соединённые логическим «и». В *перекрёстном внимании* запросы одного текста читают ключи другого: на рисунке четыре запроса и шесть ключей, последний замаскирован.
"""

# %% key="mask-kinds"
real = torch.tensor([True, True, True, True, False])
padding = real.expand(5, 5)
causal = causal_allowed(5, 5)
cross = torch.tensor([True] * 5 + [False]).expand(4, 6)
four_masks = [mask.tolist() for mask in (padding, causal, padding & causal, cross)]

# %% key="drawing-grids" role="library"
from course_lib.plots.attention_map import draw_attention
from course_lib.plots.mask_panels import draw_masks

# %% lang="en" key="masks-figure"
figure = draw_masks(
    four_masks,
    panel_titles=("padding", "causal", "padding and causal", "cross-attention"),
    x_label="key",
    y_label="query",
    legend=("1: may read", "0: hidden"),
)
show_figure(
    figure,
    name="masks",
    alt="Four grids of ones and zeros. Padding: the last column is 0. Causal: ones on and below "
    "the diagonal. Both: causal with the last column 0. Cross-attention: 4 by 6, last column 0.",
)

# %% lang="ru" key="masks-figure" en="379d0790"
figure = draw_masks(
    four_masks,
    panel_titles=("паддинг", "причинная", "обе вместе", "перекрёстное внимание"),
    x_label="ключ",
    y_label="запрос",
    legend=("1: можно читать", "0: закрыто"),
)
show_figure(
    figure,
    name="masks",
    alt="Четыре сетки из единиц и нулей. Паддинг: последний столбец — нули. Причинная: единицы "
    "на диагонали и ниже. Обе: причинная с нулевым последним столбцом. Перекрёстное внимание: "
    "4 на 6, последний столбец — нули.",
)

# %% [markdown] lang="en" key="mask-kinds-say"
r"""
As drawn, padding hides *columns*: it says which keys are real. A mask turned on its side is a bug that shapes cannot reveal when queries and keys are equally many; the fourth grid would show it at once.
"""

# %% [markdown] lang="ru" key="mask-kinds-say" en="6f01e6b3"
r"""
На рисунке паддинг закрывает *столбцы*: маска говорит, какие ключи настоящие. Маска, повёрнутая набок, — ошибка, которую формы не выдадут, если запросов и ключей поровну; четвёртая сетка показала бы её сразу.
"""

# %% [markdown] lang="en" key="empty-ask"
r"""
### Break it: a row with nothing to read

Filler on the *left*, together with the causal mask, leaves the first queries nothing to read, and the softmax divides zero by zero. In the cell, row 0 is such a row, and the loss uses row 1 only. Is row 1 safe?
"""

# %% [markdown] lang="ru" key="empty-ask" en="7de5b6ed"
r"""
### Сломаем: строка, которой нечего читать

Если паддинг стоит *слева*, то вместе с причинной маской он не оставляет первым запросам ничего, и softmax делит ноль на ноль. В ячейке такова строка 0, а потери считаются только по строке 1. Пострадает ли строка 1?
"""

# %% lang="en" key="predict-empty-row"
progress.predict(
    "empty-row",
    "Row 0 divides zero by zero and is not in the loss. What happens to row 1?",
    {
        "safe": "nothing: its output and its gradient are right",
        "output": "its output becomes NaN",
        "gradient": "its output is right, its gradient becomes NaN",
    },
)

# %% lang="ru" key="predict-empty-row" en="9f949c47"
progress.predict(
    "empty-row",
    "Строка 0 делит ноль на ноль, но в потери не входит. Что будет со строкой 1?",
    {
        "safe": "ничего: верны и выход, и градиент",
        "output": "её выход станет NaN",
        "gradient": "выход верен, а градиент станет NaN",
    },
)

# %% key="empty-row"
real_on_the_right = torch.tensor([False, False, True, True])
left_padded = causal_allowed(4, 4) & real_on_the_right
print((~left_padded.any(dim=-1)).tolist())
features = torch.ones(2, 2, dtype=torch.float64, requires_grad=True)
bias = torch.tensor([[-math.inf, -math.inf], [0.0, 0.0]], dtype=torch.float64)
mixed = torch.softmax(features @ features.T + bias, dim=-1) @ features
mixed[1].sum().backward()
print(mixed.tolist(), features.grad.tolist(), sep="\n")
assert mixed[1].isfinite().all() and features.grad.isnan().any()
outcome = "gradient" if features.grad[1].isnan().any() else "safe"
progress.compare("empty-row", outcome if mixed[1].isfinite().all() else "output")

# %% [markdown] lang="en" key="empty-say"
r"""
The loss is finite and the gradient is `nan`: the dead row poisons everything it shares parameters with ([pytorch#41508](https://github.com/pytorch/pytorch/issues/41508), open since 2020). So our function will have a *policy* for fully masked rows: raise an error by default, or return exact zeros when you ask for it.
"""

# %% [markdown] lang="ru" key="empty-say" en="b827dd41"
r"""
Потери конечны, а градиент — `nan`: мёртвая строка отравляет всё, с чем у неё общие параметры ([pytorch#41508](https://github.com/pytorch/pytorch/issues/41508), не закрыто с 2020 года). Поэтому у нашей функции будет *правило* для полностью замаскированных строк: по умолчанию — ошибка, а по явной просьбе — точные нули.
"""

# %% [markdown] lang="en" key="mask-view-ask"
r"""
### See it move: paint a mask

`view_mask_painter` shows a mask and the weights that it leaves our three tokens. In a running notebook, press a cell to open or to hide it; on a page, choose one of the masks. Start from the causal one and open a single cell more, so that the sun may read the eclipse. How many rows of weights will change?
"""

# %% [markdown] lang="ru" key="mask-view-ask" en="0d3dc5b2"
r"""
### Посмотрите в движении: нарисуйте маску

`view_mask_painter` показывает маску и веса, которые она оставляет нашим трём токенам. В работающем блокноте нажмите на клетку, чтобы открыть её или закрыть; на странице сайта выберите одну из готовых масок. Начните с причинной и откройте ещё одну клетку: пусть солнце читает затмение. Сколько строк весов изменится?
"""

# %% key="mask-view-code" role="library"
from course_lib.views.mask_painter import view_mask_painter

# %% lang="en" key="mask-view-words" role="folded"
mask_words = {
    "mask": "Mask",
    "own_mask": "painted by you",
    "paint": "Press a cell to open it (1) or to hide it (0)",
    "mask_title": "who may read whom",
    "weights_title": "attention weights",
    "x_label": "key",
    "y_label": "query",
    "open": "1: may read",
    "hidden": "0: hidden",
    "empty": "empty row: nothing to read",
    "alt": "Two grids, the mask called {mask} and the weights it leaves. {rows}",
    "row": "{query} reads {reads}",
    "empty_row": "{query} may read nothing: weights {weight}",
}

# %% lang="ru" key="mask-view-words" en="91da7c2d" role="folded"
mask_words = {
    "mask": "Маска",
    "own_mask": "нарисована вами",
    "paint": "Нажмите на клетку, чтобы открыть её (1) или закрыть (0)",
    "mask_title": "кто кого читает",
    "weights_title": "веса внимания",
    "x_label": "ключ",
    "y_label": "запрос",
    "open": "1: можно читать",
    "hidden": "0: закрыто",
    "empty": "пустая строка: читать нечего",
    "alt": "Две сетки: маска «{mask}» и веса, которые она оставляет. {rows}",
    "row": "{query} читает: {reads}",
    "empty_row": "{query}: читать нечего, веса {weight}",
}

# %% lang="en" key="mask-view"
def weigh(allowed: list[list[bool]]) -> Tensor:
    scores = q @ k.T / math.sqrt(2)
    return torch.softmax(scores.masked_fill(~torch.tensor(allowed), -math.inf), dim=-1)


everything, past = torch.ones(3, 3, dtype=torch.bool), causal_allowed(3, 3)
presets = {
    "causal": past,
    "no mask": everything,
    "padding on the right": everything & torch.tensor([True, True, False]),
    "causal, padding on the left": past & torch.tensor([False, True, True]),
    "each reads itself": torch.eye(3, dtype=torch.bool),
}
view_mask_painter(
    weigh,
    {name: preset.tolist() for name, preset in presets.items()},
    token_labels=("sun", "moon", "eclipse"),
    words=mask_words,
)

# %% lang="ru" key="mask-view" en="b96fdd9c"
def weigh(allowed: list[list[bool]]) -> Tensor:
    scores = q @ k.T / math.sqrt(2)
    return torch.softmax(scores.masked_fill(~torch.tensor(allowed), -math.inf), dim=-1)


everything, past = torch.ones(3, 3, dtype=torch.bool), causal_allowed(3, 3)
presets = {
    "причинная": past,
    "без маски": everything,
    "паддинг справа": everything & torch.tensor([True, True, False]),
    "причинная, паддинг слева": past & torch.tensor([False, True, True]),
    "каждый читает себя": torch.eye(3, dtype=torch.bool),
}
view_mask_painter(
    weigh,
    {name: preset.tolist() for name, preset in presets.items()},
    token_labels=("солнце", "луна", "затмение"),
    words=mask_words,
)

# %% [markdown] lang="en" key="mask-view-say"
r"""
One: every query shares out its own unit and knows nothing of the others. Now compare "no mask" with padding on the right: the eclipse's column empties, and its shares go to the other two in every row. With padding on the left the sun has nothing to read, and its weights are `nan`, as in the cell before: that row still waits for its policy.
"""

# %% [markdown] lang="ru" key="mask-view-say" en="b0ed9f20"
r"""
Одна: каждый запрос делит свою единицу сам и о чужих ничего не знает. Теперь сравните «без маски» и «паддинг справа»: столбец затмения опустел, и в каждой строке его доля досталась двум остальным. При паддинге слева солнцу читать нечего, и веса у него — `nan`, как и в ячейке перед рисунком: эта строка ещё ждёт своего правила.
"""

# %% [markdown] lang="en" key="sdpa-ask"
r"""
## 4. Scaled dot-product attention, safely

Here is the whole formula:

$$\mathrm{Attention}(Q, K, V) = \mathrm{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}} + M\right) V,$$

where $M$ is $0$ for allowed pairs and $-\infty$ for hidden ones. With $T_q$ queries and $T_k$ keys, the shapes are $Q: T_q \times d_k$, $K: T_k \times d_k$, $V: T_k \times d_v$. `AttentionResult` holds every intermediate, so that each can be checked.
"""

# %% [markdown] lang="ru" key="sdpa-ask" en="177a5a1c"
r"""
## 4. Масштабированное скалярное внимание: надёжный вариант

Вот формула целиком:

$$\mathrm{Attention}(Q, K, V) = \mathrm{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}} + M\right) V,$$

где $M$ — это $0$ для разрешённых пар и $-\infty$ для закрытых. При $T_q$ запросах и $T_k$ ключах формы таковы: $Q: T_q \times d_k$, $K: T_k \times d_k$, $V: T_k \times d_v$. `AttentionResult` хранит все промежуточные результаты, чтобы каждый можно было проверить.
"""

# %% key="attention-result"
from course_lib.attention import AttentionResult

# %% [markdown] lang="en" key="contract-ask"
r"""
### A contract you can read

Checking a few values is not enough: many wrong attentions agree with the right one on kind inputs. A *contract* is a function that takes any implementation and holds it to independent references, properties and forbidden calls. This one fits on two screens. It begins with a judge, `attention_by_loops`: one number at a time, slow, and plainly right.
"""

# %% [markdown] lang="ru" key="contract-ask" en="8af5bd16"
r"""
### Контракт, который можно прочесть

Сверить несколько значений мало: на удобных входах многие неверные реализации совпадают с верной. *Контракт* — это функция, которая принимает любую реализацию, сверяет её с независимыми эталонами, проверяет свойства и запрещённые вызовы. Этот умещается на двух экранах. Начинается он с судьи, `attention_by_loops`: по одному числу за раз, медленно и заведомо верно.
"""

# %% lang="en" key="contract-judge"
def attention_by_loops(q: Tensor, k: Tensor, v: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
    weights = torch.zeros(len(q), len(k), dtype=q.dtype)
    for i, query in enumerate(q):
        readable = [j for j in range(len(k)) if allowed[i, j]]
        scores = [float(query @ k[j]) / math.sqrt(len(query)) for j in readable]
        parts = [math.exp(score - max(scores)) for score in scores]
        for j, part in zip(readable, parts, strict=True):
            weights[i, j] = part / math.fsum(parts)
    return weights, weights @ v


def same(got: Tensor, expected: Tensor, promise: str) -> float:
    error = (got - expected).abs().max().item() if got.shape == expected.shape else math.inf
    assert error < 1e-9, f"{promise}: off by {error:.2g}"
    return error

# %% lang="ru" key="contract-judge" en="c5c4acf1"
def attention_by_loops(q: Tensor, k: Tensor, v: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
    weights = torch.zeros(len(q), len(k), dtype=q.dtype)
    for i, query in enumerate(q):
        readable = [j for j in range(len(k)) if allowed[i, j]]
        scores = [float(query @ k[j]) / math.sqrt(len(query)) for j in readable]
        parts = [math.exp(score - max(scores)) for score in scores]
        for j, part in zip(readable, parts, strict=True):
            weights[i, j] = part / math.fsum(parts)
    return weights, weights @ v


def same(got: Tensor, expected: Tensor, promise: str) -> float:
    error = (got - expected).abs().max().item() if got.shape == expected.shape else math.inf
    assert error < 1e-9, f"{promise}: расхождение {error:.2g}"
    return error

# %% [markdown] lang="en" key="contract-values-say"
r"""
The first clauses are arithmetic. All sizes differ, so that no axis can pass for another; the numbers are small and large; the mask comes in three forms. `same` says which promise is broken, and by how much. And the order of the keys must not matter.
"""

# %% [markdown] lang="ru" key="contract-values-say" en="b046ea3c"
r"""
Первые пункты — арифметика. Все размеры разные, чтобы ни одна ось не сошла за другую; числа и маленькие, и большие; маска бывает трёх видов. `same` говорит, какое обещание нарушено и насколько. И порядок ключей не должен ничего значить.
"""

# %% lang="en" key="contract-values"
def check_values(attention, draw) -> float:
    q, k, v = draw(3, 5), draw(4, 5), draw(4, 2)
    masks = [None, causal_allowed(3, 4, query_offset=1), torch.tensor([True, False, True, True])]
    for size, allowed in itertools.product((1.0, 100.0), masks):
        full = torch.ones(3, 4, dtype=torch.bool) if allowed is None else allowed.expand(3, 4)
        weights, output = attention_by_loops(q * size, k * size, v, full)
        result = attention(q * size, k * size, v, allowed)
        same(result.weights, weights, "weights: softmax of q·k / √d_k")
        error = same(result.output, output, "output: weights @ v")
        assert (result.weights[~full] == 0).all(), "a hidden key weighs exactly 0"
        assert (result.scores[~full] == -math.inf).all(), "a hidden score is -inf"
    order = torch.tensor([2, 0, 3, 1])
    same(attention(q, k[order], v[order]).output, attention(q, k, v).output, "order of the keys")
    return error

# %% lang="ru" key="contract-values" en="2f4d1b46"
def check_values(attention, draw) -> float:
    q, k, v = draw(3, 5), draw(4, 5), draw(4, 2)
    masks = [None, causal_allowed(3, 4, query_offset=1), torch.tensor([True, False, True, True])]
    for size, allowed in itertools.product((1.0, 100.0), masks):
        full = torch.ones(3, 4, dtype=torch.bool) if allowed is None else allowed.expand(3, 4)
        weights, output = attention_by_loops(q * size, k * size, v, full)
        result = attention(q * size, k * size, v, allowed)
        same(result.weights, weights, "веса — softmax от q·k / √d_k")
        error = same(result.output, output, "output — это weights @ v")
        assert (result.weights[~full] == 0).all(), "вес замаскированного ключа — ровно 0"
        assert (result.scores[~full] == -math.inf).all(), "оценка замаскированного ключа — -inf"
    order = torch.tensor([2, 0, 3, 1])
    same(attention(q, k[order], v[order]).output, attention(q, k, v).output, "порядок ключей")
    return error

# %% [markdown] lang="en" key="contract-gradients-say"
r"""
A function can return the right values and still pass wrong gradients back, so these are compared with the library's. And an item of a batch must get what it gets alone, even where only `v` and the mask have a batch axis.
"""

# %% [markdown] lang="ru" key="contract-gradients-say" en="ef0bc3a2"
r"""
Функция может вернуть верные значения и всё же передать назад неверные градиенты, поэтому их мы сравним с библиотечными. А элемент батча должен получить то же, что и в одиночку, даже если ось батча есть лишь у `v` и у маски.
"""

# %% lang="en" key="contract-gradients"
def check_gradients(attention, draw) -> float:
    q, k, v = (draw(2, 3, width).requires_grad_() for width in (5, 5, 4))
    mine = attention(q, k, v, causal_allowed(3, 3)).output.square().sum()
    theirs = F.scaled_dot_product_attention(q, k, v, causal_allowed(3, 3)).square().sum()
    slopes = zip(*(torch.autograd.grad(loss, (q, k, v)) for loss in (mine, theirs)), strict=True)
    return max(same(got, expected, "gradients, as the library's") for got, expected in slopes)


def check_batch(attention, draw) -> None:
    q, k, v = draw(3, 5), draw(4, 5), draw(2, 4, 2)
    allowed = torch.tensor([[True, True, False, False], [True, False, True, True]])[:, None]
    output = attention(q, k, v, allowed).output
    for item in range(2):
        alone = attention(q, k, v[item], allowed[item]).output
        same(output[item], alone, "an item of a batch, as if alone")

# %% lang="ru" key="contract-gradients" en="d0a89d10"
def check_gradients(attention, draw) -> float:
    q, k, v = (draw(2, 3, width).requires_grad_() for width in (5, 5, 4))
    mine = attention(q, k, v, causal_allowed(3, 3)).output.square().sum()
    theirs = F.scaled_dot_product_attention(q, k, v, causal_allowed(3, 3)).square().sum()
    slopes = zip(*(torch.autograd.grad(loss, (q, k, v)) for loss in (mine, theirs)), strict=True)
    return max(same(got, expected, "градиенты — как у библиотеки") for got, expected in slopes)


def check_batch(attention, draw) -> None:
    q, k, v = draw(3, 5), draw(4, 5), draw(2, 4, 2)
    allowed = torch.tensor([[True, True, False, False], [True, False, True, True]])[:, None]
    output = attention(q, k, v, allowed).output
    for item in range(2):
        alone = attention(q, k, v[item], allowed[item]).output
        same(output[item], alone, "элемент батча — как в одиночку")

# %% [markdown] lang="en" key="contract-edges-say"
r"""
Two promises come from section 3. Queries that arrive late see what they saw in the full pass, if their offset is given; without it the difference is returned, to show that the clause could fail. And a row with nothing to read is refused, or zero with finite gradients.
"""

# %% [markdown] lang="ru" key="contract-edges-say" en="402cee5d"
r"""
Два обещания — из раздела 3. Запросы, которые приходят позже, видят то же, что в полном проходе, если указан их сдвиг; без сдвига возвращается разность — чтобы было видно, что пункт может и не выполниться. А строка, которой нечего читать, отвергается или даёт нули с конечными градиентами.
"""

# %% lang="en" key="contract-edges"
def check_cache(attention, draw) -> float:
    q, k, v = draw(5, 4), draw(5, 4), draw(5, 3)
    full = attention(q, k, v, causal_allowed(5, 5)).output[3:]
    late = attention(q[3:], k, v, causal_allowed(2, 5, query_offset=3)).output
    same(late, full, "queries 3 and 4 alone, with their offset")
    return (attention(q[3:], k, v, causal_allowed(2, 5)).output - full).abs().max().item()


def check_empty_rows(attention, draw) -> None:
    q, k, v = (draw(2, 3).requires_grad_() for _ in range(3))
    allowed = torch.tensor([[False, False], [True, True]])
    expect_raises(ValueError, attention, q, k, v, allowed)
    expect_raises(TypeError, attention, q, k, v, allowed.double())
    result = attention(q, k, v, allowed, empty_row="zero")
    assert result.empty_rows.tolist() == [True, False] and not result.output[0].any(), "zeros"
    slopes = torch.autograd.grad(result.output.sum(), (q, k, v))
    assert all(slope.isfinite().all() for slope in slopes), "gradients of an empty row are finite"

# %% lang="ru" key="contract-edges" en="be2574ca"
def check_cache(attention, draw) -> float:
    q, k, v = draw(5, 4), draw(5, 4), draw(5, 3)
    full = attention(q, k, v, causal_allowed(5, 5)).output[3:]
    late = attention(q[3:], k, v, causal_allowed(2, 5, query_offset=3)).output
    same(late, full, "запросы 3 и 4 отдельно, со своим сдвигом")
    return (attention(q[3:], k, v, causal_allowed(2, 5)).output - full).abs().max().item()


def check_empty_rows(attention, draw) -> None:
    q, k, v = (draw(2, 3).requires_grad_() for _ in range(3))
    allowed = torch.tensor([[False, False], [True, True]])
    expect_raises(ValueError, attention, q, k, v, allowed)
    expect_raises(TypeError, attention, q, k, v, allowed.double())
    result = attention(q, k, v, allowed, empty_row="zero")
    assert result.empty_rows.tolist() == [True, False] and not result.output[0].any(), "нули"
    slopes = torch.autograd.grad(result.output.sum(), (q, k, v))
    assert all(slope.isfinite().all() for slope in slopes), "градиенты пустой строки конечны"

# %% key="contract-whole"
def check_attention_contract(attention) -> dict[str, float]:
    generator = torch.Generator().manual_seed(seed)
    draw = functools.partial(torch.randn, generator=generator, dtype=torch.float64)
    report = {"output_error": check_values(attention, draw)}
    report["gradient_error"] = check_gradients(attention, draw)
    check_batch(attention, draw)
    report["wrong_cache_mask"] = check_cache(attention, draw)
    check_empty_rows(attention, draw)
    return report


short_contract = check_attention_contract

# %% [markdown] lang="en" key="ex-attention-statement"
r"""
### Exercise 2 (core). Write attention yourself

Write the function before you read ours, and return an `AttentionResult` with `output`, `weights`, `scores` and `empty_rows`. The contract that you have just read will tell you which promise is still broken; let it lead you from one to the next. Begin with the arithmetic, then the mask, then the rows with nothing to read.
"""

# %% [markdown] lang="ru" key="ex-attention-statement" en="70908345"
r"""
### Упражнение 2 (основное). Напишите внимание сами

Напишите функцию, не заглядывая в нашу, и верните `AttentionResult` с полями `output`, `weights`, `scores` и `empty_rows`. Какое обещание ещё нарушено, скажет контракт, который вы только что прочли: идите за ним от одного к другому. Начните с арифметики, затем маска, затем строки, которым нечего читать.
"""

# %% key="ex-attention" role="stub" exercise="attention"
def my_attention(q, k, v, allowed=None, *, empty_row="error"):
    # en: q [..., T_q, d_k], k [..., T_k, d_k], v [..., T_k, d_v]; allowed: bool, True = may read
    # ru: q [..., T_q, d_k], k [..., T_k, d_k], v [..., T_k, d_v]; allowed: bool, True — можно читать
    raise NotImplementedError

# %% key="ex-attention-check" role="check" exercise="attention"
progress.check("attention", short_contract, my_attention)

# %% [markdown] lang="en" key="ex-attention-hint-1" role="hint" exercise="attention"
r"""
Begin without a mask: three lines, compare, normalise, mix. Which axis does the softmax run along, and whose width is under the root?
"""

# %% [markdown] lang="ru" key="ex-attention-hint-1" en="b9aff66e" role="hint" exercise="attention"
r"""
Начните без маски: три строки — сравнить, нормировать, смешать. Вдоль какой оси берётся softmax и чья ширина стоит под корнем?
"""

# %% [markdown] lang="en" key="ex-attention-hint-2" role="hint" exercise="attention"
r"""
For empty rows: `empty = ~allowed.any(dim=-1)`. Under `"error"` raise if any; under `"zero"` open such rows before the softmax and set their weights to zero after it, so that no `nan` is ever created, forward or backward.
"""

# %% [markdown] lang="ru" key="ex-attention-hint-2" en="a7efa42f" role="hint" exercise="attention"
r"""
Пустые строки: `empty = ~allowed.any(dim=-1)`. При `"error"` вызовите исключение, если такие есть; при `"zero"` откройте их перед softmax, а после него обнулите их веса — тогда `nan` не появится ни на прямом проходе, ни на обратном.
"""

# %% key="ex-attention-solution" role="solution" exercise="attention"
def my_attention(q, k, v, allowed=None, *, empty_row="error"):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if allowed is None:
        allowed = torch.ones(scores.shape, dtype=torch.bool)
    if allowed.dtype != torch.bool:
        raise TypeError(f"allowed must be bool, got {allowed.dtype}")
    scores = scores.masked_fill(~allowed, -math.inf)
    empty = (~allowed).all(dim=-1).expand(scores.shape[:-1])
    if empty_row == "error" and empty.any():
        raise ValueError("some query rows are fully masked")
    weights = scores.masked_fill(empty[..., None], 0.0).softmax(dim=-1)
    weights = weights.masked_fill(empty[..., None], 0.0)
    return AttentionResult(weights @ v, weights, scores, empty)

# %% key="attention-function" role="ours"
from course_lib.attention import scaled_dot_product_attention

# %% [markdown] lang="en" key="sdpa-read"
r"""
Our `scaled_dot_product_attention` is folded above. Find the three steps in it: compare, normalise, mix. The lines around them are the care we have just earned: check at the door, hide with $-\infty$ before the softmax, treat empty rows on purpose.
"""

# %% [markdown] lang="ru" key="sdpa-read" en="ba3eccbe"
r"""
Наша `scaled_dot_product_attention` свёрнута выше. Найдите в ней три шага: сравнить, нормировать, смешать. Вокруг них — предосторожности, которым мы только что научились: проверить входы, поставить $-\infty$ до softmax, решить судьбу пустых строк сознательно.
"""

# %% key="sdpa-use"
result = scaled_dot_product_attention(q, k, v, causal_allowed(3, 3))
print(result.scores, result.output, sep="\n")
for name in ("weights", "output"):
    promised = torch.tensor(example[name], dtype=torch.float64)
    assert (getattr(result, name) - promised).abs().max() < 1e-12
rows = [[-math.inf if score is None else score for score in row] for row in example["scores"]]
assert torch.allclose(result.scores, torch.tensor(rows, dtype=torch.float64), rtol=0, atol=1e-12)

# %% lang="en" key="attention-figure"
figure = draw_attention(
    result.weights.tolist(),
    title="Who reads whom, and how much",
    x_label="key: who is read",
    y_label="query: who reads",
    token_labels=("sun", "moon", "eclipse"),
)
show_figure(
    figure,
    name="attention",
    alt="A 3 by 3 grid of attention weights. Sun reads only itself: 1. Moon: 0.33 sun, "
    "0.67 itself. Eclipse: 0.25 sun, 0.25 moon, 0.50 itself. The cells above the "
    "diagonal are hatched zeros.",
)

# %% lang="ru" key="attention-figure" en="70338f02"
figure = draw_attention(
    result.weights.tolist(),
    title="Кто кого читает и насколько",
    x_label="ключ: кого читают",
    y_label="запрос: кто читает",
    token_labels=("солнце", "луна", "затмение"),
)
show_figure(
    figure,
    name="attention",
    alt="Сетка весов внимания 3 на 3. Солнце читает только себя: 1. Луна: солнце — 0,33, "
    "себя — 0,67. Затмение: солнце — 0,25, луну — 0,25, себя — 0,50. Клетки "
    "выше диагонали заштрихованы: там нули.",
)

# %% [markdown] lang="en" key="sdpa-say"
r"""
The sun, alone at the start, can only repeat its own value. The eclipse mixes all three. Scores, weights and output agree with the reference, so the function reproduces what we did by hand.
"""

# %% [markdown] lang="ru" key="sdpa-say" en="3139b044"
r"""
Солнцу в начале читать больше некого, и оно может лишь повторить своё значение. Затмение смешивает все три. Оценки, веса и выход совпали с эталоном — функция воспроизводит то, что мы сделали вручную.
"""

# %% [markdown] lang="en" key="library-ask"
r"""
### Does the library agree, gradients included?

A function can return the right values and still pass wrong gradients back. So we compare outputs *and* gradients with PyTorch's own function, on sizes that are all different.
"""

# %% [markdown] lang="ru" key="library-ask" en="c41b21c3"
r"""
### Совпадает ли с библиотекой — и в градиентах тоже?

Функция может возвращать верные значения и всё же передавать назад неверные градиенты. Поэтому сравним с функцией самого PyTorch и выходы, *и* градиенты, причём все размеры возьмём разными.
"""

# %% key="library-agrees"
shapes = [(2, 3, 5), (2, 4, 5), (2, 4, 6)]
inputs = [torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
mask = causal_allowed(3, 4, query_offset=1)
ours = scaled_dot_product_attention(*inputs, mask).output
theirs = F.scaled_dot_product_attention(*inputs, attn_mask=mask)
print(tuple(ours.shape), (ours - theirs).abs().max().item() < 1e-12)
our_gradients = torch.autograd.grad(ours.square().sum(), inputs)
their_gradients = torch.autograd.grad(theirs.square().sum(), inputs)
for mine, other in zip([ours, *our_gradients], [theirs, *their_gradients], strict=True):
    assert torch.allclose(mine, other, rtol=0, atol=1e-12)

# %% [markdown] lang="en" key="library-say"
r"""
Three queries, four keys, width 5 for comparing and 6 for carrying: all sizes differ, so a swapped axis has nowhere to hide.
"""

# %% [markdown] lang="ru" key="library-say" en="651fab4a"
r"""
Три запроса, четыре ключа, ширина 5 для сравнения и 6 для содержания: все размеры различны, так что перепутанной оси негде спрятаться.
"""

# %% [markdown] lang="en" key="detach-ask"
r"""
### Break it: right values, dead gradient

Here the weights have been cut off from the graph by accident, yet the output is the same to the last bit. What does the query learn?
"""

# %% [markdown] lang="ru" key="detach-ask" en="65054e33"
r"""
### Сломаем: верные значения, мёртвый градиент

Здесь веса по недосмотру отрезаны от графа вычислений, а выход прежний до последнего бита. Чему научится запрос?
"""

# %% lang="en" key="predict-detach"
progress.predict(
    "detach",
    "Weights cut off, output the same to the last bit: what does the query learn?",
    {
        "full": "the same as before",
        "weak": "less: a smaller gradient reaches it",
        "none": "nothing: no gradient reaches it",
    },
)

# %% lang="ru" key="predict-detach" en="1bf6b889"
progress.predict(
    "detach",
    "Веса отрезаны, выход прежний до последнего бита: чему научится запрос?",
    {
        "full": "тому же, что и раньше",
        "weak": "тому же, но хуже: градиент дойдёт ослабленным",
        "none": "ничему: градиент до него не дойдёт",
    },
)

# %% key="detach"
question = q.clone().requires_grad_()
healthy = scaled_dot_product_attention(question, k, v)
cut = healthy.weights.detach() @ v.clone().requires_grad_()
(cut_gradient,) = torch.autograd.grad(cut.square().sum(), question, allow_unused=True)
(gradient,) = torch.autograd.grad(healthy.output.square().sum(), question)
print(f"{torch.equal(cut, healthy.output)=} {cut_gradient=}", gradient, sep="\n")
assert cut_gradient is None and gradient.abs().max() > 0.1
reached = 0.0 if cut_gradient is None else (cut_gradient.norm() / gradient.norm()).item()
progress.compare("detach", "none" if reached == 0 else "full" if reached == 1 else "weak")

# %% [markdown] lang="en" key="detach-say"
r"""
Nothing at all: its gradient is `None`. The values would go on learning, so the loss can still fall, and you would blame your learning rate. Comparing outputs alone never notices.
"""

# %% [markdown] lang="ru" key="detach-say" en="e411b50e"
r"""
Ничему: его градиент — `None`. Значения продолжат учиться, и потери всё ещё могут падать, а винить вы будете скорость обучения. Сравнение одних лишь выходов этого не заметит.
"""

# %% [markdown] lang="en" key="empty-policy-ask"
r"""
### The policy for empty rows

Now the row with nothing to read. By default the call is refused, and the message names the rows; with `empty_row="zero"` the row gives zero weights, zero output and finite gradients.
"""

# %% [markdown] lang="ru" key="empty-policy-ask" en="e16bd915"
r"""
### Правило для пустых строк

Вернёмся к строке, которой нечего читать. По умолчанию вызов отвергается, и сообщение называет такие строки; с `empty_row="zero"` строка даёт нулевые веса, нулевой выход и конечные градиенты.
"""

# %% key="empty-policy"
closed = torch.tensor([[False, False, False], [True, True, False], [True, True, True]])
print(expect_raises(ValueError, scaled_dot_product_attention, q, k, v, closed))
leaves = [tensor.clone().requires_grad_() for tensor in (q, k, v)]
zeroed = scaled_dot_product_attention(*leaves, closed, empty_row="zero")
zeroed.output.square().sum().backward()
print(zeroed.weights[0].tolist(), zeroed.output[0].tolist(), zeroed.empty_rows.tolist())
assert (zeroed.weights[0] == 0).all() and all(leaf.grad.isfinite().all() for leaf in leaves)

# %% [markdown] lang="en" key="empty-policy-say"
r"""
The refusal names row 0. Asked for zeros, the same call gives that row zero weights and zero output, and every gradient is finite: nothing is left to poison anyone.
"""

# %% [markdown] lang="ru" key="empty-policy-say" en="dbf9d4e7"
r"""
Отказ называет строку 0. Если же попросить нули, тот же вызов даёт этой строке нулевые веса и нулевой выход, а все градиенты конечны: отравлять больше нечему.
"""

# %% [markdown] lang="en" key="negative-ask"
r"""
### What must fail, and how

A wrong call should stop with a message. Four mistakes from real bug reports: keys of another width than the queries, a float mask (some libraries silently *add* it to the scores), a mask of a shape that does not fit, a negative offset.
"""

# %% [markdown] lang="ru" key="negative-ask" en="76b9e953"
r"""
### Что обязано падать и как

Неверный вызов должен остановиться с сообщением. Вот четыре промаха, о которых писали в баг-трекерах настоящих проектов: ключи не той ширины, что запросы; маска из чисел с плавающей точкой (иные библиотеки молча *прибавят* её к оценкам); маска неподходящей формы; отрицательный сдвиг.
"""

# %% key="negative-attention"
print(expect_raises(ValueError, scaled_dot_product_attention, q, k[:, :1], v))
print(expect_raises(TypeError, scaled_dot_product_attention, q, k, v, torch.ones(3, 3)))
print(expect_raises(ValueError, scaled_dot_product_attention, q, k, v, causal_allowed(2, 3)))
print(expect_raises(ValueError, causal_allowed, 3, 3, query_offset=-1))

# %% [markdown] lang="en" key="contract-short-ask"
r"""
### What does the short contract miss?

It passes our function. But a check is worth what it refuses. The course keeps a catalogue of 103 attentions, each with a mistake that somebody really made; `attention_suspects` builds them. How many of the 103 does the short contract let pass?
"""

# %% [markdown] lang="ru" key="contract-short-ask" en="24adffae"
r"""
### Чего короткий контракт не видит?

Нашу функцию он принимает. Но проверка стоит того, что она отвергает. В каталоге курса 103 реализации внимания, в каждой — ошибка, которую кто-то действительно сделал; их строит `attention_suspects`. Сколько из 103 короткий контракт пропустит?
"""

# %% lang="en" key="predict-short-contract"
progress.predict(
    "short-contract", "How many of the 103 wrong attentions does the short contract let pass?"
)

# %% lang="ru" key="predict-short-contract" en="dfdabd45"
progress.predict(
    "short-contract", "Сколько неверных реализаций из 103 пропустит короткий контракт?"
)

# %% key="planted" role="library"
from course_lib.mistakes.planted import (
    attention_suspects,
    check_planted_answers,
    planted_attentions,
)

# %% key="contract-short-use"
print(check_attention_contract(scaled_dot_product_attention))
missed = []
for name, suspect in attention_suspects().items():
    try:
        check_attention_contract(suspect)
    except Exception:
        continue
    missed.append(name)
print(len(missed), *missed[:6], "...")
progress.compare("short-contract", len(missed), within=0.5)

# %% [markdown] lang="en" key="contract-short-say"
r"""
Seventy lines of plain asserts stop three quarters of them; what they let through hides in paths that they never walk: one query, half precision, NaN, a mask with more axes, a second call. The library's `check_attention_contract` walks these too. It takes the same argument and the name of the short one; its report is a mapping of figures as well, and prints as a table.
"""

# %% [markdown] lang="ru" key="contract-short-say" en="fbb6f2af"
r"""
Семьдесят строк простых assert останавливают три четверти; пропущенное прячется там, куда они не заглядывают: один запрос, половинная точность, NaN, маска с лишними осями, второй вызов. Библиотечный `check_attention_contract` заглядывает и туда. Он принимает тот же аргумент и занимает имя короткого; его отчёт — тоже отображение с числами, а печатается таблицей.
"""

# %% key="attention-contract" role="library"
from course_lib.contracts import check_attention_contract

# %% key="contract-own"
report = check_attention_contract(scaled_dot_product_attention)
print({name: float(f"{figure:.2g}") for name, figure in dict(report).items()})
report

# %% [markdown] lang="en" key="contract-own-say"
r"""
Each row is one *clause*: what was demanded, what was measured, what is tolerated. Read them as a list of the ways attention goes wrong in practice. Does the library's function pass the same contract? It returns the output alone, so we check the field `output` only.
"""

# %% [markdown] lang="ru" key="contract-own-say" en="42b5a39b"
r"""
Каждая строка — один *пункт* контракта: что требовалось, что измерено, что допускается. Читайте их как перечень поломок внимания, которые бывают на практике. А пройдёт ли тот же контракт библиотечная функция? Она возвращает один лишь выход, поэтому проверим только поле `output`.
"""

# %% key="contract-library-use"
def library_attention(q, k, v, allowed=None, *, empty_row="error"):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)


print(
    expect_raises(
        ContractViolation, check_attention_contract, library_attention, fields=("output",)
    )
)

# %% [markdown] lang="en" key="contract-library-say"
r"""
Its arithmetic is fine and still it is refused: it answers a forbidden call in silence. Read the complaint from the top: the *clause*; what it demands; what was measured and tolerated; the failing input, cut down as far as it still fails; the first places that differ. The *diagnosis* compares your function with the catalogue and names a mistake only if it behaves exactly like it; "and also like" lists others that could not be told apart.
"""

# %% [markdown] lang="ru" key="contract-library-say" en="ec4ffb46"
r"""
С арифметикой у неё всё в порядке, и всё же контракт её не принимает: на запрещённый вызов она молча отвечает. Прочтите жалобу сверху вниз: *пункт*; что он требует; что измерено и что допускается; вход, на котором видно нарушение, — самый маленький из найденных; первые расхождения. *Диагноз* сравнивает вашу функцию с каталогом и называет ошибку, только если функция ведёт себя в точности так же; «а также как» перечисляет те, что от неё не отличить.
"""

# %% [markdown] lang="en" key="ex-harden-statement"
r"""
### Exercise 3 (stretch). Harden it

Now take your attention through the strong contract. It asks for nothing new in the arithmetic, but for care at the edges: a mask of shape `[T_k]`, batch axes that only some arguments have, half precision inside, NaN under a mask, `ValueError` where a mask does not fit. What passes is used by the lesson from here on.
"""

# %% [markdown] lang="ru" key="ex-harden-statement" en="516b6e7e"
r"""
### Упражнение 3 (со звёздочкой). Укрепите его

Теперь проведите своё внимание через строгий контракт. В арифметике он не требует ничего нового, зато требует осторожности на краях: маска формы `[T_k]`, оси батча не у всех аргументов, половинная точность внутри, NaN под маской, `ValueError`, если маска не подходит. Что пройдёт, тем урок и будет пользоваться дальше.
"""

# %% key="ex-harden" role="stub" exercise="hardened"
def my_hardened_attention(q, k, v, allowed=None, *, empty_row="error"):
    # en: start from my_attention, and let the contract lead you
    # ru: начните с my_attention и идите за контрактом
    raise NotImplementedError

# %% key="ex-harden-check" role="check" exercise="hardened"
progress.check("hardened", check_attention_contract, my_hardened_attention)

# %% [markdown] lang="en" key="ex-harden-hint-1" role="hint" exercise="hardened"
r"""
Refuse early: `TypeError` for a mask that is not bool; `ValueError` for a mask that does not broadcast or would enlarge the result, and for NaN or infinity in q, k or v, because 0 · NaN is NaN. The batch shape is the joint broadcast of q, k and v: `torch.broadcast_shapes` computes it. Half precision must become float32 before the product.
"""

# %% [markdown] lang="ru" key="ex-harden-hint-1" en="6fb8e75f" role="hint" exercise="hardened"
r"""
Отказывайте сразу: `TypeError`, если маска не типа bool; `ValueError`, если маска не транслируется или расширила бы форму результата, а также при NaN или бесконечности в q, k или v, потому что 0 · NaN — это NaN. Форма батча получается совместным транслированием q, k и v: её вычислит `torch.broadcast_shapes`. Половинную точность переведите в float32 до произведения.
"""

# %% key="ex-harden-solution" role="solution" exercise="hardened"
def my_hardened_attention(q, k, v, allowed=None, *, empty_row="error"):
    if not all(tensor.isfinite().all() for tensor in (q, k, v)):
        raise ValueError("q, k and v must be finite")
    batch = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    shape = (*batch, q.shape[-2], k.shape[-2])
    if allowed is None:
        allowed = torch.ones(shape, dtype=torch.bool)
    if allowed.dtype != torch.bool:
        raise TypeError(f"allowed must be bool, got {allowed.dtype}")
    try:
        allowed = allowed.expand(shape)
    except RuntimeError:
        raise ValueError(f"allowed {list(allowed.shape)} does not fit {list(shape)}") from None
    empty = ~allowed.any(dim=-1)
    if empty_row == "error" and empty.any():
        raise ValueError("some query rows are fully masked")
    wide = torch.float32
    for tensor in (q, k, v):
        wide = torch.promote_types(wide, tensor.dtype)
    raw = q.to(wide) @ k.to(wide).mT / math.sqrt(q.shape[-1])
    scores = raw.expand(shape).masked_fill(~allowed, -math.inf)
    safe = scores.masked_fill(empty[..., None], 0.0)
    weights = torch.softmax(safe, dim=-1).masked_fill(empty[..., None], 0.0)
    return AttentionResult(weights @ v.to(wide), weights, scores, empty)

# %% key="attention-adopt"
scaled_dot_product_attention = progress.adopt(
    "hardened", my_hardened_attention, scaled_dot_product_attention
)

# %% [markdown] lang="en" key="ex-planted-statement"
r"""
### Exercise 4 (stretch). Find the planted bug

Three attentions, `A`, `B` and `C`, carry one bug each. Do not read their code, and keep the contract's diagnosis for later: `symptoms` shows only its evidence. Write the names into the dictionary; the check lists the words you may use.
"""

# %% [markdown] lang="ru" key="ex-planted-statement" en="94b712be"
r"""
### Упражнение 4 (со звёздочкой). Найдите подброшенную ошибку

В трёх реализациях внимания, `A`, `B` и `C`, по одной ошибке. Код не читайте, диагноз контракта приберегите на потом: `symptoms` показывает только улики. Впишите в словарь названия ошибок; допустимые слова перечислит проверка.
"""

# %% key="planted-look"
def symptoms(attention: Callable[..., AttentionResult]) -> None:
    try:
        print(check_attention_contract(attention))
    except ContractViolation as broken:
        # en: the evidence without the verdict
        # ru: улики без приговора
        broken.diagnosis = ""
        print(broken)


suspects = planted_attentions()
symptoms(suspects["A"])

# %% key="ex-planted" role="stub" exercise="planted"
# en: replace each None by the word for the bug you found
# ru: замените каждое None словом, которое называет найденную ошибку
my_diagnosis = {"A": None, "B": None, "C": None}

# %% key="ex-planted-check" role="check" exercise="planted"
progress.check("planted", check_planted_answers, my_diagnosis)

# %% [markdown] lang="en" key="ex-planted-hint-1" role="hint" exercise="planted"
r"""
The cell above shows the complaint about `A`. Change the letter to see the other two. Ask of each: which number is wrong, by what factor, in which rows?
"""

# %% [markdown] lang="ru" key="ex-planted-hint-1" en="ebd09bf5" role="hint" exercise="planted"
r"""
Ячейка выше показывает жалобу на `A`. Поменяйте букву, чтобы увидеть две другие. О каждой спросите себя: какое число неверно, во сколько раз, в каких строках?
"""

# %% [markdown] lang="en" key="ex-planted-hint-2" role="hint" exercise="planted"
r"""
One complaint is about the size of scores, one about the weight that the only open key gets, one about the score of a hidden key.
"""

# %% [markdown] lang="ru" key="ex-planted-hint-2" en="09b3a7b9" role="hint" exercise="planted"
r"""
Одна жалоба — на величину оценок, другая — на вес, который достаётся единственному открытому ключу, третья — на оценку замаскированного ключа.
"""

# %% [markdown] lang="en" key="ex-planted-hint-3" role="hint" exercise="planted"
r"""
Divide a score that came by the one that was expected: which widths of `q`, `k` and `v` in the failing input make up that factor? If a hidden weight is 0 and the visible one is not 1, when did the mask come? And is a very large negative number the same as $-\infty$?
"""

# %% [markdown] lang="ru" key="ex-planted-hint-3" en="b84cb5f8" role="hint" exercise="planted"
r"""
Разделите полученную оценку на ожидаемую: из каких ширин `q`, `k` и `v` на показанном входе получается этот множитель? Если замаскированный вес равен 0, а единственный открытый не равен 1 — когда вступила в дело маска? И всё равно ли, что там стоит: $-\infty$ или очень большое по модулю отрицательное число?
"""

# %% key="ex-planted-solution" role="solution" exercise="planted"
my_diagnosis = {"A": "scale_by_d_v", "B": "mask_after_softmax", "C": "finite_fill"}

# %% [markdown] lang="en" key="positions-ask"
r"""
## 5. Positions: attention does not know the order

Nothing in the formula mentions *where* a token stands. If that is true, shuffling the tokens must shuffle the outputs in the same way and change nothing else. This property is called permutation equivariance, and it is easy to test.
"""

# %% [markdown] lang="ru" key="positions-ask" en="de3552bc"
r"""
## 5. Позиции: внимание не знает порядка

В формуле ничего не сказано о том, *где* стоит токен. Если это правда, то от перестановки токенов выходы переставятся точно так же и больше ничего не изменится. Это свойство называют эквивариантностью относительно перестановок, и проверить его легко.
"""

# %% key="permutation"
order = torch.tensor([2, 0, 1])
straight = scaled_dot_product_attention(q, k, v).output
shuffled = scaled_dot_product_attention(q[order], k[order], v[order]).output
print(straight[order], shuffled, sep="\n")
assert torch.allclose(shuffled, straight[order], rtol=0, atol=1e-12)

# %% [markdown] lang="en" key="permutation-say"
r"""
"Dog bites man" and "man bites dog" are the same bag to attention without a mask. So each token needs a *positional encoding*, a note saying where it stands: a vector that depends only on the position and is *added* to its embedding, the learned vector that stands for the token.
"""

# %% [markdown] lang="ru" key="permutation-say" en="c6ae4050"
r"""
«Мать любит дочь» и «дочь любит мать» для внимания без маски — один и тот же мешок слов. Значит, каждому токену нужно *позиционное кодирование* — записка о его месте: вектор, который зависит только от позиции и *прибавляется* к эмбеддингу, то есть к обучаемому вектору самого токена.
"""

# %% [markdown] lang="en" key="causal-order-ask"
r"""
There is one exception. Under a *causal* mask the tokens are no longer equal: the first reads one token, the last reads all. Is attention with this mask still blind to order?
"""

# %% [markdown] lang="ru" key="causal-order-ask" en="8cda8e4e"
r"""
Есть одно исключение. Под *причинной* маской токены уже не равноправны: первый читает один токен, последний — все. Слепо ли к порядку внимание с такой маской?
"""

# %% lang="en" key="predict-causal-order"
progress.predict(
    "causal-order",
    "Swap sun and moon under a causal mask. Whose output notices?",
    {
        "none": "nobody's: the formula has no order in it",
        "two": "those of sun and moon, not the eclipse's",
        "three": "all three: the mask made places matter",
    },
)

# %% lang="ru" key="predict-causal-order" en="f4063a01"
progress.predict(
    "causal-order",
    "Поменяем местами солнце и луну под причинной маской. Чей выход это заметит?",
    {
        "none": "ничей: порядка в формуле нет",
        "two": "выходы солнца и луны, но не затмения",
        "three": "все три: с маской место стало важно",
    },
)

# %% key="causal-order"
swap = torch.tensor([1, 0, 2])
in_order = scaled_dot_product_attention(q, k, v, causal_allowed(3, 3)).output
swapped = scaled_dot_product_attention(q[swap], k[swap], v[swap], causal_allowed(3, 3)).output
moved = (swapped - in_order[swap]).abs().amax(dim=-1)
print(moved)
assert not torch.allclose(swapped[:2], in_order[swap][:2], atol=0.1)
assert torch.allclose(swapped[2], in_order[2], rtol=0, atol=1e-12)
noticed = (moved > 1e-12).tolist()
progress.compare("causal-order", "three" if all(noticed) else "two" if any(noticed) else "none")

# %% [markdown] lang="en" key="causal-order-say"
r"""
No: swap sun and moon, and their outputs change. The mask breaks the symmetry, and decoders without any position signal can learn order from it (Haviv et al. 2022). Yet within one layer the last token still sees a bag: the eclipse did not notice the swap. An explicit signal tells every layer at once.
"""

# %% [markdown] lang="ru" key="causal-order-say" en="7b67dbcf"
r"""
Нет: поменяйте местами солнце и луну — их выходы изменятся. Маска нарушает симметрию, и даже декодеры без всякого сигнала о позициях способны узнавать порядок по ней (Haviv и др., 2022). Но внутри одного слоя последний токен по-прежнему видит мешок: затмение перестановки не заметило. Явный сигнал подскажет порядок сразу всем слоям.
"""

# %% [markdown] lang="en" key="sinusoid-ask"
r"""
### Clocks of different speed

Think of a row of clocks. The first hand turns quickly, each next one more slowly, and together they tell the time without ambiguity. Pair $r$ of the vector is one hand, its sine and its cosine:

$$PE_{p,\,2r} = \sin(\omega_r\, p), \qquad PE_{p,\,2r+1} = \cos(\omega_r\, p), \qquad \omega_r = b^{-2r/d},$$

with position $p$, width $d$, base $b = 10000$ and the hand's speed $\omega_r$. In `sinusoidal_encoding`, look for the line that interleaves sines and cosines.
"""

# %% [markdown] lang="ru" key="sinusoid-ask" en="61858760"
r"""
### Часы, которые идут с разной скоростью

Представьте ряд часов. Первая стрелка вращается быстро, каждая следующая медленнее, а вместе они показывают время однозначно. Пара $r$ вектора — это одна стрелка, её синус и косинус:

$$PE_{p,\,2r} = \sin(\omega_r\, p), \qquad PE_{p,\,2r+1} = \cos(\omega_r\, p), \qquad \omega_r = b^{-2r/d},$$

где $p$ — позиция, $d$ — ширина, $b = 10000$ — основание, а $\omega_r$ — скорость стрелки. Найдите в `sinusoidal_encoding` строку, где чередуются синусы и косинусы.
"""

# %% key="positions"
from course_lib.positions import sinusoidal_encoding

# %% key="positions-use"
promise = reference["positional_encoding"]
table = sinusoidal_encoding(promise["length"], promise["d_model"])
print(table)
assert (table - torch.tensor(promise["table"], dtype=torch.float64)).abs().max() < 1e-12
assert table[0].tolist() == [0.0, 1.0, 0.0, 1.0]
assert table[1, 0] == math.sin(1.0) and abs(table[1, 2].item() - math.sin(0.01)) < 1e-12
print(expect_raises(ValueError, sinusoidal_encoding, 5, 3))

# %% [markdown] lang="en" key="positions-say"
r"""
Position 0 is $(0, 1, 0, 1)$: every hand stands at zero. In the first pair one step is a whole radian; in the second it is a hundredth of that. The last line is a refusal: an odd width has a sine without its cosine. Next, a wider table over 81 positions: which pair tells neighbours apart, and which the beginning from the end?
"""

# %% [markdown] lang="ru" key="positions-say" en="199601af"
r"""
Позиция 0 — это $(0, 1, 0, 1)$: все стрелки на нуле. В первой паре один шаг — целый радиан, во второй — сотая его часть. Последняя строка — отказ: при нечётной ширине синус остался бы без косинуса. Дальше — таблица пошире, на 81 позицию: какая пара различает соседей, а какая — начало и конец?
"""

# %% key="positions-data"
long_table = sinusoidal_encoding(81, 8)
assert long_table[1, 0] == math.sin(1.0) and abs(long_table[1, 4].item() - math.sin(0.01)) < 1e-12

# %% key="drawing-positions" role="library"
from course_lib.plots.position_waves import draw_positions

# %% lang="en" key="positions-figure"
figure = draw_positions(
    long_table.tolist(),
    ((0, 1), (4, 5)),
    panel_titles=("fast pair: coordinates 0 and 1", "slow pair: coordinates 4 and 5"),
    series_labels=("sine", "cosine"),
    x_label="position",
    y_label="value",
)
show_figure(
    figure,
    name="positions",
    alt="Two panels over positions 0 to 80. Coordinates 0 and 1 swing through about thirteen full "
    "waves; coordinates 4 and 5 move slowly, through about one eighth of a wave.",
)

# %% lang="ru" key="positions-figure" en="c9265f97"
figure = draw_positions(
    long_table.tolist(),
    ((0, 1), (4, 5)),
    panel_titles=("быстрая пара: координаты 0 и 1", "медленная пара: координаты 4 и 5"),
    series_labels=("синус", "косинус"),
    x_label="позиция",
    y_label="значение",
)
show_figure(
    figure,
    name="positions",
    alt="Две панели для позиций от 0 до 80. Координаты 0 и 1 делают около тринадцати полных волн; "
    "координаты 4 и 5 движутся медленно и проходят около одной восьмой волны.",
)

# %% [markdown] lang="en" key="positions-figure-say"
r"""
The fast pair tells neighbours apart. The slow one (at width 8 the speed 0.01 belongs to coordinates 4 and 5) has turned by only 0.8 radian after 80 steps and tells early from late.
"""

# %% [markdown] lang="ru" key="positions-figure-say" en="28d6e6e9"
r"""
Быстрая пара различает соседей. Медленная (при ширине 8 скорость 0,01 достаётся координатам 4 и 5) за 80 шагов повернулась всего на 0,8 радиана и отличает начало от конца.
"""

# %% [markdown] lang="en" key="rotation-ask"
r"""
### A shift is a rotation

Why sines *and* cosines? Because a step of $s$ positions turns each hand by a fixed angle, wherever it stands:

$$\begin{pmatrix} \sin(\omega (p+s)) \\ \cos(\omega (p+s)) \end{pmatrix} = \begin{pmatrix} \cos \omega s & \sin \omega s \\ -\sin \omega s & \cos \omega s \end{pmatrix} \begin{pmatrix} \sin \omega p \\ \cos \omega p \end{pmatrix}.$$

One matrix, the same for all $p$, can express "seven tokens later". We test it on every position at once.
"""

# %% [markdown] lang="ru" key="rotation-ask" en="e4adfe42"
r"""
### Сдвиг — это поворот

Зачем и синусы, *и* косинусы? Затем, что шаг на $s$ позиций поворачивает каждую стрелку на постоянный угол, где бы она ни стояла:

$$\begin{pmatrix} \sin(\omega (p+s)) \\ \cos(\omega (p+s)) \end{pmatrix} = \begin{pmatrix} \cos \omega s & \sin \omega s \\ -\sin \omega s & \cos \omega s \end{pmatrix} \begin{pmatrix} \sin \omega p \\ \cos \omega p \end{pmatrix}.$$

Одна матрица, общая для всех $p$, выражает «на семь токенов позже». Проверим это сразу на всех позициях.
"""

# %% key="rotation"
shift, pair = 7, long_table[:, 4:6]
angle = shift * 10_000 ** (-4 / 8)
turn = torch.tensor(
    [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]], dtype=torch.float64
)
print(pair[shift], turn @ pair[0], sep="\n")
assert torch.allclose(pair[:-shift] @ turn.T, pair[shift:], rtol=0, atol=1e-12)
assert torch.allclose(pair.square().sum(dim=-1), torch.ones(81, dtype=torch.float64))

# %% [markdown] lang="en" key="rotation-say"
r"""
Turned by one matrix, position 0 lands exactly on position 7; for every other start the assertion checks the same at once. The last line adds that each pair has length 1: a hand turns, it never grows.
"""

# %% [markdown] lang="ru" key="rotation-say" en="c15e7658"
r"""
Повёрнутая этой матрицей, позиция 0 попадает точно на позицию 7; то же для всех остальных позиций разом проверяет предпоследняя строка. Последняя добавляет, что длина каждой пары равна 1: стрелка поворачивается, но не растёт.
"""

# %% [markdown] lang="en" key="position-view-ask"
r"""
### See it move: one position among the others

`view_position_dial` stands at one position and takes the dot product of its vector with every other: how alike do the two places look to attention? Move the position first, then the base. Does the lower curve change its shape, or only its place?
"""

# %% [markdown] lang="ru" key="position-view-ask" en="e3138a19"
r"""
### Посмотрите в движении: одна позиция среди других

`view_position_dial` становится на одну позицию и умножает её вектор скалярно на вектор каждой другой: насколько похожи два места с точки зрения внимания? Двигайте сначала позицию, потом основание. Меняется ли форма нижней кривой или только её место?
"""

# %% key="position-view-code" role="library"
from course_lib.views.position_dial import view_position_dial

# %% lang="en" key="position-view-words" role="folded"
position_words = {
    "position": "Position",
    "base": "Base",
    "waves_title": "the sines at position {position}",
    "dot_title": "dot product with position {position}",
    "x_label": "position",
    "wave_label": "value",
    "dot_label": "dot product",
    "pair": "pair {pair}",
    "here": "this position",
    "alt": "Waves, and below them a peak at position {position}, base {base}. Dot product: "
    "{own} with itself, {near} at distance 1, {far} at distance {distance}.",
}

# %% lang="ru" key="position-view-words" en="04c0fdf4" role="folded"
position_words = {
    "position": "Позиция",
    "base": "Основание",
    "waves_title": "синусы в позиции {position}",
    "dot_title": "скалярное произведение с позицией {position}",
    "x_label": "позиция",
    "wave_label": "значение",
    "dot_label": "произведение",
    "pair": "пара {pair}",
    "here": "эта позиция",
    "alt": "Волны, а под ними пик в позиции {position}, основание {base}. Скалярное произведение: "
    "{own} с собой, {near} на расстоянии 1, {far} на расстоянии {distance}.",
}

# %% key="position-view"
def table_for(base: float) -> Tensor:
    return sinusoidal_encoding(64, 16, base=base)


view_position_dial(
    table_for,
    positions=(0, 16, 32, 63),
    bases=(10_000, 100, 10),
    words=position_words,
)
for base in (10_000, 10):
    print(f"{base=} {(table_for(base)[0] @ table_for(base)[4]).item():.1f}")
dots = table_for(10_000) @ table_for(10_000).T
assert torch.allclose(dots[:-5, :-5], dots[5:, 5:], rtol=0, atol=1e-12)

# %% [markdown] lang="en" key="position-view-say"
r"""
Only its place: all pairs turn by the same angles wherever you stand, so the product depends on the distance alone, as the last line asserts. A small base makes every hand quick, and the peak narrow: at distance 4 the product is 0.1 with base 10, and still 5.6 with base 10,000, where the slow hands have hardly moved.
"""

# %% [markdown] lang="ru" key="position-view-say" en="87433d93"
r"""
Только место: где бы вы ни стояли, все пары поворачиваются на одни и те же углы, поэтому произведение зависит лишь от расстояния; последняя строка это проверяет. При малом основании спешат все стрелки, и пик узок: на расстоянии 4 произведение при основании 10 равно 0,1, а при 10 000 — ещё 5,6: медленные стрелки едва сдвинулись.
"""

# %% [markdown] lang="en" key="precision-ask"
r"""
### Break it: positions in half precision

Are all rows different, far beyond any sentence here? And what if the positions themselves are stored as bfloat16, 16-bit numbers with 8 significant bits?
"""

# %% [markdown] lang="ru" key="precision-ask" en="7ece7649"
r"""
### Сломаем: позиции в половинной точности

Остаются ли строки таблицы различными и на позициях, до которых не дотянется ни одно наше предложение? А если сами номера позиций хранить в формате bfloat16 — 16-битными числами, где лишь 8 значащих битов?
"""

# %% lang="en" key="predict-bfloat16"
progress.predict(
    "bfloat16",
    "How many of the integers from 0 to 1,999 remain different in bfloat16?",
)

# %% lang="ru" key="predict-bfloat16" en="3437d7c8"
progress.predict(
    "bfloat16",
    "Сколько целых чисел от 0 до 1999 останутся различными в bfloat16?",
)

# %% key="precision"
positions = torch.arange(2_000)
exact_rows = len(torch.unique(sinusoidal_encoding(2_000, 16), dim=0))
bfloat16_values = len(torch.unique(positions.to(torch.bfloat16)))
print(f"{exact_rows=} {bfloat16_values=}")
assert exact_rows == 2_000 and bfloat16_values < 1_000
progress.compare("bfloat16", bfloat16_values, within=0.25)

# %% [markdown] lang="en" key="precision-say"
r"""
All 2,000 exact rows differ, while in bfloat16 most integers collapse into their neighbours: past 256 not every integer has a value of its own. Real models have shipped with positions like these ([transformers#29285](https://github.com/huggingface/transformers/issues/29285)).
"""

# %% [markdown] lang="ru" key="precision-say" en="0c05ecdd"
r"""
Все 2000 строк, вычисленных точно, различны, а в bfloat16 большинство целых чисел сливается с соседями: после 256 собственное значение есть уже не у каждого. С такими позициями выпускали и настоящие модели ([transformers#29285](https://github.com/huggingface/transformers/issues/29285)).
"""

# %% [markdown] lang="en" key="position-contract-ask"
r"""
Put all the sines first, then all the cosines: still a table of waves, and nothing complains. Which clause of the contract will break?
"""

# %% [markdown] lang="ru" key="position-contract-ask" en="dc1c4f7e"
r"""
Поставьте сначала все синусы, потом все косинусы: на вид это те же волны, и никто не возразит. Какой пункт контракта нарушится?
"""

# %% key="position-contract" role="library"
from course_lib.contracts import check_position_contract

# %% key="position-contract-use"
def sines_first(length: int, d_model: int, *, base: float = 10_000.0) -> Tensor:
    table = sinusoidal_encoding(length, d_model, base=base)
    return torch.cat([table[:, 0::2], table[:, 1::2]], dim=1)


print(expect_raises(ContractViolation, check_position_contract, sines_first))
check_position_contract(sinusoidal_encoding)

# %% [markdown] lang="en" key="position-contract-say"
r"""
The one about position 0: it must read 0, 1, 0, 1, and here it reads 0, 0, 1, 1. The diagnosis even knows this bug by name. Our own function keeps all 11 clauses.
"""

# %% [markdown] lang="ru" key="position-contract-say" en="dac95fc6"
r"""
Пункт о позиции 0: там должно стоять 0, 1, 0, 1, а стоит 0, 0, 1, 1. Диагноз даже называет эту ошибку по имени. Наша функция выполняет все 11 пунктов.
"""

# %% [markdown] lang="en" key="heads-ask"
r"""
## 6. Many heads

One softmax gives one pattern of reading. A token may want several at once: the subject of the verb, the previous word, the opening bracket. *Multi-head attention* projects as before, cuts each of q, k and v into `n_heads` slices of `d_head` numbers, lets each slice attend on its own, and joins the results. Look for the order: cut, then swap axes.
"""

# %% [markdown] lang="ru" key="heads-ask" en="1afe5b1a"
r"""
## 6. Много голов

Один softmax даёт одну схему чтения. А токену может понадобиться сразу несколько: подлежащее при глаголе, предыдущее слово, открывающая скобка. *Многоголовое внимание* строит q, k и v, как и раньше, затем режет каждый на `n_heads` частей по `d_head` чисел; каждая часть читает по-своему, а результаты соединяются. Следите за порядком: сначала разрезать, потом поменять оси местами.
"""

# %% key="split-heads"
from course_lib.attention import split_heads

# %% [markdown] lang="en" key="ex-merge-statement"
r"""
### Exercise 5 (core). Merge the heads

Write the inverse of `split_heads`: heads `[B, H, T, d_head]` in, tokens `[B, T, H * d_head]` out. The check puts your function inside a complete multi-head attention and runs the contract on the whole.
"""

# %% [markdown] lang="ru" key="ex-merge-statement" en="cb36d5a4"
r"""
### Упражнение 5 (основное). Соедините головы

Напишите функцию, обратную `split_heads`: на входе головы `[B, H, T, d_head]`, на выходе токены `[B, T, H * d_head]`. Проверка вставит вашу функцию в полное многоголовое внимание и испытает контрактом всё целиком.
"""

# %% key="ex-merge" role="stub" exercise="merge-heads"
def my_merge_heads(heads: Tensor) -> Tensor:
    # en: heads [B, H, T, d_head] -> tokens [B, T, H * d_head], head 0 first
    # ru: головы [B, H, T, d_head] -> токены [B, T, H * d_head], первой идёт голова 0
    raise NotImplementedError

# %% key="multi-head-contract" role="library"
from course_lib.contracts import check_multi_head_contract

# %% key="ex-merge-check" role="check" exercise="merge-heads"
def my_multi_head(x, w_q, w_k, w_v, w_o, n_heads, *, causal, token_valid=None):
    q, k, v = (split_heads(x @ w, n_heads) for w in (w_q, w_k, w_v))
    allowed = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool)
    if causal:
        allowed = causal_allowed(x.shape[1], x.shape[1])
    if token_valid is not None:
        both = token_valid[:, :, None] & token_valid[:, None, :]
        allowed = (allowed & both)[:, None]
    heads = scaled_dot_product_attention(q, k, v, allowed, empty_row="zero").output
    return my_merge_heads(heads) @ w_o


progress.check("merge-heads", check_multi_head_contract, my_multi_head)

# %% [markdown] lang="en" key="ex-merge-hint-1" role="hint" exercise="merge-heads"
r"""
Undo the two steps of `split_heads` in the opposite order. Which axes changed places last?
"""

# %% [markdown] lang="ru" key="ex-merge-hint-1" en="c670a006" role="hint" exercise="merge-heads"
r"""
Отмените два шага `split_heads` в обратном порядке. Какие оси поменялись местами последними?
"""

# %% [markdown] lang="en" key="ex-merge-hint-2" role="hint" exercise="merge-heads"
r"""
After a transpose the memory is not contiguous, so `view` refuses. `reshape` or `flatten` copies when it must.
"""

# %% [markdown] lang="ru" key="ex-merge-hint-2" en="51d6e325" role="hint" exercise="merge-heads"
r"""
После транспонирования числа лежат в памяти не подряд, и `view` откажется работать. `reshape` и `flatten` при необходимости их скопируют.
"""

# %% [markdown] lang="en" key="ex-merge-hint-3" role="hint" exercise="merge-heads"
r"""
Two calls are enough. Exchange axes 1 and 2, so that the heads of one token lie side by side: `[B, T, H, d_head]`. Then make one axis of the last two.
"""

# %% [markdown] lang="ru" key="ex-merge-hint-3" en="7bbf50bd" role="hint" exercise="merge-heads"
r"""
Хватит двух вызовов. Поменяйте местами оси 1 и 2, чтобы головы одного токена оказались рядом: `[B, T, H, d_head]`. Потом сделайте из двух последних осей одну.
"""

# %% key="ex-merge-solution" role="solution" exercise="merge-heads"
def my_merge_heads(heads: Tensor) -> Tensor:
    return heads.transpose(1, 2).flatten(start_dim=2)

# %% key="merge-heads" role="ours"
from course_lib.attention import merge_heads

# %% [markdown] lang="en" key="split-heads-read"
r"""
`split_heads` cuts and `merge_heads` joins: the two are inverse to each other. Follow the eight numbers of one sentence with two tokens of width 4, cut into two heads of width 2.
"""

# %% [markdown] lang="ru" key="split-heads-read" en="f2a46eec"
r"""
`split_heads` режет, `merge_heads` соединяет: эти две функции обратны друг другу. Проследите за восемью числами одного предложения: два токена ширины 4 разрезаются на две головы ширины 2.
"""

# %% key="split-use"
merge_heads = progress.adopt("merge-heads", my_merge_heads, merge_heads)
x = torch.arange(8.0).view(1, 2, 4)
heads = split_heads(x, 2)
print(f"{x.tolist()=}", f"{heads.tolist()=}", sep="\n")
assert torch.equal(merge_heads(heads), x)

# %% [markdown] lang="en" key="split-break-ask"
r"""
### Break it: `view` without `transpose`

The target shape `[B, H, T, d_head]` can also be had in one step, with `view`. The shape is right. Are the numbers?
"""

# %% [markdown] lang="ru" key="split-break-ask" en="9da55d04"
r"""
### Сломаем: `view` без `transpose`

Нужную форму `[B, H, T, d_head]` можно получить и за один шаг, через `view`. Форма верна. А числа?
"""

# %% key="split-break"
wrong = x.view(1, 2, 2, 2)
print(f"{wrong.tolist()=}")
assert wrong.shape == heads.shape and not torch.equal(wrong, heads)
assert torch.equal(x.view(1, 1, 2, 4), split_heads(x, 1))

# %% [markdown] lang="en" key="split-break-say"
r"""
The wrong "heads" are the two *tokens*: each head sees one token's halves as if they were two positions. With a single head both ways agree (last assertion), so a one-head test is blind here. The author of one teaching code, mending such a slip, asked why the training test had still passed ([transformer-from-scratch#6](https://github.com/jsbaan/transformer-from-scratch/issues/6)).
"""

# %% [markdown] lang="ru" key="split-break-say" en="85c1bdfd"
r"""
Неверные «головы» — это два *токена*: каждая голова видит половинки одного токена так, будто это две позиции. При одной голове оба способа дают одно и то же (последняя строка), поэтому проверка с одной головой здесь слепа. Автор одного учебного кода, исправляя такой же промах, недоумевал, почему проверка обучением всё-таки прошла ([transformer-from-scratch#6](https://github.com/jsbaan/transformer-from-scratch/issues/6)).
"""

# %% [markdown] lang="en" key="mha-ask"
r"""
### The layer

In `MultiHeadSelfAttention` queries, keys and values come from one fused projection `qkv`; after the heads are merged, `out` mixes them. `token_valid` marks real tokens, and padding is neither read nor allowed to ask. Look for the line that gives one mask to all heads.

$$\mathrm{MHA}(X) = \mathrm{merge}_{h=1..H}\big(\mathrm{Attention}(Q_h, K_h, V_h)\big)\, W_O$$
"""

# %% [markdown] lang="ru" key="mha-ask" en="0c9ba5ed"
r"""
### Слой

В `MultiHeadSelfAttention` запросы, ключи и значения даёт одна общая проекция `qkv`; после слияния голов их смешивает `out`. `token_valid` отмечает настоящие токены: паддинг никто не читает, и сам он ни о чём не спрашивает. Найдите строку, где одна маска достаётся всем головам.

$$\mathrm{MHA}(X) = \mathrm{merge}_{h=1..H}\big(\mathrm{Attention}(Q_h, K_h, V_h)\big)\, W_O$$
"""

# %% key="mha"
from course_lib.attention import MultiHeadSelfAttention

# %% [markdown] lang="en" key="shapes-ask"
r"""
### Follow the shapes

Two texts of five tokens, width 12, three heads. Predict each shape before the cell prints it; `B` is the size of the batch, `T` the length, `H` the number of heads.
"""

# %% [markdown] lang="ru" key="shapes-ask" en="5de39b36"
r"""
### Проследите за формами

Два текста по пять токенов, ширина 12, три головы. Предскажите каждую форму, прежде чем ячейка её напечатает; `B` — размер батча, `T` — длина, `H` — число голов.
"""

# %% key="shapes"
layer = MultiHeadSelfAttention(12, 3).double()
x = torch.randn(2, 5, 12, dtype=torch.float64)
q_heads, k_heads, v_heads = (split_heads(part, 3) for part in layer.qkv(x).chunk(3, dim=-1))
mixed = scaled_dot_product_attention(q_heads, k_heads, v_heads, causal_allowed(5, 5))
merged = merge_heads(mixed.output)
stages = {"x": x, "q_heads": q_heads, "weights": mixed.weights, "merged": merged}
for name, tensor in stages.items():
    print(f"{name:8}", tuple(tensor.shape))
assert torch.equal(layer.out(merged), layer(x))

# %% key="drawing-diagrams" role="library"
from course_lib.plots.diagrams import draw_block, draw_head_shapes

# %% lang="en" key="head-shapes-figure"
show_figure(
    draw_head_shapes(),
    name="head-shapes",
    alt="One text of five tokens, width 12, cut into three heads of width 4. Each head makes a "
    "causal 5 by 5 table of weights and mixes its values; merged, the three stand side by side.",
)

# %% lang="ru" key="head-shapes-figure" en="cbeecb76"
show_figure(
    draw_head_shapes(),
    name="head-shapes",
    alt="Текст из пяти токенов шириной 12 разрезан на три головы шириной 4. Каждая строит "
    "причинную таблицу весов 5 на 5 и смешивает свои значения; после слияния все три рядом.",
)

# %% [markdown] lang="en" key="shapes-say"
r"""
`[B, T, d_model]` becomes `[B, H, T, d_head]`, the weights are `[B, H, T, T]` (one table for every head of every text), and the merge restores `[B, T, d_model]`. Is each head really independent? Run three separate attentions on slices of the same weights, and compare with the library too.
"""

# %% [markdown] lang="ru" key="shapes-say" en="44544370"
r"""
`[B, T, d_model]` превращается в `[B, H, T, d_head]`, веса имеют форму `[B, H, T, T]` (по таблице на каждую голову каждого текста), а слияние возвращает `[B, T, d_model]`. Действительно ли головы независимы? Запустим три отдельных внимания на срезах тех же весов, а заодно сравним с библиотекой.
"""

# %% key="heads-loop"
w_q, w_k, w_v = layer.qkv.weight.chunk(3)
one_by_one = [
    scaled_dot_product_attention(x @ w_q[s].T, x @ w_k[s].T, x @ w_v[s].T, causal_allowed(5, 5))
    for s in (slice(0, 4), slice(4, 8), slice(8, 12))
]
joined = torch.cat([head.output for head in one_by_one], dim=-1)
print((layer.out(joined) - layer(x)).abs().max().item() < 1e-12)
assert torch.allclose(layer.out(joined), layer(x), rtol=0, atol=1e-12)

# %% key="mha-agrees"
twin = nn.MultiheadAttention(12, 3, bias=False, batch_first=True, dtype=torch.float64)
twin.load_state_dict({"in_proj_weight": layer.qkv.weight, "out_proj.weight": layer.out.weight})
expected, _ = twin(x, x, x, attn_mask=~causal_allowed(5, 5))
print((layer(x) - expected).abs().max().item() < 1e-12)
assert torch.allclose(layer(x), expected, rtol=0, atol=1e-12)

# %% [markdown] lang="en" key="mha-say"
r"""
Copied weights, equal numbers: not "it looks similar", but the same function to $10^{-12}$. Note the `~`: this PyTorch layer reads `True` as *forbidden*, the functional form in section 4 as *allowed*; the name `allowed` spares us the confusion. Now a padded batch, where the second text has only three real tokens.
"""

# %% [markdown] lang="ru" key="mha-say" en="b272ca79"
r"""
Веса скопированы, числа совпали: не «похоже», а та же функция с точностью до $10^{-12}$. Заметьте знак `~`: этот слой PyTorch понимает `True` как *запрещено*, а функция из раздела 4 — как *разрешено*; имя `allowed` избавляет нас от путаницы. Теперь батч с паддингом: во втором тексте только три настоящих токена.
"""

# %% key="mha-padding"
token_valid = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
y, head_weights = layer(x, token_valid=token_valid, empty_row="zero", return_weights=True)
alone = layer(x[1:, :3])
print(head_weights[1, 0].detach(), head_weights[1, 0].sum(dim=-1).detach(), sep="\n")
assert torch.allclose(y[1:, :3], alone, rtol=0, atol=1e-12) and (y[1, 3:] == 0).all()
print(expect_raises(ValueError, layer, x, token_valid=token_valid))
print(expect_raises(ValueError, MultiHeadSelfAttention, 30, 8))

# %% [markdown] lang="en" key="mha-padding-say"
r"""
You see head 0 of the padded text: valid rows sum to 1, padded rows are zero, and the text gives exactly what it gives alone. The default policy refuses such a batch, because somebody should decide about its empty rows on purpose. The last refusal: 30 features cannot be cut into 8 equal heads.
"""

# %% [markdown] lang="ru" key="mha-padding-say" en="5d33fadf"
r"""
Перед вами голова 0 текста с паддингом: в строках настоящих токенов сумма равна 1, строки паддинга нулевые, а сам текст даёт ровно то же, что и в одиночку. Правило по умолчанию такой батч отвергает: судьбу пустых строк кто-то должен решить сознательно. Последний отказ: 30 признаков не разрезать на 8 равных голов.
"""

# %% [markdown] lang="en" key="cross-ask"
r"""
### Cross-attention

When queries come from one sequence and keys and values from another, the same formula becomes *cross-attention*: a translator's decoder asks, the encoded source answers. Its mask is the fourth in the picture of section 3. Find the one difference from the layer above: two inputs.
"""

# %% [markdown] lang="ru" key="cross-ask" en="53eec719"
r"""
### Перекрёстное внимание

Когда запросы берутся из одной последовательности, а ключи и значения — из другой, та же формула становится *перекрёстным вниманием*: декодер модели-переводчика спрашивает, закодированный исходный текст отвечает. Маска такого внимания — четвёртая на рисунке из раздела 3. Найдите единственное отличие от слоя выше: два входа.
"""

# %% key="cross-layer"
from course_lib.attention import MultiHeadCrossAttention

# %% key="cross-use"
reader = MultiHeadCrossAttention(12, 3).double()
memory = torch.randn(1, 6, 12, dtype=torch.float64)
memory_valid = torch.tensor([[True] * 5 + [False]])
questions = torch.randn(1, 4, 12, dtype=torch.float64)
_, cross_weights = reader(questions, memory, memory_valid=memory_valid, return_weights=True)
print(tuple(cross_weights.shape), cross_weights[..., -1].abs().max().item())

# %% [markdown] lang="en" key="cross-say"
r"""
Three heads, four queries, six keys, and the padded last key gets exactly nothing. Queries and keys need not be equally many; only their widths must match.
"""

# %% [markdown] lang="ru" key="cross-say" en="62313d24"
r"""
Три головы, четыре запроса, шесть ключей, и последний ключ — паддинг — получает ровно ноль. Запросов и ключей может быть не поровну; совпадать должна только их ширина.
"""

# %% [markdown] lang="en" key="layers-ask"
r"""
## 7. From attention to a block

Attention moves information *between* tokens. Three more pieces make a block: a normalisation that keeps numbers in a sane range, a network that works on each token *alone*, and a path that carries the tokens past both unchanged.
"""

# %% [markdown] lang="ru" key="layers-ask" en="6b81cdc7"
r"""
## 7. От внимания к блоку

Внимание переносит сведения *между* токенами. До блока не хватает трёх деталей: нормализации, которая держит числа в разумных пределах, сети, которая обрабатывает каждый токен *отдельно*, и пути, по которому токены обходят и ту и другую без изменений.
"""

# %% lang="en" key="block-figure"
show_figure(
    draw_block(),
    name="block",
    alt="The residual stream runs straight through. Twice something is read from it and added to "
    "it: by ln1 and attention, between tokens, under the mask; by ln2 and the feed-forward "
    "network, for each token alone.",
)

# %% lang="ru" key="block-figure" en="266e9180"
show_figure(
    draw_block(),
    name="block",
    alt="Остаточный поток идёт насквозь. Дважды из него читают и к нему прибавляют: сначала ln1 и "
    "внимание, между токенами, под маской, потом ln2 и полносвязная сеть, для каждого токена "
    "отдельно.",
)

# %% [markdown] lang="en" key="norm-ask"
r"""
### Layer normalization

For each token on its own: subtract the mean of its features, divide by their standard deviation, then multiply by a learned gain and add a learned bias.

$$y_c = g_c\, \frac{x_c - \mu}{\sqrt{\sigma^2 + \varepsilon}} + b_c, \qquad \sigma^2 = \frac1d \sum_c (x_c - \mu)^2$$

The tiny $\varepsilon$ avoids a division by zero. Two details are often wrong: the variance must divide by $d$, not $d-1$, and $\varepsilon$ must stand inside the root.
"""

# %% [markdown] lang="ru" key="norm-ask" en="ac58fb65"
r"""
### Нормализация слоя

Для каждого токена отдельно: вычесть среднее его признаков, разделить на их стандартное отклонение, затем умножить на обучаемый множитель и прибавить обучаемое смещение (bias).

$$y_c = g_c\, \frac{x_c - \mu}{\sqrt{\sigma^2 + \varepsilon}} + b_c, \qquad \sigma^2 = \frac1d \sum_c (x_c - \mu)^2$$

Крошечное $\varepsilon$ спасает от деления на ноль. Часто ошибаются в двух мелочах: в дисперсии делить надо на $d$, а не на $d-1$, и $\varepsilon$ должно стоять под корнем.
"""

# %% key="layer-norm"
from course_lib.layers import layer_norm

# %% key="layer-norm-use"
promise = reference["layer_norm"]
x = torch.tensor([promise["input"]], dtype=torch.float64)
gain, shift = torch.ones(4, dtype=torch.float64), torch.zeros(4, dtype=torch.float64)
normalized = layer_norm(x, gain, shift, eps=0.0)
print(f"{x.mean().item()=} {x.var(correction=0).item()=}", normalized, sep="\n")
promised = torch.tensor(promise["normalized"], dtype=torch.float64)
assert x.mean() == promise["mean"] and x.var(correction=0) == promise["variance"]
assert (normalized[0] - promised).abs().max() < 1e-12
assert torch.allclose(normalized, F.layer_norm(x, (4,), eps=0.0), rtol=0, atol=1e-12)

# %% [markdown] lang="en" key="norm-say"
r"""
Mean 2.5, variance 1.25, and the result agrees with both the reference and the library. How visible are the two mistakes? Compare $d-1$ for 4 features and for 512; then move $\varepsilon$ out of the root for numbers of the size of one thousandth.
"""

# %% [markdown] lang="ru" key="norm-say" en="311ae600"
r"""
Среднее 2,5, дисперсия 1,25, и результат совпал и с эталоном, и с библиотекой. А насколько заметны обе ошибки? Сравните вариант с $d-1$ для 4 признаков и для 512, а потом вынесите $\varepsilon$ из-под корня для чисел порядка одной тысячной.
"""

# %% key="norm-break"
for width in (4, 512):
    row = torch.randn(width, dtype=torch.float64)
    unbiased = (row - row.mean()) / row.std()
    gap = (F.layer_norm(row, (width,), eps=0.0) / unbiased - 1).abs().max().item()
    print(f"{width=} {gap=:.2%}")
tiny = 1e-3 * torch.arange(1.0, 5.0)
inside = F.layer_norm(tiny, (4,), eps=1e-5)[-1].item()
outside = ((tiny - tiny.mean()) / (tiny.var(correction=0).sqrt() + 1e-5))[-1].item()
print(f"{inside=:.3f} {outside=:.3f}")

# %% [markdown] lang="en" key="norm-break-say"
r"""
For 4 features the mistake is 15%, for 512 a tenth of one per cent: invisible in a loss curve, and enough to fail any exact comparison with another program. The misplaced $\varepsilon$ shows only on small inputs, where it changes the result threefold. The contract of layer norm seeks out such sizes and numbers.
"""

# %% [markdown] lang="ru" key="norm-break-say" en="76c064c0"
r"""
При 4 признаках ошибка равна 15 %, при 512 — десятой доле процента: на кривой потерь её не разглядеть, а точного сравнения с другой программой она не выдержит. Вынесенное из-под корня $\varepsilon$ заметно лишь на малых входах, зато там меняет результат втрое. Контракт нормализации слоя нарочно ищет такие размеры и числа.
"""

# %% key="layer-norm-contract" role="library"
from course_lib.contracts import check_layer_norm_contract

# %% key="layer-norm-contract-use"
def unbiased_norm(x, gain, bias, eps=1e-5):
    centred = x - x.mean(dim=-1, keepdim=True)
    variance = centred.square().sum(dim=-1, keepdim=True) / (x.shape[-1] - 1)
    return gain * centred / torch.sqrt(variance + eps) + bias


print(expect_raises(ContractViolation, check_layer_norm_contract, unbiased_norm))
check_layer_norm_contract(layer_norm)

# %% [markdown] lang="en" key="layer-norm-contract-say"
r"""
Two numbers were enough to refuse `unbiased_norm`, and the diagnosis names the cause: $d-1$. The course's own function keeps all 15 clauses.
"""

# %% [markdown] lang="ru" key="layer-norm-contract-say" en="eaec6f56"
r"""
Чтобы отвергнуть `unbiased_norm`, хватило двух чисел, и диагноз называет причину: $d-1$. Функция курса выполняет все 15 пунктов.
"""

# %% [markdown] lang="en" key="ffn-ask"
r"""
### The feed-forward network

A two-layer network, applied to every token alone: widen to `d_ff`, bend with a non-linear function (GELU), narrow again. If tokens really do not meet here, changing one must leave all others exactly as they were.
"""

# %% [markdown] lang="ru" key="ffn-ask" en="27542283"
r"""
### Полносвязная сеть блока

Двухслойная сеть работает с каждым токеном отдельно: расширить до `d_ff`, изогнуть нелинейной функцией (GELU), сузить обратно. Если токены здесь и правда не встречаются, то при изменении одного все остальные обязаны остаться в точности прежними.
"""

# %% key="ffn"
from course_lib.layers import FeedForward

# %% key="ffn-use"
network = FeedForward(8, 32).double()
x = torch.randn(1, 4, 8, dtype=torch.float64)
changed = x.clone()
changed[0, 2] += 1.0
moved = (network(x) - network(changed)).abs().amax(dim=-1)[0].detach()
print(moved)
assert (moved[[0, 1, 3]] == 0).all() and moved[2] > 0

# %% [markdown] lang="en" key="ffn-say"
r"""
Only token 2 moved; the others are the same to the last bit.
"""

# %% [markdown] lang="ru" key="ffn-say" en="c537cf76"
r"""
Сдвинулся только токен 2, остальные прежние до последнего бита.
"""

# %% [markdown] lang="en" key="gelu-ask"
r"""
### Two functions with one name

GELU weighs each number by the probability that a standard normal variable is smaller, $x\,\Phi(x)$. Some programs use an old approximation instead. Does it matter?
"""

# %% [markdown] lang="ru" key="gelu-ask" en="8acb13b4"
r"""
### Две функции под одним именем

GELU умножает число на вероятность того, что стандартная нормальная величина окажется меньше него, $x\,\Phi(x)$. Иные программы берут вместо этого старое приближение. Важно ли это?
"""

# %% key="gelu"
grid = torch.linspace(-6, 6, 2_001, dtype=torch.float64)
gap = (F.gelu(grid) - F.gelu(grid, approximate="tanh")).abs().max().item()
print(f"{gap:.1e}")
assert 4e-4 < gap < 5e-4
assert torch.equal(network(x), network.down(F.gelu(network.up(x))))

# %% [markdown] lang="en" key="gelu-say"
r"""
The gap is at most 0.0005: invisible in the text, yet a model trained with one and served with the other is another model, and that has been shipped ([pocket-tts#278](https://github.com/kyutai-labs/pocket-tts/issues/278)). We use the exact form.
"""

# %% [markdown] lang="ru" key="gelu-say" en="58ecd9a0"
r"""
Разница не больше 0,0005: в тексте её не заметить, но модель, обученная с одной функцией и запущенная с другой, — уже другая модель, и такое выпускали ([pocket-tts#278](https://github.com/kyutai-labs/pocket-tts/issues/278)). Мы берём точную форму.
"""

# %% [markdown] lang="en" key="block-ask"
r"""
### The block: two notes in the margin

A block never replaces a token's vector; each of its two parts (*sublayers*) *adds* to it, like notes in a margin. This vector, passed from block to block, is called the *residual stream*:

$$x \leftarrow x + \mathrm{attn}(\mathrm{ln}_1(x)), \qquad x \leftarrow x + \mathrm{ffn}(\mathrm{ln}_2(x)).$$

Normalisation stands *before* each sublayer (pre-norm). `PreNormBlock` says just that, and `DecoderBlock` adds only the causal mask. Find the two lines that carry $x$ past the sublayers.
"""

# %% [markdown] lang="ru" key="block-ask" en="ea5c3562"
r"""
### Блок: две заметки на полях

Блок никогда не заменяет вектор токена: каждый из двух его *подслоёв* *прибавляет* к этому вектору своё, как заметку на полях. Такой вектор, идущий от блока к блоку, называют *остаточным потоком*:

$$x \leftarrow x + \mathrm{attn}(\mathrm{ln}_1(x)), \qquad x \leftarrow x + \mathrm{ffn}(\mathrm{ln}_2(x)).$$

Нормализация стоит *до* каждого подслоя (pre-norm). `PreNormBlock` записывает ровно это, а `DecoderBlock` добавляет лишь причинную маску. Найдите две строки, которые проносят $x$ мимо подслоёв.
"""

# %% key="pre-norm-block"
from course_lib.layers import PreNormBlock

# %% key="decoder-block"
from course_lib.layers import DecoderBlock

# %% key="block-identity"
block = DecoderBlock(8, 2, 32).double()
with torch.no_grad():
    for parameter in (block.attn.out.weight, block.ffn.down.weight, block.ffn.down.bias):
        parameter.zero_()
print((block(x) - x).abs().max().item())
assert torch.equal(block(x), x)

# %% [markdown] lang="en" key="block-identity-say"
r"""
With both sublayers silenced the block is the identity, bit for bit. That is the test of a true residual path: a block that passes on the *normalised* vector instead of `x` can train all the same, and it fails here.
"""

# %% [markdown] lang="ru" key="block-identity-say" en="f0fbda4d"
r"""
Если заглушить оба подслоя, блок становится тождественным преобразованием — бит в бит. Это и есть проверка настоящего остаточного пути: блок, который передаёт дальше *нормализованный* вектор вместо `x`, тоже способен обучаться, но эту проверку провалит.
"""

# %% [markdown] lang="en" key="stream-ask"
r"""
### What pre-norm protects

Scale the incoming vectors by 100. The sublayers see normalised inputs, so the note that attention *adds* should hardly change, while the stream itself passes through at full size.
"""

# %% [markdown] lang="ru" key="stream-ask" en="66096310"
r"""
### Что бережёт pre-norm

Умножим входные векторы на 100. Подслои видят нормализованные входы, поэтому заметка, которую *прибавляет* внимание, должна остаться почти прежней, а сам поток пройдёт насквозь в полную величину.
"""

# %% key="stream"
block = DecoderBlock(8, 2, 32).double()
small_note = block.attn(block.ln1(x))
large_note = block.attn(block.ln1(100 * x))
size, change = small_note.abs().max().item(), (small_note - large_note).abs().max().item()
print(f"{size=:.2f} {change=:.1e}")
assert change < 1e-3 * size

# %% [markdown] lang="en" key="stream-say"
r"""
The note in the margin stays the same size however large the stream is; the tiny difference comes from $\varepsilon$. A post-norm block would normalise the stream itself at every layer, and deep stacks of those need a *warm-up*: the learning rate is raised little by little (Xiong et al. 2020).
"""

# %% [markdown] lang="ru" key="stream-say" en="efbaeefb"
r"""
Размер заметки на полях остаётся прежним, как бы ни был велик поток; крошечная разница — из-за $\varepsilon$. Блок с нормализацией после подслоя (post-norm) нормировал бы сам поток в каждом слое, и глубоким стопкам таких блоков нужен *прогрев* (warmup): скорость обучения поднимают постепенно (Xiong и др., 2020).
"""

# %% [markdown] lang="en" key="family-ask"
r"""
### The whole family

The original Transformer has two stacks (post-norm then; we keep pre-norm). An *encoder* block is ours without the causal mask. A block of the second stack, the *decoder*, also reads the encoder's output: cross-attention stands between its two sublayers (`EncoderDecoderBlock`). Decoder-only models, the subject of this course, need just the block you have.
"""

# %% [markdown] lang="ru" key="family-ask" en="706cdf2d"
r"""
### Всё семейство

В исходном Transformer две стопки блоков (тогда — post-norm, у нас — pre-norm). Блок *энкодера* — это наш блок без причинной маски. Блок второй стопки, *декодера*, читает ещё и выход энкодера: между двумя подслоями у него стоит перекрёстное внимание (`EncoderDecoderBlock`). Моделям из одного декодера (decoder-only), которым посвящён курс, хватает того блока, который у вас уже есть.
"""

# %% key="encoder-block"
from course_lib.layers import EncoderBlock

# %% key="encoder-decoder-block"
from course_lib.layers import EncoderDecoderBlock

# %% [markdown] lang="en" key="family-see"
r"""
Do our blocks compute the same as PyTorch's layers? One helper copies our weights into a PyTorch twin. PyTorch's attention has biases that ours lacks, so they stay zero.
"""

# %% [markdown] lang="ru" key="family-see" en="9ec90919"
r"""
Делают ли наши блоки то же, что слои PyTorch? Маленькая функция копирует наши веса в двойника из PyTorch. Во внимании PyTorch есть смещения, которых нет у нас, поэтому они остаются нулевыми.
"""

# %% key="family-twin"
def load_twin(twin: nn.Module, parts: dict[str, nn.Module]) -> nn.Module:
    state = {name: torch.zeros_like(value) for name, value in twin.state_dict().items()}
    for prefix, part in parts.items():
        state.update({prefix + name: value for name, value in part.state_dict().items()})
    twin.load_state_dict(state)
    return twin


style = {"dropout": 0.0, "activation": "gelu", "batch_first": True, "norm_first": True}

# %% key="family-agrees"
x = torch.randn(2, 5, 12, dtype=torch.float64)
future = ~causal_allowed(5, 5)
for ours, mask in ((EncoderBlock(12, 3, 24), None), (DecoderBlock(12, 3, 24), future)):
    parts = {
        "self_attn.in_proj_": ours.attn.qkv, "self_attn.out_proj.": ours.attn.out,
        "linear1.": ours.ffn.up, "linear2.": ours.ffn.down, "norm1.": ours.ln1, "norm2.": ours.ln2,
    }
    twin = load_twin(nn.TransformerEncoderLayer(12, 3, 24, **style), parts).double()
    difference = (ours.double()(x) - twin(x, src_mask=mask)).abs().max().item()
    print(type(ours).__name__, difference < 1e-12)
    assert difference < 1e-12

# %% [markdown] lang="en" key="family-agrees-say"
r"""
The encoder block and the decoder-only block are one layer under two masks. The third block has two attentions, so its twin gets one more pair of projections.
"""

# %% [markdown] lang="ru" key="family-agrees-say" en="3f644322"
r"""
Блок энкодера и блок модели из одного декодера — это один и тот же слой под двумя разными масками. В третьем блоке вниманий два, поэтому его двойнику нужна ещё одна пара проекций.
"""

# %% key="family-third"
ours = EncoderDecoderBlock(12, 3, 24)
cross_in = nn.Linear(12, 36, bias=False)
cross_in.weight = nn.Parameter(torch.cat([ours.cross_attn.q.weight, ours.cross_attn.kv.weight]))
parts = {
    "self_attn.in_proj_": ours.self_attn.qkv, "self_attn.out_proj.": ours.self_attn.out,
    "multihead_attn.in_proj_": cross_in, "multihead_attn.out_proj.": ours.cross_attn.out,
    "linear1.": ours.ffn.up, "linear2.": ours.ffn.down,
    "norm1.": ours.ln1, "norm2.": ours.ln2, "norm3.": ours.ln3,
}
twin = load_twin(nn.TransformerDecoderLayer(12, 3, 24, **style), parts).double()
memory = torch.randn(2, 4, 12, dtype=torch.float64)
difference = (ours.double()(x, memory) - twin(x, memory, tgt_mask=future)).abs().max()
print(type(ours).__name__, difference.item() < 1e-12)
assert difference < 1e-12

# %% [markdown] lang="en" key="floor-ask"
r"""
### Where do the parameters live?

All three agree with the library. Now count their matrices: attention has four of size $d \times d$, the feed-forward network two of $d \times d_{ff}$, usually with $d_{ff} = 4d$. `transformer_parameter_floor` adds them up into a `ParameterFloor`. What share of an encoder layer, then, is the feed-forward network?
"""

# %% [markdown] lang="ru" key="floor-ask" en="2167138a"
r"""
### Где живут параметры?

Все три совпали с библиотекой. Теперь посчитаем матрицы: у внимания их четыре, размером $d \times d$, у полносвязной сети — две, $d \times d_{ff}$, и обычно $d_{ff} = 4d$. `transformer_parameter_floor` складывает их в `ParameterFloor`. Какую же долю слоя энкодера занимает полносвязная сеть?
"""

# %% key="floor"
from course_lib.cost import ParameterFloor, transformer_parameter_floor

# %% key="matrix-count"
from course_lib.cost import count_matrix_weights

# %% [markdown] lang="en" key="floor-count"
r"""
The second function, `count_matrix_weights`, goes through a real layer and counts. Both are ready: before you run them, what share of an encoder layer is the feed-forward network?
"""

# %% [markdown] lang="ru" key="floor-count" en="67d9461b"
r"""
Вторая функция, `count_matrix_weights`, обходит настоящий слой и считает. Всё готово; но прежде чем запустить, прикиньте: какую долю слоя энкодера занимает полносвязная сеть?
"""

# %% lang="en" key="predict-ffn-share"
progress.predict(
    "ffn-share",
    "What share of an encoder layer's weights (0 to 1) is in its feed-forward network?",
)

# %% lang="ru" key="predict-ffn-share" en="b5d777be"
progress.predict(
    "ffn-share",
    "Какая доля весов слоя энкодера (от 0 до 1) приходится на полносвязную сеть?",
)

# %% key="floor-use"
counts = transformer_parameter_floor(512, 2048)
promise = reference["parameter_floor"]
for name, value in vars(counts).items():
    print(f"{name:18} {value}")
    assert value == promise[name]
assert counts.encoder_layer == count_matrix_weights(EncoderBlock(512, 8, 2048))
assert counts.decoder_layer == count_matrix_weights(EncoderDecoderBlock(512, 8, 2048))
progress.compare("ffn-share", round(counts.ffn_share_encoder, 3), within=0.1)

# %% [markdown] lang="en" key="floor-say"
r"""
Two thirds of an encoder layer are feed-forward. The formula gives a floor: biases, norms and embeddings come on top. `count_matrix_weights` found the same numbers in real blocks, so formula and code cannot drift apart.
"""

# %% [markdown] lang="ru" key="floor-say" en="4f54387b"
r"""
Две трети слоя энкодера занимает полносвязная сеть. Формула даёт нижнюю границу: смещения, нормализации и эмбеддинги прибавляются к ней. Те же числа `count_matrix_weights` насчитала в настоящих блоках, так что формула и код не разойдутся.
"""

# %% [markdown] lang="en" key="probe-ask"
r"""
## 8. Does the future leak?

Here is a test that needs no formulas. Change the last token of a sentence and see whether any *earlier* output moves: if one does, it has read the future. The probe, `CausalityProbe`, is a small fixed network whose only path between tokens is attention.
"""

# %% [markdown] lang="ru" key="probe-ask" en="f469c737"
r"""
## 8. Не просачивается ли будущее?

Вот проверка, которой не нужны формулы. Измените последний токен предложения и посмотрите, сдвинулся ли хоть один *более ранний* выход: если да, он прочёл будущее. Наш зонд `CausalityProbe` — маленькая сеть с постоянными весами, в которой токены связаны только вниманием.
"""

# %% key="probe"
from course_lib.causality import CausalityProbe

# %% key="probe-use"
before, after = torch.tensor([[1, 2, 3, 4, 5]]), torch.tensor([[1, 2, 3, 4, 9]])
for causal_flag in (True, False):
    probe = CausalityProbe(causal=causal_flag)
    leak = (probe(before) - probe(after))[:, :-1].abs().max().item()
    print(f"{causal_flag=} {leak:.2g}")
    assert leak <= 1e-7 if causal_flag else leak > 0.1

# %% [markdown] lang="en" key="probe-say"
r"""
With the mask the earlier outputs do not move at all; without it one moves by 0.3. But only the *last* token was changed: a leak from the third token to the first would pass unseen. A full check changes every later token in turn.
"""

# %% [markdown] lang="ru" key="probe-say" en="8356017e"
r"""
С маской более ранние выходы не сдвигаются вовсе, без неё один сдвигается на 0,3. Но изменён был только *последний* токен: утечка из третьего токена в первый осталась бы незамеченной. Полная проверка меняет по очереди каждый из последующих токенов.
"""

# %% key="leak"
def leak(model, token_ids: Tensor, other_id: int) -> float:
    moved = 0.0
    for position in range(1, token_ids.shape[1]):
        changed = token_ids.clone()
        changed[:, position] = other_id
        difference = (model(token_ids) - model(changed))[:, :position].abs().max().item()
        moved = max(moved, difference)
    return moved


for causal_flag in (True, False):
    print(f"{causal_flag=} {leak(CausalityProbe(causal=causal_flag), before, 9):.2g}")

# %% [markdown] lang="en" key="leak-say"
r"""
These few lines catch a dropped mask, an off-by-one and a normalisation across time alike: they ask only about the result. We meet them again in section 10, where a famous test goes blind.
"""

# %% [markdown] lang="ru" key="leak-say" en="4c57c43c"
r"""
Эти несколько строк ловят и потерянную маску, и промах на единицу, и нормализацию вдоль времени: они спрашивают только о результате. Мы ещё встретимся с ними в разделе 10, где одна знаменитая проверка окажется слепой.
"""

# %% [markdown] lang="en" key="nll-ask"
r"""
## 9. What a language model is asked to do

A model gives one number per vocabulary entry, the *logits*. Three steps lead from there to the number people quote: softmax, the *negative log-likelihood* (NLL) of the true token, and the exponential of its mean.

$$\text{logits } z \;\to\; p = \mathrm{softmax}(z) \;\to\; -\ln p_{\text{target}} \text{ (nats)} \;\to\; \exp(\text{mean}) = \text{perplexity}.$$

Walk them by hand, with four tokens and the last one as the truth.
"""

# %% [markdown] lang="ru" key="nll-ask" en="8fea2329"
r"""
## 9. Чего хотят от языковой модели

Модель даёт по одному числу на каждый токен словаря — *логиты*. От них к числу, которое обычно и приводят, ведут три шага: softmax, *отрицательное логарифмическое правдоподобие* (NLL) правильного токена и экспонента его среднего.

$$\text{логиты } z \;\to\; p = \mathrm{softmax}(z) \;\to\; -\ln p_{\text{target}} \text{ (наты)} \;\to\; \exp(\text{среднее}) = \text{перплексия}.$$

Пройдём их вручную: четыре токена, правильный — последний.
"""

# %% key="nll-by-hand"
promise = reference["next_token_nll"]
logits, target = promise["logits"], promise["target"]
exponents_by_hand = [math.exp(z - max(logits)) for z in logits]
probabilities = [e / sum(exponents_by_hand) for e in exponents_by_hand]
nll = -math.log(probabilities[target])
print([round(p, 4) for p in probabilities], f"{nll=:.4f} {math.exp(nll)=:.4f}")
assert all(abs(p - r) < 1e-12 for p, r in zip(probabilities, promise["probabilities"], strict=True))

# %% [markdown] lang="en" key="nll-by-hand-say"
r"""
The truth had probability 0.58, which costs 0.54 *nats* (a nat is to base $e$ what a bit is to base 2); the perplexity 1.72 says "as unsure as between 1.72 equally likely tokens". `token_nll` below does the same without ever computing the probability, so even $e^{-800}$, which a float rounds to zero, is no trouble.
"""

# %% [markdown] lang="ru" key="nll-by-hand-say" en="a574159a"
r"""
Вероятность правильного токена была 0,58, и стоит это 0,54 *ната* (нат для основания $e$ — то же, что бит для основания 2); перплексия 1,72 значит: «сомнений столько же, сколько при выборе из 1,72 равновероятного токена». `token_nll` ниже делает то же, не вычисляя самой вероятности, поэтому и $e^{-800}$, которое при обычном счёте округлится до нуля, ей не помеха.
"""

# %% key="token-nll"
from course_lib.likelihood import token_nll

# %% key="token-nll-use"
print(token_nll(logits, target), token_nll([800.0, 0.0], 1), math.exp(-800.0))
assert abs(token_nll(logits, target) - promise["nll"]) < 1e-12 and abs(nll - promise["nll"]) < 1e-12
assert token_nll([800.0, 0.0], 1) == 800.0 and math.exp(-800.0) == 0.0

# %% [markdown] lang="en" key="token-nll-say"
r"""
A model that knows nothing gives all $V$ tokens of its vocabulary the same probability and pays $\ln V$. With six tokens that is 1.79 nats, and we shall need this number twice.
"""

# %% [markdown] lang="ru" key="token-nll-say" en="ef5fa6e9"
r"""
Модель, которая не знает ничего, даёт всем $V$ токенам словаря равные вероятности и платит $\ln V$. Для шести токенов это 1,79 ната — число, которое понадобится нам дважды.
"""

# %% key="uniform-nll"
uniform = token_nll([0.0] * 6, 3)
print(f"{uniform=:.3f} {math.exp(uniform)=:.1f}")
assert abs(uniform - math.log(6)) < 1e-12

# %% [markdown] lang="en" key="ex-nll-statement"
r"""
### Exercise 6 (core). The loss of a padded batch

Write a function that returns the mean loss in nats per *valid predicted* token. `logits[:, t]` predict token $t+1$; `valid` marks the real tokens, and `None` means all of them. Shift wrongly, count the padding or average the means of the rows, and the model still trains happily.
"""

# %% [markdown] lang="ru" key="ex-nll-statement" en="44a1955f"
r"""
### Упражнение 6 (основное). Потери на батче с паддингом

Напишите функцию, которая возвращает средние потери в натах на *настоящий предсказанный* токен. `logits[:, t]` предсказывают токен $t+1$; `valid` отмечает настоящие токены, `None` значит, что настоящие все. Можно ошибиться со сдвигом, учесть паддинг или усреднить средние по строкам — модель всё равно будет прекрасно обучаться.
"""

# %% key="ex-nll" role="stub" exercise="nll"
def my_next_token_nll(logits: Tensor, token_ids: Tensor, valid: Tensor | None = None) -> float:
    # en: logits [B, T, V], token_ids [B, T], valid [B, T] bool -> mean nats per valid predicted token
    # ru: logits [B, T, V], token_ids [B, T], valid [B, T] bool -> нат на настоящий предсказанный токен
    raise NotImplementedError

# %% key="nll-contract" role="library"
from course_lib.contracts import check_nll_contract

# %% key="ex-nll-check" role="check" exercise="nll"
progress.check("nll", check_nll_contract, my_next_token_nll)

# %% [markdown] lang="en" key="ex-nll-hint-1" role="hint" exercise="nll"
r"""
Which logits have no token left to predict? Which token is predicted by nobody?
"""

# %% [markdown] lang="ru" key="ex-nll-hint-1" en="6d63b020" role="hint" exercise="nll"
r"""
Каким логитам уже нечего предсказывать? Какой токен никто не предсказывает?
"""

# %% [markdown] lang="en" key="ex-nll-hint-2" role="hint" exercise="nll"
r"""
`F.cross_entropy` with `reduction="none"` keeps one number per token. Divide once, by the number of valid targets in the whole batch.
"""

# %% [markdown] lang="ru" key="ex-nll-hint-2" en="7c695aaf" role="hint" exercise="nll"
r"""
`F.cross_entropy` с `reduction="none"` оставляет по числу на токен. Делите один раз: на число настоящих целей во всём батче.
"""

# %% [markdown] lang="en" key="ex-nll-hint-3" role="hint" exercise="nll"
r"""
Keep `logits[:, :-1]` and `token_ids[:, 1:]`, in double precision, and flatten both, because `F.cross_entropy` wants `[N, V]` and `[N]`. Choose from its answer by `valid[:, 1:]`, flattened likewise, and take the mean of what is left.
"""

# %% [markdown] lang="ru" key="ex-nll-hint-3" en="a5cb5593" role="hint" exercise="nll"
r"""
Оставьте `logits[:, :-1]` и `token_ids[:, 1:]`, перейдите к двойной точности и вытяните батч и время в одну ось: `F.cross_entropy` ждёт `[N, V]` и `[N]`. Из ответа выберите числа по маске `valid[:, 1:]`, вытянутой так же, и возьмите среднее оставшихся.
"""

# %% key="ex-nll-solution" role="solution" exercise="nll"
def my_next_token_nll(logits: Tensor, token_ids: Tensor, valid: Tensor | None = None) -> float:
    valid = torch.ones_like(token_ids, dtype=torch.bool) if valid is None else valid
    # en: [B, T - 1, V]: the last logits have nothing to predict
    # ru: [B, T - 1, V]: последним логитам нечего предсказывать
    wide = logits[:, :-1].double()
    nats = F.cross_entropy(wide.flatten(0, 1), token_ids[:, 1:].flatten(), reduction="none")
    return nats[valid[:, 1:].flatten()].mean().item()

# %% [markdown] lang="en" key="tiny-lm-ask"
r"""
## 10. A language model that fits on one screen

Embed tokens, add learned positional embeddings, apply one block, normalise, and compare with every token embedding to get logits. The output matrix *is* the embedding matrix, the very same parameter: this is weight tying.
"""

# %% [markdown] lang="ru" key="tiny-lm-ask" en="ba761435"
r"""
## 10. Языковая модель, которая умещается на одном экране

Взять эмбеддинги токенов, прибавить обучаемые позиционные эмбеддинги, применить один блок, нормализовать и сравнить с эмбеддингом каждого токена — получатся логиты. Выходная матрица и *есть* матрица эмбеддингов, тот же самый параметр: это называется связыванием весов.
"""

# %% key="tiny-lm-speaks"
from course_lib.tiny_lm import greedy_continuation

# %% [markdown] lang="en" key="tiny-lm-speaks-say"
r"""
The loop of `greedy_continuation` makes any such model speak: predict, take the likeliest token, append it, repeat. It switches to evaluation mode inside and restores the mode afterwards, and it never forgets the front of your text, the *prompt*, unless told to. Now the model itself, `TinyLM`; find the tied matrix in its constructor.
"""

# %% [markdown] lang="ru" key="tiny-lm-speaks-say" en="e9780964"
r"""
Цикл в `greedy_continuation` заставит говорить любую такую модель: предсказать, взять самый вероятный токен, приписать его, повторить. Внутри он переводит модель в режим оценки (eval), а потом возвращает прежний режим, и не забывает начало вашего текста — *промпта*, — пока его об этом не попросят. Теперь сама модель, `TinyLM`; найдите в конструкторе связанную матрицу.
"""

# %% key="tiny-lm"
from course_lib.tiny_lm import TinyLM

# %% key="parameter-count"
from course_lib.cost import count_parameters

# %% key="tiny-lm-use"
torch.manual_seed(seed)
model = TinyLM().double()
print(tuple(model(torch.tensor([[0, 1, 2]])).shape))
model.train()
model.generate(torch.tensor([[0, 1, 2]]), 3)
assert model.training and model.head.weight is model.token_embedding.weight
listed = sum(value.numel() for value in model.state_dict().values())
print(f"{listed=} {count_parameters(model)=}")
assert listed - count_parameters(model) == 6 * 24
print(expect_raises(ValueError, model, torch.tensor([[0, 6]])))

# %% [markdown] lang="en" key="tying-say"
r"""
Input and output hold the same matrix, which `count_parameters` counts once, so the model reads and writes with one dictionary: learning to *recognise* a token also moves how it is *predicted*. A copy looks equal until the first training step; the contract demands one Parameter, and takes a step as well. The last line is a refusal: there is no token 6 in a vocabulary of six.
"""

# %% [markdown] lang="ru" key="tying-say" en="62dd6b27"
r"""
Вход и выход хранят одну и ту же матрицу (`count_parameters` считает её один раз), поэтому модель читает и пишет по одному словарю: учась *узнавать* токен, она меняет и то, как его *предсказывает*. Копия неотличима до первого шага обучения; контракт требует, чтобы параметр был один, да ещё и делает такой шаг сам. Последняя строка — отказ: в словаре шесть токенов, и токена 6 среди них нет.
"""

# %% key="tying-contracts" role="library"
from course_lib.contracts import check_parameter_count_contract, check_tying_contract

# %% key="tying-contracts-use"
def tied_pair(vocab_size: int, d_model: int) -> nn.Module:
    pair = TinyLM(vocab_size=vocab_size, d_model=d_model, n_heads=1)
    # en: the name that the contract looks for
    # ru: имя, которое ищет контракт
    pair.embedding = pair.token_embedding
    return pair


print(check_parameter_count_contract(count_parameters))
check_tying_contract(tied_pair)

# %% [markdown] lang="en" key="windows-ask"
r"""
### Windows: the text and its own future

The text is 0 1 2 3 4 5, repeated. `next_token_windows` slides a window of 13 tokens along it, one token at a time: the first 12 are read, the last 12 are the answers, each position predicting its successor. Using true prefixes for every prediction at once is called *teacher forcing*.
"""

# %% [markdown] lang="ru" key="windows-ask" en="07bd8c67"
r"""
### Окна: текст и его собственное будущее

Наш текст — последовательность 0 1 2 3 4 5, много раз повторённая. `next_token_windows` двигает вдоль него окно из 13 токенов, каждый раз на один токен: первые 12 модель читает, последние 12 — ответы, и каждая позиция предсказывает следующую. Когда все предсказания делаются разом и каждое — по истинному префиксу, это называют *teacher forcing*: каждое предсказание опирается на истинный префикс.
"""

# %% key="windows"
from course_lib.training import next_token_windows

# %% key="windows-use"
goal = reference["tiny_lm"]
text = torch.tensor(goal["period"] * goal["training_repeats"])
windows = next_token_windows(text, goal["context"])
print(tuple(windows.shape))
print(windows[0, :-1].tolist(), windows[0, 1:].tolist(), sep="\n")

# %% [markdown] lang="en" key="training-words"
r"""
### The words of training

| word | what it means here |
|---|---|
| `nn.Module`, parameter | an object that holds tensors to be learned |
| `autograd`, `backward()` | PyTorch remembers each operation and works out the gradient of every parameter |
| optimiser, AdamW | the rule that moves parameters along their gradients; AdamW takes steps of like size for all |
| learning rate | the size of these steps |
| batch, epoch | the examples of one step; one pass through all data |
| dropout | zeros thrown in at random while training, none after `eval()`; our models have none |
"""

# %% [markdown] lang="ru" key="training-words" en="a2e3da70"
r"""
### Слова об обучении

| слово | что оно здесь значит |
|---|---|
| `nn.Module`, параметр | объект, который хранит обучаемые тензоры |
| `autograd`, `backward()` | PyTorch помнит каждую операцию и находит градиент каждого параметра |
| оптимизатор, AdamW | правило, которое сдвигает параметры по градиентам; у AdamW шаги для всех примерно одинаковы |
| скорость обучения (learning rate) | величина этих шагов |
| батч, эпоха | примеры одного шага; один проход по всем данным |
| dropout | случайные нули при обучении; после `eval()` их нет; у наших моделей его нет вовсе |
"""

# %% [markdown] lang="en" key="overfit-ask"
r"""
### The overfit test

A first question to any new model: can it memorise something tiny? If not, nothing bigger will help. The loop of `fit` is the usual one: predict, measure in nats (`next_token_loss`), step against the gradient. Double precision makes your curve agree with ours to many digits.
"""

# %% [markdown] lang="ru" key="overfit-ask" en="a007c326"
r"""
### Проверка на заучивание

Первый вопрос к любой новой модели: способна ли она заучить что-то крошечное? Если нет, браться за большее бесполезно. Цикл в `fit` обычный: предсказать, измерить в натах (`next_token_loss`), сделать шаг против градиента. Благодаря двойной точности ваша кривая совпадёт с нашей во многих знаках.
"""

# %% key="loss-function"
from course_lib.training import next_token_loss, predict_next

# %% key="fit"
from course_lib.training import fit

# %% [markdown] lang="en" key="fit-read"
r"""
`predict_next` makes the only shift of the whole training: logits at position $t$ answer for token $t+1$. Shifting twice, or not at all, is another bug that does not stop the training. Two measures for the result follow, both in evaluation mode: `mean_nll` is the mean loss, `next_token_accuracy` says how often the likeliest guess is right.
"""

# %% [markdown] lang="ru" key="fit-read" en="f71f9c0b"
r"""
Единственный за всё обучение сдвиг делает `predict_next`: логиты позиции $t$ отвечают за токен $t+1$. Сдвинуть дважды или не сдвинуть вовсе — ещё одна ошибка, которая обучения не остановит. Дальше — две меры результата, обе в режиме оценки: `mean_nll` — это средние потери, `next_token_accuracy` — то, как часто верна самая вероятная догадка.
"""

# %% key="fit-measures"
from course_lib.training import mean_nll, next_token_accuracy

# %% key="fit-use"
losses = fit(model, lambda step: windows, steps=steps, learning_rate=goal["learning_rate"])
accuracy = next_token_accuracy(model, windows)
print(f"{losses[0]=:.3f} {losses[-1]=:.5f} {accuracy=:.3f}")
assert losses[-1] < goal["loss_threshold"] and losses[-1] < losses[0] / 50
assert accuracy >= goal["accuracy_threshold"]

# %% [markdown] lang="en" key="fit-say"
r"""
The loss fell below the promised 0.02 nats, more than fiftyfold, and at least 99% of the next tokens are right. It began at 1.83, close to $\ln 6 = 1.79$: an untrained model with small embeddings knows nothing and nearly says so. In the picture, watch the curve leave the line of ignorance.
"""

# %% [markdown] lang="ru" key="fit-say" en="76412c1c"
r"""
Потери опустились ниже обещанных 0,02 ната, уменьшившись более чем в пятьдесят раз, и верно предсказано не меньше 99 % следующих токенов. Начинались они с 1,83, то есть близко к $\ln 6 = 1{,}79$: необученная модель с небольшими эмбеддингами ничего не знает и почти честно в этом признаётся. Посмотрите на рисунке, как кривая уходит с линии незнания.
"""

# %% key="drawing-loss" role="library"
from course_lib.plots.loss import draw_loss

# %% lang="en" key="loss-figure"
figure = draw_loss(
    {"TinyLM": losses},
    title="Learning 0 1 2 3 4 5 by heart",
    x_label="step",
    y_label="nats per token",
    level=(math.log(6), "ln 6: knowing nothing"),
)
show_figure(
    figure,
    name="loss",
    alt="Training loss over 121 steps on a logarithmic axis: it starts near 1.8, at the line ln 6 "
    "of a model that knows nothing, falls steeply for some forty steps, then slowly, and ends "
    "near 0.0002.",
)

# %% lang="ru" key="loss-figure" en="e74c32cf"
figure = draw_loss(
    {"TinyLM": losses},
    title="Заучиваем 0 1 2 3 4 5",
    x_label="шаг",
    y_label="нат на токен",
    level=(math.log(6), "ln 6: полное незнание"),
)
show_figure(
    figure,
    name="loss",
    alt="Потери за 121 шаг обучения, ось логарифмическая: начинаются около 1,8, у линии ln 6 "
    "(модель, которая не знает ничего), первые сорок шагов круто падают, потом снижаются "
    "медленно и доходят примерно до 0,0002.",
)

# %% [markdown] lang="en" key="continuation-ask"
r"""
Who has learnt a text can tell it. Give the model `0 1 2` and let it continue greedily: always the likeliest token, fed back as input. What should come out?
"""

# %% [markdown] lang="ru" key="continuation-ask" en="ff810298"
r"""
Выучил — расскажи. Дадим модели `0 1 2`, и пусть продолжает жадно: каждый раз берёт самый вероятный токен и тут же получает его на вход. Что должно получиться?
"""

# %% key="continuation"
spoken = model.generate(torch.tensor([[0, 1, 2]]), goal["new_tokens"])[0].tolist()
print(spoken)
truth = [token % 6 for token in range(len(spoken))]
hits = sum(a == b for a, b in zip(spoken[3:], truth[3:], strict=True)) / goal["new_tokens"]
assert hits >= goal["continuation_accuracy_threshold"]
print(expect_raises(ValueError, model.generate, torch.tensor([[0, 1, 2]]), 40))
print(model.generate(torch.tensor([[0, 1, 2]]), 40, sliding_window=True)[0, -8:].tolist())

# %% [markdown] lang="en" key="continuation-say"
r"""
It counts, round and round. The refusal says that 40 more tokens do not fit into a context of 32; a model that quietly forgets the front of your prompt answers a question you did not ask. The sliding window does forget it, but only when asked for by name, as in the last line.
"""

# %% [markdown] lang="ru" key="continuation-say" en="d45f4ead"
r"""
Модель считает по кругу. Отказ говорит, что ещё 40 токенов не помещаются в контекст длиной 32; модель, которая втихую забывает начало вашего текста, отвечает уже не на ваш вопрос. Скользящее окно тоже его забывает, но лишь по явной просьбе, как в последней строке.
"""

# %% [markdown] lang="en" key="gallery-ask"
r"""
### Honest addition 1: a gallery of silent bugs

Now the uncomfortable question: what did we *prove*? Five copies of our model follow, each with one planted bug.

| copy | what is wrong with it |
|---|---|
| `dropped` | no causal mask: every token reads all the tokens |
| `inverted` | the mask is inverted: a token reads only what comes after it |
| `transposed` | the mask is transposed: a token reads itself and what comes after it |
| `norm_over_time` | the first layer norm takes mean and variance over all the tokens |
| `copied_head` | the output matrix is a copy of the embedding, not the same parameter |
"""

# %% [markdown] lang="ru" key="gallery-ask" en="0d4c7968"
r"""
### Начистоту, часть 1: кунсткамера тихих ошибок

Теперь неудобный вопрос: что же мы *доказали*? Перед вами пять копий нашей модели, в каждую подброшена одна ошибка.

| копия | что в ней не так |
|---|---|
| `dropped` | причинной маски нет: каждый токен читает все токены |
| `inverted` | маска инвертирована: токен читает только то, что стоит после него |
| `transposed` | маска транспонирована: токен читает себя и то, что стоит после него |
| `norm_over_time` | первая нормализация слоя берёт среднее и дисперсию по всем токенам |
| `copied_head` | выходная матрица — копия эмбеддингов, а не тот же самый параметр |
"""

# %% [markdown] lang="en" key="ex-gallery-statement"
r"""
### Exercise 7 (warm-up). Predict before you run

Which copies will pass the overfit test all the same? Write `True` or `False` for each, then run on.
"""

# %% [markdown] lang="ru" key="ex-gallery-statement" en="4ace93eb"
r"""
### Упражнение 7 (разминка). Сначала предскажите

Какие копии всё равно пройдут проверку на заучивание? Впишите для каждой `True` или `False`, потом запускайте следующие ячейки.
"""

# %% key="ex-gallery" role="stub" exercise="gallery"
# en: True = this copy passes the overfit test all the same
# ru: True — эта копия всё равно пройдёт проверку на заучивание
my_prediction = {
    "dropped": None,
    "inverted": None,
    "transposed": None,
    "norm_over_time": None,
    "copied_head": None,
}

# %% [markdown] lang="en" key="gallery-plant"
r"""
Three of the bugs go in through one small function, the other two by hand.
"""

# %% [markdown] lang="ru" key="gallery-plant" en="8c2e221c"
r"""
Три ошибки вносит одна маленькая функция, остальные две мы вносим вручную.
"""

# %% key="gallery-masks"
def with_mask(student: nn.Module, change: Callable[[Tensor], Tensor]) -> nn.Module:
    layer = student.block.attn

    def forward(x: Tensor, **options) -> Tensor:
        q, k, v = (split_heads(part, layer.n_heads) for part in layer.qkv(x).chunk(3, dim=-1))
        allowed = change(causal_allowed(x.shape[1], x.shape[1]))
        read = scaled_dot_product_attention(q, k, v, allowed, empty_row="zero")
        return layer.out(merge_heads(read.output))

    layer.forward = forward
    return student

# %% key="gallery-copies"
def fresh_student() -> nn.Module:
    torch.manual_seed(seed)
    return TinyLM().double()


gallery = {
    "dropped": with_mask(fresh_student(), torch.ones_like),
    "inverted": with_mask(fresh_student(), torch.logical_not),
    "transposed": with_mask(fresh_student(), torch.t),
    "norm_over_time": fresh_student(),
    "copied_head": fresh_student(),
}
norm = gallery["norm_over_time"].block.ln1
norm.forward = lambda x: norm.weight * F.layer_norm(x, x.shape[1:]) + norm.bias
head = gallery["copied_head"].head
head.weight = nn.Parameter(head.weight.detach().clone())

# %% [markdown] lang="en" key="gallery-train-ask"
r"""
Now the same test for every copy: the same windows, steps and thresholds.
"""

# %% [markdown] lang="ru" key="gallery-train-ask" en="2a98b837"
r"""
Теперь та же проверка для каждой копии: те же окна, шаги и пороги.
"""

# %% key="gallery-train"
passed = {}
for name, student in gallery.items():
    rate = goal["learning_rate"]
    loss = fit(student, lambda step: windows, steps=steps, learning_rate=rate)[-1]
    accuracy = next_token_accuracy(student, windows)
    passed[name] = loss < goal["loss_threshold"] and accuracy >= goal["accuracy_threshold"]
    print(f"{name:15} {loss=:.5f} {accuracy=:.3f}")

# %% key="predictions" role="library"
from course_lib.mistakes.gallery import check_predictions

# %% key="ex-gallery-check" role="check" exercise="gallery"
progress.check("gallery", check_predictions, my_prediction, passed)

# %% [markdown] lang="en" key="ex-gallery-hint-1" role="hint" exercise="gallery"
r"""
After a 3 always comes a 4. What must a copy be able to see to get that right?
"""

# %% [markdown] lang="ru" key="ex-gallery-hint-1" en="2434d51d" role="hint" exercise="gallery"
r"""
После 3 всегда идёт 4. Что должна видеть копия, чтобы это угадать?
"""

# %% [markdown] lang="en" key="ex-gallery-hint-2" role="hint" exercise="gallery"
r"""
A token reaches its own output by two ways: through attention and along the residual stream. Which of the five bugs closes both?
"""

# %% [markdown] lang="ru" key="ex-gallery-hint-2" en="1aff994f" role="hint" exercise="gallery"
r"""
К своему выходу токен попадает двумя путями: через внимание и по остаточному потоку. Какая из пяти ошибок закрывает оба?
"""

# %% key="ex-gallery-solution" role="solution" exercise="gallery"
my_prediction = {
    "dropped": True,
    "inverted": True,
    "transposed": True,
    "norm_over_time": True,
    "copied_head": True,
}

# %% [markdown] lang="en" key="gallery-say"
r"""
All five pass, and the loss of some is *lower* than ours. The reason is the text: the current token alone tells the next. Such a text is called first-order Markov, and a model needs neither past nor future to master it. A green test proves only what it *can* fail on.
"""

# %% [markdown] lang="ru" key="gallery-say" en="5340fd59"
r"""
Проходят все пять, а у некоторых потери даже *ниже*, чем у нашей модели. Причина в тексте: следующий токен однозначно определяется текущим. Такой текст называют марковским первого порядка: чтобы его освоить, не нужны ни прошлое, ни будущее. Зелёная проверка доказывает лишь то, на чём она *способна* провалиться.
"""

# %% [markdown] lang="en" key="gallery-contract-ask"
r"""
Now the contracts. The one for causality is `leak` from section 8 grown up: every position, many tokens, several lengths. Our own model first, then the copies.
"""

# %% [markdown] lang="ru" key="gallery-contract-ask" en="1474ec06"
r"""
Теперь слово контрактам. Контракт причинности — это повзрослевшая `leak` из раздела 8: каждая позиция, много токенов, разные длины. Сначала наша модель, потом копии.
"""

# %% key="causality-contract" role="library"
from course_lib.contracts import check_causality_contract

# %% key="gallery-own"
check_causality_contract(model, vocab_size=6, length=goal["context"])

# %% key="gallery-named"
for name, student in gallery.items():
    try:
        check_causality_contract(student, vocab_size=6, length=goal["context"])
        print(f"{name:15} ✓")
    except ContractViolation as broken:
        print(f"{name:15} ✗ {broken.clause}: {', '.join(broken.mistakes)}")

# %% key="gallery-message"
sizes = {"vocab_size": 6, "length": goal["context"]}
inverted = gallery["inverted"]
print(expect_raises(ContractViolation, check_causality_contract, inverted, **sizes))

# %% [markdown] lang="en" key="gallery-contract-say"
r"""
Four leaks found, each on two tokens. Only the pattern of what moves is visible from outside, so bugs that leave the same pattern cannot be told apart, and the message lists them all. `copied_head` passes: it does not leak. Its bug belongs to the contract of tying.
"""

# %% [markdown] lang="ru" key="gallery-contract-say" en="7aa390fc"
r"""
Найдены четыре утечки, и каждая показана на двух токенах. Снаружи виден лишь узор того, что сдвинулось, поэтому ошибки с одинаковым узором неразличимы, и сообщение перечисляет их все. `copied_head` проходит: утечки в ней нет. Её ошибка — дело контракта связывания.
"""

# %% key="gallery-tying"
def copied_pair(vocab_size: int, d_model: int) -> nn.Module:
    pair = tied_pair(vocab_size, d_model)
    pair.head.weight = nn.Parameter(pair.head.weight.detach().clone())
    return pair


print(expect_raises(ContractViolation, check_tying_contract, copied_pair))

# %% [markdown] lang="en" key="random-ask"
r"""
### Honest addition 2: a test that sees

Train on *uniformly random* tokens, fresh ones at every step. The past says nothing about the next token, so on average an honest model cannot get below $\ln 6 = 1.79$ nats on fresh data. A model that sees the future can simply copy it.
"""

# %% [markdown] lang="ru" key="random-ask" en="ebab60c8"
r"""
### Начистоту, часть 2: проверка, которая видит

Обучим модель на *равномерно случайных* токенах, новых на каждом шаге. Прошлое ничего не говорит о следующем токене, поэтому честная модель на новых данных в среднем не опустится ниже $\ln 6 = 1{,}79$ ната. А модель, которая видит будущее, может его просто списать.
"""

# %% key="random-tokens"
def random_token_student(causal: bool) -> nn.Module:
    torch.manual_seed(seed)
    student = TinyLM().double()
    student.block.attn.causal = causal
    draws = torch.Generator().manual_seed(seed)
    shape = (32, goal["context"] + 1)
    fit(
        student,
        lambda step: torch.randint(6, shape, generator=draws),
        steps=random_steps,
        learning_rate=0.01,
    )
    return student

# %% key="random-tokens-use"
draws = torch.Generator().manual_seed(seed + 1)
fresh = torch.randint(6, (256, goal["context"] + 1), generator=draws)
honest_model, cheating_model = random_token_student(True), random_token_student(False)
honest, cheating = mean_nll(honest_model, fresh), mean_nll(cheating_model, fresh)
print(f"{honest=:.3f} {math.log(6)=:.3f} {cheating=:.3f}")
assert honest > math.log(6) - 0.02 and cheating < 1.2

# %% [markdown] lang="en" key="random-say"
r"""
The honest model stays at the floor; the leaky one falls far below it. On data whose floor is known, a lower loss means a leak. Three tests, three answers: memorising says "it can learn", random tokens say "it did not learn to cheat", the contract says where it leaks and which bugs leak like that.
"""

# %% [markdown] lang="ru" key="random-say" en="fc15c4e2"
r"""
Честная модель остаётся у нижней границы, модель с утечкой опускается намного ниже. Если для данных известна нижняя граница, меньшие потери означают утечку. Три проверки — три ответа: заучивание говорит «она умеет учиться», случайные токены — «списывать она не научилась», контракт — «вот где утечка и какие ошибки её дают».
"""

# %% [markdown] lang="en" key="sampling-ask"
r"""
## 11. From probabilities to text

Greedy decoding always takes the likeliest token and soon repeats itself. *Sampling* draws instead, and three knobs decide what may be drawn. *Temperature* divides the logits, *top-k* keeps the k likeliest, *top-p* keeps the smallest set whose mass reaches p.
"""

# %% [markdown] lang="ru" key="sampling-ask" en="a1d4d56e"
r"""
## 11. От вероятностей к тексту

Жадное декодирование всегда берёт самый вероятный токен и скоро начинает повторяться. *Сэмплирование* вместо этого тянет жребий, а что может выпасть, решают три регулятора. На *температуру* делятся логиты, *top-k* оставляет k самых вероятных токенов, *top-p* — наименьшее множество, масса которого достигает p.
"""

# %% [markdown] lang="en" key="ex-sampling-statement"
r"""
### Exercise 8 (core). Write top-k and top-p

Turn logits into the final distribution: temperature, then top-k, then top-p on the renormalised survivors. Ties go to the lower id, exactly k survive, the crossing token stays, and senseless arguments raise `ValueError`.
"""

# %% [markdown] lang="ru" key="ex-sampling-statement" en="c7e041bf"
r"""
### Упражнение 8 (основное). Напишите top-k и top-p

Превратите логиты в окончательное распределение: температура, затем top-k, затем top-p по оставшимся токенам после перенормировки. При равенстве выигрывает меньший номер, уцелеть должно ровно k токенов, токен на пороге остаётся, а бессмысленные аргументы вызывают `ValueError`.
"""

# %% key="ex-sampling" role="stub" exercise="sampling"
def my_token_distribution(logits, temperature=1.0, top_k=None, top_p=None) -> list[float]:
    # en: a list of probabilities, as long as logits; removed ids get exactly 0.0
    # ru: список вероятностей той же длины, что и logits; у убранных токенов ровно 0.0
    raise NotImplementedError

# %% key="sampling-contract" role="library"
from course_lib.contracts import check_sampling_contract

# %% key="ex-sampling-check" role="check" exercise="sampling"
progress.check("sampling", check_sampling_contract, my_token_distribution)

# %% [markdown] lang="en" key="ex-sampling-hint-order" role="hint" exercise="sampling"
r"""
Before any code, write the order down: what is divided, what is cut and when, and after which cut must the shares sum to 1 again?
"""

# %% [markdown] lang="ru" key="ex-sampling-hint-order" en="e23704b5" role="hint" exercise="sampling"
r"""
До всякого кода запишите порядок действий: что делится, что и когда отсекается, после какого отсечения сумма долей должна снова стать равной 1?
"""

# %% [markdown] lang="en" key="ex-sampling-hint-1" role="hint" exercise="sampling"
r"""
Sort the *ids* once, by falling logit and rising id: `sorted(range(V), key=lambda i: (-logits[i], i))`. Both filters then cut the tail of this list.
"""

# %% [markdown] lang="ru" key="ex-sampling-hint-1" en="6aaea222" role="hint" exercise="sampling"
r"""
Один раз отсортируйте *номера* по убыванию логита, а при равенстве — по возрастанию номера: `sorted(range(V), key=lambda i: (-logits[i], i))`. Оба фильтра потом лишь отрезают хвост этого списка.
"""

# %% [markdown] lang="en" key="ex-sampling-hint-2" role="hint" exercise="sampling"
r"""
For top-p walk down the list, adding probabilities, and stop *after* the token that brings the sum to p. Remember to renormalise between top-k and top-p, to shift the logits before exponentiating, and to filter nothing at $p = 1$.
"""

# %% [markdown] lang="ru" key="ex-sampling-hint-2" en="c4a41a25" role="hint" exercise="sampling"
r"""
Для top-p идите по списку, складывая вероятности, и остановитесь *после* токена, с которым сумма достигла p. Не забудьте перенормировать между top-k и top-p, сдвинуть логиты перед экспонентой и не отсеивать ничего при $p = 1$.
"""

# %% key="ex-sampling-solution" role="solution" exercise="sampling"
def my_token_distribution(logits, temperature=1.0, top_k=None, top_p=None) -> list[float]:
    size = len(logits)
    if size == 0 or not all(math.isfinite(value) for value in logits):
        raise ValueError("logits must be finite and not empty")
    if not (math.isfinite(temperature) and temperature > 0):
        raise ValueError(f"temperature={temperature} must be finite and positive")
    if top_k is not None and not 1 <= top_k <= size:
        raise ValueError(f"top_k={top_k} is outside 1..{size}")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p={top_p} is outside (0, 1]")
    ids = sorted(range(size), key=lambda i: (-logits[i], i))[:top_k]
    mass = {i: math.exp((logits[i] - logits[ids[0]]) / temperature) for i in ids}
    if top_p is not None and top_p < 1:
        total, reached, nucleus = math.fsum(mass.values()), 0.0, []
        for i in ids:
            nucleus.append(i)
            reached += mass[i] / total
            if reached >= top_p:
                break
        ids = nucleus
    total = math.fsum(mass[i] for i in ids)
    return [mass[i] / total if i in ids else 0.0 for i in range(size)]

# %% key="token-distribution" role="ours"
from course_lib.sampling import nucleus_size, tempered_softmax, token_distribution

# %% [markdown] lang="en" key="nucleus-read"
r"""
Folded above is our way. `tempered_softmax` is the softmax you know, with the temperature inside and the largest logit subtracted. `nucleus_size` walks down from the likeliest token until the mass reaches p. `token_distribution` uses them in a fixed order; ties go to the lower id, so the result never depends on the sorting.
"""

# %% [markdown] lang="ru" key="nucleus-read" en="7f81a568"
r"""
Наш вариант свёрнут выше. `tempered_softmax` — знакомый softmax, только внутри него есть температура, а наибольший логит вычтен. `nucleus_size` идёт от самого вероятного токена вниз, пока масса не достигнет p. `token_distribution` применяет их в строго заданном порядке; при равенстве выигрывает меньший номер, так что результат не зависит от сортировки.
"""

# %% key="sampling-adopt"
token_distribution = progress.adopt("sampling", my_token_distribution, token_distribution)

# %% key="sampling-scenario"
from course_lib.sampling import sampling_scenario

# %% key="sampling-use"
scenario = sampling_scenario()
for name, values in scenario.items():
    print(f"{name:14}", [round(value, 4) for value in values])
assert all(abs(sum(values) - 1) < 1e-12 for name, values in scenario.items() if name != "logits")

# %% [markdown] lang="en" key="scenario-say"
r"""
The first row of `sampling_scenario` holds the logits $[3, 2, 1, 0]$, the others four policies for them, each a distribution with sum 1. Before you look at the picture: which of the four leave the last token a chance?
"""

# %% [markdown] lang="ru" key="scenario-say" en="fc7af1ae"
r"""
Первая строка в `sampling_scenario` — логиты $[3, 2, 1, 0]$, остальные — четыре стратегии для них, и каждая даёт распределение с суммой 1. Прежде чем взглянуть на рисунок: какие из четырёх оставляют последнему токену шанс?
"""

# %% key="drawing-sampling" role="library"
from course_lib.plots.sampling_bars import draw_sampling

# %% lang="en" key="sampling-figure"
figure = draw_sampling(
    [scenario[name] for name in ("temperature_1", "temperature_2", "top_k_2", "top_p_09")],
    panel_titles=("temperature 1", "temperature 2", "top-k, k = 2", "top-p, p = 0.9"),
    x_label="token",
    y_label="probability",
)
show_figure(
    figure,
    name="sampling",
    alt="Four bar charts for logits 3, 2, 1, 0. Temperature 1: 0.64, 0.24, 0.09, 0.03. "
    "Temperature 2 is flatter: 0.46 to 0.10. Top-k 2 leaves "
    "0.73 and 0.27; top-p 0.9 leaves 0.67, 0.24, 0.09; a cross marks each removed token.",
)

# %% lang="ru" key="sampling-figure" en="c9b4e8e8"
figure = draw_sampling(
    [scenario[name] for name in ("temperature_1", "temperature_2", "top_k_2", "top_p_09")],
    panel_titles=("температура 1", "температура 2", "top-k, k = 2", "top-p, p = 0,9"),
    x_label="токен",
    y_label="вероятность",
)
show_figure(
    figure,
    name="sampling",
    alt="Четыре столбчатые диаграммы для логитов 3, 2, 1, 0. Температура 1: 0,64; 0,24; 0,09; "
    "0,03. При температуре 2 ровнее: от 0,46 до 0,10. Top-k 2 оставляет 0,73 и 0,27; "
    "top-p 0,9 — 0,67; 0,24; 0,09; убранные токены отмечены крестиками.",
)

# %% [markdown] lang="en" key="sampling-say"
r"""
Temperature 2 flattens without removing anyone. Top-k 2 removes two tokens whatever their probability; top-p 0.9 keeps the third, because the first two reach only 0.88. The token that crosses the threshold stays in: dropping it is a common slip.
"""

# %% [markdown] lang="ru" key="sampling-say" en="f36632fa"
r"""
Температура 2 выравнивает, никого не убирая. Top-k 2 убирает два токена, какова бы ни была их вероятность; top-p 0,9 оставляет третий, потому что первые два набирают лишь 0,88. Токен, на котором порог достигнут, остаётся: выбросить его — частый промах.
"""

# %% key="sampling-nucleus"
first_two = sum(scenario["temperature_1"][:2])
survivors_share = sum(scenario["temperature_1"][:2]) / sum(scenario["temperature_1"][:3])
print(f"{first_two=:.2f} {survivors_share=:.2f}")
assert scenario["top_p_09"][2] > 0 and scenario["top_p_09"][3] == 0
both_filters = token_distribution(scenario["logits"], top_k=3, top_p=0.9)
assert both_filters[2] == 0 and token_distribution([1.0] * 4, top_k=2) == [0.5, 0.5, 0.0, 0.0]
assert token_distribution(scenario["logits"], top_p=1.0) == scenario["temperature_1"]

# %% [markdown] lang="en" key="sampling-nucleus-say"
r"""
With both filters on, top-p looks at the *survivors* of top-k: among three tokens the first two hold 0.91, so now the third goes. Ties keep the lower ids, and $p = 1$ filters nothing, as the assertions check.
"""

# %% [markdown] lang="ru" key="sampling-nucleus-say" en="a5bfab72"
r"""
Когда включены оба фильтра, top-p смотрит на *уцелевших* после top-k: среди трёх токенов на первые два приходится 0,91, и теперь третий выбывает. При равенстве остаются меньшие номера, а $p = 1$ не отсеивает ничего — ячейка проверяет и это.
"""

# %% [markdown] lang="en" key="sampling-view-ask"
r"""
### See it move: three knobs

`view_sampling_dial` puts all three knobs on the same logits. Before you touch them: can temperature alone ever remove a token? And with top-p at 0.9, what does a higher temperature do to the number of tokens left?
"""

# %% [markdown] lang="ru" key="sampling-view-ask" en="d7887908"
r"""
### Посмотрите в движении: три регулятора

В `view_sampling_dial` к тем же логитам подключены все три регулятора. Прежде чем их трогать: может ли температура сама убрать хоть один токен? А если top-p равен 0,9, как изменится число оставшихся токенов, когда температуру поднимут?
"""

# %% key="sampling-view-code" role="library"
from course_lib.views.sampling_dial import view_sampling_dial

# %% lang="en" key="sampling-view-words" role="folded"
dial_words = {
    "temperature": "Temperature",
    "top_k": "Top-k",
    "top_p": "Top-p",
    "off": "off",
    "title": "{kept} of {total} tokens can still come",
    "x_label": "probability",
    "before": "temperature 1, no filter",
    "after": "with these settings",
    "removed": "removed",
    "alt": "Bars at temperature {temperature}, top-k {top_k}, top-p {top_p}. "
    "Still possible: {kept} of {total}. {probs}",
}

# %% lang="ru" key="sampling-view-words" en="3f265175" role="folded"
dial_words = {
    "temperature": "Температура",
    "top_k": "Top-k",
    "top_p": "Top-p",
    "off": "выключено",
    "title": "могут выпасть токены: {kept} из {total}",
    "x_label": "вероятность",
    "before": "температура 1, без фильтров",
    "after": "с этими настройками",
    "removed": "убрано",
    "alt": "Столбцы при температуре {temperature}, top-k {top_k}, top-p {top_p}. "
    "Могут выпасть: {kept} из {total}. {probs}",
}

# %% lang="en" key="sampling-view"
def turned(temperature: float, top_k: int | None, top_p: float | None) -> list[float]:
    return token_distribution(scenario["logits"], temperature, top_k, top_p)


view_sampling_dial(
    turned, token_labels=("token 0", "token 1", "token 2", "token 3"), words=dial_words
)
left = [4 - turned(t, None, 0.9).count(0.0) for t in (0.5, 1.0, 2.0)]
print(left, min(turned(0.1, None, None)) > 0)
assert left == [2, 3, 4]

# %% lang="ru" key="sampling-view" en="c3492697"
def turned(temperature: float, top_k: int | None, top_p: float | None) -> list[float]:
    return token_distribution(scenario["logits"], temperature, top_k, top_p)


view_sampling_dial(
    turned, token_labels=("токен 0", "токен 1", "токен 2", "токен 3"), words=dial_words
)
left = [4 - turned(t, None, 0.9).count(0.0) for t in (0.5, 1.0, 2.0)]
print(left, min(turned(0.1, None, None)) > 0)
assert left == [2, 3, 4]

# %% [markdown] lang="en" key="sampling-view-say"
r"""
Temperature alone removes nobody: even at 0.1 the last token keeps a crumb. But it moves the boundary of top-p: at temperatures 0.5, 1 and 2 the same $p = 0.9$ keeps 2, 3 and 4 tokens. Top-k is blind to it, since dividing by a positive number keeps the order.
"""

# %% [markdown] lang="ru" key="sampling-view-say" en="37e44ecc"
r"""
Сама по себе температура не убирает никого: даже при 0,1 последнему токену остаётся крошка. Зато она двигает границу top-p: при температурах 0,5, 1 и 2 одно и то же $p = 0{,}9$ оставляет 2, 3 и 4 токена. Top-k её не замечает: деление на положительное число порядка не меняет.
"""

# %% [markdown] lang="en" key="draws-ask"
r"""
Do real draws follow the numbers? Take 20,000 and compare frequencies with probabilities; a removed token must never appear.
"""

# %% [markdown] lang="ru" key="draws-ask" en="04879164"
r"""
Подчиняется ли жребий этим вероятностям? Вытянем 20 000 токенов и сравним частоты с вероятностями; убранный токен не должен выпасть ни разу.
"""

# %% key="draws"
probs = scenario["top_p_09"]
drawn = random.Random(seed).choices(range(4), weights=probs, k=20_000)
frequencies = [drawn.count(token) / 20_000 for token in range(4)]
print([round(value, 3) for value in frequencies])
assert all(abs(f - p) < 0.015 for f, p in zip(frequencies, probs, strict=True))
assert frequencies[3] == 0

# %% [markdown] lang="en" key="draws-say"
r"""
They do: every frequency lies within 0.015 of its probability, and the removed token never came up.
"""

# %% [markdown] lang="ru" key="draws-say" en="4960beec"
r"""
Следует: каждая частота отличается от своей вероятности меньше чем на 0,015, а убранный токен не выпал ни разу.
"""

# %% [markdown] lang="en" key="order-ask"
r"""
### Break it: the order of the knobs

Our order is temperature, then top-k, then top-p on what is left. Does it matter? Take logits $[3, 2, 1]$, temperature 0.5 and $p = 0.8$, and compare our order with the reverse: truncate first, cool later.
"""

# %% [markdown] lang="ru" key="order-ask" en="129e6146"
r"""
### Сломаем: порядок регуляторов

Наш порядок: температура, затем top-k, затем top-p по тому, что осталось. Важен ли он? Возьмём логиты $[3, 2, 1]$, температуру 0,5 и $p = 0{,}8$ и сравним наш порядок с обратным: сначала отсечь, потом охладить.
"""

# %% lang="en" key="predict-knob-order"
progress.predict(
    "knob-order",
    "Which order leaves more tokens to draw from?",
    {
        "same": "both leave the same tokens",
        "temperature": "temperature first, then top-p",
        "truncation": "top-p first, then temperature",
    },
)

# %% lang="ru" key="predict-knob-order" en="7e456e30"
progress.predict(
    "knob-order",
    "При каком порядке жребий тянут из большего числа токенов?",
    {
        "same": "при любом: остаются одни и те же токены",
        "temperature": "сначала температура, потом top-p",
        "truncation": "сначала top-p, потом температура",
    },
)

# %% key="order-break"
temperature_first = token_distribution([3.0, 2.0, 1.0], temperature=0.5, top_p=0.8)
truncation_first = token_distribution([3.0, 2.0, 1.0], top_p=0.8)
orders = {"temperature_first": temperature_first, "truncation_first": truncation_first}
for name, values in orders.items():
    print(name, [token for token, p in enumerate(values) if p > 0])
assert temperature_first == [1.0, 0.0, 0.0] and truncation_first[1] > 0
k_then_p = token_distribution([3.0, 2.0, 1.0, 0.0], top_k=3, top_p=0.9)
p_alone = token_distribution([3.0, 2.0, 1.0, 0.0], top_p=0.9)
print("top_k=3, top_p=0.9:", 4 - k_then_p.count(0.0), "| top_p=0.9:", 4 - p_alone.count(0.0))
assert k_then_p.count(0.0) == 2 and p_alone.count(0.0) == 1
removed = temperature_first.count(0.0) - truncation_first.count(0.0)
outcome = "truncation" if removed > 0 else "temperature" if removed < 0 else "same"
progress.compare("knob-order", outcome)

# %% [markdown] lang="en" key="order-say"
r"""
Temperature first keeps one token; truncation first keeps two, and cooling them later does not remove the second. The same settings give different texts in different programs, even in two releases of one library ([transformers#8686](https://github.com/huggingface/transformers/issues/8686)). At temperature 1 the place of the temperature cannot show, so test yours away from 1; that top-k comes before top-p shows even there, as the last line says: k first leaves two tokens, p first would leave three.
"""

# %% [markdown] lang="ru" key="order-say" en="c3f13b6d"
r"""
Сначала температура — остаётся один токен; сначала отсечение — остаются два, и последующее охлаждение второго не уберёт. Одни и те же настройки дают разные тексты в разных программах и даже в двух версиях одной библиотеки ([transformers#8686](https://github.com/huggingface/transformers/issues/8686)). При температуре 1 место температуры ничем себя не выдаёт, поэтому проверяйте его при температуре, далёкой от 1; а то, что top-k стоит перед top-p, видно и при ней, как показывает последняя строка: сначала k — остаются два токена, сначала p — остались бы три.
"""

# %% [markdown] lang="en" key="ex-contract-statement"
r"""
### Exercise 9 (stretch). Write a contract

Our contracts have judged your code; now your contract is judged. Write asserts that hold *any* `token_distribution` to what this section promised. Compare with numbers worked out by hand: a project of your own has no second implementation to ask.

`score_contract` runs your contract on 57 wrong functions and 6 right ones that you do not see. A right one must pass, however it is written and rounded; at least four in five wrong ones must make you raise. Each run describes one that slipped through.
"""

# %% [markdown] lang="ru" key="ex-contract-statement" en="8247984d"
r"""
### Упражнение 9 (со звёздочкой). Напишите контракт

Наши контракты проверяли ваш код; теперь проверят ваш контракт. Напишите условия (assert), по которым *любая* `token_distribution` держит обещания этого раздела. Сравнивайте с числами, посчитанными вручную: в вашем проекте второй реализации не будет.

`score_contract` прогоняет ваш контракт на 57 неверных функциях и 6 верных, которых вы не видите. Верную нужно принять, как бы она ни была написана и ни округляла; из неверных исключение должны вызвать хотя бы четыре из пяти. После каждого запуска описана одна из пропущенных.
"""

# %% key="ex-contract" role="stub" exercise="contract"
def my_sampling_contract(token_distribution) -> None:
    # en: raise, by an assert for example, where a promise is broken; otherwise return nothing
    # ru: вызовите исключение, если обещание нарушено; иначе просто выйдите
    raise NotImplementedError

# %% key="contract-panel" role="library"
from course_lib.mistakes.sampling_panel import score_contract

# %% key="ex-contract-check" role="check" exercise="contract"
progress.check("contract", score_contract, my_sampling_contract)

# %% [markdown] lang="en" key="ex-contract-hint-1" role="hint" exercise="contract"
r"""
Which logits give shares that you can do in your head? `[math.log(share) for share in (2, 4, 1, 3)]` gives 0.2, 0.4, 0.1, 0.3, out of order, so that a lost order shows. A small function inside yours that calls, compares to 1e-5 and names the settings when it fails makes every promise one line.
"""

# %% [markdown] lang="ru" key="ex-contract-hint-1" en="da5ae4f5" role="hint" exercise="contract"
r"""
От каких логитов доли считаются в уме? `[math.log(share) for share in (2, 4, 1, 3)]` даёт 0,2, 0,4, 0,1 и 0,3, причём не по порядку, так что потерянный порядок будет заметен. Напишите внутри своей функции маленькую: она вызывает, сравнивает с точностью до 1e-5 и при неудаче называет настройки. Тогда каждое обещание займёт одну строку.
"""

# %% [markdown] lang="en" key="ex-contract-hint-2" role="hint" exercise="contract"
r"""
Try each knob alone, then in pairs. A pair is worth a line only if the wrong order gives another answer: with `top_k=2, top_p=0.5` the likeliest token holds 4/7 of what top-k left, but only 0.4 of everything.
"""

# %% [markdown] lang="ru" key="ex-contract-hint-2" en="1debc368" role="hint" exercise="contract"
r"""
Проверьте каждый регулятор отдельно, затем пары. Пара стоит строки, только если при неверном порядке ответ другой: при `top_k=2, top_p=0.5` у самого вероятного токена 4/7 того, что оставил top-k, но лишь 0,4 от всего.
"""

# %% [markdown] lang="en" key="ex-contract-hint-3" role="hint" exercise="contract"
r"""
Then the edges: four equal logits; a sum that reaches $p$ exactly; $p = 1$ and $p$ near 0; logits of ±1000; a `ValueError` for each senseless argument; the caller's list after the call; an earlier result after a later call.
"""

# %% [markdown] lang="ru" key="ex-contract-hint-3" en="7e8918d6" role="hint" exercise="contract"
r"""
Теперь края: четыре равных логита; сумма, точно равная $p$; $p = 1$ и $p$ около 0; логиты ±1000; `ValueError` на каждый бессмысленный аргумент; переданный список после вызова; прежний результат после следующего вызова.
"""

# %% key="ex-contract-solution" role="solution" exercise="contract"
def my_sampling_contract(token_distribution) -> None:
    known = [math.log(share) for share in (2, 4, 1, 3)]

    def gives(wanted, logits=known, **settings):
        passed_in = list(logits)
        result = token_distribution(passed_in, **settings)
        came = list(result)
        assert len(came) == len(wanted), (settings, came)
        assert all(abs(a - b) < 1e-5 for a, b in zip(came, wanted)), (settings, came, wanted)
        token_distribution([0.0, 5.0, 1.0, 2.0], top_k=1)
        assert passed_in == list(logits) and list(result) == came, settings

    gives([0.2, 0.4, 0.1, 0.3])
    gives([4 / 30, 16 / 30, 1 / 30, 9 / 30], temperature=0.5)
    gives([0, 4 / 7, 0, 3 / 7], top_k=2)
    gives([2 / 9, 4 / 9, 0, 3 / 9], top_p=0.75)
    gives([0, 4 / 7, 0, 3 / 7], top_k=2, top_p=0.6)
    gives([0, 1, 0, 0], top_k=2, top_p=0.5)
    gives([0, 16 / 25, 0, 9 / 25], temperature=0.5, top_p=0.8)
    gives([0.2, 0.4, 0.1, 0.3], top_p=1.0)
    gives([0, 1, 0, 0], top_p=1e-9)
    gives([0.5, 0.5, 0, 0], [0.0] * 4, top_p=0.5)
    gives([0.5, 0.5, 0, 0], [0.0] * 4, top_k=2)
    gives([0, 1], [-1000.0, 1000.0])
    bad = {"temperature": (0, -1), "top_k": (0, 5), "top_p": (0, 1.5)}
    for name, value in [(name, value) for name, values in bad.items() for value in values]:
        expect_raises(ValueError, token_distribution, known, **{name: value})
    for logits in ([], [0.0, math.nan], [0.0, math.inf], [0.0, -math.inf]):
        expect_raises(ValueError, token_distribution, logits)

# %% [markdown] lang="en" key="ex-contract-say"
r"""
This has a name, *mutation testing*: plant faults, count how many your tests notice. A test that never failed has not shown that it can; and one that refuses right code is soon switched off.
"""

# %% [markdown] lang="ru" key="ex-contract-say" en="4c2c70bd"
r"""
У этого есть название — *мутационное тестирование*: подбросьте ошибки и посчитайте, сколько из них заметят ваши тесты. Тест, который ни разу не падал, не показал, что умеет падать; а тот, что отвергает верный код, скоро отключат.
"""

# %% [markdown] lang="en" key="greedy-ask"
r"""
### When to stop

Generation ends at the end-of-sequence token or at the length limit, and the reason should be told truthfully. `greedy_trace` takes logits prepared in advance, one row per step, and returns the tokens together with the reason. Which reason is right when the end token is also the last one allowed?
"""

# %% [markdown] lang="ru" key="greedy-ask" en="030e254b"
r"""
### Когда остановиться

Генерация заканчивается на токене конца текста или на пределе длины, и причину следует называть честно. `greedy_trace` получает заготовленные логиты, по строке на шаг, и возвращает токены вместе с причиной. Какая причина верна, если токен конца оказался заодно последним из разрешённых?
"""

# %% key="greedy-trace"
from course_lib.sampling import greedy_trace

# %% key="greedy-trace-use"
rows = [[0.0, 2.0, 1.0], [0.0, 1.0, 2.0]]
for end in (2, 0):
    print(f"{end=}", greedy_trace(rows, eos_id=end, max_new_tokens=2))
assert greedy_trace(rows, eos_id=2, max_new_tokens=2) == ([1, 2], "eos")
print(expect_raises(ValueError, greedy_trace, rows, eos_id=0, max_new_tokens=3))

# %% [markdown] lang="en" key="greedy-say"
r"""
The reason is `eos`: the text had ended, and the limit merely came at the same moment. When the logits suffice for two steps only, a request for three is refused.
"""

# %% [markdown] lang="ru" key="greedy-say" en="a27c4a8e"
r"""
Причина — `eos`: текст закончился сам, а предел лишь наступил одновременно с этим. Если логитов хватает лишь на два шага, запрос на три отвергается.
"""

# %% [markdown] lang="en" key="recap-ask"
r"""
## 12. What you have checked

The next cell holds the course's own code to the contracts once more, and with it your loss function from exercise 6. Put your other functions in and run it again.
"""

# %% [markdown] lang="ru" key="recap-ask" en="232b81be"
r"""
## 12. Что вы проверили

Следующая ячейка ещё раз проверяет контрактами собственный код курса и вашу функцию потерь из упражнения 6. Подставьте и другие свои функции и запустите её снова.
"""

# %% key="recap-contracts"
def course_multi_head(x, w_q, w_k, w_v, w_o, n_heads, *, causal, token_valid=None):
    layer = MultiHeadSelfAttention(x.shape[-1], n_heads, causal=causal).to(x.dtype)
    weights = {"qkv.weight": torch.cat([w_q, w_k, w_v], dim=1).T, "out.weight": w_o.T}
    return torch.func.functional_call(
        layer, weights, (x,), {"token_valid": token_valid, "empty_row": "zero"}
    )


for check, candidate in (
    (check_attention_contract, scaled_dot_product_attention),
    (check_causal_mask_contract, causal_allowed),
    (check_position_contract, sinusoidal_encoding),
    (check_multi_head_contract, course_multi_head),
    (check_layer_norm_contract, layer_norm),
    (check_nll_contract, my_next_token_nll),
    (check_parameter_count_contract, count_parameters),
    (check_tying_contract, tied_pair),
    (check_sampling_contract, token_distribution),
):
    print(str(check(candidate)).splitlines()[0])
print(str(check_causality_contract(model, vocab_size=6, length=12)).splitlines()[0])

# %% [markdown] lang="en" key="recap-proved"
r"""
**Checked here, not believed:** the variance of $q \cdot k$ is within 8% of $d_k$; a mask after the softmax leaks; our attention equals the reference and the library, gradients included; padding is invisible; a block with silent sublayers is the identity; three blocks equal the library's; the overfit test is blind to five planted bugs, the contracts are not.
"""

# %% [markdown] lang="ru" key="recap-proved" en="0d0f22c4"
r"""
**Проверено, а не принято на веру:** дисперсия $q \cdot k$ отличается от $d_k$ меньше чем на 8 %; маска после softmax даёт утечку; наше внимание совпадает с эталоном и с библиотекой, включая градиенты; паддинг невидим; блок с заглушёнными подслоями — тождественное преобразование; три блока совпадают с библиотечными; проверка на заучивание слепа к пяти подброшенным ошибкам, а контракты — нет.
"""

# %% [markdown] lang="en" key="recap-bugs"
r"""
**Silent bugs met on the way**

| bug | what gives it away |
|---|---|
| softmax over the queries | rows do not sum to 1 |
| no $\sqrt{d_k}$ | the favourite key takes nearly everything |
| mask after the softmax | a later key moves an earlier row |
| finite number for $-\infty$ | a loud hidden key wins |
| offset forgotten | the newest token sees only the oldest |
| detached weights | the query's gradient is missing |
| positions in bfloat16 | neighbours coincide past 256 |
| `view` without `transpose` | with several heads it disagrees with the loop |
| variance over $d-1$ | small widths differ from the library |
| loss not shifted, padding counted | a model sure of the next token does not get 0 nats |
| no causal mask, or an inverted one | a later token moves an earlier logit |
| statistics over the whole text | the same, though the mask is right |
| output matrix copied | two Parameters where one should be |
"""

# %% [markdown] lang="ru" key="recap-bugs" en="ac2d1dcd"
r"""
**Тихие ошибки, встреченные по пути**

| ошибка | что её выдаёт |
|---|---|
| softmax вдоль запросов | суммы строк не равны 1 |
| нет $\sqrt{d_k}$ | любимый ключ забирает почти всё |
| маска после softmax | более поздний ключ сдвигает более раннюю строку |
| конечное число вместо $-\infty$ | побеждает громкий замаскированный ключ |
| забыт сдвиг запросов | самый новый токен видит только самый старый |
| отсоединённые веса | у запроса нет градиента |
| позиции в bfloat16 | после 256 соседи совпадают |
| `view` без `transpose` | при нескольких головах расходится с циклом |
| дисперсия с $d-1$ | при малой ширине результат расходится с библиотечным |
| потери без сдвига, учтён паддинг | модель, уверенная в следующем токене, не получает 0 нат |
| нет причинной маски или она инвертирована | поздний токен сдвигает ранний логит |
| статистика по всему тексту | то же, хотя маска верна |
| выходная матрица скопирована | два параметра вместо одного |
"""

# %% [markdown] lang="en" key="recap-terms"
r"""
**Terms introduced:** token, attention, self-attention, query, key, value, scores, weights, mask, causal mask, padding, batch, fully masked row, contract, clause, silent bug, embedding, positional encoding, head, multi-head attention, cross-attention, layer normalization, feed-forward network, residual stream, pre-norm, encoder, decoder, logits, negative log-likelihood, nat, perplexity, weight tying, teacher forcing, greedy decoding, sampling, temperature, top-k, top-p.
"""

# %% [markdown] lang="ru" key="recap-terms" en="4942e8c6"
r"""
**Введённые термины:** токен, внимание, самовнимание, запрос, ключ, значение, оценки, веса, маска, причинная маска, паддинг (дополнение), батч, полностью замаскированная строка, контракт, пункт контракта, тихая ошибка, эмбеддинг, позиционное кодирование, голова, многоголовое внимание, перекрёстное внимание, нормализация слоя, полносвязная сеть блока, остаточный поток, нормализация до подслоя (pre-norm), энкодер, декодер, логиты, отрицательное логарифмическое правдоподобие, нат, перплексия, связывание весов, обучение с подсказкой истинного префикса, жадное декодирование, сэмплирование, температура, top-k, top-p.
"""

# %% [markdown] lang="en" key="quiz-ask"
r"""
## 13. Ten questions

Each wrong answer here is a bug that somebody shipped, or a belief that leads to one. Choose, and read the explanations of the other choices too: they are half of the lesson. Where there are no buttons, open a choice by clicking on it, or call `answer`, for example `answer(progress, "softmax_axis", 2)` for the second choice.
"""

# %% [markdown] lang="ru" key="quiz-ask" en="6c2960e6"
r"""
## 13. Десять вопросов

Каждый неверный ответ здесь — ошибка, которую кто-то однажды выпустил в мир, или заблуждение, которое к ней ведёт. Выбирайте, но прочтите пояснения и к остальным ответам: в них половина урока. Если кнопок нет, раскройте ответ щелчком или вызовите `answer`; второй ответ, например, — это `answer(progress, "softmax_axis", 2)`.
"""

# %% key="quiz-code" role="library"
from course_lib.practice.quiz import answer, ask

# %% lang="en" key="quiz-softmax-axis" role="quiz"
ask(
    progress,
    "softmax_axis",
    "Attention scores have the shape [B, H, T_q, T_k]. Which axis does the softmax run "
    "along?",
    {
        "T_q, the queries": (
            False,
            "Then the columns sum to 1: in section 1 the eclipse spent 1.31 units of "
            "attention and each of the others 0.85. The shapes fit just as well.",
        ),
        "T_q and T_k together": (
            False,
            "Then a whole table shares one unit. In our example the three rows would get "
            "0.28, 0.28 and 0.45 of it.",
        ),
        "T_k, the keys": (
            True,
            "Every query spends exactly one unit of attention, so every row sums to 1.",
        ),
        "H, the heads": (
            False,
            "Then heads would compete with each other. They are independent: in section 6 "
            "three heads computed one by one gave the same output.",
        ),
    },
)

# %% lang="ru" key="quiz-softmax-axis" en="5fbbf7df" role="quiz"
ask(
    progress,
    "softmax_axis",
    "Оценки внимания имеют форму [B, H, T_q, T_k]. Вдоль какой оси берётся softmax?",
    {
        "T_q, запросы": (
            False,
            "Тогда суммы столбцов равны 1: в разделе 1 затмение потратило 1,31 единицы "
            "внимания, а остальные — по 0,85. Формы при этом сходятся ничуть не хуже.",
        ),
        "T_q и T_k вместе": (
            False,
            "Тогда одна единица достаётся всей таблице. В нашем примере трём строкам "
            "досталось бы 0,28, 0,28 и 0,45.",
        ),
        "T_k, ключи": (
            True,
            "Каждый запрос тратит ровно одну единицу внимания, и сумма каждой строки равна "
            "1.",
        ),
        "H, головы": (
            False,
            "Тогда головы соперничали бы друг с другом. А они независимы: в разделе 6 три "
            "головы, вычисленные по одной, дали тот же выход.",
        ),
    },
)

# %% lang="en" key="quiz-head-scale" role="quiz"
ask(
    progress,
    "head_scale",
    "A layer of width 512 has 8 heads. What do you divide q·k by inside each head?",
    {
        "8: the root of the head's width": (
            True,
            "A head sees 512 / 8 = 64 numbers, so the variance of q·k is about 64; divided "
            "by 8, it is about 1.",
        ),
        "22.6: the root of the layer's width": (
            False,
            "This is right with one head only. Here it leaves a variance of 0.12, too "
            "small, and nothing tells you so.",
        ),
        "64: the head's width": (
            False,
            "The variance falls with the square of the divisor: 64 leaves 0.02 instead of "
            "1.",
        ),
        "nothing: training finds the scale": (
            False,
            "In section 2 the favourite key got 83% of the attention before any training, "
            "and gradients differed a thousandfold. Learning has to start somewhere sane.",
        ),
    },
)

# %% lang="ru" key="quiz-head-scale" en="7bed7ab0" role="quiz"
ask(
    progress,
    "head_scale",
    "У слоя ширина 512 и 8 голов. На что делить q·k внутри каждой головы?",
    {
        "на 8: корень из ширины головы": (
            True,
            "Голова видит 512 / 8 = 64 числа, поэтому дисперсия q·k около 64; после деления "
            "на 8 она около 1.",
        ),
        "на 22,6: корень из ширины слоя": (
            False,
            "Это верно, только если голова одна. Здесь останется дисперсия 0,12 — слишком "
            "мало, и никто вам об этом не скажет.",
        ),
        "на 64: ширину головы": (
            False,
            "Дисперсия обратно пропорциональна квадрату делителя: 64 оставит 0,02 вместо 1.",
        ),
        "ни на что: обучение само подберёт масштаб": (
            False,
            "В разделе 2 любимый ключ получал 83 % внимания ещё до обучения, а градиенты "
            "различались тысячекратно. Из такого положения обучение с места не сдвинется.",
        ),
    },
)

# %% lang="en" key="quiz-late-mask" role="quiz"
ask(
    progress,
    "late_mask",
    "A program computes the softmax over all keys and only then zeroes the forbidden "
    "weights. What gives it away?",
    {
        "an error: the shapes no longer fit": (
            False,
            "The mask multiplies a table of its own shape. Section 3 ran exactly this "
            "program, and nobody complained.",
        ),
        "a hidden key still moves the row": (
            True,
            "It is gone from the mixture but not from the denominator: another key for the "
            "eclipse turned the sun's 0.40 into 0.28.",
        ),
        "nothing: a weight of 0 is 0": (
            False,
            "The forbidden weight is right, and all the others are wrong: they no longer "
            "sum to 1.",
        ),
        "the forbidden weights are not quite 0": (
            False,
            "They are exactly 0, and that is why the bug is hard to see. What fails like "
            "this is a finite number in the place of −∞.",
        ),
    },
)

# %% lang="ru" key="quiz-late-mask" en="3cfe6c50" role="quiz"
ask(
    progress,
    "late_mask",
    "Программа берёт softmax по всем ключам и лишь потом обнуляет запрещённые веса. Что "
    "её выдаст?",
    {
        "ошибка: формы не сойдутся": (
            False,
            "Маска умножается на таблицу той же формы. В разделе 3 мы запустили именно "
            "такую программу, и никто не возразил.",
        ),
        "замаскированный ключ по-прежнему сдвигает строку": (
            True,
            "Из смеси он исчез, а из знаменателя — нет: когда мы сменили ключ затмения, "
            "вместо 0,40 у солнца стало 0,28.",
        ),
        "ничто: вес 0 — это 0": (
            False,
            "Запрещённый вес верен, зато неверны все остальные: их сумма уже не равна 1.",
        ),
        "запрещённые веса не совсем равны 0": (
            False,
            "Они в точности 0, потому-то ошибку и трудно заметить. Так подводит другое: "
            "конечное число на месте −∞.",
        ),
    },
)

# %% [markdown] lang="en" key="quiz-rows-ask"
r"""
Three more, about rows, caches and heads.
"""

# %% [markdown] lang="ru" key="quiz-rows-ask" en="45fd57ee"
r"""
Ещё три — о строках, кэшах и головах.
"""

# %% lang="en" key="quiz-dead-row" role="quiz"
ask(
    progress,
    "dead_row",
    "A mask is added to the scores. A fully masked row becomes NaN, and the loss leaves it "
    "out. What happens in the training step?",
    {
        "nothing: the row is not in the loss": (
            False,
            "The loss is finite indeed. But the way back multiplies 0 by NaN, and 0 · NaN "
            "is NaN.",
        ),
        "only this row's own parameters suffer": (
            False,
            "A row has no parameters of its own: in section 3 one tensor served both rows, "
            "and its whole gradient became NaN.",
        ),
        "nothing, after nan_to_num on the weights": (
            False,
            "With an added mask it cures the way forward only. The cell below the quiz does just "
            "this: the gradient is NaN all the same. (After masked_fill it cures both.)",
        ),
        "the gradient of shared parameters is NaN": (
            True,
            "One dead row is enough. So our attention refuses such a row, or returns exact "
            "zeros when asked to.",
        ),
    },
)

# %% lang="ru" key="quiz-dead-row" en="eff81bce" role="quiz"
ask(
    progress,
    "dead_row",
    "Маску прибавили к оценкам. Полностью замаскированная строка стала NaN, в потери она не "
    "входит. Что случится на шаге обучения?",
    {
        "ничего: строка не входит в потери": (
            False,
            "Потери и правда конечны. Но на обратном пути 0 умножается на NaN, а 0 · NaN — "
            "это NaN.",
        ),
        "пострадают только параметры этой строки": (
            False,
            "Своих параметров у строки нет: в разделе 3 обеим строкам служил один тензор, и "
            "NaN стал весь его градиент.",
        ),
        "ничего, если к весам применить nan_to_num": (
            False,
            "Если маску прибавляют, так вылечишь только прямой проход: ячейка под вопросами "
            "делает именно это, а градиент всё равно NaN. (После masked_fill вылечится и он.)",
        ),
        "градиент общих параметров станет NaN": (
            True,
            "Хватает одной мёртвой строки. Поэтому наше внимание такую строку отвергает или "
            "по просьбе возвращает точные нули.",
        ),
    },
)

# %% lang="en" key="quiz-cached-query" role="quiz"
ask(
    progress,
    "cached_query",
    "With a key-value cache, one new query at position 7 meets 8 keys. Its mask is cut "
    "from the stored causal table: table[:1, :8]. What does it read?",
    {
        "key 0 alone": (
            True,
            "The first row of the table belongs to position 0. With an offset of 7 the same "
            "query reads all 8 keys.",
        ),
        "all 8 keys": (
            False,
            "So it should be. But a piece cut from the top of the table holds row 0, which "
            "may read one key only.",
        ),
        "itself alone, key 7": (
            False,
            "Row 0 does read itself, but its self stands at position 0.",
        ),
        "nothing: an error is raised": (
            False,
            "The shape [1, 8] is just what attention expects here. This bug never says a "
            "word.",
        ),
    },
)

# %% lang="ru" key="quiz-cached-query" en="92e6e966" role="quiz"
ask(
    progress,
    "cached_query",
    "У модели с KV-кэшем один новый запрос на позиции 7 встречает 8 ключей. Маска "
    "вырезана из готовой причинной таблицы: table[:1, :8]. Что прочтёт этот запрос?",
    {
        "только ключ 0": (
            True,
            "Первая строка таблицы принадлежит позиции 0. Со сдвигом 7 тот же запрос прочёл "
            "бы все 8 ключей.",
        ),
        "все 8 ключей": (
            False,
            "Так должно быть. Но в куске, вырезанном сверху, лежит строка 0, а ей можно "
            "читать лишь один ключ.",
        ),
        "только себя, ключ 7": (
            False,
            "Строка 0 действительно читает себя, но её «я» стоит на позиции 0.",
        ),
        "ничего: возникнет ошибка": (
            False,
            "Форма [1, 8] — ровно та, которую здесь ждёт внимание. Эта ошибка не скажет ни "
            "слова.",
        ),
    },
)

# %% lang="en" key="quiz-view-heads" role="quiz"
ask(
    progress,
    "view_heads",
    "Somebody makes heads with view(B, H, T, d_head) and no transpose. Which test is "
    "blind to it?",
    {
        "equality with a loop over 2 heads": (
            False,
            "The loop cuts features, this view cuts tokens. In section 6 two heads were "
            "enough to tell them apart.",
        ),
        "exchanged tokens, exchanged rows": (
            False,
            "Such heads are made of tokens, so an exchange reaches inside them. The cell "
            "below the quiz exchanges two tokens and sees it.",
        ),
        "equality with a reference, one head": (
            True,
            "With one head there is nothing to cut, and both ways give the same numbers; "
            "section 6 asserts it.",
        ),
    },
)

# %% lang="ru" key="quiz-view-heads" en="17f2427c" role="quiz"
ask(
    progress,
    "view_heads",
    "Кто-то делает головы через view(B, H, T, d_head), без transpose. Какая проверка "
    "этого не увидит?",
    {
        "сравнение с циклом по 2 головам": (
            False,
            "Цикл режет признаки, а такой view — токены. В разделе 6 двух голов хватило, "
            "чтобы их различить.",
        ),
        "перестановка двух токенов: строки должны переставиться так же": (
            False,
            "Такие головы состоят из токенов, и перестановка заденет их изнутри. Ячейка под "
            "вопросами меняет два токена местами и видит это.",
        ),
        "сравнение с эталоном при одной голове": (
            True,
            "При одной голове резать нечего, и оба способа дают одни и те же числа; раздел "
            "6 это проверяет.",
        ),
    },
)

# %% [markdown] lang="en" key="quiz-tests-ask"
r"""
The last four: what a test can see, and what may be drawn.
"""

# %% [markdown] lang="ru" key="quiz-tests-ask" en="89d900f3"
r"""
И последние четыре: что видит проверка и что может выпасть.
"""

# %% lang="en" key="quiz-leak-source" role="quiz"
ask(
    progress,
    "leak_source",
    "The causal mask is right, yet a later token changes an earlier output. Which part "
    "can do that?",
    {
        "the feed-forward network": (
            False,
            "It works on each token alone: in section 7 a change of token 2 moved token 2 "
            "and no other.",
        ),
        "a layer norm over all the tokens": (
            True,
            "Its mean and variance carry the future past the mask. The copy norm_over_time "
            "did so and still learned its text by heart.",
        ),
        "the residual stream": (
            False,
            "It hands on each token's own vector. With silent sublayers the block is the "
            "identity, bit for bit.",
        ),
        "an output matrix tied to the embedding": (
            False,
            "It compares one position at a time with the embeddings. Our own model is tied "
            "and keeps the contract of causality.",
        ),
    },
)

# %% lang="ru" key="quiz-leak-source" en="9938a5be" role="quiz"
ask(
    progress,
    "leak_source",
    "Причинная маска верна, и всё же поздний токен меняет ранний выход. Какая деталь на "
    "это способна?",
    {
        "полносвязная сеть блока": (
            False,
            "Она работает с каждым токеном отдельно: в разделе 7 изменение токена 2 "
            "сдвинуло токен 2 и больше никого.",
        ),
        "нормализация слоя по всем токенам": (
            True,
            "Её среднее и дисперсия проносят будущее мимо маски. Копия norm_over_time так и "
            "делала — и всё-таки заучила текст.",
        ),
        "остаточный поток": (
            False,
            "Он передаёт каждому токену его же вектор. С заглушёнными подслоями блок — "
            "тождественное преобразование, бит в бит.",
        ),
        "выходная матрица, связанная с эмбеддингами": (
            False,
            "Она сравнивает с эмбеддингами по одной позиции. В нашей модели матрица "
            "связана с эмбеддингами, а контракт причинности выполнен.",
        ),
    },
)

# %% lang="en" key="quiz-overfit-proof" role="quiz"
ask(
    progress,
    "overfit_proof",
    "TinyLM recites 0 1 2 3 4 5 with a loss below 0.02 nats. What has this shown?",
    {
        "that no token reads the future": (
            False,
            "Four leaky copies pass the same test. In this text the current token alone "
            "tells the next one.",
        ),
        "that input and output share a matrix": (
            False,
            "The copy copied_head passes as well. Only the contract of tying tells the two "
            "apart.",
        ),
        "that it will do well on new texts": (
            False,
            "It has seen no other text. On random tokens no honest model stays below ln 6 = "
            "1.79 nats, whatever it can recite.",
        ),
        "that it can learn, and no more": (
            True,
            "Prediction, loss and gradient work together well enough to memorise. Leaks "
            "need another test.",
        ),
    },
)

# %% lang="ru" key="quiz-overfit-proof" en="1cc2ff0e" role="quiz"
ask(
    progress,
    "overfit_proof",
    "TinyLM читает наизусть 0 1 2 3 4 5, потери ниже 0,02 ната. Что этим доказано?",
    {
        "что ни один токен не читает будущее": (
            False,
            "Ту же проверку проходят четыре копии с утечкой. В этом тексте следующий токен "
            "определяется текущим.",
        ),
        "что у входа и выхода одна матрица": (
            False,
            "Копия copied_head тоже проходит. Отличить одно от другого может только "
            "контракт связывания.",
        ),
        "что на новых текстах всё будет хорошо": (
            False,
            "Других текстов она не видела. На случайных токенах честная модель не удержится "
            "ниже ln 6 = 1,79 ната, что бы она ни знала наизусть.",
        ),
        "что она способна учиться, и только": (
            True,
            "Предсказание, потери и градиент сработались, и этого хватает, чтобы заучить "
            "текст. Утечки ищут другой проверкой.",
        ),
    },
)

# %% lang="en" key="quiz-unshifted-loss" role="quiz"
ask(
    progress,
    "unshifted_loss",
    "The training loss compares logits[:, t] with token t itself, not with token t + 1. "
    "What do you see?",
    {
        "a loss that stays near ln V": (
            False,
            "ln V is the price of knowing nothing. Here the answer stands in the input, for "
            "everyone to read.",
        ),
        "an error: the lengths T and T − 1 differ": (
            False,
            "Without the shift both have the length T, and the loss function is content.",
        ),
        "a loss that falls to 0, and a parrot": (
            True,
            "The model learns to repeat its input. The parrot below pays 0 nats by this "
            "loss and 50 nats for the true next token.",
        ),
        "a loss a little too high": (
            False,
            "It is much too low: another task is being solved, an easier one.",
        ),
    },
)

# %% lang="ru" key="quiz-unshifted-loss" en="df45f399" role="quiz"
ask(
    progress,
    "unshifted_loss",
    "При обучении logits[:, t] сравнивают с самим токеном t, а не с токеном t + 1. Что вы "
    "увидите?",
    {
        "потери, застывшие около ln V": (
            False,
            "ln V — цена полного незнания. А здесь ответ стоит прямо на входе: читай не "
            "хочу.",
        ),
        "ошибку: длины T и T − 1 не совпадут": (
            False,
            "Без сдвига обе длины равны T, и функцию потерь всё устраивает.",
        ),
        "потери, падающие до 0, и попугая": (
            True,
            "Модель учится повторять свой вход. Попугай из ячейки ниже платит по таким "
            "потерям 0 нат, а за настоящий следующий токен — 50 нат.",
        ),
        "потери чуть выше, чем надо": (
            False,
            "Они намного ниже: решается другая задача, попроще.",
        ),
    },
)

# %% lang="en" key="quiz-nucleus" role="quiz"
ask(
    progress,
    "nucleus",
    "The logits are [3, 2, 1, 0] and top_p is 0.9. Which tokens may be drawn?",
    {
        "0 and 1": (
            False,
            "Together they reach only 0.88. The token that crosses the threshold stays in; "
            "to drop it is a common slip.",
        ),
        "0, 1 and 2": (
            True,
            "Token 2 lifts the sum from 0.88 to 0.97 and completes the nucleus; the three "
            "are then renormalised.",
        ),
        "all four of them": (
            False,
            "The sum has passed 0.9 before token 3 is reached. Only top_p = 1 removes "
            "nobody.",
        ),
        "token 0 alone": (
            False,
            "Its 0.64 is not yet 0.9. Always to take the likeliest is greedy decoding.",
        ),
    },
)

# %% lang="ru" key="quiz-nucleus" en="a5bdeca4" role="quiz"
ask(
    progress,
    "nucleus",
    "Логиты — [3, 2, 1, 0], top_p = 0,9. Какие токены могут выпасть?",
    {
        "0 и 1": (
            False,
            "Вместе они набирают лишь 0,88. Токен, на котором порог достигнут, остаётся; "
            "выбросить его — частый промах.",
        ),
        "0, 1 и 2": (
            True,
            "Токен 2 поднимает сумму с 0,88 до 0,97 и завершает ядро; затем эти три доли "
            "перенормируют.",
        ),
        "все четыре": (
            False,
            "Порог 0,9 пройден раньше, чем очередь дошла до токена 3. Никого не убирает "
            "только top_p = 1.",
        ),
        "только токен 0": (
            False,
            "Его 0,64 — ещё не 0,9. Всегда брать самый вероятный — это жадное "
            "декодирование.",
        ),
    },
)

# %% [markdown] lang="en" key="quiz-facts-ask"
r"""
### What the explanations claim

Most of their numbers were printed in the sections they name. The others are computed here: for questions 1 and 2, then 4 and 5, then 6, 9 and 10.
"""

# %% [markdown] lang="ru" key="quiz-facts-ask" en="49f73d67"
r"""
### На чём стоят пояснения

Большинство чисел из пояснений напечатано в разделах, на которые они ссылаются. Остальные вычислим здесь: сначала для вопросов 1 и 2, потом 4 и 5, потом 6, 9 и 10.
"""

# %% key="quiz-facts-scores"
asked = torch.tensor(example["q"], dtype=torch.float64)
whole = torch.softmax((asked @ asked.T / math.sqrt(2)).flatten(), dim=0).view(3, 3)
print([round(share, 2) for share in whole.sum(dim=-1).tolist()])
for divisor in (8, math.sqrt(512), 64):
    print(f"{divisor=:.1f} {unscaled / divisor**2=:.2f}")

# %% key="quiz-facts-rows"
dead = torch.ones(2, 2, dtype=torch.float64, requires_grad=True)
repaired = torch.softmax(dead @ dead.T + bias, dim=-1).nan_to_num() @ dead
filled = torch.softmax((dead @ dead.T).masked_fill(bias != 0, -math.inf), dim=-1).nan_to_num()
added_slope, filled_slope = (
    torch.autograd.grad(mixed[1].sum(), dead)[0] for mixed in (repaired, filled @ dead)
)
print(repaired.tolist(), added_slope.tolist(), filled_slope.tolist(), sep="\n")
assert repaired.isfinite().all() and added_slope.isnan().all() and filled_slope.isfinite().all()
cut_mask = causal_allowed(8, 8)[:1, :8]
print(cut_mask.int().tolist(), causal_allowed(1, 8, query_offset=7).int().tolist())
assert cut_mask.sum() == 1 and causal_allowed(1, 8, query_offset=7).all()

# %% [markdown] lang="en" key="quiz-facts-say"
r"""
The forward pass is repaired, the gradient of an added mask is not, that of a filled one is; and the mask cut from the top knows one key. Next, two tokens change places under both ways of cutting heads, and the parrot pays twice.
"""

# %% [markdown] lang="ru" key="quiz-facts-say" en="bc684742"
r"""
Прямой проход починен; градиент починен при заполнении (masked_fill), но не при сложении; а маска, вырезанная сверху, знает один ключ. Теперь два токена поменяются местами при обоих способах резать головы, а попугаю выставят оба счёта.
"""

# %% key="quiz-facts-heads"
def cut_by_view(tokens: Tensor, n_heads: int) -> Tensor:
    return tokens.view(1, n_heads, 2, 2)


tokens = torch.tensor([[[1.0, 0.0, 2.0, 1.0], [0.0, 3.0, 1.0, 1.0]]])
for cut in (split_heads, cut_by_view):
    outputs = []
    for given in (tokens, tokens[:, [1, 0]]):
        heads = cut(given, 2)
        outputs.append(merge_heads(scaled_dot_product_attention(heads, heads, heads).output))
    print(f"{cut.__name__:12} {torch.allclose(outputs[1], outputs[0][:, [1, 0]])}")
    assert torch.allclose(outputs[1], outputs[0][:, [1, 0]]) == (cut is split_heads)

# %% key="quiz-facts-parrot"
spoken_ids = torch.tensor([0, 3, 1, 4, 2, 5])
parrot = 50.0 * F.one_hot(spoken_ids, 6).double()
unshifted = F.cross_entropy(parrot, spoken_ids).item()
next_token = F.cross_entropy(parrot[:-1], spoken_ids[1:]).item()
first_three = sum(scenario["temperature_1"][:3])
print(f"{unshifted=:.2f} {next_token=:.2f} {first_three=:.2f}")
assert unshifted < 1e-9 and next_token > 49.9 and first_three > 0.9

# %% [markdown] lang="en" key="quiz-end"
r"""
Each number is as the explanations say. If a question surprised you, its section is worth a second look.
"""

# %% [markdown] lang="ru" key="quiz-end" en="a6a76e0d"
r"""
Все числа таковы, как сказано в пояснениях. Если какой-то вопрос вас удивил, вернитесь к его разделу ещё раз.
"""

# %% [markdown] lang="en" key="progress-end-ask"
r"""
## 14. What you have done

The same page of progress as at the start, with your contracts, predictions and answers. What is open stays open until you return; a check that you run again is recorded again, for better or worse.
"""

# %% [markdown] lang="ru" key="progress-end-ask" en="b3028e13"
r"""
## 14. Что вы сделали

Та же страница, что и в начале, — теперь с вашими контрактами, предсказаниями и ответами. То, что не решено, вас подождёт; повторная проверка заменит прежний результат, даже если новый хуже.
"""

# %% key="progress-end"
progress.show()

# %% [markdown] lang="en" key="certificate-ask"
r"""
And a summary to show to somebody: put your name in. Read its last lines too. The digest keeps the list in one piece; what it cannot prove is said there as well.
"""

# %% [markdown] lang="ru" key="certificate-ask" en="2acbe7df"
r"""
А это можно кому-нибудь показать: впишите имя. Прочтите и последние строки: отпечаток скрепляет список в одно целое, а чего он не доказывает, сказано там же.
"""

# %% lang="en" key="certificate"
progress.certificate("Your name")

# %% lang="ru" key="certificate" en="39feb9c7"
progress.certificate("Ваше имя")

# %% [markdown] lang="en" key="recap-next"
r"""
**What [Module 4](module_04_decoder_only_lm.ipynb) adds.** A full decoder-only language model in three versions that must agree on every logit, real GPT-2 weights, and a key-value cache. The offset of section 3 and the refusals of section 10 return there, where they decide whether a fast model is also right.
"""

# %% [markdown] lang="ru" key="recap-next" en="ec550340"
r"""
**Что добавит [модуль 4](module_04_decoder_only_lm.ipynb).** Полную языковую модель из одного декодера (decoder-only) в трёх вариантах, которые обязаны совпасть в каждом логите, настоящие веса GPT-2 и KV-кэш. Сдвиг запросов из раздела 3 и отказы из раздела 10 вернутся там и решат, остаётся ли быстрая модель ещё и верной.
"""
