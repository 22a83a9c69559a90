"""The table of op meanings: for every op of `dlcb.graph`, small inputs with torch as the witness, and refused ones.

`SAMPLES` and `REFUSALS` are plain lists; who computes ops in some way (the evaluator, generated kernels) walks them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from xdsl.dialects.builtin import ArrayAttr, FloatAttr, IntAttr, ModuleOp, UnitAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from dlcb.dialects import graph
from dlcb.dialects.graph.base import GraphOp, ShapeScope
from dlcb.dialects.graph.creation import number_attr
from dlcb.dialects.graph.structure import FuncOp, ReturnOp
from dlcb.dialects.graph.types import Dims, dims_attr, tensor, type_of
from dlcb.dialects.shape.expr import Expr
from dlcb.dialects.types import FLOATS, NAMES, TYPE_NAME, f64

DTYPE = {
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "i1": torch.bool,
    "ui8": torch.uint8,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
}
TOLERANCE = {"f64": 1e-11, "f32": 4e-6, "f16": 2e-3, "bf16": 1.6e-2}
OP: dict[str, type[GraphOp]] = {op.name.removeprefix("dlcb.graph."): op for op in graph.OPS if issubclass(op, GraphOp)}
UNIT = UnitAttr()
NAN, INF = float("nan"), float("inf")


class Maker(ShapeScope):
    """Makes ops whose result sizes are what they infer; what they require is for others to check."""

    def __init__(self) -> None:
        self.ops: list[Operation] = []
        self._names: dict[Expr, str] = {}

    def require(self, kind: str, lhs: Expr, rhs: Expr, what: str) -> None:
        pass

    def op(self, name: str, operands: Sequence[SSAValue], element: str, **properties: Any) -> SSAValue:
        def create(dims: Dims) -> GraphOp:
            return OP[name].make(operands, [tensor(dims, NAMES[element])], "model.py:12", **properties)

        draft = create(())
        (sizes,) = draft.infer(self)
        draft.erase()
        made = create(tuple(map(self.named, sizes)))
        self.ops.append(made)
        return made.results[0]

    def named(self, size: Expr) -> int | str:
        if size.value is not None:
            return max(size.value, 0)
        return size.name or self._names.setdefault(size, f"d{len(self._names)}")


@dataclass(frozen=True)
class Input:
    dims: Dims
    tensor: torch.Tensor

    @property
    def element(self) -> str:
        return next(name for name, dtype in DTYPE.items() if dtype == self.tensor.dtype)

    def symbolic(self, prefix: str) -> Input:
        return Input(tuple(f"{prefix}_{i}" for i in range(len(self.dims))), self.tensor)


Build = Callable[..., SSAValue]
Properties = dict[str, Any]


@dataclass(frozen=True)
class Sample:
    """`@main` applies `build(maker, *arguments)`; `witness(*tensors)` gives the result, of f64 tensors for floats."""

    name: str
    op: type[GraphOp]
    inputs: tuple[Input, ...]
    build: Build
    witness: Callable[..., torch.Tensor]

    @property
    def tensors(self) -> tuple[torch.Tensor, ...]:
        return tuple(i.tensor for i in self.inputs)

    @property
    def arrays(self) -> list[Any]:
        """The inputs as the evaluator takes them."""
        return [to_array(t) for t in self.tensors]

    def module(self) -> ModuleOp:
        return module_of(self.inputs, self.build)

    def expected(self) -> Any:
        wide = [t.double() if t.is_floating_point() else t for t in self.tensors]
        return to_array(self.witness(*wide))


@dataclass(frozen=True)
class Refusal:
    """Inputs that the op must refuse with a text that names both values."""

    name: str
    op: type[GraphOp]
    inputs: tuple[Input, ...]
    build: Build
    values: tuple[int, ...]

    @property
    def arrays(self) -> list[Any]:
        return [to_array(i.tensor) for i in self.inputs]

    def module(self, symbolic: bool) -> ModuleOp:
        inputs = [i.symbolic(f"x{n}") if symbolic else i for n, i in enumerate(self.inputs)]
        return module_of(inputs, self.build)


def to_array(t: torch.Tensor) -> Any:
    return (t.float() if t.dtype in (torch.float16, torch.bfloat16) else t).numpy()


def module_of(inputs: Sequence[Input], build: Build) -> ModuleOp:
    block = Block(arg_types=[tensor(i.dims, NAMES[i.element]) for i in inputs])
    maker = Maker()
    result = build(maker, *block.args)
    block.add_ops(maker.ops)
    block.add_op(ReturnOp.make([result]))
    names = [f"x{n}" for n in range(len(inputs))]
    return ModuleOp([FuncOp.build_from("main", block, names, ["input"] * len(names))])


def differs(actual: Any, expected: Any, element: Attribute) -> str | None:
    """In what the result differs from the witness's; None where it is as close as its type allows."""
    if actual.shape != expected.shape:
        return f"sizes {actual.shape}, expected {expected.shape}"
    if element not in FLOATS:
        return None if np.array_equal(actual, expected) else f"{actual}, expected {expected}"
    finite = np.isfinite(expected)
    if not np.array_equal(actual[~finite], expected[~finite], equal_nan=True):
        return f"{actual}, expected {expected}"
    have, want = actual[finite].astype(np.float64), expected[finite].astype(np.float64)
    allowed = TOLERANCE[TYPE_NAME[element]] * (np.abs(want) + np.abs(want).max(initial=0.0)) / 2
    wrong = ~(np.abs(have - want) <= allowed)
    return f"{have[wrong]}, expected {want[wrong]}" if wrong.any() else None


# --- inputs ---

_generator = torch.Generator().manual_seed(7)


def size_of(dim: int | tuple[str, int]) -> int:
    return dim if isinstance(dim, int) else dim[1]


def given(element: str, *dims: int | tuple[str, int], low: float = -3, high: float = 3) -> Input:
    """Random elements; a dim is a size, or the name of a symbol and its value."""
    sizes = list(map(size_of, dims))
    uniform = torch.rand(sizes, generator=_generator, dtype=torch.float64) * (high - low) + low
    if element == "i1":
        uniform = uniform > (low + high) / 2
    elif not DTYPE[element].is_floating_point:
        uniform = uniform.floor().long()
    return Input(tuple(d if isinstance(d, int) else d[0] for d in dims), uniform.to(DTYPE[element]))


def exactly(element: str, values: Any) -> Input:
    t = torch.tensor(values, dtype=DTYPE[element])
    return Input(tuple(t.shape), t)


def int_list(*values: int) -> ArrayAttr[IntAttr]:
    return ArrayAttr(map(IntAttr, values))


SAMPLES: list[Sample] = []
REFUSALS: list[Refusal] = []


