"""A result that reshapes an argument which is written, beside an operation in eager."""

import torch

from dlcb.tests.programs.program import Given

INPUTS = {
    "x0": Given(dims=("a", "b"), dtype="float32", layout="contiguous"),
    "x1": Given(dims=("c",), dtype="float32", layout="contiguous"),
}
CALLS = [
    {"a": 3, "b": 4, "c": 5},
    {"a": 1, "b": 9, "c": 1},
    {"a": 6, "b": 0, "c": 2},
]


def program(x0, x1):
    x0[-1] += 1
    v0 = torch.sort(x1, dim=0, stable=True)[0]
    v1 = x0.reshape(-1, x0.shape[1])
    return (v0, v1, x0.flatten())
