"""A page of prose: the same twins, stamps and commands as a module, rendered to Markdown."""

import polib
import pytest

from .conftest import SETTINGS, code, prose, said, stale

PAGE = "notebooks/src/page_about.py"
TITLE = prose("title", "# About\n\nHello.", "# О курсе\n\nПривет.")


@pytest.fixture
def course(repo):
    """A course of one module, which has a section to lead to."""
    repo.source(prose("masks", "## Masks: who reads", "## Маски: кто читает"))
    return repo


def page(course, *cells, title=TITLE):
    course.write(PAGE, "\n".join([title, *cells]))


def built(course, *cells):
    page(course, *cells)
    ran = course.run()
    assert ran.code == 0, ran.err
    return course.read("notebooks/en/about.md"), course.read("notebooks/ru/about.md")


def refused(course, *cells, title=TITLE):
    before = course.outputs()
    page(course, *cells, title=title)
    err = course.broken()
    assert course.outputs() == before
    return err


def test_a_page_becomes_markdown_with_a_way_to_its_twin_and_anchors_made_of_keys(course):
    cells = prose("why", "## Why\n\nSo.", "## Зачем\n\nТак."), prose("more", "More.", "Ещё.")
    english, russian = built(course, *cells)
    assert english == (
        "# About\n\nРусский: [ru/about.md](../ru/about.md)\n\nHello.\n\n"
        '<a id="why"></a>\n\n## Why\n\nSo.\n\nMore.\n'
    )
    assert russian == (
        "# О курсе\n\nEnglish: [en/about.md](../en/about.md)\n\nПривет.\n\n"
        '<a id="why"></a>\n\n## Зачем\n\nТак.\n\nЕщё.\n'
    )
    assert "about" not in course.text("title")  # no neighbour of the modules


def test_a_link_without_words_gets_the_heading_that_it_leads_to(course):
    links = "[](module_03_toy.ipynb), [](module_03_toy.ipynb#masks), [x](about.md#why)."
    why = prose("why", f"## Why\n\n{links}", f"## Зачем\n\n{links}")
    english, russian = built(course, why)
    assert "[A toy](module_03_toy.ipynb), [Masks: who reads](module_03_toy.ipynb#masks)" in english
    assert "[Маски: кто читает](module_03_toy.ipynb#masks), [x](about.md#why)" in russian


@pytest.mark.parametrize(
    ("link", "fault"),
    [
        ("[x](module_04_toy.ipynb)", "there is no such file beside the page"),
        ("[x](other.md)", "there is no such file beside the page"),
        ("[x](../../README.md)", "there is no such file beside the page"),
        ("[x](glossary.md)", "there is no such file beside the page"),
        ("[x](#masks)", "there is no such file beside the page"),
        ("[x](module_03_toy.ipynb#mask)", "no cell there has the key 'mask'"),
        ("[](module_03_toy.ipynb#begin)", "there is no heading to name the link"),
    ],
)
def test_a_link_that_leads_nowhere_stops_the_build(course, link, fault):
    err = refused(course, prose("why", f"One.\n\n{link}", f"Раз.\n\n{link}"))
    assert said(PAGE, 19, "why", "page-link", fault).search(err)


def test_links_to_the_web_are_left_alone(course):
    assert "(https://example.org/x)" in built(
        course, prose("why", "[x](https://example.org/x)", "[ы](https://example.org/x)")
    )[0]  # fmt: skip


@pytest.mark.parametrize(
    ("cells", "rule"),
    [
        ([code("x", "x = 1")], "page"),
        ([prose("h", "A hint.", "Совет.", ' role="hint" exercise="e"')], "page"),
        ([prose("a", "### Deep", "### Глубоко")], "heading-order"),
        ([prose("a", "**Bold**.", "Нет.")], "parity-emphasis"),
        ([prose("a", "word " * 91, "слово " * 5)], "long-prose"),
        ([prose("title")], "duplicate-key"),
        (['# %% [markdown] lang="en" key="a"\nr"""\nAlone.\n"""\n'], "missing-twin"),
    ],
)
def test_a_page_is_held_to_the_rules_of_prose(course, cells, rule):
    assert f"[{rule}]" in refused(course, *cells)


def test_a_page_begins_with_its_title(course):
    assert "[title]" in refused(course, title=prose("title", "## About", "## О курсе"))


@pytest.mark.parametrize("name", ["page_", "page_two_words", "page_About", "about"])
def test_a_source_with_another_name_stops_the_build(course, name):
    course.write(f"notebooks/src/{name}.py", TITLE)
    assert said(f"notebooks/src/{name}.py", 1, None, "source-name", name).search(course.broken())


def test_a_stale_page_stops_the_build_until_it_is_confirmed(course):
    link = "[](module_03_toy.ipynb)"
    page(course, stale("why", now=f"Now {link}.", ru=f"Вот {link}."))
    ran = course.run()
    assert ran.code == 1
    assert "confirm about:why" in ran.err
    assert not (course.root / "notebooks/en/about.md").exists()
    assert course.run("--preview").code == 0
    assert "> **Черновик.**" in course.read("notebooks/ru/about.md")
    assert course.run("diff", "about").code == 1
    assert course.run("status").code == 1
    assert course.run("confirm", "about:why").code == 0
    assert course.run().code == 0
    assert "Черновик" not in course.read("notebooks/ru/about.md")
    assert course.run("status").code == 0


def test_check_misses_a_page_and_knows_an_orphan(course):
    built(course)
    assert course.run("--check").code == 0
    course.write("notebooks/ru/about.md", "# Mine\n")
    (course.root / "notebooks/en/about.md").unlink()
    ran = course.run("--check")
    assert ran.code == 1
    assert "notebooks/en/about.md: missing" in ran.err
    assert "notebooks/ru/about.md: differs" in ran.err
    (course.root / PAGE).unlink()
    assert "notebooks/ru/about.md: [orphan]" in course.run("--check").err


def test_a_page_alone_is_built_by_its_name(course):
    page(course)
    ran = course.run("--module", "about", "--lang", "ru")
    assert ran.code == 0
    assert "notebooks/ru/about.md" in ran.out
    assert not (course.root / "notebooks/ru/module_03_toy.ipynb").exists()


def test_a_page_is_a_draft_where_its_language_is(course):
    course.write("pyproject.toml", SETTINGS + 'drafts = ["qtz"]\n')
    built(course)
    draft = course.read("notebooks/qtz/about.md")
    assert draft.startswith("# About\n\n")
    assert "A translation in progress:** 0 of 1 cells" in draft


def test_a_page_goes_out_to_translators_and_comes_back(course):
    built(course, prose("why", "Why so.", "Потому."))
    assert course.run("export", "--module", "about").code == 0
    path = course.root / "build/po/ru/page_about.po"
    file = polib.pofile(str(path))
    [entry] = [entry for entry in file if entry.msgctxt == "page_about:why"]
    entry.msgstr = "Вот почему."
    file.save()
    assert course.run("import", str(path)).code == 0
    assert course.run().code == 0
    assert "Вот почему." in course.read("notebooks/ru/about.md")


def test_a_page_is_proofread(course):
    page(course, prose("why", "A mistaake.", "Ошибка."))
    assert "mistaake" in course.run("proofread").err
