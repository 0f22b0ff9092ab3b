"""One notebook, open in a browser: what a learner does with it, and what then stands there."""

import json
from pathlib import Path

PATIENCE = 600_000  # milliseconds for all cells of a notebook on a busy machine
MOMENT = 60_000  # milliseconds for what a reader would not wait for

FIND = "[...(window.jupyterapp?.shell.widgets('main') ?? [])].find(one => one.content?.widgets)"
OPEN = """panel && panel.content.widgets.length === wanted
    && panel.sessionContext.session?.kernel?.status === "idle" """
NAME = "panel.content.widgets.forEach(cell => { cell.node.dataset.key = cell.model.id; })"
ENDED = """(() => {
    if (panel.sessionContext.session?.kernel?.status !== "idle") return "";
    const code = panel.content.widgets.filter(cell => cell.model.type === "code");
    if (code.every(cell => cell.model.executionCount !== null)) return "all cells ran";
    const failed = cell => [...Array(cell.model.outputs.length).keys()]
        .some(place => cell.model.outputs.get(place).type === "error");
    return code.some(failed) ? "a cell failed" : "";
})()"""
SETTLED = """panel.content.widgets.every(({ model, node }) => {
    const outputs = [...Array(model.outputs?.length ?? 0).keys()].map(n => model.outputs.get(n));
    const alive = outputs.filter(one => "application/vnd.jupyter.widget-view+json" in one.data);
    const input = node.querySelector(".jp-InputArea-editor, .jp-InputPlaceholder");
    return (model.type !== "code" || input?.getBoundingClientRect().height > 0)  // drawn late
        && alive.length <= node.querySelectorAll(".jp-OutputArea-output > .jupyter-widgets").length
        && [...node.querySelectorAll(".jp-OutputArea img")].every(image => image.complete);
})"""
RAN = """(() => {
    const cell = panel.content.widgets.find(cell => cell.model.id === wanted.key);
    return panel.sessionContext.session?.kernel?.status === "idle"
        && ![null, wanted.count].includes(cell.model.executionCount);
})()"""
CLEARED = """panel.sessionContext.session?.kernel?.status === "idle"
    && panel.content.widgets.every(cell => (cell.model.executionCount ?? null) === null)"""
RAN_ABOVE = """(() => {
    const cells = panel.content.widgets;
    const above = cells.slice(0, cells.findIndex(cell => cell.model.id === wanted));
    return panel.sessionContext.session?.kernel?.status === "idle"
        && above.every(cell => cell.model.executionCount !== null);
})()"""
HOLDS = """panel.content.widgets.find(cell => cell.model.id === wanted.key)
    .node.textContent.includes(wanted.words)"""
CHANGED = """(() => {
    const cell = panel.content.widgets.find(cell => cell.model.id === wanted.key);
    const alt = cell.node.querySelector(".jp-OutputArea img")?.alt;
    return alt && alt !== wanted.alt && alt;
})()"""
COUNT = "panel.content.widgets.find(cell => cell.model.id === wanted).model.executionCount"
NAMELESS = """[...panel.content.widgets.find(cell => cell.model.id === wanted).node
    .querySelectorAll(".jupyter-widgets :is(select, input, textarea, button)")]
    .filter(control => !(control.labels?.[0] ?? control).textContent.trim())
    .map(control => control.outerHTML)"""
SOURCE = "panel.content.widgets.find(cell => cell.model.id === wanted).model.sharedModel.source"
LOOK = """(() => {
    const seen = node => !!node && node.getBoundingClientRect().height > 0;
    return panel.content.widgets.map(({ node, model }) => ({
        key: model.id,
        kind: model.type,
        count: model.executionCount ?? null,
        editor: seen(node.querySelector(".jp-InputArea-editor")),
        placeholder: seen(node.querySelector(".jp-InputPlaceholder")),
        outputs: [...node.querySelectorAll(".jp-OutputArea-output")].map(output => ({
            mime: output.dataset.mimeType ?? "",
            text: output.textContent,
            figures: [...output.querySelectorAll("img, svg[role=img]")].map(figure => ({
                alt: figure.getAttribute("alt") ?? figure.getAttribute("aria-label") ?? "",
                width: figure.getBoundingClientRect().width,
                height: figure.getBoundingClientRect().height,
                drawn: figure.naturalWidth !== 0,
            })),
        })),
    }));
})()"""


