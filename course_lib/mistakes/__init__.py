"""Mistakes that people really shipped, as functions that run and are wrong in one way each."""

from course_lib.mistakes.attention import ATTENTION_MISTAKES
from course_lib.mistakes.batching import BATCHING_MISTAKES
from course_lib.mistakes.block import BLOCK_MISTAKES
from course_lib.mistakes.cache import CACHE_MISTAKES
from course_lib.mistakes.causal_attention import CAUSAL_ATTENTION_MISTAKES
from course_lib.mistakes.causal_mask import CAUSAL_MASK_MISTAKES
from course_lib.mistakes.causality import CAUSALITY_MISTAKES
from course_lib.mistakes.generation import GENERATION_MISTAKES
from course_lib.mistakes.layer_norm import LAYER_NORM_MISTAKES
from course_lib.mistakes.log_likelihood import LOG_LIKELIHOOD_MISTAKES
from course_lib.mistakes.multi_head import MULTI_HEAD_MISTAKES
from course_lib.mistakes.nll import NLL_MISTAKES
from course_lib.mistakes.parameter_count import PARAMETER_COUNT_MISTAKES
from course_lib.mistakes.perplexity import PERPLEXITY_MISTAKES
from course_lib.mistakes.position import POSITION_MISTAKES
from course_lib.mistakes.sampler import SAMPLER_MISTAKES
from course_lib.mistakes.sampling import SAMPLING_MISTAKES
from course_lib.mistakes.strided_nll import STRIDED_NLL_MISTAKES
from course_lib.mistakes.tying import TYING_MISTAKES

CATALOGUE = {
    "attention": ATTENTION_MISTAKES,
    "causal_attention": CAUSAL_ATTENTION_MISTAKES,
    "causal_mask": CAUSAL_MASK_MISTAKES,
    "position": POSITION_MISTAKES,
    "multi_head": MULTI_HEAD_MISTAKES,
    "layer_norm": LAYER_NORM_MISTAKES,
    "block": BLOCK_MISTAKES,
    "causality": CAUSALITY_MISTAKES,
    "nll": NLL_MISTAKES,
    "perplexity": PERPLEXITY_MISTAKES,
    "log_likelihood": LOG_LIKELIHOOD_MISTAKES,
    "strided_nll": STRIDED_NLL_MISTAKES,
    "sampling": SAMPLING_MISTAKES,
    "sampler": SAMPLER_MISTAKES,
    "cache": CACHE_MISTAKES,
    "batching": BATCHING_MISTAKES,
    "generation": GENERATION_MISTAKES,
    "tying": TYING_MISTAKES,
    "parameter_count": PARAMETER_COUNT_MISTAKES,
}
