"""Compiled modules on the CPU: hand-written host programs over small C kernels."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from dlcb.dialects.host.attributes import ArgumentAttr, InputAttr, IntegerArgumentAttr, WeightAttr
from dlcb.dialects.host.builder import HostBuilder
from dlcb.dialects.host.work import Variant
from dlcb.dialects.shape.expr import add, eq, mod, mul, sym
from dlcb.dialects.types import f32, i32, i64
from dlcb.errors import UserError
from dlcb.lowering.host_to_json import program_to_json
from dlcb.runtime.cpu import CpuKernels
from dlcb.runtime.memory import Allocator, HostileAllocator
from dlcb.runtime.module import CompiledModule
from dlcb.runtime.session import Limits

CPU = torch.device("cpu")

_KERNELS = """
#include <cstdint>
#define KERNEL(name)                                                    \\
    static void name(void** a);                                         \\
    extern "C" int launch_##name(void** a, long long blocks, int seed) { \\
        name(a);                                                        \\
        return 0;                                                       \\
    }                                                                   \\
    static void name(void** a)
template <class T> static T get(void** a, int i) { return *(T*)a[i]; }
KERNEL(scale) {       // o[i] = x[i] * k, n elements, k as 64-bit integer
    auto x = get<float*>(a, 0); auto o = get<float*>(a, 1);
    auto n = get<int32_t>(a, 2); auto k = get<int64_t>(a, 3);
    for (int i = 0; i < n; i++) o[i] = x[i] * k;
}
KERNEL(scale_v4) {    // as scale, and 1000 more, so that tests see which variant ran
    auto x = get<float*>(a, 0); auto o = get<float*>(a, 1);
    auto n = get<int32_t>(a, 2); auto k = get<int64_t>(a, 3);
    for (int i = 0; i < n; i++) o[i] = x[i] * k + 1000;
}
KERNEL(bump) {        // x[i] += 1, n elements
    auto x = get<float*>(a, 0); auto n = get<int64_t>(a, 1);
    for (int64_t i = 0; i < n; i++) x[i] += 1;
}
KERNEL(overrun) {     // o[n] = 0, one past the end
    auto o = get<float*>(a, 0); auto n = get<int64_t>(a, 1);
    o[n] = 0;
}
"""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> CpuKernels:
    folder = tmp_path_factory.mktemp("kernels")
    source, library = folder / "kernels.cpp", folder / "kernels.so"
    source.write_text(_KERNELS)
    subprocess.run(["g++", "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    return CpuKernels(library)


def _builder(name: str, *arguments: ArgumentAttr, results: Sequence[str] = ()) -> HostBuilder:
    return HostBuilder(name, arguments, results)


def _json(builder: HostBuilder, results: Sequence[Any]) -> dict[str, Any]:
    program = builder.finish(results)
    program.verify()
    return program_to_json(program)


def _scale_program() -> dict[str, Any]:
    """o = x * k over a vector, by way of the arena and a second launch: o = (x * k) * 1."""
    b = _builder("scaled", InputAttr.make("x", f32, 1), IntegerArgumentAttr.make("k"))
    n = b.symbols["n"] = b.size("x", 0)
    bytes = mul(sym("n"), 4)
    b.check(eq(mod(sym("n"), 2), 0), "x.shape[0] is {0} but must be even", [n])
    buffer = b.buffer(b.arena(add(bytes, 256)), 256, [n], [1], f32)
    out = b.output([n], [1], f32)
    first = Variant("scale", 1, b.truth(True), b.select(b.eq(n, 0), 0, 1), [(n, i32), (b.integer("k"), i64)])
    b.launch([b.argument("x"), buffer], [first])
    wide = b.all_of(b.aligned("x", 16), b.eq(b.mod(n, 4), 0))
    integers = [(n, i32), (b.constant(1), i64)]
    blocks = b.select(b.eq(n, 0), 0, 1)
    b.launch(
        [buffer, out],
        [Variant("scale_v4", 1, wide, blocks, integers), Variant("scale", 1, b.truth(True), blocks, integers)],
    )
    return _json(b, [out, n])


def _scaled(kernels: CpuKernels, **options: Any) -> CompiledModule:
    return CompiledModule(_scale_program(), kernels, CPU, {}, **options)


def _tensor(result: Any) -> Tensor:
    assert isinstance(result, Tensor)
    return result


def test_sizes_choose_the_variant_and_results_are_right_at_every_size(kernels: CpuKernels) -> None:
    module = _scaled(kernels)
    for n in (0, 2, 4, 6, 8, 1000):
        x = torch.randn(n)
        out, size = module(x, 3)
        extra = 1000 if n % 4 == 0 else 0
        torch.testing.assert_close(out, x * 3 + extra)
        assert size == n


def test_alignment_is_part_of_the_call_key(kernels: CpuKernels) -> None:
    module = _scaled(kernels)
    base = torch.zeros(9)
    aligned, shifted = base[:8], base[1:9]
    assert _tensor(module(aligned, 1)[0])[0] == 1000
    assert _tensor(module(shifted, 1)[0])[0] == 0


def test_outputs_are_never_overwritten_by_later_calls(kernels: CpuKernels) -> None:
    module = _scaled(kernels)
    first = _tensor(module(torch.ones(2), 5)[0])
    module(torch.ones(2), 7)
    assert first.tolist() == [5, 5]


def test_a_failed_check_names_the_program_and_the_values_and_launches_nothing(kernels: CpuKernels) -> None:
    with pytest.raises(UserError, match=r"^scaled: x\.shape\[0\] is 3 but must be even$"):
        _scaled(kernels)(torch.ones(3), 1)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((torch.ones(2),), r"scaled: takes 2 arguments \(x, k\), got 1"),
        ((torch.ones(2, 2), 1), r"scaled: x has rank 2 \(shape \[2, 2\]\), expected rank 1"),
        ((torch.ones(2).half(), 1), r"scaled: x has dtype torch.float16, expected torch.float32"),
        ((torch.ones(2, device="meta"), 1), r"scaled: x is on meta, expected cpu"),
        (([1.0, 2.0], 1), r"scaled: x must be a tensor, got list"),
        ((torch.ones(2), 1.0), r"scaled: k must be an int, got float 1.0"),
        ((torch.ones(2), True), r"scaled: k must be an int, got bool True"),
        ((torch.ones(2).to_sparse(), 1), r"scaled: x has layout torch.sparse_coo"),
        ((torch.tensor([1j, 2j]).conj().imag, 1), r"scaled: x is a negated view of other memory"),
        ((torch._efficientzerotensor(2), 1), r"scaled: x has no memory \(Tensor\)"),  # pyright: ignore
    ],
)
def test_a_wrong_argument_is_named_with_both_values(kernels: CpuKernels, arguments: Any, text: str) -> None:
    module = _scaled(kernels)
    module(torch.ones(2), 1)
    with pytest.raises(UserError, match=text):
        module(*arguments)


def test_the_number_of_plans_is_bounded(kernels: CpuKernels) -> None:
    module = _scaled(kernels, limits=Limits(plans=2))
    for n in range(2, 20, 2):
        module(torch.ones(n), 1)
    session = next(iter(module._sessions.values()))  # pyright: ignore
    assert len(session._plans) == 2  # pyright: ignore


@pytest.mark.parametrize("allocator", [Allocator(), HostileAllocator(guard=False), HostileAllocator(guard=True)])
def test_hostile_memory_does_not_change_results(kernels: CpuKernels, allocator: Allocator) -> None:
    module = _scaled(kernels, allocator=allocator)
    for n in (0, 2, 6, 1030):
        x = torch.randn(n)
        torch.testing.assert_close(module(x, 2)[0], x * 2)


def test_a_write_past_a_buffer_is_a_crash_before_a_guard_page(kernels: CpuKernels) -> None:
    library = kernels._path  # pyright: ignore
    code = f"""
