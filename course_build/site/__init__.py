"""The course as pages: the executed notebooks of every language, built by Sphinx, all offline."""
