"""How a kernel runs that reads or writes memory along another axis than the innermost one (`crossing.py` finds it): by
tiles that are turned in shared memory."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

SIDES = (8, 16, 32, 64, 128, 256)
MIN_SIDE = SIDES[0]
"""Along shorter axes nothing is turned."""
VECTORS = (1, 2, 4, 8, 16)


@irdl_attr_definition
class TransposeAttr(ParametrizedAttribute):
    """`#dlcb.coord.transpose<axis = 0, along = 64, across = 64, vector = 8>`

    A block has a tile of the kernel's coordinates: `along` of the outer axis number `axis` by `across` of the innermost
    one. What lies along `axis` in memory is moved in its own order, `vector` neighbours at once, and turned in shared
    memory.
    """

    name = "dlcb.coord.transpose"
    axis_attr: IntAttr
    along_attr: IntAttr
    across_attr: IntAttr
    vector_attr: IntAttr

    @staticmethod
    def of(axis: int, along: int, across: int, vector: int) -> TransposeAttr:
        return TransposeAttr(IntAttr(axis), IntAttr(along), IntAttr(across), IntAttr(vector))

    @property
    def axis(self) -> int:
        return self.axis_attr.data

    @property
    def along(self) -> int:
        return self.along_attr.data

    @property
    def across(self) -> int:
        return self.across_attr.data

    @property
    def vector(self) -> int:
        return self.vector_attr.data

    def verify(self) -> None:
        if self.axis < 0:
            raise VerifyException(f"transpose: axis = {self.axis}, expected an outer axis")
        for what, side in (("along", self.along), ("across", self.across)):
            if side not in SIDES:
                raise VerifyException(f"transpose: {what} = {side}, expected one of {', '.join(map(str, SIDES))}")
        if self.vector not in VECTORS or self.vector > self.along:
            raise VerifyException(f"transpose: vector = {self.vector}, expected 1, 2, 4, 8 or 16, and along at most")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        fields = ("axis", "along", "across", "vector")
        found: list[IntAttr] = []
        with parser.in_angle_brackets():
            for number, name in enumerate(fields):
                if number:
                    parser.parse_punctuation(",")
                parser.parse_keyword(name)
                parser.parse_punctuation("=")
                found.append(IntAttr(parser.parse_integer(allow_boolean=False)))
        return found

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(
            f"<axis = {self.axis}, along = {self.along}, across = {self.across}, vector = {self.vector}>"
        )
