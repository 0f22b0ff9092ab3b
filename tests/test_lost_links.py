"""Links between pages are followed: to files, and to places in them."""

import pytest

from course_build.base.findings import CourseError
from course_build.site.lost_links import check_links

PAGE = '<!doctype html><p id="here">x</p><a href="{link}">y</a>'


@pytest.fixture
def lead(tmp_path):
    """Let a page lead somewhere, and look at all pages."""
    folder = tmp_path / "en" / "module 03"
    folder.mkdir(parents=True)
    (folder / "a.ipynb").touch()
    (folder.parent / "index.html").write_text(PAGE.format(link="#here"))

    def look(link, name="masks.html"):
        (folder / name).write_text(PAGE.format(link=link))
        check_links(tmp_path)

    return look


@pytest.mark.parametrize(
    "link",
    ["", "#", "#here", "masks.html#here", "../index.html#%68ere", "a.ipynb", "a.ipynb#x",
     "../module%2003/a.ipynb", "https://example.org/x#y", "//example.org/x",
     "mailto:x@example.org"],
)  # fmt: skip
def test_a_link_that_leads_somewhere_is_right(lead, link):
    lead(link)


@pytest.mark.parametrize(
    ("link", "fault"),
    [
        ("#there", "place"),
        ("../index.html#there", "place"),
        ("../index.html#Here", "place"),
        ("index.html", "file"),
        ("../module_03/a.ipynb", "file"),
        ("..", "file"),
    ],
)
def test_a_link_that_leads_nowhere_is_named_with_its_page(lead, link, fault):
    with pytest.raises(CourseError) as caught:
        lead(link)
    (finding,) = caught.value.findings
    assert finding.path == "en/module 03/masks.html"
    assert finding.message.startswith(f"{link}: there is no such {fault}")


def test_a_picture_that_is_nowhere_is_named(tmp_path):
    (tmp_path / "a.html").write_text('<img src="no.svg">')
    with pytest.raises(CourseError, match="no.svg: there is no such file"):
        check_links(tmp_path)


def test_a_lost_page_answers_from_any_folder(lead):
    lead("anywhere.html", name="404.html")
