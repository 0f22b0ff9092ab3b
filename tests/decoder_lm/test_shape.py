"""The sizes of a decoder, and parameters that must fit them."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.decoder_lm.errors import (
    CacheExhausted,
    CausalityViolation,
    ContextOverflow,
    ShapeMismatch,
)
from course_lib.decoder_lm.shape import (
    ModelShape,
    as_arrays,
    as_lists,
    check_parameters,
    map_parameters,
    parameter_shapes,
    random_parameters,
)

quick = settings(max_examples=50, deadline=None, derandomize=True)
SHAPE = ModelShape(n_layers=2, d_model=6, n_heads=3, context_length=5, vocab_size=7)
D_FF = 10
VECTORS = ("ln1_gain", "ln1_bias", "bq", "bk", "bv", "bo", "ln2_gain", "ln2_bias", "b1", "b2")
MATRICES = ("wq", "wk", "wv", "wo", "w1", "w2")


def entries(params):
    """Every (place, name, array), the blocks' too."""
    outer = [(params, name) for name in params if name != "blocks"]
    inner = [(block, name) for block in params["blocks"] for name in block]
    return [(holder, name, holder[name]) for holder, name in outer + inner]


def fresh():
    return random_parameters(SHAPE, D_FF, seed=3)


@pytest.mark.parametrize(
    ("error", "base"),
    [
        (ContextOverflow, ValueError),
        (ShapeMismatch, ValueError),
        (CacheExhausted, RuntimeError),
        (CausalityViolation, AssertionError),
    ],
)
def test_each_failure_is_a_kind_of_the_error_that_python_has_for_it(error, base):
    assert error.__bases__ == (base,)


def test_the_derived_sizes_are_those_of_gpt2_small():
    shape = ModelShape(12, 768, 12, 1024, 50257)
    assert shape.d_head == 64
    assert shape.scale == 0.125
    assert shape.cache_bytes(1) == 37_748_736  # 36 MiB: 2 * 12 * 1024 * 768 numbers of 2 bytes
    assert shape.cache_bytes(8, bytes_per_value=4) == 16 * 37_748_736


def test_the_scale_is_one_over_the_root_of_a_heads_width():
    assert ModelShape(1, 10, 5, 1, 1).scale == pytest.approx(1 / math.sqrt(2))
    assert type(ModelShape(1, 10, 5, 1, 1).d_head) is int


@quick
@given(*[st.integers(1, 10**6)] * 6)
def test_cache_bytes_are_an_exact_integer_however_large(layers, heads, wide, length, batch, size):
    shape = ModelShape(layers, heads * wide, heads, length, 11)
    expected = 0
    for _ in ("keys", "values"):
        expected += layers * batch * heads * length * wide * size
    assert shape.cache_bytes(batch, size) == expected
    assert type(shape.cache_bytes(batch, size)) is int


def test_numpy_sizes_neither_overflow_nor_stay():
    shape = ModelShape(*(np.int32(2**20) for _ in range(5)))
    assert shape.cache_bytes(np.int32(2**20), np.int32(4)) == 2**83
    assert type(shape.d_model) is int


def test_a_shape_is_frozen_and_equal_by_value():
    with pytest.raises(dataclasses.FrozenInstanceError):
        SHAPE.d_model = 12
    assert ModelShape(2, 6, 3, 5, 7) == SHAPE
    assert len({ModelShape(2, 6, 3, 5, 7), SHAPE}) == 1


