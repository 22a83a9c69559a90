"""Which sizes of an exported graph may vary although the export has numbers there, and the graph that lets them.

The graph runs once on fake tensors whose sizes are symbols with the example's values: torch's own constraint system. A
number in `view` or `expand` that follows from the operand's sizes becomes an expression of them, with a reason. What
stays is what the program's author may have meant: an op that needs the number pins the size (torch then puts the number
in the symbol's place), and so do numbers that a size, or a common function of it, has by coincidence: without a
derivation nobody can tell.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

import torch
from torch.fx import GraphModule, Interpreter, Node
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

from dlcb.frontend import torch_private as private
from dlcb.frontend.capture.inputs import Arguments
from dlcb.frontend.tracing.source import node_line
from dlcb.passes.derivations import equal_runs

_RESHAPES: Final = frozenset({"view", "reshape", "_unsafe_view"})
_WINDOWS: Final = ("conv", "max_pool", "avg_pool", "adaptive_", "upsample", "_upsample", "im2col", "col2im")
_CUTS: Final = {"slice": 0, "narrow": 0, "select": 0, "unfold": 0, "split": 1, "split_with_sizes": 1, "as_strided": 0}
"""Ops that cut a dim at numbers, and where among the arguments after the tensor they have the dim."""
_NO_SIZES: Final = frozenset(
    {
        "dim", "dims", "dim0", "dim1", "start_dim", "end_dim", "dtype", "correction", "exponent", "alpha", "beta", "p",
        "momentum", "eps", "dropout_p", "padding_idx", "num_groups", "negative_slope", "offset", "diagonal",
    }
)  # fmt: skip
"""Arguments of ATen whose numbers are never sizes of a tensor."""
_SIZE: Final = torch.ops.aten.sym_size.int


@dataclass(slots=True)
class StaticSizes:
    """`pinned`: the symbols of the arguments that may not vary, each with the reason; `derivations`: why numbers of the
    graph are sizes."""

    pinned: dict[str, str] = field(default_factory=dict[str, str])
    derivations: list[str] = field(default_factory=list[str])


def free_static_sizes(module: GraphModule, arguments: Arguments, candidates: set[str]) -> StaticSizes:
    """Edits the graph so that it holds for other values of the candidates, those apart that are `pinned`."""
    found = StaticSizes()
    too_small = {s for s, n in arguments.example_sizes.items() if n < 2} & candidates
    found.pinned |= {s: "its size in the export, 0 or 1, can't be told from broadcasting" for s in too_small}
    if not candidates - too_small:
        return found
    run = _SymbolicRun(module, arguments, candidates - too_small, found)
    try:
        with torch.no_grad(), private.quiet_fakes(), private.symbolic_sizes():
            run.run(*run.inputs, enable_io_processing=False)
    except Exception as error:
        first = str(error).strip().partition("\n")[0]
        found.pinned |= {s: f"the export has no symbolic sizes here: {first}" for s in candidates - too_small}
        return found
    run.edit()
    return found


@dataclass(frozen=True, slots=True)
class _Edit:
    """The number at `index` of the node's size list is the product of these sizes: (tensor, dim)."""

    node: Node
    index: int
    sizes: Sequence[tuple[Node, int]]


