"""The command `python -m course_lib.checking`."""

from course_lib.checking.judging import main

raise SystemExit(main())
