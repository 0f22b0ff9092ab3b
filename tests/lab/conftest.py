"""One JupyterLab and one browser for all tests here; every notebook runs once, two at a time."""

import pytest

from tests.browser import WIDE, opened_browser

from .desk import NAMES, open_jupyter, set_out
from .driver import OpenNotebook


@pytest.fixture(scope="package")
def desk(tmp_path_factory):
    folder = tmp_path_factory.mktemp("desk") / "course"
    set_out(folder)
    return folder


@pytest.fixture(scope="package")
def context():
    """A browser that knows no host but this machine."""
    with opened_browser("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1") as browser:
        context = browser.new_context(viewport=WIDE, reduced_motion="reduce")
        context.set_default_timeout(60_000)
        yield context


@pytest.fixture(scope="package")
def lab(desk, tmp_path_factory):
    with open_jupyter("jupyterlab", desk, tmp_path_factory.mktemp("lab")) as server:
        yield server


@pytest.fixture(scope="package")
def notebooks(context, lab, desk):
    """Every notebook, open in JupyterLab, all its cells run: {(language, name): notebook}."""
    opened = {}
    for pair in (NAMES[start : start + 2] for start in range(0, len(NAMES), 2)):
        for language, name in pair:
            file = desk / language / f"{name}.ipynb"
            address = f"{lab.url}lab/workspaces/{language}-{name}/tree/{language}/{file.name}"
            opened[language, name] = OpenNotebook(context, f"{address}?token=t", file)
            opened[language, name].run_all()
        for names in pair:
            opened[names].wait()
    return opened


@pytest.fixture
def notebook(notebooks, language, name):
    return notebooks[language, name]
