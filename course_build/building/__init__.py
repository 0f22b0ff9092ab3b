"""All sources to all files: the course as values, then written or compared."""
