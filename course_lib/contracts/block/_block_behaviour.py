"""Calls of a block on which mistakes show, and the catalogue they are compared with."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.block._block_case import (
    BlockCase,
    BlockLayer,
    BlockWatcher,
    block_case,
    block_direction,
)
from course_lib.contracts.block.mistakes import BLOCK_MISTAKES
from course_lib.contracts.engine.candidate import ContractSubject
from course_lib.contracts.engine.diagnosis import Diagnosis, Probe, diagnose


def explain_block(subject: ContractSubject) -> Diagnosis:
    """Name the catalogued mistakes that give the candidate's results on fresh calls."""
    mixed = "norm past norm bend"
    ordinary = [block_case(201, 2, 3, 5, kinds=mixed), block_case(202, 2, 4, 3)]
    probes = [Probe(partial(_block_probed, case)) for case in ordinary]
    probes += [
        Probe(partial(_block_probed, block_case(203, 3, 4, kinds=mixed)), core=False),
        Probe(partial(_block_slopes, block_case(204, 2, 3, 4)), core=False),
        Probe(partial(_block_stream_kept, block_case(205, 2, 3, 4)), core=False),
        Probe(partial(_block_calls, block_case(206, 2, 3, 4)), core=False),
        Probe(partial(_block_after_another, block_case(207, 2, 2, 4)), core=False),
    ]
    return diagnose(subject.candidate, BLOCK_MISTAKES, probes, _block_reference)


def _block_probed(case: BlockCase, block: Callable[..., Any]) -> Tensor:
    return block(case.x.clone(), *case.watched())


def _block_slopes(case: BlockCase, block: Callable[..., Any]) -> Any:
    """The gradients of x and of the four matrices; none where the call writes into x."""
    if not _block_stream_kept(case, block):
        return "stream changed"
    leaves = [case.x.clone(), *(layer.matrix.clone() for layer in case.layers)]
    leaves = [leaf.requires_grad_() for leaf in leaves]
    result = block(leaves[0], *(BlockWatcher(BlockLayer("linear", leaf)) for leaf in leaves[1:]))
    if not result.requires_grad:
        return "no gradient"
    loss = (result * block_direction(case.x.shape)).sum()
    found = torch.autograd.grad(loss, leaves, allow_unused=True)
    return ["none" if slope is None else slope for slope in found]


def _block_stream_kept(case: BlockCase, block: Callable[..., Any]) -> bool:
    x = case.x.clone()
    block(x, *case.watched())
    return torch.equal(x, case.x)


def _block_calls(case: BlockCase, block: Callable[..., Any]) -> list[int]:
    """Which sublayers are called not at all, once, or more often."""
    layers = case.watched()
    block(case.x.clone(), *layers)
    return [min(len(layer.given), 2) for layer in layers]


def _block_after_another(case: BlockCase, block: Callable[..., Any]) -> Tensor:
    """After a call of the same size with other sublayers."""
    _block_probed(block_case(208, *case.x.shape), block)
    return _block_probed(case, block)


def _block_reference(x: Tensor, norm1: Any, attend: Any, norm2: Any, feed: Any) -> Tensor:
    """A right block that autograd follows."""
    middle = x + attend(norm1(x))
    return middle + feed(norm2(middle))
