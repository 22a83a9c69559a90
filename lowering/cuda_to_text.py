"""`dlcb.cuda` kernels to the text of one translation unit: one visit an op, spellings from `c_spelling.py`.

The text is written in the words of `device/prelude.cuh`, which `device/cpu.h` defines anew for a C++ compiler. Values
on which the block agrees stand before the phase that computes them, so that all later phases see them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

from xdsl.ir import Attribute, Block, Operation, SSAValue

from dlcb.dialects.cuda import ops
from dlcb.dialects.cuda.base import CudaOp
from dlcb.dialects.cuda.phases import agrees, is_uniform
from dlcb.dialects.cuda.types import LocalType, PtrType, SharedType
from dlcb.dialects.types import type_name
from dlcb.errors import InternalError
from dlcb.lowering import c_spelling

_DEVICE = Path(__file__).parent / "device"
_INDENT = "  "
_KERNEL = "DLCB_KERNEL("
"""How the text of each kernel begins; it stands nowhere else."""
_RESERVED = frozenset(
    "alignas alignof and asm auto bool break case catch char class const continue default delete do double else "
    "enum explicit export extern false float for friend goto if inline int long mutable namespace new not "
    "operator or private protected public register return short signed sizeof static struct switch template this "
    "throw true try typedef typeid typename union unsigned using virtual void volatile while xor assert errno "
    "stdin stdout stderr linux unix pow atan2 fabs rint floor ceil trunc exp exp2 expm1 log log2 log10 log1p sqrt "
    "sin cos tan asin acos atan sinh cosh tanh erf erfc".split()
)


def _is_free(hint: str) -> bool:
    """May a variable be called so: a plain word that means nothing to C, in small letters as no macro is?"""
    return (
        hint.isidentifier()
        and hint.isascii()
        and hint.islower()
        and not hint.startswith("dlcb_")
        and (hint not in _RESERVED and hint.removesuffix("f") not in _RESERVED)
    )


@cache
def device_text(name: str) -> str:
    """A file of `device/`."""
    return (_DEVICE / name).read_text(encoding="utf-8")


def cuda_unit(kernels: str) -> str:
    """The whole text that NVRTC compiles, for the text of kernels."""
    return f"{device_text('prelude.cuh')}\n{device_text('common.h')}\n{kernels}"


def cpu_unit(kernels: str) -> str:
    """The whole text that a C++ compiler compiles, for the text of kernels."""
    return f"{device_text('cpu.h')}\n{device_text('common.h')}\n{kernels}"


def kernels_to_text(kernels: Iterable[ops.KernelOp]) -> str:
    """The text of kernels, without what stands before them on a target."""
    return "\n".join(_KernelPrinter().print(kernel) for kernel in kernels)


def module_to_text(module: Operation) -> str:
    """The text of all kernels of a module, in their order."""
    return kernels_to_text(op for op in module.regions[0].block.ops if isinstance(op, ops.KernelOp))


def kernel_texts(text: str) -> dict[str, str]:
    """The kernels of such a text, each by its name."""
    parts = [_KERNEL + part for part in text.split(_KERNEL)[1:]]
    return {part[len(_KERNEL) : part.index(",")]: part.strip() for part in parts}


def _type_name(value: SSAValue) -> str:
    return type_name(value.type)


def _stored(kind: Attribute) -> str:
    assert isinstance(kind, PtrType | LocalType | SharedType)
    return c_spelling.STORED[type_name(kind.element)]


def _parameter_type(kind: Attribute) -> str:
    return f"{_stored(kind)}*" if isinstance(kind, PtrType) else c_spelling.VALUE[type_name(kind)]


class _KernelPrinter:
    """Prints one kernel. `spelling` holds the C expression, a name or a constant, of each value by its identity."""

    def __init__(self) -> None:
        self.spelling: dict[int, str] = {}
        self.taken: dict[str, int] = {}
        self.agreed: set[SSAValue] = set()
        self.lines: list[str] = []
        self.depth = 1
        self.head: list[str] = []
        self.phases: list[list[str] | str] = []

    def print(self, kernel: ops.KernelOp) -> str:
        body = kernel.body.block
        self.agreed.update(body.args)
        parameters = ", ".join(f"{_parameter_type(a.type)} {self.name(a)}" for a in body.args)
        self.uniform_block(body)
        header = f"{_KERNEL}{kernel.sym_name.data}, {kernel.threads.data}, {parameters}) {{"
        return "\n".join((header, *self.lines, "}\n"))

    # Where statements go

    def uniform_block(self, block: Block) -> None:
        """Print what the threads of a block go through together."""
        for op in block.ops:
            assert isinstance(op, CudaOp)
            if isinstance(op, ops.BarrierOp):
                self.flush()
                self.line("DLCB_BARRIER;")
            elif isinstance(op, ops.ShuffleXorOp):
                self.phases.append(self.shuffle(op))
            elif is_uniform(op):
                self.uniform_region(op)
            elif agrees(op, self.agreed):
                self.agreed.update(op.results)
                self.head.extend(self.statement(op))
            else:
                self.thread_op(op, self.segment(), "")
        self.flush()

    def uniform_region(self, op: CudaOp) -> None:
        body = op.regions[0].block
        self.agreed.update(body.args)
        self.flush()
        for line in self.opening(op):
            self.line(line)
        self.depth += 1
        self.uniform_block(body)
        self.depth -= 1
        self.line("}")

    def segment(self) -> list[str]:
        """The lines of the phase that is being printed."""
        if not self.phases or isinstance(self.phases[-1], str):
            self.phases.append([])
        last = self.phases[-1]
        assert isinstance(last, list)
        return last

    def thread_op(self, op: Operation, lines: list[str], indent: str) -> None:
        """Print what one thread does."""
        if not op.regions:
            lines += [indent + text for text in self.statement(op)]
            return
        lines.extend(indent + text for text in self.opening(op))
        for inner in op.regions[0].block.ops:
            self.thread_op(inner, lines, indent + _INDENT)
        lines.append(indent + "}")

    def flush(self) -> None:
        """Write down the phases since the last meeting of the whole block."""
        for text in self.head:
            self.line(text)
        if self.phases:
            self.line("DLCB_WARPS {")
            self.depth += 1
            for phase in self.phases:
                self.phase(phase)
            self.depth -= 1
            self.line("}")
        self.head, self.phases = [], []

    def phase(self, phase: list[str] | str) -> None:
        if isinstance(phase, str):
            self.line(phase)
            return
        self.line("DLCB_THREADS {")
        self.depth += 1
        for text in phase:
            self.line(text)
        self.depth -= 1
        self.line("}")

    def line(self, text: str) -> None:
        self.lines.append(_INDENT * self.depth + text)

    # Names

    def name(self, value: SSAValue) -> str:
        """A new name for the value: its hint where it has one."""
        hint = value.name_hint
        name = self.unique(hint if hint and _is_free(hint) else f"v{len(self.spelling)}")
        self.spelling[id(value)] = name
        return name

    def unique(self, name: str) -> str:
        """The name, with a number where it is taken."""
        while name in self.taken:
            self.taken[name] += 1
            name = f"{name}_{self.taken[name]}"
        self.taken[name] = 0
        return name

    def spelled(self, op: Operation) -> list[str]:
        return [self.spelling[id(o)] for o in op.operands]

    def define(self, value: SSAValue, expression: str) -> Sequence[str]:
        return (f"const {c_spelling.VALUE[_type_name(value)]} {self.name(value)} = {expression};",)

    # Statements

    def statement(self, op: Operation) -> Sequence[str]:
        """The lines of an op without a body."""
        print_op = _STATEMENTS.get(type(op))
        if print_op is None:
            raise InternalError(f"{op.name} has no spelling in a kernel's text")
        return print_op(self, op)

    def opening(self, op: Operation) -> Sequence[str]:
        """The lines that open the body of an `if` or `for`."""
        if isinstance(op, ops.IfOp):
            return (f"if ({self.spelling[id(op.operands[0])]}) {{",)
        if not isinstance(op, ops.ForOp):
            raise InternalError(f"{op.name} has no spelling in a kernel's text")
        counter = op.body.block.args[0]
        lower, upper, step = self.spelled(op)
        name = self.name(counter)
        kind = c_spelling.VALUE[_type_name(counter)]
        head = f"for ({kind} {name} = {lower}; {name} < {upper}; {name} += {step}) {{"
        if op.unroll is not None:
            return "DLCB_UNROLL", head
        return ("DLCB_ROLLED", head) if op.rolled is not None else (head,)

    def shuffle(self, op: ops.ShuffleXorOp) -> str:
        source, source_index, target, target_index = self.spelled(op)
        return f"DLCB_SHUFFLE_XOR({source}, {source_index}, {target}, {target_index}, {op.mask.data});"

    def constant(self, op: Operation) -> Sequence[str]:
        assert isinstance(op, ops.ConstantOp)
        self.spelling[id(op.result)] = c_spelling.constant(op.value)
        return ()

    def thread_idx(self, op: Operation) -> Sequence[str]:
        return self.define(op.results[0], "DLCB_THREAD")

    def block_idx(self, op: Operation) -> Sequence[str]:
        return self.define(op.results[0], "DLCB_BLOCK")

    def scalar(self, op: Operation) -> Sequence[str]:
        assert isinstance(op, ops.ScalarOp)
        function, operands, result = op.function.data, tuple(op.operands), op.results[0]
        kind = _type_name(operands[-1])
        if function == "cast":
            template = c_spelling.CAST[kind, _type_name(result)]
        else:
            template = c_spelling.FUNCTION[function, kind]
        return self.define(result, template.format(*[self.spelling[id(o)] for o in operands]))

    def magic_div(self, op: Operation) -> Sequence[str]:
        return self.define(op.results[0], f"dlcb_magic_div({', '.join(self.spelled(op))})")

    def check(self, op: Operation) -> Sequence[str]:
        assert isinstance(op, ops.CheckOp)
        return (f"DLCB_CHECK({', '.join((str(op.number.data), *self.spelled(op)))});",)

    def local(self, op: Operation) -> Sequence[str]:
        return (f"DLCB_LOCAL({self.array(op.results[0])});",)

    def shared(self, op: Operation) -> Sequence[str]:
        return (f"DLCB_SHARED({self.array(op.results[0])});",)

    def array(self, value: SSAValue) -> str:
        kind = value.type
        assert isinstance(kind, LocalType | SharedType)
        return f"{_stored(kind)}, {self.name(value)}, {kind.size.data}"

    def load(self, op: Operation) -> Sequence[str]:
        return self.define(op.results[0], self.value_of_stored(self.element(*op.operands), op.results[0]))

    def load_if(self, op: Operation) -> Sequence[str]:
        condition, array, index, other = op.operands
        loaded = self.value_of_stored(self.element(array, index), op.results[0])
        return self.define(op.results[0], f"{self.spelling[id(condition)]} ? {loaded} : {self.spelling[id(other)]}")

    def load_vector(self, op: Operation) -> Sequence[str]:
        return self.vector(op, "dlcb_load_vector")

    def load_vector_if(self, op: Operation) -> Sequence[str]:
        return self.vector(op, "dlcb_load_vector_if")

    def load_part(self, op: Operation) -> Sequence[str]:
        return self.vector(op, "dlcb_load_part")

    def load_unaligned_part(self, op: Operation) -> Sequence[str]:
        return self.vector(op, "dlcb_load_unaligned_part")

    def vector(self, op: Operation, function: str) -> Sequence[str]:
        first, *_ = op.results
        kind = c_spelling.STORED[_type_name(first)]
        width = len(op.results)
        vector = self.unique(f"p{len(self.spelling)}")
        for i, result in enumerate(op.results):
            self.spelling[id(result)] = self.value_of_stored(f"{vector}.at[{i}]", result)
        operands = ", ".join(self.spelled(op))
        return (f"const dlcb_vec<{kind}, {width}> {vector} = {function}<{width}>({operands});",)

    def store(self, op: Operation) -> Sequence[str]:
        value, array, index = op.operands
        return (f"{self.element(array, index)} = {self.spelling[id(value)]};",)

    def store_vector(self, op: Operation) -> Sequence[str]:
        *values, array, index = self.spelled(op)
        return (f"dlcb_store_vector({array}, {index}, {self.whole(op, values)});",)

    def store_part(self, op: Operation) -> Sequence[str]:
        *values, lower, upper, array, index = self.spelled(op)
        return (f"dlcb_store_part({lower}, {upper}, {array}, {index}, {self.whole(op, values)});",)

    def whole(self, op: Operation, values: Sequence[str]) -> str:
        """The vector of the first operands."""
        kind = c_spelling.STORED[_type_name(op.operands[0])]
        return f"dlcb_vec<{kind}, {len(values)}>{{{{{', '.join(values)}}}}}"

    def var(self, op: Operation) -> Sequence[str]:
        kind = c_spelling.VALUE[_type_name(op.operands[0])]
        return (f"{kind} {self.name(op.results[0])} = {self.spelling[id(op.operands[0])]};",)

    def get(self, op: Operation) -> Sequence[str]:
        return self.define(op.results[0], self.spelling[id(op.operands[0])])

    def set(self, op: Operation) -> Sequence[str]:
        variable, value = self.spelled(op)
        return (f"{variable} = {value};",)

    def element(self, array: SSAValue, index: SSAValue) -> str:
        return _ELEMENT[type(array.type)].format(self.spelling[id(array)], self.spelling[id(index)])

    def value_of_stored(self, text: str, value: SSAValue) -> str:
        return c_spelling.FROM_STORED[_type_name(value)].format(text)


_ELEMENT: dict[type[Attribute], str] = {
    PtrType: "{0}[{1}]",
    SharedType: "DLCB_SHARED_AT({0})[{1}]",
    LocalType: "DLCB_LOCAL_AT({0})[{1}]",
}

_STATEMENTS: dict[type[Operation], Callable[[_KernelPrinter, Operation], Sequence[str]]] = {
    ops.ConstantOp: _KernelPrinter.constant,
    ops.ThreadIdxOp: _KernelPrinter.thread_idx,
    ops.BlockIdxOp: _KernelPrinter.block_idx,
    ops.ScalarOp: _KernelPrinter.scalar,
    ops.MagicDivOp: _KernelPrinter.magic_div,
    ops.CheckOp: _KernelPrinter.check,
    ops.LocalOp: _KernelPrinter.local,
    ops.SharedOp: _KernelPrinter.shared,
    ops.LoadOp: _KernelPrinter.load,
    ops.ReadOp: _KernelPrinter.load,
    ops.LoadIfOp: _KernelPrinter.load_if,
    ops.LoadVectorOp: _KernelPrinter.load_vector,
    ops.LoadVectorIfOp: _KernelPrinter.load_vector_if,
    ops.StoreOp: _KernelPrinter.store,
    ops.WriteOp: _KernelPrinter.store,
    ops.StoreVectorOp: _KernelPrinter.store_vector,
    ops.LoadPartOp: _KernelPrinter.load_part,
    ops.LoadUnalignedPartOp: _KernelPrinter.load_unaligned_part,
    ops.StorePartOp: _KernelPrinter.store_part,
    ops.VarOp: _KernelPrinter.var,
    ops.GetOp: _KernelPrinter.get,
    ops.SetOp: _KernelPrinter.set,
}
