"""What a notebook may take: more of it ends the notebook, and the reason is told."""

import sys
from dataclasses import replace

import pytest

from course_build.run.crew import Crew
from course_build.run.outcome import Limits, Plan
from course_lib.checking.supervisor import family_memory

from .crews import printed, run

linux = pytest.mark.skipif(sys.platform != "linux", reason="supervisors are of Linux")
pytestmark = [pytest.mark.delivery, linux]

LIMITS = Limits(cell=60, wall=90, memory_mb=600, processes=20, file_mb=10, output_mb=5)
HOARD = "hoard = []\nwhile True: hoard.append(b'x' * 10**7)"
OVER = {
    "memory": (HOARD, "used more memory than its limit of 600 MB"),
    "memory of children": (
        "import subprocess, sys, time\n"
        "code = 'import time; hoard = b\"x\" * (150 * 10**6); time.sleep(60)'\n"
        "for _ in range(5): subprocess.Popen([sys.executable, '-c', code])\n"
        "time.sleep(60)",
        "used more memory than its limit of 600 MB",
    ),
    "memory of a daemon": (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork(): os._exit(0)\n"
        "    hoard = []\n"
        "    while True: hoard.append(b'x' * 10**7); time.sleep(0.001)\n"
        "time.sleep(60)",
        "used more memory than its limit of 600 MB",
    ),
    "one request": ("import numpy\nnumpy.ones(10**9)", "Unable to allocate"),
    "processes": (
        "import subprocess, time\n"
        "for _ in range(30): subprocess.Popen(['sleep', '60'])\n"
        "time.sleep(60)",
        "ran more processes than its limit of 20",
    ),
    "zombies": (
        "import os, time\nfor _ in range(30):\n    if os.fork() == 0: os._exit(0)\ntime.sleep(60)",
        "ran more processes than its limit of 20",
    ),
    "file": ("with open('big', 'wb') as f: f.write(b'x' * (11 * 10**6))", "File too large"),
    "core": (
        "import resource; assert resource.getrlimit(resource.RLIMIT_CORE) == (0, 0)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10**9, 10**9))",
        "not allowed to raise maximum limit",
    ),
    "metadata": (
        "from IPython.display import display\n"
        "for _ in range(99):\n"
        "    display({'text/plain': ''}, metadata={'a': 'x' * 10**6}, raw=True)\n"
        "import time; time.sleep(60)",
        "printed and showed more than its limit of 5 MB",
    ),
    "pictures": (
        "from IPython.display import Image, display\n"
        "for _ in range(99): display(Image(b'\\x89PNG' + b'0' * 10**6))\n"
        "import time; time.sleep(60)",
        "printed and showed more than its limit of 5 MB",
    ),
}

# What waits to be sent takes memory of the kernel, so that here more is allowed.
FLOODS = {
    "output": (
        "import time\nwhile True: print('x' * 10**5, flush=True); time.sleep(0.005)",
        "printed and showed more than its limit of 5 MB",
    ),
    # printed faster than it can be sent, it fills the kernel's memory: that limit may come first
    "more than can be sent": ("while True: print('x' * 10**6)", " than its limit of "),
    "a hundred MB": (
        "print('x' * 10**8, flush=True)\nimport time; time.sleep(60)",
        "printed and showed more than its limit of 5 MB",
    ),
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    with Crew(Plan(limits=LIMITS)) as crew:
        folder = tmp_path_factory.mktemp("limits")
        found = {
            name: run(crew, folder, "print('before')", source, "print('after')", name=name)
            for name, (source, _) in OVER.items()
        }
        found["within"] = run(
            crew,
            folder,
            "import numpy, subprocess\nones = numpy.ones(10**7)",
            "for _ in range(4): subprocess.Popen(['sleep', '60'])",
            "print('x' * 10**6, end='')\nopen('file', 'wb').write(b'x' * 9 * 10**6);",
            name="within",
        )
    return found


@pytest.mark.parametrize("name", OVER)
def test_a_notebook_over_a_limit_is_told_which(outcomes, name):
    outcome = outcomes[name]
    assert outcome.status == "failed"
    assert OVER[name][1] in outcome.failure.reason
    assert outcome.failure.key == "cell-1"
    cells = outcome.job.executed.read_text(encoding="utf-8")
    assert "before" in cells
    assert len(cells) < 2 * LIMITS.output_mb * 10**6


def test_a_notebook_within_its_limits_is_left_alone(outcomes):
    assert printed(outcomes["within"]) == "x" * 10**6


def test_the_peak_is_of_the_family(outcomes):
    assert 600 <= outcomes["memory"].peak_mb < 1300
    assert 600 <= outcomes["memory of children"].peak_mb < 1300
    assert outcomes["within"].peak_mb > 80 + 100


@pytest.mark.parametrize("kernels", ["forked", "plain"])
def test_memory_shared_by_forked_processes_counts_once(kernels, tmp_path):
    source = (
        "import multiprocessing as mp, time, numpy\n"
        "hoard = numpy.ones(25 * 10**6)\n"  # 200 MB
        "def rest(_): time.sleep(1.5); return float(hoard[0])\n"
        "with mp.get_context('fork').Pool(6) as pool: print(sum(pool.map(rest, range(6))))"
    )
    with Crew(Plan(limits=LIMITS, kernels=kernels)) as crew:
        outcome = run(crew, tmp_path, source)
    assert printed(outcome) == "6.0\n"
    assert outcome.peak_mb > 200


def test_nobody_takes_no_memory():
    assert family_memory([]) == 0
    assert family_memory([2**22 + 1]) == 0  # has ended meanwhile


@pytest.mark.parametrize("kernels", ["forked", "jupyter"])
def test_what_is_printed_without_end_ends_the_notebook(kernels, tmp_path):
    limits = replace(LIMITS, memory_mb=2500)
    with Crew(Plan(limits=limits, kernels=kernels)) as crew:
        for name, (source, reason) in FLOODS.items():
            outcome = run(crew, tmp_path, "print('before')", source, name=name)
            assert reason in outcome.failure.reason
            assert outcome.failure.key == "cell-1"
            size = outcome.job.executed.stat().st_size
            assert size < 2 * LIMITS.output_mb * 10**6
