"""Entry of `python -m course_build.run`."""

import signal
import sys

from course_build.run.cli import main

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # leave no worker behind then either
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("stopped; what had ended is kept", file=sys.stderr)
        sys.exit(130)
