# %% [markdown] lang="en" key="title"
r"""
# Transformers, proved

Build attention, a language model, its cache and its bill of costs, each in a few lines you can read. Every claim is a cell that you run; every silent bug has a *contract*, a check that finds the bug in your code, not only in ours.

**[Start with Module 3](module_03_basic_transformer.ipynb)** · [Module 4](module_04_decoder_only_lm.ipynb) · [Teach it](teaching.md)
"""

# %% [markdown] lang="ru" key="title" en="47bd24c6"
r"""
# Трансформеры с доказательствами

Соберите внимание, языковую модель и её кэш, подсчитайте, во что всё это обходится, — и всякий раз в нескольких строках, которые легко прочесть. За каждым утверждением стоит ячейка, которую запускаете вы; на каждую тихую ошибку есть *контракт* — проверка, которая найдёт эту ошибку и в вашем коде.

**[Начать с модуля 3](module_03_basic_transformer.ipynb)** · [Модуль 4](module_04_decoder_only_lm.ipynb) · [Преподавателю](teaching.md)
"""

# %% [markdown] lang="en" key="figure"
r"""
![Attention weights of the running example: each token reads only itself and the tokens before it](../../figures/en/module_03-attention.svg)

This is attention at work: each row says how much one token reads of the others. The upper right is empty because nobody may read the future. In Module 3 you draw this picture from numbers that you have checked by hand.
"""

# %% [markdown] lang="ru" key="figure" en="cd7283f8"
r"""
![Веса внимания в сквозном примере: каждый токен читает только себя и токены перед собой](../../figures/ru/module_03-attention.svg)

Так работает внимание: строка говорит, сколько один токен берёт от каждого из остальных. Правый верхний угол пуст, потому что читать будущее никому нельзя. В модуле 3 вы нарисуете эту картинку по числам, которые сами проверили вручную.
"""

# %% [markdown] lang="en" key="message"
r"""
## A message that teaches

Here is the loss of a language model. It runs, a model trains with it, and it falls just as you hope:

```python
def next_token_nll(logits, token_ids, valid=None):
    nats = cross_entropy(logits.transpose(1, 2), token_ids, reduction="none")
    return nats.mean() if valid is None else nats[valid].mean()
```

Yet it is wrong, and no error will ever say so. Hand it to its contract:

```text
✗ check_nll_contract: the clause "certain_model" is broken
  demanded: logits[t] that are sure of token t+1 cost 0 nats
  measured: 80; tolerated: ≤ 1e-06; clauses that hold before it: 1 of 11
  failing input, cut down as far as it still fails:
    logits = [[[0, 80], [80, 0]]]
    token_ids = [[0, 1]]  (int64)
  first differences:
    next_token_nll: got 80, expected 0
  diagnosis: predicted tokens: 1; the right answer is 0; on fresh inputs it behaves
    exactly like not_shifted: logits[t] are compared with token t, which the model
    has just read: a copy costs nothing
    (fix: logits[:, :-1] against token_ids[:, 1:])
```

The model was graded for repeating the token it had just read. The contract found a text of two tokens that shows it, knew the mistake by its behaviour, and named the fix.
"""

# %% [markdown] lang="ru" key="message" en="8550775e"
r"""
## Сообщение, которое учит

Вот функция потерь языковой модели. Она выполняется, модель с ней обучается, и потери падают, как и хотелось:

```python
def next_token_nll(logits, token_ids, valid=None):
    nats = cross_entropy(logits.transpose(1, 2), token_ids, reduction="none")
    return nats.mean() if valid is None else nats[valid].mean()
```

И всё же она неверна, а сообщения об ошибке не будет никогда. Покажите её контракту:

```text
✗ check_nll_contract: нарушен пункт «certain_model»
  требуется: logits[t], уверенные в токене t+1, стоят 0 нат
  измерено: 80; допустимо: ≤ 1e-06; до него выполнено пунктов: 1 из 11
  вход, на котором видно нарушение (уменьшен, насколько удалось):
    logits = [[[0, 80], [80, 0]]]
    token_ids = [[0, 1]]  (int64)
  первые расхождения:
    next_token_nll: получено 80, ожидалось 0
  диагноз: предсказанных токенов: 1; верный ответ 0; на новых входах функция ведёт
    себя в точности как not_shifted: logits[t] сравниваются с токеном t, который
    модель только что прочла: копия ничего не стоит
    (исправление: logits[:, :-1] против token_ids[:, 1:])
```

Модель получала награду за то, что повторяла только что прочитанный токен. Контракт нашёл текст из двух токенов, на котором это видно, узнал ошибку по поведению и подсказал исправление.
"""

# %% [markdown] lang="en" key="need"
r"""
## What you need

- Python: functions, classes, a little NumPy or PyTorch.
- Multiplying matrices, and the idea of a gradient.
- An ordinary computer with Python 3.11 or newer. No graphics card, no account; no network either once the libraries are there.

You need not know Transformers. Each term is explained where it first appears and in the [glossary](glossary.md).
"""

