"""No file or text is trusted with running something: no pickles, no eval, no remote code."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted(
    path
    for folder in ("notebooks/src", "course_lib", "course_build", "bench", "reference")
    for path in (ROOT / folder).rglob("*.py")
)
PICKLES = {"cloudpickle", "dill", "joblib", "jsonpickle", "marshal", "pickle", "shelve", "_pickle"}
LOADS = {"torch.load", "torch.jit.load", "torch.package.PackageImporter"}
ALLOWED = {  # {(file, what it may do): why}
    ("course_build/base/parallel.py", "pickle"): "what a forked copy of itself wrote to a pipe "
    "that nobody else has open",
    ("course_lib/checking/worker.py", "exec"): "the learner's own file, which they asked "
    "to have judged",
}


def unsafe(source):
    """Find what could run what a file or a text says: [(line, what)]."""
    tree = ast.parse(source)
    imports = [
        (node.lineno, f"{getattr(node, 'module', None) or ''}.{alias.name}".lstrip("."), alias)
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    ]
    names = {alias.asname: name for _, name, alias in imports if alias.asname}
    names |= {alias.name: name for _, name, alias in imports if name != alias.name}
    imported = [(line, name.split(".")[0]) for line, name, _ in imports]
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [
        *((line, name) for line, name in imported if name in PICKLES),
        *((call.lineno, what) for call in calls if (what := _unsafe_call(call, names))),
    ]


def _unsafe_call(call, names):
    function = _dotted(call.func, names)
    options = {each.arg: getattr(each.value, "value", "?") for each in call.keywords}
    if function in ("eval", "exec", "builtins.eval", "builtins.exec"):
        return None if isinstance(call.args[0], ast.Constant) else function.split(".")[-1]
    if function in ("__import__", "importlib.import_module"):
        name = str(getattr(call.args[0], "value", "")).split(".")[0]
        return name if name in PICKLES else None
    if function in LOADS:
        only_numbers = function == "torch.load" and options.get("weights_only") is True
        return None if only_numbers else function
    if options.get("allow_pickle", False) is not False or _is_third(function, call):
        return "allow_pickle"
    if options.get("trust_remote_code", False) is not False or function.startswith("torch.hub."):
        return "remote code"
    return "read_pickle" if function.endswith("read_pickle") else None


def _is_third(function, call):
    """Is numpy.load told about pickles by position?"""
    return function == "numpy.load" and len(call.args) > 2


def _dotted(node, names):
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value, names)}.{node.attr}"
    return names.get(node.id, node.id) if isinstance(node, ast.Name) else ""


def test_there_are_sources_of_each_kind():
    assert {path.relative_to(ROOT).parts[0] for path in SOURCES} == {
        "notebooks", "course_lib", "course_build", "bench", "reference",
    }  # fmt: skip


def test_nothing_is_unpickled_or_evaluated():
    found = [
        (path.relative_to(ROOT).as_posix(), what, line)
        for path in SOURCES
        for line, what in unsafe(path.read_text(encoding="utf-8"))
    ]
    assert [fault for fault in found if fault[:2] not in ALLOWED] == []


@pytest.mark.parametrize(("name", "what"), ALLOWED)
def test_an_allowance_is_still_needed(name, what):
    assert what in [each for _, each in unsafe((ROOT / name).read_text(encoding="utf-8"))]


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("import pickle", "pickle"),
        ("def f():\n    from pickle import load as read", "pickle"),
        ("import joblib.numpy_pickle as n", "joblib"),
        ("__import__('pickle').load(f)", "pickle"),
        ("import importlib\nimportlib.import_module('dill')", "dill"),
        ("import torch as t\nt.load(f)", "torch.load"),
        ("from torch import load\nload(f, weights_only=False)", "torch.load"),
        ("import torch\ntorch.load(f, weights_only=safe)", "torch.load"),
        ("import torch\ntorch.jit.load(f)", "torch.jit.load"),
        ("import torch\ntorch.hub.load('a/b', 'c')", "remote code"),
        ("from torch import hub\nhub.load('a/b', 'c')", "remote code"),
        ("import numpy as np\nnp.load(f, allow_pickle=True)", "allow_pickle"),
        ("import numpy as np\nnp.load(f, allow_pickle=really)", "allow_pickle"),
        ("from numpy import load\nload(f, None, True)", "allow_pickle"),
        ("import pandas as pd\npd.read_pickle(f)", "read_pickle"),
        ("model.from_pretrained('a', trust_remote_code=True)", "remote code"),
        ("exec(urlopen(url).read())", "exec"),
        ("import builtins\nbuiltins.eval(text)", "eval"),
    ],
)
def test_what_would_run_a_files_words_is_found(source, what):
    assert what in [each for _, each in unsafe(source)]


@pytest.mark.parametrize(
    "source",
    [
        "import torch\ntorch.load(f, weights_only=True)",
        "import numpy as np\nnp.load(f)\nnp.load(f, allow_pickle=False)",
        "model.eval()\nexec('run(request)')",
        "import json\njson.load(f)",
    ],
)
def test_what_reads_numbers_and_words_is_fine(source):
    assert unsafe(source) == []
