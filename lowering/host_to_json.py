"""`dlcb.host` IR to the rows that the runtime runs (their schema: `runtime/rows.py`), and back.

Every op is one row: its opcode, its result's slot, its operands' slots, its attributes. Slots number the results in
program order. The way back exists so that an artifact's programs can be read and dumped as IR.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from xdsl.dialects.builtin import IntAttr, StringAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from dlcb.dialects.failure import Failure, failures_attr, failures_of
from dlcb.dialects.host.attributes import ArgumentAttr, InputAttr, IntegerArgumentAttr, WeightAttr, integers_of
from dlcb.dialects.host.facts import AlignedOp, ArgumentOp, ConstantOp, IntegerOp, SizeOp, StrideOp, WeightOp
from dlcb.dialects.host.integers import INTEGER_OPS
from dlcb.dialects.host.integers import IntegerOp as Computed
from dlcb.dialects.host.memory import ArenaOp, BufferOp, OutputOp, ViewOp
from dlcb.dialects.host.ops import ProgramOp, ReturnOp
from dlcb.dialects.host.options import attribute_to_options, options_to_attribute
from dlcb.dialects.host.syntax import ARENA
from dlcb.dialects.host.work import CheckOp, LaunchOp, LibraryOp, Variant
from dlcb.dialects.types import NAMES, TYPE_NAME, i1, index
from dlcb.errors import InternalError

Row: TypeAlias = list[Any]
Slots: TypeAlias = dict[SSAValue, int]


def program_to_json(program: ProgramOp) -> dict[str, Any]:
    """The program as plain lists, integers and strings; `json.dumps` takes it."""
    slots: Slots = {}
    code: list[Row] = []
    for op in program.body.block.ops:
        for result in op.results:
            slots[result] = len(slots)
        code.append(_row(op, slots))
    return {
        "name": program.sym_name.data,
        "arguments": [_argument_row(a) for a in program.argument_list],
        "results": [r.data for r in program.result_names.data],
        "code": code,
    }


def json_to_program(data: dict[str, Any]) -> ProgramOp:
    """The inverse of `program_to_json`. The object must have passed the runtime's check."""
    values: dict[int, SSAValue] = {}
    block = Block()
    for row in data["code"]:
        op = _FROM_ROW[row[0]](row, values)
        block.add_op(op)
        for result in op.results:
            values[len(values)] = result
    arguments = [_row_argument(a) for a in data["arguments"]]
    return ProgramOp.make(data["name"], arguments, data["results"], Region(block))


# --- arguments -----------------------------------------------------------------------------------------------------


def _argument_row(argument: ArgumentAttr) -> Row:
    match argument:
        case InputAttr():
            dtype = TYPE_NAME[argument.dtype]
            return ["input", argument.label.data, dtype, argument.rank.data, argument.is_updated]
        case WeightAttr():
            shape, strides = list(integers_of(argument.shape)), list(integers_of(argument.strides))
            return ["weight", argument.label.data, TYPE_NAME[argument.dtype], shape, strides]
        case IntegerArgumentAttr():
            return ["int", argument.label.data]


def _row_argument(row: Row) -> ArgumentAttr:
    match row:
        case ["input", name, dtype, rank, updated]:
            return InputAttr.make(name, NAMES[dtype], rank, updated)
        case ["weight", name, dtype, shape, strides]:
            return WeightAttr.make(name, NAMES[dtype], shape, strides)
        case _:
            return IntegerArgumentAttr.make(row[1])


# --- IR to rows ----------------------------------------------------------------------------------------------------


def _row(op: Operation, slots: Slots) -> Row:
    def of(values: Sequence[SSAValue]) -> list[int]:
        return [slots[v] for v in values]

    match op:
        case Computed():
            return [op.opcode(), slots[op.results[0]], *of(op.operands), *op.attribute_values()]
        case SizeOp() | StrideOp() | AlignedOp():
            return [op.opcode(), slots[op.result], op.label.data, op.number.data]
        case IntegerOp() | ArgumentOp() | WeightOp():
            return [op.opcode(), slots[op.result], op.label.data]
        case ConstantOp():
            value = op.value.data
            return [op.opcode(), slots[op.result], bool(value) if op.result.type == i1 else value]
        case CheckOp():
            return [op.opcode(), slots[op.condition], op.text.data, of(op.values)]
        case ArenaOp():
            return [op.opcode(), slots[op.result], slots[op.bytes]]
        case BufferOp():
            place = [slots[op.result], slots[op.arena], slots[op.offset]]
            return [op.opcode(), *place, of(op.sizes), of(op.strides), TYPE_NAME[op.dtype]]
        case OutputOp():
            return [op.opcode(), slots[op.result], of(op.sizes), of(op.strides), TYPE_NAME[op.dtype]]
        case ViewOp():
            place = [slots[op.result], slots[op.source], slots[op.offset]]
            return [op.opcode(), *place, of(op.sizes), of(op.strides)]
        case LaunchOp():
            failures = [[kind, text] for kind, text in failures_of(op.failures)]
            return [op.opcode(), of(op.tensors), [_variant_row(v, slots) for v in op.variants()], failures]
        case LibraryOp():
            return _library_row(op, slots)
        case ReturnOp():
            return [op.opcode(), of(op.values)]
        case _:
            raise InternalError(f"host_to_json: {op.name} has no serialized form")


