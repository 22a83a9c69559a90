# ruff: noqa: F821
# pyright: reportUndefinedVariable=false
"""lit's configuration: the tests run the checkout's own `dlcb-opt`, installed or not."""

import os
import sys
from pathlib import Path

import lit.formats

root = Path(__file__).parent.parent

config.name = "dlcb"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.test_source_root = str(root / "filecheck_tests")
config.test_exec_root = str(root / "build" / "filecheck_tests")
config.environment["PYTHONPATH"] = os.pathsep.join([str(root / ".typecheck"), os.environ.get("PYTHONPATH", "")])
for tool, module in {"dlcb-opt": "dlcb.tools.dlcb_opt", "filecheck": "filecheck"}.items():
    config.substitutions.append((rf"(?<![\w/.-]){tool}(?![\w/.-])", f"{sys.executable} -P -m {module}"))
