"""Write reference/module_04.json: the numbers that every stage of Module 4's model is held to.

Nothing here but Python floats and `math`, and nothing of the library that the course teaches. A
number is computed in 64 bits and kept to 12 decimals: the last digits of `exp`, `log` and `tanh`,
which differ from one C library to another, never reach the file. `crosscheck_module_04.py`
computes every digit a second time, from 50.

    python reference/generate_module_04.py            write module_04.json
    python reference/generate_module_04.py --check    compare, write nothing

Exit codes: 0 done, 1 module_04.json is missing or differs, 2 the numbers computed here are not
the ones pinned in SHA256SUMS (nothing is written).
"""

import math
import sys
from collections.abc import Callable, Iterator

from pinned_file import run

NAME = "module_04.json"
DECIMALS = 12
EPSILON = 1e-5

N_LAYERS, D_MODEL, N_HEADS, D_FF, CONTEXT, VOCAB = 2, 4, 2, 8, 8, 6
D_HEAD = D_MODEL // N_HEADS
TEXT = [3, 1, 4, 1, 5, 2, 0, 5]  # all six tokens, all eight positions
PROMPT = TEXT[:2]

# A seed that makes a model worth testing: its greedy text is not constant and never near a tie,
# no nucleus ends near its threshold, and no pinned number lies near the middle of two roundings.
MULTIPLIER, MODULUS, SEED = 75, 65537, 2354

GPT2_SMALL = {"n_layers": 12, "d_model": 768, "d_ff": 3072, "context": 1024, "vocab": 50257}
TINY = {"n_layers": N_LAYERS, "d_model": D_MODEL, "d_ff": D_FF, "context": CONTEXT, "vocab": VOCAB}

Vector = list[float]
Matrix = list[Vector]


# --- the parameters ---


def eighths() -> Iterator[float]:
    """Draw k/8 without end, k from -8 to 8: exact in binary, three decimals in the file.

    state ← 75 state mod 65537,   k = state mod 17 - 8
    """
    state = SEED
    while True:
        state = MULTIPLIER * state % MODULUS
        yield (state % 17 - 8) / 8


def parameters() -> dict[str, object]:
    """Draw the model row by row, in the order of its keys here; gains are 1 + half a draw."""
    draws = eighths()

    def vector(width: int) -> Vector:
        return [next(draws) for _ in range(width)]

    def gain() -> Vector:
        return [1 + draw / 2 for draw in vector(D_MODEL)]

    def matrix(rows: int, columns: int) -> Matrix:
        return [vector(columns) for _ in range(rows)]

    return {
        "token_embedding": matrix(VOCAB, D_MODEL),
        "position_embedding": matrix(CONTEXT, D_MODEL),
        "blocks": [block_parameters(vector, gain, matrix) for _ in range(N_LAYERS)],
        "final_gain": gain(),
        "final_bias": vector(D_MODEL),
        "unembedding": matrix(D_MODEL, VOCAB),
        "unembedding_bias": vector(VOCAB),
    }


def block_parameters(vector: Callable, gain: Callable, matrix: Callable) -> dict[str, object]:
    """Draw one block; a weight is stored [d_in][d_out]."""
    return {
        "ln1_gain": gain(),
        "ln1_bias": vector(D_MODEL),
        "wq": matrix(D_MODEL, D_MODEL),
        "bq": vector(D_MODEL),
        "wk": matrix(D_MODEL, D_MODEL),
        "bk": vector(D_MODEL),
        "wv": matrix(D_MODEL, D_MODEL),
        "bv": vector(D_MODEL),
        "wo": matrix(D_MODEL, D_MODEL),
        "bo": vector(D_MODEL),
        "ln2_gain": gain(),
        "ln2_bias": vector(D_MODEL),
        "w1": matrix(D_MODEL, D_FF),
        "b1": vector(D_FF),
        "w2": matrix(D_FF, D_MODEL),
        "b2": vector(D_MODEL),
    }


# --- the model ---


def softmax(scores: list[float | None]) -> Vector:
    """Turn scores into weights that sum to 1; a masked score (None) weighs exactly 0."""
    highest = max(score for score in scores if score is not None)
    powers = [0.0 if score is None else math.exp(score - highest) for score in scores]
    total = math.fsum(powers)
    return [power / total for power in powers]


def dot(left: Vector, right: Vector) -> float:
    return math.fsum(a * b for a, b in zip(left, right, strict=True))


def affine(x: Vector, weight: Matrix, bias: Vector) -> Vector:
    """One token times a weight [d_in][d_out], plus a bias."""
    columns = zip(*weight, strict=True)
    return [dot(x, column) + b for column, b in zip(columns, bias, strict=True)]


