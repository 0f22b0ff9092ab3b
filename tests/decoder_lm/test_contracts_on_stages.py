"""The contracts of the course, which judge a learner's code, held to the course's own decoders.

Each table says which stages have a function for a contract, and of the others why they have not.
"""

import math
from functools import partial
from unittest import mock

import numpy as np
import pytest
import torch

from course_lib.contracts import (
    check_batching_contract,
    check_cache_contract,
    check_causal_attention_contract,
    check_causality_contract,
    check_generation_contract,
    check_log_likelihood_contract,
    check_nll_contract,
    check_perplexity_contract,
    check_sampler_contract,
)
from course_lib.decoder_lm import plain
from course_lib.decoder_lm.fast import FastDecoder, batched_sample
from course_lib.decoder_lm.shape import ModelShape, random_parameters
from course_lib.decoder_lm.typed import (
    SamplingConfig,
    TypedDecoder,
    sample_token,
)
from course_lib.tiny_lm import evaluating

from .stages import CACHED, NOT_CACHED, STAGES, small_shape, stage_of

WORDS = 512  # more than the scripted models have: prompts and EOS of the contract may lie beyond


def sizes_of(stage):
    return {"vocab_size": stage.shape.vocab_size, "context_length": stage.shape.context_length}


@pytest.mark.parametrize("name", CACHED)
def test_the_cache_contract(name):
    stage = stage_of(name)
    assert check_cache_contract(stage.full, stage.cached, **sizes_of(stage)).attempted


@pytest.mark.parametrize("name", NOT_CACHED)
def test_a_stage_without_a_cache_has_nothing_that_could_remember(name):
    """Functions of a text: whatever was read before, the numbers are the same to the last bit."""
    stage = stage_of(name)
    before = stage.full([3, 1, 4, 1, 5])
    stage.greedy([2, 7], 4)
    assert (stage.full([3, 1, 4, 1, 5]) == before).all()
    assert (stage.full([3, 1, 4])[:3] == before[:3]).all()


@pytest.mark.parametrize("name", STAGES)
def test_the_causality_contract(name):
    stage = stage_of(name)

    def model(token_ids):
        return torch.tensor(np.stack([stage.full(row) for row in token_ids.tolist()]))

    assert check_causality_contract(model, vocab_size=11, length=10).attempted


def test_the_causality_contract_on_the_twins_own_batches():
    twin = stage_of("twin").model
    assert check_causality_contract(twin, vocab_size=11, length=10).attempted


# ---------------------------------------------------------------- batches of different lengths


def fast_batching(stage):
    return lambda prompt: stage.model.prefill([prompt])[0], stage.model.prefill


BATCHING = {"fast": fast_batching, "fast, two threads": fast_batching}
NOT_BATCHING = dict.fromkeys(("plain", "typed", "simple", "simple, float32"), "one text at a time")
NOT_BATCHING |= dict.fromkeys(("twin", "twin, float32"), "rows of one length, no padding")


def test_every_stage_has_its_place_in_the_table_of_batches():
    assert sorted([*BATCHING, *NOT_BATCHING]) == sorted(STAGES)


@pytest.mark.parametrize("name", BATCHING)
def test_the_batching_contract(name):
    one, batch = BATCHING[name](stage_of(name))
    assert check_batching_contract(one, batch, **sizes_of(stage_of(name))).attempted


# ---------------------------------------------------------------- generation


def scripted_rows(model, text):
    """The logits of the contract's model; of words that it does not have, ever lower ones."""
    rows = model(torch.tensor(text)).numpy()
    return np.pad(rows, [(0, 0), (0, WORDS - rows.shape[1])], constant_values=rows.min() - 1)


def word_or_none(eos_id):
    """An EOS that is no word never comes."""
    return eos_id if eos_id is None or eos_id < WORDS else None


