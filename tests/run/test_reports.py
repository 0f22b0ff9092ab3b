"""What people and machines read of a run: excerpts, the table, report.json, junit.xml."""

import json
import re
import shlex
import xml.etree.ElementTree as ElementTree
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_build.run import machine_reports
from course_build.run.jobs import ROOT
from course_build.run.machine_reports import junit, report, write_reports
from course_build.run.outcome import Failure, Job, Outcome, Plan, Run, exit_code
from course_build.run.reports import again, describe, one_line, printable, summary, table
from course_build.run.verdict import calls, cell_error
from tests.run.doubles import make_jobs

STATUSES = ("passed", "cached", "failed", "broken", "stopped", "not run")
UGLY = '\x1b[31mred\x00 \x07 \ud800 \ufffe ]]> <&" 😀 ёж\nsecond line'
NOWHERE = Job(Path("a.ipynb"), "learner", "en", Path("no/such/a.ipynb"))


@pytest.fixture
def run(tmp_path):
    """A run in which each status occurs."""
    jobs = make_jobs(tmp_path, **{status.replace(" ", "_"): "pass" for status in STATUSES})
    outcomes = []
    for job, status in zip(jobs, STATUSES, strict=True):
        bad = status not in ("passed", "cached")
        found = Failure(UGLY, 2, 9, "the-key", ">    1 | x", "called from there:\nf")
        failure = found if bad else None
        cells = {} if status == "not run" else {"cell-0": 1.5}
        outcomes.append(Outcome(job, status, 2.0, 300, failure, cells, "forked", "namespace"))
    jobs[0].executed.parent.mkdir(parents=True)
    for job in (*jobs[:3], jobs[5]):
        job.executed.write_bytes(b"{}")
    plan = Plan({"seed": 7}, workers=2)
    return Run(outcomes, plan, 6.0, "2026-11-30T07:38:47+00:00", (1, 2), "total limit")


# --- JSON ---


def test_the_report_names_versions_plan_and_every_notebook(run, tmp_path):
    write_reports(run, tmp_path)
    told = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert told["schema"] == 1
    assert told["versions"].keys() >= {"torch", "numpy", "matplotlib"}
    assert told["plan"]["parameters"] == {"seed": 7}
    assert told["plan"]["limits"]["cell"] > 0
    assert (told["shard"], told["ended"]) == ("1/2", "total limit")
    assert told["counts"] == dict.fromkeys(STATUSES, 1)
    assert told["cell_seconds"] == 4 * 1.5  # of the cached one nothing ran
    assert told["efficiency"] == 0.5
    assert [row["status"] for row in told["notebooks"]] == list(STATUSES)
    assert told["notebooks"][2]["failure"]["reason"] == UGLY


def test_one_notebook_on_many_workers_is_measured_against_the_one_that_had_it(run):
    alone = Run([run.outcomes[0]], Plan(workers=8), 3.0)
    assert report(alone)["efficiency"] == 0.5
    assert report(Run([run.outcomes[1]], Plan(workers=8), 3.0))["efficiency"] is None


def test_an_executed_copy_of_an_earlier_run_is_not_passed_off_as_one_of_this(run):
    rows = {row["status"]: row["executed"] for row in report(run)["notebooks"]}
    assert rows["not run"] is None  # though a file is there
    assert rows["broken"] is None
    assert rows["failed"].endswith("failed.ipynb")


def test_the_docstring_names_every_key(run):
    words = set(re.findall(r"\w+", machine_reports.__doc__))
    told = report(run)
    assert words >= {*told, *told["plan"], *told["notebooks"][0], *told["notebooks"][2]["failure"]}


# --- JUnit ---

