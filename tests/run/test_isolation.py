"""A notebook that spoils whatever it can reach cannot affect the next one."""

import os
import sys
import time

import psutil
import pytest

from .crews import forked, plain, printed, run, signals_are_scoped  # noqa: F401

linux = pytest.mark.skipif(sys.platform != "linux", reason="supervisors are of Linux")
pytestmark = [pytest.mark.delivery, linux]

POISON = [
    # what a fresh kernel has, remembered where only the test looks
    "import builtins, json, locale, os, pathlib, random, signal, sys, threading, warnings\n"
    "import matplotlib, matplotlib.pyplot as plt, numpy, torch",
    "builtins.print = builtins.sum = lambda *_: 0\nbuiltins.poisoned = True",
    "torch.manual_seed(0); numpy.random.seed(0); random.seed(0)\n"
    "torch.set_default_dtype(torch.float64); torch.set_num_threads(2)\n"
    "torch.use_deterministic_algorithms(True); torch.set_grad_enabled(False)\n"
    "torch.nn.Linear.forward = lambda *_: None; torch.matmul = None; torch.poisoned = True",
    "numpy.zeros = None; numpy.set_printoptions(precision=1); numpy.seterr(all='raise')\n"
    "sys.modules['json'] = sys.modules['torch.nn.functional'] = None\n"
    "sys.path.insert(0, '/poisoned'); sys.argv.append('poisoned'); sys.setrecursionlimit(500)",
    "matplotlib.rcParams['lines.linewidth'] = 99; plt.style.use('dark_background')\n"
    "matplotlib.rcParamsDefault['lines.linewidth'] = 99\n"
    "config = pathlib.Path(matplotlib.get_configdir()); config.mkdir(parents=True, exist_ok=True)\n"
    "(config / 'matplotlibrc').write_text('lines.linewidth: 99')",
    "os.environ.update(OMP_NUM_THREADS='99', POISONED='1', LC_ALL='C', TZ='Asia/Tokyo')\n"
    "os.umask(0o077); os.nice(5)\n"
    "pathlib.Path('json.py').write_text('raise SystemExit'); os.chdir('/')\n"
    "for place in (pathlib.Path.home(), pathlib.Path(os.environ['TMPDIR'])):\n"
    "    place.joinpath('left_behind').touch()\n"
    "startup = pathlib.Path.home() / '.ipython/profile_default/startup'\n"
    "(startup / 'poison.py').write_text('poisoned = 1')",
    "for n in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:\n"
    "    signal.signal(n, signal.SIG_IGN)\n"
    "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})",
    "warnings.simplefilter('error'); warnings.showwarning = None\n"
    "import gc, decimal, asyncio, logging; gc.disable(); gc.set_threshold(1)\n"
    "decimal.getcontext().prec = 2; logging.disable(); locale.setlocale(locale.LC_ALL, 'C')\n"
    "sys.settrace(None); sys.setswitchinterval(0.05); threading.stack_size(32768)",
    # processes that want to stay: a daemon in its own session, and 200 sleepers
    "import subprocess\n"
    "for _ in range(20): subprocess.Popen(['sleep', MARK], start_new_session=True)\n"
    "if os.fork() == 0:\n"
    "    os.setsid()\n"
    "    if os.fork() == 0: os.execvp('sleep', ['sleep', MARK])\n"
    "    os._exit(0)",
    "threading.Thread(target=threading.Event().wait).start()  # which never ends",
]
ROOM = """
import asyncio, builtins, decimal, gc, inspect, json, locale, logging, os, pathlib, random, signal
import subprocess, sys, threading, time, warnings
import matplotlib, matplotlib.pyplot as plt, numpy, torch
import torch.nn.functional as F

assert sum([1]) == 1 and not hasattr(builtins, "poisoned") and not hasattr(torch, "poisoned")
assert "poisoned" not in globals() and "/poisoned" not in sys.path and "poisoned" not in sys.argv
assert torch.get_default_dtype() == torch.float32 and torch.get_num_threads() == 1
assert not torch.are_deterministic_algorithms_enabled() and torch.is_grad_enabled()
assert F.linear(torch.ones(1, 1), torch.ones(1, 1)) == torch.matmul(torch.ones(1), torch.ones(1))
assert torch.nn.Linear(1, 1)(torch.ones(1)) is not None
torch.manual_seed(0); poisoned = torch.rand(1)
assert numpy.zeros(1) == 0 and str(numpy.array([1 / 3])) == "[0.33333333]"
assert numpy.geterr()["divide"] == "warn" and sys.getrecursionlimit() > 500
for settings in (matplotlib.rcParams, matplotlib.rcParamsDefault):
    assert settings["lines.linewidth"] == 1.5
assert plt.rcParams["axes.facecolor"] == "white"
assert os.environ["OMP_NUM_THREADS"] == "1" and "POISONED" not in os.environ
assert time.tzname[0] == "UTC" and os.umask(0o022) == 0o022 and os.nice(0) == 0
assert list(pathlib.Path().iterdir()) == [] and pathlib.Path.cwd() != pathlib.Path("/")
assert not pathlib.Path.home().joinpath("left_behind").exists()
assert not pathlib.Path(os.environ["TMPDIR"]).joinpath("left_behind").exists()
assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
assert signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL
assert not signal.pthread_sigmask(signal.SIG_BLOCK, []) & {signal.SIGTERM, signal.SIGINT}
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always"); warnings.warn("seen")
assert len(caught) == 1
assert gc.isenabled() and gc.get_threshold()[0] > 1 and decimal.getcontext().prec == 28
assert logging.root.manager.disable == 0 and threading.stack_size() == 0
assert locale.setlocale(locale.LC_CTYPE) == "C.UTF-8"
assert sys.getswitchinterval() < 0.05 and all(t.daemon for t in threading.enumerate()[1:])
print("clean")
"""
OUTSIDE = ("its parent", "its parent's group")
KILLS = {
    "itself": "os.kill(os.getpid(), 9)",
    OUTSIDE[0]: "os.kill(os.getppid(), 9); time.sleep(60)",
    "its group": "os.killpg(0, 9)",
    OUTSIDE[1]: "os.killpg(os.getpgid(os.getppid()), 9); time.sleep(60)",
}


