"""A safetensors file: a length, a header in JSON, then the numbers. Nothing in it is executed."""

import json
import math
import mmap
import reprlib
from collections import Counter
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

_LARGEST_HEADER = 100_000_000  # bytes: the format's own limit
_TENSOR_BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1} | {
    "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1
}  # fmt: skip


class TensorEntry(NamedTuple):
    """What the header says of a tensor; start and end count bytes from the first number."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


class SafetensorsFile:
    """The tensors of a file: what they are at once, their numbers when asked for.

        length of the header (8 bytes, little-endian) | header | numbers, without a gap

    The file is mapped into memory and checked whole, its numbers apart, before anything is taken
    out of it. While arrays of it are in use it must not be overwritten: they are the file.

    Raises:  FileNotFoundError; ValueError for a file that is not what the format says
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        self._mapped = _mapped_file(self.path)
        self._first = 8 + _header_length(self.path, self._mapped)  # of the bytes after the header
        header = _parsed_header(self.path, self._mapped[8 : self._first])
        self.entries = {
            name: _tensor_entry(f"{self.path}: tensor {reprlib.repr(name)}", described)
            for name, described in header.items()
        }
        _check_gapless(self.path, self.entries, len(self._mapped) - self._first)

    def float32(self, name: str) -> np.ndarray:
        """Return a tensor in float32, read-only; what the file holds in float32 is not copied.

        Every 16-bit number, F16 or BF16, is a float32 too: nothing is rounded.

        Raises:  KeyError for a name that is not in entries; ValueError for any other dtype
        """
        entry = self.entries[name]
        check_float_dtype(f"{self.path}: tensor {reprlib.repr(name)}", entry.dtype)
        kind = {"F32": "<f4", "F16": "<f2", "BF16": "<u2"}[entry.dtype]
        start = self._first + entry.start
        count = (entry.end - entry.start) // _TENSOR_BYTES[entry.dtype]
        stored = np.frombuffer(self._mapped, kind, count, start)
        if entry.dtype != "F32" or not stored.flags.aligned:
            stored = _widened(stored, entry.dtype)
            _let_go(self._mapped, start, entry.end - entry.start)
        stored.flags.writeable = False
        return stored.reshape(entry.shape)


def check_float_dtype(place: str, dtype: str) -> None:
    """Require a dtype that float32 holds exactly."""
    if dtype not in ("F32", "F16", "BF16"):
        raise ValueError(
            f"{place} is {dtype}, but only F32, F16 and BF16 are read; convert the checkpoint "
            f"to float32 with the program that made it"
        )


def parse_json_object(place: str, data: bytes) -> dict[str, Any]:
    """Read one JSON object, strictly: no key twice, no NaN, nothing after it.

    Args:    place: what is read, for the error
    Raises:  ValueError for anything else
    """
    try:
        found = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_object_without_twins,
            parse_constant=_refuse_constant,
        )
    except (ValueError, RecursionError) as error:  # a decoding error is a ValueError
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise ValueError(f"{place} must be JSON, but {reason}; get the file again") from error
    if not isinstance(found, dict):
        raise ValueError(f"{place} must be a JSON object, got {reprlib.repr(found)}")
    return found


def _widened(stored: np.ndarray, dtype: str) -> np.ndarray:
    if dtype == "BF16":  # a float32 without its lower half
        wide = stored.astype("<u4")
        wide <<= 16
        return wide.view("<f4")
    with np.errstate(invalid="ignore"):  # of a signalling NaN
        return stored.astype("<f4")  # also of an F32 at an odd address: an aligned copy


def _let_go(mapped: mmap.mmap, start: int, size: int) -> None:
    """Drop the pages of what was copied, or the file would count in memory beside its copy."""
    if size and hasattr(mapped, "madvise"):
        page = start // mmap.PAGESIZE * mmap.PAGESIZE
        mapped.madvise(mmap.MADV_DONTNEED, page, start + size - page)


