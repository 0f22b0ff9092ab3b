"""The workers of one model, seen from outside: start them, ask one at a time, watch the cores.

How a library waits between two pieces of work is left as it comes, because its users get it so:
OpenMP (OMP_WAIT_POLICY) and onnxruntime's pool both spin for a while. Before each turn there is
silence until they sleep, and `Watch` measures that they do, and what strangers took.
"""

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]
UNSET = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")  # workarounds for old builds; they slow NumPy
PAUSE = 0.3  # seconds before each run: OpenMP threads spin for up to 0.2 s after the last one
SILENCE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
}


class PeerFailed(Exception):
    """A worker could not do what it was asked; the message is the end of its traceback."""


def environment(threads):
    """Return the workers' environment: the same number of threads for every library."""
    kept = {name: value for name, value in os.environ.items() if name not in UNSET}
    limits = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
    return kept | SILENCE | dict.fromkeys(limits, str(threads))


def prepare(model, folder, names, threads):
    """Write the checkpoint, the reference and the peers' files; return {name: why not}."""
    command = [sys.executable, "-m", "bench.prepare"]
    command += [json.dumps(model), str(folder), json.dumps(names)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(threads), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise PeerFailed(done.stderr[-2000:])
    return json.loads(done.stdout)


class Hired:
    """One worker process."""

    def __init__(self, name, model, folder, threads):
        command = [sys.executable, "-m", "bench.worker"]
        command += [name, json.dumps(model), str(folder), str(threads)]
        self.log = folder / f"{name}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment(1 if name == "memory" else threads),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self.watched = psutil.Process(self.process.pid)
        self.note, self.largest_batch = "", 0

    def ready(self):
        """Wait until it has loaded the model; learn what it says of itself."""
        loaded = self.answer()
        self.note, self.largest_batch = loaded["note"], loaded["largest_batch"]
        return loaded

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            words = self.log.read_text(encoding="utf-8", errors="replace")[-1000:]
            raise PeerFailed(
                f"its process died with {self.process.wait()}; its last words: {words}"
            )
        reply = json.loads(line)
        if "error" in reply:
            raise PeerFailed(reply["error"])
        return reply["ok"]

    def ask(self, command, **details):
        with contextlib.suppress(OSError):  # if it is dead, answer() says so
            self.process.stdin.write(json.dumps({"do": command} | details) + "\n")
            self.process.stdin.flush()
        return self.answer()

    def cpu_seconds(self):
        try:
            times = self.watched.cpu_times()
        except psutil.Error:
            return 0.0
        return times.user + times.system

    def dismiss(self):
        """End this worker; an empty line is its sign to leave."""
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                stream.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Watch:
    """How much of the cores others used while one worker was timed."""

    def __init__(self, crew):
        self.crew, self.strangers, self.sleepers, self.possible = crew, 0.0, 0.0, 0.0

    def look(self):
        busy = psutil.cpu_times()
        idle = busy.idle + getattr(busy, "iowait", 0.0)
        return sum(busy[:8]) - idle, {name: w.cpu_seconds() for name, w in self.crew.items()}

    def timed(self, name, command, **details):
        """Ask one worker, alone, after a pause; add to the account what the others used."""
        time.sleep(PAUSE)
        (busy, before), start = self.look(), time.perf_counter()
        result = self.crew[name].ask(command, **details)
        self.possible += (time.perf_counter() - start) * os.cpu_count()
        busy_after, after = self.look()
        used = {worker: after[worker] - before[worker] for worker in before}
        self.sleepers += sum(used.values()) - used[name]
        self.strangers += max(0.0, busy_after - busy - sum(used.values()))
        return result

    def report(self):
        possible = self.possible or 1.0
        return {"strangers": self.strangers / possible, "sleepers": self.sleepers / possible}
