"""The integer ops of `dlcb.host`. What each means is its `compute`, which folding and the interpreter use.

Division is total (by zero, quotient and remainder are 0), so it may be evaluated before the check that guards it.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from dlcb.dialects._xdsl import QuickOp
from dlcb.dialects.host.attributes import integers_of
from dlcb.dialects.shape.integers import isqrt, scaled
from dlcb.dialects.types import i1, index
from dlcb.magic import magic_constants


class HostOp(QuickOp):
    """Base of all ops of the dialect. `opcode` is the op's name in the serialized program."""

    @classmethod
    def opcode(cls) -> str:
        return cls.name.rpartition(".")[2]


class IntegerOp(HostOp):
    """result = compute(operands, attributes), integers only."""

    traits = traits_def(Pure())
    RESULT_TYPE: ClassVar[Attribute] = index
    ATTRIBUTES: ClassVar[tuple[str, ...]] = ()

    @staticmethod
    def compute(*values: int) -> int:
        """The value of the result, given the operands' values and then the attributes'."""
        raise NotImplementedError

    def attribute_values(self) -> tuple[int, ...]:
        return integers_of([self.properties[name] for name in self.ATTRIBUTES])


class _IndexPair(IntegerOp):
    lhs = operand_def(index)
    rhs = operand_def(index)
    result = result_def(index)
    assembly_format = "$lhs `,` $rhs attr-dict"


@irdl_op_definition
class AddOp(_IndexPair):
    """result = lhs + rhs"""

    name = "dlcb.host.add"

    @staticmethod
    def compute(*values: int) -> int:
        return values[0] + values[1]


@irdl_op_definition
class SubOp(_IndexPair):
    """result = lhs - rhs"""

    name = "dlcb.host.sub"

    @staticmethod
    def compute(*values: int) -> int:
        return values[0] - values[1]


@irdl_op_definition
class MulOp(_IndexPair):
    """result = lhs * rhs"""

    name = "dlcb.host.mul"

    @staticmethod
    def compute(*values: int) -> int:
        return values[0] * values[1]


@irdl_op_definition
class FloorDivOp(_IndexPair):
    """result = lhs / rhs, rounded down"""

    name = "dlcb.host.floordiv"

    @staticmethod
    def compute(*values: int) -> int:
        return values[0] // values[1] if values[1] else 0


