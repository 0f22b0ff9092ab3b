"""The order of headings: one title, no level left out."""

import pytest

from .conftest import FRAME_LINES, SOURCE, prose, said


@pytest.mark.parametrize("heading", ["### Third at once", "#### Fourth at once"])
def test_a_skipped_level_is_named_in_each_language(repo, heading):
    err = repo.refuse(prose("deep", heading, heading))
    assert len(said(SOURCE, FRAME_LINES + 3, "deep", "heading-order").findall(err)) == 1
    assert err.count("[heading-order]") == 2
    assert "after one of level 1\n    -> begin the heading with ##\n" in err


def test_a_second_title_is_refused(repo):
    err = repo.refuse(prose("again", "Words.\n\n# A title", "Слова.\n\n# Заголовок"))
    assert said(SOURCE, FRAME_LINES + 5, "again", "heading-order").search(err)


def test_levels_go_down_one_by_one_and_up_at_will(repo):
    steps = ["## One", "### Two", "#### Three", "## One again", "### Two again"]
    repo.build(*(prose(f"s{place}", text, text) for place, text in enumerate(steps)))


def test_what_looks_like_a_heading_in_code_is_none(repo):
    text = "```python\n#### a comment\n```"
    repo.build(prose("code", text, text))
