"""An import of the library becomes its source, byte for byte; what that needs is imported."""

import pytest

from .conftest import FOLDED, FRAME_LINES, SOURCE, code, code_twins, prose, said

AFTER = FRAME_LINES + 1
GAP = "\n\n\n"


def library(repo, **modules):
    """Write library modules; `a__b` is the module a.b."""
    for name, text in modules.items():
        repo.write(f"course_lib/{name.replace('__', '/')}.py", text)


def ids(repo, language="en"):
    """The cells after the frame."""
    keys = [cell["id"] for cell in repo.notebook(language)["cells"]]
    return keys[keys.index("begin") + 1 :]


def every_id(repo):
    return [cell["id"] for cell in repo.notebook()["cells"]]


def bare(text):
    """A folded cell without its title."""
    return text.split("\n", 1)[1]


def test_the_definitions_bytes_stand_in_the_notebook_as_in_the_library(repo):
    text = (
        "import functools\n\n\n# Why: it is slow.\n@functools.cache\n"
        "def f(x,   y = 1):  # odd layout \n    '''Doc.'''\n\n    return  x\n\n\n"
        "TABLE = [\n    1,\n\n    2,\n]  # end\n"
    )
    library(repo, a=text)
    repo.build(code("e", "from course_lib.a import f, TABLE"))
    first, second = repo.text("e").split(GAP)
    assert text.count(first) == text.count(second) == 1
    assert first.startswith("# Why")
    assert first.endswith("return  x")
    assert second == "TABLE = [\n    1,\n\n    2,\n]  # end"
    assert repo.text("e", "ru") == repo.text("e", "en")


def test_definitions_come_in_the_order_in_which_they_are_imported(repo):
    library(repo, a="A = 1\n\nB = 2\n", b="C = 3\n")
    repo.build(
        code("e", "from course_lib.b import C\nfrom course_lib.a import (\n    B,\n    A,\n)")
    )
    assert repo.text("e") == GAP.join(["C = 3", "B = 2", "A = 1"])


def test_what_a_definition_needs_is_imported_from_the_library_packed_above(repo):
    repo.build(prose("p"), code("e", "from course_lib.scaling import scale"))
    assert every_id(repo)[:3] == ["title", "course-lib", "imports"]
    assert ids(repo) == ["p", "e"]
    assert repo.cell("course-lib")["metadata"] == FOLDED
    assert repo.text("course-lib").startswith("#@title The course's library: what serves")
    assert repo.text("course-lib", "ru").startswith("#@title Библиотека курса: ")
    imports = "import sys\n\nfrom course_lib.door import check_positive"
    assert bare(repo.text("imports")) == imports
    assert repo.cell("e")["metadata"] == {}
    assert repo.text("e").startswith("def scale(value")


def test_a_definition_that_needs_nothing_of_the_library_brings_nothing_along(repo):
    repo.build(code("e", "from course_lib.door import check_positive"))
    assert "course-lib" not in every_id(repo)
    assert bare(repo.text("imports")) == "import sys"


def test_a_library_cell_keeps_its_import_in_the_open(repo):
    text = "# en: a check\n# ru: проверка\nfrom course_lib.scaling import (\n    scale,\n)"
    repo.build(code("e", text, ' role="library" tags=["mine"]'), code("c", "scale(1, 1)"))
    assert repo.text("e") == text.replace("en: ", "").replace("# ru: проверка\n", "")
    assert repo.cell("e")["metadata"] == {"tags": ["mine"]}
    assert bare(repo.text("imports")) == "import sys"


def test_only_what_is_needed_comes_along_with_its_imports(repo):
    repo.build(code("e", "from course_lib.scaling import scale"))
    imports = "import sys\n\nfrom course_lib.door import check_positive"
    assert bare(repo.text("imports")) == imports
    repo.build(code("e", "from course_lib.door import half_turn"))
    assert bare(repo.text("imports")) == "import math\nimport sys"


def test_third_party_imports_go_to_the_imports_cell_once(repo):
    library(repo, a="import torch\nfrom torch import nn\n\n\ndef f():\n    return torch, nn\n")
    repo.source(code("e", "from course_lib.a import f"))
    repo.write(SOURCE, repo.read(SOURCE).replace("import sys", "import torch\nimport sys"))
    assert repo.run().code == 0
    assert bare(repo.text("imports")) == "import sys\n\nimport torch\nfrom torch import nn"


