"""Convolutions whose windows lie side by side are products of matrices: the patches, one a row, and the weight.

    %y = convolution %x, %w {stride = [16, 16]} : …[768, 3, 16, 16]
    →   %p = copy of unfold %x, its windows last ; %r = reshape %p : [m, 768] ; %y = matmul %r, reshape %w

Each element of the input is read by one window, so the copy is as large as the input. Windows of one element need no
copy: pictures are read as they lie, channels-last, one pixel a row; they are taken where a bias is added, or a bias and
a relu, for the vendor's product takes these along. Half precision only: there the vendor's product takes a fraction of
its convolution's time, while in f32 torch lets a convolution alone use TF32. Elements of a window come in the order in
which the input lies in memory, as far as that is known here.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import BlockArgument, SSAValue

from dlcb.dialects._xdsl import set_type
from dlcb.dialects.graph.contract import Matmul, MatmulOp, MatmulReluOp
from dlcb.dialects.graph.convolution import ConvolutionOp, ConvolutionReluOp
from dlcb.dialects.graph.structure import FuncOp
from dlcb.dialects.graph.types import Dim, contiguous, dense, tensor, type_of
from dlcb.dialects.graph.view import CopyOp, PermuteOp, ReshapeOp, UnfoldOp, product
from dlcb.dialects.graph.window import ints
from dlcb.dialects.shape.system import System
from dlcb.dialects.types import bf16, f16
from dlcb.passes.graph_builder import GraphBuilder, int_list
from dlcb.passes.weights import is_weight, lay_weight


def multiply_patches(func: FuncOp, system: System) -> None:
    """Edit the function; `system` is its own, and gets the numbers of patches."""
    for op in list(func.body.block.ops):
        if isinstance(op, (ConvolutionOp, ConvolutionReluOp)) and why_not_patches(op) is None:
            _Patches(op, system).rewrite()


def why_not_patches(op: ConvolutionOp | ConvolutionReluOp) -> str | None:
    """Why the convolution is no product of patches."""
    weight = op.operands[1]
    kernel = type_of(weight).dims[2:]
    if op.result_element not in (f16, bf16):
        return "not half precision"
    if op.transposed is not None or op.groups.data != 1:
        return "transposed, or in groups"
    if any(ints(op.padding)) or kernel != ints(op.stride) or set(ints(op.dilation)) != {1}:
        return "windows overlap, leave gaps or reach into padding"
    if not is_weight(weight) or not isinstance(type_of(weight).dims[1], int):
        return "the kernel is no weight of literal size"
    if isinstance(op, ConvolutionReluOp) and op.residual is not None:
        return "a residual is added"
    is_point = set(type_of(op.operands[0]).dims[2:]) == {1}
    if set(kernel) == {1} and not is_point and (op.bias is None or type_of(op.operands[0]).rank != 4):
        return "windows of one element, and no bias"
    return None


def reads_points(op: PermuteOp) -> bool:
    """Does a product read pictures through this permute, one pixel a row?"""
    readers = [use.operation for use in op.results[0].uses]
    return (
        op.axes == (0, 2, 3, 1)
        and all(isinstance(reader, ReshapeOp) for reader in readers)
        and any(isinstance(use.operation, Matmul) for reader in readers for use in reader.results[0].uses)
    )


class _Patches:
    def __init__(self, op: ConvolutionOp | ConvolutionReluOp, system: System):
        self.op = op
        self.system = system
        self.b = GraphBuilder()
        self.x, self.weight = op.operands[:2]
        self.kernel = ints(op.stride)
        self.spatial = len(self.kernel)
        self.channels_last = not isinstance(self.x, BlockArgument)

    def rewrite(self) -> None:
        op, b, block = self.op, self.b, self.op.parent_block()
        assert block is not None
        t = type_of(op.results[0])
        batch, out, *places = t.dims
        inner = type_of(self.weight).dims[1]
        assert isinstance(inner, int)
        width = prod((inner, *self.kernel))
        count = self.system.define_fresh(product([self.system.value(d) for d in (batch, *places)]))
        windows = self.points() if width == inner else self.patches((batch, *places))
        rows = b.reshape(windows, (count, width), type_of(windows).element)
        weights = self.weights()
        columns = self.permute(b.reshape(weights, (out, width), type_of(weights).element), (1, 0))
        kind = MatmulReluOp if isinstance(op, ConvolutionReluOp) else MatmulOp
        made = b.make(kind, [rows, columns, *op.operands[2:]], (count, out), t.element)
        apart = b.reshape(made, (batch, *places, out), t.element)
        back = self.permute(apart, (0, self.spatial + 1, *range(1, self.spatial + 1)))
        for new in b.ops:
            new.location = op.location
        block.insert_ops_before(b.ops, op)
        op.results[0].replace_all_uses_with(back)
        op.detach()
        op.erase()

    def points(self) -> SSAValue:
        """[batch, place.., channel]: a view where pictures lie channels-last."""
        if set(type_of(self.x).dims[2:]) == {1}:
            return self.x
        return self.permute(self.x, (0, *range(2, 2 + self.spatial), 1))

    def patches(self, positions: tuple[Dim, ...]) -> SSAValue:
        """[batch, place.., elements of a window..], in memory."""
        value, places = self.x, range(2, 2 + self.spatial)
        element = type_of(value).element
        for axis, size in zip(places, self.kernel, strict=True):
            dims, each = list(type_of(value).dims), IntAttr(size)
            dims[axis] = positions[axis - 1]
            about = {"axis": IntAttr(axis), "size": each, "step": each, "dilation": IntAttr(1)}
            value = self.b.make(UnfoldOp, [value], (*dims, size), element, **about)
        inside = tuple(range(2 + self.spatial, 2 + 2 * self.spatial))
        value = self.permute(value, (0, *places, *self.ordered(1, inside)))
        copy = self.b.make(CopyOp, [value], type_of(value).dims, element)
        set_type(copy, tensor(type_of(copy).dims, element, contiguous(type_of(copy).rank)))
        return copy

    def weights(self) -> SSAValue:
        """[output channel, elements of a window..], in memory."""
        if not self.channels_last or set(self.kernel) == {1}:
            return self.weight
        order = (0, *self.ordered(1, tuple(range(2, 2 + self.spatial))))
        return self.permute(lay_weight(self.weight, self.op, dense(order)), order)

    def ordered(self, channel: int, places: tuple[int, ...]) -> tuple[int, ...]:
        return (*places, channel) if self.channels_last else (channel, *places)

    def permute(self, value: SSAValue, axes: tuple[int, ...]) -> SSAValue:
        t = type_of(value)
        return self.b.make(PermuteOp, [value], tuple(t.dims[axis] for axis in axes), t.element, order=int_list(axes))
