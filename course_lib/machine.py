"""What this machine can do, measured: how fast NumPy reads memory, and how fast it multiplies."""

import ctypes
import functools
import numbers
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from course_lib.text import localized, say

THREAD_SETTINGS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_MACHINE_WORDS = {
    "unknown": "unknown | не удалось узнать",
    "kernel": "kernel {kernel} | вычислительное ядро {kernel}",
    "threads": "threads: {threads} | потоков: {threads}",
}


@dataclass(frozen=True)
class Measured:
    """A quantity measured several times: the median, the extremes, and how many times."""

    median: float
    low: float
    high: float
    repeats: int

    def rate(self, amount: float) -> "Measured":
        """Turn seconds for this amount of work into work per second."""
        return Measured(amount / self.median, amount / self.high, amount / self.low, self.repeats)

    def __str__(self) -> str:
        texts = {
            "en": "{median:.4g} (from {low:.4g} to {high:.4g}, {repeats} repeats)",
            "ru": "{median:.4g} (от {low:.4g} до {high:.4g}, повторов: {repeats})",
        }
        return localized(texts, **vars(self))


@dataclass(frozen=True)
class Machine:
    """What a timing has to be read with: processor, cores for this process, and software."""

    processor: str
    cores: int
    blas: str
    python: str
    numpy: str

    def __str__(self) -> str:
        texts = {
            "en": "{processor}, {cores} cores; NumPy {numpy} with {blas}; Python {python}",
            "ru": "{processor}, ядер: {cores}; NumPy {numpy}, {blas}; Python {python}",
        }
        return localized(texts, **vars(self))


def describe_machine() -> Machine:
    """Name the machine and what NumPy computes with; what cannot be found out is "unknown"."""
    return Machine(
        processor=_processor_name(),
        cores=len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1,
        blas=_blas_in_words(),
        python=platform.python_version(),
        numpy=np.__version__,
    )


def alternate(
    functions: Mapping[str, Callable[[], object]], repeats: int = 7
) -> dict[str, Measured]:
    """Time functions in turn, round after round, and return the seconds of one call of each.

    In turn, so that a machine that slows down slows all of them; every second round backwards, so
    that none always runs after the same other. One untimed call of each comes first.
    """
    _check_timing(functions, repeats)
    for function in functions.values():
        function()
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for turn in range(repeats):
        for name in list(functions)[:: -1 if turn % 2 else 1]:
            start = time.perf_counter()
            functions[name]()
            seconds[name].append(time.perf_counter() - start)
    return {
        name: Measured(statistics.median(each), min(each), max(each), repeats)
        for name, each in seconds.items()
    }


def read_bandwidth(repeats: int = 7, *, side: int = 8192) -> Measured:
    """Measure how fast NumPy reads memory, in GB/s.

    A vector times a matrix (x @ W, float32) reads every weight once and uses it once: that is
    what decoding does, and BLAS does it on all cores, where `sum` would use one. With the usual
    side the matrix has 256 MiB, more than the caches hold.
    """
    weights = np.ones((side, side), np.float32)
    hidden, result = np.ones(side, np.float32), np.empty(side, np.float32)
    product = functools.partial(np.matmul, hidden, weights, out=result)
    return alternate({"read": product}, repeats)["read"].rate(weights.nbytes / 1e9)


def gemm_rate(repeats: int = 7, *, side: int = 1024) -> Measured:
    """Measure how fast NumPy multiplies matrices, in GFLOP/s, float32.

    All three matrices together have 12 MiB with the usual side, and every number is used 1024
    times: what is measured is arithmetic, not memory.
    """
    left, right = np.ones((side, side), np.float32), np.ones((side, side), np.float32)
    product = functools.partial(np.matmul, left, right, out=np.empty_like(left))
    return alternate({"multiply": product}, repeats)["multiply"].rate(2 * side**3 / 1e9)


def _check_timing(functions: Any, repeats: Any) -> None:
    if not isinstance(functions, Mapping) or not functions:
        raise ValueError(f"functions must map names to functions, not be empty; got {functions!r}")
    for name, function in functions.items():
        if not callable(function):
            raise TypeError(
                f"functions[{name!r}] must be a function without arguments, "
                f"got {type(function).__name__}; wrap the call: lambda: work(x)"
            )
    if not isinstance(repeats, numbers.Integral) or isinstance(repeats, bool):
        raise TypeError(f"repeats must be a whole number, got {repeats!r}")
    if repeats < 3:
        raise ValueError(f"repeats must be at least 3, got {repeats}: fewer show no spread")


def _processor_name() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine() or say(_MACHINE_WORDS["unknown"])


def _blas_in_words() -> str:
    """Say which BLAS NumPy was built with and, where it can be asked, its kernel and threads."""
    with suppress(KeyError, TypeError, AttributeError):
        built = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
        words = [f"{built['name']} {built['version']}", *_asked_openblas()]
        told = [f"{name}={os.environ[name]}" for name in THREAD_SETTINGS if name in os.environ]
        return ", ".join(words + told)
    return say(_MACHINE_WORDS["unknown"])


def _asked_openblas() -> list[str]:
    for path in Path(np.__file__).parent.parent.glob("numpy.libs/*openblas*"):
        with suppress(OSError, AttributeError):
            library = ctypes.CDLL(str(path))  # the very library that NumPy has loaded
            kernel = library.scipy_openblas_get_corename64_
            kernel.restype = ctypes.c_char_p
            threads = library.scipy_openblas_get_num_threads64_()
            return [
                say(_MACHINE_WORDS["kernel"], kernel=kernel().decode()),
                say(_MACHINE_WORDS["threads"], threads=threads),
            ]
    return []
