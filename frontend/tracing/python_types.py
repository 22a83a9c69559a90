"""`int` and `float` for the time of a trace, in the modules that the program's own code lies in.

`int(x.shape[2])` makes a plain number, and there is no hook. So the names stand for classes that keep a tracked number
tracked. They are equal to the types they stand for and answer `isinstance` for them, but they are other objects: a
module that does more with the names than call them, ask `isinstance` and annotate keeps Python's.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from types import ModuleType
from typing import Any

from dlcb.frontend.tracing.rewritten import own_modules
from dlcb.frontend.tracing.tracked import to_float, to_int

_CALLED = re.compile(r"\b(?:int|float)\(")


class _StandIn(type):
    """A class that stands for a type of numbers: called, it converts."""

    number: type
    convert: Callable[[Any], Any]

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls.convert(*args) if len(args) == 1 and not kwargs else cls.number(*args, **kwargs)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.number)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.number)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is cls.number

    def __hash__(cls) -> int:
        return hash(cls.number)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.number, name)


class _Int(metaclass=_StandIn):
    number = int
    convert = staticmethod(to_int)


class _Float(metaclass=_StandIn):
    number = float
    convert = staticmethod(to_float)


STAND_INS: dict[str, type] = {"int": _Int, "float": _Float}


def modules_of(program: Callable[..., Any]) -> list[ModuleType]:
    """The modules whose code the program runs and in which both names can be replaced."""
    return [module for module in own_modules(program) if _replaceable(module)]


@cache
def _replaceable(module: ModuleType) -> bool:
    if STAND_INS.keys() & vars(module).keys():
        return False
    try:
        source = inspect.getsource(module)
    except (OSError, TypeError):
        return False
    return _CALLED.search(source) is not None and _only_called(ast.parse(source))


def _only_called(tree: ast.Module) -> bool:
    nodes = list(ast.walk(tree))
    allowed = {id(name) for node in nodes for part in _harmless(node) for name in _names(ast.walk(part))}
    return all(id(name) in allowed for name in _names(nodes)) and not any(
        isinstance(node, ast.arg) and node.arg in STAND_INS for node in nodes
    )


def _names(nodes: Iterable[ast.AST]) -> Iterator[ast.Name]:
    return (node for node in nodes if isinstance(node, ast.Name) and node.id in STAND_INS)


def _harmless(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a node in which a name may stand for another object."""
    match node:
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, classes]):
            yield classes
        case ast.Call(func=ast.Name() as called):
            yield called
        case ast.arg(annotation=ast.expr() as annotation) | ast.AnnAssign(annotation=annotation):
            yield annotation
        case ast.FunctionDef(returns=ast.expr() as returns):
            yield returns
        case _:
            pass
