"""`python -P -m dlcb.lowering.worker`: compiles one module for given sizes, in a process of its own.

Standard input is one JSON object: `{"ir": the module's text, "name": for errors, "sizes": {"x_0": 16}, "target": "cuda"
or "cpu", "arch": "sm_90", "folder": where a cubin is put}`. Standard output is one line of JSON and nothing else:
`{"programs": as `Lowered` has them, "kernels": their text, "binary": the path of the cubin or the shared library,
"seconds": {"parse": …, "lower": …, "binary": …}}`, or `{"error": text, "kind": "UserError"}` and exit status 1.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import DiagnosticException, ParseError

from dlcb.errors import DlcbError, InternalError, UnsupportedError, UserError
from dlcb.lowering.lower import Lowered, context, lower
from dlcb.lowering.text_to_cpu import compile_cpu
from dlcb.lowering.text_to_cubin import compile_cubin
from dlcb.passes.checks import check_module
from dlcb.passes.specialize import specialize

CUBIN = "kernels.cubin"
"""The name of the file in the request's folder."""
RECURSION_LIMIT = 10_000
"""Deep enough for deeply nested IR."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be compiled."""

    ir: str
    name: str
    sizes: Mapping[str, int]
    target: str
    folder: str
    arch: str = ""
    """For cuda alone."""

    def to_json(self) -> str:
        return json.dumps({name: getattr(self, name) for name in self.__slots__})

    @classmethod
    def from_json(cls, text: str) -> Request:
        match json.loads(text):
            case {"ir": str(), "name": str(), "sizes": dict(), "target": "cuda" | "cpu", "folder": str()} as fields if (
                fields.keys() <= set(cls.__slots__)
            ):
                return cls(**fields)
            case _:
                raise InternalError("the request of a specialization has other fields than it must have")


def compile_request(request: Request) -> dict[str, Any]:
    """The answer to a request; raises what the compiler raises."""
    clock = _Clock()
    module = _parse(request)
    specialize(module, request.sizes)
    clock.note("parse")
    lowered = lower(module)
    clock.note("lower")
    binary = _binary(lowered, request)
    clock.note("binary")
    programs = {n: {**p, "name": request.name} if n == "main" else p for n, p in lowered.programs.items()}
    return {"programs": programs, "kernels": lowered.kernels, "binary": str(binary), "seconds": clock.seconds}


class _Clock:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def note(self, part: str) -> None:
        """What passed since the last note was for this part."""
        last, self._last = self._last, time.perf_counter()
        self.seconds[part] = self._last - last


def _parse(request: Request) -> ModuleOp:
    try:
        module = Parser(context(), request.ir, request.name).parse_module()
        check_module(module)
    except (ParseError, DiagnosticException) as error:
        raise UserError(f"{request.name}: no valid IR: {str(error).splitlines()[0]}") from error
    return module


def _binary(lowered: Lowered, request: Request) -> Path:
    if request.target == "cpu":
        return compile_cpu(lowered.kernels)
    path = Path(request.folder) / CUBIN
    path.write_bytes(compile_cubin(lowered.kernels, request.arch).data)
    return path


def answer(text: str) -> tuple[dict[str, Any], int]:
    """The answer to a request as JSON, and the exit status. Any error is an answer: who asked goes on without."""
    try:
        return compile_request(Request.from_json(text)), 0
    except DlcbError as error:
        return {"error": str(error), "kind": _kind(error)}, 1
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}", "kind": InternalError.__name__}, 1


def _kind(error: DlcbError) -> str:
    """Which of the three classes the error is of."""
    return next(kind.__name__ for kind in (UserError, UnsupportedError, InternalError) if isinstance(error, kind))


def main() -> int:
    """Whatever else writes to standard output, a compiler that is run or a `print`, writes to standard error."""
    gc.disable()
    sys.setrecursionlimit(RECURSION_LIMIT)
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as output:
        os.dup2(2, 1)
        found, status = answer(sys.stdin.read())
        output.write(json.dumps(found) + "\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
