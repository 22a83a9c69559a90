"""Three kernels made by hand: their IR, their text, and what they compute on the cpu target, in every thread order."""

import ctypes
import io
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.ir import SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

from dlcb.dialects.cuda.builder import CudaBuilder
from dlcb.dialects.cuda.ops import BarrierOp, KernelOp
from dlcb.dialects.cuda.types import ptr
from dlcb.dialects.types import f32, i1, i32
from dlcb.dialects.umbrella import DLCB
from dlcb.lowering.cuda_to_text import kernels_to_text
from dlcb.lowering.text_to_cpu import compile_cpu
from dlcb.lowering.text_to_cubin import Cubin, Nvrtc, compile_cubin

THREADS = 128
SEEDS = (0, 1, 2, 77)
HOSTILE = (1, 2, 77)


def pointwise() -> KernelOp:
    """y[i] = 2 x[i] + 1: four at a time, the last ones alone."""
    b = CudaBuilder("pointwise", THREADS, [("x", ptr(f32)), ("y", ptr(f32)), ("n", i32)])
    x, y, n = b.parameters
    i = b.mul(b.add(b.mul(b.block_idx(), THREADS), b.thread_idx()), 4)
    whole = b.le(b.add(i, 4), n)

    def element(value: SSAValue) -> SSAValue:
        return b.add(b.mul(value, 2.0), 1.0)

    with b.if_(whole):
        b.store_vector([element(v) for v in b.load_vector(x, i, 4)], y, i)
    with b.if_(b.not_(whole)), b.for_(i, n) as k:
        b.store(element(b.load(x, k)), y, k)
    return b.finish()


