"""PO files: what goes out comes back, byte for byte; what would break the source does not."""

import re
import shutil
import subprocess

import polib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_build.base.findings import CourseError
from course_build.interchange import importing
from course_build.interchange.entries import Entry
from course_build.interchange.po import read_po, write_po
from course_build.source.cells import Cell

from .conftest import NAME, SOURCE, code, code_twins, prose
from .conftest import stamp_by_hand as stamp
from .test_drafts import DRAFT

EXERCISE = ' exercise="e"'
HINT = ' role="hint"' + EXERCISE
CELLS = (
    prose(
        "p",
        'Take $\\nabla f$ and `x`:\n\n- "one"\n- two\\_',
        "Возьмите $\\nabla f$ и `x`:\n\n- «раз»\n- два\\_",
    ),
    code_twins("c", 'print("one\\n", 1)', 'print("раз\\n", 1)'),
    code("s", "if 1:\n    # en: a \\ b\n    # ru: а \\ б\n    x = 1\n# en: c\n# ru: в"),
    prose("q", "More words.", "Ещё слова."),
    code("stub", "def f():\n    raise NotImplementedError", ' role="stub"' + EXERCISE),
    code("check", "f", ' role="check"' + EXERCISE),
    prose("hint", "A hint.", "Подсказка.", HINT),
    code("solution", "def f():\n    return 1", ' role="solution"' + EXERCISE),
)  # fmt: skip


@pytest.fixture
def draft(repo):
    """A course with an empty draft language qtz, its PO files written."""
    repo.write("pyproject.toml", DRAFT)
    repo.source(*CELLS)
    assert repo.run("export").code == 0
    return repo


def po_file(repo, language="qtz"):
    return repo.root / f"build/po/{language}/{NAME}.po"


def read(repo, language="qtz"):
    return polib.pofile(str(po_file(repo, language)))


def entry(file, key):
    [found] = [e for e in file if e.msgctxt == f"{NAME}:{key}" and not e.obsolete]
    return found


def translate(repo, texts, language="qtz"):
    """Write translations, {key: text}, into the exported file, as a PO editor does."""
    file = read(repo, language)
    for key, text in texts.items():
        entry(file, key).msgstr = text
    file.save()


def put_back(repo, language="qtz"):
    return repo.run("import", str(po_file(repo, language)))


def refused(repo, rule):
    """Import; it must be refused with this rule, and nothing changed. What was said comes back."""
    before = repo.read(SOURCE)
    ran = put_back(repo)
    assert ran.code == 2, ran.out
    assert f"[{rule}]" in ran.err
    assert repo.read(SOURCE) == before
    return ran.err


# Export


def test_every_cell_with_a_language_and_every_comment_is_an_entry(draft):
    contexts = [e.msgctxt.removeprefix(f"{NAME}:") for e in read(draft)]
    assert contexts == ["title", "begin", "p", "c", "s#1", "s#2", "q", "hint"]
    kinds = [e.comment.split(":")[0] for e in read(draft)]
    assert kinds[2:] == [
        "prose", "code", "a comment in code", "a comment in code", "prose", "hint of an exercise",
    ]  # fmt: skip
    assert entry(read(draft), "p").msgid == 'Take $\\nabla f$ and `x`:\n\n- "one"\n- two\\_'
    line = draft.read(SOURCE).split("\n").index('# %% [markdown] lang="en" key="p"') + 1
    assert entry(read(draft), "p").occurrences == [(SOURCE, str(line))]


def test_the_headers_say_what_an_editor_must_know(draft):
    metadata = read(draft, "ru").metadata
    assert metadata["Language"] == "ru"
    assert metadata["X-Source-Language"] == "en"
    assert metadata["Content-Type"] == "text/plain; charset=UTF-8"
    assert not [name for name in metadata if "Date" in name]


def test_an_export_is_the_same_bytes_every_time(draft):
    before = po_file(draft).read_bytes(), po_file(draft, "ru").read_bytes()
    assert draft.run("export").code == 0
    assert (po_file(draft).read_bytes(), po_file(draft, "ru").read_bytes()) == before