def sample(
    name: str,
    inputs: Sequence[Input],
    witness: Callable[..., torch.Tensor],
    element: str | None = None,
    note: str = "",
    **properties: Any,
) -> None:
    """One op of these operands; the result has the first one's element type, or `element`."""
    kind = element or inputs[0].element

    def build(maker: Maker, *arguments: SSAValue) -> SSAValue:
        return maker.op(name, arguments, kind, **properties)

    shapes = " ".join(f"{i.element}{list(i.dims)}".replace("'", "") for i in inputs)
    title = f"{name} {shapes}" + (f" {note}" if note else "")
    SAMPLES.append(Sample(title, OP[name], tuple(inputs), build, witness))


def refused(
    name: str, inputs: Sequence[Input], values: tuple[int, ...], element: str | None = None, **properties: Any
) -> None:
    def build(maker: Maker, *arguments: SSAValue) -> SSAValue:
        return maker.op(name, arguments, element or inputs[0].element, **properties)

    REFUSALS.append(Refusal(f"{name} {values}", OP[name], tuple(inputs), build, values))


# --- elementwise ---

N, M = ("n", 7), ("m", 5)
SPECIAL = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 3.0]
PAIRS = list(zip(*itertools.product(SPECIAL, SPECIAL), strict=True))

UNARY: dict[str, tuple[Callable[..., torch.Tensor], float, float]] = {
    "neg": (torch.neg, -3, 3),
    "abs": (torch.abs, -3, 3),
    "sign": (torch.sign, -3, 3),
    "exp": (torch.exp, -3, 3),
    "exp2": (torch.exp2, -3, 3),
    "expm1": (torch.expm1, -3, 3),
    "log": (torch.log, 0.1, 3),
    "log2": (torch.log2, 0.1, 3),
    "log10": (torch.log10, 0.1, 3),
    "log1p": (torch.log1p, -0.9, 3),
    "sqrt": (torch.sqrt, 0, 3),
    "rsqrt": (torch.rsqrt, 0.1, 3),
    "sin": (torch.sin, -3, 3),
    "cos": (torch.cos, -3, 3),
    "tan": (torch.tan, -1.4, 1.4),
    "tanh": (torch.tanh, -3, 3),
    "asin": (torch.asin, -1, 1),
    "acos": (torch.acos, -1, 1),
    "atan": (torch.atan, -3, 3),
    "sinh": (torch.sinh, -3, 3),
    "cosh": (torch.cosh, -3, 3),
    "asinh": (torch.asinh, -3, 3),
    "acosh": (torch.acosh, 1.1, 3),
    "atanh": (torch.atanh, -0.9, 0.9),
    "erf": (torch.erf, -3, 3),
    "erfc": (torch.erfc, -3, 3),
    "lgamma": (torch.lgamma, 3, 9),
    "floor": (torch.floor, -3, 3),
    "ceil": (torch.ceil, -3, 3),
    "trunc": (torch.trunc, -3, 3),
    "round": (torch.round, -3, 3),
    "relu": (torch.relu, -3, 3),
    "sigmoid": (torch.sigmoid, -3, 3),
    "silu": (F.silu, -3, 3),
    "gelu": (F.gelu, -3, 3),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), -3, 3),
}
for name_, (f_, low_, high_) in UNARY.items():
    for element_, dims_ in (("f32", (N, 3)), ("f16", (2, 3, 1, 5)), ("bf16", (13,)), ("f64", ()), ("f32", (0, 4))):
        sample(name_, [given(element_, *dims_, low=low_, high=high_)], f_)
    if name_ not in ("silu", "gelu", "gelu_tanh"):
        sample(name_, [exactly("f32", SPECIAL)], f_, note="special")
for name_ in ("neg", "abs", "sign", "relu"):
    for element_ in ("i32", "i64"):
        sample(name_, [given(element_, N, 3, low=-9, high=9)], UNARY[name_][0])
sample("round", [exactly("f64", [0.5, 1.5, 2.5, -0.5, -1.5])], torch.round, note="ties")

BINARY: dict[str, tuple[Callable[..., torch.Tensor], str]] = {
    "add": (torch.add, "fi"),
    "sub": (torch.sub, "fi"),
    "mul": (torch.mul, "fi"),
    "div": (torch.div, "f"),
    "floordiv": (torch.floor_divide, "fi"),
    "truncdiv": (lambda a, b: torch.div(a, b, rounding_mode="trunc"), "fi"),
    "mod": (torch.remainder, "fi"),
    "fmod": (torch.fmod, "fi"),
    "atan2": (torch.atan2, "f"),
    "hypot": (torch.hypot, "f"),
    "copysign": (torch.copysign, "f"),
    "maximum": (torch.maximum, "fi"),
    "minimum": (torch.minimum, "fi"),
}
EXACT_ONLY = ("floordiv", "truncdiv", "mod", "fmod")
"""A small change of an operand is a large one of the result: their halves are compared on exact quotients only."""


def _shapes() -> list[tuple[str, tuple[Any, ...], tuple[Any, ...]]]:
    return [
        ("f32", (N, 1, M), (3, 1)),
        ("f32", (("n", 1), 4), (("k", 3), 4)),
        ("f16", (2, 3, 1, 5), (2, 3, 1, 5)),
        ("bf16", (13,), ()),
        ("f64", (), ()),
        ("f32", (0, 4), (1, 4)),
        ("i32", (N, 3), (3,)),
        ("i64", (1, 1), (2, 11)),
    ]


for name_, (f_, kinds_) in BINARY.items():
    for element_, lhs_, rhs_ in _shapes():
        if element_[0] == "i" and "i" in kinds_:
            rhs = given(element_, *rhs_, low=1, high=6)
            sample(name_, [given(element_, *lhs_, low=-20, high=20), rhs], f_)
        elif element_[0] != "i":
            low_, high_ = (1, 3) if name_ in EXACT_ONLY or name_ == "div" else (-3, 3)
            sample(name_, [given(element_, *lhs_), given(element_, *rhs_, low=low_, high=high_)], f_)
    sample(name_, [exactly("f64", PAIRS[0]), exactly("f64", PAIRS[1])], f_, note="special")
for name_ in EXACT_ONLY:
    signs = list(zip(*itertools.product([-7, -6, 0, 6, 7], [-3, -1, 2, 3]), strict=True))
    sample(name_, [exactly("i64", signs[0]), exactly("i64", signs[1])], BINARY[name_][0], note="signs")
for element_, lhs_, rhs_ in _shapes():
    base = given(element_, *lhs_, low=0.1 if element_[0] != "i" else -3, high=4)
    sample("pow", [base, given(element_, *rhs_, low=0 if element_[0] == "i" else -2, high=3)], torch.pow)
sample("pow", [exactly("f64", PAIRS[0]), exactly("f64", PAIRS[1])], torch.pow, note="special")
sample("add", [given("f32", N, 3), exactly("f64", 0.1)], lambda a, b: a + b, element="f32", note="number")
sample("mul", [given("f16", N, 3), exactly("f32", 1.5)], lambda a, b: a * b, element="f16", note="number")
sample("add", [exactly("i32", [2**31 - 1, -(2**31)]), exactly("i32", [1, -1])], torch.add, note="wraps")

