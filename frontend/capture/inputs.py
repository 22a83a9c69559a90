"""The arguments of a program: leaves with names, and symbols for what may vary."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import torch

from dlcb.dialects.shape.expr import Expr
from dlcb.errors import UnsupportedError, UserError
from dlcb.frontend import torch_private as private


@dataclass(frozen=True, slots=True)
class KnownDims:
    """`named`: symbols that are free, by what they are called, equal ones by one name; `fixed`: those that are not,
    with the reason. The others are free where they can be."""

    named: Mapping[str, list[str]]
    fixed: Mapping[str, str]
    must_vary: bool = True
    """Whether it is an error if the program refuses to let a named one vary; else it is pinned."""
    derived: Mapping[str, Expr] = field(default_factory=dict[str, Expr])
    """Symbols that are functions of others, which are not derived."""


Dynamic = str | bool | Mapping[str, Any] | KnownDims
"""`"auto"`, `False`, or which dims may vary: `{"x": {0: "batch", 1: None}}`; dims of one name are equal."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One leaf of the arguments. `kind` is tensor, int or constant."""

    name: str
    kind: str
    example: Any
    symbols: tuple[str, ...]
    """A symbol for each size of a tensor, or for the int."""

    @property
    def sizes(self) -> tuple[int, ...]:
        if self.kind == "tensor":
            return tuple(self.example.shape)
        return (self.example,) if self.kind == "int" else ()


@dataclass(frozen=True, slots=True)
class Arguments:
    leaves: Sequence[Argument]
    spec: private.TreeSpec

    @property
    def example_sizes(self) -> dict[str, int]:
        """The example's value of every symbol. Ints stand first: of equals the int is the smaller in the trace."""
        ordered = sorted(self.leaves, key=lambda leaf: leaf.kind != "int")
        return {s: n for leaf in ordered for s, n in zip(leaf.symbols, leaf.sizes, strict=True)}

    @property
    def axes(self) -> dict[str, int]:
        """Which dim of its tensor a symbol is the size of."""
        return {s: axis for leaf in self.leaves if leaf.kind == "tensor" for axis, s in enumerate(leaf.symbols)}

    @property
    def axes_from_the_right(self) -> dict[str, int]:
        """The same counted from the last dim, as sizes broadcast: -1, -2, …"""
        tensors = [leaf.symbols for leaf in self.leaves if leaf.kind == "tensor"]
        return {s: axis - len(symbols) for symbols in tensors for axis, s in enumerate(symbols)}

    def text_of(self, symbol: str) -> str:
        """`x.shape[0]` for the symbol of a size."""
        for leaf in self.leaves:
            if symbol in leaf.symbols:
                return leaf.name if leaf.kind == "int" else f"{leaf.name}.shape[{leaf.symbols.index(symbol)}]"
        return symbol


