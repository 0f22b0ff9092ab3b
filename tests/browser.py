"""A browser that looks at the built pages: where it is, and what a page is asked."""

import os
import shutil
from contextlib import contextmanager

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
ARGUMENTS = ("--no-sandbox", "--disable-background-networking", "--disable-gpu")
OWN = ("file:", "data:")
LEFT = "net::ERR_ABORTED"  # what a page asked for, and was left before it came
BAD = ("error", "warning")  # kinds of messages in a page's console
WIDE = {"width": 1280, "height": 900}
NARROW = {"width": 390, "height": 844}

# A page has up to 10 000 elements, nearly all of them coloured pieces of code, and axe looks at
# each. One piece of each look stays and speaks for all others; and every fold is opened.
ONE_OF_EACH = """() => {
  const seen = new Set();
  for (const block of document.querySelectorAll(".highlight pre")) {
    const kept = [...block.querySelectorAll("span[class]")].filter((piece) => {
      const look = piece.className + !!block.closest(".cell_output");
      return !seen.has(look) && seen.add(look);
    });
    block.replaceChildren(...kept, block.textContent);
  }
  for (const fold of document.querySelectorAll("details")) fold.open = true;
  dispatchEvent(new Event("resize"));  // lines have become longer: what scrolls now is to be found
}"""
AT_REST = """() => new Promise((done) => {  // what was asked for has been heard of, and drawn
  setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))));
})"""
SETTLED = "() => window.MathJax?.startup?.promise"


def find_browser():
    """The path of a Chromium; without one CI fails, and a desk skips what needs it."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        message = f"no browser: install one of {', '.join(NAMES)}"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(message)
    return path


@contextmanager
def opened_browser(*arguments):
    """A Chromium without a window; `arguments` go to its command line."""
    from playwright.sync_api import sync_playwright

    path = find_browser()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*ARGUMENTS, *arguments])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened_page(browser, path, settled=True, **options):
    """A page at rest, its formulas set; `page.asked` lists what it wanted from elsewhere.

    `page.amiss` lists what its console complains of, and what it asked for and did not get.
    """
    context = browser.new_context(viewport=WIDE, reduced_motion="reduce", **options)
    context.set_default_timeout(60_000)
    page = context.new_page()
    page.asked, page.amiss = [], []
    page.on("console", lambda said: said.type in BAD and page.amiss.append(said.text))
    page.on("pageerror", lambda error: page.amiss.append(str(error)))
    page.on("requestfailed", lambda asked: asked.failure == LEFT or page.amiss.append(asked.url))
    page.on("request", lambda asked: asked.url.startswith(OWN) or page.asked.append(asked.url))
    try:
        turn_to(page, path, settled)
        yield page
    finally:
        context.close()


def turn_to(page, path, settled=True):
    """Open another page in the same tab, which is much cheaper; what it is asked adds up."""
    page.goto(path if isinstance(path, str) else path.as_uri())
    if settled:  # asked of a script
        page.evaluate(SETTLED)
