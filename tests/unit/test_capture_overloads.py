"""Capture of calls of `torch.ops.aten` and of exported programs: eager's answers at other sizes, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn

from dlcb.errors import UnsupportedError, UserError
from dlcb.frontend import torch_private as private
from dlcb.frontend.capture import capture
from dlcb.frontend.tracing.records import Captured
from dlcb.frontend.tracing.replay import replay

aten = torch.ops.aten


def rand(*sizes: int) -> Tensor:
    return torch.randn(*sizes)


def check(program: Callable[..., Any], *cases: tuple[Any, ...]) -> Captured:
    """Capture at the first case; results and updated buffers are eager's at all cases."""
    captured = capture(program, cases[0])
    buffers: list[Tensor] = list(cast(Any, program).buffers()) if isinstance(program, nn.Module) else []
    for args in cases:
        before = [b.clone() for b in buffers]
        expected = [program(*copied(args)), [b.clone() for b in buffers]]
        for buffer, value in zip(buffers, before, strict=True):
            buffer.copy_(value)
        actual = [replay(captured, copied(args)), buffers]
        for want, got in zip(private.flatten(expected)[0], private.flatten(actual)[0], strict=True):
            if isinstance(want, Tensor):
                torch.testing.assert_close(got, want)
            else:
                assert got == want
    return captured


def copied(args: tuple[Any, ...]) -> list[Any]:
    return [a.clone() if isinstance(a, Tensor) else a for a in args]


def ops(captured: Captured) -> list[str]:
    return [record.op for record in captured.records]


def test_an_overload_is_recorded_under_the_name_of_its_packet() -> None:
    def program(x: Tensor) -> Tensor:
        y = aten.mul.Tensor(aten.view.default(x, [aten.sym_size.int(x, 0), -1]), 2)
        return aten.permute.default(aten.sub.Tensor(y, 1, alpha=2), [1, 0])

    assert ops(check(program, (rand(3, 4, 5),), (rand(2, 1, 7),))) == ["view", "mul", "sub", "permute"]


def test_arguments_by_keyword_go_to_their_places() -> None:
    def program(x: Tensor) -> tuple[Tensor, ...]:
        return (
            aten.sum.dim_IntList(self=x, dim=[1], keepdim=True, dtype=torch.float64),
            aten.slice.Tensor(x, end=2),
            aten.transpose.int(x, dim1=0, dim0=1),
            aten.clamp.default(x, max=0.5),
        )

    check(program, (rand(3, 4),), (rand(5, 2),))


def test_a_packet_chooses_its_overload_by_the_arguments() -> None:
    check(lambda x: aten.add(aten.mean(x, [1], True), 1) + aten.sum(x), (rand(3, 4),), (rand(5, 2),))


def test_sizes_are_tracked_through_overloads() -> None:
    def program(x: Tensor) -> Any:
        n, m = aten.sym_size.int(x, 0), aten.sym_size.int(x, 1)
        half = cast(float, torch.sym_float(n)) * 0.5
        numbers = torch.sym_max(n, m), torch.sym_min(n, 3), torch.sym_int(half), aten.sym_numel.default(x), half
        return aten.full.default([n, m + 1], 1.5), aten.arange.start_step(0, m, 1), numbers

    captured = check(program, (rand(3, 4),), (rand(5, 2),), (rand(0, 1),))
    assert (captured.pins, captured.checks) == ([], [])


def test_writes_and_views_by_overloads() -> None:
    def program(x: Tensor) -> tuple[Tensor, ...]:
        y = aten.clone.default(x)
        first, second = aten.split.Tensor(y, 2, 1)
        aten.add_.Tensor(first, second, alpha=2)
        aten.copy_.default(aten.select.int(y, 0, 0), aten.select.int(y, 0, 1))
        aten.mul_.Scalar(aten.slice.Tensor(y, 0, 1, 9223372036854775807), 3)
        aten.index_put_.default(second, [torch.tensor([0])], second[1:2])
        aten.fill_.Scalar(aten.unsqueeze.default(y, 0)[:, -1], 4)
        target = aten.empty_like.default(x)
        aten.add.out(x, y, alpha=2, out=target)
        return y, target, aten._to_copy.default(x), aten.alias.default(y)

    check(program, (rand(3, 4),), (rand(5, 4),))


def test_overloads_of_index_tensors() -> None:
    def program(x: Tensor, i: Tensor) -> tuple[Tensor, ...]:
        masked = aten.index_put.default(x, [x > 0], aten.scalar_tensor.default(2.0))
        put = aten.index_put.default(x, [None, i], x[:, :2])
        added = aten.index_put.default(x, [i], x[:2], True)
        return aten.index.Tensor(x, [None, i]), put, added, masked

    check(program, (rand(3, 4), torch.tensor([0, 1])), (rand(5, 2), torch.tensor([1, 1])))


