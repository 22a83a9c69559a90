"""A dim that squeeze drops has size 1 in the example."""

import torch

from dlcb.tests.programs.program import Given

INPUTS = {
    "x0": Given(dims=("1", "d", "a"), dtype="float32", layout="contiguous"),
}
CALLS = [
    {"a": 3, "d": 6},
    {"a": 1, "d": 0},
]


def program(x0):
    v0 = x0.squeeze(0)
    v1 = torch.squeeze(x0, dim=(0, 2))
    return (v0, v1 * 2)
