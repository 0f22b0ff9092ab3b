"""The house rules of course_lib, read from its text: who imports whom, and what can be embedded.

Down, never up, never sideways on one floor. A package is one resident: its files may import one
another. A new module is entered in FLOORS below (and in the architecture's table).
"""

import ast
import re
import sys
from collections import defaultdict
from pathlib import Path

import pytest

LIBRARY = Path(__file__).parents[1] / "course_lib"
FLOORS = [
    ["text", "integers"],  # the first step of floor 0: reports speak through it
    ["arguments", "reference", "report", "plots", "live"],
    ["practice", "views"],  # what a learner records; what a reader moves by hand
    ["positions", "masks", "sampling", "likelihood", "scaling", "tokens", "tales"],
    ["attention"],
    ["layers"],
    ["tiny_lm", "causality", "decoder_lm"],
    ["training", "cost", "cache_bugs", "flops", "growth", "machine", "roofline"],
]
ORACLE = "course_lib/decoder_lm/plain.py"  # the builder refuses a notebook with two of a name
GROUND = {name for floor in FLOORS[:2] for name in floor} - {"live"}
ASIDE = {  # never what they judge
    "mistakes": GROUND | {"contracts"},
    "contracts": GROUND | {"checking"},  # the latter only in its __main__: the door
    "checking": GROUND | {"contracts"},
}
SHARED = {"alone", "capacity", "held", "network", "nursery", "regular", "supervisor"}
LONGEST_CELL = 40  # source lines of a public definition: it becomes one notebook cell
LONGEST_FILE = 300
START = "raise SystemExit(main())"  # what a __main__.py may do besides: nobody embeds it


def library_files():
    return {
        path.relative_to(LIBRARY.parent).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(LIBRARY.rglob("*.py"))
    }


def resident(path):
    """Name the module or package that a file belongs to; None for course_lib's own __init__."""
    parts = Path(path).with_suffix("").parts[1:]
    return None if parts == ("__init__",) else parts[0]


def may_import(importer):
    """Say which other residents this one may import."""
    if importer in ASIDE:
        return ASIDE[importer]
    floor = next(height for height, names in enumerate(FLOORS) if importer in names)
    return {name for names in FLOORS[:floor] for name in names}


def course_imports(tree):
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "course_lib"
    ]


def definitions(tree):
    kinds = ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef
    return [node for node in tree.body if isinstance(node, kinds)]


def line_count(node):
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return node.end_lineno - first + 1


def check_residence(path, tree):
    importer = resident(path)
    if importer is None:
        return
    if importer not in {*ASIDE, *(name for names in FLOORS for name in names)}:
        yield (
            1,
            f"module {importer!r} lives on no floor: enter it in FLOORS of tests/test_floors.py",
        )
        return
    for node in course_imports(tree):
        imported = (node.module.split(".") + [None])[1]
        if imported != importer and imported not in may_import(importer):
            yield node.lineno, f"{importer} may not import from course_lib.{imported}: down only"


