"""Contractions that library routines compute: matrix products, convolutions, attention."""

from __future__ import annotations

from typing import Any, ClassVar

from xdsl.dialects.builtin import FloatAttr, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import irdl_op_definition, opt_prop_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from dlcb.dialects.graph.base import Coords, GraphOp, ShapeScope, Sizes, broadcast_coords
from dlcb.dialects.graph.reduce import INFINITY
from dlcb.dialects.graph.types import TensorType, type_of
from dlcb.dialects.shape.expr import Expr, floordiv
from dlcb.dialects.types import compute_type, i1


class Contract(GraphOp):
    """Operands: two or three tensors and an optional last one (bias or mask)."""

    FAMILY: ClassVar[str] = "contract"
    args = var_operand_def(TensorType)
    res = result_def(TensorType)
    traits = traits_def(Pure())
    REQUIRED: ClassVar[int]

    @property
    def extra(self) -> SSAValue | None:
        return self.operands[self.REQUIRED] if len(self.operands) > self.REQUIRED else None

    def verify_(self) -> None:
        if len(self.operands) not in (self.REQUIRED, self.REQUIRED + 1):
            raise VerifyException(f"{self.name}: {len(self.operands)} operands, expected {self.REQUIRED} or one more")
        super().verify_()


class Matmul(Contract):
    """Operands lhs, rhs and what the op says."""

    @property
    def bias(self) -> SSAValue | None:
        return self.extra

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        lhs, rhs = scope.of(self.operands[0]), scope.of(self.operands[1])
        if len(lhs) < 2 or len(rhs) < 2:
            raise VerifyException(f"{self.name}: operands of rank {len(lhs)} and {len(rhs)}, expected at least 2")
        if lhs[-1] is not rhs[-2]:
            scope.require("eq", lhs[-1], rhs[-2], f"{self.title}: inner sizes differ")
        lead = list(lhs[:-2] or rhs[:-2])
        if lhs[:-2] and rhs[:-2]:
            if len(lhs) != len(rhs):
                raise VerifyException(f"{self.name}: operands of rank {len(lhs)} and {len(rhs)}")
            for i, (a, c) in enumerate(zip(lhs[:-2], rhs[:-2], strict=True)):
                if a is not c:
                    scope.require("eq", a, c, f"{self.title}: sizes of dim {i} differ")
                    lead[i] = c if c.is_const else a
        if self.bias is not None:
            (n,) = scope.of(self.bias)
            if n is not rhs[-1]:
                scope.require("eq", n, rhs[-1], f"{self.title}: size of the bias")
        return ((*lead, lhs[-2], rhs[-1]),)

    def element(self, b: Any, coords: Coords, result: int = 0) -> Any:
        lhs, rhs = self.operands[:2]
        wanted = compute_type(self.result_element)
        lead, m, n = coords[:-2], coords[-2], coords[-1]
        inner = b.of(lhs)[-1]
        a_lead = lead if type_of(lhs).rank > 2 else ()
        c_lead = lead if type_of(rhs).rank > 2 else ()

        def body(row: Coords) -> Any:
            x = b.cast(b.read(lhs, (*a_lead, m, row[0])), wanted)
            return b.mul(x, b.cast(b.read(rhs, (*c_lead, row[0], n)), wanted))

        total = b.reduce("add", (inner,), (0,), body, 0, wanted)
        return total if self.bias is None else b.add(total, b.cast(b.read(self.bias, (n,)), wanted))


@irdl_op_definition
class MatmulOp(Matmul):
    """result[.., m, n] = Σ_k lhs[.., m, k] · rhs[.., k, n] (+ bias[n]).  Leading dims are equal; either operand may
    lack them.  Source: torch.matmul, mm, bmm, addmm, linear."""

    name = "dlcb.graph.matmul"
    LIBRARY: ClassVar[str | None] = "matmul"
    REQUIRED: ClassVar[int] = 2


@irdl_op_definition
class MatmulReluOp(Matmul):
    """result = max(lhs · rhs + bias, 0) of two matrices, by one library call.  Source: cuBLASLt's epilogues."""

    name = "dlcb.graph.matmul_relu"
    LIBRARY: ClassVar[str | None] = "matmul_relu"
    REQUIRED: ClassVar[int] = 3

    @property
    def bias(self) -> SSAValue | None:
        return self.operands[2]

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        if self.extra is not None or any(type_of(operand).rank != 2 for operand in self.operands[:2]):
            raise VerifyException(f"{self.name}: expected two matrices and a bias")
        return super().infer(scope)

    def element(self, b: Any, coords: Coords, result: int = 0) -> Any:
        total = super().element(b, coords)
        return b.call("maximum", total, b.constant(0, b.type_of(total)))


