"""What each ATen operation becomes: evaluated after `simplify`, it gives eager's answer, at other sizes too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from xdsl.context import Context

from dlcb.dialects.graph.structure import FuncOp
from dlcb.evaluator.graph import run_program
from dlcb.evaluator.sizes import lookup
from dlcb.frontend import torch_private as private
from dlcb.frontend.capture import capture
from dlcb.frontend.importer import Imported, import_captured
from dlcb.passes.collect import CollectPass
from dlcb.passes.simplify import SimplifyPass
from dlcb.passes.solve import SolvePass


def simplified(program: Callable[..., Any], example: tuple[Any, ...]) -> Imported:
    imported = import_captured(capture(program, example))
    imported.module.verify()
    for stage in (CollectPass, SolvePass, SimplifyPass):
        stage().apply(Context(), imported.module)
    imported.module.verify()
    return imported


def evaluated(imported: Imported, args: tuple[Any, ...]) -> list[Any]:
    func = lookup(imported.module, "main", FuncOp)
    leaves = private.flatten((args, {}))[0]
    given = {i.name: leaf for i, leaf in zip(imported.captured.inputs, leaves, strict=True)} | imported.weights
    arrays = {n: as_array(v) if isinstance(v, Tensor) else v for n, v in given.items()}
    results = run_program(imported.module, arrays)
    return results[len(func.returned.updated) :]


def as_array(tensor: Tensor) -> Any:
    return (tensor.detach().float() if tensor.dtype == torch.bfloat16 else tensor.detach()).numpy()


def agrees(program: Callable[..., Any], *cases: tuple[Any, ...], rtol: float = 1e-5) -> Imported:
    """The program, imported at the first case, is eager's at every case."""
    imported = simplified(program, cases[0])
    for args in cases:
        with torch.no_grad():
            expected = private.flatten(program(*args))[0]
        actual = evaluated(imported, args)
        for want, got in zip(expected, actual, strict=True):
            assert tuple(want.shape) == got.shape
            np.testing.assert_allclose(got, as_array(want), rtol=rtol, atol=rtol, equal_nan=True)
    return imported


torch.manual_seed(0)


def rand(*sizes: int) -> Tensor:
    return torch.randn(*sizes)


def whole(*sizes: int) -> Tensor:
    return torch.randint(-5, 6, sizes)


def positive(*sizes: int) -> Tensor:
    return torch.rand(*sizes) + 0.5


UNARY: list[Callable[[Tensor], Tensor]] = [
    torch.neg, torch.abs, torch.sign, torch.exp, torch.expm1, torch.sin, torch.cos, torch.tanh, torch.erf,
    torch.floor, torch.ceil, torch.trunc, torch.round, torch.frac, torch.square, torch.reciprocal, torch.sigmoid,
    torch.isnan, torch.isfinite, torch.isinf, F.relu, F.gelu, F.silu, F.elu, F.selu, F.mish, F.hardswish,
    F.hardsigmoid, F.hardtanh, F.relu6, F.leaky_relu, F.softplus, F.logsigmoid,
    lambda x: F.gelu(x, approximate="tanh"), lambda x: torch.round(x, decimals=2), lambda x: F.elu(x, 0.3),
    lambda x: x.clamp(-0.5, 0.5), lambda x: x.clamp(min=0.1), lambda x: x.clamp_max(0.1), lambda x: x**2,
    lambda x: x**3, lambda x: 2**x, lambda x: x.abs() ** 0.5, lambda x: x**-1, lambda x: x + 1, lambda x: 1 - x,
    lambda x: x / 3, lambda x: 3 / x, lambda x: x // 0.5, lambda x: x % 0.7, lambda x: torch.add(x, x, alpha=3),
    lambda x: torch.rsub(x, 2.0, alpha=3), lambda x: (x > 0.5) & ~(x < 1), lambda x: torch.logical_not(x),
    lambda x: x.bool().float(), lambda x: torch.where(x > 0, x, 0.0), lambda x: x.masked_fill(x > 0, 7),
    lambda x: torch.nan_to_num(x / x.relu()), lambda x: torch.lerp(x, x * 2, 0.3),
    lambda x: torch.addcmul(x, x, x, value=2),
]  # fmt: skip


@pytest.mark.parametrize("function", UNARY, ids=range(len(UNARY)))
def test_elementwise_operations_of_one_tensor(function: Callable[[Tensor], Tensor]) -> None:
    agrees(function, (rand(3, 4),), (rand(1, 2),), (rand(0, 5),))


@pytest.mark.parametrize(
    "function", [torch.log, torch.log2, torch.log10, torch.log1p, torch.sqrt, torch.rsqrt, torch.exp2]
)
def test_elementwise_operations_of_positive_numbers(function: Callable[[Tensor], Tensor]) -> None:
    agrees(function, (positive(3, 4),), (positive(1, 2),))


