"""A wrong attempt at each exercise: a slip that people made, and its name in the catalogue."""

from dataclasses import dataclass

from course_lib.contracts.attention.attention_mistakes import ATTENTION_MISTAKES
from course_lib.contracts.attention.causal_attention_mistakes import CAUSAL_ATTENTION_MISTAKES
from course_lib.contracts.cache.mistakes import CACHE_MISTAKES
from course_lib.contracts.engine.mistake import Mistake
from course_lib.contracts.heads.mistakes import MULTI_HEAD_MISTAKES
from course_lib.contracts.likelihood.nll_mistakes import NLL_MISTAKES
from course_lib.contracts.masks.mistakes import CAUSAL_MASK_MISTAKES
from course_lib.contracts.sampling.sampler_mistakes import SAMPLER_MISTAKES
from course_lib.contracts.sampling.sampling_mistakes import SAMPLING_MISTAKES


@dataclass(frozen=True)
class Slip:
    """What somebody types in place of what the solution has, and how the catalogue calls it."""

    right: str
    wrong: str
    catalogue: tuple[Mistake, ...]
    name: str

    @property
    def mistake(self) -> Mistake:
        """The entry of the catalogue."""
        (found,) = [mistake for mistake in self.catalogue if mistake.name == self.name]
        return found


SLIPS = {  # by the name that the stub leaves to the learner
    "my_causal_allowed": Slip(
        "<= query_positions", ">= query_positions", CAUSAL_MASK_MISTAKES, "mask_transposed"
    ),
    "my_hardened_attention": Slip(
        " / math.sqrt(q.shape[-1])", "", ATTENTION_MISTAKES, "not_scaled"
    ),
    "my_merge_heads": Slip(
        "heads.transpose(1, 2).flatten(start_dim=2)",
        "heads.reshape(heads.shape[0], heads.shape[2], -1)",
        MULTI_HEAD_MISTAKES,
        "heads_joined_by_view",
    ),
    "my_next_token_nll": Slip(".mean().item()", ".sum().item()", NLL_MISTAKES, "sum_not_mean"),
    "my_token_distribution": Slip(
        ") / temperature)", ") * temperature)", SAMPLING_MISTAKES, "temperature_multiplied"
    ),
    "my_causal_attention": Slip(
        "/ math.sqrt(d_head)", "/ d_head", CAUSAL_ATTENTION_MISTAKES, "divided_by_d_head"
    ),
    "my_begin": Slip("start=read)", "start=read + 1)", CACHE_MISTAKES, "cached_positions_shifted"),
    "SlabDecoder": Slip("k=self.length, ", "", CACHE_MISTAKES, "mask_top_left"),
    "my_sample": Slip("order[:top_k]", "order", SAMPLER_MISTAKES, "top_k_ignored"),
}