# %% [markdown] lang="ru" key="need" en="3af33b5a"
r"""
## Что понадобится

- Python: функции, классы, немного NumPy или PyTorch.
- Умножение матриц и представление о градиенте.
- Обычный компьютер с Python 3.11 или новее. Ни видеокарты, ни учётной записи не нужно, а когда библиотеки установлены, не нужна и сеть.

Знать трансформеры не обязательно. Каждый термин объяснён там, где он появляется впервые, и в [глоссарии](glossary.md).
"""

# %% [markdown] lang="en" key="modules"
r"""
## The modules

| module | you build | exercises | time |
|---|---|---:|---:|
| [](module_03_basic_transformer.ipynb) | masks, attention, heads, blocks, a tiny language model, sampling | 9 | 7¼ hours |
| [](module_04_decoder_only_lm.ipynb) | one model in three stages, its key-value cache, real GPT-2 weights, measured costs | 7 | 6½ hours |

The time is for reading, running and solving. Exercises come in three levels, with hints that open one by one, predictions to make before you run, and a quiz at the end; a progress table shows which contracts your code has passed. The numbers begin with 3: these two modules stand alone.
"""

# %% [markdown] lang="ru" key="modules" en="a39ae743"
r"""
## Модули

| модуль | что вы соберёте | упражнений | время |
|---|---|---:|---:|
| [](module_03_basic_transformer.ipynb) | маски, внимание, головы, блоки, крошечную языковую модель, сэмплирование | 9 | 7¼ часа |
| [](module_04_decoder_only_lm.ipynb) | одну модель в трёх вариантах и её кэш; загрузите настоящие веса GPT-2 и измерите стоимость | 7 | 6½ часа |

Время — на чтение, запуск и решение. Упражнения — трёх уровней, подсказки открываются по одной; перед запуском вы предсказываете, что получится, в конце вас ждут вопросы, а таблица показывает, какие контракты ваш код уже выполнил. Нумерация начинается с 3: эти два модуля самостоятельны.
"""

# %% [markdown] lang="en" key="open"
r"""
## Open a notebook

**On your computer.** In a copy of the course's repository, `make lab` installs what is needed into `.venv` and opens JupyterLab. Or take a single notebook: each is one file that runs alone wherever torch, numpy and matplotlib are installed.

**In Colab.** Choose *File*, *Upload notebook*, and take the file; there is nothing to install. In VS Code or any other Jupyter, open it as it is.

**Without running anything.** The pages of this site show what every cell prints.
"""

# %% [markdown] lang="ru" key="open" en="9601e777"
r"""
## Открыть блокнот

**На своём компьютере.** В копии репозитория курса команда `make lab` поставит всё нужное в `.venv` и откроет JupyterLab. Можно взять и один блокнот: это самостоятельный файл, он выполняется везде, где есть torch, numpy и matplotlib.

**В Colab.** Выберите *Файл*, *Загрузить блокнот* и укажите файл; устанавливать ничего не нужно. В VS Code и любом другом Jupyter просто откройте его.

**Ничего не запуская.** На страницах этого сайта видно, что печатает каждая ячейка.
"""

# %% [markdown] lang="en" key="checked"
r"""
## What is checked

- **Every notebook runs**, in both languages, from an empty folder and without a network, at each change. What it prints is compared with what it printed before.
- **Every contract is attacked.** More than 1400 wrong implementations and 2900 mutants of right ones must be refused, more than 200 right ones accepted, however they are written.
- **Reference numbers come from outside**, computed twice, once with 50 digits.
- **Both languages say the same.** When the English changes, nothing is built until somebody has read the Russian again.
"""

# %% [markdown] lang="ru" key="checked" en="38a929e4"
r"""
## Что проверяется

- **Каждый блокнот выполняется** при каждом изменении: на обоих языках, из пустой папки и без сети. Напечатанное сравнивается с тем, что печаталось раньше.
- **Каждый контракт испытан.** Больше 1400 неверных реализаций и больше 2900 мутантов, полученных из верных, должны быть отвергнуты, больше 200 верных — приняты, как бы они ни были написаны.
- **Эталонные числа независимы:** их вычислили отдельные программы, дважды, один раз — с 50 знаками.
- **Языки говорят одно и то же.** Если изменился английский текст, ничего не собирается, пока кто-нибудь не перечитает русский.
"""

# %% [markdown] lang="en" key="limits"
r"""
## What it is not

- A passed contract is strong evidence, not a proof: it shows that none of many attacks found a mistake.
- A mistake that is in no catalogue is refused as well, but nobody tells you its name.
- The models are tiny, so that everything runs in seconds. None of them has read the internet, unless you bring GPT-2's weights; and times measured on a CPU are not a graphics card's.
- A check of your own code keeps accidents away, not malice: it is no sandbox.
"""

# %% [markdown] lang="ru" key="limits" en="84368bc6"
r"""
## Чего курс не обещает

- Пройденный контракт — сильный довод, но не доказательство: ни одна из многих атак не нашла ошибки.
- Ошибка, которой нет в каталоге, тоже будет отвергнута, но её имени вам никто не назовёт.
- Модели крошечные, чтобы всё выполнялось за секунды. Текстов из интернета они не видели, разве что вы сами принесёте веса GPT-2; а по времени, измеренному на процессоре, нельзя судить о видеокарте.
- Проверка вашего кода защищает от случайностей, а не от злого умысла: это не песочница.
"""
