"""Builds host programs. Integer ops are folded and made once: a lowering may ask for a value as often as it likes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TypeAlias

from xdsl.dialects.builtin import IntAttr, StringAttr
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue

from dlcb.dialects._xdsl import append_op
from dlcb.dialects.failure import FailuresAttr
from dlcb.dialects.host.attributes import ArgumentAttr
from dlcb.dialects.host.facts import AlignedOp, ArgumentOp, ConstantOp, IntegerOp, SizeOp, StrideOp, WeightOp
from dlcb.dialects.host.integers import (
    AddOp,
    AndOp,
    BroadcastOp,
    CeilDivOp,
    EqOp,
    FloorDivOp,
    IsqrtOp,
    LeOp,
    LtOp,
    MagicMulOp,
    MagicShiftOp,
    MaxOp,
    MinOp,
    ModOp,
    MulOp,
    NeOp,
    NotOp,
    OrOp,
    ScaledOp,
    SelectOp,
    SubOp,
)
from dlcb.dialects.host.integers import IntegerOp as Computed
from dlcb.dialects.host.memory import ArenaOp, BufferOp, OutputOp, ViewOp
from dlcb.dialects.host.ops import ProgramOp, ReturnOp
from dlcb.dialects.host.options import Option, options_to_attribute
from dlcb.dialects.host.syntax import ARENA
from dlcb.dialects.host.work import CheckOp, LaunchOp, LibraryOp, Variant
from dlcb.dialects.shape.expr import Expr, post_order, terms
from dlcb.dialects.types import i1, index
from dlcb.errors import InternalError

Integer: TypeAlias = "int | SSAValue | Expr"

_ATOM_TO_OP: dict[str, type[Computed]] = {
    "floordiv": FloorDivOp, "ceildiv": CeilDivOp, "mod": ModOp, "minimum": MinOp, "maximum": MaxOp, "select": SelectOp,
    "broadcast": BroadcastOp, "eq": EqOp, "ne": NeOp, "lt": LtOp, "le": LeOp, "logical_and": AndOp, "logical_or": OrOp,
    "logical_not": NotOp, "isqrt": IsqrtOp,
}  # fmt: skip
_FIRST_IS_TRUTH = (SelectOp, NotOp)
_ALL_ARE_TRUTH = (AndOp, OrOp)
_NEUTRAL_RIGHT: dict[type[Computed], int] = {AddOp: 0, SubOp: 0, MulOp: 1, FloorDivOp: 1, CeilDivOp: 1, BroadcastOp: 1}
_NEUTRAL_LEFT: dict[type[Computed], int] = {AddOp: 0, MulOp: 1, BroadcastOp: 1}


class HostBuilder:
    """One program under construction. Integers are given as `int`, as a value, or as an expression over `symbols`."""

    def __init__(self, name: str, arguments: Sequence[ArgumentAttr], result_names: Sequence[str] = ()) -> None:
        self.symbols: dict[str, SSAValue] = {}
        """What each symbol of expressions is in this program; the lowering fills it."""
        self._name, self._arguments, self._result_names = name, arguments, result_names
        self._block = Block()
        self._made: dict[object, SSAValue] = {}
        self._literals: dict[int, int] = {}
        self._checked: set[SSAValue] = set()
        """What is known of values, by their identity: hashing a value costs a call."""

    # --- integers

    def constant(self, value: int) -> SSAValue:
        return self._constant(value, index)

    def truth(self, value: bool) -> SSAValue:
        return self._constant(int(value), i1)

    def size(self, argument: str, dim: int) -> SSAValue:
        return self._fact(SizeOp, argument, dim, index)

    def stride(self, argument: str, dim: int) -> SSAValue:
        return self._fact(StrideOp, argument, dim, index)

    def aligned(self, argument: str, bytes: int) -> SSAValue:
        return self._fact(AlignedOp, argument, bytes, i1)

    def integer(self, argument: str) -> SSAValue:
        return self._fact(IntegerOp, argument, None, index)

    def compute(self, op: type[Computed], *operands: Integer, **attributes: int) -> SSAValue:
        """The op's result; a constant or one of the operands where that is known, else an op made once."""
        values = [self.value(o) for o in operands]
        known = self._folded(op, values, tuple(attributes.values()))
        if known is not None:
            return known
        key = (op, *map(id, values), *attributes.values())
        if (made := self._made.get(key)) is None:
            properties: dict[str, Attribute] = {name: IntAttr(v) for name, v in attributes.items()}
            made = self._made[key] = self._add(
                op.create(operands=values, result_types=[op.RESULT_TYPE], properties=properties)
            )
        return made

    def add(self, lhs: Integer, rhs: Integer) -> SSAValue:
        return self.compute(AddOp, lhs, rhs)

    def sub(self, lhs: Integer, rhs: Integer) -> SSAValue:
        return self.compute(SubOp, lhs, rhs)

    def mul(self, lhs: Integer, rhs: Integer) -> SSAValue:
        return self.compute(MulOp, lhs, rhs)

    def floordiv(self, lhs: Integer, rhs: Integer) -> SSAValue:
        return self.compute(FloorDivOp, lhs, rhs)

    def ceildiv(self, lhs: Integer, rhs: Integer) -> SSAValue:
        return self.compute(CeilDivOp, lhs, rhs)

    def mod(self, lhs: Integer, rhs: Integer) -> SSAValue:
        return self.compute(ModOp, lhs, rhs)

    def eq(self, lhs: Integer, rhs: Integer) -> SSAValue:
        return self.compute(EqOp, lhs, rhs)

    def lt(self, lhs: Integer, rhs: Integer) -> SSAValue:
        return self.compute(LtOp, lhs, rhs)

    def le(self, lhs: Integer, rhs: Integer) -> SSAValue:
        return self.compute(LeOp, lhs, rhs)

    def all_of(self, *conditions: SSAValue) -> SSAValue:
        return reduce(lambda a, b: self.compute(AndOp, a, b), conditions, self.truth(True))

    def any_of(self, *conditions: SSAValue) -> SSAValue:
        return reduce(lambda a, b: self.compute(OrOp, a, b), conditions, self.truth(False))

    def negate(self, condition: SSAValue) -> SSAValue:
        return self.compute(NotOp, condition)

    def select(self, condition: SSAValue, lhs: Integer, rhs: Integer) -> SSAValue:
        return self.compute(SelectOp, condition, lhs, rhs)

    def magic_mul(self, divisor: Integer, bits: int) -> SSAValue:
        return self.compute(MagicMulOp, divisor, bits=bits)

    def magic_shift(self, divisor: Integer, bits: int) -> SSAValue:
        return self.compute(MagicShiftOp, divisor, bits=bits)

    # --- expressions

    def value(self, integer: Integer) -> SSAValue:
        """The value of an integer in any form; of a condition's expression, an i1."""
        if type(integer) is OpResult or isinstance(integer, SSAValue):
            return integer
        if isinstance(integer, int):
            return self.constant(integer)
        if (made := self._made.get(integer)) is None:
            for node in post_order((integer,), self._made):
                self._made[node] = self._expression(node)
            made = self._made[integer]
        return made

    def index_value(self, integer: Integer) -> SSAValue:
        """The value as `index`; a condition counts as 0 or 1."""
        value = self.value(integer)
        return value if value.type is index or value.type == index else self.compute(SelectOp, value, 1, 0)

    def truth_value(self, integer: Integer) -> SSAValue:
        """The value as `i1`; an integer counts as whether it is not 0."""
        value = self.value(integer)
        return value if value.type is i1 or value.type == i1 else self.compute(NeOp, value, 0)

    def _expression(self, node: Expr) -> SSAValue:
        if node.value is not None:
            return self.constant(node.value)
        if node.op == "symbol":
            if node.name not in self.symbols:
                raise InternalError(f"host program {self._name}: symbol '{node.name}' has no value yet")
            return self.symbols[node.name]
        if node.op in ("add", "mul"):
            return self._polynomial(node)
        if node.op == "scaled":
            numerator, denominator = (a.value or 0 for a in node.args[1:])
            operand = self.index_value(node.args[0])
            return self.compute(ScaledOp, operand, numerator=numerator, denominator=denominator)
        return self._atom(_ATOM_TO_OP[node.op], node.args)

    def _atom(self, op: type[Computed], args: Sequence[Expr]) -> SSAValue:
        values = [
            self.truth_value(a) if op in _ALL_ARE_TRUTH or (op in _FIRST_IS_TRUTH and not i) else self.index_value(a)
            for i, a in enumerate(args)
        ]
        if op in (SelectOp, NotOp, IsqrtOp):
            return self.compute(op, *values)
        return reduce(lambda a, b: self.compute(op, a, b), values)

    def _polynomial(self, node: Expr) -> SSAValue:
        total = self.constant(0)
        for coefficient, atoms in terms(node):
            product = reduce(self.mul, (self.index_value(a) for a in atoms), self.constant(1))
            total = self.add(total, self.mul(product, coefficient))
        return total

    # --- tensors

    def argument(self, name: str) -> SSAValue:
        return self._fact(ArgumentOp, name, None, ArgumentOp.RESULT_TYPE)

    def weight(self, name: str) -> SSAValue:
        return self._fact(WeightOp, name, None, WeightOp.RESULT_TYPE)

    def arena(self, bytes: Integer) -> SSAValue:
        return self._add(ArenaOp.create(operands=[self.value(bytes)], result_types=[ARENA]))

    def buffer(
        self, arena: SSAValue, offset: Integer, sizes: Sequence[Integer], strides: Sequence[Integer], dtype: Attribute
    ) -> SSAValue:
        return self._add(BufferOp.make(arena, self.value(offset), self._all(sizes), self._all(strides), dtype))

    def output(self, sizes: Sequence[Integer], strides: Sequence[Integer], dtype: Attribute) -> SSAValue:
        return self._add(OutputOp.make(self._all(sizes), self._all(strides), dtype))

    def view(self, source: SSAValue, offset: Integer, sizes: Sequence[Integer], strides: Sequence[Integer]) -> SSAValue:
        return self._add(ViewOp.make(source, self.value(offset), self._all(sizes), self._all(strides)))

    # --- work

    def check(self, condition: Integer, text: str, values: Sequence[Integer] = ()) -> None:
        """Fail with the text unless the condition holds; nothing where it is known to hold, or was checked before."""
        truth = self.truth_value(condition)
        if not self._literals.get(id(truth)) and truth not in self._checked:
            self._checked.add(truth)
            properties: dict[str, Attribute] = {"text": StringAttr(text)}
            operands = [truth, *(self.index_value(v) for v in values)]
            append_op(self._block, CheckOp.create(operands=operands, properties=properties))

    def launch(
        self, tensors: Sequence[SSAValue], variants: Sequence[Variant], failures: FailuresAttr | None = None
    ) -> None:
        append_op(self._block, LaunchOp.make(tensors, variants, failures))

    def library(
        self, function: str, tensors: Sequence[SSAValue], options: Mapping[str, Option], dtype: Attribute
    ) -> SSAValue:
        """Call a function that allocates its result."""
        return self._add(LibraryOp.make(function, tensors, options_to_attribute(options), None, dtype))

    def library_into(
        self, out: SSAValue, function: str, tensors: Sequence[SSAValue], options: Mapping[str, Option]
    ) -> None:
        """Call a function that writes its result into `out`."""
        append_op(self._block, LibraryOp.make(function, tensors, options_to_attribute(options), out, None))

    def finish(self, results: Sequence[SSAValue]) -> ProgramOp:
        append_op(self._block, ReturnOp.create(operands=results))
        return ProgramOp.make(self._name, self._arguments, self._result_names, Region(self._block))

    # --- the one copy of each pure value

    def _add(self, op: Operation) -> SSAValue:
        append_op(self._block, op)
        return op.results[0]

    def _all(self, integers: Sequence[Integer]) -> list[SSAValue]:
        return [self.index_value(i) for i in integers]

    def _constant(self, value: int, type: Attribute) -> SSAValue:
        key = (ConstantOp, value, type is i1)
        if (made := self._made.get(key)) is None:
            made = self._add(ConstantOp.create(result_types=[type], properties={"value": IntAttr(value)}))
            self._made[key] = made
            self._literals[id(made)] = value
        return made

    def _fact(self, op: type[Operation], argument: str, number: int | None, type: Attribute) -> SSAValue:
        key = (op, argument, number)
        if (made := self._made.get(key)) is None:
            properties: dict[str, Attribute] = {"label": StringAttr(argument)}
            if number is not None:
                properties["number"] = IntAttr(number)
            made = self._made[key] = self._add(op.create(result_types=[type], properties=properties))
        return made

    def _folded(self, op: type[Computed], values: list[SSAValue], attributes: tuple[int, ...]) -> SSAValue | None:
        literals = [self._literals.get(id(v)) for v in values]
        if all(literal is not None for literal in literals):
            return self._constant(int(op.compute(*literals, *attributes)), op.RESULT_TYPE)  # pyright: ignore
        if len(values) == 2:
            return self._folded_pair(op, values, literals)
        if op is SelectOp and (literals[0] is not None or values[1] is values[2]):
            return values[2] if literals[0] == 0 else values[1]
        return None

    def _folded_pair(self, op: type[Computed], values: list[SSAValue], literals: list[int | None]) -> SSAValue | None:
        lhs, rhs = values
        if literals[1] is not None and _NEUTRAL_RIGHT.get(op) == literals[1]:
            return lhs
        if literals[0] is not None and _NEUTRAL_LEFT.get(op) == literals[0]:
            return rhs
        if op is MulOp and 0 in literals:
            return self.constant(0)
        if lhs is rhs and op in (MinOp, MaxOp, BroadcastOp, AndOp, OrOp):
            return lhs
        if lhs is rhs and op in (EqOp, LeOp, NeOp, LtOp):
            return self.truth(op in (EqOp, LeOp))
        if op in (AndOp, OrOp):
            return self._folded_connective(op is AndOp, values, literals)
        return None

    def _folded_connective(self, is_and: bool, values: list[SSAValue], literals: list[int | None]) -> SSAValue | None:
        for literal, other in ((literals[0], values[1]), (literals[1], values[0])):
            if literal is not None:
                return other if bool(literal) == is_and else self.truth(not is_and)
        return None
