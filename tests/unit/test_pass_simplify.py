"""What `simplify` makes computes the same: the rules' own examples, and composite ops against torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional
from xdsl.dialects.builtin import ModuleOp

from dlcb.dialects.graph.composite import Composite
from dlcb.dialects.graph.derived import derived_weights
from dlcb.dialects.graph.structure import FuncOp
from dlcb.dialects.graph.types import TensorType
from dlcb.dialects.types import TYPE_NAME
from dlcb.evaluator.graph import run
from dlcb.evaluator.sizes import lookup
from dlcb.passes.rule import Rule, rules_of
from dlcb.passes.rule_examples import parse_example
from dlcb.passes.simplify import simplify

SIZES = {"n": 4, "m": 5, "k": 3, "d": 15}
TORCH = {"f16": torch.float16, "f32": torch.float32, "i1": torch.bool}
SIMPLE_RULES = [r for r in rules_of("graph") if not any(issubclass(root, Composite) for root in r.roots)]


ROUNDS_OTHERWISE = {"FuseConvolutionRelu", "GenerateDepthwise", "SplitConvolutionBias"}
"""Rules that keep values up to roundings of half precision which they leave out, or make as torch does."""


def random_arguments(func: FuncOp) -> dict[str, np.ndarray[Any, Any]]:
    random = np.random.default_rng(0)
    arguments: dict[str, np.ndarray[Any, Any]] = {}
    for argument, name in zip(func.body.block.args, func.names, strict=True):
        assert isinstance(argument.type, TensorType)
        shape = [SIZES[d] if isinstance(d, str) else d for d in argument.type.dims]
        values = random.standard_normal(shape).astype(np.float32)
        element = TYPE_NAME[argument.type.element]
        arguments[name] = values > 0 if element in ("i1", "i64") else values
        if element == "i64":  # places of a dim of at least two
            arguments[name] = arguments[name].astype(np.int64)
    return arguments


@pytest.mark.parametrize("rule", SIMPLE_RULES, ids=lambda rule: rule.name)
def test_the_example_of_the_rule_keeps_its_values(rule: Rule) -> None:
    before, after = (parse_example(text, rule.name) for text in (rule.before, rule.after))
    name = "main" if "@main" in rule.before else "f"
    func, rewritten = (lookup(module, name, FuncOp) for module in (before, after))
    arguments = random_arguments(func)
    derived = folded_weights(after, arguments) if name == "main" else arguments
    for old, new in zip(run(func, arguments, SIZES), run(rewritten, derived, SIZES), strict=True):
        if rule.name in ROUNDS_OTHERWISE:
            np.testing.assert_allclose(old, new, rtol=2e-3, atol=2e-3)
        else:
            np.testing.assert_array_equal(old, new)


def program(op: str, arguments: list[tuple[str, str]], properties: str, element: str) -> str:
    types = [f"tensor<{dims}, {element}>" for _, dims in arguments]
    heads = [
        f'%{name}: {type} {"weight" if i else "input"} "{name}"'
        for i, ((name, _), type) in enumerate(zip(arguments, types, strict=True))
    ]
    values = ", ".join(f"%{name}" for name, _ in arguments)
    return f"""dlcb.graph.func @main({", ".join(heads)}) {{
        %r = dlcb.graph.{op} {values} {{{properties}}} : ({", ".join(types)}) -> {types[0]}
        dlcb.graph.return %r : !dlcb.graph.{types[0]} }}"""


TOLERANCE = {"f16": (2e-3, 1e-3), "f32": (2e-6, 1e-6)}
AXIS = "axis = #builtin.int<1>"
NORM = "axes = #builtin.int<1>, eps = 1.0e-05 : f64"
EPS = "eps = 1.0e-05 : f64"
ROWS, VECTOR, IMAGE, CHANNELS = "[n, 6]", "[6]", "[n, 6, m, m]", "[6]"
CASES: dict[str, tuple[str, list[tuple[str, str]], str, Callable[..., torch.Tensor]]] = {
    "softmax": ("softmax", [("x", ROWS)], AXIS, lambda x: functional.softmax(x, 1)),
    "log_softmax": ("log_softmax", [("x", ROWS)], AXIS, lambda x: functional.log_softmax(x, 1)),
    "layer_norm": ("layer_norm", [("x", ROWS)], NORM, lambda x: functional.layer_norm(x, (6,))),
    "layer_norm_affine": (
        "layer_norm",
        [("x", ROWS), ("w", VECTOR), ("b", VECTOR)],
        NORM,
        lambda x, w, b: functional.layer_norm(x, (6,), w, b),
    ),
    "layer_norm_weight": (
        "layer_norm",
        [("x", ROWS), ("w", VECTOR)],
        NORM,
        lambda x, w: functional.layer_norm(x, (6,), w),
    ),
    "rms_norm": ("rms_norm", [("x", ROWS)], NORM, lambda x: functional.rms_norm(x, (6,), eps=1e-5)),
    "rms_norm_weight": (
        "rms_norm",
        [("x", ROWS), ("w", VECTOR)],
        NORM,
        lambda x, w: functional.rms_norm(x, (6,), w, 1e-5),
    ),
    "batch_norm": (
        "batch_norm",
        [("x", IMAGE), ("m", CHANNELS), ("v", CHANNELS)],
        EPS,
        lambda x, m, v: functional.batch_norm(x, m, v.abs()),
    ),
    "batch_norm_affine": (
        "batch_norm",
        [("x", ROWS), ("m", CHANNELS), ("v", CHANNELS), ("w", CHANNELS), ("b", CHANNELS)],
        EPS,
        lambda x, m, v, w, b: functional.batch_norm(x, m, v.abs(), w, b),
    ),
}


@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize("case", CASES)
def test_a_composite_op_becomes_what_torch_computes(case: str, element: str) -> None:
    op, operands, properties, reference = CASES[case]
    module = parse_example(program(op, operands, properties, element), case)
    given = random_arguments(lookup(module, "main", FuncOp))
    simplify(module)
    module.verify()
    func = lookup(module, "main", FuncOp)
    assert not any(isinstance(o, Composite) for o in func.body.block.ops)
    arguments = {n: a.astype(np.float16).astype(np.float32) for n, a in given.items()}
    if "v" in arguments:
        arguments["v"] = np.abs(arguments["v"])
    expected = reference(*[torch.from_numpy(a).to(TORCH[element]) for a in arguments.values()]).float().numpy()
    derived = folded_weights(module, arguments) if "v" in arguments else {}
    (result,) = run(func, {n: a for n, a in {**arguments, **derived}.items() if n in func.names})
    rtol, atol = TOLERANCE[element]
    np.testing.assert_allclose(result, expected, rtol=rtol, atol=atol)


def convolution(transposed: bool, bias: bool) -> str:
    weight = "[3, 6, 2]" if transposed else "[6, 3, 2]"
    operands = [("x", "[n, 3, m]"), ("conv.weight", weight), *([("conv.bias", "[6]")] if bias else [])]
    norm = [(f"bn.{name}", "[6]") for name in ("mean", "var", "weight", "bias")]
    heads = [
        f'%{i}: tensor<{dims}, f32> {"weight" if i else "input"} "{name}"'
        for i, (name, dims) in enumerate([*operands, *norm])
    ]
    values = [f"%{i}" for i in range(len(heads))]
    types = [f"tensor<{dims}, f32>" for _, dims in [*operands, *norm]]
    split, result = len(operands), "tensor<[n, 6, d0], f32>"
    properties = "groups = #builtin.int<1>, " + ", ".join(
        f"{name} = [#builtin.int<{value}>]" for name, value in (("dilation", 1), ("padding", 0), ("stride", 1))
    )
    flag = "transposed, " if transposed else ""
    return f"""dlcb.graph.func @main({", ".join(heads)}) {{
        %c = dlcb.graph.convolution {", ".join(values[:split])} {{{flag}{properties}}} :
          ({", ".join(types[:split])}) -> {result}
        %r = dlcb.graph.batch_norm {", ".join(["%c", *values[split:]])} {{{EPS}}} :
          ({", ".join([result, *types[split:]])}) -> {result}
        dlcb.graph.return %r : !dlcb.graph.{result} }}"""


def test_a_second_batch_norm_does_not_fold_into_derived_weights() -> None:
    text = convolution(False, False)
    first = text.split("%r = ")[1].split("dlcb.graph.return")[0]
    text = text.replace("dlcb.graph.return %r", "%q = " + first.replace("%c,", "%r,") + "dlcb.graph.return %q")
    module = parse_example(text, "twice")
    simplify(module)
    module.verify()
    assert list(derived_weights(lookup(module, "main", FuncOp))) == [
        "conv.weight|bn",
        "conv.bias|bn",
        "bn|scale",
    ]


def folded_weights(module: ModuleOp, arguments: dict[str, Any]) -> dict[str, Any]:
    """All weights of @main, the derived ones from @weights."""
    weights, main = lookup(module, "weights", FuncOp), lookup(module, "main", FuncOp)
    results = run(weights, {name: arguments[name] for name in weights.names})
    return arguments | {name: results[i] for name, i in derived_weights(main).items()}


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
def test_a_folded_batch_norm_computes_the_same(transposed: bool, bias: bool) -> None:
    module = parse_example(convolution(transposed, bias), "convolution")
    arguments = random_arguments(lookup(module, "main", FuncOp))
    arguments["bn.var"] = np.abs(arguments["bn.var"])
    simplify(module)
    module.verify()
    weights = {n: torch.from_numpy(a) for n, a in folded_weights(module, arguments).items()}
    main = lookup(module, "main", FuncOp)
    assert list(main.names) == ["x", "conv.weight|bn", "conv.bias|bn"]
    run_convolution = functional.conv_transpose1d if transposed else functional.conv1d
    result = run_convolution(weights["x"], weights["conv.weight|bn"], weights["conv.bias|bn"])
    plain = run_convolution(weights["x"], weights["conv.weight"], weights["conv.bias"] if bias else None)
    mean, var, weight, shift = (weights[f"bn.{n}"] for n in ("mean", "var", "weight", "bias"))
    expected = functional.batch_norm(plain, mean, var, weight, shift)
    torch.testing.assert_close(result, expected, rtol=1e-5, atol=1e-5)
