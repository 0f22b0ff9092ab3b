"""Stage one, the definition: a decoder-only language model in loops, with nothing but `math`.

It is slow, easy to believe, and shares no code with the stages that are held to it. A text of T
tokens is a list of T vectors, a vector a list of floats, a weight [d_in][d_out] a list of rows.
"""

import math
import numbers
from typing import Any

Vectors = list[list[float]]


def softmax(scores: list[float]) -> list[float]:
    """Turn scores into weights that are positive and sum to 1; a score of -inf weighs exactly 0.

        w_i = exp(s_i - max s) / Σ_j exp(s_j - max s)

    Raises:  ValueError for no scores, NaN, +inf, or nothing but -inf
    """
    _check_plain_scores("scores", scores)
    top = max(scores)
    powers = [math.exp(score - top) for score in scores]  # each in [0, 1]: no overflow
    total = math.fsum(powers)
    return [power / total for power in powers]


def causal_attention(queries: Vectors, keys: Vectors, values: Vectors, d_head: int) -> Vectors:
    """Give every token the average of the values up to its own, weighed by query and key.

        out_t = Σ_{s ≤ t} w_s v_s,   w = softmax over s ≤ t of q_t · k_s / √d_head

    Vectors of h · d_head numbers hold h heads side by side: each attends alone, to its own slice.

    Shapes:  queries, keys, values [T][h · d_head] -> [T][h · d_head]
    Raises:  ValueError for no tokens, unequal sizes, or a width that d_head does not divide
    """
    _check_plain_attention(queries, keys, values, d_head)
    outputs = []
    for t, query in enumerate(queries):
        output = []
        for start in range(0, len(query), d_head):
            head = slice(start, start + d_head)
            seen_keys = [key[head] for key in keys[: t + 1]]  # the causal mask: none after t
            seen_values = [value[head] for value in values[: t + 1]]
            scores = [_dot(query[head], key) / math.sqrt(d_head) for key in seen_keys]
            weights = softmax(scores)
            output += [_dot(weights, column) for column in zip(*seen_values, strict=True)]
        outputs.append(output)
    return outputs


def linear(vectors: Vectors, weight: Vectors, bias: list) -> Vectors:
    """Multiply every vector by a matrix and add a bias.

        y_j = Σ_i x_i W_ij + b_j

    Shapes:  vectors [T][d_in], weight [d_in][d_out], bias [d_out] -> [T][d_out]
    Raises:  ValueError for sizes that do not fit each other
    """
    _check_plain_sizes(vectors, weight, bias)
    columns = list(zip(*weight, strict=True))  # [d_out][d_in]
    return [[_dot(x, column) + b for column, b in zip(columns, bias, strict=True)] for x in vectors]


def layer_norm(vectors: Vectors, gain: list, bias: list, epsilon: float = 1e-5) -> Vectors:
    """Give every vector mean 0 and variance 1 over its own numbers, then a learned gain and bias.

        y_i = gain_i (x_i - mean) / √(variance + epsilon) + bias_i,   variance = mean of (x - mean)²

    Shapes:  vectors [T][d], gain [d], bias [d] -> [T][d]
    Raises:  ValueError for sizes that do not fit each other, or an epsilon below 0
    """
    _check_plain_norm(vectors, gain, bias, epsilon)
    outputs = []
    for vector in vectors:
        mean = math.fsum(vector) / len(vector)
        centred = [x - mean for x in vector]
        variance = _dot(centred, centred) / len(vector)  # over d, not d - 1
        scale = 1 / math.sqrt(variance + epsilon)
        outputs.append([g * x * scale + b for g, x, b in zip(gain, centred, bias, strict=True)])
    return outputs


def gelu(value: float) -> float:
    """Bend one number: large ones pass, very negative ones become 0, smoothly in between.

        gelu(x) = x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³)))

    Source:  Hendrycks and Gimpel 2016, the tanh form, as in GPT-2; x Φ(x) is up to 4.7e-4 away
    """
    bent = value + 0.044715 * value * value * value  # where value**3 would raise, this is inf
    return 0.5 * value * (1 + math.tanh(math.sqrt(2 / math.pi) * bent))


