"""Which variant of which form of a kernel a launch takes, with how many blocks and which integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import DictionaryAttr, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, SSAValue

from dlcb.dialects._xdsl import entries, int_of
from dlcb.dialects.coord.schedule import WARP, ScheduleAttr
from dlcb.dialects.cuda.ops import KernelOp as CudaKernelOp
from dlcb.dialects.graph.structure import LaunchOp
from dlcb.dialects.graph.types import Dim, DimsAttr, dim_of_attr, type_of
from dlcb.dialects.host.builder import HostBuilder
from dlcb.dialects.host.work import Variant
from dlcb.dialects.shape.expr import Expr, ceildiv, const, floordiv, le, lt, mod, mul
from dlcb.dialects.shape.expr import eq as equal
from dlcb.dialects.types import BYTES, i32, i64
from dlcb.lowering.coord_to_cuda import SCHEDULE, SPACE
from dlcb.lowering.host.memory import Memory, span
from dlcb.lowering.kernels.arguments import INTEGERS
from dlcb.passes.sizes import DefinedSizes

INDEX_LIMIT = 2**31 - 2**16
"""32-bit coordinates and offsets serve below this; the room is for the threads of the last block."""


class Choice:
    """Builds the variants of one launch."""

    def __init__(
        self, builder: HostBuilder, memory: Memory, sizes: DefinedSizes, kernels: Mapping[str, Sequence[CudaKernelOp]]
    ):
        self.builder = builder
        self.memory = memory
        self.sizes = sizes
        self.kernels = kernels

    def variants(self, launch: LaunchOp, buffers: Sequence[SSAValue]) -> list[Variant]:
        """All variants, best first. `buffers` are the values behind the kernel's buffers."""
        found: list[Variant] = []
        for form in launch.forms.data:
            name, when, bindings = self._form(form)
            for kernel in self.kernels[name]:
                found.append(_Variant(self, kernel, bindings, buffers).build(when))
        return found

    def _form(self, form: DictionaryAttr) -> tuple[str, Expr, dict[str, Expr]]:
        kernel, when, bindings = (form.data[k] for k in ("kernel", "when", "bindings"))
        assert isinstance(kernel, SymbolRefAttr)
        assert isinstance(bindings, DictionaryAttr)
        values = {k: self.sizes.dim(dim_of_attr(v)) for k, v in bindings.data.items()}
        return kernel.root_reference.data, self.sizes.dim(dim_of_attr(when)), values


class _Variant:
    def __init__(self, choice: Choice, kernel: CudaKernelOp, bindings: dict[str, Expr], buffers: Sequence[SSAValue]):
        self.choice = choice
        self.builder = choice.builder
        self.kernel = kernel
        self.bindings = bindings
        self.buffers = buffers
        schedule, space = kernel.attributes[SCHEDULE], kernel.attributes[SPACE]
        assert isinstance(schedule, ScheduleAttr)
        assert isinstance(space, DictionaryAttr)
        self.schedule = schedule
        self.space = space
        self.rows = self._product(self._dims("outer"))
        self.length = self._product(self._dims("row"))

    def build(self, when: Expr) -> Variant:
        b = self.builder
        conditions = [b.truth_value(when), *map(b.truth_value, self._demands()), *self._alignment()]
        return Variant(
            self.kernel.sym_name.data,
            self.schedule.threads,
            b.all_of(*conditions),
            b.index_value(self._blocks()),
            [self._integer(text) for text in self._integers()],
        )

    def _dims(self, key: str) -> tuple[Dim, ...]:
        dims = self.space.data[key]
        assert isinstance(dims, DimsAttr)
        return dims.dims

    def _value(self, dim: Dim) -> Expr:
        return const(dim) if isinstance(dim, int) else self.bindings[dim]

    def _product(self, dims: Sequence[Dim]) -> Expr:
        total = const(1)
        for dim in dims:
            total = mul(total, self._value(dim))
        return total

    def _demands(self) -> list[Expr]:
        """Conditions on sizes and strides."""
        schedule = self.schedule
        found: list[Expr] = []
        if schedule.vector > 1:
            found += [equal(mod(self._value(d), schedule.vector), 0) for d in self._dims("divisible")]
        if schedule.index == 32:
            found.append(lt(mul(self.rows, self.length), INDEX_LIMIT))
            found += [lt(span(v, self.choice.sizes), INDEX_LIMIT) for v in self.buffers]
            reached = [self._value(d) for d in self._dims("numbers")]
            found += [lt(side, INDEX_LIMIT) for number in reached for side in (number, mul(-1, number))]
        if schedule.items and schedule.row in ("warp", "block"):
            together = WARP if schedule.row == "warp" else schedule.threads
            found.append(le(self.length, together * schedule.items))
        return found

    def _alignment(self) -> list[SSAValue]:
        found: list[SSAValue] = []
        if self.schedule.vector > 1:
            for number in entries(self.space.data["aligned"]):
                value = self.buffers[int_of(number)]
                name = self.choice.memory.argument_name(value)
                if name is not None:
                    width = self.schedule.vector * BYTES[type_of(value).element]
                    found.append(self.builder.aligned(name, min(width, 16)))
        return found

    def _blocks(self) -> Expr:
        schedule = self.schedule
        match schedule.row:
            case "none":
                return ceildiv(self.rows, schedule.threads * schedule.vector)
            case "warp":
                return ceildiv(self.rows, schedule.threads // WARP)
            case "block":
                return self.rows
            case _:
                return ceildiv(self.rows, schedule.threads)

    def _integers(self) -> list[str]:
        return [t.data for t in entries(self.kernel.attributes[INTEGERS]) if isinstance(t, StringAttr)]

    def _integer(self, text: str) -> tuple[SSAValue, Attribute]:
        """The value of an integer argument, from its text (`lowering/kernels/arguments.py`)."""
        b = self.builder
        what, product, divisor = text.split(" ")
        dims: list[Dim] = [int(d) if d.isdigit() else d for d in product.split("*")]
        value = floordiv(self._product(dims), int(divisor))
        bits = self.schedule.index
        kind = i32 if bits == 32 else i64
        if what == "value":
            return b.index_value(value), kind
        if what == "mul":
            return b.magic_mul(b.index_value(value), bits), kind
        return b.magic_shift(b.index_value(value), bits), kind
