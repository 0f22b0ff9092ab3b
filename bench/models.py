"""What is timed: three shapes, and one random GPT-2 checkpoint of each in the public layout."""

from typing import NamedTuple

import numpy as np

FLOAT = 4  # bytes of a float32: every peer computes in it


class Model(NamedTuple):
    """A GPT-2 shape and how much of it is run: rows of a batch, prompt, steps."""

    name: str
    d_model: int
    n_layers: int
    n_heads: int
    vocab_size: int
    context_length: int
    batches: tuple[int, ...]
    prompt: int
    steps: int
    prefill: int  # tokens of the prompt whose prefill is timed; 0 = not timed

    @property
    def d_head(self):
        return self.d_model // self.n_heads

    @property
    def room(self):
        """Positions that a cache needs for everything that is run."""
        return max(self.prompt + self.steps + 1, self.prefill + 1)

    @property
    def weight_bytes(self):
        """Bytes of weights that one decode step must read, once for the whole batch.

        Of the two embedding tables it reads one row a sequence, but the tied unembedding whole.
        """
        d = self.d_model
        block = 12 * d * d + 13 * d  # q, k, v, o and two d x 4d; their biases and two norms
        return FLOAT * (self.n_layers * block + 2 * d + d * self.vocab_size)

    def step_bytes(self, batch):
        """Mean bytes that a timed decode step must read: the weights and every row's cache."""
        positions = self.prompt + (self.steps + 1) / 2
        return self.weight_bytes + batch * FLOAT * 2 * self.n_layers * self.d_model * positions

    def prompts(self, batch, width):
        """Return the same random prompts for everyone, int64 [batch, width]."""
        rng = np.random.default_rng(100 * batch + width)
        return rng.integers(0, self.vocab_size, size=(batch, width))


MODELS = (
    Model("gpt2-small", 768, 12, 12, 50257, 1024, (1, 8, 32), prompt=32, steps=32, prefill=128),
    Model("small", 384, 6, 6, 4096, 1024, (1,), prompt=32, steps=128, prefill=0),
    Model("tiny", 64, 2, 4, 256, 1024, (1,), prompt=32, steps=400, prefill=0),
)
QUICK = (Model("tiny", 64, 2, 4, 256, 1024, (1, 8), prompt=8, steps=24, prefill=24),)


def make_network(model):
    """Make a random GPT-2 with transformers that does not repeat one token.

    As it comes, its blocks add so little that the tied unembedding answers with the last token.
    Here a weight has a variance of 4/d_in; gains and biases are not trivial.
    """
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(4)
    config = GPT2Config(
        vocab_size=model.vocab_size,
        n_positions=model.context_length,
        n_embd=model.d_model,
        n_layer=model.n_layers,
        n_head=model.n_heads,
        bos_token_id=0,
        eos_token_id=0,
    )
    network = GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if parameter.ndim == 1:
                is_gain = "ln_" in name and name.endswith("weight")
                parameter.copy_(is_gain + 0.05 * torch.randn_like(parameter))
            elif "wte" in name or "wpe" in name:
                parameter.normal_(0, 0.04)
            else:
                parameter.normal_(0, 2 / parameter.shape[0] ** 0.5)
    return network