def test_modules_and_languages_can_be_chosen_for_export(repo):
    repo.write("pyproject.toml", DRAFT)
    repo.source()
    repo.source(name="module_04_other")
    assert repo.run("export", "--module", "4", "--lang", "ru").code == 0
    written = [p.relative_to(repo.root).as_posix() for p in (repo.root / "build").rglob("*.po")]
    assert written == ["build/po/ru/module_04_other.po"]
    assert repo.run("export", "--lang", "en").code == 2


def test_fuzzy_follows_the_stamps(draft):
    source = draft.read(SOURCE).replace("Some words.", "Other words.")
    source = source.replace(f' en="{stamp("A hint.")}"', "")
    draft.write(SOURCE, source)
    assert draft.run("export").code == 0
    assert [e.msgctxt for e in read(draft, "ru") if e.fuzzy] == [f"{NAME}:begin", f"{NAME}:hint"]
    assert not any(e.fuzzy for e in read(draft))
    assert entry(read(draft, "ru"), "hint").previous_msgid is None


def test_a_stale_entry_carries_the_english_before(draft):
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "before"]):
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *who, *command], cwd=draft.root, check=True)
    draft.write(SOURCE, draft.read(SOURCE).replace("Some words.", "Other words."))
    assert draft.run("export", "--lang", "ru").code == 0
    begin = entry(read(draft, "ru"), "begin")
    assert (begin.fuzzy, begin.previous_msgid, begin.msgid) == (True, "Some words.", "Other words.")


@pytest.mark.skipif(shutil.which("msgfmt") is None, reason="gettext is not installed")
def test_msgfmt_accepts_what_is_exported(draft):
    for language in ("ru", "qtz"):
        command = ["msgfmt", "--check-format", "-o", "/dev/null", str(po_file(draft, language))]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stderr) == (0, "")


def test_work_that_was_not_imported_is_not_overwritten(draft):
    translate(draft, {"p": "Vorto."})
    before = po_file(draft).read_bytes()
    ran = draft.run("export")
    assert ran.code == 2
    assert "[not-imported]\n    1 translations in it are not imported yet" in ran.err
    assert po_file(draft).read_bytes() == before
    assert draft.run("export", "--lang", "ru").code == 0


def test_imported_work_may_be_overwritten(draft):
    translate(draft, {"begin": "Vortoj."})
    assert put_back(draft).code == 0
    assert draft.run("export").code == 0
    assert entry(read(draft), "begin").msgstr == "Vortoj."


# There and back


def rewrap(path):
    polib.pofile(str(path), wrapwidth=60).save()


def other_line_ends(path):
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


def with_a_mark(path):
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())


def headers_turned(path):
    file = polib.pofile(str(path))
    file.metadata = {"X-Generator": "Poedit 3.4", **dict(reversed(list(file.metadata.items())))}
    file.metadata["Language"] += "_XX"
    file.save()


def with_obsolete(path):
    file = polib.pofile(str(path))
    file.append(polib.POEntry(msgctxt="gone", msgid="a", msgstr="b", obsolete=True))
    file.save()


def msgcat(path):
    if shutil.which("msgcat") is None:
        pytest.skip("gettext is not installed")
    command = ["msgcat", "--width=50", "--sort-output", "-o", str(path), str(path)]
    subprocess.run(command, check=True)


EDITORS = [lambda path: None, rewrap, other_line_ends, with_a_mark, headers_turned, with_obsolete]


@pytest.mark.parametrize("editor", [*EDITORS, msgcat])
@pytest.mark.parametrize("language", ["ru", "qtz"])
def test_an_unchanged_export_changes_no_byte(draft, editor, language):
    source = draft.read(SOURCE).replace("Some words.", "Other words.")
    draft.write(SOURCE, source)
    assert draft.run("export").code == 0
    editor(po_file(draft, language))
    ran = put_back(draft, language)
    assert ran.code == 0, ran.err
    assert draft.read(SOURCE) == source
    assert draft.run("export").code == 0  # saved by an editor, but nothing would be lost


