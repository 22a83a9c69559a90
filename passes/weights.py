"""The function `@weights`: arithmetic on weights that the program does once, or once a call, instead of in the graph.

`@weights` takes weights under their own names and returns what is derived from them. `@main` takes a derived weight as an
argument of kind `weight`; its attribute `dlcb.derived` says which result of `@weights` it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint

from dlcb.dialects.graph.structure import FuncOp, ReturnOp
from dlcb.dialects.types import i64

NAME: Final = "weights"
DERIVED: Final = "dlcb.derived"


def weight_name(value: SSAValue) -> str:
    """The name of an argument of a function."""
    assert isinstance(value, BlockArgument)
    func = value.owner.parent_op()
    assert isinstance(func, FuncOp)
    return func.names[value.index]


def derived_weights(func: FuncOp) -> dict[str, int]:
    """The function's derived weights, with the number of the result of `@weights` that each is."""
    known = func.attributes.get(DERIVED)
    if not isinstance(known, DictionaryAttr):
        return {}
    return {name: index.value.data for name, index in known.data.items() if isinstance(index, IntegerAttr)}


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

    def argument(self, value: SSAValue) -> SSAValue:
        """The weight of `main` as an argument of `@weights`, under the same name."""
        name = weight_name(value)
        if name in self._func.names:
            return self._func.body.block.args[self._func.names.index(name)]
        return _add_argument(self._func, name, value.type)

    def append(self, ops: Sequence[Operation]) -> None:
        self._rewriter.insert(ops, InsertPoint.before(self._func.returned))

    def derive(self, value: SSAValue, name: str) -> SSAValue:
        """Return the value from `@weights`; the result is the argument of `main` that it becomes."""
        taken = self._main.names
        name = next(n for n in _numbered(name) if n not in taken)
        returned = self._func.returned
        derived = {**derived_weights(self._main), name: len(returned.operands)}
        returned.operands = (*returned.operands, value)
        self._rewriter.notify_op_modified(returned)
        self._main.attributes[DERIVED] = DictionaryAttr({n: IntegerAttr(i, i64) for n, i in derived.items()})
        return _add_argument(self._main, name, value.type)

    def drop_unused(self, values: Iterable[SSAValue]) -> None:
        """Drop those of these arguments of `main` that nothing uses any more."""
        unused = {v.index for v in values if isinstance(v, BlockArgument) and not v.uses}
        if unused:
            drop_arguments(self._main, unused)


def _numbered(name: str) -> Iterable[str]:
    yield name
    number = 2
    while True:
        yield f"{name}.{number}"
        number += 1


def _add_argument(func: FuncOp, name: str, type: Attribute) -> SSAValue:
    block = func.body.block
    func.properties["arg_names"] = ArrayAttr([*func.arg_names.data, StringAttr(name)])
    func.properties["arg_kinds"] = ArrayAttr([*func.arg_kinds.data, StringAttr("weight")])
    return block.insert_arg(type, len(block.args))


def drop_arguments(func: FuncOp, unused: set[int]) -> None:
    """Drop arguments by number. What the function's return says of arguments follows."""
    block, returned = func.body.block, func.returned
    kept = [i for i in range(len(block.args)) if i not in unused]
    moved = {old: new for new, old in enumerate(kept)}
    for name, values in (("arg_names", func.arg_names), ("arg_kinds", func.arg_kinds)):
        func.properties[name] = ArrayAttr([values.data[i] for i in kept])
    for index in sorted(unused, reverse=True):
        block.erase_arg(block.args[index])
    if returned.updated:
        returned.properties["updates"] = ArrayAttr([IntAttr(moved[i]) for i in returned.updated])
    if returned.aliased:
        pairs = [(result, moved[argument]) for result, argument in returned.aliased.items()]
        returned.properties["aliases"] = ArrayAttr([ArrayAttr([IntAttr(i) for i in pair]) for pair in pairs])
