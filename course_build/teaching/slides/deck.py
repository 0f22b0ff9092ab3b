"""An executed notebook as slides: what is shown, what is said, and what is left to the notebook.

A `## ` heading begins a stack of slides, a `### ` heading or a new question a slide below. Prose
whose key ends in -say is what the speaker says; so are hints and solutions. Folded code, checks and
a learner's records stay in the notebook.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from course_build.executed import joined
from course_build.site.clean import SVG, clean_output
from course_build.teaching.slides.heights import height_of_code, height_of_output, height_of_prose

ROOM = 560  # pixels of a slide below its title
DENSE = 440  # of prose alone
HEADING = re.compile(r"(#{1,3}) +(.+)\n*")
RECORD = re.compile(r"progress(?:\.(\w+)\(| = )")
LEFT_OUT = {"parameters", "exercise-check"}
SAID = "-say"


@dataclass(frozen=True)
class Block:
    """One thing on a slide: prose (Markdown), code, or an output; and how high it will be."""

    kind: str
    content: Any
    key: str
    height: int


@dataclass
class Slide:
    """A slide: under which title, what it shows, and the notes of the speaker (Markdown)."""

    title: str
    level: int
    blocks: list[Block] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def height(self) -> int:
        return sum(block.height for block in self.blocks)

    @property
    def is_dense(self) -> bool:
        """Does it need smaller letters, since prose cannot scroll?"""
        return sum(block.height for block in self.blocks if block.kind == "prose") > DENSE


def deck(cells: Sequence[Mapping[str, Any]]) -> list[list[Slide]]:
    """Lay the cells of an executed notebook out: stacks of slides, in their order."""
    stacks: list[list[Slide]] = []
    for cell in cells:
        text = joined(cell["source"])
        if cell["cell_type"] == "markdown":
            _lay_prose(stacks, cell["id"], text)
        else:
            _lay(stacks, list(blocks_of_code(cell, text)), begins=False)
    return [kept for stack in stacks if (kept := [s for s in stack if _is_worth_showing(s)])]


def blocks_of_code(cell: Mapping[str, Any], text: str) -> Iterator[Block]:
    """What a slide shows of a code cell: a figure without what drew it, else code and output."""
    tags = set(cell["metadata"].get("tags", ()))
    record = RECORD.match(text)
    if tags & LEFT_OUT or (record and record[1] != "predict"):
        return
    outputs = [output for output in map(clean_output, cell["outputs"]) if output]
    figures = [output for output in outputs if SVG in output.get("data", ())]
    is_machinery = "hide-input" in tags
    if not (is_machinery or record or figures):
        yield Block("code", text, cell["id"], height_of_code(text))
    for output in figures if is_machinery else outputs:
        yield Block("output", output, cell["id"], height_of_output(output))


def _lay_prose(stacks: list[list[Slide]], key: str, text: str) -> None:
    heading = HEADING.match(text)
    if heading:
        level = len(heading[1])
        slide = Slide(heading[2].strip(), level)
        if level < 3 or not stacks:
            stacks.append([slide])
        else:
            stacks[-1].append(slide)
        text = text[heading.end() :]
    if not text.strip():
        return
    if text.startswith("<details>") or key.endswith(SAID):
        stacks[-1][-1].notes.append(text)
    else:
        _lay(stacks, [Block("prose", text, key, height_of_prose(text))], begins=not heading)


def _lay(stacks: list[list[Slide]], blocks: Sequence[Block], *, begins: bool) -> None:
    """Put blocks on the last slide, or on a new one below where they begin one or are too high.

    They stay together if one slide can hold them.
    """
    height = sum(block.height for block in blocks)
    groups = [blocks] if height <= ROOM else [[block] for block in blocks]
    for group in filter(None, groups):
        last = stacks[-1][-1]
        if last.blocks and (begins or last.height + sum(b.height for b in group) > ROOM):
            stacks[-1].append(Slide(last.title, last.level))
        stacks[-1][-1].blocks.extend(group)


def _is_worth_showing(slide: Slide) -> bool:
    return bool(slide.blocks) or slide.level < 3
