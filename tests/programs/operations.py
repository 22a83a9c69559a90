"""The operations that random programs call: each a function that draws a line of Python over the values that are
there. What eager refuses is dropped by who draws, so arguments need only be right most of the time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Protocol

import torch
from torch import Tensor


class Draft(Protocol):
    """A program under construction, which has run on its first call's arguments."""

    random: Random
    values: dict[str, Any]

    def tensor(self, test: Callable[[Tensor], bool] = ...) -> str: ...

    def like(self, name: str, test: Callable[[Tensor], bool] = ...) -> str: ...

    def new(self, sizes: Sequence[int], dtype: torch.dtype) -> str: ...


class NothingFits(Exception):
    """No value is of the kind that the operation takes."""


Operation = Callable[[Draft], str]
OPERATIONS: list[tuple[Operation, int]] = []
"""Each with how often it is drawn."""
DTYPES = "float32 float64 float16 bfloat16 int64 int32 int16 int8 uint8 bool".split()


def weight(often: int = 2) -> Callable[[Operation], Operation]:
    def add(operation: Operation) -> Operation:
        OPERATIONS.append((operation, often))
        return operation

    return add


def is_float(t: Tensor) -> bool:
    return t.is_floating_point()


def is_number(t: Tensor) -> bool:
    return t.dtype != torch.bool


def is_whole(t: Tensor) -> bool:
    return t.dtype in (torch.int64, torch.int32)


def is_bool(t: Tensor) -> bool:
    return t.dtype == torch.bool


def has_dims(t: Tensor) -> bool:
    return t.dim() > 0


def is_picture(t: Tensor) -> bool:
    return t.dim() == 4 and t.is_floating_point()


def axis_of(d: Draft, x: str) -> int:
    rank = d.values[x].dim()
    if not rank:
        raise NothingFits
    axis = d.random.randrange(rank)
    return axis - rank if d.random.random() < 0.3 else axis


def axes_of(d: Draft, x: str) -> str:
    rank = d.values[x].dim()
    count = d.random.randint(1, max(rank, 1))
    chosen = sorted(d.random.sample(range(rank), min(count, rank)))
    return repr(chosen[0]) if len(chosen) == 1 else repr(tuple(chosen))


def integer(d: Draft) -> str | None:
    """An integer argument, sometimes."""
    names = [n for n in d.values if n.startswith("k")]
    return d.random.choice(names) if names and d.random.random() < 0.4 else None


def keepdim(d: Draft) -> str:
    return d.random.choice(["", ", keepdim=True"])


# --- elementwise ---

UNARY = "neg abs relu sigmoid tanh exp sin cos square sign erf floor ceil round trunc expm1 rsqrt sqrt log1p".split()
ACTIVATIONS = "gelu silu elu softplus leaky_relu hardswish hardsigmoid hardtanh relu6 mish logsigmoid softsign".split()
BINARY = "add sub mul maximum minimum".split()
COMPARE = "eq ne lt le gt ge".split()
SCALARS = "0.5 -1.5 2 3 -1 0 1 True".split()


@weight(8)
def unary(d: Draft) -> str:
    return f"torch.{d.random.choice(UNARY)}({d.tensor(is_number)})"


@weight(3)
def activation(d: Draft) -> str:
    return f"F.{d.random.choice(ACTIVATIONS)}({d.tensor(is_float)})"


@weight(10)
def binary(d: Draft) -> str:
    x = d.tensor()
    return f"torch.{d.random.choice(BINARY)}({x}, {d.like(x)})"


@weight(6)
def with_scalar(d: Draft) -> str:
    x, other = d.tensor(), integer(d) or d.random.choice(SCALARS)
    return d.random.choice([f"{x} + {other}", f"{other} - {x}", f"{x} * {other}", f"{x} / {other}", f"{other} * {x}"])


@weight(2)
def division(d: Draft) -> str:
    x = d.tensor(is_number)
    y = d.random.choice([d.random.choice(["2", "3", "-4", "0.5"]), d.like(x, is_number)])
    mode = d.random.choice(["", ", rounding_mode='floor'", ", rounding_mode='trunc'"])
    return d.random.choice([f"torch.div({x}, {y}{mode})", f"{x} // {y}", f"{x} % {y}", f"torch.fmod({x}, {y})"])


