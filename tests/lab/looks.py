"""What must hold for a notebook whose cells all ran: nothing that a learner sees is broken."""

import re
from collections.abc import Iterator, Mapping, Sequence

# an error comes as either
FAILURES = ("application/vnd.jupyter.stderr", "application/vnd.jupyter.error")
NO_WORDS = ("", "Image")  # what JupyterLab says where a figure brings no words
CYRILLIC = re.compile("[а-яё]")
IS_CYRILLIC = {"en": False, "ru": True}


def speaks(language: str, words: str) -> bool:
    """Do the words look like that language? Told by the alphabet, where that can tell."""
    return IS_CYRILLIC.get(language, bool(CYRILLIC.search(words))) == bool(CYRILLIC.search(words))


def faults(cells: Sequence[Mapping], saved: Mapping, language: str) -> list[str]:
    """What is wrong in a page, by cell; `saved` is the same notebook as the page's own file.

    Args:    cells: as the page shows them, from LOOK of the driver
    """
    found = []
    if [cell["key"] for cell in cells] != [cell["id"] for cell in saved["cells"]]:
        found.append("the page has other cells than its file")
    for shown, written in zip(cells, saved["cells"], strict=False):
        if shown["kind"] == "code":
            told = [*_run(shown, written), *_folding(shown, written)]
            told += _figures(shown, written, language)
            found += [f"{shown['key']}: {fault}" for fault in told]
    return found


def _run(shown: Mapping, written: Mapping) -> Iterator[str]:
    if shown["count"] is None or written["execution_count"] != shown["count"]:
        yield "it was not run"
    for output in shown["outputs"]:
        if output["mime"] in FAILURES:
            yield f"{output['mime'].rpartition('.')[2]}: {output['text'].strip()[:300]}"
    if any(part["output_type"] == "error" for part in written["outputs"]):
        yield "the file holds an error"


def _folding(shown: Mapping, written: Mapping) -> Iterator[str]:
    folded = written["metadata"].get("jupyter", {}).get("source_hidden", False)
    if shown["placeholder"] != folded or shown["editor"] == folded:
        yield "it must be folded" if folded else "its code must be visible"


def _figures(shown: Mapping, written: Mapping, language: str) -> Iterator[str]:
    figures = [figure for output in shown["outputs"] for figure in output["figures"]]
    if len(figures) < sum(map(_is_figure, written["outputs"])):
        yield "a figure of the file is not in the page"
    for figure in figures:
        if not (figure["drawn"] and figure["width"] > 0 and figure["height"] > 0):
            yield f"a figure is not visible: {figure['alt'][:80]!r}"
        if figure["alt"].strip() in NO_WORDS:
            yield "a figure without alt text"
        elif not speaks(language, figure["alt"]):
            yield f"alt text in another language: {figure['alt'][:80]!r}"


def _is_figure(output: Mapping) -> bool:
    data = output.get("data", {})
    html = "".join(data.get("text/html", ""))
    return "<img" in html or any(kind.startswith("image/") for kind in data)
