"""Images at other places than their own: upsampling and grids of coordinates.

Upsampling goes dim by dim: along each, a result element is a weighted sum of a few input elements, its taps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product as every
from typing import Any

import torch
from xdsl.ir import Attribute, SSAValue

from dlcb.dialects.graph.types import type_of
from dlcb.dialects.graph.view import product
from dlcb.dialects.shape.expr import Expr, as_expr, mul, scaled
from dlcb.dialects.types import compute_type, f32, i1, i64, is_float
from dlcb.frontend.aten.builder import Builder, Operand
from dlcb.frontend.aten.creation import iota
from dlcb.frontend.aten.indexing import UNCHECKED, gather_at, take
from dlcb.frontend.aten.table import Table, several, spread
from dlcb.frontend.aten.views import repeat_interleave

TABLE = Table()

Tap = tuple[SSAValue, SSAValue | None]
"""Places along a dim as i64, and the weights of the elements there; None is 1."""

_LARGEST_DENOMINATOR = 1 << 62
"""Of a scale, so that the host program computes sizes with it."""

_CUBIC = -0.75


def rank_of(value: SSAValue) -> int:
    return type_of(value).rank


class _Arithmetic:
    """Elementwise operations in one float type."""

    def __init__(self, i: Builder, element: Attribute) -> None:
        self.i = i
        self.element = element

    def __call__(self, name: str, *operands: Operand) -> SSAValue:
        return self.i.call(name, *operands, element=self.element)

    def clipped(self, value: SSAValue, last: Operand) -> SSAValue:
        """At least 0, at most `last`."""
        return self("minimum", self("maximum", value, 0.0), last)

    def number(self, value: Any) -> SSAValue:
        return self.i.number(value, self.element)

    def less_one(self, size: Expr) -> SSAValue:
        return self("sub", self.number(size), 1.0)


# Upsampling


def _enter_upsampling(name: str, spatial: int, resampled: Callable[..., SSAValue], aligned: bool) -> None:
    def upsample(
        i: Builder, self: SSAValue, output_size: Any, align_corners: bool, scales: Sequence[float | None]
    ) -> SSAValue:
        first = rank_of(self) - spatial
        sizes = i.sizes(self)[first:]
        wanted = _output_sizes(i, sizes, output_size, scales)
        i.require_elements(i.sizes(self)[first - 1 :], "an input")
        i.require_elements(wanted, "a result")
        for axis, (size, out, scale) in enumerate(zip(sizes, wanted, scales, strict=True), first):
            if size is not out or scale not in (None, 1):
                self = resampled(i, self, axis, out, scale, align_corners)
        return i.cast(self, i.element)

    if aligned:

        @TABLE.handles(name)
        def aligned_upsample(
            i: Builder, self: SSAValue, output_size: Any, align_corners: bool, *scales: Any
        ) -> SSAValue:
            if not is_float(i.element):
                i.unsupported("interpolation of integers")
            return upsample(i, self, output_size, align_corners, _scales(scales, spatial))

    else:

        @TABLE.handles(name)
        def plain_upsample(i: Builder, self: SSAValue, output_size: Any = None, *scales: Any) -> SSAValue:
            return upsample(i, self, output_size, False, _scales(scales, spatial))


def _scales(given: Sequence[Any], spatial: int) -> tuple[float | None, ...]:
    """One scale for each dim, given as a list or one by one, or not at all."""
    if len(given) == 1 and isinstance(given[0], (tuple, list)):
        given = several(given[0])
    return tuple(given) if len(given) == spatial else (None,) * spatial


def _output_sizes(i: Builder, sizes: Sequence[Expr], output_size: Any, scales: Sequence[float | None]) -> list[Expr]:
    if output_size is not None:
        return [as_expr(out) for out in spread(output_size, len(sizes))]
    return [_scaled_size(i, size, scale or 1.0) for size, scale in zip(sizes, scales, strict=True)]


def _scaled_size(i: Builder, size: Expr, scale: float) -> Expr:
    """⌊size · scale⌋ as double precision has it."""
    numerator, denominator = float(scale).as_integer_ratio()
    if size.value is None and denominator > _LARGEST_DENOMINATOR:
        i.unsupported(f"a free size times {scale}")
    return scaled(size, numerator, denominator)


def _ratio(a: _Arithmetic, size: Expr, out: Expr, scale: float | None) -> SSAValue:
    """How far the input moves on for one step of the result, rounded to the type of `a`."""
    if scale is not None:
        return a.number(1.0 / scale)
    return a("div", a.number(size), a.number(out))


def _combined(i: Builder, self: SSAValue, axis: int, taps: Sequence[Tap]) -> SSAValue:
    """Σ weight · self at the tap's places along a dim."""
    wide, shape = compute_type(i.element), (1,) * (rank_of(self) - axis - 1)
    total: SSAValue | None = None
    for places, weights in taps:
        term = take(i, self, places, axis, UNCHECKED)
        if weights is not None:
            weights = i.reshape(weights, (*i.sizes(weights), *shape))
            term = i.call("mul", i.cast(term, wide), weights, element=wide)
        total = term if total is None else i.call("add", total, term, element=wide)
    assert total is not None
    return total


