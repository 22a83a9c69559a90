"""Coordinates stay what they were: simplified, split into strides, merged into fewer axes, moved through a reshape."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dlcb.dialects.graph.view import reshape_coords, reshape_strides, row_major_strides
from dlcb.dialects.shape.expr import (
    Expr,
    add,
    const,
    eq,
    evaluate,
    floordiv,
    le,
    lt,
    maximum,
    minimum,
    mod,
    mul,
    ne,
    select,
    sub,
    sym,
)
from dlcb.lowering.coordinates.axes import Axis, linear_form, merge
from dlcb.passes.solver.ranges import Ranges

SYMBOLS = ("n", "m", "k")
VALUES = st.fixed_dictionaries({name: st.integers(1, 5) for name in SYMBOLS})
SIZES = st.sampled_from(
    [*map(sym, SYMBOLS), *map(const, (1, 2, 3, 4)), mul(sym("n"), sym("m")), mul(2, sym("k")), add(sym("n"), 1)]
)
COORDS = tuple(sym(f"$o{i}") for i in range(3))
CONDITIONS = {"eq": eq, "le": le, "lt": lt}


def points(sizes: Sequence[Expr], env: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Every coordinate of a space, with the sizes' symbols."""
    for at in itertools.product(*(range(evaluate(s, env)) for s in sizes)):
        yield {**env, **{c.name: p for c, p in zip(COORDS, at, strict=False)}}


