"""The proof; a package by name, because one of its tools brings a package `tests` of its own."""
