"""Key-value caches that are wrong in one way each, as people reported them."""

from course_lib.contracts.cache._cache_memory import CACHE_MEMORY_MISTAKES
from course_lib.contracts.cache._cache_prefixes import CACHE_PREFIX_MISTAKES
from course_lib.contracts.cache._cache_rows import CACHE_ROW_MISTAKES

CACHE_MISTAKES = (*CACHE_ROW_MISTAKES, *CACHE_MEMORY_MISTAKES, *CACHE_PREFIX_MISTAKES)
