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
from course_build.teaching.slides.deck import Block, Slide
from course_build.teaching.words import say

INDENT = 4  # letters, of what wraps, beyond where its line begins
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
<div class="reveal fitting"><div class="slides">
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
        return f'<section class="stack">\n{inner}\n</section>'

    def _slide(self, slide: Slide) -> str:
        title = f"<h{slide.rank}>{_inline(slide.title)}</h{slide.rank}>"
        parts = [title, *map(self._block, slide.blocks)]
        return f'<section id="{slide.key}">\n' + "\n".join(parts) + "\n</section>"

    def _block(self, block: Block) -> str:
        mark = f'data-key="{block.key}"'
        if block.kind == "note":
            return f'<aside class="notes">\n{_prose(block.content)}\n</aside>'
        if block.kind == "prose":
            return f'<div class="prose" {mark}>{_prose(block.content)}</div>'
        if block.kind == "html":
            return f'<div class="output" {mark}>{block.content}</div>'
        if block.kind == "figure":
            return self._figure(block, mark)
        return _lines(block, mark)

    def _figure(self, block: Block, mark: str) -> str:
        data, told = block.content["data"], block.content["metadata"]
        kind = next(kind for kind in (SVG, *PICTURES) if kind in data)
        if kind == SVG:
            name = next(n for n in self._names(block.key) if n not in self.figures)
            self.figures[name] = data[SVG].encode()
        else:
            name = f"data:{kind};base64,{data[kind].strip()}"
        alt = html.escape(told.get(kind, {}).get("alt", ""))
        return f'<img class="figure" {mark} src="{name}" alt="{alt}">'

    def _names(self, key: str) -> Iterator[str]:
        yield f"figures/{self.stem}-{key}.svg"
        yield from (f"figures/{self.stem}-{key}-{number}.svg" for number in itertools.count(2))


def code_style(style: str) -> str:
    """The style sheet of the code's colours."""
    return HtmlFormatter(style=style).get_style_defs(".code")


def _lines(block: Block, mark: str) -> str:
    """Code or what was printed, each line a box that is indented where it wraps."""
    looks, whole = "output", html.escape(block.content)
    if block.kind == "code":
        looks, whole = "code", highlight(block.content, PythonLexer(), HtmlFormatter(nowrap=True))
    inner = "".join(map(_line, whole.rstrip("\n").split("\n"), block.content.split("\n")))
    return f'<pre class="{looks}" {mark}>{inner}</pre>'


def _line(line: str, text: str) -> str:
    indent = len(text) - len(text.lstrip()) + INDENT
    return f'<span style="--indent: {indent}ch">{line}</span>'


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