def _nearest_by(shift: float) -> Callable[..., SSAValue]:
    def nearest(i: Builder, self: SSAValue, axis: int, out: Expr, scale: float | None, align_corners: bool) -> SSAValue:
        """Element ⌊(p + shift) · ratio⌋, computed in single precision as torch does."""
        size: Expr = i.sizes(self)[axis]
        factor = _whole_factor(size, out)
        if factor is not None and scale in (None, factor) and not shift:
            return repeat_interleave(i, self, factor, axis)
        a = _Arithmetic(i, f32)
        position = a("mul", a("add", i.cast(iota(i, out), f32), shift), _ratio(a, size, out, scale))
        places = i.cast(a("floor", position), i64)
        last = i.call("sub", i.number(size, i64), 1, element=i64)
        return _combined(i, self, axis, [(i.call("minimum", places, last, element=i64), None)])

    return nearest


def _whole_factor(size: Expr, out: Expr) -> int | None:
    """out / size, if whole, and if products with its inverse in single precision do not fall below whole numbers."""
    factor = next((f for f in range(1, 65) if mul(size, f) is out), None)
    if factor is None:
        return None
    inverse = Fraction(torch.tensor(1.0 / factor, dtype=torch.float32).item())
    return factor if inverse >= Fraction(1, factor) else None


def _source(
    i: Builder, self: SSAValue, axis: int, out: Expr, scale: float | None, align_corners: bool
) -> tuple[_Arithmetic, SSAValue]:
    """The place in the input of each result element, in the compute type."""
    size: Expr = i.sizes(self)[axis]
    a = _Arithmetic(i, compute_type(i.element))
    at = i.cast(iota(i, out), a.element)
    if align_corners:
        steps = a("maximum", a.less_one(out), 1.0)
        return a, a("mul", at, a("div", a.less_one(size), steps))
    return a, a("sub", a("mul", a("add", at, 0.5), _ratio(a, size, out, scale)), 0.5)


def _linear(i: Builder, self: SSAValue, axis: int, out: Expr, scale: float | None, align_corners: bool) -> SSAValue:
    a, source = _source(i, self, axis, out, scale, align_corners)
    last = a.less_one(i.sizes(self)[axis])
    source = a("maximum", source, 0.0)
    low = a("minimum", a("floor", source), last)
    weight = a.clipped(a("sub", source, low), 1.0)
    high = a("minimum", a("add", low, 1.0), last)
    taps = [(i.cast(low, i64), a("sub", 1.0, weight)), (i.cast(high, i64), weight)]
    return _combined(i, self, axis, taps)


def _cubic(i: Builder, self: SSAValue, axis: int, out: Expr, scale: float | None, align_corners: bool) -> SSAValue:
    a, source = _source(i, self, axis, out, scale, align_corners)
    last = a.less_one(i.sizes(self)[axis])
    low = a("minimum", a("floor", source), last)
    weights = _cubic_weights(a, a.clipped(a("sub", source, low), 1.0))
    places = [i.cast(a.clipped(a("add", low, float(step)), last), i64) for step in (-1, 0, 1, 2)]
    return _combined(i, self, axis, list(zip(places, weights, strict=True)))


def _cubic_weights(a: _Arithmetic, t: SSAValue) -> list[SSAValue]:
    """Of the elements at -1, 0, 1, 2 from the element before a place, which is `t` beyond it: Keys' kernel."""
    rest = a("sub", 1.0, t)
    return [_outer(a, a("add", t, 1.0)), _inner(a, t), _inner(a, rest), _outer(a, a("add", rest, 1.0))]


def _inner(a: _Arithmetic, x: SSAValue) -> SSAValue:
    """((A + 2) x - (A + 3)) x² + 1, for x ≤ 1."""
    line = a("sub", a("mul", x, _CUBIC + 2), _CUBIC + 3)
    return a("add", a("mul", a("mul", line, x), x), 1.0)


