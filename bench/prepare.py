"""Make one model's files in a process of its own, so that no worker carries torch for it.

python -m bench.prepare MODEL FOLDER NAMES     (as JSON; prints {name: why it cannot run})
"""

import json
import os
import sys
import traceback
from pathlib import Path

import numpy as np

from .models import Model, make_network
from .peer import peer_class

PROOF = 8  # steps whose logits are compared, at every batch


def write_reference(model, network, folder):
    """Write what everyone must agree with: transformers' greedy tokens, and logits without cache.

    reference-B.npz: tokens [B, steps + 1], logits [B, PROOF + 1, V] of one full forward pass.
    """
    import torch

    for batch in model.batches:
        prompts = torch.from_numpy(model.prompts(batch, model.prompt))
        count = model.steps + 1
        ids = network.generate(
            prompts,
            attention_mask=torch.ones_like(prompts),
            min_new_tokens=count,
            max_new_tokens=count,
            do_sample=False,
            pad_token_id=0,
            eos_token_id=None,
        )
        seen = ids[:, : model.prompt + PROOF]
        logits = network(seen, use_cache=False, logits_to_keep=PROOF + 1).logits
        tokens = ids[:, model.prompt :].numpy()
        np.savez(folder / f"reference-{batch}.npz", tokens=tokens, logits=logits.numpy())


def main(arguments):
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    model, folder = Model(*json.loads(arguments[0])), Path(arguments[1])
    import torch

    with torch.inference_mode():
        network = make_network(model)
        network.save_pretrained(folder)
        write_reference(model, network, folder)
        absent = {}
        for name in json.loads(arguments[2]):
            try:
                peer_class(name).prepare(model, network, folder)
            except Exception:
                absent[name] = traceback.format_exc(limit=-2)
    print(json.dumps(absent), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
