"""The command line: read it, and show verdicts to a person or to a machine."""

import argparse
import inspect
import math
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from course_lib.checking.capacity import usable_workers
from course_lib.checking.plain import json_line, printable
from course_lib.checking.task import (
    DEFAULT_MEMORY,
    DEFAULT_TIMEOUT,
    CandidateTask,
    candidate_form,
    contract_settings,
    known_contracts,
    option_of,
    read_task,
)
from course_lib.checking.texts import LANGUAGES, says

_USAGE = "python -m course_lib.contracts CONTRACT FILE.py:FUNCTION ... [options]"
_CODES = {"accepted": 0, "violation": 1, "not_attempted": 1, "not_runnable": 2}


class CommandError(Exception):
    """The command line asks for something impossible; the message says what to change."""


@dataclass(frozen=True)
class Command:
    """What the command line asks for."""

    tasks: tuple[CandidateTask, ...]
    language: str = LANGUAGES[0]
    as_json: bool = False
    jobs: int = 1
    listing: bool = False


def read_command(argv: list[str] | None, description: str) -> Command:
    """Read the command line; raises CommandError, in the language that it asks for."""
    contracts = known_contracts()
    options, unknown = _command_parser(contracts, description).parse_known_intermixed_args(argv)
    language = options.language
    if language not in LANGUAGES:
        raise CommandError(f"--language {language}: choose from {', '.join(LANGUAGES)}")
    if unknown:
        raise CommandError(says(language, "unknown_option", options=" ".join(unknown)))
    if options.list:
        return Command((), language, options.json, listing=True)
    if not options.words:
        raise CommandError(says(language, "nothing"))
    name, *candidates = options.words
    if not candidates:
        if name not in contracts:
            known = ", ".join(contracts)
            raise CommandError(says(language, "no_contract", name=name, known=known))
        form = candidate_form(contracts[name], language)
        raise CommandError(says(language, "no_candidates", form=form))
    limits = {
        "language": language,
        "timeout": _positive("--timeout", options.timeout, language),
        "memory": _whole("--memory", options.memory, language),
        "settings": _command_settings(contracts.get(name), options, language),
    }
    jobs = _whole("--jobs", options.jobs, language) if options.jobs else usable_workers()
    tasks = tuple(read_task(name, candidate, **limits) for candidate in candidates)
    return Command(tasks, language, options.json, jobs)


def _command_parser(
    contracts: dict[str, Callable[..., Any]], description: str
) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m course_lib.contracts",
        usage=_USAGE,
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("words", nargs="*", metavar="CONTRACT FILE.py:FUNCTION", help="--list shows the contracts")
    add("--list", action="store_true", help="list the contracts and what each of them takes")
    add("--json", action="store_true", help="one line of strict JSON for each candidate")
    known = ", ".join(LANGUAGES)
    default = LANGUAGES[0]
    add("--language", default=default, metavar="CODE", help=f"{known} (default: {default})")
    limit = f"for each candidate (default: {DEFAULT_TIMEOUT:g})"
    add("--timeout", default=DEFAULT_TIMEOUT, metavar="SECONDS", help=limit)
    limit = f"for each candidate, beyond what torch itself takes (default: {DEFAULT_MEMORY})"
    add("--memory", default=DEFAULT_MEMORY, metavar="MIB", help=limit)
    add("--jobs", metavar="N", help="candidates at once (default: as fits here)")
    users: dict[str, list[str]] = {}
    for name, contract in contracts.items():
        for setting in contract_settings(contract):
            users.setdefault(setting, []).append(name)
    for setting, names in users.items():
        add(option_of(setting), metavar="VALUE", help=f"for the contract {', '.join(names)}")
    return parser


def _command_settings(
    contract: Callable[..., Any] | None, options: argparse.Namespace, language: str
) -> dict[str, Any]:
    """Collect the settings that were given; what the contract does not know is kept as text."""
    known = contract_settings(contract) if contract else {}
    every = {name for other in known_contracts().values() for name in contract_settings(other)}
    given = {name: getattr(options, name) for name in sorted(every)}
    return {
        name: _setting_value(known.get(name), option_of(name), text, language)
        for name, text in given.items()
        if text is not None
    }


def _setting_value(
    parameter: inspect.Parameter | None, option: str, text: str, language: str
) -> Any:
    """A whole number where the contract wants an int, else names separated by commas."""
    if parameter is not None and parameter.annotation is int:
        return _whole(option, text, language)
    return tuple(part.strip() for part in text.split(","))


def _positive(option: str, value: str | float, language: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise CommandError(says(language, "bad_number", option=option, value=value))
    return number


def _whole(option: str, value: str | int, language: str) -> int:
    try:
        number = int(value)
    except ValueError:
        number = 0
    if number < 1:
        raise CommandError(says(language, "bad_whole", option=option, value=value))
    return number


def show_line(text: str) -> None:
    """Print a line at once, in UTF-8 where it is JSON, whatever the terminal can show."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    print(text.encode(encoding, "replace").decode(encoding), flush=True)


def show_verdict(verdict: dict[str, Any], command: Command) -> None:
    """Show one verdict: a line of JSON, or the report as a person reads it."""
    if command.as_json:
        _show_json(verdict)
        return
    if len(command.tasks) > 1:
        show_line(verdict["candidate"])
    told = {"contract": verdict["contract"], "reason": verdict.get("reason", "")}
    text = verdict.get("text") or says(command.language, "not_runnable", **told)
    show_line(printable(text))
    printed = verdict.get("printed")
    if printed:
        show_line(says(command.language, "printed", size=printed["bytes"]))
        show_line("\n".join(f"  | {line}" for line in printed["lines"]))
    if len(command.tasks) > 1:
        show_line("")


def _show_json(value: dict[str, Any]) -> None:
    line = json_line(value) + "\n"
    if hasattr(sys.stdout, "buffer"):
        sys.stdout.flush()
        sys.stdout.buffer.write(line.encode("utf-8"))
    else:
        sys.stdout.write(line)
    sys.stdout.flush()


def show_contracts(command: Command) -> None:
    """List the contracts and what each of them takes."""
    for name, contract in known_contracts().items():
        settings = contract_settings(contract)
        form = candidate_form(contract, command.language)
        if command.as_json:
            _show_json({"contract": name, "form": form, "settings": [*settings]})
            continue
        options = [
            f"{option_of(key)} VALUE"
            if parameter.default is parameter.empty
            else f"[{option_of(key)} VALUE]"
            for key, parameter in settings.items()
        ]
        show_line(" ".join([f"{name:<18}", form, *options]))


def show_summary(verdicts: list[str], command: Command) -> None:
    """Count the verdicts, where there are several."""
    if len(verdicts) > 1 and not command.as_json:
        counts = Counter(verdicts)
        show_line(says(command.language, "summary", **{k: counts[k] for k in _CODES}))


def exit_code(verdicts: list[str]) -> int:
    """The worst of all verdicts: 0 accepted, 1 violation or stub, 2 not runnable."""
    return max(_CODES[verdict] for verdict in verdicts)
