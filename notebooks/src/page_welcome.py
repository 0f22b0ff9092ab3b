# %% [markdown] lang="en" key="title"
r"""
# Transformers, proved

A course on Transformers.
"""

# %% [markdown] lang="ru" key="title" en="f157249f"
r"""
# Трансформеры с доказательствами

Курс о трансформерах.
"""

# %% [markdown] lang="en" key="modules"
r"""
## The modules

- [](module_03_basic_transformer.ipynb) and [](module_03_basic_transformer.ipynb#masks-ask)
"""

# %% [markdown] lang="ru" key="modules" en="982621e9"
r"""
## Модули

- [](module_03_basic_transformer.ipynb) и [](module_03_basic_transformer.ipynb#masks-ask)
"""
