"""A source is read as it is written, and whatever would have to be guessed is refused."""

import re

import pytest

from course_build.base.findings import CourseError
from course_build.source.cells import parse_source

from .conftest import FRAME, FRAME_LINES, SOURCE, code, prose, said

LANGUAGES = ("en", "ru")


def parse(text):
    return parse_source("s.py", text, LANGUAGES)


def test_a_cell_knows_its_attributes_its_text_and_its_lines():
    text = (
        '\n# %% [markdown] lang="ru" key="a-1" en="03a6ef09" role="hint" exercise="mask"\n'
        'r"""\n\nСлово $\\alpha$\n\n"""\n\n# %% key="b" tags=["x", "y"]\n\n\nx = 1\ny = 2\n\n'
    )
    prose_cell, code_cell = parse(text)
    assert (prose_cell.kind, prose_cell.text) == ("markdown", "Слово $\\alpha$")
    assert (prose_cell.line, prose_cell.text_line) == (2, 5)
    assert (prose_cell.lang, prose_cell.stamp) == ("ru", "03a6ef09")
    assert (prose_cell.role, prose_cell.exercise) == ("hint", "mask")
    assert (code_cell.kind, code_cell.text) == ("code", "x = 1\ny = 2")
    assert (code_cell.line, code_cell.text_line, code_cell.tags) == (9, 12, ("x", "y"))


def test_commented_commands_come_alive_and_nothing_else_does():
    [cell] = parse('# %% key="a"\nif x:\n    # %pip install torch\n    # !ls\n    pass\n# 100 %\n')
    assert cell.text == "if x:\n    %pip install torch\n    !ls\n    pass\n# 100 %"


@pytest.mark.parametrize("comment", ["# cat sat on the mat", "# why?", "# ?help", "# ls"])
def test_a_comment_that_jupytext_takes_for_a_command_is_refused(repo, comment):
    err = repo.refuse(code("x", f"a = 1\n{comment}\nb = 2"))
    assert said(SOURCE, FRAME_LINES + 3, "x", "comment-as-command").search(err)
    assert comment in err


HEADERS = [
    ('# %% key="a" role="nothing"', "unknown-role", "role='nothing'"),
    ('# %% key="a" colour="red"', "unknown-attribute", "unknown attribute 'colour'"),
    ('# %% key="a" loose', "unknown-attribute", "unknown attribute 'loose'"),
    ('# %% A title key="a"', "unknown-attribute", "unknown attribute 'title'"),
    ('# %% [md] key="a"', "unknown-attribute", "unknown attribute 'region_name'"),
    ('# %% [raw] key="a"', "cell-header", "cannot be read"),
    ('# %% key="a" tags=["x"', "cell-header", "cannot be read"),
    ('# %%key="a"', "cell-header", "not a cell header"),
    ('#%% key="a"', "cell-header", "not a cell header"),
    (' # %% key="a"', "cell-header", "not a cell header"),
    ('# %%%% key="a"', "cell-header", "not a cell header"),
    ("# %%time", "cell-header", "not a cell header"),
    ('# %% key="a" lang="de"', "unknown-language", "lang='de'"),
    ('# %% key="a" key="a"', "attribute-twice", "key is given twice"),
    ("# %% key=7", "attribute-type", "key=7 is not a string"),
    ('# %% key="a" lang=7', "attribute-type", "lang=7 is not a string"),
    ('# %% key="a" lang="ru" en=12345678', "attribute-type", "en=12345678"),
    ('# %% key="a" tags="x"', "cell-header", "cannot read this cell"),
    ('# %% key="a" tags=[]', "attribute-type", "tags=[]"),
    ('# %% key="a" tags=["two words"]', "attribute-type", "tags=['two words']"),
    ('# %% key="a" tags=["x", "x"]', "cell-header", "cannot read this cell"),
    ('# %% key="a" tags=["x,y"]', "cell-header", "cannot read this cell"),
    ('# %% key="a" tags=[1]', "cell-header", "cannot read this cell"),
    ('# %% key="A"', "key", "key='A'"),
    ('# %% key="a--b"', "key", "key='a--b'"),
    ('# %% key="a b"', "key", "key='a b'"),
    ('# %% key=""', "key", "key=''"),
    (f'# %% key="{"k" * 51}"', "key", "cannot be a cell id"),
    ('# %% key="course-lib"', "key", "belongs to the builder"),
    ('# %% key="a" role="hint"', "role-kind", "role='hint' on a code cell"),
    ('# %% key="a" exercise="two words"', "name", "exercise='two words' is not a name"),
    ('# %% key="a" role="reference" reference="../x"', "name", "reference='../x' is not a name"),
    ('# %% key="a" exercise=""', "name", "exercise='' is not a name"),
    ("# %%", "no-key", "a cell without a key"),
    ('# %% lang="en"', "no-key", "a cell without a key"),
]


