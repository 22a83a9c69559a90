"""DLCB: a deep-learning compiler for PyTorch; one compile serves every shape.

```python
import dlcb
m = dlcb.compile(model, (x,))        # every size that can be free is free
m(x2); print(m.explain()); m.save("encoder.dlcb"); m = dlcb.load("encoder.dlcb")
torch.compile(model, backend="dlcb")(x); print(dlcb.explain())
```
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    import torch

    from dlcb.errors import DlcbError, InternalError, UnsupportedError, UserError
    from dlcb.frontend.api import compile, cuda_text
    from dlcb.frontend.dynamo import explain
    from dlcb.frontend.package import package
    from dlcb.runtime.compiled import CompiledModel

__all__ = [
    "CompiledModel",
    "DlcbError",
    "InternalError",
    "UnsupportedError",
    "UserError",
    "compile",
    "cuda_text",
    "explain",
    "load",
    "package",
]

_HOMES = {
    "CompiledModel": "dlcb.runtime.compiled",
    "DlcbError": "dlcb.errors",
    "InternalError": "dlcb.errors",
    "UnsupportedError": "dlcb.errors",
    "UserError": "dlcb.errors",
    "compile": "dlcb.frontend.api",
    "cuda_text": "dlcb.frontend.api",
    "explain": "dlcb.frontend.dynamo",
    "package": "dlcb.frontend.package",
}


def load(path: str | Path, *, device: str | torch.device | None = None, graphs: bool = True) -> CompiledModel:
    """Read a `.dlcb` file; a damaged or foreign one is a `UserError`. Nothing in it is executed on the host but its
    checked host program."""
    loading = importlib.import_module("dlcb.runtime.loading")
    return loading.load(path, _compile_cpu, device=device, graphs=graphs)


def _compile_cpu(ir: str, name: str) -> Path:
    return importlib.import_module("dlcb.lowering.ir_to_cpu").compile_ir(ir, name)


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'dlcb' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)
