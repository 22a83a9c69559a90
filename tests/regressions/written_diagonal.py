"""Writing through a diagonal, and through an expand that expands nothing."""

from dlcb.tests.programs.program import Given

INPUTS = {
    "x0": Given(dims=("a", "b"), dtype="float32", layout="contiguous"),
}
CALLS = [
    {"a": 3, "b": 4},
    {"a": 8, "b": 5},
    {"a": 1, "b": 7},
]


def program(x0):
    v0 = x0.expand(x0.shape[0], -1)
    v0.add_(1)
    v1 = v0.diagonal(1)
    v1.mul_(2)
    v2 = v1.abs_()
    return (v2, x0)
