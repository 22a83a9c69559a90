"""`torch.compile(backend="dlcb")` against eager: results, strides, aliases, updates, gradients, random numbers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import dlcb
from dlcb.frontend.graph_program import MOST_VARIANTS
from dlcb.tests.end_to_end.through_dynamo import Graphs, agree

rand = torch.randn


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    torch.compiler.reset()
    torch.manual_seed(0)
    yield
    torch.compiler.reset()


def sized(*shapes: Sequence[int]) -> list[tuple[Tensor]]:
    return [(rand(*shape),) for shape in shapes]


def test_torch_finds_the_backend_by_its_entry_point() -> None:
    assert "dlcb" in torch.compiler.list_backends()


def test_one_graph_serves_every_size_that_torch_lets_vary() -> None:
    graphs = agree(lambda x: torch.softmax(x * 2 + x.mean(0), -1).sum(1), *sized((3, 5), (7, 2), (64, 33), (5, 300)))
    graphs.assert_native()
    assert [len(graph.reports) for graph in graphs] == [1]


def rows_of(*counts: int) -> list[tuple[Tensor]]:
    return [(torch.randn(count, 8),) for count in counts]


def normalized(x: Tensor) -> Tensor:
    return torch.softmax(F.layer_norm(x, (8,)), -1) + x.sum(0)


ORDERS = ((5, 1, 0, 7), (1, 0, 5), (0, 5, 1))


@pytest.mark.parametrize("counts", ORDERS)
def test_one_graph_serves_sizes_one_and_zero_where_torch_is_told_to_mark_the_dim(counts: tuple[int, ...]) -> None:
    calls = rows_of(*counts)
    for (x,) in calls:
        torch._dynamo.decorators.mark_unbacked(x, 0)  # pyright: ignore
    graphs = agree(normalized, *calls)
    graphs.assert_native()
    assert [len(graph.reports) for graph in graphs] == [1]


@pytest.mark.parametrize("counts", ORDERS)
def test_one_graph_serves_sizes_one_and_zero_where_torch_tells_no_sizes_apart(counts: tuple[int, ...]) -> None:
    with torch.fx.experimental._config.patch(backed_size_oblivious=True):  # pyright: ignore
        graphs = agree(normalized, *rows_of(*counts))
    graphs.assert_native()
    assert [len(graph.reports) for graph in graphs] == [1]


def test_torch_makes_graphs_of_their_own_for_sizes_one_and_zero_else() -> None:
    assert len(agree(normalized, *rows_of(5, 1, 0))) == 3


def test_sizes_that_come_often_get_a_program_of_their_own() -> None:
    calls = rows_of(4, 4, 4, 4)
    graphs = agree(normalized, *calls, options={"hot_shapes": "sync", "hot_after": 2})
    graphs.assert_native()


@pytest.mark.parametrize("dynamic", [None, False, True])
def test_results_of_every_kind(dynamic: bool | None) -> None:
    def program(x: Tensor, k: int) -> Any:
        y = x * k
        return y.t(), None, x.shape[0] * 2 + k, [y[1:], {"a": x.view(-1)}["a"]], x, "text", 2.5

    agree(program, (rand(3, 4), 3), (rand(5, 4), 2), (rand(5, 6), 2), dynamic=dynamic).assert_native()


def test_writes_into_arguments_and_their_views() -> None:
    def program(x: Tensor, y: Tensor) -> Any:
        x.add_(y)
        x[1:].mul_(2)
        row = y.t()[0]
        row.copy_(x[:, 0])
        return x.sum(), row

    agree(program, (rand(3, 4), rand(3, 4)), (rand(6, 2), rand(6, 2))).assert_native()


COPIES: dict[str, Callable[[Tensor], Any]] = {
    "the copy is written": lambda x: x[:, 2:].flatten(0, 1).add_(1),
    "the source is written": lambda x: (y := x * 2, z := y.t().reshape(-1), y.add_(1), z * 2, y + 0)[3:],
    "only the copy is used": lambda x: (x * 2).t().reshape(-1).relu_() * 2,
}


@pytest.mark.parametrize("program", COPIES.values(), ids=COPIES.keys())
def test_reshapes_that_copy_at_some_sizes(program: Callable[[Tensor], Any]) -> None:
    agree(program, *sized((3, 5), (1, 5), (6, 3), (4, 7)))


def test_arguments_that_share_memory() -> None:
    base = rand(4, 4)

    def program(x: Tensor, y: Tensor) -> Tensor:
        x.mul_(2)
        return x + y

    for one, other in ((base, base.t()), (base[1:], base[:-1]), (base, base)):
        torch.compiler.reset()
        memory = one.clone() if one is base else base.clone()
        expected = program(*_again(memory, one, other))
        memory = base.clone()
        got = torch.compile(program, backend="dlcb")(*_again(memory, one, other))
        torch.testing.assert_close(got, expected)


def _again(memory: Tensor, *views: Tensor) -> list[Tensor]:
    return [memory.as_strided(v.shape, v.stride(), v.storage_offset()) for v in views]


class Net(nn.Module):
    """Linear, batch norm with statistics, dropout, a buffer that counts."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.norm = nn.BatchNorm1d(8)
        self.register_buffer("calls", torch.zeros(()))
        self.calls: Tensor

    def forward(self, x: Tensor, scale: float = 1.5) -> Tensor:
        self.calls.add_(1)
        hidden = F.dropout(self.norm(self.linear(x)).relu(), 0.4, self.training)
        return torch.softmax(hidden * scale, -1)