def softmax() -> KernelOp:
    """One block a row of n elements: the block reduces twice through the same shared array."""
    b = CudaBuilder("softmax", THREADS, [("x", ptr(f32)), ("y", ptr(f32)), ("n", i32)])
    x, y, n = b.parameters
    row = b.mul(b.block_idx(), n)
    value, other = b.local(f32, 1), b.local(f32, 1)
    shared = b.shared(f32, THREADS // 32)

    def reduce(function: str) -> None:
        """`value` becomes the block's, in every thread."""
        for mask in (16, 8, 4, 2, 1):
            b.shuffle_xor(value, 0, other, 0, mask)
            b.write(b.scalar(function, b.read(value, 0), b.read(other, 0)), value, 0)
        with b.if_(b.eq(b.mod(b.thread_idx(), 32), 0)):
            b.write(b.read(value, 0), shared, b.floordiv(b.thread_idx(), 32))
        b.barrier()
        total = b.var(b.read(shared, 0))
        with b.for_(1, THREADS // 32) as k:
            b.set(total, b.scalar(function, b.get(total), b.read(shared, k)))
        b.write(b.get(total), value, 0)

    largest = b.local(f32, 1)
    partial = b.var(b.constant(float("-inf"), f32))
    with b.for_(b.thread_idx(), n, THREADS) as k:
        b.set(partial, b.maximum(b.get(partial), b.load(x, b.add(row, k))))
    b.write(b.get(partial), value, 0)
    reduce("maximum")
    b.write(b.read(value, 0), largest, 0)
    b.barrier()
    partial = b.var(b.constant(0.0, f32))
    with b.for_(b.thread_idx(), n, THREADS) as k:
        b.set(partial, b.add(b.get(partial), b.exp(b.sub(b.load(x, b.add(row, k)), b.read(largest, 0)))))
    b.write(b.get(partial), value, 0)
    reduce("add")
    with b.for_(b.thread_idx(), n, THREADS) as k:
        i = b.add(row, k)
        b.store(b.div(b.exp(b.sub(b.load(x, i), b.read(largest, 0))), b.read(value, 0)), y, i)
    return b.finish()


def tiles() -> KernelOp:
    """y[t] = sum over the tiles of x of the element that mirrors t in its tile: a uniform loop with barriers."""
    b = CudaBuilder("tiles", THREADS, [("x", ptr(f32)), ("y", ptr(f32)), ("n", i32)])
    x, y, n = b.parameters
    total, tile = b.local(f32, 1), b.shared(f32, THREADS)
    zero = b.constant(0.0, f32)
    b.write(zero, total, 0)
    with b.for_(0, n, THREADS, uniform=True) as start:
        i = b.add(start, b.thread_idx())
        b.write(b.load_if(b.lt(i, n), x, i, zero), tile, b.thread_idx())
        b.barrier()
        b.write(b.add(b.read(total, 0), b.read(tile, b.sub(THREADS - 1, b.thread_idx()))), total, 0)
        b.barrier()
    with b.if_(b.constant(True, i1)):
        b.store(b.read(total, 0), y, b.thread_idx())
    return b.finish()


KERNELS: dict[str, Callable[[], KernelOp]] = {"pointwise": pointwise, "softmax": softmax, "tiles": tiles}

Launch = Callable[..., None]


@pytest.fixture(scope="module")
def library() -> Path:
    return compile_cpu(kernels_to_text(make() for make in KERNELS.values()))


def run_softmax(launch: Launch, library: Path, order_seed: int) -> bool:
    """Is the answer right?"""
    x = torch.randn(3, 300, generator=torch.Generator().manual_seed(0))
    y = torch.full_like(x, float("nan"))
    launch(library, "softmax", (x, y, ctypes.c_int(x.shape[1])), x.shape[0], order_seed)
    return torch.allclose(y, torch.softmax(x, 1), rtol=1e-5, atol=1e-7)


def run_tiles(launch: Launch, library: Path, order_seed: int) -> bool:
    """Is the answer right?"""
    x = torch.randn(THREADS * 2 + 5, generator=torch.Generator().manual_seed(0))
    y = torch.full((THREADS,), float("nan"))
    launch(library, "tiles", (x, y, ctypes.c_int(len(x))), 1, order_seed)
    padded = torch.nn.functional.pad(x, (0, THREADS * 3 - len(x))).reshape(3, THREADS)
    return torch.allclose(y, padded.flip(1).sum(0), rtol=1e-5, atol=1e-6)


RUNS = {"softmax": run_softmax, "tiles": run_tiles}


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_verifies_and_survives_printing_and_parsing(name: str) -> None:
    kernel = KERNELS[name]()
    kernel.verify()
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(DLCB)
    for generic in (False, True):
        text = io.StringIO()
        Printer(text, print_generic_format=generic).print_op(kernel)
        parsed = Parser(context, text.getvalue()).parse_op()
        parsed.verify()
        assert isinstance(parsed, KernelOp)
        assert str(parsed) == str(kernel)
        assert kernels_to_text([parsed]) == kernels_to_text([kernel])


def test_equal_kernels_have_equal_text() -> None:
    assert kernels_to_text([softmax()]) == kernels_to_text([softmax()])


def test_nvrtc_takes_the_text_without_options_or_complaint() -> None:
    cubin = compile_cubin(kernels_to_text(make() for make in KERNELS.values()), "sm_90")
    assert cubin.data[:4] == b"\x7fELF"
    assert "error" not in cubin.log


@pytest.mark.parametrize("order_seed", SEEDS)
@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 511, 512, 1029])
def test_pointwise_writes_all_elements_and_no_other(
    library: Path, launch_cpu: Launch, size: int, order_seed: int
) -> None:
    x = torch.randn(size)
    y = torch.full((size + 8,), float("nan"))
    launch_cpu(library, "pointwise", (x, y, ctypes.c_int(size)), -(-size // (4 * THREADS)), order_seed)
    assert torch.equal(y[:size], 2 * x + 1)
    assert y[size:].isnan().all()


@pytest.mark.parametrize("order_seed", SEEDS)
@pytest.mark.parametrize("name", RUNS)
def test_blocks_that_share_memory_are_right_in_every_order(
    library: Path, launch_cpu: Launch, name: str, order_seed: int
) -> None:
    assert RUNS[name](launch_cpu, library, order_seed)


def without_barrier(kernel: KernelOp, number: int) -> KernelOp:
    barriers = [op for op in kernel.walk() if isinstance(op, BarrierOp)]
    barriers[number].detach()
    return kernel


@pytest.mark.parametrize(
    ("name", "number"), [("softmax", 0), ("softmax", 1), ("softmax", 2), ("tiles", 0), ("tiles", 1)]
)
def test_a_kernel_that_lacks_one_barrier_is_wrong_in_every_hostile_order(
    launch_cpu: Launch, name: str, number: int
) -> None:
    broken = compile_cpu(kernels_to_text([without_barrier(KERNELS[name](), number)]))
    assert not any(RUNS[name](launch_cpu, broken, order_seed) for order_seed in HOSTILE)


def test_many_kernels_are_compiled_on_all_cores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kernels: list[KernelOp] = []
    for number in range(8):
        b = CudaBuilder(f"copy{number}", 32, [("x", ptr(f32)), ("y", ptr(f32))])
        x, y = b.parameters
        b.store(b.load(x, b.thread_idx()), y, b.thread_idx())
        kernels.append(b.finish())
    compiled: list[tuple[str, ...]] = []
    compile_unit = Nvrtc.compile

    def record(nvrtc: Nvrtc, unit: str, options: tuple[str, ...]) -> Cubin:
        compiled.append(options)
        return compile_unit(nvrtc, unit, options)

    monkeypatch.setattr("os.cpu_count", lambda: 8)
    monkeypatch.setenv("DLCB_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(Nvrtc, "compile", record)
    assert compile_cubin(kernels_to_text(kernels)).data
    assert compile_cubin(kernels_to_text(kernels[:7])).data
    assert ["--split-compile=0" in options for options in compiled] == [True, False]


def test_names_that_mean_something_to_c_are_not_taken() -> None:
    b = CudaBuilder("names", 1, [("expf", ptr(f32)), ("int", ptr(f32)), ("x", ptr(f32)), ("DLCB_THREAD", i32)])
    expf, integer, x, number = b.parameters
    b.store(b.exp(b.load(expf, number)), x, 0)
    b.store(b.load(x, 0), integer, 0)
    text = kernels_to_text([b.finish()])
    assert compile_cubin(text).data
    assert compile_cpu(text).exists()
    assert ", float* x, " in text
