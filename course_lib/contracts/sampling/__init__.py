"""Distributions and draws from them: their contracts and the mistakes people make in them."""
