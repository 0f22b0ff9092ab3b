"""Real weights: a GPT-2 checkpoint as it is published, read into the parameters of the decoder."""

import reprlib
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from course_lib.decoder_lm.errors import ShapeMismatch
from course_lib.decoder_lm.safetensors_file import (
    SafetensorsFile,
    check_float_dtype,
    parse_json_object,
)
from course_lib.decoder_lm.shape import ModelShape

_GPT2_SIZES = ("n_layer", "n_embd", "n_head", "n_positions", "vocab_size")  # of config.json
_GPT2_ONLY = {  # what else config.json may choose; left out, it means the same
    "model_type": "gpt2",
    "activation_function": "gelu_new",  # the tanh form
    "layer_norm_epsilon": 1e-5,
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "reorder_and_upcast_attn": False,
    "add_cross_attention": False,
}
_LARGEST_CONFIG = 1_000_000  # bytes; the public ones have under a thousand
_GPT2_CONVERT = (
    "it is never opened here. If you trust it, convert it once: "
    "GPT2LMHeadModel.from_pretrained(folder).save_pretrained(new_folder)"
)


def load_gpt2(path: str | PathLike[str]) -> dict[str, Any]:
    """Read a GPT-2 checkpoint into the parameter dict of the decoder, in float32, read-only.

    What the file holds in float32 is not copied but mapped: the arrays are views of the file,
    wq, wk and wv columns of one matrix in it. F16 and BF16 are widened, exactly. The unembedding
    is the file's lm_head if there is one, else the token embedding (tied), transposed.

    Args:    path: a folder with model.safetensors and config.json, or the former beside the latter
    Raises:  FileNotFoundError; ShapeMismatch for a tensor that is not as config.json says;
             ValueError for a damaged file, another kind of model, or a weight that is not finite
    Source:  Radford et al. 2019; h.0.attn.c_attn and its like are the names they published
    """
    weights_path, config_path = _gpt2_files(path)
    shape, d_ff, tied = _gpt2_config(config_path)
    file = SafetensorsFile(weights_path)
    prefix = _gpt2_prefix(file)
    has_head = "lm_head.weight" in file.entries
    _check_gpt2_tensors(file, prefix, _gpt2_tensors(shape, d_ff, has_head or not tied))
    token_embedding = _finite_tensor(file, f"{prefix}wte.weight")
    unembedding = _finite_tensor(file, "lm_head.weight") if has_head else token_embedding
    return {
        "token_embedding": token_embedding,
        "position_embedding": _finite_tensor(file, f"{prefix}wpe.weight"),
        "blocks": [_gpt2_block(file, f"{prefix}h.{layer}.") for layer in range(shape.n_layers)],
        "final_gain": _finite_tensor(file, f"{prefix}ln_f.weight"),
        "final_bias": _finite_tensor(file, f"{prefix}ln_f.bias"),
        "unembedding": unembedding.T,  # [d_model, V]
        "unembedding_bias": np.zeros(shape.vocab_size, dtype=np.float32),  # GPT-2 has none
    }


def load_gpt2_shape(path: str | PathLike[str]) -> ModelShape:
    """Read the sizes of a GPT-2 checkpoint from its config.json.

    Args:    path: as for `load_gpt2`
    Raises:  FileNotFoundError; ValueError for sizes that are missing or make no model, and for a
             model of another kind, for example with another activation function
    """
    shape, _, _ = _gpt2_config(_gpt2_files(path)[1])
    return shape


def _gpt2_block(file: SafetensorsFile, prefix: str) -> dict[str, np.ndarray]:
    """Read one block; its c_attn is wq, wk and wv side by side, its weights are [d_in, d_out]."""
    names = {
        "ln1_gain": "ln_1.weight",
        "ln1_bias": "ln_1.bias",
        "wo": "attn.c_proj.weight",
        "bo": "attn.c_proj.bias",
        "ln2_gain": "ln_2.weight",
        "ln2_bias": "ln_2.bias",
        "w1": "mlp.c_fc.weight",
        "b1": "mlp.c_fc.bias",
        "w2": "mlp.c_proj.weight",
        "b2": "mlp.c_proj.bias",
    }
    block = {ours: _finite_tensor(file, prefix + theirs) for ours, theirs in names.items()}
    qkv_weight = _finite_tensor(file, f"{prefix}attn.c_attn.weight")  # [d_model, 3 d_model]
    qkv_bias = _finite_tensor(file, f"{prefix}attn.c_attn.bias")
    block["wq"], block["wk"], block["wv"] = np.split(qkv_weight, 3, axis=1)  # views
    block["bq"], block["bk"], block["bv"] = np.split(qkv_bias, 3)
    return block


