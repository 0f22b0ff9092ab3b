"""From executed notebooks to the sources of pages: what changes on the way, without Sphinx."""

import json

import pytest

from course_build.settings import Settings, parse_settings
from course_build.site import pages
from course_build.site.switch import entrance, named_languages

SETTINGS = Settings(("en", "ru"), "", "main", titles={"en": "A <course>", "ru": "Курс"})
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


def page(*cells, has_glossary=False):
    """The page's cells and files that a notebook with this title becomes."""
    head = HEAD + (" · [Glossary](glossary.md)" if has_glossary else "")
    notebook = {
        "cells": [prose("title", f"# Idea\n\n{head}\n\nWords."), *cells],
        "metadata": {"kernelspec": {}, "language_info": {}, "papermill": {"input_path": "x"}},
    }
    path = f"build/executed/learner/en/{STEM}.ipynb"
    notebooks = {path: json.dumps(notebook).encode()}
    sources = pages.page_sources(notebooks, "en", SETTINGS, has_glossary)
    made = json.loads(sources.pop(f"{STEM}.ipynb"))
    assert made["metadata"].keys() == {"kernelspec", "language_info"}
    return made["cells"], sources


def test_the_line_of_links_goes_since_the_page_has_its_own():
    for has_glossary in (False, True):
        (title,), _ = page(has_glossary=has_glossary)
        assert title["source"] == "# Idea\n\nWords."


def test_a_fold_is_named_after_what_is_inside():
    (_, cell), _ = page(code("m", "#@title Machinery: softmax\nx = 1", tags=["hide-input"]))
    assert cell["source"] == "x = 1"
    named = dict.fromkeys(["code_prompt_show", "code_prompt_hide"], "Machinery: softmax")
    assert cell["metadata"] == {"tags": ["hide-input"], "mystnb": named}


def test_figures_become_files_with_their_words_and_size():
    (_, cell), files = page(code("see", "show()", figure('a "b" < c'), figure("again")))
    images = [output["data"].pop("text/html") for output in cell["outputs"]]
    assert images[0] == (
        '<div class="figure"><img src="_static/figures/module_03_idea-see.svg" '
        'width="7" height="5" alt="a &quot;b&quot; &lt; c"></div>'
    )
    assert [output["data"] for output in cell["outputs"]] == [{}, {}]
    assert files == {
        "_assets/figures/module_03_idea-see.svg": SVG.encode(),
        "_assets/figures/module_03_idea-see-2.svg": SVG.encode(),
    }


@pytest.mark.parametrize(
    ("link", "wanted"),
    [
        ("[b](module_04_b.ipynb)", "[b](page:module_04_b.html)"),
        ("[b](../ru/module_04_b.ipynb)", "[b](page:../ru/module_04_b.html)"),
        ('[w](glossary.md#dot-product "A sum.")', '[w](place:glossary.html#dot-product "A sum.")'),
        ("[w](../ru/glossary.md#mask)", "[w](place:../ru/glossary.html#mask)"),
        ("[o](https://example.org/a.ipynb)", "[o](https://example.org/a.ipynb)"),
    ],
)
def test_links_lead_to_pages(link, wanted):
    (_, cell), _ = page(prose("see", link))
    assert cell["source"] == wanted


def test_the_anchors_of_a_text_become_targets_and_its_twin_line_goes():
    twin = "Глоссарий: [ru/glossary.md](../ru/glossary.md)"
    text = f'# Glossary\n\n{twin}\n\nAll.\n\n<a id="top-k"></a>\n\n## k\n'
    assert pages.page_text(text) == "# Glossary\n\nAll.\n\n(top-k)=\n## k\n"


def test_the_first_page_lists_the_pages_in_order():
    text = pages.index_page("A course", ["b.ipynb", "glossary.md"]).decode()
    assert text.startswith("# A course\n")
    assert text.index("b.ipynb") < text.index("glossary.md")


def test_a_language_is_named_in_itself_or_by_its_code():
    names = {each["code"]: each["name"] for each in named_languages(["en", "ru", "de", "qq"])}
    assert names == {"en": "English", "ru": "Русский", "de": "Deutsch", "qq": "Qq"}


def test_the_entrance_leads_to_every_language():
    html = entrance(named_languages(SETTINGS.languages), SETTINGS).decode()
    assert '<html lang="en">' in html
    assert '<a href="en/index.html" lang="en" hreflang="en">A &lt;course&gt; (English)</a>' in html
    assert '<a href="ru/index.html" lang="ru" hreflang="ru">Курс (Русский)</a>' in html


def test_a_language_without_a_title_has_the_sources():
    assert SETTINGS.title("de") == "A <course>"
    assert parse_settings('[tool.course]\nlanguages = ["en"]\n').title("en") == ""
