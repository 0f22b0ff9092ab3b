"""The mutation score is whole, and the readmes tell it as it is."""

from pathlib import Path

import pytest

from .score import READMES, Score, measure, row, table, written
from .trial import trials

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("contract", trials())
def test_the_score_is_whole_and_stands_in_the_readmes(contract, record_property):
    """`make score` measures and writes it."""
    score = measure(contract)
    record_property("score", [contract, *map(list, score)])
    assert score.alarms[0] == 0
    for some, of in (score.wrong, score.named, score.mutants):
        assert some == of > 0
    for language in READMES:
        assert row(f"`{contract}`", score) in written(language, ROOT).splitlines()


@pytest.mark.parametrize("language", READMES)
def test_the_table_in_the_readme_has_these_rows_and_adds_up(language):
    lines = [line.strip("|").split("|") for line in written(language, ROOT).splitlines()[2:-1]]
    scores = {
        name.strip("`"): Score(*(tuple(map(int, cell.split("/"))) for cell in cells))
        for name, *cells in lines
    }
    assert list(scores) == sorted(trials())
    assert written(language, ROOT) == table(language, scores)
