"""Matrix products of few rows: the matrix in blocks of columns, the rows in groups."""

import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

BLOCK_WIDTH = 64  # columns; of 768 rows that is 197 kB, which stays in a core's second cache
_SMALL_PRODUCT = 1_000_000  # multiplications, up to which OpenBLAS does not rearrange the matrix
_MOST_ROWS = 16


def in_blocks(columns: Callable[[slice], Any], d_out: int, width: int = BLOCK_WIDTH) -> np.ndarray:
    """Copy a matrix into blocks of columns, each contiguous and at the start of a cache line.

    Args:    columns: returns some of the d_out columns, [d_in, ...]
    Shapes:  -> [blocks, 1, d_in, width] float32; the last block ends in zeros
    """
    count = -(-d_out // width)
    d_in = len(columns(slice(0, 0)))
    blocks = _aligned_zeros(count, 1, d_in, width)
    for index, block in enumerate(blocks):
        some = columns(slice(index * width, min((index + 1) * width, d_out)))
        block[0, :, : some.shape[1]] = some
    return blocks


class BlockProduct:
    """Multiply the same rows, in the same buffers, by one blocked matrix after another.

    Shapes:  x [N, d_in], out [blocks, N, width], the matrix [blocks, 1, d_in, width]
    """

    def __init__(self, x: np.ndarray, out: np.ndarray) -> None:
        self.pairs = [(x[None], out[:, None])]  # [1, N, d_in] and [blocks, 1, N, width]
        count, size = len(x), row_group(x.shape[1], out.shape[2])
        if size < count:
            whole = count - count % size
            self.pairs = [
                (x[:whole].reshape(-1, size, x.shape[1]), _grouped(out[:, :whole], size)),
                (x[None, whole:], out[:, None, whole:]),
            ][: 1 + (whole < count)]

    def write(self, blocks: np.ndarray) -> None:
        """Write x @ matrix into out; a block is read from memory once for all groups of rows."""
        for x, out in self.pairs:
            np.matmul(x, blocks, out=out)


def row_group(d_in: int, width: int) -> int:
    """Return how many rows one product should take, for this size of block."""
    if not small_products_pay():
        return 1 << 30
    return max(1, min(_MOST_ROWS, _SMALL_PRODUCT // (d_in * width)))


@lru_cache(maxsize=1)
def small_products_pay() -> bool:
    """Time whether rows in groups are faster than together; it depends on the BLAS and the chip."""
    x, blocks = np.ones((32, 512), np.float32), np.ones((8, 1, 512, BLOCK_WIDTH), np.float32)
    out = np.empty((8, 2, 16, BLOCK_WIDTH), np.float32)
    whole, grouped = (x[None], out.reshape(8, 1, 32, BLOCK_WIDTH)), (x.reshape(2, 16, 512), out)
    best = {}
    for _ in range(5):
        for name, (rows, into) in {"whole": whole, "grouped": grouped}.items():
            start = time.perf_counter()
            np.matmul(rows, blocks, out=into)
            best[name] = min(best.get(name, 1.0), time.perf_counter() - start)
    return best["grouped"] < best["whole"]


def as_blocks(out: np.ndarray, width: int = BLOCK_WIDTH) -> np.ndarray:
    """View rows of whole blocks as [blocks, N, width]."""
    return out.reshape(len(out), -1, width).swapaxes(0, 1)


def _grouped(out: np.ndarray, size: int) -> np.ndarray:
    return out.reshape(len(out), -1, size, out.shape[2])


def _aligned_zeros(*shape: int) -> np.ndarray:
    """Return zeros that start at an address divisible by 64, the bytes of a cache line."""
    count = int(np.prod(shape))
    raw = np.zeros(count + 16, np.float32)
    start = -raw.ctypes.data % 64 // 4
    return raw[start : start + count].reshape(shape)
