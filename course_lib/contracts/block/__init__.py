"""The pre-norm block: its contract and the mistakes people make in it."""