def normalize(x: Vector, gain: Vector, bias: Vector) -> Vector:
    """Mean 0 and biased variance 1 over one token's numbers, then gain and bias."""
    mean = math.fsum(x) / len(x)
    variance = math.fsum((value - mean) ** 2 for value in x) / len(x)
    root = math.sqrt(variance + EPSILON)
    return [g * (value - mean) / root + b for value, g, b in zip(x, gain, bias, strict=True)]


def gelu_tanh(x: float) -> float:
    return x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def gelu_erf(x: float) -> float:
    return x / 2 * (1 + math.erf(x / math.sqrt(2)))


def attend(q: Matrix, k: Matrix, v: Matrix) -> Matrix:
    """One head: each token mixes the values of the tokens up to itself."""
    mixed = []
    for i in range(len(q)):
        scores = [
            dot(q[i], k[j]) / math.sqrt(D_HEAD) if j <= i else None  # None: not allowed to read
            for j in range(len(k))
        ]
        mixed.append([dot(softmax(scores), column) for column in zip(*v, strict=True)])
    return mixed


def through_block(x: Matrix, p: dict) -> Matrix:
    """Attention and feed-forward of one layer, each added to the stream."""
    normed = [normalize(row, p["ln1_gain"], p["ln1_bias"]) for row in x]
    q, k, v = ([affine(row, p[f"w{name}"], p[f"b{name}"]) for row in normed] for name in "qkv")
    heads = []
    for first in range(0, D_MODEL, D_HEAD):
        slices = ([row[first : first + D_HEAD] for row in rows] for rows in (q, k, v))
        heads.append(attend(*slices))
    merged = [[value for head in heads for value in head[i]] for i in range(len(x))]
    x = [add(row, affine(mix, p["wo"], p["bo"])) for row, mix in zip(x, merged, strict=True)]
    normed = [normalize(row, p["ln2_gain"], p["ln2_bias"]) for row in x]
    wide = [[gelu_tanh(h) for h in affine(row, p["w1"], p["b1"])] for row in normed]
    return [add(row, affine(h, p["w2"], p["b2"])) for row, h in zip(x, wide, strict=True)]


def add(left: Vector, right: Vector) -> Vector:
    return [a + b for a, b in zip(left, right, strict=True)]


def logits_of(token_ids: list[int], p: dict) -> Matrix:
    """Logits [T][V]; row t predicts token t + 1."""
    x = [
        add(p["token_embedding"][token], p["position_embedding"][place])
        for place, token in enumerate(token_ids)
    ]
    for block in p["blocks"]:
        x = through_block(x, block)
    normed = [normalize(row, p["final_gain"], p["final_bias"]) for row in x]
    return [affine(row, p["unembedding"], p["unembedding_bias"]) for row in normed]


# --- what is pinned ---


def shape() -> dict[str, object]:
    return {
        "n_layers": N_LAYERS,
        "d_model": D_MODEL,
        "n_heads": N_HEADS,
        "d_head": D_HEAD,
        "d_ff": D_FF,
        "context_length": CONTEXT,
        "vocab_size": VOCAB,
    }


def text(p: dict) -> dict[str, object]:
    """One text of the whole context: what the model says of each token, in nats."""
    logits = logits_of(TEXT, p)
    log_probabilities = []
    for row, token in zip(logits[:-1], TEXT[1:], strict=True):
        top = max(row)
        log_probabilities.append(
            row[token] - top - math.log(math.fsum(math.exp(z - top) for z in row))
        )
    total = math.fsum(log_probabilities)
    return {
        "token_ids": TEXT,
        "logits": logits,
        "log_probabilities": log_probabilities,
        "log_likelihood": total,
        "mean_loss": -total / len(log_probabilities),
        "perplexity": math.exp(-total / len(log_probabilities)),
    }


def greedy(p: dict) -> dict[str, object]:
    """Follow the likeliest token until the context is full."""
    token_ids = list(PROMPT)
    while len(token_ids) < CONTEXT:
        row = logits_of(token_ids, p)[-1]
        token_ids.append(row.index(max(row)))
    return {"prompt": PROMPT, "max_new_tokens": CONTEXT - len(PROMPT), "token_ids": token_ids}


def sampling(p: dict) -> dict[str, object]:
    """What the token after the text is drawn from: temperature, then top-k, then top-p."""
    row = logits_of(TEXT, p)[-1]
    settings = [(1.0, None, None), (0.7, 4, None), (1.0, None, 0.8), (0.8, 4, 0.9)]
    return {"logits": row, "settings": [distribution(row, *setting) for setting in settings]}


def distribution(
    row: Vector, temperature: float, top_k: int | None, top_p: float | None
) -> dict[str, object]:
    """Kept ids, the likeliest first, and the probability of every token: 0 for the others."""
    kept = sorted(range(len(row)), key=lambda token: -row[token])[:top_k]
    probs = softmax([row[token] / temperature for token in kept])
    if top_p is not None:
        mass = [math.fsum(probs[: count + 1]) for count in range(len(probs))]
        kept = kept[: sum(reached < top_p for reached in mass) + 1]
        probs = softmax([row[token] / temperature for token in kept])
    table = dict(zip(kept, probs, strict=True))
    return {
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "kept": kept,
        "probs": [table.get(token, 0.0) for token in range(len(row))],
    }


