# %% [markdown] lang="en" key="title"
r"""
# Teach this in a week

Five sessions take a class that programs in Python from a dot product to a language model with a cache, measured and checked. You need no slides of your own, no graphics card, and no solutions to keep secret: the contracts say what is wrong, and why.
"""

# %% [markdown] lang="ru" key="title" en="e01d5163"
r"""
# Курс за неделю

За пять занятий группа, которая умеет программировать на Python, пройдёт от скалярного произведения до языковой модели с кэшем, измеренной и проверенной. Ни своих слайдов, ни видеокарты не понадобится, и решения незачем прятать: что неверно и почему, скажут контракты.
"""

# %% [markdown] lang="en" key="plan"
r"""
## The plan

| day | theme | alone |
|---|---|---:|
| [](teaching.md#day-1) | who reads whom, and how strongly | 3 hours |
| [](teaching.md#day-2) | where the order comes from, what a block is made of | 1¼ hours |
| [](teaching.md#day-3) | a loss, a model, its text | 2¾ hours |
| [](teaching.md#day-4) | the same model three times, and its cache | 2½ hours |
| [](teaching.md#day-5) | what breaks silently, what is fast, and why | 3¾ hours |

*Alone* is the time for reading, running and solving without talking, estimated as on the pages of the modules. In class take twice as long: half of each session is better spent on predictions and on arguing about them.
"""

# %% [markdown] lang="ru" key="plan" en="b4c87075"
r"""
## План

| день | тема | без обсуждений |
|---|---|---:|
| [](teaching.md#day-1) | кто кого читает и насколько внимательно | 3 часа |
| [](teaching.md#day-2) | откуда берётся порядок и из чего сделан блок | 1¼ часа |
| [](teaching.md#day-3) | потери, модель, её тексты | 2¾ часа |
| [](teaching.md#day-4) | одна модель трижды и её кэш | 2½ часа |
| [](teaching.md#day-5) | что ломается молча, что работает быстро и почему | 3¾ часа |

*Без обсуждений* — это время на чтение, запуск и решение, оценённое так же, как на страницах модулей. На занятии отведите вдвое больше: половину лучше потратить на предсказания и споры о них.
"""

# %% [markdown] lang="en" key="before"
r"""
## Before the first day

- Let everyone open Module 3 on their own machine, or in Colab, and run the first section.
- `make teach` writes everything you hand out into `build/teaching/`.
- Read the teacher's edition once: under each check it lists the mistakes that the check knows.
- Agree on one habit: *predict first, then run*. A wrong prediction costs nothing, no prediction teaches nothing.
"""

# %% [markdown] lang="ru" key="before" en="d917e473"
r"""
## Перед первым днём

- Пусть каждый откроет модуль 3 у себя или в Colab и выполнит первый раздел.
- `make teach` кладёт всё, что вы раздадите, в `build/teaching/`.
- Прочтите издание для преподавателя: под каждой проверкой перечислены ошибки, которые она узнаёт.
- Договоритесь об одной привычке: *сначала предсказать, потом запускать*. За промах не штрафуют, а без предсказания ничему не научишься.
"""

# %% [markdown] lang="en" key="day-1"
r"""
## Day 1. Attention and masks

Read together:

- [](module_03_basic_transformer.ipynb#setup-ask)
- [](module_03_basic_transformer.ipynb#lookup-ask)
- [](module_03_basic_transformer.ipynb#scaling-ask)
- [](module_03_basic_transformer.ipynb#masks-ask)
- [](module_03_basic_transformer.ipynb#sdpa-ask)

Solve:

- [](module_03_basic_transformer.ipynb#ex-mask-statement)
- [](module_03_basic_transformer.ipynb#ex-attention-statement)
- [](module_03_basic_transformer.ipynb#ex-harden-statement)
- [](module_03_basic_transformer.ipynb#ex-planted-statement)

Discuss: why does a mask go before the softmax? What should a token get that may read nothing at all: zeros, an average, an error? Who would notice if the root of $d_k$ were missing?
"""

# %% [markdown] lang="ru" key="day-1" en="2903a4f4"
r"""
## День 1. Внимание и маски

Читаем вместе:

- [](module_03_basic_transformer.ipynb#setup-ask)
- [](module_03_basic_transformer.ipynb#lookup-ask)
- [](module_03_basic_transformer.ipynb#scaling-ask)
- [](module_03_basic_transformer.ipynb#masks-ask)
- [](module_03_basic_transformer.ipynb#sdpa-ask)

Решаем:

- [](module_03_basic_transformer.ipynb#ex-mask-statement)
- [](module_03_basic_transformer.ipynb#ex-attention-statement)
- [](module_03_basic_transformer.ipynb#ex-harden-statement)
- [](module_03_basic_transformer.ipynb#ex-planted-statement)

Обсуждаем: почему маску накладывают до softmax? Что должен получить токен, которому нельзя читать ничего: нули, среднее, ошибку? Кто заметил бы, что корень из $d_k$ пропал?
"""

