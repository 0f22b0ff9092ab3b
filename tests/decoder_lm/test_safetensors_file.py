"""The safetensors reader: the numbers of the library that made the file, views where there can be
views, and a clear word about every file that is not what it should be."""

import json
import mmap
import os
import struct
import tempfile
import tracemalloc
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError, deserialize

from course_lib.decoder_lm.safetensors_file import SafetensorsFile, parse_json_object

ONE = {"a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}
SIX = np.arange(6, dtype=np.float32)
DATA = SIX.tobytes()


def file_bytes(header, data=DATA):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def tensor(**changed):
    return {"a": {**ONE["a"], **changed}}


@contextmanager
def memory_below(limit):
    """Fail if Python and NumPy have asked for more bytes than this inside, at any moment."""
    tracemalloc.start()
    try:
        yield
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < limit


@pytest.fixture
def written(tmp_path):
    def write(content):
        path = tmp_path / "some.safetensors"
        path.write_bytes(content)
        return path

    return write


def read(content):
    """Read every float tensor of a file with this content."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "some.safetensors"
        path.write_bytes(content)
        file = SafetensorsFile(path)
        return {
            name: file.float32(name)
            for name, entry in file.entries.items()
            if entry.dtype in ("F32", "F16", "BF16")
        }


def test_the_numbers_are_those_that_were_written(written):
    file = SafetensorsFile(written(file_bytes(ONE)))
    assert file.entries == {"a": ("F32", (2, 3), 0, 24)}
    assert file.float32("a").tolist() == [[0, 1, 2], [3, 4, 5]]


KINDS = [np.float32, np.float16, np.float64, np.int64, np.int32, np.int16, np.int8, np.uint8]
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8).filter(
    lambda name: name != "__metadata__"
)


@st.composite
def tensors(draw):
    kind = draw(st.sampled_from([*KINDS, np.bool_, np.uint16, np.uint32, np.uint64]))
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    seed = draw(st.integers(0, 2**32 - 1))
    bits = np.random.default_rng(seed).integers(0, 256, size=(*shape, np.dtype(kind).itemsize))
    if kind is np.bool_:
        bits %= 2
    return bits.astype(np.uint8).reshape(-1).view(kind).reshape(shape)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.dictionaries(NAMES, tensors(), max_size=6),
    st.none() | st.dictionaries(NAMES, NAMES, min_size=1, max_size=2),
)
def test_it_reads_what_the_library_reads_from_arbitrary_files(arrays, metadata):
    content = safetensors.numpy.save(arrays, metadata)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        path.write_bytes(content)
        file = SafetensorsFile(path)
        expected = safetensors.numpy.load(content)
        assert file.entries.keys() == expected.keys()
        for name, array in expected.items():
            assert file.entries[name].shape == array.shape
            if array.dtype in (np.float32, np.float16):
                with np.errstate(invalid="ignore"):  # random bits hold signalling NaNs
                    wide = array.astype(np.float32)
                got = file.float32(name)
                assert got.dtype == np.float32
                np.testing.assert_array_equal(got, wide)
            else:
                with pytest.raises(ValueError, match="only F32, F16 and BF16 are read; convert"):
                    file.float32(name)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_every_sixteen_bit_number_is_widened_as_torch_does(written, dtype):
    if dtype == torch.float32:
        numbers = torch.randn(70000)
    else:  # all the 65536 there are
        numbers = torch.arange(-(2**15), 2**15, dtype=torch.int16).view(dtype)
    path = written(safetensors.torch.save({"x": numbers.reshape(-1, 8)}))
    got = SafetensorsFile(path).float32("x")
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, numbers.float().reshape(-1, 8).numpy())


def test_float32_is_a_view_of_the_file_and_nobody_may_write_to_it(written):
    file = SafetensorsFile(written(safetensors.numpy.save({"x": SIX, "h": SIX.astype("f2")})))
    with memory_below(2000):
        one = file.float32("x")
    assert np.shares_memory(one, file.float32("x"))
    for name in ("x", "h"):
        with pytest.raises(ValueError, match="read-only"):
            file.float32(name)[0] = 1


def test_a_large_float32_tensor_takes_no_memory(written):
    large = np.ones(4_000_000, dtype=np.float32)
    path = written(safetensors.numpy.save({"x": large}))
    with memory_below(100_000):
        got = SafetensorsFile(path).float32("x")
    assert got.sum() == 4_000_000


@pytest.mark.parametrize("spaces", range(4))
def test_numbers_at_an_odd_address_are_right_and_aligned(written, spaces):
    header = json.dumps(ONE).encode() + b" " * spaces  # the format allows spaces at the end
    got = SafetensorsFile(written(file_bytes(header))).float32("a")
    assert got.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert got.flags.aligned
    assert not got.flags.writeable


def test_scalars_and_empty_tensors_have_their_place(written):
    header = {
        "s": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]},
        "z": {"dtype": "F16", "shape": [2, 0], "data_offsets": [8, 8]},
        "t": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]},
        "e": {"dtype": "F32", "shape": [0, 3], "data_offsets": [4, 4]},
    }
    file = SafetensorsFile(written(file_bytes(header, SIX[1:3].tobytes())))
    assert file.float32("s").shape == ()
    assert file.float32("s") == 1
    assert file.float32("t").tolist() == [2]
    assert file.float32("e").shape == (0, 3)
    assert file.float32("z").shape == (2, 0)
    assert file.float32("z").dtype == np.float32


def test_an_empty_tensor_may_lie_where_the_last_page_of_the_file_ends(written):
    header = json.dumps({"a": {"dtype": "F16", "shape": [0], "data_offsets": [0, 0]}}).encode()
    padded = header + b" " * (mmap.PAGESIZE - 8 - len(header))
    path = written(file_bytes(padded, b""))
    assert path.stat().st_size == mmap.PAGESIZE
    assert SafetensorsFile(path).float32("a").shape == (0,)


def test_a_tensor_may_have_as_many_axes_as_numpy_has(written):
    shape = [1] * 31 + [6]
    assert SafetensorsFile(written(file_bytes(tensor(shape=shape)))).float32("a").ndim == 32


def test_a_file_without_tensors_is_a_file(written):
    assert SafetensorsFile(written(file_bytes({}, b""))).entries == {}
    named = file_bytes({"__metadata__": {"format": "pt"}}, b"")
    assert SafetensorsFile(written(named)).entries == {}


def test_the_order_in_the_header_need_not_be_that_of_the_numbers(written):
    header = {
        "b": {"dtype": "F32", "shape": [2], "data_offsets": [16, 24]},
        "a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]},
    }
    file = SafetensorsFile(written(file_bytes(header)))
    assert file.float32("a").tolist() == [0, 1, 2, 3]
    assert file.float32("b").tolist() == [4, 5]


def test_a_link_is_followed(tmp_path, written):
    link = tmp_path / "link"
    link.symlink_to(written(file_bytes(ONE)))
    assert SafetensorsFile(link).float32("a").shape == (2, 3)


def test_what_is_no_file_is_refused_at_once(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing: there is no such file"):
        SafetensorsFile(tmp_path / "nothing")
    (tmp_path / "broken").symlink_to(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError, match="broken: there is no such file"):
        SafetensorsFile(tmp_path / "broken")
    with pytest.raises(ValueError, match="must be a file, but it is a folder or a device"):
        SafetensorsFile(tmp_path)
    os.mkfifo(tmp_path / "pipe")  # to open it would wait for a writer, for ever
    with pytest.raises(ValueError, match="must be a file, but it is a folder or a device"):
        SafetensorsFile(tmp_path / "pipe")


def test_an_unknown_name_is_a_key_error(written):
    with pytest.raises(KeyError, match="b"):
        SafetensorsFile(written(file_bytes(ONE))).float32("b")


LFS = b"version https://example.invalid/spec/v1\noid sha256:0\nsize 548105171\n"
TWO = {
    "a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
    "b": {"dtype": "F32", "shape": [4], "data_offsets": [8, 24]},
}


def second(start, end, shape):
    return {"a": TWO["a"], "b": {"dtype": "F32", "shape": shape, "data_offsets": [start, end]}}


BROKEN = {
    "empty file": (b"", "has 0 bytes, too few for a safetensors file"),
    "only a length": (struct.pack("<Q", 2), "has 8 bytes, too few"),
    "a pointer instead of the file": (LFS, r"begins with b'version https://', which would be a"),
    "a pickle": (b"PK\x03\x04" + bytes(range(100)), r"begins with b'PK.x03.*not a safetensors"),
    "the largest length": (b"\xff" * 8 + b"{}" * 9, "18446744073709551615 bytes, over the"),
    "a length over the limit": (struct.pack("<Q", 100_000_001) + b"{}", "100000001 bytes, over"),
    "a length beyond the file": (
        struct.pack("<Q", 100_000_000) + b"{}",
        "header of 100000000 bytes, but only 2 come after",
    ),
    "one byte too few": (file_bytes(b"{}", b"")[:-1] + b"", "has 9 bytes, too few"),
    "a header of nothing": (struct.pack("<Q", 0) + b"{}", "must begin with '{', got b''"),
    "a header that is a list": (file_bytes(b"[1, 2]"), r"must begin with '{', got b'\[1, 2\]'"),
    "a space first": (file_bytes(b" {}"), "must begin with '{'"),
    "half a header": (file_bytes(b'{"a": {'), "the header must be JSON, but"),
    "two objects": (file_bytes(b"{}{}"), "the header must be JSON, but Extra data"),
    "not UTF-8": (file_bytes(b'{"\xff": 1}'), "the header must be JSON, but 'utf-8' codec"),
    "a name twice": (
        file_bytes(b'{"a": %s, "a": %s}' % ((json.dumps(ONE["a"]).encode(),) * 2)),
        "the key 'a' comes twice",
    ),
    "an entry's key twice": (
        file_bytes(b'{"a": {"dtype": "F32", "dtype": "F32", "shape": [6], "data_offsets": []}}'),
        "the key 'dtype' comes twice",
    ),
    "not a number": (file_bytes(b'{"a": NaN}'), "NaN is no JSON number"),
    "a depth without end": (file_bytes(b'{"a":' + b"[" * 99999), "nested too deeply"),
    "an integer without end": (file_bytes(b'{"a":' + b"9" * 99999 + b"}"), "must be JSON, but Exc"),
    "metadata of numbers": (file_bytes({"__metadata__": {"a": 1}, **ONE}), "texts to texts, got"),
    "metadata of a list": (file_bytes({"__metadata__": [], **ONE}), "texts to texts"),
    "an entry that is a list": (file_bytes({"a": [1]}), r"'a' must be described by an object, got"),
    "no dtype": (file_bytes({"a": {"shape": [6], "data_offsets": [0, 24]}}), "dtype must be one o"),
    "an unknown dtype": (file_bytes(tensor(dtype="F31")), "dtype must be one of F64, .*got 'F31'"),
    "a dtype that is a list": (file_bytes(tensor(dtype=["F32"])), "dtype must be one of"),
    "no shape": (file_bytes({"a": {"dtype": "F32", "data_offsets": [0, 24]}}), "shape must be a l"),
    "a negative size": (file_bytes(tensor(shape=[-2, -3])), r"32 sizes, got \[-2, -3\]"),
    "half a size": (file_bytes(tensor(shape=[2, 3.0])), r"32 sizes, got \[2, 3.0\]"),
    "a size that is true": (file_bytes(tensor(shape=[6, True])), r"32 sizes, got \[6, True\]"),
    "too many axes": (file_bytes(tensor(shape=[1] * 32 + [6])), "at most 32 sizes"),
    "a shape without end": (file_bytes(tensor(shape=[2**62, 0, 2**62])), "no memory holds a shape"),
    "an absurd shape": (file_bytes(tensor(shape=[10**30])), "no memory holds a shape"),
    "another shape": (file_bytes(tensor(shape=[2, 4])), r"shape \[2, 4\] takes 32 bytes, but data"),
    "another dtype": (file_bytes(tensor(dtype="F16")), "F16 of shape .* takes 12 bytes, but data"),
    "no offsets": (file_bytes({"a": {"dtype": "F32", "shape": [6]}}), "data_offsets must .*None"),
    "one offset": (file_bytes(tensor(data_offsets=[24])), "data_offsets must be"),
    "three offsets": (file_bytes(tensor(data_offsets=[0, 24, 24])), "data_offsets must be"),
    "negative offsets": (file_bytes(tensor(data_offsets=[-24, 0])), r"got \[-24, 0\]"),
    "reversed offsets": (file_bytes(tensor(data_offsets=[24, 0])), r"start <= end, got \[24, 0\]"),
    "broken offsets": (file_bytes(tensor(data_offsets=[0.0, 24.0])), "data_offsets must be"),
    "a hole at the beginning": (
        file_bytes(tensor(data_offsets=[8, 32]), bytes(32)),
        "begins at byte 8 of the numbers and leaves a hole",
    ),
    "a hole": (file_bytes(second(12, 24, [3])), "'b' begins at byte 12 .* a hole .* at byte 8"),
    "an overlap": (file_bytes(second(4, 24, [5])), "'b' begins at byte 4 .* and overlaps"),
    "the same bytes twice": (file_bytes(second(0, 8, [2]), bytes(8)), "begins at byte 0 .*overlap"),
    "past the end": (file_bytes(second(8, 28, [5])), "speaks of 28 bytes .*but 24 .*is cut off"),
    "bytes of nobody": (file_bytes(second(8, 20, [3])), "speaks of 20 .*to no tensor"),
    "bytes far beyond": (file_bytes(second(8, 8 + 2**40, [2**38])), "file is cut off; get it"),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_refused_in_few_words_and_little_memory(written, case):
    content, message = BROKEN[case]
    path = written(content)
    with memory_below(8_000_000), pytest.raises(ValueError, match=message) as caught:
        SafetensorsFile(path)
    assert len(str(caught.value)) < 600 + len(str(path))


def test_only_its_length_is_read_of_a_header_over_the_limit(tmp_path):
    path = tmp_path / "large"
    with path.open("wb") as file:  # a sparse file: 200 MB that take no room
        file.write(struct.pack("<Q", 150_000_000) + b"{")
        file.truncate(200_000_000)
    message = "header of 150000000 bytes, over the format's 100000000"
    with memory_below(100_000), pytest.raises(ValueError, match=message):
        SafetensorsFile(path)


def test_a_name_as_long_as_a_book_is_not_repeated_in_the_error(written):
    content = file_bytes({"x" * 100_000: {"dtype": "F31"}})
    with pytest.raises(ValueError, match="tensor 'xxx") as caught:
        SafetensorsFile(written(content))
    assert len(str(caught.value)) < 500


GOOD = safetensors.numpy.save(
    {"w": np.arange(12, dtype=np.float32).reshape(3, 4), "b": np.ones(5, np.float16)},
    {"format": "pt"},
)
GOOD_HEADER = 8 + int.from_bytes(GOOD[:8], "little")


@st.composite
def damaged(draw):
    """GOOD with up to three bytes of its length and header replaced, put in or taken out."""
    content = bytearray(GOOD)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, GOOD_HEADER - 1))
        byte = draw(st.sampled_from(b'0123456789{}[]",:- .eFBwb\x00\xff') | st.integers(0, 255))
        how = draw(st.sampled_from(["replace", "insert", "remove"]))
        content[place : place + (how != "insert")] = [byte] if how != "remove" else []
    return bytes(content)


@settings(max_examples=600, deadline=None, derandomize=True)
@given(damaged())
def test_what_the_library_refuses_is_refused_and_nothing_else_comes_than_a_value_error(content):
    """Read, or refused with a ValueError; never more than the library reads, nor other numbers."""
    try:
        entries = {name: entry["data"] for name, entry in deserialize(content)}
    except SafetensorError:
        entries = None
    try:
        with memory_below(1_000_000):
            got = read(content)
    except ValueError as error:
        assert 20 < len(str(error)) < 700  # noqa: PT017
    else:
        assert entries is not None, "the library refuses this file"
        for name, array in got.items():
            narrow = array.astype(np.float16) if len(entries[name]) == 10 else array
            assert entries[name] in (array.tobytes(), narrow.tobytes())


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(0, len(GOOD) - 1))
def test_a_cut_file_is_always_refused(length):
    with pytest.raises(ValueError, match="too few|cut off"):
        read(GOOD[:length])


def test_a_longer_file_is_refused():
    with pytest.raises(ValueError, match="has bytes that belong to no tensor"):
        read(GOOD + b"\x00")


def test_the_whole_file_is_read_before_it_was_damaged():
    got = read(GOOD)
    assert got["w"].tolist() == np.arange(12.0).reshape(3, 4).tolist()
    assert got["b"].tolist() == [1] * 5


def test_a_json_object_is_read_strictly():
    assert parse_json_object("it", b'{"a": [1, null, true, 0.5]}') == {"a": [1, None, True, 0.5]}
    for data, message in [
        (b"[]", "it must be a JSON object, got \\[\\]"),
        (b"", "it must be JSON, but Expecting value"),
        (b'{"a": Infinity}', "Infinity is no JSON number"),
        ('{"a": 1}'.encode("utf-16"), "it must be JSON, but 'utf-8' codec"),
    ]:
        with pytest.raises(ValueError, match=message):
            parse_json_object("it", data)
