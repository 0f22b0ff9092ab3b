"""Everything that is exported for teachers, as values: {path: content}."""

from collections.abc import Iterator, Mapping

from course_build.base.places import Files
from course_build.base.settings import Settings
from course_build.building.course import Course
from course_build.notebook.glossary_links import PAGE
from course_build.notebook.head import module_number
from course_build.notebook.render import to_bytes
from course_build.pages.glossary_page import page_path
from course_build.teaching.assignment import CONFIG, assignment, unlinked
from course_build.teaching.catalogue import Known
from course_build.teaching.editions import student_edition, teacher_edition
from course_build.teaching.modules import Module, modules


def exports(course: Course, files: Files, settings: Settings, known: Known) -> dict[str, bytes]:
    """Make the editions and the nbgrader courses: {path below build/teaching: content}."""
    made: dict[str, bytes] = {}
    for module in modules(course, files, settings):
        made |= dict(_editions(module, known))
        made |= dict(_assignment(module, course.pages))
    for language in settings.languages:
        for edition in ("student", "teacher"):
            if page_path(language) in course.pages:
                made[f"{edition}/{language}/{PAGE}"] = course.pages[page_path(language)]
        made[f"nbgrader/{language}/nbgrader_config.py"] = CONFIG.encode()
    return made


def assignment_name(stem: str) -> str:
    """What nbgrader calls the module: module_03."""
    return f"module_{module_number(stem):02d}"


def _editions(module: Module, known: Known) -> Iterator[tuple[str, bytes]]:
    place = f"{module.language}/{module.stem}.ipynb"
    yield f"student/{place}", to_bytes(student_edition(module))
    yield f"teacher/{place}", to_bytes(teacher_edition(module, known))


def _assignment(module: Module, pages: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    """The assignment's notebook, and beside it the glossary, whose links lead nowhere else."""
    folder = f"nbgrader/{module.language}/source/{assignment_name(module.stem)}"
    notebook = f"{module.stem}.ipynb"
    yield f"{folder}/{notebook}", to_bytes(assignment(module))
    page = pages.get(page_path(module.language))
    if page:
        yield f"{folder}/{PAGE}", unlinked(page.decode(), {notebook, ""}).encode()
