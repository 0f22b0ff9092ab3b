"""What can go wrong in a decoder, one type each: a caller can catch it, a reader can look it up.

Whoever raises one says what happened, with the numbers, and what to do about it.
"""


class ShapeMismatch(ValueError):
    """Sizes that belong together disagree: a weight and the model, a cache and what enters it."""


class ContextOverflow(ValueError):
    """The text is longer than the model has positions for: shorten it, or say what to drop."""


class CacheExhausted(RuntimeError):
    """The key-value cache is full: there is no place left to remember one more position."""


class CausalityViolation(AssertionError):
    """A position has read its own future: every likelihood of this model is worthless."""
