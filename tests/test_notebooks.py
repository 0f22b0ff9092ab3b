"""The rendered notebooks: fresh, readable, and every one of them executed in both editions."""

import html
import json
import re
import statistics

import pytest

from course_build import cli
from course_build.base.places import SOURCES
from course_build.base.settings import SETTINGS_FILE, parse_settings
from course_build.notebook.exercises import squeezed, telling_parts
from course_build.outputs import figures
from course_build.run.jobs import EDITIONS, ROOT, find_jobs
from course_build.run.outcome import Plan
from course_build.run.pool import run_jobs
from course_build.run.reports import describe
from course_build.source.cells import Cell, parse_source

LEARNER = sorted(ROOT.glob("notebooks/*/*.ipynb"))
NAMES = [(path.parent.name, path.stem) for path in LEARNER]
EVERY = [(edition, *name) for edition in EDITIONS for name in NAMES]

each_notebook = pytest.mark.parametrize(("language", "name"), NAMES)
each_run = pytest.mark.parametrize(("edition", "language", "name"), EVERY)


def load(path):
    return json.loads(path.read_text(encoding="utf-8"))


def learner(language, name):
    return load(ROOT / "notebooks" / language / f"{name}.ipynb")


def tags(cell):
    return cell["metadata"].get("tags", [])


def shown_code(notebook):
    """Line counts of the code cells that a reader sees unfolded."""
    return [
        len("".join(cell["source"]).splitlines())
        for cell in notebook["cells"]
        if cell["cell_type"] == "code" and "hide-input" not in tags(cell)
    ]


def outputs(notebook):
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            yield cell["id"], output


def telling(solution, stub):
    """What gives a solution away, of texts."""
    made = [Cell("", 1, 1, "code", "key", text) for text in (solution, stub)]
    return telling_parts(*made)


def solutions_of(name):
    """What gives away the solutions of a module."""
    path = f"{SOURCES}/{name}.py"
    languages = parse_settings((ROOT / SETTINGS_FILE).read_text(encoding="utf-8")).languages
    cells = parse_source(path, (ROOT / path).read_text(encoding="utf-8"), languages)
    text = {(cell.exercise, cell.role): cell.text for cell in cells}
    names = sorted({cell.exercise for cell in cells if cell.exercise})
    return [p for n in names for p in telling(text[n, "solution"], text[n, "stub"])]


def given_away(parts, shown):
    """The parts of solutions that can be read in an output or a text without unfolding anything."""
    words = ["".join(text) for text in shown.values() if isinstance(text, str | list)]
    opened = [re.sub(r"<details>.*?</details>", "", text, flags=re.DOTALL) for text in words]
    bare = [html.unescape(re.sub(r"<[a-z/][^>]*>", "", text)) for text in opened]
    return [part for part in parts if any(squeezed(part) in squeezed(text) for text in bare)]


def test_there_are_notebooks_in_every_language():
    languages = {language for language, _ in NAMES}
    settings = parse_settings((ROOT / SETTINGS_FILE).read_text(encoding="utf-8"))
    assert languages == set(settings.languages)
    assert {name for _, name in NAMES} == {
        path.stem for path in ROOT.glob("notebooks/src/module_*.py")
    }
    assert len(NAMES) == len(languages) * len({name for _, name in NAMES})


def test_the_committed_notebooks_are_what_the_sources_render_to(capfd):
    assert cli.main(["--check"], ROOT) == 0, capfd.readouterr().err


@each_notebook
def test_no_outputs_are_committed(language, name):
    notebook = learner(language, name)
    assert list(outputs(notebook)) == []
    counts = [c["execution_count"] for c in notebook["cells"] if c["cell_type"] == "code"]
    assert set(counts) == {None}


@each_notebook
def test_code_cells_are_short(language, name):
    lines = shown_code(learner(language, name))
    assert statistics.median(lines) <= 8
    assert sum(count <= 25 for count in lines) >= 0.9 * len(lines)
    assert max(lines) <= 40


@each_notebook
def test_no_line_of_code_is_cut_off_by_the_page(language, name):
    cells = [cell for cell in learner(language, name)["cells"] if cell["cell_type"] == "code"]
    lines = [(cell["id"], line) for cell in cells for line in "".join(cell["source"]).split("\n")]
    # one text, and a line for each packed file
    assert {where for where, line in lines if len(line) > 100} == {"reference-json", "course-lib"}


