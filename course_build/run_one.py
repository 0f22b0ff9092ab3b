"""Execute one notebook with papermill and say in JSON how it went: `run.py` starts this file.

It is run by its path, in an environment of its own (empty home, empty working directory, nothing
of the repository importable), so it imports nothing from the course.
"""

import json
import re
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
MARKS = {"learner": ("○", "not attempted"), "solved": ("✓", "passed")}
ADDED = {"injected-parameters", "papermill-error-cell-tag"}  # cells that papermill puts in
SCREEN = 40  # lines of an error that are shown; the executed copy keeps all of it
AROUND = 4  # source lines shown before and after the failing one


class TimeIsUp(Exception):
    """The parent asked this worker to stop: the notebook's wall-clock limit is over."""


@dataclass(frozen=True)
class Failure:
    """What went wrong in a notebook: the place (cell number among all cells, key) and the words."""

    reason: str
    cell: int | None = None
    cells: int | None = None
    key: str | None = None
    source: str = ""

    def __str__(self) -> str:
        place = "" if self.cell is None else f"cell {self.cell} of {self.cells}, key {self.key}: "
        return "\n".join(part for part in (place + self.reason, self.source) if part)


def plain(text: str) -> str:
    """Strip terminal colours and cut what would not fit on a screen."""
    lines = ANSI.sub("", text).splitlines()
    more = [f"... {len(lines) - SCREEN} more lines"] if len(lines) > SCREEN else []
    return "\n".join(lines[:SCREEN] + more)


def excerpt(source: str, line: int | None) -> str:
    """Number the source lines around the failing one (the first lines when it is not known)."""
    lines = source.splitlines()
    centre = line or 1
    first, last = max(1, centre - AROUND), min(len(lines), centre + AROUND)
    return "\n".join(
        f"{'>' if number == line else ' '}{number:>5} | {lines[number - 1]}"
        for number in range(first, last + 1)
    )


def failing_line(cell: dict[str, Any], traceback: list[str]) -> int | None:
    """Find in an IPython traceback which line of this very cell was running."""
    text = ANSI.sub("", "\n".join(traceback))
    found = re.search(rf"Cell In\[{cell.get('execution_count')}\], line (\d+)", text)
    return int(found.group(1)) if found else None


def tags(cell: dict[str, Any]) -> set[str]:
    """Return a cell's tags."""
    return set(cell["metadata"].get("tags", []))


def own_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """List the cells that the notebook had before papermill added its own."""
    return [cell for cell in notebook["cells"] if not tags(cell) & ADDED]


def code_cells(notebook: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    """List the code cells that have something to run, with their numbers counted from 1."""
    return [
        (number, cell)
        for number, cell in enumerate(own_cells(notebook), 1)
        if cell["cell_type"] == "code" and cell["source"].strip()
    ]


def failure_at(
    notebook: dict[str, Any], number: int, reason: str, line: int | None = None
) -> Failure:
    """Name a cell of a notebook as the place of a failure."""
    cells = own_cells(notebook)
    cell = cells[number - 1]
    return Failure(plain(reason), number, len(cells), cell.get("id"), excerpt(cell["source"], line))


def cell_error(notebook: dict[str, Any]) -> Failure | None:
    """Report the first cell whose output is an error."""
    cells = code_cells(notebook)
    for place, (number, cell) in enumerate(cells):
        for output in cell["outputs"]:
            if output["output_type"] == "error":
                reason = f"{output['ename']}: {output['evalue']}"
                if output["ename"] == "SystemExit":
                    # papermill calls sys.exit(0) a success although the rest never ran
                    reason = (
                        f"the cell left with sys.exit({output['evalue']}), so the "
                        f"{len(cells) - place - 1} code cells after it never ran"
                    )
                line = failing_line(cell, output["traceback"])
                return failure_at(notebook, number, reason, line)
    return None


def unfinished(notebook: dict[str, Any], reason: str) -> Failure:
    """Report the cell that was running when the run broke off (none when no cell had begun)."""
    started = [
        number
        for number, cell in code_cells(notebook)
        if cell["metadata"].get("papermill", {}).get("start_time")
    ]
    return failure_at(notebook, started[-1], reason) if started else Failure(plain(reason))


def never_ran(notebook: dict[str, Any]) -> Failure | None:
    """Report the first code cell without an execution count."""
    for number, cell in code_cells(notebook):
        if cell["execution_count"] is None:
            return failure_at(notebook, number, "this code cell never ran")
    return None


def exercise_failure(notebook: dict[str, Any], edition: str) -> Failure | None:
    """Report the first exercise check whose output is not the one this edition must give."""
    mark, meaning = MARKS[edition]
    for number, cell in code_cells(notebook):
        if "exercise-check" not in tags(cell):
            continue
        texts = [
            output["data"].get("text/plain", "") for output in cell["outputs"] if "data" in output
        ]
        if not any(text.startswith(mark) for text in texts):
            came = "\n".join(texts) or "no output at all"
            return failure_at(
                notebook,
                number,
                f"the {edition} edition's exercise check must print {mark} ({meaning}); "
                f"it printed: {came}",
            )
    return None


def verdict(notebook: dict[str, Any], edition: str) -> Failure | None:
    """Judge a notebook that ran to its end."""
    return cell_error(notebook) or never_ran(notebook) or exercise_failure(notebook, edition)


def leaked_modules(names: list[str], cwd: str) -> list[str]:
    """List which of the repository's packages a kernel started like this one could import."""
    code = (
        "import importlib.util, sys;"
        "print(*[n for n in sys.argv[1:] if importlib.util.find_spec(n)])"
    )
    command = [sys.executable, "-c", code, *names]
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, check=True
    ).stdout.split()


