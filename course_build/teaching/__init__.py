"""The course for those who teach it: student and teacher editions, an nbgrader course, slides."""