@each_notebook
def test_a_notebook_has_the_cells_of_its_twins(language, name):
    def skeleton(code):
        return [(cell["id"], cell["cell_type"]) for cell in learner(code, name)["cells"]]

    for other in {code for code, twin in NAMES if twin == name}:
        assert skeleton(language) == skeleton(other)


@each_run
def test_a_notebook_runs_alone_from_top_to_bottom(executed, edition, language, name):
    outcome = executed[edition, language, name]
    assert outcome.status == "passed", describe(outcome)


@each_run
def test_nothing_is_written_to_stderr(executed, edition, language, name):
    written = [
        (key, "".join(output["text"]))
        for key, output in outputs(load(executed[edition, language, name].job.executed))
        if output.get("name") == "stderr"
    ]
    assert written == []


@each_run
def test_every_figure_says_in_words_what_it_shows(executed, edition, language, name):
    figures = [
        (key, output)
        for key, output in outputs(load(executed[edition, language, name].job.executed))
        if any(kind.startswith("image/") for kind in output.get("data", {}))
    ]
    assert figures
    for key, output in figures:
        alt = output["metadata"].get("image/svg+xml", {}).get("alt", "")
        assert alt, f"{key}: a figure without alt text"
        assert bool(re.search("[а-яё]", alt)) == (language == "ru"), f"{key}: {alt}"


def test_the_committed_figures_are_what_the_notebooks_show(executed, capfd):
    assert figures.main(["--check"]) == 0, capfd.readouterr().err


def test_a_solution_that_an_output_shows_would_be_seen():
    solution, stub = "def f(x):\n    return x * 2 + 1234567890123456", "def f(x):\n    raise E"
    parts = ["return x * 2 + 1234567890123456", "x * 2 + 1234567890123456"]
    assert [part for part in telling(solution, stub) if part in parts] == parts
    for shown in ("x * 2 +\n 1234567890123456", "<p>x*2</p> + <code>1234567890123456</code>"):
        assert given_away([parts[1]], {"text/html": shown}) == [parts[1]]
    assert given_away(parts, {"text/html": "<details>x * 2 + 1234567890123456</details>"}) == []


@each_notebook
def test_a_learner_meets_no_solution_but_the_folded_one(executed, language, name):
    notebook = load(executed["learner", language, name].job.executed)
    parts = solutions_of(name)
    assert parts
    found = []
    for cell in notebook["cells"]:
        source = {"source": "".join(cell["source"])} if cell["cell_type"] == "markdown" else {}
        for shown in [source, *(o.get("data", o) for o in cell.get("outputs", []))]:
            found += [(cell["id"], part) for part in given_away(parts, shown)]
    assert found == []


@each_run
def test_each_exercise_is_open_for_the_learner_and_solved_in_the_solved_edition(
    executed, edition, language, name
):
    notebook = load(executed[edition, language, name].job.executed)
    checks = [cell for cell in notebook["cells"] if "exercise-check" in tags(cell)]
    stubs = [cell for cell in notebook["cells"] if "exercise" in tags(cell)]
    assert len(checks) == len(stubs) > 0
    for cell in checks:
        texts = ["".join(output["data"]["text/plain"]) for output in cell["outputs"]]
        assert [text[0] for text in texts] == ["○" if edition == "learner" else "✓"], cell["id"]
    unsolved = ["raise NotImplementedError" in "".join(cell["source"]) for cell in stubs]
    if edition == "solved":
        assert not any(unsolved)


@pytest.mark.delivery
def test_another_seed_can_be_passed_from_outside(tmp_path):
    jobs = find_jobs({"learner": ROOT / "notebooks"}, tmp_path, ["en"], [])
    for outcome in run_jobs(jobs, Plan({"seed": 7})):
        assert outcome.status == "passed", describe(outcome)
        cells = load(outcome.job.executed)["cells"]
        [injected] = [cell for cell in cells if "injected-parameters" in tags(cell)]
        assert "seed = 7" in "".join(injected["source"])
