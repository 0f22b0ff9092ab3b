"""Rendered notebooks in, executed notebooks and a report out."""
