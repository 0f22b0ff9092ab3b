"""The library read as text: its definitions, and how a notebook carries them."""