def read_arguments(program: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Arguments:
    parameters = _parameters(program)
    leaves, spec = private.flatten_with_paths((tuple(args), dict(kwargs)))
    taken: set[str] = set()
    return Arguments([_argument(_name(path, parameters), leaf, taken) for path, leaf in leaves], spec)


def signature_of(program: Callable[..., Any]) -> inspect.Signature | None:
    """Of a function, or of a module's `forward`; None where there is none, as of functions of C."""
    try:
        return inspect.signature(program.forward if isinstance(program, torch.nn.Module) else program)
    except (TypeError, ValueError):
        return None


def in_order(
    signature: inspect.Signature | None, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments in the order of the parameters, by position where that is possible: so equal calls look equal. What
    does not fit the signature stays as it is."""
    if not kwargs or signature is None:
        return tuple(args), dict(kwargs)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return tuple(args), dict(kwargs)
    return bound.args, bound.kwargs


def parameter_names(signature: inspect.Signature | None, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[str]:
    """The names of the parameters that these arguments go to, in order."""
    if signature is None:
        return [*(f"arg_{number}" for number in range(len(args))), *kwargs]
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise UserError(f"the example inputs do not fit the program: {error}") from None
    names: list[str] = []
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            names += [f"{name}{i}" for i in range(len(value))]
        elif kind is inspect.Parameter.VAR_KEYWORD:
            names += list(value)
        else:
            names.append(name)
    return names


def _parameters(program: Callable[..., Any]) -> list[tuple[str, bool]]:
    """Names of the positional parameters, and whether it is the starred one."""
    signature = signature_of(program)
    found = () if signature is None else signature.parameters.values()
    return [(p.name, p.kind is p.VAR_POSITIONAL) for p in found if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD)]


def _name(path: list[Any], parameters: list[tuple[str, bool]]) -> str:
    is_keyword, first, *rest = path
    words: list[Any]
    if is_keyword:
        words = [first]
    elif first < len(parameters) and not parameters[first][1]:
        words = [parameters[first][0]]
    elif parameters and parameters[-1][1]:
        words = [parameters[-1][0], first - len(parameters) + 1]
    else:
        words = ["arg", first]
    return re.sub(r"\W+", "_", "_".join(map(str, [*words, *rest])))


def _argument(name: str, leaf: Any, taken: set[str]) -> Argument:
    while name in taken:
        name += "_"
    taken.add(name)
    if isinstance(leaf, torch.Tensor):
        if leaf.layout is not torch.strided or leaf.is_quantized or leaf.is_nested:
            raise UnsupportedError(
                f"argument {name}: a tensor of {leaf.dtype}, {leaf.layout}; DLCB takes dense tensors"
            )
        symbols = tuple(f"{name}_{dim}" for dim in range(leaf.dim()))
        taken.update(symbols)
        return Argument(name, "tensor", leaf, symbols)
    if may_vary(leaf):
        return Argument(name, "int", leaf, (name,))
    if leaf is None or isinstance(leaf, (bool, int, float, str, torch.dtype, torch.device)):
        return Argument(name, "constant", leaf, ())
    raise UnsupportedError(f"argument {name} is a {type(leaf).__name__}; pass the tensors in it")


_LARGEST = 1 << 40


def may_vary(leaf: Any) -> bool:
    """Is it an integer that may be a size? Negative and huge ones are constants of the program."""
    return type(leaf) is int and 0 <= leaf < _LARGEST


def fixed_symbols(arguments: Arguments, dynamic: Dynamic) -> dict[str, str]:
    """The symbols that the user does not let vary, each with the reason."""
    if dynamic == "auto" or dynamic is True:
        return {}
    if isinstance(dynamic, KnownDims):
        return dict(dynamic.fixed)
    every = dict.fromkeys(arguments.example_sizes, "dynamic=False" if dynamic is False else "not named in dynamic")
    for symbol in (s for group in named_dims(arguments, dynamic).values() for s in group):
        del every[symbol]
    return every


def named_dims(arguments: Arguments, dynamic: Dynamic) -> dict[str, list[str]]:
    """For each name that the user gave: the symbols it stands for. The first is the one the others are equal to."""
    if isinstance(dynamic, KnownDims):
        return dict(dynamic.named)
    if not isinstance(dynamic, Mapping):
        return {}
    leaves = {leaf.name: leaf for leaf in arguments.leaves}
    groups: dict[str, list[str]] = {}
    for argument, dims in dynamic.items():
        if argument not in leaves or not leaves[argument].symbols:
            known = [name for name, leaf in leaves.items() if leaf.symbols]
            raise UserError(f"dynamic names '{argument}'; the arguments with sizes are {known}")
        symbols = leaves[argument].symbols
        named = cast(Mapping[int, Any], dims) if isinstance(dims, Mapping) else {0: dims}
        for dim, name in named.items():
            if not -len(symbols) <= dim < len(symbols):
                raise UserError(f"dynamic names dim {dim} of '{argument}', which has {len(symbols)} dims")
            symbol = symbols[dim]
            groups.setdefault(name if isinstance(name, str) else symbol, []).append(symbol)
    return groups


def different_sizes(given: Arguments, named: Mapping[str, Sequence[str]]) -> str:
    """Dims of one name must be equal, and the program runs on the example, so they are equal there: which are not;
    empty where all are."""
    sizes = given.example_sizes
    for name, (first, *others) in named.items():
        for other in others:
            a, b = sizes[first], sizes[other]
            if a != b:
                both = f"{given.text_of(first)} and {given.text_of(other)}"
                return f"dynamic calls both {both} '{name}', but they are {a} and {b} in the example"
    return ""


def user_names(arguments: Arguments, dynamic: Dynamic) -> dict[str, str]:
    """What the user calls a size → the first place where it is: `batch` → `x.shape[0]`."""
    named = named_dims(arguments, dynamic)
    return {name: arguments.text_of(found[0]) for name, found in named.items() if name != found[0]}