import torch
from pathlib import Path
from dlcb.runtime.cpu import CpuKernels
from dlcb.runtime.memory import HostileAllocator
from dlcb.runtime.module import CompiledModule
program = {{"name": "p", "arguments": [], "results": [], "code": [
    ["constant", 0, 1024], ["constant", 1, 1], ["constant", 2, True], ["output", 3, [0], [1], "f32"],
    ["launch", [3], [["overrun", 1, 2, 1, [[0, "i64"]]]], []], ["return", [3]]]}}
CompiledModule(program, CpuKernels(Path({str(library)!r})), torch.device("cpu"), {{}},
               allocator=HostileAllocator(guard=True))()
"""
    assert subprocess.run([sys.executable, "-P", "-c", code], env=_environment(), check=False).returncode < 0


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}


def test_the_runtime_imports_no_compiler() -> None:
    code = "import json, sys, dlcb.runtime.compiled; print(json.dumps(list(sys.modules)))"
    run = subprocess.run(
        [sys.executable, "-P", "-c", code], env=_environment(), capture_output=True, text=True, check=True
    )
    modules = [m for m in json.loads(run.stdout) if m.split(".")[0] in ("xdsl", "dlcb")]
    allowed = ("dlcb.runtime", "dlcb.cubins", "dlcb.errors", "dlcb.magic")
    assert [m for m in modules if m != "dlcb" and not m.startswith(allowed)] == []


def _bump_program(read_by_library: bool) -> dict[str, Any]:
    b = _builder("step", InputAttr.make("cache", f32, 2, updated=True), InputAttr.make("y", f32, 2))
    n, m = b.size("cache", 0), b.size("cache", 1)
    cache = b.argument("cache")
    b.launch([cache], [Variant("bump", 1, b.truth(True), b.constant(1), [(b.mul(n, m), i64)])])
    row = b.view(cache, m, [m], [1])
    if not read_by_library:
        return _json(b, [cache, row])
    product = b.library("matmul", [cache, b.argument("y")], {}, f32)
    return _json(b, [cache, row, product])


def test_an_argument_is_updated_in_place_and_results_alias_it(kernels: CpuKernels) -> None:
    module = CompiledModule(_bump_program(read_by_library=True), kernels, CPU, {})
    cache, y = torch.zeros(2, 3), torch.ones(3, 2)
    version = cache._version
    result, row, product = module(cache, y)
    assert result is cache
    assert cache.tolist() == [[1] * 3] * 2
    assert cache._version > version
    _tensor(row).fill_(7)
    assert cache[1].tolist() == [7, 7, 7]
    assert _tensor(product).tolist() == [[3, 3], [3, 3]]


def test_an_updated_argument_that_shares_memory_is_refused(kernels: CpuKernels) -> None:
    module = CompiledModule(_bump_program(read_by_library=True), kernels, CPU, {})
    cache = torch.zeros(3, 3)
    with pytest.raises(UserError, match="step: cache is updated in place, but shares memory with y"):
        module(cache, cache[1:])
    with pytest.raises(UserError, match="step: cache is updated in place, but is an expanded tensor"):
        module(torch.zeros(1, 3).expand(2, 3), torch.ones(3, 2))


def _linear_programs() -> tuple[dict[str, Any], dict[str, Any]]:
    """main: x @ wt.T, where @weights makes wt = w * 2 from the parameter w."""
    derive = _builder("weights", WeightAttr.make("w", f32, [2, 3], [3, 1]), results=["wt"])
    out = derive.output([2, 3], [3, 1], f32)
    integers = [(derive.constant(6), i32), (derive.constant(2), i64)]
    derive.launch([derive.weight("w"), out], [Variant("scale", 1, derive.truth(True), derive.constant(1), integers)])
    main = _builder("linear", InputAttr.make("x", f32, 2), WeightAttr.make("wt", f32, [2, 3], [3, 1]))
    n = main.size("x", 0)
    y = main.output([n, 2], [2, 1], f32)
    transposed = main.view(main.weight("wt"), 0, [3, 2], [1, 3])
    main.library_into(y, "matmul", [main.argument("x"), transposed], {})
    return _json(main, [y]), _json(derive, [out])


def test_live_weights_are_seen_in_the_next_call_even_at_a_new_address(kernels: CpuKernels) -> None:
    main, derive = _linear_programs()
    w = torch.nn.Parameter(torch.randn(2, 3))
    module = CompiledModule(main, kernels, CPU, {"w": w}, weights_program=derive, mode="live")
    x = torch.randn(4, 3)
    for change in (lambda: None, lambda: w.data.fill_(3), lambda: setattr(w, "data", torch.randn(2, 3))):
        change()
        torch.testing.assert_close(module(x)[0], (x @ w.T * 2).detach())
    with pytest.raises(UserError, match="live weights are fresh"):
        module.refresh_weights()


def test_frozen_weights_change_on_refresh_only(kernels: CpuKernels) -> None:
    main, derive = _linear_programs()
    w = torch.nn.Parameter(torch.randn(2, 3))
    module = CompiledModule(main, kernels, CPU, {"w": w}, weights_program=derive, mode="frozen")
    x = torch.randn(4, 3)
    before = _tensor(module(x)[0])
    w.data.fill_(1)
    torch.testing.assert_close(module(x)[0], before)
    module.refresh_weights()
    torch.testing.assert_close(module(x)[0], (x @ w.T * 2).detach())


def test_memory_of_a_frozen_parameter_may_go(kernels: CpuKernels) -> None:
    b = _builder("linear", InputAttr.make("x", f32, 2), WeightAttr.make("w", f32, [2, 3], [3, 1]))
    y = b.output([b.size("x", 0), 2], [2, 1], f32)
    b.library_into(y, "matmul", [b.argument("x"), b.view(b.weight("w"), 0, [3, 2], [1, 3])], {})
    w = torch.nn.Parameter(torch.randn(2, 3))
    module = CompiledModule(_json(b, [y]), kernels, CPU, {"w": w}, mode="frozen")
    x = torch.randn(4, 3)
    before = _tensor(module(x)[0])
    w.data = torch.randn(2, 3)
    torch.testing.assert_close(module(x)[0], before)
    module.refresh_weights()
    torch.testing.assert_close(module(x)[0], (x @ w.T).detach())


def test_frozen_weights_may_be_refreshed_while_threads_call(kernels: CpuKernels) -> None:
    main, derive = _linear_programs()
    w = torch.nn.Parameter(torch.zeros(2, 3))
    module = CompiledModule(main, kernels, CPU, {"w": w}, weights_program=derive, mode="frozen")
    wrong: list[Tensor] = []

    def work() -> None:
        for _ in range(100):
            y = _tensor(module(torch.ones(4, 3))[0])
            if not bool((y == y[0, 0]).all()):
                wrong.append(y)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for value in range(20):
        w.data.fill_(value)
        module.refresh_weights()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_the_number_of_streams_is_bounded(kernels: CpuKernels, monkeypatch: pytest.MonkeyPatch) -> None:
    module = _scaled(kernels, limits=Limits(streams=2))
    for stream in (1, 2, 3, 1):
        monkeypatch.setattr(module._place, "stream", lambda stream=stream: stream)  # pyright: ignore
        assert _tensor(module(torch.ones(2), 5)[0]).tolist() == [5, 5]
    assert list(module._sessions) == [3, 1]  # pyright: ignore


def test_parts_of_one_buffer_may_be_updated(kernels: CpuKernels) -> None:
    module = CompiledModule(_bump_program(read_by_library=True), kernels, CPU, {})
    buffer = torch.zeros(6, 3)
    result = module(buffer[:2], buffer[2:].view(4, 3)[:3])
    assert result[0] is not None
    assert buffer[:2].tolist() == [[1] * 3] * 2
    assert buffer[2:].tolist() == [[0] * 3] * 4


@pytest.mark.parametrize(
    ("w", "text"),
    [
        ({}, "no weight is bound to 'w'"),
        ({"w": torch.ones(2, 4)}, r"weight 'w' has shape \(2, 4\), the module was compiled for \(2, 3\)"),
        ({"w": torch.ones(3, 2).T}, r"weight 'w' has strides \(1, 2\), the module was compiled for \(3, 1\)"),
        ({"w": torch.ones(2, 3).double()}, "weight 'w' has dtype torch.float64"),
    ],
)
def test_a_weight_that_does_not_fit_is_refused(kernels: CpuKernels, w: dict[str, Tensor], text: str) -> None:
    main, derive = _linear_programs()
    with pytest.raises(UserError, match=text):
        CompiledModule(main, kernels, CPU, w, weights_program=derive)(torch.ones(1, 3))


def test_autocast_and_gradients_of_the_caller_do_not_reach_library_calls(kernels: CpuKernels) -> None:
    main, derive = _linear_programs()
    w = torch.nn.Parameter(torch.randn(2, 3))
    module = CompiledModule(main, kernels, CPU, {"w": w}, weights_program=derive)
    x = torch.randn(4, 3, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = _tensor(module(x)[0])
    assert not y.requires_grad
    torch.testing.assert_close(y, (x.float() @ w.T * 2).detach())


def test_a_kernel_that_is_not_there_is_found_when_the_module_is_made(kernels: CpuKernels) -> None:
    program = _scale_program()
    for row in program["code"]:
        if row[0] == "launch":
            row[2][0][0] = "missing"
    with pytest.raises(UserError, match="no kernel 'missing'"):
        CompiledModule(program, kernels, CPU, {})


def test_threads_may_call_one_module(kernels: CpuKernels) -> None:
    module = _scaled(kernels)
    wrong: list[int] = []

    def work(k: int) -> None:
        for n in range(2, 60, 4):
            x = torch.randn(n)
            if not torch.equal(_tensor(module(x, k)[0]), x * k):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
