"""Exported programs, compiled once: models at many shapes, state, ranges, and static sizes that vary where they may."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram, export

import dlcb
from dlcb.benchmarks.case import Case
from dlcb.benchmarks.zoo import SMALL
from dlcb.errors import UserError
from dlcb.frontend.capture.inputs import KnownDims
from dlcb.frontend.exported_program import load_exported, open_exported
from dlcb.runtime.compiled import CompiledModel
from dlcb.tests.end_to_end.agreement import same
from dlcb.tests.end_to_end.shapes import Judge

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*past_key_values.*:FutureWarning"),
]


def exported(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, **options: Any) -> Any:
    with torch.no_grad():
        return export(model.eval(), args, kwargs, **options)


def checked(program: ExportedProgram) -> CompiledModel:
    return dlcb.compile(program, check=True)


# Models


def model_of(case: Case, dtype: torch.dtype, dims: dict[int, Any]) -> tuple[nn.Module, ExportedProgram]:
    pytest.importorskip("transformers")
    network = case.build().to(dtype)
    torch.manual_seed(0)
    inputs = case.inputs(case.example, dtype)
    return network, exported(network, (), inputs, dynamic_shapes=dict.fromkeys(inputs, dims), strict=False)


IMAGES = ((3, 33, 33), (2, 34, 47), (3, 64, 35), (5, 48, 40), (4, 64, 64), (7, 41, 33))
"""Pictures that torch's export takes: it gives these sizes a least value."""


@pytest.mark.parametrize(
    ("name", "dtype"), [("resnet18", torch.float16), ("bert", torch.float32), ("bert", torch.float16)], ids=str
)
def test_an_exported_model_is_right_at_every_shape(name: str, dtype: torch.dtype, tmp_path: Path) -> None:
    case = SMALL[name]()
    free = {0: Dim.DYNAMIC, 1: Dim.DYNAMIC} if name == "bert" else {0: Dim.DYNAMIC, 2: Dim.DYNAMIC, 3: Dim.DYNAMIC}
    network, program = model_of(case, dtype, free)
    torch.export.save(program, tmp_path / "model.pt2")
    model = checked(load_exported(tmp_path / "model.pt2"))
    judge = Judge(model, network)
    shapes = case.shapes[:6] if name == "bert" else IMAGES
    assert len(shapes) >= 6
    for number, shape in enumerate(shapes):
        torch.manual_seed(number)
        judge.check_many(partial(case.inputs, shape, dtype), least=3)


def test_a_network_exported_with_static_sizes_takes_every_batch_and_image() -> None:
    case = SMALL["resnet18"]()
    network, program = model_of(case, torch.float32, {})
    model = checked(program)
    fixed = {d: s for d, s in model.dimensions().items() if not s.startswith("free")}
    assert fixed.keys() == {"x.shape[1]"}
    judge = Judge(model, network)
    for number, shape in enumerate(case.shapes[:6]):
        torch.manual_seed(number)
        judge.check(case.inputs(shape, torch.float32))


# Inputs, results and state


