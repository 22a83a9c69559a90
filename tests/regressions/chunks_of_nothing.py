"""A dim of size 0 has all the chunks that are asked for."""

import torch.nn.functional as F

from dlcb.tests.programs.program import Given

INPUTS = {
    "x0": Given(dims=("2*a",), dtype="float32", layout="contiguous"),
    "x1": Given(dims=("b", "a"), dtype="float32", layout="stepped"),
}
CALLS = [
    {"a": 3, "b": 4},
    {"a": 0, "b": 0},
    {"a": 5, "b": 7},
]


def program(x0, x1):
    v0 = x0.chunk(3, 0)[-1]
    v1 = F.softmax(x1, 1).chunk(2, 0)[-1]
    return (v0, v1)
