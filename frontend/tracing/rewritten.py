"""The program's own functions, compiled so that no operator reads a tracked number unseen.

Python has no hook for a float on the left of an int (`0.5 * n`), nor for the index of a list. So in the modules where
the program's code lies, binary operators, comparisons and look-ups of every function become calls that notice. That
takes their source; a function without one, or that is not found in it, stays as it is.
"""

from __future__ import annotations

import ast
import inspect
import operator
import sys
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any, cast

import torch

from dlcb.frontend.tracing.blind_calls import CACHED, called, joined, percent
from dlcb.frontend.tracing.tracked import TrackedFloat, TrackedInt, TrackedText, noticing, pinned

_FOREIGN = frozenset({"torch", "numpy", "dlcb", *sys.stdlib_module_names})
_Swap = tuple[FunctionType, CodeType]
_Place = tuple[str, int]
"""Qualified name and first line."""


def _noticing(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: function(noticing(a, b), b.pin("a text") if type(b) is TrackedText else b)


def _modulo(a: Any, b: Any) -> Any:
    """A text's `%` writes the number out."""
    return percent(a, b) if isinstance(a, str) else operator.mod(noticing(a, b), b)


def _within(a: Any, b: Any) -> Any:
    """A range looks at the number alone; what else holds numbers compares them."""
    if isinstance(b, _RANGE) and type(a) in (TrackedInt, TrackedFloat):
        return pinned(a, "a look-up in a range") in b if b.step != 1 else b.start <= a and a < b.stop
    return a in b


def _without(a: Any, b: Any) -> bool:
    return not _within(a, b)


def _item(of: Any, index: Any) -> Any:
    return of[pinned(index, "a look-up") if isinstance(of, (list, tuple, str)) else index]


_NAMES: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}
_OPERATORS = {kind: _noticing(getattr(operator, name)) for kind, name in _NAMES.items()} | {ast.Mod: _modulo}
_IN_PLACE = {kind: _noticing(getattr(operator, f"i{_NAMES[kind]}")) for kind in (ast.Add, ast.Sub, ast.Mult, ast.Div)}
_MARK = "\0dlcb "
_ITEM, _CALL, _TEXT, _IN, _NOT_IN = (f"{_MARK}{name}" for name in ("item", "call", "text", "in", "not in"))
_RANGE = range
_OWN_FRAME = frozenset({"super", "locals", "globals", "vars", "dir", "eval", "exec", "__import__"})
"""Functions that look at who calls them."""
_MESSAGES = frozenset({"logger", "logging", "warnings", "log"})
"""What is called to tell people something: the program does not go by it."""
_CALLEES: dict[str, Callable[..., Any]] = {
    **{f"{_MARK}{kind.__name__}": function for kind, function in _OPERATORS.items()},
    **{f"{_MARK}in place {kind.__name__}": function for kind, function in _IN_PLACE.items()},
    _ITEM: _item,
    _CALL: called,
    _TEXT: joined,
    _IN: _within,
    _NOT_IN: _without,
}
"""By the text that stands for each in the compiled source, which no program has."""


def own_modules(program: Callable[..., Any]) -> list[ModuleType]:
    """The modules that the program's code lies in."""
    classes = {type(m) for m in program.modules()} if isinstance(program, torch.nn.Module) else set[type]()
    names = {name for each in classes for name in (each.__module__, cast(Any, each).forward.__module__)}
    names.add(getattr(program, "__module__", None) or "")
    found = (sys.modules.get(name) for name in names if name and name.partition(".")[0] not in _FOREIGN)
    return [module for module in found if module is not None]


def keeps_results(program: Callable[..., Any]) -> bool:
    """Has its code functions whose results are kept? What a trace makes must not be."""
    spaces = [vars(module) for module in own_modules(program)]
    spaces += [vars(value) for space in spaces for value in list(space.values()) if isinstance(value, type)]
    return any(type(value) is CACHED for space in spaces for value in space.values())


class Rewritten:
    """The functions that a program's code is made of, with the code that takes their place."""

    def __init__(self, program: Callable[..., Any]) -> None:
        self._swaps: list[_Swap] = []
        for module in own_modules(program):
            codes = _rewritten_codes(module)
            for function in _functions_of(module, program):
                code = codes.get((function.__code__.co_qualname, function.__code__.co_firstlineno))
                if code is not None and code.co_freevars == function.__code__.co_freevars:
                    self._swaps.append((function, code))

    @contextmanager
    def __call__(self) -> Generator[None]:
        """The functions have the other code inside."""
        before = [function.__code__ for function, _ in self._swaps]
        for function, code in self._swaps:
            function.__code__ = code
        try:
            yield
        finally:
            for (function, _), code in zip(self._swaps, before, strict=True):
                function.__code__ = code


