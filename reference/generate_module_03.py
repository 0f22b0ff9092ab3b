"""Write reference/module_03.json: the numbers that Module 3 is held to.

Nothing here but Python floats and `math`, so that no library the course teaches can vouch for
itself. `crosscheck_module_03.py` computes the same numbers a second time, in 50 digits.

    python reference/generate_module_03.py            write module_03.json
    python reference/generate_module_03.py --check    compare, write nothing

Exit codes: 0 done, 1 module_03.json is missing or differs, 2 the numbers computed here are not
the ones pinned in SHA256SUMS (nothing is written).
"""

import math
import sys

from pinned_file import run

NAME = "module_03.json"


def softmax(scores: list[float | None]) -> list[float]:
    """Turn scores into weights that sum to 1; a masked score (None) weighs exactly 0."""
    highest = max(score for score in scores if score is not None)
    powers = [0.0 if score is None else math.exp(score - highest) for score in scores]
    total = math.fsum(powers)
    return [power / total for power in powers]


def attention() -> dict[str, object]:
    """Causal attention of three tokens with d_k = d_v = 2: the module's running example."""
    q = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    k = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    v = [[1.0, 0.0], [0.0, 2.0], [3.0, 1.0]]
    allowed = [[key <= query for key in range(len(k))] for query in range(len(q))]
    scores = [
        [dot(q[i], k[j]) / math.sqrt(len(q[i])) if allowed[i][j] else None for j in range(len(k))]
        for i in range(len(q))
    ]
    weights = [softmax(row) for row in scores]
    columns = list(zip(*v, strict=True))
    output = [[dot(row, column) for column in columns] for row in weights]
    return {
        "q": q,
        "k": k,
        "v": v,
        "allowed": allowed,
        "scores": scores,
        "weights": weights,
        "output": output,
    }


def dot(left: list[float], right: list[float]) -> float:
    return math.fsum(a * b for a, b in zip(left, right, strict=True))


def layer_norm() -> dict[str, object]:
    """Normalise 1, 2, 3, 4 with the biased variance and eps = 0."""
    x = [1.0, 2.0, 3.0, 4.0]
    mean = math.fsum(x) / len(x)
    variance = math.fsum((value - mean) ** 2 for value in x) / len(x)
    normalized = [(value - mean) / math.sqrt(variance) for value in x]
    return {"input": x, "mean": mean, "variance": variance, "normalized": normalized}


def next_token_nll() -> dict[str, object]:
    """Four logits, their probabilities and the nats paid when token 3 comes next."""
    logits = [1.2, 0.3, -0.4, 2.0]
    target = 3
    probabilities = softmax(logits)
    nll = -math.log(probabilities[target])
    return {"logits": logits, "target": target, "probabilities": probabilities, "nll": nll}


def parameter_floor() -> dict[str, object]:
    """Count the matrix weights of one layer: biases and gains left out."""
    d_model, d_ff = 512, 2048
    mha_weights = 4 * d_model * d_model
    ffn_weights = 2 * d_model * d_ff
    return {
        "d_model": d_model,
        "d_ff": d_ff,
        "mha_weights": mha_weights,
        "ffn_weights": ffn_weights,
        "encoder_layer": mha_weights + ffn_weights,
        "decoder_layer": 2 * mha_weights + ffn_weights,
        "ffn_share_encoder": ffn_weights / (mha_weights + ffn_weights),
    }


def positional_encoding() -> dict[str, object]:
    """Sine in even columns, cosine in odd ones; each pair shares one frequency."""
    length, d_model, base = 5, 4, 10_000.0
    table = []
    for position in range(length):
        row = []
        for even in range(0, d_model, 2):
            angle = position / base ** (even / d_model)
            row += [math.sin(angle), math.cos(angle)]
        table.append(row)
    return {"length": length, "d_model": d_model, "table": table}


def scaling_experiment() -> dict[str, object]:
    """What the variance of q·k must be before and after the division by √d_k."""
    d_k = 64
    return {
        "d_k": d_k,
        "samples": 50_000,
        "seed": 18,
        "relative_tolerance": 0.08,
        "unscaled_variance_target": float(d_k),
        "scaled_variance_target": 1.0,
    }


def tiny_lm() -> dict[str, object]:
    """The bounded overfit: what it trains on, how long, and what counts as learned."""
    period = list(range(6))
    return {
        "period": period,
        "vocab_size": len(period),
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


def facts() -> dict[str, object]:
    """Everything that the file says."""
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
    sys.exit(run(NAME, facts, __doc__, sys.argv[1:]))
