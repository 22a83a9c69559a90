"""The files of `filecheck_tests/` in this process: 20 ms each instead of 650. lit runs the same lines as the contract.

A RUN line runs here when it is a pipe of `dlcb-opt` and `filecheck`; the others are left to lit.
"""

import io
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import parse_argv_options
from filecheck.parser import Parser

from dlcb.tools.dlcb_opt import main as dlcb_opt

ROOT = Path(__file__).parents[2] / "filecheck_tests"
RUN_LINE = re.compile(r"^\s*//\s*RUN:\s*(.*)$", re.MULTILINE)
BEYOND_PIPES = re.compile(r"&&|;|<|(?<!2)>(?!&1)|--disable-verify|%t")


@dataclass(frozen=True)
class Command:
    program: str
    arguments: tuple[str, ...]
    fails: bool
    """It must end with a status other than 0."""
    joins_errors: bool
    """Its error stream goes into the pipe too."""


def run_lines(path: Path) -> Iterator[str]:
    lines = "\n".join(RUN_LINE.findall(path.read_text(encoding="utf-8")))
    yield from lines.replace("\\\n", " ").splitlines()


def to_commands(line: str, path: Path) -> list[Command] | None:
    """The commands of a pipe; None where the line needs a shell."""
    if BEYOND_PIPES.search(line):
        return None
    commands = [to_command(part, path) for part in line.split(" | ")]
    return commands if all(command.program in ("dlcb-opt", "filecheck") for command in commands) else None


def to_command(text: str, path: Path) -> Command:
    words = shlex.split(text.replace("%s", shlex.quote(str(path))).replace("%S", shlex.quote(str(path.parent))))
    fails = words[0] == "not"
    joins = "2>&1" in words
    rest = [word for word in words[fails:] if word != "2>&1"]
    return Command(rest[0], tuple(rest[1:]), fails, joins)


class Standard(io.TextIOWrapper):
    """A text stream over bytes in memory, as `sys.stdin` is."""

    def __init__(self, text: str) -> None:
        super().__init__(io.BytesIO(text.encode()), encoding="utf-8")


def run_dlcb_opt(command: Command, text: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    out = io.StringIO()
    errors = out if command.joins_errors else io.StringIO()
    monkeypatch.setattr(sys, "stdin", Standard(text))
    with redirect_stdout(out), redirect_stderr(errors):
        try:
            status = dlcb_opt(command.arguments)
        except SystemExit as end:
            status = end.code
    assert (status != 0) == command.fails, f"exit status {status}\n{out.getvalue()}\n{errors.getvalue()}"
    return out.getvalue(), errors.getvalue()


def run_filecheck(command: Command, text: str) -> tuple[str, str]:
    options = parse_argv_options(["filecheck", *command.arguments])
    errors = io.StringIO()
    with redirect_stderr(errors):
        status = Matcher(options, FInput(options.match_filename, text), Parser.from_opts(options)).run()
    assert status == 0, f"{errors.getvalue()}\n{text}"
    return "", ""


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.mlir")), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_run_lines_hold(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipes = [commands for line in run_lines(path) if (commands := to_commands(line, path))]
    if not pipes:
        pytest.skip("needs a shell; lit runs it")
    for commands in pipes:
        text = ""
        for command in commands:
            if command.program == "filecheck":
                run_filecheck(command, text)
            else:
                text, _ = run_dlcb_opt(command, text, monkeypatch)
