"""Counting parameters: its contract and the mistakes people make in it."""
