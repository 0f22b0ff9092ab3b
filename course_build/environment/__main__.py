"""python3 -m course_build.environment ARGUMENTS: the environment's Python, once it is ready."""

import sys

from course_build.environment.bootstrap import main

sys.exit(main(sys.argv[1:]))
