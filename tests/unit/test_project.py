"""The project around the code: what is packaged, what is imported, and under which name."""

import ast
import json
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def tracked_files(pattern: str) -> list[str]:
    """Paths of the checkout's files, as git knows them; the test is skipped where the files came without git."""
    command = ["git", "-C", str(ROOT), "ls-files", "--", pattern]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip("no git checkout")
    return done.stdout.splitlines()


def python(code: str) -> str:
    """What a fresh interpreter prints, with the package importable as `dlcb`."""
    path = f"import sys; sys.path.insert(0, {str(ROOT / '.typecheck')!r})\n"
    done = subprocess.run([sys.executable, "-P", "-c", path + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_package_of_the_checkout_is_listed() -> None:
    folders = [Path(file).parent.parts for file in tracked_files("*__init__.py")]
    assert PYPROJECT["tool"]["setuptools"]["packages"] == sorted(".".join(["dlcb", *parts]) for parts in folders)


def test_every_file_that_the_compiler_reads_is_listed_as_data() -> None:
    """Results and scripts of benchmarks are not read by it."""
    packages: list[str] = PYPROJECT["tool"]["setuptools"]["packages"]
    tops = {package.split(".")[1] for package in packages if package != "dlcb"} - {"benchmarks"}
    inside = {file for file in map(Path, tracked_files("*/*")) if file.parts[0] in tops and file.suffix != ".py"}
    data: dict[str, list[str]] = PYPROJECT["tool"]["setuptools"]["package-data"]
    listed = {f for package, globs in data.items() for glob in globs for f in package_folder(package).glob(glob)}
    assert {ROOT / file for file in inside} == listed


def test_no_test_folder_is_a_package() -> None:
    assert not [path for folder in ("tests", "filecheck_tests") for path in (ROOT / folder).rglob("__init__.py")]


def test_the_link_names_the_root() -> None:
    assert (ROOT / ".typecheck" / "dlcb").resolve() == ROOT


def test_no_module_of_the_checkout_is_loaded_under_a_foreign_name() -> None:
    code = """
import importlib, json, pkgutil
import dlcb
for info in pkgutil.walk_packages(dlcb.__path__, "dlcb."):
    if not info.name.startswith(("dlcb.tests.", "dlcb.filecheck_tests.", "dlcb.benchmarks.", "dlcb.examples.")):
        importlib.import_module(info.name)
print(json.dumps({name: module.__file__ for name, module in sys.modules.items() if getattr(module, "__file__", None)}))
"""
    loaded: dict[str, str] = json.loads(python(code).splitlines()[-1])
    ours = {name for name, file in loaded.items() if is_source(Path(file))}
    assert "dlcb.tools.dlcb_opt" in ours
    assert not [name for name in ours if name != "dlcb" and not name.startswith("dlcb.")]


def test_nor_is_one_in_the_process_of_the_tests() -> None:
    files = {name: getattr(module, "__file__", None) for name, module in list(sys.modules.items())}
    foreign = [
        name for name, file in files.items() if file and is_source(Path(file)) and name.partition(".")[0] != "dlcb"
    ]
    assert not foreign


def is_source(file: Path) -> bool:
    """Whether the file is a module of the package: in the checkout, and not of the environment or the tests."""
    resolved = file.resolve()
    if not file.is_absolute() or not resolved.is_relative_to(ROOT):
        return False
    top = resolved.relative_to(ROOT).parts[0]
    return not top.startswith(".") and top not in ("tests", "filecheck_tests", "benchmarks", "examples")


def torch_names(file: Path) -> Iterator[str]:
    """Every dotted name under `torch` that the file imports or spells out."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            found = [ast.unparse(node)] if isinstance(node, ast.Attribute) else []
        yield from (name for name in found if name.startswith("torch."))


def users_of_torch(parts: Callable[[str], bool]) -> dict[str, set[str]]:
    """File of the package → the names under torch it uses, one of whose parts is meant."""
    used = {path.relative_to(ROOT).as_posix(): set(torch_names(path)) for path in source_files()}
    meant = {file: {name for name in names if any(map(parts, name.split(".")[1:]))} for file, names in used.items()}
    return {file: names for file, names in meant.items() if names}


def source_files() -> list[Path]:
    packages: list[str] = PYPROJECT["tool"]["setuptools"]["packages"]
    return [path for package in packages for path in package_folder(package).glob("*.py")]


def package_folder(package: str) -> Path:
    return ROOT.joinpath(*package.split(".")[1:])


def test_only_the_frontend_uses_torch_fx_and_export() -> None:
    users = users_of_torch({"fx", "export"}.__contains__)
    assert not {file: names for file, names in users.items() if not file.startswith("frontend/")}


PRIVATE = {"frontend/torch_private.py", "runtime/torch_private.py", "benchmarks/inductor.py"}
"""One file of the compiler, and one of the runtime, which stands alone; it has a public way beside each private one.
And one of the benchmarks, which sets up what torch.compile has no public switch for."""


def test_one_file_uses_private_parts_of_torch() -> None:
    users = users_of_torch(lambda part: part.startswith("_") and not part.startswith("__"))
    assert not {file: names for file, names in users.items() if file not in PRIVATE}


@pytest.mark.parametrize("module", ["dlcb", "dlcb.tools.dlcb_opt", "dlcb.dialects.umbrella", "dlcb.passes.rewriter"])
def test_the_compiler_starts_without_torch(module: str) -> None:
    assert python(f"import {module}; print('torch' in sys.modules)") == "False\n"


def test_stock_xdsl_opt_knows_the_dialect_the_passes_and_the_target() -> None:
    try:
        distribution("dlcb")
    except PackageNotFoundError:
        pytest.skip("the package is not installed, so its entry points are not there")
    command = [sys.executable, "-P", "-m", "xdsl.tools.xdsl_opt", "--help"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "dlcb-fuse" in text
    assert "cuda-c" in text