TEXTS = {
    "title": "# Ludilo\n\nSaluton.",
    "p": 'Prenu $\\nabla f$ kaj `x`:\n\n- "unu"\n- du\\_',
    "c": 'print("unu\\n", 1)',
    "s#2": "co \\",
    "hint": "Konsilo.",
}


@pytest.mark.parametrize("editor", [*EDITORS, msgcat])
def test_translations_become_confirmed_twins_below_their_twins(draft, editor):
    translate(draft, TEXTS)
    editor(po_file(draft))
    ran = put_back(draft)
    assert ran.code == 0, ran.err
    assert f"{NAME}.po: 5 new, 0 changed, 0 as before, 3 not translated, 0 left out\n" in ran.out
    source = draft.read(SOURCE)
    header = f'# %% [markdown] lang="qtz" key="hint" en="{stamp("A hint.")}"{HINT}\n'
    assert f'Подсказка.\n"""\n\n{header}r"""\nKonsilo.\n"""\n\n# %% key="solution"' in source
    assert "# en: c\n# ru: в\n# qtz: co \\\n" in source
    assert source.count('lang="qtz"') == 4
    assert draft.run().code == 0
    assert draft.text("p", "qtz") == TEXTS["p"]
    assert draft.text("c", "qtz") == TEXTS["c"]
    assert "Konsilo." in draft.text("hint", "qtz")
    assert draft.text("s", "qtz").endswith("# co \\")
    assert "4 of 6 cells" in draft.text("title", "qtz")
    assert draft.run("export").code == 0
    assert draft.run("import", str(po_file(draft))).code == 0
    assert draft.read(SOURCE) == source


def test_changed_translations_are_changed_in_place(draft):
    translate(draft, {"p": TEXTS["p"], "s#1": "ao", "c": TEXTS["c"]})
    assert put_back(draft).code == 0
    lines = draft.read(SOURCE).split("\n")
    translate(draft, {"p": TEXTS["p"].replace("unu", "unua"), "s#1": "aao"})
    ran = put_back(draft)
    assert "0 new, 2 changed, 1 as before" in ran.out
    changed = [b for a, b in zip(lines, draft.read(SOURCE).split("\n"), strict=True) if a != b]
    assert changed == ['- "unua"', "    # qtz: aao"]


def test_two_languages_at_once_keep_their_order(draft):
    draft.write("pyproject.toml", DRAFT.replace('["qtz"]', '["qtz", "qty"]'))
    assert draft.run("export").code == 0
    for language in ("qty", "qtz"):
        translate(draft, {"begin": f"Vortoj {language}.", "s#2": language}, language)
    files = [str(po_file(draft, language)) for language in ("qty", "qtz")]
    assert draft.run("import", *files).code == 0
    assert draft.run().code == 0
    assert "# ru: в\n# qtz: qtz\n# qty: qty\n" in draft.read(SOURCE)
    assert draft.text("begin", "qty") == "Vortoj qty."


def test_a_complete_language_is_revised_in_the_same_way(draft):
    translate(draft, {"begin": "Другие слова."}, "ru")
    assert put_back(draft, "ru").code == 0
    assert draft.run().code == 0
    assert draft.text("begin", "ru") == "Другие слова."


def test_blank_lines_and_carriage_returns_of_an_editor_are_dropped(draft):
    translate(draft, {"begin": "\r\nVortoj.\r\nPli.\r\n"})
    assert put_back(draft).code == 0
    assert 'r"""\nVortoj.\nPli.\n"""' in draft.read(SOURCE)


# Stamps


def test_a_translation_of_an_older_text_stays_visibly_stale(draft):
    translate(draft, {"begin": "Vortoj."})
    draft.write(SOURCE, draft.read(SOURCE).replace("Some words.", "Other words."))
    assert put_back(draft).code == 0
    assert f'lang="qtz" key="begin" en="{stamp("Some words.")}"' in draft.read(SOURCE)
    assert draft.run("confirm", "3:begin", "--lang", "ru").code == 0
    assert draft.run().code == 0
    assert "has changed since" in draft.text("begin", "qtz")


