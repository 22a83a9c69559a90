"""The library table against torch, as views, with `out`, and in the asked order of dimensions."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from dlcb.runtime.library import LIBRARY, in_order


def _run(name: str, operands: list[Tensor], out: Tensor | None = None, **options: Any) -> Tensor:
    return LIBRARY[name].run(operands, options, out)


@pytest.mark.parametrize("stack", [(), (3,), (0,)])
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("with_out", [False, True])
def test_matmul(stack: tuple[int, ...], with_bias: bool, with_out: bool) -> None:
    a, b = torch.randn(*stack, 4, 5), torch.randn(*stack, 6, 5).mT
    bias = torch.randn(6)
    out = torch.empty(*stack, 6, 4).mT if with_out else None
    result = _run("matmul", [a, b, bias] if with_bias else [a, b], out)
    torch.testing.assert_close(result, a @ b + bias if with_bias else a @ b)
    if out is not None:
        assert result.data_ptr() == out.data_ptr()


@pytest.mark.parametrize("with_out", [False, True])
def test_matmul_relu(with_out: bool) -> None:
    a, b, bias = torch.randn(4, 5), torch.randn(6, 5).mT, torch.randn(6)
    out = torch.empty(4, 6) if with_out else None
    result = _run("matmul_relu", [a, b, bias], out)
    torch.testing.assert_close(result, torch.relu(a @ b + bias))
    assert out is None or result.data_ptr() == out.data_ptr()


DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.mark.parametrize("device", DEVICES)
def test_a_relu_that_is_taken_along_keeps_nan(device: str) -> None:
    a, b, bias = torch.randn(16, 8), torch.randn(8, 24), torch.randn(24)
    a[3, 2] = float("nan")
    operands = [operand.to(device, torch.float16) for operand in (a, b, bias)]
    assert _run("matmul_relu", operands).isnan().any(1).nonzero().flatten().tolist() == [3]


@pytest.mark.parametrize("device", DEVICES)
def test_a_relu_of_a_convolution_keeps_nan(device: str) -> None:
    x, w, bias = torch.randn(2, 8, 6, 6), torch.randn(16, 8, 1, 1), torch.randn(16)
    x[1, 4, 2, 5] = float("nan")
    last = torch.channels_last
    operands = [t.to(device, torch.float16) for t in (x.to(memory_format=last), w.to(memory_format=last), bias)]
    found = _run("convolution_relu", operands, stride=[1, 1], padding=[0, 0], dilation=[1, 1], groups=1)
    assert found.isnan().all(1).nonzero().tolist() == [[1, 2, 5]]
    assert found.isnan().sum() == 16


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["run", "quick"])
def test_attention_of_nothing_is_0_and_of_nan_is_nan(name: str, device: str) -> None:
    q, k, v = (torch.randn(2, 3, 70, 16).to(device, torch.float16) for _ in range(3))
    mask = torch.zeros(2, 1, 70, 70, device=device, dtype=torch.float16)
    mask[0, 0, 5] = float("-inf")
    mask[1, 0, 6] = float("nan")
    function = getattr(LIBRARY["attention"], name)
    found = function([q, k, v, mask], {"scale": 0.25}, None)
    assert not found[0, :, 5].any()
    assert found.isnan().all(-1).nonzero().tolist() == [[1, head, 6] for head in range(3)]


@pytest.mark.parametrize("order", [None, [0, 1, 2, 3], [0, 2, 3, 1]])
def test_convolution_lies_in_the_asked_order(order: list[int] | None) -> None:
    x, w, bias = torch.randn(2, 4, 9, 9), torch.randn(6, 2, 3, 3), torch.randn(6)
    options = {"stride": [2, 2], "padding": [1, 1], "groups": 2, **({"order": order} if order else {})}
    result = _run("convolution", [x, w, bias], **options)
    torch.testing.assert_close(result, torch.nn.functional.conv2d(x, w, bias, 2, 1, 1, 2))
    assert result.permute(order or [0, 1, 2, 3]).is_contiguous()


def test_transposed_convolution() -> None:
    x, w = torch.randn(2, 4, 5), torch.randn(4, 3, 3)
    result = _run("convolution", [x, w], stride=[2], transposed=True, output_padding=[1])
    torch.testing.assert_close(result, torch.nn.functional.conv_transpose1d(x, w, stride=2, output_padding=1))


@pytest.mark.parametrize("masked", [False, True])
def test_attention(masked: bool) -> None:
    q, k, v = (torch.randn(2, 3, 7, 8) for _ in range(3))
    mask = torch.randn(2, 1, 7, 7)
    result = _run(
        "attention", [q, k, v, mask] if masked else [q, k, v], scale=0.5, causal=not masked, order=[0, 2, 1, 3]
    )
    expected = torch.nn.functional.scaled_dot_product_attention(
        q, k, v, mask if masked else None, is_causal=not masked, scale=0.5
    )
    torch.testing.assert_close(result, expected)
    assert result.transpose(1, 2).is_contiguous()


def test_attention_with_heads_that_serve_several() -> None:
    q, k, v = torch.randn(2, 4, 3, 8), torch.randn(2, 2, 5, 8), torch.randn(2, 2, 5, 8)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    torch.testing.assert_close(_run("attention", [q, k, v]), expected)


def test_copy_gathers_a_view() -> None:
    x = torch.randn(3, 4).T
    out = torch.empty(4, 3)
    assert _run("copy", [x], out) is out
    assert torch.equal(out, x)
    assert _run("copy", [x]).is_contiguous()


def test_a_tensor_that_lies_right_is_not_copied() -> None:
    x = torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    assert in_order(x, [0, 2, 3, 1]) is x
