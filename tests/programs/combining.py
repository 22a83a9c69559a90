"""Operations that combine elements: along axes, products, windows, by index; and some that run in eager."""

from __future__ import annotations

import torch

from dlcb.tests.programs.table import (
    Draft,
    axes_of,
    axis_of,
    has_dims,
    is_float,
    is_number,
    is_picture,
    is_whole,
    keepdim,
    weight,
)

# --- along axes ---

REDUCE = "sum mean amax amin prod any all logsumexp var std".split()


@weight(8)
def reduce(d: Draft) -> str:
    x = d.tensor()
    name = d.random.choice(REDUCE)
    if name == "prod":
        return f"torch.prod({x}.clamp(-1, 1), {axis_of(d, x)}{keepdim(d)})"
    return f"torch.{name}({x}, {axes_of(d, x)}{keepdim(d)})" if d.values[x].dim() else f"torch.{name}({x}, ())"


@weight(2)
def reduce_all(d: Draft) -> str:
    return f"{d.tensor()}.{d.random.choice(['sum()', 'mean()', 'max()', 'min()', 'any()', 'all()', 'argmax()'])}"


@weight(1)
def reduce_to(d: Draft) -> str:
    x = d.tensor(has_dims)
    return f"{x}.sum({axis_of(d, x)}, dtype=torch.{d.random.choice(['float64', 'int64', 'float32'])})"


@weight(3)
def extremum(d: Draft) -> str:
    x = d.tensor(lambda t: has_dims(t) and is_number(t))
    name = d.random.choice(["argmax", "argmin", "max", "min"])
    return f"torch.{name}({x}, {axis_of(d, x)}{keepdim(d)})"


@weight(3)
def scan(d: Draft) -> str:
    x = d.tensor(lambda t: has_dims(t) and is_number(t))
    return f"torch.{d.random.choice(['cumsum', 'cumsum', 'cummax', 'cummin'])}({x}, {axis_of(d, x)})"


@weight(3)
def softmax(d: Draft) -> str:
    x = d.tensor(lambda t: has_dims(t) and is_float(t))
    return f"F.{d.random.choice(['softmax', 'log_softmax'])}({x}, {axis_of(d, x)})"


@weight(3)
def norm(d: Draft) -> str:
    x = d.tensor(lambda t: has_dims(t) and is_float(t))
    last = f"{x}.shape[-1]"
    if d.random.random() < 0.5:
        return f"F.layer_norm({x}, ({last},))"
    gain = d.new(d.values[x].shape[-1:], d.values[x].dtype)
    return d.random.choice([f"F.layer_norm({x}, ({last},), {gain}, {gain})", f"F.rms_norm({x}, ({last},), {gain})"])


# --- products ---


@weight(3)
def matmul(d: Draft) -> str:
    x = d.tensor(lambda t: is_float(t) and 1 <= t.dim() <= 3)
    *_, inner = d.values[x].shape
    y = d.new([inner, *d.random.choice([[2], [3], []])], d.values[x].dtype)
    return d.random.choice([f"torch.matmul({x}, {y})", f"{x} @ {y}"])


@weight(2)
def product_with_itself(d: Draft) -> str:
    x = d.tensor(lambda t: is_float(t) and 2 <= t.dim() <= 4)
    return f"torch.matmul({x}, {x}.transpose(-1, -2))"


@weight(2)
def bmm(d: Draft) -> str:
    x = d.tensor(lambda t: is_float(t) and t.dim() == 3)
    batch, _, inner = d.values[x].shape
    return f"torch.bmm({x}, {d.new([batch, inner, 2], d.values[x].dtype)})"


@weight(3)
def linear(d: Draft) -> str:
    x = d.tensor(lambda t: is_float(t) and 1 <= t.dim() <= 3)
    w = d.new([3, d.values[x].shape[-1]], d.values[x].dtype)
    bias = d.random.choice(["", ", " + d.new([3], d.values[x].dtype)])
    return f"F.linear({x}, {w}{bias})"


# --- windows ---


@weight(3)
def conv2d(d: Draft) -> str:
    x = d.tensor(is_picture)
    w = d.new([2, d.values[x].shape[1], d.random.choice([1, 3]), 2], d.values[x].dtype)
    options = d.random.choice(["", ", padding=1", ", stride=2, padding=1", ", dilation=2, padding=2"])
    return f"F.conv2d({x}, {w}{options})"


