"""Operations in place, and writes through views."""

from __future__ import annotations

import torch

from dlcb.tests.programs.table import Draft, has_dims, weight

IN_PLACE = "add_(1) mul_(2) neg_() relu_() zero_() clamp_(-1,1) fill_(2) sub_(0.5) sigmoid_() abs_()".split()


@weight(5)
def in_place(d: Draft) -> str:
    return f"{d.tensor()}.{d.random.choice(IN_PLACE)}"


@weight(4)
def write_to_view(d: Draft) -> str:
    x = d.tensor(has_dims)
    place = d.random.choice(["1:", "0", "::2", ":-1", "..., 0", "-1", "..., 1:", f"{x} > 0"])
    return d.random.choice([f"{x}[{place}] = 1", f"{x}[{place}] *= 2", f"{x}[{place}] += 1"])


@weight(3)
def copy_into(d: Draft) -> str:
    x = d.tensor()
    y = d.like(x)
    return d.random.choice(
        [f"{x}.copy_({y})", f"{x}.add_({y})", f"{x}[:1] = {y}[-1:]", f"{x}.transpose(0, -1).mul_(2)"]
    )


@weight(2)
def write_by_index(d: Draft) -> str:
    x = d.tensor(has_dims)
    i = f"{d.new([1], torch.int64)} % {x}.shape[0]"
    return d.random.choice(
        [
            f"{x}.index_copy_(0, {i}, {x}[:1].clone())",
            f"{x}.index_fill_(0, {i}, 1)",
            f"{x}.index_add_(0, {i}, {x}[-1:].clone())",
        ]
    )
