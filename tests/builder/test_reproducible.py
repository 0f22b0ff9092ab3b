"""The same source gives the same bytes everywhere, and the library is never imported."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from course_build.base.files import read_files
from course_build.base.settings import Settings
from course_build.building.course import Files, build_course

from .conftest import NAME, code, code_twins, prose

ROOT = Path(__file__).resolve().parents[2]
BUILD = """
import sys
from pathlib import Path


class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("course_lib", "torch", "numpy", "matplotlib"):
            raise ImportError(f"{name} is imported by the builder")


sys.meta_path.insert(0, Blocked())
from course_build.cli import main

code = main([], Path(sys.argv[1]))
assert not {"course_lib", "torch", "numpy"} & {name.split(".")[0] for name in sys.modules}
assert sys.modules["rfc3987_syntax"] is None, "importing it costs more than the build"
sys.exit(code)
"""


def course(repo):
    """A source that uses everything whose order could vary."""
    repo.write(
        "course_lib/a.py",
        "import json\nimport math\nfrom typing import Any, Literal\n\n"
        + "".join(
            f"def f{n}(x: Any) -> Literal['a']:\n    return math, json\n\n\n" for n in range(9)
        )
        + f"def top():\n    return {{{', '.join(f'f{n}' for n in range(9))}}}\n",
    )
    repo.reference("module_03", {"b": 1.5, "a": [None]})
    repo.source(
        code("e", "from course_lib.a import top\nfrom course_lib.scaling import scale"),
        prose("p", "A [link](x) and $y$.", "[Ссылка](x) и $y$."),
        code_twins("t", 'print("one")', 'print("один")'),
        code("r", "x = 1", ' role="reference" reference="module_03"'),
        code("c", "# en: a\n# ru: б\nprint(top())"),
    )


def digests(repo):
    return {path: hashlib.sha256(data).hexdigest() for path, data in repo.outputs().items()}


@pytest.mark.parametrize("seed", ["1", "12345"])
def test_any_hash_seed_gives_the_same_bytes_without_importing_the_library(repo, seed):
    course(repo)
    assert repo.run().code == 0
    before = digests(repo)
    for path in repo.outputs():
        (repo.root / path).unlink()
    ran = subprocess.run(
        [sys.executable, "-c", BUILD, repo.root],
        cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": "C"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert digests(repo) == before


def test_the_order_in_which_files_are_read_does_not_matter(repo):
    repo.source(name="module_04_other")
    course(repo)
    files = read_files(repo.root)
    turned = Files(*(dict(reversed(list(part.items()))) for part in vars(files).values()))
    settings = Settings(("en", "ru"), "", "main")
    one = build_course(files, settings, list(files.sources), ["en", "ru"])
    other = build_course(turned, settings, list(turned.sources), ["ru", "en"])
    assert dict(one.notebooks) == dict(other.notebooks)
    assert dict(one.solved) == dict(other.solved)


def test_modules_and_languages_built_alone_are_the_same(repo):
    course(repo)
    repo.source(name="module_04_other")
    assert repo.run().code == 0
    together = digests(repo)
    for path in repo.outputs():
        (repo.root / path).unlink()
    for module in ("4", "3"):
        for language in ("ru", "en"):
            assert repo.run("--module", module, "--lang", language).code == 0
    assert digests(repo) == together


def test_the_embedded_definitions_run_without_the_library(repo):
    course(repo)
    assert repo.run().code == 0
    cells = repo.notebook("ru")["cells"]
    program = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
    ran = subprocess.run(
        [sys.executable, "-I", "-c", program], cwd="/", capture_output=True, text=True, check=False,
        encoding="utf-8", env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert "один" in ran.stdout


def test_nothing_depends_on_where_the_repository_lies(repo, tmp_path_factory, capsys):
    course(repo)
    assert repo.run().code == 0
    elsewhere = tmp_path_factory.mktemp("elsewhere with spaces")
    other = type(repo)(elsewhere, capsys)
    course(other)
    assert other.run().code == 0
    assert digests(other) == digests(repo)
    assert str(repo.root) not in other.read(f"notebooks/en/{NAME}.ipynb")
