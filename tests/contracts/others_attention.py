"""Attentions by others, behind adapters that translate conventions and repair nothing.

Translated are names and shapes, True and False, bool masks and added ones, who raises an error
for a row that reads nothing, and x @ w against nn.Linear. Every number is the other library's.
"""

import functools
import math

import torch
import torch.nn.functional as F
from torch.nn.attention.bias import causal_lower_right
from transformers import GPT2Config, LlamaConfig
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import create_bidirectional_mask, create_causal_mask
from transformers.models.gpt2 import modeling_gpt2
from transformers.models.llama import modeling_llama


def joint_shape(q, k, v):
    batch = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    return (*batch, q.shape[-2], k.shape[-2])


def at_the_door(attention):
    """Raise where this course raises and the library does not; then hand on."""

    def checked(q, k, v, allowed=None, *, empty_row="error"):
        if not all(tensor.isfinite().all() for tensor in (q, k, v)):
            raise ValueError("not finite")
        if allowed is not None:
            if allowed.dtype != torch.bool:
                raise TypeError(f"a mask of {allowed.dtype}")
            try:
                allowed = allowed.expand(joint_shape(q, k, v))
            except RuntimeError as error:
                raise ValueError(str(error)) from error
            if empty_row == "error" and not allowed.any(-1).all():
                raise ValueError("a row reads nothing")
        return attention(q, k, v, allowed)

    return checked


def expanded(q, k, v):
    """torch wants the batch axes of q, k and v to be the same."""
    batch = joint_shape(q, k, v)[:-2]
    return (tensor.expand(*batch, *tensor.shape[-2:]) for tensor in (q, k, v))


def torch_sdpa(q, k, v, allowed=None, *, empty_row="error"):
    """torch's function; it gives zeros for a row that reads nothing."""
    q, k, v = expanded(q, k, v)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)


def torch_sdpa_with_bias(q, k, v, allowed=None, *, empty_row="error"):
    """The same with the other kind of mask: 0 to read, -inf to hide, added to the scores."""
    if allowed is not None:
        allowed = torch.zeros(allowed.shape, dtype=q.dtype).masked_fill(~allowed, -math.inf)
    q, k, v = expanded(q, k, v)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)


def by_heads(function, fill=None, **settings):
    """A function of transformers, (module, q, k, v [B, H, T, d], mask) -> [B, T, H, d]."""

    def attention(q, k, v, allowed=None, *, empty_row="error"):
        shape = joint_shape(q, k, v)
        q, k, v = (part.reshape(-1, 1, *part.shape[-2:]) for part in expanded(q, k, v))
        mask = None
        if allowed is not None:
            mask = allowed.expand(shape).reshape(-1, 1, *shape[-2:])
            if fill is not None:  # as transformers' eager_mask makes it
                mask = torch.where(mask, torch.zeros((), dtype=q.dtype), fill(q.dtype))
        module = torch.nn.Module().eval()
        module.num_key_value_groups = 1
        options = {"scaling": q.shape[-1] ** -0.5, "dropout": 0.0, **settings}
        output, _ = function(module, q, k, v, mask, **options)
        return output.transpose(1, 2).reshape(*shape[:-1], v.shape[-1])

    return attention


def least(dtype):
    return torch.finfo(dtype).min


transformers_sdpa = by_heads(sdpa_attention_forward, is_causal=False)
gpt2_eager = by_heads(modeling_gpt2.eager_attention_forward, least)
llama_eager = by_heads(modeling_llama.eager_attention_forward, least)


def torch_module(*, batch_first=True, padding=torch.logical_not, dropout=0.0):
    """torch.nn.MultiheadAttention, whose key_padding_mask is True where nothing may be read."""

    def multi_head(x, w_q, w_k, w_v, w_o, n_heads, *, causal, token_valid):
        module = torch.nn.MultiheadAttention(
            x.shape[-1], n_heads, dropout, bias=False, batch_first=batch_first, dtype=x.dtype
        )
        weights = {"in_proj_weight": torch.cat([w_q.T, w_k.T, w_v.T]), "out_proj.weight": w_o.T}
        valid = torch.ones(x.shape[:2], dtype=torch.bool) if token_valid is None else token_valid
        hidden, time = (padding(valid), x.shape[1]) if batch_first else (padding(valid).T, len(x))
        later = torch.ones(time, time, dtype=torch.bool).triu(1)
        options = {"key_padding_mask": hidden, "attn_mask": later if causal else None}
        return torch.func.functional_call(module, weights, (x, x, x), options)[0]

    return multi_head


