"""Real weights: checkpoints made by transformers, read without it, computed by every stage; and
a clear word about every checkpoint that is not whole, or not GPT-2."""

import copy
import json
import pickle
import random
import shutil
import subprocess
import sys
import tempfile
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import GPT2Config, GPT2LMHeadModel, GPT2Model

from course_lib.decoder_lm.errors import ShapeMismatch
from course_lib.decoder_lm.fast import FastDecoder
from course_lib.decoder_lm.plain import forward, generate
from course_lib.decoder_lm.shape import ModelShape, as_lists, check_parameters
from course_lib.decoder_lm.twin import TorchTwin
from course_lib.decoder_lm.typed import SamplingConfig, TypedDecoder
from course_lib.decoder_lm.weights import load_gpt2, load_gpt2_shape

ROOT = Path(__file__).parents[2]
SIZES = {
    "tiny": {"vocab_size": 11, "n_positions": 12, "n_embd": 8, "n_layer": 2, "n_head": 2},
    "odd": {
        "vocab_size": 37, "n_positions": 10, "n_embd": 15, "n_layer": 3, "n_head": 3, "n_inner": 22
    },
    "one head": {"vocab_size": 5, "n_positions": 16, "n_embd": 6, "n_layer": 1, "n_head": 1},
    "small": {"vocab_size": 500, "n_positions": 48, "n_embd": 96, "n_layer": 6, "n_head": 8},
}  # fmt: skip
TINY = [name for name in SIZES if name != "small"]
TOLERANCE = 1e-4


