"""Kernels of graph ops → coordinate kernels.

    %2 = dlcb.graph.kernel(%a = %x, …) {…}
    →  %2 = dlcb.graph.launch(%x, …) {forms = […]}   and, once in the module, dlcb.coord.kernel @k0 …

Equal kernels are built once, those too that differ in literal sizes alone: the launch binds the parameters. Where an
input may have any strides, the launch has two forms: one for inputs that lie as the example's did, in which axes merge,
and the general one; the host program chooses.
Kernels of `@weights`, whose sizes are all literal and differ from layer to layer, take sizes as parameters: they are
many, and none of them is hot.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntAttr, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute
from xdsl.passes import ModulePass

from dlcb.dialects.failure import failures_attr
from dlcb.dialects.graph.base import GraphOp
from dlcb.dialects.graph.structure import FuncOp, KernelOp, LaunchOp
from dlcb.dialects.graph.types import Dim, StridedLayout, type_of
from dlcb.dialects.shape.expr import Expr, const
from dlcb.dialects.shape.system import System
from dlcb.lowering.coordinates.build import build_kernel
from dlcb.lowering.coordinates.elements import failing_ops
from dlcb.lowering.coordinates.infer import kernel_rows
from dlcb.lowering.coordinates.rows import KernelRows
from dlcb.lowering.coordinates.sharing import Sharing
from dlcb.passes.assumed_strides import AssumedStrides, assumed_strides
from dlcb.passes.functions import functions, set_system, system_of
from dlcb.passes.sizes import DefinedSizes
from dlcb.passes.stages import mark_stage
from dlcb.passes.weights import NAME as WEIGHTS

MAX_NAMED_OPS = 4


@dataclass(frozen=True, slots=True)
class Form:
    """One form of a launch: what it computes and for which strides (1: any)."""

    rows: KernelRows
    when: Expr


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a function's sizes and strides; what a form may assume of them; what if inputs have gaps."""

    system: System
    sizes: DefinedSizes
    assumed: AssumedStrides
    pitched: AssumedStrides

    @staticmethod
    def of(func: FuncOp, system: System) -> Known:
        sizes = DefinedSizes.from_system(system)
        return Known(system, sizes, assumed_strides(func, system), assumed_strides(func, system, pitched=True))


def kernel_forms(kernel: KernelOp, known: Known, general: bool = False) -> list[Form]:
    """The forms of a kernel, best first; `general` ones take literal sizes as parameters."""
    layouts = [type_of(v).layout for v in kernel.body.block.args]
    anyhow = Form(kernel_rows(kernel, known.sizes, layouts, general), const(1))
    strided = [i for i, layout in enumerate(layouts) if isinstance(layout, StridedLayout)]
    when = known.assumed.about(kernel, known.system)
    if when.is_const or not _gains(anyhow.rows, strided):
        return [anyhow]
    quick = Form(kernel_rows(kernel, known.assumed.sizes, layouts, general), when)
    if _crosses(quick.rows) and quick.rows.bindings:
        pitched = kernel_rows(kernel, known.pitched.sizes, layouts, general)
        if len(pitched.outer) == len(quick.rows.outer):
            quick = Form(pitched, known.pitched.about(kernel, known.system))
    return [anyhow] if quick.rows.key == anyhow.rows.key else [quick, anyhow]


def _gains(rows: KernelRows, buffers: Sequence[int]) -> bool:
    """Is it worth a form that these buffers lie dense? Not where a whole row reads one element of each."""
    outer = len(rows.outer)
    for row in rows.rows:
        if row[0] == "loop":
            return True
        if row[0] in ("access", "store"):
            buffer, strides = row[1:3] if row[0] == "access" else row[2:4]
            if buffer in buffers and (not rows.row or any(s != 0 for s in strides[outer:])):
                return True
    return False


def _crosses(rows: KernelRows) -> bool:
    """Is it a pointwise kernel that reads along another axis than the innermost one? Where it merges no axes, gaps cost
    it nothing."""
    return not rows.row and any(
        row[0] == "access" and 1 in row[2][:-1] and row[2][-1] not in (0, 1) for row in rows.rows
    )


class _Likeness:
    """Tells whether kernels of one function are alike: the same ops on values of the same types, so the same forms."""

    def __init__(self) -> None:
        self._numbers: dict[Attribute, int] = {}
        self._by_identity: dict[int, tuple[int, Attribute]] = {}
        """The number of each attribute object met, which is kept alive: hashing an attribute is slow."""

    def key(self, kernel: KernelOp) -> Hashable:
        block = kernel.body.block
        places = {id(v): i for i, v in enumerate(block.args)}
        ops: list[Hashable] = []
        for op in block.ops:
            read = tuple([places[id(v)] for v in op.operands])
            given = tuple([(name, self._number(value)) for name, value in op.properties.items()])
            ops.append((type(op), read, given, tuple([self._number(r.type) for r in op.results])))
            for result in op.results:
                places[id(result)] = len(places)
        return kernel.in_place, tuple([self._number(a.type) for a in block.args]), tuple(ops)

    def _number(self, attribute: Attribute) -> int:
        known = self._by_identity.get(id(attribute))
        if known is None:
            number = self._numbers.setdefault(attribute, len(self._numbers))
            known = self._by_identity[id(attribute)] = number, attribute
        return known[0]


