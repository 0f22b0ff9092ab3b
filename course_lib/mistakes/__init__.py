"""Mistakes that people really shipped, as functions that run and are wrong in one way each."""

from functools import cache
from importlib import import_module

MODULES = {  # by subject, in the order of the course
    "attention": "course_lib.mistakes.attention",
    "causal_attention": "course_lib.mistakes.causal_attention",
    "causal_mask": "course_lib.mistakes.causal_mask",
    "position": "course_lib.mistakes.position",
    "multi_head": "course_lib.mistakes.multi_head",
    "layer_norm": "course_lib.mistakes.layer_norm",
    "block": "course_lib.mistakes.block",
    "causality": "course_lib.mistakes.causality",
    "nll": "course_lib.mistakes.nll",
    "perplexity": "course_lib.mistakes.perplexity",
    "log_likelihood": "course_lib.mistakes.log_likelihood",
    "strided_nll": "course_lib.mistakes.strided_nll",
    "sampling": "course_lib.mistakes.sampling",
    "sampler": "course_lib.mistakes.sampler",
    "cache": "course_lib.mistakes.cache",
    "batching": "course_lib.mistakes.batching",
    "generation": "course_lib.mistakes.generation",
    "tying": "course_lib.mistakes.tying",
    "parameter_count": "course_lib.mistakes.parameter_count",
}


def __getattr__(name: str) -> object:
    if name != "CATALOGUE":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _catalogue()


@cache
def _catalogue() -> dict[str, object]:
    """The mistakes of each subject, loaded together when the whole catalogue is asked for."""
    return {
        subject: getattr(import_module(module), f"{subject.upper()}_MISTAKES")
        for subject, module in MODULES.items()
    }
