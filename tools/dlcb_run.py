"""`dlcb-run`: run IR, an artifact or an exported program on random or given inputs; compare, time and profile it."""

from __future__ import annotations

import argparse
import gc
import hashlib
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, get_args

import torch
from safetensors.torch import save_file  # pyright: ignore[reportUnknownVariableType]  # a bare PathLike
from torch import Tensor

from dlcb.benchmarks.accuracy import FACTOR, FLOOR, Verdict, judge
from dlcb.errors import UserError
from dlcb.frontend.api import Target
from dlcb.frontend.exported_program import load_exported
from dlcb.tools.messages import guarded
from dlcb.tools.module_weights import weights_for
from dlcb.tools.run_compiled import artifact_program, exported_program
from dlcb.tools.run_ir import IrProgram, give_ranks, parse
from dlcb.tools.runnable import Results, Runnable
from dlcb.tools.signature import Given, describe, inputs_from, random_inputs
from dlcb.tools.timing import profile, timed_call, warm_ms

_NAME: Final = "dlcb-run"
TARGETS: Final[tuple[Target, ...]] = get_args(Target)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        _NAME, description="Run a program: textual IR of any stage, an artifact, or an exported program."
    )
    parser.add_argument("file", metavar="FILE", type=Path, help="a .mlir, .dlcb or .pt2 file")
    parser.add_argument(
        "--target", choices=TARGETS, help="where it runs; by default where it was made for, a GPU if there is one"
    )
    parser.add_argument(
        "--size",
        metavar="NAME=N,…",
        action="append",
        default=[],
        help="sizes, by symbol (x_0), by the name that it was given, or by place (x.shape[0])",
    )
    parser.add_argument(
        "--rank",
        metavar="NAME=N",
        action="append",
        default=[],
        help="the ranks of a .mlir's inputs that are of any; else those in the file of --input",
    )
    parser.add_argument("--input", metavar="FILE.safetensors", type=Path, help="the inputs by name; else random ones")
    parser.add_argument("--seed", type=int, default=0, help="of random inputs and weights (0)")
    parser.add_argument("--output", metavar="FILE.safetensors", type=Path, help="save the results there")
    parser.add_argument("--weights", metavar="FILE.safetensors", type=Path, help="the weights of a .mlir")
    parser.add_argument("--random-weights", action="store_true", help="random weights for a .mlir")
    parser.add_argument(
        "--compare", choices=["eager"], help="with the program in PyTorch (of a .mlir and .dlcb: the evaluator)"
    )
    parser.add_argument("--time", action="store_true", help="milliseconds of the first call and of warm ones")
    parser.add_argument("--profile", action="store_true", help="the time of each kernel and library call")
    parser.add_argument("--traceback", action="store_true", help="show where in DLCB an error was raised")
    return parser


def open_program(args: argparse.Namespace) -> Runnable:
    path: Path = args.file
    openers: Mapping[str, Callable[[argparse.Namespace], Runnable]] = {
        ".mlir": _open_ir,
        ".dlcb": lambda args: artifact_program(args.file, args.target),
        ".pt2": lambda args: exported_program(load_exported(args.file), args.target),
    }
    opener = openers.get(path.suffix)
    if opener is None:
        raise UserError(f"{path}: '{path.suffix}' is no kind of program; known are {', '.join(openers)}")
    if path.suffix != ".mlir" and (args.weights is not None or args.random_weights):
        raise UserError(f"{path}: has its own weights; --weights and --random-weights are for .mlir files")
    if path.suffix != ".mlir" and args.rank:
        raise UserError(f"{path}: has inputs of known ranks; --rank is for .mlir files")
    return opener(args)


def _open_ir(args: argparse.Namespace) -> Runnable:
    path: Path = args.file
    module = parse(path.read_bytes(), str(path))
    give_ranks(module, args.rank, args.input)
    weights = weights_for(module, path.absolute().parent, args.weights, args.seed if args.random_weights else None)
    return IrProgram(module, weights, args.target or ("cuda" if torch.cuda.is_available() else "cpu"))


def parse_sizes(texts: Sequence[str]) -> dict[str, int]:
    """`N=8,S=128` as numbers by name."""
    found: dict[str, int] = {}
    for text in (part for given in texts for part in given.split(",")):
        name, equals, number = text.partition("=")
        if not equals or not name or not number.isdecimal():
            raise UserError(f"--size {text}: expected NAME=N with N ≥ 0, as in --size x_0=8,x.shape[1]=128")
        if found.setdefault(name, int(number)) != int(number):
            raise UserError(f"--size gives {name} twice: {found[name]} and {number}")
    return found


