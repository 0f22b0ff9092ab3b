"""Key-value caches that are wrong in one way each, as people reported them."""

from course_lib.contracts.cache.memory_mistakes import CACHE_MEMORY_MISTAKES
from course_lib.contracts.cache.row_mistakes import CACHE_ROW_MISTAKES

CACHE_MISTAKES = (*CACHE_ROW_MISTAKES, *CACHE_MEMORY_MISTAKES)
