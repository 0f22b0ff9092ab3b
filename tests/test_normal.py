"""Executed notebooks in the form in which two runs give the same bytes."""

import copy
import json

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_build.run.jobs import find_jobs
from course_build.run.normal import normalise, scrub
from course_build.run.outcome import Plan
from course_build.run.pool import run_jobs

pytestmark = pytest.mark.delivery

TEXTS = st.lists(
    st.text(st.characters(codec="utf-8"))
    | st.sampled_from(
        [
            "<object at 0x7f3a5c0b1d90>\n",
            "/tmp/course-m9m73uj8/tmp/tmp_hkuqke8/model\n",
            "/tmp/ipykernel_41/7.py",
        ]
    ),
    max_size=6,
).map("".join)
NAMES = st.sampled_from(["stdout", "stderr"])
STREAMS = st.lists(st.tuples(NAMES, TEXTS), max_size=6)


def notebook_of(outputs, **metadata):
    cell = {
        "cell_type": "code", "id": "one", "source": "", "execution_count": 1,
        "metadata": metadata, "outputs": outputs,
    }  # fmt: skip
    return {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def stream(text, name="stdout"):
    return {"output_type": "stream", "name": name, "text": text}


def outputs_of(notebook):
    [cell] = normalise(notebook)["cells"]
    return cell["outputs"]


def cut(text, places):
    places = sorted({place % (len(text) + 1) for place in places})
    ends = [0, *places, len(text)]
    return [text[a:b] for a, b in zip(ends, ends[1:], strict=False)]


@given(STREAMS)
def test_normalising_again_changes_nothing_and_the_original_stays(streams):
    notebook = notebook_of([stream(text, name) for name, text in streams])
    before = copy.deepcopy(notebook)
    once = normalise(notebook)
    assert normalise(once) == once
    assert notebook == before


@given(TEXTS, st.lists(st.integers(0, 400), max_size=5))
def test_the_pieces_in_which_a_stream_came_do_not_matter(text, places):
    whole, pieces = [stream(text)], [stream(piece) for piece in cut(text, places)]
    assert outputs_of(notebook_of(pieces)) == outputs_of(notebook_of(whole))


@given(st.lists(st.tuples(NAMES, st.text("ab\n", max_size=4)), max_size=6))
def test_what_was_written_stays_in_its_order(written):
    kept = [
        (output["name"], letter)
        for output in outputs_of(notebook_of([stream(text, name) for name, text in written]))
        for letter in output["text"]
    ]
    assert kept == [(name, letter) for name, text in written for letter in text]


@pytest.mark.parametrize(
    ("text", "settled"),
    [
        ("<function f at 0x7f3a5c0b1d90>", "<function f at 0x…>"),
        ("hex(255) = 0xff, 0xdeadbeef", "hex(255) = 0xff, 0xdeadbeef"),
        ("look at 0x10", "look at 0x10"),
        (
            "/tmp/course-m9m73uj8/tmp/tmp_hkuqke8/tales/model.safetensors: bad",
            "…/tales/model.safetensors: bad",
        ),
        ("'/tmp/tmp_hkuqke8'", "'…/'"),
        ("/tmp/course-m9m73uj8/cwd/x.txt", "…/cwd/x.txt"),
        ("/home/me/tmp_report_.txt", "/home/me/tmp_report_.txt"),
        ("/home/me/tmp_reports_2/x", "/home/me/tmp_reports_2/x"),
        ("File /tmp/ipykernel_2314/1875.py:3, in f", "File …/1875.py:3, in f"),
        (r"C:\Users\a\Temp\tmp_hkuqke8\model", "…/model"),
        ("and/or tmpl/tmp template/tmpfile.txt", "and/or tmpl/tmp template/tmpfile.txt"),
        ("1.5 tokens/s at 0x7", "1.5 tokens/s at 0x7"),
    ],
)
def test_addresses_and_temporary_folders_are_settled_and_nothing_else(text, settled):
    assert scrub(text) == settled


def test_pictures_and_data_stay_and_their_texts_are_settled():
    data = {
        "image/svg+xml": "<svg>at 0x7f3a5c0b1d90</svg>",
        "text/plain": ["<A at 0x7f3a5c0b1d90>\n", "second"],
        "text/html": "<b>/tmp/tmp_hkuqke8/x</b>",
        "application/json": {"at": 1},
    }
    shown = {
        "output_type": "display_data",
        "metadata": {"image/svg+xml": {"alt": "a"}},
        "data": data,
    }
    [output] = outputs_of(notebook_of([shown]))
    assert output["metadata"] == shown["metadata"]
    assert output["data"] == {
        "image/svg+xml": data["image/svg+xml"],
        "text/plain": "<A at 0x…>\nsecond",
        "text/html": "<b>…/x</b>",
        "application/json": {"at": 1},
    }


def test_an_error_keeps_its_words():
    error = {
        "output_type": "error", "ename": "OSError", "evalue": "no /tmp/tmp_hkuqke8/x",
        "traceback": ["\x1b[31mOSError\x1b[0m: no /tmp/tmp_hkuqke8/x", "at 0x7f3a5c0b1d90"],
    }  # fmt: skip
    [output] = outputs_of(notebook_of([error]))
    assert output["evalue"] == "no …/x"
    assert output["traceback"] == ["\x1b[31mOSError\x1b[0m: no …/x", "at 0x…"]


def test_a_tag_and_passed_parameters_stay_and_the_account_of_the_run_goes():
    notebook = notebook_of([], tags=["measured"], papermill={"duration": 1}, execution={"x": "y"})
    notebook["metadata"] = {
        "papermill": {"parameters": {"seed": 7}, "duration": 2, "input_path": "/here"},
        "language_info": {"pygments_lexer": "ipython3", "version": "3.11.7"},
        "kernelspec": {"name": "python3"},
    }
    settled = normalise(notebook)
    assert settled["cells"][0]["metadata"] == {"tags": ["measured"]}
    assert settled["metadata"] == {
        "papermill": {"parameters": {"seed": 7}},
        "language_info": {"pygments_lexer": "ipython3"},
        "kernelspec": {"name": "python3"},
    }


def test_cells_of_papermill_get_names_of_their_own_and_empty_tags_go():
    notebook = notebook_of([], tags=[])
    for number in range(3):
        [cell] = notebook_of([], tags=["papermill-error-cell-tag"])["cells"]
        notebook["cells"].append(cell | {"id": f"random-{number}"})
    settled = normalise(notebook)["cells"]
    assert [cell["id"] for cell in settled] == ["one", "papermill-1", "papermill-2", "papermill-3"]
    assert settled[0]["metadata"] == {}


def test_two_runs_of_a_notebook_give_the_same_bytes_also_one_that_fails(tmp_path):
    code = [
        "import pathlib, sys, tempfile, time\nseed = 1",
        "for step in range(40):\n    print(step, end=' ', flush=True)\n    time.sleep(0.01)",
        "print(object(), tempfile.mkdtemp()); print('a warning', file=sys.stderr)",
        "display(object()); object()",
        "print(pathlib.Path.cwd())",
        "pathlib.Path('absent').resolve().read_text()",
        "print('never')",
    ]
    cells = [nbformat.v4.new_code_cell(text, id=f"c{n}") for n, text in enumerate(code)]
    cells[0]["metadata"]["tags"] = ["parameters"]
    folder = tmp_path / "nb" / "en"
    folder.mkdir(parents=True)
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=metadata), folder / "small.ipynb")

    def run(name):
        [job] = find_jobs({"learner": tmp_path / "nb"}, tmp_path / name, [], [])
        [outcome] = run_jobs([job], Plan({"seed": 7}))
        assert outcome.status == "failed", outcome.failure
        return job.executed.read_text(encoding="utf-8")

    first, second = run("first"), run("second")
    assert first == second
    text = json.dumps(json.loads(first), ensure_ascii=False)
    assert "0 1 2 3 4 5 6 7 8" in text
    assert "FileNotFoundError" in text
    assert "An Exception was encountered at" in text
    assert "seed = 7" in text