for name_, f_ in (("and", torch.bitwise_and), ("or", torch.bitwise_or), ("xor", torch.bitwise_xor)):
    for element_, lhs_, rhs_ in (("i1", (N, 1, M), (3, 1)), ("i32", (13,), ()), ("i64", (2, 3), (2, 3))):
        sample(name_, [given(element_, *lhs_, low=-9, high=9), given(element_, *rhs_, low=-9, high=9)], f_)
for name_, f_ in (("shl", torch.bitwise_left_shift), ("shr", torch.bitwise_right_shift)):
    for element_ in ("ui8", "i8", "i16", "i32", "i64"):
        sample(name_, [given(element_, 40, low=-100, high=100), given(element_, 40, low=-2, high=9)], f_)
for element_ in ("f32", "f64", "f16"):
    sample("fma", [given(element_, N, 3), given(element_, 3), given(element_, N, 1)], lambda a, b, c: a * b + c)
for element_ in ("ui8", "i8", "i16"):
    for name_, f_ in (("add", torch.add), ("sub", torch.sub), ("mul", torch.mul), ("maximum", torch.maximum)):
        sample(name_, [given(element_, 50, low=-128, high=128), given(element_, 50, low=-128, high=128)], f_)
    for name_ in ("neg", "abs", "sign"):
        sample(name_, [given(element_, 50, low=-128, high=128)], getattr(torch, name_))
for element_, dims_ in (("i1", (N, 3)), ("i32", (5,)), ("i64", ())):
    sample("not", [given(element_, *dims_, low=-9, high=9)], torch.bitwise_not)

COMPARISONS = {"eq": torch.eq, "ne": torch.ne, "lt": torch.lt, "le": torch.le, "gt": torch.gt, "ge": torch.ge}
for name_, f_ in COMPARISONS.items():
    for element_ in ("f32", "f16", "bf16", "f64", "i32", "i64", "i1"):
        lhs = given(element_, N, 1, 3, low=-2, high=3)
        rhs = Input((1, 2, 3), lhs.tensor[:1].expand(1, 2, 3).clone())
        sample(name_, [lhs, rhs], f_, element="i1")
    sample(name_, [exactly("f32", PAIRS[0]), exactly("f32", PAIRS[1])], f_, element="i1", note="special")
    sample(name_, [given("i32", 9), given("f64", 9)], f_, element="i1", note="mixed")

for from_, to_ in itertools.product(DTYPE, DTYPE):
    cast = lambda x, to=to_: x.to(DTYPE[to]).to(torch.float64) if to in TOLERANCE else x.to(DTYPE[to])  # noqa: E731
    sample("cast", [given(from_, N, 3, low=-9, high=9)], cast, element=to_, note=f"to {to_}")
HALF_TIES = [
    1 + 2**-11,
    1 + 3 * 2**-11,
    1 + 2**-9,
    1 + 2**-8,
    1 + 3 * 2**-8,
    65519.0,
    65520.0,
    1e-8,
    6e-8,
    NAN,
    -INF,
    3e38,
]
for to_ in ("f16", "bf16"):
    rounded = lambda x, to=to_: x.float().to(DTYPE[to]).double()  # noqa: E731
    sample("cast", [exactly("f32", HALF_TIES)], rounded, element=to_, note=f"rounds to {to_}")
sample("cast", [exactly("i64", [2**31, -(2**31) - 1, 5])], lambda x: x.to(torch.int32), element="i32", note="wraps")
sample("cast", [exactly("f64", [0.5, -0.5, NAN, 0.0, -0.0])], lambda x: x.to(torch.bool), element="i1", note="truth")

for element_ in ("f32", "f16", "f64", "i32", "i64", "i1"):
    inputs_ = [given("i1", N, 1), given(element_, 3), given(element_, N, 3)]
    sample("where", inputs_, torch.where, element=element_)
sample("where", [given("i1"), given("f32"), exactly("f64", 2.0)], torch.where, element="f32", note="number")
sample("isnan", [exactly("f32", SPECIAL)], torch.isnan, element="i1")
sample("isnan", [exactly("f16", [[NAN, 1.0], [INF, -2.0]])], torch.isnan, element="i1")
sample("isnan", [exactly("bf16", [NAN, 1.0])], torch.isnan, element="i1")
sample("isnan", [exactly("f64", NAN)], torch.isnan, element="i1")

for name_ in (*BINARY, "pow", "and", "or", "xor", *COMPARISONS):
    kind_ = "i32" if name_ in ("and", "or", "xor") else "f32"
    result_ = "i1" if name_ in COMPARISONS else kind_
    refused(name_, [given(kind_, 2, 3), given(kind_, 2, 4)], (3, 4), element=result_)
refused("where", [given("i1", 5), given("f32", 5), given("f32", 6)], (5, 6), element="f32")

# --- creation ---

for value_, element_, dims_ in (
    (1.5, "f32", (2, 3)),
    (0.1, "f16", (3,)),
    (-INF, "bf16", ()),
    (7, "i64", (0, 2)),
    (True, "i1", (4,)),
    (-3, "i32", (1, 1, 1, 1)),
):
    full_ = lambda s=dims_, v=value_, e=element_: torch.full(s, v, dtype=DTYPE[e]).to(  # noqa: E731
        torch.float64 if e in TOLERANCE else DTYPE[e]
    )
    sample("full", [], full_, element=element_, note=str(value_), shape=dims_attr(dims_), value=number_attr(value_))


def iota(note: str, element: str, start: int | str, step: int | str, count: int | str, numbers: list[int]) -> None:
    """The argument `x` only gives the symbols `n` and `m` their values, 7 and 5."""
    properties: Properties = {
        "start": dims_attr((start,)),
        "step": dims_attr((step,)),
        "shape": dims_attr((count,)),
    }

    def build(maker: Maker, *arguments: SSAValue) -> SSAValue:
        return maker.op("iota", [], element, **properties)

    def witness(*arguments: torch.Tensor) -> torch.Tensor:
        return torch.tensor(numbers, dtype=DTYPE[element])

    SAMPLES.append(Sample(f"iota {element} {note}", OP["iota"], (given("f32", N, M),), build, witness))


iota("literal", "i64", 3, 2, 4, [3, 5, 7, 9])
iota("down", "i32", 5, -2, 3, [5, 3, 1])
iota("empty", "i64", 0, 1, 0, [])
iota("symbols", "i64", "m", "n", "m", [5, 12, 19, 26, 33])

for element_ in ("i64", "i32", "f32", "f16", "f64"):
    number_ = lambda x, e=element_: torch.tensor(7, dtype=torch.float64 if e in TOLERANCE else DTYPE[e])  # noqa: E731
    SAMPLES.append(
        Sample(
            f"size {element_}",
            OP["size"],
            (given("f32", N),),
            lambda maker, x, e=element_: maker.op("size", [], e, dim=dims_attr(("n",)), shape=dims_attr(())),
            number_,
        )
    )

# --- moves ---


