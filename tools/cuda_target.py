"""The target `cuda-c`: the CUDA text of a module whose kernels are at the cuda level."""

from dataclasses import dataclass
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.target import Target

from dlcb.errors import UserError
from dlcb.lowering.cuda_to_text import print_module
from dlcb.passes.stages import family_of


@dataclass(frozen=True)
class CudaC(Target):
    name = "cuda-c"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        families = {family_of(op) for op in module.walk()}
        if "coord" in families or families & {"tensor", "kernel"}:
            raise UserError("target cuda-c prints kernels of the cuda level; add `--pipeline default` or `--stop-after cuda`")
        output.write(print_module(module))
