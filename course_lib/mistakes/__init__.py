"""Mistakes that people really shipped, as functions that run and are wrong in one way each."""
