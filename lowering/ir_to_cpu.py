"""The kernels of a module's printed IR → a shared library: what loads an artifact for the CPU target.

A file from elsewhere says what its kernels compute as IR; the text that runs on the host is printed anew from it, so
that no C of a stranger's is compiled.
"""

from __future__ import annotations

from pathlib import Path

from xdsl.parser import Parser
from xdsl.utils.exceptions import DiagnosticException, ParseError

from dlcb.errors import UserError
from dlcb.lowering.cuda_to_text import module_to_text
from dlcb.lowering.lower import context
from dlcb.lowering.text_to_cpu import compile_cpu
from dlcb.passes.checks import check_module


def compile_ir(ir: str, name: str) -> Path:
    """Parse, verify, print and compile; a `UserError` for what is no module of kernels."""
    try:
        module = Parser(context(), ir, name).parse_module()
        check_module(module)
    except (ParseError, DiagnosticException) as error:
        raise UserError(f"{name}: the kernels are no valid IR: {str(error).splitlines()[0]}") from error
    return compile_cpu(module_to_text(module))
