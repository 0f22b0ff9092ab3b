"""Write what teachers need into build/teaching/: editions, an nbgrader course, slides.

    python -m course_build.teaching

student/LANGUAGE/ holds the notebooks without solutions, teacher/LANGUAGE/ the solved ones with
notes, nbgrader/LANGUAGE/ a course folder for `nbgrader generate_assignment`. Exit codes: 0 done;
1 a translation is stale; 2 broken.
"""

import argparse
import sys
from pathlib import Path

from course_build.base.files import read_files
from course_build.base.findings import DONE, WORK, CourseError
from course_build.base.owned import KEPT, remove_strays, write_ours
from course_build.base.settings import SETTINGS_FILE, parse_settings
from course_build.building.course import build_course
from course_build.teaching.catalogue import read_catalogue
from course_build.teaching.exports import exports
from course_build.translation.telling import tell_findings

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "build/teaching"


def teach(root: Path, *, overwrite: bool = False) -> int:
    """Make everything, then write it; what no module makes any more goes. Return the exit code.

    What a teacher changed or added stays.
    """
    settings = parse_settings((root / SETTINGS_FILE).read_text(encoding="utf-8"))
    files = read_files(root)
    course = build_course(files, settings, list(files.sources), settings.languages)
    if course.stale:
        tell_findings(course.stale, settings.languages)
        return WORK
    made = exports(course, files, settings, read_catalogue(root))
    made = {f"{FOLDER}/{path}": content for path, content in made.items()}
    write_ours(root, FOLDER, made, overwrite=overwrite)
    remove_strays(root, FOLDER, made)
    return DONE


def main(argv: list[str] | None = None, root: Path = ROOT) -> int:
    """Write the exports and say where they are."""
    parser = argparse.ArgumentParser(prog="python -m course_build.teaching", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--overwrite", action="store_true", help=f"write over what you changed; {KEPT}/ keeps it"
    )
    options = parser.parse_args(argv)
    try:
        code = teach(root, overwrite=options.overwrite)
    except (CourseError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    if code == DONE:
        print(f"in {FOLDER}/: student/, teacher/, nbgrader/")
    return code


if __name__ == "__main__":
    sys.exit(main())
