"""The device that a module runs on, as its calls ask about it: the calling thread's stream, and whether launches go
there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import torch

from dlcb.runtime.torch_private import raw_stream


class Place(Protocol):
    def is_current(self) -> bool:
        """Whether launches and allocations of this thread go to the device."""
        ...

    def entered(self) -> AbstractContextManager[Any]:
        """A context in which they do."""
        ...

    def stream(self) -> int:
        """The handle of the thread's current stream on the device."""
        ...

    def synchronize(self) -> None: ...


class CpuPlace:
    def is_current(self) -> bool:
        return True

    def entered(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def stream(self) -> int:
        return 0

    def synchronize(self) -> None:
        pass


class CudaPlace:
    """`activate` makes the device's context current for the driver API; a thread needs it once, afterwards torch's
    choice of a device does it."""

    def __init__(self, device: torch.device, activate: Callable[[], None]) -> None:
        self._device = device
        self._index: int = device.index
        self._activate = activate
        self._thread = threading.local()

    def is_current(self) -> bool:
        return torch.cuda.current_device() == self._index and getattr(self._thread, "active", False)

    def entered(self) -> AbstractContextManager[Any]:
        self._activate()
        self._thread.active = True
        return torch.cuda.device(self._device)

    def stream(self) -> int:
        return raw_stream(self._index)

    def synchronize(self) -> None:
        torch.cuda.synchronize(self._device)