def test_taking_the_fuzzy_mark_away_confirms(draft):
    draft.write(SOURCE, draft.read(SOURCE).replace("Some words.", "Other words."))
    assert draft.run().code == 1
    assert draft.run("export").code == 0
    file = read(draft, "ru")
    entry(file, "begin").flags.remove("fuzzy")
    file.save()
    ran = put_back(draft, "ru")
    assert (ran.code, "1 changed" in ran.out) == (0, True)
    assert draft.run().code == 0


def test_a_fuzzy_entry_keeps_the_old_stamp(draft):
    draft.write(SOURCE, draft.read(SOURCE).replace("Some words.", "Other words."))
    assert draft.run("export").code == 0
    translate(draft, {"begin": "Почти."}, "ru")
    assert put_back(draft, "ru").code == 0
    assert f'en="{stamp("Some words.")}"\nr"""\nПочти.\n"""' in draft.read(SOURCE)
    assert draft.run().code == 1


@pytest.mark.parametrize("key", ["begin", "s#1"])
def test_a_guess_of_the_editor_is_left_out(draft, key):
    file = read(draft)
    entry(file, key).msgstr, entry(file, key).flags = "Io.", ["fuzzy"]
    file.save()
    before = draft.read(SOURCE)
    ran = put_back(draft)
    assert ran.code == 1
    assert f'cell "{NAME}:{key}": [left-out]\n    it is marked fuzzy: a guess' in ran.err
    assert draft.read(SOURCE) == before


def test_an_older_translation_does_not_replace_a_newer_one(draft):
    translate(draft, {"begin": "Старые слова."}, "ru")
    draft.write(SOURCE, draft.read(SOURCE).replace("Some words.", "Other words."))
    assert draft.run("confirm", "3:begin").code == 0
    before = draft.read(SOURCE)
    ran = put_back(draft, "ru")
    assert ran.code == 1
    assert "a translation of today's text stands there already" in ran.err
    assert draft.read(SOURCE) == before


def edit_source(repo, old, new):
    assert repo.read(SOURCE).count(old) == 1
    repo.write(SOURCE, repo.read(SOURCE).replace(old, new))


def test_what_was_corrected_in_the_source_since_the_export_stays(draft):
    translate(draft, {"p": TEXTS["p"]}, "ru")
    edit_source(draft, "\nСлова.\n", "\nЛучшие слова.\n")
    assert put_back(draft, "ru").code == 0
    assert "Лучшие слова." in draft.read(SOURCE)
    assert TEXTS["p"] in draft.read(SOURCE)
    assert draft.run("export").code == 0
    assert entry(read(draft, "ru"), "begin").msgstr == "Лучшие слова."


@pytest.mark.parametrize("mark", [[], ["fuzzy"]])
def test_a_text_that_both_sides_changed_is_left_out(draft, mark):
    translate(draft, {"begin": "Другие слова.", "p": TEXTS["p"]}, "ru")
    file = read(draft, "ru")
    entry(file, "begin").flags = mark
    file.save()
    edit_source(draft, "\nСлова.\n", "\nЛучшие слова.\n")
    ran = put_back(draft, "ru")
    assert ran.code == 1
    assert "the translation in the source has changed too since the export" in ran.err
    assert "Лучшие слова." in draft.read(SOURCE)
    assert TEXTS["p"] in draft.read(SOURCE)
    assert draft.run("export").code == 2  # what was left out is not overwritten


def test_a_text_that_both_sides_changed_in_the_same_way_is_as_before(draft):
    translate(draft, {"begin": "Лучшие слова."}, "ru")
    edit_source(draft, "\nСлова.\n", "\nЛучшие слова.\n")
    assert "0 changed" in put_back(draft, "ru").out


def test_the_same_file_is_translated_and_imported_again_and_again(draft):
    for words in ("Vortoj.", "Bonaj vortoj.", "Tre bonaj vortoj."):
        translate(draft, {"begin": words})
        msgcat(po_file(draft))
        assert put_back(draft).code == 0
        assert words in draft.read(SOURCE)


