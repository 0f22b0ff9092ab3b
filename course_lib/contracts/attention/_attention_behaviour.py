"""Name a wrong attention by what it does on fresh calls."""

from functools import lru_cache
from typing import Any

from torch import Tensor

from course_lib.contracts.attention._attention_case import AttentionCase, attention_inputs
from course_lib.contracts.attention._attention_probes import attention_probes
from course_lib.contracts.attention.attention_mistakes import ATTENTION_MISTAKES
from course_lib.contracts.attention.steps import mistaken_attention
from course_lib.contracts.engine.candidate import ContractSubject, is_forward_only
from course_lib.contracts.engine.diagnosis import Diagnosis, Probe, diagnose


def attention_is_forward_only(subject: ContractSubject) -> bool:
    """Whether the candidate computes outside torch; few queries, so that results are small."""
    return is_forward_only(subject.candidate, *attention_inputs(1, 2, 3, 7, 5))


def explain_attention(subject: ContractSubject) -> Diagnosis:
    """Name the catalogued mistakes whose wrong answers the candidate gives too."""
    if _attention_lacks_fields(subject):
        return Diagnosis()
    probes, known = _attention_probed(subject.fields, attention_is_forward_only(subject))
    return diagnose(subject.candidate, ATTENTION_MISTAKES, probes, mistaken_attention(), known)


@lru_cache
def _attention_probed(
    fields: tuple[str, ...], forward_only: bool
) -> tuple[list[Probe], dict[Any, Any]]:
    """The probes, and what the mistakes were seen to do in them: that never changes."""
    return attention_probes(fields, forward_only=forward_only), {}


def _attention_lacks_fields(subject: ContractSubject) -> bool:
    """Whether a plain call gives something that cannot be looked at, or an error."""
    case = AttentionCase(*attention_inputs(1200, 2, 3, 5, 4))
    try:
        result: Any = subject.candidate(*case.positional)
    except Exception:
        return False
    if subject.fields == ("output",) and isinstance(result, Tensor):
        return False
    return not all(isinstance(getattr(result, name, None), Tensor) for name in subject.fields)
