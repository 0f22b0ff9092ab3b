"""A rendered notebook: its head, its metadata, its bytes, and the parts it must have."""

import json

import nbformat
import pytest

from course_build.base import chrome
from course_build.base.settings import Settings
from course_build.building.course import Files, build_course
from course_build.notebook.compose import Line, NotebookCell
from course_build.notebook.render import render
from course_build.source.cells import Cell

from .conftest import FOLDED, FRAME, NAME, SETTINGS, SOURCE, code, code_twins, prose, said

SLUG = SETTINGS.replace('repository = ""', 'repository = "owner/a-course"')


def test_ids_are_keys_and_nothing_is_left_of_the_source(repo):
    repo.build(prose("p"), code("x", "x = 1", ' tags=["mine"]'))
    notebook = repo.notebook("ru")
    assert [c["id"] for c in notebook["cells"]] == [
        "title", "imports", "parameters", "begin", "p", "x",
    ]  # fmt: skip
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook["metadata"] == {
        "colab": {"name": f"{NAME}.ru.ipynb", "provenance": [], "toc_visible": True},
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    assert [c["metadata"] for c in notebook["cells"]] == [
        {}, FOLDED, {"tags": ["parameters"]}, {}, {}, {"tags": ["mine"]},
    ]  # fmt: skip
    assert notebook["cells"][1]["source"] == ["#@title Импорты\n", "import sys"]
    code_cells = [c for c in notebook["cells"] if c["cell_type"] == "code"]
    assert all(c["outputs"] == [] and c["execution_count"] is None for c in code_cells)


def test_the_bytes_are_plain(repo):
    repo.build(prose("p", r"$\alpha$", r"Слово $\alpha$"))
    data = (repo.root / f"notebooks/ru/{NAME}.ipynb").read_bytes()
    assert "Слово".encode() in data
    assert b"\r" not in data
    assert data.endswith(b"}\n")
    assert not data.endswith(b"\n\n")


def test_every_notebook_is_valid(repo):
    repo.reference("module_03", {"a": 1})
    repo.build(
        code("e", "from course_lib.scaling import scale"),
        code("r", "x = 1", ' role="reference" reference="module_03"'),
        code("f", "x = 1", ' role="folded" tags=["hide-input"]'),
    )
    for path in repo.outputs():
        notebook = nbformat.reads(repo.read(path), as_version=4)
        nbformat.validate(notebook)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("ids", "words"), [(["an id"], "does not match"), (["a", "a"], "Non-unique cell id 'a'")]
)
def test_a_notebook_that_is_not_valid_is_never_rendered(ids, words):
    cell = Cell("s.py", 1, 2, "code", "k", "x = 1")
    cells = [NotebookCell(key, "code", (Line("x = 1", "s.py", 2),), cell) for key in ids]
    with pytest.raises((nbformat.ValidationError, Warning), match=words):
        render(cells, "name")


def test_prose_keeps_every_backslash(repo):
    words = (
        "$$\n\\begin{aligned}a &= \\\\[2pt] b\\end{aligned}\n$$\n\nA `\\n` and a \\$ sign.  \nEnd."
    )
    repo.source(prose("p", words, words))
    repo.run("confirm", "3:p")  # a stamp does not count the spaces that break the line
    assert repo.run().code == 0
    assert repo.text("p") == words


# The head


IN_RUSSIAN = f"Этот блокнот по-русски: [ru/{NAME}.ipynb](../ru/{NAME}.ipynb)"
IN_ENGLISH = f"This notebook in English: [en/{NAME}.ipynb](../en/{NAME}.ipynb)"


def test_the_title_is_followed_by_the_links(repo):
    repo.build()
    assert repo.text("title") == f"# A toy\n\n{IN_RUSSIAN}\n\nHello."
    assert repo.text("title", "ru") == f"# Игрушка\n\n{IN_ENGLISH}\n\nПривет."


def test_a_title_alone_gets_its_links_too(repo):
    repo.write(SOURCE, FRAME.replace("\n\nHello.", "").replace("\n\nПривет.", "")
               .replace("42d51c6a", ""))  # fmt: skip
    repo.run("confirm", "3:title")
    assert repo.run().code == 0
    assert repo.text("title") == f"# A toy\n\n{IN_RUSSIAN}"


