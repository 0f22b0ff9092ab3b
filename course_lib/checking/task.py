"""What is to be checked: a contract, the candidate's file as text, the limits."""

import importlib
import importlib.util
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course_lib.checking.regular import read_regular
from course_lib.checking.texts import LANGUAGES, says

DEFAULT_TIMEOUT = 30.0  # seconds; a contract takes about one
DEFAULT_MEMORY = 1024  # MiB beyond what torch itself takes


@dataclass(frozen=True)
class CandidateTask:
    """One candidate before its contract.

    The text of the candidate's own file is in `source`; other files that it imports are looked
    for in the folder of `path`. `problem` says why there is nothing to run.
    """

    contract: str
    candidate: str
    path: str = ""
    names: tuple[str, ...] = ()
    source: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    language: str = LANGUAGES[0]
    timeout: float = DEFAULT_TIMEOUT
    memory: int = DEFAULT_MEMORY
    problem: str = ""


def known_contracts() -> dict[str, Callable[..., Any]]:
    """The contracts by name, as the package exports them: attention, causal_mask, ..."""
    package = importlib.import_module("course_lib.contracts")
    found = (re.fullmatch("check_(.+)_contract", name) for name in package.__all__)
    return {match[1]: getattr(package, match[0]) for match in found if match}


def contract_functions(contract: Callable[..., Any]) -> list[str]:
    """Name the functions that a contract takes: its positional parameters."""
    parameters = inspect.signature(contract).parameters.values()
    return [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]


def contract_settings(contract: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Name the settings that a contract takes: its keyword-only parameters."""
    parameters = inspect.signature(contract).parameters.values()
    return {p.name: p for p in parameters if p.kind is p.KEYWORD_ONLY}


def candidate_form(contract: Callable[..., Any], language: str = LANGUAGES[0]) -> str:
    """Show how a candidate of a contract is written: `FILE.py:full_logits,cached_logits`."""
    file = says(language, "file_word")
    return f"{file}.py:" + ",".join(contract_functions(contract))


def read_task(contract: str, candidate: str, **options: Any) -> CandidateTask:
    """Read a candidate's file into a task; what stands in the way becomes its `problem`.

    Args:
        contract: a name of `known_contracts`
        candidate: `FILE.py:FUNCTION`, `FILE.py:Class.method`, or `FILE.py:FIRST,SECOND` where the
            contract takes two functions
        options: settings, language, timeout (seconds), memory (MiB), as in CandidateTask
    """
    task = CandidateTask(contract, candidate, **options)
    path, _, names = candidate.rpartition(":")
    problem = _task_problem(task, path, names.split(","))
    source = ""
    if not problem:
        try:
            source = importlib.util.decode_source(read_regular(path))
        except (OSError, SyntaxError, UnicodeDecodeError) as error:
            message = _file_trouble(error, task.language)
            problem = says(task.language, "no_file", file=path, message=message)
    path = str(Path(path).absolute()) if path else ""
    return CandidateTask(
        contract, candidate, path, tuple(names.split(",")), source, problem=problem, **options
    )


def _file_trouble(error: Exception, language: str) -> str:
    if isinstance(error, SyntaxError | UnicodeDecodeError):
        return says(language, "encoding")
    kind = type(error).__name__
    kinds = ("FileNotFoundError", "IsADirectoryError", "PermissionError")
    return says(language, kind) if kind in kinds else str(error)


def _task_problem(task: CandidateTask, path: str, names: list[str]) -> str:
    """Say what is wrong with a task before its file is even opened."""
    contracts = known_contracts()
    if task.contract not in contracts:
        known = ", ".join(contracts)
        return says(task.language, "no_contract", name=task.contract, known=known)
    contract = contracts[task.contract]
    if not path or not all(re.fullmatch(r"\w+(\.\w+)*", name) for name in names):
        return says(task.language, "unnamed")
    if path.endswith(".ipynb"):
        message = says(task.language, "notebook")
        return says(task.language, "no_file", file=path, message=message)
    if len(names) != len(contract_functions(contract)):
        form = candidate_form(contract, task.language)
        return says(task.language, "count", contract=task.contract, form=form)
    return _settings_problem(task, contract_settings(contract))


def _settings_problem(task: CandidateTask, known: dict[str, inspect.Parameter]) -> str:
    named = {"contract": task.contract}
    for name in task.settings:
        if name not in known:
            return says(task.language, "setting_unknown", option=option_of(name), **named)
    for name, parameter in known.items():
        if parameter.default is parameter.empty and name not in task.settings:
            return says(task.language, "setting_needed", option=option_of(name), **named)
    return ""


def option_of(setting: str) -> str:
    """Write a setting as an option of the command line: --vocab-size."""
    return "--" + setting.replace("_", "-")
