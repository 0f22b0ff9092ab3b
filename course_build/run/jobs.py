"""Which notebooks a run executes, and where their executed copies go."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from course_build.build import build_course
from course_build.files import read_files, write_files
from course_build.run.outcome import Job
from course_build.settings import SETTINGS_FILE, parse_settings

ROOT = Path(__file__).resolve().parents[2]
EXECUTED = ROOT / "build" / "executed"
EDITIONS = ("learner", "solved")  # the committed one, and the one with the solutions in place


class ChoiceError(Exception):
    """The command line names a notebook that is not there; the message says which are."""


def find_jobs(
    folders: Mapping[str, Path], executed: Path, languages: Sequence[str], modules: Sequence[str]
) -> list[Job]:
    """List the notebooks in each edition's folder, narrowed to some languages and modules."""
    return [
        Job(path, edition, path.parent.name, executed / edition / path.parent.name / path.name)
        for edition, folder in folders.items()
        for path in sorted(folder.glob("*/*.ipynb"))
        if (not languages or path.parent.name in languages)
        and (not modules or any(_is_module(path.stem, module) for module in modules))
    ]


def _is_module(stem: str, module: str) -> bool:
    return stem == module or (module.isdecimal() and stem.startswith(f"module_{int(module):02d}_"))


def render_solved() -> None:
    """Render the edition with the solutions in place, which is not committed; CourseError."""
    settings = parse_settings((ROOT / SETTINGS_FILE).read_text(encoding="utf-8"))
    files = read_files(ROOT)
    course = build_course(files, settings, list(files.sources), settings.languages)
    write_files(ROOT, course.solved)


def find_course(
    editions: Sequence[str] = EDITIONS, languages: Sequence[str] = (), modules: Sequence[str] = ()
) -> list[Job]:
    """List the course's own notebooks: the committed ones, and the solved ones rendered now."""
    folders = {"learner": ROOT / "notebooks", "solved": ROOT / "build" / "solved"}
    if "solved" in editions:
        render_solved()
    chosen = {edition: folders[edition] for edition in editions}
    return find_jobs(chosen, EXECUTED, languages, modules)


def check_choice(languages: Sequence[str], modules: Sequence[str]) -> None:
    """Refuse a language or module of which no notebook is rendered, and name those there are."""
    jobs = find_jobs({"learner": ROOT / "notebooks"}, EXECUTED, (), ())
    if not jobs:
        raise ChoiceError("no notebook is rendered; `make notebooks` renders all")
    known = sorted({job.language for job in jobs})
    for language in languages:
        if language not in known:
            raise ChoiceError(f"--lang {language}: choose from {', '.join(known)}")
    names = sorted({job.name for job in jobs})
    for module in modules:
        if not any(_is_module(name, module) for name in names):
            raise ChoiceError(f"--module {module}: choose from {', '.join(map(_brief, names))}")


def _brief(stem: str) -> str:
    found = re.match(r"module_(\d\d)_", stem)
    return str(int(found[1])) if found else stem
