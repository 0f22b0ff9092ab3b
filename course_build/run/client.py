"""Execute one notebook with papermill and say in JSON how it went: `one.py` starts this.

It runs in an environment of its own: empty home, empty working directory.
"""

import json
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # not in the kernel's environment

from course_build.run.outcome import Failure
from course_build.run.verdict import cell_error, plain, unfinished, verdict


class TimeIsUp(Exception):
    """The parent asked this worker to stop: the notebook's wall-clock limit is over."""


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
    import course_build.quick_imports  # noqa: F401

    signal.signal(signal.SIGTERM, _time_is_up)
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    text = json.dumps(run(job), ensure_ascii=False)
    Path(job["result"]).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
