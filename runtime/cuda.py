"""Kernels of the CUDA target: a cubin, loaded and launched through the driver API in torch's own context."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

import torch

from dlcb.cubins import parts
from dlcb.errors import InternalError, UserError
from dlcb.runtime.plan import Launch


def _load_driver() -> Any:
    """The bindings of the driver API; the first 12.x packages have them under another name."""
    try:
        return import_module("cuda.bindings.driver")
    except ImportError:
        return import_module("cuda.cuda")


driver: Any = _load_driver()
_SUCCESS = driver.CUresult.CUDA_SUCCESS
MIN_DRIVER = 12000
MIN_CAPABILITY = (7, 0)
_ARCH = re.compile(r"sm_(\d+)(\d)")


def checked(answer: tuple[Any, ...]) -> Any:
    """What a driver call returns beside its status; an InternalError for any status but success."""
    status, *values = answer
    if status != _SUCCESS:
        raise InternalError(f"CUDA driver: {_error_text(status)}")
    return values[0] if len(values) == 1 else tuple(values)


def _error_text(status: Any) -> str:
    error, text = driver.cuGetErrorString(status)
    name = getattr(status, "name", str(status))
    return f"{name}: {text.decode()}" if error == _SUCCESS and text else name


def arch_of(device: torch.device) -> str:
    """`sm_90` of a device that DLCB can use; a UserError for one that is too old."""
    require_driver()
    capability = torch.cuda.get_device_capability(device)
    if capability < MIN_CAPABILITY:
        name = torch.cuda.get_device_name(device)
        least = ".".join(map(str, MIN_CAPABILITY))
        found = ".".join(map(str, capability))
        raise UserError(f"{name} has compute capability {found}, DLCB needs {least} or later")
    return f"sm_{capability[0]}{capability[1]}"


def require_driver() -> None:
    if not torch.cuda.is_available():
        raise UserError("target cuda: torch sees no GPU here; use target='cpu', or check the driver with nvidia-smi")
    version = checked(driver.cuDriverGetVersion())
    if version < MIN_DRIVER:
        found = f"{version // 1000}.{version % 1000 // 10}"
        raise UserError(f"the NVIDIA driver supports CUDA {found}, DLCB needs 12.0 or later: update the driver")


def choose_cubin(cubins: Mapping[str, bytes], arch: str) -> bytes:
    """The binary that runs on the architecture: of the same major version, the latest that is not newer."""
    major, minor = _version(arch)
    fitting = [a for a in cubins if _version(a)[0] == major and _version(a)[1] <= minor]
    if not fitting:
        have = ", ".join(sorted(cubins)) or "none"
        raise UserError(f"no kernels for this GPU ({arch}); the module was compiled for: {have}. Compile it for {arch}")
    return cubins[max(fitting, key=_version)]


def _version(arch: str) -> tuple[int, int]:
    match = _ARCH.fullmatch(arch)
    if match is None:
        raise UserError(f"not a GPU architecture: {arch!r}; expected a name like sm_90")
    return int(match[1]), int(match[2])


def device_index(device: torch.device) -> int:
    """The device's number; torch's current device where it names none."""
    named = str(device).partition(":")[2]
    return int(named) if named else torch.cuda.current_device()


class CudaKernels:
    """The kernels of a binary (`dlcb.cubins`) on one device. They stay loaded as long as this object lives."""

    def __init__(self, binary: bytes, device: torch.device) -> None:
        require_driver()
        torch.cuda.init()
        ordinal = device_index(device)
        self._context = checked(driver.cuDevicePrimaryCtxRetain(checked(driver.cuDeviceGet(ordinal))))
        self._functions: dict[str, Any] = {}
        self.activate()
        self._modules = [_loaded(cubin, device) for cubin in parts(binary)]

    def function(self, name: str) -> Any:
        known = self._functions.get(name)
        if known is None:
            known = self._functions[name] = self._found(name)
        return known

    def _found(self, name: str) -> Any:
        for module in self._modules:
            status, function = driver.cuModuleGetFunction(module, name.encode())
            if status != driver.CUresult.CUDA_ERROR_NOT_FOUND:
                return checked((status, function))
        raise UserError(f"the compiled module has no kernel {name!r}")

    def activate(self) -> None:
        checked(driver.cuCtxSetCurrent(self._context))

    def launcher(self, function: Any, step: Launch, pointers: int, stream: int) -> Callable[[], None]:
        grid, block = (step.blocks, 1, 1), (step.threads, 1, 1)
        start = partial(driver.cuLaunchKernel, function, *grid, *block, 0, stream, pointers, 0)

        def launch() -> None:
            (status,) = start()
            if status != _SUCCESS:
                raise InternalError(
                    f"launch of {step.kernel}, {step.blocks} blocks of {step.threads} threads: {_error_text(status)}"
                )

        return launch


def _loaded(cubin: bytes, device: torch.device) -> Any:
    """The driver's module of a cubin."""
    status, module = driver.cuModuleLoadData(cubin)
    if status == driver.CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU:
        raise UserError(f"the kernels were compiled for another GPU than this {arch_of(device)}")
    return checked((status, module))


