"""A forked kernel is what a fresh one is, but for the time that it took to start."""

import json
import re
import sys

import pytest

from .crews import forked, outputs, plain, printed, run  # noqa: F401

linux = pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked on Linux alone")
pytestmark = [pytest.mark.delivery, linux]

# Before anything is imported, with what the cell itself would add kept out of the answer.
AT_ONCE = """
def look():
    import inspect, json, os, pathlib, sys
    status = pathlib.Path("/proc/self/status").read_text().splitlines()
    files = [f"/proc/self/fd/{n}" for n in os.listdir("/proc/self/fd")]
    kind = [os.readlink(f).split(":")[0] for f in files if os.path.lexists(f)]
    main = vars(sys.modules["__main__"])
    return {
        "path": sys.path, "flags": repr(sys.flags), "argv": sys.argv, "command": sys.orig_argv,
        "options": [sys.warnoptions, sys._xoptions], "hash": hash("x"),
        "environment": {k: v for k, v in os.environ.items() if k != "JPY_PARENT_PID"},
        "parent": os.environ["JPY_PARENT_PID"] == str(os.getppid()),
        "files": sorted(kind), "names": sorted(k for k in main if not k.startswith("_i")),
        "session": [os.getsid(0) == os.getpid(), os.getpgid(0) == os.getpid()],
        "folder": os.getcwd(), "mask": os.umask(0o022), "depth": len(inspect.stack()),
        "status": [s for s in status if s.startswith(("SigB", "SigI", "SigC", "Cap", "Thr"))],
        "powers": [s for s in status if s.startswith(("NoNew", "Seccomp", "Groups"))],
        "own": [n for n in ("entry", "papermill", "nbclient", "course_build", "course_lib")
                if n in sys.modules],
        "importers": [p for p in sys.path_importer_cache
                      if os.path.exists(p + "/course_lib") or "course_lib" in p],
        "limits": [sys.getrecursionlimit(), sys.getswitchinterval(), sys.dont_write_bytecode],
        "hooks": [getattr(sys, n).__class__.__name__ for n in
                  ("excepthook", "displayhook", "unraisablehook", "breakpointhook", "stdin",
                   "stdout", "stderr", "__stdin__", "__stdout__", "__stderr__")],
    }
import json
print(json.dumps(look()))
"""

# After both kernels have imported what is preloaded into the forked one.
AFTER_IMPORTS = """
import matplotlib.pyplot as plt, numpy as np, torch, torch._dynamo
import matplotlib.backends.backend_agg, matplotlib.font_manager
def look():
    import decimal, gc, locale, logging, multiprocessing, os, random, resource, signal, site
    import sys, tempfile, threading, time, warnings
    import matplotlib
    loggers = [logging.root, *map(logging.getLogger, sorted(logging.root.manager.loggerDict))]
    names = [n for n in dir(resource) if n.startswith("RLIMIT_")]
    return {
        "threads": sorted((type(t).__name__, t.daemon) for t in threading.enumerate()),
        "tasks": len(os.listdir("/proc/self/task")),
        "signals": [str(signal.getsignal(n)).split(" at ")[0] for n in signal.valid_signals()],
        "wakeup": signal.set_wakeup_fd(-1),
        "limits": {n: resource.getrlimit(getattr(resource, n)) for n in names},
        "locale": [locale.setlocale(getattr(locale, n)) for n in
                   ("LC_CTYPE", "LC_NUMERIC", "LC_TIME", "LC_COLLATE", "LC_MONETARY")],
        "encodings": [sys.getfilesystemencoding(), locale.getpreferredencoding(),
                      sys.__stdout__.encoding, sys.__stdin__.encoding, sys.__stderr__.errors],
        "warnings": sorted(map(str, warnings.filters)),
        "gc": [gc.get_threshold(), gc.isenabled(), gc.get_debug()],
        "logging": [[l.name, l.level, l.disabled, [type(h).__name__ for h in l.handlers]]
                    for l in loggers if l.handlers or l.level or l.disabled],
        "backend": matplotlib.get_backend(),
        "rc": {k: str(v) for k, v in matplotlib.rcParams.items()},
        "folders": [matplotlib.get_configdir(), matplotlib.get_cachedir(), tempfile.gettempdir(),
                    site.USER_BASE, site.USER_SITE, site.ENABLE_USER_SITE],
        "torch": [torch.get_num_threads(), torch.get_num_interop_threads(), torch.is_grad_enabled(),
                  str(torch.get_default_dtype()), torch.are_deterministic_algorithms_enabled()],
        "numpy": [np.geterr(), np.get_printoptions()["precision"], np.__config__.show("dicts")],
        "decimal": str(decimal.getcontext()), "zone": [time.tzname, time.timezone],
        "method": multiprocessing.get_start_method(), "stack": threading.stack_size(),
    }
import json
print(json.dumps(look(), default=str))
"""
DRAWS = "import random, numpy, torch; print(random.random(), numpy.random.rand(), torch.rand(1))"
USES = {
    "processes": (
        "import multiprocessing as mp\n"
        "with mp.get_context('fork').Pool(2) as pool: print(pool.map(abs, [-1, -2]))\n"
        "with mp.get_context('spawn').Pool(1) as pool: print(pool.map(abs, [-3]))"
    ),
    "loader": (
        "import torch\n"
        "data = torch.utils.data.DataLoader(range(8), batch_size=4, num_workers=2)\n"
        "print([batch.tolist() for batch in data])"
    ),
    "shell": "!echo from a shell\nimport subprocess; print(subprocess.run('true').returncode)",
    "python": (
        "import subprocess, sys\n"
        "code = 'import os, sys, sitecustomize as s; print(sys.path, s.RULE, len(os.environ))'\n"
        "import os; os.environ.pop('TORCHINDUCTOR_CACHE_DIR', None)  # set by importing torch\n"
        "done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)\n"
        "print(done.stdout.replace(__import__('os').environ['PYTHONPATH'], 'GUARD'), done.stderr)"
    ),
    "threads": (
        "import threading\n"
        "t = threading.Thread(target=lambda: print('in a thread')); t.start(); t.join()\n"
        "import asyncio; await asyncio.sleep(0); print(threading.active_count())"
    ),
    "interrupt": (
        "import _thread, signal, threading, time, os\n"
        "threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "try: time.sleep(60)\nexcept KeyboardInterrupt: print('interrupted')"
    ),
    "input": "try: input()\nexcept Exception as error: print(type(error).__name__)",
    "number": "import locale; print(locale.localeconv()['decimal_point'], f'{1234.5:n}')",
    "magic": "%%time\nprint(_ih[-1][:7], __name__, __doc__)",
    "depth": (
        "def f(n):\n    try: return f(n + 1)\n    except RecursionError: return n\nprint(f(0))"
    ),
    "dynamo": "import torch; print(torch.compile(lambda x: x + 1, backend='eager')(torch.ones(2)))",
}
PICTURES = """
import matplotlib.pyplot as plt, numpy as np, torch
torch.manual_seed(0); net = torch.nn.Linear(4, 4)
optimiser = torch.optim.Adam(net.parameters())
for _ in range(20):
    loss = net(torch.ones(2, 4)).square().mean(); loss.backward(); optimiser.step()
print(loss.item()); plt.plot(net.weight.detach().flatten()); plt.title('Ёлка $x^2$'); plt.show()
"""
VECTORS = """
from matplotlib_inline.backend_inline import set_matplotlib_formats
set_matplotlib_formats("svg"); plt.rcParams["svg.hashsalt"] = "one"
fig, ax = plt.subplots(); ax.imshow(np.eye(3)); plt.show()
"""


