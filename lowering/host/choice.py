"""Which variant of which form of a kernel a launch takes, with how many blocks and which integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from xdsl.dialects.builtin import DictionaryAttr, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, SSAValue

from dlcb.dialects._xdsl import entries, int_of
from dlcb.dialects.coord.schedule import INDEX_LIMIT, MAX_THREAD_ROW, SHORT_ROW, WARP, ScheduleAttr
from dlcb.dialects.coord.transpose import MIN_SIDE, TransposeAttr
from dlcb.dialects.cuda.ops import KernelOp as CudaKernelOp
from dlcb.dialects.graph.structure import LaunchOp
from dlcb.dialects.graph.types import Dim, DimsAttr, TensorType, dim_of_attr, type_of
from dlcb.dialects.host.builder import HostBuilder
from dlcb.dialects.host.work import Variant
from dlcb.dialects.shape.expr import Expr, add, ceildiv, const, floordiv, le, lt, mod, mul, ne, select
from dlcb.dialects.shape.expr import eq as equal
from dlcb.dialects.types import BYTES, i32, i64
from dlcb.lowering.coord_to_cuda import SCHEDULE, SPACE
from dlcb.lowering.host.memory import Array, Memory, span
from dlcb.lowering.kernels import arguments
from dlcb.lowering.kernels.arguments import INTEGERS, WORKSPACE
from dlcb.passes.parts import beside, block_rows, chunk_of, fills_device, groups_of, parts_of
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
        self._forms: dict[int, _Form] = {}
        self._kept: list[Attribute] = []
        self._short: dict[TensorType, SSAValue] = {}

    def launches(self, launch: LaunchOp, buffers: Sequence[SSAValue]) -> list[list[Variant]]:
        """The variants, best first, of each launch of the kernel: where its rows may be cut into parts, step after step
        and then the kernel that does all at once, else that alone; those that a call does not use have no blocks.
        `buffers` are the values behind the kernel's buffers."""
        names = list(map(self.memory.argument_name, buffers))
        found: dict[int | None, list[Variant]] = {}
        for form in self.forms(launch):
            for variant in form.variants:
                found.setdefault(variant.schedule.step, []).append(variant.build(buffers, names))
        whole = found.pop(None)
        return [*found.values(), whole]

    def workspace(self, launch: LaunchOp) -> list[Array]:
        """Sizes and element types of the arrays that the steps of a launch share: empty where a call takes none."""
        forms = self.forms(launch)
        parts = const(0)
        for form in reversed(forms):
            parts = select(ne(form.when, 0), form.parts, parts)
        elements = next((v.workspace for f in forms for v in f.variants if v.schedule.step is not None), ())
        return [((parts, forms[0].rows), element) for element in elements]

    def forms(self, launch: LaunchOp) -> list[_Form]:
        """Launches of like kernels share their forms."""
        return [self._form(form) for form in launch.forms.data]

    def _form(self, form: DictionaryAttr) -> _Form:
        known = self._forms.get(id(form))
        if known is None:
            kernel, when, bindings = (form.data[k] for k in ("kernel", "when", "bindings"))
            assert isinstance(kernel, SymbolRefAttr)
            assert isinstance(bindings, DictionaryAttr)
            values = {k: self.sizes.dim(dim_of_attr(v)) for k, v in bindings.data.items()}
            condition = self.sizes.dim(dim_of_attr(when))
            known = _Form(self, self.kernels[kernel.root_reference.data], condition, values)
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


