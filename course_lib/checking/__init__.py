"""The teachers' command, and the supervision of child processes that it shares with the runner.

`supervisor`, `nursery`, `held`, `alone` and `network` need nothing but Python (psutil apart, off
Linux): course_build/run imports them, and these alone of all course_lib.
"""