def transformers_model(seed=0, kind=GPT2LMHeadModel, **sizes):
    """Build a GPT-2 of random weights in which every gain and bias matters."""
    torch.manual_seed(seed)
    ends = {"bos_token_id": None, "eos_token_id": None}
    model = kind(GPT2Config(**{"initializer_range": 0.2, **ends, **sizes})).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter += 0.3 * torch.randn_like(parameter)
    return model


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Save every size once: {name: (the model, its folder)}."""
    found = {}
    for seed, (name, sizes) in enumerate(SIZES.items()):
        folder = tmp_path_factory.mktemp("checkpoint")
        model = transformers_model(seed, **sizes)
        model.save_pretrained(folder)
        found[name] = model, folder
    return found


@pytest.fixture
def tiny(made, tmp_path):
    """A copy of the tiny checkpoint, to be spoiled."""
    shutil.copytree(made["tiny"][1], tmp_path, dirs_exist_ok=True)
    return tmp_path


def prompt_of(model, length, seed=7):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, model.config.vocab_size, (length,), generator=generator).tolist()


@torch.no_grad()
def witness_logits(model, ids):
    return model(torch.tensor([ids])).logits[0].numpy()


def witness_greedy(model, prompt, count):
    return model.generate(
        torch.tensor([prompt]),
        attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
        do_sample=False,
        max_new_tokens=count,
        pad_token_id=0,
    )[0, len(prompt) :].tolist()


def twin_logits(params, shape, ids):
    with torch.no_grad():
        return TorchTwin.from_parameters(params, shape)(torch.tensor([ids]))[0].numpy()


def twin_greedy(params, shape, prompt, count):
    twin = TorchTwin.from_parameters(params, shape)
    cache, new = twin.start(), []
    chunk = prompt
    while len(new) < count:
        new.append(int(twin.extend(torch.tensor([chunk]), cache)[0, -1].argmax()))
        chunk = new[-1:]
    return new


def typed_greedy(params, shape, prompt, count):
    greedy = SamplingConfig(temperature=0.0)
    scores, reason = TypedDecoder(params, shape).generate(prompt, count, greedy)
    assert reason == "length_limit"
    return [score.token for score in scores]


def fast_logits(params, shape, ids):
    return FastDecoder(params, shape).full_logits([ids])[0]


def fast_greedy(params, shape, prompt, count):
    decoder = FastDecoder(params, shape)
    return [step[0] for step in decoder.generate([prompt], count)]


def plain_logits(params, shape, ids):
    return np.array(forward(ids, as_lists(params), shape.d_head, shape.n_layers))


def plain_greedy(params, shape, prompt, count):
    lists, rng = as_lists(params), random.Random(0)
    whole = generate(prompt, lists, shape.d_head, shape.n_layers, count, 0.0, rng)
    return whole[len(prompt) :]


STAGES = {
    "fast": (fast_logits, fast_greedy),
    "twin": (twin_logits, twin_greedy),
    "typed": (
        lambda params, shape, ids: TypedDecoder(params, shape).full_logits(ids),
        typed_greedy,
    ),
    "plain": (plain_logits, plain_greedy),
}
LARGE = ("twin", "fast")
WHERE = [(stage, size) for stage in STAGES for size in SIZES if size in TINY or stage in LARGE]


@pytest.mark.parametrize(("stage", "size"), WHERE)
def test_the_logits_are_those_of_transformers(made, stage, size):
    model, folder = made[size]
    shape = load_gpt2_shape(folder)
    ids = prompt_of(model, shape.context_length)
    logits = STAGES[stage][0](load_gpt2(folder), shape, ids)
    expected = witness_logits(model, ids)
    assert logits.shape == expected.shape
    assert np.abs(logits - expected).max() <= TOLERANCE
    assert expected.std() > 0.3  # a model that says something


@pytest.mark.parametrize(("stage", "size"), WHERE)
def test_the_greedy_continuation_is_that_of_transformers(made, stage, size):
    model, folder = made[size]
    shape = load_gpt2_shape(folder)
    for seed in range(3):
        prompt = prompt_of(model, 3, seed)
        count = shape.context_length - 3
        expected = witness_greedy(model, prompt, count)
        assert STAGES[stage][1](load_gpt2(folder), shape, prompt, count) == expected


@pytest.mark.parametrize("size", SIZES)
def test_the_shape_is_that_of_the_config(made, size):
    model, folder = made[size]
    config = model.config
    expected = config.n_layer, config.n_embd, config.n_head, config.n_positions, config.vocab_size
    shape = load_gpt2_shape(folder)
    assert shape == ModelShape(*expected)
    check_parameters(load_gpt2(folder), shape)


def flat(params):
    blocks = {f"{i}.{k}": v for i, block in enumerate(params["blocks"]) for k, v in block.items()}
    return {**{name: value for name, value in params.items() if name != "blocks"}, **blocks}


def assert_same(params, others):
    params, others = flat(params), flat(others)
    assert params.keys() == others.keys()
    for name, value in params.items():
        np.testing.assert_array_equal(value, others[name], err_msg=name)


def by_state(model):
    """The parameter dict from the tensors of a transformers model, written down a second time."""
    state = {name: t.detach().float().numpy() for name, t in model.state_dict().items()}
    d = model.config.n_embd
    blocks = []
    for layer in range(model.config.n_layer):
        of = {
            name.removeprefix(f"transformer.h.{layer}."): value
            for name, value in state.items()
            if name.startswith(f"transformer.h.{layer}.")
        }
        wide, bias = of["attn.c_attn.weight"], of["attn.c_attn.bias"]
        block = {f"w{x}": wide[:, i * d : (i + 1) * d] for i, x in enumerate("qkv")}
        block |= {f"b{x}": bias[i * d : (i + 1) * d] for i, x in enumerate("qkv")}
        block |= {"wo": of["attn.c_proj.weight"], "bo": of["attn.c_proj.bias"]}
        block |= {"w1": of["mlp.c_fc.weight"], "b1": of["mlp.c_fc.bias"]}
        block |= {"w2": of["mlp.c_proj.weight"], "b2": of["mlp.c_proj.bias"]}
        for norm in "12":
            block[f"ln{norm}_gain"] = of[f"ln_{norm}.weight"]
            block[f"ln{norm}_bias"] = of[f"ln_{norm}.bias"]
        blocks.append(block)
    return {
        "token_embedding": state["transformer.wte.weight"],
        "position_embedding": state["transformer.wpe.weight"],
        "blocks": blocks,
        "final_gain": state["transformer.ln_f.weight"],
        "final_bias": state["transformer.ln_f.bias"],
        "unembedding": state["lm_head.weight"].T,
        "unembedding_bias": np.zeros(len(state["lm_head.weight"])),
    }


@pytest.mark.parametrize("size", SIZES)
def test_every_number_is_in_its_place(made, size):
    model, folder = made[size]
    assert_same(load_gpt2(folder), by_state(model))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("size", ["odd", "small"])
def test_sixteen_bits_load_as_transformers_loads_them(tmp_path, made, size, dtype):
    copy.deepcopy(made[size][0]).to(dtype).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["dtype"] == str(dtype).removeprefix("torch.")
    wide = GPT2LMHeadModel.from_pretrained(tmp_path, dtype=torch.float32)
    params = load_gpt2(tmp_path)
    assert_same(params, by_state(wide))
    assert {value.dtype for value in flat(params).values()} == {np.dtype(np.float32)}
    ids = prompt_of(wide, 9)
    logits = twin_logits(params, load_gpt2_shape(tmp_path), ids)
    assert np.abs(logits - witness_logits(wide, ids)).max() <= TOLERANCE


def test_float32_weights_are_views_of_the_file(made):
    params = load_gpt2(made["small"][1])
    assert np.shares_memory(params["unembedding"], params["token_embedding"])
    block = params["blocks"][3]
    assert block["wk"].base is not None
    assert block["wk"].strides == block["wq"].strides == (3 * 96 * 4, 4)
    tracemalloc.start()
    again = load_gpt2(made["small"][1])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 400_000 < sum(value.nbytes for value in flat(again).values()) / 5


def test_nobody_can_write_to_the_weights(made):
    for name, value in flat(load_gpt2(made["tiny"][1])).items():
        if name != "unembedding_bias":
            assert not value.flags.writeable, name


def test_the_file_itself_and_links_to_it_are_paths_too(made, tmp_path):
    folder = made["tiny"][1]
    expected = load_gpt2(folder)
    assert_same(load_gpt2(str(folder)), expected)
    assert_same(load_gpt2(folder / "model.safetensors"), expected)
    assert load_gpt2_shape(folder / "model.safetensors") == load_gpt2_shape(folder)
    for name in ("model.safetensors", "config.json"):  # a download cache keeps links
        (tmp_path / name).symlink_to(folder / name)
    assert_same(load_gpt2(tmp_path), expected)
    (tmp_path / "folder").symlink_to(folder)
    assert_same(load_gpt2(tmp_path / "folder"), expected)


def test_a_model_saved_without_its_head_has_shorter_names(tmp_path, made):
    model, folder = made["tiny"]
    body = transformers_model(kind=GPT2Model, **SIZES["tiny"])
    body.load_state_dict(model.transformer.state_dict())
    body.save_pretrained(tmp_path)
    names = safetensors.numpy.load_file(tmp_path / "model.safetensors").keys()
    assert "wte.weight" in names
    assert_same(load_gpt2(tmp_path), load_gpt2(folder))


def spoil_weights(folder, change):
    path = folder / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    tensors = {name: value.clone() for name, value in tensors.items()}
    change(tensors)
    safetensors.torch.save_file(tensors, path, {"format": "pt"})


def spoil_config(folder, **changed):
    path = folder / "config.json"
    config = {**json.loads(path.read_text()), **changed}
    path.write_text(json.dumps({k: v for k, v in config.items() if v != "left out"}))


def test_the_masks_of_older_files_are_not_read(made, tiny):
    def add_masks(tensors):
        for layer in range(2):
            mask = torch.full((1, 1, 12, 12), torch.nan)
            tensors[f"transformer.h.{layer}.attn.bias"] = mask.bool() if layer else mask
            tensors[f"transformer.h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)

    spoil_weights(tiny, add_masks)
    assert_same(load_gpt2(tiny), load_gpt2(made["tiny"][1]))


def test_the_same_head_written_out_changes_nothing(made, tiny):
    def write_head(tensors):
        tensors["lm_head.weight"] = tensors["transformer.wte.weight"].clone()

    spoil_weights(tiny, write_head)
    assert_same(load_gpt2(tiny), load_gpt2(made["tiny"][1]))
    spoil_config(tiny, tie_word_embeddings=False)
    assert_same(load_gpt2(tiny), load_gpt2(made["tiny"][1]))


@pytest.mark.parametrize("tie", [True, False])
def test_another_head_in_the_file_is_used_as_transformers_uses_it(tiny, tie):
    spoil_weights(tiny, lambda tensors: tensors.update({"lm_head.weight": torch.randn(11, 8)}))
    spoil_config(tiny, tie_word_embeddings=tie)
    model = GPT2LMHeadModel.from_pretrained(tiny)
    params = load_gpt2(tiny)
    assert_same(params, by_state(model))
    assert not np.array_equal(params["unembedding"], params["token_embedding"].T)


def test_a_model_of_its_own_head_is_read_as_transformers_made_it(tmp_path):
    model = transformers_model(3, tie_word_embeddings=False, **SIZES["odd"])
    model.save_pretrained(tmp_path)
    params = load_gpt2(tmp_path)
    assert_same(params, by_state(model))
    ids = prompt_of(model, 10)
    logits = twin_logits(params, load_gpt2_shape(tmp_path), ids)
    assert np.abs(logits - witness_logits(model, ids)).max() <= TOLERANCE


def test_keys_that_the_oldest_configs_leave_out_mean_what_gpt2_does(made, tiny):
    kept = ("n_layer", "n_embd", "n_head", "n_positions", "vocab_size")
    config = json.loads((tiny / "config.json").read_text())
    spoil_config(tiny, **{name: "left out" for name in config if name not in kept}, n_ctx=12)
    assert_same(load_gpt2(tiny), load_gpt2(made["tiny"][1]))
    assert load_gpt2_shape(tiny) == load_gpt2_shape(made["tiny"][1])


BAD_CONFIGS = [
    ({"activation_function": "gelu"}, "activation_function must be 'gelu_new', got 'gelu'; the"),
    ({"layer_norm_epsilon": 1e-6}, "layer_norm_epsilon must be 1e-05, got 1e-06"),
    ({"layer_norm_epsilon": "1e-5"}, "layer_norm_epsilon must be 1e-05, got '1e-5'"),
    ({"scale_attn_weights": False}, "scale_attn_weights must be True, got False"),
    ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx must be False"),
    ({"reorder_and_upcast_attn": True}, "reorder_and_upcast_attn must be False, got True"),
    ({"add_cross_attention": True}, "add_cross_attention must be False, got True"),
    ({"model_type": "llama"}, "model_type must be 'gpt2', got 'llama'"),
    ({"n_layer": "left out"}, "n_layer must be there, got 'activation_function', "),
    ({"n_head": "left out", "vocab_size": "left out"}, "n_head, vocab_size must be there"),
    ({"n_layer": 0}, "n_layer must be a size of at least 1, got 0"),
    ({"n_embd": -8}, "n_embd must be a size of at least 1, got -8"),
    ({"n_head": 2.0}, "n_head must be a size of at least 1, got 2.0"),
    ({"n_positions": True}, "n_positions must be a size of at least 1, got True"),
    ({"vocab_size": "11"}, "vocab_size must be a size of at least 1, got '11'"),
    ({"vocab_size": None}, "vocab_size must be a size of at least 1, got None"),
    ({"n_layer": 10**30}, "n_layer must be a size of at least 1, got 1000"),
    ({"n_inner": 0}, "n_inner must be a size of at least 1, got 0"),
    ({"n_inner": [32]}, r"n_inner must be a size of at least 1, got \[32\]"),
    ({"n_head": 3}, "n_embd=8 must be divisible by n_head=3"),
    ({"tie_word_embeddings": 1}, "tie_word_embeddings must be true or false, got 1"),
]


@pytest.mark.parametrize(("changed", "message"), BAD_CONFIGS)
def test_a_config_of_another_model_is_refused(tiny, changed, message):
    spoil_config(tiny, **changed)
    for load in (load_gpt2, load_gpt2_shape):
        with pytest.raises(ValueError, match=f"config.json: {message}") as caught:
            load(tiny)
        assert len(str(caught.value)) < 400 + len(str(tiny))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "config.json must be JSON, but Expecting value"),
        (b"[1]", r"config.json must be a JSON object, got \[1\]"),
        (b'{"n_layer": 2, "n_layer": 3}', "must be JSON, but the key 'n_layer' comes twice"),
        (b"\xff\xfe", "must be JSON, but 'utf-8' codec"),
        (b" " * 1_000_001, "has over 1000000 bytes: that is no config.json"),
    ],
)
def test_a_config_that_is_no_config_is_refused(tiny, content, message):
    (tiny / "config.json").write_bytes(content)
    for load in (load_gpt2, load_gpt2_shape):
        with pytest.raises(ValueError, match=message):
            load(tiny)


def drop(name):
    return lambda tensors: tensors.pop(name)


def put(name, value):
    return lambda tensors: tensors.update({name: value})


def poison(name, value):
    def change(tensors):
        tensors[name].view(-1)[-1] = value

    return change


BLOCK = "transformer.h.1."
BAD_WEIGHTS = [
    (drop("transformer.wte.weight"), ValueError, "has no wte.weight, GPT-2's token embedding"),
    (drop("transformer.wpe.weight"), ValueError, "'transformer.wpe.weight' is missing, which conf"),
    (drop(f"{BLOCK}attn.c_attn.bias"), ValueError, "h.1.attn.c_attn.bias' is missing"),
    (drop(f"{BLOCK}mlp.c_proj.weight"), ValueError, "h.1.mlp.c_proj.weight' is missing"),
    (drop("transformer.ln_f.bias"), ValueError, "'transformer.ln_f.bias' is missing"),
    (put("score.weight", torch.ones(2, 8)), ValueError, "1 tensors that GPT-2 .* 'score.weight'"),
    (put("transformer.h.2.ln_1.bias", torch.ones(8)), ValueError, "h.2.ln_1.bias'; is it the rig"),
    (put("h.0.attn.rotary", torch.ones(8)), ValueError, "'h.0.attn.rotary'; is it"),
    (put("wte.bias", torch.ones(8)), ValueError, "'wte.bias'; is it the right config"),
    (
        put("transformer.wte.weight", torch.ones(12, 8)),
        ShapeMismatch,
        r"transformer.wte.weight must have shape \[11, 8\] by config.json, got \[12, 8\]",
    ),
    (
        put("transformer.wpe.weight", torch.ones(13, 8)),
        ShapeMismatch,
        r"wpe.weight must have shape \[12, 8\] by",
    ),
    (
        put(f"{BLOCK}attn.c_attn.weight", torch.ones(24, 8)),
        ShapeMismatch,
        r"attn.c_attn.weight must have shape \[8, 24\] .* \[24, 8\]; weights are stored \[d_in, d",
    ),
    (
        put(f"{BLOCK}mlp.c_fc.weight", torch.ones(8, 31)),
        ShapeMismatch,
        r"mlp.c_fc.weight must have shape \[8, 32\]",
    ),
    (put(f"{BLOCK}ln_2.bias", torch.ones(8, 1)), ShapeMismatch, r"ln_2.bias must have shape \[8\]"),
    (
        put("lm_head.weight", torch.ones(8, 11)),
        ShapeMismatch,
        r"lm_head.weight must have shape \[11, 8\] by config.json, got \[8, 11\]",
    ),
    (
        put(f"{BLOCK}ln_2.bias", torch.ones(8).double()),
        ValueError,
        "h.1.ln_2.bias is F64, but only F32, F16 and BF16 are read; convert",
    ),
    (put(f"{BLOCK}ln_2.bias", torch.ones(8).int()), ValueError, "ln_2.bias is I32, but only"),
    (poison(f"{BLOCK}mlp.c_fc.bias", torch.nan), ValueError, "numbers from nan to nan, .* finite"),
    (poison("transformer.wte.weight", torch.inf), ValueError, "wte.weight has .* to inf"),
    (poison("transformer.ln_f.weight", -torch.inf), ValueError, "ln_f.weight has .* from -inf to"),
    (poison(f"{BLOCK}attn.c_attn.weight", torch.nan), ValueError, "c_attn.weight has numbers"),
]


@pytest.mark.parametrize(("change", "error", "message"), BAD_WEIGHTS)
def test_weights_that_are_not_as_the_config_says_are_refused(tiny, change, error, message):
    spoil_weights(tiny, change)
    with pytest.raises(error, match=message) as caught:
        load_gpt2(tiny)
    assert "model.safetensors" in str(caught.value)
    assert len(str(caught.value)) < 400 + len(str(tiny))


def test_a_config_of_other_sizes_than_the_weights_is_refused(tiny):
    for changed, message in [
        ({"n_layer": 3}, "'transformer.h.2.ln_1.weight' is missing"),
        ({"n_layer": 2**31 - 1}, "'transformer.h.2.ln_1.weight' is missing"),
        ({"n_layer": 1}, "12 tensors that GPT-2 by this config.json does not"),
        ({"n_embd": 16}, r"wte.weight must have shape \[11, 16\]"),
        ({"vocab_size": 12}, r"wte.weight must have shape \[12, 8\]"),
        ({"n_positions": 2**31 - 1}, r"wpe.weight must have shape \[2147483647, 8\]"),
        ({"n_inner": 16}, r"mlp.c_fc.weight must have shape \[8, 16\]"),
        ({"tie_word_embeddings": False}, "'lm_head.weight' is missing"),
    ]:
        before = (tiny / "config.json").read_text()
        spoil_config(tiny, **changed)
        with pytest.raises(ValueError, match=message):
            load_gpt2(tiny)
        (tiny / "config.json").write_text(before)


def test_what_is_missing_is_named_and_how_to_get_it(tiny):
    with pytest.raises(FileNotFoundError, match=r"nowhere: there is no such file; check the path"):
        load_gpt2(tiny / "nowhere")
    (tiny / "config.json").rename(tiny / "other.json")
    for load in (load_gpt2, load_gpt2_shape):
        with pytest.raises(FileNotFoundError, match="config.json: there is no such file; it holds"):
            load(tiny)
        with pytest.raises(FileNotFoundError, match="config.json: there is no such file; it holds"):
            load(tiny / "model.safetensors")
    (tiny / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="model.safetensors: there is no such file; check"):
        load_gpt2(tiny)
    (tiny / "model.safetensors").mkdir()
    (tiny / "other.json").rename(tiny / "config.json")
    with pytest.raises(ValueError, match="model.safetensors must be a file, but it is a folder"):
        load_gpt2(tiny)


def test_an_empty_or_cut_file_is_refused(tiny):
    path = tiny / "model.safetensors"
    whole = path.read_bytes()
    for length in (0, 7, 8, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="too few|cut off"):
            load_gpt2(tiny)


class Bomb:
    """Unpickled, it leaves a file behind."""

    def __init__(self, place):
        self.place = place

    def __reduce__(self):
        return (Path.touch, (self.place,))


def test_a_pickle_is_never_opened(tiny):
    exploded = tiny / "exploded"
    (tiny / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb(exploded)))
    load_gpt2(tiny)
    content = (tiny / "model.safetensors").read_bytes()
    (tiny / "model.safetensors").unlink()
    advice = "a pickle; it is never opened here. If you trust it, convert it once: GPT2LMHead"
    for path in (tiny, tiny / "model.safetensors"):
        with pytest.raises(FileNotFoundError, match=advice):
            load_gpt2(path)
    with pytest.raises(ValueError, match="pytorch_model.bin is a pickle, and loading one can run"):
        load_gpt2(tiny / "pytorch_model.bin")
    (tiny / "pytorch_model.bin").rename(tiny / "model.safetensors")
    with pytest.raises(ValueError, match="not a safetensors file"):
        load_gpt2(tiny)
    assert not exploded.exists()
    (tiny / "model.safetensors").write_bytes(content)
    load_gpt2(tiny)


def test_a_checkpoint_in_pieces_is_refused_with_the_way_to_make_it_one(tmp_path, made):
    made["small"][0].save_pretrained(tmp_path, max_shard_size="500KB")
    assert (tmp_path / "model.safetensors.index.json").exists()
    with pytest.raises(FileNotFoundError, match="in several pieces .*; make it one: .*max_shard_s"):
        load_gpt2(tmp_path)


@st.composite
def damage(draw, length):
    """Up to three bytes among the first `length` replaced, put in or taken out; perhaps a cut."""

    def apply(content):
        content = bytearray(content)
        for place, byte, how in edits:
            content[place : place + (how != "insert")] = [byte] if how != "remove" else []
        return bytes(content[:cut])

    bytes_of_json = st.sampled_from(b'0123456789{}[]",:- .eFBnulltrue_') | st.integers(0, 255)
    edit = st.tuples(
        st.integers(0, length - 1), bytes_of_json, st.sampled_from(["replace", "insert", "remove"])
    )
    edits = draw(st.lists(edit, min_size=1, max_size=3))
    cut = draw(st.none() | st.integers(0, length)) if draw(st.integers(0, 9)) == 0 else None
    return apply


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_damaged_checkpoint_is_the_same_or_refused(made, name):
    """Damaged in the header or the config, that is: one number for another nobody can see."""
    folder = made["tiny"][1]
    whole = (folder / name).read_bytes()
    is_config = name == "config.json"
    length = len(whole) if is_config else 8 + int.from_bytes(whole[:8], "little")
    expected = load_gpt2(folder)
    outcomes = set()

    @settings(max_examples=150, deadline=None, derandomize=True)
    @given(damage(length))
    def check(apply):
        with tempfile.TemporaryDirectory() as copied:
            shutil.copytree(folder, copied, dirs_exist_ok=True)
            (Path(copied) / name).write_bytes(apply(whole))
            tracemalloc.start()
            try:
                params = load_gpt2(copied)
            except (ValueError, FileNotFoundError) as error:
                assert 20 < len(str(error)) < 700  # noqa: PT017
                outcomes.add("refused")
            else:
                assert_same(params, expected)
                outcomes.add("the same")
            finally:
                peak = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
            assert peak < 1_000_000

    check()
    assert "refused" in outcomes


def public_layout(vocab_size, n_positions, n_embd, n_layer):
    d = n_embd
    shapes = {"wte.weight": (vocab_size, d), "wpe.weight": (n_positions, d)}
    for layer in range(n_layer):
        for norm in ("ln_1", "ln_2"):
            shapes |= {f"h.{layer}.{norm}.{part}": (d,) for part in ("weight", "bias")}
        for part, d_in, d_out in (
            ("attn.c_attn", d, 3 * d),
            ("attn.c_proj", d, d),
            ("mlp.c_fc", d, 4 * d),
            ("mlp.c_proj", 4 * d, d),
        ):
            shapes[f"h.{layer}.{part}.weight"] = (d_in, d_out)
            shapes[f"h.{layer}.{part}.bias"] = (d_out,)
    return shapes | {"ln_f.weight": (d,), "ln_f.bias": (d,)}


WEIGH = """
import sys
from pathlib import Path
from course_lib.decoder_lm.weights import load_gpt2