def torch_module_by_pairs(x, w_q, w_k, w_v, w_o, n_heads, *, causal, token_valid):
    """The same module with one mask of pairs, in which a token of padding reads all tokens."""
    module = torch.nn.MultiheadAttention(
        x.shape[-1], n_heads, bias=False, batch_first=True, dtype=x.dtype
    )
    weights = {"in_proj_weight": torch.cat([w_q.T, w_k.T, w_v.T]), "out_proj.weight": w_o.T}
    valid = torch.ones(x.shape[:2], dtype=torch.bool) if token_valid is None else token_valid
    hidden = ~valid[:, None, :].expand(-1, x.shape[1], -1)
    if causal:
        hidden = hidden | torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
    hidden = (hidden & valid[:, :, None]).repeat_interleave(n_heads, dim=0)
    return torch.func.functional_call(module, weights, (x, x, x), {"attn_mask": hidden})[0]


@functools.cache
def gpt2_module(width, n_heads, way):
    config = GPT2Config(n_embd=width, n_head=n_heads, attn_pdrop=0.0, resid_pdrop=0.0)
    config._attn_implementation = way
    return modeling_gpt2.GPT2Attention(config, layer_idx=0).eval()


@functools.cache
def llama_module(width, n_heads, n_kv_heads, way):
    sizes = {"num_attention_heads": n_heads, "num_key_value_heads": n_kv_heads}
    config = LlamaConfig(hidden_size=2 * n_heads, **sizes)
    config.hidden_size, config.head_dim = width, width // n_heads  # odd: a config refuses it
    config._attn_implementation = way
    return modeling_llama.LlamaAttention(config, layer_idx=0).eval()


def transformers_mask(config, x, causal, token_valid):
    """The mask that transformers itself builds for a model of this config."""
    make = create_causal_mask if causal else create_bidirectional_mask
    valid = None if token_valid is None else token_valid.long()
    return make(config=config, inputs_embeds=x, attention_mask=valid, cache=None)


def gpt2(way):
    """GPT-2's attention; its Conv1D applies x @ w, with a bias that is zero here."""

    def multi_head(x, w_q, w_k, w_v, w_o, n_heads, *, causal, token_valid):
        module, width = gpt2_module(x.shape[-1], n_heads, way), x.shape[-1]
        weights = {
            "c_attn.weight": torch.cat([w_q, w_k, w_v], dim=1),
            "c_attn.bias": x.new_zeros(3 * width),
            "c_proj.weight": w_o,
            "c_proj.bias": x.new_zeros(width),
        }
        mask = transformers_mask(module.config, x, causal, token_valid)
        options = {"attention_mask": mask, "is_causal": causal}
        return torch.func.functional_call(module, weights, (x,), options)[0]

    return multi_head


def no_positions(config, x):
    """cos = 1 and sin = 0: a rotation by no angle."""
    d_head = config.hidden_size // config.num_attention_heads
    return x.new_ones(1, x.shape[1], d_head), x.new_zeros(1, x.shape[1], d_head)


def rotary_positions(config, x):
    """Llama's own angles; a width that is odd cannot be rotated by halves and stays."""
    if (config.hidden_size // config.num_attention_heads) % 2:
        return no_positions(config, x)
    embedding = modeling_llama.LlamaRotaryEmbedding(config)
    cos, sin = embedding(x, torch.arange(x.shape[1]).unsqueeze(0))
    return cos, sin


def llama(way, positions=no_positions, kv_heads=lambda n_heads: n_heads):
    """Llama's attention; nn.Linear applies x @ w.T. With fewer key heads, the first columns."""

    def multi_head(x, w_q, w_k, w_v, w_o, n_heads, *, causal, token_valid):
        few = kv_heads(n_heads)
        module, narrow = llama_module(x.shape[-1], n_heads, few, way), few * x.shape[-1] // n_heads
        weights = {
            "q_proj.weight": w_q.T,
            "k_proj.weight": w_k.T[:narrow],
            "v_proj.weight": w_v.T[:narrow],
            "o_proj.weight": w_o.T,
        }
        options = {
            "position_embeddings": positions(module.config, x),
            "attention_mask": transformers_mask(module.config, x, causal, token_valid),
            "is_causal": causal,
        }
        return torch.func.functional_call(module, weights, (x,), options)[0]

    return multi_head


def torch_is_causal(t_q, t_k, *, query_offset=0):
    """Which keys reach which queries under is_causal=True: the identity as values shows it.

    The flag takes no offset: torch aligns the first query with the first key.
    """
    if query_offset < 0:
        raise ValueError("a negative offset")
    zeros, one = torch.zeros(t_q, 1), torch.eye(t_k)
    weights = F.scaled_dot_product_attention(zeros, torch.zeros(t_k, 1), one, is_causal=True)
    return weights > 0


def torch_lower_right(t_q, t_k, *, query_offset=0):
    """torch's mask object for the other corner, which takes no offset either."""
    if query_offset < 0:
        raise ValueError("a negative offset")
    zeros, one = torch.zeros(1, 1, t_q, 8), torch.eye(t_k).expand(1, 1, t_k, t_k)
    mask = causal_lower_right(t_q, t_k)
    keys = torch.zeros(1, 1, t_k, 8)
    return F.scaled_dot_product_attention(zeros, keys, one, attn_mask=mask)[0, 0] > 0
