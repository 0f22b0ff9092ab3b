"""The readmes lead to Colab where the repository has an address; the builder keeps them so."""

import pytest

from course_build.base.settings import Settings
from course_build.pages.readme import read_readmes, with_links

from .conftest import SETTINGS

MARKED = "# Title\n\n<!-- colab -->\n{}<!-- /colab -->\n\nMore.\n"
KNOWN = SETTINGS.replace('repository = ""', 'repository = "someone/course"')
LINK = "https://colab.research.google.com/github/someone/course/blob/main/notebooks"
WANTED = {
    "README.md": f"\nOpen in Colab: [Module 3]({LINK}/en/module_03_toy.ipynb)\n\n",
    "README.ru.md": f"\nОткрыть в Colab: [Модуль 3]({LINK}/ru/module_03_toy.ipynb)\n\n",
}


@pytest.fixture
def course(repo):
    """A course whose readmes have marks and, left from other days, a link."""
    repo.source()
    for path in WANTED:
        repo.write(path, MARKED.format("\nOld: [x](y)\n\n"))
    return repo


def test_with_an_address_the_readmes_have_links_in_their_language(course):
    course.write("pyproject.toml", KNOWN)
    ran = course.run()
    assert ran.code == 0, ran.err
    for path, block in WANTED.items():
        assert course.read(path) == MARKED.format(block)
    assert course.run("--check").code == 0


def test_without_an_address_there_is_nothing_between_the_marks(course):
    assert course.run().code == 0
    assert {course.read(path) for path in WANTED} == {MARKED.format("")}


def test_check_names_a_readme_whose_links_are_not_the_right_ones(course):
    assert course.run().code == 0
    course.write("pyproject.toml", KNOWN)
    assert course.run().code == 0
    course.write("README.ru.md", MARKED.format(WANTED["README.md"]))
    ran = course.run("--check")
    assert ran.code == 1
    assert "README.ru.md: differs" in ran.err
    assert "README.md: differs" not in ran.err


def test_a_change_of_a_readme_is_seen_though_nothing_else_changed(course):
    assert course.run().code == 0
    course.write("README.md", MARKED.format("gone\n"))
    assert course.run().code == 0
    assert course.read("README.md") == MARKED.format("")


def test_a_readme_without_marks_or_none_at_all_is_left_alone():
    settings = Settings(("en", "ru"), "someone/course", "main")
    assert with_links({"README.md": "# Title\n"}, ["module_03_toy"], settings) == {}
    assert with_links({}, ["module_03_toy"], settings) == {}


def test_all_modules_are_there_in_their_order_and_the_branch_is_the_settings():
    settings = Settings(("en",), "someone/course", "next")
    stems = ["module_04_b", "module_03_a"]
    text = with_links({"README.md": MARKED.format("")}, stems, settings)["README.md"].decode()
    assert text.index("/blob/next/notebooks/en/module_03_a.ipynb") < text.index("module_04_b")


def test_a_readme_that_is_not_there_is_not_read(tmp_path):
    settings = Settings(("en", "ru"), "someone/course", "main")
    (tmp_path / "README.md").write_text("# Title\n", encoding="utf-8")
    assert read_readmes(tmp_path, settings) == {"README.md": "# Title\n"}