def test_all_imports_that_bind_a_needed_name_come_along(repo):
    library(repo, a="import xml\nimport xml.dom\n\n\ndef f():\n    return xml.dom\n")
    repo.build(code("e", "from course_lib.a import f"))
    assert bare(repo.text("imports")) == "import sys\nimport xml\nimport xml.dom"


def test_what_an_earlier_cell_shows_or_holds_does_not_come_again(repo):
    library(repo, a="from course_lib.scaling import scale\n\n\ndef f():\n    return scale(1, 1)\n"
            "\n\ndef g():\n    return f()\n")  # fmt: skip
    repo.build(
        code("one", "from course_lib.scaling import scale"), prose("p"),
        code("two", "from course_lib.a import f"), prose("q"),
        code("three", "from course_lib.a import g"),
    )  # fmt: skip
    assert bare(repo.text("imports")) == "import sys\n\nfrom course_lib.door import check_positive"


def test_what_is_shown_in_the_same_cell_is_not_imported(repo):
    library(repo, a="def f():\n    return g()\n\n\ndef g():\n    return 1\n")
    repo.build(code("e", "from course_lib.a import f, g"))
    assert "course-lib" not in every_id(repo)
    assert repo.text("e").index("def f") < repo.text("e").index("def g")


def test_a_class_comes_whole_with_its_decorators_and_what_its_body_needs(repo):
    text = (
        "from dataclasses import dataclass\n\nSIZE = 4\n\n\nclass Base:\n    pass\n\n\n"
        "@dataclass(frozen=True)\nclass Config(Base):\n    size: int = SIZE\n\n"
        "    def build(self) -> 'Config':\n        return Config(helper(self.size))\n\n\n"
        "def helper(n):\n    return n\n"
    )
    library(repo, a=text)
    repo.build(code("e", "from course_lib.a import Config"))
    assert repo.text("imports").endswith("from course_lib.a import Base, SIZE, helper")
    assert repo.text("e").startswith("@dataclass(frozen=True)\nclass Config(Base):")
    assert "from dataclasses import dataclass" in bare(repo.text("imports"))


def test_functions_that_need_each_other_when_called_are_fine(repo):
    library(repo, a="def top():\n    return odd(4)\n\n\ndef odd(n):\n    return n and even(n - 1)\n"
            "\n\ndef even(n):\n    return n == 0 or odd(n - 1)\n")  # fmt: skip
    repo.build(code("e", "from course_lib.a import top"))
    assert repo.text("imports").endswith("from course_lib.a import odd")


# What an embed cell may not be


EMBED = "from course_lib.door import check_positive"
REFUSED = {
    "other code": (f"{EMBED}\nx = 1", 2, "mixed-embed", "other code beside"),
    "another import": (f"import math\n{EMBED}", 1, "mixed-embed", "other code beside"),
    "inside a function": (f"def f():\n    {EMBED}", 1, "mixed-embed", "other code beside"),
    "a comment": (f"# remark\n{EMBED}", 1, "embed-comment", "# remark"),
    "a comment behind": (f"{EMBED}  # remark", 1, "embed-comment", "# remark"),
    "a star": ("from course_lib.door import *", 1, "embed-import", "a star import"),
    "an alias": (f"{EMBED} as c", 1, "embed-import", "under another name"),
    "a module": ("import course_lib.door", 1, "embed-import", "a whole course_lib module"),
    "a package": ("import course_lib", 1, "embed-import", "a whole course_lib module"),
    "relative": ("from .course_lib.door import x", 1, "embed-import", "a relative import"),
    "from a package": ("from course_lib import door", 1, "embed-import", "a whole course_lib"),
    "no such module": ("from course_lib.x import y", 1, "unknown-name", "no module course_lib.x"),
    "no such name": ("from course_lib.door import y", 1, "unknown-name", "defines no y"),
    "second of two": (f"{EMBED}\nfrom course_lib.door import y", 2, "unknown-name", "no y"),
    "twice": ("from course_lib.door import half_turn, half_turn", 1, "twice", "twice in this cell"),
}


