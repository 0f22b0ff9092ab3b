"""The measurement as text: one table a model, then the verdicts and, where needed, profiles."""

from statistics import median

from .verdict import OURS, bounds, cut, paired, rates

SMALL = 0.01  # share of a step below which a part has no line of its own
LOUD = 0.05  # share of the cores used by others, above which a reader is warned


def spread(values):
    """Write median and extremes, cut off."""
    digits = 1 if median(values) < 1000 else 0
    middle, least, most = (cut(f(values), digits) for f in (median, min, max))
    return f"{middle} ({least}-{most})"


def columns(result):
    """List (heading, cell of the measurement, batch) in the order of the table."""
    cells = [(f"decode, batch {batch}", cell, batch) for batch, cell in result["decode"].items()]
    if "prefill" in result:
        cells.append((f"prefill {result['model']['prefill']}", result["prefill"], None))
    return cells


def rows(result):
    """Return the table's rows: one for each peer that ran, and the bound."""
    table = [["tokens/s: median (least-greatest)"] + [head for head, _, _ in columns(result)]]
    names = dict.fromkeys(name for _, cell, _ in columns(result) for name in cell["peers"])
    for name in names:
        row = [name]
        for _, cell, _ in columns(result):
            row.append(spread(rates(cell, name)) if name in cell["peers"] else "-")
        table.append(row)
    bound = ["bound by reading"]
    share = ["ours / bound"]
    for _, cell, batch in columns(result):
        bounded = batch is not None and cell["bandwidth"]
        bound.append(spread(bounds(cell, batch)) if bounded else "-")
        both = bounded and OURS in cell["peers"]
        share.append(cut(paired(rates(cell, OURS), bounds(cell, batch))[0], 3) if both else "-")
    return [*table, bound, share]


def lay_out(table):
    """Pad the columns; a line below the heading."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        "  ".join(
            text.rjust(width) if place else text.ljust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in table
    ]
    return [lines[0], "-" * len(lines[0]), *lines[1:]]


def describe(result):
    """Say what was run, who agreed, who was absent, what it took."""
    model = result["model"]
    yield (
        f"{model['name']}: {model['n_layers']} layers, d_model {model['d_model']}, "
        f"{model['n_heads']} heads, {model['vocab_size']} ids, "
        f"{result['weight_bytes'] / 1e6:.1f} MB of weights a step; "
        f"{model['steps']} greedy steps after {model['prompt']} tokens"
    )
    for name, proofs in result["proofs"].items():
        done = [proof for proof in proofs.values() if "difference" in proof]
        if not all(proof["agrees"] for proof in proofs.values()):
            why = next((p["error"] for p in proofs.values() if "error" in p), "other logits")
            yield f"  NOT TIMED {name}: {why.strip().splitlines()[-1]}"
        if done:
            worst = max(proof["difference"] for proof in done)
            same, of = (sum(proof[key] for proof in done) for key in ("same_tokens", "tokens"))
            yield (
                f"  {name}: logits within {worst:.1e} of the reference (allowed "
                f"{done[0]['tolerance']:.0e}), greedy tokens {same} of {of} the same"
            )
    for name, why in result["absent"].items():
        yield f"  ABSENT {name}: {why.strip().splitlines()[-1]}"


def loudness(result):
    """Warn if the machine was not ours alone."""
    cells = [cell for _, cell, _ in columns(result)]
    strangers = max(cell["strangers"] for cell in cells)
    sleepers = max(cell["sleepers"] for cell in cells)
    text = f"  of the cores, others used {strangers:.1%}, waiting peers {sleepers:.1%} (worst cell)"
    return text + ("  <- THE MACHINE WAS NOT QUIET" if max(strangers, sleepers) > LOUD else "")


def model_text(result):
    """Return everything about one model as lines."""
    lines = list(describe(result)) + [""] + lay_out(rows(result)) + [""]
    for name, memory in result["memory"].items():
        note = result["loads"][name]["note"]
        pools = "; ".join(memory["pools"]) or "no pool that threadpoolctl knows"
        loaded, peak = (f"{m['peak_bytes'] / 1e6:.0f}" for m in (result["loads"][name], memory))
        lines.append(f"  {name}: {note}; peak memory {peak} MB, loading {loaded} MB; {pools}")
    return [*lines, loudness(result), ""]


def verdict_text(verdicts):
    """Return the targets, reached or not, as lines."""
    words = {True: "reached    ", False: "NOT REACHED", None: "not judged "}
    return [f"{words[v.reached]}  {v.target}: {v.numbers}" for v in verdicts]


def profile_text(result):
    """Return where our steps spend their time, as lines."""
    lines = []
    for batch, profile in result.get("profile", {}).items():
        name = result["model"]["name"]
        lines.append(f"{name}, batch {batch}: {profile['seconds'] * 1e3:.3f} ms a step, of which")
        large = {part: share for part, share in profile["shares"].items() if share >= SMALL}
        lines += [f"  {share:6.1%}  {part}" for part, share in large.items()]
        lines.append(f"  {1 - sum(large.values()):6.1%}  what is less than {SMALL:.0%} each")
    return lines