def sleepers(seconds):
    """List the processes that the poison started, wherever they are now."""
    found = (process.info for process in psutil.process_iter(["cmdline", "status"]))
    return [one for one in found if one["cmdline"] == ["sleep", seconds]]


@pytest.mark.parametrize("kind", ["forked", "plain"])
def test_a_poisoned_notebook_leaves_a_clean_room(kind, request, tmp_path):
    crew = request.getfixturevalue(kind)
    mark = str(600 + os.getpid() / 1e7)
    before = run(crew, tmp_path, ROOM)
    assert printed(before) == "clean\n"
    poison = [source.replace("MARK", repr(mark)) for source in POISON]
    spoilt = run(crew, tmp_path, *poison)
    assert spoilt.status == "passed", spoilt.failure
    assert sleepers(mark) == []
    assert printed(run(crew, tmp_path, ROOM)) == "clean\n"


@pytest.mark.parametrize("killed", KILLS)
def test_a_notebook_that_kills_takes_its_own_family_alone(killed, forked, tmp_path):  # noqa: F811
    mark = str(700 + os.getpid() / 1e7)
    family = (
        "import os, subprocess, time\n"
        f"subprocess.Popen(['sleep', {mark!r}], start_new_session=True)"
    )
    outcome = run(forked, tmp_path, family, KILLS[killed])
    assert outcome.status == "failed"
    fenced = killed in OUTSIDE and signals_are_scoped()
    reason = "PermissionError" if fenced else "the kernel died while this cell ran"
    assert reason in outcome.failure.reason
    assert outcome.failure.key == "cell-1"
    patience = time.monotonic() + 5  # after the supervisor's death the nursery clears up
    while sleepers(mark) and time.monotonic() < patience:
        time.sleep(0.1)
    assert sleepers(mark) == []
    assert printed(run(forked, tmp_path, "print(1)")) == "1\n"


def test_two_hundred_sleepers_are_one_notebook_over_its_limit(forked, tmp_path):  # noqa: F811
    mark = str(800 + os.getpid() / 1e7)
    source = f"import subprocess\nfor _ in range(200): subprocess.Popen(['sleep', {mark!r}])"
    outcome = run(forked, tmp_path, source, "import time; time.sleep(60)")
    assert outcome.failure.reason == "the notebook ran more processes than its limit of 64"
    assert sleepers(mark) == []
    assert printed(run(forked, tmp_path, ROOM)) == "clean\n"
