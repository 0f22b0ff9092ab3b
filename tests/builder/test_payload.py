"""The cell that carries the library: what is packed, and what the cell does in a kernel."""

import hashlib
import os
import signal
import subprocess
import sys
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_build.library.deflate import deflate
from course_build.library.payload import digest, needed_files

from .conftest import code, prose, said

# Packing


@given(
    st.text(max_size=60) | st.text("ab\n", max_size=3000), st.text(max_size=300), st.integers(1, 99)
)
def test_what_is_packed_comes_out_of_zlib_again(text, shared, times):
    content, against = text.encode() * times, shared.encode() * times
    reader = zlib.decompressobj(-15, zdict=against) if against else zlib.decompressobj(-15)
    assert reader.decompress(deflate(content, against)) == content
    assert reader.eof


def test_the_bytes_are_the_same_on_every_machine_and_nearly_as_few_as_zlibs():
    """The digest stands here because no zlib, Python or hash seed has a part in it."""
    lines = (f"def f_{n}(x):\n    return {n * n % 97} * x\n" for n in range(500))
    content = "\n\n".join(lines).encode()
    made = deflate(content)
    assert hashlib.sha256(made).hexdigest()[:16] == DIGEST
    assert len(made) < 1.03 * len(zlib.compress(content, 9))


DIGEST = "b3c21b6b70ceff1f"


# Which files are packed


def files(**modules):
    """Library files; `a__b` is the module a.b."""
    return {
        f"course_lib/{name.replace('__', '/')}.py".replace("/init.", "/__init__."): text.encode()
        for name, text in modules.items()
    }


def names(library, *modules):
    found = needed_files(library, [f"course_lib.{module}" for module in modules])
    return {path.removeprefix("course_lib/").removesuffix(".py") for path in found}


def test_what_is_imported_however_deep_is_packed_and_nothing_else():
    library = files(
        init="", text="", other="",
        a="from course_lib.b import x\n", b="import math\nfrom course_lib.c import (\n    y,\n)\n",
        c="def f():\n    from course_lib.d import z\n", d="'''from course_lib.other import x'''\n",
    )  # fmt: skip
    assert names(library, "a") == {"__init__", "text", "a", "b", "c", "d"}
    assert names(library) == set()


LAZY = (
    'WHERE = {\n    "f": "course_lib.p.f",\n    "g": "course_lib.p.g",\n}\n\n\n'
    "def __getattr__(name):\n    return getattr(import_module(WHERE[name]), name)\n"
)


def test_of_a_package_come_its_own_text_what_that_imports_and_what_is_asked_of_it():
    library = files(
        init="", p__init="from course_lib.base import x\n" + LAZY, base="",
        p__f="from course_lib.p.inner.deep import x\n", p__g="", p__inner__init="",
        p__inner__deep="", a="from course_lib.p import f\n", b="from course_lib.p import inner\n",
    )  # fmt: skip
    inside = {"__init__", "p/__init__", "base"}
    assert names(library, "p.g") == inside | {"p/g"}
    assert names(library, "a") == inside | {"a", "p/f", "p/inner/__init__", "p/inner/deep"}
    assert names(library, "b") == inside | {"b", "p/inner/__init__"}


def test_a_packed_file_that_is_no_python_is_named(repo):
    repo.write("course_lib/a.py", "from course_lib.b import x\n\n\ndef f():\n    return 1\n")
    repo.write("course_lib/b.py", "x = (\n")
    err = repo.refuse(code("e", "from course_lib.a import f", ' role="library"'))
    assert said("course_lib/b.py", 1, None, "library-syntax").search(err)


def test_a_name_that_a_package_gives_only_when_asked_can_be_shown_and_imported(repo):
    repo.write("course_lib/p/__init__.py", "from importlib import import_module\n\n" + LAZY)
    repo.write("course_lib/p/f.py", "def f():\n    return 1\n")
    repo.write("course_lib/p/g.py", "def g():\n    return 1\n")
    repo.build(
        code("e", "from course_lib.p import f"),
        code("l", "from course_lib.p import g", ' role="library"'),
    )
    assert repo.text("e").startswith("def f():")
    assert '"p/g.py"' in repo.text("course-lib")
    assert '"p/f.py"' not in repo.text("course-lib")


# A class that is both shown and packed

BOX = "class Box:\n    def __init__(self, value):\n        self.value = value\n"
BOXES = f"""{BOX}

def is_box(thing):
    return isinstance(thing, Box)


def check_box(thing):
    return is_box(thing)


def make_box():
    return Box(1)


def boxes(thing: Box):
    return [thing]
"""
SHOW = code("box", "from course_lib.boxes import Box") + prose("p")


