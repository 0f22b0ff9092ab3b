"""The catalogue of mistaken attentions, and the exercise that hides three of them."""

import pytest
import torch

from course_lib import text
from course_lib.contracts import ContractViolation, check_attention_contract
from course_lib.mistakes.attention import (
    ATTENTION_MISTAKES,
    attention_mistakes,
    check_planted_answers,
    planted_attentions,
)

CLAUSES = {
    "scale": "scores",
    "softmax_axis": "row_sums",
    "mask_polarity": "masked_keys",
    "mask_added": "masked_keys",
    "mask_after_softmax": "masked_keys",
    "mask_skipped": "masked_keys",
    "finite_fill": "masked_keys",
    "overflow": "extreme_logits",
    "value_mixing": "permutation",
    "empty_row": "empty_row_error",
    "argument_changed": "arguments_unchanged",
    "dropout": "repeatable",
}
RIGHT = {"A": "scale", "B": "mask_after_softmax", "C": "finite_fill"}


def test_every_kind_has_a_function_an_explanation_and_a_clause():
    assert list(attention_mistakes()) == list(ATTENTION_MISTAKES) == list(CLAUSES)


@pytest.mark.parametrize("kind", CLAUSES)
def test_each_mistake_runs_and_is_refused_by_its_clause(kind):
    with pytest.raises(ContractViolation) as caught:
        check_attention_contract(attention_mistakes()[kind])
    assert caught.value.clause == CLAUSES[kind]
    assert caught.value.__cause__ is None  # wrong, not crashing


@pytest.mark.parametrize("kind", CLAUSES)
def test_each_mistake_is_right_but_for_its_one_thing(kind):
    """Without a mask, equally wide and with one query, most of them cannot be told from right."""
    torch.manual_seed(0)
    q, k, v = torch.randn(1, 3).double(), torch.randn(4, 3).double(), torch.randn(4, 3).double()
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    got = attention_mistakes()[kind](q.clone(), k, v).output
    assert torch.allclose(got, expected) == (kind not in ("softmax_axis", "dropout"))


def test_the_suspects_are_three_and_tell_nothing_by_their_names():
    suspects = planted_attentions()
    assert list(suspects) == ["A", "B", "C"]
    assert len({suspect.__name__ for suspect in suspects.values()}) == 1


@pytest.mark.parametrize("letter", RIGHT)
def test_each_suspect_is_the_mistake_that_its_answer_names(letter):
    """The contract says the same of the suspect and of the catalogued mistake."""
    told = []
    for attention in (planted_attentions()[letter], attention_mistakes()[RIGHT[letter]]):
        with pytest.raises(ContractViolation) as caught:
            check_attention_contract(attention)
        told.append(str(caught.value))
    assert told[0] == told[1]


def test_no_answer_yet_is_not_attempted_and_lists_the_words():
    report = check_planted_answers({"A": None, "B": None, "C": None})
    assert not report.attempted
    assert str(report).startswith("○ check_planted_answers: not attempted")
    assert all(word in str(report) for word in ATTENTION_MISTAKES)


def test_right_answers_pass_with_their_explanations():
    report = check_planted_answers(RIGHT)
    assert report.attempted
    assert [clause.measured for clause in report.clauses] == list(RIGHT.values())
    assert str(report).startswith("✓ check_planted_answers: all 3 clauses hold")


def test_some_right_answers_leave_the_others_open():
    report = check_planted_answers({"B": "mask_after_softmax"})
    assert not report.attempted
    assert report.notes[:2] == ("right: B", "still open: A, C")


def test_a_wrong_answer_is_named_and_the_right_one_is_not():
    with pytest.raises(ContractViolation) as caught:
        check_planted_answers({"A": "scale", "B": "overflow", "C": None})
    message = " ".join(str(caught.value).split())
    assert caught.value.clause == "B"
    assert "right: A; not right: B; still open: C" in message
    assert "mask_after_softmax" not in message.replace(", ".join(ATTENTION_MISTAKES), "")


def test_a_word_that_is_not_on_the_list_is_a_wrong_answer():
    with pytest.raises(ContractViolation) as caught:
        check_planted_answers({"A": "scael"})
    assert caught.value.measured == "scael"


def test_the_check_speaks_russian(monkeypatch):
    monkeypatch.setattr(text, "LANGUAGE", "ru")
    with pytest.raises(ContractViolation, match="неверно: C"):
        check_planted_answers(RIGHT | {"C": "scale"})
    assert "слова на выбор: scale" in str(check_planted_answers({}))


def test_other_letters_and_other_things_are_errors_at_the_door():
    with pytest.raises(ValueError, match=r"the letters are \['A', 'B', 'C'\], got \['D'\]"):
        check_planted_answers({"D": "scale"})
    with pytest.raises(TypeError, match="answers must be a dict"):
        check_planted_answers(["scale"])
