"""Benchmarks of DLCB beside eager and torch.compile, and plots of what they found.

    python -P -m dlcb.benchmarks NAME --json OUT [--quick] [--contenders eager,dlcb] [--dtypes f16] [--seconds 600]
    python -P -m dlcb.benchmarks plot RESULTS.json … --out FOLDER

All contenders of a program run one after another in one process, with fresh random inputs; results are judged against
eager in float64. The JSON is whole after every row, so a run that is cut loses nothing. Without a GPU everything runs
on the CPU, and what needs CUDA is listed as skipped. The exit status is 1 where a result of DLCB's is wrong.
"""

from __future__ import annotations

import argparse
import importlib
import random
import sys
from collections.abc import Sequence
from pathlib import Path

from dlcb.benchmarks.case import DTYPES
from dlcb.benchmarks.contenders import KINDS
from dlcb.benchmarks.runner import Benchmark, Settings, exit_status, run, shown

NAMES = ("memory", "overhead", "models", "compile", "serving")


def load(name: str) -> Benchmark:
    return importlib.import_module(f"dlcb.benchmarks.{name}").BENCHMARK


def names(allowed: Sequence[str]) -> type[list[str]]:
    """The type of an option: names with commas between them."""

    class Names(list[str]):
        def __init__(self, text: str) -> None:
            super().__init__(text.split(","))
            unknown = [name for name in self if name not in allowed]
            if unknown:
                raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: expected some of {', '.join(allowed)}")

    return Names


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser("dlcb.benchmarks", description=__doc__, formatter_class=_Formatter)
    commands = made.add_subparsers(dest="name", required=True, metavar="NAME")
    for name in NAMES:
        _add_benchmark(commands.add_parser(name, help=load(name).about, formatter_class=_Formatter), load(name))
    plot = commands.add_parser("plot", help="draw PNG and SVG of results")
    plot.add_argument("results", type=Path, nargs="+", metavar="RESULTS.json")
    plot.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    return made


_Formatter = argparse.RawDescriptionHelpFormatter


def _add_benchmark(command: argparse.ArgumentParser, benchmark: Benchmark) -> None:
    command.description = importlib.import_module(f"dlcb.benchmarks.{benchmark.name}").__doc__
    command.add_argument("--json", type=Path, required=True, help="where results are written, row by row")
    command.add_argument("--quick", action="store_true", help="small sizes and few rounds: a dry run")
    command.add_argument("--contenders", type=names(tuple(KINDS)), default=[], help=",".join(benchmark.contenders))
    command.add_argument("--dtypes", type=names(tuple(DTYPES)), default=[], help=",".join(benchmark.dtypes))
    programs = benchmark.all_programs
    command.add_argument("--programs", "--models", type=names(programs), default=[], help=",".join(programs))
    if benchmark.experiments:
        experiments = benchmark.experiments
        command.add_argument("--experiments", type=names(experiments), default=[], help=",".join(experiments))
    command.add_argument("--seconds", type=float, help="skip what is left after so long")
    command.add_argument("--seed", type=int, help="of the random inputs; one of its own each run where none is given")


def plot(results: Sequence[Path], folder: Path) -> int:
    """matplotlib is imported for this alone."""
    try:
        written = importlib.import_module("dlcb.benchmarks.plots").draw(results, folder)
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print("\n".join(map(str, written)))
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    if options.name == "plot":
        return plot(options.results, options.out)
    benchmark = load(options.name)
    settings = Settings(
        json=options.json,
        quick=options.quick,
        contenders=tuple(options.contenders),
        dtypes=tuple(options.dtypes),
        programs=tuple(options.programs),
        experiments=tuple(getattr(options, "experiments", ())),
        seconds=options.seconds,
        seed=random.SystemRandom().randrange(1 << 31) if options.seed is None else options.seed,
    )
    report = run(benchmark, settings)
    print("\n".join(shown(benchmark, report)))
    return exit_status(report)


if __name__ == "__main__":
    sys.exit(main())
