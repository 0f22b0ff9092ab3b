"""What the pages of prose say is so: the contract's words, the numbers, the names, the commands."""

import importlib.util
import re
import shlex
from pathlib import Path

import pytest

from course_build.base.files import read_files
from course_build.base.settings import SETTINGS_FILE, parse_settings
from course_build.building.course import build_course
from course_build.site.minutes import minutes
from course_build.site.sources import cut
from course_build.teaching.__main__ import FOLDER
from course_build.teaching.catalogue import read_catalogue
from course_build.teaching.exports import exports
from course_build.teaching.graded import POINTS
from course_build.teaching.slides.__main__ import FOLDER as SLIDES
from course_lib import contracts, text
from course_lib.contracts import ContractViolation, check_nll_contract
from course_lib.mistakes import CATALOGUE

ROOT = Path(__file__).resolve().parent.parent
LANGUAGES = parse_settings((ROOT / SETTINGS_FILE).read_text(encoding="utf-8")).complete
QUARTERS = {"": 0, "¼": 15, "½": 30, "¾": 45}
HOURS = re.compile(r"\| (\d+)([¼½¾]?) (?:hour|час)")
LINK = re.compile(r"\]\((module_\d\d_\w+)\.ipynb(?:#([\w-]+))?[^)]*\)")
ROUNDING = 20  # minutes by which a rounded time may be off
each_language = pytest.mark.parametrize("language", LANGUAGES)


def page(name, language):
    return (ROOT / "notebooks" / language / f"{name}.md").read_text(encoding="utf-8")


def part(text, key):
    """The text below an anchor, up to the next section."""
    return text.split(f'<a id="{key}"></a>')[1].split('<a id="')[0]


def fences(text, kind):
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def modules(language):
    """The pages of each module, {stem: sections}, from the committed notebooks."""
    paths = sorted((ROOT / "notebooks" / language).glob("module_*.ipynb"))
    return cut({path.name: path.read_bytes() for path in paths})


def stated(row):
    """The minutes that a row of a table states in hours."""
    found = HOURS.search(row)
    return int(found[1]) * 60 + QUARTERS[found[2]]


@each_language
def test_the_message_is_what_the_contract_says_of_that_code(language, monkeypatch):
    section = part(page("welcome", language), "message")
    (code,), (message,) = fences(section, "python"), fences(section, "text")
    names = {}
    exec("from torch.nn.functional import cross_entropy\n" + code, names)
    monkeypatch.setattr(text, "LANGUAGE", language)
    with pytest.raises(ContractViolation) as caught:
        check_nll_contract(names["next_token_nll"])
    assert str(caught.value) == message.rstrip("\n")
    assert "not_shifted" in message


@each_language
def test_the_modules_have_as_many_exercises_and_take_as_long_as_the_first_page_says(language):
    table = part(page("welcome", language), "modules").split("\n")
    rows = [row for row in table if LINK.search(row)]
    sections = modules(LANGUAGES[0])
    assert [LINK.search(row)[1] for row in rows] == list(sections)
    for row, (stem, pages) in zip(rows, sections.items(), strict=True):
        cells = [cell for page in pages for cell in page.cells]
        stubs = [cell for cell in cells if "exercise" in cell["metadata"].get("tags", ())]
        assert f"| {len(stubs)} |" in row, (stem, len(stubs))
        taken = sum(minutes(page.cells) for page in pages)
        assert abs(stated(row) - taken) <= ROUNDING, f"{stem} takes {taken} minutes"


@each_language
def test_contracts_have_refused_and_accepted_as_many_as_the_first_page_says(language):
    score = (ROOT / "README.md").read_text(encoding="utf-8").split("|`all`|")[1].split("\n")[0]
    wrong, _, mutants, right = (int(each.split("/")[1]) for each in score.strip("|").split("|"))
    told = re.findall(r"(\d+00) ", part(page("welcome", language), "checked"))
    assert told == [f"{number // 100}00" for number in (wrong, mutants, right)]


@each_language
def test_each_day_takes_as_long_as_the_plan_says(language):
    plan = page("teaching", language)
    rows = [row for row in part(plan, "plan").split("\n") if "#day-" in row]
    assert len(rows) == 5
    taken = {
        page.cells[0]["id"]: minutes(page.cells)
        for pages in modules(LANGUAGES[0]).values()
        for page in pages
    }
    for number, row in enumerate(rows, 1):
        read = [key for _, key in LINK.findall(part(plan, f"day-{number}")) if key in taken]
        total = sum(taken[key] for key in read)
        assert abs(stated(row) - total) <= ROUNDING, f"day {number} takes {total} minutes"


@each_language
def test_the_week_leaves_out_no_section_and_no_exercise(language):
    told = LINK.findall(page("teaching", language))
    assert len(set(told)) == len(told)
    for stem, pages in modules(language).items():
        named = {key for name, key in told if name == stem}
        solved = {key for key in named if key.startswith("ex-")}
        assert named - solved == {section.cells[0]["id"] for section in pages[1:]}
        keys = [cell["id"] for section in pages for cell in section.cells]
        assert solved == {key for key in keys if re.fullmatch(r"ex-\w+-statement", key)}


@each_language
def test_every_misconception_is_a_mistake_of_that_contract(language):
    rows = re.findall(r"^\| `(\w+)` \|.*\(`(\w+)`\) \|$", page("teaching", language), re.MULTILINE)
    assert len(rows) >= 15
    for contract, mistake in rows:
        assert f"check_{contract}_contract" in dir(contracts)
        assert mistake in {each.name for each in CATALOGUE[contract]}, (contract, mistake)


@each_language
@pytest.mark.parametrize("name", ["welcome", "teaching"])
def test_every_command_names_what_exists(language, name):
    written = page(name, language)
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`make ([\w-]+)`", written)) <= targets
    for line in "\n".join(fences(written, "bash")).replace("\\\n", " ").splitlines():
        assert shlex.split(line)[:1] in ([], ["nbgrader"], ["python3"])
        assert all(importlib.util.find_spec(name) for name in re.findall(r"-m (\S+)", line))
    assert (f"--language {language}" in written) == (name == "teaching" and language != "en")


@each_language
@pytest.mark.parametrize("name", ["welcome", "teaching"])
def test_pictures_are_there_in_the_pages_language(language, name):
    for source in re.findall(r"!\[[^]]+\]\(([^)]+)\)", page(name, language)):
        assert f"/figures/{language}/" in source
        assert (ROOT / "notebooks" / language / source).is_file()


def test_the_folders_for_teachers_are_the_ones_that_are_made():
    files = read_files(ROOT)
    settings = parse_settings((ROOT / SETTINGS_FILE).read_text(encoding="utf-8"))
    course = build_course(files, settings, list(files.sources), settings.languages)
    paths = exports(course, files, settings, read_catalogue(ROOT))
    made = {SLIDES, *(f"{FOLDER}/{path.split('/')[0]}" for path in paths)}
    for language in LANGUAGES:
        named = set(re.findall(r"`(build/teaching/\w+)/`", page("teaching", language)))
        assert named == made
        said = part(page("teaching", language), "nbgrader").split("```")[-1]
        assert re.findall(r"\d", said) == [str(points) for points in POINTS.values()]
