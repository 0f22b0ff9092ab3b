"""What proofreading reads: the words of a text, and the line on which each of them stands."""

import ast
import re

from hypothesis import given
from hypothesis import strategies as st

from course_build.proofreading.gather import page_pieces, source_pieces, table_pieces
from course_build.proofreading.markdown import markdown_parts
from course_build.proofreading.pieces import HOLE, join
from course_build.proofreading.strings import string_nodes, string_parts
from tests.builder.conftest import code, code_twins, prose

LANGUAGES = ("en", "ru")
PLACE = ("file", None, "en", "prose")


def read_markdown(text):
    return [piece for parts in markdown_parts(text) if (piece := join(parts, PLACE))]


def words_of(pieces):
    return [word[0] for piece in pieces for word in piece.words()]


def test_code_formulas_targets_html_and_fences_are_not_read():
    text = (
        "Read `not this` or $not + this$ or [this](not-this.md 'not this') <b title='not'>too</b>\n"
        "$$\nnot this\n$$\n\n```\nnot this\n```\n\n![and this](not-this.png)\n"
    )
    assert " ".join(words_of(read_markdown(text))) == "Read or or this too and this"


def test_tables_headings_lists_and_quotations_are_read():
    text = "# one\n\n| two | three |\n|---|---|\n| four | `x` |\n\n- five\n  - six\n\n> seven\n"
    assert " ".join(words_of(read_markdown(text))) == "one two three four five six seven"


def test_what_stands_where_code_was_is_a_hole():
    [piece] = read_markdown("the `x` and $y$ of **it**")
    assert piece.text == f"the {HOLE} and {HOLE} of it"


def test_code_that_nothing_marks_is_no_word():
    for text in ("d_model", "--lang", "f(x)", "torch.float32", "x=3", "README.md", "a#697", "v2"):
        assert words_of(read_markdown(f"so {text} is")) == ["so", "is"], text


@st.composite
def word(draw):
    """A word unlike all others, so that to be on a line is to be that word."""
    return "w" + draw(st.text("abcdefgh", min_size=9, max_size=9))


END = st.sampled_from([" ", " ", "\n"])
INSIDE = {
    "word": "{0}", "emphasis": "*{0}{e}{1}*", "code": "`x{e}y`", "math": "$x{e}y$",
    "link": "[{0}{e}{1}](to.md{e}'a{e}title')", "image": "![{0}{e}{1}](to.png)",
    "html": "{0} <b{e}id='x'>", "hard": "{0}\\\n{1}", "autolink": "<https://x.yz>",
    "escape": r"\* {0}",
    "strong code": "**{0} `x{e}y`{e}{1}**", "reference": "&amp; {0}", "nested": "*{0}{e}`x`{e}*",
}  # fmt: skip


@st.composite
def paragraph(draw):
    pieces = draw(st.lists(st.sampled_from(sorted(INSIDE)), min_size=1, max_size=8))
    return "".join(
        INSIDE[piece].format(draw(word()), draw(word()), e=draw(END)) + draw(END)
        for piece in pieces
    ).strip()


@st.composite
def markdown(draw):
    """Blocks of every kind with paragraphs in them."""
    blocks = []
    for kind in draw(st.lists(st.sampled_from("p#->|$`"), min_size=1, max_size=6)):
        text = draw(paragraph())
        flat = " ".join(text.replace("\\\n", " ").split()).replace("|", " ")
        blocks.append(
            {
                "p": text, "#": f"## {flat}", "-": "- " + text.replace("\n", "\n  "),
                ">": "> " + text.replace("\n", "\n> "), "|": f"|a|b|\n|-|-|\n|{flat}|{flat}|",
                "$": f"$$\nx\n$$\n\n{text}", "`": f"```\nx\n\ny\n```\n{text}",
            }[kind]
        )  # fmt: skip
    return "\n\n".join(blocks)


@given(markdown())
def test_each_word_of_a_markdown_text_stands_on_the_line_that_is_named(text):
    lines = text.split("\n")
    seen = set()
    for piece in read_markdown(text):
        for found in piece.words():
            if re.fullmatch("w[a-h]{9}", found[0]):
                assert found[0] in lines[piece.line_at(found.start()) - 1]
                seen.add(found[0])
    written = set(re.findall("w[a-h]{9}", text))
    assert seen == written


def test_the_end_of_a_line_is_on_that_line_and_the_next_begins_after_it():
    piece = join([(3, "one"), (4, "\ntwo")], PLACE)
    assert [piece.line_at(offset) for offset in range(len(piece.text))] == [3, 3, 3, 4, 4, 4, 4]