def check_imports(path, tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "course_lib":
                    yield node.lineno, "write 'from course_lib.x import name'"
        if not isinstance(node, ast.ImportFrom):
            continue
        if node.module == "__future__":
            yield node.lineno, "no __future__ import: it changes every later cell of a notebook"
        if node.level > 0:
            yield node.lineno, "no relative import: write 'from course_lib.x import name'"
        if any(alias.name == "*" for alias in node.names):
            yield node.lineno, "no star import"
    for node in course_imports(tree):
        if any(alias.asname for alias in node.names):
            yield node.lineno, "no alias for a name of course_lib"
        if node not in tree.body:
            yield node.lineno, "import from course_lib at the top of the file only"


def check_statements(path, tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield node.lineno, "no global statement"
    for position, node in enumerate(tree.body):
        is_docstring = position == 0 and ast.get_docstring(tree) is not None
        is_name = (
            isinstance(node, ast.Assign) and [type(t) for t in node.targets] == [ast.Name]
        ) or (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name))
        is_import = isinstance(node, ast.Import | ast.ImportFrom)
        starts = Path(path).name == "__main__.py" and ast.unparse(node) == START
        if not (is_docstring or is_name or is_import or starts or node in definitions(tree)):
            kind = type(node).__name__
            yield node.lineno, f"only imports, definitions and simple assignments here, not {kind}"


def check_docstrings(path, tree):
    if not ast.get_docstring(tree):
        yield 1, "the file needs a docstring that says which idea it holds"
    for node in definitions(tree):
        if not node.name.startswith("_") and not ast.get_docstring(node):
            yield node.lineno, f"{node.name} is public and has no docstring"


def check_sizes(path, tree):
    if Path(path).name.startswith("_") or resident(path) == "checking":
        return  # all of it is folded machinery, or in no notebook at all
    for node in definitions(tree):
        packed = resident(path) in ASIDE and isinstance(node, ast.ClassDef)  # never shown
        if not node.name.startswith("_") and not packed and line_count(node) > LONGEST_CELL:
            yield node.lineno, f"{node.name} has {line_count(node)} lines, over {LONGEST_CELL}"


def violations(files):
    """List every broken rule as "file:line: what"."""
    found = []
    for path, source in files.items():
        tree = ast.parse(source)
        for check in (
            check_residence,
            check_imports,
            check_statements,
            check_docstrings,
            check_sizes,
        ):
            found += [f"{path}:{line}: {message}" for line, message in check(path, tree)]
        if source.count("\n") > LONGEST_FILE:
            found.append(f"{path}:{LONGEST_FILE + 1}: longer than {LONGEST_FILE} lines")
    return found


def test_course_lib_keeps_the_house_rules():
    assert violations(library_files()) == []


def test_every_module_of_the_list_is_there_to_be_checked():
    listed = {name for names in FLOORS for name in names}
    present = {resident(path) for path in library_files()} - {None}
    assert listed - present == set()
    assert len(listed) == sum(len(names) for names in FLOORS)


def test_what_supervises_processes_needs_nothing_of_the_course_and_no_torch():
    """course_build/run, which never imports the rest of course_lib, imports these files.

    The one exception: the runner of notebooks and the teachers' command have one supervisor, and
    `pip install .` brings course_lib alone, so it lives there.
    """
    own = {f"course_lib.checking.{name}" for name in SHARED}
    for name in SHARED:
        tree = ast.parse((LIBRARY / "checking" / f"{name}.py").read_text(encoding="utf-8"))
        assert {node.module for node in course_imports(tree)} <= own, name
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                named = {alias.name.split(".")[0] for alias in node.names}
                assert named <= {*sys.stdlib_module_names, "psutil"}, name


def test_the_builder_imports_nothing_of_the_library_but_the_supervision():
    own = {f"course_lib.checking.{name}" for name in SHARED}
    for path in (LIBRARY.parent / "course_build").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found = {node.module for node in course_imports(tree)}
        found |= {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.Import)
            for alias in node.names
            if alias.name.split(".")[0] in ("course_lib", "torch")
        }
        inside = path.relative_to(LIBRARY.parent).as_posix().startswith("course_build/run/")
        assert found <= (own if inside else set()), path


def test_only_the_door_of_the_contracts_opens_the_command():
    for path, source in library_files().items():
        if resident(path) == "contracts" and not path.endswith("/__main__.py"):
            assert "course_lib.checking" not in source, path


def test_one_name_has_one_definition_in_the_modules_that_share_a_notebook():
    """But for the oracle: it has the field's names too, and shares nothing with what it judges.

    Contracts are packed as files and never shown: each file of theirs has names of its own.
    The teachers' command is in no notebook.
    """
    homes = defaultdict(list)
    for path, source in library_files().items():
        if path == ORACLE or resident(path) in ASIDE:
            continue
        for node in definitions(ast.parse(source)):
            if node.name != "__getattr__":  # Python's own name for what a package gives when asked
                homes[node.name].append(path)
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


GOOD = '"""An idea."""\n\nimport math\n\nfrom course_lib.masks import causal_allowed\n\nLIMIT = 3\n'


def test_a_file_within_the_rules_passes():
    assert violations({"course_lib/attention.py": GOOD}) == []
    inside = '"""Bars."""\n\nfrom course_lib.plots.card import card_style\n'
    assert violations({"course_lib/plots/bars.py": inside}) == []
    report = '"""Reports."""\n\nfrom course_lib.text import localized\n'
    assert violations({"course_lib/report.py": report}) == []
    assert violations({"course_lib/__init__.py": '"""The library."""\n'}) == []


