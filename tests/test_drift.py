"""Drift: what the notebooks print beside what was accepted; each change is seen, noise is not."""

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_build.drift import __main__ as drift
from course_build.drift.accepted import FormatError, Shown, read, shown, write
from course_build.drift.compare import compare, difference, merged, same_number
from course_build.executed import is_measured, joined
from course_build.figures import same_picture
from course_build.findings import BROKEN, DONE, WORK
from course_build.run.jobs import EDITIONS, ROOT
from course_build.run.normal import normalise

VERSIONS = {"Python": "3.11.7", "torch": "2.13.0"}
EXERCISES = {"recap-contracts"}  # cells that tell of the learner's own solutions, besides checks
STEM = "module_03_idea"


def cell(key, *outputs, tags=()):
    return {
        "cell_type": "code",
        "id": key,
        "source": f"show_{key}()",
        "execution_count": 1,
        "metadata": {"tags": list(tags)} if tags else {},
        "outputs": list(outputs),
    }


def printed(text):
    return {"output_type": "stream", "name": "stdout", "text": text}


def figure(name):
    return {
        "output_type": "display_data",
        "data": {"image/svg+xml": "<svg/>", "text/plain": "words"},
        "metadata": {"image/svg+xml": {"name": name, "alt": "words"}},
    }


def notebook(*cells):
    return {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


PLAIN = [
    cell("loss", printed("loss 1.7918 after 300 steps\ngap=3e-07 (≤ 2e-05)\n")),
    cell("table", printed("clause   8.3e-16   ≤ 1e-09  same\n")),
    cell("see", figure("loss"), printed("seen")),
    cell("time", printed("12.5 ms"), tags=["measured"]),
]


def told(before, after):
    return "\n".join(str(c) for c in compare(shown(notebook(*before)), shown(notebook(*after))))


def changed(old, new):
    """The notebook's cells with one piece of printed text replaced."""
    return json.loads(json.dumps(PLAIN, ensure_ascii=False).replace(old, new))


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (changed("1.7918", "1.7919"), "loss [-1.7918-]{+1.7919+} (+5.6e-05 of its value) after"),
        (changed("1.7918", "-1.7918"), "{+-1.7918+} (-200.00%)"),
        (changed("300", "301"), "[-300-]{+301+} (+0.33%) steps"),
        (changed("3e-07", "3e-05"), "[-3e-07-]{+3e-05+} (+9900.00%)"),
        (changed("8.3e-16", "8.3e-08"), "[-8.3e-16-]{+8.3e-08+}"),
        (changed("≤ 1e-09", "≤ 1e-10"), "≤ [-1e-09-]{+1e-10+} (-90.00%)"),
        (changed("same", "other"), "[-same-]{+other+}"),
        (changed("steps\\n", "steps\\nmore\\n"), "+ more"),
        (changed("steps\\n", ""), "cell \"loss\": prints something else"),
        (changed('"loss", "alt"', '"gain", "alt"'), "showed figure loss, stdout, now figure gain"),
        (PLAIN[1:], 'cell "loss": shows nothing any more'),
        ([cell("loss"), *PLAIN[1:]], 'cell "loss": shows nothing any more'),
        ([*PLAIN, cell("new", printed("1"))], '"new": shows something new\n    + stdout\n    + 1'),
        ([PLAIN[1], PLAIN[0], *PLAIN[2:]], "moved: it now comes"),
        ([*PLAIN[:3], cell("time", tags=["measured"])], 'cell "time": shows nothing any more'),
        ([*PLAIN[:3], cell("time", printed("12.5 ms"))], "showed measured stdout, now stdout"),
    ],
)  # fmt: skip
def test_a_change_is_seen(after, words):
    assert words in told(PLAIN, after)


