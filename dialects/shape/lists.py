"""Lists of sizes, which requirements compare. A list is no number: it stands in `eq` and in other lists only.

Nothing is folded here: to take lists apart is a law of the solver.
"""

from __future__ import annotations

from dlcb.dialects.shape.integers import LIST_FUNCTIONS
from dlcb.dialects.shape.nodes import Expr, ExprLike, as_expr, function_node
from dlcb.errors import InternalError


def size_list(*elements: ExprLike) -> Expr:
    return function_node("list", tuple(map(as_expr, elements)))


def concat(*lists: Expr) -> Expr:
    """One list after the other."""
    return function_node("concat", lists)


def permute(of: Expr, *order: ExprLike) -> Expr:
    """Element i of the result is element order[i]."""
    places = tuple(map(as_expr, order))
    if sorted(place.value for place in places if place.value is not None) != list(range(len(elements(of)))):
        raise InternalError(f"permute: {', '.join(map(str, places))} is no order of {of}")
    return function_node("permute", (of, *places))


def is_list(e: Expr) -> bool:
    return e.op in LIST_FUNCTIONS


def elements(e: Expr) -> tuple[Expr, ...]:
    """The sizes that the list consists of."""
    match e.op:
        case "list":
            return e.args
        case "concat":
            return tuple([element for part in e.args for element in elements(part)])
        case "permute":
            of = elements(e.args[0])
            return tuple([of[place.value or 0] for place in e.args[1:]])
        case _:
            raise InternalError(f"{e} is a number, and no list of sizes")
