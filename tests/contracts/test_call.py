"""What the engine does with calls that hold no plain numbers: NaN, infinities, masks."""

import math

import numpy as np
import pytest
import torch

from course_lib.contracts.engine.call import Calls, same_values
from course_lib.contracts.engine.candidate import is_forward_only

NAN, INF = math.nan, math.inf
make = Calls("x [T]")


@pytest.mark.parametrize("kind", [torch.tensor, list, np.array])
def test_nan_is_the_same_as_nan_and_only_as_nan(kind):
    assert same_values(kind([1.0, NAN]), kind([1.0, NAN]))
    assert not same_values(kind([1.0, NAN]), kind([NAN, 1.0]))
    assert not same_values(kind([1.0, NAN]), kind([1.0, 2.0]))


@pytest.mark.parametrize("kind", [torch.tensor, list])
def test_a_call_is_never_cut_down_to_itself(kind):
    """Else a failing call with NaN would be tried again two hundred times."""
    call = make(kind([NAN, 1.0, -INF, INF]))
    assert all(len(each.x) < 4 for each in call.smaller())
    plainer = [each.x for each in make(kind([NAN, 1.3])).smaller() if len(each.x) == 2]
    assert same_values(plainer[0], kind([NAN, 1.0]))


def by_numpy(x, allowed):
    return torch.tensor(np.where(allowed.numpy(), x.detach().numpy(), 0.0))


def test_a_mask_is_no_number_that_a_gradient_could_reach():
    x, allowed = torch.ones(2, 3), torch.ones(2, 3, dtype=torch.bool)
    assert not is_forward_only(lambda x, allowed: x * allowed, x, allowed)
    assert is_forward_only(by_numpy, x, allowed)
