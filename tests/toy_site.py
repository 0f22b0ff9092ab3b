"""A course of two small modules in two languages, built as pages as `make site` builds them."""

import json
from dataclasses import dataclass
from pathlib import Path

from course_build.site.__main__ import build_site

ADDRESS = "https://example.org/course/"
PLACED = {"COURSE_SITE": ADDRESS, "COURSE_REPOSITORY": "someone/course"}  # told from outside
SETTINGS = """[tool.course]
languages = ["en", "ru"]
title = { en = "A course & more", ru = "Курс и «ещё»" }
"""
WORDS = {
    "en": ("Module {n}. The idea & its $d_k$", "Masks say who reads whom; here is one.", "Why"),
    "ru": ("Модуль {n}. Идея и её $d_k$", "Маски говорят, кто кого читает; вот первая.", "Зачем"),
}
FIGURE = '<svg xmlns="http://www.w3.org/2000/svg" width="70" height="50"><title>x</title></svg>\n'


def notebook(number, language, run):
    """A module of a title and one section; executed if `run`."""
    title, said, why = WORDS[language]
    prose = [
        ("title", f"# {title.format(n=number)}\n\n{said} {said} {number}."),
        ("why-ask", f"## 1. {why} $\\sqrt{{d_k}}$ & so on\n\n{why}? {said} {number}, {number}."),
    ]
    cells = [
        {"cell_type": "markdown", "id": key, "metadata": {}, "source": text} for key, text in prose
    ]
    output = {"output_type": "stream", "name": "stdout", "text": "1\n"}
    code = {
        "cell_type": "code",
        "id": "see",
        "metadata": {"tags": ["hide-input"]},
        "source": "#@title Machinery\nprint(1)",
        "execution_count": 1 if run else None,
        "outputs": [output] if run else [],
    }
    return {
        "cells": [*cells, code],
        "metadata": {"kernelspec": {"name": "python3"}, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def write_toy(root):
    """Write the course into a folder; return its path."""
    files = {"pyproject.toml": SETTINGS}
    for language, (_, said, why) in WORDS.items():
        for number in (1, 2):
            for folder, run in (("notebooks", False), ("build/executed/learner", True)):
                name = f"{folder}/{language}/module_0{number}_idea.ipynb"
                files[name] = json.dumps(notebook(number, language, run))
        other = next(code for code in WORDS if code != language)
        picture = f"![{why}](../../figures/{language}/module_01-mask.svg)"
        files[f"notebooks/{language}/welcome.md"] = (
            f"# {why} {language}\n\n{other}: [{other}/welcome.md](../{other}/welcome.md)\n\n"
            f"{why} <welcome>: {said}\n\n{picture}\n\n"
            f"[{why}](module_02_idea.ipynb#why-ask) [x](https://example.com/elsewhere)\n"
        )
        files[f"notebooks/{language}/teaching.md"] = (
            f"# {why}, {said}\n\n{other}: [{other}/teaching.md](../{other}/teaching.md)\n\n"
            f"{said} [{why}](welcome.md)\n\n"
            f'<a id="day"></a>\n\n## {why}\n\n{said}\n'
        )
        files[f"figures/{language}/module_01-mask.svg"] = FIGURE
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return root


def contents(folder):
    """Every file below a folder, {its path from there: its bytes}."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


@dataclass(frozen=True)
class Toy:
    """The course, its pages as built, and what an attempt at them before had come to."""

    root: Path
    site: Path
    refused: tuple[int, dict[str, bytes]]  # exit code, what the site then was


def build_toy(root, **environment):
    """Build the pages with a fault in one of them, mend that, change a title, and build again."""
    page, site = write_toy(root) / "notebooks" / "ru" / "teaching.md", root / "build" / "site"
    text = page.read_text(encoding="utf-8")
    page.write_text(f"{text}\n## A\n\n#### B, too deep\n", encoding="utf-8")
    site.mkdir()
    (site / "index.html").write_bytes(b"the last")
    refused = build_site(root, environment), contents(site)
    page.write_text(text, encoding="utf-8")
    for folder in ("notebooks", "build/executed/learner"):
        path = root / folder / "en" / "module_02_idea.ipynb"
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("## 1. Why", "## 1. Renamed"), encoding="utf-8")
    assert build_site(root, environment) == 0
    return Toy(root, site, refused)
