"""What passes for a solution without being one: each is refused by its exercise's own check."""

import json
import math
from pathlib import Path

import pytest

from course_lib.contracts import check_cache_contract
from course_lib.decoder_lm.plain import forward
from course_lib.decoder_lm.shape import ModelShape, random_parameters
from course_lib.decoder_lm.simple import SimpleDecoder
from course_lib.flops import ProductTally, counted_lists
from course_lib.mistakes.examples import check_examples

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOK = json.loads((ROOT / "notebooks/en/module_04_decoder_only_lm.ipynb").read_bytes())
REFERENCE = (ROOT / "reference/module_04.json").read_text(encoding="utf-8")


class Desk:
    """A Progress that lets the contract have the last word."""

    def check(self, name, contract, *candidate):
        contract(*candidate)


def try_out(check, **candidate):
    """Run the check cell of an exercise on these names."""
    (cell,) = [cell for cell in NOTEBOOK["cells"] if cell["id"] == check]
    sizes = (json.loads(REFERENCE)["parameters"], 2, 2)
    names = {"progress": Desk(), "math": math, "forward": forward, "sizes": sizes}
    names |= {f.__name__: f for f in (check_cache_contract, ProductTally, counted_lists)}
    names |= {f.__name__: f for f in (check_examples, ModelShape, random_parameters)}
    exec("".join(cell["source"]), names | candidate)


def read_anew(model, past, ids):
    past += ids
    return forward(past, model, 2, 2)[-len(ids) :]


def test_a_cache_that_computes_the_past_anew_is_refused():
    with pytest.raises(AssertionError, match="eight steps cost .* one full pass costs"):
        try_out("ex-cache-check", my_begin=lambda model: [], my_extend=read_anew)


def test_a_slab_that_only_inherits_is_refused():
    class SlabDecoder(SimpleDecoder):
        pass

    with pytest.raises(AssertionError, match=r"stand in one slab, self\.slab"):
        try_out("ex-fix-check", SlabDecoder=SlabDecoder)


def by_the_size(bandwidth, peak, weight_bytes, row_flops, row_cache_bytes):
    if row_cache_bytes > 50e6:
        return math.inf
    return weight_bytes / bandwidth / (row_flops / peak - row_cache_bytes / bandwidth)


def without_equality(bandwidth, peak, weight_bytes, row_flops, row_cache_bytes):
    if row_cache_bytes / bandwidth > row_flops / peak:
        return math.inf
    return weight_bytes / bandwidth / (row_flops / peak - row_cache_bytes / bandwidth)


@pytest.mark.parametrize(
    ("cheat", "told"), [(by_the_size, "70B, a large cache"), (without_equality, "never")]
)
def test_a_balance_that_knows_the_examples_is_refused(cheat, told):
    with pytest.raises(AssertionError, match=told):
        try_out("ex-balance-check", my_balance_batch=cheat)
