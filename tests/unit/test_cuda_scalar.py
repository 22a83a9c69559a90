"""Every scalar function and conversion, as kernels of the cpu target compute it, against torch."""

import ctypes
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
import torch

from dlcb.dialects.cuda.builder import CudaBuilder
from dlcb.dialects.cuda.ops import KernelOp, ScalarOp
from dlcb.dialects.cuda.types import ptr
from dlcb.dialects.cuda.values import DOMAINS
from dlcb.dialects.scalar import FUNCTIONS
from dlcb.dialects.types import NAMES, TYPE_NAME, f16, f32, i1, i32
from dlcb.lowering.cuda_to_text import kernels_to_text
from dlcb.lowering.text_to_cpu import compile_cpu
from dlcb.lowering.text_to_cubin import compile_cubin

Launch = Callable[..., None]
DTYPES = {
    "i1": torch.bool,
    "ui8": torch.uint8,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
}
CASES = [
    (name, TYPE_NAME[element])
    for name, function in FUNCTIONS.items()
    if name != "cast"
    for element in DOMAINS[function.domain]
]
CASTS = [
    (a, b)
    for a in NAMES
    for b in NAMES
    if a != b and (("f16" not in (a, b) and "bf16" not in (a, b)) or "f32" in (a, b))
]


def guarded(operation: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Callable[..., torch.Tensor]:
    """torch's operation. Integers divided by 0 give 0, and the lowest divided by -1 wraps, where torch dies.

    Where the quotient of floats overflows, torch's vectors differ from its scalars: there the witness takes one by one.
    """

    def run(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        if a.is_floating_point():
            return torch.stack([operation(x, y) for x, y in zip(a, b, strict=True)])
        overflow = (a == torch.iinfo(a.dtype).min) & (b == -1) & (a < 0)
        return torch.where(b == 0, 0, operation(a, torch.where((b == 0) | overflow, 1, b)))

    return run


def multiply_add(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    """Rounded once: each element with the exact rational numbers, where all are finite."""
    exact = [_rounded_sum(*map(float, numbers)) for numbers in zip(a, b, c, strict=True)]
    finite = a.isfinite() & b.isfinite()
    return torch.where(
        finite & c.isfinite(),
        torch.tensor(exact, dtype=torch.float64).to(a.dtype),
        torch.where(finite, c, a * b + c),
    )


def _rounded_sum(a: float, b: float, c: float) -> float:
    if not all(map(math.isfinite, (a, b, c))):
        return 0.0
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c
    return float(exact) if abs(exact) < Fraction(2) ** 1024 else (math.inf if exact > 0 else -math.inf)


def bitwise(name: str) -> Callable[..., torch.Tensor]:
    return lambda *operands: getattr(torch, f"bitwise_{name}")(*operands)


WITNESSES: dict[str, Callable[..., torch.Tensor]] = {
    "fast_div": torch.div,
    "fast_exp": torch.exp,
    "floordiv": guarded(torch.floor_divide),
    "truncdiv": guarded(lambda a, b: torch.div(a, b, rounding_mode="trunc")),
    "mod": guarded(torch.remainder),
    "fmod": guarded(torch.fmod),
    "sign": torch.sign,
    "shl": torch.bitwise_left_shift,
    "shr": torch.bitwise_right_shift,
    "maximum": lambda a, b: torch.where(a == b, a, torch.maximum(a, b)),
    "minimum": lambda a, b: torch.where(a == b, a, torch.minimum(a, b)),
    "fast_maximum": torch.maximum,
    "fast_minimum": torch.minimum,
    "fma": multiply_add,
    "select": torch.where,
    **{name: bitwise(name) for name in ("and", "or", "xor", "not")},
}


def witness(name: str) -> Callable[..., torch.Tensor]:
    return WITNESSES[name] if name in WITNESSES else getattr(torch, name)


def samples(kind: str) -> torch.Tensor:
    dtype = DTYPES[kind]
    if kind == "i1":
        return torch.tensor([False, True])
    if not dtype.is_floating_point:
        info = torch.iinfo(dtype)
        signed = [-1, -2, -7] if info.min else [200, 255]
        return torch.tensor([0, 1, 2, 3, 7, 31, 64, 100, info.max, info.min, *signed], dtype=dtype)
    info = torch.finfo(dtype)
    special = [0.0, -0.0, float("inf"), -float("inf"), float("nan"), info.tiny, info.max, info.min]
    usual = [0.1, -0.1, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 3.7, -3.7, 7.0, 20.0, 88.0]
    return torch.tensor([*special, *usual], dtype=dtype)


def operands(name: str, kind: str) -> list[torch.Tensor]:
    """All pairs of the samples, or all samples; a condition for `select`."""
    x = samples(kind)
    if FUNCTIONS[name].arity == 1:
        return [x]
    a = x.repeat_interleave(len(x)).contiguous()
    b = x.repeat(len(x)).contiguous()
    if name == "fma":
        return [a, b, a.flip(0).roll(7)]
    return [torch.arange(len(a)) % 2 == 0, a, b] if name == "select" else [a, b]


def function_kernel(name: str, kind: str) -> KernelOp:
    """y[i] = function(a[i], …)"""
    function, element = FUNCTIONS[name], NAMES[kind]
    kinds = [i1, element, element] if name == "select" else [element] * function.arity
    result = i1 if function.result == "bool" else element
    parameters = [(f"a{j}", ptr(k)) for j, k in enumerate(kinds)]
    b = CudaBuilder(f"{name}_{kind}", 32, [*parameters, ("y", ptr(result)), ("n", i32)])
    *arrays, y, n = b.parameters
    i = b.add(b.mul(b.block_idx(), 32), b.thread_idx())
    with b.if_(b.lt(i, n)):
        b.store(b.scalar(name, *(b.load(array, i) for array in arrays)), y, i)
    return b.finish()


def cast_kernel(source: str, target: str) -> KernelOp:
    b = CudaBuilder(f"{source}_to_{target}", 32, [("x", ptr(NAMES[source])), ("y", ptr(NAMES[target])), ("n", i32)])
    x, y, n = b.parameters
    i = b.add(b.mul(b.block_idx(), 32), b.thread_idx())
    with b.if_(b.lt(i, n)):
        b.store(b.cast(b.load(x, i), NAMES[target]), y, i)
    return b.finish()


@pytest.fixture(scope="module")
def text() -> str:
    kernels = [function_kernel(*case) for case in CASES] + [cast_kernel(*case) for case in CASTS]
    for kernel in kernels:
        kernel.verify()
    return kernels_to_text(kernels)


@pytest.fixture(scope="module")
def library(text: str) -> Path:
    return compile_cpu(text)


def run(launch: Launch, library: Path, name: str, inputs: list[torch.Tensor], dtype: torch.dtype) -> torch.Tensor:
    count = inputs[0].numel()
    result = torch.empty(count, dtype=dtype)
    launch(library, name, (*inputs, result, ctypes.c_int(count)), -(-count // 32))
    return result


def test_nvrtc_takes_every_function(text: str) -> None:
    assert compile_cubin(text, "sm_90").data


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_a_function_is_torchs(library: Path, launch_cpu: Launch, name: str, kind: str) -> None:
    inputs = operands(name, kind)
    if name == "pow" and not inputs[0].is_floating_point():
        inputs = [inputs[0][inputs[1] >= 0], inputs[1][inputs[1] >= 0]]
    expected = witness(name)(*inputs)
    result = run(launch_cpu, library, f"{name}_{kind}", inputs, expected.dtype)
    torch.testing.assert_close(result, expected, rtol=1e-6, atol=0, equal_nan=True)


@pytest.mark.parametrize(("base", "power", "expected"), [(1, -3, 1), (-1, -3, -1), (-1, -2, 1), (5, -1, 0), (0, -1, 0)])
def test_a_negative_power_of_an_integer_is_rounded_towards_zero(
    library: Path, launch_cpu: Launch, base: int, power: int, expected: int
) -> None:
    inputs = [torch.tensor([base]), torch.tensor([power])]
    assert run(launch_cpu, library, "pow_i64", inputs, torch.int64).item() == expected


@pytest.mark.parametrize(("source", "target"), CASTS)
def test_a_conversion_is_torchs(library: Path, launch_cpu: Launch, source: str, target: str) -> None:
    x = samples(source)
    expected = x.to(DTYPES[target])
    result = run(launch_cpu, library, f"{source}_to_{target}", [x], DTYPES[target])
    torch.testing.assert_close(result, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("half", ["f16", "bf16"])
def test_every_half_widens_exactly_and_comes_back(library: Path, launch_cpu: Launch, half: str) -> None:
    x = torch.arange(65536, dtype=torch.int32).to(torch.int16).view(DTYPES[half])
    wide = run(launch_cpu, library, f"{half}_to_f32", [x], torch.float32)
    assert torch.equal(wide.view(torch.int32)[~x.isnan()], x.float().view(torch.int32)[~x.isnan()])
    assert torch.equal(wide.isnan(), x.isnan())
    back = run(launch_cpu, library, f"f32_to_{half}", [wide], DTYPES[half])
    assert torch.equal(back.view(torch.int16)[~x.isnan()], x.view(torch.int16)[~x.isnan()])
    assert torch.equal(back.isnan(), x.isnan())


@pytest.mark.parametrize("half", ["f16", "bf16"])
def test_halves_round_to_nearest_ties_to_even(library: Path, launch_cpu: Launch, half: str) -> None:
    halves = torch.arange(65535, dtype=torch.int32).to(torch.int16).view(DTYPES[half])
    low, high = halves[:-1].float(), halves[1:].float()
    middle = ((low.double() + high.double()) / 2).float()
    middle = middle[middle.isfinite()]
    infinity = torch.full_like(middle, float("inf"))
    x = torch.cat([middle, torch.nextafter(middle, infinity), torch.nextafter(middle, -infinity)])
    result = run(launch_cpu, library, f"f32_to_{half}", [x], DTYPES[half])
    assert torch.equal(result.view(torch.int16), x.to(DTYPES[half]).view(torch.int16))


def test_constants_are_exact_to_the_bit(launch_cpu: Launch) -> None:
    values = [0.1, -0.0, float("inf"), float("-inf"), float("nan"), 1e-45, 3.4028234663852886e38, 16777217.0, 5e-324]
    narrow = {"ui8": [0, 255, 128], "i8": [-128, 127, -1], "i16": [-32768, 32767, -1]}
    types = narrow | {"f32": values, "f64": values, "i32": [-(2**31), 2**31 - 1, -7], "i64": [-(2**63), 2**63 - 1, -7]}
    halves = {"f16": [0.1, -0.0, float("inf"), 6e-8, 65504.0], "bf16": [0.1, -0.0, float("inf"), 3e38]}
    kernels: list[KernelOp] = []
    for kind, numbers in (types | halves).items():
        b = CudaBuilder(f"constants_{kind}", 1, [("y", ptr(NAMES[kind]))])
        for i, number in enumerate(numbers):
            b.store(b.constant(number, NAMES[kind]), b.parameters[0], i)
        kernels.append(b.finish())
    library = compile_cpu(kernels_to_text(kernels))
    for kind, numbers in (types | halves).items():
        expected = torch.tensor(numbers, dtype=DTYPES[kind])
        result = torch.empty_like(expected)
        launch_cpu(library, f"constants_{kind}", [result], 1)
        numbers_only = ~expected.isnan()
        assert torch.equal(result.isnan(), expected.isnan()), kind
        assert torch.equal(bits_of(result)[numbers_only], bits_of(expected)[numbers_only]), kind


def bits_of(x: torch.Tensor) -> torch.Tensor:
    return x.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[x.itemsize]) if x.is_floating_point() else x


def test_vectors_of_every_width_move_their_elements(launch_cpu: Launch) -> None:
    shapes = [(kind, width) for kind in ("i1", "ui8", "i16", "bf16", "f32", "f64") for width in (2, 4, 8, 16)]
    shapes = [(kind, width) for kind, width in shapes if width * DTYPES[kind].itemsize <= 32]
    kernels: list[KernelOp] = []
    for kind, width in shapes:
        b = CudaBuilder(f"v{width}_{kind}", 1, [("x", ptr(NAMES[kind])), ("y", ptr(NAMES[kind]))])
        x, y = b.parameters
        b.store_vector(b.load_vector(x, width, width), y, 0)
        kernels.append(b.finish())
        kernels[-1].verify()
    text = kernels_to_text(kernels)
    assert compile_cubin(text).data
    library = compile_cpu(text)
    for kind, width in shapes:
        x = (torch.rand(2 * width) * 100).to(DTYPES[kind]) if kind != "i1" else torch.rand(2 * width) > 0.5
        y = torch.zeros(width, dtype=DTYPES[kind])
        launch_cpu(library, f"v{width}_{kind}", (x, y), 1)
        assert torch.equal(y, x[width:]), (kind, width)


def test_half_precision_goes_through_f32_in_the_builder() -> None:
    b = CudaBuilder("k", 1, [("x", ptr(f16)), ("n", i32)])
    x, n = b.parameters
    for value in (b.cast(b.load(x, 0), i32), b.cast(n, f16)):
        assert isinstance(value.owner, ScalarOp)
        assert value.owner.operands[0].type == f32
