"""What a notebook's kernel finds around it: an environment, empty folders, no repository."""

import json
import os
import shutil
import sys
from pathlib import Path

from course_build.run.outcome import Job, Plan

HERE = Path(__file__).resolve().parent
FORBIDDEN = ("course_lib", "course_build")  # what a kernel must not be able to import
KEPT = ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH")  # all that a kernel inherits


def kernel_environment(box: Path) -> dict[str, str]:
    """Build the whole environment of a worker and its kernel; `box` is a fresh folder."""
    return {
        **{name: os.environ[name] for name in KEPT if name in os.environ},
        "HOME": str(box / "home"),
        "USERPROFILE": str(box / "home"),
        "TMPDIR": str(box / "tmp"),
        "TEMP": str(box / "tmp"),
        "PYTHONPATH": str(box / "guard"),
        "PYTHONHASHSEED": "0",
        "PYTHONUTF8": "1",
        "OMP_NUM_THREADS": "1",
    }


def furnish(box: Path, job: Job, plan: Plan) -> None:
    """Put into a fresh folder all that the worker of a job needs."""
    for name in ("cwd", "home", "tmp", "guard"):
        (box / name).mkdir()
    shutil.copyfile(HERE / "guard.py", box / "guard" / "sitecustomize.py")
    order = {
        "notebook": str(job.notebook.resolve()),
        "executed": str(job.executed.resolve()),
        "edition": job.edition,
        "parameters": plan.parameters,
        "forbidden": FORBIDDEN,
        "cwd": str(box / "cwd"),
        "result": str(box / "result.json"),
        "ipc": str(box / "k") if sys.platform == "linux" else "",
        "start_limit": plan.limits.start,
        "cell_limit": plan.limits.cell,
        "wall_limit": plan.limits.wall,
    }
    (box / "job.json").write_text(json.dumps(order), encoding="utf-8")
