"""Which names a cell binds: as Python 3.11's symbol tables say, under every Python."""

import ast
import symtable
import sys
from pathlib import Path

import pytest

from course_build.source.bound import names_bound

from .conftest import code

ROOT = Path(__file__).resolve().parents[2]
BOUND = {
    "a = b = 1\nc: int = 2\nd: int\ne += 1": "a b c d e",
    "(a, *b), c.d, e[f] = g": "a b",
    "import a, b.c, d.e as f\nfrom g import h as i, j\nfrom k import *": "a b f i j",
    "def f(a, b=1):\n    c = 2\n    global d, e\n    d = 1": "f d e",
    "@g\nclass A(B):\n    c = 1\n    def m(self): pass": "A",
    "lambda a: (b := a)": "",
    "def f(a=(b := 1)): pass": "f b",
    "for a, b in c: d = 1": "a b d",
    "with a as b, c as (d, e): pass": "b d e",
    "try: pass\nexcept E as e: pass": "e",
    "match x:\n    case [a, *b]: pass\n    case {'k': c, **d}: pass\n    case A(e) as f: pass": (
        "a b c d e f"
    ),
    "del a": "a",
    "%matplotlib inline\na = 1": "a",
    "[a for a in b]\n{c for c in d}\n{e: f for e, f in g}\nlist(h for h in i)": "",
    "[a for b in c for a in b if (d := a)]": "d",
    "[a for a in [e for e in (b := f)]]": "b",
}


@pytest.mark.parametrize(("text", "names"), BOUND.items())
def test_a_cell_binds_what_stands_in_its_own_scope(text, names):
    assert names_bound(text) == set(names.split())


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="there, tables list comprehensions' names")
def test_python_itself_says_the_same_of_all_code_of_the_course():
    folders = ("course_lib", "course_build", "reference", "tests")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    assert len(paths) > 300
    for path in paths:
        text = path.read_text(encoding="utf-8")
        symbols = symtable.symtable(text, path.name, "exec").get_symbols()
        bound = {s.get_name() for s in symbols if s.is_assigned() or s.is_imported()}
        stated = {
            name
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Global)
            for name in node.names
        }
        assert names_bound(text) == bound | stated, path


def test_a_comprehension_may_use_a_name_that_the_library_imports(repo):
    embedded = code("e", "from course_lib.door import half_turn")
    repo.build(embedded, code("c", "print([math for math in range(3)])"))
    assert "[import-clash]" in repo.refuse(embedded, code("c", "math = 3"))
