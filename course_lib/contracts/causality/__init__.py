"""Causality of a whole model: its contract and the mistakes people make in it."""
