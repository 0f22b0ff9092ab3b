"""Write down anything as strict JSON: no NaN, no Infinity, no object that only Python knows."""

import json
import math
import numbers
import unicodedata
from collections.abc import Mapping
from typing import Any

import numpy as np

_PLAIN_DEPTH = 8
_PLAIN_SIZE = 4096  # numbers of an array that are written out; beyond, its shape alone


def plain_json(value: Any, depth: int = _PLAIN_DEPTH) -> Any:
    """Turn a value into what JSON has: null, true, false, numbers, text, lists, objects.

    NaN and infinities become "nan", "inf" and "-inf"; an array becomes an object with dtype, shape
    and values (null where there are more than 4096); what is left becomes its repr, cut.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")  # a lone surrogate is not UTF-8
    if isinstance(value, numbers.Integral) and abs(int(value)) < 2**63:
        return int(value)
    if isinstance(value, numbers.Real) and hasattr(value, "__float__"):
        return _plain_float(value)
    if depth == 0:
        return _plain_repr(value)
    if isinstance(value, Mapping):
        return {str(key): plain_json(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain_json(item, depth - 1) for item in value]
    if hasattr(value, "tolist") and hasattr(value, "shape"):
        return _plain_array(value)
    return _plain_repr(value)


def _plain_float(value: Any) -> float | str:
    try:
        number = float(value)
    except OverflowError:  # an integer that no float can hold
        return _plain_repr(value)
    return number if math.isfinite(number) else str(number)


def _plain_array(value: Any) -> Any:
    shape = [int(size) for size in value.shape]
    dtype = str(value.dtype).removeprefix("torch.")
    values = plain_json(value.tolist()) if math.prod(shape) <= _PLAIN_SIZE else None
    return {"dtype": dtype, "shape": shape, "values": values}


def _plain_repr(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    return plain_json(text if len(text) <= 500 else text[:499] + "…")


def json_line(value: Any) -> str:
    """Write one line of strict JSON; whatever is not ASCII stays readable."""
    return json.dumps(plain_json(value), ensure_ascii=False, allow_nan=False)


def printable(text: str) -> str:
    """Take out what would move a terminal's cursor or colour the lines after it."""
    steering = ("Cc", "Cf", "Cs")  # control, format, surrogate
    kept = (
        "\ufffd" if unicodedata.category(letter) in steering and letter not in "\n\t" else letter
        for letter in text
    )
    return "".join(kept)
