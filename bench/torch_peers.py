"""The same network in torch: the course's twin, and transformers with either of its caches."""

import torch
from transformers import DynamicCache, GPT2LMHeadModel, StaticCache

from course_lib.decoder_lm.twin import TorchTwin
from course_lib.decoder_lm.weights import load_gpt2, load_gpt2_shape

from .peer import Peer


class Twin(Peer):
    """The course's TorchTwin; of a prompt it too computes the last position's logits only."""

    note = "F.scaled_dot_product_attention, cache preallocated"

    def __init__(self, model, folder, threads):
        torch.set_num_threads(threads)
        params, shape = load_gpt2(folder), load_gpt2_shape(folder)
        self.twin = TorchTwin.from_parameters(params, shape).eval()
        self.twin.head.register_forward_pre_hook(lambda _, inputs: (inputs[0][:, -1:],))

    @torch.inference_mode()
    def begin(self, prompts, steps):
        self.cache = self.twin.start()
        return self.twin.extend(torch.from_numpy(prompts), self.cache)[:, -1].numpy()

    @torch.inference_mode()
    def step(self, tokens):
        return self.twin.extend(torch.from_numpy(tokens)[:, None], self.cache)[:, -1].numpy()


class Transformers(Peer):
    """GPT2LMHeadModel, eager, with a cache of its own; logits_to_keep=1."""

    def __init__(self, model, folder, threads):
        torch.set_num_threads(threads)
        self.network = GPT2LMHeadModel.from_pretrained(folder, dtype=torch.float32).eval()

    def make_cache(self, positions):
        raise NotImplementedError

    @torch.inference_mode()
    def read(self, token_ids):
        return (
            self.network(
                torch.from_numpy(token_ids),
                cache=self.cache,
                use_cache=True,
                logits_to_keep=1,
            )
            .logits[:, -1]
            .numpy()
        )

    def begin(self, prompts, steps):
        self.cache = self.make_cache(prompts.shape[1] + steps)
        return self.read(prompts)

    def step(self, tokens):
        return self.read(tokens[:, None])


class Dynamic(Transformers):
    """The default cache, which grows by concatenation."""

    note = "eager, DynamicCache (its default)"

    def make_cache(self, positions):
        return DynamicCache(config=self.network.config)


class Static(Transformers):
    """The preallocated cache; attention then reads all of its positions."""

    note = "eager, StaticCache just as long as needed"

    def make_cache(self, positions):
        return StaticCache(config=self.network.config, max_cache_len=positions)
