"""matmul(reshape(permute(x)), w, b) -> reshape(permute(reshape(matmul(reshape(x), w, b)))), rows in the order of x's dims.

Sound: a row of the result depends on its row alone.  Not worse: it is done where all that reads the result takes the rows
apart again, so the turn is a view there, where before it had to be copied into rows.  Source: sequences first, batches
second, in torch.nn.MultiheadAttention.
"""

from __future__ import annotations

from math import prod
from typing import ClassVar

from xdsl.pattern_rewriter import PatternRewriter

from dlcb.dialects.graph.contract import MatmulOp
from dlcb.dialects.graph.types import dims_attr, dims_of, tensor, type_of
from dlcb.dialects.graph.view import PermuteOp, ReshapeOp
from dlcb.passes.graph_builder import int_list
from dlcb.passes.rule import Rule

_ARGUMENTS = (
    '%x: tensor<[3, 2, m, 4], f32> input "x", %w: tensor<[8, 5], f32> weight "w", %b: tensor<[5], f32> weight "b"'
)
_MATMUL = "(tensor<[d, 8], f32>, tensor<[8, 5], f32>, tensor<[5], f32>) -> tensor<[d, 5], f32>"
_RETURN = "dlcb.graph.return %r : !dlcb.graph.tensor<[1, m, 3, 5], f32> }"


def _program(order: str, turned: str, ending: str) -> str:
    return f"""dlcb.graph.func @f({_ARGUMENTS}) {{
        %p = dlcb.graph.permute %x {{order = [{", ".join(f"#builtin.int<{axis}>" for axis in order)}]}} : (tensor<[3, 2, m, 4], f32>) -> tensor<[{turned}], f32>
        %a = dlcb.graph.reshape %p {{shape = #dlcb.graph.dims<[d, 8]>}} : (tensor<[{turned}], f32>) -> tensor<[d, 8], f32>
        %c = dlcb.graph.matmul %a, %w, %b : {_MATMUL}
        {ending}"""


_APART = f"""%r = dlcb.graph.reshape %c {{shape = #dlcb.graph.dims<[1, m, 3, 5]>}} : (tensor<[d, 5], f32>) -> tensor<[1, m, 3, 5], f32>
        {_RETURN}"""


class TurnRowsAfterMatmul(Rule):
    level = "graph"
    roots = (MatmulOp,)
    before = _program("2013", "m, 3, 2, 4", _APART)
    after = _program(
        "0213",
        "3, m, 2, 4",
        f"""%s = dlcb.graph.reshape %c {{shape = #dlcb.graph.dims<[3, m, 5]>}} : (tensor<[d, 5], f32>) -> tensor<[3, m, 5], f32>
        %t = dlcb.graph.permute %s {{order = [#builtin.int<1>, #builtin.int<0>, #builtin.int<2>]}} : (tensor<[3, m, 5], f32>) -> tensor<[m, 3, 5], f32>
        %e = dlcb.graph.reshape %t {{shape = #dlcb.graph.dims<[d, 5]>}} : (tensor<[m, 3, 5], f32>) -> tensor<[d, 5], f32>
        %r = dlcb.graph.reshape %e {{shape = #dlcb.graph.dims<[1, m, 3, 5]>}} : (tensor<[d, 5], f32>) -> tensor<[1, m, 3, 5], f32>
        {_RETURN}""",
    )
    refused: ClassVar = {
        "the rows are not those of a permuted tensor": f"""dlcb.graph.func @f(%a: tensor<[d, 8], f32> input "a", {_ARGUMENTS}) {{
        %c = dlcb.graph.matmul %a, %w, %b : {_MATMUL}
        {_APART}""",
        "the rows are in order": _program("0213", "3, m, 2, 4", _APART.replace("m, 3", "3, m")),
        "the result is read as rows": _program(
            "2013", "m, 3, 2, 4", "dlcb.graph.return %c : !dlcb.graph.tensor<[d, 5], f32> }"
        ),
    }

    def why_not(self, op: MatmulOp) -> str | None:
        rows = op.operands[0].owner
        if not isinstance(rows, ReshapeOp) or not isinstance(rows.src.owner, PermuteOp):
            return "the rows are not those of a permuted tensor"
        leading = _leading(op, rows)
        if leading is None:
            return "the rows are not those of a permuted tensor"
        axes = rows.src.owner.axes[:leading]
        if axes == tuple(sorted(axes)):
            return "the rows are in order"
        apart = dims_of(rows.src)[:leading]
        users = [use.operation for use in op.results[0].uses]
        if not all(isinstance(user, ReshapeOp) and _begins(dims_of(user.res), apart) for user in users):
            return "the result is read as rows"
        return None

    def rewrite(self, op: MatmulOp, rewriter: PatternRewriter) -> None:
        rows = op.operands[0].owner
        assert isinstance(rows, ReshapeOp)
        permute, leading = rows.src.owner, _leading(op, rows)
        assert isinstance(permute, PermuteOp)
        assert leading is not None
        axes, sizes, (count, width) = permute.axes, dims_of(permute.src), dims_of(op.results[0])
        ordered = sorted(axes[:leading])
        element, result = type_of(permute.res).element, type_of(op.results[0]).element
        new = (*ordered, *axes[leading:])
        turned = PermuteOp.make([permute.src], [tensor(tuple(sizes[a] for a in new), element)], order=int_list(new))
        flat = ReshapeOp.make([turned.res], [rows.res.type], shape=rows.shape)
        product = MatmulOp.create(
            operands=[flat.res, *op.operands[1:]], result_types=[op.results[0].type], properties=dict(op.properties)
        )
        apart = (*[sizes[a] for a in ordered], width)
        taken = ReshapeOp.make([product.results[0]], [tensor(apart, result)], shape=dims_attr(apart))
        back = (*[ordered.index(a) for a in axes[:leading]], leading)
        dims = tuple(apart[place] for place in back)
        turned_back = PermuteOp.make([taken.res], [tensor(dims, result)], order=int_list(back))
        as_before = (count, width)
        together = ReshapeOp.make([turned_back.res], [tensor(as_before, result)], shape=dims_attr(as_before))
        rewriter.replace(op, [turned, flat, product, taken, turned_back, together])


def _leading(op: MatmulOp, rows: ReshapeOp) -> int | None:
    """How many dims of the permuted tensor make the rows, so that the others are a row: their sizes are known. None
    where the matrices are stacked, or dims are made otherwise."""
    if type_of(op.operands[0]).rank != 2 or type_of(op.operands[1]).rank != 2:
        return None
    width = dims_of(rows.res)[1]
    dims = dims_of(rows.src)
    for leading in range(len(dims) - 1, 0, -1):
        inner = [dim for dim in dims[leading:] if isinstance(dim, int)]
        if len(inner) < len(dims) - leading:
            return None
        if width != 0 and prod(inner) == width:
            return leading
    return None


def _begins(dims: tuple[int | str, ...], with_these: tuple[int | str, ...]) -> bool:
    """Past dims of size 1."""
    ones = next((i for i, dim in enumerate(dims) if dim != 1), len(dims))
    return dims[ones : ones + len(with_these)] == with_these
