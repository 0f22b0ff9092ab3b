"""A term's first use becomes a link to the glossary, and the text says what it said before."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_build.notebook.glossary_links import LINK, Linker, unlink
from course_build.text.glossary import Term, Word
from course_build.text.prose import count_words, parse_prose
from tests.builder.conftest import code, prose


def word(name, *also, means="It means this.", seen=None):
    return Word(name, also, (), means, (name, *also) if seen is None else tuple(seen))


TERMS = [
    Term("causal-mask", (), {"en": word("causal mask"), "ru": word("причинная маска")}),
    Term("head", (), {"en": word("head", seen=["two [heads]"]), "ru": word("голова", seen=[])}),
    Term("key", (), {"en": word("key"), "ru": word("ключ")}),
    Term("mask", (), {"en": word("mask", means='A "yes" or no.'), "ru": word("маска")}),
    Term("mask-set", (), {"en": word("mask token set")}),
    Term("query", (), {"en": word("query"), "ru": word("запрос")}),
    Term("roofline", (), {"en": word("roofline"), "ru": word("модель «крыши»")}),
    Term("token", (), {"en": word("token"), "ru": word("токен")}),
]


def link(text, language="en", linked=()):
    return Linker(TERMS).link(text, language, set(linked))[1]


def linked_words(text, language="en"):
    """The words that a text's glossary links show, by the tokens of a Markdown parser."""
    shown = []
    for token in parse_prose(text):
        inside = False
        for child in token.children or ():
            if child.type == "link_open":
                inside = str(child.attrGet("href")).startswith("glossary.md#")
            elif child.type == "link_close":
                inside = False
            elif inside:
                shown.append(child.content)
    return shown


def test_the_first_use_is_linked_with_its_meaning():
    assert link("A token, a token.") == 'A [token](glossary.md#token "It means this."), a token.'


def test_quotes_in_a_meaning_are_escaped():
    text = link("The mask.")
    assert text == 'The [mask](glossary.md#mask "A \\"yes\\" or no.").'
    [paragraph] = [token for token in parse_prose(text) if token.type == "inline"]
    assert paragraph.children[1].attrGet("title") == 'A "yes" or no.'


def test_the_words_stay_as_they_stand():
    text = link("Слой с причинной маской и *токены*.", "ru")
    assert linked_words(text) == ["причинной маской", "токены"]
    assert "*[токены](glossary.md#token" in text


def test_the_longest_term_wins_even_after_its_own_link():
    assert linked_words(link("A causal mask, a causal mask, a mask.")) == ["causal mask", "mask"]


def test_the_longest_term_wins_wherever_it_begins():
    assert linked_words(link("A causal mask token set.")) == ["mask token set"]


def test_punctuation_that_belongs_to_a_term_is_inside_the_link():
    assert linked_words(link("Это модель «крыши».", "ru")) == ["модель «крыши»"]


def test_a_neighbour_decides_and_stays_outside():
    text = link("Use your head. Cut it into two heads.")
    assert text.endswith('Cut it into two [heads](glossary.md#head "It means this.").')


def test_a_term_that_is_never_linked():
    assert link("Две головы.", "ru") == "Две головы."


def test_at_most_three_links_and_the_rest_waits_for_the_next_cell():
    linker, linked = Linker(TERMS), set()
    used, text = linker.link("A query, a key, a token, a mask.", "en", linked)
    assert linked_words(text) == ["query", "key", "token"]
    assert used == ["query", "key", "token", "mask"]
    assert linked_words(linker.link("A token and a mask.", "en", linked)[1]) == ["mask"]


@pytest.mark.parametrize(
    "text",
    [
        "# The mask",
        "The mask\n===",
        "`mask`",
        "```\nmask\n```",
        "$mask$",
        "$$\nmask\n$$",
        "[the mask](a.md)",
        "![the mask](a.svg)",
        "<https://mask>",
        "| mask |\n|---|\n| mask |",
        "<details>\n\nmask\n\n</details>",
        "<b>mask</b>",
        "    mask",
        "A masked text.",
        "A \\*mask\\*.",  # an escape: what cannot be placed is left alone
    ],
)
def test_only_running_text_is_linked(text):
    assert link(text) == text


@pytest.mark.parametrize(
    "marked",
    [
        "> quoted\n> {mask}",
        "- a\n  - the {mask}\n    and the {key}",
        "1. **{mask}**",
        "`mask` and {mask}",
        "[a mask](mask.md) and a {mask}",
        "$mask$ {mask}",
        "line\nthe {mask}  \nbroken",
        "a\n\n# mask\n\n{mask}",
        "| mask |\n|---|\n| mask |\n\nThe {mask}, the mask.",
    ],
)
def test_the_right_occurrence_is_linked(marked):
    text = marked.replace("{", "").replace("}", "")
    assert LINK.sub(r"{\1}", link(text)) == marked
    assert unlink(link(text)) == text


PIECES = st.sampled_from(
    ["mask", "causal mask", "keys", "two heads", "`mask`", "*", "**", "_", "\\", "[", "]", "(",
     ")", "](x.md)", "![", "$", "$$", "\n", "\n\n", "# ", "- ", "> ", "    ", "| ", "|---|", "<b>",
     "&amp;", "<details>", "</details>", '"', " ", "ё", "\u00a0", "1. ", "```", "<http://mask>",
     "<!-- "]
)  # fmt: skip
TEXTS = st.lists(PIECES | st.text(max_size=4), max_size=25).map("".join)


