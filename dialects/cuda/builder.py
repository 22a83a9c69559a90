"""Builds one kernel, op by op, cheaply.

Integer constants are folded, constants and declarations stand at the kernel's top, pure values are computed once a
scope and phase. A pure value of an earlier phase (`thread_idx`, arithmetic on it) is computed again where a later one
uses it.
```python
b = CudaBuilder("double", 256, [("x", ptr(f32)), ("n", i32)])
x, n = b.parameters
i = b.add(b.mul(b.block_idx(), 256), b.thread_idx())
with b.if_(b.lt(i, n)):
    b.store(b.mul(b.load(x, i), 2.0), x, i)
kernel = b.finish()
```
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, cast

from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntAttr, IntegerAttr, IntegerType, StringAttr, UnitAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from dlcb.dialects._xdsl import append_op
from dlcb.dialects.cuda import folding, ops
from dlcb.dialects.cuda.base import CudaOp
from dlcb.dialects.cuda.phases import agrees
from dlcb.dialects.cuda.types import LocalType, PtrType, SharedType, VarType, local, shared, var
from dlcb.dialects.scalar import FUNCTIONS, ScalarBuilder, ScalarFunction
from dlcb.dialects.types import INTEGERS, bf16, f16, f32, f64, i1, i32, is_float, wrapped
from dlcb.errors import InternalError

Number = int | float | bool
Operand = SSAValue | int

_UNIT = UnitAttr()
_HALVES = (f16, bf16)
_COMPUTED = frozenset(map(id, (i1, *INTEGERS, f32, f64)))
"""The types in which elements are computed, by identity: comparing attributes costs more."""
_function_name = cache(StringAttr)


@cache
def _number(element: Attribute, value: int | str) -> IntegerAttr | FloatAttr:
    """The attribute of a constant; floats come as hexadecimal text, which tells -0.0 from 0.0 and holds NaN."""
    if isinstance(value, str):
        return FloatAttr(float.fromhex(value), cast(AnyFloat, element))
    return IntegerAttr(value, cast(IntegerType, element))


def _element(value: SSAValue) -> Attribute:
    kind = value.type
    assert isinstance(kind, PtrType | LocalType | SharedType | VarType)
    return kind.element


class CudaBuilder(ScalarBuilder):
    """A kernel under construction. Methods add one op at the current place and return its result."""

    def __init__(self, name: str, threads: int, parameters: Sequence[tuple[str, Attribute]]):
        self.name = name
        self.threads = threads
        self._entry = Block(arg_types=[kind for _, kind in parameters])
        self.parameters: tuple[SSAValue, ...] = tuple(self._entry.args)
        for value, (hint, _) in zip(self.parameters, parameters, strict=True):
            value.name_hint = hint
        self._block = self._entry
        self._last_declared: Operation | None = None
        self._constants: dict[IntegerAttr | FloatAttr, SSAValue] = {}
        self._asked: dict[tuple[int, int | str], SSAValue] = {}
        """Constants by the identity of their type (kept alive in `_kept`): hashing an attribute costs microseconds."""
        self._kept: list[Attribute] = []
        self._value_of: dict[int, Number] = {}
        """The number of a constant, by the value's identity: hashing a value costs a call."""
        self._agreed: set[SSAValue] = set(self.parameters)
        self._phase = 0
        self._phase_of: dict[int, int] = {}
        self._uniform = True
        self._agreed_scopes: list[dict[Any, SSAValue]] = [{}]
        self._phase_scopes: list[dict[Any, SSAValue]] = [{}]

    def finish(self) -> ops.KernelOp:
        """The kernel; the builder is of no use afterwards."""
        return ops.KernelOp.build_from(self.name, self.threads, Region(self._entry))

    def add_parameter(self, hint: str, kind: Attribute) -> SSAValue:
        """A further parameter, behind those there are."""
        value = self._entry.insert_arg(kind, len(self._entry.args))
        value.name_hint = hint
        self._agreed.add(value)
        return value

    # Values

    def type_of(self, value: SSAValue) -> Attribute:
        return value.type

    def constant(self, value: Number, element: Attribute) -> SSAValue:
        key = (id(element), value.hex() if isinstance(value, float) else value)
        known = self._asked.get(key)
        if known is None:
            known = self._new_constant(value, element)
            self._asked[key] = known
            self._kept.append(element)
        return known

    def _new_constant(self, value: Number, element: Attribute) -> SSAValue:
        value = float(value) if is_float(element) else wrapped(int(value), element)
        attribute = _number(element, value.hex() if isinstance(value, float) else value)
        known = self._constants.get(attribute)
        if known is None:
            known = self._declare(ops.ConstantOp.create(properties={"value": attribute}, result_types=(element,)))
            self._constants[attribute] = known
            self._value_of[id(known)] = value
        return known

    def thread_idx(self) -> SSAValue:
        return self._pure(ops.ThreadIdxOp, (), i32, hint="t")

    def block_idx(self) -> SSAValue:
        return self._pure(ops.BlockIdxOp, (), i32, hint="b")

    def magic_div(self, dividend: Operand, mul: SSAValue, shift: SSAValue) -> SSAValue:
        """dividend // the divisor that mul and shift stand for; the dividend is not negative."""
        return self._pure(ops.MagicDivOp, (self._index(dividend, mul.type), mul, shift), mul.type)

    def scalar(self, function: str, *operands: SSAValue) -> SSAValue:
        """A function of the scalar table (not `cast`) of operands that have one type."""
        if function == "select" or len(operands) == 2:
            folded = self._fold(function, operands)
            if folded is not None:
                return folded
        result = i1 if FUNCTIONS[function].result == "bool" else operands[-1].type
        return self._pure(ops.ScalarOp, operands, result, function)

    def call(self, function: str, *operands: SSAValue) -> SSAValue:
        return self.scalar(function, *operands)

    def cast(self, value: SSAValue, element: Attribute) -> SSAValue:
        """Convert; half precision goes through f32."""
        source = value.type
        if source is element or source == element:
            return value
        if (source in _HALVES and element != f32) or (element in _HALVES and source != f32):
            return self.cast(self.cast(value, f32), element)
        known = self._value_of.get(id(value))
        if isinstance(known, int) and element not in _HALVES:
            return self.constant(known if element != i1 else known != 0, element)
        return self._pure(ops.ScalarOp, (value,), element, "cast")

    def _alike(self, function: ScalarFunction, operands: tuple[Any, ...]) -> list[Any]:
        """As the base class does, but attributes are not compared where the operands share one type object."""
        kind: Attribute | None = None
        for operand in operands:
            if not isinstance(operand, (int, float)):
                if operand.type is not (kind := kind or operand.type):
                    return super()._alike(function, operands)
        if kind is None or id(kind) not in _COMPUTED:
            return super()._alike(function, operands)
        return [self.constant(o, kind) if isinstance(o, (int, float)) else o for o in operands]

    # Control flow

    def check(self, number: int, holds: SSAValue, value: SSAValue, size: SSAValue) -> None:
        """Where it does not hold, the launch fails with that number; the value and the size say why."""
        if not self._value_of.get(id(holds)):
            operands = tuple(map(self._use, (holds, value, size)))
            self._insert(ops.CheckOp.create(operands=operands, properties={"number": IntAttr(number)}))

    @contextmanager
    def if_(self, condition: SSAValue, *, uniform: bool = False) -> Generator[None]:
        op = ops.IfOp.create(
            operands=(self._use(condition),),
            properties={"uniform": _UNIT} if uniform else {},
            regions=(Region(body := Block()),),
        )
        with self._inside(op, body, uniform):
            yield

    @contextmanager
    def for_(
        self, lower: Operand, upper: Operand, step: Operand = 1, *, uniform: bool = False, unroll: bool = False
    ) -> Generator[SSAValue]:
        """The induction value counts from lower, by step, below upper; numbers take the others' type, else i32."""
        kind = next((v.type for v in (upper, lower, step) if not isinstance(v, int)), i32)
        op = ops.ForOp.create(
            operands=tuple(self._index(v, kind) for v in (lower, upper, step)),
            properties=({"uniform": _UNIT} if uniform else {}) | ({"unroll": _UNIT} if unroll else {}),
            regions=(Region(body := Block(arg_types=(kind,))),),
        )
        body.args[0].name_hint = "k"
        with self._inside(op, body, uniform):
            yield body.args[0]

    def barrier(self) -> None:
        self._insert(ops.BarrierOp.create())
        self._end_phase()

    def shuffle_xor(
        self, source: SSAValue, source_index: Operand, target: SSAValue, target_index: Operand, mask: int
    ) -> None:
        operands = (source, self._index(source_index), target, self._index(target_index))
        self._insert(ops.ShuffleXorOp.create(operands=operands, properties={"mask": IntAttr(mask)}))
        self._end_phase()

    # Memory

    def load(self, array: SSAValue, index: Operand) -> SSAValue:
        return self._result(ops.LoadOp, (array, self._index(index)), _element(array))

    def load_if(self, condition: SSAValue, array: SSAValue, index: Operand, other: SSAValue) -> SSAValue:
        operands = (self._use(condition), array, self._index(index), self._use(other))
        return self._result(ops.LoadIfOp, operands, _element(array))

    def load_vector(self, array: SSAValue, index: Operand, width: int) -> tuple[SSAValue, ...]:
        op = ops.LoadVectorOp.create(operands=(array, self._index(index)), result_types=(_element(array),) * width)
        return tuple(self._insert(op).results)

    def load_vector_if(self, condition: SSAValue, array: SSAValue, index: Operand, width: int) -> tuple[SSAValue, ...]:
        operands, element = (self._use(condition), array, self._index(index)), _element(array)
        op = ops.LoadVectorIfOp.create(operands=operands, result_types=(element,) * width)
        return tuple(self._insert(op).results)

    def store(self, value: SSAValue, array: SSAValue, index: Operand) -> None:
        self._insert(ops.StoreOp.create(operands=(self._use(value), array, self._index(index))))

    def store_vector(self, values: Sequence[SSAValue], array: SSAValue, index: Operand) -> None:
        operands = (*map(self._use, values), array, self._index(index))
        self._insert(ops.StoreVectorOp.create(operands=operands))

    def load_part(
        self, lower: SSAValue, upper: SSAValue, array: SSAValue, index: SSAValue, width: int, *, aligned: bool = True
    ) -> tuple[SSAValue, ...]:
        kind = ops.LoadPartOp if aligned else ops.LoadUnalignedPartOp
        operands, element = (self._use(lower), self._use(upper), array, self._use(index)), _element(array)
        return tuple(self._insert(kind.create(operands=operands, result_types=(element,) * width)).results)

    def store_part(
        self, values: Sequence[SSAValue], lower: SSAValue, upper: SSAValue, array: SSAValue, index: SSAValue
    ) -> None:
        operands = (*map(self._use, (*values, lower, upper)), array, self._use(index))
        self._insert(ops.StorePartOp.create(operands=operands))

    def var(self, initial: SSAValue) -> SSAValue:
        return self._result(ops.VarOp, (self._use(initial),), var(initial.type))

    def get(self, variable: SSAValue) -> SSAValue:
        return self._result(ops.GetOp, (self._use(variable),), _element(variable))

    def set(self, variable: SSAValue, value: SSAValue) -> None:
        self._insert(ops.SetOp.create(operands=(self._use(variable), self._use(value))))

    def local(self, element: Attribute, size: int) -> SSAValue:
        return self._declare(ops.LocalOp.create(result_types=(local(element, size),)))

    def shared(self, element: Attribute, size: int) -> SSAValue:
        return self._declare(ops.SharedOp.create(result_types=(shared(element, size),)))

    def read(self, array: SSAValue, index: Operand) -> SSAValue:
        return self._result(ops.ReadOp, (array, self._index(index)), _element(array))

    def write(self, value: SSAValue, array: SSAValue, index: Operand) -> None:
        self._insert(ops.WriteOp.create(operands=(self._use(value), array, self._index(index))))

    # How ops get their place

    def _declare(self, op: CudaOp) -> SSAValue:
        """Put `op` at the kernel's top, behind what is declared there already."""
        if self._last_declared is not None:
            self._entry.insert_ops_after((op,), self._last_declared)
        elif self._entry.first_op is not None:
            self._entry.insert_ops_before((op,), self._entry.first_op)
        else:
            self._entry.add_op(op)
        self._last_declared = op
        self._agreed.add(op.results[0])
        return op.results[0]

    def _insert(self, op: CudaOp) -> CudaOp:
        append_op(self._block, op)
        for result in op.results:
            self._phase_of[id(result)] = self._phase
        return op

    def _result(self, kind: type[CudaOp], operands: Sequence[SSAValue], result: Attribute) -> SSAValue:
        return self._insert(kind.create(operands=operands, result_types=(result,))).results[0]

    def _pure(
        self,
        kind: type[CudaOp],
        operands: Sequence[SSAValue],
        result: Attribute,
        function: str | None = None,
        hint: str | None = None,
    ) -> SSAValue:
        """The result of a pure op: one that is there already, else a new one."""
        if self._phase:
            operands = tuple(map(self._use, operands))
        key = (function or kind, result if function == "cast" else None, *map(id, operands))
        for scopes in (self._phase_scopes, self._agreed_scopes):
            for scope in reversed(scopes):
                if key in scope:
                    return scope[key]
        properties = {} if function is None else {"function": _function_name(function)}
        op = kind.create(operands=operands, properties=properties, result_types=(result,))
        append_op(self._block, op)
        value = op.results[0]
        if hint is not None:
            value.name_hint = hint
        if self._uniform and agrees(op, self._agreed):
            self._agreed.add(value)
            self._agreed_scopes[-1][key] = value
        else:
            self._phase_of[id(value)] = self._phase
            self._phase_scopes[-1][key] = value
        return value

    def _use(self, value: SSAValue) -> SSAValue:
        """The value as the current phase may use it."""
        phase = self._phase_of.get(id(value))
        return value if phase is None or phase == self._phase else self._recompute(value)

    def _recompute(self, value: SSAValue) -> SSAValue:
        owner = value.owner
        if not isinstance(owner, ops.ThreadIdxOp | ops.ScalarOp | ops.MagicDivOp):
            what = owner.name if isinstance(owner, Operation) else "a loop's counter"
            raise InternalError(
                f"kernel {self.name}: the value of {what} is used in a later phase than its own; keep it in a local"
            )
        function = owner.function.data if isinstance(owner, ops.ScalarOp) else None
        return self._pure(type(owner), owner.operands, value.type, function, value.name_hint)

    def _index(self, value: Operand, kind: Attribute = i32) -> SSAValue:
        return self._use(value) if isinstance(value, SSAValue) else self.constant(value, kind)

    def _end_phase(self) -> None:
        self._phase += 1
        self._phase_scopes = [{}]

    @contextmanager
    def _inside(self, op: CudaOp, body: Block, uniform: bool) -> Generator[None]:
        """Insert `op` and build in its body."""
        self._insert(op)
        outer = self._block, self._uniform
        self._block = body
        if uniform:
            self._end_phase()
            self._agreed.update(body.args)
            self._agreed_scopes.append({})
        else:
            self._uniform = False
            self._phase_of.update(dict.fromkeys(map(id, body.args), self._phase))
            self._phase_scopes.append({})
        yield
        self._block, self._uniform = outer
        if uniform:
            self._agreed_scopes.pop()
            self._end_phase()
        else:
            self._phase_scopes.pop()

    # Folding

    def _fold(self, function: str, operands: Sequence[SSAValue]) -> SSAValue | None:
        """The result where it takes no op: a constant or one of the operands. Integers and `select` only."""
        if function == "select":
            return self._fold_select(*operands)
        a, b = operands
        lhs, rhs = self._value_of.get(id(a)), self._value_of.get(id(b))
        element = a.type
        if (lhs is None and rhs is None) or is_float(element):
            return None
        if lhs is not None and rhs is not None:
            value = folding.fold_constants(function, int(lhs), int(rhs))
            result = i1 if FUNCTIONS[function].result == "bool" else element
            return None if value is None else self.constant(value, result)
        if folding.absorbed(function, lhs, rhs):
            return self.constant(0, element)
        kept = folding.unchanged(function, element, lhs, rhs)
        return None if kept is None else operands[kept]

    def _fold_select(self, condition: SSAValue, yes: SSAValue, no: SSAValue) -> SSAValue | None:
        known = self._value_of.get(id(condition))
        if known is None:
            return yes if yes is no else None
        return yes if known else no
