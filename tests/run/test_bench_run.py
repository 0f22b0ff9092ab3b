"""The arithmetic of the runner's bench."""

import pytest

from course_build.run.outcome import Job, Outcome

from . import bench
from .bench import Measured, judge, least, packed


def outcome(tmp_path, cells):
    return Outcome(Job(tmp_path, "learner", "en", tmp_path), "passed", 1.0, cells=cells)


def test_the_target_counts_all_cells_and_one_import_a_worker():
    assert least([10, 20, 30], 2, workers=2, cores=2) == 32
    assert least([10, 20, 30], 2, workers=4, cores=4) == 17


@pytest.mark.parametrize(
    ("cells", "workers", "seconds"),
    [([10, 20, 30], 2, 32), ([50, 1, 1], 2, 52), ([3, 3, 2, 2, 2], 2, 9), ([4], 3, 6)],
)
def test_undivided_notebooks_are_packed_the_longest_first(cells, workers, seconds):
    assert packed(cells, 2, workers) == seconds


def test_the_cells_of_each_notebook_are_summed(tmp_path):
    outcomes = (outcome(tmp_path, {"a": 1.0, "b": 2.0}), outcome(tmp_path, {"a": 4.0}))
    assert Measured(5.0, 0.0, outcomes).cells == [3.0, 4.0]


def test_everything_has_its_turn_first_and_the_median_counts(monkeypatch):
    order = []
    monkeypatch.setattr(bench, "measured", lambda task: Measured(task(), 0.0))
    tasks = {name: lambda name=name: order.append(name) or float(len(order)) for name in "abc"}
    found = bench.in_turns(tasks, 3)
    assert "".join(order) == "abcbcacab"
    assert bench.wall(found["a"]) == 6.0


def test_a_notebook_that_fails_is_no_measurement(tmp_path):
    failed = Outcome(Job(tmp_path, "learner", "en", tmp_path), "failed", 1.0)
    with pytest.raises(SystemExit, match="failed"):
        bench.measured(lambda: [failed])


def test_a_missed_target_is_told(capsys):
    assert judge("ratio", 1.15, 1.15)
    assert not judge("ratio", 1.151, 1.15)
    assert capsys.readouterr().out.splitlines()[1] == "MISSED ratio: 1.151, wanted at most 1.15"
