"""Causal masks, right and wrong, beyond the catalogue."""

import math

import torch

from course_lib.contracts import check_causal_mask_contract
from course_lib.contracts.masks.mistakes import CAUSAL_MASK_MISTAKES
from course_lib.masks import causal_allowed

from .trial import Fresh, named_by

CHECK, CATALOGUE = check_causal_mask_contract, CAUSAL_MASK_MISTAKES
CLAUSES = [
    *("result_form", "diagonal", "default_offset", "geometry", "cached_rows", "long_contexts"),
    *("independent_results", "negative_offset"),
]


def mask_by_comparison(t_q, t_k, *, query_offset=0):
    if query_offset < 0:
        raise ValueError("negative offset")
    return torch.arange(t_k) <= torch.arange(t_q).unsqueeze(-1) + query_offset


def mask_by_tril(t_q, t_k, *, query_offset=0):
    if query_offset < 0:
        raise ValueError("negative offset")
    return torch.ones(t_q, t_k).tril(query_offset).bool()


def mask_by_slicing(t_q, t_k, *, query_offset=0):
    if query_offset < 0:
        raise ValueError("negative offset")
    size = max(t_q + query_offset, t_k)
    return ~torch.triu(torch.ones(size, size, dtype=torch.bool), 1)[
        query_offset : query_offset + t_q, :t_k
    ]


def mask_by_lists(t_q, t_k, *, query_offset=0):
    if query_offset < 0:
        raise ValueError("negative offset")
    return torch.tensor([[j - i <= query_offset for j in range(t_k)] for i in range(t_q)])


def mask_by_rows(t_q, t_k, *, query_offset=0):
    if query_offset < 0:
        raise ValueError("negative offset")
    mask = torch.zeros(t_q, t_k, dtype=torch.bool)
    for i in range(t_q):
        mask[i, : i + query_offset + 1] = True
    return mask


def stored_table(t_q, t_k, *, query_offset=0, size=1024):
    mask_by_comparison(1, 1, query_offset=query_offset)
    table = torch.ones(size, size, dtype=torch.bool).tril()
    return table[query_offset : query_offset + t_q, :t_k]


def first_offset_kept():
    seen = {}

    def causal_allowed(t_q, t_k, *, query_offset=0):
        offset = seen.setdefault((t_q, t_k), query_offset) if t_k > 6 else query_offset
        return mask_by_tril(t_q, t_k, query_offset=offset if query_offset >= 0 else query_offset)

    return causal_allowed


def tril_with(diagonal):
    def causal_allowed(t_q, t_k, *, query_offset=0):
        mask_by_comparison(1, 1, query_offset=query_offset)
        return torch.ones(t_q, t_k).tril(diagonal(t_q, t_k, query_offset)).bool()

    return causal_allowed


RIGHT = {
    "the course's own": causal_allowed,
    "by comparison": mask_by_comparison,
    "by tril": mask_by_tril,
    "by slicing a table": mask_by_slicing,
    "by lists": mask_by_lists,
    "row by row": mask_by_rows,
}
WRONG = {
    "reads the future": (
        lambda t_q, t_k, **o: mask_by_tril(t_q, t_k, **o) ^ ~torch.eye(t_q, t_k).bool(),
        "diagonal",
    ),
    "corner without an offset": (
        lambda t_q, t_k, query_offset=None: mask_by_tril(
            t_q, t_k, query_offset=max(t_k - t_q, 0) if query_offset is None else query_offset
        ),
        "default_offset",
    ),
    "offset below the keys only": (tril_with(lambda q, k, o: min(o, 5)), "cached_rows"),
    "floats": (lambda *s, **o: mask_by_tril(*s, **o).float(), "result_form"),
    "additive": (
        lambda *s, **o: torch.zeros(*s).masked_fill(~mask_by_tril(*s, **o), -math.inf),
        "result_form",
    ),
    "lists": (lambda *s, **o: mask_by_tril(*s, **o).tolist(), "result_form"),
    "extra axes": (lambda *s, **o: mask_by_tril(*s, **o)[None, None], "result_form"),
    "square": (lambda t_q, t_k, **o: mask_by_tril(t_k, t_k, **o), "result_form"),
    "stored table": (stored_table, "result_form"),
    "long rows cut": (
        lambda t_q, t_k, **o: mask_by_tril(t_q, t_k, **o) & (torch.arange(t_k) < 4096),
        "long_contexts",
    ),
    "first offset kept": (Fresh(first_offset_kept), "long_contexts"),
}
MISTAKES = named_by(
    diagonal="mask_inverted mask_transposed blind_to_itself one_ahead everything_open",
    default_offset="bottom_right offset_from_corner",
    geometry="offset_ignored offset_subtracted offset_twice one_query_reads_all",
    independent_results="shared_table",
    negative_offset="negative_offset_computed negative_offset_clipped",
)
MUTATED = [mask_by_comparison, mask_by_tril, mask_by_slicing, mask_by_rows]
EQUIVALENT = {
    "mask_by_comparison:4 no sign: -1": "unsqueeze(1) is unsqueeze(-1) of one axis",
    "mask_by_slicing:4 arguments swapped: max(t_q + query_offset, t_k)": "max is symmetric",
}
SAYS = {
    "floats": "the mask is torch.float32",
    "shared_table": "wrote into an earlier result, and it came back",
    "offset_ignored": "the cached past is hidden",
}
