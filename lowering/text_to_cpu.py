"""Text of kernels to a shared object of this machine, by its C++ compiler: the `cpu` target.

Each kernel NAME has a symbol `extern "C" int launch_NAME(void **args, long long blocks, int order_seed)`. `args[i]`
points to the value of the i-th parameter (an address or a number of its C type). The launch returns 0, or 1 where a
check failed; `const long long *dlcb_failure()` then has 1 + the check's number, the value and the size. Order seed 0
runs blocks and threads as they are numbered, 1 backwards, more in shuffled orders; with a seed, what a block has not
written is poison, and so is what threads exchange without a barrier.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from dlcb.errors import InternalError, MachineError
from dlcb.lowering.cuda_to_text import cpu_unit
from dlcb.lowering.disk_cache import DiskCache, cache_key

_COMPILERS = ("c++", "g++", "clang++")
_OPTIONS = "-std=c++17 -fno-fast-math -ffp-contract=off -fwrapv -fno-strict-aliasing -fPIC -shared -w -x c++".split()
OPTIMIZATION = "DLCB_CPU_OPTIMIZATION"
"""The environment variable with the level of the compiler's optimization. 0 compiles more than three times as fast as
1, the default, and runs slower."""


def compile_cpu(text: str) -> Path:
    """Compile the text of kernels (`cuda_to_text.kernels_to_text`), once a machine; the path of the shared object."""
    unit = cpu_unit(text)
    compiler = find_compiler()
    disk = DiskCache("cpu", ".so")
    options = [*_OPTIONS, f"-O{os.environ.get(OPTIMIZATION, '1')}"]
    key = cache_key(unit, compiler, _version(compiler), *options)
    if disk.get(key) is None:
        disk.put(key, _compile(unit, compiler, options))
    return disk.path(key)


def find_compiler() -> str:
    """`$CXX`, else the first of c++, g++ and clang++; a MachineError says how to get one."""
    asked = os.environ.get("CXX")
    for name in (asked,) if asked else _COMPILERS:
        found = shutil.which(name)
        if found is not None:
            return found
    what = f"$CXX is {asked}, which is not there" if asked else f"none of {', '.join(_COMPILERS)} is there"
    raise MachineError(
        f"the cpu target needs a C++17 compiler, but {what}; install one (`apt-get install g++`), or set CXX to one"
    )


@cache
def _version(compiler: str) -> str:
    return subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False).stdout


def _compile(unit: str, compiler: str, options: Sequence[str]) -> bytes:
    with tempfile.TemporaryDirectory(prefix="dlcb-") as folder:
        target = Path(folder) / "kernels.so"
        command = [compiler, *options, "-", "-o", str(target)]
        done = subprocess.run(command, input=unit, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise InternalError(f"{' '.join(command)} refuses the kernels:\n{done.stderr.strip()}")
        return target.read_bytes()
