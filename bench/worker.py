"""One peer in a process of its own: it sleeps on its input while the others are timed.

python -m bench.worker NAME MODEL FOLDER THREADS     then a JSON command a line
"""

import json
import os
import sys
import traceback
from pathlib import Path
from time import perf_counter

import numpy as np
import psutil

from .models import Model
from .peer import peer_class


def peak_bytes():
    """Return the most memory the process ever had in use, shared pages of files included."""
    try:
        import resource
    except ImportError:  # Windows
        return psutil.Process().memory_info().peak_wset
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def thread_pools():
    """Name every BLAS and OpenMP that the process has loaded, with kernel and threads."""
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return ["BLAS not named: threadpoolctl is not installed"]
    pools = []
    for pool in threadpool_info():
        words = [pool["internal_api"], pool.get("version"), pool.get("architecture")]
        pools.append(" ".join(filter(None, words)) + f", {pool['num_threads']} threads")
    return pools


class Worker:
    """The commands; each returns something that JSON can carry."""

    def __init__(self, name, model, folder, threads):
        start = perf_counter()
        self.model, self.folder = model, folder
        self.peer = peer_class(name)(model, folder, threads)
        self.seconds = perf_counter() - start

    def ready(self):
        about = {"note": self.peer.note, "largest_batch": self.peer.largest_batch}
        return about | {"seconds": self.seconds, "peak_bytes": peak_bytes()}

    def prove(self, batch):
        """Compare the logits of the very steps that will be timed with the reference."""
        reference = np.load(self.folder / f"reference-{batch}.npz")
        wanted = reference["logits"]  # [B, PROOF + 1, V]
        given = reference["tokens"][:, : wanted.shape[1] - 1]
        got = self.peer.forced(self.model.prompts(batch, self.model.prompt), given)
        first, second = np.moveaxis(np.sort(wanted, axis=-1)[..., -2:][..., ::-1], -1, 0)
        difference = float(np.max(np.abs(got - wanted)))
        same = got.argmax(-1) == wanted.argmax(-1)
        ties = first - second <= 2 * self.peer.tolerance  # there it may choose either
        return {
            "difference": difference,
            "tolerance": self.peer.tolerance,
            "same_tokens": int(same.sum()),
            "tokens": same.size,
            "closest_choice": float(np.min(first - second)),
            "agrees": bool(np.all(same | ties)) and difference <= self.peer.tolerance,
        }

    def decode(self, batch):
        """Time the steps; say too which share of all tokens are the reference's."""
        prompts = self.model.prompts(batch, self.model.prompt)
        seconds, tokens = self.peer.greedy(prompts, self.model.steps)
        wanted = np.load(self.folder / f"reference-{batch}.npz")["tokens"]
        same = float(np.mean(tokens == wanted))
        return {"rate": batch * self.model.steps / seconds, "same_tokens": same}

    def prefill(self, batch):
        prompts = self.model.prompts(batch, self.model.prefill)
        start = perf_counter()
        self.peer.prefill(prompts)
        return {"rate": prompts.size / (perf_counter() - start)}

    def measure(self):
        return self.peer.measure()

    def profile(self, batch):
        from .profile import profile

        return profile(self.peer, self.model, batch)

    def growth(self, batch):
        from .profile import growth

        return growth(self.peer, self.model, batch)

    def memory(self):
        return {"peak_bytes": peak_bytes(), "pools": thread_pools()}


def main(arguments):
    answers = os.fdopen(os.dup(1), "w")  # what the libraries print goes to the error stream
    os.dup2(2, 1)
    name, model, folder, threads = arguments
    if hasattr(os, "sched_setaffinity"):  # a peer that ignores its limit gains nothing by it
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(threads)])
    worker, command = None, {"do": "ready"}
    while command:
        try:
            if worker is None:
                worker = Worker(name, Model(*json.loads(model)), Path(folder), int(threads))
            reply = {"ok": getattr(worker, command.pop("do"))(**command)}
        except Exception:
            reply = {"error": traceback.format_exc(limit=-2)}
        print(json.dumps(reply), file=answers, flush=True)
        line = sys.stdin.readline()
        command = json.loads(line) if line.strip() else None


if __name__ == "__main__":
    main(sys.argv[1:])
