"""Print the mutation score at the end of a run that measured it."""

from .score import scores, table


def pytest_terminal_summary(terminalreporter):
    if scores.cache_info().currsize:
        terminalreporter.section("mutation score")
        terminalreporter.line(table("en").rstrip())