# %% [markdown] lang="en" key="day-1-catches"
r"""
| contract | the misconception it catches |
|---|---|
| `causal_mask` | "a mask is a triangle": with a past before it, it is not (`offset_ignored`) |
| `attention` | "multiply the weights by the mask": what is left no longer sums to one (`mask_after_softmax`) |
| `attention` | "any axis will do for softmax" (`softmax_over_queries`) |
"""

# %% [markdown] lang="ru" key="day-1-catches" en="1183baaf"
r"""
| контракт | какое заблуждение он ловит |
|---|---|
| `causal_mask` | «маска — это треугольник»: когда перед ней есть прошлое, уже нет (`offset_ignored`) |
| `attention` | «веса надо умножить на маску»: оставшиеся уже не дают в сумме единицу (`mask_after_softmax`) |
| `attention` | «для softmax годится любая ось» (`softmax_over_queries`) |
"""

# %% [markdown] lang="en" key="day-2"
r"""
## Day 2. Order, heads, blocks

Read together:

- [](module_03_basic_transformer.ipynb#positions-ask)
- [](module_03_basic_transformer.ipynb#heads-ask)
- [](module_03_basic_transformer.ipynb#layers-ask)
- [](module_03_basic_transformer.ipynb#probe-ask)

Solve:

- [](module_03_basic_transformer.ipynb#ex-merge-statement)

Discuss: a shuffled sentence gives shuffled outputs; where does the order come from? Why may heads be merged by a transpose and never by a reshape alone? Which lines of a block could let the future in?
"""

# %% [markdown] lang="ru" key="day-2" en="93c8687c"
r"""
## День 2. Порядок, головы, блоки

Читаем вместе:

- [](module_03_basic_transformer.ipynb#positions-ask)
- [](module_03_basic_transformer.ipynb#heads-ask)
- [](module_03_basic_transformer.ipynb#layers-ask)
- [](module_03_basic_transformer.ipynb#probe-ask)

Решаем:

- [](module_03_basic_transformer.ipynb#ex-merge-statement)

Обсуждаем: если перемешать слова, перемешаются и выходы; откуда же берётся порядок? Почему головы можно соединить перестановкой осей, но нельзя — одним лишь изменением формы? Через какие строки блока могло бы просочиться будущее?
"""

# %% [markdown] lang="en" key="day-2-catches"
r"""
| contract | the misconception it catches |
|---|---|
| `position` | "the formula of the paper is what everybody's code does" (`exponent_to_the_end`) |
| `multi_head` | "each head divides by the width of the model" (`scaled_by_d_model`) |
| `layer_norm` | "`std` is the deviation of the formula" (`unbiased_std_plus_eps`) |
| `causality` | "a mean over the text is harmless" (`summary_over_time`) |
"""

# %% [markdown] lang="ru" key="day-2-catches" en="d7fd00ea"
r"""
| контракт | какое заблуждение он ловит |
|---|---|
| `position` | «в коде у всех та же формула, что в статье» (`exponent_to_the_end`) |
| `multi_head` | «каждая голова делит на ширину модели» (`scaled_by_d_model`) |
| `layer_norm` | «`std` — то самое отклонение из формулы» (`unbiased_std_plus_eps`) |
| `causality` | «среднее по всему тексту безвредно» (`summary_over_time`) |
"""

# %% [markdown] lang="en" key="day-3"
r"""
## Day 3. A language model

Read together:

- [](module_03_basic_transformer.ipynb#nll-ask)
- [](module_03_basic_transformer.ipynb#tiny-lm-ask)
- [](module_03_basic_transformer.ipynb#sampling-ask)
- [](module_03_basic_transformer.ipynb#recap-ask)
- [](module_03_basic_transformer.ipynb#quiz-ask)
- [](module_03_basic_transformer.ipynb#progress-end-ask)

Solve:

- [](module_03_basic_transformer.ipynb#ex-nll-statement)
- [](module_03_basic_transformer.ipynb#ex-gallery-statement)
- [](module_03_basic_transformer.ipynb#ex-sampling-statement)
- [](module_03_basic_transformer.ipynb#ex-contract-statement)

Discuss: what loss has a model that knows nothing, and can yours be below it? The bugs of the gallery all train: which curve would have made you suspicious? Does temperature 0 mean the best text?
"""

