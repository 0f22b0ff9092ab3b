"""Build the course's pages from the executed notebooks: build/site/LANGUAGE/, all offline.

    python -m course_build.site

Notebooks whose executed copies are missing or old are run first. COURSE_SITE=https://... tells the
address that the pages will have, COURSE_REPOSITORY=owner/name where Colab finds the notebooks; each
goes before what pyproject.toml says. Exit codes: 0 done; 2 broken (a notebook fails, Sphinx has a
warning, a link leads nowhere, or a page is over its budget, see budget.py); 130 Ctrl-C.
"""

import argparse
import multiprocessing
import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from course_build.base.files import changed_files, orphans, write_files
from course_build.base.findings import CourseError
from course_build.base.settings import SETTINGS_FILE, Settings, parse_settings
from course_build.environment.bootstrap import BootstrapError, alone
from course_build.outputs.executed import fresh_copies
from course_build.site.budget import check_budget, cost
from course_build.site.lost_links import check_links
from course_build.site.pages import PICTURE, PICTURES
from course_build.site.root_files import root_files
from course_build.site.sections import folder_of, plain
from course_build.site.sitemap import PREVIEW, SITEMAP
from course_build.site.sources import Pages, all_pages, cut
from course_build.site.sphinx_build import HERE, Site, build, end_with_parent
from course_build.site.switch import named_languages

ROOT = Path(__file__).resolve().parent.parent.parent
WORK, PAGES = "build/pages", "build/site"
SERVE = f"python -m http.server --directory {PAGES} {urlsplit(PREVIEW).port}"
MATHJAX = (  # what a page with TeX in it asks for; the package holds 10 MB more
    "tex-chtml.js",
    "ui/safe.js",
    "output/chtml/fonts/woff-v2",
    "input/tex/extensions",
)


def texts_of(root: Path, languages: Sequence[str]) -> dict[str, dict[str, str]]:
    """Read the pages of prose, {language: {name without its ending: Markdown}}."""
    return {
        language: {
            path.stem: path.read_text(encoding="utf-8")
            for path in sorted((root / "notebooks" / language).glob("*.md"))
        }
        for language in languages
    }


def pictures_of(root: Path, language: str, texts: Iterable[str]) -> dict[str, bytes]:
    """The figures that a language's pages of prose show, {name: content}."""
    names = {match["name"] for text in texts for match in PICTURE.finditer(text)}
    return {f"{PICTURES}/{n}": (root / "figures" / language / n).read_bytes() for n in names}


def in_folders(pages: Mapping[str, Pages]) -> dict[str, bytes]:
    """Where Sphinx finds the sources and the words around them, {path: content}."""
    sources = {}
    for language, made in pages.items():
        folder = f"{WORK}/{language}"
        sources |= {f"{folder}/sources/{name}": text for name, text in made.sources.items()}
        for path in HERE.glob(f"locale/{language}/**/*.po"):  # Sphinx compiles them where they lie
            sources[f"{folder}/{path.relative_to(HERE).as_posix()}"] = path.read_bytes()
    return sources


def copy_mathjax(folder: Path) -> None:
    """Put one copy of MathJax beside the languages."""
    package = Path(find_spec("sphinx-mathjax-offline").origin).parent / "static" / "mathjax"
    for name in MATHJAX:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (package / name).is_dir():
            shutil.copytree(package / name, target, dirs_exist_ok=True)
        else:
            shutil.copyfile(package / name, target)


def read_settings(root: Path, environment: Mapping[str, str]) -> Settings:
    """The course's settings; what the environment tells of them goes before the file."""
    return parse_settings((root / SETTINGS_FILE).read_text(encoding="utf-8"), environment)


def build_site(root: Path, environment: Mapping[str, str]) -> int:
    """Build every language, one command at a time, and return the worst exit code.

    The last site stays as it is until the new one is whole and within its budget.
    """
    settings, rendered = read_settings(root, environment), read_settings(root, {})
    (root / WORK).parent.mkdir(parents=True, exist_ok=True)
    with alone(root / WORK):
        bring_back(root / PAGES)
        return _build_site(root, settings, rendered)