@pytest.mark.parametrize(("d_model", "n_heads"), [(30, 8), (4, 5), (7, 2)])
def test_a_width_that_the_heads_cannot_share_is_a_shape_mismatch(d_model, n_heads):
    with pytest.raises(ShapeMismatch, match=f"{d_model} is not divisible by n_heads={n_heads};"):
        ModelShape(1, d_model, n_heads, 8, 8)


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(ModelShape)])
def test_every_size_must_be_a_positive_integer(name):
    sizes = {"n_layers": 2, "d_model": 6, "n_heads": 3, "context_length": 5, "vocab_size": 7}
    for bad in (0, -3):
        with pytest.raises(ShapeMismatch, match=f"{name} must be at least 1, got {bad}"):
            ModelShape(**{**sizes, name: bad})
    for bad in (2.0, "2", True, None, math.nan):
        with pytest.raises(TypeError, match=f"{name} must be an integer, got {bad!r}"):
            ModelShape(**{**sizes, name: bad})


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0,), ValueError, "batch must be at least 1, got 0"),
        ((1.5,), TypeError, "batch must be an integer, got 1.5"),
        ((1, -2), ValueError, "bytes_per_value must be at least 1, got -2"),
        ((1, 0.5), TypeError, "bytes_per_value must be an integer, got 0.5"),
    ],
)
def test_a_cache_of_no_rows_or_half_a_byte_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        SHAPE.cache_bytes(*arguments)


def test_the_parameter_dict_has_the_shapes_that_were_agreed():
    wanted = parameter_shapes(SHAPE, D_FF)
    assert wanted["token_embedding"] == (7, 6)
    assert wanted["position_embedding"] == (5, 6)
    assert wanted["unembedding"] == (6, 7)
    assert wanted["unembedding_bias"] == (7,)
    assert wanted["final_gain"] == wanted["final_bias"] == (6,)
    assert len(wanted["blocks"]) == 2
    block = wanted["blocks"][1]
    assert sorted(block) == sorted((*VECTORS, *MATRICES))
    assert [block[name] for name in MATRICES] == [*[(6, 6)] * 4, (6, 10), (10, 6)]
    assert [block[name] for name in VECTORS] == [*[(6,)] * 8, (10,), (6,)]


def test_arrays_and_lists_that_fit_pass():
    params = fresh()
    check_parameters(params, SHAPE)
    check_parameters(as_lists(params), SHAPE)
    check_parameters(as_arrays(params, np.float32), SHAPE)


@pytest.mark.parametrize("place", range(len(entries(fresh()))))
def test_every_entry_is_looked_at(place):
    for spoil, message in [
        (lambda value: np.zeros((*value.shape, 1)), "must have shape"),
        (lambda value: value[:-1], "must have shape"),
        (lambda value: value[0], "must have shape"),
        (lambda value: None, "is missing from the parameters"),
    ]:
        params = fresh()
        holder, name, value = entries(params)[place]
        holder[name] = spoil(value)
        with pytest.raises(ShapeMismatch, match=message):
            check_parameters(params, SHAPE)
    params = fresh()
    holder, name, value = entries(params)[place]
    del holder[name]
    with pytest.raises(ShapeMismatch, match="missing|must be a list"):
        check_parameters(params, SHAPE)


def test_the_message_names_the_entry_what_was_wanted_and_what_came():
    params = fresh()
    params["blocks"][1]["w2"] = params["blocks"][1]["w2"].T
    with pytest.raises(
        ShapeMismatch, match=r"blocks\[1\]\['w2'\] must have shape \[10, 6\].* got \[6, 10\]"
    ):
        check_parameters(params, SHAPE)
    params = fresh()
    params["unembedding"] = [[0.0] * 7] * 5 + [[0.0] * 6]
    with pytest.raises(ShapeMismatch, match=r"params\['unembedding'\] has rows of different len"):
        check_parameters(params, SHAPE)


