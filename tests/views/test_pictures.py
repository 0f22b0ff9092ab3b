"""All views at once: their pictures can be read, hold still, and are the same every time."""

import hashlib
import json
import os
import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from course_build.outputs.figures import figures_in
from course_build.outputs.views import MOST_FRAMES, VIEW, read_view
from course_build.run.jobs import ROOT
from course_build.run.normal import normalise
from course_lib.views.base import MOST_FRAMES as MOST_DRAWN
from course_lib.views.base import VIEW_KIND
from tests.test_plots import contrast, painted_texts

from .samples import WORDS, output

pytestmark = pytest.mark.delivery

LANGUAGES = ("en", "ru")
each_view = pytest.mark.parametrize(
    ("name", "language"), [(name, language) for name in WORDS for language in LANGUAGES]
)
SIZE = re.compile(r'<svg [^>]*viewBox="([^"]*)" width="(\d+)" height="(\d+)"')


@pytest.fixture(scope="module")
def outputs():
    return {(name, each): output(name, each) for name in WORDS for each in LANGUAGES}


@pytest.fixture(scope="module")
def all_frames(outputs):
    return {key: data[VIEW_KIND]["frames"] for key, (data, _) in outputs.items()}


def test_builder_and_library_speak_of_the_same_thing():
    assert (VIEW, MOST_FRAMES) == (VIEW_KIND, MOST_DRAWN)


@each_view
def test_the_builder_reads_what_the_library_shows(outputs, name, language):
    data, metadata = outputs[name, language]
    view = read_view(json.loads(json.dumps(data, sort_keys=True)))
    assert view.name == name.replace("_", "-") == metadata["image/svg+xml"]["name"]
    first = view.frames[view.start]
    assert (first.svg, first.alt) == (data["image/svg+xml"], data["text/plain"])
    assert first.alt == metadata["image/svg+xml"]["alt"]
    assert first.svg.startswith("<svg xmlns=")
    assert f'<img alt="{first.alt[:10]}' in data["text/html"]


@each_view
def test_each_picture_shows_another_state_and_says_so(all_frames, name, language):
    frames = all_frames[name, language].values()
    assert 2 <= len(frames) <= MOST_FRAMES
    assert len({frame["svg"] for frame in frames}) == len(frames)
    assert len({frame["alt"] for frame in frames}) == len(frames)


@each_view
def test_nothing_around_a_picture_moves_when_it_changes(all_frames, name, language):
    sizes = {SIZE.match(frame["svg"]).groups() for frame in all_frames[name, language].values()}
    assert len(sizes) == 1
    assert 300 <= int(sizes.pop()[1]) <= 720


@each_view
def test_all_words_are_legible_and_inside_and_none_covers_another(all_frames, name, language):
    for state, frame in all_frames[name, language].items():
        canvas = list(map(float, ElementTree.fromstring(frame["svg"]).get("viewBox").split()))
        boxes = []
        for words, style, box in painted_texts(frame["svg"]):
            assert float(re.search(r"([\d.]+)px", style).group(1)) >= 10, (state, words)
            colour = re.search(r"fill: (#\w+)", style).group(1)
            assert contrast(colour, "white") > 7, (state, words)
            room = min(box.x0, box.y0, canvas[2] - box.x1, canvas[3] - box.y1)
            assert room > 2, (state, words)
            for others, other in boxes:
                wide = min(box.x1, other.x1) - max(box.x0, other.x0)
                high = min(box.y1, other.y1) - max(box.y0, other.y0)
                assert wide < 0.5 or high < 0.5, f"{state}: {words!r} covers {others!r}"
            boxes.append((words, box))


@each_view
def test_the_figures_of_an_executed_notebook_take_them(outputs, name, language):
    data, metadata = outputs[name, language]
    shown = {"output_type": "display_data", "data": data, "metadata": metadata}
    cell = {"id": "see", "cell_type": "code", "metadata": {}, "source": "", "outputs": [shown]}
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (figure,) = figures_in("module_03_x.ipynb", json.dumps(notebook).encode())
    assert figure.file_name == f"module_03-{name.replace('_', '-')}.svg"
    assert normalise(notebook) == normalise(normalise(notebook))
    assert normalise(notebook)["cells"][0]["outputs"][0]["data"] == data


def digests():
    return {
        f"{name} {language}": hashlib.sha256(
            json.dumps(output(name, language), sort_keys=True).encode()
        ).hexdigest()
        for name in WORDS
        for language in LANGUAGES
    }


def test_another_process_with_another_hash_seed_draws_the_same_bytes(outputs):
    code = (
        "import json; from tests.views.test_pictures import digests; print(json.dumps(digests()))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "12345"}
    command = [sys.executable, "-c", code]
    ran = subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == digests()
