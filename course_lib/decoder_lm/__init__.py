"""One decoder-only language model, told three times: plain, typed and fast."""