class Everything(nn.Module):
    """State that is updated, keyword arguments, nested results: views of inputs, ints, None."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 4)
        self.register_buffer("count", torch.zeros(4))
        self.scale = torch.full((4,), 0.5)

    def forward(self, x: Tensor, pair: tuple[Tensor, Tensor], *, k: Tensor | None = None, flag: bool = True) -> Any:
        self.count.add_(1)  # pyright: ignore
        y = self.linear(x) * self.scale + self.count
        pair[0].mul_(2)
        return {"y": y + k if k is not None else y, "rest": (x, 3, None, [x.shape[0], pair[1][1:]], flag)}


def everything(strict: bool) -> tuple[nn.Module, ExportedProgram]:
    torch.manual_seed(0)
    model, batch = Everything(), Dim("batch", min=3, max=64)
    example = arguments(5)
    return model, exported(
        model,
        example[0],
        example[1],
        dynamic_shapes={"x": {0: batch}, "pair": ({0: batch}, {0: batch}), "k": {0: batch}, "flag": None},
        strict=strict,
    )


def arguments(n: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    random = torch.Generator().manual_seed(n)
    x, a, b, k = (torch.randn(n, size, generator=random) for size in (8, 3, 2, 4))
    return (x, (a, b)), {"k": k, "flag": True}


@pytest.mark.parametrize("decomposed", [False, True])
@pytest.mark.parametrize("strict", [False, True])
def test_a_program_with_state_and_nested_results_does_as_the_exported_module(strict: bool, decomposed: bool) -> None:
    _, program = everything(strict)
    program = program.run_decompositions() if decomposed else program
    _, twin = everything(strict)
    eager = twin.module()
    model = checked(program)
    for n in (5, 4, 64, 17, 3, 31):
        (args, kwargs), (theirs, words) = arguments(n), arguments(n)
        with torch.no_grad():
            found, expected = model(*args, **kwargs), eager(*theirs, **words)
        same(found, expected, expected, f"{n} rows")
        same(args, theirs, theirs, f"{n} rows: arguments")
        assert found["rest"][0] is args[0] or found["rest"][0].data_ptr() == args[0].data_ptr()
        count = program.state_dict["count"]
        assert torch.equal(count, eager.state_dict()["count"]), "the state is the exported program's own"


def test_the_names_of_dims_are_those_that_were_given() -> None:
    _, program = everything(strict=True)
    model = dlcb.compile(program)
    assert model.size_names == {"batch": "x.shape[0]"}
    assert model.name == "Everything"


def test_a_range_is_a_check_and_small_sizes_are_ordinary() -> None:
    class Add(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return x + y

    def program(least: int) -> ExportedProgram:
        n = Dim("n", min=least, max=64)
        return exported(Add(), (torch.ones(8, 2), torch.ones(8, 2)), dynamic_shapes=({0: n}, {0: n}))

    model = dlcb.compile(program(2))
    for n in (1, 0, 2, 64):
        x = torch.randn(n, 2)
        assert torch.equal(model(x, x), x + x)
    with pytest.raises(UserError, match=r"x.shape\[0\] is 65 but must be at most 64: the export lets 'n' be 2 to 64"):
        model(torch.ones(65, 2), torch.ones(65, 2))
    with pytest.raises(UserError, match=r"y.shape\[0\] is 3 but x.shape\[0\] is 4"):
        model(torch.ones(4, 2), torch.ones(3, 2))
    with pytest.raises(UserError, match=r"x.shape\[0\] is 3 but must be at least 4: the export lets 'n' be 4 to 64"):
        dlcb.compile(program(4))(torch.ones(3, 2), torch.ones(3, 2))


def test_a_size_that_is_a_function_of_another_varies_with_it() -> None:
    class Twice(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return torch.cat([x, x]) + y

    n = Dim("n", min=2, max=32)
    program = exported(Twice(), (torch.ones(4, 3), torch.ones(8, 3)), dynamic_shapes=({0: n}, {0: 2 * n}))
    model = dlcb.compile(program)
    for rows in (2, 5, 32):
        x, y = torch.randn(rows, 3), torch.randn(2 * rows, 3)
        assert torch.equal(model(x, y), torch.cat([x, x]) + y)
    with pytest.raises(UserError, match=r"y.shape\[0\] is 9 but 2\*x.shape\[0\] is 10"):
        model(torch.ones(5, 3), torch.ones(9, 3))


# Static sizes


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        n, length, width = x.shape
        h = self.query(x).view(n, length, 2, 8).transpose(1, 2)
        weights = torch.softmax(h @ h.transpose(-1, -2) * 0.25, -1)
        return (weights @ h).transpose(1, 2).reshape(n, length, width) + x


@pytest.mark.parametrize("decomposed", [False, True])
def test_numbers_that_follow_from_sizes_do_not_fix_them(decomposed: bool) -> None:
    torch.manual_seed(0)
    network = Attention()
    program = exported(network, (torch.randn(3, 10, 16),))
    program = program.run_decompositions() if decomposed else program
    model = checked(program)
    dims = model.dimensions()
    assert dims["x.shape[0]"] == "free as x_0"
    assert dims["x.shape[1]"] == "free as x_1"
    assert dims["x.shape[2]"].startswith("pinned to 16")
    judge = Judge(model, network)
    for shape in ((3, 10), (1, 1), (5, 7), (2, 33), (16, 2), (7, 16)):
        judge.check({"x": torch.randn(*shape, 16)})
    text = model.explain()
    assert "view (test_exported.py:" in text
    assert ": 10 is x_1: the dim stays" in text
    assert "note: x.shape[0], x.shape[1]: static in the export, and no op needs these numbers" in text


class Static(nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *tensors: Tensor) -> Any:
        return self.function(*tensors)


F = nn.functional
X: tuple[int, ...] = (17, 11, 13)
PINNED: dict[str, tuple[Any, Sequence[tuple[int, ...]], set[str]]] = {
    "nothing": (lambda x: x.relu() * 3, [X], set()),
    "a divisor": (lambda x: x.sum(0) / x.shape[0], [X], {"tensors_0_0"}),
    "its root": (lambda x: x * x.shape[2] ** -0.5, [X], {"tensors_0_2"}),
    "a product": (lambda x: x.sum((0, 1)) / (x.shape[0] * x.shape[1]), [X], {"tensors_0_0", "tensors_0_1"}),
    "a part": (lambda x: x[:, : x.shape[1] // 2], [X], {"tensors_0_1"}),
    "all but one": (lambda x: x[:, : x.shape[1] - 1], [X], {"tensors_0_1"}),
    "the last": (lambda x: x[:, -1], [X], set()),
    "an element": (lambda x: x[:, x.shape[1] // 2], [X], {"tensors_0_1"}),
    "halves": (lambda x: x.split(x.shape[1] // 2 + 1, 1)[0], [X], {"tensors_0_1"}),
    "a range": (lambda x: x + torch.arange(x.shape[2]), [X], {"tensors_0_2"}),
    "a result": (lambda x: (x * 2, x.shape[1]), [X], {"tensors_0_1"}),
    "an expanded one": (lambda x, y: y.expand(x.shape[0], 5), [X, (1, 5)], {"tensors_0_0", "tensors_1_0"}),
    "merged dims": (lambda x: x.reshape(x.shape[0] * x.shape[1], -1), [X], set()),
    "merged and split": (lambda x: x.reshape(187, 13).relu().reshape(x.shape), [X], set()),
    "a window": (lambda x: F.avg_pool2d(x, x.shape[2:]), [(2, 3, 7, 7)], {"tensors_0_2", "tensors_0_3"}),
    "one": (lambda x: x * 2, [(1, 11)], {"tensors_0_0"}),
}
"""What a program makes of its sizes: the shapes of the example, and which sizes must stay."""


@pytest.mark.parametrize("name", PINNED)
def test_a_number_that_may_be_a_size_pins_it(name: str) -> None:
    function, shapes, pinned = PINNED[name]
    program = exported(Static(function), tuple(torch.randn(shape) for shape in shapes))
    opened = open_exported(program, None, "auto")
    assert isinstance(opened.dynamic, KnownDims)
    assert set(opened.dynamic.fixed) == pinned, opened.dynamic.fixed
    for why in opened.dynamic.fixed.values():
        assert why.startswith("its size") or "may be" in why


def test_the_size_of_a_resized_image_may_be_made_of_the_image() -> None:
    program = exported(Static(lambda x: F.interpolate(x, size=(14, 10))), (torch.randn(3, 5, 7, 5),))
    opened = open_exported(program, None, "auto")
    assert isinstance(opened.dynamic, KnownDims)
    assert "makes it [14, 10], which may be made of it" in opened.dynamic.fixed["tensors_0_2"]
    assert "tensors_0_3" in opened.dynamic.fixed


def test_static_sizes_stay_where_that_is_asked() -> None:
    program = exported(Attention(), (torch.randn(3, 10, 16),))
    assert dlcb.compile(program, dynamic=False).dimensions()["x.shape[0]"] == "pinned to 3: dynamic=False"
    model = dlcb.compile(program, dynamic={"x": {1: "length"}})
    assert model.dimensions()["x.shape[1]"] == "free as x_1"
    assert model.dimensions()["x.shape[0]"].startswith("pinned to 3")
    divided = exported(Static(PINNED["a divisor"][0]), (torch.randn(X),))
    with pytest.raises(UserError, match=r"dynamic lets tensors_0.shape\[0\] vary, which the export does not: div"):
        dlcb.compile(divided, dynamic={"tensors_0": {0: "n"}})


# Packages and errors


def test_a_package_is_what_was_loaded_from_the_file(tmp_path: Path) -> None:
    network = Attention()
    program = exported(network, (torch.randn(3, 10, 16),))
    model = dlcb.package(program, tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["Attention.dlcb"]
    x = torch.randn(4, 6, 16)
    with torch.no_grad():
        same(model(x), network(x), network.double()(x.double()), "package")
    dlcb.package(program, tmp_path / "other.dlcb")
    assert (tmp_path / "other.dlcb").is_file()


def test_what_is_no_exported_program_is_one_error(tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    with pytest.raises(UserError, match=r"model.pt2: no such file"):
        load_exported(path)
    path.write_bytes(b"not a zip")
    with pytest.raises(UserError, match=r"model.pt2: not an exported program that torch .* reads"):
        load_exported(path)
    torch.save({"a": torch.ones(2)}, path)
    with pytest.raises(UserError, match=r"model.pt2: not an exported program that torch .* reads"):
        load_exported(path)
    torch.export.save(exported(Attention(), (torch.randn(3, 10, 16),)), path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(UserError, match=r"model.pt2: not an exported program that torch .* reads"):
        load_exported(path)


def test_a_program_needs_example_inputs() -> None:
    program = exported(Attention(), (torch.randn(3, 10, 16),))
    program.example_inputs = None
    with pytest.raises(UserError, match="the exported program has no example inputs; give example_inputs"):
        dlcb.compile(program)
    assert dlcb.compile(program, (torch.randn(3, 10, 16),)).dimensions()["x.shape[0]"] == "free as x_0"
