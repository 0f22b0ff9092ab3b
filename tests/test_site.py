"""From executed notebooks to the sources of pages: what changes on the way, without Sphinx."""

import json
import re
from dataclasses import replace

import pytest

from course_build.base.findings import CourseError
from course_build.base.settings import Settings, parse_settings
from course_build.site import pages
from course_build.site.html_pages import with_languages
from course_build.site.minutes import minutes
from course_build.site.pages import Links
from course_build.site.sections import plain
from course_build.site.sources import all_pages
from course_build.site.switch import named_languages

from .test_view_outputs import data

SETTINGS = Settings(("en", "ru"), "", "main", titles={"en": "A <course>", "ru": "Курс"})
KNOWN = replace(SETTINGS, repository="someone/course")
STEM = "module_03_idea"
HEAD = "Этот блокнот по-русски: [ru/module_03_idea.ipynb](../ru/module_03_idea.ipynb)"
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="7" height="5" />\n'


def figure(alt):
    return {
        "output_type": "display_data",
        "data": {"image/svg+xml": SVG, "text/html": "<img>", "text/plain": alt},
        "metadata": {"image/svg+xml": {"alt": alt, "name": "loss"}},
    }


def code(key, source, *outputs, tags=()):
    metadata = {"tags": list(tags), "papermill": {"duration": 1}}
    return {
        "cell_type": "code",
        "id": key,
        "metadata": metadata,
        "source": source,
        "outputs": list(outputs),
        "execution_count": 1,
    }


def prose(key, source):
    return {"cell_type": "markdown", "id": key, "metadata": {}, "source": source}


def notebook(*cells, head=HEAD):
    """An executed notebook with this title."""
    return {
        "cells": [prose("title", f"# Idea\n\n{head}\n\nWords."), *cells],
        "metadata": {"kernelspec": {}, "language_info": {}, "papermill": {"input_path": "x"}},
    }


def page(*cells, texts=()):
    """The cells of the first page, and all sources, that a notebook with this title becomes."""
    head = HEAD + (" · [Glossary](glossary.md)" if texts else "")
    content = json.dumps(notebook(*cells, head=head)).encode()
    copies = {"en": {f"build/executed/learner/en/{STEM}.ipynb": content}}
    made = all_pages(copies, {"en": dict(texts)}, KNOWN, SETTINGS)["en"]
    first = json.loads(made.sources["module_03/index.ipynb"])
    assert first["metadata"].keys() == {"kernelspec", "language_info"}
    *shown, contents = first["cells"]
    assert contents["source"].startswith("```{toctree}")
    return shown, made


def test_the_line_of_links_goes_since_the_page_has_its_own():
    for texts in ({}, {"glossary": "# Glossary\n"}):
        (title,), _ = page(texts=texts)
        assert title["source"] == "(title)=\n\n# Idea\n\nWords."


def test_a_fold_is_named_after_what_is_inside():
    (_, cell), _ = page(code("m", "#@title Machinery: softmax\nx = 1", tags=["hide-input"]))
    assert cell["source"] == "x = 1"
    named = dict.fromkeys(["code_prompt_show", "code_prompt_hide"], "Machinery: softmax")
    assert cell["metadata"] == {"key": "m", "tags": ["hide-input"], "mystnb": named}


def test_figures_become_files_with_their_words_and_size():
    (_, cell), made = page(code("see", "show()", figure('a "b" < c'), figure("again")))
    images = [output["data"].pop("text/html") for output in cell["outputs"]]
    assert images[0] == (
        '<div class="figure"><img src="../_static/figures/module_03_idea-see.svg" '
        'width="7" height="5" loading="lazy" alt="a &quot;b&quot; &lt; c"></div>'
    )
    assert [output["data"] for output in cell["outputs"]] == [{}, {}]
    assert {name: made.sources[name] for name in made.sources if name.endswith(".svg")} == {
        "_assets/figures/module_03_idea-see.svg": SVG.encode(),
        "_assets/figures/module_03_idea-see-2.svg": SVG.encode(),
    }


PLACES = {STEM: {"": "module_03/index", "title": "module_03/index", "see": "module_03/masks"}}