@irdl_op_definition
class CeilDivOp(_IndexPair):
    """result = lhs / rhs, rounded up"""

    name = "dlcb.host.ceildiv"

    @staticmethod
    def compute(*values: int) -> int:
        return -(-values[0] // values[1]) if values[1] else 0


@irdl_op_definition
class ModOp(_IndexPair):
    """result = lhs - rhs * floor(lhs / rhs), with the sign of rhs"""

    name = "dlcb.host.mod"

    @staticmethod
    def compute(*values: int) -> int:
        return values[0] % values[1] if values[1] else 0


@irdl_op_definition
class MinOp(_IndexPair):
    """result = the smaller of both"""

    name = "dlcb.host.min"

    @staticmethod
    def compute(*values: int) -> int:
        return min(values)


@irdl_op_definition
class MaxOp(_IndexPair):
    """result = the larger of both"""

    name = "dlcb.host.max"

    @staticmethod
    def compute(*values: int) -> int:
        return max(values)


@irdl_op_definition
class BroadcastOp(_IndexPair):
    """result = rhs if lhs = 1, else lhs: the common size of two sizes of which a check says that they broadcast."""

    name = "dlcb.host.broadcast"

    @staticmethod
    def compute(*values: int) -> int:
        return values[1] if values[0] == 1 else values[0]


class _Comparison(IntegerOp):
    RESULT_TYPE: ClassVar[Attribute] = i1
    lhs = operand_def(index)
    rhs = operand_def(index)
    result = result_def(i1)
    assembly_format = "$lhs `,` $rhs attr-dict"


@irdl_op_definition
class EqOp(_Comparison):
    """result = (lhs = rhs)"""

    name = "dlcb.host.eq"

    @staticmethod
    def compute(*values: int) -> int:
        return values[0] == values[1]


@irdl_op_definition
class NeOp(_Comparison):
    """result = (lhs ≠ rhs)"""

    name = "dlcb.host.ne"

    @staticmethod
    def compute(*values: int) -> int:
        return values[0] != values[1]


@irdl_op_definition
class LtOp(_Comparison):
    """result = (lhs < rhs)"""

    name = "dlcb.host.lt"

    @staticmethod
    def compute(*values: int) -> int:
        return values[0] < values[1]


@irdl_op_definition
class LeOp(_Comparison):
    """result = (lhs ≤ rhs)"""

    name = "dlcb.host.le"

    @staticmethod
    def compute(*values: int) -> int:
        return values[0] <= values[1]


class _TruthPair(IntegerOp):
    RESULT_TYPE: ClassVar[Attribute] = i1
    lhs = operand_def(i1)
    rhs = operand_def(i1)
    result = result_def(i1)
    assembly_format = "$lhs `,` $rhs attr-dict"


@irdl_op_definition
class AndOp(_TruthPair):
    """result = lhs and rhs"""

    name = "dlcb.host.and"

    @staticmethod
    def compute(*values: int) -> int:
        return bool(values[0] and values[1])


@irdl_op_definition
class OrOp(_TruthPair):
    """result = lhs or rhs"""

    name = "dlcb.host.or"

    @staticmethod
    def compute(*values: int) -> int:
        return bool(values[0] or values[1])


@irdl_op_definition
class NotOp(IntegerOp):
    """result = not operand"""

    name = "dlcb.host.not"
    RESULT_TYPE: ClassVar[Attribute] = i1
    operand = operand_def(i1)
    result = result_def(i1)
    assembly_format = "$operand attr-dict"

    @staticmethod
    def compute(*values: int) -> int:
        return not values[0]


@irdl_op_definition
class SelectOp(IntegerOp):
    """result = lhs if condition else rhs"""

    name = "dlcb.host.select"
    condition = operand_def(i1)
    lhs = operand_def(index)
    rhs = operand_def(index)
    result = result_def(index)
    assembly_format = "$condition `,` $lhs `,` $rhs attr-dict"

    @staticmethod
    def compute(*values: int) -> int:
        return values[1] if values[0] else values[2]


@irdl_op_definition
class IsqrtOp(IntegerOp):
    """result = floor(sqrt(operand)); 0 where it is negative"""

    name = "dlcb.host.isqrt"
    operand = operand_def(index)
    result = result_def(index)
    assembly_format = "$operand attr-dict"

    @staticmethod
    def compute(*values: int) -> int:
        return isqrt(*values)


@irdl_op_definition
class ScaledOp(IntegerOp):
    """result = floor(operand * f) of the float f = numerator / denominator, the product in double precision:
    `scaled %n, 3, 2` is floor(n * 1.5)."""

    name = "dlcb.host.scaled"
    ATTRIBUTES: ClassVar[tuple[str, ...]] = ("numerator", "denominator")
    operand = operand_def(index)
    numerator = prop_def(IntAttr)
    denominator = prop_def(IntAttr)
    result = result_def(index)

    @staticmethod
    def compute(*values: int) -> int:
        return scaled(*values)

    def verify_(self) -> None:
        if self.denominator.data <= 0:
            raise VerifyException(f"dlcb.host.scaled: denominator must be positive, got {self.denominator.data}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.operand)
        printer.print_string(f", {self.numerator.data}, {self.denominator.data}")

    @classmethod
    def parse(cls, parser: Parser) -> ScaledOp:
        operand = parser.resolve_operand(parser.parse_unresolved_operand(), index)
        numbers: list[int] = []
        for _ in range(2):
            parser.parse_punctuation(",")
            numbers.append(parser.parse_integer())
        properties: dict[str, Attribute] = {"numerator": IntAttr(numbers[0]), "denominator": IntAttr(numbers[1])}
        return cls.create(operands=[operand], result_types=[index], properties=properties)


def _magic(divisor: int, bits: int) -> tuple[int, int]:
    return magic_constants(divisor, 32 if bits == 32 else 64) if 0 <= divisor < 1 << (bits - 1) else (0, 0)


class _MagicOp(IntegerOp):
    """One of the two constants that divide by the operand through a product and a shift, in 32- or 64-bit form.
    0 for a divisor that the form has not room for: a variant that uses it must not be chosen then."""

    ATTRIBUTES: ClassVar[tuple[str, ...]] = ("bits",)
    operand = operand_def(index)
    bits = prop_def(IntAttr)
    result = result_def(index)

    def verify_(self) -> None:
        if self.bits.data not in (32, 64):
            raise VerifyException(f"{self.name}: bits must be 32 or 64, got {self.bits.data}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.operand)
        printer.print_string(f", {self.bits.data}")

    @classmethod
    def parse(cls, parser: Parser) -> _MagicOp:
        operand = parser.resolve_operand(parser.parse_unresolved_operand(), index)
        parser.parse_punctuation(",")
        properties: dict[str, Attribute] = {"bits": IntAttr(parser.parse_integer())}
        return cls.create(operands=[operand], result_types=[index], properties=properties)


@irdl_op_definition
class MagicMulOp(_MagicOp):
    """result = the multiplier for a division by the operand (`dlcb.magic`)."""

    name = "dlcb.host.magic_mul"

    @staticmethod
    def compute(*values: int) -> int:
        return _magic(values[0], values[1])[0]


@irdl_op_definition
class MagicShiftOp(_MagicOp):
    """result = the shift for a division by the operand (`dlcb.magic`)."""

    name = "dlcb.host.magic_shift"

    @staticmethod
    def compute(*values: int) -> int:
        return _magic(values[0], values[1])[1]


INTEGER_OPS: list[type[IntegerOp]] = [
    AddOp, SubOp, MulOp, FloorDivOp, CeilDivOp, ModOp, MinOp, MaxOp, BroadcastOp, EqOp, NeOp, LtOp, LeOp, AndOp, OrOp,
    NotOp, SelectOp, ScaledOp, IsqrtOp, MagicMulOp, MagicShiftOp,
]  # fmt: skip