class _Lowering:
    """The kernels of all functions are looked at before the first is built: then it is known which are alike."""

    def __init__(self, module: ModuleOp):
        self.module = module
        self.names: dict[Any, str] = {}
        self.found = [(func, *self.forms_of(func)) for func in functions(module)]
        forms = {id(its): its for func, _, kernels in self.found if func.symbol != WEIGHTS for _, its in kernels}
        self.sharing = Sharing(form.rows for its in forms.values() for form in its)

    def forms_of(self, func: FuncOp) -> tuple[System, list[tuple[KernelOp, list[Form]]]]:
        """The kernels of a function with their forms; alike ones have the same list."""
        system = system_of(func)
        inputs, general, likeness = Known.of(func, system), func.symbol == WEIGHTS, _Likeness()
        known: dict[Hashable, list[Form]] = {}
        kernels: list[tuple[KernelOp, list[Form]]] = []
        for op in func.body.block.ops:
            if isinstance(op, KernelOp):
                key = likeness.key(op)
                if key not in known:
                    known[key] = kernel_forms(op, inputs, general)
                kernels.append((op, known[key]))
        return system, kernels

    def run(self) -> None:
        for func, system, kernels in self.found:
            known: dict[int, ArrayAttr[DictionaryAttr]] = {}
            block = func.body.block
            for op, forms in kernels:
                if id(forms) not in known:
                    shared = forms if func.symbol == WEIGHTS else list(map(self.shared, forms))
                    known[id(forms)] = self.built(shared, op, system)
                launch = _launch(op, known[id(forms)])
                block.insert_op_before(launch, op)
                for old, new in zip(op.results, launch.results, strict=True):
                    new.name_hint = old.name_hint
                    old.replace_all_uses_with(new)
                block.erase_op(op)
            set_system(func, system)

    def shared(self, form: Form) -> Form:
        return Form(self.sharing.shared(form.rows), form.when)

    def built(self, forms: Sequence[Form], kernel: KernelOp, system: System) -> ArrayAttr[DictionaryAttr]:
        """The forms as launches have them."""
        made: list[DictionaryAttr] = []
        for form in forms:
            bindings = {f"p{i}": _dim_attr(system.define_fresh(e)) for i, e in enumerate(form.rows.bindings)}
            made.append(
                DictionaryAttr(
                    {
                        "kernel": SymbolRefAttr(self.kernel(form.rows, kernel)),
                        "when": _dim_attr(system.define_fresh(form.when, "c")),
                        "bindings": DictionaryAttr(bindings),
                    }
                )
            )
        return ArrayAttr(made)

    def kernel(self, rows: KernelRows, source: KernelOp) -> str:
        """The name of the module's kernel that computes this."""
        known = self.names.get(rows.key)
        if known is None:
            known = self.names[rows.key] = f"k{len(self.names)}_{_what(source)}"
            built = build_kernel(known, rows)
            built.location = source.location
            self.module.body.block.add_op(built)
        return known


def _launch(kernel: KernelOp, forms: ArrayAttr[DictionaryAttr]) -> LaunchOp:
    """What stands in place of a kernel."""
    properties: dict[str, Attribute] = {"forms": forms}
    if kernel.in_place is not None:
        properties["in_place"] = kernel.in_place
    failures = [failure for op in failing_ops(kernel) if (failure := op.failure()) is not None]
    if failures:
        properties["failures"] = failures_attr(failures)
    launch = LaunchOp.create(
        operands=kernel.operands, result_types=[r.type for r in kernel.results], properties=properties
    )
    launch.location = kernel.location
    return launch


def _what(kernel: KernelOp) -> str:
    """A name for people: the ops that compute, shortened."""
    names = [
        op.name.rpartition(".")[2]
        for op in kernel.body.block.ops
        if isinstance(op, GraphOp) and op.FAMILY not in ("view", "creation")
    ]
    if not names:
        names = [op.name.rpartition(".")[2] for op in kernel.body.block.ops if isinstance(op, GraphOp)]
    shown = names if len(names) <= MAX_NAMED_OPS else [*names[: MAX_NAMED_OPS - 1], "to", names[-1]]
    return "_".join(shown)


def _dim_attr(dim: Dim) -> Attribute:
    return IntAttr(dim) if isinstance(dim, int) else StringAttr(dim)


@dataclass(frozen=True)
class CoordinatesPass(ModulePass):
    """See the module's docstring."""

    name = "dlcb-coordinates"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        _Lowering(op).run()
        mark_stage(op, "coordinates")
