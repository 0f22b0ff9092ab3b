"""Pinned numbers: the canonical JSON text of a reference file, proved against SHA256SUMS."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from course_build.base.findings import CourseError, Finding
from course_build.base.places import REFERENCES
from course_build.source.cells import Cell

SUMS = f"{REFERENCES}/SHA256SUMS"


@dataclass(frozen=True)
class Reference:
    """A reference file's text and digest, as a notebook carries them."""

    text: str
    digest: str

    @property
    def code(self) -> str:
        """The two assignments; JSON has no line breaks, so one literal holds it."""
        literal = self.text.replace("\\", "\\\\").replace("'", "\\'")
        return f"REFERENCE_JSON = '{literal}'\nREFERENCE_SHA256 = \"{self.digest}\""


def load_reference(cell: Cell, files: Mapping[str, bytes]) -> Reference:
    """The reference that a cell asks for; refuses any that is missing, altered or not canonical."""
    path = f"{REFERENCES}/{cell.reference}.json"
    if path not in files:
        raise CourseError(
            [cell.finding("no-reference", f"{path} does not exist", "run: make reference")]
        )
    data = files[path]
    digest = hashlib.sha256(data).hexdigest()
    text = _canonical_text(path, data)
    expected = _expected_digest(path, files)
    if digest != expected:
        raise _error(
            path, "reference-digest", f"its SHA-256 is {digest}, {SUMS} says {expected}",
            "run: make reference; or correct the sums if the change is meant",
        )  # fmt: skip
    return Reference(text, digest)


def _canonical_text(path: str, data: bytes) -> str:
    try:
        text = data.decode("utf-8")
        values = json.loads(text, parse_constant=_refuse_constant)
    except ValueError as error:
        raise _error(
            path, "reference-json", f"not valid JSON: {error}", "run: make reference"
        ) from error
    canonical = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    if text not in (canonical, json.dumps(values, sort_keys=True, separators=(",", ":"))):
        raise _error(
            path, "reference-canonical",
            "not canonical JSON (sorted keys, no spaces, no newline at the end)",
            "do not edit it; run: make reference",
        )  # fmt: skip
    return text


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not a number that JSON has")


def _expected_digest(path: str, files: Mapping[str, bytes]) -> str:
    name = path.removeprefix(f"{REFERENCES}/")
    for line in files.get(SUMS, b"").decode("utf-8", "replace").splitlines():
        match = re.fullmatch(r"([0-9a-f]{64}) [ *](.+)", line)
        if match and match.group(2) == name:
            return match.group(1)
    raise _error(path, "reference-sums", f"{SUMS} has no line for {name}", f"add it to {SUMS}")


def _error(path: str, rule: str, message: str, mend: str) -> CourseError:
    return CourseError([Finding(path, 1, None, rule, message, mend)])
