"""Compiled modules on a GPU: launches, streams, graphs that are recorded and replayed with moved arguments."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch
from torch import Tensor

from dlcb.dialects.host.attributes import InputAttr, WeightAttr
from dlcb.dialects.host.builder import HostBuilder
from dlcb.dialects.host.work import Variant
from dlcb.dialects.types import f32, i64
from dlcb.errors import UserError
from dlcb.lowering.host_to_json import program_to_json
from dlcb.lowering.text_to_cubin import compile_cubin
from dlcb.runtime import cuda
from dlcb.runtime.cuda import CudaKernels, arch_of
from dlcb.runtime.module import CompiledModule
from dlcb.runtime.session import Limits

pytestmark = pytest.mark.gpu

_KERNELS = """
extern "C" __global__ void twice(const float* x, float* o, long long n) {
    for (long long i = blockIdx.x * 256ll + threadIdx.x; i < n; i += gridDim.x * 256ll) o[i] = x[i] * 2;
}
extern "C" __global__ void bump(float* x, long long n) {
    for (long long i = blockIdx.x * 256ll + threadIdx.x; i < n; i += gridDim.x * 256ll) x[i] += 1;
}
"""


@pytest.fixture(scope="module")
def kernels() -> CudaKernels:
    device = torch.device("cuda")
    return CudaKernels(compile_cubin(_KERNELS, arch_of(device)).data, device)


def _program() -> Any:
    """out = 2x by a kernel, z = (2x) @ w into an output, p = (cache + 1) @ y allocated, cache += 1 in place."""
    arguments = [
        InputAttr.make("x", f32, 2),
        InputAttr.make("y", f32, 2),
        InputAttr.make("cache", f32, 2, updated=True),
        WeightAttr.make("w", f32, [64, 64], [64, 1]),
    ]
    b = HostBuilder("mixed", arguments)
    n = b.size("x", 0)
    count = b.mul(n, 64)

    def launch(kernel: str, elements: Any, *tensors: Any) -> None:
        b.launch(tensors, [Variant(kernel, 256, b.truth(True), b.ceildiv(elements, 256), [(elements, i64)])])

    x, y, cache = b.argument("x"), b.argument("y"), b.argument("cache")
    temporary = b.buffer(b.arena(b.mul(count, 4)), 0, [n, 64], [64, 1], f32)
    launch("twice", count, x, temporary)
    out = b.output([n, 64], [64, 1], f32)
    launch("twice", count, x, out)
    z = b.output([n, 64], [64, 1], f32)
    b.library_into(z, "matmul", [temporary, b.weight("w")], {})
    launch("bump", b.constant(64 * 64), cache)
    p = b.library("matmul", [cache, y], {}, f32)
    return program_to_json(b.finish([out, z, p, cache]))


class _Case:
    def __init__(self, kernels: CudaKernels, graphs: bool, limits: Limits | None = None) -> None:
        self.w = torch.randn(64, 64, device="cuda")
        self.module = CompiledModule(
            _program(), kernels, torch.device("cuda"), {"w": self.w}, graphs=graphs, limits=limits
        )

    @property
    def session(self) -> Any:
        (session,) = self.module._sessions.values()  # pyright: ignore
        return session

    def check(self, n: int, cache: Tensor) -> list[Any]:
        x, y = torch.randn(n, 64, device="cuda"), torch.randn(64, 64, device="cuda")
        expected = cache + 1
        out, z, p, same = results = self.module(x, y, cache)
        torch.testing.assert_close(out, 2 * x)
        torch.testing.assert_close(z, 2 * x @ self.w)
        torch.testing.assert_close(p, expected @ y)
        assert same is cache
        torch.testing.assert_close(cache, expected)
        return results


@pytest.mark.parametrize("graphs", [False, True])
def test_results_are_right_at_every_size_and_in_every_call(kernels: CudaKernels, graphs: bool) -> None:
    case = _Case(kernels, graphs)
    cache = torch.zeros(64, 64, device="cuda")
    for _ in range(5):
        for n in (0, 1, 7, 300):
            case.check(n, cache)


def test_results_of_a_replay_are_never_overwritten(kernels: CudaKernels) -> None:
    case = _Case(kernels, graphs=True)
    cache = torch.zeros(64, 64, device="cuda")
    results = [case.check(9, cache)[:3] for _ in range(6)]
    kept = [[r.clone() for r in some] for some in results]
    for _ in range(4):
        case.check(9, cache)
    for some, copies in zip(results, kept, strict=True):
        for result, copy in zip(some, copies, strict=True):
            assert torch.equal(result, copy)


def test_a_moved_cache_and_a_moved_weight_are_right(kernels: CudaKernels) -> None:
    case = _Case(kernels, graphs=True)
    caches = [torch.zeros(64, 64, device="cuda") for _ in range(3)]
    for cache in (*caches, *caches, *caches):
        case.check(5, cache)
    case.w.data = torch.randn(64, 64, device="cuda")
    for _ in range(4):
        case.check(5, caches[0])


def test_streams_and_threads(kernels: CudaKernels) -> None:
    case = _Case(kernels, graphs=True)
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                cache = torch.zeros(64, 64, device="cuda")
                for n in (3, 3, 3, 50, 50, 50):
                    case.check(n, cache)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_a_caller_may_record_a_graph_of_its_own(kernels: CudaKernels) -> None:
    case = _Case(kernels, graphs=True)
    x, y, cache = (torch.randn(64, 64, device="cuda") for _ in range(3))
    for _ in range(3):
        case.module(x, y, cache)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out: Any = case.module(x, y, cache)[0]
    x.fill_(3)
    graph.replay()
    assert bool((out == 6).all())


def test_a_tensor_of_the_cpu_is_refused(kernels: CudaKernels) -> None:
    case = _Case(kernels, graphs=True)
    cuda = torch.zeros(64, 64, device="cuda")
    with pytest.raises(UserError, match="mixed: x is on cpu, expected cuda:0"):
        case.module(torch.zeros(64, 64), cuda, cuda)


def test_calls_that_are_not_waited_for_keep_their_own_addresses(kernels: CudaKernels) -> None:
    case = _Case(kernels, graphs=True)
    cache, y = torch.zeros(64, 64, device="cuda"), torch.randn(64, 64, device="cuda")
    inputs = [torch.randn(500, 64, device="cuda") for _ in range(100)]
    torch.cuda.synchronize()
    results: list[Any] = [case.module(x, y, cache) for x in inputs]
    for x, (out, z, *_) in zip(inputs, results, strict=True):
        torch.testing.assert_close(out, 2 * x)
        torch.testing.assert_close(z, 2 * x @ case.w)
    assert bool((cache == 100).all())


def test_caches_in_turn_have_graphs_of_their_own(kernels: CudaKernels) -> None:
    case = _Case(kernels, graphs=True)
    caches = [torch.zeros(64, 64, device="cuda") for _ in range(3)]
    for _ in range(40):
        for cache in caches:
            case.check(5, cache)
    assert len(case.session._graphs) == 3


def test_many_sizes_keep_graphs_and_memory_bounded(kernels: CudaKernels) -> None:
    case = _Case(kernels, graphs=True, limits=Limits(graphs=4))
    cache = torch.zeros(64, 64, device="cuda")
    reserved: list[int] = []
    for _ in range(12):
        for n in range(1000, 1048):
            case.check(n, cache)
        reserved.append(torch.cuda.memory_reserved())
    assert len(case.session._graphs) == 4
    assert reserved[-1] <= reserved[2] + (32 << 20)


def test_a_recording_that_fails_loses_no_call_and_other_sizes_are_recorded(
    kernels: CudaKernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = _Case(kernels, graphs=True)
    cache = torch.zeros(64, 64, device="cuda")
    case.check(6, cache)
    with monkeypatch.context() as patch:
        patch.setattr(cuda, "last_captured_node", _fail)
        with pytest.warns(UserWarning, match="mixed: a CUDA graph failed"):
            case.check(6, cache)
    for _ in range(4):
        case.check(6, cache)
        case.check(7, cache)
    assert len(case.session._graphs) == 1


def _fail(stream: int) -> None:
    raise RuntimeError("no node")


def _live_case(kernels: CudaKernels) -> tuple[CompiledModule, torch.nn.Parameter]:
    """y = x @ doubled, with doubled = 2w made by @weights."""
    derive = HostBuilder("weights", [WeightAttr.make("w", f32, [64, 64], [64, 1])], ["doubled"])
    doubled = derive.output([64, 64], [64, 1], f32)
    count = derive.constant(64 * 64)
    derive.launch(
        [derive.weight("w"), doubled],
        [Variant("twice", 256, derive.truth(True), derive.constant(16), [(count, i64)])],
    )
    main = HostBuilder("live", [InputAttr.make("x", f32, 2), WeightAttr.make("doubled", f32, [64, 64], [64, 1])])
    y = main.output([main.size("x", 0), 64], [64, 1], f32)
    main.library_into(y, "matmul", [main.argument("x"), main.weight("doubled")], {})
    w = torch.nn.Parameter(torch.randn(64, 64, device="cuda"))
    programs = program_to_json(main.finish([y])), program_to_json(derive.finish([doubled]))
    return CompiledModule(
        programs[0], kernels, torch.device("cuda"), {"w": w}, weights_program=programs[1], mode="live"
    ), w


def test_live_weights_are_derived_in_the_replay_and_may_move(kernels: CudaKernels) -> None:
    module, w = _live_case(kernels)
    for n in range(9):
        with torch.no_grad():
            if n % 3 == 2:
                w.data = torch.randn(64, 64, device="cuda")
            else:
                w.add_(1)
        x = torch.randn(10, 64, device="cuda")
        torch.testing.assert_close(module(x)[0], (x @ (2 * w)).detach())
    (session,) = module._sessions.values()  # pyright: ignore
    assert len(session._graphs) == 1  # pyright: ignore


def test_a_thread_that_has_not_used_the_gpu_may_call(kernels: CudaKernels) -> None:
    module, w = _live_case(kernels)
    x = torch.randn(10, 64, device="cuda")
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(module(x)[0]))
    thread.start()
    thread.join()
    torch.testing.assert_close(results[0], (x @ (2 * w)).detach())
