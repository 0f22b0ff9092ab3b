"""figures/: taken from executed notebooks, in every language, complete and never by half."""

import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from course_build.base.findings import CourseError
from course_build.outputs import executed as executed_module
from course_build.outputs import figures
from course_build.outputs.executed import is_fresh

ROOT = Path(__file__).resolve().parent.parent
ALTS = {
    "en": "The loss falls from 1.8 nats to almost nothing.",
    "ru": "Потеря падает с 1,8 ната почти до нуля.",
}
STEM = "module_03_idea"


def svg(alt, body="<text>1</text>"):
    start = '<svg xmlns="http://www.w3.org/2000/svg" role="img"'
    return f'{start} aria-label="{alt}"><title>{alt}</title>{body}</svg>\n'


def shown(name="loss", alt="The loss falls from 1.8 nats to almost nothing.", picture=None):
    """The output of a cell that shows a figure."""
    return {
        "output_type": "display_data",
        "data": {"image/svg+xml": picture or svg(alt), "text/plain": alt},
        "metadata": {"image/svg+xml": {"name": name, "alt": alt}},
    }


def cell(key, outputs=None, *, source="show()", count=1, kind="code", tags=()):
    metadata = {"tags": list(tags)} if tags else {}
    made = {"id": key, "cell_type": kind, "source": source, "metadata": metadata}
    if kind == "code":
        made |= {"execution_count": count, "outputs": outputs or []}
    return made


def notebook(*cells):
    return json.dumps({"cells": list(cells), "nbformat": 4, "nbformat_minor": 5}).encode()


def extract(en, ru):
    return figures.extract({"en": {f"{STEM}.ipynb": en}, "ru": {f"{STEM}.ipynb": ru}})


def both(**changes):
    """The same figure in both languages, each with its own alt text."""
    return [notebook(cell("see", [shown(**{"alt": alt, **changes})])) for alt in ALTS.values()]


def rules(error):
    return {finding.rule for finding in error.value.findings}


# --- from notebooks to figures ---


def test_figures_are_named_after_module_and_figure_in_each_language():
    assert extract(*both()) == {
        f"{language}/module_03-loss.svg": svg(alt).encode() for language, alt in ALTS.items()
    }


def test_an_svg_kept_as_lines_is_joined():
    output = shown()
    output["data"]["image/svg+xml"] = svg(ALTS["en"]).splitlines(keepends=True)
    (found,) = figures.figures_in("module_03_x.ipynb", notebook(cell("see", [output])))
    assert found.svg == svg(ALTS["en"])


@pytest.mark.parametrize(
    "alt", ["plot", "figure", "Training loss by step", "Training loss, a plot of loss by step"]
)
def test_an_alt_text_that_only_repeats_the_labels_is_refused(alt):
    picture = svg(alt, "<text>Training loss</text><text>by step</text>")
    with pytest.raises(CourseError, match="hardly says more than its labels") as error:
        figures.figures_in(
            "module_03_x.ipynb", notebook(cell("see", [shown("loss", alt, picture)]))
        )
    assert rules(error) == {"figure-alt"}


def measured(words="The loss falls from 1.8 nats to almost nothing.", **changes):
    """The output of a cell that shows what was measured in this run."""
    output = shown(alt=words)
    output["metadata"]["image/svg+xml"] = {"measured": True, "alt": words, **changes}
    return output


def test_a_measured_figure_needs_words_but_gets_no_file():
    en, ru = (
        notebook(cell("see", [shown(alt=alt)]), cell("time", [measured(alt)], tags=["measured"]))
        for alt in ALTS.values()
    )
    assert extract(en, ru) == extract(*both())


def test_any_number_of_measured_figures_in_one_language_is_fine():
    twice = notebook(*(cell(key, [measured()], tags=["measured"]) for key in "ab"))
    assert extract(twice, notebook(cell("a"))) == {}


@pytest.mark.parametrize(
    ("changes", "rule", "words"),
    [
        ({"alt": ""}, "figure-alt", "has no alt text"),
        ({"alt": "other words"}, "figure-svg", "does not carry its alt text"),
        ({"name": "loss"}, "figure-name", "measured in each run and has a name for a file"),
        ({"measured": False}, "figure-name", "hyphens, got ''"),
        ({"measured": "yes"}, "figure-name", "hyphens, got ''"),
    ],
)
def test_a_measured_figure_that_cannot_stand_alone_is_refused(changes, rule, words):
    made = cell("time", [measured(**changes)], tags=["measured"])
    with pytest.raises(CourseError, match=words) as error:
        figures.figures_in("module_03_x.ipynb", notebook(made))
    assert rules(error) == {rule}


