"""Mistakes that people really shipped, as functions that run and are wrong in one way each."""

import importlib
from typing import Any

# Where each contract's mistakes stand, as a tuple that is named after it: NLL_MISTAKES.
_CATALOGUES = {
    "attention": "course_lib.contracts.attention.attention_mistakes",
    "causal_attention": "course_lib.contracts.attention.causal_attention_mistakes",
    "causal_mask": "course_lib.contracts.masks.mistakes",
    "position": "course_lib.contracts.position.mistakes",
    "multi_head": "course_lib.contracts.heads.mistakes",
    "layer_norm": "course_lib.contracts.norm.mistakes",
    "block": "course_lib.contracts.block.mistakes",
    "causality": "course_lib.contracts.causality.mistakes",
    "nll": "course_lib.contracts.likelihood.nll_mistakes",
    "perplexity": "course_lib.contracts.likelihood.perplexity_mistakes",
    "log_likelihood": "course_lib.contracts.likelihood.log_likelihood_mistakes",
    "strided_nll": "course_lib.contracts.likelihood.strided_nll_mistakes",
    "sampling": "course_lib.contracts.sampling.sampling_mistakes",
    "sampler": "course_lib.contracts.sampling.sampler_mistakes",
    "cache": "course_lib.contracts.cache.mistakes",
    "batching": "course_lib.contracts.batching.mistakes",
    "generation": "course_lib.contracts.generation.mistakes",
    "tying": "course_lib.contracts.tying.mistakes",
    "parameter_count": "course_lib.contracts.count.mistakes",
}


def __getattr__(name: str) -> Any:
    """Load the whole `CATALOGUE`, {contract: its mistakes}, once it is asked for."""
    if name != "CATALOGUE":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return {
        contract: getattr(importlib.import_module(module), f"{contract.upper()}_MISTAKES")
        for contract, module in _CATALOGUES.items()
    }