def give(*names):
    return code("give", f"from course_lib.boxes import {', '.join(names)}", ' role="library"')


MEET = {
    "packed code asks": (give("is_box"), "is_box(Box(1))", "asks for the packed one"),
    "packed code asks further in": (give("check_box"), "print(check_box)", "is_box"),
    "the notebook asks": (give("make_box"), "isinstance(make_box(), Box)", "make_box makes the"),
    "it catches": (give("make_box"), "try:\n    make_box()\nexcept Box:\n    pass", "make_box"),
    "it matches": (
        give("make_box"),
        "match make_box():\n    case Box():\n        pass",
        "make_box",
    ),
    "it compares types": (give("make_box"), "type(make_box()) is Box", "make_box"),
}


@pytest.mark.parametrize(("given", "text", "words"), MEET.values(), ids=MEET.keys())
def test_two_classes_of_one_name_may_not_meet_in_a_test(repo, given, text, words):
    repo.write("course_lib/boxes.py", BOXES)
    err = repo.refuse(SHOW, given, code("use", text))
    assert '"use": [two-classes]' in err
    assert 'Box, which cell "box" shows, is ' in err
    assert words in err
    assert 'role="library"' in err


APART = {
    "nobody asks": (give("make_box", "boxes"), "boxes(Box(1)), make_box()"),
    "nobody reaches who asks": (give("is_box", "boxes"), "boxes(Box(1))"),
    "nobody makes another": (give("is_box"), "isinstance(3, Box)"),
}


@pytest.mark.parametrize(("given", "text"), APART.values(), ids=APART.keys())
def test_two_classes_that_do_not_meet_do_no_harm(repo, given, text):
    repo.write("course_lib/boxes.py", BOXES)
    repo.build(SHOW, given, code("use", text))


def test_a_class_that_the_notebook_only_imports_is_one_class(repo):
    repo.write("course_lib/boxes.py", BOXES)
    repo.build(give("Box", "is_box", "make_box"), code("use", "is_box(Box(1)), isinstance(0, Box)"))


def test_a_shown_definition_is_the_notebooks_code_too(repo):
    more = "\n\ndef all_boxes(things):\n    return all(map(is_box, things))\n"
    repo.write("course_lib/boxes.py", BOXES + more)
    show = code("all", "from course_lib.boxes import all_boxes")
    err = repo.refuse(SHOW, show)
    assert '"all": [two-classes]' in err


# In a kernel


TEXT = 'LANGUAGE = "en"\n'
WORK = """def double(x):
    # why this is so
    return 2 * x


def fail():
    raise KeyError("it failed here")
"""


class Kernel:
    """A toy notebook's library cell, run by a fresh Python in an empty folder."""

    def __init__(self, repo, tmp_path):
        self.repo, self.temp, self.home = repo, tmp_path / "temp", tmp_path / "home"
        self.temp.mkdir()
        self.home.mkdir()
        repo.write("course_lib/text.py", TEXT)
        repo.write("course_lib/work.py", WORK)
        repo.build(code("e", "from course_lib.work import double", ' role="library"'))

    def start(self, after, before="", *, language="en", cell=None, **environment):
        cell = self.repo.text("course-lib", language) if cell is None else cell
        text = f"{before}\n{cell}\n{after}\n"
        bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        around = {**bare, "TMPDIR": str(self.temp), "PYTHONDONTWRITEBYTECODE": "1", **environment}
        return subprocess.Popen(
            [sys.executable, "-c", text], cwd=self.home, env=around,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, encoding="utf-8",
        )  # fmt: skip

    def run(self, after, before="", **more):
        process = self.start(after, before, **more)
        out, err = process.communicate(timeout=60)
        return out, err

    def left(self):
        return [path.name for path in self.temp.iterdir()]


@pytest.fixture
def kernel(repo, tmp_path_factory):
    return Kernel(repo, tmp_path_factory.mktemp("kernel"))


WHERE = "import course_lib.work as work, course_lib.text; print(work.__file__)"


def test_the_files_lie_in_a_folder_of_their_own_until_the_kernel_ends(kernel):
    show = "from course_lib.work import double; import inspect; print(inspect.getsource(double))"
    out, err = kernel.run(f"{WHERE}; {show}")
    assert err == ""
    place, source = out.split("\n", 1)
    assert place.startswith(f"{kernel.temp}/course_lib-")
    assert source.strip() == WORK.split("\n\n\n")[0]
    assert kernel.left() == []


def test_a_traceback_shows_the_librarys_source_and_the_folder_goes_all_the_same(kernel):
    _, err = kernel.run("from course_lib.work import fail\nfail()")
    assert 'raise KeyError("it failed here")\n' in err
    assert 'course_lib/work.py", line 7, in fail' in err
    assert kernel.left() == []


