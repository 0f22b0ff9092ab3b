"""Matrix products of few rows: the matrix in blocks of columns, the rows in groups."""

import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

_SMALL_PRODUCT = 1_000_000  # multiplications, up to which OpenBLAS does not rearrange the matrix
_MOST_ROWS = 16


def block_width(d_in: int) -> int:
    """Return how many columns a block has: few enough that it stays in a core's second cache."""
    return 64 if d_in > 256 else 256  # 64 columns of 769 numbers are 197 kB


def matrix_blocks(matrix: np.ndarray, *, whole: bool) -> np.ndarray:
    """Copy a matrix [d_in, d_out] into blocks; see `in_blocks`."""
    return in_blocks(lambda at: matrix[:, at], matrix.shape[1], whole=whole)


def in_blocks(columns: Callable[[slice], Any], d_out: int, *, whole: bool) -> np.ndarray:
    """Copy a matrix into blocks of columns, each contiguous and at the start of a cache line.

    Args:    columns: returns some of the d_out columns, [d_in, ...]
             whole: a single block: one row of x reads it fastest, several rows do not
    Shapes:  -> [blocks, 1, d_in, width] float32; the last block ends in zeros
    """
    d_in = len(columns(slice(0, 0)))
    width = max(1, d_out) if whole else block_width(d_in)
    blocks = _aligned_zeros(-(-d_out // width), 1, d_in, width)
    for index, block in enumerate(blocks):
        some = columns(slice(index * width, min((index + 1) * width, d_out)))
        block[0, :, : some.shape[1]] = some
    return blocks


def in_one_piece(blocks: np.ndarray, d_out: int) -> np.ndarray:
    """Return the matrix [d_in, d_out] that was cut into these blocks."""
    joined = blocks[:, 0].swapaxes(0, 1)  # [d_in, blocks, width]
    return joined.reshape(len(joined), -1)[:, :d_out]


def whole_width(blocks: np.ndarray) -> int:
    """Return how many columns all the blocks have, those of zeros included."""
    return len(blocks) * blocks.shape[3]


def room_for(count: int, blocks: np.ndarray, constant: int = 0) -> np.ndarray:
    """Return room for a product of `count` rows, with `constant` columns of ones in front."""
    return np.ones((count, constant + whole_width(blocks)), np.float32)


class BlockProduct:
    """Multiply the same rows, in the same buffers, by one blocked matrix after another.

    Shapes:  x [N, d_in], out [N, whole blocks], the matrix [blocks, 1, d_in, width]
    """

    def __init__(self, x: np.ndarray, out: np.ndarray, width: int) -> None:
        count = len(x)
        one_piece = out.shape[1] == width and out.flags.c_contiguous
        self.one_piece = (x, out) if one_piece and count == 1 else None
        size = min(row_group(x.shape[1], width), count)
        whole = count - count % size
        self.pairs = []
        for first, last, height in ((0, whole, size), (whole, count, count - whole)):
            if height > 0:  # x in groups of rows, out as [blocks, groups, height, width]
                groups = (last - first) // height
                some = out[first:last].reshape(groups, height, out.shape[1] // width, width)
                rows = x[first:last].reshape(groups, height, x.shape[1])
                self.pairs.append((rows, some.transpose(2, 0, 1, 3)))

    def write(self, blocks: np.ndarray) -> None:
        """Write x @ matrix into out; a block is read from memory once for all groups of rows."""
        if self.one_piece:  # np.dot starts sooner than np.matmul: a third of a small product
            x, out = self.one_piece
            np.dot(x, blocks[0, 0], out=out)
            return
        for x, out in self.pairs:
            np.matmul(x, blocks, out=out)


def row_group(d_in: int, width: int) -> int:
    """Return how many rows one product should take, for this size of block."""
    if width > 256 or not small_products_pay():  # a matrix in one piece: BLAS cuts it itself
        return 1 << 30
    most = max(1, _SMALL_PRODUCT // (d_in * width))
    return min(_MOST_ROWS, 1 << most.bit_length() - 1)  # a power of 2: batches often are


@lru_cache(maxsize=1)
def small_products_pay() -> bool:
    """Time whether rows in groups are faster than together; it depends on the BLAS and the chip."""
    x, blocks = np.ones((32, 512), np.float32), np.ones((8, 1, 512, 64), np.float32)
    out = np.empty((8, 2, 16, 64), np.float32)
    whole, grouped = (x[None], out.reshape(8, 1, 32, 64)), (x.reshape(2, 16, 512), out)
    best: dict[str, float] = {}
    for _ in range(5):
        for name, (rows, into) in {"whole": whole, "grouped": grouped}.items():
            start = time.perf_counter()
            np.matmul(rows, blocks, out=into)
            best[name] = min(best.get(name, 1.0), time.perf_counter() - start)
    return best["grouped"] < best["whole"]


def _aligned_zeros(*shape: int) -> np.ndarray:
    """Return zeros that start at an address divisible by 64, the bytes of a cache line."""
    count = int(np.prod(shape))
    raw = np.zeros(count + 16, np.float32)
    start = -raw.ctypes.data % 64 // 4
    return raw[start : start + count].reshape(shape)
