"""What a learner may not find in a notebook, and what makes it hard to read."""

import ast
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyflakes import checker, messages

from course_build.notebook.compose import Line, NotebookCell
from course_build.notebook.lint import code_faults
from course_build.source.cells import Cell
from course_build.text.prose import count_words

from .conftest import FRAME, FRAME_LINES, SOURCE, code, code_twins, prose, said

AFTER = FRAME_LINES + 1

# Names


UNDEFINED = {
    "a call": ("x = 1\nprint(missing)", 2),
    "an annotation": ("def f(x: Missing) -> int:\n    return x", 1),
    "a quoted annotation": ("def f() -> 'missing':\n    return 1", 1),
    "a function's body": ("def f():\n    return missing", 2),
    "a decorator": ("@missing\ndef f():\n    pass", 1),
    "a base": ("class A(missing):\n    pass", 1),
    "a local before it is bound": ("x = 1\ndef f():\n    print(x)\n    x = 2", 3),
    "a deleted name": ("x = 1\ndel x\nprint(x)", 3),
    "used above its definition": ("print(later)\nlater = 1", 1),
}


@pytest.mark.parametrize(("text", "line"), UNDEFINED.values(), ids=UNDEFINED.keys())
def test_an_undefined_name_is_found_with_its_line(repo, text, line):
    err = repo.refuse(code("c", text))
    assert said(SOURCE, AFTER + line, "c", "undefined-name").search(err)


def test_a_name_in_one_language_only_is_found(repo):
    err = repo.refuse(code_twins("c", 'print(f"{1}")', 'print(f"{1} {missing}")'))
    assert "code-twins" in err


def test_the_line_is_right_below_comment_pairs_and_embedded_cells(repo):
    err = repo.refuse(
        code("e", "from course_lib.scaling import scale"),
        code("c", "# en: a\n# ru: а\n# en: b\n# ru: б\nprint(missing)"),
    )
    assert err.count("[undefined-name]") == 1
    assert said(SOURCE, AFTER + 3 + 5, "c", "undefined-name", "missing").search(err)


def test_names_from_cells_above_imports_and_the_kernel_are_known(repo):
    repo.build(
        code(
            "a", "def f(x: int) -> 'T':\n    return sys, later, get_ipython()\n\nclass T:\n    pass"
        ),
        code("b", "later = f(seed)\ndisplay(later)"),
    )


def test_names_that_only_a_later_cell_defines_are_unknown(repo):
    err = repo.refuse(code("a", "print(later)"), code("b", "later = 1"))
    assert said(SOURCE, AFTER + 1, "a", "undefined-name", "later").search(err)


def test_what_only_an_embedded_definition_needs_is_unknown_where_the_source_is_run(repo):
    library = "import math\n\n\ndef half():\n    return other(math.pi)\n\n\n"
    repo.write("course_lib/a.py", f"{library}def other(x):\n    return x\n")
    embed = code("e", "from course_lib.a import half")
    err = repo.refuse(embed, code("c", "# en: a\n# ru: а\n%ls\nother(math.e)"))
    assert err.count("[undefined-name]") == 2
    for name in ("other", "math"):
        assert said(SOURCE, AFTER + 3 + 4, "c", "undefined-name", name).search(err)
    repo.build(embed, code("i", "import math"), code("c", "print(math.e)"))


def test_commands_are_no_syntax_errors(repo):
    repo.build(code("c", "x = 1\nif x:\n    %pip install torch\n!ls\nprint(x)"))
    assert repo.text("c") == "x = 1\nif x:\n    %pip install torch\n!ls\nprint(x)"


@pytest.mark.parametrize(
    ("text", "line"),
    [("x = 1\ny = (", 2), ("def f(:\n    pass", 1), ("x = 1\n  y = 2", 2), ('s = """', 1)],
)
def test_a_syntax_error_is_found_with_its_line(repo, text, line):
    err = repo.refuse(code("c", text))
    shown = re.escape(text.split("\n")[line - 1].strip())
    assert said(SOURCE, AFTER + line, "c", "syntax", f": {shown}$").search(err)


def test_every_syntax_error_is_said(repo):
    err = repo.refuse(code("a", "x = ("), code("b", "y = )"))
    assert err.count("[syntax]") == 2


@pytest.mark.parametrize(
    "text",
    [
        'import importlib\nimportlib.import_module("course_lib.door")',
        '__import__("course_lib")',
        'from importlib import import_module\nx = import_module("course_lib.door")',
        "from .course_lib_door import x",
    ],
)
def test_an_import_of_the_library_in_disguise_is_found(repo, text):
    err = repo.refuse(code("c", text))
    line = AFTER + text.count("\n") + 1
    assert said(SOURCE, line, "c", "leftover-import", "course_lib.* is left over").search(err)


@pytest.mark.parametrize(
    "text", ["import course_lib", "import sys, course_lib.a as a", "from course_lib.a import b"]
)
def test_whatever_came_before_no_import_of_the_library_gets_through(text):
    cell = Cell("s.py", 1, 2, "code", "k", text)
    [found] = code_faults([NotebookCell("k", "code", (Line(text, "s.py", 2),), cell)])
    assert (found.line, found.rule) == (2, "leftover-import")
    assert text in found.message


def test_the_library_may_be_spoken_of(repo):
    text = 'import importlib\nimportlib.import_module("math")\nprint("course_lib is a folder")'
    repo.build(code("c", text), prose("p", "See course_lib."))


# Length


