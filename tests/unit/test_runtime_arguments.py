"""What the reader of a caller's arguments lets through."""

from __future__ import annotations

import pytest
import torch

from dlcb.dialects.host.attributes import InputAttr
from dlcb.dialects.host.builder import HostBuilder
from dlcb.dialects.types import f32
from dlcb.errors import UserError
from dlcb.lowering.host_to_json import program_to_json
from dlcb.runtime.arguments import CallerArguments
from dlcb.runtime.rows import check_program


class OnGpu(torch.Tensor):
    """A tensor that says that it is on a GPU."""

    gpu = 0

    def get_device(self) -> int:
        return self.gpu


def reader(device: str) -> CallerArguments:
    b = HostBuilder("main", [InputAttr.make("x", f32, 1, False)])
    program = b.finish([b.argument("x")])
    return CallerArguments(check_program(program_to_json(program)), torch.device(device))


def on_gpu(index: int) -> torch.Tensor:
    x = torch.zeros(3).as_subclass(OnGpu)
    x.gpu = index
    return x


def test_a_gpu_is_told_by_its_index() -> None:
    key, (address,) = reader("cuda:1").read([x := on_gpu(1)])
    assert key == (0, (3,), True)
    assert address == x.data_ptr()


@pytest.mark.parametrize("x", [on_gpu(0), on_gpu(-1), torch.zeros(3), torch.zeros(3, device="meta")])
def test_another_device_is_named(x: torch.Tensor) -> None:
    with pytest.raises(UserError, match=r"x is on (cpu|meta), expected cuda:1"):
        reader("cuda:1").read([x])


def test_an_argument_on_the_cpu_is_on_the_cpu() -> None:
    assert reader("cpu").read([torch.zeros(3)])[0] == (0, (3,), True)
    with pytest.raises(UserError, match="x is on meta, expected cpu"):
        reader("cpu").read([torch.zeros(3, device="meta")])
