"""The readmes' links to Colab: there where the repository has an address, and nowhere else.

A readme holds a pair of marks, <!-- colab --> and <!-- /colab -->; what stands between them is
written here. README.md is the first language's, README.ru.md the Russian's.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from course_build.base.chrome import say
from course_build.base.settings import Settings
from course_build.notebook.head import in_colab, module_number

BLOCK = re.compile(r"(?<=<!-- colab -->\n).*?(?=<!-- /colab -->)", re.DOTALL)


def read_readmes(root: Path, settings: Settings) -> dict[str, str]:
    """The readmes that are there, {path: text}, in the order of the languages."""
    paths = [readme_path(language, settings) for language in settings.languages]
    return {
        path: (root / path).read_text(encoding="utf-8") for path in paths if (root / path).is_file()
    }


def readme_path(language: str, settings: Settings) -> str:
    """Where a language's readme lies."""
    return "README.md" if language == settings.languages[0] else f"README.{language}.md"


def with_links(
    readmes: Mapping[str, str], stems: Sequence[str], settings: Settings
) -> dict[str, bytes]:
    """Every readme with the links that it should have between its marks, {path: content}."""
    written = {}
    for language in settings.languages:
        path, block = readme_path(language, settings), _block(language, stems, settings)
        if BLOCK.search(readmes.get(path, "")):
            literal = block.replace("\\", r"\\")  # a name may not be read as a group
            written[path] = BLOCK.sub(literal, readmes[path]).encode()
    return written


def _block(language: str, stems: Sequence[str], settings: Settings) -> str:
    """One line of links in a paragraph of its own, one for each module."""
    if not settings.repository:
        return ""
    links = [
        f"[{say(language, 'module', number=module_number(stem))}]"
        f"({in_colab(stem, language, settings)})"
        for stem in sorted(stems)
    ]
    return f"\n{say(language, 'colab')}: {' · '.join(links)}\n\n"