def test_the_library_speaks_the_notebooks_language(kernel):
    for language in ("en", "ru"):
        out, _ = kernel.run(f"{WHERE}; print(course_lib.text.LANGUAGE)", language=language)
        assert out.split()[-1] == language


def test_a_cell_that_is_run_again_changes_nothing(kernel):
    cell = kernel.repo.text("course-lib")
    out, err = kernel.run(f"{WHERE}\nfirst = work\n{cell}\n{WHERE}; print(first is work)")
    assert err == ""
    first, second, same = out.splitlines()
    assert (first, same) == (second, "True")


def test_two_kernels_at_once_do_not_meet(kernel):
    wait = f"{WHERE}; import sys; sys.stdout.flush(); sys.stdin.read()"
    started = [kernel.start(wait, language=language) for language in ("en", "ru")]
    places = [process.stdout.readline() for process in started]
    assert len(set(places)) == len(kernel.left()) == 2
    for process in started:
        process.communicate(timeout=60)
    assert kernel.left() == []


def test_the_same_library_where_it_can_be_imported_is_used(kernel):
    out, err = kernel.run(WHERE, PYTHONPATH=str(kernel.repo.root))
    assert (out, err) == (f"{kernel.repo.root}/course_lib/work.py\n", "")


@pytest.mark.skipif(os.name == "nt", reason="Windows ends a process without a word to it")
def test_a_kernel_that_is_told_to_end_takes_its_folder_along_and_ends(kernel):
    process = kernel.start(f"{WHERE}; import sys; sys.stdout.flush(); sys.stdin.read()")
    assert process.stdout.readline().startswith(f"{kernel.temp}/course_lib-")
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGTERM
    assert kernel.left() == []


OTHERS = {
    "another text": ("work.py", WORK + "\n"),
    "another text of one language": ("work.py", WORK.replace("\n", "\r\n")),
    "a file less": ("work.py", None),
}


@pytest.mark.parametrize(("name", "text"), OTHERS.values(), ids=OTHERS.keys())
@pytest.mark.parametrize("before", ["", "import course_lib.text"])
def test_another_library_is_named_and_not_used(kernel, name, text, before):
    if text is None:
        (kernel.repo.root / "course_lib" / name).unlink()
    else:
        kernel.repo.write(f"course_lib/{name}", text)
    out, err = kernel.run(WHERE, before, PYTHONPATH=str(kernel.repo.root))
    told, place = out.splitlines()
    other = kernel.repo.root / "course_lib"
    assert told == f"There is another course_lib, in {other}; this notebook uses its own."
    assert place.startswith(f"{kernel.temp}/course_lib-")
    assert err == ""


def test_a_learners_file_of_that_name_is_not_used_either(kernel):
    (kernel.home / "course_lib.py").write_text("print('mine')\n")
    out, _ = kernel.run(WHERE)
    assert out.startswith("There is another course_lib, in ")
    assert "mine" not in out


def changed(cell):
    """The cell with a letter of work.py changed, a part or all of it missing, and another name."""
    at = cell.index('"work.py": "') + len('"work.py": "')
    end = cell.index('"', at)
    line = cell[at:end]
    other = "b" if line[9] != "b" else "c"
    yield cell[:at] + line[:9] + other + line[10:] + cell[end:]
    yield cell[:at] + line[:-3] + cell[end:]
    yield cell[:at] + cell[end:]
    yield cell.replace('"work.py"', '"../../work.py"')


def test_a_changed_library_is_refused_before_anything_is_written(kernel):
    cell = kernel.repo.text("course-lib")
    for spoilt in changed(cell):
        assert spoilt != cell
        _, err = kernel.run(WHERE, cell=spoilt)
        assert "ValueError: this cell was changed: its digest should begin with " in err
        assert "take the cell anew" in err
    assert kernel.left() == []
    assert not (kernel.temp.parent / "work.py").exists()


def test_the_digest_can_be_had_with_sha256sum(kernel):
    library = {
        name: (kernel.repo.root / "course_lib" / name).read_bytes()
        for name in ("__init__.py", "text.py", "work.py")
    }
    sums = [f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in library.items()]
    assert hashlib.sha256("".join(sums).encode()).hexdigest() == digest(library)
    assert f'"{digest(library)}"' in kernel.repo.text("course-lib")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_that_ends_leaves_the_files(kernel):
    child = "import os, sys\nif not os.fork():\n    sys.exit()\nos.wait()\n"
    out, err = kernel.run(f"{child}{WHERE}")
    assert err == ""
    assert out.startswith(f"{kernel.temp}/course_lib-")
