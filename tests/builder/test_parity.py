"""A translation has the blocks, formulas, code, links, images and numbers of its source."""

import re

import pytest

from course_build.source.cells import parse_source
from course_build.source.twins import pair_twins
from course_build.translation.parity import check_parity

from .conftest import FRAME_LINES, SOURCE, prose, said

LANGUAGES = ("en", "ru")


def compare(en, ru, differs=""):
    """What is found in prose twins of these texts."""
    more = f' differs="{differs}"' if differs else ""
    cells = prose("p", en, ru).replace('lang="ru" key="p"', f'lang="ru" key="p"{more}')
    units, findings = pair_twins(parse_source("s.py", cells, LANGUAGES), LANGUAGES)
    assert findings == []
    return check_parity(units[0])


def with_lines_of_the_text(told, en):
    """A message with line numbers as if each text began on line 1."""
    begins = {"en": 2, "ru": 7 + en.count("\n")}
    return re.sub(
        r"(en|ru) \(line (\d+)\)",
        lambda place: f"{place[1]} (line {int(place[2]) - begins[place[1]]})",
        told,
    )


def rules(en, ru, differs=""):
    return sorted({finding.rule for finding in compare(en, ru, differs)})


FENCE = "```\nc\n```"
FENCES = ["```c\na\n```", "```c\nb\n```"]
QUIET = {
    "words": ("Some *words* here.", "Здесь есть *слова*."),
    "headings": ("# A\n\n### B", "# А\n\n### Б"),
    "lists": ("1. a\n   - b\n2. c", "1. а\n   - б\n2. в"),
    "a list's marker": ("- a\n- b", "* а\n* б"),
    "tables": ("|a|b|\n|:-|-:|\n|c|1.5|", "| а | б |\n|:---|---:|\n| в | 1,5 |"),
    "quotations": ("> quoted", "> сказано"),
    "displayed formulas": ("See\n\n$$x + 1$$\n\nthere", "Вот\n\n$$x+1$$\n\nтам"),
    "formulas in another order": ("$a$ of $b$", "$b$ у $a$"),
    "words in formulas": (r"$x \text{ or } y$", r"$x \text{ или } y$"),
    "code in another order": ("`a` of `b`", "`b` у `a`"),
    "places without numbers": (f"a\n\n- 1\n- b\n\n{FENCE}\n\n2", f"а\n\n- 1\n- б\n\n{FENCE}\n\n2"),
    "a fence": ("```python\nf(x)  # one\n```", "```python\nf(x)  # один\n```"),
    "a fence of words": ("```\nwords\n```", "```\nслова\n```"),
    "a number that is half in italics": ("1*0* *a*", "10 *а*"),
    "a fence of text": ("```text\nwords\n```", "```text\nслова\n```"),
    "links": ("[a](https://a.org/en/b) [c](d.md)", "[в](https://a.org/en/b) [г](d.md)"),
    "our own pages": ("[a](../en/m.ipynb#k) [b](R.md)", "[а](../ru/m.ipynb#k) [б](R.ru.md)"),
    "images": ("![a sun](figures/en/s.svg)", "![солнце](figures/ru/s.svg)"),
    "an image without words": ("![2](s.svg)", "![2](s.svg)"),
    "numbers": ("5,550 of 0.85 or 8%", "8 % или 0,85 от 5\u202f550"),
    "numbers in code and formulas once": ("`1` $2$ 3", "3 $2$ `1`"),
    "nought in words": ("It is 0 here.", "Здесь нуль."),
    "nought in digits": ("It is zero here.", "Здесь 0."),
    "bold": ("**a**", "**а**"),
    "one italic word more": ("*a* b", "*а* *б*"),
    "HTML": ("a<br>b\n\n<details>\n\nc", "а<br>б\n\n<details>\n\nв"),
}


@pytest.mark.parametrize(("en", "ru"), QUIET.values(), ids=QUIET.keys())
def test_twins_that_say_the_same_are_quiet(en, ru):
    assert compare(en, ru) == []