# %% [markdown] lang="ru" key="day-3" en="7a79f299"
r"""
## День 3. Языковая модель

Читаем вместе:

- [](module_03_basic_transformer.ipynb#nll-ask)
- [](module_03_basic_transformer.ipynb#tiny-lm-ask)
- [](module_03_basic_transformer.ipynb#sampling-ask)
- [](module_03_basic_transformer.ipynb#recap-ask)
- [](module_03_basic_transformer.ipynb#quiz-ask)
- [](module_03_basic_transformer.ipynb#progress-end-ask)

Решаем:

- [](module_03_basic_transformer.ipynb#ex-nll-statement)
- [](module_03_basic_transformer.ipynb#ex-gallery-statement)
- [](module_03_basic_transformer.ipynb#ex-sampling-statement)
- [](module_03_basic_transformer.ipynb#ex-contract-statement)

Обсуждаем: каковы потери у модели, которая ничего не знает, и могут ли у вашей они быть ниже? Модели из кунсткамеры обучаются, несмотря на ошибки: какая кривая насторожила бы вас? Значит ли температура 0, что текст будет лучшим?
"""

# %% [markdown] lang="en" key="day-3-catches"
r"""
| contract | the misconception it catches |
|---|---|
| `nll` | "the model is compared with what it reads" (`not_shifted`) |
| `nll` | "padding does no harm to a mean" (`padding_counted`) |
| `tying` | "equal numbers are shared numbers" (`tied_by_copy`) |
| `sampling` | "the order of temperature and top-p does not matter" (`temperature_after_filters`) |
"""

# %% [markdown] lang="ru" key="day-3-catches" en="27937707"
r"""
| контракт | какое заблуждение он ловит |
|---|---|
| `nll` | «модель сравнивают с тем, что она читает» (`not_shifted`) |
| `nll` | «паддинг среднему не повредит» (`padding_counted`) |
| `tying` | «равные числа — значит, общие» (`tied_by_copy`) |
| `sampling` | «порядок температуры и top-p не важен» (`temperature_after_filters`) |
"""

# %% [markdown] lang="en" key="day-4"
r"""
## Day 4. One model, three times

Read together:

- [](module_04_decoder_only_lm.ipynb#setup-ask)
- [](module_04_decoder_only_lm.ipynb#chain-ask)
- [](module_04_decoder_only_lm.ipynb#plain-ask)
- [](module_04_decoder_only_lm.ipynb#typed-ask)
- [](module_04_decoder_only_lm.ipynb#twin-ask)
- [](module_04_decoder_only_lm.ipynb#simple-ask)

Solve:

- [](module_04_decoder_only_lm.ipynb#ex-attention-statement)
- [](module_04_decoder_only_lm.ipynb#ex-cache-statement)

Discuss: why write the slow version first, and why must it share no code with the fast one? What exactly is kept in a cache, and what would go wrong if queries were kept too? When do two floats count as equal?
"""

# %% [markdown] lang="ru" key="day-4" en="f3166346"
r"""
## День 4. Одна модель трижды

Читаем вместе:

- [](module_04_decoder_only_lm.ipynb#setup-ask)
- [](module_04_decoder_only_lm.ipynb#chain-ask)
- [](module_04_decoder_only_lm.ipynb#plain-ask)
- [](module_04_decoder_only_lm.ipynb#typed-ask)
- [](module_04_decoder_only_lm.ipynb#twin-ask)
- [](module_04_decoder_only_lm.ipynb#simple-ask)

Решаем:

- [](module_04_decoder_only_lm.ipynb#ex-attention-statement)
- [](module_04_decoder_only_lm.ipynb#ex-cache-statement)

Обсуждаем: зачем сначала писать медленный вариант и почему у него не должно быть общего кода с быстрым? Что именно хранит кэш и что было бы, если бы он хранил и запросы? Когда два числа с плавающей точкой считать равными?
"""

# %% [markdown] lang="en" key="day-4-catches"
r"""
| contract | the misconception it catches |
|---|---|
| `causal_attention` | "hide the future when the weights are ready" (`masked_after_softmax`) |
| `cache` | "the next token's position is the number of the call" (`positions_count_calls`) |
| `cache` | "the mask of a chunk begins at its corner" (`mask_top_left`) |
"""

