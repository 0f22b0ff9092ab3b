"""The virtual environment, its pins, its known faults; the ranges that are declared."""