class TypedScript(TypedDecoder):
    """The loop of the typed decoder, with the contract's model where its own would compute."""

    def __init__(self, model):
        shape = ModelShape(1, 2, 1, model.max_length, WORDS)
        super().__init__(random_parameters(shape, 2, 0), shape)
        self.model, self.text = model, []

    def prefill(self, token_ids):
        self.text = list(token_ids)
        return scripted_rows(self.model, self.text)

    def decode(self, token_id):
        self.text.append(token_id)
        return scripted_rows(self.model, self.text)[-1]


def typed_generation(model, prompt, max_new_tokens, eos_id=None):
    with evaluating(model):
        greedy, eos = SamplingConfig(temperature=0), word_or_none(eos_id)
        scores, reason = TypedScript(model).generate(prompt, max_new_tokens, greedy, eos)
    return [score.token for score in scores], reason


class FastScript(FastDecoder):
    """The same with the loop of the fast decoder, which has a batch."""

    def __init__(self, model):
        shape = ModelShape(1, 2, 1, model.max_length, WORDS)
        super().__init__(random_parameters(shape, 2, 0), shape)
        self.script, self.texts = model, []

    def prefill(self, prompts):
        self.texts = [list(prompt) for prompt in prompts]
        return np.stack([scripted_rows(self.script, text)[-1] for text in self.texts])

    def decode_step(self, token_ids, active=None):
        logits = np.zeros((len(self.texts), WORDS), np.float32)
        for row, text in enumerate(self.texts):
            if active is None or active[row]:
                text.append(token_ids[row])
                logits[row] = scripted_rows(self.script, text)[-1]
        return logits


def fast_generation(model, prompt, max_new_tokens, eos_id=None, *, before=(), after=()):
    with evaluating(model):
        rows = [*before, prompt, *after]
        generation = FastScript(model).generate(rows, max_new_tokens, eos_id=eos_id)
        steps = list(generation)
    place = len(before)
    told = [step[place] for step in steps if step[place] is not None]
    assert told == generation.tokens[place]
    return told, generation.reasons[place]


FAST = {
    "alone": fast_generation,
    "before others": partial(fast_generation, after=[[1], [4]]),
    "after others": partial(fast_generation, before=[[2], [0], [1]]),
}
GENERATING = {"typed": typed_generation}
GENERATING |= {f"{name} {row}": FAST[row] for name in ("fast",) for row in FAST}
NOT_GENERATING = {
    "fast, two threads": "the loop is that of fast",
    "plain": "gives exactly `count` tokens: there is no EOS and no reason",
    **dict.fromkeys(("simple", "simple, float32"), "gives exactly `count` tokens"),
    **dict.fromkeys(("twin", "twin, float32"), "is continued by tiny_lm, exactly `count` tokens"),
}


def test_every_stage_has_its_place_in_the_table_of_generations():
    assert sorted({*(name.split()[0] for name in GENERATING), *NOT_GENERATING}) == sorted(STAGES)


@pytest.mark.parametrize("name", GENERATING)
def test_the_generation_contract(name):
    assert check_generation_contract(GENERATING[name]).attempted


# ---------------------------------------------------------------- sampling


def typed_sampler(logits, temperature, top_k, top_p, rng):
    """Row by row; None switches a filter off, as 0 and 1 do there."""
    config = SamplingConfig(temperature, 1.0 if top_p is None else top_p, top_k or 0)
    return np.array([sample_token(row, config, rng) for row in logits])


def fast_sampler(logits, temperature, top_k, top_p, rng):
    return batched_sample(logits, temperature, top_p, rng, top_k)


SAMPLING = {"typed": typed_sampler, "fast": fast_sampler}
NOT_SAMPLING = {
    "fast, two threads": "the sampler is that of fast",
    "plain": "temperature alone: no top-k and no top-p",
    **dict.fromkeys(("simple", "simple, float32"), "greedy alone"),
    **dict.fromkeys(("twin", "twin, float32"), "logits alone"),
}


def test_every_stage_has_its_place_in_the_table_of_samplers():
    assert sorted([*SAMPLING, *NOT_SAMPLING]) == sorted(STAGES)