# %% [markdown] lang="ru" key="day-4-catches" en="254c8240"
r"""
| контракт | какое заблуждение он ловит |
|---|---|
| `causal_attention` | «будущее закроем, когда веса готовы» (`masked_after_softmax`) |
| `cache` | «позиция следующего токена — номер вызова» (`positions_count_calls`) |
| `cache` | «маска куска начинается в его углу» (`mask_top_left`) |
"""

# %% [markdown] lang="en" key="day-5"
r"""
## Day 5. Bugs, speed, costs

Read together:

- [](module_04_decoder_only_lm.ipynb#bugs-ask)
- [](module_04_decoder_only_lm.ipynb#fast-ask)
- [](module_04_decoder_only_lm.ipynb#theorem-ask)
- [](module_04_decoder_only_lm.ipynb#cost-ask)
- [](module_04_decoder_only_lm.ipynb#weights-ask)
- [](module_04_decoder_only_lm.ipynb#families)
- [](module_04_decoder_only_lm.ipynb#recap-ask)
- [](module_04_decoder_only_lm.ipynb#quiz-ask)
- [](module_04_decoder_only_lm.ipynb#quiz-say)

Solve:

- [](module_04_decoder_only_lm.ipynb#ex-gallery-statement)
- [](module_04_decoder_only_lm.ipynb#ex-fix-statement)
- [](module_04_decoder_only_lm.ipynb#ex-contract-statement)
- [](module_04_decoder_only_lm.ipynb#ex-nucleus-statement)
- [](module_04_decoder_only_lm.ipynb#ex-balance-statement)

Discuss: which cache bugs leave the greedy text unchanged, and who would have found them? Why does a larger batch cost almost nothing, and until when? What would you have to measure to trust a speed that somebody else reports?
"""

# %% [markdown] lang="ru" key="day-5" en="fa0fecea"
r"""
## День 5. Ошибки, скорость, стоимость

Читаем вместе:

- [](module_04_decoder_only_lm.ipynb#bugs-ask)
- [](module_04_decoder_only_lm.ipynb#fast-ask)
- [](module_04_decoder_only_lm.ipynb#theorem-ask)
- [](module_04_decoder_only_lm.ipynb#cost-ask)
- [](module_04_decoder_only_lm.ipynb#weights-ask)
- [](module_04_decoder_only_lm.ipynb#families)
- [](module_04_decoder_only_lm.ipynb#recap-ask)
- [](module_04_decoder_only_lm.ipynb#quiz-ask)
- [](module_04_decoder_only_lm.ipynb#quiz-say)

Решаем:

- [](module_04_decoder_only_lm.ipynb#ex-gallery-statement)
- [](module_04_decoder_only_lm.ipynb#ex-fix-statement)
- [](module_04_decoder_only_lm.ipynb#ex-contract-statement)
- [](module_04_decoder_only_lm.ipynb#ex-nucleus-statement)
- [](module_04_decoder_only_lm.ipynb#ex-balance-statement)

Обсуждаем: при каких ошибках кэша жадное декодирование даёт тот же текст и кто бы их нашёл? Почему увеличить батч почти ничего не стоит и до каких пор это так? Что надо измерить, чтобы поверить чужим данным о скорости?
"""

# %% [markdown] lang="en" key="day-5-catches"
r"""
| contract | the misconception it catches |
|---|---|
| `batching` | "padding on the left is just more prompt" (`padding_is_a_prefix`) |
| `sampler` | "the token that crosses the threshold is out" (`crossing_dropped`) |
| `generation` | "what no longer fits is simply forgotten" (`sliding_window`) |
"""

# %% [markdown] lang="ru" key="day-5-catches" en="f9df4d9e"
r"""
| контракт | какое заблуждение он ловит |
|---|---|
| `batching` | «паддинг слева — просто начало промпта» (`padding_is_a_prefix`) |
| `sampler` | «токен, перешагнувший порог, лишний» (`crossing_dropped`) |
| `generation` | «что не помещается, просто забывается» (`sliding_window`) |
"""

# %% [markdown] lang="en" key="hand-out"
r"""
## Hand out

`make teach` writes for each language, from the same sources as the course:

- `build/teaching/student/`: notebooks with hints and without solutions;
- `build/teaching/teacher/`: the solved ones, with notes for you;
- `build/teaching/nbgrader/`: a course folder for nbgrader, with an assignment for each module.

Contracts travel inside the notebooks, so a student sees the same diagnosis at home as in class, without a server.
"""

