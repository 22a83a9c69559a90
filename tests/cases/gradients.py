"""Small programs and modules that are trained: losses, norms, attention, views, updates, and what takes no gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

Calls = Sequence[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Case:
    make: Callable[[], Callable[..., Any]]
    calls: Callable[[], Calls]
    half: bool = False
    """Values between operations are rounded to half precision, in eager oftener than in kernels."""


CASES: dict[str, Case] = {}


def leaf(*sizes: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Random numbers of which the gradient is wanted."""
    return torch.randn(*sizes, dtype=dtype).requires_grad_()


def plain(*sizes: int) -> Tensor:
    return torch.randn(*sizes)


def whole(high: int, *sizes: int) -> Tensor:
    return torch.randint(0, high, sizes)


def case(name: str, calls: Callable[[], Calls], program: Callable[..., Any], half: bool = False) -> None:
    CASES[name] = Case(lambda: program, calls, half)


def module(name: str, calls: Callable[[], Calls], half: bool = False) -> Callable[[Callable[[], nn.Module]], None]:
    """Enter a function that makes the module anew."""

    def enter(make: Callable[[], nn.Module]) -> None:
        CASES[name] = Case(make, calls, half)

    return enter


class Applied(nn.Module):
    """Layers, and a function of them and the arguments."""

    def __init__(self, forward: Callable[..., Any], **layers: nn.Module) -> None:
        super().__init__()
        self.__dict__["program"] = forward
        for name, layer in layers.items():
            self.add_module(name, layer)

    def forward(self, *arguments: Any) -> Any:
        return self.__dict__["program"](self, *arguments)


def matrices(*more: Callable[[int, int], Tensor]) -> Callable[[], Calls]:
    """A matrix, and what else depends on its sizes, at several sizes."""
    return lambda: [(leaf(n, m), *(make(n, m) for make in more)) for n, m in ((4, 6), (7, 1))]


def images(channels: int = 4) -> Callable[[], Calls]:
    return lambda: [(leaf(n, channels, h, w),) for n, h, w in ((2, 8, 6), (3, 9, 7))]


# Elementwise


def _relus(x: Tensor) -> Any:
    one = F.leaky_relu(x, 0.1) + F.elu(x) * F.hardtanh(x) + F.relu6(x * 4) + F.hardswish(x) + F.hardsigmoid(x)
    return one, F.softplus(x) * F.gelu(x) + F.silu(x) * F.gelu(x, approximate="tanh") + F.mish(x) + F.logsigmoid(x)


def _curves(x: Tensor, y: Tensor) -> Any:
    base = x.abs() + 0.5
    one = base.pow(2.5) + base.pow(3) + base**y + base.log() * base.rsqrt() + x.tanh() * x.sigmoid()
    return one, torch.where(x > y, x * y, x.clamp(-0.5, 0.5)) + torch.maximum(x, y) + x.clamp(min=y) + torch.atan2(x, y)


case("relus", matrices(), _relus)
case("curves", matrices(leaf), _curves)
case("broadcast", matrices(lambda n, m: leaf(m), lambda n, m: leaf(n, 1)), lambda x, b, c: (x * b + c, x / (c * c + 1)))
case("double use", matrices(), lambda x: x * x + x.t().contiguous().t() * torch.sin(x))
case(
    "half", lambda: [(leaf(3, 5, dtype=torch.bfloat16),), (leaf(2, 4, dtype=torch.bfloat16),)], lambda x: (x * 2).exp()
)

# Reductions

case(
    "reductions",
    matrices(),
    lambda x: (x.sum(0), x.mean(), x.var(1, correction=0), x.norm(dim=1), x.amax(0), x.max(1)[0], x.logsumexp(1)),
)
case("softmax", matrices(), lambda x: (x.softmax(-1), (x * 2).log_softmax(0), F.softmin(x, 1)))
case("scan", matrices(), lambda x: (x.cumsum(0) * 2, x.cumsum(-1)))
case("products", matrices(), lambda x: (x.prod(-1), (x * x + 0.1).cumprod(0)))
case("sorted", matrices(), lambda x: (x.sort(-1)[0] * 2, x.median(), x.std()))

# Contractions


def _contractions(x: Tensor, y: Tensor) -> Any:
    return (
        torch.einsum("bij,bjk->bik", x, y),
        torch.bmm(x, y).relu(),
        torch.matmul(x, y[0]),
        torch.addmm(x[0, :, :1], x[0], y[0]),
    )


def _attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Any:
    causal = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return causal, F.scaled_dot_product_attention(q, k, v, attn_mask=mask), F.scaled_dot_product_attention(q, k, v * 2)