@pytest.mark.parametrize("name", SAMPLING)
def test_the_sampler_contract(name):
    assert check_sampler_contract(SAMPLING[name]).attempted


# ---------------------------------------------------------------- likelihood


class TypedGiven(TypedDecoder):
    """The scoring of the typed decoder, with logits that are given."""

    def __init__(self, logits):
        super().__init__(random_parameters(small_shape(), 4, 0), small_shape())
        self.logits = logits

    def full_logits(self, token_ids):
        return self.logits


def plain_given(logits, function, ids):
    """A function of the plain stage, with logits that are given in place of its pass."""
    with mock.patch.object(plain, "forward", return_value=logits.double().tolist()):
        return function(ids.tolist(), {}, 1, 1)


def as_one_text(logits, token_ids, valid=None):
    """All predictions that count, one after the other: the mean does not ask whose they are."""
    counted = torch.ones_like(token_ids[:, 1:]).bool() if valid is None else valid[:, 1:]
    rows, targets = logits[:, :-1][counted], token_ids[:, 1:][counted]
    return torch.cat([rows, rows[-1:]]), torch.cat([targets[:1], targets])


def plain_likelihood(logits, token_ids):
    return plain_given(logits, plain.exact_log_likelihood, token_ids)


def plain_loss(*batch):
    logits, ids = as_one_text(*batch)
    return plain_given(logits, plain.training_loss, ids)


def plain_perplexity(*batch):
    logits, ids = as_one_text(*batch)
    return plain_given(logits, plain.perplexity, ids)


def typed_likelihood(logits, token_ids):
    scores = TypedGiven(logits.double().numpy()).score(token_ids.tolist())
    return sum(score.log_probability for score in scores)


def typed_loss(*batch):
    logits, ids = as_one_text(*batch)
    return -typed_likelihood(logits, ids) / (len(ids) - 1)


LIKELIHOODS = {"plain": plain_likelihood, "typed": typed_likelihood}
LOSSES = {"plain": plain_loss, "typed": typed_loss}
PERPLEXITIES = {"plain": plain_perplexity}
NO_LIKELIHOOD = {
    **dict.fromkeys(("fast", "fast, two threads"), "logits alone"),
    **dict.fromkeys(("simple", "simple, float32"), "logits alone"),
    **dict.fromkeys(("twin", "twin, float32"), "its loss is that of course_lib.training"),
}
NO_PERPLEXITY = {"typed": "scores tokens, one by one", **NO_LIKELIHOOD}


def test_every_stage_has_its_place_in_the_tables_of_likelihoods():
    assert sorted([*LIKELIHOODS, *NO_LIKELIHOOD]) == sorted(STAGES)
    assert sorted([*LOSSES, *NO_LIKELIHOOD]) == sorted(STAGES)
    assert sorted([*PERPLEXITIES, *NO_PERPLEXITY]) == sorted(STAGES)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_the_log_likelihood_contract(name):
    assert check_log_likelihood_contract(LIKELIHOODS[name]).attempted


@pytest.mark.parametrize("name", LOSSES)
def test_the_nll_contract(name):
    assert check_nll_contract(LOSSES[name]).attempted


@pytest.mark.parametrize("name", PERPLEXITIES)
def test_the_perplexity_contract(name):
    assert check_perplexity_contract(PERPLEXITIES[name]).attempted


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_a_row_keeps_its_nats_beside_rows_of_another_level(name):
    """The logits of one position may lie thousands above those of the next: ln 2 a token."""
    logits = torch.tensor([[5000.0, 5000.0], [-5000.0, -5000.0], [0.0, 0.0]], dtype=torch.float64)
    got = LIKELIHOODS[name](logits, torch.tensor([0, 1, 1]))
    assert got == pytest.approx(-2 * math.log(2), abs=1e-12)


# ---------------------------------------------------------------- attention in loops


def test_the_causal_attention_contract_on_the_definition():
    """Of one head: the contract's call has a width, and the plain stage splits it into heads."""
    assert check_causal_attention_contract(plain.causal_attention).attempted
