"""The command that compares what the notebooks print with what was accepted."""

import json
import shutil
from pathlib import Path

import pytest

from course_build.base.findings import BROKEN, DONE, WORK
from course_build.drift import __main__ as drift
from course_build.outputs.executed import is_measured, joined
from course_build.outputs.figures import same_picture
from course_build.run.jobs import EDITIONS, ROOT
from course_build.run.normal import normalise
from tests.drift.cells import PLAIN, cell, changed, notebook

EXERCISES = {  # cells that tell of the learner's own solutions, besides checks
    "recap-contracts",
    "negative-attention",  # the message of the learner's own mask
    "mha-padding",  # the refusal of the learner's own attention
    "progress-show",
    "progress-end",
    "certificate",
}
STEM = "module_03_idea"


@pytest.fixture
def course(tmp_path):
    """A course of one notebook in two languages, executed and accepted."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for edition, folder in (("learner", "notebooks"), ("solved", "build/solved")):
        for language in ("en", "ru"):
            save(
                tmp_path / folder / language,
                [dict(c, outputs=[], execution_count=None) for c in PLAIN],
            )
            save(tmp_path / "build" / "executed" / edition / language, PLAIN)
    assert drift.main(["--accept"], tmp_path) == DONE
    assert drift.main([], tmp_path) == DONE
    return tmp_path


def save(folder: Path, cells):
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(notebook(*cells), ensure_ascii=False)
    (folder / f"{STEM}.ipynb").write_text(text, encoding="utf-8")


def accepted(course):
    return {path: path.read_bytes() for path in (course / drift.ACCEPTED).rglob("*.txt")}


def test_drift_is_told_with_the_versions_and_accepted_on_request(course, capsys, monkeypatch):
    for edition in EDITIONS:
        save(course / "build/executed" / edition / "ru", changed("1.7918", "1.8018"))
    monkeypatch.setattr(drift, "version", lambda name: "9.9.9+cpu")
    before = accepted(course)
    assert drift.main([], course) == WORK
    out = capsys.readouterr().out
    assert f"reference/outputs/ru/{STEM}.txt: torch " in out
    assert "-> 9.9.9" in out
    assert "+cpu" not in out
    assert "[-1.7918-]{+1.8018+} (+0.56%)" in out
    assert "/en/" not in out
    assert accepted(course) == before
    assert drift.main(["--accept"], course) == DONE
    assert drift.main([], course) == DONE
    [written] = [path for path, text in accepted(course).items() if text != before[path]]
    assert written == course / drift.ACCEPTED / "ru" / f"{STEM}.txt"
    assert "torch 9.9.9" in written.read_text(encoding="utf-8").split("\n")[0]


def test_a_drift_in_the_solutions_alone_is_seen(course, capsys):
    save(course / "build/executed/solved/en", changed("1.7918", "1.8018"))
    assert drift.main([], course) == WORK
    assert f"en/{STEM}.solved.txt: the same versions" in capsys.readouterr().out


def test_a_run_with_other_packages_is_compared_under_its_own_versions(course, capsys):
    results = course / "build/compat/newest/executed"
    shutil.copytree(course / "build/executed", results)
    save(results / "learner/en", changed("1.7918", "1.8018"))
    versions = {"torch": "9.1+cpu", "numpy": "9.2", "matplotlib": None}
    report = {"python": "3.99.1", "versions": versions}
    (results / "report.json").write_text(json.dumps(report), encoding="utf-8")
    assert drift.main(["--output", "build/compat/newest/executed"], course) == WORK
    out = capsys.readouterr().out
    assert all(f" -> {new}" in out for new in ("3.99.1", "9.1", "9.2", "absent"))
    assert drift.main([], course) == DONE


@pytest.mark.parametrize("accepting", [[], ["--accept"]])
@pytest.mark.parametrize(
    "cells",
    [
        None,
        [
            *PLAIN[:3],
            cell("time", {"output_type": "error", "ename": "E", "evalue": "", "traceback": []}),
        ],
        [*PLAIN[:3], dict(PLAIN[3], execution_count=None)],
        [*PLAIN[:3], dict(PLAIN[3], source="older()")],
        [dict(cell("papermill-1", tags=["injected-parameters"])), *PLAIN],
    ],
    ids=["absent", "failed", "unrun", "older", "parametrised"],
)
def test_what_did_not_run_as_it_is_can_be_neither_compared_nor_accepted(
    course, cells, accepting, capsys
):
    folder = course / "build/executed/learner/en"
    if cells is None:
        (folder / f"{STEM}.ipynb").unlink()
    else:
        save(folder, cells)
    before = accepted(course)
    assert drift.main(accepting, course) == BROKEN
    assert f"build/executed/learner/en/{STEM}.ipynb: [executed-notebook]" in capsys.readouterr().err
    assert accepted(course) == before


def report(course, *runs):
    """Write the report of a last run that was asked for these, as edition/language."""
    rows = [dict(zip(("edition", "language"), run.split("/"), strict=True)) for run in runs]
    told = {"notebooks": [{**row, "notebook": STEM} for row in rows]}
    (course / "build/executed/report.json").write_text(json.dumps(told), encoding="utf-8")


def test_what_the_last_run_was_not_asked_for_is_named_and_left_out(course, capsys):
    executed = course / "build/executed"
    for name in ("solved/en", "learner/ru", "solved/ru"):
        (executed / name / f"{STEM}.ipynb").unlink()
    assert drift.main([], course) == BROKEN  # without a report, all should be there
    report(course, "learner/en")
    assert drift.main([], course) == DONE
    told = capsys.readouterr().out
    assert f"not run, so not compared: solved/en/{STEM}, learner/ru/{STEM}, solved/ru/" in told
    assert "1 accepted outputs, 0 drifted" in told
    save(executed / "learner/en", changed("1.7918", "1.8018"))
    before = accepted(course)
    assert drift.main([], course) == WORK
    assert drift.main(["--accept"], course) == DONE
    assert [path for path, text in accepted(course).items() if text != before[path]] == [
        course / drift.ACCEPTED / "en" / f"{STEM}.txt"
    ]
    report(course, "learner/en", "solved/en")  # what was asked for and is not there is a fault
    assert drift.main([], course) == BROKEN
    report(course, "solved/en")
    (executed / "learner/en" / f"{STEM}.ipynb").unlink()
    save(executed / "solved/en", PLAIN)
    assert drift.main([], course) == BROKEN
    assert "no learner's notebook has been run" in capsys.readouterr().err


def test_a_damaged_file_a_new_one_and_one_too_many(course, capsys):
    path = course / drift.ACCEPTED / "en" / f"{STEM}.txt"
    path.write_text("damaged", encoding="utf-8")
    assert drift.main([], course) == BROKEN
    assert f"en/{STEM}.txt: [accepted]" in capsys.readouterr().err
    path.unlink()
    assert drift.main([], course) == WORK
    assert "not accepted yet" in capsys.readouterr().out
    assert drift.main(["--accept"], course) == DONE
    path.with_stem("module_09_gone").write_text(path.read_text("utf-8"), encoding="utf-8")
    assert drift.main([], course) == WORK
    assert "no such notebook is rendered; delete the file" in capsys.readouterr().out


def test_the_notebooks_show_what_was_accepted(executed, capsys):
    assert drift.main([]) == DONE, capsys.readouterr()


def test_two_executions_differ_only_in_the_exercises_and_in_what_is_measured(executed):
    """The editions are two executions of the same cells, apart from the exercises' own."""
    learner, solved = EDITIONS
    for language, name in {key[1:] for key in executed}:
        runs = [load(executed[edition, language, name]) for edition in (learner, solved)]
        measured = 0
        for first, second in zip(*(run["cells"] for run in runs), strict=True):
            tags = first["metadata"].get("tags", [])
            measured += is_measured(first)
            adopts = "progress.adopt(" in joined(first["source"])  # and says whose function it is
            if is_measured(first) or adopts or "exercise-check" in tags or first["id"] in EXERCISES:
                continue
            where = f"{language} {name} {first['id']}"
            pairs = zip(first.get("outputs", []), second.get("outputs", []), strict=True)
            assert all(same_output(*pair) for pair in pairs), where
        assert measured


def load(outcome):
    return normalise(json.loads(outcome.job.executed.read_text(encoding="utf-8")))


def same_output(first, second):
    """Text is equal in each byte; figures look alike."""
    pictures = [dict(output.get("data", {})) for output in (first, second)]
    drawn = [joined(data.pop("image/svg+xml", "")) for data in pictures]
    if any(drawn):
        [data.pop("text/html", None) for data in pictures]  # the same drawing, encoded
    rest = [
        {**output, "data": data} for output, data in zip((first, second), pictures, strict=True)
    ]
    return rest[0] == rest[1] and same_picture(*(text.encode() for text in drawn))
