"""A third language on the real course, from its first command to its promotion.

The language is made up: qtz, one of the codes that ISO 639 keeps free. Its words are English ones
with an ending, and it parts thousands with a space; formulas, code and links stay.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import polib
import pytest

from course_build.base.chrome import CHROME
from course_build.base.findings import BROKEN, DONE, WORK
from course_build.source.twins import stamp

from .conftest import Repository, code, prose

pytestmark = pytest.mark.delivery

ROOT = Path(__file__).resolve().parents[2]
MASKS = "course_lib.contracts.masks.causal_mask"
COPIED = ("course_lib", "notebooks/src", "reference")
KEPT = re.compile(
    r"```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|\]\([^)]*\)|<[^>]*>|\{[^}]*\}|https?://\S+", re.DOTALL
)
WORD = re.compile(r"(?<![\w\\.])[A-Za-z]{3,}(?![\w(])")
THOUSANDS = re.compile(r"(?<=\d),(?=\d{3})")
UNTRANSLATED = CHROME["en"]["untranslated"]
OUTDATED = CHROME["en"]["outdated"]


def in_qtz(text):
    """Give every word outside of code, formulas and link targets the ending of the language."""
    kept = [*KEPT.findall(text), ""]
    parts = [THOUSANDS.sub("\u00a0", WORD.sub(r"\g<0>oj", p)) for p in KEPT.split(text)]
    return "".join(part + keep for part, keep in zip(parts, kept, strict=True))


def test_the_language_leaves_formulas_code_and_links_alone():
    text = "Take $\\nabla x$ and `my words`, [see it](x.ipynb#there), 4,000 times."
    assert in_qtz(text) == (
        "Takeoj $\\nabla x$ andoj `my words`, [seeoj it](x.ipynb#there), 4\u00a0000 timesoj."
    )


class Bare(Repository):
    """A repository that is there already."""

    def __init__(self, root, capsys):
        self.root, self.capsys = root, capsys


@pytest.fixture
def course(tmp_path, capsys):
    """The real sources, library and settings, copied."""
    for folder in COPIED:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return Bare(tmp_path, capsys)


def done(course, *arguments):
    ran = course.run(*arguments)
    assert ran.code == DONE, ran.err
    return ran


def notebook(course, stem, language):
    cells = course.notebook(language, name=stem)["cells"]
    return {cell["id"]: "".join(cell["source"]) for cell in cells}


def translate(path):
    """Translate every third entry as a program does, code left alone; return them by context."""
    file = polib.pofile(str(path))
    entries = [entry for entry in file[::3] if not entry.comment.startswith("code")]
    for entry in entries:
        entry.msgstr = in_qtz(entry.msgid)
    file.save()
    return {entry.msgctxt: entry for entry in entries}


def without_marks(text):
    return text.replace(f"{UNTRANSLATED}\n\n", "").replace(f"\n\n{UNTRANSLATED}", "")


def test_a_third_language_from_its_first_command_to_its_promotion(course, monkeypatch):
    sources = sorted((course.root / "notebooks/src").glob("module_*.py"))
    stem = sources[-1].stem
    source, po = f"notebooks/src/{stem}.py", f"build/po/qtz/{stem}.po"
    before = course.read(source)
    keys = re.findall(r'lang="en" key="([\w-]+)"', before)

    # one command, and the course is there, in English
    done(course, "add-language", "qtz")
    done(course, "--module", stem, "--lang", "en", "qtz")
    assert course.read(source) == before
    english, draft = (notebook(course, stem, language) for language in ("en", "qtz"))
    assert english.keys() == draft.keys()
    for key in draft.keys() - {"title"}:
        assert without_marks(draft[key]).replace('\n    "qtz",\n', '\n    "en",\n') == english[key]
    assert sum(UNTRANSLATED in text for text in draft.values()) > 100

    # out, translated in part, and back
    done(course, "export", "--lang", "qtz", "--module", stem)
    translated = translate(course.root / po)
    done(course, "import", str(course.root / po))
    done(course, "--module", stem)
    done(course, "--check", "--module", stem)
    draft = notebook(course, stem, "qtz")
    mine = [name.split(":")[1] for name in translated if "#" not in name]
    for key in mine:
        assert UNTRANSLATED not in draft[key]
        assert translated[f"{stem}:{key}"].msgstr.split("\n")[-1] in draft[key]
    marked = {key for key, text in draft.items() if UNTRANSLATED in text}
    assert marked < set(keys) - set(mine)
    assert len(marked) > len(mine) > 30
    assert f"progress:** {len(mine)} of {len(keys)} cells" in draft["title"]
    told = done(course, "status", "--lang", "qtz", "--module", stem).out
    assert re.search(rf"qtz \(draft\) +{len(keys)} +{len(mine)} +0 +0 ", told)

    # nothing is lost or changed by going out and back once more
    woven = course.read(source)
    done(course, "export", "--lang", "qtz", "--module", stem)
    done(course, "import", str(course.root / po))
    assert course.read(source) == woven

    # English moves on: the complete language has to follow, the draft need not
    key = mine[1]
    old = translated[f"{stem}:{key}"].msgid
    course.write(source, woven.replace(f"\n{old}\n", f"\n{old} Indeed.\n", 1))
    ran = course.run("--module", stem)
    assert ran.code == WORK
    changed = [f"changed after the {code} text" in ran.err for code in ("ru", "qtz")]
    assert changed == [True, False]
    done(course, "confirm", f"{stem}:{key}", "--lang", "ru")
    done(course, "--module", stem, "--lang", "qtz")
    assert OUTDATED in notebook(course, stem, "qtz")[key]
    assert f'en="{stamp(old)}"' in course.read(source)

    # promoted, its gaps are errors
    settings = re.sub(r"drafts = .*\n", "", course.read("pyproject.toml"))
    course.write("pyproject.toml", settings.replace('"ru"]', '"ru", "qtz"]'))
    monkeypatch.setitem(CHROME, "qtz", CHROME["en"])
    assert "[glossary]\n    attention has no word in qtz" in course.broken()
    (course.root / "notebooks/src/glossary.toml").unlink()
    ran = course.run("--module", stem)
    assert ran.code == BROKEN
    assert ran.err.count("the qtz twin is missing") == len(keys) - len(mine)


STUB = 'def my_mask(t_q, t_k, *, query_offset=0):\n    raise NotImplementedError("yours")'
WRONG = "def wrong_mask(t_q, t_k, *, query_offset=0):\n    return torch.ones(t_q, t_k).bool()"
CAUGHT = """try:
    check_causal_mask_contract(wrong_mask)