@settings(max_examples=400, deadline=None)
@given(TEXTS)
def test_taking_the_links_out_gives_the_text_back(text):
    assert unlink(link(text)) == text


@settings(max_examples=400, deadline=None)
@given(TEXTS)
def test_links_change_nothing_that_a_text_says(text):
    def said(text):
        parts = []
        for token in parse_prose(text):
            parts.append((token.type, token.tag, "" if token.type == "inline" else token.content))
            ours, flat = False, []
            for child in token.children or ():
                if child.type == "link_open" and str(child.attrGet("href")).startswith("glossary"):
                    ours = True
                elif child.type == "link_close" and ours:
                    ours = False
                else:
                    flat.append((child.type, child.content))
            merged = []
            for kind, content in flat:
                if kind == "text" and merged and merged[-1][0] == "text":
                    merged[-1] = (kind, merged[-1][1] + content)
                elif kind != "text" or content:
                    merged.append((kind, content))
            parts.append(tuple(merged))
        return parts

    linked = link(text)
    assert said(linked) == said(text)
    assert count_words(linked) == count_words(text)
    assert len(linked_words(linked)) == len(LINK.findall(linked))


GLOSSARY = """\
[mask]
identifiers = ["scale"]

[mask.en]
name = "mask"
means = "A table of yes and no, one for each pair."

[mask.ru]
name = "маска"
means = "Таблица из да и нет, по одному на каждую пару."
"""


@pytest.fixture
def course(repo):
    """A toy course with a glossary of one term."""
    repo.write("notebooks/src/glossary.toml", GLOSSARY)
    return repo


def test_a_notebook_links_a_term_once_in_each_language(course):
    course.build(
        prose("one", "## Begin\n\nThe mask.", "## Начало\n\nО маске."),
        prose("two", "The mask.", "О маске."),
    )
    assert '[mask](glossary.md#mask "A table' in course.text("one")
    assert '[маске](glossary.md#mask "Таблица' in course.text("one", "ru")
    assert course.text("two") == "The mask."
    assert course.text("one", folder="build/solved") == course.text("one")
    assert "glossary" not in course.read("notebooks/src/module_03_toy.py")


def test_the_line_under_the_title_leads_to_the_page(course):
    course.build()
    assert course.text("title").split("\n")[2].endswith(" · [Glossary](glossary.md)")
    assert course.text("title", "ru").split("\n")[2].endswith(" · [Глоссарий](glossary.md)")


def test_hints_are_not_linked(course):
    course.source(
        prose("state", "Write it.", "Напишите."),
        code("stub", "def f():\n    raise NotImplementedError", ' role="stub" exercise="e"'),
        code("check", "assert f", ' role="check" exercise="e"'),
        prose("hint", "The mask.", "Маска.", ' role="hint" exercise="e"'),
        code("solution", "def f():\n    return 1", ' role="solution" exercise="e"'),
    )
    ran = course.run()
    assert ran.code == 0, ran.err
    assert "glossary.md" not in course.text("hint")


def test_the_page_is_written_checked_and_missed(course):
    course.build(prose("one", "## Begin\n\nThe mask.", "## Начало\n\nО маске."))
    page = course.read("notebooks/en/glossary.md")
    assert '<a id="mask"></a>\n\n## mask\n\nA table of yes and no, one for each pair.' in page
    assert "Русский: [маска](../ru/glossary.md#mask) · in code: `scale`" in page
    assert "first used: [Module 3: Begin](module_03_toy.ipynb#one)" in page
    assert "впервые: [модуль 3: Начало](module_03_toy.ipynb#one)" in course.read(
        "notebooks/ru/glossary.md"
    )
    assert course.run("--check").code == 0
    course.write("notebooks/ru/glossary.md", "# Mine\n")
    (course.root / "notebooks/en/glossary.md").unlink()
    ran = course.run("--check")
    assert ran.code == 1
    assert "notebooks/en/glossary.md: missing" in ran.err
    assert "notebooks/ru/glossary.md: differs" in ran.err


def test_a_page_without_a_glossary_is_an_orphan(course):
    course.build()
    (course.root / "notebooks/src/glossary.toml").unlink()
    ran = course.run()
    assert (ran.code, "notebooks/en/glossary.md: [orphan]" in ran.err) == (1, True)


def test_a_broken_glossary_stops_the_build(course):
    course.write("notebooks/src/glossary.toml", GLOSSARY.replace('name = "маска"', ""))
    course.source()
    assert "notebooks/src/glossary.toml:8:" in course.broken()


def test_an_identifier_that_stands_nowhere_stops_the_build(course):
    course.write("notebooks/src/glossary.toml", GLOSSARY.replace('"scale"', '"scale", "shrink"'))
    course.source()
    err = course.broken()
    assert 'notebooks/src/glossary.toml:1: cell "mask": [glossary]' in err
    assert "'shrink' stands nowhere" in err


def test_one_module_alone_leaves_the_page_as_it_is(course):
    course.source(prose("one", "The mask.", "О маске."), name="module_04_more")
    course.build()
    before = course.read("notebooks/en/glossary.md")
    assert course.run("--module", "3").code == 0
    assert course.read("notebooks/en/glossary.md") == before
    assert "Module 4" in before
    assert course.run("--lang", "ru", "--check").code == 0