def test_a_title_with_words_on_the_next_line_keeps_them_apart(repo):
    repo.write(SOURCE, FRAME.replace("# A toy\n\nHello", "# A toy\nHello"))
    repo.run("confirm", "3:title")
    assert repo.run().code == 0
    assert repo.text("title") == f"# A toy\n\n{IN_RUSSIAN}\n\nHello."


def test_neighbours_are_linked_in_the_order_of_their_numbers(repo):
    for name in ("module_10_last", "module_02_first", NAME):
        repo.source(name=name)
    assert repo.run().code == 0
    links = repo.text("title").split("\n")[2]
    assert links == (
        f"{IN_RUSSIAN} · [← Module 2](module_02_first.ipynb) · [Module 10 →](module_10_last.ipynb)"
    )
    first = "".join(repo.notebook("ru", name="module_02_first")["cells"][0]["source"])
    assert f"· [Модуль 3 →]({NAME}.ipynb)" in first
    assert "←" not in first


def test_neighbours_are_linked_when_one_module_is_chosen_too(repo):
    repo.source(name="module_02_first")
    repo.source()
    assert repo.run("--module", "3").code == 0
    assert "[← Module 2](module_02_first.ipynb)" in repo.text("title")


@pytest.mark.parametrize(
    ("language", "words"), [("en", "Open in Colab"), ("ru", "Открыть в Colab")]
)
def test_the_colab_badge_comes_with_the_repositorys_name(repo, language, words):
    repo.build()
    assert "colab.research" not in repo.text("title", language)
    repo.write("pyproject.toml", SLUG)
    repo.build()
    assert (
        repo.text("title", language)
        .split("\n")[2]
        .endswith(
            f" · [![{words}](https://colab.research.google.com/assets/colab-badge.svg)]"
            "(https://colab.research.google.com/github/owner/a-course/blob/main/"
            f"notebooks/{language}/{NAME}.ipynb)"
        )
    )


def test_a_preview_builds_under_a_banner_that_names_the_stale_cells(repo):
    repo.source(prose("p"), prose("q"), prose("r"))
    changed = repo.read(SOURCE).replace("Some words.", "Other words.", 2)
    repo.write(SOURCE, changed)
    ran = repo.run("--preview")
    assert ran.code == 0
    assert ran.err.count("[stale-twin]") == 2
    assert repo.text("title", "ru").split("\n")[4] == (
        "> **Черновик.** Английский текст этих ячеек изменился с тех пор, как перевод был "
        "подтверждён: `begin`, `p`."
    )
    assert "Preview" not in repo.text("title", "en")
    assert repo.text("p", "ru") == "Слова."


def test_a_preview_of_what_is_confirmed_is_the_notebook(repo):
    repo.build(prose("p"))
    before = repo.outputs()
    assert repo.run("--preview").code == 0
    assert repo.outputs() == before


def test_a_preview_still_refuses_what_is_broken(repo):
    repo.source(prose("p").replace("Some words.", "Other words."), code("x", "x = ("))
    ran = repo.run("--preview")
    assert ran.code == 2
    assert "[syntax]" in ran.err
    assert repo.outputs() == {}


# The parts it must have


def without(key):
    """The frame without one of its cells."""
    cells = ("\n" + FRAME).split("\n# %% ")[1:]
    return "\n".join(f"# %% {cell}" for cell in cells if f'key="{key}"' not in cell)


def test_a_notebook_begins_with_its_title(repo):
    repo.write(SOURCE, without("title"))
    assert said(SOURCE, 1, "imports", "title", "begins with its title").search(repo.broken())


def test_a_comment_that_looks_like_a_title_is_none(repo):
    repo.write(SOURCE, code("first", "# Title\nx = 1") + "\n" + without("title"))
    assert said(SOURCE, 1, "first", "title", "begins with its title").search(repo.broken())


def test_the_imports_cell_is_shared(repo):
    twins = code_twins("i", "import sys", "import sys").replace('key="i"', 'key="i" role="imports"')
    repo.write(SOURCE, without("imports") + "\n" + twins)
    assert 'cell "i": [imports-cell]\n    the imports cell is shared' in repo.broken()


@pytest.mark.parametrize("words", ["Hello.", "## A toy", "#A toy", "Hello.\n\n# A toy"])
def test_the_title_is_a_heading_of_the_first_level(repo, words):
    repo.write(SOURCE, FRAME.replace("# A toy\n\nHello.", words))
    assert said(SOURCE, 1, "title", "title").search(repo.broken())