@pytest.mark.parametrize(("text", "line", "rule", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_an_embed_cell_holds_plain_imports_of_the_library_only(repo, text, line, rule, words):
    err = repo.refuse(code("e", text))
    assert said(SOURCE, AFTER + line, "e", rule, words).search(err)


def test_an_embed_cell_is_shared_and_has_no_other_role(repo):
    err = repo.refuse(code_twins("e", EMBED, EMBED))
    assert said(SOURCE, AFTER + 1, "e", "embed-role", "lang='en'").search(err)
    err = repo.refuse(code("e", EMBED, ' role="folded"'))
    assert said(SOURCE, AFTER + 1, "e", "embed-role", "role='folded'").search(err)
    assert 'role="library"' in err


def test_showing_a_definition_twice_is_refused(repo):
    err = repo.refuse(code("one", EMBED), code("two", EMBED))
    assert said(SOURCE, AFTER + 4, "two", "twice", 'already shown by cell "one"').search(err)
    err = repo.refuse(code("one", EMBED), code("two", EMBED, ' role="library"'))
    assert said(SOURCE, AFTER + 4, "two", "twice", 'already shown by cell "one"').search(err)
    err = repo.refuse(code("one", EMBED, ' role="library"'), code("two", EMBED))
    assert said(SOURCE, AFTER + 4, "two", "twice", 'already imported by cell "one"').search(err)


def test_showing_what_is_imported_for_a_cell_above_is_refused_with_where_to_move_it(repo):
    err = repo.refuse(code("one", "from course_lib.scaling import scale"), code("two", EMBED))
    assert said(SOURCE, AFTER + 4, "two", "embed-too-late", r'scale \(cell "one"\)').search(err)
    assert f'move this import up, above cell "one" (line {AFTER})' in err
    repo.build(code("two", EMBED), code("one", "from course_lib.scaling import scale"))


def test_a_name_of_two_library_modules_is_refused(repo):
    library(
        repo,
        a="def size():\n    return 1\n\n\ndef f():\n    return size()\n",
        b="SIZE = 1\n\n\ndef size():\n    return 2\n\n\ndef g():\n    return size()\n",
    )
    err = repo.refuse(
        code("one", "from course_lib.a import f"), code("two", "from course_lib.b import g")
    )
    assert said("course_lib/b.py", 8, None, "import-clash", "both bind size").search(err)


def test_showing_another_definition_of_a_name_that_is_held_is_refused(repo):
    library(repo, a="def size():\n    return 1\n", b="def size():\n    return 2\n")
    err = repo.refuse(
        code("one", "from course_lib.a import size"), code("two", "from course_lib.b import size")
    )
    found = said(SOURCE, AFTER + 4, "two", "two-definitions", "size of course_lib/b.py:1")
    assert found.search(err)


CLASHES = {
    "a function": ("x = 1\n\ndef scale():\n    pass", 3),
    "a class": ("class scale:\n    pass", 1),
    "a variable": ("x = 1\nscale = 2", 2),
    "a loop": ("for scale in ():\n    pass", 1),
    "an import": ("from math import sqrt as scale", 1),
    "a walrus": ("if (scale := 1):\n    pass", 1),
    "a global": ("def f():\n    global scale\n    scale = 1", 1),
}


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(("text", "line"), CLASHES.values(), ids=CLASHES.keys())
def test_a_name_of_the_library_and_of_the_notebook_is_refused(repo, text, line, first):
    embed = code("e", "from course_lib.scaling import scale")
    cells = [code("c", text), embed] if first else [embed, code("c", text)]
    err = repo.refuse(*cells)
    place = AFTER + line if first else AFTER + 3 + line
    assert said(SOURCE, place, "c", "two-definitions", "scale is also defined by").search(err)


def test_a_local_name_is_no_clash(repo):
    repo.build(
        code("e", "from course_lib.scaling import scale"),
        code("c", "def f(scale):\n    check_positive = scale\n    return check_positive"),
    )


def test_an_import_of_the_library_may_not_be_rebound(repo):
    err = repo.refuse(code("e", "from course_lib.door import half_turn"), code("c", "math = 3"))
    assert said(SOURCE, AFTER + 4, "c", "import-clash", "math is also import math").search(err)
    embed = code("e", "from course_lib.scaling import scale")
    err = repo.refuse(embed, code("c", "check_positive = 3"))
    assert said(SOURCE, AFTER + 4, "c", "import-clash", "also from course_lib.door").search(err)
    err = repo.refuse(
        code("e", "from course_lib.door import half_turn"), code("c", "import cmath as math")
    )
    assert said(SOURCE, AFTER + 4, "c", "import-clash", "math is also import math").search(err)


def test_importing_the_same_thing_again_is_no_clash(repo):
    repo.build(code("e", "from course_lib.door import half_turn"), code("c", "import math"))


def test_imports_of_two_library_modules_may_not_differ(repo):
    library(
        repo,
        a="import numpy as np\n\n\ndef f():\n    return np\n",
        b="import jax.numpy as np\n\n\ndef g():\n    return np\n",
    )
    err = repo.refuse(code("e", "from course_lib.a import f\nfrom course_lib.b import g"))
    assert "[import-clash]" in err
    assert "import jax.numpy as np" in err
    assert "import numpy as np" in err


def test_a_definition_may_not_hide_another_modules_import(repo):
    library(
        repo,
        a="import html\n\n\ndef f():\n    return html\n",
        b="def html():\n    return 1\n",
    )
    err = repo.refuse(code("e", "from course_lib.a import f\nfrom course_lib.b import html"))
    assert said(SOURCE, AFTER, "e", "two-definitions", "html is defined by course_lib/b").search(
        err
    )


def test_a_name_that_the_library_nowhere_defines_is_refused_at_its_use(repo):
    library(repo, a="def f():\n    x = 1\n    return x + missing\n")
    err = repo.refuse(code("e", "from course_lib.a import f"))
    assert said("course_lib/a.py", 3, "e", "undefined-name", "f needs missing").search(err)


def test_an_annotation_that_the_library_nowhere_defines_is_refused(repo):
    library(repo, a="def f(x) -> 'Missing':\n    return x\n")
    err = repo.refuse(code("e", "from course_lib.a import f"))
    assert said("course_lib/a.py", 1, "e", "undefined-name", "f needs Missing").search(err)


def test_a_link_to_a_missing_library_name_is_refused_at_its_use(repo):
    library(repo, a="from course_lib.door import gone\n\n\ndef f():\n    return gone\n")
    err = repo.refuse(code("e", "from course_lib.a import f"))
    assert said("course_lib/a.py", 5, "e", "unknown-name", "defines no gone").search(err)


def test_a_module_outside_the_subset_is_refused_when_it_is_needed_only(repo):
    library(repo, bad="from math import *\n")
    repo.build(code("e", EMBED))
    library(repo, good="from course_lib.bad import x\n\n\ndef f():\n    return x\n")
    err = repo.refuse(code("e", "from course_lib.good import f"))
    assert said("course_lib/bad.py", 1, "e", "library-subset", "star import").search(err)


def test_shown_definitions_must_stand_in_an_order_that_runs(repo):
    library(repo, a="class A:\n    pass\n\n\nclass B(A):\n    pass\n")
    err = repo.refuse(code("e", "from course_lib.a import B, A"))
    assert said("course_lib/a.py", 5, "e", "undefined-name", "'A'").search(err)
    repo.build(code("e", "from course_lib.a import A, B"))


def test_an_embed_cell_stands_below_the_imports_cell(repo):
    repo.source()
    source = repo.read(SOURCE)
    repo.write(
        SOURCE, source.replace('# %% key="imports"', f'{code("e", EMBED)}\n# %% key="imports"')
    )
    assert said(SOURCE, 15, "e", "imports-first").search(repo.broken())


def test_every_embed_cell_that_is_wrong_is_said(repo):
    err = repo.refuse(
        code("one", "from course_lib.x import y"), code("two", "from course_lib.door import z")
    )
    assert 'cell "one": [unknown-name]' in err
    assert 'cell "two": [unknown-name]' in err


FAULTS = {
    "syntax": (b"A = 1\ndef f(:\n", 2, "library-syntax", "def f(:"),
    "a byte order mark": (b"\xef\xbb\xbfA = 1\n", 1, "bom", "A = 1"),
    "an end too early": (b"def f():", 1, "library-syntax", "def f():"),
    "subset": (b"A = 1\nB = C = 2\n", 2, "library-subset", "B = C = 2"),
}


@pytest.mark.parametrize(("data", "line", "rule", "quoted"), FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_of_the_library_is_said_once_with_its_line_and_its_cells(
    repo, data, line, rule, quoted
):
    repo.write("course_lib/a.py", data)
    cells = [code(key, f"from course_lib.a import {key}") + prose(f"p-{key}") for key in "vwxyz"]
    err = repo.refuse(*cells)
    assert err.startswith(f"course_lib/a.py:{line}: [{rule}]\n")
    assert f"\n      | {quoted}\n    this stops 5 cells: v, w, x and 2 more\n    -> " in err
    assert "broken: 1 finding;" in err
