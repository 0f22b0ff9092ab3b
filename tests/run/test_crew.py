"""The preloaded processes: how they start, fall back, die, and are asked for a kernel."""

import asyncio
import locale
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from types import SimpleNamespace

import psutil
import pytest

from course_build.run import crew as crew_module
from course_build.run import environment
from course_build.run import provisioner as provisioner_module
from course_build.run.crew import Crew
from course_build.run.outcome import Job, Plan
from course_lib.checking import held

from .crews import LIMITS, forked, printed, run, signals_are_scoped  # noqa: F401
from .notebooks import ROOT, write_notebook

linux = pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked on Linux alone")
pytestmark = [pytest.mark.delivery, linux]

TALE = "import locale, sys; print(locale.setlocale(locale.LC_CTYPE), sys.flags.utf8_mode, 'Ёлка')"
NURSERY = (
    "import os, pathlib\n"
    "status = pathlib.Path(f'/proc/{os.getppid()}/status').read_text()\n"
    "nursery = int(status.split('PPid:')[1].split()[0])\n"
)


def test_each_nursery_has_one_thread_and_stays_small(forked, tmp_path):  # noqa: F811
    printed(run(forked, tmp_path, "print(1)"))
    for nursery in (forked.kernels, forked.clients):
        process = psutil.Process(nursery.process.pid)
        assert process.num_threads() == 1
        assert process.num_fds() < 10


def test_the_nursery_of_kernels_has_nothing_of_the_runner(forked, tmp_path):  # noqa: F811
    names = ["course_lib", "course_build", "papermill", "entry"]
    code = f"import sys; print([n for n in {names} if n in sys.modules])"
    assert printed(run(forked, tmp_path, code)) == "[]\n"


def test_where_threads_have_started_kernels_are_fresh_and_it_is_told(tmp_path, monkeypatch):
    def make_guard(folder, made=environment.make_guard):
        thread = (
            "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()"
        )
        made(folder).joinpath("starts_a_thread.py").write_text(thread, encoding="utf-8")
        return folder

    monkeypatch.setattr(crew_module, "make_guard", make_guard)
    monkeypatch.setattr(crew_module, "FOR_KERNELS", ("starts_a_thread",))
    with Crew(Plan(limits=LIMITS)) as crew:
        outcome = run(crew, tmp_path, "import sys; print('torch' in sys.modules)")
    assert printed(outcome) == "False\n"
    assert outcome.kernel == "plain: the imported libraries have started 1 threads"


def test_a_library_that_is_not_installed_is_not_preloaded(tmp_path, monkeypatch):
    monkeypatch.setattr(crew_module, "FOR_KERNELS", ("no_such_library", "ipykernel.kernelapp"))
    with Crew(Plan(limits=LIMITS)) as crew:
        outcome = run(crew, tmp_path, "import sys; print('torch' in sys.modules)")
    assert printed(outcome) == "False\n"
    assert outcome.kernel == "forked"


@pytest.mark.parametrize("which", ["kernels", "clients"])
def test_a_nursery_that_was_killed_is_started_again(which, tmp_path):
    ran = tmp_path / "ran"
    source = f"import os, pathlib, time; ran = pathlib.Path({str(ran)!r})\n" + (
        "if not ran.exists(): ran.touch(); time.sleep(60)\nprint('again')"
    )
    with Crew(Plan(limits=LIMITS)) as crew:
        done = []
        thread = threading.Thread(target=lambda: done.append(run(crew, tmp_path, source)))
        thread.start()
        while not ran.exists():
            time.sleep(0.05)
        getattr(crew, which).process.kill()
        thread.join()
        assert printed(done[0]) == "again\n"
        assert printed(run(crew, tmp_path, "print(1)")) == "1\n"


def test_a_notebook_that_kills_the_nursery_fails_alone(tmp_path):
    source = NURSERY + "os.kill(nursery, 9); import time; time.sleep(60)"
    with Crew(Plan(limits=LIMITS)) as crew:
        outcome = run(crew, tmp_path, source)
        assert outcome.status == "failed"
        reason = "PermissionError" if signals_are_scoped() else "the kernel died"
        assert reason in outcome.failure.reason
        assert printed(run(crew, tmp_path, "print(1)")) == "1\n"


def test_a_notebook_that_removes_the_folder_of_the_run_fails_alone(tmp_path):
    source = "import os, shutil\nshutil.rmtree(os.path.expanduser('~/../..'), True)\nassert 0"
    with Crew(Plan(limits=LIMITS)) as crew:
        assert run(crew, tmp_path, source).status in ("failed", "broken")
        assert printed(run(crew, tmp_path, "print(1)")) == "1\n"