BINARY: list[Callable[[Tensor, Tensor], Tensor]] = [
    torch.add, torch.sub, torch.mul, torch.div, torch.maximum, torch.minimum, torch.eq, torch.ne, torch.lt, torch.le,
    torch.gt, torch.ge, torch.atan2, torch.fmod, torch.remainder,
    lambda x, y: torch.div(x, y, rounding_mode="floor"), lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    lambda x, y: torch.add(x, y, alpha=0.5), lambda x, y: torch.max(x, y), lambda x, y: x.abs() ** y,
    lambda x, y: torch.logical_and(x > 0, y), lambda x, y: torch.where(x > y, x, y),
]  # fmt: skip


@pytest.mark.parametrize("function", BINARY, ids=range(len(BINARY)))
def test_elementwise_operations_of_two_tensors_broadcast(function: Callable[[Tensor, Tensor], Tensor]) -> None:
    agrees(
        function, (rand(3, 4), rand(3, 4)), (rand(2, 5), rand(1, 5)), (rand(1, 1), rand(2, 3)), (rand(0, 2), rand(1, 2))
    )
    agrees(function, (rand(3, 4), rand(4)), (rand(2, 5), rand(5)), (rand(2, 1), rand(3)))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x + y, lambda x, y: x * y, lambda x, y: x / y, lambda x, y: x // y, lambda x, y: x % y,
        lambda x, y: torch.fmod(x, y), lambda x, y: torch.div(x, y, rounding_mode="trunc"), lambda x, y: x & y,
        lambda x, y: x | y, lambda x, y: x ^ y, lambda x, y: ~x, lambda x, y: x < y, lambda x, y: x.float() + y,
        lambda x, y: x + 1.5, lambda x, y: x > 0.5, lambda x, y: x.clamp(-1, 2), lambda x, y: (x > 0) + (y > 0),
        lambda x, y: x.to(torch.int32) * 3, lambda x, y: x.bool() * y.bool(), lambda x, y: x.sum(0) + x.float().mean(),
    ],
    ids=range(20),
)  # fmt: skip
def test_integers(function: Callable[[Tensor, Tensor], Tensor]) -> None:
    def nonzero(*sizes: int) -> Tensor:
        return torch.randint(1, 5, sizes)

    agrees(function, (whole(3, 4), nonzero(3, 4)), (whole(2, 5), nonzero(2, 5)))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_float_types_round_where_torch_rounds(dtype: torch.dtype) -> None:
    def program(x: Tensor, i: Tensor) -> tuple[Tensor, ...]:
        return (
            x * 0.1 + i,
            (x == 0.1),
            F.hardswish(x),
            x + x.float(),
            torch.where(x > 0, x, 0.1),
            x.softmax(-1),
            x.sum(0),
        )

    agrees(program, (rand(3, 4).to(dtype), whole(3, 4)), (rand(2, 5).to(dtype), whole(2, 5)), rtol=1e-2)


