"""Contracts: each takes anybody's function and returns a report, or says what is wrong with it."""

from course_lib.contracts.attention import check_attention_contract
from course_lib.report import ContractReport, ContractViolation

__all__ = ["ContractReport", "ContractViolation", "check_attention_contract"]
