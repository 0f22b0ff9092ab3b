"""What a peer must be able to do, and how it is timed: the same greedy loop for all."""

import importlib
from time import perf_counter

import numpy as np

PEERS = {
    "ours": "ours:Ours",
    "ours-arrays": "ours:OursFromArrays",
    "simple-numpy": "simple_peer:Simple",
    "torch-twin": "torch_peers:Twin",
    "transformers": "torch_peers:Dynamic",
    "transformers-static": "torch_peers:Static",
    "onnxruntime": "onnx_peer:OnnxRuntime",
    "ctranslate2": "ctranslate2_peer:CTranslate2",
    "llama.cpp": "llama_peer:LlamaCpp",
    "memory": "bandwidth:Memory",
}


def peer_class(name):
    """Import the one peer that is asked for, and no other's library."""
    module, _, attribute = PEERS[name].partition(":")
    return getattr(importlib.import_module(f".{module}", __package__), attribute)


class Peer:
    """A decoder behind `begin` and `step`; both may return a buffer that the next call reuses.

    `prepare` runs before, in a process that has the network of transformers; it writes the
    weights in this peer's own format and may return a note.
    """

    tolerance = 1e-4  # on the logits, against transformers
    note = ""  # what a reader should know about how this peer was run
    largest_batch = 1000

    @staticmethod
    def prepare(model, network, folder):
        pass

    def __init__(self, model, folder, threads):
        raise NotImplementedError

    def begin(self, prompts, steps):
        """Read the prompts [B, T] into an empty cache, with room for the steps -> logits [B, V]."""
        raise NotImplementedError

    def step(self, tokens):
        """Read one more token of every row, [B] -> logits [B, V]."""
        raise NotImplementedError

    def prefill(self, prompts):
        """Read a whole prompt; logits are wanted of its last position only."""
        self.begin(prompts, 1)

    def greedy(self, prompts, steps):
        """Return the seconds of the decode steps alone, and the tokens [B, steps + 1]."""
        tokens = [np.argmax(self.begin(prompts, steps), axis=-1)]
        start = perf_counter()
        for _ in range(steps):
            tokens.append(np.argmax(self.step(tokens[-1]), axis=-1))
        return perf_counter() - start, np.stack(tokens, axis=1)

    def forced(self, prompts, continuation):
        """Return the logits [B, steps + 1, V] of the steps when the tokens [B, steps] are given."""
        logits = [np.array(self.begin(prompts, continuation.shape[1]))]
        logits += [np.array(self.step(tokens)) for tokens in continuation.T]
        return np.stack(logits, axis=1)
