"""The function `@weights`: arithmetic on weights that the program does once, or once a call, not in the graph.

`@weights` takes weights under their own names and returns what is derived from them. `@main` takes a derived weight as
an argument of kind `weight`; its attribute `dlcb.derived` says which result of `@weights` it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint

from dlcb.dialects._xdsl import append_operands, keep_arguments, set_type
from dlcb.dialects.graph.derived import DERIVED, NAME, derived_numbers
from dlcb.dialects.graph.roots import is_argument
from dlcb.dialects.graph.structure import FuncOp, ReturnOp
from dlcb.dialects.graph.types import Layout, tensor, type_of
from dlcb.dialects.graph.view import CopyOp
from dlcb.dialects.types import i64

_WEIGHT: Final = StringAttr("weight")


def weight_name(value: SSAValue) -> str:
    """The name of an argument of a function."""
    assert isinstance(value, BlockArgument)
    func = value.owner.parent_op()
    assert isinstance(func, FuncOp)
    return func.arg_names.data[value.index].data


def is_weight(value: SSAValue) -> bool:
    """An argument of kind `weight`, the model's own or a derived one."""
    return is_argument(value, "weight")


def is_own_weight(value: SSAValue) -> bool:
    """A weight that is not derived."""
    if not is_weight(value):
        return False
    func = value.owner.parent_op()
    assert isinstance(func, FuncOp)
    return weight_name(value) not in derived_numbers(func)


def why_not_weights(func: Operation | None, values: Sequence[SSAValue]) -> str | None:
    """Why nothing can be derived from these values in `@weights`."""
    if not isinstance(func, FuncOp) or not all(map(is_own_weight, values)):
        return "an operand is no weight"
    updated = func.returned.updated
    changes = bool(updated) and any(isinstance(v, BlockArgument) and v.index in updated for v in values)
    return "the program updates a weight" if changes else None


class WeightFunction:
    """The function `@weights` beside `main`, as a rule extends it."""

    def __init__(self, main: FuncOp, func: FuncOp, rewriter: PatternRewriter) -> None:
        self._main = main
        self._func = func
        self._rewriter = rewriter

    @classmethod
    def of(cls, main: FuncOp, rewriter: PatternRewriter) -> WeightFunction:
        """The one of `main`'s module; a new one before `main` where there is none."""
        block = main.parent_block()
        assert block is not None
        for op in block.ops:
            if isinstance(op, FuncOp) and op.symbol == NAME:
                return cls(main, op, rewriter)
        func = FuncOp.build_from(NAME, Block([ReturnOp.make([])]), [], [])
        rewriter.insert(func, InsertPoint.before(main))
        return cls(main, func, rewriter)

    def arguments(self, values: Sequence[SSAValue]) -> list[SSAValue]:
        """These weights of `main` as arguments of `@weights`, under the same names."""
        known = {name.data: i for i, name in enumerate(self._func.arg_names.data)}
        names = list(map(weight_name, values))
        new = {name: value.type for name, value in zip(names, values, strict=True) if name not in known}
        added = dict(zip(new, _add_arguments(self._func, new), strict=True))
        block = self._func.body.block
        return [added[name] if name in added else block.args[known[name]] for name in names]

    def result_of(self, weight: SSAValue) -> SSAValue | None:
        """The value in `@weights` that a derived weight of `main` is; None for a weight that is not derived."""
        number = derived_numbers(self._main).get(weight_name(weight))
        return self._func.returned.operands[number.value.data] if isinstance(number, IntegerAttr) else None

    def revise(self, weight: SSAValue, value: SSAValue) -> None:
        """Let a derived weight of `main` be this value of `@weights`, of another type maybe."""
        number = derived_numbers(self._main)[weight_name(weight)]
        assert isinstance(number, IntegerAttr)
        self._func.returned.operands[number.value.data] = value
        self._rewriter.notify_op_modified(self._func.returned)
        set_type(weight, value.type)

    def append(self, ops: Sequence[Operation]) -> None:
        self._rewriter.insert(ops, InsertPoint.before(self._func.returned))

    def derive(self, values: Mapping[str, SSAValue]) -> list[SSAValue]:
        """Return these values from `@weights`, and give `main` an argument for each: those are the result."""
        returned, derived = self._func.returned, derived_numbers(self._main)
        names = [next(n for n in _numbered(name) if n not in derived) for name in values]
        added = {name: IntegerAttr(len(returned.operands) + i, i64) for i, name in enumerate(names)}
        self._main.attributes[DERIVED] = DictionaryAttr({**derived, **added})
        append_operands(returned, list(values.values()))
        self._rewriter.notify_op_modified(returned)
        return _add_arguments(self._main, {n: v.type for n, v in zip(names, values.values(), strict=True)})


def lay_weight(weight: SSAValue, user: Operation, layout: Layout) -> SSAValue:
    """The weight as a result of `@weights` that lies so: a derived one is made so, another one is copied there."""
    main = user.parent_op()
    assert isinstance(main, FuncOp)
    derived = WeightFunction.of(main, PatternRewriter(main))
    t = type_of(weight)
    wanted = tensor(t.dims, t.element, layout)
    made = derived.result_of(weight)
    if made is not None and weight.has_one_use():
        set_type(made, wanted)
        set_type(weight, wanted)
        return weight
    (source,) = derived.arguments([weight]) if made is None else [made]
    copy = CopyOp.make([source], [wanted])
    copy.location = user.location
    derived.append([copy])
    (laid,) = derived.derive({f"{weight_name(weight)}|laid": copy.results[0]})
    return laid


def _numbered(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}.{number}"
        number += 1


def _add_arguments(func: FuncOp, types: Mapping[str, Attribute]) -> list[SSAValue]:
    block = func.body.block
    func.properties["arg_names"] = ArrayAttr([*func.arg_names.data, *map(StringAttr, types)])
    func.properties["arg_kinds"] = ArrayAttr([*func.arg_kinds.data, *[_WEIGHT] * len(types)])
    return [block.insert_arg(type, len(block.args)) for type in types.values()]


def drop_unused_weights(func: FuncOp) -> None:
    """Drop the weights that the function does not use. What its return says of arguments follows."""
    block, returned = func.body.block, func.returned
    unused = {
        i for i, (v, kind) in enumerate(zip(block.args, func.kinds, strict=True)) if kind == "weight" and not v.uses
    }
    unused.difference_update(returned.updated, returned.aliased.values())
    if not unused:
        return
    kept = [i for i in range(len(block.args)) if i not in unused]
    moved = {old: new for new, old in enumerate(kept)}
    for name, values in (("arg_names", func.arg_names), ("arg_kinds", func.arg_kinds)):
        func.properties[name] = ArrayAttr([values.data[i] for i in kept])
    keep_arguments(block, kept)
    if returned.updated:
        returned.properties["updates"] = ArrayAttr([IntAttr(moved[i]) for i in returned.updated])
    if returned.aliased:
        pairs = [(result, moved[argument]) for result, argument in returned.aliased.items()]
        returned.properties["aliases"] = ArrayAttr([ArrayAttr([IntAttr(i) for i in pair]) for pair in pairs])
