"""Nothing in the builder or the library counts to two: languages are data, never cases."""

import ast
from pathlib import Path

from course_build.base.settings import SETTINGS_FILE, parse_settings

ROOT = Path(__file__).resolve().parents[1]
LANGUAGES = parse_settings((ROOT / SETTINGS_FILE).read_text(encoding="utf-8")).languages
DATA = {
    # What the grammar calls its words in code is English, whoever reads it.
    ("course_lib/tales.py", "_TALE_NAMES"),
}


def rows_of_languages(table):
    """The values that stand in a table under the code of a language."""
    pairs = zip(table.keys, table.values, strict=True)
    return [row for key, row in pairs if isinstance(key, ast.Constant) and key.value in LANGUAGES]


def codes_in_logic(path):
    """Lines where a language's code stands elsewhere than in a table with a row a language."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tables = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            tables |= set(node.keys)
            tables |= {part for row in rows_of_languages(node) for part in ast.walk(row)}
    name = path.relative_to(ROOT).as_posix()
    for statement in tree.body:
        targets = [
            target.id for target in getattr(statement, "targets", ()) if hasattr(target, "id")
        ]
        if "LANGUAGE" in targets or any((name, target) in DATA for target in targets):
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Constant) and node.value in LANGUAGES and node not in tables:
                yield f"{name}:{node.lineno}"


def test_no_code_asks_for_a_language_by_its_name():
    packages = [ROOT / "course_build", ROOT / "course_lib"]
    files = [path for package in packages for path in sorted(package.rglob("*.py"))]
    assert len(files) > 100
    assert [place for path in files for place in codes_in_logic(path)] == []
