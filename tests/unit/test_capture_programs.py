"""Capture of small programs: records replay to eager's answers at other sizes, with memory as in eager."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dlcb.errors import UnsupportedError, UserError
from dlcb.frontend import torch_private as private
from dlcb.frontend.capture import capture
from dlcb.frontend.tracing.records import Captured
from dlcb.frontend.tracing.replay import replay


def check(program: Callable[..., Any], example: tuple[Any, ...], *others: tuple[Any, ...]) -> Captured:
    """Capture at the example; results and updated arguments are eager's at all given inputs."""
    captured = capture(program, example)
    for args in (example, *others):
        copies = [a.clone() if isinstance(a, Tensor) else a for a in args]
        expected, actual = program(*args), replay(captured, copies)
        pairs = [
            *zip(private.flatten(expected)[0], private.flatten(actual)[0], strict=True),
            *zip(args, copies, strict=True),
        ]
        for want, got in pairs:
            if isinstance(want, Tensor):
                torch.testing.assert_close(got, want, equal_nan=True)
            else:
                assert got == want
    return captured


def rand(*sizes: int) -> Tensor:
    return torch.randn(*sizes)


def ops(captured: Captured) -> list[str]:
    return [record.op for record in captured.records]


def test_literals_that_come_from_sizes_are_expressions() -> None:
    def heads(x: Tensor) -> Tensor:
        b, t, c = x.shape
        return x.view(b, t, 4, c // 4).transpose(1, 2).reshape(b, 4, -1)

    captured = check(heads, (rand(2, 3, 8),), (rand(5, 7, 12),), (rand(1, 1, 4),))
    assert not captured.pins
    assert str(captured.records[0]).split("  #")[0].endswith("x_1, 4, x_2 // 4)")


def test_python_functions_of_torch_are_seen_through() -> None:
    captured = check(lambda x: F.relu(1 - x) + F.dropout(x, training=False), (rand(3, 4),), (rand(1, 2),))
    assert ops(captured) == ["rsub", "relu", "add"]
    assert captured.records[0].line.startswith("test_capture_programs.py:")


def test_in_place_on_a_view_changes_its_base() -> None:
    def program(x: Tensor) -> tuple[Tensor, Tensor]:
        x = x * 1
        x[:, 1:].transpose(0, 1)[0] += 5
        y = x.view(-1)
        y[:2].zero_()
        return x, y

    captured = check(program, (rand(3, 4),), (rand(2, 5),))
    assert not captured.updates
    assert [a.of for a in captured.aliases] == [0]


def test_a_view_taken_before_a_write_sees_it() -> None:
    def program(x: Tensor) -> Tensor:
        y = x.clone()
        row = y[0]
        y.mul_(2)
        y.t()[1:].add_(1)
        return row + 1

    check(program, (rand(3, 4),), (rand(5, 2),))


def test_updates_of_arguments_are_reported() -> None:
    def program(cache: Tensor, new: Tensor, position: int) -> Tensor:
        cache[:, position] = new
        return cache.sum(1)

    captured = check(program, (rand(2, 8, 3), rand(2, 3), 5), (rand(4, 9, 3), rand(4, 3), 0))
    assert [u.target for u in captured.updates] == [captured.inputs[0].value]
    assert "select_scatter" in ops(captured)
    assert "position" in captured.inputs[2].symbols


def test_aliases_of_arguments_and_outputs_are_reported() -> None:
    def program(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y = x + 1
        return x[1:], y, y.t()

    captured = check(program, (rand(3, 4),), (rand(5, 2),))
    assert [(a.output, a.of) for a in captured.aliases] == [(0, captured.inputs[0].value), (2, 1)]


def test_out_and_copies_keep_the_targets_dtype() -> None:
    def program(x: Tensor) -> Tensor:
        y = torch.zeros(x.shape, dtype=torch.float64)
        torch.add(x, 1, out=y)
        y[0].copy_(x[1])
        y[..., 0] = 3
        return y

    check(program, (rand(3, 4),), (rand(2, 6),))


def test_index_tensors_and_masks_are_written_to() -> None:
    def program(x: Tensor, i: Tensor) -> Tensor:
        x = x.clone()
        x[:, i] = 1.5
        x[i] += x[0]
        x[x > 1] = 0
        return x[None, i]

    captured = check(program, (rand(4, 4), torch.tensor([1, 3])), (rand(6, 6), torch.tensor([0, 2, 5])))
    assert {"index_put", "masked_fill", "index"} <= set(ops(captured))


def test_splits_are_slices_with_expressions() -> None:
    def program(x: Tensor) -> tuple[Tensor, ...]:
        a, b, c = x.chunk(3, dim=-1)
        d, e = x.split([2, x.shape[-1] - 2], dim=-1)
        return a + b * c, d, e

    captured = check(program, (rand(2, 6),), (rand(3, 9),), (rand(1, 12),))
    assert ops(captured).count("slice") == 5


def test_unpacking_pins_a_size_with_its_line() -> None:
    def program(x: Tensor) -> Tensor:
        a, b = x
        return a - b

    captured = check(program, (rand(2, 5),), (rand(2, 3),))
    (pin,) = captured.pins
    assert (pin.symbol, pin.value) == ("x_0", 2)
    assert "unpacking at test_capture_programs.py" in pin.reason or "unpack" in pin.reason


def test_a_branch_on_sizes_goes_the_examples_way() -> None:
    def program(x: Tensor, y: Tensor) -> Tensor:
        return x + 1 if x.shape[0] > y.shape[0] else y * 2

    captured = check(program, (rand(5, 3), rand(3, 3)), (rand(9, 1), rand(2, 7)))
    assert [str(c) for c in captured.checks] == ["y_0 < x_0"]


def test_equal_sizes_are_shared_only_where_needed() -> None:
    captured = check(lambda x, y: x + y, (rand(4, 8), rand(4, 8)), (rand(3, 5), rand(3, 5)), (rand(3, 5), rand(1, 5)))
    assert not captured.pins
    captured = check(lambda x, y: x + y, (rand(4, 8), rand(1, 8)), (rand(3, 5), rand(1, 5)), (rand(3, 5), rand(3, 5)))
    assert not captured.pins


def test_a_size_that_the_model_refuses_to_vary_is_pinned_with_its_words() -> None:
    captured = check(nn.Linear(8, 3).eval(), (rand(2, 8),), (rand(7, 8),))
    (pin,) = captured.pins
    assert (pin.symbol, pin.value) == ("input_1", 8)


def test_a_check_that_changes_nothing_is_dropped() -> None:
    def program(x: Tensor) -> Tensor:
        if x.shape[0] > 1 and x.dtype == torch.float64:
            x = x + 1
        if x.shape[0] != 1:
            x = x.expand(x.shape[0], -1)
        return x * 2

    captured = check(program, (rand(4, 3),), (rand(1, 3),), (rand(0, 2),))
    assert not captured.checks


def test_loops_over_a_size_pin_it() -> None:
    def program(x: Tensor) -> Tensor:
        total = x[0]
        for i in range(1, x.shape[0]):
            total = total + x[i]
        return total

    captured = check(program, (rand(3, 5),), (rand(3, 2),))
    assert [(p.symbol, p.value) for p in captured.pins] == [("x_0", 3)]
    assert "range() at test_capture_programs.py" in captured.pins[0].reason


def test_constants_of_closures_become_weights() -> None:
    table = torch.arange(12.0).view(3, 4)
    captured = check(lambda x: x @ table + torch.tensor([1.0, 2, 3, 4]), (rand(2, 3),), (rand(6, 3),))
    assert [(w.name, w.kind) for w in captured.weights] == [("const_0", "constant"), ("const_1", "constant")]


def test_weights_have_their_names_and_tied_ones_stand_once() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(4, 4, bias=False)
            self.b = nn.Linear(4, 4)
            self.b.weight = self.a.weight
            self.register_buffer("scale", torch.ones(4))

        def forward(self, x: Tensor) -> Tensor:
            return self.b(self.a(x)) * self.scale

    captured = check(Tied().eval(), (rand(2, 4),), (rand(3, 4),))
    assert {w.name: w.kind for w in captured.weights} == {
        "a.weight": "parameter",
        "b.bias": "parameter",
        "scale": "buffer",
    }


@dataclass
class Result:
    hidden: Tensor
    size: int


def test_arguments_and_results_may_be_nested() -> None:
    def program(inputs: dict[str, list[Tensor]], scale: float) -> Result:
        return Result(inputs["xs"][0] * scale + inputs["xs"][1], inputs["xs"][0].shape[0] * 2)

    captured = capture(program, ({"xs": [rand(3, 2), rand(3, 2)]}, 0.5))
    assert [i.name for i in captured.inputs] == ["inputs_xs_0", "inputs_xs_1", "scale"]
    result = replay(captured, ({"xs": [torch.ones(5, 2), torch.ones(5, 2)]}, 0.5))
    assert result.size == 10
    assert torch.equal(result.hidden, torch.full((5, 2), 1.5))


def test_sizes_as_numbers_stay_expressions() -> None:
    check(lambda x: x.sum(0) / x.shape[0] + x.shape[1] / 4, (rand(3, 5),), (rand(7, 2),))
    check(lambda x: torch.arange(x.shape[0]) + torch.tensor(x.shape[1]), (rand(3, 5),), (rand(7, 2),))
    check(lambda x: x.numel() + len(x), (rand(3, 5),), (rand(7, 2),))


def test_dynamic_names_say_what_varies() -> None:
    captured = capture(lambda x, y: x + y, (rand(4, 3), rand(4, 3)), dynamic={"x": {0: "batch"}, "y": {0: "batch"}})
    assert {p.symbol for p in captured.pins} == {"x_1", "y_1"}
    assert [str(c) for c in captured.checks] == ["y_0 == x_0"]
    assert {p.symbol for p in capture(lambda x: x + 1, (rand(4, 3),), dynamic=False).pins} == {"x_0", "x_1"}
    with pytest.raises(UserError, match="'batch'"):
        capture(nn.Linear(3, 2).eval(), (rand(4, 3),), dynamic={"input": {1: "batch"}})


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (lambda x: x * x.sum().item(), "item: test_capture_programs.py"),
        (lambda x: x if x.sum() > 0 else -x, "__bool__: test_capture_programs.py"),
        (lambda x: x.unsqueeze_(0), "unsqueeze_: test_capture_programs.py"),
        (lambda x: x.expand(2, 3, 3).add_(1), "test_capture_programs.py"),
        (lambda x: {x}, "returns a set"),
    ],
)
def test_what_cannot_be_traced_is_named_with_its_line(program: Callable[..., Any], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message.replace("(", r"\(")):
        capture(program, (rand(3, 3),))