def test_what_the_model_would_not_use_is_refused():
    params = fresh()
    params["blocks"][0]["w3"] = np.zeros(3)
    with pytest.raises(ShapeMismatch, match=r"blocks\[0\] has entries .* not use: \['w3'\]"):
        check_parameters(params, SHAPE)
    with pytest.raises(ShapeMismatch, match=r"params has entries .*: \['rope'\]"):
        check_parameters({**fresh(), "rope": 1.0}, SHAPE)


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([], "params has 0 blocks, but the shape says n_layers=2"),
        (fresh()["blocks"] * 2, "params has 4 blocks"),
        (None, "must be a list of dicts"),
        ({"0": {}}, "must be a list of dicts"),
        ([1, 2], "must be a list of dicts"),
    ],
    ids=["none", "four", "missing", "dict", "numbers"],
)
def test_blocks_that_are_no_list_of_n_layers_dicts_are_refused(blocks, message):
    with pytest.raises(ShapeMismatch, match=message):
        check_parameters({**fresh(), "blocks": blocks}, SHAPE)


def test_params_that_are_no_dict_are_a_type_error():
    with pytest.raises(TypeError, match="params must be a dict of parameters, got list"):
        check_parameters([fresh()], SHAPE)


def test_conversion_keeps_every_number_and_copies_no_array_that_fits():
    params = fresh()
    lists = as_lists(params)
    assert type(lists["blocks"][0]["wq"][0][0]) is float
    back = as_arrays(lists, np.float64)
    for (_, name, value), (_, _, again) in zip(entries(params), entries(back), strict=True):
        np.testing.assert_array_equal(value, again, err_msg=name)
    same = as_arrays(params, np.float64)
    assert all(a[2] is b[2] for a, b in zip(entries(params), entries(same), strict=True))
    small = as_arrays(params, np.float32)
    assert {value.dtype for _, _, value in entries(small)} == {np.dtype(np.float32)}
    assert as_lists(small)["unembedding_bias"] == small["unembedding_bias"].tolist()


def test_a_map_reaches_every_entry_once_and_leaves_the_dict_alone():
    params = fresh()
    seen = []
    doubled = map_parameters(lambda value: seen.append(id(value)) or 2 * value, params)
    assert sorted(seen) == sorted(id(value) for _, _, value in entries(params))
    np.testing.assert_array_equal(doubled["blocks"][1]["b1"], 2 * fresh()["blocks"][1]["b1"])
    np.testing.assert_array_equal(params["blocks"][1]["b1"], fresh()["blocks"][1]["b1"])


def test_random_parameters_come_from_the_seed_and_fit():
    params, again, other = fresh(), fresh(), random_parameters(SHAPE, D_FF, seed=4)
    check_parameters(params, SHAPE)
    for (_, name, value), (_, _, same), (_, _, new) in zip(
        *map(entries, (params, again, other)), strict=True
    ):
        np.testing.assert_array_equal(value, same)
        assert value.dtype == np.float64
        assert (value != new).all(), name


def test_random_parameters_are_of_a_size_at_which_each_of_them_matters():
    shape = ModelShape(1, 256, 4, 64, 300)
    params = random_parameters(shape, 1024, seed=0)
    block = params["blocks"][0]
    for name, spread in [("wq", 1 / 16), ("wo", 1 / 16), ("w1", 1 / 16), ("w2", 1 / 32)]:
        assert block[name].std() == pytest.approx(spread, rel=0.05), name
    assert params["unembedding"].std() == pytest.approx(1 / 16, rel=0.05)
    for name in ("token_embedding", "position_embedding"):
        assert params[name].std() == pytest.approx(1, rel=0.05)
        assert params[name].mean() == pytest.approx(0, abs=0.05)
    for gain in (block["ln1_gain"], block["ln2_gain"], params["final_gain"]):
        assert gain.mean() == pytest.approx(1, abs=0.1)
        assert gain.std() == pytest.approx(0.3, rel=0.2)
    for bias in [block[name] for name in VECTORS if name[-4:] != "gain"]:
        assert bias.mean() == pytest.approx(0, abs=0.1)
        assert bias.std() == pytest.approx(0.3, rel=0.2)


def test_a_width_of_the_mlp_that_is_no_size_is_refused():
    with pytest.raises(ShapeMismatch, match="d_ff must be at least 1, got 0"):
        random_parameters(SHAPE, 0, seed=1)
