"""Contracts: each takes anybody's function and returns a report, or says what is wrong with it."""

from course_lib.contracts.attention import check_attention_contract
from course_lib.contracts.batching import check_batching_contract
from course_lib.contracts.block import check_block_contract
from course_lib.contracts.cache import check_cache_contract
from course_lib.contracts.causal_attention import check_causal_attention_contract
from course_lib.contracts.causal_mask import check_causal_mask_contract
from course_lib.contracts.causality import check_causality_contract
from course_lib.contracts.generation import check_generation_contract
from course_lib.contracts.layer_norm import check_layer_norm_contract
from course_lib.contracts.log_likelihood import check_log_likelihood_contract
from course_lib.contracts.multi_head import check_multi_head_contract
from course_lib.contracts.nll import check_nll_contract
from course_lib.contracts.parameter_count import check_parameter_count_contract
from course_lib.contracts.perplexity import check_perplexity_contract
from course_lib.contracts.position import check_position_contract
from course_lib.contracts.sampler import check_sampler_contract
from course_lib.contracts.sampling import check_sampling_contract
from course_lib.contracts.strided_nll import check_strided_nll_contract
from course_lib.contracts.tying import check_tying_contract
from course_lib.report import ContractReport, ContractViolation

__all__ = [
    "ContractReport",
    "ContractViolation",
    "check_attention_contract",
    "check_block_contract",
    "check_batching_contract",
    "check_cache_contract",
    "check_causal_attention_contract",
    "check_causal_mask_contract",
    "check_causality_contract",
    "check_log_likelihood_contract",
    "check_generation_contract",
    "check_layer_norm_contract",
    "check_multi_head_contract",
    "check_nll_contract",
    "check_parameter_count_contract",
    "check_perplexity_contract",
    "check_position_contract",
    "check_sampler_contract",
    "check_sampling_contract",
    "check_strided_nll_contract",
    "check_tying_contract",
]
