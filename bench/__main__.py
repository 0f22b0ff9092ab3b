"""Compare the speed of the fast decoder with its peers on this machine.

Every peer gets the same random GPT-2 checkpoints, proves that its logits are the same, and is
then timed in a process of its own, in turns, with the same number of threads. Leave the machine
alone meanwhile: it says how much of the cores others took. At GPT-2 small it needs 8 GB of memory
and 2 GB in the temporary folder. Nothing here promises a speed.
"""

import argparse
import json
import os
import platform
import sys
from pathlib import Path

from .crew import PAUSE, UNSET
from .measure import MEMORY, measure
from .models import MODELS, QUICK
from .peer import PEERS
from .table import model_text, profile_text, verdict_text
from .verdict import judge

NAMES = [name for name in PEERS if name != MEMORY]


def say(text):
    print(f"[bench] {text}", file=sys.stderr, flush=True)


def at_least_one(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


def parse(arguments):
    """Read the command line; `only` becomes the chosen models and the chosen peers."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    parser.add_argument("--threads", type=at_least_one, default=cores, help="for every peer")
    parser.add_argument("--rounds", type=at_least_one, default=7)
    parser.add_argument("--quick", action="store_true", help="the tiny model, few steps")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers there")
    known = [model.name for model in MODELS] + NAMES
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="NAME",
        default=[],
        help="models and peers, of: " + ", ".join(known),
    )
    chosen = parser.parse_args(arguments)
    unknown = [name for name in chosen.only if name not in known]
    if unknown:
        parser.error(f"--only knows no {unknown}; it knows: " + ", ".join(known))
    models = QUICK if chosen.quick else MODELS
    chosen.models = [model for model in models if model.name in chosen.only] or list(models)
    chosen.peers = [name for name in NAMES if name in chosen.only] or NAMES
    return chosen


def machine(threads):
    """Describe where this was measured."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text(encoding="utf-8").splitlines()
        model = next((ln.split(": ")[1] for ln in lines if ln.startswith("model name")), model)
    about = {"cpu": model, "cores": os.cpu_count(), "threads": threads}
    return about | {"python": platform.python_version(), "system": platform.platform()}


def main(arguments=None):
    chosen = parse(arguments)
    about = machine(chosen.threads)
    unset = [name for name in UNSET if name in os.environ]
    print(f"{about['cpu']}, {about['cores']} cores, {chosen.threads} threads for every peer")
    print(
        f"median of {chosen.rounds} rounds, one peer at a time in a process of its own, "
        f"{PAUSE} s of silence before each"
    )
    for name in unset:
        print(f"warning: {name}={os.environ[name]} is set; unset for the runs, it can slow NumPy")
    found = {}
    for model in chosen.models:
        say(f"{model.name}: making the checkpoint and everybody's copy of it")
        found[model.name] = measure(model, chosen.peers, chosen.threads, chosen.rounds, say)
        print("\n" + "\n".join(model_text(found[model.name])), flush=True)
    verdicts = judge(found) if not chosen.quick else []
    print("\n".join(verdict_text(verdicts)))
    if any(verdict.reached is False for verdict in verdicts):
        print("\nWhere our step spends its time (by a profiler, which slows small models):")
        print("\n".join(line for result in found.values() for line in profile_text(result)))
    if chosen.json:
        results = {"machine": about, "unset": unset, "models": found}
        results["verdicts"] = [verdict._asdict() for verdict in verdicts]
        chosen.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
