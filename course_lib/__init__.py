"""The course's library: each idea once, in the file named after it."""
