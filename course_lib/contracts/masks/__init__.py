"""The causal mask: its contract and the mistakes people make in it."""