VIEWS: list[Callable[[Tensor], Any]] = [
    lambda x: x.view(-1), lambda x: x.reshape(x.shape[0], -1, 2), lambda x: x.flatten(1),
    lambda x: x.unflatten(1, (2, -1)), lambda x: x.t(), lambda x: x.permute(1, 0), lambda x: x.transpose(0, -1),
    lambda x: x.T, lambda x: x.movedim(0, 1), lambda x: x[None], lambda x: x.unsqueeze(-1).squeeze(-1),
    lambda x: x[:, None].squeeze(), lambda x: x.expand(3, -1, -1), lambda x: x[0], lambda x: x[-1],
    lambda x: x[:, 1:], lambda x: x[:, :-1], lambda x: x[..., ::2], lambda x: x[:, 1:3], lambda x: x[-2:],
    lambda x: x[:, -3:-1], lambda x: x[:, : x.shape[1] // 2], lambda x: x[x.shape[0] - 1 :],
    lambda x: x.narrow(1, 1, 2), lambda x: x.chunk(2, 1), lambda x: x.split(x.shape[1] - 1, 1)[0],
    lambda x: x.flip(1), lambda x: torch.cat([x, x + 1], 1), lambda x: torch.stack([x, x * 2], -1),
    lambda x: torch.cat([x, x[:1]]), lambda x: F.pad(x, (1, 2)), lambda x: F.pad(x, (1, -1, 0, 2), value=3.0),
    lambda x: x.repeat(2, 1, 3), lambda x: x.repeat_interleave(2, 1), lambda x: x.roll(1, 1),
    lambda x: x.roll(-2, 0), lambda x: x.tril(), lambda x: x.triu(1),
    lambda x: torch.zeros_like(x) + x.new_ones(x.shape[0], 1), lambda x: x.diff(dim=1),
    lambda x: torch.arange(x.shape[0]), lambda x: torch.arange(1, 2 * x.shape[1], 2),
    lambda x: torch.eye(x.shape[0]), lambda x: torch.full((x.shape[0], 2), 1.5), lambda x: x / x.shape[0],
    lambda x: x * (x.shape[1] / 4), lambda x: torch.arange(0, 1, 0.1),
    lambda x: x.expand_as(torch.ones(2, 1, 1) * x), lambda x: x.clone().view_as(x.t()),
    lambda x: F.pixel_shuffle(x.view(1, 4, x.shape[0], -1), 2), lambda x: F.interpolate(x[None], scale_factor=2),
]  # fmt: skip


@pytest.mark.parametrize("function", VIEWS, ids=range(len(VIEWS)))
def test_operations_that_move_elements(function: Callable[[Tensor], Any]) -> None:
    agrees(function, (rand(3, 4),), (rand(5, 8),), (rand(2, 4),))


def writes_a_slice(x: Tensor) -> Tensor:
    y = x * 1
    y[1:, ::2] = 5
    y[:, 1] += x[:, 0]
    y.t()[0] = 2
    return y


@pytest.mark.parametrize("function", [writes_a_slice])
def test_writes_through_views(function: Callable[[Tensor], Any]) -> None:
    agrees(function, (rand(3, 4),), (rand(5, 8),), (rand(1, 2),))


REDUCTIONS: list[Callable[[Tensor], Any]] = [
    lambda x: x.sum(), lambda x: x.sum(1), lambda x: x.sum((0, 2), keepdim=True), lambda x: x.mean(-1),
    lambda x: x.mean(), lambda x: x.amax(1), lambda x: x.amin((0, 1)), lambda x: x.max(), lambda x: x.max(1)[0],
    lambda x: x.min(2).values, lambda x: x.prod(1), lambda x: (x > 0).any(1), lambda x: (x > 0).all(),
    lambda x: x.var(1), lambda x: x.std(-1, keepdim=True), lambda x: x.var(unbiased=False),
    lambda x: torch.var_mean(x, 1, correction=0), lambda x: x.softmax(-1), lambda x: x.log_softmax(1),
    lambda x: x.logsumexp(2), lambda x: x.norm(dim=-1), lambda x: x.norm(1, dim=0), lambda x: F.normalize(x, dim=1),
    lambda x: x.cumsum(1), lambda x: (x > 0).sum(1), lambda x: torch.count_nonzero(x, 1),
    lambda x: (x > 0).cumsum(-1), lambda x: x.norm(float("inf")),
]  # fmt: skip


@pytest.mark.parametrize("function", REDUCTIONS, ids=range(len(REDUCTIONS)))
def test_reductions(function: Callable[[Tensor], Any]) -> None:
    agrees(function, (rand(3, 4, 5),), (rand(2, 3, 7),))


PRODUCTS: list[tuple[Callable[..., Any], list[tuple[tuple[int, ...], ...]]]] = [
    (torch.matmul, [((3, 4), (4, 5)), ((2, 6), (6, 1))]),
    (torch.matmul, [((2, 3, 4), (4, 5)), ((1, 2, 3), (3, 2))]),
    (torch.matmul, [((2, 3, 4), (2, 4, 5)), ((3, 2, 6), (3, 6, 2))]),
    (torch.matmul, [((2, 1, 3, 4), (3, 4, 5)), ((1, 1, 3, 2), (2, 2, 5))]),
    (torch.matmul, [((4,), (4,)), ((7,), (7,))]),
    (torch.matmul, [((3, 4), (4,)), ((2, 5), (5,))]),
    (torch.matmul, [((4,), (4, 3)), ((2,), (2, 5))]),
    (torch.bmm, [((2, 3, 4), (2, 4, 5)), ((1, 2, 3), (1, 3, 2))]),
    (torch.addmm, [((5,), (3, 4), (4, 5)), ((2,), (1, 3), (3, 2))]),
    (lambda x, a, b: torch.addmm(x, a, b, beta=0.5, alpha=2), [((3, 5), (3, 4), (4, 5)), ((1, 2), (1, 3), (3, 2))]),
    (lambda a, b: torch.einsum("bij,bjk->bik", a, b), [((2, 3, 4), (2, 4, 5)), ((1, 2, 3), (1, 3, 2))]),
    (lambda a, b: torch.einsum("bhid,bhjd->bhij", a, b), [((2, 3, 4, 5), (2, 3, 6, 5)), ((1, 3, 2, 2), (1, 3, 4, 2))]),
    (lambda a: torch.einsum("ij->ji", a), [((2, 3),), ((4, 1),)]),
    (lambda a, b: torch.einsum("i,j->ij", a, b), [((2,), (3,)), ((4,), (1,))]),
]


@pytest.mark.parametrize(("function", "cases"), PRODUCTS, ids=range(len(PRODUCTS)))
def test_products(function: Callable[..., Any], cases: list[tuple[tuple[int, ...], ...]]) -> None:
    agrees(function, *(tuple(rand(*sizes) for sizes in case) for case in cases), rtol=1e-4)


MODULES: list[tuple[nn.Module, list[tuple[int, ...]]]] = [
    (nn.Linear(4, 3), [(2, 4), (5, 4)]),
    (nn.Linear(4, 3, bias=False), [(2, 3, 4), (1, 2, 4)]),
    (nn.Conv2d(2, 4, 3, 2, 1), [(1, 2, 5, 6), (2, 2, 4, 3)]),
    (nn.Conv2d(4, 4, 3, groups=2, bias=False), [(1, 4, 5, 5), (2, 4, 3, 4)]),
    (nn.Conv1d(2, 3, 3, padding="same"), [(2, 2, 5), (1, 2, 4)]),
    (nn.Conv1d(2, 3, 4, padding="same"), [(2, 2, 5), (1, 2, 6)]),
    (nn.MaxPool2d(3, 2, 1), [(2, 2, 5, 6), (1, 3, 4, 3)]),
    (nn.MaxPool2d(2, ceil_mode=True), [(2, 2, 5, 6), (1, 3, 7, 3)]),
    (nn.AvgPool2d(3, 2, 1), [(2, 2, 5, 6), (1, 3, 4, 3)]),
    (nn.AvgPool2d(3, 2, 1, count_include_pad=False), [(2, 2, 5, 6), (1, 3, 4, 3)]),
    (nn.AdaptiveAvgPool2d(1), [(2, 2, 5, 6), (1, 3, 4, 3)]),
    (nn.BatchNorm2d(3), [(2, 3, 4, 5), (1, 3, 2, 2)]),
    (nn.LayerNorm(4), [(2, 3, 4), (1, 2, 4)]),
    (nn.LayerNorm([3, 4], elementwise_affine=False), [(2, 3, 4), (1, 3, 4)]),
    (nn.GroupNorm(2, 4), [(2, 4, 3, 3), (1, 4, 2, 5)]),
    (nn.InstanceNorm2d(3, affine=True), [(2, 3, 4, 4), (1, 3, 2, 5)]),
    (nn.RMSNorm(4), [(2, 3, 4), (1, 2, 4)]),
    (nn.GLU(), [(2, 4), (3, 6)]),
    (nn.PReLU(3), [(2, 3, 4), (1, 3, 2)]),
]


@pytest.mark.parametrize(
    ("module", "cases"), MODULES, ids=lambda v: type(v).__name__ if isinstance(v, nn.Module) else ""
)
def test_modules(module: nn.Module, cases: list[tuple[int, ...]]) -> None:
    agrees(module.eval(), *((rand(*sizes),) for sizes in cases), rtol=1e-4)


def test_indexing() -> None:
    table = nn.Embedding(10, 4).eval()
    ids = [torch.randint(0, 10, sizes) for sizes in ((2, 3), (1, 5), (0, 2))]
    agrees(table, *((i,) for i in ids))
    cases = [(rand(4, 5, 3), torch.tensor([1, 0, 3])), (rand(6, 4, 2), torch.tensor([2]))]
    agrees(lambda x, i: (x[i], x[:, i], x.index_select(1, i), x[i, i], x[i[:, None], i], x[i, :, i % 2]), *cases)
    agrees(lambda x, i: x.gather(0, i[:, None, None].expand(-1, 4, 2)), *cases)

    def writes(x: Tensor, i: Tensor) -> tuple[Tensor, ...]:
        y, z, w = x * 1, x * 1, x * 1
        y[i] = 1.5
        z[:, i] = x[:, :1]
        w[i, i] = x[0, 0]
        return y, z, w, x.index_copy(0, i, x[: i.shape[0]]), x.index_fill(1, i, 3.0)

    agrees(writes, *cases)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_attention_has_torchs_sizes(causal: bool, masked: bool) -> None:
    if causal and masked:
        return

    def program(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, mask if masked else None, is_causal=causal)

    imported = simplified(program, (rand(2, 3, 4, 8), rand(2, 3, 5, 8), rand(2, 3, 5, 8), rand(2, 1, 4, 5)))
    text = str(imported.module)
    assert "dlcb.graph.attention" in text
    assert ("causal" in text) == causal