def reshape(x: Input, *shape: int | str) -> None:
    values = dict(zip(x.dims, x.tensor.shape, strict=True))
    want = [values.get(d, d) for d in shape]
    sample("reshape", [x], lambda t: t.reshape(want), note=f"to {list(shape)}", shape=dims_attr(shape))


reshape(given("f32", 2, 3, 4), 6, 4)
reshape(given("f16", 6, 4), 2, 3, 2, 2)
reshape(given("i64", 2, 3, 4), 4, 3, 2)
reshape(given("f64"), 1, 1)
reshape(given("f64", 1, 1, 1))
reshape(given("i1", 0, 3), 5, 0)
reshape(given("f32", N, 6), "n", 2, 3)
reshape(given("bf16", N, 2, 3), "n", 6)
reshape(given("f32", N, 1, M), "n", "m")
reshape(given("f32", 6, N), 2, 3, "n")
reshape(given("f32", 4, N), "n", 4)
reshape(given("i32", N, M, 2), 2, "m", "n")
refused("reshape", [given("f32", 2, 3)], (6, 8), shape=dims_attr((2, 4)))

for dims_, order_ in (((N, 3), (1, 0)), ((2, 3, M, 5), (0, 2, 3, 1)), ((4,), (0,)), ((), ()), ((0, 3, 2), (2, 0, 1))):
    for element_ in ("f32", "f16", "i64", "i1"):
        permuted = lambda x, o=order_: x.permute(o)  # noqa: E731
        sample("permute", [given(element_, *dims_)], permuted, note=str(order_), order=int_list(*order_))

for x_, shape_, sizes_ in (
    (given("f32", 1, 3), (4, 3), (4, 3)),
    (given("f16", 3), (2, 1, 3), (2, 1, 3)),
    (given("i64"), (2, 2), (2, 2)),
    (given("f32", N, 1), ("n", 5), (7, 5)),
    (given("f32", ("k", 1), N), ("n", "n"), (7, 7)),
    (given("i1", 1), (0,), (0,)),
):
    expanded = lambda x, s=sizes_: x.expand(s)  # noqa: E731
    sample("expand", [x_], expanded, note=f"to {list(shape_)}", shape=dims_attr(shape_))
refused("expand", [given("f32", 2, 3)], (3, 4), shape=dims_attr((2, 4)))

for x_, starts_, shape_, steps_, index_ in (
    (given("f32", 7), (2,), (3,), (1,), np.s_[2:5]),
    (given("f16", 7), (1,), (3,), (2,), np.s_[1:7:2]),
    (given("i64", N, 4), (0, 1), ("n", 2), (1, 2), np.s_[:, 1::2]),
    (given("f64", N, M), ("m", 0), (2, "m"), (1, 1), np.s_[5:]),
    (given("i1", 3, 5, 2), (1, 0, 0), (1, 5, 2), (1, 1, 1), np.s_[1:2]),
    (given("f32", 3), (3,), (0,), (1,), np.s_[3:]),
):
    attributes_: Properties = {"starts": dims_attr(starts_), "shape": dims_attr(shape_), "steps": dims_attr(steps_)}
    sample("slice", [x_], lambda x, i=index_: x[i], note=f"{starts_} {shape_} {steps_}", **attributes_)
refused("slice", [given("f32", 7)], (8, 7), starts=dims_attr((2,)), shape=dims_attr((6,)), steps=dims_attr((1,)))

for element_, dims_ in (("f32", (N, 3)), ("bf16", (2, 0)), ("i1", ())):
    sample("copy", [given(element_, *dims_)], torch.clone)

for dims_, axes_ in (((N, 3), (0,)), ((2, 3, M, 5), (1, 3)), ((1,), (0,)), ((0, 3), (0, 1))):
    for element_ in ("f32", "bf16", "i32"):
        flipped = lambda x, a=axes_: x.flip(a)  # noqa: E731
        sample("flip", [given(element_, *dims_)], flipped, note=str(axes_), axes=int_list(*axes_))

for x_, low_, high_, value_ in (
    (given("f32", 3, 4), (1, 0), (0, 2), 0.5),
    (given("f16", N), (2,), (3,), -INF),
    (given("i64", N, 2), (0, 1), (1, 0), 9),
    (given("i1", 2, 2), (0, 1), (0, 1), True),
    (given("f64", 0), (2,), (1,), 1.25),
    (given("bf16", 2, 1, N), (0, 0, 0), (0, 1, 0), 0.0),
):
    widths_ = [w for pair in zip(reversed(low_), reversed(high_), strict=True) for w in pair]
    padded = lambda x, w=widths_, v=value_: F.pad(x, w, value=v)  # noqa: E731
    attributes_: Properties = {"low": dims_attr(low_), "high": dims_attr(high_), "value": number_attr(value_)}
    sample("pad", [x_], padded, note=f"{low_} {high_}", **attributes_)

for x_, axis_, size_, step_, gap_ in (
    (given("f32", 2, N), 1, 3, 2, 1),
    (given("f16", M, 3), 0, 2, 1, 1),
    (given("i64", 7), 0, 7, 3, 1),
    (given("bf16", 2, N, 3), 1, 2, 3, 4),
    (given("i1", 2, 3, 4), 2, 1, 2, 1),
    (given("f64", 0, 5), 1, 2, 2, 2),
):
    numbers_ = {"axis": axis_, "size": size_, "step": step_, "dilation": gap_}
    windows_ = lambda x, a=axis_, k=size_, s=step_, d=gap_: x.unfold(a, d * (k - 1) + 1, s)[..., ::d]  # noqa: E731
    attributes_: dict[str, Any] = {name: IntAttr(n) for name, n in numbers_.items()}
    sample("unfold", [x_], windows_, note=str(numbers_), **attributes_)
refused(
    "unfold", [given("f32", 3)], (5, 3),
    axis=IntAttr(0), size=IntAttr(3), step=IntAttr(1), dilation=IntAttr(2),
)  # fmt: skip

for x_, offset_, first_, second_ in (
    (given("f32", N, M), 0, 0, 1),
    (given("f16", 3, N), 2, 0, 1),
    (given("i64", 2, M, 4), -1, 1, 2),
    (given("bf16", M, 2, N), 1, 2, 0),
    (given("f64", 3, 2), 5, 0, 1),
    (given("i1", 0, 4), -1, 0, 1),
):
    numbers_ = {"offset": offset_, "first": first_, "second": second_}
    along_ = lambda x, o=offset_, a=first_, b=second_: torch.diagonal(x, o, a, b)  # noqa: E731
    diagonal_: dict[str, Any] = {name: IntAttr(n) for name, n in numbers_.items()}
    sample("diagonal", [x_], along_, note=str(numbers_), **diagonal_)