def _inputs(args: argparse.Namespace, program: Runnable) -> dict[str, Given]:
    signature, given = program.signature, parse_sizes(args.size)
    if args.input is not None:
        if given:
            raise UserError("--size and --input: the sizes are those of the inputs in the file; give one of both")
        print(f"inputs from {args.input}:")
        inputs = inputs_from(args.input, signature)
    else:
        sizes = signature.sizes(given)
        chosen = ", ".join(f"{name}={size}" for name, size in sizes.items())
        missing = signature.unset(given)
        unset = f" ({', '.join(missing)} by default)" if missing else ""
        print(f"random inputs, seed {args.seed}; sizes {chosen or 'fixed'}{unset}:")
        inputs = random_inputs(signature, sizes, args.seed)
    for name, value in inputs.items():
        print(f"  {name}: {summary(value)}")
    return inputs


def summary(value: Any) -> str:
    """Dtype, sizes and strides of a tensor, what its elements are like, and a hash of them."""
    if not isinstance(value, Tensor):
        return repr(value)
    head = f"{describe(value.dtype, value.shape)} strides [{', '.join(map(str, value.stride()))}]"
    if not value.numel():
        return f"{head} empty"
    plain = value.detach().cpu().contiguous()
    digest = hashlib.sha256(plain.reshape(-1).view(torch.uint8).numpy().data).hexdigest()[:12]
    wide = plain.double()
    return f"{head} mean {wide.mean():.6g} min {wide.min():.6g} max {wide.max():.6g} sha256 {digest}"


def _show(results: Results) -> None:
    print("results:")
    for name, value in results:
        print(f"  {name}: {summary(value)}")


def _save(results: Results, path: Path) -> None:
    tensors = {name: value for name, value in results if isinstance(value, Tensor)}
    tensors |= {n: torch.tensor(v) for n, v in results if isinstance(v, (bool, int, float))}
    save_file({name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}, path)


def _compare(program: Runnable, inputs: Mapping[str, Given], results: Results) -> int:
    """Prints the error of each result; 1 where one has too much of it."""
    eager, exact = program.eager(inputs), program.exact(inputs)
    print(f"compared with eager (error ≤ {FACTOR} × eager's own + {FLOOR:g}):")
    verdicts = [_judged(*each) for each in zip(results, eager, exact, strict=True)]
    for (name, _), verdict in zip(results, verdicts, strict=True):
        state = "ok" if verdict.ok else f"WRONG: {verdict.reason}"
        print(f"  {name}: error {verdict.error:.3g}, eager's own {verdict.eager_error:.3g}: {state}")
    return int(not all(verdict.ok for verdict in verdicts))


def _judged(result: tuple[str, Any], eager: tuple[str, Any], exact: tuple[str, Any]) -> Verdict:
    (_, out), (_, own), (_, reference) = result, eager, exact
    if isinstance(out, Tensor) and isinstance(own, Tensor) and isinstance(reference, Tensor):
        return judge(out, own, reference)
    same = type(out) is type(own) and out == own
    return Verdict(0, 0, None if same else f"{out!r}, eager gives {own!r}")


def _show_times(program: Runnable, inputs: Mapping[str, Given], first_ms: float) -> None:
    median, calls = warm_ms(program, inputs)
    print(f"time: first call {first_ms:.3f} ms, warm {median:.3f} ms (median of {calls})")


def _show_profile(program: Runnable, inputs: Mapping[str, Given]) -> None:
    steps = profile(program, inputs)
    total = sum(step.ms for step in steps)
    print(f"profile of a warm call, {total:.3f} ms in {sum(step.launches for step in steps)} launches:")
    for step in steps:
        print(f"  {step.ms:10.4f} ms {step.ms / total:6.1%} {step.launches:4} × {step.name}")


def _run(args: argparse.Namespace) -> int:
    program = open_program(args)
    inputs = _inputs(args, program)
    results, first_ms = timed_call(program, inputs)
    _show(results)
    if args.output is not None:
        _save(results, args.output)
    status = _compare(program, inputs, results) if args.compare else 0
    if args.time:
        _show_times(program, inputs, first_ms)
    if args.profile:
        _show_profile(program, inputs)
    return status


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the tool; returns the exit status: 0, 1 (wrong input, or results that differ) or 2 (a wrong command line,
    or a bug of ours)."""
    args = _parser().parse_args(argv)
    return guarded(_NAME, lambda: _run(args), lambda: args.traceback)


def script() -> int:
    """The console script: `main`, in a process of its own, set up for large and deeply nested IR."""
    gc.set_threshold(200_000, 50, 50)
    sys.setrecursionlimit(10_000)
    return main()


if __name__ == "__main__":
    sys.exit(script())
