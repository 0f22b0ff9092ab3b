"""What a decoder's work costs in operations and bytes: by formula, and counted as it happens."""

import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from course_lib.decoder_lm.shape import ModelShape

# What the product with each matrix is spent on; all other products belong to attention.
MATRIX_TERMS = dict.fromkeys(("wq", "wk", "wv", "wo", "w1", "w2"), "linear") | {
    "unembedding": "unembedding"
}
# What a sum becomes when one of these biases has been added to it: queries, keys and values.
BIAS_ROLES = {"bq": "q", "bk": "k", "bv": "v"}
# Products that a CountedArray refuses: they would go uncounted.
UNCOUNTED = ("dot", "einsum", "inner", "matvec", "outer", "tensordot", "vdot", "vecdot", "vecmat")


@dataclass(frozen=True)
class FlopCount:
    """Operations of the matrix products, by what they are spent on.

    A multiplication and the addition that follows it are two operations. Softmax, LayerNorm,
    GELU and the biases are left out: they are few, and the time they take is not arithmetic.
    """

    linear: int  # q, k, v, the output of attention, and the MLP
    attention: int  # scores and mixtures
    unembedding: int

    @property
    def total(self) -> int:
        """Return all operations."""
        return self.linear + self.attention + self.unembedding

    @property
    def dominant(self) -> str:
        """Return the name of the largest term."""
        return max(("linear", "attention", "unembedding"), key=lambda term: getattr(self, term))

    def __add__(self, other: "FlopCount") -> "FlopCount":
        return FlopCount(
            self.linear + other.linear,
            self.attention + other.attention,
            self.unembedding + other.unembedding,
        )


@dataclass(frozen=True)
class PassBytes:
    """Bytes that one pass has to move through memory: the weights once, and the cache."""

    weights: int
    cache: int

    @property
    def total(self) -> int:
        """Return all bytes."""
        return self.weights + self.cache


def forward_flops(shape: ModelShape, d_ff: int, tokens: int) -> FlopCount:
    """Count one forward pass over a text, logits at every position.

    linear       2 T n_layers (4 d² + 2 d d_ff)
    attention    2 n_layers · T(T + 1)/2 · 2 d     position t reads t + 1 positions, not T
    unembedding  2 T d V
    """
    _check_flop_sizes(d_ff=d_ff, tokens=tokens)
    d_model, pairs = shape.d_model, tokens * (tokens + 1) // 2
    return FlopCount(
        linear=2 * tokens * shape.n_layers * (4 * d_model**2 + 2 * d_model * d_ff),
        attention=2 * shape.n_layers * pairs * 2 * d_model,
        unembedding=2 * tokens * d_model * shape.vocab_size,
    )


def generation_flops(
    shape: ModelShape, d_ff: int, prompt_tokens: int, new_tokens: int, *, cached: bool
) -> FlopCount:
    """Count the generation of new tokens after a prompt.

    Without a cache, every new token costs a pass over all tokens before it. With one, every
    position is computed once: together, one pass over the text without its last token.
    """
    _check_flop_sizes(prompt_tokens=prompt_tokens, new_tokens=new_tokens)
    if cached:
        return forward_flops(shape, d_ff, prompt_tokens + new_tokens - 1)
    lengths = range(prompt_tokens, prompt_tokens + new_tokens)
    return sum((forward_flops(shape, d_ff, length) for length in lengths), start=FlopCount(0, 0, 0))


def decode_step_flops(shape: ModelShape, d_ff: int, batch: int, length: int) -> FlopCount:
    """Count one cached step: one new token for each of `batch` texts.

    Args:    length: the positions that each new token reads, its own included
    """
    _check_flop_sizes(batch=batch, length=length)
    one = forward_flops(shape, d_ff, 1)
    return FlopCount(
        linear=batch * one.linear,
        attention=batch * length * one.attention,  # one pair for one token, `length` pairs here
        unembedding=batch * one.unembedding,
    )


def pass_bytes(
    shape: ModelShape, d_ff: int, batch: int, length: int, bytes_per_value: int = 4
) -> PassBytes:
    """Count the bytes that a pass moves: every weight once, however many texts share it.

    A decode step reads the whole cache; a prefill of `length` tokens writes it. Of the two
    embedding tables only a few rows are read: they are left out.

    Args:    length: the positions in the cache of each text, the new ones included
    """
    _check_flop_sizes(d_ff=d_ff, batch=batch, length=length, bytes_per_value=bytes_per_value)
    tables = (shape.vocab_size + shape.context_length) * shape.d_model
    weights = decoder_parameters(shape, d_ff, tied=False) - tables
    cache = 2 * shape.n_layers * batch * length * shape.d_model
    return PassBytes(weights=weights * bytes_per_value, cache=cache * bytes_per_value)


def decoder_parameters(shape: ModelShape, d_ff: int, *, tied: bool) -> int:
    """Count the parameters of the model; tied as GPT-2 is, it unembeds with its token embedding.

    n_layers (4 d² + 2 d d_ff + 9 d + d_ff) + 2 d + d (V + context)   [+ d V + V if untied]
    """
    _check_flop_sizes(d_ff=d_ff)
    d_model, vocab_size = shape.d_model, shape.vocab_size
    block = 4 * d_model**2 + 2 * d_model * d_ff + 9 * d_model + d_ff  # 9: biases and two norms
    tables = d_model * (vocab_size + shape.context_length)
    own = 0 if tied else d_model * vocab_size + vocab_size
    return shape.n_layers * block + 2 * d_model + tables + own