for inputs_, axis_ in (
    ([given("f32", 2, 3), given("f32", 4, 3)], 0),
    ([given("f16", 2, N, 3), given("f16", 2, M, 3), given("f16", 2, 1, 3)], 1),
    ([given("i64", 0, 2), given("i64", 3, 2)], 0),
    ([given("i64", N, 2), given("i64", ("k", 0), 2)], 0),
    ([given("bf16", 2, 3)], 1),
    ([given("i1", 5), given("i1", 2)], 0),
    ([given("f64", 1, 2, 3, 1), given("f64", 1, 2, 3, 4)], 3),
):
    joined = lambda *xs, a=axis_: torch.cat(xs, a)  # noqa: E731
    sample("concat", inputs_, joined, note=str(axis_), axis=IntAttr(axis_))
refused("concat", [given("f32", 2, 3), given("f32", 2, 4)], (3, 4), axis=IntAttr(0))


def inserted(base: torch.Tensor, src: torch.Tensor, index: Any) -> torch.Tensor:
    out = base.clone()
    out[index] = src
    return out


for base_, src_, starts_, steps_, index_ in (
    (given("f32", 7, 3), given("f32", 2, 3), (4, 0), (1, 1), np.s_[4:6]),
    (given("f16", 7), given("f16", 3), (1,), (2,), np.s_[1:7:2]),
    (given("i64", N, 4), given("i64", N, 2), (0, 1), (1, 2), np.s_[:, 1::2]),
    (given("f32", N, M), given("f32", 1, M), ("m", 0), (1, 1), np.s_[5:6]),
    (given("i1", 4), given("i1", 0), (2,), (1,), np.s_[2:2]),
    (given("f64", 2, 2), given("f64", 2, 2), (0, 0), (1, 1), np.s_[:]),
):
    written = lambda a, c, i=index_: inserted(a, c, i)  # noqa: E731
    sample("insert", [base_, src_], written, note=str(starts_), starts=dims_attr(starts_), steps=dims_attr(steps_))
refused("insert", [given("f32", 7), given("f32", 6)], (8, 7), starts=dims_attr((2,)), steps=dims_attr((1,)))

# --- reductions ---


def reduction(
    name: str, f: Callable[..., torch.Tensor], x: Input, axes: tuple[int, ...], keep: bool, element: str
) -> None:
    properties: Properties = {"axes": int_list(*axes)} | ({"keep": UNIT} if keep else {})
    sample(
        name, [x], lambda t: f(t, axes, keep), element=element, note=f"{axes}{' keep' if keep else ''}", **properties
    )


def over(f: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """A reduction over one dim as one over several, the last ones first."""

    def all_axes(x: torch.Tensor, axes: tuple[int, ...], keep: bool) -> torch.Tensor:
        for axis in sorted(axes, reverse=True):
            x = f(x, axis, keep)
        return x

    return all_axes


SHAPES = [((N, 3), (1,)), ((2, M, 3, 5), (1, 3)), ((13,), (0,)), ((2, 3, N), (0, 1, 2)), ((3, 1), (1,))]
REDUCTIONS: dict[str, tuple[Callable[..., torch.Tensor], Sequence[str]]] = {
    "sum": (lambda x, a, k: torch.sum(x, a, k), ("f32", "f16", "bf16", "f64", "i64")),
    "prod": (over(torch.prod), ("f32", "f64", "i64")),
    "mean": (lambda x, a, k: torch.mean(x, a, k), ("f32", "f16", "bf16", "f64")),
    "amax": (lambda x, a, k: torch.amax(x, a, k), ("f32", "f16", "f64", "i32", "i64", "i1")),
    "amin": (lambda x, a, k: torch.amin(x, a, k), ("f32", "bf16", "f64", "i32", "i64", "i1")),
    "any": (over(torch.any), ("i1",)),
    "all": (over(torch.all), ("i1",)),
}
for name_, (f_, elements_) in REDUCTIONS.items():
    for element_ in elements_:
        for k, (dims_, axes_) in enumerate(SHAPES):
            reduction(name_, f_, given(element_, *dims_), axes_, k % 2 == 0, element_)
    if name_ not in ("amax", "amin"):
        reduction(name_, f_, given(elements_[0], N, ("z", 0)), (1,), False, elements_[0])
    reduction(name_, f_, given(elements_[0], 0, 4), (1,), False, elements_[0])
for name_ in ("sum", "amax", "amin"):
    reduction(name_, REDUCTIONS[name_][0], exactly("f32", [[1.0, NAN], [INF, 2.0], [-INF, 3.0]]), (1,), False, "f32")
reduction("sum", lambda x, a, k: torch.sum(x, a, k), given("i1", N, 9), (1,), False, "i64")
reduction("sum", lambda x, a, k: torch.sum(x, a, k), given("i32", N, 9), (0,), False, "i64")
reduction("any", lambda x, a, k: torch.any(x, a[0], k), given("f32", 3, 4), (1,), False, "i1")
refused("amax", [given("f32", 3, 0)], (0,), axes=int_list(1))
refused("amin", [given("f32", 0, 3)], (0,), axes=int_list(0))

for w_ in (exactly("f32", [[3.0], [2.0], [7.0]]), exactly("i64", [[3], [2], [7]])):
    x_ = exactly(w_.element, [[1, 3, 3], [2, 0, 2], [8, 9, 7]])
    found_ = lambda x, w: (x == w).int().argmax(1)  # noqa: E731
    sample("position", [x_, w_], found_, element="i64", axes=int_list(1))
sample(
    "position",
    [exactly("f16", [[[1.0, 5.0], [2.0, NAN]], [[4.0, 5.0], [5.0, 5.0]]]), exactly("f16", [[[5.0]], [[5.0]]])],
    lambda x, _: torch.tensor([1, 1]).reshape(2, 1, 1),
    element="i64",
    axes=int_list(1, 2),
    keep=UNIT,
)
sample(
    "position", [exactly("f32", [[1.0, NAN]]), exactly("f32", [[NAN]])], lambda x, _: torch.tensor([1]),
    element="i64", axes=int_list(1),
)  # fmt: skip
refused("position", [given("f32", 3, 0), given("f32", 3, 1)], (0,), element="i64", axes=int_list(1))
refused("position", [given("f32", 3, 2), given("f32", 4, 1)], (3, 4), element="i64", axes=int_list(1))

# --- scans ---

SCANS: dict[str, tuple[Callable[..., torch.Tensor], Sequence[str]]] = {
    "cumsum": (torch.cumsum, ("f32", "f16", "bf16", "f64", "i64")),
    "cumprod": (torch.cumprod, ("f32", "f16", "f64", "i64")),
    "logcumsumexp": (torch.logcumsumexp, ("f32", "f16", "bf16", "f64")),
    "cummax": (lambda x, a: torch.cummax(x, a).values, ("f32", "bf16", "i32", "i1")),
    "cummin": (lambda x, a: torch.cummin(x, a).values, ("f32", "f16", "i64", "i1")),
}
for name_, (f_, elements_) in SCANS.items():
    for k, element_ in enumerate(elements_):
        for dims_, axis_ in [((2, M, 3), 1), ((13,), 0), ((N, 0), 1), ((3, 1), 0), ((0, 4), 1)][: 1 if k else 5]:
            running_ = lambda x, f=f_, a=axis_: f(x, a)  # noqa: E731
            sample(name_, [given(element_, *dims_)], running_, note=f"{axis_}", axis=IntAttr(axis_))
    odd_ = [[1.0, NAN, 2.0], [INF, 2.0, -INF], [-INF, -INF, 3.0], [-0.0, 0.0, INF]]
    sample(name_, [exactly("f32", odd_)], lambda x, f=f_: f(x, 1), axis=IntAttr(1))
sample("cumsum", [given("i1", N, 9)], lambda x: x.cumsum(1), element="i64", axis=IntAttr(1))
sample("cumprod", [given("i32", N, 9)], lambda x: x.cumprod(0), element="i64", axis=IntAttr(0))
for x_ in (exactly("f32", [[1.0, 3.0, 2.0, 3.0, NAN, 9.0, NAN]]), exactly("i32", [[4, 4, 1, 5, 2, 5, 6]])):
    highest_ = Input(x_.dims, x_.tensor.cummax(1).values)
    sample("last_position", [x_, highest_], lambda x, _: x.cummax(1).indices, element="i64", axis=IntAttr(1))
refused("last_position", [given("f32", 3, 2), given("f32", 4, 2)], (3, 4), element="i64", axis=IntAttr(1))

# --- windows ---


def window(kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int]) -> Properties:
    lists = {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation}
    return {name: int_list(*values) for name, values in lists.items()}


