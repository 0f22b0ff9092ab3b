"""Words in another script in what an executed notebook shows: what nobody has translated.

Names are the same in every language: those listed here and, in what is printed, whatever the
notebook's code calls something. The messages of exceptions are in the language of the code.
"""

import ast
import keyword
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

from course_build.library.payload import unpacked
from course_build.outputs.executed import joined, outputs
from course_build.outputs.views import VIEW, read_view
from course_build.proofreading.languages import TABLES, script_of
from course_build.source.code import parse_code
from course_build.source.header import LIBRARY_KEY
from course_build.text.strings import Text, is_text

SVG = "image/svg+xml"
ALT = "alt text"
IN_FIGURES = (SVG, ALT)
SVG_TEXT = "{http://www.w3.org/2000/svg}text"
TOKEN = re.compile(r"\w+(?:[-.]\w+)*")
WORD = re.compile(r"[^\W\d_]+")
BESIDE_CODE = re.compile(r"[0-9a-f]{12,}|(?:/[\w.-]+){2,}")  # digests and paths
RUN = re.compile(r"(?<![\w.=@('\"`\[{/-])[^\W\d_]+(?: [^\W\d_]+)*(?![\w=('\"`\[{-]|[.:]\w| [=/])")
SPACES = re.compile(r"(?:\\?\s)+")
GAP = r"[\s\S]{0,200}?"  # where a message has a field

# Pieces of an exception's message that are put together elsewhere than at its raise.
PIECES = ("changing the token at position .* from .* to",)
VALUES = ("True", "False", "None")

# Names that the code of a notebook need not hold -> what they are.
NAMES = {
    "GPT small XL Llama TinyLM": "models",
    "NumPy Python SHA pip install": "software, and what is typed",
    "OMP NUM THREADS": "a setting of the environment",
    "Prescott Nehalem Sandybridge Haswell Zen SkylakeX Cooperlake Sapphirerapids": "kernels",
    "ARMV NeoverseN NeoverseV VORTEX": "more kernels, as OpenBLAS calls them",
    "FLOP MFLOP GFLOP": "units",
    "True False None NaN float bfloat meta": "values, types and devices as the code writes them",
    "ln log softmax top Top": "functions of mathematics; top-k, also where it begins a sentence",
    "end": "a token of the chain of words",
    "SGD AdamW": "optimisers",
    "scipy openblas": "libraries, as they call themselves",
    "linear attention": "kinds of work, as the counts of operations call them",
    "gpt": "a model, as a name in code",
    "naive": "a way of decoding, as the code calls it",
    "UTF sha hashlib": "an encoding, a function and its module, as a certificate names them",
    "merge": "of an exercise, whose name in code a certificate lists",
    "attn ffn": "the sublayers of a block, as the code calls them",
    "warm": "a level, as the line of a certificate writes it",
    "KV": "keys and values, in the name of their cache",
}


@dataclass(frozen=True)
class Shown:
    """A text that a cell put out, and how: printed, as a value, or in a figure."""

    key: str
    where: str
    text: str


def foreign_script(language: str, source: str) -> str | None:
    """The script of the source language, where the translation is written in another one."""
    if language not in TABLES or TABLES[language].script == TABLES[source].script:
        return None
    return TABLES[source].script


def untranslated(
    notebook: Mapping[str, Any], script: str, also: Collection[str] = ()
) -> Iterator[tuple[Shown, list[str]]]:
    """Every text in the outputs with the words of this script in it that are not names.

    `also` are names that only this machine knows: its processor, its libraries.
    """
    listed = {*listed_names(), *also}
    called = listed | names_in(_trees(notebook)) | set(keyword.kwlist)
    said = [*map(re.compile, PIECES), *messages(_trees(notebook))]
    for shown in shown_texts(notebook):
        names = listed if shown.where in IN_FIGURES else called
        text = _without(shown.text, said)
        words = [*foreign_words(text, script, names), *foreign_phrases(text, script, listed)]
        if words:
            yield shown, list(dict.fromkeys(words))


def listed_names() -> set[str]:
    """The names of NAMES, one by one."""
    return {name for group in NAMES for name in group.split()}


def foreign_words(text: str, script: str, names: Collection[str]) -> list[str]:
    """The words in this script; what is one letter or holds an underscore is a name."""
    found = [
        word
        for token in TOKEN.findall(text)
        if "_" not in token
        for word in WORD.findall(token)
        if len(word) > 1 and script_of(word[0]) == script and word not in names
    ]
    return list(dict.fromkeys(found))


