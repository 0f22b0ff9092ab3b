"""Module 3's pinned numbers: their digest, their two computations and the reader's refusals."""

import ast
import hashlib
import importlib.util
import json
import math
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from course_lib.reference import read_reference, reference_json, reference_sha256

FOLDER = Path(__file__).resolve().parent.parent / "reference"
DIGEST = "e608c5bb68921c5a68e040a1e90f1bf1b9565a62a1b24435429707d4f4e31957"
TEXT = (FOLDER / "module_03.json").read_text(encoding="utf-8")


def load(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generator = load("generate_module_03")
crosschecker = load("crosscheck_module_03")


def pin(text):
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def imported_modules(name):
    tree = ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))
    plain = [a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names]
    return {*plain, *(n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom))}


# --- the file and its generator ---


def test_the_committed_bytes_have_the_pinned_digest():
    assert hashlib.sha256((FOLDER / "module_03.json").read_bytes()).hexdigest() == DIGEST
    assert reference_sha256("module_03") == DIGEST


def test_the_generator_computes_the_committed_bytes():
    assert generator.canonical_json() == TEXT


def test_the_file_is_canonical():
    canonical = json.dumps(
        json.loads(TEXT), ensure_ascii=False, sort_keys=True, separators=(",", ":")
    )
    assert canonical == TEXT


def test_sha256sum_accepts_the_folder():
    tool = ["sha256sum"] if shutil.which("sha256sum") else ["shasum", "-a", "256"]
    command = [*tool, "-c", "SHA256SUMS"]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "module_03.json: OK\n"), done.stderr


def test_the_generator_uses_nothing_but_the_standard_library():
    allowed = {"argparse", "hashlib", "json", "math", "os", "pathlib", "sys", "tempfile"}
    assert imported_modules("generate_module_03") <= allowed


def test_the_crosscheck_does_not_know_the_generator():
    assert imported_modules("crosscheck_module_03") <= {
        "collections.abc",
        "json",
        "math",
        "mpmath",
        "pathlib",
        "sys",
    }


@pytest.fixture
def copy(tmp_path):
    """The generator and the pins in a folder of their own."""
    for name in ("generate_module_03.py", "SHA256SUMS"):
        shutil.copy(FOLDER / name, tmp_path)
    return tmp_path


