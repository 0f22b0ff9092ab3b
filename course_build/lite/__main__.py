"""Build Module 4's first stage for the browser into build/lite/, and prove it there.

    python -m course_build.lite

The notebooks are cut from the rendered ones; JupyterLite, Pyodide and the kernel's wheels come
from PyPI and npm, once. Then each language's notebook is run in Chromium, with every other host
out of reach; it must print what the whole notebook does. Only what is proven replaces the last
build. Exit codes: 0 done; 2 broken, or a part cannot be had.
"""

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from course_build.base.settings import SETTINGS_FILE, parse_settings
from course_build.environment.bootstrap import BootstrapError, Stopped, ensure
from course_build.lite.cut import NAME, STEM, cut
from course_build.lite.parts import PINS, PartError, Pins, call, fetch, lay_out, read_pins
from course_build.lite.proof import ProofError, prove
from course_build.notebook.glossary_links import PAGE
from course_build.teaching.assignment import unlinked

ROOT = Path(__file__).resolve().parents[2]
MADE, NEW, OLD = "build/lite", "build/lite-new", "build/lite-old"
ENVIRONMENT, PARTS = "build/lite-env", "build/lite-parts"
PYODIDE = "static/pyodide"  # where JupyterLite looks for it
PAGE_SETTINGS = {  # the proof talks to the page
    "jupyter-lite-schema-version": 0,
    "jupyter-config-data": {"exposeAppInBrowser": True},
}


def contents(root: Path, languages: Sequence[str], pins: Pins) -> dict[str, bytes]:
    """What a reader finds: each language's notebook, and the glossary that it links to."""
    made = {}
    for language in languages:
        folder = root / "notebooks" / language
        whole = json.loads((folder / f"{STEM}.ipynb").read_text(encoding="utf-8"))
        part = cut(whole, language, pins.pyodide)
        made[f"{language}/{NAME}.ipynb"] = json.dumps(part, ensure_ascii=False, indent=1).encode()
        page = (folder / PAGE).read_text(encoding="utf-8")
        made[f"{language}/{PAGE}"] = unlinked(page, {PAGE, ""}).encode()
    return made


def build(root: Path, languages: Sequence[str]) -> Path:
    """Build into a folder of its own, from nothing; return where the pages are."""
    pins = read_pins(PINS.read_text(encoding="utf-8"))
    python = ensure(root / ENVIRONMENT, (PINS,))
    lock = fetch(python, pins, root / PARTS)
    new = root / NEW
    shutil.rmtree(new, ignore_errors=True)
    lay_out(pins, lock, root / PARTS, new / PYODIDE)
    (new / "jupyter-lite.json").write_text(json.dumps(PAGE_SETTINGS), encoding="utf-8")
    for path, content in contents(root, languages, pins).items():
        target = new / "content" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    program = [str(python), "-m", "jupyterlite_core", "build", "--no-sourcemaps"]
    folders = ["--lite-dir", str(new), "--contents", str(new / "content")]
    # It keeps notes in the folder it is started in; old ones make it leave Pyodide's address out.
    call([*program, *folders, "--output-dir", str(new / "pages")], "JupyterLite's pages", new)
    if f"./{PYODIDE}/" not in (new / "pages/jupyter-lite.json").read_text(encoding="utf-8"):
        raise PartError("JupyterLite's pages would ask another host for Pyodide")
    return new / "pages"


def publish(root: Path, pages: Path) -> None:
    """Put the new pages in the place of the last ones."""
    made, old = root / MADE, root / OLD
    shutil.rmtree(old, ignore_errors=True)
    if made.exists():
        made.rename(old)
    pages.rename(made)
    shutil.rmtree(old, ignore_errors=True)
    shutil.rmtree(root / NEW)


def size(folder: Path) -> float:
    """How many MB the files of a folder hold."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def main(argv: list[str] | None = None, root: Path = ROOT) -> int:
    """Build, prove, publish; say what was proven and how to open it."""
    parser = argparse.ArgumentParser(prog="python -m course_build.lite", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.parse_args(argv)
    languages = parse_settings((root / SETTINGS_FILE).read_text(encoding="utf-8")).languages
    try:
        pages = build(root, languages)
        for language in languages:
            print(prove(pages, root, language), flush=True)
        publish(root, pages)
    except (BootstrapError, PartError, ProofError, OSError) as error:
        print(f"broken: {error}\nthe last good build, if any, is in {MADE}", file=sys.stderr)
        return 2
    except Stopped as stop:
        return stop.code
    print(f"{size(root / MADE):.0f} MB in {MADE}/; to open it: python3 -m http.server -d {MADE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