class _Form:
    """One form of a launch: its variants, and how much there is to do. `parts`: into how many parts rows are cut."""

    def __init__(self, choice: Choice, kernels: Sequence[CudaKernelOp], when: Expr, bindings: dict[str, Expr]):
        self.choice = choice
        self.when = when
        self.bindings = bindings
        space = kernels[0].attributes[SPACE]
        assert isinstance(space, DictionaryAttr)
        self.space = space
        self.rows = self.product(self.dims("outer"))
        self.length = self.product(self.dims("row"))
        self.variants = [_Variant(self, kernel) for kernel in kernels]
        most = max([block_rows(v.schedule) for v in self.variants if v.schedule.step is not None], default=0)
        stored = bool(int_of(space.data["stored"]))
        self.parts = parts_of(self.rows, self.length, most, stored) if most else const(0)

    @property
    def has_vectors(self) -> bool:
        """Is there a variant for lines that are whole vectors? Else single elements are best for them: concatenations
        reach 0.86 of a copy's bytes a second so, 0.79 by vectors put together of parts."""
        return any(v.schedule.vector > 1 and not v.schedule.shifted for v in self.variants)

    def part(self, name: str) -> DictionaryAttr:
        part = self.space.data[name]
        assert isinstance(part, DictionaryAttr)
        return part

    def dims(self, key: str, part: str | None = None) -> tuple[Dim, ...]:
        dims = (self.space if part is None else self.part(part)).data[key]
        assert isinstance(dims, DimsAttr)
        return dims.dims

    def value(self, dim: Dim) -> Expr:
        return const(dim) if isinstance(dim, int) else self.bindings[dim]

    def product(self, dims: Sequence[Dim]) -> Expr:
        total = const(1)
        for dim in dims:
            total = mul(total, self.value(dim))
        return total


def _demanding(schedule: ScheduleAttr) -> str:
    """The part of the space that says what vectors along the innermost axis demand, or beside columns."""
    if schedule.row == "column":
        return "columns"
    return "shifted" if schedule.shifted else "vector"


