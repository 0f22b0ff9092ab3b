"""All of it embedded in a notebook that runs alone in a kernel, with controls and without."""

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from ..builder.conftest import Repository, code, code_twins, prose
from ..builder.test_exercises import exercise

ROOT = Path(__file__).parents[2]
VIEW = "application/vnd.jupyter.widget-view+json"
JUDGE = """
def check_root(root):
    try:
        value = root(4)
    except NotImplementedError:
        return ContractReport("check_root", attempted=False)
    row = ClauseResult("root", "the root of 4 is 2", value, "2")
    if value != 2:
        raise ContractViolation("check_root", row)
    return ContractReport("check_root", (row,))
"""
TABLE = 'progress = Progress("module_03", {{"root": ("core", "{}")}})'
QUIZ = (
    'ask(progress, "four", "{}?", {{"2": (True, "2 · 2 is 4."), '
    '"16": (False, "That is the square."), "1": (False, "1 · 1 is 1.")}})'
)


def roled(cells, role):
    return cells.replace('key="four"', f'key="four" role="{role}"')


CELLS = [
    code("report", "from course_lib.report import ClauseResult, ContractReport, ContractViolation",
         ' role="library"'),
    code("practice", "from course_lib.practice.progress import Progress", ' role="library"'),
    code("quiz", "from course_lib.practice.quiz import answer, ask", ' role="library"'),
    prose("p"),
    code_twins("table", TABLE.format("The root"), TABLE.format("Корень")),
    code("judge", JUDGE.strip(), ' role="folded"'),
    prose("one", "## One", "## Один"),
    prose("root-ask", "### Exercise (core)", "### Упражнение (основное)"),
    *exercise(check=code("root-check", 'progress.check("root", check_root, my_root)',
                         ' role="check" exercise="root"')),
    code("guess", 'progress.predict("two", "2 + 2?")'),
    code("came", 'progress.compare("two", 4)'),
    prose("q"),
    roled(code_twins("four", QUIZ.format("Which root"), QUIZ.format("Какой корень")), "quiz"),
    code("plain", 'answer(progress, "four", 2)'),
    code("shown", "progress.show()"),
]  # fmt: skip


@pytest.fixture
def repo(tmp_path, capsys):
    """A course with one module about practice, of the library's own files."""
    made = Repository(tmp_path / "repo", capsys)
    for name in ("live.py", "report.py", "text.py", "practice"):
        found = [ROOT / "course_lib" / name]
        for path in found[0].glob("*.py") if found[0].is_dir() else found:
            made.write(path.relative_to(ROOT).as_posix(), path.read_bytes())
    made.build(*CELLS)
    return made


def without_widgets(folder):
    """A folder whose ipywidgets cannot be imported, for the front of a kernel's path."""
    (folder / "ipywidgets.py").write_text('raise ImportError("not here")\n')
    return str(folder)


def execute(notebook, folder, monkeypatch, **environment):
    """Run a notebook in a fresh kernel in this folder; its cells by key."""
    folder.mkdir(exist_ok=True)
    monkeypatch.delenv("COURSE_STATIC", raising=False)
    for name, value in {"JUPYTER_PLATFORM_DIRS": "1", **environment}.items():
        monkeypatch.setenv(name, value)
    read = nbformat.reads(json.dumps(notebook), 4)
    client = NotebookClient(
        read, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    return {cell["id"]: cell for cell in read.cells}


def bundle(cell):
    """What a cell displayed, or printed, by kind."""
    (output,) = cell["outputs"]
    return output["data"] if "data" in output else {"text/plain": output["text"]}


def test_in_a_live_kernel_the_questions_have_controls_and_a_page(repo, tmp_path, monkeypatch):
    cells = execute(repo.notebook(), tmp_path / "nb", monkeypatch)
    assert bundle(cells["root-check"])["text/plain"] == "○ check_root: not attempted"
    for key in ("guess", "four"):
        assert set(bundle(cells[key])) == {"text/html", "text/plain", VIEW}
    assert bundle(cells["plain"])["text/plain"] == "✗ not right. That is the square.\n"
    shown = bundle(cells["shown"])["text/plain"]
    assert "Contracts passed: 0 of 1" in shown
    assert "Which root? · ✗ not right" in shown
    assert sorted(path.name for path in (tmp_path / "nb").iterdir()) == ["module_03.progress.json"]


@pytest.mark.parametrize("way", ["no ipywidgets", "pictures"])
def test_without_controls_all_of_it_works_in_plain_code(repo, tmp_path, monkeypatch, way):
    hidden = {"PYTHONPATH": without_widgets(tmp_path)}
    around = hidden if way == "no ipywidgets" else {"COURSE_STATIC": "1"}
    cells = execute(repo.notebook("ru"), tmp_path / "nb", monkeypatch, **around)
    for key in ("guess", "four"):
        assert set(bundle(cells[key])) == {"text/html", "text/plain"}
    assert 'answer(progress, "four", 1)' in bundle(cells["four"])["text/plain"]
    assert bundle(cells["plain"])["text/plain"] == "✗ неверно. That is the square.\n"
    assert bundle(cells["came"])["text/plain"].startswith(
        "○ Получилось: 4.\nПредсказание не записано"
    )
    assert "Какой корень? · ✗ неверно" in bundle(cells["shown"])["text/plain"]


def test_a_solution_passes_and_the_next_kernel_knows(repo, tmp_path, monkeypatch):
    solved = repo.notebook(folder="build/solved")
    cells = execute(solved, tmp_path / "nb", monkeypatch, COURSE_STATIC="1")
    assert bundle(cells["root-check"])["text/plain"].startswith("✓ check_root")
    fresh = repo.notebook()
    kept = ("course-lib", "imports", "report", "practice", "quiz", "table", "shown")
    fresh["cells"] = [cell for cell in fresh["cells"] if cell["id"] in kept]
    cells = execute(fresh, tmp_path / "nb", monkeypatch, COURSE_STATIC="1")
    assert "Contracts passed: 1 of 1" in bundle(cells["shown"])["text/plain"]


def test_a_source_runs_as_plain_python_too(repo, tmp_path):
    ran = subprocess.run(
        [sys.executable, repo.root / "notebooks/src/module_03_toy.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(repo.root)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    assert "Quiz question. Which root?" in ran.stdout
    assert "Contracts passed: 0 of 1" in ran.stdout