def _functions_of(module: ModuleType, program: Callable[..., Any]) -> Iterator[FunctionType]:
    """Functions of the module, methods of its classes, and the program's own that are defined in functions; decorated
    ones without what is put around them."""
    classes = {type(m) for m in program.modules()} if isinstance(program, torch.nn.Module) else set[type]()
    pending: list[Any] = [*vars(module).values(), *classes, getattr(program, "__func__", program)]
    seen: set[int] = set()
    while pending:
        found = pending.pop()
        if id(found) in seen or getattr(found, "__module__", None) not in (module.__name__, None):
            continue
        seen.add(id(found))
        match found:
            case staticmethod() | classmethod():
                pending.append(cast(Any, found).__func__)
            case property():
                pending.append(found.fget)
            case type():
                pending += vars(found).values()
            case FunctionType():
                yield found
                pending.append(getattr(found, "__wrapped__", None))
                pending += [cell.cell_contents for cell in found.__closure__ or () if _is_filled(cell)]
            case _:
                pass


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


class _Rewriter(ast.NodeTransformer):
    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if type(node.op) not in _OPERATORS:
            return node
        return _call(node, f"{_MARK}{type(node.op).__name__}", node.left, node.right)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) == 1 and type(node.ops[0]) in (ast.In, ast.NotIn):
            name = _IN if isinstance(node.ops[0], ast.In) else _NOT_IN
            return _call(node, name, node.left, node.comparators[0])
        if len(node.ops) != 1 or type(node.ops[0]) not in _OPERATORS:
            return node
        return _call(node, f"{_MARK}{type(node.ops[0]).__name__}", node.left, node.comparators[0])

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if type(node.op) not in _IN_PLACE or not isinstance(node.target, ast.Name):
            return node
        target = ast.copy_location(ast.Name(node.target.id, ast.Load()), node)
        changed = _call(node, f"{_MARK}in place {type(node.op).__name__}", target, node.value)
        return ast.copy_location(ast.Assign([node.target], changed), node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        plain = isinstance(node.slice, (ast.Constant, ast.Slice, ast.Tuple))
        return node if plain or not isinstance(node.ctx, ast.Load) else _call(node, _ITEM, node.value, node.slice)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        named = node.func.id if isinstance(node.func, ast.Name) else None
        of = node.func.value if isinstance(node.func, ast.Attribute) else None
        if isinstance(of, ast.Name) and of.id in _MESSAGES:
            return node
        self.generic_visit(node)
        if named in _OWN_FRAME:
            return node
        callee = ast.copy_location(ast.Constant(_CALL), node)
        return ast.copy_location(ast.Call(callee, [node.func, *node.args], node.keywords), node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        self.generic_visit(node)
        return _call(node, _TEXT, *[_part(value) for value in node.values])

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        """The run ends there."""
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        node.test = self.visit(node.test)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Annotations are no code of the run."""
        node.value = self.visit(node.value) if node.value is not None else None
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return node


def _part(value: ast.expr) -> ast.expr:
    """A part of a text as `joined` takes it."""
    if not isinstance(value, ast.FormattedValue):
        return value
    form = value.format_spec or ast.copy_location(ast.Constant(""), value)
    conversion = ast.copy_location(ast.Constant(value.conversion), value)
    return ast.copy_location(ast.Tuple([value.value, conversion, form], ast.Load()), value)


def _call(at: ast.expr | ast.stmt, callee: str, *operands: ast.expr) -> ast.expr:
    return ast.copy_location(ast.Call(ast.copy_location(ast.Constant(callee), at), list(operands), []), at)


@cache
def _rewritten_codes(module: ModuleType) -> dict[_Place, CodeType]:
    """The code of every function in the source of a module; those that share a place are left out."""
    try:
        source, path = inspect.getsource(module), inspect.getfile(module)
    except (OSError, TypeError):
        return {}
    tree = ast.fix_missing_locations(_Rewriter().visit(ast.parse(source)))
    found: dict[_Place, CodeType] = {}
    twice: set[_Place] = set()
    for code in _codes_in(_compiled(tree, path)):
        place = code.co_qualname, code.co_firstlineno
        twice |= {place} & found.keys()
        found[place] = code
    return {place: code for place, code in found.items() if place not in twice}


def _compiled(tree: ast.Module, path: str) -> CodeType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        return _with_callees(compile(tree, path, "exec", dont_inherit=True))


def _with_callees(code: CodeType) -> CodeType:
    """The code with the functions in place of the texts that stand for them."""

    def constant(value: Any) -> Any:
        if isinstance(value, CodeType):
            return _with_callees(value)
        return _CALLEES.get(value, value) if isinstance(value, str) else value

    return code.replace(co_consts=tuple(map(constant, code.co_consts)))


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield value
            yield from _codes_in(value)
