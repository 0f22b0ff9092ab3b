"""Views to move by hand, which are figures where nobody can: numbers and labels in."""
