"""Check reference/module_03.json against a second computation, in 50-digit arithmetic.

Written from the formulas, not from `generate_module_03.py`: exponentials are not shifted,
frequencies come from a logarithm, the variance from E[x²] - E[x]². A fault would have to be made
twice, in two ways, to pass. Every leaf of the file is compared; a leaf that only one side knows
is a disagreement.

    python reference/crosscheck_module_03.py

Exit codes: 0 all leaves agree, 1 some do not, 2 the file cannot be read.
"""

import sys
from pathlib import Path

from leaf_by_leaf import ALLOWED_ULPS, run
from mpmath import mp, mpf

FILE = Path(__file__).resolve().parent / "module_03.json"


def softmax(scores: list) -> list:
    """exp(s) / Σ exp(s) over the scores that are not masked; a masked one weighs exactly 0."""
    powers = [None if score is None else mp.exp(score) for score in scores]
    total = mp.fsum(power for power in powers if power is not None)
    return [0.0 if power is None else exact(power / total) for power in powers]


def exact(value: mpf) -> mpf | float:
    """Say float where 50 digits find a double exactly: then not even one ulp is forgiven."""
    return float(value) if mpf(float(value)) == value else value


def attention() -> dict:
    tokens = [[1, 0], [0, 1], [1, 1]]
    values = [[1, 0], [0, 2], [3, 1]]
    lower_triangle = [[True, False, False], [True, True, False], [True, True, True]]
    scores = []
    for query, may_read in zip(tokens, lower_triangle, strict=True):
        dots = [mp.fdot(query, key) / mp.sqrt(2) for key in tokens]
        scores.append([dot if may else None for dot, may in zip(dots, may_read, strict=True)])
    weights = [softmax(row) for row in scores]
    output = [[mp.fdot(row, column) for column in zip(*values, strict=True)] for row in weights]
    return {
        "q": floats(tokens),
        "k": floats(tokens),
        "v": floats(values),
        "allowed": lower_triangle,
        "scores": [[None if s is None else exact(s) for s in row] for row in scores],
        "weights": weights,
        "output": [[exact(value) for value in row] for row in output],
    }


def floats(table: list[list[int]]) -> list[list[float]]:
    return [[float(value) for value in row] for row in table]


def layer_norm() -> dict:
    x = [mpf(1), mpf(2), mpf(3), mpf(4)]
    mean = mp.fsum(x) / len(x)
    variance = mp.fsum(x, squared=True) / len(x) - mean**2  # E[x²] - E[x]²
    return {
        "input": [1.0, 2.0, 3.0, 4.0],
        "mean": exact(mean),
        "variance": exact(variance),
        "normalized": [(value - mean) / mp.sqrt(variance) for value in x],
    }


def next_token_nll() -> dict:
    logits = [mpf("1.2"), mpf("0.3"), mpf("-0.4"), mpf("2.0")]
    target = 3
    return {
        "logits": [1.2, 0.3, -0.4, 2.0],
        "target": target,
        "probabilities": softmax(logits),
        "nll": mp.log(mp.fsum(mp.exp(logit) for logit in logits)) - logits[target],
    }


def parameter_floor() -> dict:
    """Count matrix by matrix: an attention has Wq, Wk, Wv, Wo; an FFN goes up and down."""
    d_model, d_ff = 512, 2048
    square = d_model * d_model
    attention_weights = sum(square for _ in ("Wq", "Wk", "Wv", "Wo"))
    ffn_weights = d_model * d_ff + d_ff * d_model
    return {
        "d_model": d_model,
        "d_ff": d_ff,
        "mha_weights": attention_weights,
        "ffn_weights": ffn_weights,
        "encoder_layer": attention_weights + ffn_weights,
        "decoder_layer": attention_weights + attention_weights + ffn_weights,
        "ffn_share_encoder": mpf(ffn_weights) / (attention_weights + ffn_weights),
    }


def positional_encoding() -> dict:
    length, d_model = 5, 4
    log_base = mp.log(10_000)

    def entry(position: int, column: int) -> mpf | float:
        frequency = mp.exp(-log_base * (column - column % 2) / d_model)
        wave = mp.cos if column % 2 else mp.sin
        return exact(wave(position * frequency))

    table = [[entry(position, column) for column in range(d_model)] for position in range(length)]
    return {"length": length, "d_model": d_model, "table": table}


def scaling_experiment() -> dict:
    """q·k sums d_k products of independent standard normals: variance d_k·1·1."""
    d_k = 64
    return {
        "d_k": d_k,
        "samples": 50_000,
        "seed": 18,
        "relative_tolerance": 0.08,
        "unscaled_variance_target": float(d_k),
        "scaled_variance_target": exact(d_k / mp.sqrt(d_k) ** 2),
    }


def tiny_lm() -> dict:
    return {
        "period": [0, 1, 2, 3, 4, 5],
        "vocab_size": 6,
        "training_repeats": 20,
        "context": 12,
        "steps": 121,
        "learning_rate": 0.03,
        "seed": 18,
        "new_tokens": 15,
        "loss_threshold": 0.02,
        "accuracy_threshold": 0.99,
        "continuation_accuracy_threshold": 0.95,
    }


def expected() -> dict:
    """Every leaf the file must have: mpf where rounding is forgiven, exact values elsewhere."""
    return {
        "schema_version": 1,
        "attention": attention(),
        "layer_norm": layer_norm(),
        "next_token_nll": next_token_nll(),
        "parameter_floor": parameter_floor(),
        "positional_encoding": positional_encoding(),
        "scaling_experiment": scaling_experiment(),
        "tiny_lm": tiny_lm(),
    }


if __name__ == "__main__":
    sys.exit(run(FILE, expected, f"floats within {ALLOWED_ULPS} ulps"))
