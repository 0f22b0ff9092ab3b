"""Entry of `python -m course_build.run`."""

import signal
import sys
from typing import Any

from course_build.run.outcome import Terminated


def terminate(*_: Any) -> None:
    """Answer a signal as Ctrl-C is answered: no process is left behind, what ended is reported."""
    raise Terminated


def run() -> None:
    """Run the command line and leave with its exit code."""
    signal.signal(signal.SIGTERM, terminate)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, terminate)  # the terminal is gone; nohup ignores that
    try:
        from course_build.run.cli import main  # takes a while: Ctrl-C is answered meanwhile

        code = main()
    except KeyboardInterrupt as stop:
        print("stopped before any notebook ran", file=sys.stderr)
        code = 143 if isinstance(stop, Terminated) else 130
    for signum in (signal.SIGINT, signal.SIGTERM):  # all is done: a late one changes nothing
        signal.signal(signum, signal.SIG_IGN)
    sys.exit(code)


if __name__ == "__main__":
    run()
