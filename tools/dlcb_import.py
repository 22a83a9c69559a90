"""`dlcb-import`: an exported program becomes textual IR, and its weights a safetensors file beside it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from dlcb.dialects._xdsl import to_text
from dlcb.dialects.stored import StoredWeights, relative, set_stored_weights
from dlcb.errors import UserError
from dlcb.frontend.exported_program import import_exported, load_exported
from dlcb.frontend.weight_store import save_weights
from dlcb.tools.messages import guarded

_NAME: Final = "dlcb-import"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(_NAME, description="Write an exported program as IR of the level dlcb.graph.")
    parser.add_argument("file", metavar="MODEL.pt2", type=Path, help="what torch.export.save wrote")
    parser.add_argument("-o", "--output", metavar="OUT.mlir", type=Path, help="the IR; else it is printed")
    parser.add_argument(
        "--weights",
        metavar="FILE.safetensors",
        type=Path,
        help="weights and constants; by default beside the IR, or here, if it is printed",
    )
    parser.add_argument("--static", action="store_true", help="keep all sizes as they are in the example inputs")
    parser.add_argument("--traceback", action="store_true", help="show where in DLCB an error was raised")
    return parser


def _run(args: argparse.Namespace) -> int:
    output: Path | None = args.output
    home = Path.cwd() if output is None else output.absolute().parent
    if not home.is_dir():
        raise UserError(f"-o {output}: there is no folder {home}")
    imported = import_exported(load_exported(args.file), dynamic=False if args.static else "auto")
    if imported.weights:
        file: Path = args.weights or home / f"{(output or args.file).stem}.safetensors"
        if not file.absolute().parent.is_dir():
            raise UserError(f"--weights {file}: there is no folder {file.absolute().parent}")
        keys = save_weights(imported.weights, file)
        set_stored_weights(imported.module, StoredWeights(relative(file.absolute(), home), keys))
    text = to_text(imported.module)
    if output is None:
        sys.stdout.write(text)
    else:
        output.write_text(text, encoding="utf-8")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the tool; returns the exit status: 0, 1 (wrong input) or 2 (a wrong command line, or a bug of ours)."""
    args = _parser().parse_args(argv)
    return guarded(_NAME, lambda: _run(args), lambda: args.traceback)


if __name__ == "__main__":
    sys.exit(main())