@weight(2)
def power(d: Draft) -> str:
    return f"{d.tensor(is_number)} ** {d.random.choice(['2', '3', '0.5', '0', '1', '-1'])}"


@weight(1)
def alpha(d: Draft) -> str:
    x = d.tensor(is_number)
    return f"torch.{d.random.choice(['add', 'sub'])}({x}, {d.like(x, is_number)}, alpha={d.random.choice(['2', '-1'])})"


@weight(3)
def compare(d: Draft) -> str:
    x = d.tensor()
    return f"torch.{d.random.choice(COMPARE)}({x}, {d.random.choice([d.like(x), d.random.choice(SCALARS)])})"


@weight(2)
def logic(d: Draft) -> str:
    x = d.tensor(lambda t: not t.is_floating_point())
    y = d.like(x, lambda t: not t.is_floating_point())
    return d.random.choice([f"{x} & {y}", f"{x} | {y}", f"{x} ^ {y}", f"~{x}", f"torch.logical_and({x}, {y})"])


@weight(2)
def clamp(d: Draft) -> str:
    low, high = d.random.choice([("-1", "1"), ("0", "2"), ("-0.5", "None"), ("None", "1.5")])
    return f"torch.clamp({d.tensor(is_number)}, {low}, {high})"


@weight(6)
def cast(d: Draft) -> str:
    x = d.tensor()
    to = d.random.choice(DTYPES)
    wraps = d.values[x].is_floating_point() and to not in ("bool", "float32", "float64", "float16", "bfloat16")
    low = "0" if to == "uint8" else "-100"
    return f"{x}.clamp({low}, 100).to(torch.{to})" if wraps else f"{x}.to(torch.{to})"


@weight(2)
def where(d: Draft) -> str:
    condition = d.tensor(is_bool)
    x = d.like(condition)
    return f"torch.where({condition}, {x}, {d.random.choice([d.like(condition), '0', '1.5'])})"


@weight(2)
def masked_fill(d: Draft) -> str:
    x = d.tensor()
    return f"{x}.masked_fill({d.like(x, is_bool)}, {d.random.choice(['0', '1', '-2'])})"


@weight(1)
def lerp(d: Draft) -> str:
    x = d.tensor(is_float)
    dtype = d.values[x].dtype
    return f"torch.lerp({x}, {d.like(x, lambda t: t.dtype == dtype)}, 0.25)"


# --- views ---


def size(d: Draft, x: str, axis: int) -> str:
    return f"{x}.shape[{axis}]"


@weight(3)
def transpose(d: Draft) -> str:
    x = d.tensor(has_dims)
    return f"{x}.transpose({axis_of(d, x)}, {axis_of(d, x)})"


@weight(3)
def permute(d: Draft) -> str:
    x = d.tensor(has_dims)
    order = list(range(d.values[x].dim()))
    d.random.shuffle(order)
    return f"{x}.permute({', '.join(map(str, order))})"


@weight(3)
def flatten(d: Draft) -> str:
    x = d.tensor(lambda t: t.dim() > 1)
    first = d.random.randrange(d.values[x].dim() - 1)
    last = d.random.randrange(first + 1, d.values[x].dim())
    return f"{x}.flatten({first}, {last})"


@weight(4)
def reshape(d: Draft) -> str:
    x = d.tensor(has_dims)
    how = d.random.choice(["view", "reshape", "reshape"])
    sizes = [size(d, x, axis) for axis in range(d.values[x].dim())]
    at = d.random.randrange(len(sizes))
    forms = [["-1"], ["-1", sizes[-1]], [sizes[0], "-1"], [*sizes[:at], "1", *sizes[at:]]]
    forms += [["2", "-1"], [*sizes[:at], "-1", "2", *sizes[at + 1 :]]]
    if len(sizes) > 1:
        forms.append([f"{sizes[0]} * {sizes[1]}", *sizes[2:]])
        forms.append([*reversed(sizes)])
    return f"{x}.{how}({', '.join(d.random.choice(forms))})"