@pytest.mark.parametrize("made", [cell("a", [shown()], tags=["measured"]), cell("a", [measured()])])
def test_a_cell_is_tagged_measured_if_and_only_if_its_figure_is(made):
    with pytest.raises(CourseError, match="tagged 'measured' if and only if") as error:
        figures.figures_in("module_03_x.ipynb", notebook(made))
    assert rules(error) == {"figure-measured"}


def test_outputs_that_are_not_pictures_are_passed_over():
    stream = {"output_type": "stream", "name": "stdout", "text": "1"}
    text = {"output_type": "execute_result", "data": {"text/plain": "1"}, "metadata": {}}
    prose = cell("prose", kind="markdown")
    assert figures.figures_in("module_03_x.ipynb", notebook(prose, cell("a", [stream, text]))) == []


@pytest.mark.parametrize(
    ("output", "rule", "words"),
    [
        (shown(alt=""), "figure-alt", "'loss' has no alt text"),
        (shown(alt=" ", picture=svg(" ")), "figure-alt", "'loss' has no alt text"),
        (shown(name=""), "figure-name", "hyphens, got ''"),
        (shown(name=None), "figure-name", "hyphens, got ''"),
        (shown(name="../loss"), "figure-name", r"got '\.\./loss'"),
        (shown(picture=svg("another")), "figure-svg", "does not carry its alt text"),
        (shown(picture="<svg"), "figure-svg", "is not XML"),
        (shown(picture="<p/>"), "figure-svg", "has the root p, not svg"),
        (
            shown(picture=svg("The loss falls from 1.8 nats to almost nothing.", "<g/>" * 30_000)),
            "figure-size",
            "at most 120000",
        ),
        (
            {"output_type": "display_data", "data": {"image/png": "iVBO"}, "metadata": {}},
            "figure-kind",
            "a picture of kind image/png, without alt text",
        ),
        (
            {"output_type": "display_data", "data": {"image/svg+xml": svg("x")}, "metadata": {}},
            "figure-alt",
            "has no alt text",
        ),
    ],
)
def test_a_picture_that_cannot_stand_alone_is_refused(output, rule, words):
    with pytest.raises(CourseError, match=words) as error:
        figures.figures_in("build/module_03_x.ipynb", notebook(cell("see", [output])))
    assert rule in rules(error)
    assert error.value.findings[0].path == "build/module_03_x.ipynb"
    assert error.value.findings[0].key == "see"


def test_two_figures_of_one_name_are_refused():
    twice = notebook(cell("first", [shown()]), cell("second", [shown()]))
    with pytest.raises(CourseError, match="cell 'first' already shows") as error:
        figures.figures_in("module_03_x.ipynb", twice)
    assert error.value.findings[0].key == "second"


@pytest.mark.parametrize("missing", ["en", "ru"])
def test_a_figure_in_one_language_only_is_refused(missing):
    en, ru = both()
    empty = notebook(cell("see"))
    with pytest.raises(CourseError, match=f"'loss' is missing in '{missing}'") as error:
        extract(empty, ru) if missing == "en" else extract(en, empty)
    assert rules(error) == {"figure-twin"}


def test_an_untranslated_alt_text_is_refused():
    with pytest.raises(CourseError, match="the same in 'en' and 'ru'") as error:
        extract(*both(alt="The loss falls from 1.8 nats to almost nothing."))
    assert rules(error) == {"figure-alt"}
    assert len(error.value.findings) == 1


def test_all_problems_of_all_notebooks_are_said_at_once():
    with pytest.raises(CourseError) as error:
        extract(notebook(cell("a", [shown(alt="")])), notebook(cell("b", [shown(name="")])))
    assert {finding.key for finding in error.value.findings} == {"a", "b"}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"cells":1}', b"\xff"])
def test_a_file_that_is_no_notebook_is_named(content):
    with pytest.raises(CourseError, match="not a notebook") as error:
        figures.figures_in("build/module_03_x.ipynb", content)
    assert rules(error) == {"executed-notebook"}


