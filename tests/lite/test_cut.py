"""What is cut runs with Python alone and shows what the whole notebook was accepted to show."""

import json
import os
import string
import subprocess
import sys
from pathlib import Path

import pytest

from course_build.base.settings import SETTINGS_FILE, parse_settings
from course_build.lite.cut import HIDDEN, STEM, WORDS, cut, imports_of, lacking, packages, runnable
from course_build.lite.proof import differences

pytestmark = pytest.mark.delivery

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = parse_settings((ROOT / SETTINGS_FILE).read_text(encoding="utf-8")).languages
RUN = """
import json, sys
sys.stdin = sys.stdin.reconfigure(encoding="utf-8") or sys.stdin
notebook, absent = json.load(sys.stdin), sys.argv[1:]

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in absent:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

shell = InteractiveShell.instance()
for cell in notebook["cells"]:
    if cell["cell_type"] == "code":
        with capture_output() as got:
            result = shell.run_cell(cell["source"])
        cell["outputs"] = [
            {"output_type": "display_data", "data": each.data, "metadata": each.metadata or {}}
            for each in got.outputs
        ]
        if got.stdout:
            cell["outputs"].append({"output_type": "stream", "name": "stdout", "text": got.stdout})
        if not result.success:
            error = result.error_before_exec or result.error_in_exec
            told = {"ename": type(error).__name__, "evalue": str(error), "traceback": []}
            cell["outputs"] = [{"output_type": "error", **told}]
sys.stdout.reconfigure(encoding="utf-8")
json.dump(notebook, sys.stdout)
"""
ABSENT = ("torch", "numpy", "matplotlib", "psutil", "ipywidgets", "course_build")


def rendered(language):
    path = ROOT / "notebooks" / language / f"{STEM}.ipynb"
    return json.loads(path.read_text(encoding="utf-8"))


def accepted(language):
    return (ROOT / f"reference/outputs/{language}/{STEM}.txt").read_text(encoding="utf-8")


def run(notebook, folder):
    """Execute a notebook's cells where no package of ABSENT can be imported."""
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    environment = kept | {"HOME": str(folder), "USERPROFILE": str(folder), "COURSE_STATIC": "1"}
    done = subprocess.run(
        [sys.executable, "-c", RUN, *ABSENT],
        input=json.dumps(notebook).encode(),
        stdout=subprocess.PIPE,
        cwd=folder,
        env=environment,
        timeout=300,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_try_out_runs_without_packages_and_shows_what_was_accepted(language, tmp_path):
    executed = run(cut(rendered(language), language, "1.2"), tmp_path)
    assert differences(executed, accepted(language)) == []
    shown = [cell["id"] for cell in executed["cells"] if cell.get("outputs")]
    assert len(shown) > 12
    assert {"tales-use", "plain-use", "plain-likelihood-use", "plain-generate-use"} <= set(shown)


def test_a_cell_that_shows_something_else_is_found(tmp_path):
    notebook = cut(rendered(LANGUAGES[0]), LANGUAGES[0], "1.2")
    for cell in notebook["cells"]:
        if cell["id"] == "underflow":
            cell["source"] = cell["source"].replace("400", "399")
        if cell["id"] == "gelu-use":
            cell["source"] = "import numpy"
    told = differences(run(notebook, tmp_path), accepted(LANGUAGES[0]))
    assert [line.split(":")[0] for line in told] == ["underflow", "gelu-use"]
    assert "ModuleNotFoundError" in told[1]


def test_every_language_has_the_same_cells():
    cells = [
        [(cell["cell_type"], cell["id"]) for cell in cut(rendered(code), code, "1.2")["cells"]]
        for code in LANGUAGES
    ]
    assert all(each == cells[0] for each in cells)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_first_cell_says_what_this_is_and_prose_links_nowhere_else(language):
    first, *others = cut(rendered(language), language, "1.2")["cells"]
    assert first["source"].startswith(rendered(language)["cells"][0]["source"][0].rstrip())
    assert "Pyodide 1.2" in first["source"]
    assert f"notebooks/{language}/{STEM}.ipynb" in first["source"]
    prose = " ".join(cell["source"] for cell in others if cell["cell_type"] == "markdown")
    assert "](glossary.md#" in prose
    assert ".ipynb" not in prose


def test_every_language_has_words_with_the_same_places():
    places = {
        code: sorted(name for _, name, _, _ in string.Formatter().parse(WORDS[code]) if name)
        for code in LANGUAGES
    }
    assert set(map(tuple, places.values())) == {("path", "pyodide", "title")}


def code(key, source, *tags):
    return {"cell_type": "code", "id": key, "source": source, "metadata": {"tags": list(tags)}}


def prose(key):
    return {"cell_type": "markdown", "id": key, "source": key, "metadata": {}}


IMPORTS = "#@title Imports\nimport math\nimport numpy as np\nfrom torch import nn, Tensor as T"
TOY = [
    prose("title"),
    code("setup", "wanted = 1"),
    code("imports", IMPORTS, HIDDEN),
    prose("lost-ask"),
    code("lost", "x = np.ones(3)"),
    prose("lost-say"),
    code("helper", "def helper(n):\n    return math.sqrt(n)", HIDDEN),
    code("unused", "def unused():\n    return 1", HIDDEN),
    prose("kept-ask"),
    code("kept", "print(helper(4))"),
    prose("kept-say"),
    code("follows", "print(x)"),
    code("inside", "def inside() -> T:\n    return nn"),
    code("installed", "print(wanted)"),
    prose("ex-one-statement"),
    code("ex-one", "def one(): ..."),
    prose("typed-ask"),
    code("later", "print(1)"),
]


def test_what_needs_a_package_goes_with_all_that_needs_it():
    assert runnable(TOY) == {"imports", "helper", "kept-ask", "kept", "kept-say"}


def test_the_names_of_packages_are_those_that_python_does_not_bring():
    assert packages(IMPORTS, lacking({})) == {"np", "nn", "T"}
    assert (
        imports_of(IMPORTS, {"math", "nn"}) == "#@title Imports\nimport math\nfrom torch import nn"
    )


def test_of_the_library_only_what_needs_no_package_is_kept():
    files = {
        "__init__.py": b"",
        "plain.py": b"import math\n",
        "deep.py": b"from course_lib.heavy import x\n",
        "heavy.py": b"import torch\n",
    }
    lacks = lacking(files)
    modules = ("math", "torch.nn", "course_lib.plain", "course_lib.deep", "course_lib.heavy")
    assert [lacks(module) for module in modules] == [False, True, False, True, True]
    lines = "from course_lib.plain import a, b\nfrom course_lib.deep import c"
    assert packages(lines, lacks) == {"c"}
    assert imports_of(lines, {"b"}) == "from course_lib.plain import b"
