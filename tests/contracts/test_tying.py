"""The tying contract accepts one Parameter with two uses, and nothing else."""

import subprocess
import sys
from functools import partial

import pytest
import torch
from torch import nn

from course_lib.contracts import check_tying_contract
from course_lib.contracts.tying.steps import RATE, adamw_step, sgd_step, slopes
from course_lib.tiny_lm import TinyLM

from .trial import verdict, violation_of
from .variants_tying import build_from_embedding, build_from_head

violation = partial(violation_of, check_tying_contract)


def test_the_figures_show_that_the_shared_numbers_are_listed_once():
    assert dict(check_tying_contract(build_from_embedding)) == {
        "shared_numbers": 28,
        "listed_numbers": 28,
    }
    assert check_tying_contract(build_from_head)["listed_numbers"] == 28 + 7  # its biases


@pytest.mark.parametrize(
    ("rule", "kind", "options"),
    [
        (sgd_step, torch.optim.SGD, {}),
        (adamw_step, torch.optim.AdamW, {"weight_decay": 0.1}),
    ],
)
def test_the_steps_written_out_are_those_of_torch(rule, kind, options):
    mine, theirs = (nn.Parameter(torch.linspace(-2, 2, 12).reshape(3, 4)) for _ in range(2))
    for parameter in (mine, theirs):
        parameter.grad = sum(slopes(parameter, parameter))
    rule(mine, mine.grad)
    kind([theirs], lr=RATE, **options).step()
    assert torch.allclose(mine, theirs, atol=1e-6)


def test_the_slopes_of_the_two_uses_differ_and_overlap():
    first, second = slopes(torch.zeros(7, 4), torch.zeros(7, 4))
    assert not torch.equal(first, second)
    assert ((first != 0) & (second != 0)).any()


@pytest.mark.parametrize(
    ("name", "mistakes"),
    [
        ("copied by slice", ("tied_by_copy",)),
        ("copied by state", ("tied_by_copy",)),
        ("copied deeply", ("tied_by_copy",)),
        ("untied", ("tie_replaced",)),
        ("head made again", ("tie_replaced",)),
        ("wrapped again", ("only_data_shared",)),
    ],
)
def test_the_same_mistake_written_otherwise_has_the_same_name(name, mistakes):
    assert verdict("tying", "wrong", name).violation.mistakes == mistakes


def test_the_sizes_are_cut_down():
    caught = verdict("tying", "mistake", "sizes_swapped").violation
    assert caught.failing_input == {"vocab_size": 1, "d_model": 2}


def test_a_tied_model_of_the_course_is_seen_to_be_tied():
    model = TinyLM(vocab_size=7, d_model=4, n_heads=2, d_ff=8)
    assert model.head.weight is model.token_embedding.weight


def test_no_optimiser_is_imported_for_it():
    code = "from course_lib.contracts import check_tying_contract as check\n"
    code += "from course_lib.contracts.tying.mistakes import mistaken_tying\n"
    code += "import sys\ncheck(mistaken_tying())\nprint('torch._dynamo' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_violation_of_a_wrong_type_does_not_crash_the_diagnosis():
    caught = violation(lambda vocab_size, d_model: 5)
    assert caught.clause == "result_form"
    assert caught.mistakes == ()
