"""The speed comparison: python -m bench (make bench), no test and no promise of a speed."""
