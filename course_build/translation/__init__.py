"""The two languages held in step: parity, stamps, what is stale."""
