"""`make lite`: only what is proven replaces the last good build."""

import json
import urllib.request

import pytest

from course_build.lite import __main__ as command
from course_build.lite import proof
from course_build.lite.parts import PartError
from course_build.lite.proof import ProofError, Seen, prove, served

from .test_cut import LANGUAGES, ROOT, STEM


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A course with a good build of an earlier day, and a new one waiting to be proven."""
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())

    def build(root, languages):
        for folder, content in ((command.MADE, "good"), (command.NEW + "/pages", "new")):
            (root / folder).mkdir(parents=True, exist_ok=True)
            (root / folder / "index.html").write_text(content)
        return root / command.NEW / "pages"

    monkeypatch.setattr(command, "build", build)
    monkeypatch.setattr(command, "prove", lambda pages, root, language: f"{language}: proven")
    return tmp_path


def left(root):
    page = (root / command.MADE / "index.html").read_text()
    return page, sorted(path.name for path in (root / "build").iterdir())


def test_what_is_proven_takes_the_place_of_the_last_build(root, capsys):
    assert command.main([], root) == 0
    assert left(root) == ("new", ["lite"])
    told = capsys.readouterr().out
    assert all(f"{language}: proven" in told for language in LANGUAGES)
    assert "in build/lite/" in told


@pytest.mark.parametrize("error", [ProofError("ru: seen"), PartError("no npm"), OSError("full")])
def test_the_last_good_build_stays_when_something_fails(root, monkeypatch, capsys, error):
    def fail(pages, root, language):
        raise error

    monkeypatch.setattr(command, "prove", fail)
    assert command.main([], root) == 2
    assert left(root)[0] == "good"
    assert str(error) in capsys.readouterr().err


@pytest.mark.parametrize("address", ["./static/pyodide/pyodide.mjs", None])
def test_pages_that_would_ask_another_host_for_python_are_refused(tmp_path, monkeypatch, address):
    def make_pages(program, what, folder):
        assert folder == tmp_path / command.NEW  # where no notes of an earlier build lie
        (folder / "pages").mkdir()
        (folder / "pages/jupyter-lite.json").write_text(json.dumps({"pyodideUrl": address}))

    monkeypatch.setattr(command, "ensure", lambda *given: "python")
    monkeypatch.setattr(command, "fetch", lambda *given: {})
    monkeypatch.setattr(
        command, "lay_out", lambda pins, lock, parts, folder: folder.mkdir(parents=True)
    )
    monkeypatch.setattr(command, "contents", lambda *given: {"en/a.ipynb": b"{}"})
    monkeypatch.setattr(command, "call", make_pages)
    if address:
        assert command.build(tmp_path, LANGUAGES) == tmp_path / command.NEW / "pages"
    else:
        with pytest.raises(PartError, match="another host"):
            command.build(tmp_path, LANGUAGES)


def test_a_reader_finds_the_notebook_and_the_glossary_that_it_links_to():
    made = command.contents(ROOT, LANGUAGES, command.Pins("1.2", "0.2"))
    for language in LANGUAGES:
        cells = json.loads(made[f"{language}/{command.NAME}.ipynb"])["cells"]
        assert "Pyodide 1.2" in cells[0]["source"]
        page = made[f"{language}/glossary.md"].decode()
        assert ".ipynb)" not in page
    assert len(made) == 2 * len(LANGUAGES)


def show(monkeypatch, cell, asked=()):
    cells = [{"cell_type": "code", "id": "underflow", "metadata": {}, **cell}]
    notebook = {"cells": cells, "metadata": {}}
    monkeypatch.setattr(proof, "visit", lambda *given: Seen(notebook, frozenset(asked)))


PRINTED = {"output_type": "stream", "name": "stdout", "text": "0.0 -921.034\n"}


def test_the_proof_says_what_it_saw(monkeypatch):
    show(monkeypatch, {"outputs": [PRINTED]})
    told = prove(ROOT, ROOT, LANGUAGES[0])
    assert told == f"{LANGUAGES[0]}: 1 cells ran, 1 outputs as accepted, nothing asked elsewhere"


def test_the_proof_refuses_requests_elsewhere_and_other_outputs(monkeypatch):
    show(monkeypatch, {"outputs": [PRINTED]}, ["https://example.org/x"])
    with pytest.raises(ProofError, match="it asked elsewhere: https://example.org/x"):
        prove(ROOT, ROOT, LANGUAGES[0])
    error = {"output_type": "error", "ename": "KeyError", "evalue": "x", "traceback": []}
    for outputs in ([error], [PRINTED | {"text": "0.1\n"}], []):
        show(monkeypatch, {"outputs": outputs})
        with pytest.raises(ProofError, match="underflow: it shows"):
            prove(ROOT, ROOT, LANGUAGES[0])


def test_no_browser_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(proof.shutil, "which", lambda name: None)
    with pytest.raises(ProofError, match="install one of chromium"):
        proof.visit(tmp_path, LANGUAGES[0])


def test_pages_are_served_to_this_machine_alone(tmp_path):
    (tmp_path / "page.html").write_text(STEM)
    with served(tmp_path) as address, urllib.request.urlopen(f"{address}page.html") as answer:
        assert address.startswith("http://127.0.0.1:")
        assert answer.read().decode() == STEM
