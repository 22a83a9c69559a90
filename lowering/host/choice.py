"""Which variant of which form of a kernel a launch takes, with how many blocks and which integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from xdsl.dialects.builtin import DictionaryAttr, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, SSAValue

from dlcb.dialects._xdsl import entries, int_of
from dlcb.dialects.coord.schedule import INDEX_LIMIT, WARP, ScheduleAttr
from dlcb.dialects.cuda.ops import KernelOp as CudaKernelOp
from dlcb.dialects.graph.structure import LaunchOp
from dlcb.dialects.graph.types import Dim, DimsAttr, TensorType, dim_of_attr, type_of
from dlcb.dialects.host.builder import HostBuilder
from dlcb.dialects.host.work import Variant
from dlcb.dialects.shape.expr import Expr, ceildiv, const, floordiv, le, lt, mod, mul
from dlcb.dialects.shape.expr import eq as equal
from dlcb.dialects.types import BYTES, i32, i64
from dlcb.lowering.coord_to_cuda import SCHEDULE, SPACE
from dlcb.lowering.host.memory import Memory, span
from dlcb.lowering.kernels.arguments import INTEGERS
from dlcb.passes.sizes import DefinedSizes


class Choice:
    """Builds the variants of one launch."""

    def __init__(
        self, builder: HostBuilder, memory: Memory, sizes: DefinedSizes, kernels: Mapping[str, Sequence[CudaKernelOp]]
    ):
        self.builder = builder
        self.memory = memory
        self.sizes = sizes
        self.kernels = kernels
        self._forms: dict[int, list[_Variant]] = {}
        self._kept: list[Attribute] = []
        self._short: dict[TensorType, SSAValue] = {}

    def variants(self, launch: LaunchOp, buffers: Sequence[SSAValue]) -> list[Variant]:
        """All variants, best first. `buffers` are the values behind the kernel's buffers."""
        names = list(map(self.memory.argument_name, buffers))
        return [variant.build(buffers, names) for form in launch.forms.data for variant in self._variants(form)]

    def _variants(self, form: DictionaryAttr) -> list[_Variant]:
        """The variants of a form; launches of like kernels share its attribute."""
        known = self._forms.get(id(form))
        if known is None:
            kernel, when, bindings = (form.data[k] for k in ("kernel", "when", "bindings"))
            assert isinstance(kernel, SymbolRefAttr)
            assert isinstance(bindings, DictionaryAttr)
            values = {k: self.sizes.dim(dim_of_attr(v)) for k, v in bindings.data.items()}
            condition = self.sizes.dim(dim_of_attr(when))
            known = [_Variant(self, k, condition, values) for k in self.kernels[kernel.root_reference.data]]
            self._forms[id(form)] = known
            self._kept.append(form)
        return known

    def is_short(self, value: SSAValue) -> SSAValue:
        """Do 32-bit offsets reach all of the value's elements?"""
        kind = type_of(value)
        known = self._short.get(kind)
        if known is None:
            known = self._short[kind] = self.builder.truth_value(lt(span(value, self.sizes), INDEX_LIMIT))
        return known


class _Variant:
    """One variant of a form. What does not depend on the launch is computed at its first."""

    def __init__(self, choice: Choice, kernel: CudaKernelOp, when: Expr, bindings: dict[str, Expr]):
        self.choice = choice
        self.builder = choice.builder
        self.kernel = kernel
        self.when = when
        self.bindings = bindings
        schedule, space = kernel.attributes[SCHEDULE], kernel.attributes[SPACE]
        assert isinstance(schedule, ScheduleAttr)
        assert isinstance(space, DictionaryAttr)
        self.schedule = schedule
        self.space = space
        self.rows = self._product(self._dims("outer"))
        self.length = self._product(self._dims("row"))

    def build(self, buffers: Sequence[SSAValue], names: Sequence[str | None]) -> Variant:
        """The variant for these buffers, of which some lie in the memory of arguments of these names."""
        conditions = [*self.fits, *self._alignment(buffers, names)]
        if self.schedule.index == 32:
            conditions += map(self.choice.is_short, buffers)
        fits = self.builder.all_of(*dict.fromkeys(conditions))
        return Variant(self.kernel.sym_name.data, self.schedule.threads, fits, self.blocks, self.integers)

    @cached_property
    def fits(self) -> list[SSAValue]:
        """Conditions on what the kernel's parameters are bound to."""
        return list(map(self.builder.truth_value, (self.when, *self._demands())))

    @cached_property
    def blocks(self) -> SSAValue:
        return self.builder.index_value(self._blocks())

    @cached_property
    def integers(self) -> list[tuple[SSAValue, Attribute]]:
        texts = entries(self.kernel.attributes[INTEGERS])
        return [self._integer(t.data) for t in texts if isinstance(t, StringAttr)]

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
        """Conditions on sizes and strides of the kernel's space."""
        schedule = self.schedule
        found: list[Expr] = []
        if schedule.vector > 1:
            found += [equal(mod(self._value(d), schedule.vector), 0) for d in self._dims("divisible")]
        if schedule.index == 32:
            found.append(lt(mul(self.rows, self.length), INDEX_LIMIT))
            reached = [self._value(d) for d in self._dims("numbers")]
            found += [lt(side, INDEX_LIMIT) for number in reached for side in (number, mul(-1, number))]
        if schedule.items and schedule.row in ("warp", "block"):
            together = WARP if schedule.row == "warp" else schedule.threads
            found.append(le(self.length, together * schedule.items))
        return found

    def _alignment(self, buffers: Sequence[SSAValue], names: Sequence[str | None]) -> list[SSAValue]:
        found: list[SSAValue] = []
        if self.schedule.vector > 1:
            for number in entries(self.space.data["aligned"]):
                i = int_of(number)
                name = names[i]
                if name is not None:
                    width = self.schedule.vector * BYTES[type_of(buffers[i]).element]
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