def _outer(a: _Arithmetic, x: SSAValue) -> SSAValue:
    """((A x - 5 A) x + 8 A) x - 4 A, for 1 < x < 2."""
    line = a("sub", a("mul", x, _CUBIC), 5 * _CUBIC)
    square = a("add", a("mul", line, x), 8 * _CUBIC)
    return a("sub", a("mul", square, x), 4 * _CUBIC)


for _spatial, _name in ((1, "linear"), (2, "bilinear"), (3, "trilinear")):
    _enter_upsampling(f"upsample_{_name}{_spatial}d", _spatial, _linear, aligned=True)
    _enter_upsampling(f"upsample_nearest{_spatial}d", _spatial, _nearest_by(0.0), aligned=False)
    _enter_upsampling(f"_upsample_nearest_exact{_spatial}d", _spatial, _nearest_by(0.5), aligned=False)
_enter_upsampling("upsample_bicubic2d", 2, _cubic, aligned=True)


# Grids


_BILINEAR, _NEAREST, _BICUBIC = 0, 1, 2
_ZEROS, _BORDER, _REFLECTION = 0, 1, 2


@TABLE.handles("grid_sampler_2d")
def grid_sampler_2d(
    i: Builder, self: SSAValue, grid: SSAValue, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> SSAValue:
    """The image at the places of a grid, given in [-1, 1] as x, then y."""
    i.require("eq", i.sizes(self)[0], i.sizes(grid)[0], "numbers of images and grids differ")
    i.require("eq", i.sizes(grid)[3], 2, "coordinates of a place")
    i.require_elements(i.sizes(self)[2:], "an image")
    sampler = _Sampler(i, self, padding_mode, align_corners)
    x, y = (sampler.unscaled(i.without_axis(i.slice(grid, 3, at, 1), 3), size) for at, size in ((0, -1), (1, -2)))
    if interpolation_mode == _BICUBIC:
        return sampler.sum(sampler.cubic(y, -2), sampler.cubic(x, -1))
    y, x = sampler.inside(y, -2), sampler.inside(x, -1)
    if interpolation_mode == _NEAREST:
        a = sampler.arithmetic
        return sampler.sum([(a("round", y), None)], [(a("round", x), None)])
    return sampler.sum(sampler.linear(y), sampler.linear(x))


@TABLE.handles("grid_sampler")
def grid_sampler(
    i: Builder, self: SSAValue, grid: SSAValue, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> SSAValue:
    if rank_of(self) != 4:
        i.unsupported("a grid in three dimensions")
    return grid_sampler_2d(i, self, grid, interpolation_mode, padding_mode, align_corners)


@TABLE.handles("affine_grid_generator")
def affine_grid(i: Builder, self: SSAValue, size: Sequence[Any], align_corners: bool) -> SSAValue:
    """result[n, h, w, k] = self[n, k, 0] · x[w] + self[n, k, 1] · y[h] + self[n, k, 2], x and y from -1 to 1; likewise
    in three dimensions."""
    a, (count, _, *spatial) = _Arithmetic(i, compute_type(i.element)), size
    rank = len(spatial)
    for mine, wanted in zip(i.sizes(self), (count, rank, rank + 1), strict=True):
        i.require("eq", mine, wanted, "a matrix for each image")
    total: SSAValue | None = None
    for place in range(rank + 1):
        column = i.slice(self, 2, place, 1)
        term = i.cast(i.reshape(column, (count, *[1] * rank, rank)), a.element)
        if place < rank:
            axis = rank - 1 - place
            steps = _from_minus_one(a, as_expr(spatial[axis]), align_corners)
            term = a("mul", term, i.reshape(steps, (1, *(spatial[b] if b == axis else 1 for b in range(rank)), 1)))
        total = term if total is None else a("add", total, term)
    assert total is not None
    return i.cast(i.expand(total, (count, *spatial, rank)), i.element)


def _from_minus_one(a: _Arithmetic, size: Expr, align_corners: bool) -> SSAValue:
    """Places from -1 to 1: of the outermost elements' centres, or of their outer edges."""
    place = a("mul", a.i.cast(iota(a.i, size), a.element), 2.0)
    if align_corners:
        steps = a("maximum", a.less_one(size), 1.0)
        return a(
            "mul",
            a("sub", a("div", place, steps), 1.0),
            a.i.cast(a.i.call("lt", a.number(1.0), a.number(size), element=i1), a.element),
        )
    return a("sub", a("div", a("add", place, 1.0), a.number(size)), 1.0)


class _Sampler:
    """Elements of images [n, c, height, width] at places [n, oh, ow]."""

    def __init__(self, i: Builder, image: SSAValue, padding: int, align_corners: bool) -> None:
        self.arithmetic = _Arithmetic(i, compute_type(i.element))
        self._i = i
        self._image = image
        self._padding = padding
        self._align = align_corners

    def unscaled(self, place: SSAValue, axis: int) -> SSAValue:
        """[-1, 1] as a coordinate of the image."""
        a, size = self.arithmetic, self._size(axis)
        place = self._i.cast(place, a.element)
        if self._align:
            return a("mul", a("div", a("add", place, 1.0), 2.0), a("sub", size, 1.0))
        return a("div", a("sub", a("mul", a("add", place, 1.0), size), 1.0), 2.0)

    def inside(self, place: SSAValue, axis: int) -> SSAValue:
        """The coordinate that the padding mode gives it."""
        a, last = self.arithmetic, self.arithmetic("sub", self._size(axis), 1.0)
        if self._padding == _ZEROS:
            return place
        if self._padding == _REFLECTION:
            place = self._reflected(place, self._size(axis))
        return a.clipped(place, last)

    def _reflected(self, place: SSAValue, size: SSAValue) -> SSAValue:
        """Mirrored at the centres of the outermost elements, or at their outer edges."""
        a = self.arithmetic
        low = 0.0 if self._align else -0.5
        span = a("sub", size, 1.0) if self._align else size
        away = a("abs", a("sub", place, low))
        rest, turns = a("fmod", away, span), a("floor", a("div", away, span))
        even = self._i.call("eq", a("fmod", turns, 2.0), a.number(0.0), element=i1)
        mirrored = self._i.where(even, a("add", rest, low), a("add", a("sub", span, rest), low), element=a.element)
        empty = self._i.call("eq", span, a.number(0.0), element=i1)
        return self._i.where(empty, a.number(0.0), mirrored, element=a.element)

    def linear(self, place: SSAValue) -> list[Tap]:
        a = self.arithmetic
        low = a("floor", place)
        weight = a("sub", place, low)
        return [(low, a("sub", 1.0, weight)), (a("add", low, 1.0), weight)]

    def cubic(self, place: SSAValue, axis: int) -> list[Tap]:
        a = self.arithmetic
        low = a("floor", place)
        weights = _cubic_weights(a, a("sub", place, low))
        places = [self.inside(a("add", low, float(step)), axis) for step in (-1, 0, 1, 2)]
        return list(zip(places, weights, strict=True))

    def sum(self, rows: Sequence[Tap], columns: Sequence[Tap]) -> SSAValue:
        """Σ of the weighted elements at all pairs of taps; an element outside of the image is 0."""
        i, a = self._i, self.arithmetic
        total: SSAValue | None = None
        for (y, row_weight), (x, column_weight) in every(rows, columns):
            value = self._element(y, x)
            for weight in (row_weight, column_weight):
                if weight is not None:
                    value = a("mul", value, i.unsqueeze(weight, 1))
            total = value if total is None else a("add", total, value)
        assert total is not None
        return i.cast(total, i.element)

    def _element(self, y: SSAValue, x: SSAValue) -> SSAValue:
        i, a = self._i, self.arithmetic
        n, channels, height, width = i.sizes(self._image)
        lead, *places = i.sizes(y)
        within = i.call("and", self._within(y, -2), self._within(x, -1), element=i1)
        row, column = (i.cast(a.clipped(v, a("sub", self._size(axis), 1.0)), i64) for v, axis in ((y, -2), (x, -1)))
        flat = i.call("add", i.call("mul", row, width, element=i64), column, element=i64)
        count = product(places)
        index = i.expand(i.reshape(flat, (lead, 1, count)), (lead, channels, count))
        image = i.reshape(self._image, (n, channels, product([height, width])))
        found = i.reshape(gather_at(i, image, 2, index, UNCHECKED), (lead, channels, *places))
        return i.where(i.unsqueeze(within, 1), i.cast(found, a.element), a.number(0.0), element=a.element)

    def _within(self, place: SSAValue, axis: int) -> SSAValue:
        i, size = self._i, self._size(axis)
        above = i.call("le", self.arithmetic.number(0.0), place, element=i1)
        return i.call("and", above, i.call("lt", place, size, element=i1), element=i1)

    def _size(self, axis: int) -> SSAValue:
        return self.arithmetic.number(self._i.sizes(self._image)[axis])
