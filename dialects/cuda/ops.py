"""Ops of `dlcb.cuda`: CUDA C as structured IR. See docs/architecture.md §6.

A kernel is a row of *phases*. `barrier`, `shuffle_xor` and the borders of uniform `if` and `for` end a phase; what a thread
keeps across them is in a `local`. What all threads of a block agree on (phases.py) may be used in every phase.
Half precision is loaded, stored and cast, never computed with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    FloatAttr,
    IntAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    SymbolNameConstraint,
    UnitAttr,
)
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    HasParent,
    IsolatedFromAbove,
    MemoryAllocEffect,
    MemoryReadEffect,
    MemoryWriteEffect,
    NoTerminator,
    Pure,
    RecursiveMemoryEffect,
    SymbolOpInterface,
)
from xdsl.utils.exceptions import VerifyException

from dlcb.dialects.cuda import syntax
from dlcb.dialects.cuda.base import CudaOp
from dlcb.dialects.cuda.phases import WARP, verify_phases
from dlcb.dialects.cuda.types import LocalType, PtrType, SharedType, VarType
from dlcb.dialects.scalar import FUNCTIONS
from dlcb.dialects.types import BYTES, bf16, f16, f32, i1, i32, i64

MAX_THREADS = 1024
MAX_SHARED_BYTES = 48 * 1024


def _require(condition: bool, text: str) -> None:
    if not condition:
        raise VerifyException(text)


def _verify_same(what: str, given: Attribute, expected: Attribute) -> None:
    if given != expected:
        raise VerifyException(f"{what} is {given}, expected {expected}")


def _verify_integer(what: str, value: SSAValue) -> None:
    if value.type != i32 and value.type != i64:
        raise VerifyException(f"{what} is {value.type}, expected i32 or i64")


def _verify_memory(array: SSAValue, *kinds: type[Attribute]) -> Attribute:
    """The element type of `array`, whose type must be one of `kinds`."""
    if not isinstance(array.type, kinds):
        raise VerifyException(f"array is {array.type}, expected {' or '.join('!' + k.name for k in kinds)}")
    assert isinstance(array.type, PtrType | LocalType | SharedType | VarType)
    return array.type.element


@irdl_op_definition
class KernelOp(IRDLOperation):
    """One kernel: runs its body for each thread of each block. Parameters are `ptr`s and numbers."""

    name = "dlcb.cuda.kernel"
    sym_name = prop_def(SymbolNameConstraint())
    threads = prop_def(IntAttr)
    body = region_def("single_block")
    traits = traits_def(SymbolOpInterface(), NoTerminator(), IsolatedFromAbove())

    @staticmethod
    def build_from(name: str, threads: int, body: Region) -> KernelOp:
        return KernelOp.create(properties={"sym_name": StringAttr(name), "threads": IntAttr(threads)}, regions=(body,))

    @classmethod
    def parse(cls, parser: Parser) -> KernelOp:
        name = parser.parse_symbol_name().data
        arguments = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_argument)
        parser.parse_keyword("threads")
        threads = parser.parse_integer(allow_boolean=False, allow_negative=False)
        attributes = syntax.parse_attributes(parser)
        kernel = cls.build_from(name, threads, parser.parse_region(arguments))
        kernel.attributes |= attributes
        return kernel

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        with printer.in_parens():
            printer.print_list(self.body.block.args, printer.print_block_argument)
        printer.print_string(f" threads {self.threads.data}")
        syntax.print_attributes(printer, self.attributes)
        syntax.print_body(printer, self.body)

    def verify_(self) -> None:
        threads = self.threads.data
        _require(1 <= threads <= MAX_THREADS, f"threads is {threads}, expected 1 to {MAX_THREADS}")
        block = self.body.block
        _require(len(block.args) > 0, "a kernel has at least one parameter")
        for argument in block.args:
            _require(
                isinstance(argument.type, PtrType) or argument.type in BYTES,
                f"parameter {argument.index} is {argument.type}, expected !dlcb.cuda.ptr or a number",
            )
        used = sum(op.result.type.bytes for op in block.ops if isinstance(op, SharedOp))
        _require(used <= MAX_SHARED_BYTES, f"shared arrays take {used} bytes, the limit is {MAX_SHARED_BYTES}")
        verify_phases(block, threads)


class _IndexOp(CudaOp):
    """An index of the launch."""

    result = result_def(i32)
    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($result)"


@irdl_op_definition
class ThreadIdxOp(_IndexOp):
    """result = number of the thread in its block, 0 … threads - 1"""

    name = "dlcb.cuda.thread_idx"


@irdl_op_definition
class BlockIdxOp(_IndexOp):
    """result = number of the block"""

    name = "dlcb.cuda.block_idx"
    AGREES_WITH_OPERANDS: ClassVar[bool] = True


@irdl_op_definition
class ConstantOp(CudaOp):
    """result = value"""

    name = "dlcb.cuda.constant"
    AGREES_WITH_OPERANDS: ClassVar[bool] = True
    value = prop_def(IntegerAttr[IntegerType] | FloatAttr)
    result = result_def()
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> ConstantOp:
        attribute = parser.parse_attribute()
        if not isinstance(attribute, IntegerAttr | FloatAttr):
            parser.raise_error("expected a number with its type, as in `256 : i32`")
        return cls.create(
            result_types=(attribute.type,),
            properties={"value": attribute},
            attributes=syntax.parse_attributes(parser),
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.value)
        syntax.print_attributes(printer, self.attributes)

    def verify_(self) -> None:
        _verify_same("result", self.result.type, self.value.type)
        _require(self.result.type in BYTES, f"a constant of type {self.result.type} does not exist here")


@irdl_op_definition
class ScalarOp(CudaOp):
    """result = function(operands), a function of `dialects/scalar.py`"""

    name = "dlcb.cuda.scalar"
    AGREES_WITH_OPERANDS: ClassVar[bool] = True
    function = prop_def(StringAttr)
    arguments = var_operand_def()
    result = result_def()
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> ScalarOp:
        function = parser.parse_identifier()
        return cls.create(
            properties={"function": StringAttr(function)},
            operands=syntax.parse_values(parser),
            attributes=syntax.parse_attributes(parser),
            result_types=syntax.parse_result_types(parser),
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.function.data}")
        syntax.print_values(printer, self.arguments)
        syntax.print_attributes(printer, self.attributes)
        syntax.print_types(printer, self.result_types)

    def verify_(self) -> None:
        name = self.function.data
        function = FUNCTIONS.get(name)
        if function is None:
            raise VerifyException(f"scalar function {name} is not in the table of dialects/scalar.py")
        types = [o.type for o in self.operands]
        _require(len(types) == function.arity, f"{name} takes {function.arity} operands, {len(types)} given")
        if name == "select":
            _verify_same("select: condition", types.pop(0), i1)
        for given in types:
            _verify_same(f"{name}: operand", given, types[0])
            _require(given in BYTES, f"{name}: operand type {given} has no elements to compute with")
        if function.result == "given":
            return _verify_cast(types[0], self.result.type)
        if name != "select":
            _require(types[0] != f16 and types[0] != bf16, f"{name}: {types[0]} is computed as f32; cast it first")
        _verify_same(f"{name}: result", self.result.type, i1 if function.result == "bool" else types[0])


def _verify_cast(source: Attribute, target: Attribute) -> None:
    _require(target in BYTES, f"cast: result type {target} is not an element type")
    for half, other in ((source, target), (target, source)):
        if half == f16 or half == bf16:
            _require(other == f32 or other == half, f"cast: {source} to {target} goes through f32")


@irdl_op_definition
class MagicDivOp(CudaOp):
    """result = dividend // d for the divisor d whose `magic.magic_constants` are mul and shift; dividend >= 0; 0 where d is 0"""

    name = "dlcb.cuda.magic_div"
    AGREES_WITH_OPERANDS: ClassVar[bool] = True
    dividend = operand_def()
    mul = operand_def()
    shift = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> MagicDivOp:
        return cls.create(
            operands=syntax.parse_values(parser),
            attributes=syntax.parse_attributes(parser),
            result_types=syntax.parse_result_types(parser),
        )

    def print(self, printer: Printer) -> None:
        syntax.print_values(printer, self.operands)
        syntax.print_attributes(printer, self.attributes)
        syntax.print_types(printer, self.result_types)

    def verify_(self) -> None:
        _verify_integer("dividend", self.dividend)
        for what, value in (("mul", self.mul), ("shift", self.shift), ("result", self.result)):
            _verify_same(what, value.type, self.dividend.type)


