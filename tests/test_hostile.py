"""Outputs of a notebook that means harm: their page runs nothing and asks nothing."""

import base64
import json
import time
from pathlib import Path

import pytest

from course_build.outputs.views import VIEW
from course_build.site.__main__ import build_site
from course_build.site.clean import clean_html, clean_output, clean_svg, clean_text
from tests.browser import opened_browser, opened_page

RUN = "document.documentElement.dataset.ran+=' NAME'"  # what a script does, to be seen
ELSEWHERE = "http://elsewhere.invalid/NAME"
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
OUTER = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'

UNASKED = {  # HTML that acts as soon as a page holds it
    "script": f"<script>{RUN}</script>",
    "onerror": f'<img src="x:" onerror="{RUN}">',
    "svg-onload": f'<svg onload="{RUN}"></svg>',
    "svg-script": f"<svg><script>{RUN}</script></svg>",
    "details": f'<details open ontoggle="{RUN}">x</details>',
    "srcdoc": f'<iframe srcdoc="<script>parent.{RUN}</script>"></iframe>',
    "iframe": f'<iframe src="{ELSEWHERE}"></iframe>',
    "picture": f'<img src="{ELSEWHERE}">',
    "sheet": f'<link rel="stylesheet" href="{ELSEWHERE}">',
    "style": f"<style>@import url({ELSEWHERE});</style>",
    "background": f'<p style="background:url({ELSEWHERE})">x</p>',
    "image-set": f"<p style=\"background:image-set('{ELSEWHERE}' 1x)\">x</p>",
    "escape": f'<p style="background:\\75rl({ELSEWHERE})">x</p>',
    "svg-image": f'<svg><image href="{ELSEWHERE}" width="9" height="9"/></svg>',
    "object": f'<object data="{ELSEWHERE}"></object>',
    "video": f'<video poster="{ELSEWHERE}"></video>',
    "broken-out": f'</div></div></article><table><td><img src="y:" onerror="{RUN}">',
}
ASKED = {  # HTML that waits for the reader, or for a cleaner that puts it together anew
    "mutation": '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img '
    f'src=z: onerror={RUN.replace(" ", "&#32;")}&gt;">',
    "link": f'<a href="javascript:{RUN}">x</a>',
    "tab": f'<a href="java&#9;script:{RUN}">x</a>',
    "data": f'<a href="data:text/html,<script>{RUN}</script>">x</a>',
    "form": f'<form action="{ELSEWHERE}"><button formaction="javascript:{RUN}">x</button></form>',
    "hover": f'<p onmouseover="{RUN}" onclick="{RUN}">x</p>',
    "refresh": f'<meta http-equiv="refresh" content="0;url={ELSEWHERE}">',
    "base": f'<base href="{ELSEWHERE}/">',
    "overlay": '<p id="overlay" class="sidebar" style="position:fixed;inset:0;color:red">x</p>',
}
SVG = f"""<?xml version="1.0"?><?xml-stylesheet href="{ELSEWHERE}"?>
<svg {OUTER} onload="{RUN}" width="9&quot; onerror=&quot;{RUN}" height="9" viewBox="0 0 9 9">
<script>{RUN}</script><style>@import url({ELSEWHERE});</style><style>*{{fill:red}}</style>
<foreignObject><body xmlns="http://www.w3.org/1999/xhtml"><img src="{ELSEWHERE}"/></body>
</foreignObject><image xlink:href="{ELSEWHERE}"/><use href="{ELSEWHERE}#a"/>
<a href="javascript:{RUN}"><text>x</text></a><animate attributeName="href" to="javascript:0"/>
<rect id="r" width="9" height="9" fill="url({ELSEWHERE})" style="fill:url({ELSEWHERE})"/>
<h:script xmlns:h="http://www.w3.org/1999/xhtml">{RUN}</h:script>
</svg>"""
LATEX = r"$$\href{javascript:RUN}{x} \style{background:url(ELSEWHERE)}{y} \require{ELSEWHERE}$$"
MARKDOWN = """<script>RUN</script>

[x](javascript:RUN) ![x](ELSEWHERE) <img src=x: onerror="RUN">

```{raw} html
<script>RUN</script>
```

| shown | as |
|---|---|
| a | **table** |
"""


def named(name, text):
    """Let a piece tell which it is, wherever it acts."""
    text = text.replace("RUN", RUN).replace("ELSEWHERE", ELSEWHERE)
    return text.replace("NAME", name)


def data(name, kind, text, **metadata):
    return {
        "output_type": "display_data",
        "data": {kind: named(name, text), "text/plain": f"<script>{named(name, RUN)}</script>"},
        "metadata": metadata,
    }


WORDS = f'"><script>{RUN}</script><img src="{ELSEWHERE}" onerror="{RUN}">'
CONTROL = {"name": WORDS, "label": WORDS, "kind": "range", "values": [WORDS, "2"], "start": 0}
FRAME = {"svg": SVG, "alt": WORDS}


