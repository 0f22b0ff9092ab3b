"""Measuring the machine: in turn, with its spread, and without hiding what it is."""

import platform

import numpy as np
import pytest

from course_lib import machine, text
from course_lib.machine import (
    Machine,
    Measured,
    alternate,
    describe_machine,
    gemm_rate,
    read_bandwidth,
)


@pytest.fixture
def clock(monkeypatch):
    """A clock that only moves when told to."""
    now = [100.0]
    monkeypatch.setattr(machine.time, "perf_counter", lambda: now[0])

    def take(*seconds):
        """A function whose calls take these seconds, one after the other."""
        left = list(seconds)

        def work():
            now[0] += left.pop(0)

        return work

    return take


# --- timing ---


def test_the_median_and_the_extremes_of_the_timed_calls_are_told(clock):
    found = alternate({"a": clock(50, 3, 1, 8, 2, 2.5), "b": clock(50, 7, 7, 7, 7, 6)}, 5)
    assert found == {"a": Measured(2.5, 1, 8, 5), "b": Measured(7, 6, 7, 5)}  # no warm-up in it


def test_candidates_take_turns_every_second_round_backwards():
    calls = []
    alternate({name: lambda name=name: calls.append(name) for name in "abc"}, repeats=4)
    assert "".join(calls) == "abc" + "abc" + "cba" + "abc" + "cba"


def test_a_machine_that_slows_down_slows_all_candidates(clock):
    found = alternate({"a": clock(1, 1, 2, 4, 8, 16), "b": clock(1, 1, 2, 4, 8, 16)}, 5)
    assert found["a"] == found["b"]


def test_seconds_for_some_work_become_work_per_second():
    assert Measured(2.0, 1.0, 4.0, 7).rate(8) == Measured(4.0, 2.0, 8.0, 7)


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", "0.01235 (from 0.01 to 2.5, 7 repeats)"),
        ("ru", "0.01235 (от 0.01 до 2.5, повторов: 7)"),
    ],
)
def test_a_measurement_prints_all_of_itself_in_the_readers_language(monkeypatch, language, words):
    monkeypatch.setattr(text, "LANGUAGE", language)
    assert str(Measured(0.012345678, 0.01, 2.5, 7)) == words


@pytest.mark.parametrize(
    ("functions", "repeats", "error", "message"),
    [
        ({}, 3, ValueError, "must map names to functions, not be empty"),
        ([print], 3, ValueError, "must map names to functions"),
        ({"a": 3}, 3, TypeError, r"functions\['a'\] must be a function .* got int; wrap the call"),
        ({"a": print}, 2, ValueError, "at least 3, got 2: fewer show no spread"),
        ({"a": print}, 3.0, TypeError, "repeats must be a whole number, got 3.0"),
        ({"a": print}, True, TypeError, "repeats must be a whole number, got True"),
    ],
)
def test_a_timing_that_says_nothing_is_refused(functions, repeats, error, message):
    with pytest.raises(error, match=message):
        alternate(functions, repeats)


# --- rates ---


@pytest.mark.parametrize(
    ("measure", "billions"), [(read_bandwidth, 40 * 40 * 4 / 1e9), (gemm_rate, 2 * 40**3 / 1e9)]
)
def test_a_rate_is_the_work_of_one_call_in_billions_over_its_seconds(
    monkeypatch, measure, billions
):
    timed = []

    def known(functions, repeats):
        timed.append((functions, repeats))
        return {name: Measured(2.0, 1.0, 4.0, repeats) for name in functions}

    monkeypatch.setattr(machine, "alternate", known)
    rate = measure(3, side=40)
    assert rate == Measured(billions / 2, billions / 4, billions, 3)
    ((functions, repeats),) = timed
    assert (len(functions), repeats) == (1, 3)


@pytest.mark.parametrize(("measure", "shape"), [(read_bandwidth, (40,)), (gemm_rate, (40, 40))])
def test_what_is_timed_is_the_whole_product_in_float32_without_a_new_array(
    monkeypatch, measure, shape
):
    made = []
    monkeypatch.setattr(
        machine,
        "alternate",
        lambda functions, repeats: {
            name: made.append((function.keywords["out"], function()))
            or Measured(1.0, 1.0, 1.0, repeats)
            for name, function in functions.items()
        },
    )
    measure(3, side=40)
    ((out, result),) = made
    assert result is out
    assert result.dtype == np.float32
    assert np.array_equal(result, np.full(shape, 40.0))


@pytest.mark.parametrize("measure", [read_bandwidth, gemm_rate])
def test_a_real_measurement_lies_within_its_spread(measure):
    rate = measure(3, side=64)
    assert 0 < rate.low <= rate.median <= rate.high
    assert rate.repeats == 3


# --- the description ---


def test_the_machine_is_named_with_what_numpy_computes_with():
    found = describe_machine()
    assert found.cores >= 1
    assert found.processor.strip()
    assert (found.python, found.numpy) == (platform.python_version(), np.__version__)
    assert (
        found.blas.split()[0] in np.show_config(mode="dicts")["Build Dependencies"]["blas"].values()
    )


def test_threads_that_were_asked_for_are_told(monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    blas = describe_machine().blas
    assert "OPENBLAS_NUM_THREADS=1" in blas
    assert "OMP_NUM_THREADS" not in blas


def test_what_cannot_be_found_out_is_unknown(monkeypatch, tmp_path):
    monkeypatch.setattr(machine, "Path", lambda path: tmp_path / "missing" / "x" / "y")
    monkeypatch.setattr(machine.platform, "processor", lambda: "")
    monkeypatch.setattr(machine.platform, "machine", lambda: "")
    monkeypatch.setattr(machine.np, "show_config", lambda mode: {"Build Dependencies": {}})
    found = describe_machine()
    assert (found.processor, found.blas) == ("unknown", "unknown")


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", "P, 2 cores; NumPy 2.4 with openblas; Python 3.11"),
        ("ru", "P, ядер: 2; NumPy 2.4, openblas; Python 3.11"),
    ],
)
def test_a_machine_prints_in_the_readers_language(monkeypatch, language, words):
    monkeypatch.setattr(text, "LANGUAGE", language)
    assert str(Machine("P", 2, "openblas", "3.11", "2.4")) == words
