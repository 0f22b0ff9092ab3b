"""One JupyterLab and one browser for all tests here; a notebook runs once, two at a time."""

from pathlib import Path

import pytest

from tests.browser import WIDE, opened_browser

from .desk import CHOSEN, NAMES, open_jupyter, set_out
from .driver import OpenNotebook

HERE = Path(__file__).parent


def pair_of(item):
    """The language and name of the notebook that a test here is about, or None."""
    params = item.callspec.params if hasattr(item, "callspec") else {}
    here = item.path.parent == HERE and {"language", "name"} <= params.keys()
    return (params["language"], params["name"]) if here else None


@pytest.hookimpl(tryfirst=True)  # before pytest reads the marks
def pytest_collection_modifyitems(items):
    """What is not chosen is done by -m thorough."""
    for item in items:
        if pair_of(item) not in (None, *CHOSEN):
            item.add_marker(pytest.mark.thorough)


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
def notebooks(request, context, lab, desk):
    """The notebooks asked for, in JupyterLab, all their cells run: {(language, name): notebook}."""
    opened = {}
    asked = set(map(pair_of, request.session.items))
    wanted = [names for names in NAMES if names in asked]
    for pair in (wanted[start : start + 2] for start in range(0, len(wanted), 2)):
        for language, name in pair:
            file = desk / language / f"{name}.ipynb"
            address = f"{lab.url}lab/workspaces/{language}-{name}/tree/{language}/{file.name}"
            opened[language, name] = OpenNotebook(context, f"{address}?token=t", file)
            opened[language, name].save_unread()
            opened[language, name].run_all()
        for names in pair:
            opened[names].page.bring_to_front()  # a page behind another is drawn once a second
            opened[names].wait()
    return opened


@pytest.fixture
def notebook(notebooks, language, name):
    notebooks[language, name].page.bring_to_front()
    return notebooks[language, name]
