"""What machines read of a run: report.json and junit.xml.

report.json, one object:

    schema         1; another number when a key changes its meaning
    started        when the run began, UTC, ISO 8601
    seconds        how long the run took
    ended          complete, total limit, interrupted (Ctrl-C) or terminated (SIGTERM)
    shard          "I/N", or null: this run was to do all
    python, platform, versions      of Python, the machine and the packages that decide digits
    plan           parameters, limits (seconds, MB, processes), workers, total_limit (seconds or
                   null), kernels, locale
    counts         how many notebooks have each status
    cell_seconds   the sum of what code cells took in this run
    efficiency     cell_seconds / (seconds x workers that had a notebook), or null
    notebooks      a list, in the order of the table:
        notebook, edition, language, source (the file that ran)
        status            passed, cached, failed, broken, stopped or not run
        seconds           in this run; 0 for a cached one
        original_seconds  of the run that is cached, else null
        cells             seconds of each code cell by its id; cell_seconds: their sum
        peak_mb           the most memory, in 10^6 bytes, or null
        kernel, network   how the kernel was made, and what kept the network away
        executed          the executed copy, or null: there is none of this run
        failure           null, or reason, cell, cells, key, source, calls (what led to the error)

junit.xml: a test case for each notebook, class EDITION.LANGUAGE; a failed notebook is a failure,
a broken or stopped one an error, one that did not run is skipped.
"""

import importlib.metadata
import json
import platform
import xml.etree.ElementTree as ElementTree
from dataclasses import asdict
from pathlib import Path
from typing import Any

from course_build.run.outcome import Outcome, Run
from course_build.run.reports import describe, printable, short
from course_build.run.writing import write_whole

REPORTS = ("report.json", "junit.xml")
PACKAGES = ("torch", "numpy", "matplotlib", "ipykernel", "nbclient", "papermill")


def report(run: Run) -> dict[str, Any]:
    """Put a run into a value that JSON can hold; the module's docstring names its keys."""
    statuses = [outcome.status for outcome in run.outcomes]
    return {
        "schema": 1,
        "started": run.started,
        "seconds": run.seconds,
        "ended": run.ended,
        "shard": "{}/{}".format(*run.shard) if run.shard else None,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "versions": {name: _version(name) for name in PACKAGES},
        "plan": asdict(run.plan),
        "counts": {status: statuses.count(status) for status in sorted(set(statuses))},
        "cell_seconds": round(run.cell_seconds, 2),
        "efficiency": None if run.efficiency is None else round(run.efficiency, 3),
        "notebooks": [_row(outcome) for outcome in run.outcomes],
    }


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _row(outcome: Outcome) -> dict[str, Any]:
    job, cached = outcome.job, outcome.status == "cached"
    here = outcome.status != "not run" and job.executed.exists()
    return {
        "notebook": job.name,
        "edition": job.edition,
        "language": job.language,
        "source": short(job.notebook),
        "status": outcome.status,
        "seconds": 0.0 if cached else outcome.seconds,
        "original_seconds": outcome.seconds if cached else None,
        "cells": outcome.cells,
        "cell_seconds": round(sum(outcome.cells.values()), 3),
        "peak_mb": outcome.peak_mb,
        "kernel": outcome.kernel,
        "network": outcome.network,
        "executed": short(job.executed) if here else None,
        "failure": None if outcome.failure is None else asdict(outcome.failure),
    }


ELEMENTS = {"failed": "failure", "broken": "error", "stopped": "error", "not run": "skipped"}


def junit(run: Run) -> bytes:
    """Write a run in the XML that CI systems read of tests."""
    count = dict.fromkeys(("failure", "error", "skipped"), 0)
    for outcome in run.outcomes:
        if outcome.status in ELEMENTS:
            count[ELEMENTS[outcome.status]] += 1
    totals = {
        "name": "notebooks",
        "tests": str(len(run.outcomes)),
        "failures": str(count["failure"]),
        "errors": str(count["error"]),
        "time": f"{run.seconds:.3f}",
    }
    suites = ElementTree.Element("testsuites", totals)
    suite = ElementTree.SubElement(suites, "testsuite", totals, skipped=str(count["skipped"]))
    if run.started:
        suite.set("timestamp", run.started.removesuffix("+00:00"))
    told = report(run)
    properties = ElementTree.SubElement(suite, "properties")
    values = {name: told[name] for name in ("python", "platform", "ended", "shard")}
    given = {f"-p {name}": value for name, value in told["plan"]["parameters"].items()}
    for name, value in {**values, **told["versions"], **given}.items():
        text = "" if value is None else printable(str(value))
        attributes = {"name": printable(name), "value": text}
        ElementTree.SubElement(properties, "property", attributes)
    for outcome in run.outcomes:
        _case(suite, outcome, run)
    ElementTree.indent(suites, " ")
    return ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True) + b"\n"


def _case(suite: ElementTree.Element, outcome: Outcome, run: Run) -> None:
    job, cached = outcome.job, outcome.status == "cached"
    attributes = {
        "classname": f"{job.edition}.{job.language}",
        "name": printable(job.name),
        "time": f"{0.0 if cached else outcome.seconds:.3f}",
        "file": printable(short(job.notebook)),
    }
    case = ElementTree.SubElement(suite, "testcase", attributes)
    if outcome.status in ELEMENTS:
        reason = outcome.failure.reason if outcome.failure else outcome.status
        message = printable(reason).split("\n")[0]
        found = ElementTree.SubElement(case, ELEMENTS[outcome.status], message=message)
        if found.tag != "skipped":
            found.set("type", outcome.status)
        found.text = describe(outcome, run.plan.parameters)
    elif cached:
        said = f"cached: it passed before, unchanged, in {outcome.seconds:.1f} s"
        ElementTree.SubElement(case, "system-out").text = said


def write_reports(run: Run, folder: Path) -> None:
    """Put report.json and junit.xml into a folder, each at once or not at all."""
    # A lone surrogate cannot be written in UTF-8; JSON has an escape for it, the same as Python's.
    text = json.dumps(report(run), ensure_ascii=False, indent=1, default=str) + "\n"
    contents = (text.encode("utf-8", "backslashreplace"), junit(run))
    for name, content in zip(REPORTS, contents, strict=True):
        write_whole(folder / name, content)
