"""Proofreading what a reader meets: spelling, typography, look-alike letters, leftovers, terms.

`pieces` says what a text is and where its lines are; `markdown`, `strings` and `gather` take
texts out of the files; `words` knows right words; each rule is a file; `command` is the edge.
What differs from language to language is a table in `languages`.
"""
