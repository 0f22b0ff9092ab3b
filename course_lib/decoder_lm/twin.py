"""The twin in torch: it trains what the NumPy stages run, and it is a witness of their numbers."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.arguments import check_bool, check_same_device, check_token_ids
from course_lib.decoder_lm.errors import ContextOverflow, ShapeMismatch
from course_lib.decoder_lm.shape import ModelShape, check_parameters
from course_lib.integers import check_positive_int


class TwinCache:
    """Keys and values of the positions read so far; `TorchTwin.start` gives an empty one.

    The memory comes with the first tokens, which bring the batch, and then lasts to the context.

    Shapes:  keys, values [n_layers, B, H, context_length, d_head], of which length are filled
    """

    def __init__(self, shape: ModelShape) -> None:
        self.shape = shape
        self.length = 0
        self.keys: Tensor | None = None
        self.values: Tensor | None = None

    def remember(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Write the new keys and values of a layer after the old ones; return all of them.

        The length is not moved here: the twin moves it once, when every layer has written.

        Shapes:  k, v [B, H, width, d_head] -> twice [B, H, length + width, d_head]
        """
        if self.keys is None:
            batch, context = k.shape[0], self.shape.context_length
            sizes = (self.shape.n_layers, batch, k.shape[1], context, k.shape[3])
            self.keys, self.values = k.new_empty(sizes), k.new_empty(sizes)
        end = self.length + k.shape[2]
        self.keys[layer, :, :, self.length : end] = k
        self.values[layer, :, :, self.length : end] = v
        return self.keys[layer, :, :, :end], self.values[layer, :, :, :end]


class TwinAttention(nn.Module):
    """Causal attention by torch's own function, with q, k and v from one product.

    Args:    remember: new keys and values of this layer -> all of them; None: there is no cache
    Shapes:  x [B, T, d_model] -> [B, T, d_model]
    """

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x: Tensor, remember: Callable[..., tuple] | None = None) -> Tensor:
        heads = self.qkv(x).unflatten(-1, (3, self.n_heads, -1))  # [B, T, 3, H, d_head]
        q, k, v = heads.permute(2, 0, 3, 1, 4)  # each [B, H, T, d_head]
        if remember is None:
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            k, v = remember(k, v)  # [B, H, length + T, d_head]
            # is_causal would lay its triangle at the top left: query 0 reads key 0 and no more
            reads = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=x.device)
            allowed = reads.tril(k.shape[2] - q.shape[2])  # [T, length + T]: down to the right
            mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
        return self.out(mixed.transpose(1, 2).flatten(2))


class TwinBlock(nn.Module):
    """One pre-norm block of the GPT-2 family: attention, then an MLP with the tanh GELU.

    Shapes:  x [B, T, d_model] -> [B, T, d_model]
    """

    def __init__(self, d_model: int, n_heads: int, d_ff: int) -> None:
        super().__init__()
        self.ln1 = nn.LayerNorm(d_model, eps=1e-5)
        self.attn = TwinAttention(d_model, n_heads)
        self.ln2 = nn.LayerNorm(d_model, eps=1e-5)
        self.up = nn.Linear(d_model, d_ff)
        self.down = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor, remember: Callable[..., tuple] | None = None) -> Tensor:
        x = x + self.attn(self.ln1(x), remember)
        return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))


class TwinNetwork(nn.Module):
    """Embeddings, blocks, a last norm and the output head, started as GPT-2 is; nothing checked."""

    def __init__(self, shape: ModelShape, d_ff: int, tie: bool) -> None:
        super().__init__()
        d_model = shape.d_model
        self.token_embedding = nn.Embedding(shape.vocab_size, d_model)
        self.position_embedding = nn.Embedding(shape.context_length, d_model)
        blocks = (TwinBlock(d_model, shape.n_heads, d_ff) for _ in range(shape.n_layers))
        self.blocks = nn.ModuleList(blocks)
        self.ln_final = nn.LayerNorm(d_model, eps=1e-5)
        self.head = nn.Linear(d_model, shape.vocab_size, bias=not tie)
        if tie:
            self.head.weight = self.token_embedding.weight  # one Parameter, two uses
        _start_small(self)

    def read(self, token_ids: Tensor, cache: TwinCache | None) -> Tensor:
        """Predict after every token: [B, width] -> logits [B, width, V]; None: no cache."""
        first = 0 if cache is None else cache.length
        positions = torch.arange(first, first + token_ids.shape[1], device=token_ids.device)
        x = self.token_embedding(token_ids) + self.position_embedding(positions)
        for layer, block in enumerate(self.blocks):
            x = block(x, None if cache is None else partial(cache.remember, layer))
        return self.head(self.ln_final(x))