def test_a_nursery_that_never_answers_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(held, "START", 0.5)
    monkeypatch.setattr(crew_module, "FOR_CLIENTS", ("sleepy",))
    monkeypatch.setattr(crew_module, "ROOT", tmp_path)
    (tmp_path / "sleepy.py").write_text("import time; time.sleep(600)", encoding="utf-8")
    with Crew(Plan(limits=LIMITS, kernels="plain")) as crew:
        outcome = run(crew, tmp_path, "1")
    assert outcome.status == "broken"
    assert "the preloaded process has died" in outcome.failure.reason


def test_a_nursery_that_cannot_start_breaks_the_run_with_its_last_words(tmp_path, monkeypatch):
    monkeypatch.setattr(crew_module, "FOR_CLIENTS", (7,))  # no name of a module
    with Crew(Plan(limits=LIMITS, kernels="plain")) as crew:
        outcome = run(crew, tmp_path, "1")
    assert outcome.status == "broken"
    assert "AttributeError" in outcome.failure.reason


@pytest.mark.parametrize("kernels", ["forked", "plain", "jupyter"])
def test_a_stopped_notebook_keeps_what_it_had_done(kernels, tmp_path):
    begun = tmp_path / "begun"
    sources = ["print('done')", f"open({str(begun)!r}, 'w').close()\nwhile True: pass"]
    job = Job(
        write_notebook(tmp_path / "a.ipynb", sources), "learner", "en", tmp_path / "out" / "a.ipynb"
    )
    stop, done = threading.Event(), []
    with Crew(Plan(limits=LIMITS, kernels=kernels)) as crew:
        thread = threading.Thread(target=lambda: done.append(crew.run(job, stop)))
        thread.start()
        while not begun.exists():
            time.sleep(0.05)
        stop.set()
        thread.join(30)
        assert done[0].status == "stopped"
        assert "stopped" in done[0].failure.reason
        assert done[0].failure.key == "cell-1"
        assert "done" in job.executed.read_text(encoding="utf-8")
        assert crew.run(job, stop).status == "stopped"  # before it starts


KILLED = """
import sys, threading
from pathlib import Path
from course_build.run.crew import Crew
from course_build.run.outcome import Job, Plan
with Crew(Plan()) as crew:
    crew.run(Job(Path(sys.argv[1]), "learner", "en", Path(sys.argv[2])), threading.Event())
"""


def below(pid):
    return [one.pid for one in psutil.Process(pid).children(recursive=True)]


def test_no_process_outlives_a_runner_that_is_killed(tmp_path):
    begun = tmp_path / "begun"
    source = (
        "import os, signal, subprocess\n"
        "for n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\n"
        "subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        f"open({str(begun)!r}, 'w').close()\nwhile True: pass"
    )
    path = write_notebook(tmp_path / "a.ipynb", [source])
    command = [sys.executable, "-c", KILLED, str(path), str(tmp_path / "out" / "a.ipynb")]
    place = tempfile.mkdtemp(prefix="t-")  # short enough for sockets
    env = os.environ | {"TMPDIR": place}
    runner = subprocess.Popen(command, cwd=ROOT, start_new_session=True, env=env)
    while not begun.exists():
        assert runner.poll() is None
        time.sleep(0.05)
    family = [psutil.Process(pid) for pid in below(runner.pid)]
    assert len(family) >= 7  # two nurseries, two supervisors, client, kernel, its child
    runner.send_signal(signal.SIGKILL)
    runner.wait()
    _, left = psutil.wait_procs(family, timeout=15)
    assert left == []
    os.rmdir(place)  # is empty


@pytest.mark.parametrize("name", ["C", "C.UTF-8", "ru_RU.UTF-8"])
def test_kernels_speak_the_locale_that_is_asked_for(name, tmp_path):
    before = locale.setlocale(locale.LC_ALL)
    try:
        locale.setlocale(locale.LC_ALL, name)
        installed = True
    except locale.Error:
        installed = False
    finally:
        locale.setlocale(locale.LC_ALL, before)
    if not installed and not os.environ.get("CI"):
        pytest.skip(f"the locale {name} is not installed here; .ci/run installs it")
    with Crew(Plan(limits=LIMITS, locale=name)) as crew:
        outcome = run(crew, tmp_path, TALE)
    assert printed(outcome) == f"{name} {int(name == 'C')} Ёлка\n"
    assert outcome.kernel == "forked"


def test_a_locale_that_is_not_installed_breaks_the_run(tmp_path):
    with Crew(Plan(limits=LIMITS, locale="xx_XX.UTF-8")) as crew:
        outcome = run(crew, tmp_path, "1")
    assert outcome.status == "broken"
    assert outcome.failure.reason == "the locale xx_XX.UTF-8 is not installed here"


