"""A crew that starts no process: each notebook's first cell says what becomes of it."""

import json
import threading
import time

import nbformat

from course_build.run.outcome import Failure, Job, Outcome


class FakeCrew:
    """Stands in for Crew: code cells are 'pass', 'fail', 'die', 'vanish' or 'sleep SECONDS'."""

    started: list[str] = []
    at_once: list[int] = []

    def __init__(self, plan):
        self.running = 0
        self.ended = threading.Event()
        self.lock = threading.Lock()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ended.set()

    def run(self, job, stop):
        with self.lock:
            self.running += 1
            self.started.append(job.name)
            self.at_once.append(self.running)
        try:
            return self._run(job, stop)
        finally:
            with self.lock:
                self.running -= 1

    def _run(self, job, stop):
        verb, *rest = json.loads(job.notebook.read_bytes())["cells"][0]["source"][0].split()
        job.executed.parent.mkdir(parents=True, exist_ok=True)
        if verb == "die":
            raise OSError(28, "No space left on device", "x.ipynb")
        if verb == "vanish":
            return Outcome(job, "broken", 0.1, failure=Failure("the worker died"))
        if verb == "sleep":
            deadline = time.monotonic() + float(rest[0])
            while not stop.wait(0.01) and time.monotonic() < deadline:
                if self.ended.is_set():
                    return Outcome(job, "stopped", 0.1, failure=Failure("killed"))
            if stop.is_set() and len(rest) > 1:  # deaf: takes its time to save
                self.ended.wait(float(rest[1]))
        job.executed.write_bytes(job.notebook.read_bytes() + b"\n")
        cells = {"cell-0": 0.25}
        if verb == "fail":
            found = Failure("ValueError: no", 1, 1, "cell-0", ">    1 | fail")
            return Outcome(job, "failed", 0.5, 300, found, cells, "forked", "namespace")
        if stop.is_set():
            return Outcome(job, "stopped", 0.5, failure=Failure("the run was stopped", 1, 1, "c"))
        return Outcome(job, "passed", 0.5, 300, None, cells, "forked", "namespace")


def make_jobs(folder, **verbs):
    """Write a notebook for each verb, and list them as jobs of the learner's English edition."""
    jobs = []
    for name, verb in verbs.items():
        path = folder / "notebooks" / "en" / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        cell = nbformat.v4.new_code_cell(verb, id="cell-0")
        nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)
        jobs.append(Job(path, "learner", "en", folder / "executed/learner/en" / path.name))
    return jobs
