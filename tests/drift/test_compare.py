"""Drift: each change of what is printed is seen; rounding and what is measured are not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_build.drift.accepted import FormatError, Shown, read, shown, write
from course_build.drift.compare import compare, difference, merged, same_number
from tests.drift.cells import PLAIN, cell, changed, figure, notebook, printed, result

VERSIONS = {"Python": "3.11.7", "torch": "2.13.0"}


def told(before, after):
    return "\n".join(str(c) for c in compare(shown(notebook(*before)), shown(notebook(*after))))


@pytest.mark.parametrize(
    ("output", "kind", "text"),
    [
        (printed("\n  1 2 \n 3\n\n"), "stdout", "  1 2\n 3"),
        (printed("careful") | {"name": "stderr"}, "stderr", "careful"),
        (result({"text/html": "<b>1</b>", "text/plain": "1"}), "text/plain", "1"),
        (result({"text/latex": "$1$"}), "text/latex", "$1$"),
        (result({"application/json": {"a": 1}}), "application/json", ""),
        (figure("loss"), "figure loss", ""),
        (result({"image/png": "iVBO", "text/plain": "<Figure>"}), "figure -", ""),
    ],
)
def test_an_output_is_kept_as_its_reader_meets_it(output, kind, text):
    assert shown(notebook(cell("a", output))) == [Shown("a", kind, text)]
    assert shown(notebook(cell("a", output, tags=["measured"]))) == [Shown("a", f"measured {kind}")]


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (changed("1.7918", "1.7919"), "loss [-1.7918-]{+1.7919+} (+5.6e-05 of its value) after"),
        (changed("1.7918", "-1.7918"), "{+-1.7918+} (-200.00%)"),
        (changed("300", "301"), "[-300-]{+301+} (+0.33%) steps"),
        (changed("3e-07", "3e-05"), "[-3e-07-]{+3e-05+} (+9900.00%)"),
        (changed("8.3e-16", "8.3e-08"), "[-8.3e-16-]{+8.3e-08+}"),
        (changed("≤ 1e-09", "≤ 1e-10"), "≤ [-1e-09-]{+1e-10+} (-90.00%)"),
        (changed("same", "other"), "[-same-]{+other+}"),
        (changed("steps\\n", "steps\\nmore\\n"), "+ more"),
        (changed("steps\\n", ""), "cell \"loss\": prints something else"),
        (changed('"loss", "alt"', '"gain", "alt"'), "showed figure loss, stdout, now figure gain"),
        (PLAIN[1:], 'cell "loss": shows nothing any more'),
        ([cell("loss"), *PLAIN[1:]], 'cell "loss": shows nothing any more'),
        ([*PLAIN, cell("new", printed("1"))], '"new": shows something new\n    + stdout\n    + 1'),
        ([PLAIN[1], PLAIN[0], *PLAIN[2:]], "moved: it now comes"),
        ([*PLAIN[:3], cell("time", tags=["measured"])], 'cell "time": shows nothing any more'),
        ([*PLAIN[:3], cell("time", printed("12.5 ms"))], "showed measured stdout, now stdout"),
    ],
)  # fmt: skip
def test_a_change_is_seen(after, words):
    assert words in told(PLAIN, after)


@pytest.mark.parametrize(
    "after",
    [
        PLAIN,
        changed("12.5 ms", "99 ms on another machine"),
        changed("3e-07", "9e-07"),
        changed("8.3e-16   ≤", "1e-15     ≤"),
        changed("8.3e-16", "0e+00"),
    ],
)
def test_rounding_and_what_is_measured_are_not_drift(after):
    assert told(PLAIN, after) == ""


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("0.652618", "0.652617", True),
        ("-4.20998", "-4.20999", True),
        ("0.65262", "0.65261", False),
        ("314880", "314881", False),
        ("1,000,000", "1,000,001", False),
        ("0", "2.2e-16", True),
        ("0", "2.2e-07", False),
        ("4e-16", "4e-07", False),
        ("6e-06", "9e-06", True),
        ("5.24e-05", "5.25e-05", False),
        ("0.00001", "0.00002", False),
    ],
)
def test_numbers_are_the_same_within_the_stated_rounding(before, after, same):
    assert same_number(before, after) == same
    assert same_number(after, before) == same


@given(st.integers(10_000, 99_998), st.integers(-4, 3))
def test_a_change_in_the_first_five_digits_is_always_seen(digits, power):
    before, after = (f"{n / 10**4:.4f}e{power}" for n in (digits, digits + 1))
    assert not same_number(before, after)


TEXTS = st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]))).map(
    "\n".join
)
KINDS = st.sampled_from(["stdout", "text/plain", "figure loss", "measured stdout"])
OUTPUTS = st.lists(
    st.builds(
        Shown,
        st.from_regex(r"[a-z0-9]+(-[a-z0-9]+)*", fullmatch=True),
        KINDS,
        TEXTS.map(lambda text: text.strip("\n")),
    )
)


@given(OUTPUTS)
def test_what_is_written_is_read_back(outputs):
    assert read(write(outputs, VERSIONS)) == (VERSIONS, outputs)


@given(OUTPUTS)
def test_outputs_do_not_drift_from_themselves(outputs):
    assert compare(outputs, outputs) == []
    assert difference(outputs, outputs) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1"),
        ("# accepted by somebody", "line 1"),
        ("# accepted with torch 2\nloose", "line 2 is neither a head nor indented: loose"),
        ("# accepted with torch 2\n    loose", "line 2"),
        ("# accepted with torch 2\n== a: stdout\n    1\nloose", "line 4"),
    ],
)
def test_a_damaged_file_is_refused(text, words):
    with pytest.raises(FormatError, match=words):
        read(text)


def test_another_edition_is_kept_as_what_it_shows_otherwise():
    solved = [
        cell("loss", printed("solved")),
        PLAIN[1],
        cell("see"),
        PLAIN[3],
        cell("own", printed("1")),
    ]
    kept = difference(shown(notebook(*PLAIN)), shown(notebook(*solved)))
    assert [(output.key, output.kind) for output in kept] == [
        ("loss", "stdout"),
        ("own", "stdout"),
        ("see", "nothing"),
    ]


def test_accepting_leaves_the_text_where_only_rounding_differs():
    now = shown(notebook(*changed("1.7918", "1.8"), cell("new", printed("1"))))
    noisy = [Shown(o.key, o.kind, o.text.replace("8.3e-16", "1e-15")) for o in now]
    kept = merged(shown(notebook(*PLAIN)), noisy)
    assert compare(now, kept) == []
    assert "8.3e-16" in kept[1].text
