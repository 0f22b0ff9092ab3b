"""A source opened as a notebook in Jupyter and saved: what was edited changes, nothing else."""

import shutil
import tomllib
from pathlib import Path

import pytest

from course_build.base.settings import parse_settings
from course_build.source.cells import Cell, parse_source
from course_build.source.header import ATTRIBUTES

from .conftest import NAME, SOURCE, code, code_twins, prose, stamp_by_hand
from .jupyter import serve

ROOT = Path(__file__).resolve().parents[2]
CONFIG = "notebooks/src/jupytext.toml"
LANGUAGES = parse_settings((ROOT / "pyproject.toml").read_text(encoding="utf-8")).languages
MODULES = sorted((ROOT / "notebooks/src").glob("*.py"))
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")

# one server, not one for each worker
pytestmark = [pytest.mark.delivery, pytest.mark.xdist_group("jupyter")]

TOY = (
    prose("maths", r"Take $\frac{1}{2}$, *please*.", r"Возьмите $\frac{1}{2}$, *пожалуйста*."),
    code("pair", "# en: one\n# ru: один\nx = 1\n\n\ndef f():\n    return x\n\n"),
    code("commands", "# %pip list\n# %matplotlib inline\n# !ls\ny = 2\n"),
    code("tight", "z = 3").rstrip("\n"),
    prose("between"),
    code_twins("words", 'print("one")', 'print("один")'),
    code(
        "try-it",
        "def twice(x):\n    raise NotImplementedError",
        ' tags=["slow", "x-y"] role="stub" exercise="twice"',
    ),
    code("check-it", "assert True", ' role="check" exercise="twice"'),
    prose("hint-it", "A hint.", "Подсказка.", ' role="hint" exercise="twice"'),
    code("solve-it", "def twice(x):\n    return 2 * x", ' role="solution" exercise="twice"'),
    prose(
        "quotes",
        "Say \"a\" and 'b'.\n\n- one\n    - two",
        "«Скажи» \"а\" и 'б'.\n\n- раз\n    - два",
    ),
    code("last", "last = 1\n\n\n"),
)


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A copy of the sources, and what Jupyter needs to know about them."""
    root = tmp_path_factory.mktemp("course")
    shutil.copytree(ROOT / "notebooks/src", root / "notebooks/src")
    return root


@pytest.fixture(scope="module")
def server(course, tmp_path_factory):
    """A Jupyter server on the root that `make lab` has."""
    with serve(course, tmp_path_factory.mktemp("jupyter") / "own") as server:
        yield server


@pytest.fixture
def toy(course, repo):
    """A small source, with everything that a source may hold, where the server sees it."""
    repo.source(*TOY)
    text = repo.read(SOURCE)
    path = course / SOURCE
    path.write_text(text, encoding="utf-8", newline="\n")
    yield path
    path.unlink()


def as_lab_sends(notebook):
    """Add what JupyterLab adds once a kernel runs and the notebook was looked at."""
    notebook["metadata"] |= {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python", "version": "3.11.7", "file_extension": ".py"},
        "toc-showtags": False,
    }
    for cell in notebook["cells"]:
        cell["metadata"] |= {
            "trusted": True, "collapsed": False, "editable": True, "scrolled": True,
            "jp-MarkdownHeadingCollapsed": True, "execution": {"iopub.status.busy": "2026"},
        }  # fmt: skip
        if cell["cell_type"] == "code":
            cell["execution_count"] = 7
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "out\n"}]
    return notebook


def edit(text: str, cell: Cell, more: str) -> str:
    """Add to the last line of a cell in the source's text."""
    lines = text.split("\n")
    last = cell.text_line - 1 + cell.text.count("\n")
    lines[last] += more
    return "\n".join(lines)


def edit_some(notebook: dict, text: str) -> str:
    """Edit an English, a Russian and a code cell of a notebook; return the text to be expected.

    A page of prose has no code cell to edit.
    """
    cells = parse_source("s.py", text, LANGUAGES)
    prose_cells = [cell for cell in cells if cell.kind == "markdown"]
    chosen = [
        next(cell for cell in reversed(prose_cells) if cell.lang == LANGUAGES[0]),
        next(cell for cell in prose_cells[6:] if cell.lang == LANGUAGES[1]),
        *[cell for cell in cells[8:] if cell.kind == "code" and cell.lang is None][:1],
    ]
    for cell in chosen:
        more = "  # edited" if cell.kind == "code" else r" Edited, $\alpha$."
        written = notebook["cells"][cells.index(cell)]
        text_alone = written["source"].rstrip("\n")
        written["source"] = text_alone + more + written["source"][len(text_alone) :]
        text = edit(text, cell, more)
    return text