class _Variant:
    """One variant of a form. What does not depend on the launch is computed at its first."""

    def __init__(self, form: _Form, kernel: CudaKernelOp):
        self.form = form
        self.choice = form.choice
        self.builder = form.choice.builder
        self.kernel = kernel
        schedule = kernel.attributes[SCHEDULE]
        assert isinstance(schedule, ScheduleAttr)
        self.schedule = schedule
        outer, row = form.dims("outer"), form.dims("row")
        if schedule.row != "none" and not row:
            outer, row = outer[:-1], outer[-1:]
        self.rows, self.length = form.product(outer), form.product(row)

    def build(self, buffers: Sequence[SSAValue], names: Sequence[str | None]) -> Variant:
        """The variant for these buffers, of which some lie in the memory of arguments of these names."""
        conditions = [*self.fits, *self._alignment(buffers, names)]
        if self.schedule.index == 32:
            conditions += map(self.choice.is_short, buffers)
        fits = self.builder.all_of(*dict.fromkeys(conditions))
        return Variant(self.kernel.sym_name.data, self.schedule.threads, fits, self.blocks, self.integers)

    @property
    def workspace(self) -> Sequence[Attribute]:
        return entries(self.kernel.attributes[WORKSPACE])

    @cached_property
    def fits(self) -> list[SSAValue]:
        """Conditions on what the kernel's parameters are bound to."""
        return list(map(self.builder.truth_value, (self.form.when, *self._demands())))

    @cached_property
    def blocks(self) -> SSAValue:
        return self.builder.index_value(self._blocks())

    @cached_property
    def integers(self) -> list[tuple[SSAValue, Attribute]]:
        texts = entries(self.kernel.attributes[INTEGERS])
        return [self._integer(t.data) for t in texts if isinstance(t, StringAttr)]

    def _demands(self) -> list[Expr]:
        """Conditions on sizes and strides of the kernel's space."""
        schedule, form = self.schedule, self.form
        found: list[Expr] = []
        for vector, what in self._vectors():
            found += [equal(mod(form.value(d), vector), 0) for d in form.dims("divisible", what)]
        if schedule.transpose is not None:
            found += [le(MIN_SIDE, form.value(d)) for d in self._axes(schedule.transpose)]
        if schedule.index == 32:
            found.append(lt(mul(self.rows, self.length), INDEX_LIMIT))
            reached = [form.value(d) for d in form.dims("numbers")]
            found += [lt(side, INDEX_LIMIT) for number in reached for side in (number, mul(-1, number))]
        if schedule.items and schedule.row in ("warp", "block"):
            together = WARP if schedule.row == "warp" else schedule.threads
            outside = schedule.vector - 1 if schedule.shifted else 0
            found.append(le(add(self.length, outside), together * schedule.items))
        if schedule.row == "column" and schedule.vector > 1 and schedule.step is None:
            found.append(fills_device(self.rows, block_rows(schedule)))
        if schedule.shifted and not form.dims("row"):
            found.append(le(SHORT_ROW, self.length))
            if not form.has_vectors:
                found.append(ne(mod(self.length, schedule.vector), 0))
        if schedule.row == "thread":
            found.append(le(self.length, MAX_THREAD_ROW))
        return found

    def _alignment(self, buffers: Sequence[SSAValue], names: Sequence[str | None]) -> list[SSAValue]:
        found: list[SSAValue] = []
        for vector, what in self._vectors():
            for number in entries(self.form.part(what).data["aligned"]):
                i = int_of(number)
                name = names[i]
                if name is not None:
                    width = vector * BYTES[type_of(buffers[i]).element]
                    found.append(self.builder.aligned(name, min(width, 16)))
        return found

    def _vectors(self) -> list[tuple[int, str]]:
        """The widths of vectors, each with the part of the space that says what they demand."""
        tile = self.schedule.transpose
        if tile is None:
            widths = [(self.schedule.vector, _demanding(self.schedule))]
        else:
            widths = [(self.schedule.vector, "across"), (tile.vector, "along")]
        return [(vector, what) for vector, what in widths if vector > 1]

    def _axes(self, tile: TransposeAttr) -> tuple[Dim, Dim]:
        """The sizes of the axes of tiles."""
        outer = self.form.dims("outer")
        return outer[tile.axis], outer[-1]

    def _blocks(self) -> Expr:
        """A call runs either the steps or the kernel that does all at once. A step that asks how many blocks share a
        part's number has a block a part."""
        parts = self.form.parts
        if self.schedule.step is None:
            return select(le(1, parts), 0, self._groups())
        if StringAttr(f"value {arguments.GROUPS} 1") in entries(self.kernel.attributes[INTEGERS]):
            return mul(parts, self._groups())
        return select(le(1, parts), self._groups(), 0)

    def _groups(self) -> Expr:
        """The blocks that have different outer coordinates."""
        schedule, rows = self.schedule, self.rows
        if schedule.transpose is not None:
            return self._tiles(schedule.transpose)
        match schedule.row:
            case "none":
                return ceildiv(rows, schedule.threads * schedule.items)
            case "warp":
                return ceildiv(rows, schedule.threads // WARP)
            case "thread":
                return ceildiv(rows, schedule.threads)
            case _:
                return groups_of(rows, block_rows(schedule))

    def _tiles(self, tile: TransposeAttr) -> Expr:
        outer = self.form.dims("outer")
        others = [dim for i, dim in enumerate(outer[:-1]) if i != tile.axis]
        return mul(self._number(arguments.COLUMNS), self._number(arguments.BANDS), self.form.product(others))

    def _integer(self, text: str) -> tuple[SSAValue, Attribute]:
        """The value of an integer argument, from its text (`lowering/kernels/arguments.py`)."""
        b = self.builder
        what, product, divisor = text.split(" ")
        total = const(1)
        for dim in product.split("*"):
            total = mul(total, const(int(dim)) if dim.isdigit() else self._number(dim))
        value = floordiv(total, int(divisor))
        bits = self.schedule.index
        kind = i32 if bits == 32 else i64
        if what == "value":
            return b.index_value(value), kind
        if what == "mul":
            return b.magic_mul(b.index_value(value), bits), kind
        return b.magic_shift(b.index_value(value), bits), kind

    def _lanes(self) -> Expr:
        """The threads of a column's block that stand beside one another."""
        return ceildiv(beside(self.form.rows, block_rows(self.schedule)), self.schedule.vector)

    def _number(self, name: str) -> Expr:
        form = self.form
        match name:
            case arguments.LANES:
                return self._lanes()
            case arguments.ACROSS:
                return floordiv(self.schedule.threads, self._lanes())
            case arguments.PARTS:
                return form.parts
            case arguments.CHUNK:
                return chunk_of(form.length, form.parts)
            case arguments.GROUPS:
                return self._groups()
            case arguments.COLUMNS | arguments.BANDS:
                tile = self.schedule.transpose
                assert tile is not None
                band, column = self._axes(tile)
                size, side = (column, tile.across) if name == arguments.COLUMNS else (band, tile.along)
                return ceildiv(form.value(size), side)
            case _:
                return form.value(name)