def unknown_parameters(path: str, parameters: dict[str, Any]) -> Failure | None:
    """Report parameters that the notebook's parameters cell does not define."""
    import papermill

    known = set(papermill.inspect_notebook(path)) if parameters else set()
    unknown = sorted(set(parameters) - known)
    if not unknown:
        return None
    have = ", ".join(sorted(known)) or "none"
    return Failure(f"no parameter named {', '.join(unknown)}; the notebook has: {have}")


def _kernel_config(job: dict[str, Any]) -> Any:
    from traitlets.config import Config

    config = Config()
    if job["ipc"]:
        # TCP ports can be taken between choosing and binding; the default ipc name is shared.
        for manager in (config.KernelManager, config.AsyncKernelManager):
            manager.transport = "ipc"
            manager.ip = job["ipc"]
    return config


def _execute(job: dict[str, Any]) -> Failure | None:
    import papermill
    from nbformat import write
    from papermill.engines import NBClientEngine, papermill_engines

    notebook: Any = None

    class Keeping(NBClientEngine):
        """papermill's own engine, with a hand on the notebook when the run breaks off."""

        @classmethod
        def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, **kwargs: Any) -> Any:
            nonlocal notebook
            notebook = nb_man.nb
            return super().execute_managed_notebook(nb_man, kernel_name, **kwargs)

    papermill_engines.register("keeping", Keeping)
    try:
        papermill.execute_notebook(
            job["notebook"],
            job["executed"],
            parameters=job["parameters"],
            engine_name="keeping",
            request_save_on_cell_execute=False,
            progress_bar=False,
            cwd=job["cwd"],
            start_timeout=job["start_limit"],
            execution_timeout=job["cell_limit"],
            iopub_timeout=60,
            shutdown_kernel="immediate",
            config=_kernel_config(job),
        )
    except papermill.PapermillExecutionError:
        return cell_error(notebook)
    except Exception as error:
        if notebook is None:
            return Failure(plain(f"{type(error).__name__}: {error}"))
        write(notebook, job["executed"])
        return unfinished(notebook, broken_off(error, job))
    return verdict(notebook, job["edition"])


def broken_off(error: Exception, job: dict[str, Any]) -> str:
    """Say in one line why a run did not reach its end."""
    names = {
        "DeadKernelError": "the kernel died while this cell ran (killed, crashed or out of memory)",
        "CellTimeoutError": f"the cell ran longer than its limit of {job['cell_limit']} s",
        "TimeIsUp": f"the notebook ran longer than its limit of {job['wall_limit']} s",
        "NoSuchKernel": f"{error}: install the kernel or name python3 in the kernelspec",
    }
    return names.get(type(error).__name__, f"{type(error).__name__}: {error}")


def kernel_peak_mb() -> int | None:
    """Return the largest resident size of any finished child, in MB (10^6 bytes)."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return round(peak * (1 if sys.platform == "darwin" else 1024) / 1e6)


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Run the notebook of a job, and return its seconds, its peak memory and its failure."""
    begun = time.perf_counter()
    leaked = leaked_modules(job["forbidden"], job["cwd"])
    if leaked:
        failure = Failure(
            f"{', '.join(leaked)} can be imported in the kernel, so a notebook that needs the "
            "repository would pass: uninstall it from this environment"
        )
    else:
        failure = unknown_parameters(job["notebook"], job["parameters"]) or _execute(job)
    return {
        "seconds": round(time.perf_counter() - begun, 2),
        "peak_mb": kernel_peak_mb(),
        "failure": None if failure is None else asdict(failure),
    }


def _time_is_up(signum: int, frame: Any) -> None:
    raise TimeIsUp


def main() -> None:
    # As quick_imports.py, which this file cannot import: nothing beside it is on the path.
    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]
    signal.signal(signal.SIGTERM, _time_is_up)
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    text = json.dumps(run(job), ensure_ascii=False)
    Path(job["result"]).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
