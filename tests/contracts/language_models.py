"""Small language models with random weights, causal unless a step is replaced."""

import math

import torch
import torch.nn.functional as F
from torch import nn

V = 11


def causal(ids):
    return torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()


def open_(ids):
    return causal(ids) | True


def masked(scores, allowed):
    return scores.masked_fill(~allowed, -math.inf).softmax(-1)


def same(x, *_):
    return x


class Attention(nn.Module):
    """Self-attention with a rule and a softmax for every head."""

    def __init__(self, width, rules, weigh):
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.rules, self.weigh = rules, weigh

    def forward(self, x, ids):
        heads = len(self.rules)
        q, k, v = (
            part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1)
        )
        scores = q @ k.mT / math.sqrt(q.shape[-1])  # [B, H, T, T]
        weights = [self.weigh(scores[:, n], rule(ids)) for n, rule in enumerate(self.rules)]
        read = torch.stack(weights, 1) @ v
        return self.out(read.transpose(1, 2).flatten(-2))


class LM(nn.Module):
    """rules: one tuple of rules, one a head, for every layer."""

    def __init__(
        self, seed=0, *, layers=2, heads=2, width=16, rules=None, weigh=masked, norm=None, mix=same,
        finish=same, dropout=0.0,
    ):  # fmt: skip
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            rules = rules or [[causal] * heads for _ in range(layers)]
            self.embedding = nn.Embedding(V, width)
            self.positions = nn.Embedding(64, width)
            self.attention = nn.ModuleList([Attention(width, rule, weigh) for rule in rules])
            self.feed = nn.ModuleList(
                [
                    nn.Sequential(
                        nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
                    )
                    for _ in rules
                ]
            )
            self.norm = norm or nn.LayerNorm(width)
            self.head = nn.Linear(width, V)
        self.dropout, self.mix, self.finish = nn.Dropout(dropout), mix, finish
        self.eval()

    def forward(self, ids):
        x = self.embedding(ids) + self.positions(torch.arange(ids.shape[1]))
        x = self.dropout(self.mix(x, ids))
        for attend, feed in zip(self.attention, self.feed, strict=True):
            x = x + attend(self.norm(x), ids)
            x = x + feed(self.norm(x))
        return self.finish(self.head(self.norm(x)), ids)


class TorchLM(nn.Module):
    """torch's own encoder layers, with a causal mask or without."""

    def __init__(self, seed=0, *, mask=True, layers=2, norm_first=True):
        super().__init__()
        self.mask = mask
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            self.embedding = nn.Embedding(V, 16)
            layer = nn.TransformerEncoderLayer(
                16, 2, 32, dropout=0.1, batch_first=True, norm_first=norm_first
            )
            self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
            self.head = nn.Linear(16, V)
        self.eval()

    def forward(self, ids):
        length = ids.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length) if self.mask else None
        return self.head(self.layers(self.embedding(ids), mask=mask))


class Recurrent(nn.Module):
    def __init__(self, *, bidirectional=False):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(3)
            self.embedding = nn.Embedding(V, 8)
            self.rnn = nn.GRU(8, 8, batch_first=True, bidirectional=bidirectional)
            self.head = nn.Linear(16 if bidirectional else 8, V)

    def forward(self, ids):
        return self.head(self.rnn(self.embedding(ids))[0])


class Convolution(nn.Module):
    def __init__(self, left, right):
        super().__init__()
        self.left, self.right = left, right
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(4)
            self.embedding = nn.Embedding(V, 8)
            self.convolution = nn.Conv1d(8, V, left + right + 1)

    def forward(self, ids):
        x = F.pad(self.embedding(ids).mT, (self.left, self.right))
        return self.convolution(x).mT


class NormOverItems(nn.Module):
    """Batch normalisation of [B, T, d], in whichever mode it is."""

    def __init__(self, width=16):
        super().__init__()
        self.norm = nn.BatchNorm1d(width)

    def forward(self, x):
        return self.norm(x.mT).mT


class NormOverTime(nn.Module):
    def forward(self, x):
        return F.layer_norm(x, x.shape[1:])
