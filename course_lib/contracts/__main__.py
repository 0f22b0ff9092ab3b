"""The door by which the command `python -m course_lib.contracts` is known."""

from course_lib.checking.door import main

raise SystemExit(main())
