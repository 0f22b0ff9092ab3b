"""Reports and violations: what they carry, how they read, and that both languages say the same."""

import ast
import pickle
import re
import string
from pathlib import Path

import pytest
import torch

from course_build.base.settings import SETTINGS_FILE, parse_settings
from course_build.proofreading.strings import BAR, paired_strings
from course_lib import text
from course_lib.report import (
    ClauseResult,
    ContractReport,
    ContractViolation,
    Mismatch,
    expect_raises,
)

ROWS = (
    ClauseResult("row_sums", "weights of a query sum to 1", 3.1e-16, 1e-10),
    ClauseResult("bad_masks", "wrong masks are refused", "7/7", "all"),
)
PASSED = ContractReport("check_it", ROWS, {"error": 3.1e-16}, unchecked=("weights",))
STUB = ContractReport("check_it", attempted=False)


def broken(**evidence):
    return ContractViolation("check_it", ClauseResult("sums", "sums are 1", 0.5, 1e-10), **evidence)


def test_a_report_is_a_mapping_of_its_figures():
    assert dict(PASSED) == {"error": 3.1e-16}
    assert len(PASSED) == 1
    assert "error" in PASSED
    with pytest.raises(KeyError):
        PASSED["other"]


def test_a_report_prints_as_a_table():
    assert str(PASSED).split("\n") == [
        "✓ check_it: all 2 clauses hold",
        "  clause     measured  tolerated  what it means",
        "  row_sums   3.1e-16   ≤ 1e-10    weights of a query sum to 1",
        "  bad_masks  7/7       all        wrong masks are refused",
        "  not checked: weights",
    ]
    assert repr(PASSED) == str(PASSED)


def test_a_stub_is_reported_in_one_line(monkeypatch):
    assert str(STUB) == "○ check_it: not attempted"
    monkeypatch.setattr(text, "LANGUAGE", "ru")
    assert str(STUB) == "○ check_it: решения пока нет"
    assert str(PASSED).startswith("✓ check_it: выполнены все пункты (2)")


def test_a_row_that_is_too_wide_goes_on_below_its_own_column():
    report = ContractReport("check_it", (ClauseResult("a", "word " * 40, 0.0, 1.0),))
    heading, first, *more = str(report).split("\n")[1:]
    column = heading.index("what it means")
    assert max(map(len, (first, *more))) <= 88
    assert all(line[:column].strip() == "" for line in more)
    assert " ".join(line[column:] for line in (first, *more)).split() == ["word"] * 40


def test_notes_are_wrapped_below_the_table():
    report = ContractReport("check_it", attempted=False, notes=("word " * 40,))
    lines = str(report).split("\n")
    assert len(lines) > 2
    assert max(map(len, lines)) <= 84


def test_the_table_says_which_cells_head_a_column_or_a_row():
    page = ContractReport("check_it", (ClauseResult("a", "meaning", 1, 2),))._repr_html_()
    counted = {tag: page.count(tag) for tag in ('<th scope="col"', '<th scope="row"', "<td")}
    assert counted == {'<th scope="col"': 4, '<th scope="row"': 1, "<td": 3}
    assert (page.count("</th>"), page.count("</td>")) == (5, 3)


def test_the_html_report_names_no_colour_and_escapes_what_it_shows():
    page = ContractReport("check_it", (ClauseResult("a", "<b> & more", 1, 2),))._repr_html_()
    assert "&lt;b&gt; &amp; more" in page
    assert re.findall(r"#[0-9a-fA-F]{3,6}|rgb", page) == []
    assert set(re.findall(r"color:(\w+)", page)) == {"inherit"}
    assert "currentColor" in page
    assert page.count("<tr") == 2


def test_the_html_of_a_stub_has_no_table():
    assert "<table" not in STUB._repr_html_()
    assert "○ check_it: not attempted" in STUB._repr_html_()


