"""The integer arguments of a CUDA kernel, added as the lowering meets them.

Each is a number the host program computes from the kernel's parameters, written as text on the kernel
(`dlcb.integers`): `value p0` a parameter, `mul p0 4` and `shift p0 4` the multiply-shift constants of division by ⌊p0 /
4⌋; `value p0*p1 4` is ⌊p0·p1 / 4⌋. Beside the kernel's parameters there are numbers that follow from the variant and
the sizes: how threads and blocks share the work. Steps of one kernel share arrays; `dlcb.workspace` lists the types of
their elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Attribute, SSAValue

from dlcb.dialects.coord.ops import BufferType, KernelOp
from dlcb.dialects.cuda.builder import CudaBuilder
from dlcb.dialects.cuda.ops import KernelOp as CudaKernelOp
from dlcb.dialects.cuda.types import ptr
from dlcb.dialects.graph.types import Dim
from dlcb.dialects.types import i32, i64

INTEGERS, WORKSPACE = "dlcb.integers", "dlcb.workspace"
LANES, ACROSS = "lanes", "across"
"""Of a column: the neighbouring rows of a block, and the threads that walk each."""
PARTS, CHUNK, GROUPS = "parts", "chunk", "groups"
"""Of a step: the parts of a row, the row coordinates of each, and the blocks that share a part's number."""
COLUMNS, BANDS = "columns", "bands"
"""Of tiles: how many lie beside one another along the innermost axis, and along the other one."""


class KernelBuilder(CudaBuilder):
    """Builds the CUDA kernel of one schedule; numbers of the host program become parameters."""

    def __init__(self, name: str, kernel: KernelOp, threads: int, bits: int):
        pointers: list[tuple[str, Attribute]] = []
        for i, buffer in enumerate(kernel.buffers):
            kind = buffer.type
            assert isinstance(kind, BufferType)
            pointers.append((f"b{i}", ptr(kind.element)))
        super().__init__(name, threads, pointers)
        self.pointer = dict(zip(kernel.buffers, self.parameters, strict=True))
        self.idx: Attribute = i32 if bits == 32 else i64
        self._integers: dict[str, SSAValue] = {}
        self._workspace: list[Attribute] = []

    def integer(self, what: str, hint: str) -> SSAValue:
        known = self._integers.get(what)
        if known is None:
            known = self._integers[what] = self.add_parameter(hint, self.idx)
        return known

    def workspace(self, element: Attribute) -> SSAValue:
        """An array beside the buffers; to be asked for before any number."""
        self._workspace.append(element)
        return self.add_parameter(f"w{len(self._workspace) - 1}", ptr(element))

    def number(self, dims: Sequence[Dim], divisor: int = 1) -> SSAValue:
        """⌊product of dims / divisor⌋ in the index type."""
        literal, names = _split(dims)
        if not names:
            return self.constant(literal // divisor, self.idx)
        if literal % divisor == 0:
            literal, divisor = literal // divisor, 1
        text = _product(literal, names)
        if literal == 1 or divisor != 1:
            return self.integer(f"value {text} {divisor}", _hint(names))
        return self.mul(self.integer(f"value {_product(1, names)} 1", _hint(names)), self.constant(literal, self.idx))

    def divide(self, dividend: SSAValue, dims: Sequence[Dim], divisor: int = 1) -> tuple[SSAValue, SSAValue]:
        """Quotient and rest of a dividend that is not negative by ⌊product of dims / divisor⌋."""
        literal, names = _split(dims)
        by = self.number(dims, divisor)
        if not names:
            if literal // divisor == 1:
                return dividend, self.constant(0, self.idx)
            quotient = self.truncdiv(dividend, by)
        else:
            text = f"{_product(literal, names)} {divisor}"
            mul = self.integer(f"mul {text}", f"mul_{_hint(names)}")
            shift = self.integer(f"shift {text}", f"shift_{_hint(names)}")
            quotient = self.magic_div(dividend, mul, shift)
        return quotient, self.sub(dividend, self.mul(quotient, by))

    def done(self) -> CudaKernelOp:
        kernel = self.finish()
        kernel.attributes[INTEGERS] = ArrayAttr(map(StringAttr, self._integers))
        if self._workspace:
            kernel.attributes[WORKSPACE] = ArrayAttr(self._workspace)
        return kernel


def _split(dims: Sequence[Dim]) -> tuple[int, list[str]]:
    literal = 1
    names: list[str] = []
    for d in dims:
        if isinstance(d, int):
            literal *= d
        else:
            names.append(d)
    return literal, sorted(names)


def _product(literal: int, names: Sequence[str]) -> str:
    return "*".join(([str(literal)] if literal != 1 else []) + list(names))


def _hint(names: Sequence[str]) -> str:
    return "_".join(names)