LITERALS = ('"{0} {1} "', "'{0} '", 'f"{0} {{x + 1}} {1} "', 'r"{0} "', '"""{0}\n{1}\n  {0} """',
            '"{0}\\n{1} "', 'f"""{0}\n{{x}} {1} """', '"{{n}} {0} "', '"ёж " "{1} "')  # fmt: skip


@st.composite
def string_code(draw):
    literals = [
        draw(st.sampled_from(LITERALS)).format(draw(word()), draw(word()))
        for _ in range(draw(st.integers(1, 5)))
    ]
    ends = [draw(st.sampled_from([" ", "\n    ", "  # a comment\n"])) for _ in literals]
    return "x = 1\ny = g('ё', (" + "".join(map("".join, zip(literals, ends, strict=True))) + "\n))"


@given(string_code())
def test_each_word_of_a_string_stands_on_the_line_that_is_named(text):
    lines = text.split("\n")
    seen = set()
    for node in string_nodes(ast.parse(text)):
        piece = join(string_parts(lines, node), PLACE)
        for found in piece.words() if piece else ():
            if re.fullmatch("w[a-h]{9}", found[0]):
                assert found[0] in lines[piece.line_at(found.start()) - 1]
                seen.add(found[0])
    assert seen == set(re.findall("w[a-h]{9}", text))


def test_fields_formulas_and_backticks_in_strings_are_holes():
    text = 'f("{n} rows of `x y`, $a b$ {k:.2f}")'
    [node] = string_nodes(ast.parse(text))
    [(_, read)] = string_parts([text], node)
    assert read.replace(HOLE, "") == " rows of ,  "


def test_of_a_module_are_read_prose_marked_comments_and_strings_that_differ():
    source = "\n".join(
        [
            prose("begin", "Some prose.", "Немного прозы."),
            code("shared", "# en: a comment\n# ru: комментарий\nx = 'same'  # only in English"),
            code_twins(
                "twins",
                "f('same', 'shown')  # why\nx = 1  # [B, T]",
                "f('same', 'показано')  # зачем\nx = 1  # [B, T]",
            ),
        ]
    )
    pieces = source_pieces("m.py", source, LANGUAGES)
    read = {(piece.key, piece.language, piece.kind, piece.text) for piece in pieces}
    assert read == {
        ("begin", "en", "prose", "Some prose."), ("begin", "ru", "prose", "Немного прозы."),
        ("shared", "en", "comment", "a comment"), ("shared", "ru", "comment", "комментарий"),
        ("twins", "en", "string", "shown"), ("twins", "ru", "string", "показано"),
        ("twins", "en", "shared", "same"), ("twins", "ru", "shared", "same"),
        ("twins", "en", "comment", "why"), ("twins", "ru", "comment", "зачем"),
    }  # fmt: skip
    lines = source.split("\n")
    for piece in pieces:
        assert piece.text in lines[piece.lines[0] - 1]


def test_tables_of_words_are_read_by_language_and_their_inner_keys_are_not():
    text = (
        'A = {"en": "two words", "ru": "два слова"}\nB = {"en": {"key": "x"}, "ru": {"key": "й"}}\n'
        'C = {"en": 1, "other": "no"}\nD = {"en": "the same", "ru": "the same"}\n'
    )
    read = [(p.language, p.kind, p.text, p.lines[0]) for p in table_pieces("t.py", text, LANGUAGES)]
    assert read == [
        ("en", "table", "two words", 1), ("ru", "table", "два слова", 1),
        ("en", "table", "x", 2), ("ru", "table", "й", 2),
        ("en", "shared", "the same", 4), ("ru", "shared", "the same", 4),
    ]  # fmt: skip


def test_a_page_is_in_the_language_of_its_name_or_in_the_source_language():
    assert page_pieces("README.ru.md", "слово", LANGUAGES)[0].language == "ru"
    assert page_pieces("README.md", "word", LANGUAGES)[0].language == "en"


def test_what_a_tree_of_files_says_is_read_and_its_paths_are_not():
    text = "# Дом\n\n```\n.\n|-- noread/src/  читать это\n`-- Noread       и `нет` это\n```\n\n"
    text += "```bash\nmake  нечитаемо\n```\n"
    read = [(piece.text.replace(HOLE, ""), piece.lines[0]) for piece in
            page_pieces("README.ru.md", text, LANGUAGES)]  # fmt: skip
    assert read == [("Дом", 1), ("читать это", 5), ("и  это", 6)]