# What Jenkins' and Surefire's schemas ask of the elements that we use.
NEEDED = {
    "testsuites": {"tests", "failures", "errors"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time"},
    "testcase": {"name", "classname", "time"},
    "property": {"name", "value"},
    "failure": {"message", "type"},
    "error": {"message", "type"},
    "skipped": {"message"},
}
ALLOWED = {
    "testsuites": {"name", "time"},
    "testsuite": {"timestamp", "hostname"},
    "testcase": {"file"},
}
INSIDE = {
    "testsuites": {"testsuite"},
    "testsuite": {"properties", "testcase"},
    "properties": {"property"},
    "testcase": {"failure", "error", "skipped", "system-out"},
}


def check_junit(content):
    """Hold a file to the rules that CI systems have; return its suite."""
    suites = ElementTree.fromstring(content)
    assert suites.tag == "testsuites"
    for element in suites.iter():
        given, needed = set(element.keys()), NEEDED.get(element.tag, set())
        assert needed <= given <= needed | ALLOWED.get(element.tag, set()), element.tag
        assert {child.tag for child in element} <= INSIDE.get(element.tag, set())
        for name in given & {"time"}:
            assert re.fullmatch(r"\d+\.\d{3}", element.get(name))
    [suite] = suites
    assert [child.tag for child in suite][0] == "properties"
    assert datetime.fromisoformat(suite.get("timestamp")).tzinfo is None
    cases = suite.findall("testcase")
    assert suite.get("tests") == str(len(cases))
    for total, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert suite.get(total) == str(len(suite.findall(f"testcase/{tag}"))), total
    names = [(case.get("classname"), case.get("name")) for case in cases]
    assert len(set(names)) == len(names)
    return suite


def test_junit_holds_to_the_rules_and_to_what_each_status_means(run):
    suite = check_junit(junit(run))
    cases = {case.get("name"): [child.tag for child in case] for case in suite.iter("testcase")}
    assert cases == {
        "passed": [],
        "cached": ["system-out"],
        "failed": ["failure"],
        "broken": ["error"],
        "stopped": ["error"],
        "not_run": ["skipped"],
    }
    message = suite.find("testcase/failure").get("message")
    assert message.startswith(r"\x1b[31mred\x00 \x07 \ud800 \ufffe ]]> <&")
    text = suite.find("testcase/failure").text
    assert "key the-key" in text
    assert ">    1 | x" in text
    assert "make run" in text
    found = {each.get("name"): each.get("value") for each in suite.iter("property")}
    assert (found["-p seed"], found["shard"]) == ("7", "1/2")


@settings(deadline=None)
@given(st.text(st.characters(blacklist_categories=())))
def test_whatever_an_error_says_the_xml_can_be_read_and_the_json_too(words):
    outcome = Outcome(NOWHERE, "failed", 1.0, failure=Failure(words, source=words))
    run = Run([outcome], Plan({"p": words}, workers=1), 1.0, "2026-11-30T07:38:47")
    check_junit(junit(run))
    text = json.dumps(report(run), ensure_ascii=False).encode("utf-8", "backslashreplace")
    assert json.loads(text)["notebooks"][0]["failure"]["reason"] == words


def test_an_empty_shard_is_a_suite_of_no_tests():
    check_junit(junit(Run([], Plan(workers=1), 0.0, "2026-11-30T07:38:47", (3, 3))))


# --- for people ---


def test_a_failure_names_file_cell_key_lines_calls_copy_and_the_command_that_repeats_it(run):
    text = describe(run.outcomes[2], {"seed": 7})
    assert "notebooks/en/failed.ipynb" in text
    assert "cell 2 of 9, key the-key: " in text
    assert ">    1 | x\n    called from there:\n    f\n" in text
    assert "what ran is kept in " in text
    command = "make run MODULE=failed LANG=en EDITION=learner ARGS='-p seed 7'"
    assert f"to run it alone: {command}" in text
    assert "\x1b" not in text
    assert "kept in" not in describe(run.outcomes[3])  # there is no copy


def test_a_module_is_named_by_its_number_and_odd_parameters_survive_the_shell(tmp_path):
    [job] = make_jobs(tmp_path, module_03_basic="pass")
    assert again(job, {}) == "make run MODULE=3 LANG=en EDITION=learner"
    *_, given = shlex.split(again(job, {"text": 'it\'s 1 "b"'}))
    assert shlex.split(given.removeprefix("ARGS=")) == ["-p", "text", repr('it\'s 1 "b"')]


def test_one_line_is_one_line(run):
    for outcome in run.outcomes:
        assert "\n" not in one_line(outcome)
        assert "\x1b" not in one_line(outcome)
    assert one_line(run.outcomes[1]).endswith(": cached, it took 2.0 s")


def test_the_table_puts_the_seconds_of_cached_notebooks_in_brackets(run):
    lines = table(run.outcomes).splitlines()
    assert " ".join(lines[0].split()) == "notebook edition lang seconds cells peak MB status"
    assert " ".join(lines[1].split()) == "passed learner en 2.0 1.5 300 passed"
    assert lines[2].split()[3] == "(2.0)"


def test_the_summary_ends_with_the_total_and_where_the_files_are(run):
    text = summary(run, ROOT / "build" / "executed")
    assert text.count("to run it alone") == 3  # what did not run has no excerpt
    assert "\n2 of 6 passed in 6.0 s with 2 workers; cells 6.0 s, 50% of the workers' time" in text
    assert "ended early: total limit\n" in text
    assert text.endswith(": build/executed")


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        (["passed", "cached"], 0),
        (["passed", "failed"], 1),
        (["passed", "stopped"], 1),
        (["passed", "not run"], 1),
        (["failed", "broken"], 2),
        ([], 2),
    ],
)
def test_the_exit_code_is_0_only_when_all_have_passed(statuses, code, tmp_path):
    [job] = make_jobs(tmp_path, a="pass")
    assert exit_code([Outcome(job, status, 0.0) for status in statuses]) == code