def test_parameters_are_seen_as_they_are_at_each_call() -> None:
    model = Net().eval()
    graphs = Graphs()
    compiled = torch.compile(model, backend="dlcb", dynamic=True)
    with torch.no_grad():
        for _ in range(3):
            x = rand(5, 8)
            torch.testing.assert_close(compiled(x), model(x))
            model.linear.weight.add_(0.1)
            cast(Tensor, model.norm.running_var).mul_(1.2)
    assert model.calls == 6
    graphs.assert_native()


def test_a_graph_whose_parameters_are_exchanged_takes_them_as_inputs() -> None:
    models = [Net().eval() for _ in range(4)]
    graphs = Graphs()
    compiled = torch.compile(lambda model, x: model(x), backend="dlcb", dynamic=True)
    with torch.no_grad():
        for model in [*models, *models]:
            x = rand(3, 8)
            torch.testing.assert_close(compiled(model, x), model(x))
    assert all(len(graph.reports) <= 2 for graph in graphs)
    graphs.assert_native()


def test_floats_that_vary() -> None:
    agree(lambda x, k: x * k + k, *((rand(3), 0.5 * n) for n in range(1, 5)))


def test_gradients_and_what_training_updates() -> None:
    model = Net()
    other = copy.deepcopy(model)
    compiled = torch.compile(model, backend="dlcb", dynamic=True)
    for size in (4, 7, 5):
        x = rand(size, 8, requires_grad=True)
        y = x.detach().clone().requires_grad_()
        torch.manual_seed(size)
        compiled(x).square().sum().backward()
        torch.manual_seed(size)
        other(y).square().sum().backward()
        assert x.grad is not None
        torch.testing.assert_close(x.grad, y.grad)
    for one, same in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(one.grad, same.grad)
    for one, same in zip(model.buffers(), other.buffers(), strict=True):
        torch.testing.assert_close(one, same)


def test_random_numbers_are_those_of_eager() -> None:
    def program(x: Tensor) -> Any:
        noise = torch.rand_like(x)
        return F.dropout(x * 2 + noise, 0.3, True).exp() + torch.randn(x.shape[0], 1), x.clone().normal_()

    graphs = agree(program, *sized((3, 4), (2, 9)))
    assert {"rand_like", "dropout", "randn", "normal"} <= graphs.eager


IN_EAGER: dict[str, tuple[Callable[[Tensor], Any], set[str]]] = {
    "sort": (lambda x: (x * 2 + 1).relu().sort(-1)[0].softmax(-1), {"sort"}),
    "complex": (lambda x: torch.fft.fft(x).abs().softmax(-1), {"fft_fft", "abs"}),
    "linear algebra": (lambda x: torch.linalg.svdvals(x).softmax(-1) * 2, {"linalg_svdvals"}),
    "two levels": (lambda x: (x.sort()[0].exp() + 1).softmax(-1).sort()[0].log_softmax(-1), {"sort"}),
    "writes": (lambda x: x.mul_(x.sort(-1)[0].softmax(-1)).add_(1), {"sort"}),
}