@pytest.mark.parametrize(
    ("at", "link", "wanted"),
    [
        ("module_03/masks", f"[b]({STEM}.ipynb)", "[b](page:../module_03/index.html)"),
        ("module_03/masks", f"[b](../ru/{STEM}.ipynb)", "[b](page:../../ru/module_03/index.html)"),
        ("glossary", f"[b]({STEM}.ipynb#see)", "[b](place:module_03/masks.html#see)"),
        ("module_03/x", '[w](glossary.md#a "A.")', '[w](place:../glossary.html#a "A.")'),
        ("glossary", "[w](../ru/glossary.md#mask)", "[w](place:../ru/glossary.html#mask)"),
        ("glossary", "[o](https://example.org/a.ipynb)", "[o](https://example.org/a.ipynb)"),
    ],
)
def test_links_lead_to_pages(at, link, wanted):
    assert Links(at, PLACES).lead(link) == wanted


def test_the_anchors_of_a_text_become_targets_and_its_twin_line_goes():
    twin = "Глоссарий: [ru/glossary.md](../ru/glossary.md)"
    text = f'# Glossary\n\n{twin}\n\nAll.\n\n<a id="top-k"></a>\n\n## k\n'
    wanted = "(title)=\n\n# Glossary\n\nAll.\n\n(top-k)=\n## k\n"
    assert pages.page_text(text, Links("glossary", {})) == wanted


def test_each_section_is_a_page_called_after_its_key():
    _, made = page(
        prose("masks-ask", "## 3. Masks of $d_k$"),
        code("see", "show()"),
        prose("empty-ask", "### Empty\n\n```\n## no heading\n```\n\n### Two"),
        prose("recap", "## Recap"),
    )
    cells = json.loads(made.sources["module_03/masks.ipynb"])["cells"]
    assert [cell["source"] for cell in cells] == [
        "(masks-ask)=\n\n# 3. Masks of $d_k$",
        "show()",
        "(empty-ask)=\n\n## Empty\n\n```\n## no heading\n```\n\n(empty-ask-2)=\n\n## Two",
    ]
    assert "module_03/recap.ipynb" in made.sources
    told = made.told["module_03/index"]
    assert [tuple(each.values()) for each in told["contents"]] == [
        ("masks.html", "3. Masks of d_k", 1),
        ("recap.html", "Recap", 1),
    ]
    assert told["minutes"] == 3
    assert told["title"] == "Idea"
    assert made.told["module_03/masks"]["title"] == "3. Masks of d_k · Idea"


def test_a_cell_without_a_heading_is_a_place_too():
    _, made = page(prose("masks-asked", "## A"), prose("say", "Words."))
    cells = json.loads(made.sources["module_03/masks-asked.ipynb"])["cells"]
    assert [cell["source"] for cell in cells] == ["(masks-asked)=\n\n# A", "(say)=\n\nWords."]


def test_a_view_brings_the_files_of_its_pictures():
    shown = {"output_type": "display_data", "data": data(), "metadata": {}}
    (_, cell), made = page(code("see", "show()", shown))
    assert cell["outputs"][0]["data"]["text/html"].startswith('<div class="view"')
    files = {name for name in made.sources if name.endswith(".svg")}
    states = ("", ".0-0", ".0-1", ".0-2", ".1-1", ".1-2")
    assert files == {f"_assets/figures/module_03_idea-see{state}.svg" for state in states}


def test_two_sections_never_share_a_page():
    _, made = page(prose("a-ask", "## A"), prose("b-ask", "## B"), prose("b-say", "## B again"))
    names = {name for name in made.sources if name.startswith("module_03/")}
    assert names == {f"module_03/{name}.ipynb" for name in ("index", "a", "b-ask", "b-say")}


def test_the_time_of_a_page_is_that_of_its_words_its_code_and_its_exercises():
    words, hidden = prose("say", "word " * 130), code("m", "x\n" * 999, tags=["hide-input"])
    assert minutes([words, hidden]) == 1
    assert minutes([words, code("ex", "x = None", tags=["exercise"])]) == 32
    assert minutes([code("see", "x\n" * 14, figure("a"))]) == 2
    choice = {"data": {"text/html": "<details><b>" + "word " * 390 + "</b></details>"}}
    assert minutes([code("ask", "x\n" * 99, choice, tags=["hide-input"])]) == 3
    assert minutes([]) == 1


def test_all_languages_say_the_same_time():
    short, long = notebook(), notebook(prose("say", "слово " * 1000))
    copies = {
        code: {f"x/{STEM}.ipynb": json.dumps(each).encode()}
        for code, each in (("en", short), ("ru", long))
    }
    made = all_pages(copies, {}, SETTINGS, SETTINGS)
    assert made["en"].told["module_03/index"] == made["ru"].told["module_03/index"]


