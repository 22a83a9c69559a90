"""Random host programs: IR and rows are the same program, and the runtime's function does what the interpreter says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dlcb.dialects.host.ops import ProgramOp
from dlcb.errors import InternalError, UserError
from dlcb.evaluator.host import TensorFacts, run_host_program
from dlcb.lowering.host_to_json import json_to_program, program_to_json
from dlcb.runtime.plan import CallPlan, Launch, Place, Step
from dlcb.runtime.program import Facts, compile_program
from dlcb.runtime.rows import INTEGER_ROWS, check_program
from dlcb.tests.plans import PlanOfEvents

_SMALL = st.integers(0, 4)
_INTEGERS = _SMALL | _SMALL | st.integers(0, 40) | st.integers(-(1 << 40), 1 << 40)


class _Rows:
    """Draws rows one after another; knows which slots hold what."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.code: list[list[Any]] = []
        self.slots: dict[str, list[int]] = {"index": [], "truth": [], "tensor": [], "arena": []}
        self.in_arena: set[int] = set()
        self.count = 0

    def define(self, kind: str, opcode: str, *fields: Any) -> None:
        self.code.append([opcode, self.count, *fields])
        self.slots[kind].append(self.count)
        self.count += 1

    def one(self, kind: str) -> int:
        return self.draw(st.sampled_from(self.slots[kind]))

    def some(self, kind: str, most: int = 3) -> list[int]:
        return [self.one(kind) for _ in range(self.draw(st.integers(0, most)))]

    def layout(self) -> tuple[list[int], list[int]]:
        sizes = self.some("index")
        return sizes, [self.one("index") for _ in sizes]

    def leaves(self) -> None:
        self.define("index", "size", "x", 0)
        self.define("index", "stride", "x", 1)
        self.define("index", "integer", "k")
        self.define("index", "constant", self.draw(_INTEGERS))
        self.define("truth", "constant", self.draw(st.booleans()))
        self.define("truth", "aligned", self.draw(st.sampled_from(["x", "w"])), self.draw(st.sampled_from([4, 16])))
        self.define("tensor", "argument", "x")
        self.define("tensor", "weight", "w")
        self.define("index", "constant", self.draw(st.sampled_from([1 << 12, 1 << 16, 1 << 62])))
        self.define("arena", "arena", self.draw(st.sampled_from(self.slots["index"][-1:] * 9 + self.slots["index"])))

    def integer(self) -> None:
        opcode = self.draw(st.sampled_from(sorted(INTEGER_ROWS)))
        signature = INTEGER_ROWS[opcode]
        attributes = {"scaled": [self.draw(st.integers(0, 9)), self.draw(st.integers(1, 9))]}
        bits = [self.draw(st.sampled_from([32, 64]))]
        operands = [self.one(kind) for kind in signature.operands]
        self.define(
            signature.result, opcode, *operands, *(attributes.get(opcode, bits) if signature.attributes else [])
        )

    def integers_of_launch(self) -> list[list[Any]]:
        return [[slot, self.draw(st.sampled_from(["i32", "i64"]))] for slot in self.some("index")]

    def tensor(self) -> None:
        match self.draw(st.integers(0, 3)):
            case 0:
                self.in_arena.add(self.count)
                dtype = self.draw(st.sampled_from(["i8", "i8", "f16"]))
                self.define("tensor", "buffer", self.slots["arena"][0], self.one("index"), *self.layout(), dtype)
            case 1:
                self.define("tensor", "output", *self.layout(), "i1")
            case 2:
                source = self.one("tensor")
                self.in_arena |= {self.count} if source in self.in_arena else set()
                self.define("tensor", "view", source, self.one("index"), *self.layout())
            case _:
                operands = [self.one("tensor") for _ in range(2)]
                self.define("tensor", "library", "convolution", operands, None, {"stride": [2, 2]}, "f32")

    def work(self) -> None:
        match self.draw(st.integers(0, 2)):
            case 0:
                self.code.append(["check", self.one("truth"), 'got {0}, { } "{1}', self.some("index")])
            case 1:
                variants = [
                    [f"k{i}", 256, self.one("truth"), self.one("index"), self.integers_of_launch()]
                    for i in range(self.draw(st.integers(1, 3)))
                ]
                failures = [["IndexError", 'got {0} of {1} }"']] * self.draw(st.integers(0, 2))
                self.code.append(["launch", self.some("tensor"), variants, failures])
            case _:
                operands = [self.one("tensor") for _ in range(2)]
                self.code.append(["library", None, "matmul", operands, self.one("tensor"), {}, None])


