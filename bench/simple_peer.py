"""The straightforward decoder of the notebook: what the tuned one is measured against."""

from course_lib.decoder_lm.simple import SimpleDecoder
from course_lib.decoder_lm.weights import load_gpt2, load_gpt2_shape

from .peer import Peer


class Simple(Peer):
    """SimpleDecoder, one text at a time, in float32."""

    note = "SimpleDecoder, float32; it has no batch"
    largest_batch = 1

    def __init__(self, model, folder, threads):
        self.decoder = SimpleDecoder(load_gpt2(folder), load_gpt2_shape(folder))

    def begin(self, prompts, steps):
        self.decoder.begin()
        return self.decoder.extend(prompts[0].tolist())[-1:]

    def step(self, tokens):
        return self.decoder.extend(tokens.tolist())[-1:]
