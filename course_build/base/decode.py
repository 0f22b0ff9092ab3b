"""A file's bytes as text, refusing whatever would differ from machine to machine."""

from course_build.base.findings import CourseError, Finding

BOM = b"\xef\xbb\xbf"


def decode(path: str, data: bytes) -> str:
    """Read UTF-8 with LF line ends and something in it; raises CourseError for all else."""
    if data.startswith(BOM):
        raise _refusal(
            path, 1, "bom", "the file begins with a byte order mark", "save as UTF-8 without BOM"
        )
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        message = f"not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}"
        raise _refusal(path, line, "utf-8", message, "save the file as UTF-8") from error
    if "\r" in text:
        line = text[: text.index("\r")].count("\n") + 1
        message = "a carriage return: lines must end in LF alone"
        raise _refusal(path, line, "line-endings", message, "save with Unix line endings (LF)")
    if not text.strip():
        raise _refusal(path, 1, "empty", "the file is empty", "write its first cell, or remove it")
    return text


def _refusal(path: str, line: int, rule: str, message: str, mend: str) -> CourseError:
    return CourseError([Finding(path, line, None, rule, message, mend)])
