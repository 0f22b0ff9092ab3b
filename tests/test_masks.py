"""Who may read whom: the causal mask, its offset, and padding."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.overrides import TorchFunctionMode

from course_lib.masks import causal_allowed, padding_allowed

quick = settings(max_examples=40, deadline=None, derandomize=True)
sizes = st.integers(1, 9)


@pytest.mark.parametrize(
    ("t_q", "t_k", "query_offset", "readable"),
    [(5, 5, 0, 15), (1, 5, 0, 1), (1, 5, 4, 5), (1, 1, 0, 1)],
)
def test_the_known_masks_have_their_known_number_of_trues(t_q, t_k, query_offset, readable):
    assert causal_allowed(t_q, t_k, query_offset=query_offset).sum() == readable


def test_a_token_reads_itself_and_not_the_next():
    assert causal_allowed(2, 2).tolist() == [[True, False], [True, True]]


def test_a_chunk_after_three_cached_tokens_reads_all_of_them():
    expected = [[True, True, True, True, False], [True, True, True, True, True]]
    assert causal_allowed(2, 5, query_offset=3).tolist() == expected


@quick
@given(sizes, sizes, st.integers(0, 9))
def test_every_cell_compares_two_absolute_positions(t_q, t_k, offset):
    allowed = causal_allowed(t_q, t_k, query_offset=offset)
    assert allowed.dtype == torch.bool
    assert allowed.tolist() == [
        [key <= query + offset for key in range(t_k)] for query in range(t_q)
    ]


@quick
@given(sizes, sizes)
def test_a_chunk_has_the_rows_of_the_full_mask(cached, new):
    total = cached + new
    rows = causal_allowed(total, total)[cached:]
    assert torch.equal(causal_allowed(new, total, query_offset=cached), rows)


class RecordDevices(TorchFunctionMode):
    """Note the device that every torch.arange inside asks for."""

    def __init__(self):
        super().__init__()
        self.devices = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.arange:
            self.devices.append((kwargs or {}).get("device"))
        return func(*args, **(kwargs or {}))


def test_the_mask_is_made_on_the_wanted_device():
    with RecordDevices() as recorder:
        causal_allowed(2, 3, device="cpu")
    assert recorder.devices == ["cpu", "cpu"]
    assert causal_allowed(2, 3).device.type == "cpu"


def test_numpy_integers_are_sizes_too():
    allowed = causal_allowed(np.int64(1), np.int32(5), query_offset=np.int64(4))
    assert allowed.all()


@pytest.mark.parametrize("name", ["t_q", "t_k", "query_offset"])
@pytest.mark.parametrize("value", [True, 2.0, "2", None])
def test_what_is_not_an_integer_is_a_type_error(name, value):
    arguments = {"t_q": 2, "t_k": 2, "query_offset": 0, name: value}
    with pytest.raises(TypeError, match=f"{name} must be an integer"):
        causal_allowed(**arguments)


@pytest.mark.parametrize(("name", "value"), [("t_q", 0), ("t_q", -1), ("t_k", 0), ("t_k", -1)])
def test_a_size_below_one_is_a_value_error(name, value):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got {value}"):
        causal_allowed(**{"t_q": 2, "t_k": 2, name: value})


def test_a_negative_offset_is_a_value_error():
    with pytest.raises(ValueError, match="query_offset must be at least 0, got -1"):
        causal_allowed(2, 2, query_offset=-1)


@quick
@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=4))
def test_padding_neither_reads_nor_is_read(valid):
    allowed = padding_allowed(torch.tensor(valid))
    assert allowed.tolist() == [[[i and j for j in row] for i in row] for row in valid]


@pytest.mark.parametrize("dtype", [torch.long, torch.float32, torch.uint8])
def test_padding_must_be_bool(dtype):
    with pytest.raises(
        TypeError, match=r"token_valid must be a bool tensor \(True = a real token\)"
    ):
        padding_allowed(torch.ones(1, 2, dtype=dtype))


def test_padding_must_have_two_axes():
    with pytest.raises(ValueError, match=r"token_valid must have shape \[B, T\], got \[2\]"):
        padding_allowed(torch.ones(2, dtype=torch.bool))
    with pytest.raises(ValueError, match="empty axis"):
        padding_allowed(torch.ones(0, 2, dtype=torch.bool))