def test_control_characters_are_spelt_out_and_letters_stay():
    assert printable("a\x1b]0;x\x07\r\x9b\ud800\n\tё😀") == r"a\x1b]0;x\x07\r\x9b\ud800" + "\n\tё😀"


TRACEBACK = """\
---------------------------------------------------------------------------
KeyError                                  Traceback (most recent call last)
Cell In[9], line 1
----> 1 lost()
KeyError: 'x'

The above exception was the direct cause of the following exception:

ZeroDivisionError                         Traceback (most recent call last)
Cell In[3], line 4
      3 print(1)
----> 4 g(0)

Cell In[2], line 3, in g(x)
----> 3     return f(y)

File /home/me/lib/python3.11/site-packages/torch/nn/x.py:123, in linear(a, b)
    122 # ---> 7 not the line
--> 123     return 1/x

ZeroDivisionError: division by zero"""


def test_the_calls_from_the_failing_line_to_the_error_are_listed_without_colours():
    coloured = TRACEBACK.replace("Cell", "\x1b[36mCell\x1b[39m")
    assert calls(coloured.splitlines()).splitlines() == [
        "called from there:",
        "Cell In[2], line 3, in g: return f(y)",
        "torch/nn/x.py:123, in linear: return 1/x",
    ]
    assert calls(TRACEBACK.split("Cell In[2]")[0].splitlines()) == ""
    deep = TRACEBACK + "\nCell In[2], line 3, in g(x)\n----> 3  g()" * 50
    assert calls(deep.splitlines()).splitlines()[1] == "... 46 calls"
    assert len(calls(deep.splitlines()).splitlines()) == 8


def test_an_error_that_brought_no_output_is_still_an_error():
    cell = {
        "cell_type": "code",
        "id": "key",
        "source": "raise ValueError('\\ud800')",
        "outputs": [],
        "execution_count": 1,
        "metadata": {"papermill": {"exception": True}},
    }
    failure = cell_error({"cells": [cell]})
    assert (failure.cell, failure.key) == (1, "key")
    assert "cannot be shown" in failure.reason
    cell["metadata"]["papermill"]["exception"] = False
    assert cell_error({"cells": [cell]}) is None
