"""Run notebooks one at a time (each caller's thread one), held under limits."""

import contextlib
import json
import shutil
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from course_build.run.environment import HERE, furnish, kernel_environment, make_guard
from course_build.run.notebook_file import problem, read_file
from course_build.run.nurseries import Child, Nurseries, NurseryError, make_folder
from course_build.run.outcome import Failure, Job, Outcome, Plan
from course_build.run.unsupervised import run_client

ROOM = 2**20  # bytes that a result and its log need in the folder for temporary files
LOOK = 0.2  # seconds between two looks at the clock and at the order to stop


class Crew:
    """All that runs notebooks: two preloaded processes, from which each client and kernel forks.

    `with Crew(plan) as crew: crew.run(job, stop)`, from any number of threads. When the block
    ends, so do all processes. Where processes cannot be held so (not on Linux), or when
    `plan.kernels` is "jupyter", each notebook has a client and a kernel of jupyter's own,
    without limits of memory, processes and files.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._lock = threading.Lock()
        self._nurseries: Nurseries | None = None

    def __enter__(self) -> "Crew":
        if sys.platform == "linux" and self.plan.kernels != "jupyter":
            self._nurseries = Nurseries(self.plan)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._nurseries is None:
            return
        try:
            self._nurseries.close()
        except KeyboardInterrupt:  # a second Ctrl-C; what the first one raised has more to say
            self._nurseries.close()
            if kind is None:
                raise

    def run(self, job: Job, stop: threading.Event) -> Outcome:
        """Run one notebook, and leave its executed copy; a file that is no notebook has failed.

        `stop` ends it: the outcome's status then is "stopped". A notebook that was running when
        a preloaded process died is run once more.
        """
        reason = problem(job.notebook)
        if reason is not None:
            return Outcome(job, "failed", 0.0, failure=Failure(reason))
        job.executed.parent.mkdir(parents=True, exist_ok=True)
        for _ in range(2):
            job.executed.unlink(missing_ok=True)
            before = self._renewed()
            outcome = self._once(job, stop)
            if outcome.status == "passed" or stop.is_set() or before == self._renewed():
                break
        return outcome

    def _renewed(self) -> Any:
        """Start again what has died, and return what there is now."""
        if self._nurseries is None:
            return None
        with self._lock:
            return self._nurseries.renew()

    def _once(self, job: Job, stop: threading.Event) -> Outcome:
        if self._nurseries is not None:
            self._nurseries.await_ready(stop)
        if stop.is_set():
            return Outcome(job, "stopped", 0.0, failure=Failure("the run was stopped"))
        begun = time.perf_counter()
        box = make_folder(self._nurseries and self._nurseries.folder)
        try:
            how, words = (self._supervised if self._nurseries else self._alone)(box, job, stop)
            return self._outcome(box, job, time.perf_counter() - begun, how, words)
        finally:
            shutil.rmtree(box, ignore_errors=True)

    def _alone(self, box: Path, job: Job, stop: threading.Event) -> tuple[str, str]:
        """Have a client that nobody supervises run the notebook; return how it ended."""
        furnish(box, job, self.plan, "")
        env = kernel_environment(box, make_guard(box / "guard"), self.plan)
        ended = run_client(box, env, self.plan.limits, stop)
        return ("" if not ended else "stopped" if stop.is_set() else "failed"), ""

    def _supervised(self, box: Path, job: Job, stop: threading.Event) -> tuple[str, str]:
        """Have a client run the notebook; return the status if it did not end by itself, and why.

        An empty status means that the client has ended, and left its result if it could.
        """
        nurseries = self._nurseries
        furnish(box, job, self.plan, nurseries.kernels.address)
        try:
            child = Child(nurseries.clients, self._request(box, nurseries.guard))
        except NurseryError as error:
            return "broken", f"the preloaded process has died; the end of its log:\n{error}"
        with contextlib.closing(child):
            told = self._watch(child, stop)
        if child.told.get("status") != 0:  # what lies there is not the client's
            (box / "result.json").unlink(missing_ok=True)
        return told

    def _watch(self, child: Child, stop: threading.Event) -> tuple[str, str]:
        """Wait for a client's end, or have it end; return as `_supervised` does."""
        limits = self.plan.limits
        deadline = time.monotonic() + limits.wall
        while not child.ended(LOOK):
            if stop.is_set() or time.monotonic() > deadline:
                status, signum = ("stopped", signal.SIGINT)
                if not stop.is_set():
                    status, signum = ("failed", signal.SIGTERM)
                child.send(signum)
                self._await_end(child, time.monotonic() + limits.grace)
                return status, ""
        if child.told.get("why") == "memory":
            return "failed", f"the outputs took more memory than {limits.memory_mb} MB"
        if "refused" in child.told:
            return "broken", child.told["refused"]
        return "", ""

    @staticmethod
    def _await_end(child: Child, deadline: float) -> None:
        while not child.ended(LOOK):
            if time.monotonic() > deadline:
                child.send(signal.SIGKILL)
                deadline += LOOK * 50

    def _request(self, box: Path, guard: Path) -> dict[str, Any]:
        return {
            "argv": [sys.executable, "-P", str(HERE / "client.py"), str(box / "job.json")],
            "fork": "client",
            "kernel": False,
            "env": kernel_environment(box, guard, self.plan),
            "cwd": str(box / "cwd"),
            "log": str(box / "log.txt"),
            "limits": {"memory_mb": self.plan.limits.memory_mb},
        }

    def _outcome(self, box: Path, job: Job, seconds: float, status: str, words: str) -> Outcome:
        seconds = round(seconds, 1)
        result = box / "result.json"
        if result.exists():
            told = json.loads(result.read_text(encoding="utf-8"))
            failure = Failure(**told["failure"]) if told["failure"] else None
            status = "stopped" if failure and status == "stopped" else told["status"]
            kernel = told["cells"], told["kernel"], told["network"]
            return Outcome(job, status, seconds, told["peak_mb"], failure, *kernel)
        usual = {
            "stopped": "the run was stopped",
            "failed": f"the notebook ran longer than its limit of {self.plan.limits.wall} s",
        }
        if status:
            return Outcome(job, status, seconds, failure=Failure(words or usual[status]))
        log = ""
        with contextlib.suppress(OSError):  # the kernel may have put a pipe in its place
            log = read_file(box / "log.txt").decode(errors="replace").strip()
        reason = f"the worker died before it could report; the end of its log:\n{log[-2000:]}"
        if shutil.disk_usage(box).free < ROOM:
            reason = f"there is no room left for temporary files in {box.parent} (see TMPDIR)"
        return Outcome(job, "broken", seconds, failure=Failure(reason))
