"""Systems as short text, for rule examples and tests; `str(System)` prints it.

n = size(x, 0)          an input symbol: size(ARG, DIM), stride(ARG, DIM), int(ARG)
d = 2*n + 1             a defined symbol
4*d == m  # linear      a requirement and its text; a symbol that nothing introduces is the size of an input
"""

from __future__ import annotations

import ast

from dlcb.dialects.shape.expr import CALLS, Expr, add, as_expr, call, mul, size_list, sym
from dlcb.dialects.shape.requirement import REQUIREMENTS, Require
from dlcb.dialects.shape.system import Source, System
from dlcb.errors import UserError

_BINARY: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Mult: "mul",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.And: "logical_and",
    ast.Or: "logical_or",
}


def parse_expr(text: str) -> Expr:
    """The expression in Python's syntax, which is also what `str` of an expression gives."""
    return _expr(_parse(text))


def parse_system(text: str) -> System:
    system = System()
    for line in text.splitlines():
        content, _, note = line.partition("#")
        if content.strip():
            _read_line(system, content.strip(), note.strip())
    return system


def _read_line(system: System, content: str, note: str) -> None:
    name, equals, value = content.partition(" = ")
    if not equals:
        kind, left, right = _sides(_parse(content))
        _introduce(system, left, right)
        system.requires.append(Require(kind, left, right, note))
        return
    tree = _parse(value)
    if isinstance(tree, ast.Call) and _name(tree.func) in ("size", "stride", "int"):
        system.symbols[name] = _source(tree)
        return
    expr = _expr(tree)
    _introduce(system, expr)
    system.defines[name] = expr


def _source(tree: ast.Call) -> Source:
    argument, *dim = [_name(a) if isinstance(a, ast.Name) else _expr(a).value for a in tree.args]
    match _name(tree.func), argument, dim:
        case "size", str(), [int(d)]:
            return Source.size(argument, d)
        case "stride", str(), [int(d)]:
            return Source.stride(argument, d)
        case "int", str(), []:
            return Source.integer(argument)
        case _:
            raise UserError(f"no source of a symbol: {ast.unparse(tree)}")


def _introduce(system: System, *exprs: Expr) -> None:
    for name in sorted(frozenset[str]().union(*[e.free for e in exprs])):
        if name not in system.defines:
            system.symbols.setdefault(name, Source.size(name, 0))


def _sides(tree: ast.expr) -> tuple[str, Expr, Expr]:
    if isinstance(tree, ast.Compare) and len(tree.ops) == 1:
        return _BINARY[type(tree.ops[0])], _expr(tree.left), _expr(tree.comparators[0])
    if isinstance(tree, ast.Call) and _name(tree.func) == "any_of":
        require = Require.any_of([_expr(a) for a in tree.args])
        return "any_of", require.lhs, require.rhs
    if isinstance(tree, ast.Call) and _name(tree.func) in REQUIREMENTS:
        left, right = tree.args
        return _name(tree.func), _expr(left), _expr(right)
    raise UserError(f"no requirement: {ast.unparse(tree)}")


def _parse(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise UserError(f"no expression: {text}") from error


def _name(tree: ast.expr) -> str:
    return tree.id if isinstance(tree, ast.Name) else ""


def _expr(tree: ast.expr) -> Expr:
    match tree:
        case ast.Constant(value=int(value)):
            return as_expr(value)
        case ast.Name(id=name):
            return sym(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return mul(-1, _expr(operand))
        case ast.BinOp(op=ast.Sub(), left=left, right=right):
            return add(_expr(left), mul(-1, _expr(right)))
        case ast.BinOp(op=op, left=left, right=right) if type(op) in _BINARY:
            return call(_BINARY[type(op)], _expr(left), _expr(right))
        case ast.BoolOp(op=op, values=values):
            return call(_BINARY[type(op)], *map(_expr, values))
        case ast.Compare(ops=[op], left=left, comparators=[right]) if type(op) in _BINARY:
            return call(_BINARY[type(op)], _expr(left), _expr(right))
        case ast.List(elts=elements):
            return size_list(*map(_expr, elements))
        case ast.Call(func=ast.Name(id=function), args=args) if function in CALLS:
            return call(function, *map(_expr, args))
        case _:
            raise UserError(f"no expression over sizes: {ast.unparse(tree)}")