def settled(text):
    """Take out the random part of temporary names."""
    return re.sub(r"tmp[a-z0-9_]{8}\.json", "tmp", re.sub(r"course-[a-z0-9_]{8}", "course", text))


@pytest.fixture(scope="module")
def both(forked, plain, tmp_path_factory):  # noqa: F811
    """One notebook for each crew with all the cells above: what each cell printed."""
    cells = [AT_ONCE, AFTER_IMPORTS, DRAWS, *USES.values()]
    found = []
    for crew in (forked, plain):
        outcome = run(crew, tmp_path_factory.mktemp("alike"), *cells)
        printed(outcome)
        found.append(outcome)
    assert [outcome.kernel for outcome in found] == ["forked", "plain"]
    names = ["at once", "after imports", "draws", *USES]
    return [dict(zip(names, outputs(outcome), strict=True)) for outcome in found]


@pytest.mark.parametrize("when", ["at once", "after imports"])
def test_a_forked_kernel_finds_what_a_fresh_one_finds(both, when):
    one, other = (json.loads(settled(kernel[when][0]["text"][0])) for kernel in both)
    assert set(one) == set(other)
    for name, value in one.items():
        assert value == other[name], name


def test_a_kernel_holds_nothing_of_the_runner(both):
    found = json.loads(both[0]["at once"][0]["text"][0])
    assert (found["own"], found["importers"]) == ([], [])
    assert found["parent"]
    kept = {"PATH", "HOME", "TMPDIR", "LC_ALL", "TZ", "PYTHONHASHSEED", "OMP_NUM_THREADS"}
    kept |= {"COURSE_STATIC"}
    added = {"CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "GIT_PAGER", "MPLBACKEND", "PAGER"}
    added |= {"PYDEVD_USE_FRAME_EVAL", "TERM"}  # by ipykernel
    more = {"PYTHONPATH", "TEMP", "USERPROFILE", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"}
    assert set(found["environment"]) - {"LD_LIBRARY_PATH"} <= kept | added | more


@pytest.mark.parametrize("use", USES)
def test_what_a_cell_does_comes_out_alike(both, use):
    one, other = (kernel[use] for kernel in both)
    if use == "magic":  # which goes on to print times
        one, other = (cell[0]["text"][0] for cell in (one, other))
    assert one == other
    assert one


def test_global_generators_are_seeded_anew(both, forked, tmp_path):  # noqa: F811
    again = printed(run(forked, tmp_path, DRAWS)).split()
    drawn = both[0]["draws"][0]["text"][0].split()
    assert len(drawn) == len(again) == 3
    assert not set(drawn) & set(again)


def test_forked_and_plain_kernels_give_the_same_pictures(forked, plain, tmp_path):  # noqa: F811
    one = outputs(run(forked, tmp_path / "forked", PICTURES, VECTORS))
    other = outputs(run(plain, tmp_path / "plain", PICTURES, VECTORS))
    date = re.compile(r"<dc:date>.*?</dc:date>")
    assert date.sub("", json.dumps(one)) == date.sub("", json.dumps(other))
    kinds = [kind for cell in one for output in cell for kind in output.get("data", {})]
    assert "image/png" in kinds
    assert "image/svg+xml" in kinds
