"""Check reference/module_04.json against a second computation, in 50-digit arithmetic.

Written from the formulas, not from `generate_module_04.py`, and another way round: the draws come
from a closed form, the text is read token by token with remembered keys and values, exponentials
are not shifted, the variance is E[x²] - E[x]², GELU a logistic function, perplexity a root of a
product, and FLOPs are counted position by position. A fault would have to be made twice, in two
ways, to pass. Every float must be right to the last of its 12 decimals.

    python reference/crosscheck_module_04.py

Exit codes: 0 all leaves agree, 1 some do not, 2 the file cannot be read.
"""

import sys
from pathlib import Path

from leaf_by_leaf import run
from mpmath import mp, mpf

FILE = Path(__file__).resolve().parent / "module_04.json"
DECIMALS = 12
SEED = 2354
TEXT = [3, 1, 4, 1, 5, 2, 0, 5]

SQUARE, ROW = (4, 4), (4,)
BLOCK = {
    "ln1_gain": ROW,
    "ln1_bias": ROW,
    **{f"{kind}{name}": size for name in "qkvo" for kind, size in (("w", SQUARE), ("b", ROW))},
    "ln2_gain": ROW,
    "ln2_bias": ROW,
    "w1": (4, 8),
    "b1": (8,),
    "w2": (8, 4),
    "b2": ROW,
}


def decimals(value: object) -> float:
    """The float nearest to the value's 12 decimals; an integer over a power of ten is exact."""
    return int(mp.nint(value * 10**DECIMALS)) / 10**DECIMALS


def all_decimals(values: list) -> list:
    return [all_decimals(v) if isinstance(v, list) else decimals(v) for v in values]


# --- the parameters ---


class Draws:
    """The n-th draw is (75ⁿ · seed mod 65537) mod 17, less 8, in eighths."""

    def __init__(self) -> None:
        self.taken = 0

    def table(self, shape: tuple[int, ...]) -> list:
        if len(shape) > 1:
            return [self.table(shape[1:]) for _ in range(shape[0])]
        first = self.taken + 1
        self.taken += shape[0]
        states = [pow(75, n, 65537) * SEED % 65537 for n in range(first, first + shape[0])]
        return [mpf(state % 17 - 8) / 8 for state in states]

    def named(self, name: str, shape: tuple[int, ...]) -> list:
        drawn = self.table(shape)
        return [1 + value / 2 for value in drawn] if name.endswith("gain") else drawn


def parameters() -> dict:
    draws = Draws()
    model = {"token_embedding": draws.table((6, 4)), "position_embedding": draws.table((8, 4))}
    model["blocks"] = [
        {name: draws.named(name, shape) for name, shape in BLOCK.items()} for _ in range(2)
    ]
    end = {"final_gain": ROW, "final_bias": ROW, "unembedding": (4, 6), "unembedding_bias": (6,)}
    return model | {name: draws.named(name, shape) for name, shape in end.items()}


def in_floats(value: object) -> object:
    """Parameters as the file has them: every one is a float exactly."""
    if isinstance(value, dict):
        return {key: in_floats(inner) for key, inner in value.items()}
    return [in_floats(inner) for inner in value] if isinstance(value, list) else float(value)


# --- the model, one token at a time ---


class Reader:
    """Reads tokens one after another; what a token leaves behind is its keys and values."""

    def __init__(self, model: dict) -> None:
        self.model = model
        self.remembered = [([], []) for _ in model["blocks"]]  # a layer's keys, its values
        self.position = 0

    def read(self, token: int) -> list:
        """Logits after this token."""
        at = self.model["position_embedding"][self.position]
        self.position += 1
        stream = plus(self.model["token_embedding"][token], at)
        for block, (keys, values) in zip(self.model["blocks"], self.remembered, strict=True):
            normed = standard(stream, block["ln1_gain"], block["ln1_bias"])
            keys.append(product(normed, block["wk"], block["bk"]))
            values.append(product(normed, block["wv"], block["bv"]))
            heard = two_heads(product(normed, block["wq"], block["bq"]), keys, values)
            stream = plus(stream, product(heard, block["wo"], block["bo"]))
            normed = standard(stream, block["ln2_gain"], block["ln2_bias"])
            wide = [logistic_gelu(value) for value in product(normed, block["w1"], block["b1"])]
            stream = plus(stream, product(wide, block["w2"], block["b2"]))
        normed = standard(stream, self.model["final_gain"], self.model["final_bias"])
        return product(normed, self.model["unembedding"], self.model["unembedding_bias"])


