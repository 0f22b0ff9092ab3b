"""The probe: one number that tells a causal network from one that looks ahead."""

import pytest
import torch

from course_lib.causality import CausalityProbe

BEFORE, AFTER = torch.tensor([[1, 2, 3, 4, 5]]), torch.tensor([[1, 2, 3, 4, 9]])


def earlier_movement(probe):
    return (probe(BEFORE) - probe(AFTER))[:, :4].abs().max().item()


def test_the_last_token_moves_earlier_outputs_only_without_a_mask():
    assert earlier_movement(CausalityProbe(causal=True)) <= 1e-7
    assert earlier_movement(CausalityProbe(causal=False)) > 0.1


def test_float64_tells_the_same_story():
    ids_moved = [
        earlier_movement(CausalityProbe(causal=causal).double()) for causal in (True, False)
    ]
    assert ids_moved[0] == 0
    assert ids_moved[1] > 0.1


@pytest.mark.parametrize("changed", range(5))
def test_every_later_token_is_hidden_and_every_earlier_one_is_read(changed):
    probe = CausalityProbe(causal=True)
    other = BEFORE.clone()
    other[0, changed] = 10
    moved = (probe(BEFORE) - probe(other))[0].abs().amax(dim=-1)
    assert (moved[:changed] == 0).all()
    assert (moved[changed:] > 1e-3).all()


def test_nothing_is_left_to_chance():
    torch.manual_seed(1)
    first = CausalityProbe(causal=False)(BEFORE)
    torch.manual_seed(2)
    assert torch.equal(CausalityProbe(causal=False)(BEFORE), first)


def test_attention_is_the_only_path_between_tokens():
    probe = CausalityProbe(causal=True)
    alone = probe(BEFORE[:, :1])
    assert alone.shape == (1, 1, 8)
    assert torch.allclose(
        alone[0, 0], probe.embedding.weight[1]
    )  # one token reads itself: identity


def test_the_eleven_embeddings_differ():
    table = CausalityProbe(causal=True).embedding.weight
    assert table.shape == (11, 8)
    assert len(torch.unique(table, dim=0)) == 11


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        (
            torch.tensor([[11]]),
            ValueError,
            "token_ids holds id 11, outside the vocabulary of 11 ids",
        ),
        (torch.tensor([[-1]]), ValueError, "token_ids holds id -1"),
        (torch.tensor([1]), ValueError, r"shape \[B, T\]"),
        (torch.tensor([[1.0]]), TypeError, "torch.long"),
    ],
)
def test_other_ids_are_refused(ids, error, message):
    with pytest.raises(error, match=message):
        CausalityProbe(causal=True)(ids)


def test_causal_must_be_said_and_be_a_bool():
    with pytest.raises(TypeError, match="causal must be True or False"):
        CausalityProbe(causal=None)
    with pytest.raises(TypeError, match="causal"):
        CausalityProbe()
