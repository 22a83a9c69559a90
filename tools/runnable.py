"""What `dlcb-run` can run: a program from a file, with its signature, what runs it, and what it is compared with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, cast

import torch
from torch import Tensor

from dlcb.errors import UserError
from dlcb.runtime.call import StepObserver
from dlcb.tools.signature import Given, Signature

Results = list[tuple[str, Any]]
"""Leaves of the results by their names."""


class Runnable(ABC):
    """A program that takes the inputs of its signature by name."""

    signature: Signature
    device: torch.device
    target: str

    @abstractmethod
    def call(self, inputs: Mapping[str, Given]) -> Results: ...

    @abstractmethod
    def eager(self, inputs: Mapping[str, Given]) -> Results:
        """What the results are compared with, in the program's own dtypes."""

    @abstractmethod
    def exact(self, inputs: Mapping[str, Given]) -> Results:
        """What that is measured against: the same in float64."""

    def observed(self, observer: StepObserver) -> AbstractContextManager[Any]:
        """While it lasts, the observer sees each kernel and library call."""
        raise UserError(f"--profile: the target {self.target} has no kernels; use --target cpu or cuda")

    def synchronize(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def placed(inputs: Mapping[str, Given], device: torch.device) -> dict[str, Given]:
    """Copies on the device; the program may update its own."""
    return {n: v.to(device, copy=True) if isinstance(v, Tensor) else v for n, v in inputs.items()}


def widened(inputs: Mapping[str, Given]) -> dict[str, Given]:
    """Copies on the CPU, floats in float64."""
    return {
        n: v.to("cpu", torch.float64 if v.is_floating_point() else v.dtype, copy=True) if isinstance(v, Tensor) else v
        for n, v in inputs.items()
    }


def updated_inputs(signature: Signature, given: Mapping[str, Given]) -> Results:
    """What a call left in the inputs that the program writes."""
    return [(f"{p.name} (updated)", given[p.name]) for p in signature.parameters if p.updated]


def leaves(value: Any, name: str = "result") -> Iterator[tuple[str, Any]]:
    """The leaves of nested results, named by the way to them: `result.logits`, `result[1]`."""
    if isinstance(value, Mapping):
        for key, item in cast("Mapping[Any, Any]", value).items():
            yield from leaves(item, f"{name}.{key}")
    elif isinstance(value, (tuple, list)):
        for number, item in enumerate(cast("Sequence[Any]", value)):
            yield from leaves(item, f"{name}[{number}]")
    else:
        fields = getattr(cast(Any, type(value)), "__dataclass_fields__", None)
        if fields is None:
            yield name, value
        else:
            yield from leaves({f: getattr(value, f) for f in fields}, name)
