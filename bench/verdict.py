"""The numbers that the fast decoder is to reach, each judged on medians of paired rounds.

A ratio is taken within a round, where both sides met the same machine, and then the median.
Nothing is rounded up: what is printed is cut off, and the judgement is on the exact number.
"""

import math
from statistics import median
from typing import NamedTuple

OURS = "ours"
TRANSFORMERS = ("transformers", "transformers-static")
TORCH = ("torch-twin", *TRANSFORMERS)
FLOAT32_PEERS = ("onnxruntime", "ctranslate2", "llama.cpp")
FLAT = 1.0  # bytes that may stay per token: less than any object has


class Verdict(NamedTuple):
    """One target: its text, whether it is reached (None: cannot be judged), and the numbers."""

    target: str
    reached: bool | None
    numbers: str


def cut(number, digits=2):
    """Write a number with so many digits after the point, the rest cut off and not rounded."""
    factor = 10**digits
    return f"{math.floor(number * factor) / factor:.{digits}f}"


def rates(cell, name):
    return [result["rate"] for result in cell["peers"][name]]


def paired(above, below):
    """Return the median, least and greatest of the ratios round by round."""
    ratios = [a / b for a, b in zip(above, below, strict=True)]
    return median(ratios), min(ratios), max(ratios)


def bounds(cell, batch):
    """Return each round's greatest tokens a second: every step reads its bytes once."""
    return [batch * rate / cell["step_bytes"] for rate in cell["bandwidth"]]


def against(target, cell, names, least):
    """Judge our rate over that of the fastest of the peers; all of them must have run."""
    missing = [name for name in names if name not in cell["peers"]]
    if OURS not in cell["peers"]:
        return Verdict(target, None, "ours did not run")
    present = [name for name in names if name in cell["peers"]]
    if not present:
        return Verdict(target, None, "did not run: " + ", ".join(missing))
    best = max(present, key=lambda name: median(rates(cell, name)))
    middle, low, high = paired(rates(cell, OURS), rates(cell, best))
    numbers = f"{cut(middle)}x {best} ({cut(low)}-{cut(high)})"
    if missing:
        numbers += "; did not run: " + ", ".join(missing)
        return Verdict(target, False if middle < least else None, numbers)
    return Verdict(target, middle >= least, numbers)


def of_bound(cell):
    target = "decode, batch 1: at least 0.85 of the memory-bandwidth bound"
    if OURS not in cell["peers"] or not cell["bandwidth"]:
        return Verdict(target, None, "ours or the bandwidth was not measured")
    share, low, high = paired(rates(cell, OURS), bounds(cell, 1))
    return Verdict(target, share >= 0.85, f"{cut(share, 3)} ({cut(low, 3)}-{cut(high, 3)})")


def of_memory(found):
    """Judge growth: bytes that stay per token, at every model and batch that was run."""
    target = "no allocation growth per token in the hot loop"
    grown = {
        f"{name}, batch {batch}": growth["bytes_per_step"]
        for name, result in found.items()
        for batch, growth in result.get("growth", {}).items()
    }
    if not grown:
        return Verdict(target, None, "ours did not run")
    worst = max(grown, key=grown.get)
    held = max(
        growth["transient_bytes"]
        for result in found.values()
        for growth in result.get("growth", {}).values()
    )
    numbers = f"{grown[worst]:.3g} bytes a step stay at most ({worst}); a step holds {held} a while"
    return Verdict(target, grown[worst] < FLAT, numbers)


def of_peak(result):
    """State the peak of our process: when the model was loaded, and after all batches."""
    target = "peak memory of our process stated"
    if OURS not in result.get("memory", {}):
        return Verdict(target, None, "ours did not run")
    loaded, last = (result[when][OURS]["peak_bytes"] for when in ("loads", "memory"))
    weights = result["weight_bytes"]
    numbers = (
        f"{loaded / 1e6:.0f} MB when loaded, {last / 1e6:.0f} MB after all batches with their "
        f"caches ({loaded / weights:.2f} and {last / weights:.2f} x the weights; the mapped "
        f"checkpoint counts too)"
    )
    return Verdict(target, True, numbers)


def judge(found):
    """Return the verdicts on what was measured; found: {model name: measurement}."""
    verdicts = []
    if "gpt2-small" in found:
        decode, prefill = found["gpt2-small"]["decode"], found["gpt2-small"]["prefill"]
        verdicts += [
            of_bound(decode[1]),
            against("decode, batch 1: at least 2x transformers", decode[1], TRANSFORMERS, 2.0),
            against(
                "decode, batch 1: no slower than the best float32 peer",
                decode[1],
                FLOAT32_PEERS,
                1.0,
            ),
            against(
                "decode, batch 8: no slower than onnxruntime", decode[8], FLOAT32_PEERS[:1], 1.0
            ),
            against(
                "decode, batch 32: at least 0.9x onnxruntime", decode[32], FLOAT32_PEERS[:1], 0.9
            ),
            against("prefill: no slower than torch", prefill, TORCH, 1.0),
            of_peak(found["gpt2-small"]),
        ]
    if "tiny" in found:
        tiny = found["tiny"]["decode"][1]
        verdicts.append(against("tiny: at least 2.5x the torch twin", tiny, TORCH[:1], 2.5))
    return [*verdicts, of_memory(found)]
