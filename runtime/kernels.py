"""What the runtime asks of a target's compiled kernels."""

from __future__ import annotations

from typing import Any, Protocol


class Kernels(Protocol):
    """Loaded kernels of one module on one device."""

    def function(self, name: str) -> Any:
        """The handle that `launch` takes; a UserError if there is no such kernel."""
        ...

    def activate(self) -> None:
        """Make the device current for launches of this thread."""
        ...

    def launch(self, function: Any, blocks: int, threads: int, pointers: int, stream: int) -> None:
        """Launch on a stream; `pointers` is the address of an array of addresses of the arguments' values, read at
        once."""
        ...
