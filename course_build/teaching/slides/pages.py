"""Slides as HTML for reveal.js, and the figures they show as files beside them."""

import html
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from string import Template
from typing import Any

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from course_build.site.clean import PICTURES, SVG
from course_build.teaching.assignment import unlinked
from course_build.teaching.slides.deck import Slide
from course_build.teaching.slides.heights import Block, wrapped_indent
from course_build.teaching.words import say

PAGE = Template("""<!doctype html>
<html lang="$language">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>$title · $kind</title>
<link rel="stylesheet" href="../_reveal/dist/reset.css">
<link rel="stylesheet" href="../_reveal/dist/reveal.css">
<link rel="stylesheet" href="../_reveal/deck.css">
</head>
<body>
<div class="reveal"><div class="slides">
$slides
</div></div>
<script src="../_reveal/dist/reveal.js"></script>
<script src="../_reveal/plugin/notes/notes.js"></script>
<script src="../_reveal/deck.js"></script>
<script src="../_mathjax/tex-chtml.js" async></script>
</body>
</html>
""")


@dataclass
class Written:
    """A deck as HTML, and its figures: {name: content}.

    `origin` is what its first slide says at its foot of where it is from, as Markdown.
    """

    stem: str
    origin: str = ""
    figures: dict[str, bytes] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)  # of slides

    def page(self, stacks: Sequence[Sequence[Slide]], language: str) -> bytes:
        """Write the whole deck; the first slide's title is the page's."""
        slides = "\n".join(self._stack(stack) for stack in stacks)
        origin = f'<div class="origin">{_parser().render(self.origin)}</div>' if self.origin else ""
        return PAGE.substitute(
            language=language,
            title=html.escape(_plain(stacks[0][0].title)),
            kind=html.escape(say(language, "slides")),
            slides=slides.replace("</section>", f"{origin}</section>", 1),
        ).encode()

    def _stack(self, stack: Sequence[Slide]) -> str:
        inner = "\n".join(map(self._slide, stack))
        return f"<section>\n{inner}\n</section>"

    def _slide(self, slide: Slide) -> str:
        parts = [f"<h{slide.rank}>{_inline(slide.title)}</h{slide.rank}>"]
        parts += [self._block(block) for block in slide.blocks]
        if slide.notes:
            notes = "\n".join(_prose(note) for note in slide.notes)
            parts.append(f'<aside class="notes">\n{notes}\n</aside>')
        kind = "" if slide.blocks else ' class="opening"'
        code, words = slide.letters
        sizes = f"--code: {code}px; --words: {words}px"
        looks = f'id="{self._key(slide.key)}"{kind} style="{sizes}"'
        return f"<section {looks}>\n" + "\n".join(parts) + "\n</section>"

    def _key(self, key: str) -> str:
        """The key of a slide's first cell, numbered where several slides show that cell."""
        names = itertools.chain([key], (f"{key}-{number}" for number in itertools.count(2)))
        name = next(name for name in names if name not in self.keys)
        self.keys.add(name)
        return name

    def _block(self, block: Block) -> str:
        if block.kind == "prose":
            return f'<div class="prose">{_prose(block.content)}</div>'
        if block.kind == "html":
            return f'<div class="output">{block.content}</div>'
        if block.kind == "figure":
            return self._figure(block)
        return _lines(block)

    def _figure(self, block: Block) -> str:
        data, told = block.content["data"], block.content["metadata"]
        kind = next(kind for kind in (SVG, *PICTURES) if kind in data)
        if kind == SVG:
            name = next(n for n in self._names(block.key) if n not in self.figures)
            self.figures[name] = data[SVG].encode()
        else:
            name = f"data:{kind};base64,{data[kind].strip()}"
        alt = html.escape(told.get(kind, {}).get("alt", ""))
        return f'<img class="figure" src="{name}" alt="{alt}">'

    def _names(self, key: str) -> Iterator[str]:
        yield f"figures/{self.stem}-{key}.svg"
        yield from (f"figures/{self.stem}-{key}-{number}.svg" for number in itertools.count(2))


def code_style(style: str) -> str:
    """The style sheet of the code's colours."""
    return HtmlFormatter(style=style).get_style_defs(".code")


def _lines(block: Block) -> str:
    """Code or what was printed, each line a box that is indented where it wraps."""
    looks, whole = "output", html.escape(block.content)
    if block.kind == "code":  # a piece of it may begin inside a string
        looks, whole = "code", highlight(block.content, PythonLexer(), HtmlFormatter(nowrap=True))
    lines = whole.rstrip("\n").split("\n")[block.first : block.last]
    goes_on = block.last is not None and block.last < block.content.count("\n") + 1
    cut = (" goes-on" if goes_on else "") + (" continued" if block.first else "")
    inner = "".join(map(_line, lines, block.lines))
    return f'<pre class="{looks}{cut}">{inner}</pre>'


def _line(line: str, text: str) -> str:
    return f'<span style="--indent: {wrapped_indent(text)}ch">{line}</span>'


def _prose(text: str) -> str:
    return _parser().render(unlinked(text, ()))


def _inline(text: str) -> str:
    return _parser().renderInline(unlinked(text, ()))


def _plain(text: str) -> str:
    return unlinked(text, ()).replace("`", "")


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable("table")
    return parser.use(dollarmath_plugin, double_inline=True, renderer=_formula)


def _formula(content: str, options: Mapping[str, Any]) -> str:
    """A formula between the marks that MathJax looks for."""
    before, after = (r"\[", r"\]") if options["display_mode"] else (r"\(", r"\)")
    return f"{before}{html.escape(content)}{after}"
