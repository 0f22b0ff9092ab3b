"""Causality: a network made to show whether a later token can change an earlier output."""

import torch
from torch import Tensor, nn

from course_lib.arguments import check_token_ids
from course_lib.attention import MultiHeadSelfAttention
from course_lib.positions import sinusoidal_encoding

PROBE_VOCAB_SIZE = 11
PROBE_D_MODEL = 8
PROBE_N_HEADS = 2


class CausalityProbe(nn.Module):
    """Read tokens through attention and nothing else, with no number left to chance.

    Token 5 is embedded as position 5 would be encoded, so all ids differ. Every projection is the
    identity: what comes out mixes the embeddings that were read, a token's own the most.

    Shapes:  token_ids [B, T] long, ids 0 to 10 -> [B, T, 8]
    """

    def __init__(self, *, causal: bool) -> None:
        super().__init__()
        self.attn = MultiHeadSelfAttention(PROBE_D_MODEL, PROBE_N_HEADS, causal=causal)
        identity = torch.eye(PROBE_D_MODEL)
        table = sinusoidal_encoding(PROBE_VOCAB_SIZE, PROBE_D_MODEL).to(identity.dtype)
        self.embedding = nn.Embedding.from_pretrained(table)
        with torch.no_grad():
            self.attn.qkv.weight.copy_(identity.repeat(3, 1))
            self.attn.out.weight.copy_(identity)

    def forward(self, token_ids: Tensor) -> Tensor:
        check_token_ids("token_ids", token_ids, "[B, T]", PROBE_VOCAB_SIZE)
        return self.attn(self.embedding(token_ids))
