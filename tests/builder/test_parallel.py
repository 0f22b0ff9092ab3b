"""Work that is spread over processes ends as if it had been done here, one after the other."""

import os
import signal

import psutil
import pytest

from course_build.base import parallel
from course_build.base.parallel import spread

HERE = os.getpid()


@pytest.fixture(params=[1, 2, 3, 8])
def cores(request, monkeypatch):
    monkeypatch.setattr(parallel, "_usable_cores", lambda: request.param)
    return request.param


@pytest.fixture(autouse=True)
def _nobody_is_left():
    before = psutil.Process().children()  # a browser of other tests may live in this process
    yield
    assert set(psutil.Process().children()) <= set(before)


@pytest.mark.parametrize("count", range(6))
def test_results_come_in_the_order_of_the_items(cores, count):
    items = [f"{number}" for number in range(count)]
    assert spread(lambda item: item * 2, items) == [item * 2 for item in items]


def test_the_work_is_really_shared(cores):
    workers = spread(lambda item: os.getpid(), range(8))
    assert len(set(workers)) == cores
    assert workers[0] == HERE


def test_an_error_is_raised_here_and_nobody_goes_on(cores):
    def work(item):
        if item == 5:
            raise LookupError(f"not {item}")
        return item

    with pytest.raises(LookupError, match="not 5"):
        spread(work, range(8))


def test_what_a_helper_that_is_killed_leaves_is_done_here(cores):
    def work(item):
        if os.getpid() != HERE:
            os.kill(os.getpid(), signal.SIGKILL)
        return item

    assert spread(work, range(8)) == list(range(8))


def test_what_cannot_be_sent_is_done_here(cores):
    made = spread(lambda item: lambda: item, range(4))
    assert [function() for function in made] == list(range(4))


def test_an_interrupt_ends_the_helpers(cores):
    def work(item):
        if os.getpid() == HERE:
            raise KeyboardInterrupt
        signal.pause()

    with pytest.raises(KeyboardInterrupt):
        spread(work, range(8))


def test_without_helpers_everything_is_done_here(cores, monkeypatch):
    def refuse():
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(parallel.os, "fork", refuse)
    assert set(spread(lambda item: os.getpid(), range(8))) == {HERE}


def test_beside_other_threads_nothing_is_forked(monkeypatch, tmp_path):
    for thread in ("1", "2"):
        (tmp_path / thread).mkdir()
    monkeypatch.setattr(parallel, "THREADS", tmp_path)
    assert set(spread(lambda item: os.getpid(), range(4))) == {HERE}
    monkeypatch.setattr(parallel, "THREADS", tmp_path / "none")
    assert set(spread(lambda item: os.getpid(), range(4))) == {HERE}
