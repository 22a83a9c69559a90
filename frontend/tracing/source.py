"""The user's source line that is running: the innermost frame that is neither torch's, Python's own nor the capture's.

Looked up once for each recorded op, so the verdict on a code object is remembered. In the code of a graph the line is
the one that the graph has for the op.
"""

from __future__ import annotations

import linecache
import os
import re
import sys
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

import torch

_TORCH = os.path.dirname(torch.__file__) + os.sep
_PYTHON = os.path.dirname(os.__file__) + os.sep
_CAPTURE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_SITE_PACKAGES = f"{os.sep}site-packages{os.sep}"

_GENERATED = "<eval_with_key>"
"""How the file names of the code of graphs begin."""
_FRAME = re.compile(r'File "([^"]*)", line (\d+)')

_file_names: dict[CodeType, str | None] = {}
_graph_lines: dict[CodeType, dict[int, str]] = {}


def _user_file(code: CodeType) -> str | None:
    """The base name of the file of a user's function; None for code that is not the user's."""
    path = code.co_filename
    if path.startswith((_TORCH, "<frozen")) or os.path.abspath(path).startswith(_CAPTURE):
        return None
    if path.startswith(_PYTHON) and _SITE_PACKAGES not in path:
        return None
    return os.path.basename(path)


def source_line() -> str:
    """`model.py:12`, or `?` where no frame is the user's."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        code = frame.f_code
        try:
            name = _file_names[code]
        except KeyError:
            name = _file_names[code] = _user_file(code)
        if name is not None:
            written = _graph_line(frame) if name.startswith(_GENERATED) else None
            return written or f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return "?"


def line_of(error: BaseException) -> str | None:
    """The innermost line of the user's that the error came through; None where there is none."""
    found: str | None = None
    trace = error.__traceback__
    while trace is not None:
        name = _user_file(trace.tb_frame.f_code)
        if name is not None:
            written = _graph_line(trace.tb_frame) if name.startswith(_GENERATED) else None
            found = written or f"{name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


def _graph_line(frame: FrameType) -> str | None:
    """The line of the user's that the running line of a graph's code was made from."""
    lines = _graph_lines.get(frame.f_code)
    if lines is None:
        module = frame.f_locals.get("self")
        found = _lines_of(module, frame.f_code) if isinstance(module, torch.fx.GraphModule) else ()
        lines = _graph_lines[frame.f_code] = dict(found)
    return lines.get(frame.f_lineno)


def _lines_of(module: torch.fx.GraphModule, code: CodeType) -> Iterator[tuple[int, str]]:
    nodes = {node.name: node for node in module.graph.nodes}
    for number, text in enumerate(linecache.getlines(code.co_filename), 1):
        node = nodes.get(re.split(r"[\s:=]", text.strip(), maxsplit=1)[0])
        line = None if node is None else node_line(node)
        if line is not None:
            yield number, line


def node_line(node: torch.fx.Node) -> str | None:
    """The innermost line outside torch from which the node was made."""
    frames: list[Any] = _FRAME.findall(str(node.meta.get("stack_trace") or ""))
    frames = [f for f in frames if not f[0].startswith(_TORCH)] or frames
    return f"{os.path.basename(frames[-1][0])}:{frames[-1][1]}" if frames else None
