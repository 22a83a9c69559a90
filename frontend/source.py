"""The user's source line that is running: the innermost frame that is neither torch's, Python's own nor the capture's.

Looked up once for each recorded op, so the verdict on a code object is remembered.
"""

from __future__ import annotations

import os
import sys
from types import CodeType

import torch

_TORCH = os.path.dirname(torch.__file__) + os.sep
_PYTHON = os.path.dirname(os.__file__) + os.sep
_CAPTURE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_SITE_PACKAGES = f"{os.sep}site-packages{os.sep}"

_file_names: dict[CodeType, str | None] = {}


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
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return "?"
