"""Masks: who may read whom. True always means "may read"."""

import torch
from torch import Tensor

from course_lib.arguments import check_bool_tensor, check_rank
from course_lib.integers import check_int_at_least, check_positive_int


def causal_allowed(
    t_q: int,
    t_k: int,
    *,
    query_offset: int = 0,
    device: torch.device | str | None = None,
) -> Tensor:
    """Let every query read the keys up to its own position and none after it.

        allowed[i, j] = (j <= i + query_offset)

    Args:    query_offset: the absolute position of query 0; 0 in ordinary self-attention, the
             number of tokens already in the cache when decoding step by step
    Shapes:  -> [t_q, t_k] bool, True = may read
    Raises:  ValueError for a size below 1 or a negative offset
    """
    check_positive_int("t_q", t_q)
    check_positive_int("t_k", t_k)
    check_int_at_least("query_offset", query_offset, 0)
    query_positions = torch.arange(t_q, device=device).unsqueeze(1) + query_offset  # [t_q, 1]
    key_positions = torch.arange(t_k, device=device)  # [t_k]
    return key_positions <= query_positions  # [t_q, t_k]


def padding_allowed(token_valid: Tensor) -> Tensor:
    """Keep padding out of self-attention: it is not read, and it does not query.

        allowed[b, i, j] = token_valid[b, i] and token_valid[b, j]

    Shapes:  token_valid [B, T] bool, True = a real token -> [B, T, T] bool, True = may read
    """
    check_bool_tensor("token_valid", token_valid, "True = a real token")
    check_rank("token_valid", token_valid, "[B, T]")
    return token_valid.unsqueeze(2) & token_valid.unsqueeze(1)  # [B, T, 1] & [B, 1, T]
