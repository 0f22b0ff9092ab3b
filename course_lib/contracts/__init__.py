"""Contracts: each takes anybody's function and returns a report, or says what is wrong with it."""

import importlib
from typing import Any

from course_lib.report import ContractReport, ContractViolation

# Where each contract lives. It is loaded when it is asked for: who needs one does not wait for all.
CONTRACTS = {
    "check_attention_contract": "course_lib.contracts.attention.attention",
    "check_batching_contract": "course_lib.contracts.batching.batching",
    "check_block_contract": "course_lib.contracts.block.block",
    "check_cache_contract": "course_lib.contracts.cache.cache",
    "check_causal_attention_contract": "course_lib.contracts.attention.causal_attention",
    "check_causal_mask_contract": "course_lib.contracts.masks.causal_mask",
    "check_causality_contract": "course_lib.contracts.causality.causality",
    "check_generation_contract": "course_lib.contracts.generation.generation",
    "check_layer_norm_contract": "course_lib.contracts.norm.layer_norm",
    "check_log_likelihood_contract": "course_lib.contracts.likelihood.log_likelihood",
    "check_multi_head_contract": "course_lib.contracts.heads.multi_head",
    "check_nll_contract": "course_lib.contracts.likelihood.nll",
    "check_parameter_count_contract": "course_lib.contracts.count.parameter_count",
    "check_perplexity_contract": "course_lib.contracts.likelihood.perplexity",
    "check_position_contract": "course_lib.contracts.position.position",
    "check_sampler_contract": "course_lib.contracts.sampling.sampler",
    "check_sampling_contract": "course_lib.contracts.sampling.sampling",
    "check_strided_nll_contract": "course_lib.contracts.likelihood.strided_nll",
    "check_tying_contract": "course_lib.contracts.tying.tying",
}

__all__ = ["ContractReport", "ContractViolation", *CONTRACTS]


def __getattr__(name: str) -> Any:
    """Load a contract by its name."""
    if name not in CONTRACTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(CONTRACTS[name]), name)


def __dir__() -> list[str]:
    """Name what can be imported from here, loaded or not."""
    return sorted(__all__)
