"""A small GPT, for `opera check examples/gpt.py --compiler tvm` (docs/check.md)."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, mask):
        batch, time, width = x.shape
        parts = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (y.view(batch, time, self.heads, -1).transpose(1, 2) for y in parts)
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(width // self.heads)
        scores = scores.masked_fill(mask == 0, float("-inf"))
        y = F.softmax(scores, dim=-1) @ v
        return self.out(y.transpose(1, 2).contiguous().view(batch, time, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln1, self.ln2, self.att = nn.LayerNorm(width), nn.LayerNorm(width), Attention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))

    def forward(self, x, mask):
        x = x + self.att(self.ln1(x), mask)
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, words=50, width=32, heads=4, blocks=2, time=16):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Parameter(torch.zeros(1, time, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(blocks))
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, words, bias=False)
        self.register_buffer("mask", torch.tril(torch.ones(time, time)).view(1, 1, time, time))

    def forward(self, words):
        time = words.shape[1]
        x = self.words(words) + self.places[:, :time]
        for block in self.blocks:
            x = block(x, self.mask[:, :, :time, :time])
        probabilities = F.softmax(self.head(self.norm(x))[:, -1], dim=-1)
        return torch.multinomial(probabilities, 1)


torch.manual_seed(0)
with torch.no_grad():
    print(GPT().eval()(torch.randint(0, 50, (2, 16))))