class _SymbolicRun(Interpreter):
    def __init__(self, module: GraphModule, arguments: Arguments, free: set[str], found: StaticSizes) -> None:
        super().__init__(module)
        self._found = found
        self._environment = ShapeEnv(duck_shape=False, specialize_zero_one=False)
        self._mode = private.FakeTensorMode(shape_env=self._environment, static_shapes=False)
        self._edits: list[_Edit] = []
        self._symbol_of: dict[Any, str] = {}
        """Torch's symbols → the symbols of the arguments."""
        self._inputs_of: dict[Any, tuple[torch.SymInt, tuple[Node, int]]] = {}
        """The sizes of inputs that torch's symbols are, and where they are: (input, dim)."""
        self._numbers: dict[int, set[Any]] = {}
        """Symbols by the values that sizes made of them had."""
        placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        self.inputs = [self._input(*each, free) for each in zip(placeholders, arguments.leaves, strict=True)]

    def _input(self, node: Node, leaf: Any, free: set[str]) -> Any:
        if leaf.kind != "tensor":
            return leaf.example
        dims = [DimDynamic.DYNAMIC if s in free else DimDynamic.STATIC for s in leaf.symbols]
        context: StatelessSymbolicContext[..., Any] = StatelessSymbolicContext(dynamic_sizes=dims)
        fake = self._mode.from_tensor(leaf.example, symbolic_context=context)
        for dim, (symbol, size) in enumerate(zip(leaf.symbols, fake.shape, strict=True)):
            if isinstance(size, torch.SymInt):
                self._symbol_of[size_expr(size)] = symbol
                self._inputs_of[size_expr(size)] = (size, (node, dim))
        return fake

    # The run

    def run_node(self, n: Node) -> Any:
        with self._mode:
            result = super().run_node(n)
        self._note_specialized(n)
        if n.op == "output":
            self._pin_coincidences("results", result)
        for value in private.flatten(result)[0]:
            if isinstance(value, torch.Tensor):
                self._note_numbers(value)
        return result

    def fetch_attr(self, target: str) -> Any:
        value = super().fetch_attr(target)
        return self._mode.from_tensor(value, static_shapes=True) if isinstance(value, torch.Tensor) else value

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return super().call_function(target, *self._checked(target, args, kwargs))

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        self._node = n
        return super().fetch_args_kwargs_from_env(n)

    def _checked(
        self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if not private.is_overload(target) or private.is_packet(target):
            return args, kwargs
        schema = private.schema_of(target)
        name = schema.name
        if name in _RESHAPES and len(args) == 2:
            return (args[0], self._reshaped(args[0], args[1])), kwargs
        if name == "expand" and len(args) == 2:
            return (args[0], self._expanded(args[0], args[1])), kwargs
        if name in _CUTS:
            self._pin_cut(name, args)
        given = dict(zip([argument for argument, _ in schema.by_position], args, strict=False)) | kwargs
        if name.startswith(_WINDOWS):
            self._pin_windows(given)
            return args, kwargs
        for argument, value in given.items():
            if argument not in _NO_SIZES:
                self._pin_coincidences(argument, value)
        return args, kwargs

    # Derivations

    def _reshaped(self, source: torch.Tensor, shape: Sequence[Any]) -> list[Any]:
        hints = [_hint(size) for size in source.shape]
        target = [_hint(size) for size in shape]
        whole = math.prod(hints)
        rest = math.prod(n for n in target if n != -1)
        numbers = [whole // rest if n == -1 and rest else n for n in target]
        new = list(shape)
        if whole == 0 or math.prod(numbers) != whole:
            return new
        for before, after in equal_runs(hints, numbers):
            for index, sizes, why in self._derived(source, before, [j for j in after if numbers[j] != 1], numbers):
                if type(shape[index]) is int and shape[index] != -1:
                    new[index] = self._derive(index, sizes, why, numbers[index])
        return new

    def _derived(
        self, source: torch.Tensor, before: Sequence[int], wide: Sequence[int], numbers: Sequence[int]
    ) -> Iterator[tuple[int, list[tuple[Any, tuple[Node, int]]], str]]:
        """Which numbers of a run are which sizes: (index, the sizes with their places, why)."""
        operand = cast(Node, self._node.args[0])
        varying = [i for i in before if isinstance(source.shape[i], torch.SymInt)]
        if not varying:
            return
        if len(wide) == 1:
            why = "the dim stays" if len(before) == 1 else "these dims become one"
            yield wide[0], [(source.shape[i], (operand, i)) for i in before], why
            return
        atoms = self._atoms([cast(torch.SymInt, source.shape[i]) for i in varying])
        values = [_hint(size) for size, _ in atoms]
        if len(set(values)) == len(values) and all([numbers[j] for j in wide].count(v) == 1 for v in values):
            for size, place in atoms:
                index = next(j for j in wide if numbers[j] == _hint(size))
                yield index, [(size, place)], "the dim is split into its factors"

    def _atoms(self, sizes: Sequence[torch.SymInt]) -> list[tuple[torch.SymInt, tuple[Node, int]]]:
        """The sizes of inputs whose product this is, each once and to the first power; nothing where it is none."""
        found: list[tuple[torch.SymInt, tuple[Node, int]]] = []
        for size in sizes:
            for factor in size_expr(size).as_ordered_factors():
                if factor.is_Integer:
                    continue
                if factor not in self._inputs_of:
                    return []
                found.append(self._inputs_of[factor])
        return found

    def _expanded(self, source: torch.Tensor, shape: Sequence[Any]) -> list[Any]:
        new = list(shape)
        shift = len(shape) - source.dim()
        for i, size in enumerate(source.shape):
            number = shape[shift + i]
            if isinstance(size, torch.SymInt) and type(number) is int and number == _hint(size) != 1:
                place = (cast(Node, self._node.args[0]), i)
                new[shift + i] = self._derive(shift + i, [(size, place)], "expand keeps a size that is not 1", number)
        explained = [1] * shift + [_hint(size) for size in source.shape]
        for number, size in zip(new, explained, strict=True):
            if type(number) is int and number != size and number in self._numbers:
                self._pin(self._numbers[number], f"{self._title()}: the {number} in its size may be this size")
        return new

    def _derive(self, index: int, sizes: Sequence[tuple[Any, tuple[Node, int]]], why: str, number: int) -> Any:
        self._edits.append(_Edit(self._node, index, [place for _, place in sizes]))
        whole = math.prod([size for size, _ in sizes])
        if isinstance(whole, torch.SymInt):
            expr = str(size_expr(whole).subs({s: name for s, name in self._symbol_of.items()}))
            self._found.derivations.append(f"{self._title()}: {number} is {expr}: {why}")
        return whole

    # Pins

    def _note_numbers(self, value: torch.Tensor) -> None:
        """The sizes of a value, and the products of sizes that stand together."""
        symbols = [_symbols(size) for size in value.shape]
        for first in range(len(symbols) if any(symbols) else 0):
            whole, made_of = 1, set[Any]()
            for size, its in zip(value.shape[first:], symbols[first:], strict=True):
                whole, made_of = whole * _hint(size), made_of | its
                if made_of:
                    self._numbers.setdefault(whole, set()).update(made_of)

    def _pin(self, symbols: set[Any], why: str) -> None:
        for symbol in symbols:
            if symbol in self._symbol_of:
                self._found.pinned.setdefault(self._symbol_of[symbol], why)

    def _note_specialized(self, node: Node) -> None:
        for symbol, name in self._symbol_of.items():
            if name not in self._found.pinned and self._environment.replace(symbol).is_Integer:
                self._found.pinned[name] = f"{self._title()} holds for this size alone"

    def _pin_cut(self, name: str, args: tuple[Any, ...]) -> None:
        """A part of a dim that is cut out by numbers: they may be any function of its size."""
        source, *rest = args
        if name == "as_strided":
            sizes, cuts = list(source.shape), rest
        else:
            place = _CUTS[name]
            sizes = [source.shape[rest[place] if place < len(rest) else 0]]
            cuts = [value for index, value in enumerate(rest) if index != place]
        numbers = private.flatten(cuts)[0]
        if all(type(n) is not int or n in (0, -1, 1, sys.maxsize) for n in numbers):
            return
        for size in sizes:
            if isinstance(size, torch.SymInt):
                self._pin(_symbols(size), f"{self._title()} cuts it at {numbers}, which may be made of it")

    def _pin_windows(self, given: Mapping[str, Any]) -> None:
        """Windows are numbers by nature; one as large as the image, or a size that the image is resized to, may be made
        of the image's sizes."""
        image = next(iter(given.values()))
        resized = given.get("output_size") if given.get("scale_factors") is None else None
        window = given.get("kernel_size")
        for size in image.shape[2:]:
            if not isinstance(size, torch.SymInt):
                continue
            if resized is not None and any(type(n) is int and n > 1 for n in resized):
                self._pin(_symbols(size), f"{self._title()} makes it {resized}, which may be made of it")
            if window is not None and _hint(size) in private.flatten(window)[0]:
                self._pin(_symbols(size), f"{self._title()}: the window {window} may be this size")

    def _pin_coincidences(self, argument: str, value: Any) -> None:
        for number in private.flatten(value)[0]:
            if type(number) is int or type(number) is float:
                for size, symbols in self._numbers.items():
                    if size > 1 and any(math.isclose(number, f, rel_tol=1e-6) for f in _functions(size)):
                        self._pin(symbols, f"{self._title()}: the {number:g} in its {argument} may be this size")

    def _title(self) -> str:
        return f"{_op_name(self._node)} ({node_line(self._node) or '?'})"

    # The graph

    def edit(self) -> None:
        """Write the expressions into the graph."""
        changed: dict[Node, list[Any]] = {}
        for edit in self._edits:
            new = changed.setdefault(edit.node, list(cast(Sequence[Any], edit.node.args[1])))
            with self.module.graph.inserting_before(edit.node):  # pyright: ignore
                new[edit.index] = self._product(edit.sizes)
        for node, shape in changed.items():
            node.update_arg(1, shape)
        cast(GraphModule, self.module).recompile()

    def _product(self, sizes: Sequence[tuple[Node, int]]) -> Node:
        graph = cast(GraphModule, self.module).graph
        made = [graph.call_function(_SIZE, place) for place in sizes]
        whole = made[0]
        for size in made[1:]:
            whole = graph.call_function(operator.mul, (whole, size))
        return whole


def size_expr(size: torch.SymInt) -> Any:
    """The sympy expression that a size is; torch has no type for it."""
    return cast(Any, size).node.expr


def _hint(size: Any) -> int:
    return cast(Any, size).node.hint if isinstance(size, torch.SymInt) else int(size)


def _symbols(size: Any) -> set[Any]:
    return size_expr(size).free_symbols if isinstance(size, torch.SymInt) else set()


def _functions(size: int) -> Iterator[float]:
    """What programs make of a size and write as a number."""
    root = math.sqrt(size)
    yield from (size, size - 1, size + 1, 1 / size, root, 1 / root) if size > 2 else (size, 1 / size, root, 1 / root)


def _op_name(node: Node) -> str:
    return str(node.target).partition(".")[2].partition(".")[0] or str(node.target)
