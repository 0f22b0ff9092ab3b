"""What stands under a page's title, in pages as built; and building again after a change."""

import subprocess
import sys

import pytest

from course_build.base.findings import CourseError
from course_build.environment.bootstrap import try_lock
from course_build.outputs import executed
from course_build.site import __main__ as command
from course_build.site.__main__ import bring_back, build_site, put_in_place
from tests.pages import Markup
from tests.toy_site import contents

pytestmark = [pytest.mark.delivery, pytest.mark.xdist_group("toy")]
WORKER = """
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from course_build.site.sphinx_build import end_with_parent
if __name__ == "__main__":
    pool = ProcessPoolExecutor(1, get_context("spawn"), initializer=end_with_parent)
    pool.submit(print, "at work", flush=True).result()
    pool.submit(time.sleep, 3600).result()
"""


@pytest.fixture
def site(toy):
    """The pages of a course whose repository is known."""
    return toy.site


class Built:
    """Stands for the processes that build pages where those are built already."""

    def __init__(self, *arguments, **options):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        pass

    def map(self, build, sites):
        return [0 for _ in sites]


@pytest.fixture
def unchanged(toy, monkeypatch):
    """Let a command fail that has built all pages; the last site must stay."""
    monkeypatch.setattr(command, "ProcessPoolExecutor", Built)
    before = contents(toy.site)
    yield toy
    assert contents(toy.site) == before


def links(page):
    return dict(Markup(page).links)


def test_every_page_of_a_module_leads_to_its_notebook_in_its_language(site):
    pages = sorted(site.glob("??/module_*/*.html"))
    assert len(pages) == 8
    for page in pages:
        language, module, _ = page.relative_to(site).parts
        stem = f"{module}_idea"
        place = f"someone/course/blob/main/notebooks/{language}/{stem}.ipynb"
        found = links(page)
        assert "download" in found[f"{stem}.ipynb"]
        assert f"https://colab.research.google.com/github/{place}" in found
        binder = f"https://mybinder.org/v2/gh/someone/course/main?labpath=notebooks%2F{language}%2F"
        assert f"{binder}{stem}.ipynb" in found
        asked = [given for given in found.values() if "src" in given or "rel" in given]
        assert not [each for each in asked if str(each.get("src")).startswith("http")]


def test_the_words_around_a_page_are_in_its_language(site):
    said = {
        "en": ("About 2 min", "Download .ipynb", "Open in Colab", "Contents"),
        "ru": ("Примерно 2 мин", "Скачать .ipynb", "Открыть в Colab", "Содержание"),
    }
    for language, words in said.items():
        page = (site / language / "module_01" / "index.html").read_text(encoding="utf-8")
        assert [each for each in words if each not in page] == []


def test_a_new_title_reaches_the_pages_that_were_built_before(site):
    other = (site / "en" / "module_01" / "why.html").read_text(encoding="utf-8")
    assert "1. Renamed" in other


def test_a_heading_out_of_order_leaves_the_last_site(toy):
    assert toy.refused == (1, {"index.html": b"the last"})


def test_a_site_over_its_budget_leaves_the_last_good_one(unchanged, monkeypatch, capsys):
    def refuse(costs):
        assert {"build/site.new/index.html", "build/site.new/ru/module_02/why.html"} < costs.keys()
        raise CourseError([])

    monkeypatch.setattr(command, "check_budget", refuse)
    assert command.main([], unchanged.root) == 2


def test_a_link_to_no_cell_leaves_the_last_good_site(unchanged, capsys):
    page = unchanged.root / "build" / "pages" / "ru" / "pages" / "teaching.html"
    text = page.read_text(encoding="utf-8")
    try:
        page.write_text(f'{text}<a href="module_02/index.html#nowhere">x</a>', encoding="utf-8")
        assert command.main([], unchanged.root) == 2
    finally:
        page.write_text(text, encoding="utf-8")
    assert "ru/teaching.html" in (said := capsys.readouterr().err)
    assert "module_02/index.html#nowhere: there is no such place" in said


def test_a_build_that_is_stopped_while_it_gathers_leaves_the_last_good_site(
    unchanged, monkeypatch, capsys
):
    def stop(folder):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "copy_mathjax", stop)
    assert command.main([], unchanged.root) == 130
    assert capsys.readouterr().err == "stopped; build/site is as it was\n"


def test_a_whole_folder_takes_the_place_of_the_last(tmp_path):
    new, place, old = (tmp_path / name for name in ("site.new", "site", "site.old"))
    for number in range(2):  # the first time there is no last one
        for folder in (new, old):
            folder.mkdir()
            (folder / f"{folder.name}-{number}").touch()
        put_in_place(new, place)
        assert [path.name for path in tmp_path.rglob("*")] == ["site", f"site.new-{number}"]


def test_after_a_death_between_two_renames_the_last_site_comes_back(tmp_path):
    place, old = tmp_path / "site", tmp_path / "site.old"
    (old / "last").mkdir(parents=True)
    for _ in range(2):  # the second time there is a site again
        bring_back(place)
        assert [path.name for path in tmp_path.rglob("*")] == ["site", "last"]
        (old / "older").mkdir(parents=True)
        bring_back(place)
        assert (place / "last").exists()
        (old / "older").rmdir()
        old.rmdir()


def test_no_process_outlives_a_build_that_is_killed():
    main = subprocess.Popen([sys.executable, "-c", WORKER], stdout=subprocess.PIPE)
    with main:
        assert main.stdout.readline() == b"at work\n"
        main.kill()
        assert main.communicate(timeout=60) == (b"", None)  # so long as one has it open, it waits


@pytest.mark.parametrize("code", [130, 143])
def test_who_stops_the_run_of_the_notebooks_stops_the_command(tmp_path, monkeypatch, code):
    monkeypatch.setattr(executed, "run", lambda command, folder: code)
    with pytest.raises(SystemExit, match=str(code)):
        executed.run_notebooks(tmp_path)


def test_two_commands_build_one_after_the_other(tmp_path, monkeypatch):
    ours = []

    def build(root, *settings):
        with (root / "build" / "pages.lock").open("ab") as file:
            ours.append(try_lock(file))
        assert (root / "build" / "site").exists()
        return 0

    (tmp_path / "pyproject.toml").write_text('[tool.course]\nlanguages = ["en"]\n')
    (tmp_path / "build" / "site.old").mkdir(parents=True)
    monkeypatch.setattr(command, "_build_site", build)
    assert build_site(tmp_path, {}) == 0
    assert ours == [False]