@irdl_op_definition
class AttentionOp(Contract):
    """result = softmax(q·kᵀ·scale + mask)·v over [batch, heads, length, width]; mask bool (true: attend) or float,
    broadcasting.

    `causal`: position i attends to positions ≤ i. k and v may have fewer heads that divide q's (`grouped`).
    Source: torch.nn.functional.scaled_dot_product_attention."""

    name = "dlcb.graph.attention"
    LIBRARY: ClassVar[str | None] = "attention"
    REQUIRED: ClassVar[int] = 3
    scale = prop_def(FloatAttr)
    causal = opt_prop_def(UnitAttr)
    grouped = opt_prop_def(UnitAttr)

    def result_order(self) -> tuple[int, ...] | None:
        return (0, 2, 1, 3) if type_of(self.results[0]).rank == 4 else None

    def library_options(self) -> dict[str, Any]:
        options: dict[str, Any] = {"scale": self.scale.value.data}
        if self.causal is not None:
            options["causal"] = True
        return options

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        q, k, v = (scope.of(o) for o in self.operands[:3])
        pairs = [(q[-1], k[-1], "width of queries and keys"), (k[-2], v[-2], "length of keys and values")]
        pairs += [(k[i], v[i], f"dim {i} of keys and values") for i in range(len(k) - 2)]
        grouped = self.grouped is not None
        pairs += [(q[i], k[i], f"dim {i} of queries and keys") for i in range(len(q) - (3 if grouped else 2))]
        for a, c, what in pairs:
            if a is not c:
                scope.require("eq", a, c, f"{self.title}: {what} differ")
        if grouped:
            scope.require("divides", k[-3], q[-3], f"{self.title}: heads of keys do not divide heads of queries")
        if self.extra is not None:
            scores = (*q[:-1], k[-2])
            for have, want in zip(reversed(scope.of(self.extra)), reversed(scores), strict=False):
                if have is not want and not (have.is_const and have.value == 1):
                    scope.require("expandable", have, want, f"{self.title}: size of the mask")
        return ((*q[:-1], v[-1]),)

    def element(self, b: Any, coords: Coords, result: int = 0) -> Any:
        """Scores are taken less their maximum: no exponential overflows. A position that attends to nothing gives 0."""
        wanted = compute_type(self.result_element)
        value = self.operands[2]
        lead = self._lead_of_keys(b, coords[:-2])
        length = (b.of(value)[-2],)

        def score(row: Coords) -> Any:
            return self._score(b, (*coords[:-1], row[0]), lead, wanted)

        highest = b.reduce("maximum", length, (0,), score, -INFINITY, wanted)
        shift = b.select(b.eq(highest, -INFINITY), 0.0, highest)

        def weight(row: Coords) -> Any:
            return b.exp(b.sub(score(row), shift))

        def term(row: Coords) -> Any:
            return b.mul(weight(row), b.cast(b.read(value, (*lead, row[0], coords[-1])), wanted))

        total = b.reduce("add", length, (0,), weight, 0, wanted)
        weighted = b.reduce("add", length, (0,), term, 0, wanted)
        return b.select(b.eq(total, 0.0), 0.0, b.div(weighted, total))

    def _lead_of_keys(self, sizes: Sizes, lead: Coords) -> Coords:
        """The leading coordinates of keys and values for those of queries: heads that share keys are neighbours."""
        if self.grouped is None:
            return lead
        sharing = floordiv(sizes.of(self.operands[0])[-3], sizes.of(self.operands[1])[-3])
        return (*lead[:-1], floordiv(lead[-1], sharing))

    def _score(self, b: Any, at: Coords, lead: Coords, wanted: Attribute) -> Any:
        """How much the query at `at[-2]` attends to the key at `at[-1]`."""
        q, k = self.operands[:2]

        def body(row: Coords) -> Any:
            x = b.cast(b.read(q, (*at[:-1], row[0])), wanted)
            return b.mul(x, b.cast(b.read(k, (*lead, at[-1], row[0])), wanted))

        score = b.mul(b.reduce("add", (b.of(q)[-1],), (0,), body, 0, wanted), self.scale.value.data)
        if self.extra is not None:
            mask = b.read(self.extra, broadcast_coords(at, b.of(self.extra), (*b.of(q)[:-1], b.of(k)[-2])))
            boolean = b.type_of(mask) == i1
            score = b.select(mask, score, -INFINITY) if boolean else b.add(score, b.cast(mask, wanted))
        return score if self.causal is None else b.select(b.holds([("le", at[-1], at[-2])]), score, -INFINITY)


OPS: list[type[Operation]] = [MatmulOp, MatmulReluOp, AttentionOp]
