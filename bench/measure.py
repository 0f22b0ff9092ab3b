"""One model's measurement: hire everybody, prove that they agree, then rounds of turns."""

import contextlib
import tempfile
from pathlib import Path

from .crew import Hired, PeerFailed, Watch, prepare

OURS = "ours"
MEMORY = "memory"  # the worker that measures the bandwidth
IN_CACHE = 32e6  # bytes of weights that may never come from memory: no bound is measured below


def hire(model, folder, names, threads, say):
    """Start everybody who can be prepared and loaded; return them and who is absent, and why."""
    absent, crew, loads = prepare(model, folder, names, threads), {}, {}
    for name in [name for name in names if name not in absent]:
        crew[name] = Hired(name, model, folder, threads)
        try:
            loaded = crew[name].ready()
            loads[name] = loaded
            say(f"{model.name}: {name} loaded in {loaded['seconds']:.1f} s")
        except PeerFailed as failure:
            absent[name] = str(failure)
            crew.pop(name).dismiss()
    return crew, absent, loads


def prove(model, crew, say):
    """Hold everybody to the reference; return {name: {batch: proof}} and dismiss who disagrees."""
    proofs = {}
    for name in [name for name in crew if name != MEMORY]:
        proofs[name] = {}
        for batch in model.batches:
            if batch > crew[name].largest_batch:
                continue
            try:
                proof = crew[name].ask("prove", batch=batch)
            except PeerFailed as failure:
                proof = {"agrees": False, "error": str(failure)}
            proofs[name][batch] = proof
        if not all(proof["agrees"] for proof in proofs[name].values()):
            say(f"{model.name}: {name} does not agree with the reference and is not timed")
            crew.pop(name).dismiss()
    return proofs


def rounds_of(model, crew, command, batch, rounds, say):
    """Let everybody do the same in turn; the first round warms up and is dropped.

    Everybody has as many results as there are rounds, and the order moves on by one each round.
    """
    watch, results = Watch(crew), {}
    names = [name for name, worker in crew.items() if batch <= worker.largest_batch]
    for turn in range(rounds + 1):
        if turn == 1:
            watch = Watch(crew)
        shift = turn % max(1, len(names))
        for name in names[shift:] + names[:shift]:
            if name not in crew:
                continue
            try:
                if name == MEMORY:
                    result = watch.timed(name, "measure")
                else:
                    result = watch.timed(name, command, batch=batch)
            except PeerFailed as failure:
                say(f"{model.name}: {name} failed in {command}: {failure}")
                crew.pop(name).dismiss()
                results.pop(name, None)
                continue
            if turn > 0:
                results.setdefault(name, []).append(result)
    say(f"{model.name}: {command}, batch {batch}: {rounds} rounds done")
    bandwidth = [max(rates.values()) for rates in results.pop(MEMORY, [])]
    results = {name: results[name] for name in names if name in results}
    return {"peers": results, "bandwidth": bandwidth} | watch.report()


def look_inside(model, crew, say):
    """Profile our decoder and watch its allocations, after all that is timed."""
    inside = {"profile": {}, "growth": {}}
    for command in inside if OURS in crew else ():
        for batch in model.batches:
            try:
                inside[command][batch] = crew[OURS].ask(command, batch=batch)
            except PeerFailed as failure:
                say(f"{model.name}: no {command}, batch {batch}: {failure}")
    return inside


def measure(model, names, threads, rounds, say):
    """Do everything with one model; return a dict that JSON can carry."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        everybody = [*names, MEMORY] if model.weight_bytes > IN_CACHE else names
        crew, absent, loads = hire(model, Path(folder), everybody, threads, say)
        stack.callback(lambda: [worker.dismiss() for worker in crew.values()])
        proofs = prove(model, crew, say)
        found = {"model": model._asdict(), "absent": absent, "loads": loads}
        found["proofs"] = proofs
        found["weight_bytes"] = model.weight_bytes
        found["decode"] = {
            batch: rounds_of(model, crew, "decode", batch, rounds, say)
            | {"step_bytes": model.step_bytes(batch)}
            for batch in model.batches
        }
        if model.prefill:
            found["prefill"] = rounds_of(model, crew, "prefill", 1, rounds, say)
        found["memory"] = {name: worker.ask("memory") for name, worker in crew.items()}
        found |= look_inside(model, crew, say)
    return found