def test_a_violation_carries_its_evidence():
    places = (Mismatch("weights", (0, 1), 0.5, 1.0),)
    caught = broken(failing_input={"q": [1.0]}, mismatches=places, diagnosis="columns sum to 1")
    assert isinstance(caught, AssertionError)
    assert (caught.contract, caught.clause, caught.meaning) == ("check_it", "sums", "sums are 1")
    assert (caught.measured, caught.allowed) == (0.5, 1e-10)
    assert str(caught).split("\n") == [
        '✗ check_it: the clause "sums" is broken',
        "  demanded: sums are 1",
        "  measured: 0.5; tolerated: ≤ 1e-10",
        "  failing input, cut down as far as it still fails:",
        "    q = [1]",
        "  first differences:",
        "    weights[0, 1]: got 0.5, expected 1",
        "  diagnosis: columns sum to 1",
    ]


def test_a_violation_says_how_far_the_candidate_has_come():
    caught = broken()
    caught.held = {"held": 3, "count": 8}
    assert "tolerated: ≤ 1e-10; clauses that hold before it: 3 of 8" in str(caught)


def test_a_violation_speaks_russian(monkeypatch):
    monkeypatch.setattr(text, "LANGUAGE", "ru")
    lines = str(broken(mismatches=(Mismatch("w", (0,), 1.0, 2.0),))).split("\n")
    assert lines[0] == "✗ check_it: нарушен пункт «sums»"
    assert lines[-1] == "    w[0]: получено 1, ожидалось 2"


def test_a_notebook_shows_the_message_and_no_traceback():
    assert broken()._render_traceback_() == [str(broken())]


def test_a_violation_survives_a_trip_between_processes():
    caught = broken(failing_input={"q": [1.0]}, diagnosis="x")
    assert str(pickle.loads(pickle.dumps(caught))) == str(caught)


def test_the_longest_violation_fits_a_screen():
    caught = broken(
        failing_input={name: torch.randn(4, 4) for name in "abcdefgh"},
        mismatches=tuple(Mismatch("x", (i, 0, 0), 1.0, 2.0) for i in range(9)),
        diagnosis="measured " * 300,
    )
    lines = str(caught).split("\n")
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 84


@pytest.mark.parametrize(("language", "fix"), [("en", "fix"), ("ru", "исправление")])
def test_a_hint_that_holds_code_stays_whole_on_its_own_line(language, fix, monkeypatch):
    monkeypatch.setattr(text, "LANGUAGE", language)
    one, other = f"({fix}: f(x[-1], g(y)), then dim=-1)", f"({fix}: return f(q, k, v))"
    diagnosis = f"{'measured ' * 12}{one}; {'more ' * 20}{other} — or so"
    lines = str(broken(diagnosis=diagnosis)).split("\n")
    assert f"    {one};" in lines
    assert f"    {other}" in lines
    assert lines[-1] == "    — or so"
    assert max(map(len, lines)) <= 84


def argument_lines(**given):
    return str(broken(failing_input=given)).split("\n")[4:]


def test_small_tensors_are_shown_whole_and_large_ones_by_shape_and_range():
    large = torch.arange(120.0).reshape(10, 12)
    assert argument_lines(q=torch.tensor([[1.0, -0.0]]).double()) == ["    q = [[1, 0]]"]
    assert argument_lines(q=torch.tensor([0.5]).half()) == ["    q = [0.5]  (float16)"]
    assert argument_lines(m=torch.tensor([True, False])) == ["    m = [1, 0]"]
    assert argument_lines(v=large) == ["    v = float32, shape [10, 12], from 0 to 119"]
    assert argument_lines(causal=True, k=3, p=None, w="zero") == [
        *("    causal = True", "    k = 3", "    p = None", "    w = zero")
    ]


def test_a_difference_is_shown_with_as_many_digits_as_it_needs():
    place = Mismatch("w", (), 1.00000000001, 1.0)
    assert str(broken(mismatches=(place,))).endswith("w: got 1.00000000001, expected 1")


def test_expect_raises_returns_the_message():
    def refuse(value, *, name):
        raise ValueError(f"{name}={value}")

    assert expect_raises(ValueError, refuse, 3, name="d_k") == "d_k=3"