LOUD = {
    "a heading": ("structure", "# A\n\nb", "А\n\nб", "en (line 1) has a heading of level 1 here"),
    "a level": ("structure", "## A", "### А", "ru (line 1) has a heading of level 3 here"),
    "order": ("structure", "# A\n\nb", "а\n\n# Б", "ru (line 3) has a heading of level 1"),
    "a paragraph": ("structure", "a\n\nb", "а б", "en (line 3) has a paragraph here"),
    "an item": ("structure", "- a\n- b", "- а", "ru (line 1) has a bulleted list with 1 items"),
    "nesting": ("structure", "- a\n  - b", "- а\n- б", "a bulleted list with 2 items"),
    "depth": ("structure", "- a\n\n  > b", "- а\n\n> б", "ru (line 3) has a quotation here"),
    "order of a list": ("structure", "1. a", "- а", "en (line 1) has a numbered list from 1"),
    "a list's start": ("structure", "2. a", "1. а", "a numbered list from 2 with 1 items"),
    "a row": ("structure", "|a|\n|-|\n|b|", "|а|\n|-|", "a table of 2 rows and 1 columns (left)"),
    "a column": ("structure", "|a|b|\n|-|-|", "|а|\n|-|", "1 rows and 2 columns (left, left)"),
    "alignment": ("structure", "|a|\n|-:|", "|а|\n|:-|", "1 columns (right) here"),
    "a quotation": ("structure", "> a", "а", "en (line 1) has a quotation here"),
    "a fence": ("structure", "```\na\n```", "а", "has a code block (no language) here"),
    "a fence's language": ("structure", "```sh\n```", "```bash\n```", "a code block (bash) here"),
    "a rule": ("structure", "a\n\n---\n\nb", "а\n\nб", "en (line 3) has a rule here"),
    "a tag": ("structure", "a<br>b", "а б", "en (line 1) has <br>; ru"),
    "an end tag": ("structure", "a<b>", "а</b>", "ru (line 1) has </b>; en"),
    "HTML": ("structure", "<details>\n\na", "<div>\n\nа", "ru (line 1) has HTML <div> here"),
    "displayed": ("structure", "$$\nx\n$$", "$x$", "en (line 1) has a displayed formula here"),
    "a formula": ("formulas", "$a$ $b$", "$a$", "en (line 1) has $b$; ru (from line 6) lacks it"),
    "a formula twice": ("formulas", "$a$", "$a$ $a$", "ru (line 1) has $a$; en (from line 1)"),
    "an index": ("formulas", "$$x_i$$", "$$x_j$$", "ru (line 1) has $$x_j$$"),
    "display in a line": ("formulas", "a $$x$$", "а $x$", "en (line 1) has $$x$$"),
    "code": ("code", "`dim=0`", "`dim=1`", "ru (line 1) has `dim=1`; en (from line 1) lacks it"),
    "no code": ("code", "`x`", "икс", "en (line 1) has `x`"),
    "words set as code": ("code", "`sun` is", "`солнце` —", "en (line 1) has `sun`"),
    "code in a fence": ("code", "```python\nf(1)\n```", "```python\nf(2)\n```", "has f(2)"),
    "code in another line": ("code", "a\n`x`", "а\n`y`", "ru (line 2) has `y`; en"),
    "code that is none": ("code", "```sh\nls .\n```", "```sh\nls /\n```", "ru (line 1) has ls /"),
    "a link": ("links", "[a](b)", "слова", "en (line 1) has b; ru"),
    "a target": ("links", "[a](https://a.b/1)", "[a](https://a.b/2)", "ru (line 1) has https:"),
    "the other's page": ("links", "[a](../en/m.ipynb)", "[а](../en/m.ipynb)", "../en/m.ipynb"),
    "another's page": ("links", "[a](https://en.a.org)", "[а](https://ru.a.org)", "ru.a.org"),
    "a fragment": ("links", "[a](m.md#k)", "[а](m.md#l)", "m.md#l"),
    "an image": ("images", "![a](b.svg)", "слова", "en (line 1) has b.svg; ru"),
    "a picture": ("images", "![a](b.svg)", "![а](c.svg)", "ru (line 1) has c.svg; en"),
    "its alt text": ("images", "![a](b.svg)", "![](b.svg)", "ru (line 1): b.svg has no alt"),
    "the English alt text": ("images", "![the sun](b.svg)", "![the sun](b.svg)", "is that of en"),
    "a digit": ("numbers", "It is 0.85.", "Это 0,58.", "ru (line 1) has 0,58; en (from line 1)"),
    "a number": ("numbers", "3 of 4", "3", "en (line 1) has 4; ru (from line 6) lacks it"),
    "percent": ("numbers", "8 %", "8", "en (line 1) has 8 %"),
    "English groups": ("numbers", "5,550", "5,550", "ru (line 1) has 5,550"),
    "in a heading": ("numbers", "## 2. A", "## 3. А", "ru (line 1) has 3"),
    "in a table": ("numbers", "|a|\n|-|\n|1|", "|а|\n|-|\n|2|", "ru (line 3) has 2"),
    "in another line": ("numbers", "a\nb 1", "а\nб 2", "ru (line 2) has 2"),
    "in text": ("numbers", "```text\n1\n```", "```text\n2\n```", "has 2"),
    "beside a formula": ("numbers", "3$x$5", "35 $x$", "ru (line 1) has 35; en"),
    "two noughts for a word": ("numbers", "0 and 0", "нуль", "en (line 1) has 0"),
    "in two items": ("numbers", "- 1\n- 2", "- 2\n- 1", "has 2; en (line 2) has it in an"),
    "in two cells": ("numbers", "|1|2|\n|-|-|", "|2|1|\n|-|-|", "1; en (line 1) has it"),
    "in two rows": ("code", "|a|\n|-|\n|`a`|\n|b|", "|а|\n|-|\n|б|\n|`a`|", "en (line 3) has it"),
    "in two paragraphs": ("formulas", "$a$\n\n$b$", "$b$\n\n$a$", "en (line 3) has it in an"),
    "displayed elsewhere": ("formulas", "$$a$$\n\n$$b$$", "$$b$$\n\n$$a$$", "en (line 3) has it"),
    "fences": ("code", "\n".join(FENCES), "\n".join(FENCES[::-1]), "en (line 4) has it"),
    "a link elsewhere": ("links", "[a](b)\n\nc", "в\n\n[а](b)", "has b; en (line 1) has it"),
    "a nought elsewhere": ("numbers", "0\n\na", "а\n\nнуль", "en (line 1) has 0; ru"),
    "bold": ("emphasis", "**a** b", "а б", "has 0 bold passages, en (line 1) has 1"),
    "bold twice": ("emphasis", "**a** b", "**а** **б**", "has 2 bold passages, en (line 1) has 1"),
    "the only italics": ("emphasis", "*a* b", "а б", "has 0 italic passages, en (line 1) has 1"),
    "two italics": ("emphasis", "*a* b c", "*а* *б* *в*", "has 3 italic passages"),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "en", "ru", "words"), LOUD.values(), ids=LOUD.keys())
