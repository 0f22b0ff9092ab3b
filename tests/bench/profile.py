"""Where a step of our decoder spends its time, and whether its hot loop allocates."""

import contextlib
import cProfile
import pstats
import sys
import threading
import tracemalloc
from collections import Counter
from pathlib import Path
from time import perf_counter
from unittest import mock

import numpy as np

PRODUCTS = ("matmul", "dot", "einsum")
LIBRARY = str(Path("course_lib") / "decoder_lm")
WARM = 32  # steps before anything is counted
WATCHED = 256  # steps over which allocations are watched


def label(operands, frame):
    """Name a product by the matrix on its right and the function that asked for it."""
    right = operands[-1].shape
    while frame.f_code.co_name == "times_blocks":
        frame = frame.f_back
    place = f"in {Path(frame.f_code.co_filename).stem}.{frame.f_code.co_name}"
    if len(right) == 4:
        return f"products with keys and values {place}"
    columns = right[0] * right[2] if len(right) == 3 else right[-1]  # blocks of columns
    return f"product with a matrix {right[-2]} x {columns} {place}"


@contextlib.contextmanager
def timed_products(seconds):
    """Replace NumPy's products by the same with a clock; only this thread's are noted."""
    here = threading.get_ident()

    def with_clock(product):
        def timed(*operands, **options):
            start = perf_counter()
            result = product(*operands, **options)
            took = perf_counter() - start
            if threading.get_ident() == here:
                arrays = [each for each in operands if isinstance(each, np.ndarray)]
                seconds.append((label(arrays, sys._getframe(1)), took))
            return result

        return timed

    with contextlib.ExitStack() as stack:
        for name in PRODUCTS:
            stack.enter_context(mock.patch.object(np, name, with_clock(getattr(np, name))))
        yield


def own_time(profiler):
    """Sum a profile by function of the library, with what it calls in C; waiting goes apart."""
    parts = Counter()
    for (path, _, name), (_, _, own, _, callers) in pstats.Stats(profiler).stats.items():
        if LIBRARY in path:
            parts[f"{Path(path).stem}.{name}, all but its products"] += own
        elif path == "~" and "SimpleQueue" in name:
            parts["waiting for the other threads, and waking them"] += own
        elif path == "~":
            for (caller_path, _, caller), (_, _, took, _) in callers.items():
                if LIBRARY in caller_path:
                    parts[f"{Path(caller_path).stem}.{caller}, all but its products"] += took
    return parts


def profile(peer, model, batch):
    """Return the shares of a step's time by part in the main thread, and the seconds of a step."""
    tokens = np.argmax(peer.begin(model.prompts(batch, model.prompt), model.steps), axis=-1)
    products, profiler, choice = [], cProfile.Profile(), 0.0
    with timed_products(products):
        start = perf_counter()
        for _ in range(model.steps):
            profiler.enable()
            logits = peer.step(tokens)
            profiler.disable()
            before = perf_counter()
            tokens = np.argmax(logits, axis=-1)
            choice += perf_counter() - before
        total = perf_counter() - start
    parts = own_time(profiler) + Counter({"greedy choice of the tokens": choice})
    for name, took in products:
        parts[name] += took
    parts["everything else, the profiler included"] = max(0.0, total - sum(parts.values()))
    shares = {name: took / total for name, took in parts.most_common()}
    return {"seconds": total / model.steps, "shares": shares}


def growth(peer, model, batch):
    """Return the bytes that stay allocated per step, and the most that a step holds for a while."""
    steps = min(WATCHED, model.context_length - model.prompt - WARM)
    tokens = np.argmax(peer.begin(model.prompts(batch, model.prompt), steps + WARM), axis=-1)
    tracemalloc.start()
    try:
        for _ in range(WARM):
            peer.step(tokens)
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        for _ in range(steps):
            peer.step(tokens)
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return {"bytes_per_step": (after - before) / steps, "transient_bytes": peak - before}