@pytest.mark.parametrize(
    ("program", "op", "why"),
    [
        (lambda x: x[x > 0], "index", "depends on elements"),
        (lambda x: x.nonzero(), "nonzero", "depends on elements"),
        (lambda x: torch.where(x > 0), "where", "depends on elements"),
        (lambda x: x.masked_select(x > 0), "masked_select", "depends on elements"),
        (lambda x: x.unique(return_counts=True), "unique", "depends on elements"),
        (lambda x: x.long().sum().item() + x, "item", "reads an element"),
        (lambda x: x + torch.rand(3), "rand", "random numbers"),
        (lambda x: F.dropout(x), "dropout", "random numbers"),
        (lambda x: x.clone().normal_(), "normal", "random numbers"),
    ],
)
def test_what_only_eager_can_do_is_recorded_with_the_reason(program: Callable[..., Any], op: str, why: str) -> None:
    (record,) = [r for r in capture(program, (rand(3, 3),)).records if r.why_eager]
    assert record.op == op
    assert why in record.why_eager


def test_an_example_that_fails_is_the_users_error() -> None:
    with pytest.raises(UserError, match="fails on its example inputs") as error:
        capture(lambda x: x @ x, (rand(2, 3),))
    assert error.value.__cause__ is not None


def test_a_module_keeps_its_state() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            return x * 2

    module = Counting().eval()
    capture(module, (rand(2),))
    assert module.calls == 0

    class Remembering(Counting):
        def forward(self, x: Tensor) -> Tensor:
            self.last = x
            return x

    with pytest.raises(UnsupportedError, match="assigns a tensor to 'last'"):
        capture(Remembering().eval(), (rand(2),))
