"""Which notebooks a run executes, in which order, and where their executed copies go."""

import json
import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from course_build.base.files import changed_files, read_files, write_files
from course_build.base.settings import SETTINGS_FILE, parse_settings
from course_build.building.course import build_course
from course_build.outputs.executed import joined
from course_build.run.outcome import Job
from course_lib.checking.regular import read_regular

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
    changed = changed_files(ROOT, course.solved)
    write_files(ROOT, {path: course.solved[path] for path in changed})


def find_course(
    editions: Sequence[str] = EDITIONS,
    languages: Sequence[str] = (),
    modules: Sequence[str] = (),
    executed: Path = EXECUTED,
) -> list[Job]:
    """List the course's own notebooks: the committed ones, and the solved ones rendered now."""
    folders = {"learner": ROOT / "notebooks", "solved": ROOT / "build" / "solved"}
    if "solved" in editions:
        render_solved()
    chosen = {edition: folders[edition] for edition in editions}
    return find_jobs(chosen, executed, languages, modules)


def label(job: Job) -> str:
    """Name a job as all machines name it: edition, language and notebook."""
    return f"{job.edition}/{job.language}/{job.name}"


def code_size(job: Job) -> int:
    """Count the characters of a notebook's code; 0 for a file that is no notebook."""
    try:
        cells = json.loads(read_regular(job.notebook))["cells"]
        return sum(len(joined(cell["source"])) for cell in cells if cell["cell_type"] == "code")
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return 0


def longest_first(jobs: Sequence[Job], seconds: Mapping[str, float]) -> list[Job]:
    """Put the jobs that take longest first, by the seconds of earlier runs (keys as in `label`).

    A notebook that never ran takes as long as its code is big, at the usual seconds a character.
    """
    sizes = {job: code_size(job) for job in jobs}
    known = [job for job in jobs if sizes[job] and label(job) in seconds]
    rates = [seconds[label(job)] / sizes[job] for job in known]
    rate = statistics.median(rates) if rates else 1.0
    return sorted(jobs, key=lambda job: -seconds.get(label(job), rate * sizes[job]))


def parse_shard(text: str) -> tuple[int, int]:
    """Read `i/n`: this machine is number i, from 1, of n machines that share the notebooks."""
    found = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    shard = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= shard[0] <= shard[1]:
        raise ValueError(f"{text}: write I/N with 1 <= I <= N, for example 1/2 and 2/2")
    return shard


def shard_of(jobs: Sequence[Job], shard: tuple[int, int]) -> list[Job]:
    """Take one machine's share of the jobs; the shares of all machines hold each job once.

    The biggest notebook goes to the share that is smallest so far, then the next: names and sizes
    decide, never how fast a machine is, so machines that were given the same choice agree.
    """
    number, count = shard
    loads = [0] * count
    mine = set()
    sizes = {job: code_size(job) for job in jobs}
    for job in sorted(jobs, key=lambda job: (-sizes[job], label(job))):
        lightest = loads.index(min(loads))
        loads[lightest] += max(1, sizes[job])
        if lightest == number - 1:
            mine.add(job)
    return [job for job in jobs if job in mine]


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
