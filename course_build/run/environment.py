"""What a notebook's kernel finds around it: an environment, empty folders, no repository."""

import json
import os
import shutil
import sys
from dataclasses import asdict
from pathlib import Path

from course_build.run.outcome import Job, Plan

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FORBIDDEN = ("course_lib", "course_build")  # what a kernel must not be able to import
KEPT = ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH")  # all that a kernel inherits

# Runs in each kernel before its first cell: a warning that the notebook's own code (or library
# code embedded in it) causes is an error. What a cell filters later has precedence, and so has
# what a library filters, be it imported in the kernel or before; so all but the categories which
# Python itself shows or hides there go to the end.
STARTUP = """\
__import__("warnings").filterwarnings("error", "", DeprecationWarning, r"__main__\\Z")
__import__("warnings").filterwarnings("error", "", PendingDeprecationWarning, r"__main__\\Z")
__import__("warnings").filterwarnings("error", "", DeprecationWarning, r".*ipykernel_\\d+")
__import__("warnings").filterwarnings("error", module=r"__main__\\Z", append=True)
__import__("warnings").filterwarnings("error", "", SyntaxWarning, r".*ipykernel_\\d+", append=True)
"""


def kernel_environment(box: Path, guard: Path, plan: Plan) -> dict[str, str]:
    """Build the whole environment of a kernel; `box` is its folder, `guard` that of the guard."""
    return {
        **{name: os.environ[name] for name in KEPT if name in os.environ},
        "HOME": str(box / "home"),
        "USERPROFILE": str(box / "home"),
        "TMPDIR": str(box / "tmp"),
        "TEMP": str(box / "tmp"),
        "PYTHONPATH": str(guard),
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "TZ": "UTC",
        "COURSE_STATIC": "1",  # nobody is there to click: course_lib.live shows no controls
        "LC_ALL": plan.locale,
        # C as its locale makes a POSIX Python use UTF-8; Windows wants to be told
        **({"PYTHONUTF8": "1"} if os.name == "nt" else {}),
    }


def make_guard(folder: Path) -> Path:
    """Make the folder whose guard every Python of a kernel loads."""
    folder.mkdir(parents=True, exist_ok=True)  # a notebook may have removed it
    shutil.copyfile(HERE / "guard.py", folder / "sitecustomize.py")
    return folder


def make_box(box: Path) -> None:
    """Make the folders of one process: working directory, home, temporary files; and its log."""
    for name in ("cwd", "home", "tmp"):
        (box / name).mkdir(parents=True)
    (box / "log.txt").touch()


def furnish(box: Path, job: Job, plan: Plan, address: str) -> None:
    """Put into a fresh folder all that the client of a job and its kernel need."""
    make_box(box)
    startup = box / "home" / ".ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "00-warnings.py").write_text(STARTUP, encoding="utf-8")
    order = {
        "notebook": str(job.notebook.resolve()),
        "executed": str(job.executed.resolve()),
        "edition": job.edition,
        "parameters": plan.parameters,
        "cwd": str(box / "cwd"),
        "log": str(box / "log.txt"),
        "result": str(box / "result.json"),
        "ipc": str(box / "k") if sys.platform == "linux" else "",
        "address": address,
        "limits": asdict(plan.limits),
    }
    (box / "job.json").write_text(json.dumps(order), encoding="utf-8")
