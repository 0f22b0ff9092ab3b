"""An executed notebook as slides: what is shown, what is said, and what is left to the notebook.

A `## ` heading begins a stack of slides, a `### ` heading or a new question a slide below. Prose
whose key ends in -say is what the speaker says; so are hints, solutions and the answers of a quiz.
Folded code, checks and a learner's records stay in the notebook. What is too high for a slide goes
on on the next: static/deck.js sees to that, where letters have their true widths.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from course_build.outputs.executed import joined
from course_build.site.clean import PICTURES, SVG, clean_output

HEADING = re.compile(r"(#{1,3}) +(.+)\n*")
RECORD = re.compile(r"progress(?:\.(\w+)\(| = )")
RECORDED = re.compile(r"^○ .*\Z", re.MULTILINE | re.DOTALL)  # that nothing was predicted
CHOICE = re.compile(r"<details><summary>(.*?)</summary>.*?</details>", re.DOTALL)  # of a quiz
AFTER_CHOICES = re.compile(r"</ol>.*", re.DOTALL)
CHECK = "exercise-check"
LEFT_OUT = {"parameters", CHECK}
SAID = "-say"


@dataclass(frozen=True)
class Block:
    """One thing on a slide, and the key of the cell that it is from.

    Kinds: prose (Markdown), code, text (what was printed), html, figure; and note (Markdown), which
    is said with what it follows.
    """

    kind: str
    content: Any
    key: str


@dataclass
class Slide:
    """A slide: its title and the title's rank, what it shows, and what is said with it.

    `key` is the cell that it begins with; `is_checked`: the exercise that it states is over.
    """

    title: str
    rank: int
    key: str
    blocks: list[Block] = field(default_factory=list)
    is_checked: bool = False

    @property
    def shows(self) -> bool:
        """Is there more to see than its title?"""
        return any(block.kind != "note" for block in self.blocks)


def deck(cells: Sequence[Mapping[str, Any]]) -> list[list[Slide]]:
    """Lay the cells of an executed notebook out: stacks of slides, in their order."""
    stacks: list[list[Slide]] = []
    for cell in cells:
        text = joined(cell["source"])
        if cell["cell_type"] == "markdown":
            _lay_prose(stacks, cell["id"], text)
        else:
            answers = [Block("note", answer, cell["id"]) for answer in _answers(cell)]
            if blocks := list(blocks_of_code(cell, text)):
                _lay(stacks[-1], blocks, begins=stacks[-1][-1].is_checked or bool(answers))
            stacks[-1][-1].blocks.extend(answers)
            stacks[-1][-1].is_checked |= CHECK in cell["metadata"].get("tags", ())
    return [kept for stack in stacks if (kept := [s for s in stack if s.shows or s.rank < 3])]


def blocks_of_code(cell: Mapping[str, Any], text: str) -> Iterator[Block]:
    """What a slide shows of a code cell: a figure without what drew it, else code and output."""
    tags = set(cell["metadata"].get("tags", ()))
    record = RECORD.match(text)
    if tags & LEFT_OUT or (record and record[1] != "predict"):
        return
    cleaned = [output for output in map(clean_output, cell["outputs"]) if output]
    outputs = [block for output in cleaned if (block := _block_of_output(cell["id"], output))]
    figures = [block for block in outputs if block.kind == "figure"]
    is_machinery = "hide-input" in tags
    if not (is_machinery or record or figures):
        yield Block("code", text.strip("\n"), cell["id"])
    yield from outputs if any(_answers(cell)) or not is_machinery else figures


def _answers(cell: Mapping[str, Any]) -> Iterator[str]:
    """The question of a quiz with the explanation of each choice, as HTML."""
    for output in map(clean_output, cell["outputs"]):
        told = (output or {}).get("data", {}).get("text/html", "")
        if CHOICE.search(told):
            yield told


def _block_of_output(key: str, output: Mapping[str, Any]) -> Block | None:
    data = output.get("data", {})
    if SVG in data or any(kind in data for kind in PICTURES):
        return Block("figure", output, key)
    if "text/html" in data:
        told = data["text/html"]
        if CHOICE.search(told):
            told = AFTER_CHOICES.sub("</ol></div>", CHOICE.sub(r"\1", told))
        return Block("html", told, key)
    text = output.get("text") or data.get("text/plain") or data.get("text/latex", "")
    text = RECORDED.sub("", text).rstrip()
    return Block("text", text, key) if text else None


def _lay_prose(stacks: list[list[Slide]], key: str, text: str) -> None:
    heading = HEADING.match(text)
    if heading:
        rank = len(heading[1])
        slide = Slide(heading[2].strip(), rank, key)
        if rank < 3 or not stacks:
            stacks.append([slide])
        else:
            stacks[-1].append(slide)
        text = text[heading.end() :]
    if not text.strip():
        return
    if text.startswith("<details>") or key.endswith(SAID):
        stacks[-1][-1].blocks.append(Block("note", text, key))
    else:
        _lay(stacks[-1], [Block("prose", text.strip("\n"), key)], begins=not heading)


def _lay(stack: list[Slide], blocks: Sequence[Block], *, begins: bool) -> None:
    """Put blocks on the last slide, or on a new one below where they begin one."""
    last = stack[-1]
    if begins and last.shows:
        title = _title_before(stack) if last.is_checked else last.title
        stack.append(Slide(title, 3, blocks[0].key))
    stack[-1].blocks.extend(blocks)


def _title_before(stack: Sequence[Slide]) -> str:
    """The title that its last slides interrupted."""
    titles = [slide.title for slide in stack if slide.title != stack[-1].title]
    return titles[-1] if titles else stack[-1].title
