"""The course itself: what its notebooks hold of the library is the library, byte for byte."""

import json
from pathlib import Path

import pytest

from course_build.base.files import read_files
from course_build.base.settings import SETTINGS_FILE, parse_settings
from course_build.building.course import build_course

ROOT = Path(__file__).resolve().parents[2]
SAID_OTHERWISE = {"batching"}  # terms that some language does without


@pytest.fixture(scope="module")
def course():
    settings = parse_settings((ROOT / SETTINGS_FILE).read_text(encoding="utf-8"))
    files = read_files(ROOT)
    return build_course(files, settings, list(files.sources), settings.languages)


def test_the_machinery_is_the_librarys_text(course):
    library = [data.decode() for data in read_files(ROOT).library.values()]
    compared = 0
    for path, data in course.notebooks.items():
        language = path.split("/")[1]
        for cell in json.loads(data)["cells"]:
            if cell["id"].endswith("-machinery"):
                _, body = "".join(cell["source"]).split("\n", 1)
                body = body.replace(f'"{language}"  # localized', '"en"  # localized')
                for definition in body.split("\n\n\n"):
                    assert any(f"\n{definition}\n" in text for text in library), definition
                    compared += 1
    assert compared > 0


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
