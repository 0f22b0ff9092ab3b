"""The exercise that hides three mistaken attentions behind letters."""

import pytest
import torch

from course_lib import text
from course_lib.contracts import ContractViolation, check_attention_contract
from course_lib.contracts.attention.attention_mistakes import ATTENTION_MISTAKES
from course_lib.mistakes.planted import check_planted_answers, planted_attentions

RIGHT = {"A": "scale_by_d_v", "B": "mask_after_softmax", "C": "finite_fill"}
MADE = {mistake.name: mistake.make for mistake in ATTENTION_MISTAKES}


def offered_words():
    note = check_planted_answers({}).notes[-1]
    return note.partition(": ")[2].split(", ")


def test_the_words_are_twelve_names_of_the_catalogue():
    assert len(set(offered_words())) == 12
    assert set(offered_words()) <= set(MADE)
    assert set(RIGHT.values()) <= set(offered_words())


@pytest.mark.parametrize("name", offered_words())
def test_each_offered_mistake_is_right_but_for_its_one_thing(name):
    """Without a mask, equally wide and with one query, most of them cannot be told from right."""
    torch.manual_seed(0)
    q, k, v = torch.randn(1, 3).double(), torch.randn(4, 3).double(), torch.randn(4, 3).double()
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    got = MADE[name]()(q.clone(), k, v).output
    seen = name in ("not_scaled", "softmax_over_queries", "random_in_every_call")
    assert torch.allclose(got, expected) is not seen


def test_the_suspects_are_three_and_tell_nothing_by_their_names():
    suspects = planted_attentions()
    assert list(suspects) == ["A", "B", "C"]
    assert len({suspect.__name__ for suspect in suspects.values()}) == 1


@pytest.mark.parametrize("letter", RIGHT)
def test_each_suspect_is_the_mistake_that_its_answer_names(letter):
    """The contract says the same of the suspect and of the catalogued mistake."""
    told = []
    for attention in (planted_attentions()[letter], MADE[RIGHT[letter]]()):
        with pytest.raises(ContractViolation) as caught:
            check_attention_contract(attention)
        told.append(str(caught.value))
        assert caught.value.mistakes == (RIGHT[letter],)
    assert told[0] == told[1]


def test_no_answer_yet_is_not_attempted_and_lists_the_words():
    report = check_planted_answers({"A": None, "B": None, "C": None})
    assert not report.attempted
    assert str(report).startswith("○ check_planted_answers: not attempted")
    assert all(word in str(report) for word in offered_words())


def test_right_answers_pass_with_their_explanations():
    report = check_planted_answers(RIGHT)
    assert report.attempted
    assert [clause.measured for clause in report.clauses] == list(RIGHT.values())
    assert "√d_v" in report.clauses[0].meaning
    assert str(report).startswith("✓ check_planted_answers: all 3 clauses hold")


def test_some_right_answers_leave_the_others_open():
    report = check_planted_answers({"B": "mask_after_softmax"})
    assert not report.attempted
    assert report.notes[:2] == ("right: B", "still open: A, C")


def test_a_wrong_answer_is_named_and_the_right_one_is_not():
    with pytest.raises(ContractViolation) as caught:
        check_planted_answers({"A": "scale_by_d_v", "B": "exp_without_maximum", "C": None})
    message = " ".join(str(caught.value).split())
    assert caught.value.clause == "B"
    assert "right: A; not right: B; still open: C" in message
    assert "mask_after_softmax" not in message.replace(", ".join(offered_words()), "")


def test_a_word_that_is_not_on_the_list_is_a_wrong_answer():
    with pytest.raises(ContractViolation) as caught:
        check_planted_answers({"A": "scael"})
    assert caught.value.measured == "scael"


def test_the_check_speaks_russian(monkeypatch):
    monkeypatch.setattr(text, "LANGUAGE", "ru")
    with pytest.raises(ContractViolation, match="неверно: C"):
        check_planted_answers(RIGHT | {"C": "not_scaled"})
    assert "слова на выбор: not_scaled" in str(check_planted_answers({}))


def test_other_letters_and_other_things_are_errors_at_the_door():
    with pytest.raises(ValueError, match=r"the letters are \['A', 'B', 'C'\], got \['D'\]"):
        check_planted_answers({"D": "not_scaled"})
    with pytest.raises(TypeError, match="answers must be a dict"):
        check_planted_answers(["not_scaled"])