def _gpt2_tensors(
    shape: ModelShape, d_ff: int, with_head: bool
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Go through the names and shapes of the public layout, one at a time."""
    d_model = shape.d_model
    block: dict[str, tuple[int, ...]] = {"ln_1.weight": (d_model,), "ln_1.bias": (d_model,)}
    block |= {"attn.c_attn.weight": (d_model, 3 * d_model), "attn.c_attn.bias": (3 * d_model,)}
    block |= {"attn.c_proj.weight": (d_model, d_model), "attn.c_proj.bias": (d_model,)}
    block |= {"ln_2.weight": (d_model,), "ln_2.bias": (d_model,)}
    block |= {"mlp.c_fc.weight": (d_model, d_ff), "mlp.c_fc.bias": (d_ff,)}
    block |= {"mlp.c_proj.weight": (d_ff, d_model), "mlp.c_proj.bias": (d_model,)}
    yield "wte.weight", (shape.vocab_size, d_model)
    yield "wpe.weight", (shape.context_length, d_model)
    for layer in range(shape.n_layers):
        for name, size in block.items():
            yield f"h.{layer}.{name}", size
    yield from (("ln_f.weight", (d_model,)), ("ln_f.bias", (d_model,)))
    if with_head:
        yield "lm_head.weight", (shape.vocab_size, d_model)


def _check_gpt2_tensors(
    file: SafetensorsFile, prefix: str, wanted: Iterator[tuple[str, tuple[int, ...]]]
) -> None:
    """Require every tensor in its shape and dtype, and no other; no number is read yet."""
    known = set()
    for short, size in wanted:  # ends at the first that is missing, whatever config.json dreams of
        name = short if short == "lm_head.weight" else prefix + short
        if name not in file.entries:
            raise ValueError(
                f"{file.path}: tensor {name!r} is missing, which config.json asks for; among the "
                f"{len(file.entries)} there are {_some_names(file.entries)}"
            )
        entry = file.entries[name]
        if entry.shape != size:
            raise ShapeMismatch(
                f"{file.path}: {name} must have shape {list(size)} by config.json, got "
                f"{list(entry.shape)}; weights are stored [d_in, d_out], embeddings one row an id"
            )
        check_float_dtype(f"{file.path}: {name}", entry.dtype)
        known.add(name)
    extra = [
        name for name in file.entries if name not in known and not _is_mask_buffer(name, prefix)
    ]
    if extra:
        raise ValueError(
            f"{file.path} has {len(extra)} tensors that GPT-2 by this config.json does not: "
            f"{_some_names(extra)}; is it the right config.json?"
        )


def _is_mask_buffer(name: str, prefix: str) -> bool:
    """Older files keep the causal mask of every layer (attn.bias): nothing learned, not read."""
    parts = name.removeprefix(prefix).split(".")
    is_layer = len(parts) == 4 and parts[0] == "h" and parts[1].isdecimal() and parts[2] == "attn"
    return is_layer and parts[3] in ("bias", "masked_bias")


def _gpt2_prefix(file: SafetensorsFile) -> str:
    """A model saved with its output head calls everything else "transformer."."""
    for prefix in ("transformer.", ""):
        if f"{prefix}wte.weight" in file.entries:
            return prefix
    raise ValueError(
        f"{file.path} has no wte.weight, GPT-2's token embedding: it is the checkpoint of another "
        f"model; its {len(file.entries)} tensors are {_some_names(file.entries)}"
    )


def _some_names(names: Any) -> str:
    """Show at most three names, none of them at length."""
    shown = [name if len(name) <= 60 else f"{name[:60]}..." for name in list(names)[:3]]
    return ", ".join(repr(name) for name in shown) + (", ..." if len(names) > 3 else "")


def _finite_tensor(file: SafetensorsFile, name: str) -> np.ndarray:
    array = file.float32(name)
    low, high = array.min(), array.max()  # a NaN is both; no array of marks is made
    if not (np.isfinite(low) and np.isfinite(high)):
        raise ValueError(
            f"{file.path}: {name} has numbers from {low} to {high}, and a weight must be finite: "
            f"the file is damaged, or its training had failed; get it again"
        )
    return array


def _gpt2_files(path: str | PathLike[str]) -> tuple[Path, Path]:
    """Find model.safetensors and config.json, beside each other (links are not resolved)."""
    path = Path(path)
    folder, weights = path.parent, path
    if path.is_dir():
        folder, weights = path, path / "model.safetensors"
    if weights.suffix in (".bin", ".pt", ".pth", ".ckpt") and weights.exists():
        raise ValueError(
            f"{weights} is a pickle, and loading one can run any program: {_GPT2_CONVERT}"
        )
    if not weights.exists():
        raise FileNotFoundError(f"{weights}: there is no such file; {_gpt2_advice(folder)}")
    config = folder / "config.json"
    if not config.is_file():
        raise FileNotFoundError(
            f"{config}: there is no such file; it holds the sizes of the model, get it too"
        )
    return weights, config


def _gpt2_advice(folder: Path) -> str:
    if (folder / "model.safetensors.index.json").exists():
        return (
            "the checkpoint is in several pieces (model.safetensors.index.json); make it one: "
            'GPT2LMHeadModel.from_pretrained(folder).save_pretrained(new, max_shard_size="50GB")'
        )
    if (folder / "pytorch_model.bin").exists():
        return f"beside it is pytorch_model.bin, a pickle; {_GPT2_CONVERT}"
    return "check the path: it must be a folder with model.safetensors and config.json"


def _gpt2_config(path: Path) -> tuple[ModelShape, int, bool]:
    """Read the sizes, d_ff, and whether the output head is the token embedding."""
    if path.stat().st_size > _LARGEST_CONFIG:
        raise ValueError(f"{path} has over {_LARGEST_CONFIG} bytes: that is no config.json")
    config = parse_json_object(str(path), path.read_bytes())
    _check_gpt2_config(path, config)
    n_layers, d_model, n_heads, context_length, vocab_size = (config[name] for name in _GPT2_SIZES)
    shape = ModelShape(n_layers, d_model, n_heads, context_length, vocab_size)
    d_ff = config.get("n_inner") or 4 * d_model  # null: GPT-2's own choice
    return shape, d_ff, config.get("tie_word_embeddings", True)


def _check_gpt2_config(path: Path, config: dict[str, Any]) -> None:
    for name, only in _GPT2_ONLY.items():
        came = config.get(name, only)
        if came != only:
            raise ValueError(
                f"{path}: {name} must be {only!r}, got {reprlib.repr(came)}; the decoder of this "
                f"course computes nothing else"
            )
    missing = [name for name in _GPT2_SIZES if name not in config]
    if missing:
        raise ValueError(f"{path}: {', '.join(missing)} must be there, got {_some_names(config)}")
    for name in (*_GPT2_SIZES, "n_inner"):
        size = config.get(name)
        if not (type(size) is int and 1 <= size < 2**31) and (name, size) != ("n_inner", None):
            raise ValueError(
                f"{path}: {name} must be a size of at least 1, got {reprlib.repr(size)}"
            )
    if config["n_embd"] % config["n_head"] != 0:
        raise ValueError(
            f"{path}: n_embd={config['n_embd']} must be divisible by n_head={config['n_head']}: "
            f"every head gets as many columns"
        )
    if type(config.get("tie_word_embeddings", True)) is not bool:
        raise ValueError(
            f"{path}: tie_word_embeddings must be true or false, "
            f"got {reprlib.repr(config['tie_word_embeddings'])}"
        )