def plus(left: list, right: list) -> list:
    return [mp.fsum(pair) for pair in zip(left, right, strict=True)]


def product(vector: list, weight: list, bias: list) -> list:
    """Row by row: each number of the vector scales a row of the weight."""
    total = list(bias)
    for value, row in zip(vector, weight, strict=True):
        total = [so_far + value * entry for so_far, entry in zip(total, row, strict=True)]
    return total


def standard(vector: list, gain: list, bias: list) -> list:
    mean = mp.fsum(vector) / 4
    variance = mp.fsum(vector, squared=True) / 4 - mean**2  # E[x²] - E[x]²
    deviation = mp.sqrt(variance + mpf(1) / 100_000)
    return [bias[i] + gain[i] * (vector[i] - mean) / deviation for i in range(4)]


def logistic_gelu(x: mpf) -> mpf:
    """(1 + tanh u)/2 is the logistic function of 2u."""
    u = mp.sqrt(2 / mp.pi) * (x + mpf("0.044715") * x**3)
    return x / (1 + mp.exp(-2 * u))


def two_heads(query: list, keys: list, values: list) -> list:
    """Columns 0, 1 are the first head's and 2, 3 the second's."""
    heard = []
    for columns in ((0, 1), (2, 3)):
        scores = [mp.fsum(query[c] * key[c] for c in columns) / mp.sqrt(2) for key in keys]
        total = mp.fsum(mp.exp(score) for score in scores)
        for c in columns:
            mix = mp.fsum(
                mp.exp(score) * value[c] for score, value in zip(scores, values, strict=True)
            )
            heard.append(mix / total)
    return heard


# --- what the file must say ---


def text(model: dict) -> dict:
    reader = Reader(model)
    logits = [reader.read(token) for token in TEXT]
    chances = [
        mp.exp(row[following]) / mp.fsum(mp.exp(z) for z in row)
        for row, following in zip(logits[:-1], TEXT[1:], strict=True)
    ]
    whole = mp.fprod(chances)
    return {
        "token_ids": TEXT,
        "logits": all_decimals(logits),
        "log_probabilities": [decimals(mp.log(chance)) for chance in chances],
        "log_likelihood": decimals(mp.log(whole)),
        "mean_loss": decimals(mp.log(1 / whole) / 7),
        "perplexity": decimals(mp.root(1 / whole, 7)),
    }


def greedy(model: dict) -> dict:
    reader = Reader(model)
    written = [3, 1]
    for token in written:
        logits = reader.read(token)
    for _ in range(6):
        written.append(max(range(6), key=lambda token: logits[token]))
        logits = reader.read(written[-1])
    return {"prompt": [3, 1], "max_new_tokens": 6, "token_ids": written}


def sampling(model: dict) -> dict:
    reader = Reader(model)
    for token in TEXT:
        logits = reader.read(token)
    total = mp.fsum(mp.exp(z) for z in logits)
    chances = {token: mp.exp(z) / total for token, z in enumerate(logits)}
    settings = [
        distribution(chances, "1.0", None, None),
        distribution(chances, "0.7", 4, None),
        distribution(chances, "1.0", None, "0.8"),
        distribution(chances, "0.8", 4, "0.9"),
    ]
    return {"logits": all_decimals(logits), "settings": settings}


def distribution(chances: dict, temperature: str, top_k: int | None, top_p: str | None) -> dict:
    """Heat is a power of the probabilities; survivors are taken off a ranking one by one."""
    heated = {token: mp.power(chance, 1 / mpf(temperature)) for token, chance in chances.items()}
    ranking = sorted(heated, key=heated.get, reverse=True)
    ranking = ranking[: top_k or 6]
    pool = mp.fsum(heated[token] for token in ranking)
    kept, mass = [], mpf(0)
    for token in ranking:
        if top_p is None or mass < mpf(top_p):
            kept.append(token)
            mass += heated[token] / pool
    remaining = mp.fsum(heated[token] for token in kept)
    return {
        "temperature": float(temperature),
        "top_k": top_k,
        "top_p": None if top_p is None else float(top_p),
        "kept": kept,
        "probs": [decimals(heated[t] / remaining) if t in kept else 0.0 for t in range(6)],
    }


