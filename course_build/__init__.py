"""Sources to notebooks: everything between notebooks/src and what a learner opens.

Nothing here imports course_lib or torch: the library is read as text. One exception: run takes the
supervision of child processes from course_lib/checking, which needs neither torch nor the rest.
"""