WARNS = {
    "import warnings\nwarnings.warn('mine')": "UserWarning: mine",
    "import warnings\nwarnings.warn('old', DeprecationWarning)": "DeprecationWarning: old",
    "'\\d'": "SyntaxError",
    "1 is 1": "SyntaxError",
    "import numpy as np\nnp.ones(1) / np.zeros(1)": "RuntimeWarning: divide by zero",
}
FINE = [
    "import warnings\nwarnings.simplefilter('ignore'); warnings.warn('mine')",
    "import warnings\nwith warnings.catch_warnings(record=True) as seen:\n"
    "    warnings.simplefilter('always'); warnings.warn('mine')\nassert len(seen) == 1",
    "import types, warnings\nother = types.ModuleType('other')\n"
    "exec('import warnings\\nwarnings.warn(\"theirs\")', other.__dict__)",
]


def test_a_warning_of_the_notebooks_own_code_is_an_error(forked, tmp_path):  # noqa: F811
    for source, reason in WARNS.items():
        outcome = run(forked, tmp_path, source)
        assert outcome.status == "failed", source
        assert reason in outcome.failure.reason
    printed(run(forked, tmp_path, *FINE))


PROVISIONED = """
import json, os, sys, time
sys.path[:0] = [sys.argv[1]]
from course_build.run.provisioner import NAME
os.environ["JUPYTER_DEFAULT_PROVISIONER_NAME"] = NAME
from jupyter_client import KernelManager
from traitlets.config import Config
config = Config()
config.SupervisedProvisioner.address = sys.argv[2]
config.SupervisedProvisioner.log_file = sys.argv[3]
config.KernelManager.transport, config.KernelManager.ip = "ipc", sys.argv[3] + "-k"
manager = KernelManager(kernel_name="python3", config=config)
manager.start_kernel()
client = manager.client()
client.start_channels()
client.wait_for_ready(timeout=60)

def ask(code):
    reply = client.execute_interactive(code, timeout=60, output_hook=lambda _: None)
    return reply["content"].get("ename", reply["content"]["status"])

def alive():
    return manager.is_alive()

import threading
provisioner = manager.provisioner
assert type(provisioner).__name__ == "SupervisedProvisioner"
first = provisioner.pid
assert ask("1") == "ok" and alive() and provisioner.has_process
threading.Timer(1, manager.interrupt_kernel).start()
assert ask("import time; time.sleep(60)") == "KeyboardInterrupt"
import asyncio
told = asyncio.run(provisioner.get_provisioner_info())
assert told["pid"] == first and told["connection_info"]["transport"] == "ipc"
assert ask("import os; open('here', 'w').close()") == "ok"
assert provisioner.resolve_path("here") and not provisioner.resolve_path("nowhere")
manager.restart_kernel(now=True)
client.wait_for_ready(timeout=60)
assert manager.provisioner.pid != first and ask("os") == "NameError"
manager.restart_kernel(now=False)
client.wait_for_ready(timeout=60)
assert ask("1") == "ok"
process = manager.provisioner.process
assert ask("import signal, os; signal.signal(15, signal.SIG_IGN)") == "ok"
process.terminate(); time.sleep(0.5)
assert alive()
client.shutdown(); assert process.wait(30) == 0
assert not alive()
client.stop_channels(); manager.cleanup_resources()
"""


def test_jupyter_finds_the_provisioner_and_drives_its_kernels(forked, tmp_path):  # noqa: F811
    forked.kernels.ready(threading.Event())
    (tmp_path / "log").touch()
    address = forked.kernels.address
    command = [sys.executable, "-c", PROVISIONED, str(ROOT), address, str(tmp_path / "log")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("command", "fork"),
    [
        ([sys.executable, "-m", "ipykernel_launcher", "-f", "x", "--more"], True),
        ([sys.executable, "-Xdev", "-m", "ipykernel_launcher", "-f", "x"], False),
        (["/another/python", "-m", "ipykernel_launcher", "-f", "x"], False),
        (["ark", "x"], False),
    ],
)
def test_only_this_pythons_own_kernel_is_forked(command, fork, monkeypatch):
    asked = []

    class Kernel:
        pid = 1

        def __init__(self, address, request, patience):
            asked.append(request)

    monkeypatch.setattr(provisioner_module, "SupervisedKernel", Kernel)
    provisioner = provisioner_module.SupervisedProvisioner()
    asyncio.run(provisioner.launch_kernel(command, env={"A": "1"}, cwd="/"))
    assert (asked[0]["fork"], asked[0]["argv"], asked[0]["cwd"]) == (fork, command, "/")


def test_a_worker_without_room_to_report_says_so(tmp_path, monkeypatch):
    job = Job(tmp_path / "a.ipynb", "learner", "en", tmp_path / "out.ipynb")
    (tmp_path / "log.txt").touch()
    crew = Crew(Plan())
    crew.folder = tmp_path

    def told(free):
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
        outcome = crew._outcome(tmp_path, job, 1.0, {}, "", "")
        assert outcome.status == "broken"
        return outcome.failure.reason

    assert told(2**30).startswith("the worker died before it could report")
    assert told(4096).startswith("there is no room left for temporary files in")