@pytest.mark.parametrize(("header", "rule", "words"), HEADERS)
def test_a_header_that_is_not_understood_is_refused(repo, header, rule, words):
    err = repo.refuse(f"{header}\nx = 1\n")
    shown = re.search(r'key="([^"]*)"', header)
    cell = f' cell "{shown[1]}":' if shown else ""
    assert f"{SOURCE}:{FRAME_LINES + 1}:{cell} [{rule}]\n    " in err
    assert words in err


def test_a_key_of_fifty_characters_is_long_enough_for_anybody(repo):
    repo.build(code("k" * 50, "x = 1"))
    assert repo.text("k" * 50) == "x = 1"


def test_the_role_of_a_code_cell_is_refused_on_prose(repo):
    err = repo.refuse(prose("p", more=' role="stub"'))
    assert said(SOURCE, FRAME_LINES + 1, "p", "role-kind", "role='stub' on a markdown").search(err)


BLOCKS = {
    "comment style": "# some words\n",
    "never closed": 'r"""\nwords\n',
    "not raw": '"""\nwords\n"""\n',
    "words on the first line": 'r"""words\n"""\n',
    "words on the last line": 'r"""\nwords"""\n',
    "code after it": 'r"""\nwords\n"""\nx = 1\n',
    "code before it": 'x = 1\nr"""\nwords\n"""\n',
    "two blocks": 'r"""\nwords\n"""\nr"""\nwords\n"""\n',
    "nothing": "",
}


@pytest.mark.parametrize("body", BLOCKS.values(), ids=BLOCKS.keys())
def test_a_markdown_cell_is_one_raw_block_and_nothing_else(repo, body):
    err = repo.refuse(f'# %% [markdown] lang="en" key="p"\n{body}\n# %% key="x"\nx = 1\n')
    assert said(SOURCE, FRAME_LINES + 1, "p", "markdown-block").search(err)


def test_a_block_that_is_never_closed_is_reported_at_its_own_cell_only(repo):
    err = repo.refuse(prose("good"), '# %% [markdown] lang="en" key="p"\nr"""\na\n', code("x", "y"))
    assert err.count("[") == 1
    assert 'cell "p"' in err


@pytest.mark.parametrize("empty", ["", "\n\n", "   \n"])
def test_an_empty_cell_is_refused(repo, empty):
    err = repo.refuse(f'# %% key="x"\n{empty}', code("y", "y = 1"))
    assert said(SOURCE, FRAME_LINES + 1, "x", "empty-cell").search(err)


def test_an_empty_block_is_an_empty_cell(repo):
    err = repo.refuse('# %% [markdown] lang="en" key="x"\nr"""\n\n\n"""\n')
    assert said(SOURCE, FRAME_LINES + 1, "x", "empty-cell").search(err)


def test_text_before_the_first_cell_is_refused(repo):
    repo.write(SOURCE, "\n# A remark\n" + FRAME)
    assert said(SOURCE, 2, None, "text-outside-cells", "# A remark").search(repo.broken())


def test_a_file_without_any_cell_is_refused(repo):
    repo.write(SOURCE, "x = 1\n")
    assert said(SOURCE, 1, None, "text-outside-cells", "x = 1").search(repo.broken())


def test_a_header_inside_a_string_cannot_cut_a_cell_in_two(repo):
    err = repo.refuse(code("x", 's = """\n# %% key="y"\n"""'))
    assert said(SOURCE, FRAME_LINES + 2, "x", "syntax").search(err)


def test_every_wrong_header_is_said_at_once(repo):
    err = repo.refuse('# %% key="a" role="x"\na = 1\n', '# %% key="b" colour="x"\nb = 1\n')
    assert "unknown-role" in err
    assert "unknown-attribute" in err


BAD_BYTES = {
    "bom": (b"\xef\xbb\xbf" + FRAME.encode(), 1, "bom", "byte order mark"),
    "carriage return": (b"# %%\n\nx = 1\r\n", 3, "line-endings", "carriage return"),
    "latin 1": (b'# %% key="a"\n\n\nx = "caf\xe9"\n', 4, "utf-8", "byte 0xe9 at offset 23"),
    "empty": (b"", 1, "empty", "the file is empty"),
    "blank": (b" \n\n", 1, "empty", "the file is empty"),
}


@pytest.mark.parametrize(("data", "line", "rule", "words"), BAD_BYTES.values(), ids=BAD_BYTES)
def test_a_file_that_differs_between_machines_is_refused(repo, data, line, rule, words):
    repo.write(SOURCE, data)
    assert said(SOURCE, line, None, rule, words).search(repo.broken())


def test_the_error_carries_its_findings_as_values():
    with pytest.raises(CourseError, match=r's\.py:1: cell "a": \[unknown-role\]') as caught:
        parse('# %% key="a" role="x"\nx = 1\n')
    [finding] = caught.value.findings
    assert (finding.line, finding.key, finding.rule) == (1, "a", "unknown-role")
    assert not finding.stale
