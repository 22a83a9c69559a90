"""What all tests share: the profile of hypothesis, the mark `gpu`, and how kernels of the cpu target are run."""

import ctypes
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

os.environ.setdefault("DLCB_CPU_OPTIMIZATION", "0")  # the tests' time is mostly that of the C++ compiler
if "PYTEST_XDIST_WORKER" in os.environ:
    # A thread of torch's that waits for work spins: with two workers on two cores they slow each other down tenfold.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
settings.register_profile("dlcb", deadline=None, derandomize=True, database=None)
settings.load_profile("dlcb")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if not on_gpu:
        return
    import torch

    if not torch.cuda.is_available():
        for item in on_gpu:
            item.add_marker(pytest.mark.skip(reason="no GPU"))


@pytest.fixture(scope="session")
def launch_cpu() -> Callable[..., None]:
    """Runs a kernel of a shared object of the cpu target; arguments are tensors or ctypes numbers."""

    def launch(library: Path, name: str, arguments: Sequence[Any], blocks: int, order_seed: int = 0) -> None:
        cells: list[Any] = [ctypes.c_void_p(a.data_ptr()) if hasattr(a, "data_ptr") else a for a in arguments]
        addresses = (ctypes.c_void_p * len(cells))(*map(ctypes.addressof, cells))
        kernel = getattr(ctypes.CDLL(str(library)), f"launch_{name}")
        kernel.argtypes = (ctypes.c_void_p, ctypes.c_longlong, ctypes.c_int)
        kernel.restype = None
        kernel(addresses, blocks, order_seed)

    return launch