def test_saving_without_an_edit_changes_no_byte(server, toy):
    before = toy.read_bytes()
    server.save(f"notebooks/src/{toy.name}", as_lab_sends(server.open(f"notebooks/src/{toy.name}")))
    assert toy.read_bytes() == before


def test_edited_cells_change_and_nothing_else(server, toy):
    before = toy.read_text(encoding="utf-8")
    notebook = server.open(f"notebooks/src/{toy.name}")
    wanted = edit_some(notebook, before)
    server.save(f"notebooks/src/{toy.name}", as_lab_sends(notebook))
    assert toy.read_bytes() == wanted.encode() != before.encode()


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_edited_cells_of_a_real_module_change_and_nothing_else(server, course, module):
    before = module.read_text(encoding="utf-8")
    notebook = server.open(f"notebooks/src/{module.name}")
    wanted = edit_some(notebook, before)
    server.save(f"notebooks/src/{module.name}", as_lab_sends(notebook))
    assert (course / "notebooks/src" / module.name).read_bytes() == wanted.encode()


def new_cell(kind: str, text: str, **attributes: object) -> dict:
    """A cell as JupyterLab makes one; its attributes are typed into the property inspector."""
    cell = {"cell_type": kind, "source": text, "metadata": {"trusted": True, **attributes}}
    return cell if kind == "markdown" else cell | {"outputs": [], "execution_count": None}


def test_cells_written_in_jupyter_are_cells_of_the_course(server, toy, repo):
    notebook = server.open(f"notebooks/src/{toy.name}")
    notebook["cells"] += [
        new_cell("markdown", "Plain.\n\nWords 1.", lang="en", key="new"),
        new_cell("markdown", "Простые.\n\nСлова.", lang="ru", key="new",
                 en=stamp_by_hand("Plain.\n\nWords 1."), differs="numbers: a test"),
        new_cell("code", "w = 5", key="new-code", tags=["slow"]),
    ]  # fmt: skip
    before = toy.read_text(encoding="utf-8")
    server.save(f"notebooks/src/{toy.name}", notebook)
    after = toy.read_text(encoding="utf-8")
    assert after.startswith(before.rstrip("\n"))
    repo.write(SOURCE, after)
    ran = repo.run()
    assert ran.code == 0, ran.err
    assert repo.text("new", "ru") == "Простые.\n\nСлова."
    assert repo.cell("new-code")["metadata"] == {"tags": ["slow"]}


def test_jupytext_is_told_of_every_attribute_that_a_header_may_have():
    config = tomllib.loads((ROOT / CONFIG).read_text(encoding="utf-8"))
    kept = config["cell_metadata_filter"].split(",")
    assert sorted(kept) == sorted([*ATTRIBUTES, LANGUAGES[0], "-all"])


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")
def test_in_jupyterlab_itself_typing_into_cells_changes_them_and_nothing_else(
    toy, course, tmp_path
):
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    before = toy.read_text(encoding="utf-8")
    wanted = before.replace("Hello.", "Hello. Typed.", 1).replace("Привет.", "Привет. И тут.", 1)
    wanted = wanted.replace("import sys", "import sys  # typed", 1)
    with (
        serve(course, tmp_path / "own", "jupyterlab") as server,
        playwright.sync_playwright() as driver,
    ):
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(60_000)
        page.goto(f"{server.url}lab/tree/notebooks/src?token=t")
        page.locator(".jp-DirListing-item", has_text=NAME).click(button="right")
        page.locator(".lm-Menu-itemLabel", has_text="Open With").hover()
        page.locator(".lm-Menu-itemLabel", has_text="Notebook (no kernel)").click()
        cells = page.locator(".jp-Notebook .jp-Cell")
        for number, typed in enumerate((" Typed.", " И тут.", "  # typed")):
            cells.nth(number).click()
            page.keyboard.press("Escape")  # a click into code has begun to edit it already
            page.keyboard.press("Enter")
            page.keyboard.press("Control+End")
            page.keyboard.type(typed)
            page.keyboard.press("Escape")
        page.keyboard.press("Control+S")
        page.wait_for_function("() => !document.querySelector('.jp-mod-dirty')")
        browser.close()
    assert toy.read_text(encoding="utf-8") == wanted
