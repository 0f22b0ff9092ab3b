"""Layer norm: its contract and the mistakes people make in it."""
