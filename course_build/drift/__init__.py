"""What the notebooks print, beside what they printed when it was last accepted."""
