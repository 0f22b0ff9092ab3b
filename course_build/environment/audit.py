"""Ask whether the installed packages have known vulnerabilities: the pins and all they bring along.

    python -m course_build.environment.audit [--service osv] [options of pip-audit]

pip-audit asks for each package by name and version; this names every package that is installed
here, and takes no silence for an answer. Exit code 0: asked about each, and nothing is known but
what ACCEPTED says; 1: something is known, or ACCEPTED says more than is true; 2: the service could
not be asked about each.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import Version

SERVICES = ("pypi", "osv")
SHOWN = 5  # packages that a message names
ACCEPTED: dict[str, str] = {}  # advisory: why the course lives with it


class AuditError(Exception):
    """The service has not been asked about everything; the message says why."""


def installed() -> dict[str, str]:
    """List the packages of this environment: name and public version (2.13.0, not 2.13.0+cpu)."""
    return {
        str(canonicalize_name(found.name)): Version(found.version).public
        for found in distributions()
    }


def ask(packages: Mapping[str, str], options: list[str]) -> dict[str, Any]:
    """Have pip-audit ask about packages and return its answer; AuditError when it has none."""
    with tempfile.TemporaryDirectory(prefix="course-audit-") as name:
        listed, answer = Path(name, "packages.txt"), Path(name, "answer.json")
        text = "".join(f"{name}=={version}\n" for name, version in packages.items())
        listed.write_text(text, encoding="ascii")
        command = [sys.executable, "-m", "pip_audit", "--requirement", str(listed)]
        command += ["--no-deps", "--disable-pip", "--progress-spinner", "off", "--desc", "off"]
        command += ["--format", "json", "--output", str(answer), *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not answer.exists():
            raise AuditError(f"pip-audit has no answer; {last_words(done.stderr)}")
        return json.loads(answer.read_text(encoding="utf-8"))


def last_words(text: str) -> str:
    """Return the last line that somebody said."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it ended without a word"


def known(packages: Mapping[str, str], answer: Mapping[str, Any]) -> dict[str, str]:
    """Return what is known, a line for each advisory; AuditError unless each package was found."""
    found, silent = {}, dict(packages)
    for entry in answer["dependencies"]:
        if "vulns" not in entry:
            continue
        silent.pop(entry["name"], None)
        for advisory in entry["vulns"]:
            fixed = ", ".join(advisory["fix_versions"]) or "nothing yet"
            aliases = f" ({', '.join(advisory['aliases'])})" if advisory["aliases"] else ""
            where = f"{entry['name']} {entry['version']}"
            found[advisory["id"]] = f"{where}: {advisory['id']}{aliases}; fixed: {fixed}"
    if silent:
        first = ", ".join(sorted(silent)[:SHOWN]) + (", ..." if len(silent) > SHOWN else "")
        raise AuditError(
            f"no answer about {len(silent)} of {len(packages)} packages ({first}); a mirror of the "
            "index may have no advisories: ask somebody else with --service"
        )
    return found


def judge(found: Mapping[str, str], accepted: Mapping[str, str]) -> list[str]:
    """List what is left to do: advisories that nobody accepted, and acceptances without one."""
    new = [line for advisory, line in found.items() if advisory not in accepted]
    needless = [a for a in accepted if a not in found]
    return new + [f"{a} is accepted but not known here; remove it" for a in needless]


def main(arguments: list[str] | None = None) -> int:
    """Audit this environment and return the exit code."""
    prog = "python -m course_build.environment.audit"
    parser = argparse.ArgumentParser(prog, description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--service", choices=SERVICES, default=SERVICES[0], help="whom to ask")
    options, more = parser.parse_known_args(arguments)
    packages = installed()
    try:
        answer = ask(packages, ["--vulnerability-service", options.service, *more])
        found = known(packages, answer)
    except AuditError as error:
        print(f"[course] the audit did not happen: {error}", file=sys.stderr)
        return 2
    work = judge(found, ACCEPTED)
    print(*work, sep="\n", end="\n" if work else "")
    print(f"[course] asked {options.service} about {len(packages)} packages; {len(work)} to do")
    return 1 if work else 0


if __name__ == "__main__":
    sys.exit(main())