def block(tokens: Vectors, params: dict, d_head: int) -> Vectors:
    """Add to every token what it reads in the earlier ones, then what it makes of that itself.

        x = x + attention(layer_norm(x)) W_o + b_o
        x = x + gelu(layer_norm(x) W_1 + b_1) W_2 + b_2

    Args:    params: one entry of the model's "blocks"
    Shapes:  tokens [T][d_model] -> [T][d_model]
    """
    normed = layer_norm(tokens, params["ln1_gain"], params["ln1_bias"])
    queries = linear(normed, params["wq"], params["bq"])
    keys = linear(normed, params["wk"], params["bk"])
    values = linear(normed, params["wv"], params["bv"])
    mixed = causal_attention(queries, keys, values, d_head)
    tokens = _add_vectors(tokens, linear(mixed, params["wo"], params["bo"]))
    normed = layer_norm(tokens, params["ln2_gain"], params["ln2_bias"])
    wide = [[gelu(h) for h in row] for row in linear(normed, params["w1"], params["b1"])]
    return _add_vectors(tokens, linear(wide, params["w2"], params["b2"]))


def forward(token_ids: list[int], params: dict, d_head: int, n_layers: int) -> Vectors:
    """Read a text once and return, after every token, the logits of the one that follows it.

    Shapes:  token_ids [T] -> [T][V]; row t has read tokens 0..t and predicts token t + 1
    Raises:  ValueError for no tokens, an id outside the vocabulary, more tokens than positions, or
             sizes that do not fit; TypeError for an id that is no integer
    """
    _check_plain_text(token_ids, params, d_head, n_layers)
    words = [params["token_embedding"][token_id] for token_id in token_ids]
    places = params["position_embedding"][: len(token_ids)]
    tokens = _add_vectors(words, places)  # [T][d_model]: the residual stream
    for layer in params["blocks"]:
        tokens = block(tokens, layer, d_head)
    normed = layer_norm(tokens, params["final_gain"], params["final_bias"])
    return linear(normed, params["unembedding"], params["unembedding_bias"])


def log_probability(logits: list[float], token_id: int) -> float:
    """Return the natural logarithm of one token's probability, without forming the probability.

        log p = z - max z - log Σ_j exp(z_j - max z)

    Nothing can round to 0 before the logarithm: -500 nats stay -500.
    """
    _check_plain_scores("logits", logits)
    top = max(logits)
    return (logits[token_id] - top) - math.log(math.fsum(math.exp(z - top) for z in logits))


def exact_log_likelihood(token_ids: list[int], params: dict, d_head: int, n_layers: int) -> float:
    """Return log p(text | its first token) in nats, by the chain rule: a sum, nothing clamped.

        log p = Σ_{t ≥ 1} log p(x_t | x_0 ... x_{t-1})

    One pass gives all terms: row t - 1 of the logits never saw x_t. A single token has no terms: 0.
    """
    logits = forward(token_ids, params, d_head, n_layers)
    predicted = zip(logits[:-1], token_ids[1:], strict=True)
    return math.fsum(log_probability(row, next_id) for row, next_id in predicted)


def training_loss(token_ids: list[int], params: dict, d_head: int, n_layers: int) -> float:
    """Return the mean cross-entropy of the next token, in nats per predicted token.

    Raises:  ValueError for fewer than two tokens: there would be nothing to predict
    """
    if len(token_ids) < 2:
        raise ValueError(f"a loss needs two tokens or more, got {list(token_ids)}")
    return -exact_log_likelihood(token_ids, params, d_head, n_layers) / (len(token_ids) - 1)


def perplexity(token_ids: list[int], params: dict, d_head: int, n_layers: int) -> float:
    """Return exp of the mean loss: among how many equally likely tokens the model seems to choose.

    A loss above 709 nats has a perplexity that no float can hold: inf.
    """
    try:
        return math.exp(training_loss(token_ids, params, d_head, n_layers))
    except OverflowError:
        return math.inf


def pick_token(logits: list[float], temperature: float, rng: Any) -> int:
    """Draw one token from softmax(logits / temperature); temperature 0 takes the likeliest.

    Args:    rng: anything whose random() returns a float in [0, 1); not used at temperature 0
    Raises:  ValueError for a temperature that is negative or not finite
    """
    _check_plain_scores("logits", logits)
    _check_plain_temperature(temperature, rng)
    if temperature == 0:
        return max(range(len(logits)), key=lambda token_id: logits[token_id])  # of equals the first
    top = max(logits)
    probs = softmax([(z - top) / temperature for z in logits])  # ≤ 0: can only overflow to -inf
    threshold, reached = rng.random(), 0.0
    for token_id, prob in enumerate(probs):
        reached += prob
        if threshold < reached:  # never at a token of probability 0: it adds nothing
            return token_id
    return max(token_id for token_id, prob in enumerate(probs) if prob > 0)  # rounded to below 1


