"""The command `python -m course_lib.contracts`."""

from course_lib.contracts.runner import main

raise SystemExit(main())
