"""Views, and what joins, splits and makes tensors."""

from __future__ import annotations

from dlcb.tests.programs.table import Draft, axis_of, has_dims, integer, is_number, weight

# --- views ---


@weight(3)
def transpose(d: Draft) -> str:
    x = d.tensor(has_dims)
    return f"{x}.transpose({axis_of(d, x)}, {axis_of(d, x)})"


@weight(3)
def permute(d: Draft) -> str:
    x = d.tensor(has_dims)
    order = list(range(d.values[x].dim()))
    d.random.shuffle(order)
    return f"{x}.permute({', '.join(map(str, order))})"


@weight(3)
def flatten(d: Draft) -> str:
    x = d.tensor(lambda t: t.dim() > 1)
    first = d.random.randrange(d.values[x].dim() - 1)
    last = d.random.randrange(first + 1, d.values[x].dim())
    return f"{x}.flatten({first}, {last})"


@weight(4)
def reshape(d: Draft) -> str:
    x = d.tensor(has_dims)
    how = d.random.choice(["view", "reshape", "reshape"])
    sizes = [f"{x}.shape[{axis}]" for axis in range(d.values[x].dim())]
    at = d.random.randrange(len(sizes))
    forms = [["-1"], ["-1", sizes[-1]], [sizes[0], "-1"], [*sizes[:at], "1", *sizes[at:]]]
    forms += [["2", "-1"], [*sizes[:at], "-1", "2", *sizes[at + 1 :]]]
    if len(sizes) > 1:
        forms.append([f"{sizes[0]} * {sizes[1]}", *sizes[2:]])
        forms.append([*reversed(sizes)])
    return f"{x}.{how}({', '.join(d.random.choice(forms))})"


@weight(2)
def unsqueeze(d: Draft) -> str:
    x = d.tensor(lambda t: t.dim() < 5)
    return f"{x}.unsqueeze({d.random.randint(-1, d.values[x].dim())})"


@weight(2)
def squeeze(d: Draft) -> str:
    x = d.tensor(lambda t: 1 in t.shape)
    return f"{x}.squeeze({list(d.values[x].shape).index(1)})"


@weight(2)
def expand(d: Draft) -> str:
    x = d.tensor(lambda t: t.dim() < 4)
    shape = d.values[x].shape
    extra = integer(d) or d.random.choice(["1", "2", "3"])
    kept = [
        d.random.choice(["3", "2"]) if n == 1 else d.random.choice(["-1", f"{x}.shape[{i}]"])
        for i, n in enumerate(shape)
    ]
    return f"{x}.expand({', '.join(d.random.choice([kept, [extra, *kept]]) or ['2'])})"


@weight(6)
def slice_(d: Draft) -> str:
    x = d.tensor(has_dims)
    k = integer(d) or "2"
    forms = ["1:", ":-1", ":2", "::2", "1::2", "-2:", "1:-1", "::3", f":{k}", f"{k}:", ":", "0:100", "None, 1:"]
    parts = [":"] * d.random.randrange(d.values[x].dim()) + [d.random.choice(forms)]
    return f"{x}[{', '.join(parts)}]"


@weight(3)
def select(d: Draft) -> str:
    x = d.tensor(has_dims)
    return f"{x}.select({axis_of(d, x)}, {integer(d) or d.random.choice(['0', '-1', '1'])})"


@weight(2)
def unfold(d: Draft) -> str:
    x = d.tensor(lambda t: 0 < t.dim() < 4)
    return f"{x}.unfold({axis_of(d, x)}, 2, {d.random.choice([1, 2])})"


@weight(2)
def flip(d: Draft) -> str:
    x = d.tensor(has_dims)
    return f"torch.flip({x}, [{axis_of(d, x)}])"


@weight(2)
def roll(d: Draft) -> str:
    x = d.tensor(has_dims)
    return f"torch.roll({x}, {integer(d) or d.random.choice(['1', '-2', '3'])}, {axis_of(d, x)})"


@weight(1)
def diagonal(d: Draft) -> str:
    return f"{d.tensor(lambda t: t.dim() >= 2)}.diagonal({d.random.choice([0, 1, -1])})"


@weight(1)
def triangle(d: Draft) -> str:
    x = d.tensor(lambda t: t.dim() >= 2)
    return f"torch.{d.random.choice(['tril', 'triu'])}({x}, {d.random.choice([0, 1, -1])})"


@weight(2)
def same_again(d: Draft) -> str:
    forms = ["clone()", "contiguous()", "detach()", "view_as({0})", "reshape({0}.shape)", "to({0}.dtype)"]
    x = d.tensor()
    return f"{x}.{d.random.choice(forms).format(x)}"


@weight(1)
def channels_last(d: Draft) -> str:
    return f"{d.tensor(lambda t: t.dim() == 4)}.contiguous(memory_format=torch.channels_last)"


# --- several to one, one to several ---


@weight(4)
def cat(d: Draft) -> str:
    x = d.tensor(has_dims)
    rank = d.values[x].dim()
    return f"torch.cat([{x}, {d.like(x, lambda t: t.dim() == rank)}], {axis_of(d, x)})"


@weight(2)
def stack(d: Draft) -> str:
    x = d.tensor(lambda t: t.dim() < 4)
    shape = d.values[x].shape
    others = [d.like(x, lambda t: t.shape == shape) for _ in range(d.random.randint(0, 2))]
    return f"torch.stack([{', '.join([x, *others])}], {d.random.randint(0, len(shape))})"


@weight(3)
def split(d: Draft) -> str:
    x = d.tensor(has_dims)
    axis = axis_of(d, x)
    forms = ["split(2, {0})[0]", "chunk(2, {0})[0]", "tensor_split(2, {0})[-1]"]
    if d.values[x].shape[axis] <= 2:
        forms.append("unbind({0})[0]")
    return f"{x}.{d.random.choice(forms).format(axis)}"


@weight(1)
def repeat(d: Draft) -> str:
    x = d.tensor(lambda t: 0 < t.dim() < 4)
    counts = [d.random.choice(["1", "2"]) for _ in d.values[x].shape]
    return d.random.choice([f"{x}.repeat({', '.join(counts)})", f"{x}.repeat_interleave(2, {axis_of(d, x)})"])


# --- new tensors ---


@weight(3)
def create(d: Draft) -> str:
    x = d.tensor(has_dims)
    k = integer(d) or f"{x}.shape[{axis_of(d, x)}]"
    forms = ["torch.arange({1})", "torch.arange({1}) * 2", "torch.arange(1, {1} + 3, 2)", "torch.full(({1}, 2), 1.5)"]
    forms += ["torch.full_like({0}, 1)", "{0}.new_zeros({1}, 3)", "torch.ones_like({0})", "torch.zeros({1})"]
    forms += ["torch.arange({1}, dtype=torch.float32)", "torch.eye({1})", "torch.linspace(0, 1, {1})"]
    forms += [
        "{0}.new_full(({1},), 1)",
        "torch.tensor([1, 2, 3])",
        "torch.tensor({1})",
        "torch.empty_like({0}).zero_()",
    ]
    return d.random.choice(forms).format(x, k)


@weight(2)
def by_a_size(d: Draft) -> str:
    x = d.tensor(lambda t: has_dims(t) and is_number(t))
    k = integer(d) or f"{x}.shape[{axis_of(d, x)}]"
    return d.random.choice([f"{x} * {k}", f"{x} + ({k} // 2)", f"{x} / max({k}, 1)", f"{x} - {k} % 3"])