def test_assertions_about_sizes_are_checked_at_launch() -> None:
    def program(x: Tensor, y: Tensor) -> Tensor:
        aten._assert_scalar.default(aten.sym_size.int(x, 0) <= 60, "too many")
        aten.sym_constrain_range.default(x.shape[1], min=2)
        aten._assert_tensor_metadata.default(x, [y.shape[0], x.shape[1]], None, torch.float32)
        torch._assert(x.shape[0] != 5, "five")
        return x * 2

    captured = check(program, (rand(3, 4), rand(3)), (rand(2, 2), rand(2)))
    assert [(c.kind, str(c.lhs), str(c.rhs)) for c in captured.checks] == [
        ("le", "x_0", "60"),
        ("le", "2", "x_1"),
        ("eq", "x_0", "y_0"),
        ("ne", "x_0", "5"),
    ]
    with pytest.raises(UserError, match="too many"):
        capture(program, (rand(70, 4), rand(70)))


def test_an_assertion_about_elements_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="elements of a tensor"):
        capture(lambda x: (aten._assert_async.default(x.sum() > 0), x)[1], (rand(3),))


@pytest.mark.parametrize(
    "function", [aten.native_batch_norm.default, aten._native_batch_norm_legit.default, torch.native_batch_norm]
)
def test_batch_norm_in_training_writes_its_running_statistics(function: Any) -> None:
    def program(x: Tensor, mean: Tensor, var: Tensor) -> Any:
        first = function(x, None, None, mean, var, True, 0.1, 1e-5)
        return (*first, *function(x, mean, var, mean, var, False, 0.1, 1e-5)[:1], mean, var)

    cases = [(rand(n, 3, 4), rand(3), rand(3).abs()) for n in (2, 5)]
    assert [u.target.id for u in check(program, *cases).updates] == [2, 3]


def test_an_operation_that_writes_into_several_arguments_is_refused() -> None:
    def program(x: Tensor, mean: Tensor, var: Tensor) -> Tensor:
        return aten._batch_norm_with_update.default(x, None, None, mean, var, 0.1, 1e-5)[0]

    with pytest.raises(UnsupportedError, match="writes into its arguments running_mean, running_var"):
        capture(program, (rand(2, 3, 4), rand(3), rand(3)))


# Exported programs


class Convolutional(nn.Module):
    """A buffer that is counted up, writes through views, a size and an int as results."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.linear, self.drop = nn.Linear(4, 5), nn.Dropout(0.5)
        self.seen = nn.Buffer(torch.zeros(4))

    def forward(self, x: Tensor) -> Any:
        y = self.norm(self.conv(x)).relu_()
        self.seen.add_(y.mean((0, 2, 3)))
        z = self.linear(self.drop(y.flatten(2).transpose(1, 2)))
        z[:, 1:].mul_(2)
        first, second = z.split([2, 3], 2)
        return first.softmax(-1), second[:, 0], x.shape[0] * x.shape[2] + 1, torch.arange(x.shape[0])


class Attending(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.norm = nn.Embedding(11, 8), nn.LayerNorm(8)

    def forward(self, ids: Tensor, factor: int) -> Tensor:
        x = self.norm(self.table(ids))
        mask = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()
        scores = (x @ x.transpose(1, 2) / 8**0.5).masked_fill(~mask, float("-inf"))
        return torch.cat([scores.softmax(-1) @ x, x[:, :1]], 1) * factor


B, N = torch.export.Dim("B", min=1, max=64), torch.export.Dim("N", min=5, max=64)
EXPORTS: list[tuple[nn.Module, list[tuple[Any, ...]], Any]] = [
    (Convolutional(), [(rand(3, 3, 9, 8),), (rand(2, 3, 6, 8),), (rand(1, 3, 5, 8),)], ({0: B, 2: N},)),
    (
        Attending(),
        [(torch.randint(0, 11, sizes), 3) for sizes in ((3, 7), (1, 9), (2, 5))],
        ({0: B, 1: N}, None),
    ),
]


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore:The .grad attribute:UserWarning")
@pytest.mark.parametrize("decomposed", [False, True])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("at", range(len(EXPORTS)))
def test_exported_programs(at: int, dynamic: bool, decomposed: bool) -> None:
    module, cases, shapes = EXPORTS[at]
    exported = torch.export.export(module.eval(), cases[0], dynamic_shapes=shapes if dynamic else None)
    if decomposed:
        exported = exported.run_decompositions()
    captured = check(exported.module(), *(cases if dynamic else cases[:1]))
    free = {s for i in captured.inputs if i.kind == "tensor" for s in i.symbols} - {p.symbol for p in captured.pins}
    assert len(free) == (2 if dynamic else 0)


def test_a_graph_module_that_calls_a_module_in_training_is_in_training() -> None:
    graph = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)))
    with pytest.raises(UserError, match="training mode"):
        capture(graph, (rand(2, 4),))
    graph.get_submodule("1").eval()
    graph.get_submodule("0").eval()
    check(graph, (rand(2, 4),))


def test_a_branch_on_two_sizes_being_equal_is_a_check() -> None:
    captured = capture(lambda x, y: x * 2 if x.shape[0] == y.shape[0] else x * 3, (rand(3), rand(3)))
    assert [str(c.condition) for c in captured.checks] == ["x_0 == y_0"]
