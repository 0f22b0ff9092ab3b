"""Translations out to gettext PO files and back, for those who work in Poedit or Weblate."""
