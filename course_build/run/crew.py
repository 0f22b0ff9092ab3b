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

from course_build.run import environment
from course_build.run.environment import (
    HERE,
    ROOT,
    furnish,
    kernel_environment,
    make_box,
    make_guard,
)
from course_build.run.notebook_file import problem
from course_build.run.outcome import Failure, Job, Outcome, Plan
from course_lib.checking.alone import Alone
from course_lib.checking.held import LOOK, Held, Nursery, end, make_folder
from course_lib.checking.regular import read_regular

ROOM = 2**20  # bytes that a result and its log need in the folder for temporary files

# Not pyplot and not matplotlib_inline: the latter hooks itself up when it is imported, and in a
# process without a shell that loses every picture of the kernels forked from it.
FOR_KERNELS = (
    "numpy",
    "torch",
    "torch._dynamo",
    "ipykernel.kernelapp",
    "ipykernel.ipkernel",
    "ipykernel.zmqshell",
    "matplotlib.figure",
    "matplotlib.backends.backend_agg",
    "matplotlib.font_manager",
)
FOR_CLIENTS = (
    "course_build.base.quick_imports",
    "papermill",
    "papermill.clientwrap",
    "papermill.iorw",
    "course_build.run.provisioner",
)


class Crew:
    """All that runs notebooks: two preloaded processes, from which each client and kernel forks.

    `with Crew(plan) as crew: crew.run(job, stop)`, from any number of threads. When the block
    ends, so do all processes. Where processes cannot be held so (not on Linux), or when
    `plan.kernels` is "jupyter", each notebook has a client and a kernel of jupyter's own, which
    are only looked at.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.kernels: Nursery | None = None
        self.clients: Nursery | None = None

    def __enter__(self) -> "Crew":
        self.folder = make_folder()
        if sys.platform == "linux" and self.plan.kernels != "jupyter":
            self.kernels = self._nursery(
                "kernels",
                # read when matplotlib is imported; an IPython kernel sets it before that
                {"MPLBACKEND": "module://matplotlib_inline.backend_inline"},
                preload=FOR_KERNELS if self.plan.kernels == "forked" else (),
                entry=str(HERE / "kernel_entry.py"),
                forbidden=environment.FORBIDDEN,
                fenced=True,
                clients=True,
                parent_in="JPY_PARENT_PID",
            )
            entry = {"entry": str(HERE / "client.py"), "path": [str(ROOT)]}
            self.clients = self._nursery("clients", {}, preload=FOR_CLIENTS, **entry)
        return self

    def _nursery(self, name: str, env: dict[str, str], **order: Any) -> Nursery:
        box = self.folder / name
        make_box(box)
        return Nursery(box, self._environment(box) | env, {"folder": str(self.folder)} | order)

    def _environment(self, box: Path) -> dict[str, str]:
        return kernel_environment(box, make_guard(self.folder / "guard"), self.plan)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self._close()
        except KeyboardInterrupt:  # a second Ctrl-C; what the first one raised has more to say
            self._close()
            if kind is None:
                raise

    def _close(self) -> None:
        for nursery in (self.clients, self.kernels):
            if nursery:
                nursery.close()
        shutil.rmtree(self.folder, ignore_errors=True)

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
            before = self._ready(stop)
            outcome = self._once(job, stop)
            if outcome.status == "passed" or stop.is_set() or before == self._ready(stop):
                break
        return outcome

    def _ready(self, stop: threading.Event) -> list[int]:
        """Start again what has died, wait until it answers; say how often each was started."""
        return [nursery.ready(stop) for nursery in (self.kernels, self.clients) if nursery]

    def _once(self, job: Job, stop: threading.Event) -> Outcome:
        if stop.is_set():
            return Outcome(job, "stopped", 0.0, failure=Failure("the run was stopped"))
        begun = time.perf_counter()
        self.folder.mkdir(exist_ok=True)  # a notebook may have removed it
        box = make_folder(self.folder)
        try:
            furnish(box, job, self.plan, self.kernels.address if self.kernels else "")
            request = self._request(box)
            try:
                child = Held(self.clients.address, request) if self.clients else Alone(request)
            except OSError:
                log = self.clients.last_words()
                words = f"the preloaded process has died; the end of its log:\n{log}"
                return Outcome(job, "broken", 0.0, failure=Failure(words))
            with contextlib.closing(child):
                status, words = self._watch(child, stop)
            if child.told.get("status") != 0:  # what lies there is not the client's
                (box / "result.json").unlink(missing_ok=True)
            seconds = round(time.perf_counter() - begun, 1)
            return self._outcome(box, job, seconds, child.told, status, words)
        finally:
            shutil.rmtree(box, ignore_errors=True)

    def _request(self, box: Path) -> dict[str, Any]:
        memory = self.plan.limits.memory_mb
        limits = {"memory_mb": memory, "request_mb": 2 * memory}
        if not self.kernels:  # then the kernel is one of the client's family
            limits = {"memory_mb": 2 * memory, "processes": 2 + self.plan.limits.processes}
        return {
            "argv": [sys.executable, "-P", str(HERE / "client.py"), str(box / "job.json")],
            "fork": True,
            "env": self._environment(box),
            "cwd": str(box / "cwd"),
            "log": str(box / "log.txt"),
            "limits": limits,
        }

    def _watch(self, child: Held | Alone, stop: threading.Event) -> tuple[str, str]:
        """Wait for a client's end, or have it end; return the status if it had to, and why.

        An empty status means that the client has ended by itself, and left its result if it could.
        """
        limits = self.plan.limits
        deadline = time.monotonic() + limits.wall
        while not child.ended(LOOK):
            if stop.is_set() or time.monotonic() > deadline:
                over = f"the notebook ran longer than its limit of {limits.wall} s"
                told = ("stopped", "the run was stopped") if stop.is_set() else ("failed", over)
                signum = signal.SIGINT if stop.is_set() else signal.SIGTERM
                if not end(child, signum, limits.grace) and self.clients:
                    self.clients.kill()
                return told
        over = {
            "memory": f"the outputs took more memory than {limits.memory_mb} MB",
            "processes": f"the notebook ran more processes than its limit of {limits.processes}",
        }
        if child.told.get("why"):
            return "failed", over[child.told["why"]]
        if "refused" in child.told:
            return "broken", child.told["refused"]
        return "", ""

    def _outcome(
        self, box: Path, job: Job, seconds: float, client: dict[str, Any], status: str, words: str
    ) -> Outcome:
        result = box / "result.json"
        if result.exists():
            told = json.loads(result.read_text(encoding="utf-8"))
            failure = Failure(**told["failure"]) if told["failure"] else None
            status = "stopped" if failure and status == "stopped" else told["status"]
            held = told["kernel"] if self.kernels else client  # by whom the kernel was held
            made, network = held.get("kernel", ""), held.get("network", "")
            peak = held.get("peak_mb")
            return Outcome(job, status, seconds, peak, failure, told["cells"], made, network)
        if status:
            return Outcome(job, status, seconds, failure=Failure(words))
        log = ""
        with contextlib.suppress(OSError):  # the kernel may have put a pipe in its place
            log = read_regular(box / "log.txt").decode(errors="replace").strip()
        reason = f"the worker died before it could report; the end of its log:\n{log[-2000:]}"
        if shutil.disk_usage(self.folder).free < ROOM:
            reason = f"there is no room left for temporary files in {self.folder} (see TMPDIR)"
        return Outcome(job, "broken", seconds, failure=Failure(reason))