def test_a_file_that_cannot_be_written_is_imported(draft, monkeypatch):
    translate(draft, {"begin": "Vortoj."})
    before = po_file(draft).read_bytes()
    write = importing.write_files

    def refuse(root, files, **how):
        if any(path.endswith(".po") for path in files):
            raise CourseError([])
        write(root, files, **how)

    monkeypatch.setattr(importing, "write_files", refuse)
    assert put_back(draft).code == 0
    assert "Vortoj." in draft.read(SOURCE)
    assert po_file(draft).read_bytes() == before


def test_a_file_whose_comments_an_editor_dropped_is_imported(draft):
    file = read(draft, "ru")
    for each in file:
        each.comment = ""
    entry(file, "begin").msgstr = "Другие слова."
    file.save()
    assert "1 changed" in put_back(draft, "ru").out
    entry(file, "begin").msgstr, entry(file, "begin").flags = "Почти.", ["fuzzy"]
    file.save()
    assert put_back(draft, "ru").code == 0
    assert 'lang="ru" key="begin"\nr"""\nПочти.' in draft.read(SOURCE)


@pytest.mark.parametrize("words", ["Слова.", "Почти."])
def test_a_confirmed_text_that_is_marked_fuzzy_is_confirmed_no_longer(draft, words):
    file = read(draft, "ru")
    entry(file, "begin").msgstr, entry(file, "begin").flags = words, ["fuzzy"]
    file.save()
    assert put_back(draft, "ru").code == 0
    assert f'# %% [markdown] lang="ru" key="begin"\nr"""\n{words}' in draft.read(SOURCE)
    assert draft.run().code == 1
    assert draft.run("export").code == 0
    assert entry(read(draft, "ru"), "begin").fuzzy


def test_what_was_confirmed_since_the_export_stays_confirmed(draft):
    edit_source(draft, "Some words.", "Other words.")
    assert draft.run("export").code == 0
    assert draft.run("confirm", "3:begin").code == 0
    before = draft.read(SOURCE)
    assert put_back(draft, "ru").code == 0
    assert draft.read(SOURCE) == before


def test_of_an_entry_that_an_editor_gave_plural_forms_the_first_is_taken(draft):
    file = read(draft)
    entry(file, "begin").msgid_plural = "Some words."
    entry(file, "begin").msgstr_plural = {0: "Vortoj.", 1: "Vortoj"}
    file.save()
    assert put_back(draft).code == 0
    assert "Vortoj." in draft.read(SOURCE)


def test_a_translated_comment_belongs_to_its_comment(draft):
    translate(draft, {"s#1": "ao"})
    draft.write(SOURCE, draft.read(SOURCE).replace("# en: a \\ b", "# en: quite another"))
    ran = put_back(draft)
    assert ran.code == 1
    assert "the comment has changed since the export" in ran.err
    assert "qtz" not in draft.read(SOURCE)


# Refused


BREAKING = {
    "quotes": ("begin", 'Io """ alia', "three double quotes"),
    "a header": ("begin", "Io\n# %% key=\"x\"\nx", "would begin a new cell"),
    "a header in code": ("c", 'print("unu", 1)\n  # %%', "would begin a new cell"),
    "a form feed": ("begin", "Io\x0calia", "U+000C"),
    "a line separator": ("begin", "Io\u2028alia", "U+2028"),
    "two lines": ("s#1", "unu\ndu", "a comment has one line"),
}  # fmt: skip


@pytest.mark.parametrize(("key", "text", "words"), BREAKING.values(), ids=BREAKING.keys())
def test_a_text_that_would_break_the_source_is_refused(draft, key, text, words):
    translate(draft, {key: text, "hint": "Konsilo."})
    err = refused(draft, "po-text")
    assert words in err
    if "\u2028" not in text:  # seen before the entries are
        line = entry(read(draft), key).linenum
        assert f'.po:{line}: cell "{NAME}:{key}": [po-text]' in err