class OpenNotebook:
    """A notebook in JupyterLab or Notebook 7; cells are named by their ids.

    `cells` and `saved` are what stood in the page and in the file after `run_all` and `wait`.
    """

    def __init__(self, context, address: str, file: Path) -> None:
        self.file = file
        self.language = file.parent.name
        self.asked, self.said = [], []
        self.page = context.new_page()
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.goto(address)
        count = len(json.loads(file.read_text(encoding="utf-8"))["cells"])
        self.until(OPEN, count)
        self.ask(NAME)
        self.ended, self.unread, self.cells, self.saved = "", b"", [], {}

    def ask(self, expression: str, wanted=None):
        """Evaluate JavaScript about `panel`, the widget that holds the notebook."""
        body = f"wanted => {{ const panel = {FIND}; return {expression}; }}"
        return self.page.evaluate(body, wanted)

    def until(self, expression: str, wanted=None, patience: int = PATIENCE):
        """Wait until JavaScript about `panel` is true; return its value."""
        body = f"wanted => {{ const panel = {FIND}; return {expression}; }}"
        handle = self.page.wait_for_function(body, arg=wanted, timeout=patience, polling=50)
        return handle.json_value()

    def choose(self, menu: str, entry: str) -> None:
        """Choose an entry of a menu with the mouse."""
        self.page.get_by_role("menuitem", name=menu, exact=True).click()
        self.page.locator(".lm-Menu-itemLabel").get_by_text(entry, exact=True).click()

    def save_unread(self) -> None:
        """Save as soon as JupyterLab has written into the notebook which Python opened it."""
        self.until("panel.content.model.getMetadata('language_info')?.version")
        self.save()
        self.unread = self.file.read_bytes()

    def run_all(self) -> None:
        """Begin to run all cells."""
        self.choose("Run", "Run All Cells")

    def wait(self) -> None:
        """Wait until all cells ran or one failed; save, and look at page and file."""
        self.ended = self.until(ENDED)
        self.until(SETTLED, patience=MOMENT)
        self.save()
        self.cells = self.ask(LOOK)
        self.saved = json.loads(self.file.read_text(encoding="utf-8"))

    def save(self) -> None:
        """Save the notebook, as a learner does."""
        self.page.keyboard.press("Control+S")
        self.until("!panel.context.model.dirty")

    def cell(self, key: str):
        """The cell of this id, in the page."""
        return self.page.locator(f'.jp-Notebook [data-key="{key}"]')

    def click_into(self, key: str) -> None:
        """Put the cursor into the code of a cell."""
        self.cell(key).locator(".cm-content").click()

    def type_over(self, key: str, code: str, known: str = "") -> None:
        """Type code in place of what a cell holds: key by key, known lines each at one go."""
        self.click_into(key)
        self.page.keyboard.press("Control+A")
        for number, line in enumerate(code.rstrip("\n").split("\n")):
            if number:
                self.page.keyboard.press("Enter")
                self.page.keyboard.press("Shift+Home")  # the indent that the editor chose
            if line == "":
                self.page.keyboard.press("Delete")
            elif line in known.split("\n"):
                self.page.keyboard.insert_text(line)
            else:
                self.page.keyboard.type(line)
        assert self.ask(SOURCE, key) == code.rstrip("\n"), "the editor wrote something else"

    def unfold(self, key: str) -> None:
        """Open the hint or solution in a cell of prose by a click."""
        self.cell(key).locator("summary").click()

    def is_unfolded(self, key: str) -> bool:
        """Is it open?"""
        return self.cell(key).locator("details").evaluate("fold => fold.open")

    def copy_code(self, key: str) -> None:
        """Mark the code in a cell of prose and copy it."""
        self.cell(key).locator("pre").evaluate("code => getSelection().selectAllChildren(code)")
        self.page.keyboard.press("Control+C")

    def paste_over(self, key: str) -> None:
        """Paste in place of what a cell holds."""
        self.click_into(key)
        self.page.keyboard.press("Control+A")
        self.page.keyboard.press("Control+V")

    def source(self, key: str) -> str:
        """What a cell holds."""
        return self.ask(SOURCE, key)

    def run(self, key: str) -> str:
        """Run one cell by keyboard and wait for its end; return the words of its output."""
        before = self.ask(COUNT, key)
        self.cell(key).locator(".jp-InputPrompt").click()
        self.page.keyboard.press("Control+Enter")
        self.until(RAN, {"key": key, "count": before})
        return " ".join(self.output(key).split())

    def output(self, key: str) -> str:
        """The words of a cell's output."""
        parts = self.cell(key).locator(".jp-OutputArea-output")
        return "\n".join(parts.all_text_contents())

    def reads(self, key: str, words: str) -> None:
        """Wait until these words stand in a cell."""
        self.until(HOLDS, {"key": key, "words": words}, MOMENT)

    def alt(self, key: str) -> str:
        """What the picture in a cell's output is said to show."""
        return self.cell(key).locator(".jp-OutputArea img").first.get_attribute("alt")

    def move(self, key: str) -> str:
        """Move the first list of a view by an arrow; return what its picture then shows."""
        before = self.alt(key)
        control = self.cell(key).locator("select").first
        control.focus()
        at_end = control.evaluate("list => list.selectedIndex === list.length - 1")
        control.press("ArrowUp" if at_end else "ArrowDown")
        return self.until(CHANGED, {"key": key, "alt": before}, MOMENT)

    def start_anew(self, key: str) -> None:
        """Restart the kernel, clear all outputs, and run the cells above this one."""
        self.choose("Kernel", "Restart Kernel and Clear Outputs of All Cells…")
        self.page.locator(".jp-Dialog .jp-mod-accept").click()
        self.until(CLEARED)
        self.cell(key).locator(".jp-InputPrompt").click()
        self.choose("Run", "Run All Above Selected Cell")
        self.until(RAN_ABOVE, key)

    def close(self) -> None:
        """Close the page; the server ends the kernel."""
        self.page.close()