def view(name, **changes):
    """A drawing that says it can be another one."""
    frames = dict.fromkeys(["0,0", "0,1", "1,0", "1,1"], FRAME)
    told = {"name": f"../../{WORDS}", "frames": frames}
    told = {**told, "controls": [CONTROL, {**CONTROL, "kind": "choice"}], **changes}
    output = data(name, "image/svg+xml", SVG)
    output["data"][VIEW] = json.loads(named(name, json.dumps(told)))
    return output


OUTPUTS = [
    view("view"),
    view("view-far", controls=[{**CONTROL, "start": 10**30}], frames={"0": FRAME, "1": FRAME}),
    view("view-odd", frames=dict.fromkeys(["__proto__", "-1,0", "1e9,0", "../../x"], FRAME)),
    *(data(name, "text/html", text) for name, text in {**UNASKED, **ASKED}.items()),
    data("svg", "image/svg+xml", SVG, **{"image/svg+xml": {"alt": f'"><script>{RUN}</script>'}}),
    data("latex", "text/latex", LATEX),
    data("html-latex", "text/html", f"<p>{LATEX}</p>"),
    data("markdown", "text/markdown", MARKDOWN),
    data("javascript", "application/javascript", RUN),
    data("widget", "application/vnd.jupyter.widget-view+json", "{}"),
    data("unknown", "application/x-unknown", RUN),
    data("pdf", "application/pdf", PIXEL),
    data("picture", "image/png", PIXEL, **{"image/png": {"width": '1" onload="x'}}),
    {"output_type": "stream", "name": "stdout", "text": named("print", f"<script>{RUN}</script>")},
    {"output_type": "stream", "name": "stdout", "text": f"\x1b[31m{LATEX}\x1b]8;;x\x07\x00"},
]


@pytest.fixture(scope="module")
def browser():
    with opened_browser() as browser:
        yield browser


