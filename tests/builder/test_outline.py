"""What the outlines of library definitions show is what pyflakes finds in the whole program."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_build.library.outline import are_clean
from course_build.library.reading import read_library_module
from course_build.notebook import lint
from course_build.notebook.compose import Line, NotebookCell
from course_build.source.cells import Cell

ORIGIN = Cell("s.py", 1, 2, "code", "k", "")
LIBRARY = {
    "clean": "import math\n\n\ndef f(x: float) -> float:\n    return math.sqrt(g(x))\n\n\n"
    "def g(x: 'float') -> float:\n    return x + LIMIT\n\n\nLIMIT = 3\n",
    "a local before it is bound": "def f():\n    print(x)\n    x = 1\n",
    "a global read, then bound": "X = 1\n\n\ndef f():\n    print(X)\n    X = 2\n    return X\n",
    "a builtin read, then bound": "def f():\n    print(max)\n    max = 2\n    return max\n",
    "a deleted local": "def f(x):\n    del x\n    return x\n",
    "a deleted local with a global's name": "X = 1\n\n\ndef f(X):\n    del X\n    return X\n",
    "an error's name after its handler": "def f():\n    try:\n        pass\n"
    "    except ValueError as e:\n        pass\n    return e\n",
    "a name in a cast": "from typing import cast\n\n\ndef f(x):\n    return cast('Missing', x)\n",
    "a name in a cast under another name": "import typing as t\n\n\ndef f(x):\n"
    "    return t.cast('Missing', x)\n",
    "a literal": "from typing import Literal\n\n\ndef f(x: Literal['a', 'b']) -> Literal['c']:\n"
    "    return 'c'\n",
    "a decorator that comes later": "@g\ndef f():\n    pass\n\n\ndef g(x):\n    return x\n",
    "a default that comes later": "def f(x=LIMIT):\n    return x\n\n\nLIMIT = 1\n",
    "a default of a method that comes later": "class A:\n    def f(self, x=LIMIT):\n"
    "        return x\n\n\nLIMIT = 1\n",
    "a base that comes later": "class A(B):\n    pass\n\n\nclass B:\n    pass\n",
    "an annotation that comes later": "def f(x: A):\n    pass\n\n\nclass A:\n    pass\n",
    "a quoted annotation that comes later": "def f(x: 'A'):\n    pass\n\n\nclass A:\n    pass\n",
    "a value that comes later": "A = B\nB = 1\n",
    "its own name": "def f(x=f):\n    pass\n",
    "a class that names itself": "class A:\n    here = A\n",
    "a class that quotes itself": "class A:\n    def f(self) -> 'A':\n        return A()\n",
    "a class's variable in a method": "class A:\n    n = 1\n\n    def f(self):\n        return n\n",
    "a class's variable in a comprehension": "class A:\n    n = 1\n    m = [n for _ in 'ab']\n",
    "a comprehension's variable after it": "def f():\n    a = [b for b in 'ab']\n    return b\n",
    "a nonlocal": "def f():\n    n = 1\n\n    def g():\n        nonlocal n\n        n = 2\n\n"
    "    g()\n    return n\n",
    "its own name when it is called": "def f(n):\n    return f(n - 1)\n",
    "a walrus": "A = (B := 1)\nC = B\n",
    "the library by name": "import importlib\n\n\ndef f():\n"
    "    return importlib.import_module('course_lib.door')\n",
    "the class cell": "class A:\n    def f(self):\n        return __class__, super().f()\n",
    "what every module has": "def f():\n    return __name__, __file__\n",
}
AUTHORS = ("", "del f\n", "del math\n", "x = f\n", "e = n = b = X = Missing = 1\n", "later()\n")


def read(text):
    return read_library_module("course_lib.a", "course_lib/a.py", text.encode())


def cell_of(text, *definitions):
    lines = tuple(Line(line, "s.py", at) for at, line in enumerate(text.split("\n"), 2))
    return NotebookCell("k", "code", lines, ORIGIN, definitions=definitions)


def notebook_of(module, names, author):
    """The imports, a cell of the author's, the definitions in a cell each, and the author again."""
    imports = [i.statement for found in module.imports.values() for i in found]
    embedded = [module.definitions[name] for name in names]
    return [
        cell_of("\n".join(imports)),
        cell_of(author if author.startswith("e =") else ""),
        *(cell_of(d.text, d) for d in embedded),
        cell_of(author),
    ]


def both_ways(cells):
    """What is found with the outlines, and what in the whole program."""
    return lint.code_faults(cells), lint.code_faults([replace(c, definitions=()) for c in cells])


@pytest.mark.parametrize("author", AUTHORS)
@pytest.mark.parametrize("text", LIBRARY.values(), ids=LIBRARY.keys())
def test_outlines_hide_no_fault(text, author):
    module = read(text)
    with_outlines, whole = both_ways(notebook_of(module, module.definitions, author))
    assert with_outlines == whole


@given(st.data())
def test_outlines_hide_no_fault_wherever_a_definition_stands(data):
    module = read(data.draw(st.sampled_from(list(LIBRARY.values()))))
    names = data.draw(st.permutations(list(module.definitions)))
    kept = names[: data.draw(st.integers(1, len(names)))]
    with_outlines, whole = both_ways(notebook_of(module, kept, data.draw(st.sampled_from(AUTHORS))))
    assert with_outlines == whole


def test_what_one_notebook_hides_is_found_in_the_next():
    """To pyflakes a nonlocal name is one that the whole program knows."""
    text = LIBRARY["a nonlocal"] + "\n\ndef h(n):\n    del n\n    return n\n"
    module = read(text)
    for names in (["f", "h"], ["h"]):
        with_outlines, whole = both_ways(notebook_of(module, names, ""))
        assert with_outlines == whole
    assert whole


def test_the_outline_of_a_clean_definition_is_enough(monkeypatch):
    module = read(LIBRARY["clean"])
    cells = notebook_of(module, ["f", "g", "LIMIT"], "print(f(2))")
    assert are_clean(module.definitions.values())
    monkeypatch.setattr(lint, "_undefined_names", None)  # what looks at the whole program
    assert lint.code_faults(cells) == []


@pytest.mark.parametrize(
    "case", ["a deleted local with a global's name", "a name in a cast", "the library by name"]
)
def test_a_definition_with_a_fault_inside_is_not_clean(case):
    assert not are_clean([read(LIBRARY[case]).definitions["f"]])
