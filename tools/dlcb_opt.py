"""`dlcb-opt`: textual IR in, passes, textual IR or CUDA C out; xDSL's own driver with DLCB's stages and error texts."""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, Final

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass, PassPipeline
from xdsl.utils.arg_spec import parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError
from xdsl.utils.lexer import Span
from xdsl.xdsl_opt_main import xDSLOptMain

from dlcb.dialects._xdsl import SpanParser, to_text
from dlcb.dialects.stored import move
from dlcb.errors import UserError
from dlcb.lowering.pipeline import STAGES, check_after, position, remaining
from dlcb.passes.checks import OpVerifyException, check_module
from dlcb.passes.rule_trace import Firing, tracing
from dlcb.passes.stages import Stage
from dlcb.tools.messages import at_span, describe, unknown
from dlcb.tools.registry import full_universe

if TYPE_CHECKING:
    from dlcb.lowering.dump import DumpFolder
    from dlcb.tools.validation import Validator

_NAME: Final = "dlcb-opt"
_STAGE_OF_PASS: Final[dict[str, Stage]] = {stage.pass_name: stage for stage in STAGES}


def _short_name(module_pass: ModulePass) -> str:
    """A stage's pass goes by the stage's name, any other pass by its own."""
    stage = _STAGE_OF_PASS.get(module_pass.name)
    return stage.name if stage else module_pass.name


def _dump_folder(path: str, home: Path) -> DumpFolder:
    from dlcb.lowering.dump import DumpFolder

    return DumpFolder(path, home)


def _validator() -> Validator:
    from dlcb.tools.validation import Validator

    return Validator()


