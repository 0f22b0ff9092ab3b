"""The library is read as text, in a strict subset of Python; anything else is refused."""

import ast

import pytest

from course_build.base.findings import CourseError
from course_build.library.definitions import Library
from course_build.library.names import names_needed
from course_build.library.reading import read_library_module

PATH = "course_lib/a.py"


def read(text):
    return read_library_module("course_lib.a", PATH, text.encode())


def needs(text):
    """The names a definition needs, those that Python always has left out."""
    [node] = ast.parse(text).body
    return sorted(names_needed(text, node) - {"int", "str", "float", "list", "print", "object"})


# What a definition's text is


def test_a_definition_is_its_exact_lines_with_comments_above_and_decorators():
    text = (
        "import functools\n\n# Far above.\n\n# Why it is cached:\n# it is slow.\n"
        "@functools.cache  # one\n@other(\n    1)\n# between\ndef f(x):  \n    # inside\n"
        "    return  x  # end\n# after\n\ndef other(n):\n    return n\n"
    )
    definition = read(text).definitions["f"]
    assert definition.line == 5
    assert definition.text == (
        "# Why it is cached:\n# it is slow.\n@functools.cache  # one\n@other(\n    1)\n# between\n"
        "def f(x):  \n    # inside\n    return  x  # end"
    )


def test_a_comment_belongs_to_the_definition_that_it_touches_only():
    definitions = read("A = 1  # one\n# two\nB = 2\n\n# three\n\nC = 3\n").definitions
    texts = [d.text for d in definitions.values()]
    assert texts == ["A = 1  # one", "# two\nB = 2", "C = 3"]


def test_the_end_of_a_string_is_no_comment():
    text = 'A = """\n#"""\nB = 2\n'
    assert read(text).definitions["B"].text == "B = 2"


def test_all_the_lines_of_a_statement_belong_to_it():
    text = "A = {\n    1: 2,  # why\n\n    3: 4,\n}  # end\nB: int = (\n    1\n)\n"
    assert "\n".join(d.text for d in read(text).definitions.values()) + "\n" == text


def test_functions_classes_and_assignments_are_definitions():
    text = "async def a():\n    pass\n\nclass B:\n    pass\n\nC = 1\nD: int = 2\n"
    definitions = read('"""Docstring."""\n\n' + text).definitions
    assert [d.name for d in definitions.values()] == ["a", "B", "C", "D"]


# What is refused


REFUSED = {
    "star": ("from course_lib.b import *", "a star import"),
    "star of another": ("from math import *", "a star import"),
    "future": ("from __future__ import annotations", "__future__"),
    "relative": ("from .b import x", "a relative import"),
    "relative package": ("from . import b", "a relative import"),
    "alias": ("from course_lib.b import x as y", "under another name"),
    "whole module": ("import course_lib.b", "a whole course_lib module"),
    "whole module, aliased": ("import course_lib.b as b", "a whole course_lib module"),
    "module from package": ("from course_lib import b", "a whole course_lib module"),
    "conditional definition": ("if 1:\n    def f():\n        pass", "a top-level If statement"),
    "type checking": ("if TYPE_CHECKING:\n    import torch", "a top-level If statement"),
    "guarded import": (
        "try:\n    import torch\nexcept ImportError:\n    torch = None",
        "a top-level Try statement",
    ),
    "loop": ("for x in y:\n    z = x", "a top-level For statement"),
    "with": ("with a as b:\n    c = 1", "a top-level With statement"),
    "call": ("print('x')", "a top-level Expr statement"),
    "tuple": ("A, B = 1, 2", "a top-level Assign statement"),
    "chain": ("A = B = 1", "a top-level Assign statement"),
    "attribute": ("a.b = 1", "a top-level Assign statement"),
    "element": ("a[0] = 1", "a top-level Assign statement"),
    "augmented": ("A += 1", "a top-level AugAssign statement"),
    "bare annotation": ("A: int", "a top-level AnnAssign statement"),
    "deletion": ("del A", "a top-level Delete statement"),
    "assertion": ("assert A", "a top-level Assert statement"),
    "global": ("def f():\n    global A\n    A = 1", "a global statement"),
    "eval": ("def f():\n    return eval('A')", r"eval\(\) hides"),
    "exec": ("def f():\n    exec('A')", r"exec\(\) hides"),
    "globals": ("def f():\n    return globals()", r"globals\(\) hides"),
    "__import__": ("def f():\n    return __import__('a')", r"__import__\(\) hides"),
    "inner import": ("def f():\n    from course_lib.b import x", "inside a definition"),
    "inner relative import": ("def f():\n    from .b import x", "inside a definition"),
    "semicolon": ("A = 1; B = 2", "share a line"),
    "twice": ("def f():\n    pass\n\ndef f():\n    pass", "f already means the definition at"),
    "import and definition": ("import math\n\ndef math():\n    pass", "math already means math"),
    "two imports": ("import a as x\nimport b as x", "x already means a"),
    "two links": (
        "from course_lib.b import x\nfrom course_lib.c import x",
        "x already means course_lib.b.x",
    ),
    "link and definition": ("from course_lib.b import x\nx = 1", "x already means course_lib.b.x"),
}