# %% [markdown] lang="ru" key="hand-out" en="b6182bea"
r"""
## Раздать

`make teach` делает для каждого языка, из тех же источников, что и сам курс:

- `build/teaching/student/` — блокноты с подсказками, но без решений;
- `build/teaching/teacher/` — решённые, с заметками для вас;
- `build/teaching/nbgrader/` — папку курса для nbgrader, по заданию на модуль.

Контракты лежат в самих блокнотах: дома учащийся видит тот же диагноз, что и на занятии, и сервер для этого не нужен.
"""

# %% [markdown] lang="en" key="slides"
r"""
## Show

`make slides` makes a presentation of each module in each language, `build/teaching/slides/`: questions, code, figures and outputs, to be shown in a browser without a network. What you say, the hints and the solutions are in the speaker's notes, which the key S opens.
"""

# %% [markdown] lang="ru" key="slides" en="ff893c4e"
r"""
## Показать

`make slides` делает из каждого модуля на каждом языке презентацию, `build/teaching/slides/`: вопросы, код, рисунки и то, что печатают ячейки; для показа хватит браузера без сети. Текст для рассказа, подсказки и решения лежат в заметках докладчика, их открывает клавиша S.
"""

# %% [markdown] lang="en" key="nbgrader"
r"""
## Grade with nbgrader

In the course folder of your language, release an assignment, collect what comes back into `submitted/STUDENT/module_03/`, and grade it:

```bash
nbgrader generate_assignment module_03
nbgrader autograde module_03
nbgrader generate_feedback module_03
```

A warm-up is worth 1 point, a core exercise 2, a stretch 3. A check that was not attempted earns nothing, and the contract's message stands in the feedback.

An answer runs in one process with its checks, so this holds off accidents, not malice: whoever wants to can change a check before it runs. Read the code you give points for, and grade strangers' code in a container.
"""

# %% [markdown] lang="ru" key="nbgrader" en="1f38f6fd" differs="code: the placeholder is in the language of the reader"
r"""
## Оценить с помощью nbgrader

В папке курса на вашем языке выпустите задание, сложите присланное в `submitted/УЧАЩИЙСЯ/module_03/` и оцените:

```bash
nbgrader generate_assignment module_03
nbgrader autograde module_03
nbgrader generate_feedback module_03
```

Разминка стоит 1 балл, основное упражнение — 2, упражнение со звёздочкой — 3. Проверка, за которую не брались, баллов не приносит, а в отзыв попадает сообщение контракта.

Решение и проверки выполняются в одном процессе, поэтому это защита от случайностей, а не от злого умысла: при желании проверку можно подменить до запуска. Читайте код, за который ставите баллы, а чужой проверяйте в контейнере.
"""

# %% [markdown] lang="en" key="grade"
r"""
## Grade files

Where students hand in Python files, contracts judge them directly, each in a process of its own with limits on time and memory:

```bash
python3 -m course_build.environment -m course_lib.contracts nll answers/*.py:next_token_nll
```

The exit code is 0 when all are right, 1 when some are wrong, 2 when some could not run; `--json` writes a line for each file. It holds off accidents, not malice: run strangers' code in a container.
"""

# %% [markdown] lang="ru" key="grade" en="b3b2459d" differs="code: the command asks for Russian"
r"""
## Оценить файлы

Если вам сдают файлы на Python, контракты проверят их без посредников: каждый файл — в отдельном процессе, с ограничением по времени и памяти:

```bash
python3 -m course_build.environment -m course_lib.contracts nll \
    answers/*.py:next_token_nll --language ru
```

Код выхода 0 — всё верно, 1 — есть неверные, 2 — что-то не запустилось; `--json` пишет по строке на файл. Это защита от случайностей, а не от злого умысла: чужой код запускайте в контейнере.
"""

# %% [markdown] lang="en" key="honest"
r"""
## What to tell your students

Passing a contract means that none of many attacks found a mistake, not that there is none. The certificate at the end of a module lists what was passed on that machine and a digest of it; it cannot say who sat at the keyboard. The final talk is still yours: ask each student to break one line of their own code, to predict what the contract will say, and to explain why.
"""

# %% [markdown] lang="ru" key="honest" en="abbecbf3"
r"""
## Что сказать учащимся

Пройденный контракт означает, что ни одна из многих атак не нашла ошибки, но не то, что её нет. Сертификат в конце модуля перечисляет, что пройдено на этой машине, и даёт отпечаток списка; кто сидел за клавиатурой, он не знает. Итоговая беседа всё равно остаётся за вами: пусть каждый сломает одну строку в своём коде, предскажет слова контракта и объяснит их.
"""