def test_what_the_build_refuses_is_not_written(draft):
    translate(draft, {"c": "print(", "hint": "Konsilo."})
    err = refused(draft, "syntax")
    assert f'{po_file(draft)}:{entry(read(draft), "c").linenum}: cell "c": [syntax]' in err
    translate(draft, {"c": 'print("unu\\n", 2)'})
    refused(draft, "code-twins")
    translate(draft, {"c": "", "begin": " ".join(["vorto"] * 91)})
    refused(draft, "long-prose")


def test_two_entries_for_one_cell_are_refused(draft):
    file = read(draft)
    file.append(polib.POEntry(msgctxt=f"{NAME}:p", msgid="x", msgstr="y"))
    file.save()
    assert "is there 2 times" in refused(draft, "po-duplicate")


def test_entries_without_their_names_are_refused_in_one_sentence(draft):
    file = read(draft)
    for each in file:
        each.msgctxt = None
    file.save()
    assert refused(draft, "po-duplicate").count("[po-duplicate]\n    8 entries have no msg") == 1


def test_two_files_for_one_cell_are_refused(draft):
    translate(draft, {"begin": "Vortoj."})
    other = draft.root / "other.po"
    other.write_bytes(po_file(draft).read_bytes())
    ran = draft.run("import", str(po_file(draft)), str(other))
    assert ran.code == 2
    assert "[po-duplicate]" in ran.err


@pytest.mark.parametrize("language", ["de", "en", "", "zz_ZZ"])
def test_a_language_that_the_course_is_not_translated_into_is_refused(draft, language):
    file = read(draft)
    file.metadata["Language"] = language
    file.save()
    assert "the course is translated into ru, qtz" in refused(draft, "po-language")


def test_a_file_that_is_no_po_file_is_refused(draft):
    for data, rule in (
        (b"hello\n", "po-syntax"),
        (b'msgid "a"\nmsgstr what\n', "po-syntax"),
        (po_file(draft).read_bytes()[:-4], "po-syntax"),
        (b'msgid "a"\nmsgstr "\\321\\203"\n', "po-syntax"),
        ("msgid \"a\"\nmsgstr \"ё\"\n".encode("cp1251"), "po-encoding"),
    ):  # fmt: skip
        po_file(draft).write_bytes(data)
        refused(draft, rule)
    po_file(draft).unlink()
    refused(draft, "usage")


def test_a_cell_that_is_gone_is_left_out_and_the_rest_goes_in(draft):
    translate(draft, {"hint": "Konsilo.", "begin": "Vortoj."})
    source = draft.read(SOURCE)
    draft.write(SOURCE, source.replace('key="begin"', 'key="renamed"'))
    ran = put_back(draft)
    assert ran.code == 1
    assert f"'{NAME}:begin' is no cell of the course any more" in ran.err
    assert "1 new" in ran.out
    assert "Konsilo." in draft.read(SOURCE)


def test_an_import_while_the_source_is_broken_writes_nothing(draft):
    translate(draft, {"begin": "Vortoj."})
    draft.write(SOURCE, draft.read(SOURCE) + code("x", "x = ("))
    refused(draft, "syntax")


# The format


WRITTEN = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"], include_characters="\n\t"),
    min_size=1,
).filter(lambda text: text.strip())


@given(WRITTEN, WRITTEN, st.sampled_from([0, 20, 78]))
def test_any_text_survives_the_format(source, translation, width):
    cell = Cell("notebooks/src/module_03_x.py", 1, 3, "markdown", "k", source, "en")
    entry = Entry(cell, source, translation, "confirmed", cell)
    data = write_po([entry], "qtz", "en", {}, "x")
    saved = str(polib.pofile(data.decode(), wrapwidth=width)).encode()
    for each in (data, saved):
        language, [message] = read_po("x.po", each)
        assert (language, message.context) == ("qtz", "module_03_x:k")
        assert (message.source, message.translation) == (source, translation)


def test_the_commands_are_listed(repo):
    with pytest.raises(SystemExit):
        repo.run("--help")
    listed = repo.capsys.readouterr().out
    assert all(re.search(rf"^ +{name} ", listed, re.M) for name in ("export", "import"))
    assert "add-language" in listed