@weight(2)
def unsqueeze(d: Draft) -> str:
    x = d.tensor(lambda t: t.dim() < 5)
    return f"{x}.unsqueeze({d.random.randint(-1, d.values[x].dim())})"


@weight(2)
def squeeze(d: Draft) -> str:
    x = d.tensor(lambda t: 1 in t.shape)
    return f"{x}.squeeze({list(d.values[x].shape).index(1)})"


@weight(2)
def expand(d: Draft) -> str:
    x = d.tensor(lambda t: t.dim() < 4)
    shape = d.values[x].shape
    extra = integer(d) or d.random.choice(["1", "2", "3"])
    kept = [d.random.choice(["3", "2"]) if n == 1 else d.random.choice(["-1", size(d, x, i)]) for i, n in enumerate(shape)]
    return f"{x}.expand({', '.join(d.random.choice([kept, [extra, *kept]]) or ['2'])})"


@weight(6)
def slice_(d: Draft) -> str:
    x = d.tensor(has_dims)
    k = integer(d) or "2"
    forms = ["1:", ":-1", ":2", "::2", "1::2", "-2:", "1:-1", "::3", f":{k}", f"{k}:", ":", "0:100", "None, 1:"]
    parts = [":"] * d.random.randrange(d.values[x].dim()) + [d.random.choice(forms)]
    return f"{x}[{', '.join(parts)}]"


@weight(3)
def select(d: Draft) -> str:
    x = d.tensor(has_dims)
    return f"{x}.select({axis_of(d, x)}, {integer(d) or d.random.choice(['0', '-1', '1'])})"


@weight(2)
def unfold(d: Draft) -> str:
    x = d.tensor(lambda t: 0 < t.dim() < 4)
    return f"{x}.unfold({axis_of(d, x)}, 2, {d.random.choice([1, 2])})"


@weight(2)
def flip(d: Draft) -> str:
    x = d.tensor(has_dims)
    return f"torch.flip({x}, [{axis_of(d, x)}])"


@weight(2)
def roll(d: Draft) -> str:
    x = d.tensor(has_dims)
    return f"torch.roll({x}, {integer(d) or d.random.choice(['1', '-2', '3'])}, {axis_of(d, x)})"


@weight(1)
def diagonal(d: Draft) -> str:
    return f"{d.tensor(lambda t: t.dim() >= 2)}.diagonal({d.random.choice([0, 1, -1])})"


@weight(1)
def triangle(d: Draft) -> str:
    x = d.tensor(lambda t: t.dim() >= 2)
    return f"torch.{d.random.choice(['tril', 'triu'])}({x}, {d.random.choice([0, 1, -1])})"


@weight(2)
def same_again(d: Draft) -> str:
    forms = ["clone()", "contiguous()", "detach()", "view_as({0})", "reshape({0}.shape)", "to({0}.dtype)"]
    x = d.tensor()
    return f"{x}.{d.random.choice(forms).format(x)}"


@weight(1)
def channels_last(d: Draft) -> str:
    return f"{d.tensor(lambda t: t.dim() == 4)}.contiguous(memory_format=torch.channels_last)"


# --- several to one, one to several ---


@weight(4)
def cat(d: Draft) -> str:
    x = d.tensor(has_dims)
    rank = d.values[x].dim()
    return f"torch.cat([{x}, {d.like(x, lambda t: t.dim() == rank)}], {axis_of(d, x)})"


@weight(2)
def stack(d: Draft) -> str:
    x = d.tensor(lambda t: t.dim() < 4)
    shape = d.values[x].shape
    others = [d.like(x, lambda t: t.shape == shape) for _ in range(d.random.randint(0, 2))]
    return f"torch.stack([{', '.join([x, *others])}], {d.random.randint(0, len(shape))})"


