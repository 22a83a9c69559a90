"""How a caller's arguments become a program's, and its results the caller's; also as a file has it, checked.

`where` begins the text of every `UserError` here: the file, and the entry in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from dlcb.errors import InternalError, UserError
from dlcb.runtime.rows import Program
from dlcb.runtime.structure import Builder, Structure, check_structure, leaf_count

_PLAIN = (type(None), bool, int, float, str)
_KINDS = ("parameters", "structure", "inputs", "result_structure", "outputs")
Item = TypeVar("Item")


@dataclass
class Interface:
    """`inputs`: for each leaf of the arguments `["argument"]` (a tensor or an integer that the program takes) or
    `["constant", name, value]`; `outputs`: for each leaf of the results `["result", i]`, `["ratio", i, divisor]` (a
    float) or `["constant", value]`.
    """

    parameters: list[str]
    """Names of the parameters, in order: keyword arguments are put where they belong."""
    structure: Structure
    inputs: list[list[Any]]
    result_structure: Structure
    outputs: list[list[Any]]

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {**vars(self), "inputs": list(map(_saved, self.inputs)), "outputs": list(map(_saved, self.outputs))}

    @classmethod
    def from_json(cls, data: Any, where: str) -> Interface:
        """What `to_json` gave; a `UserError` names the entry that is not like that."""
        match data:
            case {
                "parameters": parameters,
                "structure": structure,
                "inputs": inputs,
                "result_structure": results,
                "outputs": outputs,
            } if len(cast("dict[str, Any]", data)) == len(_KINDS):
                found = cls(
                    [_name(p, f"{where}: parameters") for p in _items(parameters, f"{where}: parameters")],
                    check_structure(structure, f"{where}: structure"),
                    [_input(row, f"{where}: inputs") for row in _items(inputs, f"{where}: inputs")],
                    check_structure(results, f"{where}: result_structure"),
                    [_output(row, f"{where}: outputs") for row in _items(outputs, f"{where}: outputs")],
                )
            case _:
                raise UserError(f"{where}: expected {', '.join(_KINDS)}, got {_short(data)}")
        found._check(where)
        return found

    def _check(self, where: str) -> None:
        """The parts are of one interface."""
        if len(set(self.parameters)) != len(self.parameters):
            raise UserError(f"{where}: parameters: a name stands twice in {self.parameters}")
        if self.structure[:1] != ["list"] or len(self.structure) != 1 + len(self.parameters):
            raise UserError(f"{where}: structure: expected a list of {len(self.parameters)} arguments, one a parameter")
        for name, structure, rows in (
            ("inputs", self.structure, self.inputs),
            ("outputs", self.result_structure, self.outputs),
        ):
            if leaf_count(structure) != len(rows):
                raise UserError(f"{where}: {name}: {len(rows)} rows, but the structure has {leaf_count(structure)}")

    def check_program(self, program: Program, where: str) -> None:
        """A `UserError` unless the program takes these arguments and gives these results."""
        wanted = sum(argument.kind != "weight" for argument in program.arguments)
        given = sum(row[0] == "argument" for row in self.inputs)
        if given != wanted:
            raise UserError(f"{where}: inputs: {given} arguments, but the program takes {wanted}")
        slots: list[int] = program.code[-1][1]
        for row in self.outputs:
            if row[0] != "constant" and row[1] >= len(slots):
                raise UserError(f"{where}: outputs: {row}, but the program has {len(slots)} results")
            if row[0] == "ratio" and program.kinds[slots[row[1]]] != "index":
                raise UserError(f"{where}: outputs: {row}, but that result is no integer")


def result_maker(output: list[Any]) -> Builder:
    """Makes one leaf of the results, as `Interface.outputs` describes it."""
    match output:
        case ["result", place]:
            return itemgetter(place)
        case ["ratio", place, divisor]:
            return lambda results: results[place] / divisor
        case _:
            return constant_maker(output[1])


def is_constant(value: Any, wanted: Any) -> bool:
    """Whether it is the very constant: -0.0 is not 0.0, and one NaN is another."""
    if isinstance(value, Tensor) or type(value) is not type(wanted):
        return False
    return value.hex() == wanted.hex() if isinstance(value, float) else value == wanted


def constant_maker(value: Any) -> Builder:
    return lambda _: value


def _saved(row: list[Any]) -> list[Any]:
    if row[0] != "constant" or isinstance(row[-1], _PLAIN):
        return row
    match row[-1]:
        case torch.dtype() as dtype:
            return [*row[:-1], {"dtype": str(dtype).removeprefix("torch.")}]
        case torch.device() as device:
            return [*row[:-1], {"device": str(device)}]
        case other:
            raise InternalError(f"an interface has the constant {other!r}")


def _constant(value: Any, where: str) -> Any:
    match value:
        case {"dtype": str(name), **rest} if not rest:
            found = getattr(torch, name, None)
            if isinstance(found, torch.dtype):
                return found
        case {"device": str(name), **rest} if not rest:
            try:
                return torch.device(name)
            except RuntimeError:
                pass
        case _ if isinstance(value, _PLAIN):
            return value
        case _:
            pass
    raise UserError(f"{where}: expected a constant, got {_short(value)}")


def _input(row: Any, where: str) -> list[Any]:
    match row:
        case ["argument"]:
            return ["argument"]
        case ["constant", str(name), value]:
            return ["constant", name, _constant(value, where)]
        case _:
            raise UserError(f"{where}: expected an argument or a constant with its name, got {_short(row)}")


def _output(row: Any, where: str) -> list[Any]:
    match row:
        case ["result", int(place)] if _is_place(place):
            return ["result", place]
        case ["ratio", int(place), int(divisor)] if _is_place(place) and type(divisor) is int and divisor:
            return ["ratio", place, divisor]
        case ["constant", value]:
            return ["constant", _constant(value, where)]
        case _:
            raise UserError(f"{where}: expected a result, a ratio or a constant, got {_short(row)}")


def _is_place(place: int) -> bool:
    return type(place) is int and place >= 0


def _items(value: Any, where: str) -> Sequence[Any]:
    if not isinstance(value, list):
        raise UserError(f"{where}: expected a list, got {_short(value)}")
    return cast("list[Any]", value)


def _name(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise UserError(f"{where}: expected a name, got {_short(value)}")
    return value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "…"