# --- which executed copies count ---


def fresh(rendered, ran):
    return is_fresh(*(json.loads(notebook(*cells)) for cells in (rendered, ran)))


RENDERED = [cell("title", kind="markdown", source="# T"), cell("see", count=None)]


def test_a_copy_that_ran_every_cell_is_fresh():
    assert fresh(RENDERED, [RENDERED[0], cell("see", [shown()], count=1)])
    assert fresh(RENDERED, [RENDERED[0], cell("see", [shown()], source=["sh", "ow()"])])


@pytest.mark.parametrize(
    "ran",
    [
        [RENDERED[0], cell("see", source="show(1)")],
        [cell("title", kind="markdown", source="# Old"), cell("see")],
        [RENDERED[0], cell("see", count=None)],
        [RENDERED[0]],
        [RENDERED[0], cell("injected", source="steps = 5"), cell("see")],
        [RENDERED[0], cell("see", [{"output_type": "error", "ename": "E"}])],
    ],
    ids=["code changed", "prose changed", "not run", "cell missing", "parameters", "failed"],
)
def test_a_copy_of_anything_else_is_not_fresh(ran):
    assert not fresh(RENDERED, ran)


# --- the command ---


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A tiny course whose notebooks have been executed; running it again is forbidden."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for language, content in zip(ALTS, both(), strict=True):
        for folder in (f"notebooks/{language}", f"build/executed/learner/{language}"):
            (tmp_path / folder).mkdir(parents=True)
            (tmp_path / folder / f"{STEM}.ipynb").write_bytes(content)

    def forbidden(root):
        raise AssertionError("the notebooks are fresh and were run again")

    monkeypatch.setattr(executed_module, "run_notebooks", forbidden)
    return tmp_path


def written(course):
    folder = course / "figures"
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_check_writes_nothing_and_writing_settles_it(course, capsys):
    assert figures.main(["--check"], course) == 1
    assert written(course) == {}
    assert "figures/ru/module_03-loss.svg" in capsys.readouterr().err
    assert figures.main([], course) == 0
    assert written(course) == extract(*both())
    assert figures.main(["--check"], course) == 0
    assert "2 figures in 2 languages" in capsys.readouterr().out


@pytest.mark.parametrize("old", [b"", b"\xff", svg(ALTS["en"], "<text>2</text>").encode()])
def test_a_figure_that_differs_is_reported_then_written(course, capsys, old):
    assert figures.main([], course) == 0
    (course / "figures/en/module_03-loss.svg").write_bytes(old)
    capsys.readouterr()
    assert figures.main(["--check"], course) == 1
    assert "the file differs" in capsys.readouterr().err
    assert figures.main([], course) == 0
    assert written(course) == extract(*both())


def test_an_orphan_is_reported_and_never_deleted(course, capsys):
    assert figures.main([], course) == 0
    for name in ("en/module_03-old.svg", "de/module_03-loss.svg", ".DS_Store"):
        (course / "figures" / name).parent.mkdir(exist_ok=True)
        (course / "figures" / name).write_bytes(b"kept")
    for arguments in (["--check"], []):
        assert figures.main(arguments, course) == 1
        said = capsys.readouterr().err
        assert said.count("figure-orphan") == 2
        assert "figures/en/module_03-old.svg" in said
        assert "figures/de/module_03-loss.svg" in said
    assert len(written(course)) == 5


def test_a_broken_figure_leaves_every_file_as_it_was(course, capsys):
    assert figures.main([], course) == 0
    before = written(course)
    broken = notebook(cell("see", [shown(alt="")]))
    for folder in ("notebooks/ru", "build/executed/learner/ru"):
        (course / folder / f"{STEM}.ipynb").write_bytes(broken)
    assert figures.main([], course) == 2
    assert "has no alt text" in capsys.readouterr().err
    assert written(course) == before


def test_a_folder_that_cannot_be_written_is_one_clear_message(course, capsys):
    (course / "figures").write_text("a file where the folder should be", encoding="utf-8")
    assert figures.main([], course) == 2
    assert re.search("cannot write|broken: ", capsys.readouterr().err)


