"""The pinned numbers: their digests, their two computations and the reader's refusals."""

import ast
import hashlib
import importlib
import json
import math
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from course_lib.reference import read_reference, reference_json, reference_sha256

FOLDER = Path(__file__).resolve().parent.parent / "reference"
DIGESTS = {
    "module_03": "e608c5bb68921c5a68e040a1e90f1bf1b9565a62a1b24435429707d4f4e31957",
    "module_04": "408442d9ebbeac3cd7f5adaedbd24056a60db168e45a9cd5413fa4bb3374e3e7",
}
TEXTS = {name: (FOLDER / f"{name}.json").read_text(encoding="utf-8") for name in DIGESTS}
EDITS = {"module_03": ("2.5", "2.6"), "module_04": ("4816", "4817")}  # one number of each
DIGEST, TEXT = DIGESTS["module_03"], TEXTS["module_03"]
MODULES = sorted(DIGESTS)


def load(name):
    """A program of reference/, which finds its neighbours as it does when it is run."""
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(FOLDER))


pinned_file, leaf_by_leaf = load("pinned_file"), load("leaf_by_leaf")
generators = {name: load(f"generate_{name}") for name in MODULES}
crosscheckers = {name: load(f"crosscheck_{name}") for name in MODULES}


@pytest.fixture(params=MODULES)
def name(request):
    return request.param


def edited(name):
    return TEXTS[name].replace(*EDITS[name])


def pin(text):
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def imported_modules(name):
    tree = ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))
    plain = [a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names]
    return {*plain, *(n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom))}


# --- the files and their generators ---


def test_every_reference_is_listed_here_and_pinned():
    assert sorted(path.stem for path in FOLDER.glob("*.json")) == MODULES
    lines = (FOLDER / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    assert lines == [f"{DIGESTS[name]}  {name}.json" for name in MODULES]


def test_the_committed_bytes_have_the_pinned_digest(name):
    assert hashlib.sha256((FOLDER / f"{name}.json").read_bytes()).hexdigest() == DIGESTS[name]
    assert reference_sha256(name) == DIGESTS[name]


def test_the_generator_computes_the_committed_bytes(name):
    assert pinned_file.canonical_json(generators[name].facts()) == TEXTS[name]


def test_the_file_is_canonical(name):
    canonical = json.dumps(
        json.loads(TEXTS[name]), ensure_ascii=False, sort_keys=True, separators=(",", ":")
    )
    assert canonical == TEXTS[name]


def test_the_file_is_small_enough_to_stand_in_a_notebook(name):
    assert len(TEXTS[name]) < 20_000


def test_sha256sum_accepts_the_folder():
    tool = ["sha256sum"] if shutil.which("sha256sum") else ["shasum", "-a", "256"]
    command = [*tool, "-c", "SHA256SUMS"]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, check=False)
    accepted = "".join(f"{name}.json: OK\n" for name in MODULES)
    assert (done.returncode, done.stdout) == (0, accepted), done.stderr


def test_the_generator_uses_nothing_but_the_standard_library(name):
    assert imported_modules(f"generate_{name}") <= {"collections.abc", "math", "sys", "pinned_file"}
    assert imported_modules("pinned_file") <= sys.stdlib_module_names | {"collections.abc"}


def test_the_crosscheck_does_not_know_the_generator(name):
    allowed = {"mpmath", "pathlib", "sys", "leaf_by_leaf"}
    assert imported_modules(f"crosscheck_{name}") <= allowed
    assert imported_modules("leaf_by_leaf") <= allowed | {"collections.abc", "json", "math"}


@pytest.fixture
def copy(tmp_path, name):
    """A generator, what it needs and the pins in a folder of their own."""
    for file in (f"generate_{name}.py", "pinned_file.py", "SHA256SUMS"):
        shutil.copy(FOLDER / file, tmp_path)
    return tmp_path


