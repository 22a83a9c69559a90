"""The target `cuda-c`: one translation unit, as NVRTC takes it, of a module whose kernels are at the cuda level."""

from dataclasses import dataclass
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.target import Target

from dlcb.errors import UserError
from dlcb.lowering.cuda_to_text import cuda_unit, module_to_text
from dlcb.passes.legality import family_of


@dataclass(frozen=True)
class CudaC(Target):
    name = "cuda-c"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        families = {family_of(op) for op in module.walk()}
        if families & {"tensor", "kernel", "coord"}:
            raise UserError(
                "target cuda-c prints kernels of the cuda level; add `--pipeline default` or `--stop-after cuda`"
            )
        output.write(cuda_unit(module_to_text(module)))
