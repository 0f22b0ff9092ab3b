"""The mutation score is whole, and the readmes tell it as it is."""

from pathlib import Path

import pytest

from .score import READMES, scores, table, written

ROOT = Path(__file__).parents[2]


def test_everything_wrong_is_refused_and_everything_right_accepted():
    for contract, score in scores().items():
        assert score.alarms[0] == 0, contract
        for some, of in (score.wrong, score.named, score.mutants):
            assert some == of > 0, contract


@pytest.mark.parametrize("language", READMES)
def test_the_table_in_the_readme_is_fresh(language):
    """`make score` measures and writes it."""
    assert written(language, ROOT) == table(language)