def _mapped_file(path: Path) -> mmap.mmap:
    if not path.exists():  # a link that leads nowhere, too
        raise FileNotFoundError(f"{path}: there is no such file")
    if not path.is_file():
        raise ValueError(f"{path} must be a file, but it is a folder or a device")
    with path.open("rb") as file:
        size = file.seek(0, 2)
        if size < 10:  # the length and {}
            raise ValueError(
                f"{path} has {size} bytes, too few for a safetensors file; get it again"
            )
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _header_length(path: Path, mapped: mmap.mmap) -> int:
    length = int.from_bytes(mapped[:8], "little")
    if length > _LARGEST_HEADER:
        raise ValueError(
            f"{path} begins with {mapped[:16]!r}, which would be a header of {length} bytes, over "
            f"the format's {_LARGEST_HEADER}: this is not a safetensors file; get it again"
        )
    if length > len(mapped) - 8:
        raise ValueError(
            f"{path} has a header of {length} bytes, but only {len(mapped) - 8} come after the "
            f"first 8: the file is cut off or damaged; get it again"
        )
    return length


def _parsed_header(path: Path, data: bytes) -> dict[str, Any]:
    if data[:1] != b"{":
        raise ValueError(f"{path}: the header must begin with '{{', got {data[:16]!r}")
    header = parse_json_object(f"{path}: the header", data)
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not _are_all(str, metadata.values()):
        raise ValueError(
            f"{path}: __metadata__ must map texts to texts, got {reprlib.repr(metadata)}"
        )
    return header


def _tensor_entry(place: str, described: Any) -> TensorEntry:
    if not isinstance(described, dict):
        raise ValueError(f"{place} must be described by an object, got {reprlib.repr(described)}")
    dtype: Any = described.get("dtype")
    shape: Any = described.get("shape")
    offsets: Any = described.get("data_offsets")
    if not isinstance(dtype, str) or dtype not in _TENSOR_BYTES:
        raise ValueError(
            f"{place}: dtype must be one of {', '.join(_TENSOR_BYTES)}, got {reprlib.repr(dtype)}"
        )
    if not _are_sizes(shape) or len(shape) > 32:  # NumPy's axes
        raise ValueError(
            f"{place}: shape must be a list of at most 32 sizes, got {reprlib.repr(shape)}"
        )
    if not _are_sizes(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise ValueError(
            f"{place}: data_offsets must be [start, end] with 0 <= start <= end, "
            f"got {reprlib.repr(offsets)}"
        )
    if math.prod(size or 1 for size in shape) * _TENSOR_BYTES[dtype] >= 2**63:
        raise ValueError(f"{place}: no memory holds a shape like {reprlib.repr(shape)}")
    wanted = math.prod(shape) * _TENSOR_BYTES[dtype]
    if offsets[1] - offsets[0] != wanted:
        raise ValueError(
            f"{place}: {dtype} of shape {shape} takes {wanted} bytes, "
            f"but data_offsets are {reprlib.repr(offsets)}"
        )
    return TensorEntry(dtype, tuple(shape), offsets[0], offsets[1])


def _check_gapless(path: Path, entries: dict[str, TensorEntry], size: int) -> None:
    """Every byte after the header belongs to exactly one tensor."""
    end = 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1][2:]):
        if entry.start != end:
            wrong = "overlaps the one before it" if entry.start < end else "leaves a hole before it"
            raise ValueError(
                f"{path}: tensor {reprlib.repr(name)} begins at byte {entry.start} of the numbers "
                f"and {wrong}, which ends at byte {end}; the file is damaged: get it again"
            )
        end = entry.end
    if end != size:
        wrong = "is cut off" if end > size else "has bytes that belong to no tensor"
        raise ValueError(
            f"{path}: the header speaks of {end} bytes of numbers, but {size} follow it: the file "
            f"{wrong}; get it again"
        )


def _are_all(kind: type, values: Iterable[Any]) -> bool:
    return all(type(value) is kind for value in values)  # True is no integer here


def _are_sizes(value: Any) -> bool:
    return isinstance(value, list) and _are_all(int, value) and all(size >= 0 for size in value)


def _object_without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twin, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {reprlib.repr(twin)} comes twice")
    return found


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is no JSON number")
