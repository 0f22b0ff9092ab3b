"""Tied weights: their contract and the mistakes people make in them."""