def last_captured_node(stream: int) -> Any:
    """The graph node that was recorded last on a stream under capture."""
    answer = checked(driver.cuStreamGetCaptureInfo(stream))
    dependencies = answer[3]
    if not dependencies or len(dependencies) != 1:
        raise InternalError(f"capture: expected one last node, found {len(dependencies or ())}")
    return dependencies[0]


def new_stream() -> Any:
    """A stream of the current device that is nobody else's; torch's come from a pool, whose streams others use too."""
    return checked(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))


def destroy_stream(stream: Any) -> None:
    """At the end of a process the driver may be gone already; then there is nothing left to free."""
    driver.cuStreamDestroy(stream)


def event_on_stream(stream: int) -> Any:
    """What a stream has so far, for others to wait for."""
    event = checked(driver.cuEventCreate(driver.CUevent_flags.CU_EVENT_DISABLE_TIMING))
    checked(driver.cuEventRecord(event, stream))
    return event


def wait_for_event(stream: int, event: Any) -> None:
    checked(driver.cuStreamWaitEvent(stream, event, 0))


def destroy_event(event: Any) -> None:
    driver.cuEventDestroy(event)


def kernel_update(executable: Any, node: Any, function: Any, step: Launch, pointers: int) -> Callable[[], None]:
    """Gives a kernel node of an instantiated graph the arguments that are at `pointers` when it is called; replays that
    were started already keep theirs."""
    parameters = driver.CUDA_KERNEL_NODE_PARAMS()
    parameters.func = function
    parameters.gridDimX, parameters.gridDimY, parameters.gridDimZ = step.blocks, 1, 1
    parameters.blockDimX, parameters.blockDimY, parameters.blockDimZ = step.threads, 1, 1
    parameters.sharedMemBytes = 0
    parameters.kernelParams = pointers
    setter = partial(driver.cuGraphExecKernelNodeSetParams, executable, node, parameters)

    def update() -> None:
        (status,) = setter()
        if status != _SUCCESS:
            raise InternalError(f"update of the node of {step.kernel}: {_error_text(status)}")

    return update


def copy_on_stream(target: int, source: int, count: int, stream: int) -> None:
    checked(driver.cuMemcpyDtoDAsync(target, source, count, stream))


def copy_update(executable: Any, node: Any, count: int) -> Callable[[int, int], None]:
    """Gives a copy node of an instantiated graph, of `count` bytes, another target and source."""
    parameters = driver.CUDA_MEMCPY3D()
    parameters.srcMemoryType = parameters.dstMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
    parameters.WidthInBytes, parameters.Height, parameters.Depth = count, 1, 1
    context = checked(driver.cuCtxGetCurrent())

    def update(target: int, source: int) -> None:
        parameters.dstDevice, parameters.srcDevice = target, source
        (status,) = driver.cuGraphExecMemcpyNodeSetParams(executable, node, parameters, context)
        if status != _SUCCESS:
            raise InternalError(f"update of a copy node: {_error_text(status)}")

    return update


def record(stream: int, body: Callable[[int], None]) -> Any:
    """The graph of what `body` puts on the stream. Other threads may go on using the device meanwhile."""
    checked(driver.cuStreamBeginCapture(stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))
    try:
        body(stream)
    except BaseException:
        driver.cuStreamEndCapture(stream)
        raise
    return checked(driver.cuStreamEndCapture(stream))


def instantiate(graph: Any) -> Any:
    return checked(driver.cuGraphInstantiate(graph, 0))


def launch_graph(executable: Any, stream: int) -> None:
    (status,) = driver.cuGraphLaunch(executable, stream)
    if status != driver.CUresult.CUDA_SUCCESS:
        raise InternalError(f"replay of a graph: {_error_text(status)}")


def destroy_graph(graph: Any, executable: Any | None) -> None:
    """At the end of a process the driver may be gone already; then there is nothing left to free."""
    if executable is not None:
        driver.cuGraphExecDestroy(executable)
    driver.cuGraphDestroy(graph)
