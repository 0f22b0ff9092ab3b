"""ctranslate2, float32, from the very network that the others read, by its own converter."""

from time import perf_counter

import ctranslate2
import numpy as np

from .peer import Peer


class CTranslate2(Peer):
    """It has no step to call: its own greedy loop tells when each token is there."""

    note = "its own greedy loop, timed from the first token's callback to the last"

    @staticmethod
    def prepare(model, network, folder):
        """Convert as the command-line converter does, but without a tokenizer: ids are words."""
        from ctranslate2.converters.transformers import GPT2Loader

        spec = GPT2Loader().get_model_spec(network)
        spec.register_vocabulary([str(token) for token in range(model.vocab_size)])
        spec.config.bos_token = spec.config.eos_token = spec.config.unk_token = "0"
        spec.validate()
        spec.optimize(quantization=None)
        target = folder / "ctranslate2"
        target.mkdir()
        spec.save(str(target))

    def __init__(self, model, folder, threads):
        path = str(folder / "ctranslate2")
        sizes = {"inter_threads": 1, "intra_threads": threads}
        self.generator = ctranslate2.Generator(path, compute_type="float32", **sizes)

    def generate(self, prompts, count, **more):
        """Generate exactly `count` tokens after each prompt, which is read in one pass."""
        return self.generator.generate_batch(
            [[str(token) for token in row] for row in prompts],
            max_length=count,
            min_length=count,
            end_token=[],
            sampling_topk=1,
            include_prompt_in_result=False,
            **more,
        )

    def prefill(self, prompts):
        self.generate(prompts, 1)

    def greedy(self, prompts, steps):
        times = {}

        def tell(result):
            times[result.step] = perf_counter()  # every row calls: the last one's time stays
            return False

        results = self.generate(prompts, steps + 1, callback=tell)
        tokens = np.array([result.sequences_ids[0] for result in results])
        return times[max(times)] - times[min(times)], tokens

    def forced(self, prompts, continuation):
        """Its logits are comparable while it chooses the given tokens by itself."""
        count = continuation.shape[1] + 1
        results = self.generate(prompts, count, return_logits_vocab=True)
        tokens = np.array([result.sequences_ids[0] for result in results])
        if not np.array_equal(tokens[:, :-1], continuation):
            raise ValueError("its greedy tokens are others, so its logits answer another text")
        return np.array([[np.array(row) for row in result.logits[0]] for result in results])
