"""Imports are gathered, written once, in one order."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_build.library.imports import Import, imports_in, write_imports


def read(text):
    return [i for node in ast.parse(text).body for i in imports_in(node)]


def test_the_standard_library_comes_first_and_names_are_gathered():
    written = write_imports(
        read(
            "from torch import nn, Tensor\nimport torch.nn.functional as F\nimport math\n"
            "from dataclasses import field\nimport torch\nfrom dataclasses import dataclass\n"
            "import math\nfrom torch import MAX_SIZE, nn as net"
        )
    )
    assert written == (
        "import math\nfrom dataclasses import dataclass, field\n\n"
        "import torch\nimport torch.nn.functional as F\n"
        "from torch import MAX_SIZE, Tensor, nn, nn as net"
    )


def test_one_kind_needs_no_blank_line():
    assert write_imports(read("import sys, math")) == "import math\nimport sys"
    assert write_imports(read("import torch")) == "import torch"
    assert write_imports([]) == ""


@pytest.mark.parametrize("length", [100, 101])
def test_a_line_of_more_than_a_hundred_characters_is_broken(length):
    names = [f"name_{number:02d}" for number in range(8)]
    line = f"from a_package import {', '.join(names)}, "
    names.append("x" * (length - len(line)))
    line += names[-1]
    assert len(line) == length
    broken = "from a_package import (\n    " + ",\n    ".join(names) + ",\n)"
    assert write_imports(read(line)) == (line if length == 100 else broken)
    assert read(broken) == read(line)


@pytest.mark.parametrize(
    ("text", "bound", "target"),
    [
        ("import a", "a", "a"),
        ("import a.b", "a", "a"),
        ("import a.b as c", "c", "a.b"),
        ("from a.b import c", "c", "a.b.c"),
        ("from a.b import c as d", "d", "a.b.c"),
    ],
)
def test_what_an_import_binds_and_to_what(text, bound, target):
    [imported] = read(text)
    assert (imported.bound, imported.target, imported.statement) == (bound, target, text)


IMPORTS = st.builds(
    Import,
    module=st.sampled_from(["math", "sys", "torch", "torch.nn", "numpy"]),
    name=st.sampled_from(["", "a", "B", "C_D"]),
    alias=st.sampled_from(["", "x"]),
)


@given(st.lists(IMPORTS))
def test_the_order_in_which_imports_are_met_does_not_matter(imports):
    written = write_imports(imports)
    assert written == write_imports(reversed(imports)) == write_imports(imports * 2)
    assert set(read(written)) == set(imports)
