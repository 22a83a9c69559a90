"""Small models whose sizes do something: detection, segmentation, a selective scan, steps with a cache, experts.

Their Python reads sizes as models in use do: pictures are resized to each other, padded to each other and to multiples
of a chunk, grids are made for each feature map, capacities follow from the number of tokens. Examples have equal sizes
that mean different things: a square picture, four heads and a batch of four.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dlcb.benchmarks.case import Case, Inputs, Shape, images, seeded

PICTURES: tuple[Shape, ...] = ((1, 32, 32), (3, 33, 47), (2, 64, 40), (1, 1, 1), (5, 7, 31), (0, 32, 32), (4, 48, 50))
HALVED: tuple[Shape, ...] = ((1, 32, 32), (3, 33, 47), (2, 64, 40), (1, 8, 8), (5, 9, 31), (0, 32, 32), (4, 48, 50))
"""Pictures that can be halved three times."""


def convolution(inside: int, out: int, kernel: int = 3, stride: int = 1, dilation: int = 1) -> nn.Sequential:
    """Convolution, batch norm, ReLU; the picture keeps its size at stride 1."""
    padding = dilation * (kernel // 2)
    return nn.Sequential(
        nn.Conv2d(inside, out, kernel, stride, padding, dilation, bias=False), nn.BatchNorm2d(out), nn.ReLU()
    )


# Detection: a feature pyramid and one head for all its maps


class Pyramid(nn.Module):
    """Feature maps of several strides, each with what the coarser ones found (Lin et al., 2016, arXiv 1612.03144)."""

    def __init__(self, widths: tuple[int, ...], out: int) -> None:
        super().__init__()
        inside = (3, *widths)
        self.stages = nn.ModuleList(convolution(i, o, stride=2) for i, o in zip(inside, widths, strict=False))
        self.lateral = nn.ModuleList(nn.Conv2d(width, out, 1) for width in widths)
        self.smooth = nn.ModuleList(nn.Conv2d(out, out, 3, padding=1) for _ in widths)

    def forward(self, x: Tensor) -> list[Tensor]:
        found: list[Tensor] = []
        for stage, lateral in zip(self.stages, self.lateral, strict=True):
            x = stage(x)
            found.append(lateral(x))
        for fine in reversed(range(len(found) - 1)):
            found[fine] = found[fine] + F.interpolate(found[fine + 1], size=found[fine].shape[-2:], mode="nearest")
        return [smooth(level) for smooth, level in zip(self.smooth, found, strict=True)]


class Detector(nn.Module):
    """Scores and boxes for every anchor of every feature map (Lin et al., 2017, arXiv 1708.02002), with what comes
    before non-maximum suppression: boxes inside the picture, the best class of each, and which are sure enough."""

    extents: Tensor

    def __init__(self, classes: int = 5, anchors: int = 3, width: int = 16) -> None:
        super().__init__()
        self.classes, self.anchors = classes, anchors
        self.pyramid = Pyramid((8, 12, 16), width)
        self.tower = nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.GroupNorm(4, width), nn.ReLU())
        self.scores = nn.Conv2d(width, anchors * classes, 3, padding=1)
        self.offsets = nn.Conv2d(width, anchors * 4, 3, padding=1)
        self.register_buffer("extents", torch.tensor([[8.0, 8.0], [16.0, 8.0], [8.0, 16.0]]))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        batch, _, height, width = x.shape
        scores: list[Tensor] = []
        boxes: list[Tensor] = []
        for level in self.pyramid(x):
            level = self.tower(level)
            rows, columns = level.shape[-2:]
            found = self.scores(level).view(batch, self.anchors, self.classes, rows, columns)
            scores.append(found.permute(0, 3, 4, 1, 2).reshape(batch, rows * columns * self.anchors, self.classes))
            moved = self.offsets(level).view(batch, self.anchors, 4, rows, columns).permute(0, 3, 4, 1, 2)
            boxes.append(self.decode(moved, height // rows, width // columns).flatten(1, 3))
        best, label = torch.cat(scores, 1).sigmoid().max(-1)
        limits = torch.tensor([width, height, width, height])
        inside = torch.minimum(torch.cat(boxes, 1).clamp(min=0), limits)
        return inside, best, label, best > 0.5

    def decode(self, offsets: Tensor, step_y: int, step_x: int) -> Tensor:
        """Corners of the anchors at each place of a map, moved and scaled."""
        rows, columns = offsets.shape[1:3]
        y, x = torch.meshgrid(torch.arange(rows) * step_y, torch.arange(columns) * step_x, indexing="ij")
        centre = torch.stack((x, y), -1)[:, :, None] + offsets[..., :2] * self.extents
        half = self.extents * offsets[..., 2:].clamp(max=4).exp() / 2
        return torch.cat((centre - half, centre + half), -1)


# Segmentation


class Segmenter(nn.Module):
    """Dilated convolutions beside the mean of the whole picture, resized to an earlier map and to the input (Chen et
    al., 2018, arXiv 1802.02611)."""

    def __init__(self, classes: int = 7, width: int = 16) -> None:
        super().__init__()
        self.early = nn.Sequential(convolution(3, 8, stride=2), convolution(8, 12, stride=2))
        self.late = nn.Sequential(convolution(12, width, stride=2), convolution(width, width, dilation=2))
        self.branches = nn.ModuleList(convolution(width, 8, 3, dilation=d) for d in (1, 2, 3))
        self.whole = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(width, 8, 1), nn.ReLU())
        self.project = convolution(4 * 8, width, 1)
        self.skip = convolution(12, 8, 1)
        self.head = nn.Sequential(convolution(width + 8, width), nn.Conv2d(width, classes, 1))

    def forward(self, x: Tensor) -> Tensor:
        early = self.early(x)
        late = self.late(early)
        mean = F.interpolate(self.whole(late), size=late.shape[-2:], mode="bilinear", align_corners=False)
        y = self.project(torch.cat([*(branch(late) for branch in self.branches), mean], 1))
        y = F.interpolate(y, size=early.shape[-2:], mode="bilinear", align_corners=False)
        y = self.head(torch.cat((y, self.skip(early)), 1))
        return F.interpolate(y, size=x.shape[-2:], mode="bilinear", align_corners=False)


class UNet(nn.Module):
    """Halved three times, doubled three times, each time with the map of the same stride, to which the doubled one is
    padded (Ronneberger et al., 2015, arXiv 1505.04597)."""

    def __init__(self, classes: int = 3, width: int = 8) -> None:
        super().__init__()
        widths = [width * 2**level for level in range(4)]
        self.first = convolution(3, width)
        self.down = nn.ModuleList(convolution(i, o) for i, o in pairwise(widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(o, i, 2, 2) for i, o in pairwise(widths))
        self.join = nn.ModuleList(convolution(2 * w, w) for w in widths[:-1])
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        maps = [self.first(x)]
        for down in self.down:
            maps.append(down(F.max_pool2d(maps[-1], 2)))
        y = maps.pop()
        for up, join in zip(reversed(self.up), reversed(self.join), strict=True):
            skip = maps.pop()
            y = up(y)
            rows, columns = skip.shape[2] - y.shape[2], skip.shape[3] - y.shape[3]
            y = F.pad(y, (columns // 2, columns - columns // 2, rows // 2, rows - rows // 2))
            y = join(torch.cat((skip, y), 1))
        return self.head(y)


# A state-space model


def decays(x: Tensor) -> Tensor:
    """exp of the sums of x from each place (column) to each later one (row); 0 above the diagonal."""
    length = x.shape[-1]
    total = x.cumsum(-1)
    ones = torch.ones(length, length, dtype=torch.bool)
    sums = total[..., :, None] - total[..., None, :]
    return sums.masked_fill(~ones.tril(), float("-inf")).exp()


class SelectiveScan(nn.Module):
    """A block of Mamba-2: a causal convolution, then h ← a·h + b·x, y = c·h, by chunks of the text (Dao and Gu, 2024,
    arXiv 2405.21060, section 6)."""

    def __init__(self, width: int = 16, heads: int = 4, state: int = 6, chunk: int = 8) -> None:
        super().__init__()
        self.heads, self.state, self.chunk = heads, state, chunk
        self.norm = nn.LayerNorm(width)
        self.inside = nn.Linear(width, 2 * width + 2 * state + heads)
        self.convolution = nn.Conv1d(width + 2 * state, width + 2 * state, 4, padding=3, groups=width + 2 * state)
        self.decay, self.skip = nn.Parameter(torch.rand(heads)), nn.Parameter(torch.rand(heads))
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        gate, mixed, step = self.inside(self.norm(x)).split((width, width + 2 * self.state, self.heads), -1)
        mixed = F.silu(self.convolution(mixed.transpose(1, 2))[..., :length].transpose(1, 2))
        value, b, c = mixed.split((width, self.state, self.state), -1)
        value, step = value.unflatten(-1, (self.heads, -1)), F.softplus(step)
        y = self.scan(value * step[..., None], -step * self.decay.exp(), b, c)
        y = (y + value * self.skip[:, None]).reshape(batch, length, width)
        return x + self.out(y * F.silu(gate))

    def scan(self, x: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        """x [n, t, heads, d], a [n, t, heads], b and c [n, t, state]. The text is padded to whole chunks."""
        length = x.shape[1]
        missing = -length % self.chunk
        padded = (F.pad(t, (0, 0) * (t.dim() - 2) + (0, missing)) for t in (x, a, b, c))
        x, a, b, c = (t.unflatten(1, (-1, self.chunk)) for t in padded)
        a = a.permute(0, 3, 1, 2)
        total = a.cumsum(-1)
        within = torch.einsum("zcls,zcms,zhclm,zcmhd->zclhd", c, b, decays(a), x)
        states = torch.einsum("zcls,zhcl,zclhd->zchds", b, (total[..., -1:] - total).exp(), x)
        carry = decays(F.pad(total[..., -1], (1, 0)))
        states = F.pad(states, (0, 0) * 3 + (1, 0))
        before = torch.einsum("zhij,zjhds->zihds", carry, states)[:, :-1]
        across = torch.einsum("zcls,zchds,zhcl->zclhd", c, before, total.exp())
        return (within + across).flatten(1, 2)[:, :length]


# Decoder steps


class CachedAttention(nn.Module):
    """Attention of a token to the texts so far, whose keys and values are kept."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def project(self, x: Tensor) -> list[Tensor]:
        """Queries, keys and values as [batch, heads, length, width of a head]."""
        batch, length, width = x.shape
        sizes = (batch, length, self.heads, width // self.heads)
        return [t.view(sizes).transpose(1, 2) for t in self.qkv(x).chunk(3, -1)]

    def attend(self, q: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        found = F.scaled_dot_product_attention(q, keys, values, mask)
        return self.out(found.transpose(1, 2).flatten(2))


class StepInPlace(nn.Module):
    """Tokens at some positions; their keys and values are written into caches of any length."""

    def __init__(self, width: int = 32, heads: int = 4, vocabulary: int = 61) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary)
        self.layers: Any = nn.ModuleList(CachedAttention(width, heads) for _ in range(2))

    def forward(self, ids: Tensor, position: Tensor, keys: list[Tensor], values: list[Tensor]) -> Tensor:
        x = self.embed(ids)
        for layer, kept_keys, kept_values in zip(self.layers, keys, values, strict=True):
            q, k, v = layer.project(x)
            kept_keys.index_copy_(2, position, k)
            kept_values.index_copy_(2, position, v)
            mask = torch.arange(kept_keys.shape[2]) <= position[:, None]
            x = x + layer.attend(q, kept_keys, kept_values, mask)
        return self.head(x)


class StepAppending(nn.Module):
    """New tokens after a past of any length; the past comes back with theirs."""

    def __init__(self, width: int = 32, heads: int = 4, vocabulary: int = 61) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary)
        self.layers: Any = nn.ModuleList(CachedAttention(width, heads) for _ in range(2))

    def forward(self, ids: Tensor, past: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        x, kept = self.embed(ids), []
        for layer, (keys, values) in zip(self.layers, past, strict=True):
            q, k, v = layer.project(x)
            keys, values = torch.cat((keys, k), 2), torch.cat((values, v), 2)
            length, whole = q.shape[2], keys.shape[2]
            mask = torch.ones(length, whole, dtype=torch.bool).tril(whole - length)
            x = x + layer.attend(q, keys, values, mask)
            kept.append((keys, values))
        return self.head(x), kept


class Gpt2Block(nn.Module):
    """A layer of GPT-2 (Radford et al., 2019), for one token."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention = CachedAttention(width, heads)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.inner = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor, past: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        q, k, v = self.attention.project(self.norms[0](x))
        keys, values = torch.cat((past[0], k), 2), torch.cat((past[1], v), 2)
        found = F.scaled_dot_product_attention(q, keys, values)
        x = x + self.attention.out(found.transpose(1, 2).flatten(2))
        return x + self.inner(self.norms[1](x)), (keys, values)


class Gpt2Step(nn.Module):
    """One token after a past of any length; the past comes back with its keys and values."""

    def __init__(self, layers: int, width: int, heads: int, vocabulary: int, positions: int) -> None:
        super().__init__()
        self.embed, self.places = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.layers: Any = nn.ModuleList(Gpt2Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, ids: Tensor, past: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        length = past[0][0].shape[2]
        x = self.embed(ids) + self.places(torch.arange(length, length + 1, device=ids.device))
        kept: list[tuple[Tensor, Tensor]] = []
        for layer, before in zip(self.layers, past, strict=True):
            x, now = layer(x, before)
            kept.append(now)
        return self.norm(x), kept


def gpt2_step(real: bool) -> Case:
    """For shapes (n, length of the past): the 124M parameters of GPT-2, or few."""
    layers, width, heads, vocabulary, positions = (12, 768, 12, 50257, 1024) if real else (2, 32, 4, 61, 80)

    def inputs(shape: Shape, dtype: torch.dtype) -> dict[str, Any]:
        n, length = shape
        sizes = (n, heads, length, width // heads)
        past = [(torch.randn(sizes, dtype=dtype), torch.randn(sizes, dtype=dtype)) for _ in range(layers)]
        return {"ids": torch.randint(0, vocabulary, (n, 1)), "past": past}

    build = seeded(lambda: Gpt2Step(layers, width, heads, vocabulary, positions))
    return Case("gpt2_step", build, inputs, (2, 64) if real else (2, 12), TEXTS)


# Experts


class Experts(nn.Module):
    """Layers of which each token takes some."""

    def __init__(self, width: int = 16, count: int = 4, inner: int = 24) -> None:
        super().__init__()
        self.gate = nn.Linear(width, count)
        self.up = nn.Parameter(torch.randn(count, width, inner) / width**0.5)
        self.down = nn.Parameter(torch.randn(count, inner, width) / inner**0.5)

    def run(self, x: Tensor) -> Tensor:
        """[experts, tokens, width], each token by the expert that it stands at."""
        return F.silu(x @ self.up) @ self.down


class Switch(Experts):
    """Each token goes to its best expert while that one has room; how much follows from the number of tokens (Fedus et
    al., 2021, arXiv 2101.03961)."""

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.flatten(0, 1)
        count = self.gate.out_features
        capacity = -(-3 * tokens.shape[0] // (2 * count))
        weight, expert = self.gate(tokens).softmax(-1).max(-1)
        chosen = F.one_hot(expert, count)
        place = (chosen.cumsum(0) * chosen).sum(-1) - 1
        seats = (place[:, None] == torch.arange(capacity)).to(x.dtype)
        sent = torch.einsum("te,tc->tec", chosen.to(x.dtype), seats)
        done = self.run(torch.einsum("tec,td->ecd", sent, tokens))
        return x + torch.einsum("tec,ecd,t->td", sent, done, weight).view_as(x)


class TopExperts(Experts):
    """Each token by its two best experts; all experts see all tokens, and the gates of the others are 0. `topk` is not
    compiled."""

    def forward(self, x: Tensor) -> Tensor:
        scores, best = self.gate(x).topk(2, -1)
        gates = torch.zeros_like(self.gate(x)).scatter(-1, best, scores.softmax(-1))
        tokens = x.flatten(0, 1)
        done = self.run(tokens[None])
        return x + torch.einsum("etd,te->td", done, gates.flatten(0, 1)).view_as(x)


# Cases


def _rows(width: int) -> Inputs:
    """Texts of vectors, for shapes (n, length)."""
    return lambda shape, dtype: {"x": torch.randn(*shape, width, dtype=dtype)}


def _caches(batch: int, length: int, dtype: torch.dtype) -> list[Tensor]:
    return [torch.randn(batch, 4, length, 8, dtype=dtype) for _ in range(2)]


def _in_place(shape: Shape, dtype: torch.dtype) -> dict[str, Any]:
    batch, new, length = shape
    keys, values = _caches(batch, length, dtype), _caches(batch, length, dtype)
    positions = torch.arange(length - new, length)
    return {"ids": torch.randint(0, 61, (batch, new)), "position": positions, "keys": keys, "values": values}


def _appending(shape: Shape, dtype: torch.dtype) -> dict[str, Any]:
    batch, new, length = shape
    past = list(zip(_caches(batch, length, dtype), _caches(batch, length, dtype), strict=True))
    return {"ids": torch.randint(0, 61, (batch, new)), "past": past}


TEXTS: tuple[Shape, ...] = ((1, 1), (2, 7), (3, 16), (5, 31), (1, 64), (4, 13), (0, 9), (7, 2))
STEPS: tuple[Shape, ...] = ((1, 1, 1), (2, 1, 7), (3, 4, 16), (5, 2, 31), (0, 3, 9), (1, 8, 40), (4, 4, 4))


def _case(
    name: str, build: Callable[[], nn.Module], inputs: Inputs, example: Shape, shapes: tuple[Shape, ...]
) -> Callable[[], Case]:
    return lambda: Case(name, seeded(build), inputs, example, shapes)


SMALL: dict[str, Callable[[], Case]] = {
    "detector": _case("detector", Detector, images("x"), (4, 64, 64), PICTURES),
    "segmenter": _case("segmenter", Segmenter, images("x"), (4, 64, 64), PICTURES),
    "unet": _case("unet", UNet, images("x"), (4, 64, 64), HALVED),
    "selective_scan": _case("selective_scan", SelectiveScan, _rows(16), (4, 16), TEXTS),
    "step_in_place": _case("step_in_place", StepInPlace, _in_place, (4, 4, 16), STEPS),
    "step_appending": _case("step_appending", StepAppending, _appending, (4, 4, 8), (*STEPS, (2, 3, 0))),
    "switch": _case("switch", Switch, _rows(16), (4, 16), TEXTS),
    "top_experts": _case("top_experts", TopExperts, _rows(16), (4, 16), TEXTS),
}
"""`top_experts` compiles with `fullgraph=False`, the others whole."""