for x_, k_, s_, p_, d_, ceil_ in (
    (given("f32", 2, 3, 8, 9), (3, 3), (2, 2), (1, 1), (1, 1), False),
    (given("f16", 2, 3, N, M), (2, 2), (2, 2), (0, 0), (1, 1), False),
    (given("bf16", 1, 2, ("h", 11), 6), (3, 2), (2, 1), (1, 1), (2, 1), True),
    (given("f64", 2, 3, 7), (3,), (2,), (0,), (1,), True),
    (given("f32", ("n", 0), 3, 8), (2,), (2,), (0,), (1,), False),
    (given("f32", 1, 1, 4, 5, 6), (2, 2, 2), (1, 2, 2), (0, 1, 1), (1, 1, 1), False),
    (given("i64", 2, 2, N, 3), (2, 2), (1, 1), (1, 1), (1, 1), False),
):
    rank_ = len(k_)
    attributes_ = window(k_, s_, p_, d_) | ({"ceil": UNIT} if ceil_ else {})
    pool_ = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[rank_ - 1]
    largest = lambda x, f=pool_, a=(k_, s_, p_, d_, ceil_): f(x, *a) if x.numel() else x.new_empty(0, 3, 4)  # noqa: E731
    sample("max_pool", [x_], largest, note=f"{k_} {s_} {p_} {d_} {ceil_}", **attributes_)
    pooled_ = Input((*x_.dims[:2], *(f"o{axis}" for axis in range(rank_))), largest(x_.tensor))
    place = lambda x, _, f=pool_, a=(k_, s_, p_, d_, ceil_): (  # noqa: E731
        f(x, *a, return_indices=True)[1] if x.numel() else x.new_empty(0, 3, 4, dtype=torch.int64)
    )
    sample("pool_position", [x_, pooled_], place, element="i64", note=f"{k_} {s_} {p_} {d_} {ceil_}", **attributes_)
    if d_ != (1,) * rank_ or x_.element == "i64" or not x_.tensor.numel():
        continue
    average_ = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[rank_ - 1]
    for counted_ in (True, False):
        average = lambda x, f=average_, a=(k_, s_, p_, ceil_, counted_): f(x, *a)  # noqa: E731
        more_: Properties = attributes_ | ({"count_padding": UNIT} if counted_ else {})
        sample("avg_pool", [x_], average, note=f"{k_} {s_} {p_} {ceil_} {counted_}", **more_)
sample(
    "avg_pool",
    [given("f32", 2, 3, N, M)],
    lambda x: F.avg_pool2d(x, 2, 1, 1, divisor_override=3),
    note="divisor",
    divisor=IntAttr(3),
    **window((2, 2), (1, 1), (1, 1), (1, 1)),
)
sample(
    "max_pool", [exactly("f32", [[NAN, 1, 2, -INF]])], lambda x: F.max_pool1d(x, 2, 2), **window((2,), (2,), (0,), (1,))
)
for numbers_ in ([NAN, 1, NAN, -INF, NAN, 3, 3, 2], [-INF, -INF, 5, NAN, NAN, NAN, 4, 4]):
    x_ = exactly("f32", [numbers_])
    highest_ = Input((1, 3), F.max_pool1d(x_.tensor, 4, 2))
    place_ = lambda x, _: F.max_pool1d(x, 4, 2, return_indices=True)[1]  # noqa: E731
    sample("pool_position", [x_, highest_], place_, element="i64", **window((4,), (2,), (0,), (1,)))
for name_ in ("max_pool", "avg_pool"):
    refused(name_, [given("f32", 1, 2, 3)], (5, 3), **window((5,), (1,), (0,), (1,)))

# --- indices ---

for element_, data_, axis_, indices_ in (
    ("f32", (N, 3), 0, (4,)),
    ("f16", (5, 2, 3), 1, (2, 2)),
    ("i64", (5,), 0, ()),
    ("bf16", (4, M), 1, (("k", 3),)),
    ("f64", (3, 2), 0, (0,)),
    ("i1", (3, 4), 0, (2, 1, 3)),
):
    size_ = size_of(data_[axis_])
    rank_ = len(data_)

    def taken(x: torch.Tensor, i: torch.Tensor, axis: int = axis_) -> torch.Tensor:
        lead = (slice(None),) * axis
        return x[(*lead, i.long() % x.shape[axis])]

    for kind_ in ("i64", "i32"):
        inputs_ = [given(element_, *data_), given(kind_, *indices_, low=-size_, high=size_)]
        sample("take", inputs_, taken, note=f"axis {axis_}", axis=IntAttr(axis_))

for element_, data_, axis_, indices_ in (
    ("f32", (N, 3), 0, (4, 3)),
    ("f16", (5, 2, 3), 2, (5, 1, 4)),
    ("i64", (5,), 0, (9,)),
    ("bf16", (4, M), 1, (4, ("k", 3))),
    ("f64", (3, 2), 0, (0, 2)),
):
    size_ = size_of(data_[axis_])
    gathered = lambda x, i, a=axis_: torch.gather(x, a, i)  # noqa: E731
    inputs_ = [given(element_, *data_), given("i64", *indices_, low=0, high=size_)]
    sample("gather", inputs_, gathered, note=f"axis {axis_}", axis=IntAttr(axis_))
refused("gather", [given("f32", 2, 3), given("i64", 2, 4, low=0, high=1)], (4, 3), axis=IntAttr(0))

for kind_ in ("i64", "i32", "i8"):
    inputs_ = [given(kind_, N, 3, low=-5, high=5)]
    sample("bounded", inputs_, lambda i: i % 5, note=kind_, axis=IntAttr(0), extent=dims_attr((5,)))

