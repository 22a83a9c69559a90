"""Serialized host programs from strangers: every malformed row is a clear error, none is executed."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from dlcb.errors import InternalError, UserError
from dlcb.runtime.program import Facts, compile_program, fill
from dlcb.runtime.rows import check_program

_GOOD: dict[str, Any] = {
    "name": "p",
    "arguments": [["input", "x", "f32", 2, False], ["weight", "w", "f16", [4], [1]], ["int", "k"]],
    "results": ["y"],
    "code": [
        ["size", 0, "x", 1],
        ["constant", 1, True],
        ["argument", 2, "x"],
        ["arena", 3, 0],
        ["buffer", 4, 3, 0, [0], [0], "f32"],
        ["output", 5, [0], [0], "f32"],
        ["launch", [2, 5], [["k", 256, 1, 0, [[0, "i32"]]]], [["IndexError", "index {0}"]]],
        ["library", 6, "matmul", [2, 4], None, {}, "f32"],
        ["check", 1, "{0}", [0]],
        ["return", [5]],
    ],
}


def _replaced(number: int, row: Any) -> dict[str, Any]:
    program = copy.deepcopy(_GOOD)
    program["code"][number] = row
    return program


def test_the_good_program_passes() -> None:
    assert check_program(_GOOD).kernels() == {"k"}


@pytest.mark.parametrize(
    ("number", "row", "text"),
    [
        (0, ["__import__", 0, "os"], "row 0: unknown opcode '__import__'"),
        (0, "size", "row 0: expected a list, got 'size'"),
        (0, ["size", 0, "x", 2], "argument 'x' has rank 2, no dimension 2"),
        (0, ["size", 0, "w", 0], "no argument 'w' of kind input"),
        (0, ["size", 1, "x", 0], "defines slot 1, the next one is 0"),
        (0, ["size", 0, "x", "0; import os"], "expected an integer"),
        (0, ["size", 0, "x"], "size has 3 fields, got 2"),
        (0, ["add", 0, 1, 2], "uses slot 1, 0 slots are defined so far"),
        (0, ["constant", 0, 1.5], "expected an integer, got 1.5"),
        (0, ["aligned", 0, "x", 32], "bytes must be 1, 2, 4, 8 or 16"),
        (1, ["scaled", 1, 0, 3, 0], "the denominator must be positive"),
        (1, ["magic_mul", 1, 0, 16], "bits must be 32 or 64"),
        (1, ["not", 1, 0], "slot 0 holds index, expected truth"),
        (4, ["buffer", 4, 3, 0, [0], [], "f32"], "1 sizes but 0 strides"),
        (4, ["buffer", 4, 2, 0, [0], [0], "f32"], "slot 2 holds tensor, expected arena"),
        (4, ["arena", 4, 0], "at most one arena"),
        (5, ["output", 5, [0], [0], "c64"], "expected a dtype"),
        (6, ["launch", [2], [], []], "at least one variant"),
        (6, ["launch", [2], [["k", 2048, 1, 0, []]], []], "threads must be between 1 and 1024"),
        (6, ["launch", [2], [["k", 256, 1, 0, [[0, "f32"]]]], []], "expected a slot and i32 or i64"),
        (6, ["launch", [2], [["k", 256, 1, 0, [[True, "i32"]]]], []], "uses slot True"),
        (6, ["launch", [2], [["k", 256, 1, 0, []]], [["SystemExit", "x"]]], "an error of IndexError, RuntimeError"),
        (6, ["launch", [2], [["k", 256, 1, 0, []]], [["IndexError"]]], "and a text, got ['IndexError']"),
        (7, ["library", 6, "system", [2], None, {}, "f32"], "no library function 'system'"),
        (7, ["library", 6, "matmul", [2], None, {}, "f32"], "matmul takes 2 to 3 tensors, got 1"),
        (7, ["library", 6, "matmul", [2, 4], None, {"out": 1}, "f32"], "matmul has no option 'out'"),
        (7, ["library", 6, "convolution", [2, 4], None, {"stride": "1"}, "f32"], "'stride' must be of kind integers"),
        (7, ["library", None, "convolution", [2, 4], 5, {}, None], "convolution allocates its result"),
        (7, ["library", None, "matmul", [2, 4], None, {}, None], "one of both"),
        (9, ["return", [3]], "slot 3 holds arena, which can't be a result"),
        (9, ["return", [5, 0]], "1 result names but 2 results"),
        (9, ["check", 1, "", []], "the last row, and no other, is 'return'"),
        (8, ["return", [5]], "the last row, and no other, is 'return'"),
    ],
)
def test_a_malformed_row_is_named(number: int, row: Any, text: str) -> None:
    with pytest.raises(UserError, match="host program 'p' is damaged or foreign") as error:
        check_program(_replaced(number, row))
    assert text in str(error.value)


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("name", 3, "expected a text, got 3"),
        ("arguments", [["input", "x", "f32", 2, False]] * 2, "two arguments are called 'x'"),
        ("arguments", [["file", "x"]], "not an argument"),
        ("arguments", [["weight", "w", "f32", [4], []]], "1 sizes but 0 strides"),
        ("code", [], "at least one row"),
        ("code", None, "expected a list, got None"),
    ],
)
def test_a_malformed_header_is_named(key: str, value: Any, text: str) -> None:
    with pytest.raises(UserError) as error:
        check_program({**_GOOD, key: value})
    assert text in str(error.value)


def test_texts_are_filled_with_numbers_only() -> None:
    assert fill("{0} of {1}, {2} {x} {0.real} {}", (3, 4)) == "3 of 4, {2} {x} {0.real} {}"


def _plan(code: list[Any], sizes: tuple[int, ...] = (4, 4)) -> None:
    program = check_program({"name": "p", "arguments": _GOOD["arguments"], "results": [], "code": code})
    facts = Facts([sizes, (), ()], [(4, 1), (), ()], [0, 0, 0], [16, 16, 0])
    compile_program(program)(facts)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (
            [["constant", 0, 16], ["argument", 1, "x"], ["view", 2, 1, 0, [0], [0]], ["return", [2]]],
            "outside its argument",
        ),
        (
            [["constant", 0, 16], ["arena", 1, 0], ["buffer", 2, 1, 0, [0], [0], "f32"], ["return", []]],
            "outside its arena",
        ),
        ([["constant", 0, 2], ["arena", 1, 0], ["buffer", 2, 1, 0, [], [], "f32"], ["return", []]], "starts at byte 2"),
        ([["constant", 0, -1], ["output", 1, [0], [0], "f32"], ["return", []]], "-1 is negative"),
        (
            [["constant", 0, 0], ["arena", 1, 0], ["buffer", 2, 1, 0, [0], [0], "f32"], ["return", [2]]],
            "a result lies in the arena",
        ),
        (
            [
                ["constant", 0, 1 << 40],
                ["constant", 1, True],
                ["constant", 2, 1],
                ["launch", [], [["k", 1, 1, 2, [[0, "i32"]]]], []],
                ["return", []],
            ],
            "none of the kernels k fits this call",
        ),
    ],
)
def test_a_plan_that_would_touch_foreign_memory_is_refused(code: list[Any], text: str) -> None:
    with pytest.raises(InternalError, match=text):
        _plan(code)