def test_the_title_stands_in_every_language(repo):
    repo.write(SOURCE, FRAME.replace("# Игрушка", "Игрушка"))
    assert said(SOURCE, 8, "title", "title").search(repo.broken())


@pytest.mark.parametrize(
    ("key", "rule"), [("imports", "one-imports-cell"), ("parameters", "one-parameters-cell")]
)
def test_a_part_that_every_notebook_needs_comes_exactly_once(repo, key, rule):
    repo.write(SOURCE, without(key))
    assert said(SOURCE, 1, "title", rule, "no cell has").search(repo.broken())
    more = ' role="imports"' if key == "imports" else ' tags=["parameters"]'
    err = repo.refuse(code("again", "import sys", more))
    line = FRAME.count("\n") + 2
    first = FRAME[: FRAME.index(f'# %% key="{key}"')].count("\n") + 1
    assert said(SOURCE, line, "again", rule, f"is already at line {first}").search(err)


@pytest.mark.parametrize(
    "cell",
    [
        prose("p", more=' tags=["parameters"]'),
        code("p", "x = 1", ' tags=["parameters"] role="folded"'),
        code_twins("p", "x = 1", "x = 1").replace('key="p"', 'key="p" tags=["parameters"]'),
    ],
    ids=["prose", "folded", "twins"],
)
def test_the_parameters_are_a_plain_shared_code_cell(repo, cell):
    repo.write(SOURCE, without("parameters") + "\n" + cell)
    assert 'cell "p": [parameters]' in repo.broken()


IMPORTS = {
    "other code": ("import sys\nx = 1", 2, "not an import"),
    "a future": ("from __future__ import annotations", 1, "relative or __future__"),
    "relative": ("from . import x", 1, "relative or __future__"),
    "a star": ("from math import *", 1, "a star import"),
    "a comment": ("import sys  # why", 1, "this comment would vanish"),
    "a library import": ("from course_lib.door import half_turn", 1, "role='imports'"),
}


@pytest.mark.parametrize(("text", "line", "words"), IMPORTS.values(), ids=IMPORTS.keys())
def test_the_imports_cell_holds_plain_imports_only(repo, text, line, words):
    repo.write(SOURCE, FRAME.replace("import sys", text))
    err = repo.broken()
    assert f'{SOURCE}:{15 + line}: cell "imports":' in err
    assert words in err


# Pure functions


def test_a_build_is_a_function_of_bytes():
    files = Files({SOURCE: FRAME.encode()}, {}, {})
    settings = Settings(("en", "ru"), "", "main")
    course = build_course(files, settings, [SOURCE], ["ru"])
    assert list(course.notebooks) == [f"notebooks/ru/{NAME}.ipynb"]
    assert list(course.solved) == [f"build/solved/ru/{NAME}.ipynb"]
    assert course.stale == ()
    assert json.loads(course.notebooks[f"notebooks/ru/{NAME}.ipynb"])["cells"]


def test_only_a_preview_speaks_of_stale_cells_in_the_notebook():
    source = FRAME.replace("Some words.", "Other words.").encode()
    files, settings = Files({SOURCE: source}, {}, {}), Settings(("en", "ru"), "", "main")
    path = f"notebooks/ru/{NAME}.ipynb"
    course = build_course(files, settings, [SOURCE], ["en", "ru"])
    preview = build_course(files, settings, [SOURCE], ["en", "ru"], preview=True)
    assert [finding.key for finding in course.stale] == ["begin"]
    assert course.stale == preview.stale
    assert b"`begin`" not in course.notebooks[path]
    assert b"`begin`" in preview.notebooks[path]


def test_the_builder_says_the_same_in_every_language():
    tables = chrome.CHROME
    for language, table in tables.items():
        assert table.keys() == tables["en"].keys(), language
        for entry, words in table.items():
            fields = [part.split("}")[0] for part in words.split("{")[1:]]
            wanted = [part.split("}")[0] for part in tables["en"][entry].split("{")[1:]]
            assert sorted(fields) == sorted(wanted), (language, entry)


def test_at_least_one_name_is_shown_however_long():
    assert chrome.name_some("en", ["a" * 50, "b"], 10) == "a" * 50 + " and 1 more"
    assert chrome.name_some("en", ["a" * 50], 10) == "a" * 50
    assert chrome.name_some("en", ["aaa", "bbb"], 8) == "aaa, bbb"
