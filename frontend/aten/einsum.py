"""`einsum`: each letter is a dim; letters that the result lacks are summed, two terms at a time by a matrix product."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from dlcb.dialects.graph.reduce import SumOp
from dlcb.dialects.graph.types import type_of
from dlcb.dialects.graph.view import product
from dlcb.dialects.shape.expr import Expr
from dlcb.frontend.aten.builder import Builder
from dlcb.frontend.aten.parts import take_diagonal
from dlcb.frontend.aten.table import Table, listed

TABLE = Table()


def rank_of(value: SSAValue) -> int:
    return type_of(value).rank


@TABLE.handles("einsum")
def einsum(i: Builder, equation: str, *operands: Any) -> SSAValue:
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms, values = inputs.split(","), list(listed(operands))
    if len(terms) != len(values):
        i.unsupported(f"einsum of '{equation}'")
    if not arrow:
        shown = "..." if "..." in inputs else ""
        output = shown + "".join(sorted(c for c in set(inputs) - {",", "."} if inputs.count(c) == 1))
    terms, output = _spelled_out(i, equation, terms, values, output)
    for at, value in enumerate(values):
        terms[at], values[at] = _without_repeats(i, terms[at], value)
    term, value = terms[0], values[0]
    for at, (other, operand) in enumerate(zip(terms[1:], values[1:], strict=True), 2):
        kept = set(output).union(*terms[at:])
        term, value = _contracted(i, term, value, other, operand, kept)
    term, value = _summed(i, term, value, set(output))
    return i.permute(value, [term.index(c) for c in output])


def _spelled_out(
    i: Builder, equation: str, terms: list[str], values: Sequence[SSAValue], output: str
) -> tuple[list[str], str]:
    """Letters of their own for the dims that "..." stands for."""
    counts = [rank_of(v) - len(t) + 3 for t, v in zip(terms, values, strict=True) if "..." in t]
    if len(set(counts)) > 1:
        i.unsupported(f"einsum of '{equation}' that broadcasts dims of '...'")
    unused = [c for c in string.ascii_letters if c not in equation]
    letters = "".join(unused[: counts[0]]) if counts else ""
    return [t.replace("...", letters) for t in terms], output.replace("...", letters)


def _without_repeats(i: Builder, term: str, value: SSAValue) -> tuple[str, SSAValue]:
    """A letter that stands twice means the diagonal."""
    for letter in set(term):
        while term.count(letter) > 1:
            first = term.index(letter)
            second = term.index(letter, first + 1)
            value = take_diagonal(i, value, 0, first, second)
            term = term[:first] + term[first + 1 : second] + term[second + 1 :] + letter
    return term, value


def _summed(i: Builder, term: str, value: SSAValue, kept: set[str]) -> tuple[str, SSAValue]:
    """Sum over the letters that nothing else has."""
    gone = [axis for axis, letter in enumerate(term) if letter not in kept]
    if not gone:
        return term, value
    return "".join(c for c in term if c in kept), i.reduce(SumOp, value, gone, keep=False)


def _contracted(i: Builder, a: str, lhs: SSAValue, b: str, rhs: SSAValue, kept: set[str]) -> tuple[str, SSAValue]:
    """The product of two terms as one matrix product over leading dims."""
    a, lhs = _summed(i, a, lhs, kept | set(b))
    b, rhs = _summed(i, b, rhs, kept | set(a))
    lead = [c for c in a if c in b and c in kept]
    inner = [c for c in a if c in b and c not in kept]
    rows, columns = [c for c in a if c not in b], [c for c in b if c not in a]
    size = dict(zip(b, i.sizes(rhs), strict=True)) | dict(zip(a, i.sizes(lhs), strict=True))

    def sizes(letters: Sequence[str]) -> list[Expr]:
        return [size[c] for c in letters]

    def matrix(value: SSAValue, term: str, first: Sequence[str], second: Sequence[str]) -> SSAValue:
        moved = i.permute(value, [term.index(c) for c in (*lead, *first, *second)])
        return i.reshape(moved, (*sizes(lead), product(sizes(first)), product(sizes(second))))

    result = i.matmul(matrix(lhs, a, rows, inner), matrix(rhs, b, inner, columns))
    letters = [*lead, *rows, *columns]
    return "".join(letters), i.reshape(result, sizes(letters))
