"""Contracts: each takes anybody's function and returns a report, or says what is wrong with it."""

from importlib import import_module

MODULES = {  # a contract is loaded when it is first asked for, so that one does not cost nineteen
    "ContractReport": "course_lib.report",
    "ContractViolation": "course_lib.report",
    "check_attention_contract": "course_lib.contracts.attention",
    "check_batching_contract": "course_lib.contracts.batching",
    "check_block_contract": "course_lib.contracts.block",
    "check_cache_contract": "course_lib.contracts.cache",
    "check_causal_attention_contract": "course_lib.contracts.causal_attention",
    "check_causal_mask_contract": "course_lib.contracts.causal_mask",
    "check_causality_contract": "course_lib.contracts.causality",
    "check_generation_contract": "course_lib.contracts.generation",
    "check_layer_norm_contract": "course_lib.contracts.layer_norm",
    "check_log_likelihood_contract": "course_lib.contracts.log_likelihood",
    "check_multi_head_contract": "course_lib.contracts.multi_head",
    "check_nll_contract": "course_lib.contracts.nll",
    "check_parameter_count_contract": "course_lib.contracts.parameter_count",
    "check_perplexity_contract": "course_lib.contracts.perplexity",
    "check_position_contract": "course_lib.contracts.position",
    "check_sampler_contract": "course_lib.contracts.sampler",
    "check_sampling_contract": "course_lib.contracts.sampling",
    "check_strided_nll_contract": "course_lib.contracts.strided_nll",
    "check_tying_contract": "course_lib.contracts.tying",
}
__all__ = list(MODULES)


def __getattr__(name: str) -> object:
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(MODULES[name]), name)