def program(folder, name, *arguments):
    command = [sys.executable, "-B", str(folder / f"{name}.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def generate(folder, name, *arguments):
    return program(folder, f"generate_{name}", *arguments)


def test_generating_writes_the_file_and_a_second_time_changes_nothing(copy, name):
    checked = generate(copy, name, "--check")
    assert checked.returncode == 1
    assert f"is missing; run: python reference/generate_{name}.py" in checked.stderr
    assert not (copy / f"{name}.json").exists()
    assert generate(copy, name).returncode == 0
    assert (copy / f"{name}.json").read_text(encoding="utf-8") == TEXTS[name]
    assert generate(copy, name, "--check").returncode == 0
    assert "up to date" in generate(copy, name).stdout
    assert sorted(p.name for p in copy.iterdir()) == [
        "SHA256SUMS",
        f"generate_{name}.py",
        f"{name}.json",
        "pinned_file.py",
    ]


def test_an_edited_file_is_reported_and_then_mended(copy, name):
    (copy / f"{name}.json").write_text(edited(name), encoding="utf-8")
    checked = generate(copy, name, "--check")
    assert checked.returncode == 1
    assert "differs" in checked.stderr
    assert generate(copy, name).returncode == 0
    assert (copy / f"{name}.json").read_text(encoding="utf-8") == TEXTS[name]


@pytest.mark.parametrize("pins", ["{zeros}  {name}.json\n", "", None])
def test_numbers_that_are_not_the_pinned_ones_are_never_written(copy, name, pins):
    (copy / f"{name}.json").write_text("the last good file", encoding="utf-8")
    if pins is None:
        (copy / "SHA256SUMS").unlink()
    else:
        (copy / "SHA256SUMS").write_text(pins.format(zeros="0" * 64, name=name), encoding="utf-8")
    done = generate(copy, name)
    assert done.returncode == 2
    assert "SHA256SUMS" in done.stderr
    assert (copy / f"{name}.json").read_text(encoding="utf-8") == "the last good file"


# --- the second computation ---


def computed_once(name):
    """What 50 digits say, for a test that compares many texts with it."""
    with leaf_by_leaf.mp.workdps(leaf_by_leaf.DIGITS):
        facts = crosscheckers[name].expected()
    return lambda: facts


EXPECTED = {name: computed_once(name) for name in MODULES}


def crosscheck(name, text):
    return leaf_by_leaf.crosscheck(text, EXPECTED[name])


def leaf_paths(name):
    return [path for path, _ in leaf_by_leaf.leaves(json.loads(TEXTS[name]))]


def with_leaf(name, path, change):
    """The reference text with one leaf changed; the path is walked as 'a.b[0][1]'."""
    facts = json.loads(TEXTS[name])
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
    if isinstance(value, str):
        return value + "s"
    return value + 8 * math.ulp(value) if isinstance(value, float) else value + 1


@pytest.mark.parametrize(("name", "count"), [("module_03", 123), ("module_04", 664)])
def test_every_leaf_agrees_with_fifty_digits(name, count):
    assert leaf_by_leaf.crosscheck(TEXTS[name], crosscheckers[name].expected) == (count, [])


def test_a_change_of_any_single_leaf_is_seen(name):
    unseen = []
    for path in leaf_paths(name):
        _, problems = crosscheck(name, with_leaf(name, path, nudged))
        if len(problems) != 1 or not problems[0].startswith(f"{path}: "):
            unseen.append(path)
    assert unseen == []


@pytest.mark.parametrize(
    ("name", "path", "change", "message"),
    [
        ("module_03", "schema_version", float, "wanted exactly 1, got 1.0"),
        ("module_03", "schema_version", bool, "wanted exactly 1, got True"),
        ("module_03", "attention.allowed[0][0]", int, "wanted exactly True, got 1"),
        ("module_03", "attention.weights[0][1]", int, "wanted exactly 0.0, got 0"),
        ("module_03", "next_token_nll.nll", str, "wanted the float 0.5439"),
        ("module_03", "next_token_nll.nll", lambda _: math.nan, "got nan"),
        ("module_03", "next_token_nll.probabilities", lambda _: [], "the file lacks it"),
        ("module_03", "tiny_lm.steps", lambda steps: {"now": steps}, "the file has it"),
        ("module_04", "text.perplexity", str, "wanted exactly 8.89"),
        ("module_04", "text.perplexity", lambda p: p + 1e-12, "wanted exactly 8.89"),
        ("module_04", "sampling.settings[1].probs[3]", int, "wanted exactly 0.0, got 0"),
        ("module_04", "flops[0].cached", float, "wanted exactly 4816, got 4816.0"),
    ],
)
def test_a_leaf_of_another_kind_is_seen(name, path, change, message):
    _, problems = crosscheck(name, with_leaf(name, path, change))
    assert any(message in problem for problem in problems), problems


@pytest.mark.parametrize("extra", [0.0, None, [], {}])
@pytest.mark.parametrize(("name", "section"), [("module_03", "layer_norm"), ("module_04", "shape")])
def test_a_leaf_that_nobody_computes_is_a_disagreement(name, section, extra):
    facts = json.loads(TEXTS[name])
    facts[section]["eps"] = extra
    _, problems = crosscheck(name, json.dumps(facts))
    assert problems == [f"{section}.eps: the file has it, this computation does not"]


def test_a_section_that_is_gone_is_a_disagreement(name):
    for section in json.loads(TEXTS[name]):
        facts = json.loads(TEXTS[name])
        del facts[section]
        _, problems = crosscheck(name, json.dumps(facts))
        assert problems, section
        assert all(p.startswith(section) and p.endswith("the file lacks it") for p in problems)


@pytest.mark.parametrize(
    ("change", "code"), [(str, 0), (None, 1), (lambda text: text[:-1], 2), (lambda _: None, 2)]
)
def test_the_crosscheck_ends_with_0_1_or_2(tmp_path, capsys, name, change, code):
    file = tmp_path / f"{name}.json"
    text = edited(name) if change is None else change(TEXTS[name])
    if text is not None:
        file.write_text(text, encoding="utf-8")
    assert leaf_by_leaf.run(file, EXPECTED[name], "as near as can be") == code
    said = capsys.readouterr()
    assert ("agree" in said.out, "broken" in said.err) == (code < 2, code == 2)


def test_the_crosscheck_is_a_program_that_reads_the_file_beside_it(tmp_path, name):
    for file in (f"crosscheck_{name}.py", "leaf_by_leaf.py"):
        shutil.copy(FOLDER / file, tmp_path)
    (tmp_path / f"{name}.json").write_text(edited(name), encoding="utf-8")
    done = program(tmp_path, f"crosscheck_{name}")
    assert done.returncode == 1
    assert f"leaves of {name}.json agree with 50-digit arithmetic" in done.stdout


# --- what Module 4's file says, asked of someone else ---

MODULE_04 = json.loads(TEXTS["module_04"])


def test_the_pinned_text_fills_the_context_and_uses_every_token():
    token_ids, sizes = MODULE_04["text"]["token_ids"], MODULE_04["shape"]
    assert len(token_ids) == sizes["context_length"] == 8
    assert set(token_ids) == set(range(sizes["vocab_size"]))
    assert [len(row) for row in MODULE_04["text"]["logits"]] == [6] * 8


def test_the_pinned_greedy_text_is_no_constant_and_has_no_near_ties():
    greedy, p = MODULE_04["greedy"], MODULE_04["parameters"]
    token_ids = greedy["token_ids"]
    assert len(token_ids) == len(greedy["prompt"]) + greedy["max_new_tokens"] == 8
    assert len(set(token_ids[2:])) >= 4
    for row in generators["module_04"].logits_of(token_ids[:-1], p)[1:]:
        second, first = sorted(row)[-2:]
        assert first - second > 0.05


def test_no_gain_or_bias_of_the_pinned_model_is_trivial():
    p = MODULE_04["parameters"]
    vectors = [
        (key, vector)
        for holder in (*p["blocks"], p)
        for key, vector in holder.items()
        if key.endswith(("gain", "bias")) or key in ("bq", "bk", "bv", "bo", "b1", "b2")
    ]
    assert len(vectors) == 2 * 10 + 3
    for key, vector in vectors:
        assert len(set(vector)) >= 3, key
        assert vector != [1.0] * len(vector)


def test_the_pinned_sizes_are_those_of_the_published_model():
    assert MODULE_04["parameter_count"]["gpt2_small"] == 124_439_808  # as its authors' file counts
    full = {"model": "gpt2_small", "batch": 1, "bytes_per_value": 2, "bytes": 37_748_736}
    assert full in MODULE_04["cache_bytes"]
    by_batch = {
        row["batch"]: row["flops_per_byte"]
        for row in MODULE_04["arithmetic_intensity"]
        if row["bytes_per_parameter"] == 2
    }
    assert by_batch == {1: 1.0, 8: 8.0, 64: 64.0}


# --- the reader ---


def test_the_reader_returns_the_pinned_facts(name):
    facts = read_reference(reference_json(name), reference_sha256(name))
    assert facts == json.loads(TEXTS[name])


def test_a_known_number_comes_through_to_its_last_digit():
    facts = read_reference(TEXT, DIGEST)
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
