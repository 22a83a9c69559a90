"""Whatever these tests compile for the CPU must also be a program for a GPU."""

from collections.abc import Iterator

import pytest

from dlcb.lowering.text_to_cubin import compile_cubin
from dlcb.tests.end_to_end.agreement import KERNELS


@pytest.fixture(scope="session", autouse=True)
def _every_kernel_compiles_to_a_cubin() -> Iterator[None]:
    yield
    for text, program in KERNELS.items():
        assert compile_cubin(text, "sm_90").data, program
