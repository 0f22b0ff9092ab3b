"""A certificate lists what passed, its digest can be made again, and it says what it proves."""

import ast
import hashlib
import json
import subprocess
import sys

import pytest

from .conftest import judge


@pytest.fixture
def passed(progress):
    progress.check("planted", judge, "right")
    progress.check("mask", judge, "right")
    progress.check("attention", judge, "wrong")
    return progress


def certificate(progress, capsys, name="Ada"):
    capsys.readouterr()
    progress.certificate(name)
    return capsys.readouterr().out


def line_of(lines):
    """The canonical line, out of the recipe that makes the digest."""
    (line,) = [line for line in lines if line.startswith("line = ")]
    return ast.literal_eval(line.removeprefix("line = "))


def test_it_lists_what_passed_in_the_order_of_the_module(passed, capsys):
    lines = certificate(passed, capsys).splitlines()
    assert lines[:3] == [
        "Ada: contracts passed in module_03, 2 of 3",
        "  ✓ Write the mask · warm-up · check_it · 2",
        "  ✓ Find the bug · stretch · check_it · 2",
    ]
    facts = json.loads(line_of(lines))
    assert facts == {
        "version": 1,
        "module": "module_03",
        "name": "Ada",
        "exercises": 3,
        "passed": [
            {"exercise": name, "level": level, "contract": "check_it", "clauses": ["rows", "masks"]}
            for name, level in (("mask", "warm-up"), ("planted", "stretch"))
        ],
    }


def test_the_digest_can_be_made_again_as_it_says(passed, capsys):
    lines = certificate(passed, capsys, "Ада Лавлейс").splitlines()
    digest, recipe, line = lines[3], lines[5:8], line_of(lines)
    assert lines[4].endswith("in UTF-8. To recompute it, run:")
    assert lines[8].startswith("What it shows: list and digest belong together")
    made = subprocess.run(
        [sys.executable, "-c", "\n".join(recipe)], capture_output=True, text=True, check=True
    )
    assert digest == f"Digest (SHA-256): {made.stdout.strip()}"
    assert made.stdout.strip() == hashlib.sha256(line.encode("utf-8")).hexdigest()
    canonical = json.dumps(
        json.loads(line), ensure_ascii=False, sort_keys=True, separators=(",", ":")
    )
    assert line == canonical


def test_it_says_what_it_does_not_prove(passed, capsys):
    said = certificate(passed, capsys)
    assert "What it does not prove: who wrote the code, or that the contracts ran at all." in said
    assert "progress file is the learner's to edit" in said
    assert "anybody can make another list with its own digest" in said


def test_the_same_progress_has_the_same_certificate_in_any_kernel(passed, begin, capsys):
    assert certificate(passed, capsys) == certificate(begin(), capsys)


def digest_of(progress, capsys, name="Ada"):
    return certificate(progress, capsys, name).split("(SHA-256): ")[1][:64]


def test_whatever_it_lists_changes_the_digest(passed, capsys):
    digests = [digest_of(passed, capsys), digest_of(passed, capsys, "Bob")]
    passed.check("attention", judge, "right")
    digests.append(digest_of(passed, capsys))
    passed.check("attention", judge, "stub")
    passed.check("mask", judge, "stub")
    digests.append(digest_of(passed, capsys))
    assert len(set(digests)) == 4


def test_both_languages_have_one_digest(passed, capsys, russian):
    said = certificate(passed, capsys)
    assert said.startswith("Ada: выполнено контрактов в module_03\u00a0— 2 из 3\n")
    assert "Чего это не доказывает: кто написал код" in said
    line = line_of(said.splitlines())
    assert f"Отпечаток (SHA-256): {hashlib.sha256(line.encode()).hexdigest()}" in said
    assert "warm-up" in line


def test_with_nothing_passed_it_says_so(progress, capsys):
    said = certificate(progress, capsys)
    assert said.startswith("Ada: contracts passed in module_03, 0 of 3\nDigest (SHA-256): ")
    assert '"passed":[]' in said


@pytest.mark.parametrize("name", ["", "  ", None, "a\u202eb", "a\x00b", "\u200b"])
def test_a_name_that_cannot_be_seen_is_refused(progress, name):
    with pytest.raises(ValueError, match="the certificate needs a name that can be printed"):
        progress.certificate(name)


def test_a_name_has_one_spelling(passed, capsys):
    assert digest_of(passed, capsys, "Zoe\u0308") == digest_of(passed, capsys, " Zo\u00eb\n")
