"""Attention and causal attention: their contracts and the mistakes people make in them."""
