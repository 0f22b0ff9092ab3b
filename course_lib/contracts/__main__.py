"""The door by which the command `python -m course_lib.contracts` is known."""

from course_lib.checking.judging import main

raise SystemExit(main())
