"""Operations on each element."""

from __future__ import annotations

from dlcb.tests.programs.table import DTYPES, Draft, integer, is_bool, is_float, is_number, weight

UNARY = "neg abs relu sigmoid tanh exp sin cos square sign erf floor ceil round trunc expm1 rsqrt sqrt log1p".split()
ACTIVATIONS = "gelu silu elu softplus leaky_relu hardswish hardsigmoid hardtanh relu6 mish logsigmoid softsign".split()
BINARY = "add sub mul maximum minimum".split()
COMPARE = "eq ne lt le gt ge".split()
SCALARS = "0.5 -1.5 2 3 -1 0 1 True".split()


@weight(8)
def unary(d: Draft) -> str:
    return f"torch.{d.random.choice(UNARY)}({d.tensor(is_number)})"


@weight(3)
def activation(d: Draft) -> str:
    return f"F.{d.random.choice(ACTIVATIONS)}({d.tensor(is_float)})"


@weight(10)
def binary(d: Draft) -> str:
    x = d.tensor()
    return f"torch.{d.random.choice(BINARY)}({x}, {d.like(x)})"


@weight(6)
def with_scalar(d: Draft) -> str:
    x, other = d.tensor(), integer(d) or d.random.choice(SCALARS)
    return d.random.choice([f"{x} + {other}", f"{other} - {x}", f"{x} * {other}", f"{x} / {other}", f"{other} * {x}"])


@weight(2)
def division(d: Draft) -> str:
    x = d.tensor(is_number)
    y = d.random.choice([d.random.choice(["2", "3", "-4", "0.5"]), d.like(x, is_number)])
    mode = d.random.choice(["", ", rounding_mode='floor'", ", rounding_mode='trunc'"])
    return d.random.choice([f"torch.div({x}, {y}{mode})", f"{x} // {y}", f"{x} % {y}", f"torch.fmod({x}, {y})"])


@weight(2)
def power(d: Draft) -> str:
    return f"{d.tensor(is_number)} ** {d.random.choice(['2', '3', '0.5', '0', '1', '-1'])}"


@weight(1)
def alpha(d: Draft) -> str:
    x = d.tensor(is_number)
    return f"torch.{d.random.choice(['add', 'sub'])}({x}, {d.like(x, is_number)}, alpha={d.random.choice(['2', '-1'])})"


@weight(3)
def compare(d: Draft) -> str:
    x = d.tensor()
    return f"torch.{d.random.choice(COMPARE)}({x}, {d.random.choice([d.like(x), d.random.choice(SCALARS)])})"


@weight(2)
def logic(d: Draft) -> str:
    x = d.tensor(lambda t: not t.is_floating_point())
    y = d.like(x, lambda t: not t.is_floating_point())
    return d.random.choice([f"{x} & {y}", f"{x} | {y}", f"{x} ^ {y}", f"~{x}", f"torch.logical_and({x}, {y})"])


@weight(2)
def clamp(d: Draft) -> str:
    low, high = d.random.choice([("-1", "1"), ("0", "2"), ("-0.5", "None"), ("None", "1.5")])
    return f"torch.clamp({d.tensor(is_number)}, {low}, {high})"


@weight(6)
def cast(d: Draft) -> str:
    x = d.tensor()
    to = d.random.choice(DTYPES)
    wraps = d.values[x].is_floating_point() and to not in ("bool", "float32", "float64", "float16", "bfloat16")
    low = "0" if to == "uint8" else "-100"
    return f"{x}.clamp({low}, 100).to(torch.{to})" if wraps else f"{x}.to(torch.{to})"


@weight(2)
def where(d: Draft) -> str:
    condition = d.tensor(is_bool)
    x = d.like(condition)
    return f"torch.where({condition}, {x}, {d.random.choice([d.like(condition), '0', '1.5'])})"


@weight(2)
def masked_fill(d: Draft) -> str:
    x = d.tensor()
    return f"{x}.masked_fill({d.like(x, is_bool)}, {d.random.choice(['0', '1', '-2'])})"


@weight(1)
def lerp(d: Draft) -> str:
    x = d.tensor(is_float)
    dtype = d.values[x].dtype
    return f"torch.lerp({x}, {d.like(x, lambda t: t.dtype == dtype)}, 0.25)"