case("contractions", lambda: [(leaf(b, n, 3), leaf(b, 3, m)) for b, n, m in ((2, 4, 5), (3, 2, 7))], _contractions)
case(
    "attention",
    lambda: [(*(leaf(2, 2, n, 8) for _ in range(3)), plain(n, n)) for n in (5, 7)],
    _attention,
)

# Views and joins


def _joins(x: Tensor, y: Tensor) -> Any:
    one, two = torch.cat([x, y * 2], 0).split([x.shape[0], y.shape[0]])
    parts = torch.stack([x, y]).permute(2, 0, 1).expand(-1, -1, -1).chunk(2, 1)
    return one * two, parts[0].sum(0), F.pad(x, (1, 2, 0, 1), value=3.0), torch.roll(x, 1, 0), x.flip(0), x.tril()


def _picked(x: Tensor, at: Tensor) -> Any:
    rows = x[at, :2] * 2
    return (
        rows,
        x.gather(1, at[:, None] * 0),
        x[:, 1::2],
        x[1],
        x.index_select(0, at),
        x[..., None, -1],
        x.unfold(0, 2, 1),
    )


def _put(x: Tensor, y: Tensor, at: Tensor) -> Any:
    out = x.clone()
    out[at] = y * 2
    out[:, 0] = out[:, 1] * 3
    return out, x.index_put((at,), y, accumulate=True), x.index_add(0, at, y), x.scatter_add(0, at[:, None], y[:, :1])


case("joins", matrices(leaf), _joins)
case("picked", lambda: [(leaf(n, m), whole(n, k)) for n, m, k in ((4, 6, 3), (5, 3, 4))], _picked)
case(
    "put",
    lambda: [(leaf(n, m), leaf(k, m), torch.randperm(n)[:k]) for n, m, k in ((4, 6, 3), (5, 3, 2))],
    _put,
)
case("views", matrices(), lambda x: (x.t(), x[1:], x.view(-1), x.unsqueeze(0).expand(2, -1, -1), x * 1))

# Images


@module("convolutions", images())
def _() -> nn.Module:
    return Applied(
        lambda self, x: (self.up(self.a(x).relu()), self.b(x) * 2),
        a=nn.Conv2d(4, 4, 3, stride=2, padding=1, groups=2),
        b=nn.Conv2d(4, 2, 3, padding=1, dilation=2, bias=False),
        up=nn.ConvTranspose2d(4, 3, 3, stride=2, output_padding=1),
    )


def _pools(x: Tensor) -> Any:
    return F.max_pool2d(x, 2) * 2, F.avg_pool2d(x, 3, 2, 1), F.adaptive_avg_pool2d(x, 1), F.adaptive_max_pool2d(x, 2)


def _resized(x: Tensor) -> Any:
    near = F.interpolate(x, scale_factor=2.0, mode="nearest")
    smooth = F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)
    return near.sum(1), smooth * 2, F.pad(x, (1, 1, 2, 0), mode="reflect"), F.pixel_shuffle(x, 2)


case("pools", images(), _pools)
case("resized", images(), _resized)


@module("residual block in training", images())
def _() -> nn.Module:
    def forward(self: Any, x: Tensor) -> Any:
        hidden = self.norm1(self.conv1(x)).relu_()
        return (self.norm2(self.conv2(hidden)) + x).relu().mean((2, 3))

    convs = {f"conv{n}": nn.Conv2d(4, 4, 3, padding=1, bias=False) for n in (1, 2)}
    return Applied(forward, **convs, norm1=nn.BatchNorm2d(4), norm2=nn.BatchNorm2d(4))


# Norms


@module("norms", lambda: [(leaf(n, 4, k),) for n, k in ((3, 5), (2, 7), (6, 8))])
def _() -> nn.Module:
    def forward(self: Any, x: Tensor) -> Any:
        return self.batch(x), self.group(x), self.instance(x), self.layer(x.transpose(1, 2)), self.rms(x.mT)

    batch, instance = nn.BatchNorm1d(4), nn.InstanceNorm1d(4, affine=True)
    return Applied(
        forward, batch=batch, group=nn.GroupNorm(2, 4), instance=instance, layer=nn.LayerNorm(4), rms=nn.RMSNorm(4)
    )


@module("batch norm of eval mode", lambda: [(leaf(3, 4),), (leaf(5, 4),)])
def _() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)).eval()