def test_no_rendered_notebook_is_an_error_not_a_success(course, capsys):
    for language in ALTS:
        (course / f"notebooks/{language}/{STEM}.ipynb").unlink()
    assert figures.main([], course) == 2
    assert "make notebooks" in capsys.readouterr().err


@pytest.mark.parametrize("old", [None, b'{"cells": [', notebook(cell("see", count=None))])
def test_missing_or_broken_executed_copies_are_made_by_running_the_notebooks(
    course, monkeypatch, old
):
    copy = course / f"build/executed/learner/ru/{STEM}.ipynb"
    good = copy.read_bytes()
    if old is None:
        copy.unlink()
    else:
        copy.write_bytes(old)
    monkeypatch.setattr(executed_module, "run_notebooks", lambda root: copy.write_bytes(good))
    assert figures.main([], course) == 0
    assert written(course) == extract(*both())


def test_a_notebook_that_does_not_run_to_its_end_is_broken(course, monkeypatch, capsys):
    (course / f"build/executed/learner/ru/{STEM}.ipynb").unlink()
    monkeypatch.setattr(executed_module, "run_notebooks", lambda root: None)
    assert figures.main([], course) == 2
    assert f"build/executed/learner/ru/{STEM}.ipynb" in capsys.readouterr().err
    assert written(course) == {}


def test_settings_that_cannot_be_read_are_one_clear_message(course, capsys):
    (course / "pyproject.toml").unlink()
    assert figures.main([], course) == 2
    assert "pyproject.toml" in capsys.readouterr().err


# --- the same picture, drawn elsewhere ---

LINE = '<path d="M 10 20.5 L -3.25 7" style="fill: #5e81ac"/><text x="1.5">0.330</text>'


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("20.5", "20.500001", True),
        ("20.5", "20.55", True),
        ("20.5", "20.7", False),
        ("-3.25", "3.25", False),
        ("M 10", "M 10.01", True),
        ("#5e81ac", "#5e82ac", False),
        ("0.330", "0.331", False),
        ("fill", "stroke", False),
        (" L -3.25 7", "", False),
        ('x="1.5"', 'x="1.52"', True),
    ],
)
def test_only_a_move_too_small_to_see_is_the_same_picture(old, new, same):
    before, after = svg("a", LINE), svg("a", LINE.replace(old, new))
    assert before != after
    assert figures.same_picture(before.encode(), after.encode()) is same


def test_another_number_in_the_alt_text_is_another_picture():
    assert not figures.same_picture(svg("below 0.02").encode(), svg("below 0.03").encode())


def test_ids_that_matplotlib_hashes_from_shapes_count_by_their_use_not_their_digits():
    clip = '<clipPath id="{0}"/><clipPath id="{1}"/><path clip-path="url(#{2})"/>'
    old = clip.format("p2a4df99044", "p61f3b8ac1d", "p2a4df99044").encode()
    same = clip.format("p2def4ea67f", "p61f3b8ac1d", "p2def4ea67f").encode()
    other = clip.format("p2def4ea67f", "p61f3b8ac1d", "p61f3b8ac1d").encode()
    assert figures.same_picture(old, same)
    assert not figures.same_picture(old, other)


def test_a_figure_that_only_moved_by_rounding_is_left_as_it_is(course):
    assert figures.main([], course) == 0
    path = course / "figures/en/module_03-loss.svg"
    moved = path.read_bytes().replace(b"<text>", b'<g x="1.00001"/><text>')
    path.write_bytes(moved)
    changed = notebook(cell("see", [shown(picture=moved.decode().replace("1.00001", "1.00002"))]))
    for folder in ("notebooks/en", "build/executed/learner/en"):
        (course / folder / f"{STEM}.ipynb").write_bytes(changed)
    assert figures.main(["--check"], course) == 0
    assert figures.main([], course) == 0
    assert path.read_bytes() == moved


def test_numbers_in_russian_figures_have_the_marks_of_russian():
    """A comma, no bare thousands, and a minus that is no hyphen, in the picture and its alt."""
    svgs = sorted((ROOT / "figures" / "ru").glob("*.svg"))
    assert svgs
    for path in svgs:
        root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
        texts = [root.get("aria-label"), *(t.text or "" for t in root.iter(figures.SVG_TEXT))]
        wrong = re.compile(r"\d\.\d|\d{5}|(?<!\w)-\d")
        assert [words for words in texts if wrong.search(words)] == [], path.name
