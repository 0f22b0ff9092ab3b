"""`make lab` opens a page that is there, in the language that is asked for or in the first."""

import subprocess

import pytest

from course_build.run.jobs import ROOT

from .desk import LANGUAGES


@pytest.mark.parametrize(
    ("asked", "language"),
    [([], LANGUAGES[0]), *(([f"LANG={code}"], code) for code in LANGUAGES)],
)
def test_make_lab_opens_the_welcome_page_of_a_language(asked, language):
    command = ["make", "-n", "lab", *asked]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    _, _, address = told.partition("--LabApp.default_url=/lab/tree/")
    assert address.split()[0] == f"notebooks/{language}/welcome.md"
    assert (ROOT / address.split()[0]).is_file()