@st.composite
def programs(draw: Any) -> dict[str, Any]:
    rows = _Rows(draw)
    rows.leaves()
    for _ in range(draw(st.integers(0, 14))):
        draw(st.sampled_from([rows.integer, rows.integer, rows.tensor, rows.work]))()
    outputs = [r[1] for r in rows.code if r[0] == "output"]
    others = [slot for slot in rows.some("tensor") if slot not in rows.in_arena]
    rows.code.append(["return", [*outputs, rows.one("index"), *others]])
    arguments = [["input", "x", "f32", 2, False], ["weight", "w", "f16", [4, 3], [3, 1]], ["int", "k"]]
    check = ["check", rows.one("truth"), "never reached {0}", []]
    if draw(st.integers(0, 3)):
        check = []
    code = [*rows.code[:-1], *([check] if check else []), rows.code[-1]]
    return {"name": "main", "arguments": arguments, "results": [], "code": _checked_texts(code)}


def _checked_texts(code: list[list[Any]]) -> list[list[Any]]:
    """Placeholders only for operands that are there, as the IR demands."""
    return [[*r[:2], r[2] if len(r[3]) > 1 else "no numbers", r[3]] if r[0] == "check" else r for r in code]


def _outcome(run: Callable[[], CallPlan]) -> tuple[Any, ...]:
    try:
        plan = run()
    except UserError as error:
        return "refused", type(error), str(error)
    except InternalError as error:
        return "wrong", re.sub(r"(none|no variant) of .*", "none fits", str(error))
    return "planned", plan.roots, tuple(step._replace(ends=()) for step in plan.steps), plan.results


def _used(step: Step) -> set[int]:
    if isinstance(step, Launch):
        return {root for root, _ in step.tensors}
    roots = {place.root for place in step.tensors} | (set() if step.out is None else {step.out.root})
    return roots if step.result is None else roots | {step.result}


def _check_ends(plan: CallPlan, all_ran: bool) -> None:
    """A root ends once, after its last use; each of a library result or a separate buffer that a step uses and that is
    no result of the program does, where no launch was left out."""
    kept = {place.root for place in plan.results if isinstance(place, Place)}
    ended: set[int] = set()
    for step in plan.steps:
        assert not _used(step) & ended
        assert not ended.intersection(step.ends)
        ended.update(step.ends)
    used = set[int]().union(*map(_used, plan.steps))
    ending = {n for n, root in enumerate(plan.roots) if root.kind in ("result", "buffer") and n in used} - kept
    assert ended == ending if all_ran else ended <= ending


@settings(max_examples=300, deadline=None)
@given(
    programs(),
    st.tuples(_INTEGERS, _INTEGERS),
    st.tuples(_INTEGERS, _INTEGERS),
    _INTEGERS,
    st.sampled_from([1, 4, 16]),
    st.booleans(),
)
def test_the_generated_function_agrees_with_the_interpreter(
    data: dict[str, Any], sizes: tuple[int, int], strides: tuple[int, int], k: int, alignment: int, separate: bool
) -> None:
    program = json_to_program(data)
    program.verify()
    assert isinstance(program, ProgramOp)
    checked = check_program(json.loads(json.dumps(data)))
    facts = Facts((sizes, (), ()), (strides, (), ()), (0, 0, k), (alignment, alignment, 0))
    arguments = {"x": TensorFacts(sizes, strides, alignment), "w": TensorFacts(alignment=alignment), "k": k}

    def slow() -> CallPlan:
        return PlanOfEvents(checked, facts, separate).build(run_host_program(program, arguments))

    plan = compile_program(checked, separate)
    found = _outcome(lambda: plan(facts))
    assert found == _outcome(slow)
    if found[0] == "planned":
        launches = sum(row[0] == "launch" for row in checked.code)
        _check_ends(plan(facts), sum(isinstance(step, Launch) for step in found[2]) == launches)


@settings(max_examples=50, deadline=None)
@given(programs())
def test_rows_come_back_from_the_ir_unchanged(data: dict[str, Any]) -> None:
    assert program_to_json(json_to_program(data)) == data