for element_, base_, axis_, indices_, src_ in (
    ("f32", (N, 3), 0, [4, 0, 6], (3, 3)),
    ("f16", (2, 5, 3), 1, [1, -1], (2, 2, 3)),
    ("i64", (5,), 0, [], (0,)),
    ("f64", (2, M), 1, [3], (2, 1)),
):

    def put(x: torch.Tensor, i: torch.Tensor, s: torch.Tensor, axis: int = axis_) -> torch.Tensor:
        return x.index_copy(axis, i % x.shape[axis], s)

    inputs_ = [given(element_, *base_), exactly("i64", indices_), given(element_, *src_)]
    sample("put", inputs_, put, note=f"axis {axis_}", axis=IntAttr(axis_))
refused("put", [given("f32", 4, 3), exactly("i64", [0, 1]), given("f32", 2, 5)], (5, 3), axis=IntAttr(0))

for element_, base_, axis_, indices_ in (
    ("f32", (N, 3), 0, [[4, 0, -1], [6, 2, 1]]),
    ("f16", (2, 5, 3), 1, [[[0, 1, 2], [-2, 0, 4]]]),
    ("i64", (5,), 0, [3, -5]),
    ("i1", (2, M), 1, [[3]]),
    ("f64", (2, 3), 0, []),
):
    places_ = exactly("i64", indices_ or [[]])

    def scattered(x: torch.Tensor, i: torch.Tensor, s: torch.Tensor, axis: int = axis_) -> torch.Tensor:
        return x.scatter(axis, i % x.shape[axis], s)

    inputs_ = [given(element_, *base_), places_, given(element_, *map(size_of, places_.tensor.shape))]
    sample("scatter", inputs_, scattered, note=f"axis {axis_}", axis=IntAttr(axis_))
refused("scatter", [given("f32", 4, 3), exactly("i64", [[0, 1, 1, 0]]), given("f32", 1, 4)], (4, 3), axis=IntAttr(0))
refused("scatter", [given("f32", 4, 3), exactly("i64", [[0, 1]]), given("f32", 2, 2)], (2, 1), axis=IntAttr(0))

# --- contractions ---

for inputs_ in (
    [given("f32", N, 4), given("f32", 4, M)],
    [given("f16", 2, 3, 4), given("f16", 2, 4, 5)],
    [given("bf16", 2, N, 4), given("bf16", 4, 5)],
    [given("f64", 3, 4), given("f64", 2, 4, 5)],
    [given("f32", 3, 4), given("f32", 4, 5), given("f32", 5)],
    [given("f32", 2, 2, 3, ("k", 0)), given("f32", 2, 2, ("k", 0), 5)],
    [given("f32", 0, 4), given("f32", 4, 5)],
    [given("i64", 3, 4), given("i64", 4, 5)],
):
    sample("matmul", inputs_, lambda a, b, c=0: torch.matmul(a, b) + c)
refused("matmul", [given("f32", 2, 3), given("f32", 4, 5)], (3, 4))
refused("matmul", [given("f32", 2, 4, 3), given("f32", 3, 3, 5)], (2, 3))
refused("matmul", [given("f32", 2, 3), given("f32", 3, 5), given("f32", 6)], (6, 5))
sample(
    "matmul_relu",
    [given("f16", N, 4), given("f16", 4, 5), given("f16", 5)],
    lambda a, b, c: torch.relu(torch.matmul(a, b) + c),
)
sample(
    "matmul_relu",
    [given("f32", 0, 3), given("f32", 3, 2), given("f32", 2)],
    lambda a, b, c: torch.relu(torch.matmul(a, b) + c),
)
refused("matmul_relu", [given("f32", 2, 3), given("f32", 3, 5), given("f32", 6)], (6, 5))


def convolution(
    inputs: Sequence[Input],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int = 1,
    transposed: bool = False,
    output_padding: Sequence[int] = (),
) -> tuple[Sequence[Input], Callable[..., torch.Tensor], Properties]:
    lists = {"stride": stride, "padding": padding, "dilation": dilation}
    properties: Properties = {k: int_list(*v) for k, v in lists.items()} | {"groups": IntAttr(groups)}
    if transposed:
        properties |= {"transposed": UNIT, "output_padding": int_list(*output_padding)}

    def witness(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None = None) -> torch.Tensor:
        extra = list(output_padding or [0] * len(stride))
        return torch.convolution(x, w, b, list(stride), list(padding), list(dilation), transposed, extra, groups)

    return inputs, witness, properties


for inputs_, witness_, attributes_ in (
    convolution([given("f32", 2, 3, 8, 9), given("f32", 4, 3, 3, 3), given("f32", 4)], (2, 2), (1, 1), (1, 1)),
    convolution([given("f16", 2, 4, N, M), given("f16", 6, 2, 3, 2)], (1, 2), (1, 0), (1, 1), 2),
    convolution([given("bf16", N, 3, 9), given("bf16", 3, 1, 3)], (1,), (2,), (2,), 3),
    convolution([given("f64", 0, 2, 5, 5), given("f64", 2, 2, 1, 1)], (1, 1), (0, 0), (1, 1)),
    convolution(
        [given("f64", 1, 2, 4, 4, 4), given("f64", 3, 2, 2, 2, 2), given("f64", 3)], (1,) * 3, (0,) * 3, (1,) * 3
    ),
    convolution([given("f32", 2, 4, N, 5), given("f32", 4, 3, 3, 2)], (2, 1), (1, 0), (1, 2), 1, True, (1, 0)),
    convolution([given("f32", 2, 4, 6), given("f32", 4, 3, 3), given("f32", 6)], (2,), (1,), (1,), 2, True, (0,)),
):
    sample("convolution", inputs_, witness_, note="transposed" if "transposed" in attributes_ else "", **attributes_)
ONES: dict[str, Any] = convolution([], (1, 1), (0, 0), (1, 1))[2]
GROUPS: dict[str, Any] = ONES | {"groups": IntAttr(0)}
sample(
    "convolution", [given("f32", 2, N, 6, 5), given("f32", ("o", 14), 1, 3, 2)],
    lambda x, w: F.conv2d(x, w, groups=x.shape[1]), note="as many groups as channels", **GROUPS,
)  # fmt: skip


for inputs_, witness_, attributes_ in (
    convolution([given("f16", 2, 8, N, 9), given("f16", 8, 1, 3, 3)], (1, 1), (1, 1), (1, 1), 8),
    convolution([given("bf16", 1, 3, 7, M), given("bf16", 3, 1, 5, 5)], (2, 2), (2, 2), (1, 1), 3),
    convolution([given("f32", N, 5, 11, 10), given("f32", 5, 1, 3, 3)], (1, 1), (0, 0), (1, 2), 5),
    convolution([given("f32", 2, 4, 9, 9), given("f32", 4, 1, 7, 7)], (1, 1), (3, 3), (1, 1), 4),
    convolution([given("f64", 2, 2, 4, 1), given("f64", 2, 1, 1, 1)], (1, 1), (0, 0), (1, 1), 2),
    convolution([given("f32", 0, 2, 4, 4), given("f32", 2, 1, 2, 1)], (1, 1), (1, 0), (1, 1), 2),
):
    kernel_ = inputs_[1].tensor.shape[2:]
    sample("depthwise", inputs_, witness_, **attributes_ | {"kernel": int_list(*kernel_), "groups": IntAttr(0)})
