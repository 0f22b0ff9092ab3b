"""The course itself: what its notebooks hold of the library is the library, byte for byte."""

import json
import re
from pathlib import Path

import pytest

from course_build.base.files import read_files
from course_build.base.settings import SETTINGS_FILE, parse_settings
from course_build.building.course import build_course
from course_build.library.payload import digest, unpacked

ROOT = Path(__file__).resolve().parents[2]
SAID_OTHERWISE = {"batching"}  # terms that some language does without


@pytest.fixture(scope="module")
def course():
    settings = parse_settings((ROOT / SETTINGS_FILE).read_text(encoding="utf-8"))
    files = read_files(ROOT)
    return build_course(files, settings, list(files.sources), settings.languages)


def test_what_is_shown_is_the_librarys_text_and_what_is_packed_is_its_files(course):
    library = read_files(ROOT).library
    texts = [data.decode() for data in library.values()]
    for path, data in course.notebooks.items():
        cells = {cell["id"]: "".join(cell["source"]) for cell in json.loads(data)["cells"]}
        source = (ROOT / f"notebooks/src/{Path(path).stem}.py").read_text(encoding="utf-8")
        shown = re.findall(r'# %% key="([a-z0-9-]+)"\nfrom course_lib', source)
        assert shown
        for key in shown:
            for definition in cells[key].split("\n\n\n"):
                assert any(f"\n{definition}\n" in text for text in texts), definition
        contents = unpacked(cells["course-lib"])
        assert contents == {name: library[f"course_lib/{name}"] for name in contents}
        assert f'    "{path.split("/")[1]}",\n    "{digest(contents)}",\n' in cells["course-lib"]
        assert len(contents) > 100


def test_a_term_that_one_language_uses_is_used_in_the_others():
    """A glossary whose word is not the one that the notebooks use guards nothing."""
    settings = parse_settings((ROOT / SETTINGS_FILE).read_text(encoding="utf-8"))
    used = []
    for language in settings.complete:
        page = (ROOT / f"notebooks/{language}/glossary.md").read_text(encoding="utf-8")
        terms = [entry.partition('">') for entry in page.split('<a id="')[1:]]
        used.append({key for key, _, entry in terms if "(module_" in entry} - SAID_OTHERWISE)
    assert len(used[0]) > 80
    assert [others ^ used[0] for others in used] == [set()] * len(used)
