"""Convolutions whose windows lie side by side are products of matrices: the patches, one a row, and the weight.

    %y = convolution %x, %w {stride = [16, 16]} : …[768, 3, 16, 16]
    →   %p = copy of unfold %x, its windows last ; %r = reshape %p : [m, 768] ; %y = matmul %r, reshape %w

Each element of the input is read by one window, so the copy is as large as the input; pictures of one pixel, as the
gates of channels are computed from, need none. Half precision only: there the
vendor's product takes a fraction of its convolution's time, while in f32 torch lets a convolution alone use TF32.
Elements of a window come in the order in which the input lies in memory, as far as that is known here.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import BlockArgument, SSAValue

from dlcb.dialects.graph.base import GraphOp
from dlcb.dialects.graph.contract import MatmulOp
from dlcb.dialects.graph.convolution import ConvolutionOp
from dlcb.dialects.graph.structure import FuncOp
from dlcb.dialects.graph.types import Dim, contiguous, dense, dims_attr, tensor, type_of
from dlcb.dialects.graph.view import CopyOp, PermuteOp, ReshapeOp, UnfoldOp, product
from dlcb.dialects.graph.window import ints
from dlcb.dialects.shape.system import System
from dlcb.dialects.types import bf16, f16
from dlcb.passes.graph_builder import int_list
from dlcb.passes.weights import is_weight, lay_weight


def multiply_patches(func: FuncOp, system: System) -> None:
    """Edit the function; `system` is its own, and gets the numbers of patches."""
    for op in list(func.body.block.ops):
        if isinstance(op, ConvolutionOp) and why_not_patches(op) is None:
            _Patches(op, system).rewrite()


def why_not_patches(op: ConvolutionOp) -> str | None:
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
    is_point = set(type_of(op.operands[0]).dims[2:]) == {1}
    return "windows of one element" if set(kernel) == {1} and not is_point else None


class _Patches:
    def __init__(self, op: ConvolutionOp, system: System):
        self.op = op
        self.system = system
        self.x, self.weight = op.operands[:2]
        self.kernel = ints(op.stride)
        self.spatial = len(self.kernel)
        self.channels_last = not isinstance(self.x, BlockArgument)

    def rewrite(self) -> None:
        op, result = self.op, type_of(self.op.results[0])
        batch, out, *places = result.dims
        inner = type_of(self.weight).dims[1]
        assert isinstance(inner, int)
        width = product([self.system.value(d) for d in (inner, *self.kernel)]).value
        assert width is not None
        count = self.system.define_fresh(product([self.system.value(d) for d in (batch, *places)]))
        windows = self.x if width == inner else self.patches((batch, *places), inner)
        rows = self.reshape(windows, (count, width))
        columns = self.permute(self.reshape(self.weights(), (out, width)), (1, 0))
        product_of = [rows, columns, *op.operands[2:]]
        made = self.add(MatmulOp.make(product_of, [tensor((count, out), result.element)]))
        apart = self.reshape(made, (batch, *places, out))
        back = self.permute(apart, (0, self.spatial + 1, *range(1, self.spatial + 1)))
        op.results[0].replace_all_uses_with(back)
        op.detach()
        op.erase()

    def patches(self, positions: tuple[Dim, ...], channels: int) -> SSAValue:
        """[batch, place.., elements of a window..], in memory."""
        value, places = self.x, range(2, 2 + self.spatial)
        for axis, size in zip(places, self.kernel, strict=True):
            dims = list(type_of(value).dims)
            dims[axis] = positions[axis - 1]
            windows, each = tensor((*dims, size), type_of(value).element), IntAttr(size)
            about = {"axis": IntAttr(axis), "size": each, "step": each, "dilation": IntAttr(1)}
            value = self.add(UnfoldOp.create(operands=[value], result_types=[windows], properties=about))
        inside = tuple(range(2 + self.spatial, 2 + 2 * self.spatial))
        value = self.permute(value, (0, *places, *self.ordered(1, inside)))
        t = type_of(value)
        return self.add(CopyOp.make([value], [tensor(t.dims, t.element, contiguous(t.rank))]))

    def weights(self) -> SSAValue:
        """[output channel, elements of a window..], in memory."""
        if not self.channels_last:
            return self.weight
        order = (0, *self.ordered(1, tuple(range(2, 2 + self.spatial))))
        return self.permute(lay_weight(self.weight, self.op, dense(order)), order)

    def ordered(self, channel: int, places: tuple[int, ...]) -> tuple[int, ...]:
        return (*places, channel) if self.channels_last else (channel, *places)

    def reshape(self, value: SSAValue, dims: tuple[Dim, ...]) -> SSAValue:
        return self.add(ReshapeOp.make([value], [tensor(dims, type_of(value).element)], shape=dims_attr(dims)))

    def permute(self, value: SSAValue, axes: tuple[int, ...]) -> SSAValue:
        t = type_of(value)
        dims = tuple(t.dims[axis] for axis in axes)
        return self.add(PermuteOp.make([value], [tensor(dims, t.element)], order=int_list(axes)))

    def add(self, op: GraphOp) -> SSAValue:
        block = self.op.parent_block()
        assert block is not None
        op.location = self.op.location
        block.insert_op_before(op, self.op)
        return op.results[0]