def foreign_phrases(text: str, script: str, listed: Collection[str]) -> list[str]:
    """Words in this script side by side, or after a number: a sentence, whatever they name."""
    found = []
    for run in RUN.finditer(text):
        words = run[0].split(" ")
        foreign = [
            len(word) > 1 and script_of(word[0]) == script and word not in VALUES for word in words
        ]
        counted = bool(re.search(r"\d $", text[: run.start()]))
        for place, word in enumerate(words):
            beside = [*([counted] if place == 0 else foreign[place - 1 : place])]
            beside += foreign[place + 1 : place + 2]
            name = word in listed or keyword.iskeyword(word) or word != word.capitalize().lower()
            if foreign[place] and any(beside) and not name:
                found.append(word)
    return found


def shown_texts(notebook: Mapping[str, Any]) -> Iterator[Shown]:
    """Every text in the outputs; of a figure its labels and its alt text."""
    for key, output in outputs(notebook):
        if "text" in output:
            yield Shown(key, str(output.get("name")), joined(output["text"]))
        data = output.get("data", {})
        for kind, content in data.items():
            if kind != VIEW:
                for text in _texts(kind, joined(content)):
                    yield Shown(key, kind, text)
        for text in _view_texts(data):
            yield Shown(key, VIEW, text)
        for told in output.get("metadata", {}).values():
            if isinstance(told, Mapping) and told.get("alt"):
                yield Shown(key, ALT, told["alt"])


def _texts(kind: str, content: str) -> Iterator[str]:
    if kind == SVG:
        for element in ElementTree.fromstring(content).iter(SVG_TEXT):
            yield "".join(element.itertext())
    elif kind == "text/html":
        reader = _Reader()
        reader.feed(content)
        yield "\n".join(reader.texts)
    elif kind.startswith("text/"):
        yield content


def _view_texts(data: Mapping[str, Any]) -> Iterator[str]:
    view = read_view(data)
    if view:
        yield from (text for control in view.controls for text in (control.label, *control.values))
        for frame in view.frames.values():
            yield frame.alt
            yield from _texts(SVG, frame.svg)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def names_in(trees: Iterable[ast.Module]) -> set[str]:
    """Every name in some code: of a variable, an argument, an attribute, a module, a key."""
    names: set[str] = set()
    for tree in trees:
        for node in ast.walk(tree):
            for field in ("id", "attr", "arg", "name", "module", "asname", "value"):
                name = getattr(node, field, None)
                if isinstance(name, str) and all(map(str.isidentifier, name.split("."))):
                    names.update(name.split("."))
    return names


def messages(trees: Iterable[ast.Module]) -> list[re.Pattern[str]]:
    """The texts in `raise` statements, as patterns with a gap for each field."""
    texts = {
        _pattern(node)
        for tree in trees
        for raised in ast.walk(tree)
        if isinstance(raised, ast.Raise)
        for node in ast.walk(raised)
        if is_text(node)
    }
    return [re.compile(text) for text in sorted(texts, key=len, reverse=True) if _says(text)]


def _pattern(node: Text) -> str:
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    pieces = [
        SPACES.sub(" ", re.escape(str(part.value))) if isinstance(part, ast.Constant) else GAP
        for part in parts
    ]
    text = "".join(pieces).strip().removeprefix(GAP).removesuffix(GAP).strip()
    begins, ends = (r"\b" if end.isalnum() else "" for end in (text[:1], text[-1:]))
    return (begins + text + ends).replace(" ", r"\s+")


def _says(pattern: str) -> bool:
    """A pattern that says something: not gaps alone, which would match any text."""
    return len(WORD.findall(pattern.replace(GAP, "").replace(r"\s", ""))) >= 2


def _trees(notebook: Mapping[str, Any]) -> Iterator[ast.Module]:
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            source = joined(cell["source"])
            yield parse_code(source)
            if cell["id"] == LIBRARY_KEY:  # its code is the notebook's too
                yield from (ast.parse(text) for text in unpacked(source).values())


def _without(text: str, said: Collection[re.Pattern[str]]) -> str:
    for message in said:
        text = message.sub("\n", text)
    return BESIDE_CODE.sub("\n", text)
