"""Elementwise operations on PyTorch's own samples: broadcasting, rank 0, empty tensors, numbers, every keyword."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from dlcb.errors import UnsupportedError
from dlcb.evaluator.graph import run
from dlcb.frontend import torch_private as private
from dlcb.frontend.capture import capture
from dlcb.frontend.importer import import_captured
from dlcb.tests.edges import difference
from dlcb.tests.graphs import Batch, main_of, to_array

pytest.importorskip("expecttest", reason="torch's samples need it")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db

NAMES = """
add sub rsub mul div true_divide floor_divide remainder fmod pow float_power __radd__ __rsub__ __rmul__ __rdiv__
__rmod__ __rpow__ __rand__ __ror__ __rxor__ neg abs sign sgn signbit copysign square reciprocal positive frac round
floor ceil trunc atan2 hypot logaddexp xlogy heaviside addcmul addcdiv maximum minimum clamp clamp_min clamp_max where
masked_fill nan_to_num isnan isinf isfinite isposinf isneginf eq ne lt le gt ge bitwise_and bitwise_or bitwise_xor
bitwise_not bitwise_left_shift bitwise_right_shift logical_and logical_or logical_xor logical_not exp2 log1p asinh acosh
atanh erfc logit sinc to bool byte char short int long half bfloat16 nn.functional.hardshrink nn.functional.softshrink
nn.functional.softplus nn.functional.threshold nn.functional.celu nn.functional.elu nn.functional.prelu
nn.functional.leaky_relu nn.functional.hardtanh nn.functional.relu6 nn.functional.glu nn.functional.logsigmoid
""".split()
DTYPES = (torch.bool, torch.uint8, torch.int64, torch.float32)
SAMPLES = 2
"""As many samples of an operation as differ in ranks, dtypes or numbers."""
INFOS = [info for info in op_db if info.name in NAMES]

Case = tuple[Callable[..., Any], tuple[Tensor, ...], Tensor, Tensor]


def in_float64(operand: Any) -> Any:
    return operand.double() if isinstance(operand, Tensor) and operand.is_floating_point() else operand


def cases(info: Any, dtype: torch.dtype) -> Iterator[Case]:
    """Programs of the sample's tensors, their arguments, eager's results and those in float64."""
    seen: set[Any] = set()
    torch.manual_seed(3)
    for sample in info.sample_inputs("cpu", dtype):
        leaves, spec = private.flatten(((sample.input, *sample.args), sample.kwargs))
        key = tuple((x.dim(), x.dtype, x.numel() == 0) if isinstance(x, Tensor) else (type(x), x) for x in leaves)
        if key in seen or len(seen) == SAMPLES:
            continue
        seen.add(key)

        def program(*tensors: Tensor, leaves: Any = leaves, spec: Any = spec) -> Any:
            given = iter(tensors)
            args, kwargs = private.unflatten([next(given) if isinstance(x, Tensor) else x for x in leaves], spec)
            return info.op(*args, **kwargs)

        tensors = tuple(x.detach() for x in leaves if isinstance(x, Tensor))
        try:
            eager = program(*(t.clone() for t in tensors))
        except (RuntimeError, TypeError):
            continue
        yield program, tensors, eager, program(*map(in_float64, tensors))


def evaluated(program: Callable[..., Any], tensors: tuple[Tensor, ...]) -> Tensor:
    func = main_of(import_captured(capture(program, tensors)).module)
    (result,) = run(func, [to_array(t) for t in tensors])
    return torch.from_numpy(result.copy())


@pytest.mark.parametrize("info", INFOS, ids=lambda info: f"{info.full_name}-{info.variant_test_name}")
def test_the_evaluator_computes_what_eager_does(info: Any) -> None:
    compared = refused = 0
    for dtype in (d for d in DTYPES if d in info.dtypes):
        for program, tensors, eager, exact in cases(info, dtype):
            try:
                result = evaluated(program, tensors)
            except UnsupportedError:
                refused += 1
                continue
            found = difference(result.to(eager.dtype), eager, exact, signs=False)
            assert found is None, f"{dtype} {[tuple(t.shape) for t in tensors]}: {found}"
            compared += 1
    assert compared > refused


@pytest.mark.parametrize("dtype", [torch.int16, torch.bfloat16])
def test_kernels_compute_what_eager_does(dtype: torch.dtype) -> None:
    batch, made = Batch(), list[tuple[str, int, Case]]()
    for info in INFOS[::7]:
        for case in cases(info, dtype) if dtype in info.dtypes else ():
            number = batch.add(import_captured(capture(case[0], case[1])).module)
            batch.rehearse(number, [case[1]])
            made.append((info.full_name, number, case))
    assert len(made) > 10
    for name, number, (_, tensors, eager, exact) in made:
        (result,) = batch.module(number)(*tensors)
        assert isinstance(result, Tensor)
        found = difference(result, eager, exact, signs=False)
        assert found is None, f"{name} {[tuple(t.shape) for t in tensors]}: {found}"