def test_expect_raises_says_that_no_error_came(monkeypatch):
    with pytest.raises(
        AssertionError, match="expected ValueError from max, but no error came: .* 2"
    ):
        expect_raises(ValueError, max, 1, 2)
    monkeypatch.setattr(text, "LANGUAGE", "ru")
    with pytest.raises(AssertionError, match="от max ожидалась ошибка ValueError"):
        expect_raises(ValueError, max, 1, 2)


def test_expect_raises_says_that_another_error_came_and_chains_it():
    with pytest.raises(AssertionError, match="expected TypeError .* ValueError came") as caught:
        expect_raises(TypeError, float, "x")
    assert isinstance(caught.value.__cause__, ValueError)


# ------------------------------------------------ every language, in every table of the library

LIBRARY = Path(__file__).parents[1] / "course_lib"
SETTINGS = parse_settings((LIBRARY.parent / SETTINGS_FILE).read_text(encoding="utf-8"))
LANGUAGES = set(SETTINGS.languages)


def language_tables():
    """Every {"en": ..., "ru": ...} in the library, with the place where it stands."""
    for path in sorted(LIBRARY.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Dict):
                keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
                if LANGUAGES & set(keys):
                    place = f"{path.relative_to(LIBRARY.parent)}:{node.lineno}"
                    yield place, dict(zip(keys, map(ast.literal_eval, node.values), strict=True))


def contract_texts():
    """Every "English | русский", as a table like the others."""
    for path in sorted(LIBRARY.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for nodes in paired_strings(tree, SETTINGS.languages):
            values = [node.value for node in nodes if isinstance(node, ast.Constant)]
            texts = values[0].split(BAR) if len(values) == 1 else values
            texts = texts * (len(SETTINGS.languages) // len(texts))  # one is the same in all
            place = f"{path.relative_to(LIBRARY.parent)}:{nodes[0].lineno}"
            yield place, dict(zip(SETTINGS.languages, texts, strict=True))


def fields(template):
    return sorted(
        (name, spec)  # not how it is quoted: languages differ in that
        for _, name, spec, _ in string.Formatter().parse(template)
        if name is not None
    )


def test_every_text_exists_in_every_language_with_the_same_fields():
    """Drafts may lack it; the source language is the first: it stands in for what is missing."""
    tables = [*language_tables(), *contract_texts()]
    assert len(tables) > 1500
    for place, texts in tables:
        assert next(iter(texts)) == SETTINGS.languages[0], place
        assert set(SETTINGS.complete) <= set(texts) <= LANGUAGES, place
        assert len({str(fields(template)) for template in texts.values()}) == 1, place


def test_russian_texts_are_russian_and_english_ones_are_not():
    for place, texts in [*language_tables(), *contract_texts()]:
        assert not re.search("[а-яё]", texts["en"]), place
        code = texts["ru"] == texts["en"]  # and nothing else may look the same
        marks = not re.search(r"\w", texts["ru"] + texts["en"])  # a decimal comma and the like
        assert code or marks or re.search("[а-яёА-ЯЁ]", texts["ru"]), place


def test_identifiers_are_the_same_in_every_language():
    """A name like top_k or w_q must not be lost or changed by the translation."""
    for place, texts in [*language_tables(), *contract_texts()]:
        identifiers = [
            set(re.findall(r"\b(?:[a-z]+_[a-z_]+|\w+=\w+)\b", re.sub(r"\{.*?\}", "", template)))
            for template in texts.values()
        ]
        assert all(each == identifiers[0] for each in identifiers), place


def test_no_name_is_defined_twice_in_what_a_notebook_may_embed():
    """But for the field's names in the oracle, which `layers` has too; no notebook has both."""
    homes = {}
    for path in sorted(LIBRARY.rglob("*.py")):
        if path.relative_to(LIBRARY).parts[0] in ("checking", "contracts", "mistakes"):
            continue  # packed as files, or in no notebook: names of their own
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = [node.name] if hasattr(node, "name") else []
            if isinstance(node, ast.Assign):
                names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            for name in names:
                spoken = path.name == "plain.py" and not name.startswith("_")
                if name != "__all__" and not spoken:
                    homes.setdefault(name, []).append(path.name)
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}