@pytest.mark.parametrize("lines", [40, 41])
def test_a_visible_code_cell_has_at_most_forty_lines(repo, lines):
    cell = code("c", "\n".join(["x = 1"] * lines))
    if lines == 40:
        repo.build(cell)
    else:
        err = repo.refuse(cell)
        assert said(SOURCE, AFTER, "c", "long-code", "41 lines").search(err)


def test_a_folded_cell_may_be_longer(repo):
    repo.build(code("c", "\n".join(["print(1)"] * 41), ' role="folded"'))
    assert repo.text("c").startswith("#@title Machinery\nprint(1)\n")
    assert repo.text("c", "ru").startswith("#@title Служебный код\nprint(1)\n")


def test_a_folded_cell_names_what_it_defines(repo):
    text = "x = 1\n\n\ndef f():\n    pass\n\n\nasync def g():\n    pass\n\n\nclass A:\n    pass"
    repo.build(code("c", text, ' role="folded" tags=["mine"]'))
    assert repo.text("c") == f"#@title Machinery: f, g, A, x\n{text}"
    assert repo.cell("c")["metadata"]["tags"] == ["mine", "hide-input"]


def test_an_embedded_definition_is_visible_code_too(repo):
    body = "\n".join(["    x = 1"] * 40)
    repo.write("course_lib/a.py", f"def f():\n{body}\n\n\ndef g():\n    return f()\n")
    err = repo.refuse(code("e", "from course_lib.a import f"))
    assert said(SOURCE, AFTER, "e", "long-code", "41 lines").search(err)
    repo.build(code("e", "from course_lib.a import g"))  # f is packed
    repo.build(code("e", "from course_lib.a import f", ' role="library"'))


def test_at_most_three_code_cells_stand_in_a_row(repo):
    cells = [code(key, "x = 1") for key in "abcde"]
    repo.build(*cells[:3], prose("p"), *cells[3:])
    err = repo.refuse(*cells)
    assert err.count("[no-prose]") == 1
    assert said(SOURCE, AFTER + 9, "d", "no-prose").search(err)


def test_folded_cells_and_imports_of_the_library_do_not_count_in_the_row(repo):
    repo.build(
        code("a", "x = 1"), code("b", "x = 1", ' role="folded"'),
        code("l", "from course_lib.door import half_turn", ' role="library"'),
        code("e", "from course_lib.scaling import scale"), code("c", "x = 1"),
    )  # fmt: skip


@pytest.mark.parametrize("words", [90, 91])
def test_a_prose_cell_has_at_most_ninety_words(repo, words):
    cell = prose("p", " ".join(["word"] * words))
    if words == 90:
        repo.build(cell)
    else:
        assert said(SOURCE, AFTER, "p", "long-prose", "91 words").search(repo.refuse(cell))


def test_lines_are_counted_in_code_and_words_in_prose(repo):
    lines = "\n".join(["- a"] * 45)
    words = "\n".join(["x = 1  # one two three"] * 30)
    repo.build(prose("p", lines, lines), code("c", words))


def test_each_language_is_counted(repo):
    err = repo.refuse(prose("p", "word", " ".join(["слово"] * 91)))
    assert said(SOURCE, AFTER + 5, "p", "long-prose", "91 words").search(err)


def test_what_the_builder_adds_to_the_title_does_not_count(repo):
    title = prose("title", "# A\n\n" + "word " * 88 + "end.", "# А\n\nПривет.")
    repo.write(SOURCE, title + FRAME[FRAME.index("\n# %% key=") :])
    assert repo.run().code == 0


WORDS = {
    "# A heading of five words": 5,
    "one *two* **three** _four_": 4,
    "пять слов — и тире": 4,
    "не\u00a0разрывный пробел": 3,
    "1.5 numbers are words, 2 too": 6,
    "- a\n- b\n\n1. c\n": 3,
    "> a quotation": 2,
    "[three linked words](https://example.org/not/these)": 3,
    "![not the image](a.svg)": 0,
    "`code is` not": 1,
    "```\nnot this\n```\n\nbut this": 2,
    "    not this\n\nbut this": 2,
    "$x = y$ is maths": 2,
    "$$\nx = y\n$$\n\nbut this": 2,
    "see $$x$$ here": 2,
    "| not | this |\n|---|---|\n| nor | this |\n\nbut this": 2,
    "<div>not this</div>\n\nbut <b>this</b>": 2,
    "<details><summary>no</summary>\n\nbut this\n\n</details>": 2,
    "a line\nand another": 4,
    "a hard\\\nbreak": 3,
    "dollars \\$5 cost": 3,
    "`a`-axis": 1,
    "": 0,
    "— … !": 0,
}


@pytest.mark.parametrize(("text", "words"), WORDS.items(), ids=range(len(WORDS)))
def test_words_are_what_is_read_and_nothing_else(text, words):
    assert count_words(text) == words


PLAIN = st.lists(st.from_regex(r"[a-zа-я]{1,8}", fullmatch=True), min_size=1, max_size=30)


@given(PLAIN, st.sampled_from([" ", "\n", "\n\n", " — ", ", "]))
def test_plain_words_are_counted_whatever_stands_between(words, between):
    assert count_words(between.join(words)) == len(words)


# What is written is what was checked


def test_no_name_is_undefined_in_the_bytes_that_were_written(repo):
    repo.build(
        code("e", "from course_lib.scaling import scale"),
        code("c", "# en: a\n# ru: б\nprint(scale(seed, 4), sys)"),
    )
    for folder in ("notebooks", "build/solved"):
        for language in ("en", "ru"):
            cells = repo.notebook(language, folder)["cells"]
            sources = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
            found = checker.Checker(ast.parse("\n".join(sources))).messages
            assert not [m for m in found if isinstance(m, messages.UndefinedName)]