class PassWatcher:
    """Checks, prints, dumps, times and evaluates the module around each pass, as the arguments ask."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self._wanted: set[str] = set(args.print_ir_after)
        self._dump = _dump_folder(args.dump_dir, _folder(args.output_file)) if args.dump_dir else None
        self._validator = _validator() if args.validate else None
        self._text = ""
        self.seconds: list[tuple[str, float]] = []

    def begin(self, module: ModuleOp) -> None:
        if not self._args.disable_verify:
            check_module(module)
        if self._dump is not None:
            self._dump.write("input", module)
        if "changed" in self._wanted:
            self._text = to_text(module, locations=False)
        if self._validator is not None:
            self._validator.begin(module)

    def run(self, module_pass: ModulePass, ctx: Context, module: ModuleOp) -> None:
        if self.seconds and self._args.print_between_passes:
            print(f"IR after {self.seconds[-1][0]}:\n{to_text(module, locations=False)}\n\n")
        began = time.perf_counter()
        module_pass.apply(ctx, module)
        elapsed = time.perf_counter() - began
        self.seconds.append((_short_name(module_pass), elapsed))
        if self._args.time_passes:
            print(f"Pass {module_pass.name} took {elapsed} seconds")
        self._check(module_pass, module)
        self._show(_short_name(module_pass), module)
        if self._validator is not None:
            self._validator.check(_short_name(module_pass), module)

    def _check(self, module_pass: ModulePass, module: ModuleOp) -> None:
        stage = _STAGE_OF_PASS.get(module_pass.name)
        if self._args.disable_verify:
            return
        try:
            if stage is None:
                check_module(module)
            else:
                check_after(stage, module)
        except OpVerifyException as error:
            error.add_note(f"found after pass {module_pass.name}")
            raise

    def _show(self, name: str, module: ModuleOp) -> None:
        if self._dump is not None:
            self._dump.write(name, module)
        if "changed" in self._wanted:
            text = to_text(module, locations=False)
            if text != self._text:
                _print_ir(name, text)
            self._text = text
        elif self._wanted & {name, f"dlcb-{name}", "all"}:
            _print_ir(name, to_text(module, locations=False))

    def end(self) -> None:
        if self._args.timing:
            self._print_timing()
        if self._validator is not None:
            print(f"validate: {self._validator.summary()}", file=sys.stderr)

    def _print_timing(self) -> None:
        width = max((len(name) for name, _ in self.seconds), default=0)
        for name, seconds in self.seconds:
            print(f"{name:<{width}} {seconds * 1000:10.3f} ms", file=sys.stderr)
        print(f"{'total':<{width}} {sum(s for _, s in self.seconds) * 1000:10.3f} ms", file=sys.stderr)


def _print_ir(name: str, text: str) -> None:
    print(f"// -----// IR after {name} //----- //\n{text}", file=sys.stderr)


def _print_firing(firing: Firing) -> None:
    print(firing, file=sys.stderr)


def _list_stages() -> None:
    for number, stage in enumerate(STAGES, 1):
        print(f"{number:2} {stage.name:<12} {stage.text}")


def _list_rules() -> None:
    from dlcb.passes.rule import all_rules, summary
    from dlcb.passes.solver.law import LEVELS, laws

    for rule in [*(rule for level in LEVELS for rule in laws(level)), *all_rules()]:
        print(f"{rule.level:<10} {rule.name:<24} {summary(type(rule))}")


def _report_dimensions(module: ModuleOp) -> None:
    from dlcb.passes.functions import functions
    from dlcb.passes.solve import dimensions_of

    for func in functions(module):
        found = dimensions_of(func)
        if not found:
            continue
        print(f"@{func.symbol}", file=sys.stderr)
        width = max(len(f"{d.argument}.shape[{d.dim}]") for d in found)
        for dimension in found:
            print(f"  {f'{dimension.argument}.shape[{dimension.dim}]':<{width}}  {dimension.state}", file=sys.stderr)


_REPORTS: Final[dict[str, Callable[[ModuleOp], None]]] = {"dimensions": _report_dimensions}


class _PrintAndEnd(argparse.Action):
    """An option that prints what `const` prints and ends the tool, as `--help` does."""

    def __init__(self, option_strings: Sequence[str], dest: str, const: Callable[[], None], help: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help=help)
        self._print = const

    def __call__(self, parser: argparse.ArgumentParser, *args: Any, **kwargs: Any) -> None:
        self._print()
        parser.exit()


class DlcbOptMain(xDSLOptMain):
    version_format: ClassVar[str] = "dlcb-opt built from xdsl version {xdsl_version}"

    _parser: SpanParser | None = None
    _line_offset = 0
    watcher: PassWatcher

    def __init__(self, args: Sequence[str] | None = None) -> None:
        super().__init__("DLCB's optimizer driver", args)

    def register_all_dialects(self) -> None:
        for name, factory in full_universe().all_dialects.items():
            self.ctx.register_dialect(name, factory)

    def register_all_passes(self) -> None:
        self.available_passes.update(full_universe().all_passes)

    def register_all_targets(self) -> None:
        self.available_targets.update(full_universe().all_targets)

    def register_all_frontends(self) -> None:
        self.available_frontends["mlir"] = self._parse

    def _parse(self, stream: IO[bytes]) -> ModuleOp:
        name = "<stdin>" if self.args.input_file in (None, "-") else self.args.input_file
        self._parser = SpanParser(self.ctx, stream.read(), name)
        module = self._parser.parse_module(not self.args.no_implicit_module)
        move(module, _folder(self.args.input_file), _folder(self.args.output_file))
        return module

    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        arg_parser.prog = _NAME
        arg_parser.usage = "dlcb-opt [FILE|-] [options]; --help lists them"
        super().register_all_arguments(arg_parser)
        group = arg_parser.add_argument_group("stages of DLCB")
        group.add_argument(
            "--pipeline", choices=["default"], help="after -p, run the stages from where the module stands"
        )
        group.add_argument("--stop-after", metavar="STAGE", help="run the stages up to this one; implies --pipeline")
        group.add_argument(
            "--list-stages", action=_PrintAndEnd, const=_list_stages, help="print the stages in order and end"
        )
        group.add_argument(
            "--list-rules", action=_PrintAndEnd, const=_list_rules, help="print the rewrite rules by level and end"
        )
        group.add_argument(
            "--print-ir-after",
            metavar="STAGE|PASS|all|changed",
            action="append",
            default=[],
            help="print the IR to the error stream after a stage or pass, after all, or after those that change it",
        )
        group.add_argument("--dump-dir", metavar="DIR", help="write the IR after every pass to files in this folder")
        group.add_argument(
            "--timing", action="store_true", help="print the milliseconds of each pass to the error stream"
        )
        group.add_argument(
            "--validate",
            action="store_true",
            help="evaluate on small random inputs before and after each pass; name the first that changes a result",
        )
        group.add_argument(
            "--report",
            choices=list(_REPORTS),
            action="append",
            default=[],
            help="print to the error stream what became of each size of each input; runs the stages up to 'solve'",
        )
        group.add_argument(
            "--trace-rules",
            action="store_true",
            help="print to the error stream which rewrite rule made what of what, and for which op or source line",
        )
        group.add_argument("--traceback", action="store_true", help="show where in DLCB an error was raised")

    def setup_pipeline(self) -> None:
        if self.args.stop_after is not None:
            position(self.args.stop_after)
        names = {stage.name for stage in STAGES} | self.available_passes.keys()
        for name in self.args.print_ir_after:
            if name not in names and name not in ("all", "changed"):
                raise UserError(unknown("stage or pass", name, names))
        self.watcher = PassWatcher(self.args)
        for spec in parse_pipeline(self.args.passes):
            if spec.name not in self.available_passes:
                raise UserError(unknown("pass", spec.name, self.available_passes))
        try:
            self.pipeline = PassPipeline.parse_spec(self.available_passes, self.args.passes)
        except ValueError as error:
            raise UserError(f"-p {self.args.passes}: {error}") from error

    def get_input_stream(self) -> tuple[IO[bytes], str]:
        name = self.args.input_file
        if name == "-":
            return sys.stdin.buffer, "mlir"
        stream, extension = super().get_input_stream()
        if (self.args.frontend or extension) not in self.available_frontends:
            stream.close()
            raise UserError(
                f"{name}: '.{extension}' is no kind of input; known are {', '.join(self.available_frontends)}"
            )
        return stream, extension

    def parse_chunk(self, chunk: IO[bytes], file_extension: str, start_offset: int = 0) -> ModuleOp | None:
        self._line_offset = start_offset
        return super().parse_chunk(chunk, file_extension, start_offset)

    def apply_passes(self, prog: ModuleOp) -> None:
        with tracing(_print_firing) if self.args.trace_rules else nullcontext():
            self._apply_passes(prog)

    def _apply_passes(self, prog: ModuleOp) -> None:
        self.watcher.begin(prog)
        for module_pass in self._passes(prog):
            self.watcher.run(module_pass, self.ctx, prog)
        self.watcher.end()
        for name in dict.fromkeys(self.args.report):
            _REPORTS[name](prog)

    def _passes(self, module: ModuleOp) -> Iterator[ModulePass]:
        """The passes of -p, then the stages that remain when these have run."""
        yield from self.pipeline.passes
        until = self.args.stop_after
        if self.args.report and self.args.pipeline is None and until is None:
            until = "solve"
        if self.args.pipeline is not None or until is not None:
            for stage in remaining(module, until):
                yield stage.load()()

    def span_of(self, op: Operation) -> Span | None:
        """Where the op stands in the input; None for an op that a pass made."""
        span = self._parser.span_of(op) if self._parser else None
        return span and replace(span, line_offset=self._line_offset)


def _folder(file: str | None) -> Path:
    """Where the text of a module is, or will be: where the tool runs, for a stream."""
    return Path.cwd() if file in (None, "-") else Path(file).absolute().parent


def _op_error(error: OpVerifyException, tool: DlcbOptMain) -> str:
    span = tool.span_of(error.op)
    text = at_span(span, str(error)) if span else describe(error, _NAME)[0]
    return "\n".join([text, *(note for note in error.__notes__)]) if hasattr(error, "__notes__") else text


def _describe(error: BaseException, tool: DlcbOptMain | None) -> tuple[str, int]:
    """The one message of an error, and the exit status."""
    match error:
        case OpVerifyException() if tool is not None:
            return _op_error(error, tool), 1
        case ArgSpecParseError():
            return f"{_NAME}: error: -p: {error}".rstrip(), 2
        case _:
            return describe(error, _NAME)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the tool; returns the exit status: 0, 1 (wrong input) or 2 (a wrong command line, or a bug of ours)."""
    tool = None
    try:
        tool = DlcbOptMain(argv)
        tool.run()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (Exception, ArgSpecParseError) as error:
        if tool is not None and tool.args.traceback:
            traceback.print_exception(error)
        sys.stdout.flush()
        text, status = _describe(error, tool)
        print(text, file=sys.stderr)
        return status
    return 0


def script() -> int:
    """The console script: `main`, in a process of its own, set up for large and deeply nested IR."""
    gc.set_threshold(200_000, 50, 50)
    sys.setrecursionlimit(10_000)
    return main()


if __name__ == "__main__":
    sys.exit(script())
