"""The mutation score: how much that is wrong each contract refuses, how much that is right.

python -m tests.contracts.score      measure, print, and write the table into the readmes
"""

import contextlib
import functools
import re
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from course_lib.contracts import ContractViolation
from course_lib.contracts.engine import clause as _clause
from course_lib.contracts.engine.diagnosis import Diagnosis

from .mutants import TookTooLong, mutants, time_limit
from .trial import trials, verdict

READMES = {"en": "README.md", "ru": "README.ru.md"}
HEADS = {
    "en": (
        "contract",
        "wrong variants refused",
        "mistakes named",
        "mutants refused",
        "right variants refused",
    ),
    "ru": (
        "контракт",
        "отвергнуто неверных",
        "ошибок названо",
        "отвергнуто мутантов",
        "отвергнуто верных",
    ),
}
TOTAL = {"en": "all", "ru": "всего"}
BLOCK = re.compile(r"(<!-- score: make score -->\n)(.*?)(<!-- /score -->)", re.DOTALL)


class Score(NamedTuple):
    """Counts as pairs: how many, of how many."""

    wrong: tuple[int, int]
    named: tuple[int, int]
    mutants: tuple[int, int]
    alarms: tuple[int, int]


def survives(check, mutant):
    try:
        with time_limit(2.5), contextlib.redirect_stdout(None):
            return check(mutant).attempted
    except (ContractViolation, TookTooLong):
        return False


@functools.cache
def surviving(contract, function):
    """How many mutants of a right function there are, and the labels of those accepted."""
    trial = trials()[contract]
    right = next(f for f in trial.MUTATED if f.__name__ == function)
    adapt = getattr(trial, "ADAPT", lambda mutant: mutant)
    made = dict(mutants(right))
    with (
        mock.patch.object(_clause, "cut_down", lambda judge, case, breach: (case, breach)),
        mock.patch.object(_clause, "named_by", return_value=Diagnosis()),
    ):
        alive = {label for label, mutant in made.items() if survives(trial.CHECK, adapt(mutant))}
    return len(made), alive


def measure(contract):
    """One contract's score; mutants that are proven to be right are not counted."""
    trial = trials()[contract]
    said = [verdict(contract, "mistake", name) for name in trial.MISTAKES]
    said_all = said + [verdict(contract, "wrong", name) for name in trial.WRONG]
    right = [verdict(contract, "right", name) for name in trial.RIGHT]
    made = [surviving(contract, function.__name__) for function in trial.MUTATED]
    proven = sum(len(alive & set(trial.EQUIVALENT)) for _, alive in made)
    total = sum(count for count, _ in made) - proven
    alive = sum(len(alive - set(trial.EQUIVALENT)) for _, alive in made)
    named = [
        name in verdict.violation.mistakes
        for name, verdict in zip(trial.MISTAKES, said, strict=True)
        if verdict.violation
    ]
    return Score(
        (sum(not each.accepted for each in said_all), len(said_all)),
        (sum(named), len(said)),
        (total - alive, total),
        (sum(not each.accepted for each in right), len(right)),
    )


def summed(scores):
    """The last row: everything together."""
    columns = zip(*scores, strict=True)
    return Score(*(tuple(sum(part) for part in zip(*column, strict=True)) for column in columns))


def row(name, score):
    return "|" + "|".join([name, *(f"{some}/{of}" for some, of in score)]) + "|"


def table(language, scores):
    """The table in markdown, from {contract: Score}."""
    heads = [HEADS[language], ("---",) + ("---:",) * len(Score._fields)]
    lines = ["|" + "|".join(cells) + "|" for cells in heads]
    lines += [row(f"`{contract}`", score) for contract, score in sorted(scores.items())]
    lines.append(row(f"`{TOTAL[language]}`", summed(scores.values())))
    return "\n".join(lines) + "\n"


def written(language, root):
    """The table that stands in a readme."""
    return BLOCK.search((root / READMES[language]).read_text(encoding="utf-8"))[2]


def write(root, scores):
    for language, name in READMES.items():
        path = root / name
        text = path.read_text(encoding="utf-8")
        fresh = BLOCK.sub(rf"\g<1>{table(language, scores)}\g<3>", text)
        path.write_text(fresh, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    measured = {contract: measure(contract) for contract in trials()}
    write(Path(__file__).parents[2], measured)
    print(table("en", measured))