@pytest.mark.parametrize(("text", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_outside_the_subset_is_refused(text, words):
    before = "GOOD = 1\n\n"
    last_line = 2 + text.count("\n") + 1
    with pytest.raises(CourseError, match=words) as caught:
        read(before + text)
    rules = {f.rule for f in caught.value.findings}
    assert rules == {"library-subset"}
    assert {f.path for f in caught.value.findings} == {PATH}
    assert all(3 <= f.line <= last_line for f in caught.value.findings)


def test_everything_that_is_refused_is_said_at_once():
    with pytest.raises(CourseError, match="star import") as caught:
        read("from a import *\n\ndel b\n")
    assert [(f.line, f.rule) for f in caught.value.findings] == [
        (1, "library-subset"),
        (3, "library-subset"),
    ]


ALLOWED = {
    "the same import twice": "import a.b\nimport a.c\n",
    "aliases of others": "import numpy as np\nfrom torch import nn as net\n",
    "a third-party import inside": "def f():\n    import torch\n    return torch\n",
    "nonlocal": "def f():\n    n = 0\n\n    def g():\n        nonlocal n\n"
    "        n = 1\n    return g\n",
    "a method called eval": "def f(model):\n    model.eval()\n",
}


@pytest.mark.parametrize("text", ALLOWED.values(), ids=ALLOWED.keys())
def test_what_is_inside_the_subset_is_read(text):
    assert read(text).path == PATH


def test_a_syntax_error_is_named_with_its_line():
    with pytest.raises(CourseError, match=r"course_lib/a\.py:2: \[library-syntax\]"):
        read("A = 1\ndef f(:\n")


@pytest.mark.parametrize(
    ("data", "rule"),
    [(b"\xef\xbb\xbfA = 1\n", "bom"), (b"A = 1\r\n", "line-endings"), (b"A = '\xff'\n", "utf-8")],
)
def test_a_library_file_has_clean_bytes(data, rule):
    with pytest.raises(CourseError, match=rf"course_lib/a\.py:1: \[{rule}\]"):
        read_library_module("course_lib.a", PATH, data)


# Which names a definition needs


NEEDS = {
    "body": ("def f(x):\n    return g(x)", ["g"]),
    "its own name": ("def f(x):\n    return f(x - 1)", ["f"]),
    "parameters and locals are its own": ("def f(x, *a, k=1, **b):\n    y = x\n    return y", []),
    "decorators": ("@d.e(g)\ndef f():\n    pass", ["d", "g"]),
    "defaults": ("def f(x=A, *, y=B):\n    pass", ["A", "B"]),
    "annotations": ("def f(x: A, *, y: B = 1) -> C:\n    pass", ["A", "B", "C"]),
    "quoted annotations": ('def f(x: "A", y: list["B"]) -> "C | None":\n    pass', ["A", "B", "C"]),
    "annotations quoted twice": ("def f(x: \"list['A']\"):\n    pass", ["A"]),
    "a Literal's strings are values": ('def f(x: Literal["A"]):\n    pass', ["Literal"]),
    "local annotations": ("def f():\n    x: A = 1", ["A"]),
    "an annotated constant": ("X: A = 1", ["A"]),
    "a quoted annotation of a constant": ('X: "A" = 1', ["A"]),
    "bases": ("class C(A, metaclass=B):\n    pass", ["A", "B"]),
    "class bodies": ("class C:\n    x = A\n    y = x", ["A"]),
    "methods": ("class C:\n    def m(self) -> A:\n        return B(self)", ["A", "B"]),
    "a method does not see its class's names": (
        "class C:\n    x = 1\n    def m(self):\n        return x",
        ["x"],
    ),
    "a class reads outside before it binds": ("class C:\n    x = x", ["x"]),
    "a class reads outside in an annotation": ("class C:\n    x: x = 1", ["x"]),
    "a dataclass": ("@dataclass(frozen=True)\nclass C:\n    x: A = field(default=B)",
                    ["A", "B", "dataclass", "field"]),
    "nested functions": ("def f():\n    def g():\n        return A\n    return g", ["A"]),
    "closures are not global": ("def f(x):\n    def g():\n        return x\n    return g", []),
    "lambdas": ("X = lambda x, y=A: x + B", ["A", "B"]),
    "comprehensions": ("X = [A(i) for i in B if C]", ["A", "B", "C"]),
    "comprehensions inside": ("def f():\n    return {k: A for k in B}", ["A", "B"]),
    "attributes are not names": ("def f(x):\n    return x.a.b", []),
    "keywords are not names": ("def f(x):\n    return x(a=1)", []),
    "f-strings": ('def f(x):\n    return f"{A} {x:{B}}"', ["A", "B"]),
    "exceptions": ("def f():\n    try:\n        pass\n    except A as e:\n        return e", ["A"]),
    "imports inside are its own": ("def f():\n    import a\n    return a", []),
    "super": ("class C:\n    def __init__(self):\n        super().__init__()", ["super"]),
    "match": ("def f(x):\n    match x:\n        case A.b:\n            return B", ["A", "B"]),
    "walrus": ("def f(x):\n    return (y := A) + y", ["A"]),
    "with and for": ("def f():\n    with A as a:\n        for b in B:\n            return a, b",
                     ["A", "B"]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "names"), NEEDS.values(), ids=NEEDS.keys())
def test_every_outer_name_is_seen_and_no_inner_one(text, names):
    assert needs(text) == names


# Where a name comes from


def library(**modules):
    files = {f"course_lib/{name.replace('__', '/')}.py": text.encode()
             for name, text in modules.items()}  # fmt: skip
    return Library(files, read_library_module)


def test_a_name_is_found_behind_re_exports():
    files = {
        "course_lib/pack/__init__.py": b"from course_lib.pack.inner import f\n",
        "course_lib/pack/inner.py": b"def f():\n    pass\n",
        "course_lib/user.py": b"from course_lib.pack import f\n",
    }
    found = Library(files, read_library_module).find("course_lib.user", "f")
    assert (found.module, found.path) == ("course_lib.pack.inner", "course_lib/pack/inner.py")


def test_a_missing_name_is_said_with_names_like_it():
    with pytest.raises(LookupError, match=r"course_lib/a\.py defines no scal \(there is scale\)"):
        library(a="def scale():\n    pass\n").find("course_lib.a", "scal")


def test_names_that_are_re_exported_count_as_like_it():
    both = library(a="from course_lib.b import scale\n", b="def scale():\n    pass\n")
    with pytest.raises(LookupError, match=r"defines no scal \(there is scale\)"):
        both.find("course_lib.a", "scal")


def test_nothing_is_proposed_when_no_name_is_like_it():
    with pytest.raises(LookupError, match=r"course_lib/a\.py defines no zzz$"):
        library(a="def scale():\n    pass\n").find("course_lib.a", "zzz")


def test_a_third_party_name_is_not_the_librarys():
    with pytest.raises(LookupError, match="defines no sqrt"):
        library(a="from math import sqrt\n").find("course_lib.a", "sqrt")


def test_a_missing_module_is_said():
    with pytest.raises(LookupError, match=r"there is no module course_lib\.b"):
        library(a="A = 1\n").find("course_lib.b", "x")


def test_a_name_that_is_passed_around_in_a_circle_is_refused():
    around = library(a="from course_lib.b import x\n", b="from course_lib.a import x\n")
    with pytest.raises(LookupError, match=r"course_lib\.a -> course_lib\.b -> course_lib\.a"):
        around.find("course_lib.a", "x")


@pytest.mark.parametrize(
    "text",
    [
        "def f(*xs: 'A', **ys: 'B'):\n    pass",
        "def f():\n    try:\n        x = 1\n    except:\n        y: 'A' = 1\n        z: 'B' = y\n",
        "def f(x):\n    match x:\n        case 1:\n            y: 'A' = 1\n            z: 'B'\n",
        "def f(x, /, *, y: 'A'):\n    if x:\n        pass\n    else:\n        z: 'B' = y\n",
    ],
)
def test_quoted_annotations_are_read_wherever_they_stand(text):
    assert set(needs(text)) >= {"A", "B"}


def test_a_name_in_other_letters_of_the_same_sense_is_refused_too():
    with pytest.raises(CourseError, match="hides which names are needed"):
        read("def f(x):\n    return \uff45val(x)\n")
