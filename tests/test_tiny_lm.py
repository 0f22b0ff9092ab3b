"""The tiny language model: its parts, its refusals, its greedy continuation."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.tiny_lm import TinyLM, evaluating, greedy_continuation

IDS = torch.tensor([[0, 1, 2, 3, 4], [5, 5, 0, 2, 1]])


def tiny(seed=18, **sizes):
    torch.manual_seed(seed)
    return TinyLM(**sizes).double()


def bold(seed=18, **sizes):
    """Build a model with large weights, so that its choices vary with what it reads."""
    model = tiny(seed, **sizes)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.normal_()
    return model


def test_the_logits_are_the_formula():
    model = bold(vocab_size=7, d_model=8, n_heads=2, d_ff=10, max_length=9)
    x = model.token_embedding.weight[IDS] + model.position_embedding.weight[:5]
    x = model.block(x)
    x = F.layer_norm(x, (8,), model.ln_final.weight, model.ln_final.bias)
    expected = x @ model.token_embedding.weight.T
    assert model(IDS).shape == (2, 5, 7)
    assert (model(IDS) - expected).abs().max() <= 1e-12


def test_the_default_model_works_in_float32_and_float64():
    torch.manual_seed(0)
    model = TinyLM()
    narrow = model(IDS)
    assert narrow.dtype == torch.float32
    assert narrow.shape == (2, 5, 6)
    wide = model.double()(IDS)
    assert wide.dtype == torch.float64
    assert (narrow - wide).abs().max() < 1e-5


def test_the_default_sizes_are_those_of_the_course():
    shapes = {name: tuple(p.shape) for name, p in TinyLM().named_parameters()}
    assert shapes["token_embedding.weight"] == (6, 24)
    assert shapes["position_embedding.weight"] == (32, 24)
    assert shapes["block.attn.qkv.weight"] == (72, 24)
    assert shapes["block.ffn.up.weight"] == (48, 24)
    assert TinyLM().block.attn.n_heads == 4
    children = [name for name, _ in TinyLM().named_children()]
    assert children == ["token_embedding", "position_embedding", "block", "ln_final", "head"]


def test_an_untrained_model_knows_nothing():
    loss = F.cross_entropy(tiny()(IDS).flatten(0, 1), IDS.flatten())
    assert loss.item() == pytest.approx(math.log(6), abs=0.2)


def test_the_output_weight_is_the_embedding_also_after_a_step():
    model = tiny()
    assert model.head.weight is model.token_embedding.weight
    before = model.head.weight.detach().clone()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    F.cross_entropy(model(IDS).flatten(0, 1), IDS.flatten()).backward()
    optimizer.step()
    assert model.head.weight is model.token_embedding.weight
    assert not torch.equal(model.head.weight, before)


@pytest.mark.parametrize("changed", range(5))
def test_a_later_token_leaves_earlier_logits_alone(changed):
    model = bold()
    other = IDS.clone()
    other[:, changed] = (other[:, changed] + 1) % 6
    moved = (model(IDS) - model(other)).abs().amax(dim=(0, 2))
    assert (moved[:changed] == 0).all()
    assert (moved[changed:] > 1e-6).all()


def test_the_order_of_tokens_matters():
    logits = bold()(torch.tensor([[1, 2, 3], [2, 1, 3]]))
    assert (logits[0, 2] - logits[1, 2]).abs().max() > 1e-3


def test_a_row_does_not_depend_on_its_neighbours():
    model = bold()
    assert torch.allclose(model(IDS)[1], model(IDS[1:])[0], atol=1e-12)


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        (IDS.int(), TypeError, "token_ids must hold torch.long ids, got torch.int32"),
        (IDS.double(), TypeError, "torch.long"),
        (IDS > 2, TypeError, "torch.long"),
        (IDS.tolist(), TypeError, "token_ids must be a torch.Tensor, got list"),
        (IDS[0], ValueError, r"token_ids must have shape \[B, T\], got \[5\]"),
        (IDS[None], ValueError, r"token_ids must have shape \[B, T\]"),
        (IDS[:, :0], ValueError, "token_ids has an empty axis"),
        (IDS[:0], ValueError, "token_ids has an empty axis"),
        (
            torch.full((1, 2), 6),
            ValueError,
            "token_ids holds id 6, outside the vocabulary of 6 ids",
        ),
        (torch.full((1, 2), -1), ValueError, "token_ids holds id -1, outside the vocabulary"),
        (torch.zeros(1, 33).long(), ValueError, "token_ids has 33 positions, past max_length=32"),
    ],
)
def test_ids_that_the_model_cannot_read_are_refused(ids, error, message):
    with pytest.raises(error, match=message):
        tiny()(ids)


def test_a_prompt_may_fill_the_whole_length():
    assert tiny()(torch.zeros(1, 32).long()).shape == (1, 32, 6)


@pytest.mark.parametrize("name", ["vocab_size", "d_model", "n_heads", "d_ff", "max_length"])
@pytest.mark.parametrize(
    ("value", "error"), [(True, TypeError), (4.0, TypeError), (0, ValueError), (-4, ValueError)]
)
def test_bad_sizes_are_refused_by_name(name, value, error):
    with pytest.raises(error, match=f"{name} must be"):
        TinyLM(**{name: value})


def test_sizes_are_given_by_name_and_fit_together():
    with pytest.raises(ValueError, match="d_model=24 is not divisible by n_heads=5"):
        TinyLM(n_heads=5)
    with pytest.raises(TypeError, match="positional"):
        TinyLM(6)
    assert TinyLM(vocab_size=np.int64(3), d_model=np.int64(4))(torch.tensor([[2]])).shape == (
        1,
        1,
        3,
    )


# ---------------------------------------------------------------- generation


def test_the_continuation_is_the_argmax_of_each_step():
    model = bold()
    ids = IDS[:, :3]
    for _ in range(6):
        ids = torch.cat([ids, model(ids)[:, -1].argmax(dim=-1)[:, None]], dim=1)
    assert torch.equal(model.generate(IDS[:, :3], 6), ids)
    assert torch.equal(greedy_continuation(model, IDS[:, :3], np.int64(6)), ids)
    assert all(len(torch.unique(row)) > 1 for row in ids[:, 3:])  # it does not just repeat itself


def test_a_prompt_alone_continues_as_in_a_batch():
    model = bold()
    together = model.generate(IDS, 7)
    for row in range(2):
        assert torch.equal(model.generate(IDS[row : row + 1], 7)[0], together[row])


def test_the_prompt_is_returned_and_left_alone():
    prompt = IDS.clone()
    longer = bold().generate(prompt, 4)
    assert longer.shape == (2, 9)
    assert torch.equal(longer[:, :5], IDS)
    assert torch.equal(prompt, IDS)


@pytest.mark.parametrize("training", [True, False])
def test_generation_runs_in_eval_mode_and_gives_every_mode_back(training):
    model = bold()
    model.block = nn.Sequential(model.block, nn.Dropout(0.9))
    model.train(training)
    model.block[0].eval()  # one part frozen by hand
    modes = [module.training for module in model.modules()]
    first = model.generate(IDS, 8)
    assert torch.equal(model.generate(IDS, 8), first)
    assert [module.training for module in model.modules()] == modes


def test_the_modes_come_back_after_an_error_too():
    model = tiny().train()

    def fail_inside():
        with evaluating(model):
            assert not model.training
            assert not model.block.attn.training
            assert not torch.is_grad_enabled()
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        fail_inside()
    assert model.training
    assert model.block.attn.training
    assert torch.is_grad_enabled()
    with pytest.raises(TypeError, match=r"model must be a torch.nn.Module"):
        evaluating(len).__enter__()


def test_generation_leaves_no_gradients_and_no_state():
    model = bold()
    state = {name: value.clone() for name, value in model.state_dict().items()}
    assert not model.generate(IDS, 3).requires_grad
    assert all(parameter.grad is None for parameter in model.parameters())
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())


def test_past_max_length_it_raises_unless_asked_for_a_window():
    model = bold(max_length=6)
    assert model.generate(IDS, 2).shape == (2, 7)  # the seventh token is written, never read
    with pytest.raises(
        ValueError, match="5 tokens and 3 new ones need 7 positions, past max_length=6"
    ):
        model.generate(IDS, 3)
    with pytest.raises(ValueError, match="sliding_window=True"):
        model.generate(IDS.repeat(1, 2), 1)


def test_a_sliding_window_reads_the_last_tokens_only():
    model = bold(max_length=4)
    ids = IDS
    for _ in range(5):
        ids = torch.cat([ids, model(ids[:, -4:])[:, -1].argmax(dim=-1)[:, None]], dim=1)
    assert torch.equal(model.generate(IDS, 5, sliding_window=True), ids)
    front_changed = IDS.clone()
    front_changed[:, 0] = 3
    continued = model.generate(front_changed, 5, sliding_window=True)
    assert torch.equal(continued[:, 5:], ids[:, 5:])


def test_a_window_that_is_not_needed_changes_nothing():
    model = bold()
    assert torch.equal(model.generate(IDS, 4, sliding_window=True), model.generate(IDS, 4))


@pytest.mark.parametrize(
    ("value", "error"), [(True, TypeError), (2.0, TypeError), (0, ValueError), (-1, ValueError)]
)
def test_the_number_of_new_tokens_is_a_positive_integer(value, error):
    with pytest.raises(error, match="new_tokens must be"):
        tiny().generate(IDS, value)


def test_bad_prompts_are_refused_before_anything_runs():
    with pytest.raises(ValueError, match="token_ids holds id 6"):
        tiny(max_length=2).generate(torch.tensor([[6, 0, 0, 0]]), 1, sliding_window=True)
    with pytest.raises(ValueError, match=r"shape \[B, T\]"):
        tiny().generate(IDS[0], 1)
    with pytest.raises(TypeError, match="sliding_window must be True or False"):
        tiny().generate(IDS, 1, sliding_window=1)
    with pytest.raises(TypeError, match="positional"):
        tiny().generate(IDS, 1, True)
