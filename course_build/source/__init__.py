"""A source read: its cells, twins, stamps and languages."""