refused(
    "depthwise",
    [given("f32", 1, 3, 2, 5), given("f32", 3, 1, 3, 3)],
    (3, 2),
    groups=IntAttr(0),
    kernel=int_list(3, 3),
    **{name: ONES[name] for name in ("stride", "padding", "dilation")},
)


def convolution_relu(
    x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, residual: torch.Tensor | None = None
) -> torch.Tensor:
    y = F.conv2d(x, w, b)
    return F.relu(y if residual is None else y + residual)


sample(
    "convolution_relu",
    [given("f32", 2, 3, N, 9), given("f32", 4, 3, 3, 3), given("f32", 4)],
    convolution_relu,
    note="plain",
    **ONES,
)
sample(
    "convolution_relu",
    [given("f64", 2, 3, 5, 6), given("f64", 4, 3, 3, 3), given("f64", 4), given("f64", 2, 4, 3, 4)],
    convolution_relu,
    note="residual",
    **ONES,
)
refused("convolution", [given("f32", 1, 3, 5, 5), given("f32", 4, 2, 3, 3)], (3, 2), **ONES)
refused("convolution", [given("f32", 1, 3, 5, 5), given("f32", 4, 3, 3, 3), given("f32", 5)], (5, 4), **ONES)
refused("convolution", [given("f32", 1, 3, 2, 5), given("f32", 4, 3, 3, 3)], (3, 2), **ONES)


def attention(
    q: Input,
    k: Input,
    v: Input,
    mask: Input | None = None,
    causal: bool = False,
    grouped: bool = False,
    scale: float = 0.5,
) -> None:
    properties: Properties = {"scale": FloatAttr(scale, f64)}
    properties |= {"causal": UNIT} if causal else {}
    properties |= {"grouped": UNIT} if grouped else {}

    def witness(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, m: torch.Tensor | None = None) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, m, is_causal=causal, scale=scale, enable_gqa=grouped)

    inputs = [i for i in (q, k, v, mask) if i is not None]
    sample("attention", inputs, witness, note=" ".join(k for k in properties if k != "scale"), **properties)


def heads(element: str, batch: Any, count: int, length: Any, width: int) -> Input:
    return given(element, batch, count, length, width)


attention(heads("f32", 2, 3, 5, 4), heads("f32", 2, 3, 7, 4), heads("f32", 2, 3, 7, 6))
attention(
    heads("f16", ("b", 2), 2, N, 4), heads("f16", ("b", 2), 2, N, 4), heads("f16", ("b", 2), 2, N, 4), causal=True
)
attention(heads("f64", 2, 4, 3, 4), heads("f64", 2, 2, N, 4), heads("f64", 2, 2, N, 4), grouped=True)
attention(heads("f32", 2, 2, 3, 4), heads("f32", 2, 2, N, 4), heads("f32", 2, 2, N, 4), given("f32", 3, N))
attention(heads("f32", 2, 2, 3, 4), heads("f32", 2, 2, N, 4), heads("f32", 2, 2, N, 4), given("i1", 2, 1, 1, N))
NOTHING = exactly("i1", [[True, False], [False, False]])
attention(heads("f32", 1, 1, 2, 4), heads("f32", 1, 1, 2, 4), heads("f32", 1, 1, 2, 4), NOTHING)
SCALE: Properties = {"scale": FloatAttr(0.5, f64)}
refused("attention", [heads("f32", 1, 2, 5, 4), heads("f32", 1, 2, 7, 3), heads("f32", 1, 2, 7, 4)], (4, 3), **SCALE)
refused("attention", [heads("f32", 1, 2, 5, 4), heads("f32", 1, 2, 7, 4), heads("f32", 1, 2, 6, 4)], (7, 6), **SCALE)
refused(
    "attention",
    [heads("f32", 1, 3, 5, 4), heads("f32", 1, 2, 5, 4), heads("f32", 1, 2, 5, 4)],
    (2, 3),
    grouped=UNIT,
    **SCALE,
)

# --- composites ---

for element_, dims_, axis_ in (("f32", (N, 3), 1), ("f16", (2, M, 3), 1), ("bf16", (13,), 0), ("f64", (0, 3), 1)):
    soft_ = lambda x, a=axis_: torch.softmax(x, a)  # noqa: E731
    sample("softmax", [given(element_, *dims_)], soft_, note=f"axis {axis_}", axis=IntAttr(axis_))
    soft_ = lambda x, a=axis_: torch.log_softmax(x, a)  # noqa: E731
    sample("log_softmax", [given(element_, *dims_)], soft_, note=f"axis {axis_}", axis=IntAttr(axis_))
EPS: Properties = {"eps": FloatAttr(1e-5, f64)}
for inputs_, axes_ in (
    ([given("f32", N, 8)], 1),
    ([given("f16", 2, N, 8), given("f16", 8)], 1),
    ([given("bf16", 2, 3, 8), given("bf16", 3, 8), given("bf16", 3, 8)], 2),
    ([given("f64", 0, 8), given("f64", 8), given("f64", 8)], 1),
):
    normal_ = lambda x, *p, a=axes_: F.layer_norm(x, x.shape[-a:], *p, eps=1e-5)  # noqa: E731
    sample("layer_norm", inputs_, normal_, axes=IntAttr(axes_), **EPS)
    if len(inputs_) < 3:
        normal_ = lambda x, *p, a=axes_: F.rms_norm(x, x.shape[-a:], *p, eps=1e-5)  # noqa: E731
        sample("rms_norm", inputs_, normal_, axes=IntAttr(axes_), **EPS)
for element_, dims_, affine_ in (("f32", (2, 3, N, M), True), ("f16", (N, 3), False), ("f64", (0, 3, 4), True)):
    statistics_ = [given(element_, 3), given(element_, 3, low=0.5, high=2)]
    inputs_ = [given(element_, *dims_), *statistics_, *([given(element_, 3), given(element_, 3)] if affine_ else [])]
    sample("batch_norm", inputs_, lambda x, *p: F.batch_norm(x, *p, eps=1e-5), **EPS)
for name_ in ("layer_norm", "rms_norm"):
    refused(name_, [given("f32", 2, 3), given("f32", 4)], (4, 3), axes=IntAttr(1), **EPS)
refused("batch_norm", [given("f32", 2, 3, 5), given("f32", 4), given("f32", 4)], (3, 4), **EPS)


def result_type(module: ModuleOp) -> Attribute:
    """The element type of the first result of `@main`."""
    (func,) = (op for op in module.body.block.ops if isinstance(op, FuncOp))
    return type_of(func.returned.operands[0]).element
