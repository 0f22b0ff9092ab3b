"""What is compared with the others: the course's fast decoder."""

import numpy as np

from course_lib.decoder_lm.fast import FastDecoder
from course_lib.decoder_lm.shape import map_parameters
from course_lib.decoder_lm.weights import load_gpt2, load_gpt2_shape

from .peer import Peer


class Ours(Peer):
    """FastDecoder on the memory-mapped checkpoint that `load_gpt2` reads."""

    note = "FastDecoder on load_gpt2's memory-mapped views"

    def __init__(self, model, folder, threads):
        self.decoder = FastDecoder(self.parameters(folder), load_gpt2_shape(folder))

    def parameters(self, folder):
        return load_gpt2(folder)

    def begin(self, prompts, steps):
        return self.decoder.prefill(prompts.tolist())

    def step(self, tokens):
        return self.decoder.decode_step(tokens)


class OursFromArrays(Ours):
    """The same on contiguous arrays in memory, as a trained model hands them over."""

    note = "FastDecoder on contiguous arrays in memory"

    def parameters(self, folder):
        return map_parameters(lambda view: np.array(view, order="C"), load_gpt2(folder))