@module("batch norm without statistics", lambda: [(leaf(3, 4),), (leaf(5, 4),)])
def _() -> nn.Module:
    return nn.Sequential(nn.BatchNorm1d(4, track_running_stats=False), nn.Tanh())


# Losses


def _classes(x: Tensor, target: Tensor, weight: Tensor) -> Any:
    plain_loss = F.cross_entropy(x, target, ignore_index=1)
    smooth = F.cross_entropy(x, target, weight=weight, label_smoothing=0.1)
    return plain_loss + F.nll_loss(x.log_softmax(-1), target, reduction="sum"), smooth


def _distances(x: Tensor, y: Tensor) -> Any:
    z = y.sigmoid().detach()
    losses = F.mse_loss(x, y), F.l1_loss(x, y), F.smooth_l1_loss(x, y), F.huber_loss(x, y, reduction="sum")
    logits = F.binary_cross_entropy_with_logits(x, z), F.binary_cross_entropy(x.sigmoid(), z)
    divergence = F.kl_div(x, z, reduction="batchmean")
    return *losses, *logits, divergence, F.cosine_similarity(x, y).mean()


case("classes", lambda: [(leaf(n, 5), whole(5, n), plain(5).abs()) for n in (4, 7, 3)], _classes)
case("distances", matrices(leaf), _distances)

# Recurrent cells and embeddings


@module("embedding", lambda: [(torch.tensor([[1, 1, 0], [2, 0, 1]]),), (whole(5, 3, 4),)])
def _() -> nn.Module:
    return Applied(
        lambda self, at: self.out(self.table(at)), table=nn.Embedding(5, 4, padding_idx=0), out=nn.Linear(4, 2)
    )


@module("recurrent cells", lambda: [(leaf(n, 3), leaf(n, 4), leaf(n, 4)) for n in (2, 5)])
def _() -> nn.Module:
    def forward(self: Any, x: Tensor, h: Tensor, c: Tensor) -> Any:
        h, c = self.lstm(x, (h, c))
        return self.gru(x, h), c

    return Applied(forward, lstm=nn.LSTMCell(3, 4), gru=nn.GRUCell(3, 4))


# What takes no gradient, and what is updated


def _partly(x: Tensor, y: Tensor, at: Tensor) -> Any:
    with torch.no_grad():
        scale = (x * 2).sum()
    return x * scale + y.detach() * x, x.argmax(-1), at + 1, (x > 0), y * 2


def _in_place(x: Tensor, total: Tensor) -> Any:
    hidden = (x * 2).relu_().sin()
    hidden[:, 0] += 1
    hidden.mul_(3).add_(x)
    total.add_(hidden.detach().sum(0))
    return hidden.t(), total * 2


def _numbers(x: Tensor, k: int, scale: float) -> Any:
    n = x.shape[0]
    return x * k + scale, n * 2 + k, None, x / n, x.sum() / (x.numel() - 1), x * (1.0 / n + 0.1 * x.shape[1])


case("partly", matrices(lambda n, m: plain(n, m), lambda n, m: whole(3, n)), _partly)
case("in place", matrices(lambda n, m: plain(m)), _in_place)
case("numbers", lambda: [(leaf(3, 4), 3, 0.5), (leaf(5, 4), 2, 1.5), (leaf(2, 6), 4, 0.25)], _numbers)
case("an argument without use", matrices(leaf), lambda x, y: (x * 2, y.shape[0]))
case("the argument itself", matrices(leaf), lambda x, y: (x, x.detach(), y * x.detach()))
case("dropout", matrices(), lambda x: (F.dropout(x * 2, 0.4) + torch.rand_like(x) * x, F.dropout(x, 0.2)))


class _Doubled(torch.autograd.Function):
    """x² whose gradient is another than that of x²."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        (x,) = ctx.saved_tensors
        return grad * x * 3


case("own function", matrices(), lambda x: _Doubled.apply(x.sin()) * 2)


@module("checkpoint", lambda: [(leaf(3, 6),), (leaf(5, 6),)])
def _() -> nn.Module:
    def forward(self: Any, x: Tensor) -> Any:
        return checkpoint(lambda y: F.dropout(self.linear(y).relu(), 0.3) + 1, x, use_reentrant=False)

    return Applied(forward, linear=nn.Linear(6, 6))


@module("autocast", lambda: [(leaf(3, 6),), (leaf(5, 6),)], half=True)
def _() -> nn.Module:
    def forward(self: Any, x: Tensor) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            hidden = self.linear(x)
            return hidden.relu(), F.layer_norm(hidden, (6,)).float().softmax(-1)

    return Applied(forward, linear=nn.Linear(6, 6))