def test_a_difference_names_both_cells_and_what_differs(kind, en, ru, words):
    found = [f for f in compare(en, ru) if f.rule == f"parity-{kind}"]
    assert len(found) == 1, compare(en, ru)
    told = str(found[0])
    assert words in with_lines_of_the_text(told, en)
    assert f'-> make the {kind} of the twins agree, or allow it: differs="{kind}: reason"' in told


@pytest.mark.parametrize(("kind", "en", "ru", "words"), LOUD.values(), ids=LOUD.keys())
def test_a_difference_is_found_whichever_side_it_is_on(kind, en, ru, words):
    assert f"parity-{kind}" in rules(ru, en)


@pytest.mark.parametrize(("kind", "en", "ru", "words"), LOUD.values(), ids=LOUD.keys())
def test_a_difference_can_be_allowed_with_a_reason(kind, en, ru, words):
    others = {rule.removeprefix("parity-") for rule in rules(en, ru)} - {kind}
    differs = "; ".join(f"{what}: the reader needs it" for what in sorted({kind, *others}))
    assert compare(en, ru, differs) == []


def test_a_difference_stands_at_its_line_and_names_the_line_of_the_source(repo):
    err = repo.refuse(prose("p", "One.\n\nIt is 0.85.", "Раз.\n\nЭто 0,58."))
    en, ru = FRAME_LINES + 5, FRAME_LINES + 12
    assert said(SOURCE, ru, "p", "parity-numbers").search(err)
    assert f"ru (line {ru}) has 0,58; en (from line {FRAME_LINES + 1}) lacks it\n" in err
    assert f"en (line {en}) has 0.85; ru (from line {ru - 4}) lacks it\n" in err


def test_what_only_the_source_has_stands_at_the_translations_header(repo):
    err = repo.refuse(prose("p", "It is 0.85.", "Слова."))
    assert said(SOURCE, FRAME_LINES + 6, "p", "parity-numbers").search(err)


def test_a_stale_translation_is_not_compared_but_shown(repo):
    repo.source(prose("p", "It is 1.", "Это 1.").replace("It is 1.", "It is 2.\n\n$x$"))
    ran = repo.run()
    assert ran.code == 1
    assert "[stale-twin]" in ran.err
    assert "parity" not in ran.err


def test_every_translation_is_compared_with_the_source():
    third = prose("p", "It is 1.", "Este 2.").split("\n\n")[1].replace('"ru"', '"qtz"')
    cells = prose("p", "It is 1.", "Это 1.") + "\n" + third
    languages = (*LANGUAGES, "qtz")
    units, _ = pair_twins(parse_source("s.py", cells, languages), languages)
    [found] = check_parity(units[0])
    assert "qtz (line 13) has 2; en (from line 1) lacks it" in found.message


def test_where_the_structure_may_differ_the_texts_are_compared_as_wholes():
    en, ru = "One 1.\n\nAnother `x` 2.", "Один 1, другой `x` 2."
    assert compare(en, ru, "structure: one sentence in Russian") == []
    assert rules(en, ru.replace("2", "3"), "structure: one sentence in Russian") == [
        "parity-numbers"
    ]
