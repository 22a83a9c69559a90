"""Whatever these tests compile for the CPU must also be a program for a GPU."""

from collections.abc import Iterator

import pytest

from dlcb.lowering.text_to_cubin import compile_cubin
from dlcb.tests.end_to_end.agreement import KERNELS


@pytest.fixture
def as_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where `transformers` sees elements, it looks whether a mask is all ones, and needs none then. What is compiled is
    the way that it goes else."""
    monkeypatch.setattr("transformers.masking_utils.is_tracing", lambda *_: True)


@pytest.fixture(scope="session", autouse=True)
def _every_kernel_compiles_to_a_cubin() -> Iterator[None]:
    yield
    for text, program in KERNELS.items():
        assert compile_cubin(text, "sm_90").data, program