def gelu() -> dict[str, object]:
    """The two GELUs: some values, and where on a grid of 0 ... 6 they differ most."""
    points = [-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0]
    stop, steps = 6.0, 1536
    grid = [step * stop / steps for step in range(steps + 1)]
    differences = [abs(gelu_erf(x) - gelu_tanh(x)) for x in grid]
    largest = max(differences)
    return {
        "x": points,
        "erf": [gelu_erf(x) for x in points],
        "tanh": [gelu_tanh(x) for x in points],
        "grid": {"start": 0.0, "stop": stop, "steps": steps},
        "max_difference": largest,
        "max_difference_at": grid[differences.index(largest)],
    }


def cache_bytes() -> list[dict[str, object]]:
    """A full cache: keys and values of every layer, text and position."""
    rows = []
    for model, sizes, batch, width in (
        ("tiny", TINY, 1, 2),
        ("tiny", TINY, 3, 4),
        ("gpt2_small", GPT2_SMALL, 1, 2),
        ("gpt2_small", GPT2_SMALL, 8, 4),
    ):
        total = 2 * sizes["n_layers"] * batch * sizes["context"] * sizes["d_model"] * width
        rows.append({"model": model, "batch": batch, "bytes_per_value": width, "bytes": total})
    return rows


def flops(sizes: dict[str, int], length: int) -> int:
    """One pass over `length` tokens: twice the multiply-accumulates of all matrix products.

    A token costs 4 d² (q, k, v, o) and 2 d d_ff a layer, and d V for its logits; each of the
    T(T + 1)/2 pairs that the causal mask allows costs d for its score and d for its value.
    """
    d, pairs = sizes["d_model"], length * (length + 1) // 2
    a_token = sizes["n_layers"] * (4 * d * d + 2 * d * sizes["d_ff"]) + d * sizes["vocab"]
    return 2 * (length * a_token + sizes["n_layers"] * pairs * 2 * d)


def flop_counts() -> list[dict[str, object]]:
    """Generate new tokens after a prompt, reading all again each time or every token once."""
    rows = []
    for model, sizes, prompt, new in (
        ("tiny", TINY, 2, 6),
        ("gpt2_small", GPT2_SMALL, 64, 64),
        ("gpt2_small", GPT2_SMALL, 1, 1024),
    ):
        rows.append(
            {
                "model": model,
                "prompt_tokens": prompt,
                "new_tokens": new,
                "naive": sum(flops(sizes, length) for length in range(prompt, prompt + new)),
                "cached": flops(sizes, prompt + new - 1),  # the last token is written, never read
            }
        )
    return rows


def parameter_count(sizes: dict[str, int], tied: bool) -> int:
    """Count every number of the model; a tied unembedding is the token embedding, without bias."""
    d, d_ff, vocab = sizes["d_model"], sizes["d_ff"], sizes["vocab"]
    a_layer = 4 * (d * d + d) + (d * d_ff + d_ff) + (d_ff * d + d) + 2 * 2 * d
    unembedding = 0 if tied else d * vocab + vocab
    return (vocab + sizes["context"]) * d + sizes["n_layers"] * a_layer + 2 * d + unembedding


def arithmetic_intensities() -> list[dict[str, object]]:
    """FLOPs per byte of one decode step: 2 P batch over the bytes of P parameters, read once."""
    count = parameter_count(GPT2_SMALL, tied=True)
    return [
        {
            "parameters": count,
            "batch": batch,
            "bytes_per_parameter": width,
            "flops_per_byte": 2 * count * batch / (count * width),
        }
        for width in (2, 4)
        for batch in (1, 8, 64)
    ]


def rounded(value: object) -> object:
    """Keep 12 decimals of every float, however deep."""
    if isinstance(value, dict):
        return {key: rounded(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [rounded(inner) for inner in value]
    return round(value, DECIMALS) if isinstance(value, float) else value


def facts() -> dict[str, object]:
    """Everything that the file says, from one draw of the parameters."""
    p = parameters()
    tiny, gpt2 = parameter_count(TINY, tied=False), parameter_count(GPT2_SMALL, tied=True)
    computed = {
        "schema_version": 1,
        "shape": shape(),
        "parameters": p,
        "text": text(p),
        "greedy": greedy(p),
        "sampling": sampling(p),
        "gelu": gelu(),
        "parameter_count": {"tiny": tiny, "gpt2_small": gpt2},
        "cache_bytes": cache_bytes(),
        "flops": flop_counts(),
        "arithmetic_intensity": arithmetic_intensities(),
    }
    return rounded(computed)


if __name__ == "__main__":
    sys.exit(run(NAME, facts, __doc__, sys.argv[1:]))