@irdl_op_definition
class IfOp(CudaOp):
    """Runs the body where condition holds. `uniform`: all threads of the block agree, so the body may hold barriers."""

    name = "dlcb.cuda.if"
    condition = operand_def(i1)
    uniform = opt_prop_def(UnitAttr)
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    @classmethod
    def parse(cls, parser: Parser) -> IfOp:
        return cls.create(
            operands=(syntax.parse_value(parser),),
            properties=syntax.parse_flags(parser, ("uniform",)),
            attributes=syntax.parse_attributes(parser),
            regions=(parser.parse_region(),),
        )

    def print(self, printer: Printer) -> None:
        syntax.print_values(printer, self.operands)
        syntax.print_flags(printer, {"uniform": self.uniform is not None})
        syntax.print_attributes(printer, self.attributes)
        syntax.print_body(printer, self.body)


@irdl_op_definition
class ForOp(CudaOp):
    """Runs the body for induction = lower, lower + step, … below upper; step > 0.

    `uniform`: all threads of the block agree on the bounds, so the body may hold barriers. `unroll`: the compiler unrolls it,
    so arrays that it indexes stay in registers.
    """

    name = "dlcb.cuda.for"
    lower = operand_def()
    upper = operand_def()
    step = operand_def()
    uniform = opt_prop_def(UnitAttr)
    unroll = opt_prop_def(UnitAttr)
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    @classmethod
    def parse(cls, parser: Parser) -> ForOp:
        induction = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        lower = syntax.parse_value(parser)
        parser.parse_keyword("to")
        upper = syntax.parse_value(parser)
        parser.parse_keyword("step")
        step = syntax.parse_value(parser)
        return cls.create(
            operands=(lower, upper, step),
            properties=syntax.parse_flags(parser, ("uniform", "unroll")),
            attributes=syntax.parse_attributes(parser),
            regions=(parser.parse_region((induction.resolve(lower.type),)),),
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.body.block.args[0])
        for word, value in ((" = ", self.lower), (" to ", self.upper), (" step ", self.step)):
            printer.print_string(word)
            printer.print_operand(value)
        syntax.print_flags(printer, {"uniform": self.uniform is not None, "unroll": self.unroll is not None})
        syntax.print_attributes(printer, self.attributes)
        syntax.print_body(printer, self.body)

    def verify_(self) -> None:
        _verify_integer("lower", self.lower)
        _verify_same("upper", self.upper.type, self.lower.type)
        _verify_same("step", self.step.type, self.lower.type)
        arguments = self.body.block.args
        _require(len(arguments) == 1, f"the body takes one value, the induction; it has {len(arguments)}")
        _verify_same("induction", arguments[0].type, self.lower.type)


