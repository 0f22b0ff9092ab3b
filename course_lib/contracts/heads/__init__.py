"""Multi-head attention: its contract and the mistakes people make in it."""