def generate(
    prompt: list[int],
    params: dict,
    d_head: int,
    n_layers: int,
    count: int,
    temperature: float,
    rng: Any,
) -> list[int]:
    """Continue a text by exactly `count` tokens, reading all of it again for each of them.

    Args:    count: 0 or more; temperature, rng: as `pick_token` takes them
    Shapes:  prompt [T] -> [T + count], the prompt included
    Raises:  ValueError when the text would need more positions than the model has
    """
    _check_plain_text(prompt, params, d_head, n_layers)
    _check_plain_count(count, len(params["position_embedding"]) - len(prompt) + 1)
    _check_plain_temperature(temperature, rng)
    token_ids = list(prompt)
    for _ in range(count):
        logits = forward(token_ids, params, d_head, n_layers)
        token_ids.append(pick_token(logits[-1], temperature, rng))
    return token_ids


def _dot(left: Any, right: Any) -> float:
    return math.fsum(a * b for a, b in zip(left, right, strict=True))


def _add_vectors(left: Vectors, right: Vectors) -> Vectors:
    return [[a + b for a, b in zip(x, y, strict=True)] for x, y in zip(left, right, strict=True)]


def _check_plain_integer(name: str, value: Any) -> None:
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, got {value!r} ({type(value).__name__})")


def _check_plain_scores(name: str, scores: Any) -> None:
    below_inf = all(score < math.inf for score in scores)  # NaN is not
    if not below_inf or max(scores, default=-math.inf) == -math.inf:
        raise ValueError(f"{name} must be numbers below inf, one of them above -inf; got {scores}")


def _check_plain_heads(width: int, d_head: Any) -> None:
    _check_plain_integer("d_head", d_head)
    if d_head < 1 or width % d_head:
        raise ValueError(f"d_model={width} is not divisible by d_head={d_head} into whole heads")


def _check_plain_attention(queries: Any, keys: Any, values: Any, d_head: Any) -> None:
    counts = [len(vectors) for vectors in (queries, keys, values)]
    widths = sorted({len(vector) for vector in [*queries, *keys, *values]})
    if len(set(counts)) > 1 or len(widths) != 1:
        sizes = f"{counts} vectors of {widths} numbers"
        raise ValueError(f"queries, keys and values must have one size [T][width], got {sizes}")
    _check_plain_heads(widths[0], d_head)


def _check_plain_sizes(vectors: Any, weight: Any, bias: Any) -> None:
    widths, rows = ({len(row) for row in table} for table in (vectors, weight))
    if rows != {len(bias)} or not widths <= {len(weight)}:
        got = f"[T]{sorted(widths)}, [{len(weight)}]{sorted(rows)} and [{len(bias)}]"
        raise ValueError(f"wanted vectors [T][d_in], weight [d_in][d_out], bias [d_out]; got {got}")


def _check_plain_norm(vectors: Any, gain: Any, bias: Any, epsilon: Any) -> None:
    sizes = {len(gain), len(bias), *(len(vector) for vector in vectors)}
    if len(sizes) > 1:
        raise ValueError(f"vectors, gain and bias must have one width, got {sorted(sizes)}")
    if not 0 <= epsilon < math.inf:
        raise ValueError(f"epsilon must be 0 or a small positive number, got {epsilon}")


def _check_plain_text(token_ids: Any, params: Any, d_head: Any, n_layers: Any) -> None:
    vocab_size, context = len(params["token_embedding"]), len(params["position_embedding"])
    _check_plain_heads(len(params["token_embedding"][0]), d_head)
    _check_plain_integer("n_layers", n_layers)
    if n_layers != len(params["blocks"]):
        raise ValueError(f"n_layers={n_layers}, but params has {len(params['blocks'])} blocks")
    if len(token_ids) == 0:
        raise ValueError("token_ids is empty: there must be a token to read")
    for index, token_id in enumerate(token_ids):
        _check_plain_integer(f"token_ids[{index}]", token_id)
        if not 0 <= token_id < vocab_size:
            raise ValueError(f"token_ids[{index}]={token_id} is outside [0, {vocab_size})")
    if len(token_ids) > context:
        raise ValueError(f"{len(token_ids)} tokens are more than the model's {context} positions")


def _check_plain_temperature(temperature: Any, rng: Any) -> None:
    real = isinstance(temperature, numbers.Real) and not isinstance(temperature, bool)
    if not real or not 0 <= temperature < math.inf:
        raise ValueError(f"temperature must be a finite number from 0 up, got {temperature!r}")
    if temperature > 0 and not callable(getattr(rng, "random", None)):
        raise TypeError(f"rng must have a method random(), as random.Random(seed), got {rng!r}")


def _check_plain_count(count: Any, room: int) -> None:
    _check_plain_integer("count", count)
    if not 0 <= count <= room:  # room for one more than the positions: the last is never read
        raise ValueError(f"count={count} is outside [0, {room}]: the positions end there")
