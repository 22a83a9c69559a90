"""Ops of `dlcb.cuda` that compute values: indices of the launch, constants, scalar functions."""

from __future__ import annotations

from typing import ClassVar, cast

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, TypedAttribute
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from dlcb.dialects.cuda import syntax
from dlcb.dialects.cuda.base import CudaOp, ValuesOp
from dlcb.dialects.cuda.verify import verify_integer, verify_same
from dlcb.dialects.scalar import FUNCTIONS, ScalarFunction
from dlcb.dialects.types import BYTES, INTEGERS, bf16, f16, f32, f64, i1, i32

_HALVES = (f16, bf16)
DOMAINS: dict[str, tuple[Attribute, ...]] = {
    "any": (i1, *INTEGERS, f32, f64),
    "number": (*INTEGERS, f32, f64),
    "float": (f32, f64),
    "integer": INTEGERS,
    "bits": (i1, *INTEGERS),
}
"""The operand types of each domain of scalar functions."""


class _IndexOp(CudaOp):
    """An index of the launch."""

    result = result_def(i32)
    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($result)"


@irdl_op_definition
class ThreadIdxOp(_IndexOp):
    """result = number of the thread in its block, 0 … threads - 1"""

    name = "dlcb.cuda.thread_idx"


@irdl_op_definition
class BlockIdxOp(_IndexOp):
    """result = number of the block"""

    name = "dlcb.cuda.block_idx"
    AGREES_WITH_OPERANDS: ClassVar[bool] = True


@irdl_op_definition
class ConstantOp(CudaOp):
    """result = value"""

    name = "dlcb.cuda.constant"
    AGREES_WITH_OPERANDS: ClassVar[bool] = True
    value = prop_def(IntegerAttr | FloatAttr)
    result = result_def()
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> ConstantOp:
        attribute = parser.parse_attribute()
        if not isinstance(attribute, IntegerAttr | FloatAttr):
            parser.raise_error("expected a number with its type, as in `256 : i32`")
        return cls.create(
            result_types=(cast(TypedAttribute, attribute).get_type(),),
            properties={"value": cast(Attribute, attribute)},
            attributes=syntax.parse_attributes(parser),
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.value)
        syntax.print_attributes(printer, self.attributes)

    def verify_(self) -> None:
        verify_same("result", self.result.type, self.value.get_type())
        if self.result.type not in BYTES:
            raise VerifyException(f"a constant of type {self.result.type} does not exist in a kernel")


@irdl_op_definition
class ScalarOp(ValuesOp):
    """result = function(operands), a function of `dialects/scalar.py`"""

    name = "dlcb.cuda.scalar"
    AGREES_WITH_OPERANDS: ClassVar[bool] = True
    function = prop_def(StringAttr)
    arguments = var_operand_def()
    result = result_def()
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> ScalarOp:
        function = parser.parse_identifier()
        op = super().parse(parser)
        op.properties["function"] = StringAttr(function)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.function.data}")
        super().print(printer)

    def verify_(self) -> None:
        name = self.function.data
        function = FUNCTIONS.get(name)
        if function is None:
            raise VerifyException(f"scalar function {name} is not in the table of dialects/scalar.py")
        types = [o.type for o in self.operands]
        if len(types) != function.arity:
            raise VerifyException(f"{name} takes {function.arity} operands, {len(types)} given")
        if name == "select":
            verify_same("select: condition", types.pop(0), i1)
        for given in types:
            verify_same(f"{name}: operand", given, types[0])
        if name == "cast":
            _verify_cast(types[0], self.result.type)
        else:
            _verify_function(function, types[0], self.result.type)


def _verify_function(function: ScalarFunction, operand: Attribute, result: Attribute) -> None:
    name = function.name
    if operand in _HALVES and name != "select":
        raise VerifyException(f"{name}: {operand} is computed as f32; cast it first")
    if operand not in DOMAINS[function.domain] and not (name == "select" and operand in _HALVES):
        raise VerifyException(f"{name}: operand is {operand}, expected a type of the domain `{function.domain}`")
    verify_same(f"{name}: result", result, i1 if function.result == "bool" else operand)


def _verify_cast(source: Attribute, target: Attribute) -> None:
    for what, given in (("operand", source), ("result", target)):
        if given not in BYTES:
            raise VerifyException(f"cast: {what} is {given}, expected an element type")
    for half, other in ((source, target), (target, source)):
        if half in _HALVES and other not in (f32, half):
            raise VerifyException(f"cast: {source} to {target} goes through f32")


@irdl_op_definition
class MagicDivOp(ValuesOp):
    """result = dividend // divisor, where `magic.magic_constants(divisor)` is (mul, shift) and dividend >= 0.

    The result is 0 where the divisor is.
    """

    name = "dlcb.cuda.magic_div"
    AGREES_WITH_OPERANDS: ClassVar[bool] = True
    dividend = operand_def()
    mul = operand_def()
    shift = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def verify_(self) -> None:
        verify_integer("dividend", self.dividend)
        for what, value in (("mul", self.mul), ("shift", self.shift), ("result", self.result)):
            verify_same(what, value.type, self.dividend.type)