@pytest.mark.parametrize(
    ("path", "line", "message"),
    [
        (
            "masks.py",
            "from course_lib.attention import split_heads",
            "masks may not import .*attention",
        ),
        ("masks.py", "from course_lib.positions import sinusoidal_encoding", "may not import"),
        ("text.py", "from course_lib.report import ContractReport", "text may not import"),
        ("plots/bars.py", "from course_lib.tiny_lm import TinyLM", "plots may not import"),
        (
            "contracts/attention.py",
            "from course_lib.masks import causal_allowed",
            "contracts may not",
        ),
        (
            "mistakes/attention.py",
            "from course_lib.attention import split_heads",
            "mistakes may not",
        ),
        (
            "attention.py",
            "from course_lib.contracts import check_attention_contract",
            "may not import",
        ),
        ("attention.py", "from course_lib import masks", "may not import from course_lib.None"),
        ("attention.py", "from course_lib.masks import causal_allowed as mask", "no alias"),
        ("attention.py", "from course_lib.masks import *", "no star"),
        ("attention.py", "from math import *", "no star"),
        ("attention.py", "import course_lib.masks", "write 'from course_lib.x import name'"),
        ("attention.py", "from .masks import causal_allowed", "no relative import"),
        ("attention.py", "from __future__ import annotations", "no __future__"),
        (
            "attention.py",
            "def f():\n    '''F.'''\n    from course_lib.masks import m",
            "at the top",
        ),
        ("attention.py", "def f():\n    '''F.'''\n    global x\n    x = 1", "no global"),
        ("attention.py", "if LIMIT:\n    def f():\n        '''F.'''", "not If"),
        ("attention.py", "try:\n    import numpy\nexcept ImportError:\n    pass", "not Try"),
        ("attention.py", "A, B = 1, 2", "not Assign"),
        ("attention.py", "print(1)", "not Expr"),
        ("attention.py", "def f():\n    return 1", "f is public and has no docstring"),
        ("attention.py", "class C:\n    x = 1", "C is public and has no docstring"),
        (
            "attention.py",
            "def f():\n    '''F.'''\n" + "    x = 1\n" * 39,
            "f has 41 lines, over 40",
        ),
        ("attention.py", "@d\ndef f():\n    '''F.'''\n" + "    x = 1\n" * 38, "f has 41 lines"),
        ("attention.py", "# x\n" * 300, "longer than 300 lines"),
        ("new_idea.py", "X = 1", "'new_idea' lives on no floor: enter it in FLOORS"),
    ],
)
def test_a_broken_rule_is_seen_and_named(path, line, message):
    found = violations({f"course_lib/{path}": f'"""An idea."""\n\n{line}\n'})
    assert len(found) == 1
    assert re.search(message, found[0])


def test_only_a_main_file_may_start_something_and_only_its_main():
    start = '"""A command."""\n\nfrom course_lib.checking.judging import main\n\n{}\n'
    one, other = start.format("raise SystemExit(main())"), start.format("raise SystemExit(0)")
    assert violations({"course_lib/contracts/__main__.py": one}) == []
    assert "not Raise" in violations({"course_lib/contracts/__main__.py": other})[0]
    assert "not Raise" in violations({"course_lib/checking/judging.py": one})[0]


def test_forty_lines_are_still_one_cell():
    source = '"""An idea."""\n\n\ndef f():\n    """F."""\n' + "    x = 1\n" * 38
    assert violations({"course_lib/attention.py": source}) == []


def test_machinery_may_be_longer_than_a_cell():
    long = "    x = 1\n" * 60
    private = f'"""An idea."""\n\n\ndef _f():\n{long}'
    assert violations({"course_lib/attention.py": private}) == []
    folded = f'"""An idea."""\n\n\ndef f():\n    """F."""\n{long}'
    assert violations({"course_lib/contracts/_f.py": folded}) == []


def test_a_file_without_a_docstring_is_seen():
    assert violations({"course_lib/attention.py": "X = 1\n"}) == [
        "course_lib/attention.py:1: the file needs a docstring that says which idea it holds"
    ]