@weight(3)
def pool(d: Draft) -> str:
    forms = ["F.max_pool2d({0}, 2)", "F.max_pool2d({0}, 3, 2, 1)", "F.avg_pool2d({0}, 2, 1)"]
    forms += ["F.avg_pool2d({0}, 3, 2, 1)", "F.adaptive_avg_pool2d({0}, 1)", "F.avg_pool2d({0}, 2, ceil_mode=True)"]
    return d.random.choice(forms).format(d.tensor(is_picture))


@weight(2)
def interpolate(d: Draft) -> str:
    forms = ["scale_factor=2", "scale_factor=2, mode='bilinear'", "size=(5, 7)", "scale_factor=1.5"]
    forms += ["size=(3, 4), mode='bilinear', align_corners=True"]
    return f"F.interpolate({d.tensor(is_picture)}, {d.random.choice(forms)})"


@weight(3)
def pad(d: Draft) -> str:
    x = d.tensor(lambda t: t.dim() >= 2)
    widths = d.random.choice(["(1, 2)", "(0, 1, 2, 0)", "(-1, 1)", "(1, -1, 0, 1)"])
    options = d.random.choice(["", "", ", value=1", ", mode='replicate'", ", mode='reflect'", ", mode='circular'"])
    return f"F.pad({x}, {widths}{options})"


# --- by index ---


def indices(d: Draft, x: str, axis: int) -> str:
    """Whole numbers made to lie within an axis."""
    i = d.random.choice(
        [d.tensor(lambda t: is_whole(t) and t.dim() == 1), d.new([d.random.randint(2, 5)], torch.int64)]
    )
    low = d.random.choice(["", f" - {x}.shape[{axis}]"])
    return f"{i} % {x}.shape[{axis}]{low}"


@weight(3)
def index(d: Draft) -> str:
    x = d.tensor(has_dims)
    axis = d.random.randrange(d.values[x].dim())
    return f"{x}[{''.join(':, ' for _ in range(axis))}{indices(d, x, axis)}]"


@weight(2)
def index_pair(d: Draft) -> str:
    x = d.tensor(lambda t: t.dim() >= 2)
    i = d.new([3], torch.int64)
    return f"{x}[{i} % {x}.shape[0], {d.random.choice([i, i + '[:, None]'])} % {x}.shape[1]]"


@weight(2)
def index_select(d: Draft) -> str:
    x = d.tensor(has_dims)
    axis = d.random.randrange(d.values[x].dim())
    return f"torch.index_select({x}, {axis}, {d.new([4], torch.int64)} % {x}.shape[{axis}])"


@weight(2)
def gather(d: Draft) -> str:
    x = d.tensor(has_dims)
    axis = d.random.randrange(d.values[x].dim())
    i = d.new(d.values[x].shape, torch.int64)
    return d.random.choice(["torch.gather({0}, {1}, {2})", "torch.take_along_dim({0}, {2}, {1})"]).format(
        x, axis, f"{i} % {x}.shape[{axis}]"
    )


@weight(1)
def scatter(d: Draft) -> str:
    x = d.tensor(has_dims)
    axis = d.random.randrange(d.values[x].dim())
    return f"torch.index_add({x}, {axis}, torch.arange({x}.shape[{axis}]).flip(0), {x})"


@weight(2)
def embedding(d: Draft) -> str:
    i = d.tensor(is_whole)
    return f"F.embedding({i} % 7, {d.new([7, 3], d.random.choice([torch.float32, torch.float16]))})"


@weight(1)
def one_hot(d: Draft) -> str:
    return f"F.one_hot({d.tensor(lambda t: t.dtype == torch.int64 and t.dim() < 3)} % 4, 4)"


# --- what runs in eager ---


@weight(2)
def eager(d: Draft) -> str:
    x = d.tensor(lambda t: has_dims(t) and is_number(t))
    axis = axis_of(d, x)
    forms = [
        f"torch.sort({x}, dim={axis}, stable=True)",
        f"torch.topk({x}, 1, {axis})[0]",
        f"torch.kthvalue({x}, 1, {axis})[0]",
    ]
    forms += [f"torch.histc({x}.float(), 4, -2, 2)", f"torch.cumprod({x}.clamp(-1, 1), {axis})"]
    return d.random.choice(forms)