@pytest.mark.parametrize(
    "after",
    [
        PLAIN,
        changed("12.5 ms", "99 ms on another machine"),
        changed("3e-07", "9e-07"),
        changed("8.3e-16   ≤", "1e-15     ≤"),
        changed("8.3e-16", "0e+00"),
    ],
)
def test_rounding_and_what_is_measured_are_not_drift(after):
    assert told(PLAIN, after) == ""


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("0.652618", "0.652617", True),
        ("-4.20998", "-4.20999", True),
        ("0.65262", "0.65261", False),
        ("314880", "314881", False),
        ("1,000,000", "1,000,001", False),
        ("0", "2.2e-16", True),
        ("0", "2.2e-07", False),
        ("4e-16", "4e-07", False),
        ("6e-06", "9e-06", True),
        ("5.24e-05", "5.25e-05", False),
        ("0.00001", "0.00002", False),
    ],
)
def test_numbers_are_the_same_within_the_stated_rounding(before, after, same):
    assert same_number(before, after) == same
    assert same_number(after, before) == same


@given(st.integers(10_000, 99_998), st.integers(-4, 3))
def test_a_change_in_the_first_five_digits_is_always_seen(digits, power):
    before, after = (f"{n / 10**4:.4f}e{power}" for n in (digits, digits + 1))
    assert not same_number(before, after)


TEXTS = st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]))).map(
    "\n".join
)
KINDS = st.sampled_from(["stdout", "text/plain", "figure loss", "measured stdout"])
OUTPUTS = st.lists(
    st.builds(
        Shown,
        st.from_regex(r"[a-z0-9]+(-[a-z0-9]+)*", fullmatch=True),
        KINDS,
        TEXTS.map(lambda text: text.strip("\n")),
    )
)


@given(OUTPUTS)
def test_what_is_written_is_read_back(outputs):
    assert read(write(outputs, VERSIONS)) == (VERSIONS, outputs)


@given(OUTPUTS)
def test_outputs_do_not_drift_from_themselves(outputs):
    assert compare(outputs, outputs) == []
    assert difference(outputs, outputs) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1"),
        ("# accepted by somebody", "line 1"),
        ("# accepted with torch 2\nloose", "line 2 is neither a head nor indented: loose"),
        ("# accepted with torch 2\n    loose", "line 2"),
    ],
)
def test_a_damaged_file_is_refused(text, words):
    with pytest.raises(FormatError, match=words):
        read(text)


def test_another_edition_is_kept_as_what_it_shows_otherwise():
    solved = [
        cell("loss", printed("solved")),
        PLAIN[1],
        cell("see"),
        PLAIN[3],
        cell("own", printed("1")),
    ]
    kept = difference(shown(notebook(*PLAIN)), shown(notebook(*solved)))
    assert [(output.key, output.kind) for output in kept] == [
        ("loss", "stdout"),
        ("own", "stdout"),
        ("see", "nothing"),
    ]


def test_accepting_leaves_the_text_where_only_rounding_differs():
    now = shown(notebook(*changed("1.7918", "1.8"), cell("new", printed("1"))))
    noisy = [Shown(o.key, o.kind, o.text.replace("8.3e-16", "1e-15")) for o in now]
    kept = merged(shown(notebook(*PLAIN)), noisy)
    assert compare(now, kept) == []
    assert "8.3e-16" in kept[1].text


@pytest.fixture
def course(tmp_path):
    """A course of one notebook in two languages, executed and accepted."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for edition, folder in drift.RENDERED.items():
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


@pytest.mark.notebooks
def test_the_notebooks_show_what_was_accepted(executed, capsys):
    assert drift.main([]) == DONE, capsys.readouterr()


@pytest.mark.notebooks
def test_two_executions_differ_only_in_the_exercises_and_in_what_is_measured(executed):
    """The editions are two executions of the same cells, apart from the exercises' own."""
    learner, solved = EDITIONS
    for language, name in {key[1:] for key in executed}:
        runs = [load(executed[edition, language, name]) for edition in (learner, solved)]
        measured = 0
        for first, second in zip(*(run["cells"] for run in runs), strict=True):
            tags = first["metadata"].get("tags", [])
            measured += is_measured(first)
            if is_measured(first) or "exercise-check" in tags or first["id"] in EXERCISES:
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
