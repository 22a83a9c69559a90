"""What the runtime asks of a target's compiled kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from dlcb.runtime.plan import Launch


class Kernels(Protocol):
    """Loaded kernels of one module on one device."""

    def function(self, name: str) -> Any:
        """The handle that `launch` takes; a UserError if there is no such kernel."""
        ...

    def activate(self) -> None:
        """Make the device current for launches of this thread."""
        ...

    def launcher(self, function: Any, step: Launch, pointers: int, stream: int) -> Callable[[], None]:
        """Launches on a stream whenever it is called; `pointers` is the address of an array of addresses of the
        arguments' values, read at the launch."""
        ...