def _build_site(root: Path, settings: Settings, rendered: Settings) -> int:
    copies = fresh_copies(root, settings.languages)
    texts = texts_of(root, settings.languages)
    pages = all_pages(copies, texts, settings, rendered)
    for language, made in pages.items():
        made.sources |= pictures_of(root, language, texts[language].values())
    sources = in_folders(pages)
    folders = sorted({path.rsplit("/", 1)[0] for path in sources})
    for stray in map(root.joinpath, orphans(root, folders, sources)):
        if stray.is_file():  # also what Sphinx compiled, perhaps not to its end
            stray.unlink()
    write_files(root, {path: sources[path] for path in changed_files(root, sources)})
    languages = named_languages(settings.languages)
    sites = [
        Site(
            language,
            settings.title(language),
            root / WORK / language,
            languages,
            settings.site,
            pages[language].told,
        )
        for language in settings.languages
    ]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, context, initializer=end_with_parent) as pool:
        codes = list(pool.map(build, sites))
    if not any(codes):
        new = root / f"{PAGES}.new"
        gather(sites, root, new)
        titles = {
            language: {folder_of(stem): plain(cuts[0].title) for stem, cuts in cut(each).items()}
            for language, each in copies.items()
        }
        names = page_names(new / settings.languages[0])
        write_files(new, root_files(settings, languages, names, titles))
        built = sorted(new.glob("**/*.html"))
        check_links(new)
        check_budget({page.relative_to(root).as_posix(): cost(page) for page in built})
        put_in_place(new, root / PAGES)
    return max(codes)


def page_names(folder: Path) -> list[str]:
    """The pages of one language without their ending, as module_03/masks."""
    found = [page.relative_to(folder) for page in folder.rglob("*.html")]
    return [page.with_suffix("").as_posix() for page in found]


def gather(sites: Sequence[Site], root: Path, folder: Path) -> None:
    """Put the pages of all languages in a new folder, the notebooks and one MathJax beside them."""
    shutil.rmtree(folder, ignore_errors=True)
    for site in sites:
        shutil.copytree(site.pages, folder / site.language)
        for notebook in (root / "notebooks" / site.language).glob("module_*.ipynb"):
            shutil.copy(notebook, folder / site.language / folder_of(notebook.stem))
    copy_mathjax(folder / "_mathjax")


def last_of(place: Path) -> Path:
    """Where the folder lies that had this place before."""
    return place.with_name(f"{place.name}.old")


def bring_back(place: Path) -> None:
    """Give the last folder its place again, if a command died as it put a new one there."""
    if last_of(place).exists() and not place.exists():
        last_of(place).rename(place)


def put_in_place(new: Path, place: Path) -> None:
    """Let a folder that is whole take the place of the last one."""
    old = last_of(place)
    shutil.rmtree(old, ignore_errors=True)
    if place.exists():
        place.rename(old)
    new.rename(place)
    shutil.rmtree(old, ignore_errors=True)


def main(argv: list[str] | None = None, root: Path = ROOT) -> int:
    """Build the pages and say where they are."""
    parser = argparse.ArgumentParser(prog="python -m course_build.site", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.parse_args(argv)
    try:
        if build_site(root, os.environ):
            print("broken: Sphinx has warnings, above", file=sys.stderr)
            return 2
    except (CourseError, BootstrapError) as error:
        print(error, file=sys.stderr)
        return 2
    except (OSError, BrokenExecutor) as error:
        print(f"broken: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"stopped; {PAGES} is as it was", file=sys.stderr)
        return 130
    print(f"to read them: {PAGES}/index.html")
    print(f"to serve them at {PREVIEW}: {SERVE}")
    if not read_settings(root, os.environ).site:
        print(f"as long as COURSE_SITE tells no address, {SITEMAP} names {PREVIEW}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
