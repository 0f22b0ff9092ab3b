"""Losses over texts: their four contracts and the mistakes people make in them."""