except ContractViolation as violation:
    print(violation)"""


def test_a_notebook_of_a_language_without_texts_runs_to_its_end(course):
    """Contracts, reports and tales speak English there; nothing of them raises."""
    for path in (course.root / "notebooks/src").glob("*.py"):
        path.unlink()
    course.source(
        code("torch", "import torch"),
        code("broken", "from course_lib.report import ContractViolation", ' role="library"'),
        code("mask", f"from {MASKS} import check_causal_mask_contract"),
        code("tales", "from course_lib.tales import tale_words", ' role="library"'),
        prose("p"),
        code("stub", f"# en: a stub\n# ru: заготовка\n{STUB}\n\n\n{WRONG}"),
        code("see", "print(check_causal_mask_contract(my_mask))\nprint(*tale_words()[4:7])"),
        prose("q"),
        code("break", CAUGHT),
    )
    done(course, "add-language", "qtz")
    done(course)
    stem = "module_03_toy"
    path, executed = course.root / f"notebooks/qtz/{stem}.ipynb", course.root / "executed.ipynb"
    command = [sys.executable, "-m", "papermill", path, executed, "--no-progress-bar"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=course.root)
    assert ran.returncode == 0, ran.stderr
    outputs = {
        cell["id"]: "".join(text for o in cell.get("outputs", ()) for text in o.get("text", ()))
        for cell in json.loads(executed.read_text(encoding="utf-8"))["cells"]
    }
    told = "○ check_causal_mask_contract: not attempted\nSun Moon Eclipse\n"
    assert outputs["see"] == told
    assert outputs["break"].startswith("✗ check_causal_mask_contract: the clause ")
