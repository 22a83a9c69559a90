"""Try random programs until the time is over; shrink and store those that fail.

python -P -m dlcb.tests.fuzz --seconds 600 --seed 7 --target reference --out tests/regressions
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

from dlcb.frontend.api import Target
from dlcb.runtime.compiled import CompiledModel
from dlcb.tests.programs.check import Failure, check_calls, expected, failure_of
from dlcb.tests.programs.draw import draw_program
from dlcb.tests.programs.program import Program, Subject
from dlcb.tests.programs.shrink import shrink
from dlcb.tests.programs.unit import Unit

AT_ONCE: dict[Target, int] = {"cpu": 16, "reference": 1}
"""How many programs are tried together: those for the CPU share a translation unit."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0, help="programs are those of seed, seed + 1, …")
    parser.add_argument("--target", choices=["cpu", "reference"], default="reference")
    parser.add_argument("--out", type=Path, default=Path("fuzz"), help="where failing programs are stored")
    parser.add_argument("--tries", type=int, default=150, help="how many smaller programs to try for each failure")
    asked = parser.parse_args()
    counts, seen = Counter[str](), set[str]()
    end, seed = time.monotonic() + asked.seconds, asked.seed
    while time.monotonic() < end:
        programs = [draw_program(Random(seed + number)) for number in range(AT_ONCE[asked.target])]
        for program, failure in zip(programs, failures_of(programs, asked.target), strict=True):
            counts[failure.kind if failure else "right"] += 1
            if failure is not None:
                path = _store(program, failure, seed, asked.target, asked.out, asked.tries, seen)
                print(f"seed {seed}: {failure.kind}: {failure.text[:300]}\n  {path or 'as one before'}", flush=True)
            seed += 1
    print(
        f"seeds {asked.seed} to {seed - 1}, target {asked.target}: " + ", ".join(f"{n} {k}" for k, n in counts.items())
    )
    return int(counts["right"] != counts.total())


def failures_of(programs: Sequence[Program], target: Target) -> list[Failure | None]:
    subjects = [Subject(program.text()) for program in programs]
    if target == "reference":
        return [failure_of(subject, target) for subject in subjects]
    unit = Unit()
    models = [None if expected(subject, 0) is None else unit.add(subject) for subject in subjects]
    unit.collects = False
    pairs = zip(subjects, models, strict=True)
    return [check_calls(subject, m) if isinstance(m, CompiledModel) else m for subject, m in pairs]


def _store(
    program: Program, failure: Failure, seed: int, target: Target, folder: Path, tries: int, seen: set[str]
) -> Path | None:
    """The file of the shrunk program; None where one with the same lines is there."""

    def fails(candidate: Program) -> bool:
        found = failure_of(Subject(candidate.text()), target)
        return found is not None and found.kind == failure.kind

    small = shrink(program, fails, tries)
    found = failure_of(Subject(small.text()), target) or failure
    lines = "\n".join(step.code for step in small.steps)
    if lines in seen:
        return None
    seen.add(lines)
    folder.mkdir(parents=True, exist_ok=True)
    title = textwrap.shorten(f"{found.kind}: {found.text}", 400).replace("\\", "/").replace('"""', "'''")
    title = "\n".join(textwrap.wrap(title, 110)) + f"\n\nSeed {seed}, target {target}.\n"
    name = f"{found.kind.replace(': ', '_').lower()}_{hashlib.sha256(lines.encode()).hexdigest()[:6]}"
    path = folder / f"{name}.py"
    path.write_text(small.text(title))
    return path


if __name__ == "__main__":
    sys.exit(main())