@pytest.mark.parametrize(("program", "eager"), IN_EAGER.values(), ids=IN_EAGER.keys())
def test_what_is_not_compiled_runs_in_eager(program: Callable[[Tensor], Any], eager: set[str]) -> None:
    graphs = agree(program, *sized((4, 6), (3, 9)))
    assert eager <= graphs.eager
    for graph in graphs:
        assert graph.refusals == []
        text = graph.explain()
        for op in eager:
            assert f"in eager: {op}: " in text
        assert "of the bytes of results" in text


def test_sizes_and_numbers_that_depend_on_elements() -> None:
    def program(x: Tensor) -> Any:
        places = (x > 0).nonzero()
        return (places * 2 + 1).float().softmax(0), x[x > 0].exp() + 1, torch.zeros(int((x > 0).sum().item())) + 1

    for flag in ("capture_dynamic_output_shape_ops", "capture_scalar_outputs"):
        with torch._dynamo.config.patch(flag, True):  # pyright: ignore
            agree(program, *sized((4, 6), (3, 9)))
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True):  # pyright: ignore
        graphs = agree(program, *sized((4, 6), (3, 9)), fullgraph=True)
    assert {"nonzero", "index"} <= graphs.eager


def test_autocast_and_checkpoints() -> None:
    linear = nn.Linear(6, 6)

    def program(x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return checkpoint(lambda y: linear(y).relu() + 1, x, use_reentrant=False)  # type: ignore[return-value]

    graphs = agree(program, *sized((3, 6), (5, 6)))
    assert all(graph.through_aot for graph in graphs)


def test_without_gradients_the_graph_is_captured_directly() -> None:
    graphs = agree(lambda x: F.layer_norm(x, (4,)).relu(), *sized((3, 4)))
    assert [graph.through_aot for graph in graphs] == [False]
    graphs = agree(lambda x: F.layer_norm(x, (4,)).relu(), (rand(3, 4, requires_grad=True),), grad=True)
    assert all(graph.through_aot for graph in graphs)


def test_transforms_of_torch_func_are_written_out() -> None:
    vmapped = lambda x, y: torch.func.vmap(lambda a, b: (a * b).sum() + a.amax())(x, y)  # noqa: E731
    tangent = lambda x: torch.func.jvp(torch.sin, (x,), (torch.ones_like(x),))[1]  # noqa: E731
    gradient = torch.func.grad(lambda x: (x**3).sum())
    for program, number in ((vmapped, 2), (tangent, 1), (gradient, 1)):
        graphs = agree(program, *([rand(n, 4) for _ in range(number)] for n in (3, 2, 17)))
        graphs.assert_native()
        assert all(graph.through_aot for graph in graphs)
    with pytest.raises(dlcb.UnsupportedError, match=r"inside vmap, grad .*test_dynamo.py:\d+.*backend=\"dlcb\""):
        dlcb.compile(vmapped, (rand(3, 4), rand(3, 4)))


def test_errors_are_those_of_eager() -> None:
    compiled = torch.compile(lambda x, y: (x @ y).relu() + 1, backend="dlcb", dynamic=True)
    compiled(rand(3, 4), rand(4, 5))
    with pytest.raises(Exception, match=r"same reduction dim|cannot be multiplied|mat1 and mat2"):
        compiled(rand(3, 4), rand(3, 5))
    compiled(rand(2, 4), rand(4, 5))


def test_a_call_that_no_variant_takes_runs_in_eager_in_the_end() -> None:
    program = lambda x: x * int(x.shape[0] ** 0.5)  # noqa: E731
    graphs = Graphs()
    compiled = torch.compile(program, backend="dlcb", dynamic=True)
    for size in range(2, 2 + MOST_VARIANTS + 3):
        x = rand(size)
        torch.testing.assert_close(compiled(x), program(x))
    assert all(len(graph.reports) <= MOST_VARIANTS for graph in graphs)


def test_options() -> None:
    model = Net().eval()
    with torch.no_grad():
        frozen = torch.compile(model, backend="dlcb", options={"weights": "frozen"})
        torch.testing.assert_close(frozen(rand(3, 8)).sum(-1), torch.ones(3))
        with pytest.raises(
            Exception, match="backend 'dlcb': unknown options speed; known: graphs, hot_after, hot_shapes, weights"
        ):
            torch.compile(model, backend="dlcb", options={"speed": 9})(rand(3, 8))


def test_explain_tells_of_all_graphs() -> None:
    agree(lambda x: x.sort()[0].softmax(-1) * 2, *sized((3, 4)))
    text = dlcb.explain()
    assert "sort: test_dynamo.py:" in text
    assert "ops, " in text
    assert "native in" in text