@weight(3)
def split(d: Draft) -> str:
    x = d.tensor(has_dims)
    axis = axis_of(d, x)
    forms = ["split(2, {0})[0]", "chunk(2, {0})[0]", "tensor_split(2, {0})[-1]", "unbind({0})[0]"]
    return f"{x}.{d.random.choice(forms).format(axis)}"


@weight(1)
def repeat(d: Draft) -> str:
    x = d.tensor(lambda t: 0 < t.dim() < 4)
    counts = [d.random.choice(["1", "2"]) for _ in d.values[x].shape]
    return d.random.choice([f"{x}.repeat({', '.join(counts)})", f"{x}.repeat_interleave(2, {axis_of(d, x)})"])


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
    i = d.random.choice([d.tensor(lambda t: is_whole(t) and t.dim() == 1), d.new([d.random.randint(2, 5)], torch.int64)])
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


# --- new tensors ---


@weight(3)
def create(d: Draft) -> str:
    x = d.tensor(has_dims)
    k = integer(d) or f"{x}.shape[{axis_of(d, x)}]"
    forms = ["torch.arange({1})", "torch.arange({1}) * 2", "torch.arange(1, {1} + 3, 2)", "torch.full(({1}, 2), 1.5)"]
    forms += ["torch.full_like({0}, 1)", "{0}.new_zeros({1}, 3)", "torch.ones_like({0})", "torch.zeros({1})"]
    forms += ["torch.arange({1}, dtype=torch.float32)", "torch.eye({1})", "torch.linspace(0, 1, {1})"]
    forms += ["{0}.new_full(({1},), 1)", "torch.tensor([1, 2, 3])", "torch.tensor({1})", "torch.empty_like({0}).zero_()"]
    return d.random.choice(forms).format(x, k)


@weight(2)
def by_a_size(d: Draft) -> str:
    x = d.tensor(lambda t: has_dims(t) and is_number(t))
    k = integer(d) or f"{x}.shape[{axis_of(d, x)}]"
    return d.random.choice([f"{x} * {k}", f"{x} + ({k} // 2)", f"{x} / max({k}, 1)", f"{x} - {k} % 3"])


# --- in place ---

IN_PLACE = "add_(1) mul_(2) neg_() relu_() zero_() clamp_(-1,1) fill_(2) sub_(0.5) sigmoid_() abs_()".split()


@weight(5)
def in_place(d: Draft) -> str:
    return f"{d.tensor()}.{d.random.choice(IN_PLACE)}"


@weight(4)
def write_to_view(d: Draft) -> str:
    x = d.tensor(has_dims)
    place = d.random.choice(["1:", "0", "::2", ":-1", "..., 0", "-1", "..., 1:", f"{x} > 0"])
    return d.random.choice([f"{x}[{place}] = 1", f"{x}[{place}] *= 2", f"{x}[{place}] += 1"])


@weight(3)
def copy_into(d: Draft) -> str:
    x = d.tensor()
    y = d.like(x)
    return d.random.choice([f"{x}.copy_({y})", f"{x}.add_({y})", f"{x}[:1] = {y}[-1:]", f"{x}.transpose(0, -1).mul_(2)"])


@weight(2)
def write_by_index(d: Draft) -> str:
    x = d.tensor(has_dims)
    i = f"{d.new([1], torch.int64)} % {x}.shape[0]"
    return d.random.choice(
        [f"{x}.index_copy_(0, {i}, {x}[:1].clone())", f"{x}.index_fill_(0, {i}, 1)", f"{x}.index_add_(0, {i}, {x}[-1:].clone())"]
    )


# --- what runs in eager ---


@weight(2)
def eager(d: Draft) -> str:
    x = d.tensor(lambda t: has_dims(t) and is_number(t))
    axis = axis_of(d, x)
    forms = [f"torch.sort({x}, dim={axis}, stable=True)", f"torch.topk({x}, 1, {axis})[0]", f"torch.kthvalue({x}, 1, {axis})[0]"]
    forms += [f"torch.histc({x}.float(), 4, -2, 2)", f"torch.cumprod({x}.clamp(-1, 1), {axis})"]
    return d.random.choice(forms)