def notebook(outputs):
    cell = {"cell_type": "code", "id": "see", "source": "see()", "metadata": {}}
    return {
        "cells": [
            {"cell_type": "markdown", "id": "title", "metadata": {}, "source": "# A guest"},
            {**cell, "execution_count": 1, "outputs": outputs},
        ],
        "metadata": {
            "kernelspec": {"name": "python3", "display_name": "Python 3"},
            "language_info": {"name": "python"},
            "widgets": {"application/vnd.jupyter.widget-state+json": {"state": {"a": RUN}}},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


@pytest.fixture(scope="module")
def guest(tmp_path_factory):
    """The page of a course whose one notebook has these outputs, made as `make site` makes it."""
    root = tmp_path_factory.mktemp("course")
    settings = '[tool.course]\nlanguages = ["en"]\ntitle = { en = "Guests" }\n'
    (root / "pyproject.toml").write_text(settings, encoding="utf-8")
    for folder, outputs in [("notebooks/en", []), ("build/executed/learner/en", OUTPUTS)]:
        path = root / folder / "module_01_guest.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(notebook(outputs)), encoding="utf-8")
    assert build_site(root, {}) == 0
    return root / "build" / "site" / "en" / "module_01" / "index.html"


def acts(page, patience=0.5):
    """The names of what acted, as soon as anything did: scripts, and what was asked elsewhere."""
    deadline = time.monotonic() + patience
    while True:
        page.wait_for_timeout(50)
        ran = page.evaluate("document.documentElement.dataset.ran || ''").split()
        asked = [url.rsplit("/", 1)[-1] for url in page.asked if url.startswith("http")]
        names = {*(name for name in ran if name != "undefined"), *asked}
        if names or time.monotonic() > deadline:
            return names


def test_the_browser_sees_each_piece_act_that_nobody_cleaned(browser, tmp_path):
    for name, text in UNASKED.items():
        path = tmp_path / f"{name}.html"
        path.write_text(f"<div><article><div><div>{named(name, text)}", encoding="utf-8")
        with opened_page(browser, path) as page:
            assert acts(page, patience=20) == {name}


@pytest.mark.smoke
def test_on_the_page_of_a_hostile_notebook_nothing_acts(browser, guest):
    with opened_page(browser, guest) as page:
        assert "A guest" in page.content()
        page.evaluate(
            """() => document.querySelectorAll("article *").forEach((element) =>
                ["mouseover", "click", "focus", "load", "error", "toggle"].forEach((name) =>
                    element.dispatchEvent(new Event(name))))"""
        )
        assert acts(page) == set()
        assert page.url == guest.as_uri()
        assert all(Path(url.removeprefix("file://")).exists() for url in page.asked)


def test_of_a_hostile_page_remain_only_harmless_elements(browser, guest):
    with opened_page(browser, guest) as page:
        found = page.eval_on_selector_all(
            ".cell_output *",
            """elements => elements.flatMap(element => [element.localName,
                ...[...element.attributes].map(each => each.name + "=" + each.value)])""",
        )
    handlers = [each for each in found if each.lower().startswith("on")]
    assert handlers == []
    assert not {"script", "iframe", "object", "svg", "style", "form", "base", "meta"} & set(found)
    assert [each for each in found if "javascript:" in each or "fixed" in each] == []
    assert [each for each in found if each.startswith("src=") and "_static/figures/" not in each
            and "_images/" not in each] == []  # fmt: skip
    assert "id=overlay" not in found


def test_a_drawing_opened_alone_runs_nothing(browser, guest):
    drawings = sorted(guest.parent.parent.glob("_static/figures/*.svg"))
    assert len(drawings) == 4 + 3  # 3: the other pictures of the view that is whole
    for drawing in drawings:
        with opened_page(browser, drawing) as page:
            assert acts(page, patience=0.1) == set()
            assert page.evaluate("document.querySelectorAll('rect').length") == 1


def test_a_hostile_view_shows_its_pictures_and_its_words_and_does_nothing_else(browser, guest):
    with opened_page(browser, guest) as page:
        (whole,) = page.locator(".view").all()  # the others are figures that stand still
        for control in whole.locator("input, select").all():
            control.press("End")
        assert acts(page) == set()
        assert whole.locator("label").first.inner_text() == named("view", WORDS)
        assert whole.locator("img").get_attribute("alt") == named("view", WORDS)
        assert whole.locator("img").get_attribute("src").endswith(".1-1.svg")


def test_what_is_printed_is_shown_as_it_was_written(browser, guest):
    with opened_page(browser, guest) as page:
        words = page.inner_text("article")
        assert named("print", f"<script>{RUN}</script>") in words
        table = page.locator("article table").last
        assert table.inner_text().split() == ["shown", "as", "a", "table"]


@pytest.mark.parametrize("name", [*UNASKED, *ASKED])
def test_cleaning_twice_changes_nothing(name):
    once = clean_html({**UNASKED, **ASKED}[name])
    assert clean_html(once) == once


@pytest.mark.parametrize(
    "style", ["color:red", "border:1px solid currentColor", "background:rgb(1, 2, 3)"]
)
def test_a_harmless_look_stays(style):
    assert style in clean_html(f'<table><tr><td style="{style};position:fixed">a</td></tr></table>')


def test_a_drawing_keeps_its_shapes_and_pixels():
    pixels = f'<image href="data:image/png;base64,{PIXEL}" width="9" height="9" />'
    shapes = (
        f'<g id="a" clip-path="url(#b)"><path d="M 0 0" style="fill: none" />{pixels}</g>'
        '<use xlink:href="#a" transform="translate(1 2) scale(3)" />'
    )
    drawing = f'<svg {OUTER} aria-label="f(x)">{shapes}</svg>\n'
    assert clean_svg(drawing) == drawing


DOCTYPE = f"<!DOCTYPE svg [%s]><svg {OUTER}><text>&e;</text></svg>"
BOMB = "".join(
    f'<!ENTITY {name} "{f"&{of};" * 99}">' for name, of in zip("bcdefg", "abcdef", strict=True)
)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no svg",
        "<p>x</p>",
        "<svg>x</svg>",
        "<svg",
        f"<svg {OUTER}>{'<g>' * 9999}{'</g>' * 9999}</svg>",
        DOCTYPE % '<!ENTITY e SYSTEM "file:///etc/hostname">',
        DOCTYPE % ('<!ENTITY a "aaaaaaaaa">' + BOMB),
    ],
    ids=["empty", "words", "html", "no namespace", "cut", "deep", "a file", "a bomb"],
)
def test_what_is_no_drawing_is_not_shown(text):
    assert clean_svg(text) == ""


def test_what_only_a_terminal_understands_goes():
    raw = "\x1b[0;31mred\x1b[0m \x1b]8;;http://a.invalid\x07link\x1b]8;;\x1b\\ \x9b1A\x1b 1%\r\tю\n"
    assert clean_text(raw) == "red link 1A 1%\n\tю\n"
    error = {"output_type": "error", "ename": "E", "evalue": raw, "traceback": [raw, raw]}
    assert "\x1b" not in str(clean_output(error))


def test_a_shape_that_an_entity_stands_for_is_cleaned_too():
    script = f"<!ENTITY e '<script {OUTER}>1</script><tspan>x</tspan>'>"
    assert "<text><tspan>x</tspan></text>" in clean_svg(DOCTYPE % script)


def test_of_several_kinds_the_best_harmless_one_is_shown():
    output = data("a", "text/html", "<script>x</script>")
    assert clean_output(output)["data"] == {"text/plain": output["data"]["text/plain"]}
    assert clean_output({"output_type": "display_data", "data": {}, "metadata": {}}) is None
    assert clean_output({"output_type": "update_display_data"}) is None