class TorchTwin(TwinNetwork):
    """The decoder-only language model in torch: train it, then hand its parameters to NumPy.

    Args:    tie: the unembedding is the token embedding, transposed, and has no bias
    Shapes:  token_ids [B, T <= max_length] long -> logits [B, T, V]; logits[:, t] predict t + 1
    """

    def __init__(self, shape: ModelShape, d_ff: int, *, tie: bool = False) -> None:
        _check_twin_sizes(shape, d_ff, tie)
        super().__init__(shape, d_ff, tie)
        self.shape, self.d_ff = shape, d_ff
        self.vocab_size, self.max_length = shape.vocab_size, shape.context_length

    def forward(self, token_ids: Tensor) -> Tensor:
        _check_twin_tokens(self, token_ids, 0)
        return self.read(token_ids, None)

    def start(self) -> TwinCache:
        """Return an empty cache, for `extend`."""
        return TwinCache(self.shape)

    @torch.no_grad()
    def extend(self, token_ids: Tensor, cache: TwinCache) -> Tensor:
        """Read [B, width] after what the cache holds, remember it there, return its logits.

        Raises:  ContextOverflow before anything changes, if they pass max_length
        """
        _check_twin_cache(self, token_ids, cache)
        logits = self.read(token_ids, cache)
        cache.length += token_ids.shape[1]  # once, when every layer has written
        return logits

    @classmethod
    def from_parameters(cls, params: Mapping[str, Any], shape: ModelShape) -> "TorchTwin":
        """Build an untied twin that computes with copies of these parameters, in their dtype."""
        return _twin_from_parameters(cls, params, shape)

    def to_parameters(self) -> dict[str, Any]:
        """Return copies of the parameters as the nested dict of arrays that all stages read."""
        return _twin_parameters(self)


def _start_small(twin: nn.Module) -> None:
    """Draw GPT-2's start: small weights, so that the first loss is near ln V."""
    for module in twin.modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
    for block in twin.blocks:  # 2 n_layers of these add up in the residual stream
        for last in (block.attn.out, block.down):
            nn.init.normal_(last.weight, std=0.02 / (2 * len(twin.blocks)) ** 0.5)


def _twin_from_parameters(cls: type, params: Mapping[str, Any], shape: ModelShape) -> nn.Module:
    check_parameters(params, shape)
    dtype = np.result_type(np.asarray(params["token_embedding"]))
    if dtype not in (np.float32, np.float64):
        raise TypeError(f"the parameters must be float32 or float64, got {dtype}; call .astype")
    with torch.device("meta"):  # names and shapes only: no draw, no memory
        twin = cls(shape, np.shape(params["blocks"][0]["w1"])[1])
    state = {name: torch.tensor(array) for name, array in _twin_state(params, dtype)}
    twin.load_state_dict(state, assign=True)
    return twin


def _twin_state(params: Mapping[str, Any], dtype: np.dtype) -> list[tuple[str, np.ndarray]]:
    """List the parameters under the names of the twin; torch's Linear keeps [d_out, d_in]."""
    state = [
        ("token_embedding.weight", params["token_embedding"]),
        ("position_embedding.weight", params["position_embedding"]),
        ("ln_final.weight", params["final_gain"]),
        ("ln_final.bias", params["final_bias"]),
        ("head.weight", np.transpose(params["unembedding"])),
        ("head.bias", params["unembedding_bias"]),
    ]
    for layer, block in enumerate(params["blocks"]):
        qkv = np.concatenate([block["wq"], block["wk"], block["wv"]], axis=1)  # [d, 3 d]
        state += [
            (f"blocks.{layer}.ln1.weight", block["ln1_gain"]),
            (f"blocks.{layer}.ln1.bias", block["ln1_bias"]),
            (f"blocks.{layer}.attn.qkv.weight", qkv.T),
            (f"blocks.{layer}.attn.qkv.bias", [*block["bq"], *block["bk"], *block["bv"]]),
            (f"blocks.{layer}.attn.out.weight", np.transpose(block["wo"])),
            (f"blocks.{layer}.attn.out.bias", block["bo"]),
            (f"blocks.{layer}.ln2.weight", block["ln2_gain"]),
            (f"blocks.{layer}.ln2.bias", block["ln2_bias"]),
            (f"blocks.{layer}.up.weight", np.transpose(block["w1"])),
            (f"blocks.{layer}.up.bias", block["b1"]),
            (f"blocks.{layer}.down.weight", np.transpose(block["w2"])),
            (f"blocks.{layer}.down.bias", block["b2"]),
        ]
    return [(name, np.array(values, dtype=dtype, order="C")) for name, values in state]


