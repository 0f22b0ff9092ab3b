"""Pictures of what a learner sees, light and dark, for people to look at: build/screenshots/."""

from collections.abc import Mapping

from course_build.run.jobs import ROOT

FOLDER = ROOT / "build" / "screenshots"
THEMES = {"dark": "false", "light": "true"}  # the page stays light
# what comes into view may still grow, and move the cell
COME = """async cell => {
    for (let turn = 0; turn < 5; turn++) {
        cell.scrollIntoView({ block: "start" });
        await new Promise(next => requestAnimationFrame(() => setTimeout(next)));
    }
}"""


def keep_pictures(notebook, cells: Mapping[str, str]) -> None:
    """Take pictures {label: cell} of the page, from each cell on, in each theme."""
    for theme, is_light in THEMES.items():
        notebook.page.emulate_media(color_scheme=theme)
        wanted = f'body[data-jp-theme-light="{is_light}"]'
        notebook.page.wait_for_selector(wanted, state="attached")
        for label, key in cells.items():
            keep_picture(notebook, key, f"{label}-{theme}")


def keep_picture(notebook, key: str, label: str) -> None:
    """Take a picture of the page as it is, from this cell on."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    notebook.cell(key).evaluate(COME)
    name = f"{notebook.file.stem[:9]}-{notebook.language}-{label}.png"
    notebook.page.screenshot(path=FOLDER / name)
