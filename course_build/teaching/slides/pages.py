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

from course_build.site.clean import SVG
from course_build.teaching.assignment import unlinked
from course_build.teaching.slides.deck import Block, Slide

TALL = 200  # pixels
PAGE = Template("""<!doctype html>
<html lang="$language">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>$title</title>
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
    """A deck as HTML, and its figures: {name: content}."""

    stem: str
    figures: dict[str, bytes] = field(default_factory=dict)

    def page(self, stacks: Sequence[Sequence[Slide]], language: str) -> bytes:
        """Write the whole deck; the first slide's title is the page's."""
        slides = "\n".join(self._stack(stack) for stack in stacks)
        title = html.escape(_plain(stacks[0][0].title))
        return PAGE.substitute(language=language, title=title, slides=slides).encode()

    def _stack(self, stack: Sequence[Slide]) -> str:
        inner = "\n".join(self._slide(slide, first=slide is stack[0]) for slide in stack)
        return f"<section>\n{inner}\n</section>"

    def _slide(self, slide: Slide, *, first: bool) -> str:
        rank = slide.level if first or slide.level > 2 else 3
        title = _inline(slide.title)
        parts = [f"<h{rank}>{title}</h{rank}>"]
        parts += [self._block(block) for block in slide.blocks]
        if slide.notes:
            notes = "\n".join(_prose(note) for note in slide.notes)
            parts.append(f'<aside class="notes">\n{notes}\n</aside>')
        kind = "" if slide.blocks else ' class="opening"'
        kind = ' class="dense"' if slide.is_dense else kind
        return f"<section{kind}>\n" + "\n".join(parts) + "\n</section>"

    def _block(self, block: Block) -> str:
        if block.kind == "prose":
            return f'<div class="prose">{_prose(block.content)}</div>'
        if block.kind == "code":
            code = highlight(block.content, PythonLexer(), HtmlFormatter(nowrap=True))
            return f'<pre class="code{_tall(block)}" tabindex="0"><code>{code}</code></pre>'
        return self._output(block, block.content)

    def _output(self, block: Block, output: Mapping[str, Any]) -> str:
        data = output.get("data", {})
        looks = f'class="output{_tall(block)}" tabindex="0"'
        if SVG in data:
            name = next(n for n in self._names(block.key) if n not in self.figures)
            self.figures[name] = data[SVG].encode()
            alt = html.escape(output["metadata"][SVG]["alt"])
            return f'<img class="figure" src="{name}" alt="{alt}">'
        if "text/html" in data:
            return f"<div {looks}>{data['text/html']}</div>"
        kind = next((kind for kind in data if kind.startswith("image/")), None)
        if kind:
            return f'<img class="figure" src="data:{kind};base64,{data[kind].strip()}" alt="">'
        text = output.get("text") or data.get("text/plain") or data.get("text/latex", "")
        return f"<pre {looks}>{html.escape(text.rstrip())}</pre>"

    def _names(self, key: str) -> Iterator[str]:
        yield f"figures/{self.stem}-{key}.svg"
        yield from (f"figures/{self.stem}-{key}-{number}.svg" for number in itertools.count(2))


def code_style(style: str) -> str:
    """The style sheet of the code's colours."""
    return HtmlFormatter(style=style).get_style_defs(".code")


def _tall(block: Block) -> str:
    """What is tall gives way, and scrolls, where a slide is too full."""
    return " tall" if block.height > TALL else ""


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
