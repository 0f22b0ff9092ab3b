"""What stands under a page's title, in pages as built; and building again after a change."""

import json

import pytest

from course_build.site.__main__ import build_site
from tests.pages import Markup
from tests.toy_site import build_toy


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("placed")


@pytest.fixture(scope="module")
def site(root):
    """The pages of a course whose repository is known."""
    return build_toy(root, repository="someone/course")


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
    assert build_site(root) == 0
    assert "Renamed" in (site / "en" / "module_01" / "why.html").read_text(encoding="utf-8")
