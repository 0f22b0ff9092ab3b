"""How many threads NumPy's matrix products use: as many as allowed outside, one inside."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np

_BLAS_PREFIXES = "scipy_openblas_", "openblas_"
_BLAS_SUFFIXES = "64_", "", "64"


def blas_threads() -> int:
    """Return how many threads a matrix product may use; 1 if this BLAS is not OpenBLAS."""
    found = _openblas_calls()
    return int(found[0]()) if found else 1


@contextmanager
def single_threaded_products() -> Iterator[None]:
    """Compute every matrix product inside with one thread: the caller has threads of its own."""
    found = _openblas_calls()
    before = blas_threads()
    if found is None or before == 1:
        yield
        return
    try:
        found[1](1)
        yield
    finally:
        found[1](before)


@lru_cache(maxsize=1)
def _openblas_calls() -> tuple[Any, Any] | None:
    """Find OpenBLAS's getter and setter among what NumPy's own library has loaded."""
    try:
        # NumPy gives its own library no public name.
        library = ctypes.CDLL(np._core._multiarray_umath.__file__)  # type: ignore[attr-defined]
    except (AttributeError, OSError):
        return None
    for prefix in _BLAS_PREFIXES:
        for suffix in _BLAS_SUFFIXES:
            names = [f"{prefix}{verb}_num_threads{suffix}" for verb in ("get", "set")]
            if all(hasattr(library, name) for name in names):
                return tuple(getattr(library, name) for name in names)
    return None