def memory(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))

before = memory("VmRSS")
params = load_gpt2(sys.argv[1])
names = ("token_embedding", "position_embedding", "final_gain", "final_bias")
arrays = [params[name] for name in names] + [a for b in params["blocks"] for a in b.values()]
assert not {"torch", "transformers", "safetensors"} & set(sys.modules)
print((memory("VmHWM") - before) / sum(array.nbytes for array in arrays))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells the peak there")
@pytest.mark.parametrize("kind", ["float32", "float32 at odd addresses", "float16", "bfloat16"])
def test_the_peak_of_memory_is_little_more_than_the_weights(tmp_path, kind):
    """Everything counts: NumPy's memory and the pages of the mapped file alike."""
    sizes = {"vocab_size": 16000, "n_positions": 256, "n_embd": 384, "n_layer": 6}
    dtype = getattr(torch, kind.split()[0])
    tensors = {
        name: torch.full(shape, 0.01, dtype=dtype) for name, shape in public_layout(**sizes).items()
    }
    content = safetensors.torch.save(tensors)
    if "odd" in kind:
        header = int.from_bytes(content[:8], "little")
        content = (
            (header + 1).to_bytes(8, "little")
            + content[8 : 8 + header]
            + b" "
            + (content[8 + header :])
        )
    (tmp_path / "model.safetensors").write_bytes(content)
    (tmp_path / "config.json").write_text(json.dumps({**sizes, "n_head": 6}))
    told = subprocess.run(
        [sys.executable, "-W", "error", "-c", WEIGH, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    assert 0.95 <= float(told.stdout) <= 1.3
    (tmp_path / "model.safetensors").unlink()


def test_gpt2_small_at_its_true_size(tmp_path):
    """12 layers, 768 wide, 12 heads, 50257 ids, 1024 positions: half a gigabyte."""
    model = transformers_model(11, initializer_range=0.06)
    model.save_pretrained(tmp_path)
    try:
        params, shape = load_gpt2(tmp_path), load_gpt2_shape(tmp_path)
        assert shape == ModelShape(12, 768, 12, 1024, 50257)
        prompt = prompt_of(model, 6)
        expected = witness_logits(model, prompt)
        greedy = witness_greedy(model, prompt, 4)
        for logits_of, greedy_of in (STAGES[stage] for stage in LARGE):
            assert np.abs(logits_of(params, shape, prompt) - expected).max() <= TOLERANCE
            assert greedy_of(params, shape, prompt, 4) == greedy
    finally:
        (tmp_path / "model.safetensors").unlink()