def cache_break_even(shape: ModelShape, d_ff: int, *, tied: bool) -> float:
    """Return the tokens (batch × length) whose cache is as large as the model itself.

    parameters / (2 n_layers d)  ≈  6 d + V / (2 n_layers)      tied, with d_ff = 4 d
    """
    return decoder_parameters(shape, d_ff, tied=tied) / (2 * shape.n_layers * shape.d_model)


class ProductTally:
    """A tally of the multiply-accumulates of matrix products, by what they are spent on."""

    def __init__(self) -> None:
        self.products = dict.fromkeys(("linear", "attention", "unembedding"), 0)

    def count(self, term: str, products: int = 1) -> None:
        """Add multiply-accumulates to one term."""
        self.products[term] += products

    def flops(self) -> FlopCount:
        """Return what has been counted so far, two operations for each."""
        return FlopCount(**{term: 2 * count for term, count in self.products.items()})


class CountedFloat(float):
    """A number that counts the matrix products it takes part in; it computes as a float does.

    Its role says what it is: an entry of a matrix ("wq"), or a coordinate of "q", "k" or "v".
    Matrix times anything, q times k, and anything times v are counted. What a coordinate is
    added to takes over its role: so q is known by its bias.
    """

    __slots__ = ("role", "tally")

    role: str
    tally: ProductTally

    def __new__(cls, value: float, role: str, tally: ProductTally) -> "CountedFloat":
        number = super().__new__(cls, value)
        number.role, number.tally = role, tally
        return number

    def __mul__(self, other: float) -> float:
        value, roles = float(self) * float(other), {self.role, getattr(other, "role", None)}
        matrix = next((role for role in roles if role in MATRIX_TERMS), None)
        if matrix is not None:
            self.tally.count(MATRIX_TERMS[matrix])
        elif roles == {"q", "k"} or "v" in roles:
            self.tally.count("attention")
        else:  # a query or a key, scaled
            return CountedFloat(value, self.role, self.tally)
        return value

    def __add__(self, other: float) -> "CountedFloat":
        return CountedFloat(float(self) + float(other), self.role, self.tally)

    __rmul__, __radd__ = __mul__, __add__


class CountedArray(np.ndarray):
    """A NumPy array that counts the matrix products (@) it takes part in, and all that follow.

    What is computed from it counts too, unless it is written into an ordinary array (out=). A
    product of two computed arrays is attention's. Masked pairs are counted as well, because NumPy
    multiplies them: T² pairs in a pass over T tokens.
    """

    tally: ProductTally | None = None
    term = "attention"

    def __array_finalize__(self, parent: Any) -> None:
        self.tally = getattr(parent, "tally", None)
        self.term = getattr(parent, "term", "attention")  # a part of a matrix is still one

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = (), **options: Any
    ) -> Any:
        _check_counted(ufunc)
        bare = [_without_tally(value) for value in inputs]
        into = {"out": tuple(_without_tally(value) for value in out)} if out else {}
        result = getattr(ufunc, method)(*bare, **into, **options)
        if self.tally is not None and ufunc is np.matmul and method == "__call__":
            terms = {value.term for value in inputs if isinstance(value, CountedArray)}
            term = next(iter(terms - {"attention"}), "attention")
            self.tally.count(term, np.size(result) * np.shape(bare[0])[-1])
        if out:
            return out[0]
        return _with_tally(result, "attention", self.tally)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Any, options: Any
    ) -> Any:
        _check_counted(function)
        result = super().__array_function__(function, types, args, options)
        watched = getattr(result, "tally", None)
        return result if watched else _with_tally(result, "attention", self.tally)

    def dot(self, other: Any) -> Any:  # type: ignore[override]  # out= would escape the count
        return self @ other


def counted_lists(params: dict[str, Any], tally: ProductTally) -> dict[str, Any]:
    """Return parameters in lists of floats as ones that count their products, one by one."""
    roles = {name: name for name in MATRIX_TERMS} | BIAS_ROLES

    def counted(name: str, value: Any) -> Any:
        if name == "blocks":
            return [counted_lists(block, tally) for block in value]
        if isinstance(value, list):
            return [counted(name, part) for part in value]
        return CountedFloat(value, roles[name], tally) if name in roles else value

    return {name: counted(name, value) for name, value in params.items()}


def counted_arrays(params: dict[str, Any], tally: ProductTally) -> dict[str, Any]:
    """Return parameters in arrays as ones that count their matrix products; nothing is copied."""

    def counted(name: str, value: Any) -> Any:
        if name == "blocks":
            return [counted_arrays(block, tally) for block in value]
        return _with_tally(value, MATRIX_TERMS[name], tally) if name in MATRIX_TERMS else value

    return {name: counted(name, value) for name, value in params.items()}


def _with_tally(value: Any, term: str, tally: ProductTally | None) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    counted = value.view(CountedArray)
    counted.tally, counted.term = tally, term
    return counted


def _without_tally(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, CountedArray) else value


def _check_counted(function: Callable[..., Any]) -> None:
    if function.__name__ in UNCOUNTED:
        raise TypeError(f"np.{function.__name__} is not counted; write the product with @")


def _check_flop_sizes(**sizes: int) -> None:
    for name, size in sizes.items():
        if not isinstance(size, numbers.Integral) or isinstance(size, bool):
            raise TypeError(f"{name} must be a whole number, got {size!r} ({type(size).__name__})")
        if size < 1:
            raise ValueError(f"{name} must be at least 1, got {size}")
