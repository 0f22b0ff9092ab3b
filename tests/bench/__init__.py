"""The speed comparison: python -m tests.bench (make bench), no test and no promise of a speed."""
