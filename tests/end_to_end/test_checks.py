"""Every kind of check, always on: what it refuses, in a text that names the argument, what was given and what was
expected; and a right call beside it, which is not refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from dlcb.errors import UserError
from dlcb.runtime.call import Step
from dlcb.runtime.plan import Launch
from dlcb.tests.end_to_end.agreement import compiled, observed, plan_of, rand
from dlcb.tests.programs.unit import Unit

HERE = r"test_checks\.py:\d+"


@dataclass(frozen=True)
class Check:
    program: Callable[..., Any]
    example: tuple[Any, ...]
    right: tuple[Any, ...]
    wrong: tuple[Any, ...]
    text: str


def add(x: Tensor, y: Tensor) -> Tensor:
    return x + y


def times(x: Tensor, k: int) -> Tensor:
    return x * k


def into(x: Tensor, y: Tensor) -> None:
    x.add_(y)


ADDED = (rand(4, 6), rand(4, 6))
CHECKS: dict[str, Check] = {
    "number of arguments": Check(add, ADDED, ADDED, ADDED[:1], r"add: compiled for the arguments \(x, y\); missing: y"),
    "kind": Check(add, ADDED, ADDED, (ADDED[0], 1.5), r"add: y must be a tensor, got float 1\.5"),
    "integer": Check(times, (rand(4), 3), (rand(4), -5), (rand(4), 2.5), r"times: k must be an int, got float 2\.5"),
    "rank": Check(add, ADDED, ADDED, (ADDED[0], rand(6)), r"add: y has rank 1 \(shape \[6\]\), expected rank 2"),
    "dtype": Check(
        add, ADDED, ADDED, (ADDED[0].double(), ADDED[1]), r"add: x has dtype torch\.float64, expected torch\.float32"
    ),
    "device": Check(add, ADDED, ADDED, (ADDED[0], ADDED[1].to("meta")), r"add: y is on meta, expected cpu"),
    "layout": Check(
        add,
        ADDED,
        ADDED,
        (ADDED[0].to_sparse(), ADDED[1]),
        r"add: x has layout torch\.sparse_coo, expected a dense tensor",
    ),
    "a size that a weight fixes": Check(
        nn.Linear(6, 3).eval(),
        (rand(4, 6),),
        (rand(9, 6),),
        (rand(4, 7),),
        r"Linear: input\.shape\[1\] is 7 but weight 'weight' needs 6 \(matmul, .*\)",
    ),
    "equal sizes": Check(
        torch.mm,
        (rand(4, 6), rand(6, 5)),
        (rand(2, 3), rand(3, 7)),
        (rand(4, 6), rand(5, 6)),
        r".*shape\[0\] is 5 but .*shape\[1\] is 6 \(matmul, .*: inner sizes differ\)",
    ),
    "divisibility": Check(
        lambda x: x.view(-1, 2),
        (rand(4, 6),),
        (rand(3, 2),),
        (rand(3, 5),),
        rf".*x\.shape\[0\]\*x\.shape\[1\] is 15 but must be divisible by 2 \(reshape, {HERE}: .*\)",
    ),
    "a bound": Check(
        lambda x: nn.functional.conv1d(x, torch.ones(2, 3, 4)),
        (rand(2, 3, 9),),
        (rand(1, 3, 4),),
        (rand(1, 3, 3),),
        rf".*x\.shape\[2\] is 3 but must be at least 4 \(convolution, {HERE}: the kernel is larger.*\)",
    ),
    "broadcasting": Check(
        add,
        ADDED,
        (rand(1, 6), rand(4, 1)),
        (rand(3, 6), rand(4, 6)),
        rf"add: x\.shape\[0\] is 3 but y\.shape\[0\] is 4 \(add, {HERE}: sizes that do not broadcast\)",
    ),
    "expanding": Check(
        lambda x, y: x.expand(y.shape) * 2,
        (rand(5, 6), rand(5, 6)),
        (rand(1, 6), rand(5, 6)),
        (rand(3, 6), rand(5, 6)),
        rf".*x\.shape\[0\] is 3 but y\.shape\[0\] is 5 \(expand, {HERE}: .*\)",
    ),
    "overflow": Check(
        lambda x: x + 1,
        (rand(4),),
        (rand(7),),
        (torch.zeros(1).expand(2**50),),
        r".*too large for one call: \w+ would take \d+ blocks of 256 threads, 2147483647 at most",
    ),
    "an update of shared memory": Check(
        into,
        ADDED,
        (rand(3, 2), rand(3, 2)),
        (ADDED[0][1:], ADDED[0][:-1]),
        r"into: x is updated in place, but shares memory with y; pass a copy of one of them, .*",
    ),
    "an update of an expanded tensor": Check(
        into,
        ADDED,
        ADDED,
        (rand(1, 6).expand(4, 6), ADDED[1]),
        r"into: x is updated in place, but is an expanded tensor",
    ),
}


@pytest.mark.parametrize("kind", CHECKS)
def test_a_check_names_the_argument_what_was_given_and_what_was_expected(kind: str) -> None:
    check = CHECKS[kind]
    model = Unit().add_program(check.program, check.example)
    steps: list[Step | None] = []
    with observed(model, steps.append):
        model(*check.right)
        assert steps
        steps.clear()
        for _ in range(2):
            with pytest.raises(UserError) as caught:
                model(*check.wrong)
            assert re.fullmatch(check.text, str(caught.value)), str(caught.value)
    assert not steps


def test_an_address_that_is_not_aligned_gets_a_variant_that_needs_no_alignment() -> None:
    model = Unit().add_program(lambda x: x * 2, (rand(4, 8),))

    def kernel(x: Tensor) -> str:
        (step,) = plan_of(model, (x,)).steps
        assert isinstance(step, Launch)
        return step.kernel

    memory = torch.zeros(65)
    aligned = memory[:64].view(8, 8)
    assert aligned.data_ptr() % 16 == 0
    assert kernel(aligned).endswith("_v4")
    assert kernel(memory[1:].view(8, 8)).endswith("_v1")


def test_a_weight_that_is_not_aligned_gets_a_plain_variant() -> None:
    class Biased(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.matrix, self.bias = nn.Parameter(rand(5, 8)), nn.Parameter(rand(8))

        def forward(self, x: Tensor) -> Tensor:
            return torch.relu(x @ self.matrix + self.bias)

    network = Biased().eval()
    model = compiled(network, (rand(3, 5),))
    steps: list[Step | None] = []

    def kernel(x: Tensor) -> str:
        steps.clear()
        with observed(model, steps.append), torch.no_grad():
            torch.testing.assert_close(model(x), network(x))
        (launch,) = [step for step in steps if isinstance(step, Launch)]
        return launch.kernel

    assert kernel(rand(7, 5)).endswith("_v4")
    network.bias.data = rand(9)[1:]
    assert re.search(r"_v1(_i64)?$", kernel(rand(7, 5)))
