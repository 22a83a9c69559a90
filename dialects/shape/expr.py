"""Integer expressions over named sizes: immutable, hash-consed, canonical.

Equal polynomials are the same object, so `is` is equality of expressions; everything that is no polynomial (`floordiv`,
`minimum`, `select`, comparisons, …) is an *atom* of polynomials. A condition is an expression whose value is 0 or 1.
Lists of sizes (`[n, m]`, `concat`, `permute`) are compared by `eq`, and are no numbers.

`floordiv` and `mod` are Python's. A division by zero evaluates to 0, but an expression whose divisor is zero has no
meaning that simplification keeps: `n*m // m` is `n` here.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from dlcb.dialects.shape.functions import (
    broadcast,
    broadcastable,
    call,
    ceildiv,
    divides,
    eq,
    exact_quotient,
    expandable,
    floordiv,
    is_condition,
    isqrt,
    le,
    logical_and,
    logical_not,
    logical_or,
    lt,
    maximum,
    minimum,
    mod,
    ne,
    scaled,
    select,
)
from dlcb.dialects.shape.integers import CALLS, FUNCTIONS
from dlcb.dialects.shape.lists import concat, elements, is_list, permute, size_list
from dlcb.dialects.shape.nodes import (
    ONE,
    ZERO,
    Expr,
    ExprLike,
    Monomial,
    Term,
    add,
    as_expr,
    children,
    const,
    constant_term,
    from_terms,
    mul,
    post_order,
    sub,
    sym,
    terms,
)
from dlcb.errors import InternalError

__all__ = [
    "CALLS",
    "FUNCTIONS",
    "ONE",
    "ZERO",
    "Expr",
    "ExprLike",
    "Monomial",
    "Term",
    "add",
    "as_expr",
    "broadcast",
    "broadcastable",
    "call",
    "ceildiv",
    "children",
    "concat",
    "const",
    "constant_term",
    "divides",
    "elements",
    "eq",
    "evaluate",
    "exact_quotient",
    "expandable",
    "floordiv",
    "from_terms",
    "is_condition",
    "is_list",
    "isqrt",
    "le",
    "logical_and",
    "logical_not",
    "logical_or",
    "lt",
    "maximum",
    "minimum",
    "mod",
    "mul",
    "ne",
    "permute",
    "post_order",
    "replace",
    "scaled",
    "select",
    "size_list",
    "sub",
    "substitute",
    "sym",
    "terms",
]


def evaluate(e: Expr, env: Mapping[str, int]) -> int:
    """The value where each symbol has its value in `env`."""
    if e.value is not None:
        return e.value
    values: dict[Expr, int] = {}
    for node in post_order((e,)):
        if node.value is not None:
            values[node] = node.value
        elif node.op == "symbol":
            if node.name not in env:
                raise InternalError(f"evaluate: symbol '{node.name}' of {e} has no value; given: {sorted(env)}")
            values[node] = int(env[node.name])
        elif node.op in CALLS:
            values[node] = CALLS[node.op](*[values[a] for a in node.args])
        else:
            values[node] = _evaluate_terms(node.terms, values)
    return values[e]


def _evaluate_terms(terms: tuple[Term, ...], values: Mapping[Expr, int]) -> int:
    total = 0
    for coefficient, atoms in terms:
        for atom in atoms:
            coefficient *= values[atom]
        total += coefficient
    return total


def substitute(e: Expr, env: Mapping[str, ExprLike]) -> Expr:
    """The expression with the symbols in `env` replaced, all at once."""
    if e.op == "symbol":
        return as_expr(env[e.name]) if e.name in env else e
    replaced = {sym(name): as_expr(env[name]) for name in e.free if name in env}
    return replace(e, env, replaced) if replaced else e


def replace(e: Expr, names: Container[str], replaced: dict[Expr, Expr]) -> Expr:
    """The expression with nodes replaced: `replaced` has at least the symbols of e in `names`, and gets what else was.

    So a caller who keeps it, for the same values of symbols, has each shared part rebuilt once.
    """
    for node in post_order((e,), replaced):
        if not any([name in names for name in node.free]):
            replaced[node] = node
        elif node.op in CALLS:
            replaced[node] = call(node.op, *[replaced[a] for a in node.args])
        else:
            replaced[node] = from_terms([(c, [replaced[atom] for atom in atoms]) for c, atoms in node.terms])
    return replaced[e]
