"""Where a step of our decoder spends its time, and whether its hot loop allocates."""

import contextlib
import cProfile
import math
import pstats
import sys
import threading
import tracemalloc
from collections import Counter
from pathlib import Path
from time import perf_counter
from unittest import mock

import numpy as np

PRODUCTS = ("matmul", "dot")
LIBRARY = str(Path("course_lib") / "decoder_lm")
GO_BETWEEN = "block_product.py"  # multiplies on behalf of others
WARM = 32  # steps before anything is counted
WATCHED = 256  # steps over which allocations are watched, at most


def label(code, shape):
    """Name a product by the shape of its right operand and the function that asked for it."""
    place = f"in {Path(code.co_filename).stem}.{code.co_qualname}"
    if code.co_name == "attend":  # these grow with every step
        return f"products with keys and values {place}"
    rows = shape[-2] if len(shape) > 1 else shape[0]
    return f"product with a matrix {rows} x {math.prod(shape) // rows} {place}"


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
                frame = sys._getframe(1)
                while frame.f_code.co_filename.endswith(GO_BETWEEN):
                    frame = frame.f_back
                seconds.append((frame.f_code, operands[1].shape, took))
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
    products, profiler, total, choice = [], cProfile.Profile(), 0.0, 0.0
    with timed_products(products):
        for _ in range(model.steps):
            profiler.enable()
            start = perf_counter()
            logits = peer.step(tokens)
            total += perf_counter() - start
            profiler.disable()
            start = perf_counter()
            tokens = np.argmax(logits, axis=-1)
            choice += perf_counter() - start
    total += choice
    parts = own_time(profiler) + Counter({"greedy choice of the tokens": choice})
    for code, shape, took in products:
        parts[label(code, shape)] += took
    parts["everything else, the profiler included"] = max(0.0, total - sum(parts.values()))
    shares = {name: took / total for name, took in parts.most_common()}
    return {"seconds": total / model.steps, "shares": shares}


def growth(peer, model, batch):
    """Return the bytes that stay allocated per step, and the most that a step holds for a while."""
    steps = min(WATCHED, 2 * model.steps)
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
