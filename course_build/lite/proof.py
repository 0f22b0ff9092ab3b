"""A look at the built try-out in Chromium, where every host but this machine is out of reach."""

import functools
import json
import shutil
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from course_build.drift.accepted import by_cell, read, shown
from course_build.lite.cut import NAME, STEM

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
ALONE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", ALONE)
PATIENCE = 300_000  # milliseconds for a notebook on a busy machine
HERE = ("data:", "blob:")
PANEL = """const panel = [...(window.jupyterapp?.shell.widgets("main") ?? [])]
    .find(one => one.content?.widgets);"""
READY = f"""() => {{ {PANEL}
    return panel?.content.widgets.length > 1
        && panel.sessionContext.session?.kernel?.status === "idle"; }}"""
ENDED = f"""() => {{ {PANEL}
    const code = panel.content.widgets.map(one => one.model).filter(one => one.type === "code");
    const failed = one => one.outputs.toJSON().some(output => output.output_type === "error");
    return panel.sessionContext.session?.kernel?.status === "idle"
        && (code.some(failed) || code.every(one => one.executionCount !== null)); }}"""
RUN = 'async () => { await window.jupyterapp.commands.execute("notebook:run-all-cells"); }'
READ = f"() => {{ {PANEL} return JSON.stringify(panel.content.model.toJSON()); }}"


class ProofError(Exception):
    """What the try-out does and should not; the message says it."""


@dataclass(frozen=True)
class Seen:
    """One notebook, run in the browser: its cells, and the addresses that were asked for."""

    notebook: Mapping[str, Any]
    asked: frozenset[str]


class Quiet(SimpleHTTPRequestHandler):
    """A server of files that keeps no log."""

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine; give its address."""
    handler = functools.partial(Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def visit(folder: Path, language: str) -> Seen:
    """Open a language's notebook in a new browser, run all its cells and read the page."""
    from playwright.sync_api import Error, sync_playwright

    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        raise ProofError(f"no browser to prove it in: install one of {', '.join(BROWSERS)}")
    with served(folder) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        context = browser.new_context()
        context.set_default_timeout(PATIENCE)
        asked: set[str] = set()
        context.on("request", lambda request: asked.add(request.url))
        page = context.new_page()
        try:
            page.goto(f"{address}notebooks/index.html?path={language}/{NAME}.ipynb")
            page.wait_for_function(READY)
            page.evaluate(RUN)
            page.wait_for_function(ENDED)
            notebook = json.loads(page.evaluate(READ))
        except Error as error:
            outside = ", ".join(sorted(elsewhere(asked, address))) or "nothing"
            raise ProofError(f"{language}: {error}\nit asked elsewhere: {outside}") from None
        browser.close()
    return Seen(notebook, elsewhere(asked, address))


def elsewhere(asked: Iterable[str], address: str) -> frozenset[str]:
    """Which of the addresses are of another host."""
    return frozenset(url for url in asked if not url.startswith((address, *HERE)))


def prove(folder: Path, root: Path, language: str) -> str:
    """Run a language's notebook in the browser; say what was seen, or raise ProofError."""
    accepted = root / f"reference/outputs/{language}/{STEM}.txt"
    seen = visit(folder, language)
    if seen.asked:
        raise ProofError(f"{language}: it asked elsewhere: {', '.join(sorted(seen.asked))}")
    told = differences(seen.notebook, accepted.read_text(encoding="utf-8"))
    if told:
        raise ProofError("\n".join([f"{language}: it does not show what was accepted", *told]))
    cells = sum(cell["cell_type"] == "code" for cell in seen.notebook["cells"])
    outputs = len(shown(seen.notebook))
    return f"{language}: {cells} cells ran, {outputs} outputs as accepted, nothing asked elsewhere"


def differences(notebook: Mapping[str, Any], accepted: str) -> list[str]:
    """List the code cells of an executed notebook that do not show what was accepted for them."""
    keys = [cell["id"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    got, wanted = by_cell(shown(notebook)), by_cell(read(accepted)[1])
    return [
        f"{key}: it shows {got.get(key, 'nothing')}; accepted: {wanted.get(key, 'nothing')}"
        for key in keys
        if got.get(key) != wanted.get(key)
    ]
