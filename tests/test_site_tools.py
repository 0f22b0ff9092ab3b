"""What stands under a page's title, in pages as built; and building again after a change."""

import json

import pytest

from course_build.bootstrap import try_lock
from course_build.findings import CourseError
from course_build.site import __main__ as command
from course_build.site.__main__ import build_site, put_in_place
from tests.pages import Markup
from tests.toy_site import PLACED, build_toy


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("моя папка & a space")


@pytest.fixture(scope="module")
def site(root):
    """The pages of a course whose repository is known."""
    return build_toy(root, **PLACED)


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


def test_a_new_title_reaches_the_pages_that_were_built_before(site, root):
    for folder in ("notebooks", "build/executed/learner"):
        path = root / folder / "en" / "module_02_idea.ipynb"
        notebook = json.loads(path.read_text(encoding="utf-8"))
        notebook["cells"][1]["source"] = "## Renamed\n\nWords."
        path.write_text(json.dumps(notebook), encoding="utf-8")
    assert build_site(root, {}) == 0
    assert "Renamed" in (site / "en" / "module_01" / "why.html").read_text(encoding="utf-8")


def contents(folder):
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder): path.read_bytes() for path in found}


def test_a_site_over_its_budget_leaves_the_last_good_one(site, root, monkeypatch, capsys):
    before = contents(site)

    def refuse(costs):
        raise CourseError([])

    monkeypatch.setattr(command, "check_budget", refuse)
    assert command.main([], root) == 2
    assert contents(site) == before


def test_a_heading_out_of_order_leaves_the_last_good_site(site, root, capfd):
    before = contents(site)
    page = root / "notebooks" / "ru" / "teaching.md"
    text = page.read_text(encoding="utf-8")
    try:
        page.write_text(f"{text}\n## A\n\n#### B, too deep\n", encoding="utf-8")
        assert command.main([], root) == 2
    finally:
        page.write_text(text, encoding="utf-8")
    assert "header level" in capfd.readouterr().err
    assert contents(site) == before


def test_a_link_to_no_cell_leaves_the_last_good_site(site, root, capsys):
    before = contents(site)
    page = root / "notebooks" / "ru" / "teaching.md"
    text = page.read_text(encoding="utf-8")
    try:
        page.write_text(f"{text}\n[x](module_02_idea.ipynb#nowhere)\n", encoding="utf-8")
        assert command.main([], root) == 2
    finally:
        page.write_text(text, encoding="utf-8")
    assert "ru/teaching.html" in (said := capsys.readouterr().err)
    assert "module_02/index.html#nowhere: there is no such place" in said
    assert contents(site) == before


def test_a_build_that_dies_while_it_gathers_leaves_the_last_good_site(site, root, monkeypatch):
    before = contents(site)

    def die(folder):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "copy_mathjax", die)
    assert command.main([], root) == 130
    assert contents(site) == before


def test_a_whole_folder_takes_the_place_of_the_last(tmp_path):
    new, place, old = (tmp_path / name for name in ("site.new", "site", "site.old"))
    for number in range(2):  # the first time there is no last one
        for folder in (new, old):
            folder.mkdir()
            (folder / f"{folder.name}-{number}").touch()
        put_in_place(new, place)
        assert [path.name for path in tmp_path.rglob("*")] == ["site", f"site.new-{number}"]


def test_two_commands_build_one_after_the_other(tmp_path, monkeypatch):
    ours = []

    def build(root, *settings):
        with (root / "build" / "pages.lock").open("ab") as file:
            ours.append(try_lock(file))
        return 0

    (tmp_path / "pyproject.toml").write_text('[tool.course]\nlanguages = ["en"]\n')
    monkeypatch.setattr(command, "_build_site", build)
    assert build_site(tmp_path, {}) == 0
    assert ours == [False]