@st.composite
def coordinate_exprs(draw: Any, sizes: Sequence[Expr], depth: int = 3) -> Expr:
    """What reshapes, slices, pads and windows make of coordinates."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from([*COORDS[: len(sizes)], *sizes, const(1), const(3)]))
    x = draw(coordinate_exprs(sizes, depth - 1))
    match draw(st.sampled_from(["add", "sub", "scale", "floordiv", "mod", "linear", "extremum", "one"])):
        case "add":
            return add(x, draw(coordinate_exprs(sizes, depth - 1)))
        case "sub":
            return sub(x, draw(coordinate_exprs(sizes, depth - 1)))
        case "scale":
            return mul(x, draw(SIZES))
        case "floordiv":
            return floordiv(x, draw(SIZES))
        case "mod":
            return mod(x, draw(SIZES))
        case "linear":
            size = draw(st.integers(0, len(sizes) - 1))
            return add(mul(x, sizes[size]), COORDS[size])
        case "extremum":
            return draw(st.sampled_from([minimum, maximum]))(x, draw(coordinate_exprs(sizes, depth - 1)))
        case _:
            return mul(x, ne(draw(SIZES), 1))


SPACES = st.lists(SIZES, min_size=1, max_size=3).map(tuple)
SPACES_AND_EXPRS = SPACES.flatmap(lambda s: st.tuples(st.just(s), coordinate_exprs(s)))
SPACES_AND_PAIRS = SPACES.flatmap(lambda s: st.tuples(st.just(s), coordinate_exprs(s), coordinate_exprs(s)))


def ranges_of(sizes: Sequence[Expr]) -> Ranges:
    ranges = Ranges()
    for coord, size in zip(COORDS, sizes, strict=False):
        ranges.axis(coord, size)
    return ranges


@settings(max_examples=150)
@given(SPACES_AND_EXPRS, VALUES)
def test_a_simplified_coordinate_is_equal_everywhere_in_its_space(drawn: Any, env: dict[str, int]) -> None:
    sizes, expr = drawn
    simple = ranges_of(sizes).simplify(expr)
    for at in points(sizes, env):
        assert evaluate(simple, at) == evaluate(expr, at), f"{expr} became {simple} at {at}"


@settings(max_examples=150)
@given(SPACES_AND_PAIRS, st.sampled_from(sorted(CONDITIONS)), VALUES)
def test_the_guards_that_are_left_hold_where_the_guard_holds(drawn: Any, kind: str, env: dict[str, int]) -> None:
    sizes, lhs, rhs = drawn
    left = ranges_of(sizes).guard([(kind, lhs, rhs)])
    for at in points(sizes, env):
        holds = bool(evaluate(CONDITIONS[kind](lhs, rhs), at))
        kept = left is not None and all(evaluate(CONDITIONS[k](a, b), at) for k, a, b in left)
        assert kept == holds, f"{lhs} {kind} {rhs} became {left} at {at}"


@settings(max_examples=150)
@given(SPACES_AND_EXPRS, VALUES)
def test_the_ends_of_a_number_enclose_it(drawn: Any, env: dict[str, int]) -> None:
    sizes, expr = drawn
    low, high = ranges_of(sizes).ends(expr)
    for at in points(sizes, env):
        value = evaluate(expr, at)
        assert low is None or evaluate(low, at) <= value
        assert high is None or value <= evaluate(high, at)


@settings(max_examples=150)
@given(SPACES_AND_EXPRS, VALUES)
def test_an_offset_is_its_strides_and_what_is_left(drawn: Any, env: dict[str, int]) -> None:
    sizes, expr = drawn
    form = linear_form(expr, frozenset(c.name for c in COORDS[: len(sizes)]))
    whole = add(form.extra, *[mul(stride, sym(name)) for name, stride in form.strides.items()])
    assert all(not n.startswith("$") for stride in form.strides.values() for n in stride.free)
    for at in points(sizes, env):
        assert evaluate(whole, at) == evaluate(expr, at)


STRIDES = st.sampled_from([const(0), const(1), const(2), *map(sym, SYMBOLS), mul(sym("n"), sym("m"))])


@st.composite
def forms(draw: Any) -> tuple[list[Axis], list[Expr]]:
    """A space and offsets in it, of which many are contiguous over neighbouring axes."""
    sizes = draw(st.lists(SIZES, min_size=1, max_size=3))
    axes = [Axis(f"$o{i}", size) for i, size in enumerate(sizes)]
    offsets: list[Expr] = []
    for _ in range(draw(st.integers(1, 3))):
        dense = draw(st.booleans())
        strides = row_major_strides(sizes) if dense else [draw(STRIDES) for _ in sizes]
        offsets.append(add(*[mul(c, s) for c, s in zip(COORDS, strides, strict=False)]))
    return axes, offsets


@settings(max_examples=150)
@given(forms(), st.sets(st.sampled_from(["$o0", "$o1", "$o2"]), max_size=1), VALUES)
def test_merged_axes_visit_the_same_offsets_in_the_same_order(
    drawn: tuple[list[Axis], list[Expr]], fixed: set[str], env: dict[str, int]
) -> None:
    axes, offsets = drawn
    linear = [linear_form(o, frozenset(a.name for a in axes)) for o in offsets]
    merged = merge(axes, linear, frozenset(fixed))
    assert fixed & {a.name for a in axes} <= {a.name for a in merged}
    before = [[evaluate(o, at) for o in offsets] for at in points([a.size for a in axes], env)]
    after: list[list[int]] = []
    for at in itertools.product(*(range(evaluate(a.size, env)) for a in merged)):
        place = {a.name: p for a, p in zip(merged, at, strict=True)}
        strides = [[evaluate(f.strides.get(a, const(0)), env) * p for a, p in place.items()] for f in linear]
        after.append([sum(s) for s in strides])
    assert after == before


@st.composite
def reshapes(draw: Any) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """Two shapes of equal products, by merging, splitting, reordering factors and putting 1s between."""
    factors = draw(st.lists(SIZES, min_size=1, max_size=4))

    def shape(of: Sequence[Expr]) -> tuple[Expr, ...]:
        sizes: list[Expr] = []
        for factor in of:
            if sizes and draw(st.booleans()):
                sizes[-1] = mul(sizes[-1], factor)
            else:
                sizes.append(factor)
            if draw(st.integers(0, 3)) == 0:
                sizes.append(const(1))
        return tuple(sizes)

    again = draw(st.permutations(factors)) if draw(st.integers(0, 3)) == 0 else factors
    return shape(factors), shape(again)


def places(sizes: Sequence[Expr], env: Mapping[str, int]) -> Iterator[tuple[int, ...]]:
    return itertools.product(*(range(evaluate(s, env)) for s in sizes))


def linear(at: Sequence[int], sizes: Sequence[int]) -> int:
    total = 0
    for p, size in zip(at, sizes, strict=True):
        total = total * size + p
    return total


@settings(max_examples=150)
@given(reshapes(), VALUES)
def test_a_reshape_keeps_the_order_of_elements_there_and_back(
    drawn: tuple[tuple[Expr, ...], tuple[Expr, ...]], env: dict[str, int]
) -> None:
    operand, result = drawn
    coords = tuple(sym(f"$c{i}") for i in range(len(result)))
    there = reshape_coords(result, operand, coords)
    inner = tuple(sym(f"$b{i}") for i in range(len(operand)))
    back = reshape_coords(operand, result, inner)
    operand_sizes, result_sizes = ([evaluate(s, env) for s in sizes] for sizes in (operand, result))
    for at in places(result, env):
        here = {**env, **{c.name: p for c, p in zip(coords, at, strict=True)}}
        moved = [evaluate(e, here) for e in there]
        assert linear(moved, operand_sizes) == linear(at, result_sizes)
        returned = {**env, **{c.name: p for c, p in zip(inner, moved, strict=True)}}
        assert [evaluate(e, returned) for e in back] == list(at)


@settings(max_examples=150)
@given(reshapes(), st.data(), VALUES)
def test_a_reshape_that_is_a_view_reads_what_the_reshape_reads(
    drawn: tuple[tuple[Expr, ...], tuple[Expr, ...]], data: Any, env: dict[str, int]
) -> None:
    operand, result = drawn
    dense = row_major_strides(operand)
    steps = data.draw(st.sampled_from([dense, tuple(mul(2, s) for s in dense), tuple(const(7) for _ in dense)]))
    strides = reshape_strides(operand, steps, result)
    if strides is None:
        return
    operand_sizes, result_sizes = ([evaluate(s, env) for s in sizes] for sizes in (operand, result))
    memory = {
        linear(at, operand_sizes): sum(p * evaluate(s, env) for p, s in zip(at, steps, strict=True))
        for at in places(operand, env)
    }
    assert len(memory) == prod(operand_sizes)
    for at in places(result, env):
        offset = sum(p * evaluate(s, env) for p, s in zip(at, strides, strict=True))
        assert offset == memory[linear(at, result_sizes)]


@given(VALUES)
def test_a_select_of_an_index_that_counts_from_the_end_stays(env: dict[str, int]) -> None:
    at, extent = sym("$v0"), sym("n")
    expr = select(lt(at, 0), add(at, extent), at)
    simple = Ranges().simplify(expr)
    for value in range(-env["n"], env["n"]):
        assert evaluate(simple, {**env, "$v0": value}) == evaluate(expr, {**env, "$v0": value})
