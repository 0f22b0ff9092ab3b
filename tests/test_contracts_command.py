"""The command `python -m course_lib.contracts`: its words, JSON, exit codes, engines."""

import json
import math
import os
import re
import shutil
import string
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
import torch

from course_build.base.settings import SETTINGS_FILE, parse_settings
from course_lib import contracts
from course_lib.checking.apart import Bench
from course_lib.checking.command import exit_code
from course_lib.checking.judging import judge_all, main, read_task
from course_lib.checking.plain import json_line, plain_json, printable
from course_lib.checking.task import known_contracts
from course_lib.checking.texts import TEXTS
from course_lib.contracts import CONTRACTS

pytestmark = pytest.mark.delivery

ROOT = Path(__file__).resolve().parents[1]
MASKS = '''
import os, torch
from beside import later

def right(t_q, t_k, *, query_offset=0):
    """A right mask that talks, in Russian too."""
    print("смотрите: \\x1b[31m", t_q, t_k)
    if query_offset < 0:
        raise ValueError("a negative offset")
    return later(t_q, t_k, query_offset)

class Masks:
    @staticmethod
    def inclusive(t_q, t_k, *, query_offset=0):
        if query_offset < 0:
            raise ValueError("a negative offset")
        return later(t_q, t_k, query_offset + 1)

def stub(t_q, t_k, *, query_offset=0):
    raise NotImplementedError

def where(t_q, t_k, *, query_offset=0):
    assert os.listdir(os.getcwd()) == []
    assert __name__ == "candidate" and os.path.basename(__file__) == "маски и др.py"
    return right(t_q, t_k, query_offset=query_offset)

number = 3

def attend(q, k, v, allowed=None, *, empty_row="error"):
    """Right, but it returns the output alone."""
    scores = q @ k.transpose(-1, -2)
    return torch.softmax(scores.nan_to_num() * float("nan"), -1) @ v
'''
BESIDE = """
import torch

def later(t_q, t_k, offset):
    return torch.arange(t_k) <= torch.arange(t_q)[:, None] + offset
"""
LOGITS = """
import math

def full(ids):
    if len(ids) > 8:
        raise ValueError("too long")
    state, rows = 0.0, []
    for place, i in enumerate(ids):
        state = 0.7 * state + math.sin(1.0 + i) + 0.1 * place
        rows.append([math.cos(state * (1 + token)) for token in range(11)])
    import numpy
    return numpy.array(rows)

def cached(ids, chunks):
    return full(ids)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("класс a")
    (folder / "маски и др.py").write_text(MASKS, encoding="utf-8")
    (folder / "beside.py").write_text(BESIDE, encoding="utf-8")
    (folder / "logits.py").write_text(LOGITS, encoding="utf-8")
    (folder / "latin.py").write_bytes('# coding: latin-1\nname = "é"\n'.encode("latin-1"))
    (folder / "odd.py").write_bytes(b"\xff\xfe\x00")
    return folder


def strict(line):
    def refuse(token):
        raise AssertionError(f"{token} is not JSON")

    return json.loads(line, parse_constant=refuse)


def run(capfdbinary, *arguments):
    """Run the command here; return its exit code and what it wrote on stdout and stderr."""
    code = main(list(map(str, arguments)))
    out, err = capfdbinary.readouterr()
    return code, out.decode("utf-8"), err.decode("utf-8")


@pytest.mark.smoke
def test_json_has_a_line_for_each_candidate_in_order(folder, capfdbinary):
    names = ["right", "Masks.inclusive", "stub", "nowhere", "number", "where"]
    candidates = [f"{folder}/маски и др.py:{name}" for name in names]
    code, out, err = run(capfdbinary, "causal_mask", *candidates, "--json", "--jobs", 2)
    assert (code, err) == (2, "")
    told = [strict(line) for line in out.splitlines()]
    assert [verdict["candidate"] for verdict in told] == candidates
    right, wrong, stub, nowhere, number, where = told
    assert {verdict["contract"] for verdict in told} == {"causal_mask"}
    assert right["verdict"] == where["verdict"] == "accepted"
    assert right["figures"]["full_mask_true"] == 15
    assert {"name", "meaning", "measured", "allowed"} == set(right["clauses"][0])
    assert right["printed"]["bytes"] > 1000
    assert right["printed"]["lines"][0] == "смотрите: \ufffd[31m 2 2"
    assert len(right["printed"]["lines"]) <= 12
    assert wrong["verdict"] == "violation"
    assert wrong["clause"] == "diagonal"
    assert wrong["failing_input"] == {"t_q": 1, "t_k": 2}
    assert wrong["mismatches"] == [
        {"field": "allowed", "index": [0, 1], "got": True, "expected": False}
    ]
    assert wrong["mistakes"] == ["one_ahead"]
    assert wrong["mistakes"][0] in wrong["diagnosis"]
    assert wrong["text"].startswith("✗ check_causal_mask_contract")
    assert wrong["seconds"] > 0
    assert stub["verdict"] == "not_attempted"
    assert (nowhere["verdict"], number["verdict"]) == ("not_runnable", "not_runnable")
    known = "right, Masks, stub, where, attend"
    assert nowhere["reason"] == f"маски и др.py defines no nowhere; it defines: {known}"
    assert number["reason"] == "number in маски и др.py is of type int, which cannot be called"


def test_a_person_reads_the_reports_in_russian(folder, capfdbinary):
    names = ["right", "Masks.inclusive"]
    candidates = [f"{folder}/маски и др.py:{name}" for name in names]
    language = ["--language", "ru", "--jobs", "2"]
    code, out, err = run(capfdbinary, "causal_mask", *candidates, "нет.py:f", *language)
    assert (code, err) == (2, "")
    assert f"{candidates[0]}\n✓ check_causal_mask_contract: выполнены все пункты (8)\n" in out
    assert "  напечатано во время проверки (байт: " in out
    assert "  | смотрите: \ufffd[31m 2 2\n" in out
    assert "✗ check_causal_mask_contract: нарушен пункт «diagonal»\n" in out
    assert "  диагноз: " in out
    assert "! causal_mask: проверить не удалось: не удаётся прочитать нет.py: такого фай" in out
    assert "принято 1, нарушений 1, решения нет 0, проверить не удалось 1\n" in out
    english = "clause|demanded|measured|allowed:|diagnosis|printed|behaves|failing|fix"
    assert re.findall(rf"\b({english})\b", out) == []


def test_one_accepted_candidate_needs_no_heading_and_no_summary(folder, capfdbinary):
    code, out, err = run(capfdbinary, "causal_mask", f"{folder}/маски и др.py:right")
    assert (code, err, out[0]) == (0, "", "✓")
    assert "accepted" not in out


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        (["accepted", "accepted"], 0),
        (["accepted", "not_attempted"], 1),
        (["violation", "accepted"], 1),
        (["not_runnable", "violation", "accepted"], 2),
    ],
)
def test_the_exit_code_is_that_of_the_worst(verdicts, code):
    assert exit_code(verdicts) == code


def test_a_contract_of_two_functions_takes_both_and_its_sizes(folder, capfdbinary):
    sizes = ["--vocab-size", "11", "--context-length", "8"]
    code, out, _ = run(capfdbinary, "cache", f"{folder}/logits.py:full,cached", *sizes)
    assert (code, out[0]) == (0, "✓"), out


def test_fields_that_are_not_asked_for_are_not_checked(folder, capfdbinary):
    arguments = ["attention", f"{folder}/маски и др.py:attend", "--fields", "output", "--json"]
    code, out, _ = run(capfdbinary, *arguments)
    told = strict(out)
    assert (code, told["verdict"]) == (1, "violation")
    assert '"nan"' in out  # the number itself, where JSON has none


BROKEN = {
    "no_candidates": (["cache"], "add FILE.py:full_logits,cached_logits", "добавьте ФАЙЛ.py:full"),
    "no_contract": (["nothing"], "no contract 'nothing'; there are: .*nll", "«nothing» нет; есть"),
    "nothing": ([], "name a contract and the functions", "назовите контракт и функции"),
    "unknown_option": (["nll", "a.py:f", "--job", "2"], "unknown option: --job", "параметр: --job"),
    "bad_number": (["nll", "a.py:f", "--timeout", "-1"], "greater than 0, got '-1'", "больше 0"),
    "bad_whole": (["nll", "a.py:f", "--jobs", "0"], "at least 1, got '0'", "не меньше 1"),
    "bad_size": (["cache", "a.py:f,g", "--vocab-size", "x"], "--vocab-size must be", "целое число"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_command_line_that_asks_for_nothing_possible_is_refused(capfdbinary, name):
    arguments, english, russian = BROKEN[name]
    for language, words in (("en", english), ("ru", russian)):
        code, out, err = run(capfdbinary, *arguments, "--language", language)
        assert (code, out) == (2, "")
        assert re.search(words, err)


def test_a_language_that_there_is_not(capfdbinary):
    assert run(capfdbinary, "--list", "--language", "xx")[2] == (
        "--language xx: choose from en, ru\n"
    )


REFUSED = {
    "nothing a.py:f": ("no contract 'nothing'", "контракта «nothing» нет"),
    "nll a.py": ("name the functions as FILE.py:FUNCTION", "назовите функции"),
    "nll a.py:f,": ("name the functions as", "назовите функции"),
    "nll {folder}:f": ("cannot read .*: it is a folder", "это папка"),
    "nll {folder}/odd.py:f": ("neither UTF-8 nor a declared encoding", "это не UTF-8"),
    "nll a.py:f,g": ("takes FILE.py:next_token_nll$", "принимает ФАЙЛ.py:next_token_nll$"),
    "cache a.py:f --vocab-size 3 --context-length 2": ("takes FILE.py:full_log", "принимает"),
    "cache a.py:f,g --vocab-size 3": ("'cache' needs --context-length", "нужен параметр"),
    "nll a.py:f --vocab-size 3": ("'nll' has no --vocab-size", "нет параметра --vocab-size"),
}


@pytest.mark.parametrize("line", REFUSED)
def test_what_cannot_be_run_gets_a_verdict_too(folder, capfdbinary, line):
    arguments = [word.format(folder=folder) for word in line.split()]
    for language, words in zip(("en", "ru"), REFUSED[line], strict=True):
        code, out, err = run(capfdbinary, *arguments, "--json", "--language", language)
        told = strict(out)
        assert (code, err, told["verdict"]) == (2, "", "not_runnable")
        assert re.search(words, told["reason"])


def test_the_list_is_what_the_package_exports(capfdbinary):
    exported = re.findall(r"\bcheck_(\w+)_contract\b", " ".join(contracts.__all__))
    _, out, _ = run(capfdbinary, "--list")
    assert [line.split()[0] for line in out.splitlines()] == exported == list(known_contracts())
    assert re.search(r"^causal_mask +FILE\.py:causal_allowed$", out, re.MULTILINE)
    assert re.search(r"^attention +FILE\.py:attention \[--fields VALUE\]$", out, re.MULTILINE)
    _, out, _ = run(capfdbinary, "--list", "--json")
    assert [strict(line)["contract"] for line in out.splitlines()] == exported


def test_every_contract_is_in_the_module_that_its_table_names():
    for name in known_contracts():
        module = CONTRACTS[f"check_{name}_contract"]
        assert (ROOT / f"{module.replace('.', '/')}.py").is_file(), name


def test_every_sentence_is_there_in_every_language_with_the_same_fields():
    settings = parse_settings((ROOT / SETTINGS_FILE).read_text(encoding="utf-8"))
    for key, texts in TEXTS.items():
        assert list(texts)[: len(settings.complete)] == list(settings.complete), key
        fields = [
            {name for _, name, _, _ in string.Formatter().parse(text) if name}
            for text in texts.values()
        ]
        assert all(each == fields[0] for each in fields), key
        assert re.search("[а-яё]", texts["ru"], re.IGNORECASE) or key == "none", key


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        (np.float32("inf"), "inf"),
        (np.float64(0.5), 0.5),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (True, True),
        (10**400, str(10**400)),
        (2**62, 2**62),
        (Decimal("1.5"), "Decimal('1.5')"),
        ((1, [None, "ё\ud800"]), [1, [None, "ё?"]]),
        ({1: math.inf}, {"1": "inf"}),
        (torch.tensor([1.0, math.nan]), {"dtype": "float32", "shape": [2], "values": [1, "nan"]}),
        (torch.zeros(0, 2), {"dtype": "float32", "shape": [0, 2], "values": []}),
        (np.array([[True]]), {"dtype": "bool", "shape": [1, 1], "values": [[True]]}),
        (torch.zeros(5000), {"dtype": "float32", "shape": [5000], "values": None}),
        (1 + 2j, "(1+2j)"),
        (range(2), "range(0, 2)"),
    ],
)
def test_any_value_becomes_strict_json(value, plain):
    assert plain_json(value) == plain
    assert strict(json_line({"value": value})) == {"value": plain}


def test_what_has_no_end_or_no_repr_is_still_json():
    class Odd:
        def __repr__(self):
            raise RuntimeError

    endless = []
    endless.append(endless)
    strict(json_line([endless, Odd()]))
    assert plain_json(Odd()) == "<Odd>"


def test_a_terminal_is_not_steered():
    assert printable("a\x1b[2J\tb\r\nё✓\u00a0— c\u202e") == "a\ufffd[2J\tb\ufffd\nё✓\u00a0— c\ufffd"


def test_a_check_that_cannot_be_made_is_a_verdict_in_its_place(folder, monkeypatch):
    def refuse(bench, task):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Bench, "_once", refuse)
    names = ["маски и др.py:right", "gone.py:f", "beside.py:later"]
    tasks = [read_task("causal_mask", f"{folder}/{name}") for name in names]
    told = list(judge_all(tasks, 2))
    assert [verdict["candidate"] for verdict in told] == [f"{folder}/{name}" for name in names]
    no_room = "the check gave no verdict: [Errno 28] No space left on device"
    assert [told[0]["reason"], told[2]["reason"]] == [no_room, no_room]
    assert told[1]["reason"].endswith("gone.py: no such file")
    assert {verdict["verdict"] for verdict in told} == {"not_runnable"}


def test_a_pipe_or_a_device_is_no_file_to_judge(tmp_path):
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "zero.py").symlink_to("/dev/zero")
    for name in ("pipe.py", "zero.py"):
        problem = read_task("nll", f"{tmp_path}/{name}:f").problem
        assert problem.endswith("it is a pipe or a device")


@pytest.mark.parametrize(
    ("language", "words"), [("en", "save it as a .py file first"), ("ru", "это блокнот")]
)
def test_a_notebook_is_told_to_be_saved_as_a_file(language, words):
    assert words in read_task("nll", "anna.ipynb:my_loss", language=language).problem


def test_verdicts_that_nobody_waits_for_are_not_computed():
    many = judge_all([read_task("nll", "a.py:f")] * 50)
    assert next(many)["verdict"] == "not_runnable"
    many.close()


def test_a_file_is_read_as_python_reads_it(folder):
    assert read_task("nll", f"{folder}/latin.py:name").source == '# coding: latin-1\nname = "é"\n'
    assert Path(read_task("nll", "a.py:f").path).is_absolute()


def test_a_reader_that_has_seen_enough_is_no_error():
    command = f"{sys.executable} -m course_lib.contracts --list | head -1"
    shell = ["bash", "-c", f"set -o pipefail; {command}"]
    done = subprocess.run(shell, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1


def test_an_installed_package_checks_from_any_folder(folder, tmp_path):
    """Built and installed offline from a copy of the sources; the tree stays as it is."""
    copy, target, empty = tmp_path / "copy", tmp_path / "target", tmp_path / "empty"
    empty.mkdir()
    ignore = shutil.ignore_patterns("__pycache__", ".*", "build", "figures", "*.egg-info")
    shutil.copytree(ROOT, copy, ignore=ignore)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--no-index"]
    pip += ["--no-build-isolation", "--no-deps", "--disable-pip-version-check"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(
        [*pip, "--target", str(target), str(copy)], cwd=empty, env=environment, check=True
    )
    assert sorted(p.name for p in target.iterdir() if p.suffix != ".dist-info") == ["course_lib"]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "course_lib.contracts",
            "causal_mask",
            f"{folder}/маски и др.py:right",
        ],
        cwd=empty,
        env={**environment, "PYTHONPATH": str(target), "LC_ALL": "C.UTF-8"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done
    assert done.stdout.decode().startswith("✓ check_causal_mask_contract: all 8 clauses hold\n")
