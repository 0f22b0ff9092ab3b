"""The stages of the decoder behind one face, so that a claim can be made of all of them at once.

A stage has `full(ids)`, one pass without a cache; `begin()` and `extend(ids)`, a new text and its
next chunk; `greedy(prompt, count)` and `log_likelihood(ids)`. The plain one has no cache.
"""

import numpy as np
import torch

from course_lib.decoder_lm import plain
from course_lib.decoder_lm.fast import FastDecoder
from course_lib.decoder_lm.shape import ModelShape, as_arrays, as_lists, random_parameters
from course_lib.decoder_lm.simple import SimpleDecoder, greedy_tokens
from course_lib.decoder_lm.twin import TorchTwin
from course_lib.decoder_lm.typed import SamplingConfig, TypedDecoder
from course_lib.tiny_lm import greedy_continuation
from course_lib.training import mean_nll


class Stage:
    """What all stages share; a size that no stage stores: d_ff."""

    dtype = np.float64

    def __init__(self, params, shape):
        self.shape = shape
        self.params = as_arrays(params, self.dtype)

    def cached(self, ids, chunks):
        """The logits of a text, chunk by chunk."""
        self.begin()
        starts = np.cumsum([0, *chunks[:-1]])
        rows = [self.extend(ids[n : n + width]) for n, width in zip(starts, chunks, strict=True)]
        return np.concatenate(rows)

    def log_likelihood(self, ids):
        """By torch's own log-softmax, where the stage itself has no likelihood."""
        log_probs = torch.log_softmax(torch.tensor(np.float64(self.full(ids[:-1]))), dim=-1)
        return float(log_probs[range(len(ids) - 1), ids[1:]].sum())


class PlainStage(Stage):
    """Loops: everything is computed anew for every token."""

    def __init__(self, params, shape):
        super().__init__(params, shape)
        self.params = as_lists(params)
        self.sizes = self.params, shape.d_head, shape.n_layers

    def full(self, ids):
        return np.array(plain.forward(ids, *self.sizes))

    def greedy(self, prompt, count):
        return plain.generate(prompt, *self.sizes, count, 0.0, None)[len(prompt) :]

    def log_likelihood(self, ids):
        return plain.exact_log_likelihood(ids, *self.sizes)


class TypedStage(Stage):
    """The first chunk is a prefill, which forgets the last text; single tokens are decoded."""

    def __init__(self, params, shape):
        super().__init__(params, shape)
        self.model, self.new = TypedDecoder(self.params, shape), True

    def full(self, ids):
        return self.model.full_logits(ids)

    def begin(self):
        self.new = True

    def extend(self, ids):
        if self.new:
            rows = self.model.prefill(ids)
        elif len(ids) == 1:
            rows = self.model.decode(ids[0])[None]
        else:
            rows = self.model.extend(ids)
        self.new = False
        return rows

    def greedy(self, prompt, count):
        scores, _ = self.model.generate(prompt, count, SamplingConfig(temperature=0))
        return [score.token for score in scores]

    def log_likelihood(self, ids):
        return sum(score.log_probability for score in self.model.score(ids))


class SimpleStage(Stage):
    """The readable one."""

    def __init__(self, params, shape):
        super().__init__(params, shape)
        self.model = SimpleDecoder(self.params, shape)

    def full(self, ids):
        return self.model.full_logits(ids)

    def begin(self):
        self.model.begin()

    def extend(self, ids):
        return self.model.extend(ids)

    def greedy(self, prompt, count):
        return greedy_tokens(self.model, prompt, count)


class FastStage(Stage):
    """Prefill says the last row only; the rows before it come from a chunk after one token."""

    dtype = np.float32
    threads = 1

    def __init__(self, params, shape):
        super().__init__(params, shape)
        threads = min(self.threads, shape.n_heads)
        self.model, self.new = FastDecoder(self.params, shape, threads), True

    def full(self, ids):
        return self.model.full_logits(ids)

    def begin(self):
        self.new = True

    def extend(self, ids):
        if self.new:
            return self._first(ids)
        if len(ids) == 1:
            return self.model.decode_step([ids[0]]).copy()
        return self.model.extend([ids])[0]

    def _first(self, ids):
        inner = np.zeros((0, self.shape.vocab_size), np.float32)
        if len(ids) > 1:
            start = self.model.prefill([ids[:1]])
            inner = np.concatenate([start, self.model.extend([ids[1:]])[0]])[:-1]
        last = self.model.prefill([ids])
        self.new = False
        return np.concatenate([inner, last])

    def greedy(self, prompt, count):
        generation = self.model.generate([prompt], count)
        return [token for (token,) in generation]


class FastThreads(FastStage):
    """The same, its layers shared out between two threads."""

    threads = 2


class TwinStage(Stage):
    """Torch, whose attention is its own."""

    def __init__(self, params, shape):
        super().__init__(params, shape)
        self.model = TorchTwin.from_parameters(self.params, shape).eval()
        self.begin()

    def full(self, ids):
        with torch.no_grad():
            return self.model(torch.tensor([ids]))[0].numpy()

    def begin(self):
        self.cache = self.model.start()

    def extend(self, ids):
        return self.model.extend(torch.tensor([ids]), self.cache)[0].numpy()

    def greedy(self, prompt, count):
        if count == 0:
            return []
        text = greedy_continuation(self.model, torch.tensor([prompt]), count)[0]
        return text[len(prompt) :].tolist()

    def log_likelihood(self, ids):
        return -(len(ids) - 1) * mean_nll(self.model, torch.tensor([ids]))


class SimpleSingle(SimpleStage):
    dtype = np.float32


class TwinSingle(TwinStage):
    dtype = np.float32


STAGES = {
    "plain": PlainStage,
    "typed": TypedStage,
    "simple": SimpleStage,
    "simple, float32": SimpleSingle,
    "fast": FastStage,
    "fast, two threads": FastThreads,
    "twin": TwinStage,
    "twin, float32": TwinSingle,
}
CACHED = {name: stage for name, stage in STAGES.items() if hasattr(stage, "extend")}
NOT_CACHED = {"plain"}


def tolerance(stage):
    """What is allowed between logits of order 1: double precision, or single."""
    return {np.float64: 1e-10, np.float32: 1e-4}[stage.dtype]


def small_shape(**sizes):
    """Two layers, three heads, ten positions, eleven tokens; any of it can be had otherwise."""
    sizes = {"n_layers": 2, "d_model": 12, "n_heads": 3, "context_length": 10} | sizes
    return ModelShape(**({"vocab_size": 11} | sizes))


def stage_of(name, shape=None, seed=3, d_ff=14):
    """A stage with random parameters, the same for every name."""
    shape = small_shape() if shape is None else shape
    return STAGES[name](random_parameters(shape, d_ff, seed), shape)
