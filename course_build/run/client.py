"""Execute one notebook with papermill and say in JSON how it went.

A child of the nursery of clients calls `main`, or a fresh Python runs this file. Home, working
directory and environment are the kernel's own.
"""

import contextlib
import json
import os
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from course_build.run.normal import normalise  # noqa: E402
from course_build.run.outcome import Failure  # noqa: E402
from course_build.run.verdict import cell_error, plain, unfinished, verdict  # noqa: E402

TOLD = ("kernel", "network", "peak_mb", "why")  # what a kernel's supervisor has to say


class TimeIsUp(Exception):
    """The notebook's wall-clock limit is over."""


class Stopped(Exception):
    """The run was interrupted."""


def kernel_config(job: dict[str, Any]) -> Any:
    """Configure how jupyter_client makes the kernel and talks to it."""
    from traitlets.config import Config

    config = Config()
    if job["ipc"]:
        # TCP ports can be taken between choosing and binding; the default ipc name is shared.
        for manager in (config.KernelManager, config.AsyncKernelManager):
            manager.transport = "ipc"
            manager.ip = job["ipc"]
    if job["address"]:
        from course_build.run.provisioner import NAME

        # the factory of provisioners is a singleton which only hears of this variable
        os.environ["JUPYTER_DEFAULT_PROVISIONER_NAME"] = NAME
        config.SupervisedProvisioner.address = job["address"]
        config.SupervisedProvisioner.log_file = job["log"]
        config.SupervisedProvisioner.patience = job["limits"]["start"]
        limits = {name: job["limits"][name] for name in ("memory_mb", "processes", "file_mb")}
        config.SupervisedProvisioner.limits = limits | {"request_mb": 2 * limits["memory_mb"]}
    return config


def braced(path: str) -> str:
    """Write a path as papermill wants it, which takes braces for fields to be filled in."""
    return path.replace("{", "{{").replace("}", "}}")


