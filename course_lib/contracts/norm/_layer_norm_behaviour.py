"""Calls of a layer norm on which mistakes show, and the catalogue they are compared with."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.engine.candidate import ContractSubject
from course_lib.contracts.engine.diagnosis import Diagnosis, Probe, diagnose
from course_lib.contracts.norm._layer_norm_case import (
    NORM_EPS,
    NormCase,
    norm_case,
    norm_direction,
    norm_gradients,
    norm_truth,
)
from course_lib.contracts.norm.mistakes import LAYER_NORM_MISTAKES


def explain_norm(subject: ContractSubject) -> Diagnosis:
    """Name the catalogued mistakes that give the candidate's results on fresh calls."""
    ordinary = [
        norm_case(201, 2, 3, 5, size=1.5, offset=0.7),
        norm_case(202, 2, 4, 6, eps=0.3),
        norm_case(203, 2, 3, 4, size=2e-3),
        norm_case(204, 3, 2, 7, size=5e-3, eps=1e-4, by_name=True),
        norm_case(211, 2, 3, 5, size=1e-3, eps=0.5),
    ]
    other = [norm_case(205, 3, 6), norm_case(206, 2, 3, 2, 4), norm_case(207, 5)]
    far = norm_case(208, 2, 8, offset=2e6)
    probes = [Probe(partial(_norm_probed, case)) for case in ordinary]
    probes += [Probe(partial(_norm_probed, case), core=False) for case in other]
    probes += [
        Probe(partial(_norm_slope, ordinary[0]), core=False),
        Probe(partial(_norm_flat_slope, norm_case(209, 2, 4)), core=False),
        Probe(partial(_norm_arguments_kept, norm_case(210, 2, 3, 4)), core=False),
        Probe(partial(_norm_far, far), core=False),
    ]
    return diagnose(subject.candidate, LAYER_NORM_MISTAKES, probes, _norm_reference)


def _norm_fresh(case: NormCase) -> tuple[list[Tensor], tuple[Any, ...]]:
    """Copies of the tensors, and the rest of the arguments."""
    return [tensor.clone() for tensor in case.positional[:3]], case.positional[3:]


def _norm_probed(case: NormCase, norm: Callable[..., Any]) -> Tensor:
    tensors, rest = _norm_fresh(case)
    return norm(*tensors, *rest, **case.keywords)


def _norm_slopes(case: NormCase, norm: Callable[..., Any]) -> list[Tensor] | str:
    """The gradients of x, gain and bias; none where the call writes into its arguments."""
    if not all(_norm_arguments_kept(case, norm)):
        return "arguments changed"
    tensors, rest = _norm_fresh(case)
    leaves = [tensor.requires_grad_() for tensor in tensors]
    result = norm(*leaves, *rest, **case.keywords)
    if not result.requires_grad:
        return "no gradient"
    loss = (result.double() * norm_direction(case.x.shape)).sum()
    found = torch.autograd.grad(loss, leaves, allow_unused=True)
    return ["none" if slope is None else slope for slope in found]


def _norm_slope(case: NormCase, norm: Callable[..., Any]) -> Any:
    return _norm_slopes(case, norm)


def _norm_flat_slope(case: NormCase, norm: Callable[..., Any]) -> str:
    """Whether the gradient is finite at a token of equal numbers, where it is right elsewhere."""
    flat = replace(case, x=case.x.clone())
    flat.x[0] = 3.0
    try:
        usual, found = (_norm_slopes(each, norm)[0] for each in (case, flat))
        results_right = torch.allclose(_norm_probed(flat, norm), norm_truth(flat))
        if not results_right or not torch.allclose(usual, norm_gradients(case)[0]):
            return "wrong elsewhere too"
    except Exception:
        return "wrong elsewhere too"
    return "finite" if torch.isfinite(found).all() else "not finite"


def _norm_arguments_kept(case: NormCase, norm: Callable[..., Any]) -> list[bool]:
    tensors, rest = _norm_fresh(case)
    norm(*tensors, *rest, **case.keywords)
    return [torch.equal(now, then) for now, then in zip(tensors, case.positional, strict=False)]


def _norm_far(case: NormCase, norm: Callable[..., Any]) -> str:
    """Whether a large mean spoils the spread, and only that, where a small one does not."""
    near = replace(case, x=case.x - case.x.mean())
    if not (_norm_probed(near, norm) - norm_truth(near)).abs().max() <= 1e-9:
        return "wrong near too"
    got, want = _norm_probed(case, norm), norm_truth(case)
    if torch.allclose(got, want, atol=1e-5):
        return "right"
    pulls = [(each - case.bias) / case.gain for each in (got, want)]
    along = torch.cosine_similarity(*pulls, dim=-1)
    times = pulls[0].norm(dim=-1) / pulls[1].norm(dim=-1)
    if (along < 1 - 1e-7).any() or times.max() - times.min() < 1e-4 * times.max():
        return "other numbers"  # rounding spoils each token in its own way
    return "another spread"


def _norm_reference(x: Tensor, gain: Tensor, bias: Tensor, eps: float = NORM_EPS) -> Tensor:
    """A right layer norm that autograd follows."""
    centred = x - x.mean(-1, keepdim=True)
    return gain * centred / (centred.square().mean(-1, keepdim=True) + eps).sqrt() + bias
