"""A notebook carries its reference numbers as text, and only if they are the pinned ones."""

import ast
import hashlib
import json

import pytest

from course_build.notebook.reference import Reference

from .conftest import FRAME_LINES, SOURCE, code, said

AFTER = FRAME_LINES + 1
CELL = code(
    "numbers",
    "from course_lib.reference import reference_json\n"
    'REFERENCE_JSON = reference_json("module_03")\nREFERENCE_SHA256 = ""',
    ' role="reference" reference="module_03"',
)
VALUES = {"b": [1.5, None, True], "a": {"words": "it's"}}
PATH = "reference/module_03.json"


def run(source):
    names = {}
    exec(source, names)
    return names


@pytest.mark.parametrize(
    ("language", "title"), [("en", "Reference numbers"), ("ru", "Эталонные числа")]
)
def test_the_cell_holds_the_files_exact_text_and_its_digest_folded(repo, language, title):
    text = repo.reference("module_03", VALUES)
    repo.build(CELL, code("use", "print(REFERENCE_JSON, REFERENCE_SHA256)"))
    source = repo.text("numbers", language)
    assert source.split("\n")[0] == f"#@title {title}"
    names = run(source)
    assert names["REFERENCE_JSON"] == text
    assert names["REFERENCE_SHA256"] == hashlib.sha256(text.encode()).hexdigest()
    assert source.count("\n") == 2
    assert isinstance(ast.parse(source).body[0].value, ast.Constant)
    assert repo.cell("numbers")["metadata"]["jupyter"] == {"source_hidden": True}


@pytest.mark.parametrize(
    "text", ['{"a":"it\'s"}', '{"a":"\\\\n \\" \\u2028"}', '{"a":"тест\u2028"}']
)
def test_no_character_of_the_text_is_lost_in_the_literal(text):
    assert run(Reference(text, "0").code)["REFERENCE_JSON"] == text


def test_a_missing_file_is_refused(repo):
    assert said(SOURCE, AFTER, "numbers", "no-reference", PATH).search(repo.refuse(CELL))


CANONICAL = json.dumps(VALUES, sort_keys=True, separators=(",", ":"))
BAD = {
    "truncated": (CANONICAL[:-3], "reference-json", "not valid JSON"),
    "empty": ("", "reference-json", "not valid JSON"),
    "a newline at the end": (CANONICAL + "\n", "reference-canonical", "not canonical"),
    "spaces": (json.dumps(VALUES, sort_keys=True), "reference-canonical", "not canonical"),
    "unsorted": (json.dumps(VALUES, separators=(",", ":")), "reference-canonical", "not canon"),
    "a key twice": ('{"a":1,"a":2}', "reference-canonical", "not canonical"),
    "a float written otherwise": ('{"a":1.50}', "reference-canonical", "not canonical"),
    "not a number": ('{"a":NaN}', "reference-json", "NaN"),
    "infinite": ('{"a":-Infinity}', "reference-json", "-Infinity"),
    "not UTF-8": (b'{"a":"\xff"}', "reference-json", "not valid JSON"),
    "a byte order mark": (b"\xef\xbb\xbf{}", "reference-json", "not valid JSON"),
}


@pytest.mark.parametrize(("data", "rule", "words"), BAD.values(), ids=BAD.keys())
def test_a_reference_that_is_not_canonical_json_is_refused(repo, data, rule, words):
    repo.write(PATH, data)
    digest = hashlib.sha256(data if isinstance(data, bytes) else data.encode()).hexdigest()
    repo.write("reference/SHA256SUMS", f"{digest}  module_03.json\n")
    err = repo.refuse(CELL)
    assert said(PATH, 1, "numbers", rule, words).search(err)
    assert "run: make reference\n" in err


def test_text_in_any_language_is_canonical_escaped_or_not(repo):
    for ascii_only in (True, False):
        text = json.dumps({"a": "ё"}, separators=(",", ":"), ensure_ascii=ascii_only)
        repo.write(PATH, text)
        digest = hashlib.sha256(text.encode()).hexdigest()
        repo.write("reference/SHA256SUMS", f"{digest} *module_03.json\n")
        repo.build(CELL)


def test_an_edited_reference_is_refused_with_both_digests(repo):
    text = repo.reference("module_03", VALUES)
    repo.write(PATH, text.replace("1.5", "1.6"))
    err = repo.refuse(CELL)
    assert said(PATH, 1, "numbers", "reference-digest").search(err)
    assert hashlib.sha256(text.encode()).hexdigest() in err
    assert hashlib.sha256(text.replace("1.5", "1.6").encode()).hexdigest() in err


@pytest.mark.parametrize(
    "sums", [None, "", f"{'0' * 64}  other.json\n", f"{'0' * 63}  module_03.json\n"]
)
def test_a_reference_without_a_sum_is_refused(repo, sums):
    repo.reference("module_03", VALUES)
    (repo.root / "reference/SHA256SUMS").unlink()
    if sums is not None:
        repo.write("reference/SHA256SUMS", sums)
    assert said(PATH, 1, "numbers", "reference-sums", "module_03.json").search(repo.refuse(CELL))


@pytest.mark.parametrize("more", [' role="reference"', ' reference="module_03"'])
def test_role_and_reference_come_together(repo, more):
    err = repo.refuse(code("numbers", "x = 1", more))
    assert said(SOURCE, AFTER, "numbers", "reference-link").search(err)
