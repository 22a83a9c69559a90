"""How the tools tell of an error: one message that names the place, and the exit status that goes with it."""

from __future__ import annotations

import difflib
import os
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from xdsl.utils.exceptions import DiagnosticException, ParseError
from xdsl.utils.lexer import Span

from dlcb.dialects._xdsl import op_text
from dlcb.errors import InternalError, UnsupportedError, UserError
from dlcb.passes.checks import OpVerifyException

_CONTEXT: Final = 160
"""How many characters of a line an error shows."""


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"unknown {kind} '{name}'" + (f"; did you mean '{close[0]}'?" if close else "")


def at_span(span: Span[str] | Span[bytes], message: str) -> str:
    """`FILE:LINE:COL: error: …`, the line (of a long one, what surrounds the place), and carets under the place."""
    place, line, carets, *_ = [*span.print_with_context().split("\n"), ""]
    first = max(0, carets.index("^") - _CONTEXT // 2) if len(line) > _CONTEXT else 0
    shown = slice(first, first + _CONTEXT)
    return "\n".join([f"{place}: error: {message}", line[shown], carets[shown]])


def describe(error: BaseException, tool: str) -> tuple[str, int]:
    """The one message of an error, and the exit status: 1 for the input, 2 for bugs of ours."""
    match error:
        case ParseError():
            return at_span(error.span, error.msg), 1
        case OpVerifyException():
            return f"{tool}: error: {error}\n  {op_text(error.op)}", 1
        case OSError():
            return f"{tool}: error: {error.filename}: {error.strerror}", 1
        case UnicodeDecodeError():
            byte = error.object[error.start]
            return f"{tool}: error: the input is not UTF-8 text: byte {error.start} is {byte:#04x}", 1
        case RecursionError():
            return f"{tool}: error: the input is nested too deeply", 1
        case UserError() | UnsupportedError() | DiagnosticException():
            return f"{tool}: error: {error}", 1
        case InternalError():
            return f"{tool}: internal error: {error}", 2
        case Exception():
            return _internal_error(error, tool), 2
        case _:
            raise error


def _internal_error(error: Exception, tool: str) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    text = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    return f"{tool}: internal error: {text} (at {Path(frame.filename).name}:{frame.lineno}; --traceback shows more)"


def guarded(tool: str, run: Callable[[], int], show_traceback: Callable[[], bool]) -> int:
    """The status of `run`; an error of it is told in one message. A closed output is no error to tell of."""
    try:
        return run()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if show_traceback():
            traceback.print_exception(error)
        sys.stdout.flush()
        text, status = describe(error, tool)
        print(text, file=sys.stderr)
        return status