def _variant_row(variant: Variant, slots: Slots) -> Row:
    integers = [[slots[value], TYPE_NAME[type]] for value, type in variant.integers]
    return [variant.kernel, variant.threads, slots[variant.condition], slots[variant.blocks], integers]


def _library_row(op: LibraryOp, slots: Slots) -> Row:
    result = None if op.result is None else slots[op.result]
    out = None if op.out is None else slots[op.out]
    dtype = None if op.dtype is None else TYPE_NAME[op.dtype]
    tensors = [slots[t] for t in op.tensors]
    return [op.opcode(), result, op.function.data, tensors, out, attribute_to_options(op.options), dtype]


# --- rows to IR ----------------------------------------------------------------------------------------------------

Values: TypeAlias = Mapping[int, SSAValue]
FromRow: TypeAlias = Callable[[Row, Values], Operation]


def _computed(op: type[Computed]) -> FromRow:
    def build(row: Row, values: Values) -> Operation:
        end = len(row) - len(op.ATTRIBUTES)
        operands = [values[s] for s in row[2:end]]
        properties: dict[str, Attribute] = {n: IntAttr(v) for n, v in zip(op.ATTRIBUTES, row[end:], strict=True)}
        return op.create(operands=operands, result_types=[op.RESULT_TYPE], properties=properties)

    return build


def _fact(op: type[SizeOp | StrideOp | AlignedOp | IntegerOp | ArgumentOp | WeightOp]) -> FromRow:
    def build(row: Row, values: Values) -> Operation:
        properties: dict[str, Attribute] = {"label": StringAttr(row[2])}
        if len(row) == 4:
            properties["number"] = IntAttr(row[3])
        return op.create(result_types=[op.RESULT_TYPE], properties=properties)

    return build


def _constant(row: Row, values: Values) -> Operation:
    type = i1 if isinstance(row[2], bool) else index
    return ConstantOp.create(result_types=[type], properties={"value": IntAttr(int(row[2]))})


def _check(row: Row, values: Values) -> Operation:
    operands = [values[s] for s in (row[1], *row[3])]
    return CheckOp.create(operands=operands, properties={"text": StringAttr(row[2])})


def _arena(row: Row, values: Values) -> Operation:
    return ArenaOp.create(operands=[values[row[2]]], result_types=[ARENA])


def _of(slots: Sequence[int], values: Values) -> list[SSAValue]:
    return [values[s] for s in slots]


def _buffer(row: Row, values: Values) -> Operation:
    _, _, arena, offset, sizes, strides, dtype = row
    return BufferOp.make(values[arena], values[offset], _of(sizes, values), _of(strides, values), NAMES[dtype])


def _output(row: Row, values: Values) -> Operation:
    _, _, sizes, strides, dtype = row
    return OutputOp.make(_of(sizes, values), _of(strides, values), NAMES[dtype])


def _view(row: Row, values: Values) -> Operation:
    _, _, source, offset, sizes, strides = row
    return ViewOp.make(values[source], values[offset], _of(sizes, values), _of(strides, values))


def _launch(row: Row, values: Values) -> Operation:
    variants = [
        Variant(kernel, threads, values[condition], values[blocks], [(values[s], NAMES[type]) for s, type in integers])
        for kernel, threads, condition, blocks, integers in row[2]
    ]
    failures = failures_attr([Failure(kind, text) for kind, text in row[3]]) if row[3] else None
    return LaunchOp.make(_of(row[1], values), variants, failures)


def _library(row: Row, values: Values) -> Operation:
    _, _, function, tensors, out, options, dtype = row
    return LibraryOp.make(
        function,
        _of(tensors, values),
        options_to_attribute(options),
        None if out is None else values[out],
        None if dtype is None else NAMES[dtype],
    )


def _return(row: Row, values: Values) -> Operation:
    return ReturnOp.create(operands=_of(row[1], values))


_FROM_ROW: dict[str, FromRow] = {
    **{op.opcode(): _computed(op) for op in INTEGER_OPS},
    **{op.opcode(): _fact(op) for op in (SizeOp, StrideOp, AlignedOp, IntegerOp, ArgumentOp, WeightOp)},
    ConstantOp.opcode(): _constant,
    CheckOp.opcode(): _check,
    ArenaOp.opcode(): _arena,
    BufferOp.opcode(): _buffer,
    OutputOp.opcode(): _output,
    ViewOp.opcode(): _view,
    LaunchOp.opcode(): _launch,
    LibraryOp.opcode(): _library,
    ReturnOp.opcode(): _return,
}