class Execution:
    """One notebook on its way through papermill's public interface, in an engine of our own."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        self.notebook: Any = None
        self.flooded = False
        self.broken = False  # the environment, not the notebook, is at fault

    def engine(self) -> type:
        """Make papermill's engine with a hand on the notebook and an eye on its output."""
        from papermill.clientwrap import PapermillNotebookClient
        from papermill.engines import Engine

        execution = self

        class Counting(PapermillNotebookClient):
            """papermill's client; a notebook that prints too much loses its kernel."""

            seen = 0
            place = -1

            def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
                if cell_index != self.place:
                    self.place = cell_index
                    execution.tell_place(cell_index)
                if msg["msg_type"] != "execute_input":  # which only says what runs
                    shown = msg["content"] | {"evalue": ""}  # which the traceback holds too
                    self.seen += len(str(shown))  # metadata is kept, so it counts
                if self.seen > execution.job["limits"]["output_mb"] * 10**6:
                    if not execution.flooded:
                        execution.flooded = True
                        self.km.provisioner.process.kill()
                    return None
                return super().process_message(msg, cell, cell_index)

        class Keeping(Engine):
            """papermill's own engine, but for the client."""

            @classmethod
            def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, **kwargs: Any) -> Any:
                execution.notebook = nb_man.nb
                return Counting(
                    nb_man,
                    kernel_name=kernel_name,
                    startup_timeout=kwargs["start_timeout"],
                    timeout=kwargs["execution_timeout"],
                    iopub_timeout=60,
                    shutdown_kernel="immediate",
                    config=kernel_config(execution.job),
                ).execute()

        return Keeping

    def tell_place(self, cell_index: int) -> None:
        """Leave beside the executed copy which cell runs, for whoever watches."""
        place = f"{cell_index + 1}/{len(self.notebook.cells)}"
        with contextlib.suppress(OSError):
            Path(self.job["executed"]).with_suffix(".cell").write_text(place, encoding="ascii")

    def run(self) -> Failure | None:
        """Execute the notebook, leave the executed copy, and judge it."""
        import papermill
        from nbformat import write
        from papermill.engines import papermill_engines

        job = self.job
        papermill_engines.register("keeping", self.engine())
        try:
            papermill.execute_notebook(
                braced(job["notebook"]),
                braced(job["executed"]),
                parameters=job["parameters"],
                engine_name="keeping",
                request_save_on_cell_execute=False,
                progress_bar=False,
                cwd=job["cwd"],
                start_timeout=job["limits"]["start"],
                execution_timeout=job["limits"]["cell"],
            )
        except papermill.PapermillExecutionError as error:
            return cell_error(self.notebook) or Failure(plain(str(error)))
        except Exception as error:
            if type(error).__name__ == "RefusedError":
                self.broken = True
                return Failure(str(error))
            if self.notebook is None:
                return Failure(plain(f"{type(error).__name__}: {error}"))
            write(self.notebook, job["executed"])
            return unfinished(self.notebook, self.broken_off(error))
        return verdict(self.notebook, job["edition"])

    def broken_off(self, error: Exception) -> str:
        """Say in one line why the run did not reach its end."""
        limits = self.job["limits"]
        if self.flooded:
            return (
                f"the notebook printed and showed more than its limit of {limits['output_mb']} MB"
            )
        over = {
            "memory": f"the notebook used more memory than its limit of {limits['memory_mb']} MB",
            "processes": f"the notebook ran more processes than its limit of {limits['processes']}",
        }
        why = kernel_told().get("why")
        if why and type(error).__name__ not in ("TimeIsUp", "Stopped"):
            return over[why]
        names = {
            "DeadKernelError": "the kernel died while this cell ran (killed, crashed or out of "
            "memory)",
            "CellTimeoutError": f"the cell ran longer than its limit of {limits['cell']} s",
            "TimeIsUp": f"the notebook ran longer than its limit of {limits['wall']} s",
            "Stopped": "the run was stopped while this cell ran",
            "NoSuchKernel": f"{error}: install the kernel or name python3 in the kernelspec",
        }
        if str(error).startswith("Kernel died before replying"):  # a RuntimeError like any other
            log = Path(self.job["log"]).read_text(encoding="utf-8", errors="replace")
            return f"the kernel did not start; the end of its log:\n{log.strip()[-2000:]}"
        return names.get(type(error).__name__, f"{type(error).__name__}: {error}")

    def cell_seconds(self) -> dict[str, float]:
        """Give the seconds that each code cell took, by its id."""
        cells = self.notebook.cells if self.notebook else []
        times = {
            cell.id: cell.metadata.get("papermill", {}).get("duration")
            for cell in cells
            if cell.cell_type == "code"
        }
        return {key: seconds for key, seconds in times.items() if seconds is not None}

    def settle(self) -> None:
        """Write the executed copy in the form in which two runs give the same bytes."""
        from nbformat import write

        if self.notebook is not None and not self.broken:
            write(normalise(self.notebook), self.job["executed"])


def kernel_told() -> dict[str, Any]:
    """Return what the kernel's supervisor has said: network, kernel, and at its end peak, why."""
    module = sys.modules.get("course_build.run.provisioner")
    latest = module.SupervisedProvisioner.latest if module else None
    if latest is None:
        return {}
    latest.poll()
    return {name: latest.told[name] for name in TOLD if name in latest.told}


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Run the notebook of a job, and return what `Outcome` holds of it."""
    execution = Execution(job)
    failure = execution.run()
    kernel = kernel_told()
    cells = execution.cell_seconds()
    execution.settle()
    return {
        "failure": None if failure is None else asdict(failure),
        "status": "broken" if execution.broken else "failed" if failure else "passed",
        "cells": cells,
        "kernel": kernel,
    }


def broken(error: OSError) -> dict[str, Any]:
    """Return what `Outcome` holds of a notebook whose copy could not be written or read."""
    failure = Failure(f"{error.strerror or error}: {error.filename or 'the executed copy'}")
    return {"failure": asdict(failure), "status": "broken", "cells": {}, "kernel": {}}


def _time_is_up(*_: Any) -> None:
    raise TimeIsUp


def _stopped(*_: Any) -> None:
    raise Stopped


def main(argv: list[str]) -> None:
    """Run the job that the file named at the end of the command line holds."""
    import course_build.base.quick_imports  # noqa: F401

    signal.signal(signal.SIGTERM, _time_is_up)
    signal.signal(signal.SIGINT, _stopped)
    job = json.loads(Path(argv[-1]).read_text(encoding="utf-8"))
    try:
        told = run(job)
    except OSError as error:  # a full disk, for example
        told = broken(error)
    text = json.dumps(told, ensure_ascii=False)
    Path(job["result"]).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv)