def _twin_parameters(twin: nn.Module) -> dict[str, Any]:
    head_bias = twin.head.bias  # tied: there is none
    if head_bias is None:
        head_bias = twin.head.weight.new_zeros(twin.vocab_size)
    return {
        "token_embedding": _twin_array(twin.token_embedding.weight),
        "position_embedding": _twin_array(twin.position_embedding.weight),
        "blocks": [_twin_block_parameters(block) for block in twin.blocks],
        "final_gain": _twin_array(twin.ln_final.weight),
        "final_bias": _twin_array(twin.ln_final.bias),
        "unembedding": _twin_array(twin.head.weight.T),
        "unembedding_bias": _twin_array(head_bias),
    }


def _twin_block_parameters(block: nn.Module) -> dict[str, np.ndarray]:
    wq, wk, wv = (_twin_array(part.T) for part in block.attn.qkv.weight.chunk(3))
    bq, bk, bv = (_twin_array(part) for part in block.attn.qkv.bias.chunk(3))
    parts = {"ln1_gain": block.ln1.weight, "ln1_bias": block.ln1.bias}
    parts |= {"wo": block.attn.out.weight.T, "bo": block.attn.out.bias}
    parts |= {"ln2_gain": block.ln2.weight, "ln2_bias": block.ln2.bias}
    parts |= {"w1": block.up.weight.T, "b1": block.up.bias}
    parts |= {"w2": block.down.weight.T, "b2": block.down.bias}
    arrays = {name: _twin_array(value) for name, value in parts.items()}
    return arrays | {"wq": wq, "bq": bq, "wk": wk, "bk": bk, "wv": wv, "bv": bv}


def _twin_array(value: Tensor) -> np.ndarray:
    """Copy: further training must not change what was handed out."""
    return np.array(value.detach().cpu().numpy(), order="C")


def _check_twin_sizes(shape: Any, d_ff: Any, tie: Any) -> None:
    if not isinstance(shape, ModelShape):
        raise TypeError(f"shape must be a ModelShape, got {type(shape).__name__}")
    check_positive_int("d_ff", d_ff)
    check_bool("tie", tie)


def _check_twin_tokens(twin: nn.Module, token_ids: Any, held: int) -> None:
    check_token_ids("token_ids", token_ids, "[B, T]", twin.vocab_size)
    check_same_device("token_ids", token_ids, "the twin", twin.token_embedding.weight)
    end = held + token_ids.shape[1]
    if end > twin.max_length:
        raise ContextOverflow(
            f"{held} positions held and {token_ids.shape[1]} new ones make {end}, past the context "
            f"of {twin.max_length}; give fewer tokens, or begin again with start()"
        )


def _check_twin_cache(twin: nn.Module, token_ids: Any, cache: Any) -> None:
    if not isinstance(cache, TwinCache):
        raise TypeError(f"cache must come from start(), got {type(cache).__name__}")
    if cache.shape != twin.shape:
        raise ShapeMismatch(f"the cache is of {cache.shape}, but the twin is {twin.shape}")
    _check_twin_tokens(twin, token_ids, cache.length)
    if cache.keys is not None and cache.keys.shape[1] != token_ids.shape[0]:
        raise ShapeMismatch(
            f"token_ids has {token_ids.shape[0]} rows but the cache holds {cache.keys.shape[1]}; "
            f"every chunk brings the same rows; begin again with start()"
        )
