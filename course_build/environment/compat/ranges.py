"""The ranges that pyproject.toml declares, and what to install at either end of them."""

import re
from collections.abc import Mapping

ENDS = ("oldest", "newest")
LOWER = re.compile(r"([A-Za-z0-9._-]+)>=([0-9]+(?:\.[0-9]+)*)")
PIN = re.compile(r"([A-Za-z0-9._-]+)==\S+")
EXTRAS = ("plots",)  # what the notebooks need besides the library's dependencies


class RangeError(Exception):
    """A declared range is not of the one form that can be read here; the message says which."""


def declared(text: str) -> dict[str, str]:
    """Return the lowest version of Python ("python") and of each package, from pyproject.toml."""
    import tomllib  # not in a Python that is too old, which is told so first

    project = tomllib.loads(text)["project"]
    extras = project["optional-dependencies"]
    packages = [*project["dependencies"], *(line for name in EXTRAS for line in extras[name])]
    bounds: dict[str, str] = {}
    for line in ("python" + project["requires-python"], *packages):
        found = LOWER.fullmatch(line)
        if found is None:
            raise RangeError(f"pyproject.toml declares {line!r}; write it as name>=version")
        bounds[found[1]] = found[2]
    return bounds


def requirements(end: str, bounds: Mapping[str, str], pins: str) -> str:
    """Put one end of the declared ranges in the place of the pins; other pins stay as they are."""
    packages = {name: bound for name, bound in bounds.items() if name != "python"}
    lines = [line.partition("#")[0].strip() for line in pins.splitlines()]
    for line in filter(None, lines):
        if PIN.fullmatch(line) is None:
            raise RangeError(f"requirements.txt says {line!r}; write it as name==version")
    kept = [line for line in lines if line and line.partition("==")[0] not in packages]
    operator = "==" if end == "oldest" else ">="
    return "\n".join([*(name + operator + bound for name, bound in packages.items()), *kept, ""])


def wrong_python(end: str, bounds: Mapping[str, str], version: tuple[int, int]) -> str | None:
    """Say why a Python cannot prove one end of the ranges; None when it can."""
    oldest = bounds["python"]
    if end == "newest" or "{}.{}".format(*version) == oldest:
        return None
    return (
        f"oldest means Python {oldest} too, and this is {version[0]}.{version[1]}; name another: "
        f"make compat PYTHON=python{oldest} ARGS=oldest"
    )