def test_colab_and_binder_are_offered_where_the_repository_is_known():
    copies = {"en": {f"x/{STEM}.ipynb": json.dumps(notebook()).encode()}}
    told = all_pages(copies, {}, SETTINGS, SETTINGS)["en"].told["module_03/index"]
    assert told["notebook"] == f"{STEM}.ipynb"
    assert not {"colab", "binder"} & told.keys()
    told = page()[1].told["module_03/index"]
    assert told["colab"] == (
        "https://colab.research.google.com/github/someone/course/blob/main/notebooks/en/"
        f"{STEM}.ipynb"
    )
    assert told["binder"] == (
        f"https://mybinder.org/v2/gh/someone/course/main?labpath=notebooks%2Fen%2F{STEM}.ipynb"
    )


def test_the_first_page_lists_the_pages_in_order_or_welcomes():
    text = pages.index_page("A course", ["b/index", "glossary"]).decode()
    assert text.startswith("(title)=\n\n# A course\n")
    assert text.index("b/index") < text.index("glossary")
    made = page(texts={"welcome": "# Hello\n\n[Go](module_03_idea.ipynb)\n", "a": "# A\n"})[1]
    index = made.sources["index.md"].decode()
    assert index.startswith("(title)=\n\n# Hello\n\n[Go](page:module_03/index.html)\n")
    assert index.index("module_03/index\n") < index.index("\na\n")
    assert "welcome.md" not in made.sources
    assert made.sources["a.md"] == b"(title)=\n\n# A\n"


def test_a_link_to_another_language_says_which():
    link, after = '<a class="x" href="../../ru/module_03/masks.html#see"', ">x</a>"
    other = '<a href="../run.html">y</a>'
    marked = f'{link} lang="ru" hreflang="ru"{after}{other}'
    assert with_languages(f"{link}{after}{other}", ["en", "ru"]) == marked


def test_a_title_where_no_formula_is_set_shows_its_letters():
    assert plain(r"2. Root of $\sqrt{d_k}$ & `view` <b>") == "2. Root of d_k & view <b>"


def test_a_language_is_named_in_itself_or_by_its_code():
    names = {each["code"]: each["name"] for each in named_languages(["en", "ru", "de", "qq"])}
    assert names == {"en": "English", "ru": "Русский", "de": "Deutsch", "qq": "Qq"}


def test_a_language_without_a_title_has_the_sources():
    assert SETTINGS.title("de") == "A <course>"
    assert parse_settings('[tool.course]\nlanguages = ["en"]\n').title("en") == ""


COURSE = '[tool.course]\nlanguages = ["en"]\nrepository = "a/b"\nsite = "https://a.org/c"\n'


def test_what_is_told_from_outside_goes_before_the_file():
    told = {"COURSE_SITE": "http://localhost:8000/", "COURSE_REPOSITORY": "c/d"}
    silent = dict.fromkeys(told, "")
    wanted = {"": ("a/b", "https://a.org/c/"), "told": ("c/d", "http://localhost:8000/")}
    for environment, key in ((None, ""), (silent, ""), (told, "told")):
        settings = parse_settings(COURSE, environment)
        assert (settings.repository, settings.site) == wanted[key]


@pytest.mark.parametrize(
    ("variable", "value"),
    [("COURSE_SITE", bad) for bad in ("a.org", "ftp://a.org", "https://", "https://a/ b",
                                      "https://a/?b", 'https://a/"b', "https://a/#b", " ",
                                      'https://a"b', "https://a/\x01", "https://a\x7f")]
    + [("COURSE_REPOSITORY", bad) for bad in ("a", "a/b/c", "https://a/b", "a/b ")],
)  # fmt: skip
def test_an_address_that_is_none_is_refused_by_the_name_it_came_with(variable, value):
    told = rf"\A{variable}: \[settings\]\s+{variable} must be .*, got {re.escape(repr(value))}"
    with pytest.raises(CourseError, match=told):
        parse_settings(COURSE, {variable: value})
    setting = variable.removeprefix("COURSE_").lower()
    file = COURSE.replace(f"{setting} = ", f"{setting} = {json.dumps(value)} #")
    with pytest.raises(CourseError, match=rf"\[tool.course\] {setting} must be "):
        parse_settings(file)