def gelu() -> dict:
    """x Φ(x) against the tanh form; the grid has 256 steps a unit."""
    points = [-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0]
    grid = [mpf(step) / 256 for step in range(6 * 256 + 1)]
    largest, at = max((abs(x * mp.ncdf(x) - logistic_gelu(x)), x) for x in grid)
    return {
        "x": points,
        "erf": [decimals(x * mp.ncdf(x)) for x in points],
        "tanh": [decimals(logistic_gelu(mpf(x))) for x in points],
        "grid": {"start": 0.0, "stop": 6.0, "steps": 1536},
        "max_difference": decimals(largest),
        "max_difference_at": decimals(at),
    }


def count_numbers(value: object) -> int:
    if isinstance(value, dict):
        return sum(count_numbers(inner) for inner in value.values())
    return sum(count_numbers(inner) for inner in value) if isinstance(value, list) else 1


def parameter_count(model: dict) -> dict:
    """Tiny: every number of the dict. GPT-2 small: tensor by tensor, as its checkpoint has them."""
    layer = [768, 768, 768 * 2304, 2304, 768 * 768, 768]  # ln_1, c_attn, c_proj
    layer += [768, 768, 768 * 3072, 3072, 3072 * 768, 768]  # ln_2, c_fc, c_proj
    gpt2_small = 50257 * 768 + 1024 * 768 + 12 * sum(layer) + 768 + 768
    return {"tiny": count_numbers(model), "gpt2_small": gpt2_small}


def cache_bytes() -> list[dict]:
    """Bytes of one head's keys, times all there is of them, times two."""
    one_head = {"tiny": (8 * 2, 2 * 2), "gpt2_small": (1024 * 64, 12 * 12)}
    rows = []
    for model, batch, width in (
        ("tiny", 1, 2),
        ("tiny", 3, 4),
        ("gpt2_small", 1, 2),
        ("gpt2_small", 8, 4),
    ):
        numbers, heads = one_head[model]
        total = numbers * width * heads * batch * 2
        rows.append({"model": model, "batch": batch, "bytes_per_value": width, "bytes": total})
    return rows


MATRICES = {  # rows x columns of everything that a token is multiplied by
    "tiny": [*([(4, 4)] * 4 + [(4, 8), (8, 4)]) * 2, (4, 6)],
    "gpt2_small": [*([(768, 2304), (768, 768), (768, 3072), (3072, 768)] * 12), (768, 50257)],
}
ATTENTION = {"tiny": (2, 2, 2), "gpt2_small": (12, 12, 64)}  # layers, heads, d_head


def position_flops(model: str, position: int) -> int:
    """Two for each multiply-accumulate of one token, which reads position + 1 keys and values."""
    layers, heads, d_head = ATTENTION[model]
    products = sum(rows * columns for rows, columns in MATRICES[model])
    attention = layers * heads * (position + 1) * (d_head + d_head)
    return 2 * (products + attention)


def flops() -> list[dict]:
    """Naive: the pass before each new token reads every position so far once more."""
    rows = []
    for model, prompt, new in (
        ("tiny", 2, 6),
        ("gpt2_small", 64, 64),
        ("gpt2_small", 1, 1024),
    ):
        costs = [position_flops(model, position) for position in range(prompt + new - 1)]
        times_read = [min(new, prompt + new - 1 - position) for position in range(len(costs))]
        rows.append(
            {
                "model": model,
                "prompt_tokens": prompt,
                "new_tokens": new,
                "naive": sum(times * cost for times, cost in zip(times_read, costs, strict=True)),
                "cached": sum(costs),
            }
        )
    return rows


def arithmetic_intensity() -> list[dict]:
    """P cancels: each parameter is read once and used in two operations for each text."""
    return [
        {
            "parameters": 124_439_808,
            "batch": batch,
            "bytes_per_parameter": width,
            "flops_per_byte": float(mpf(2 * batch) / width),
        }
        for width, batch in ((2, 1), (2, 8), (2, 64), (4, 1), (4, 8), (4, 64))
    ]


def expected() -> dict:
    """Every leaf the file must have."""
    model = parameters()
    return {
        "schema_version": 1,
        "shape": {
            "n_layers": 2,
            "d_model": 4,
            "n_heads": 2,
            "d_head": 2,
            "d_ff": 8,
            "context_length": 8,
            "vocab_size": 6,
        },
        "parameters": in_floats(model),
        "text": text(model),
        "greedy": greedy(model),
        "sampling": sampling(model),
        "gelu": gelu(),
        "parameter_count": parameter_count(model),
        "cache_bytes": cache_bytes(),
        "flops": flops(),
        "arithmetic_intensity": arithmetic_intensity(),
    }


if __name__ == "__main__":
    sys.exit(run(FILE, expected, f"every float right to {DECIMALS} decimals"))
