"""Make a failing program small: fewer results, lines, calls and inputs, simpler layouts, smaller sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from dlcb.tests.programs.program import NAME, Given, Program, Step


def shrink(program: Program, fails: Callable[[Program], bool], tries: int = 150) -> Program:
    """The smallest program found in so many tries that still fails."""
    again = True
    while again:
        again = False
        for candidate in smaller(program):
            if tries <= 0:
                return program
            tries -= 1
            if fails(candidate):
                program, again = candidate, True
                break
    return program


def smaller(program: Program) -> Iterator[Program]:
    """Programs that are one step smaller, those that lose most first."""
    if len(program.calls) > 2:
        for number in range(1, len(program.calls)):
            yield replace(program, calls=(program.calls[0], program.calls[number]))
    if len(program.calls) == 2:
        yield replace(program, calls=program.calls[:1])
    if len(program.results) > 1:
        for name in program.results:
            yield without_unused(replace(program, results=(name,)))
        for name in program.results:
            yield without_unused(replace(program, results=tuple(r for r in program.results if r != name)))
    yield from _fewer_lines(program)
    yield from _simpler_inputs(program)
    yield from _smaller_sizes(program)


def without_unused(program: Program) -> Program:
    """Without the lines and inputs that nothing needs; lines that write stay."""
    needed, kept = set(program.results), list[Step]()
    for step in reversed(program.steps):
        if not step.names or needed & set(step.names) or "_(" in step.code:
            kept.append(step)
            needed |= step.uses
    inputs = {n: g for n, g in program.inputs.items() if n in needed} or dict(program.inputs)
    return replace(program, steps=tuple(reversed(kept)), inputs=inputs)


def _fewer_lines(program: Program) -> Iterator[Program]:
    for number in reversed(range(len(program.steps))):
        step = program.steps[number]
        rest = (*program.steps[:number], *program.steps[number + 1 :])
        if not step.names:
            yield without_unused(replace(program, steps=rest))
            continue
        made = [n for s in program.steps[:number] for n in s.names]
        for name in sorted({*step.uses, *made[-1:]}, reverse=True):
            yield without_unused(_renamed(replace(program, steps=rest), step.names, name))


def _renamed(program: Program, names: tuple[str, ...], to: str) -> Program:
    def rename(text: str) -> str:
        return NAME.sub(lambda m: to if m[0] in names else m[0], text)

    steps = tuple(Step(s.names, rename(s.code)) for s in program.steps)
    return replace(program, steps=steps, results=tuple(dict.fromkeys(map(rename, program.results))))


def _simpler_inputs(program: Program) -> Iterator[Program]:
    for name, given in program.inputs.items():
        simpler = [replace(given, layout="contiguous")] if given.layout != "contiguous" else []
        if given.dtype not in ("", "float32"):
            simpler.append(replace(given, dtype="float32"))
        for axis in range(len(given.dims)) if given.dtype else ():
            simpler.append(Given((*given.dims[:axis], *given.dims[axis + 1 :]), given.dtype))
        for one in simpler:
            yield replace(program, inputs={**program.inputs, name: one})


def _smaller_sizes(program: Program) -> Iterator[Program]:
    used = " ".join(dim for given in program.inputs.values() for dim in given.dims)
    kept = [name for name in program.calls[0] if name in used]
    if len(kept) < len(program.calls[0]):
        yield replace(program, calls=tuple({n: call[n] for n in kept} for call in program.calls))
        return
    example, *others = program.calls
    for number, call in enumerate(others, 1):
        for name, size in call.items():
            for fewer in dict.fromkeys((example[name], 2, 1, size // 2)):
                if fewer < size:
                    calls = (*program.calls[:number], {**call, name: fewer}, *program.calls[number + 1 :])
                    yield replace(program, calls=calls)