def generate(folder, *arguments):
    command = [sys.executable, "-I", str(folder / "generate_module_03.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_generating_writes_the_file_and_a_second_time_changes_nothing(copy):
    assert generate(copy, "--check").returncode == 1
    assert not (copy / "module_03.json").exists()
    assert generate(copy).returncode == 0
    assert (copy / "module_03.json").read_text(encoding="utf-8") == TEXT
    assert generate(copy, "--check").returncode == 0
    assert "up to date" in generate(copy).stdout
    assert sorted(p.name for p in copy.iterdir()) == [
        "SHA256SUMS",
        "generate_module_03.py",
        "module_03.json",
    ]


def test_an_edited_file_is_reported_and_then_mended(copy):
    (copy / "module_03.json").write_text(TEXT.replace("2.5", "2.6"), encoding="utf-8")
    checked = generate(copy, "--check")
    assert checked.returncode == 1
    assert "differs" in checked.stderr
    assert generate(copy).returncode == 0
    assert (copy / "module_03.json").read_text(encoding="utf-8") == TEXT


@pytest.mark.parametrize("pins", [f"{'0' * 64}  module_03.json\n", "", None])
def test_numbers_that_are_not_the_pinned_ones_are_never_written(copy, pins):
    (copy / "module_03.json").write_text("the last good file", encoding="utf-8")
    if pins is None:
        (copy / "SHA256SUMS").unlink()
    else:
        (copy / "SHA256SUMS").write_text(pins, encoding="utf-8")
    done = generate(copy)
    assert done.returncode == 2
    assert "SHA256SUMS" in done.stderr
    assert (copy / "module_03.json").read_text(encoding="utf-8") == "the last good file"


# --- the second computation ---


def leaf_paths():
    return [path for path, _ in crosschecker.leaves(json.loads(TEXT))]


def with_leaf(path, change):
    """The reference text with one leaf changed; the path is walked as 'a.b[0][1]'."""
    facts = json.loads(TEXT)
    holder, steps = facts, path.replace("[", ".").replace("]", "").split(".")
    steps = [int(step) if step.isdigit() else step for step in steps]
    for step in steps[:-1]:
        holder = holder[step]
    holder[steps[-1]] = change(holder[steps[-1]])
    return json.dumps(facts)


def nudged(value):
    """The smallest change that must be seen: 8 units in the last place, or another kind."""
    if value is None:
        return 0.0
    if isinstance(value, bool):
        return not value
    return value + 8 * math.ulp(value) if isinstance(value, float) else value + 1


def test_every_leaf_agrees_with_fifty_digits():
    assert crosschecker.crosscheck(TEXT) == (123, [])


@pytest.mark.parametrize("path", leaf_paths())
def test_a_change_of_any_single_leaf_is_seen(path):
    _, problems = crosschecker.crosscheck(with_leaf(path, nudged))
    assert len(problems) == 1
    assert problems[0].startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("path", "change", "message"),
    [
        ("schema_version", float, "wanted exactly 1, got 1.0"),
        ("schema_version", bool, "wanted exactly 1, got True"),
        ("attention.allowed[0][0]", int, "wanted exactly True, got 1"),
        ("attention.weights[0][1]", int, "wanted exactly 0.0, got 0"),
        ("next_token_nll.nll", str, "wanted the float 0.5439"),
        ("next_token_nll.nll", lambda _: math.nan, "got nan"),
        ("next_token_nll.probabilities", lambda _: [], "the file lacks it"),
        ("tiny_lm.steps", lambda steps: {"now": steps}, "the file has it"),
    ],
)
def test_a_leaf_of_another_kind_is_seen(path, change, message):
    _, problems = crosschecker.crosscheck(with_leaf(path, change))
    assert any(message in problem for problem in problems), problems


@pytest.mark.parametrize("extra", [0.0, None, [], {}])
def test_a_leaf_that_nobody_computes_is_a_disagreement(extra):
    facts = json.loads(TEXT)
    facts["layer_norm"]["eps"] = extra
    _, problems = crosschecker.crosscheck(json.dumps(facts))
    assert problems == ["layer_norm.eps: the file has it, this computation does not"]


@pytest.mark.parametrize("section", sorted(json.loads(TEXT)))
def test_a_section_that_is_gone_is_a_disagreement(section):
    facts = json.loads(TEXT)
    del facts[section]
    _, problems = crosschecker.crosscheck(json.dumps(facts))
    assert problems
    assert all(p.startswith(section) and p.endswith("the file lacks it") for p in problems)


@pytest.mark.parametrize(
    ("text", "code"), [(TEXT, 0), (TEXT.replace("2.5", "2.6"), 1), (TEXT[:-1], 2), (None, 2)]
)
def test_the_crosscheck_ends_with_0_1_or_2(tmp_path, monkeypatch, capsys, text, code):
    file = tmp_path / "module_03.json"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    monkeypatch.setattr(crosschecker, "FILE", file)
    assert crosschecker.main() == code


# --- the reader ---


def test_the_reader_returns_the_pinned_facts():
    facts = read_reference(reference_json("module_03"), reference_sha256("module_03"))
    assert facts == json.loads(TEXT)
    assert facts["next_token_nll"]["nll"] == 0.5439104980979277


@pytest.mark.parametrize(
    "text", [TEXT[:-1], TEXT[:900], TEXT + "\n", TEXT.replace("2.5", "2.6"), ""]
)
def test_a_text_that_is_not_the_pinned_one_is_refused_with_both_digests(text):
    with pytest.raises(ValueError, match=rf"(?s)wanted SHA-256 {DIGEST}\ngot    SHA-256 [0-9a-f]"):
        read_reference(text, DIGEST)


def test_a_text_that_was_cut_off_is_called_so():
    with pytest.raises(ValueError, match="may be cut off: 1 braces are never closed"):
        read_reference(TEXT[:-1], DIGEST)
    with pytest.raises(ValueError, match="not the pinned one") as caught:
        read_reference(TEXT.replace("2.5", "2.6"), DIGEST)
    assert "cut off" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"schema_version":1', "cannot be read as JSON"),
        ('{"schema_version":1,"a":{"x":1,"x":2}}', r"keys \['x'\] appear twice"),
        ('{"schema_version":1,"x":NaN}', "NaN is not a number"),
        ('{"schema_version":1,"x":-Infinity}', "-Infinity is not a number"),
        ('{"schema_version":2}', "schema_version must be 1; got 2"),
        ('{"schema_version":true}', "schema_version must be 1; got True"),
        ('{"schema_version":1.0}', r"schema_version must be 1; got 1\.0"),
        ("{}", "schema_version must be 1; got None"),
        ("[1]", "schema_version must be 1; got None"),
    ],
)
def test_a_pinned_text_with_wrong_content_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        read_reference(text, pin(text))


@pytest.mark.parametrize("sha256", ["", DIGEST[:-1], DIGEST.upper(), DIGEST + " "])
def test_a_digest_of_another_form_is_refused(sha256):
    with pytest.raises(ValueError, match="64 lower-case hexadecimal digits"):
        read_reference(TEXT, sha256)


@pytest.mark.parametrize(("text", "sha256"), [(TEXT.encode(), DIGEST), (TEXT, DIGEST.encode())])
def test_bytes_are_refused(text, sha256):
    with pytest.raises(TypeError, match="must be a str; got bytes"):
        read_reference(text, sha256)


def test_a_text_that_utf8_cannot_hold_is_refused():
    with pytest.raises(ValueError, match="cannot be written as UTF-8"):
        read_reference('{"\ud800":1}', DIGEST)


def test_an_unknown_reference_is_named():
    with pytest.raises(FileNotFoundError, match=r"no reference named 'module_99'.*generate_"):
        reference_json("module_99")
    with pytest.raises(LookupError, match=r"no line for module_99.json; it pins \['module_03"):
        reference_sha256("module_99")
