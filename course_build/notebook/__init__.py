"""A notebook composed from a source's cells, linted and rendered to bytes."""
