"""Sinusoidal positions: their contract and the mistakes people make in them."""
