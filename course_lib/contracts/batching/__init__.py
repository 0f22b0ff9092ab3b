"""Batches of prompts: their contract and the mistakes people make in them."""