class _ElementReadOp(CudaOp):
    """result = array[index]"""

    ARRAYS: ClassVar[tuple[type[Attribute], ...]]
    array = operand_def()
    index = operand_def()
    result = result_def()
    traits = traits_def(MemoryReadEffect())

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        return cls.create(
            operands=syntax.parse_element(parser),
            attributes=syntax.parse_attributes(parser),
            result_types=syntax.parse_result_types(parser),
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        syntax.print_element(printer, self.array, self.index)
        syntax.print_attributes(printer, self.attributes)
        syntax.print_types(printer, self.result_types)

    def verify_(self) -> None:
        _verify_same("result", self.result.type, _verify_memory(self.array, *self.ARRAYS))
        _verify_integer("index", self.index)


class _ElementWriteOp(CudaOp):
    """array[index] = value"""

    ARRAYS: ClassVar[tuple[type[Attribute], ...]]
    value = operand_def()
    array = operand_def()
    index = operand_def()
    traits = traits_def(MemoryWriteEffect())

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        value = syntax.parse_value(parser)
        parser.parse_punctuation(",")
        return cls.create(operands=(value, *syntax.parse_element(parser)), attributes=syntax.parse_attributes(parser))

    def print(self, printer: Printer) -> None:
        syntax.print_values(printer, (self.value,))
        printer.print_string(", ")
        syntax.print_element(printer, self.array, self.index)
        syntax.print_attributes(printer, self.attributes)

    def verify_(self) -> None:
        _verify_same("value", self.value.type, _verify_memory(self.array, *self.ARRAYS))
        _verify_integer("index", self.index)


@irdl_op_definition
class LoadOp(_ElementReadOp):
    """result = array[index] in global memory"""

    name = "dlcb.cuda.load"
    ARRAYS: ClassVar[tuple[type[Attribute], ...]] = (PtrType,)


@irdl_op_definition
class StoreOp(_ElementWriteOp):
    """array[index] = value in global memory"""

    name = "dlcb.cuda.store"
    ARRAYS: ClassVar[tuple[type[Attribute], ...]] = (PtrType,)


@irdl_op_definition
class ReadOp(_ElementReadOp):
    """result = array[index], of the thread's or the block's array"""

    name = "dlcb.cuda.read"
    ARRAYS: ClassVar[tuple[type[Attribute], ...]] = (LocalType, SharedType)


@irdl_op_definition
class WriteOp(_ElementWriteOp):
    """array[index] = value, of the thread's or the block's array"""

    name = "dlcb.cuda.write"
    ARRAYS: ClassVar[tuple[type[Attribute], ...]] = (LocalType, SharedType)


@irdl_op_definition
class LoadIfOp(CudaOp):
    """result = array[index] where condition holds, else other; memory is not touched where it does not"""

    name = "dlcb.cuda.load_if"
    condition = operand_def(i1)
    array = operand_def()
    index = operand_def()
    other = operand_def()
    result = result_def()
    traits = traits_def(MemoryReadEffect())

    @classmethod
    def parse(cls, parser: Parser) -> LoadIfOp:
        condition = syntax.parse_value(parser)
        parser.parse_punctuation(",")
        array, index = syntax.parse_element(parser)
        parser.parse_punctuation(",")
        return cls.create(
            operands=(condition, array, index, syntax.parse_value(parser)),
            attributes=syntax.parse_attributes(parser),
            result_types=syntax.parse_result_types(parser),
        )

    def print(self, printer: Printer) -> None:
        syntax.print_values(printer, (self.condition,))
        printer.print_string(", ")
        syntax.print_element(printer, self.array, self.index)
        printer.print_string(", ")
        printer.print_operand(self.other)
        syntax.print_attributes(printer, self.attributes)
        syntax.print_types(printer, self.result_types)

    def verify_(self) -> None:
        element = _verify_memory(self.array, PtrType)
        _verify_same("result", self.result.type, element)
        _verify_same("other", self.other.type, element)
        _verify_integer("index", self.index)


def _verify_vector(values: Sequence[SSAValue], element: Attribute) -> None:
    for value in values:
        _verify_same("a vector's element", value.type, element)
    width = len(values)
    _require(
        width in (2, 4, 8, 16) and width * BYTES[element] <= 32,
        f"a vector of {width} {element} does not exist; 2, 4, 8 or 16 elements in at most 32 bytes do",
    )


@irdl_op_definition
class LoadVectorOp(CudaOp):
    """values = array[index], array[index + 1], …; the address is a multiple of the vector's bytes (of 16 where it is longer)"""

    name = "dlcb.cuda.load_vector"
    array = operand_def()
    index = operand_def()
    values = var_result_def()
    traits = traits_def(MemoryReadEffect())

    @classmethod
    def parse(cls, parser: Parser) -> LoadVectorOp:
        return cls.create(
            operands=syntax.parse_element(parser),
            attributes=syntax.parse_attributes(parser),
            result_types=syntax.parse_result_types(parser),
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        syntax.print_element(printer, self.array, self.index)
        syntax.print_attributes(printer, self.attributes)
        syntax.print_types(printer, self.result_types)

    def verify_(self) -> None:
        _verify_vector(self.values, _verify_memory(self.array, PtrType))
        _verify_integer("index", self.index)


@irdl_op_definition
class StoreVectorOp(CudaOp):
    """array[index], array[index + 1], … = values; aligned as for load_vector. Operands: the values, the array, the index."""

    name = "dlcb.cuda.store_vector"
    values = var_operand_def()
    array = operand_def()
    index = operand_def()
    traits = traits_def(MemoryWriteEffect())

    @classmethod
    def parse(cls, parser: Parser) -> StoreVectorOp:
        operands = syntax.parse_values(parser)
        parser.parse_punctuation("[")
        operands.append(syntax.parse_value(parser))
        parser.parse_punctuation("]")
        return cls.create(operands=operands, attributes=syntax.parse_attributes(parser))

    def print(self, printer: Printer) -> None:
        syntax.print_values(printer, self.values)
        printer.print_string(", ")
        syntax.print_element(printer, self.array, self.index)
        syntax.print_attributes(printer, self.attributes)

    def verify_(self) -> None:
        _verify_vector(self.values, _verify_memory(self.array, PtrType))
        _verify_integer("index", self.index)


@irdl_op_definition
class VarOp(CudaOp):
    """A mutable register, at first `initial`; inside one phase."""

    name = "dlcb.cuda.var"
    initial = operand_def()
    result = result_def(VarType)
    traits = traits_def(MemoryAllocEffect())

    @classmethod
    def parse(cls, parser: Parser) -> VarOp:
        return cls.create(
            operands=(syntax.parse_value(parser),),
            attributes=syntax.parse_attributes(parser),
            result_types=syntax.parse_result_types(parser),
        )

    def print(self, printer: Printer) -> None:
        syntax.print_values(printer, self.operands)
        syntax.print_attributes(printer, self.attributes)
        syntax.print_types(printer, self.result_types)

    def verify_(self) -> None:
        _verify_same("initial", self.initial.type, self.result.type.element)


@irdl_op_definition
class GetOp(CudaOp):
    """result = the variable's value at this point"""

    name = "dlcb.cuda.get"
    variable = operand_def(VarType)
    result = result_def()
    traits = traits_def(MemoryReadEffect())

    @classmethod
    def parse(cls, parser: Parser) -> GetOp:
        return cls.create(
            operands=(syntax.parse_value(parser),),
            attributes=syntax.parse_attributes(parser),
            result_types=syntax.parse_result_types(parser),
        )

    def print(self, printer: Printer) -> None:
        syntax.print_values(printer, self.operands)
        syntax.print_attributes(printer, self.attributes)
        syntax.print_types(printer, self.result_types)

    def verify_(self) -> None:
        _verify_same("result", self.result.type, _verify_memory(self.variable, VarType))


@irdl_op_definition
class SetOp(CudaOp):
    """variable = value"""

    name = "dlcb.cuda.set"
    variable = operand_def(VarType)
    value = operand_def()
    traits = traits_def(MemoryWriteEffect())

    @classmethod
    def parse(cls, parser: Parser) -> SetOp:
        return cls.create(operands=syntax.parse_values(parser), attributes=syntax.parse_attributes(parser))

    def print(self, printer: Printer) -> None:
        syntax.print_values(printer, self.operands)
        syntax.print_attributes(printer, self.attributes)

    def verify_(self) -> None:
        _verify_same("value", self.value.type, _verify_memory(self.variable, VarType))


@irdl_op_definition
class LocalOp(CudaOp):
    """An array of each thread, undefined at first"""

    name = "dlcb.cuda.local"
    AGREES_WITH_OPERANDS: ClassVar[bool] = True
    result = result_def(LocalType)
    traits = traits_def(MemoryAllocEffect(), HasParent(KernelOp))
    assembly_format = "attr-dict `:` type($result)"


@irdl_op_definition
class SharedOp(CudaOp):
    """An array of the block, undefined at first"""

    name = "dlcb.cuda.shared"
    AGREES_WITH_OPERANDS: ClassVar[bool] = True
    result = result_def(SharedType)
    traits = traits_def(MemoryAllocEffect(), HasParent(KernelOp))
    assembly_format = "attr-dict `:` type($result)"


@irdl_op_definition
class BarrierOp(CudaOp):
    """No thread of the block goes on before all are here; what they wrote before it is seen after it."""

    name = "dlcb.cuda.barrier"
    ENDS_PHASE: ClassVar[bool] = True
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"


@irdl_op_definition
class ShuffleXorOp(CudaOp):
    """target[target_index] = source[source_index] of the thread whose number differs in the bits of mask, 1 … 31.

    Both are locals; the indices are uniform; the kernel's threads are whole warps. Only warps are ordered by it, not the block.
    """

    name = "dlcb.cuda.shuffle_xor"
    ENDS_PHASE: ClassVar[bool] = True
    source = operand_def(LocalType)
    source_index = operand_def()
    target = operand_def(LocalType)
    target_index = operand_def()
    mask = prop_def(IntAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @classmethod
    def parse(cls, parser: Parser) -> ShuffleXorOp:
        source = syntax.parse_element(parser)
        parser.parse_punctuation(",")
        target = syntax.parse_element(parser)
        parser.parse_punctuation(",")
        mask = parser.parse_integer(allow_boolean=False)
        return cls.create(
            operands=(*source, *target),
            properties={"mask": IntAttr(mask)},
            attributes=syntax.parse_attributes(parser),
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        syntax.print_element(printer, self.source, self.source_index)
        printer.print_string(", ")
        syntax.print_element(printer, self.target, self.target_index)
        printer.print_string(f", {self.mask.data}")
        syntax.print_attributes(printer, self.attributes)

    def verify_(self) -> None:
        _verify_same("target", _verify_memory(self.target, LocalType), _verify_memory(self.source, LocalType))
        _verify_integer("source index", self.source_index)
        _verify_integer("target index", self.target_index)
        _require(0 < self.mask.data < WARP, f"mask is {self.mask.data}, expected 1 to {WARP - 1}")


OPS: list[type[Operation]] = [
    KernelOp,
    ThreadIdxOp,
    BlockIdxOp,
    ConstantOp,
    ScalarOp,
    MagicDivOp,
    IfOp,
    ForOp,
    LoadOp,
    LoadIfOp,
    LoadVectorOp,
    StoreOp,
    StoreVectorOp,
    VarOp,
    GetOp,
    SetOp,
    LocalOp,
    SharedOp,
    ReadOp,
    WriteOp,
    BarrierOp,
    ShuffleXorOp,
]

ATTRS: list[type[Attribute]] = [PtrType, VarType, LocalType, SharedType]
