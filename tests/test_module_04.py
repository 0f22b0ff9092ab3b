"""Cells of Module 4 that deal with files: executed as rendered, held to the libraries."""

import json
import tempfile
from pathlib import Path

import nbformat
import numpy as np
import pytest
import torch

from course_lib.decoder_lm.fast import FastDecoder
from course_lib.decoder_lm.shape import ModelShape, random_parameters
from course_lib.decoder_lm.weights import load_gpt2, load_gpt2_shape
from course_lib.tales import tale_words, tales
from course_lib.tokens import Vocabulary

ROOT = Path(__file__).parents[1]
TEXT = ["The sun went down, and the moon came up.", "The sun and the moon sing together."]


def cell(key, language="en"):
    path = ROOT / "notebooks" / language / "module_04_decoder_only_lm.ipynb"
    notebook = nbformat.read(path, as_version=4)
    return next(found.source for found in notebook.cells if found.id == key)


@pytest.fixture
def names(tmp_path, monkeypatch):
    """What the cells find in the notebook by then."""
    monkeypatch.setattr(tempfile, "mkdtemp", lambda: str(tmp_path))
    shape = ModelShape(n_layers=2, d_model=64, n_heads=4, context_length=48, vocab_size=67)
    params = random_parameters(shape, d_ff=128, seed=3)
    params["unembedding_bias"][:] = 0
    return {
        "json": json,
        "np": np,
        "Path": Path,
        "tempfile": tempfile,
        "seed": 18,
        "shape": shape,
        "params": params,
        "context": 48,
        "vocabulary": Vocabulary(tale_words()),
        "story": tales(1, seed=4)[0],
        "FastDecoder": FastDecoder,
        "gpt2_folder": "",
        "load_gpt2": load_gpt2,
        "load_gpt2_shape": load_gpt2_shape,
    }


def test_the_file_that_the_notebook_writes_is_read_by_the_libraries(names):
    from safetensors.numpy import load_file
    from transformers import GPT2LMHeadModel

    exec(cell("save-names"), names)
    exec(cell("save-file"), names)
    written = load_file(names["folder"] / "model.safetensors")
    for name, array in names["gpt2_names"](names["params"]).items():
        np.testing.assert_array_equal(written[name], array.astype(np.float32))
    theirs = GPT2LMHeadModel.from_pretrained(names["folder"]).eval()
    ours = FastDecoder(names["params"], names["shape"])
    text = [0, *names["story"]]
    with torch.no_grad():
        wanted = theirs(torch.tensor([text])).logits[0].numpy()
    np.testing.assert_allclose(ours.full_logits(text), wanted, rtol=0, atol=1e-4)


@pytest.mark.parametrize("language", ["en", "ru"])
def test_without_a_folder_the_tale_teller_goes_on(names, language, capsys):
    exec(cell("save-names", language), names)
    exec(cell("save-file", language), names)
    exec(cell("speak-real", language), names)
    told = capsys.readouterr().out
    assert names["vocabulary"].decode(names["story"][:5]) in told
    assert names["shown"] in told
    assert "decode_tokens=" in told


@pytest.mark.parametrize("language", ["en", "ru"])
def test_a_folder_with_gpt2_and_its_tokenizer_speaks(names, tmp_path, language, capsys):
    from tokenizers import ByteLevelBPETokenizer
    from transformers import GPT2Config, GPT2LMHeadModel

    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(TEXT, vocab_size=300, show_progress=False)
    tokenizer.save_model(str(tmp_path))
    config = GPT2Config(
        vocab_size=tokenizer.get_vocab_size(), n_positions=96, n_embd=32, n_layer=2, n_head=2
    )
    torch.manual_seed(0)
    GPT2LMHeadModel(config).save_pretrained(tmp_path)
    capsys.readouterr()
    exec(cell("speak-real", language), {**names, "gpt2_folder": str(tmp_path)})
    told = capsys.readouterr().out
    assert told.startswith("The sun went down, and the moon")
    assert "decode_tokens=39" in told
