"""Training: the shift, the loss, the bounded overfit, and the test that sees a leak."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from course_lib.likelihood import token_nll
from course_lib.tiny_lm import TinyLM
from course_lib.training import (
    fit,
    mean_nll,
    next_token_accuracy,
    next_token_loss,
    next_token_windows,
    predict_next,
)

LOG_V = math.log(6)


class Successor(nn.Module):
    """Be certain that token t is followed by t + 1, modulo 6."""

    def __init__(self, certainty=60.0):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(certainty, dtype=torch.float64))

    def forward(self, token_ids):
        return self.scale * nn.functional.one_hot((token_ids + 1) % 6, 6)


class Ramp(nn.Module):
    """Give every position the same logits 0, 1, ..., 5."""

    def forward(self, token_ids):
        return torch.arange(6.0).double().expand(*token_ids.shape, 6)


# ---------------------------------------------------------------- windows and losses


def test_windows_are_every_stretch_of_the_text():
    text = torch.tensor([3, 1, 4, 1, 5])
    assert next_token_windows(text, 2).tolist() == [[3, 1, 4], [1, 4, 1], [4, 1, 5]]
    assert next_token_windows(text, 4).tolist() == [[3, 1, 4, 1, 5]]
    assert next_token_windows(text, np.int64(1)).shape == (4, 2)


def test_windows_are_a_copy():
    text = torch.arange(5)
    next_token_windows(text, 2)[0] = 9
    assert text.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("text", "context", "error", "message"),
    [
        (torch.arange(4), 4, ValueError, r"at least context \+ 1 = 5 tokens, got \[4\]"),
        (torch.zeros(2, 4).long(), 2, ValueError, r"token_ids must be \[T\]"),
        (torch.arange(0), 1, ValueError, "token_ids has an empty axis"),
        (torch.ones(4), 2, TypeError, "token_ids must hold torch.long ids, got torch.float32"),
        ([1, 2, 3], 2, TypeError, "token_ids must be a torch.Tensor"),
        (torch.arange(4), 0, ValueError, "context must be at least 1"),
        (torch.arange(4), -1, ValueError, "context must be at least 1"),
        (torch.arange(4), True, TypeError, "context must be an integer"),
        (torch.arange(4), 2.0, TypeError, "context must be an integer"),
    ],
)
def test_texts_that_make_no_windows_are_refused(text, context, error, message):
    with pytest.raises(error, match=message):
        next_token_windows(text, context)


def test_the_target_of_a_position_is_the_next_token():
    windows = torch.tensor([[0, 1, 2, 3], [5, 0, 1, 2]])
    logits, targets = predict_next(Successor(), windows)
    assert logits.shape == (2, 3, 6)
    assert targets.tolist() == [[1, 2, 3], [0, 1, 2]]
    assert torch.equal(logits.argmax(dim=-1), targets)


def test_a_certain_and_right_model_pays_nothing_and_a_wrong_one_everything():
    right = torch.tensor([[0, 1, 2, 3]])
    assert mean_nll(Successor(), right) == pytest.approx(0.0, abs=1e-12)
    assert next_token_accuracy(Successor(), right) == 1.0
    wrong = torch.tensor([[0, 2, 4, 0]])
    assert mean_nll(Successor(), wrong) == pytest.approx(60.0, abs=1e-9)
    assert next_token_accuracy(Successor(), wrong) == 0.0
    half = torch.tensor([[0, 1, 5]])
    assert mean_nll(Successor(), half) == pytest.approx(30.0, abs=1e-9)
    assert next_token_accuracy(Successor(), half) == 0.5


def test_the_mean_is_over_all_predicted_tokens_and_agrees_with_the_plain_loop():
    windows = torch.tensor([[0, 5, 2], [1, 3, 3]])
    each = [token_nll([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], target) for target in (5, 2, 3, 3)]
    assert mean_nll(Ramp(), windows) == pytest.approx(sum(each) / 4, abs=1e-12)
    assert next_token_loss(Ramp(), windows).item() == pytest.approx(sum(each) / 4, abs=1e-12)


def test_a_model_that_knows_nothing_pays_log_v():
    assert mean_nll(Successor(0.0), torch.tensor([[0, 3, 3, 1]])) == pytest.approx(LOG_V, abs=1e-12)


@pytest.mark.parametrize("measure", [mean_nll, next_token_accuracy])
def test_measuring_runs_in_eval_mode_and_leaves_nothing_behind(measure):
    class Noisy(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.dropout = Successor(), nn.Dropout(0.9)

        def forward(self, token_ids):
            return self.dropout(self.inner(token_ids))

    model, windows = Noisy().train(), torch.tensor([[0, 1, 2, 3, 4, 5]])
    assert measure(model, windows) == pytest.approx(
        float(measure is next_token_accuracy), abs=1e-12
    )
    assert model.training
    assert model.dropout.training
    assert model.inner.scale.grad is None
    assert windows.tolist() == [[0, 1, 2, 3, 4, 5]]


@pytest.mark.parametrize("use", [predict_next, next_token_loss, mean_nll, next_token_accuracy])
@pytest.mark.parametrize(
    ("windows", "error", "message"),
    [
        (
            torch.tensor([[1]]),
            ValueError,
            r"windows must be \[B, T \+ 1\] with T of at least 1, got",
        ),
        (torch.tensor([1, 2]), ValueError, r"windows must be \[B, T \+ 1\]"),
        (torch.tensor([[1, 2, 6]]), ValueError, "windows holds id 6, outside the vocabulary of 6"),
        (torch.tensor([[1, 2, -100]]), ValueError, "windows holds id -100, outside the vocabulary"),
        (torch.tensor([[1, 2, 3]]).int(), TypeError, "torch.long"),
        ([[1, 2]], TypeError, "windows must be a torch.Tensor"),
    ],
)
def test_windows_that_cannot_be_predicted_are_refused(use, windows, error, message):
    with pytest.raises(error, match=message):
        use(TinyLM(), windows)


@pytest.mark.parametrize("use", [predict_next, next_token_loss, mean_nll, next_token_accuracy])
def test_what_is_no_model_is_refused(use):
    with pytest.raises(TypeError, match="model must be a torch.nn.Module, got function"):
        use(lambda ids: ids, torch.tensor([[1, 2]]))


# ---------------------------------------------------------------- fitting


def test_a_fit_is_adamw_without_weight_decay():
    torch.manual_seed(0)
    ours, theirs = TinyLM().double(), TinyLM().double()
    theirs.load_state_dict(ours.state_dict())
    batches = [torch.randint(6, (3, 5)) for _ in range(4)]
    asked = []

    def next_batch(step):
        asked.append(step)
        return batches[step]

    losses = fit(ours, next_batch, steps=4, learning_rate=0.01)
    optimizer = torch.optim.Adam(theirs.parameters(), lr=0.01)  # no decay: AdamW is Adam
    expected = []
    for batch in batches:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(theirs(batch[:, :-1]).transpose(1, 2), batch[:, 1:])
        loss.backward()
        optimizer.step()
        expected.append(loss.item())
    assert asked == [0, 1, 2, 3]
    assert losses == pytest.approx(expected, abs=1e-12)
    for name, value in theirs.state_dict().items():
        assert torch.allclose(ours.state_dict()[name], value, atol=1e-12), name


def test_a_fit_trains_in_train_mode():
    model = TinyLM().eval()
    modes = []

    def next_batch(step):
        modes.append(model.training)
        return torch.tensor([[0, 1, 2]])

    fit(model, next_batch, steps=2, learning_rate=0.01)
    assert modes == [True, True]


def test_a_fit_that_diverges_stops_and_says_so():
    class Broken(Successor):
        def forward(self, token_ids):
            return super().forward(token_ids) * math.nan

    with pytest.raises(FloatingPointError, match="the loss of step 0 is nan; lower learning_rate"):
        fit(Broken(), lambda step: torch.tensor([[0, 1]]), steps=3, learning_rate=0.01)


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("steps", 0, ValueError, "steps must be at least 1"),
        ("steps", -1, ValueError, "steps must be at least 1"),
        ("steps", True, TypeError, "steps must be an integer"),
        ("steps", 2.0, TypeError, "steps must be an integer"),
        ("learning_rate", 0, ValueError, "learning_rate must be above 0, got 0"),
        ("learning_rate", -0.1, ValueError, "learning_rate must be above 0"),
        ("learning_rate", math.nan, ValueError, "learning_rate must be finite"),
        ("learning_rate", True, TypeError, "learning_rate must be a number"),
        ("learning_rate", None, TypeError, "learning_rate must be a number"),
    ],
)
def test_a_fit_with_bad_settings_is_refused_before_it_starts(name, value, error, message):
    def never(step):
        raise AssertionError("the batch was drawn")

    with pytest.raises(error, match=message):
        fit(TinyLM(), never, **{"steps": 1, "learning_rate": 0.01, name: value})


def test_only_modules_are_fitted():
    with pytest.raises(TypeError, match="model must be a torch.nn.Module, got NoneType"):
        fit(None, lambda step: torch.tensor([[0, 1]]), steps=1, learning_rate=0.01)


# ---------------------------------------------------------------- what the course claims


def seeded_model(causal):
    torch.manual_seed(18)
    model = TinyLM().double()
    model.block.attn.causal = causal
    return model


@pytest.mark.parametrize("causal", [True, False])
def test_the_bounded_overfit_passes_with_and_without_the_causal_mask(causal):
    windows = next_token_windows(torch.tensor([0, 1, 2, 3, 4, 5] * 20), 12)
    model = seeded_model(causal)
    losses = fit(model, lambda step: windows, steps=121, learning_rate=0.03)
    assert len(losses) == 121
    assert losses[0] == pytest.approx(LOG_V, abs=0.2)
    assert losses[-1] < 0.02
    assert losses[-1] < losses[0] / 50
    assert mean_nll(model, windows) < 0.02
    assert next_token_accuracy(model, windows) >= 0.99
    continued = model.generate(torch.tensor([[0, 1, 2]]), 15)[0, 3:]
    assert (continued == torch.arange(3, 18) % 6).double().mean() >= 0.95


def test_random_tokens_cannot_be_predicted_unless_the_future_leaks():
    nll = {}
    for causal in (True, False):
        generator = torch.Generator().manual_seed(18)
        model = seeded_model(causal)
        fit(
            model,
            lambda step, draw=generator: torch.randint(6, (32, 13), generator=draw),
            steps=121,
            learning_rate=0.03,
        )
        fresh = torch.randint(6, (2000, 13), generator=generator)
        nll[causal] = mean_nll(model, fresh)
    assert nll[True] >= LOG_V
    assert nll[True] == pytest.approx(LOG_V, abs=0.01)
    assert nll[False] < 0.5


def test_over_all_texts_a_causal_model_cannot_average_below_log_v():
    every_text = torch.cartesian_prod(*[torch.arange(6)] * 5)  # [6^5, 5]: each exactly once
    torch.manual_seed(3)
    model = TinyLM().double()
    with torch.no_grad():
        model.token_embedding.weight.normal_()
    assert mean_nll(model, every_text) > LOG_V
