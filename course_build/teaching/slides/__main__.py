"""Write each module's slides in every language into build/teaching/slides/, to be shown offline.

    python -m course_build.teaching.slides

Notebooks whose executed copies are missing or old are run first. Exit codes: 0 done; 2 broken (a
notebook fails).
"""

import argparse
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

from course_build.base.chrome import name_language
from course_build.base.files import changed_files, write_files
from course_build.base.findings import CourseError
from course_build.base.settings import SETTINGS_FILE, Settings, parse_settings
from course_build.notebook.glossary_links import PAGE
from course_build.notebook.head import in_colab, links
from course_build.outputs.executed import fresh_copies, joined, read_notebook
from course_build.site.__main__ import copy_mathjax
from course_build.teaching.slides.deck import deck
from course_build.teaching.slides.pages import Written, code_style

ROOT = Path(__file__).resolve().parents[3]
STATIC = Path(__file__).resolve().parent / "static"
FOLDER = "build/teaching/slides"
STYLE = "a11y-high-contrast-light"  # of code, as on the pages
FONTS = ("", "-Bold", "-Oblique", "Mono", "Mono-Bold")  # of DejaVuSans, as in the figures
REVEAL = ("LICENSE", "dist/reset.css", "dist/reveal.css", "dist/reveal.js", "plugin/notes/notes.js")


def slides_of(
    copies: Mapping[str, Mapping[str, bytes]], settings: Settings, has_glossary: bool
) -> dict[str, bytes]:
    """Turn executed notebooks, {language: {path: content}}, into {LANGUAGE/name: content}."""
    made = {}
    for language, notebooks in copies.items():
        stems = [PurePosixPath(path).stem for path in notebooks]
        for path, content in notebooks.items():
            stem = PurePosixPath(path).stem
            first, *cells = read_notebook(path, content)["cells"]
            head = links(stem, stems, language, settings, has_glossary)
            first = {**first, "source": joined(first["source"]).replace(f"{head}\n\n", "", 1)}
            written = Written(stem, _origin(stem, language, settings))
            stacks = deck([first, *cells])
            made[f"{language}/{stem}.html"] = written.page(stacks, language)
            made |= {f"{language}/{name}": figure for name, figure in written.figures.items()}
    return made


def _origin(stem: str, language: str, settings: Settings) -> str:
    """Where a deck is from, with the ways back, and to the same deck in the other languages."""
    notebook = f"`notebooks/{language}/{stem}.ipynb`"
    if settings.site:
        notebook = f"[{notebook}]({settings.site}{language}/{stem}.html)"
    elif settings.repository:
        notebook = f"[{notebook}]({in_colab(stem, language, settings)})"
    others = [
        f"[{name_language(other)}](../{other}/{stem}.html)"
        for other in settings.languages
        if other != language
    ]
    return " · ".join([settings.title(language), notebook, *others])


def scripts() -> dict[str, bytes]:
    """What the decks share: reveal.js, fonts, and how they look: {_reveal/name: content}."""
    package = Path(find_spec("sphinx_revealjs").origin).parent / "_static" / "revealjs"
    files = {name: (package / name).read_bytes() for name in REVEAL}
    files |= {path.name: path.read_bytes() for path in STATIC.iterdir()}
    fonts = Path(find_spec("matplotlib").origin).parent / "mpl-data" / "fonts" / "ttf"
    for name in ("LICENSE_DEJAVU", *(f"DejaVuSans{font}.ttf" for font in FONTS)):
        files[f"fonts/{name}"] = (fonts / name).read_bytes()
    files["deck.css"] += f"{code_style(STYLE)}\n".encode()
    return {f"_reveal/{name}": content for name, content in files.items()}


def write_slides(root: Path) -> None:
    """Make every deck, then write all; what no module makes any more goes."""
    settings = parse_settings((root / SETTINGS_FILE).read_text(encoding="utf-8"))
    has_glossary = (root / "notebooks" / settings.languages[0] / PAGE).is_file()
    copies = fresh_copies(root, settings.languages)
    made = slides_of(copies, settings, has_glossary) | scripts()
    files = {f"{FOLDER}/{name}": content for name, content in made.items()}
    write_files(root, {path: files[path] for path in changed_files(root, files)})
    copy_mathjax(root / FOLDER / "_mathjax")
    for path in (root / FOLDER).rglob("*"):
        name = path.relative_to(root).as_posix()
        if path.is_file() and name not in files and "/_mathjax/" not in name:
            path.unlink()


def main(argv: list[str] | None = None, root: Path = ROOT) -> int:
    """Write the slides and say where they are."""
    parser = argparse.ArgumentParser(
        prog="python -m course_build.teaching.slides", description=__doc__
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.parse_args(argv)
    try:
        write_slides(root)
    except (CourseError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"to show them: {FOLDER}/LANGUAGE/MODULE.html; S opens the speaker's notes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
