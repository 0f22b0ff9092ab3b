"""The command `python -m course_lib.checking`."""

from course_lib.checking.door import main

raise SystemExit(main())
