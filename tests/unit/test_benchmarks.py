"""The benchmarks at small sizes: what they write, that a wrong result is called wrong, and what is drawn of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch

from dlcb.benchmarks import __main__ as command
from dlcb.benchmarks import contenders, memory, serving
from dlcb.benchmarks.compile import pays_after, stream
from dlcb.benchmarks.contenders import KINDS, Built, Request, build
from dlcb.benchmarks.networks import Network, case_of
from dlcb.benchmarks.report import SCHEMA, read_report, table
from dlcb.benchmarks.runner import Settings
from dlcb.benchmarks.timing import Spread, host_us, replayed_ms, wall_ms

CPU = torch.device("cpu")
PROGRAMS = {
    "memory": ["--programs", "softmax,cat"],
    "overhead": ["--programs", "chain-1,chain-4"],
    "models": ["--models", "rows"],
    "compile": ["--programs", "fusible,rows"],
    "serving": ["--programs", "decoder"],
}
STAGES = {"capture": 0.1, "binary": 0.2}


class Echo:
    """Runs the program itself, in the place of a compiler; `change` is done to its results."""

    def __init__(self, program: Callable[..., Any], change: Callable[[Any], Any]) -> None:
        self.program, self.change = program, change

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.change(self.program(*args, **kwargs))

    def stats(self) -> dict[str, int]:
        return {"specialized": 1}


def echo(change: Callable[[Any], Any] = lambda result: result) -> contenders.Builder:
    return lambda stack, asked: Built(Echo(asked.program, change), 0.25, "", STAGES)


def fails(stack: ExitStack, asked: Request) -> Built:
    raise ValueError("no such luck")


@pytest.fixture
def no_compilers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a benchmark does is tried without the time of a compiler."""
    for kind in KINDS:
        if kind not in ("eager", "eager_graph"):
            monkeypatch.setitem(KINDS, kind, echo())
    monkeypatch.setattr(contenders, "_warm_up", lambda kind, device: None)
    monkeypatch.setattr(contenders, "fresh_caches", nullcontext)
    monkeypatch.setattr("dlcb.benchmarks.compile.fresh_caches", nullcontext)
    monkeypatch.setattr("dlcb.benchmarks.timing.no_collection", nullcontext)
    monkeypatch.setattr("dlcb.benchmarks.compile.HOT_CALLS", 20)


@pytest.fixture(autouse=True)
def settings_of_torch_stay() -> Iterator[None]:
    before = torch.backends.cuda.matmul.allow_tf32
    yield
    torch.backends.cuda.matmul.allow_tf32 = before


def run(name: str, folder: Path, *options: str) -> tuple[int, dict[str, Any]]:
    path = folder / f"{name}.json"
    return command.main([name, "--quick", "--json", str(path), *PROGRAMS[name], *options]), read_report(path)


@pytest.mark.parametrize("name", command.NAMES)
@pytest.mark.usefixtures("no_compilers")
def test_every_benchmark_writes_its_results_and_they_are_drawn(name: str, tmp_path: Path) -> None:
    status, report = run(name, tmp_path)
    assert status == 0
    assert report["finished"]
    assert report["benchmark"] == name
    assert set(SCHEMA) == set(report)
    assert report["rows"]
    for row in report["rows"]:
        assert row["ok"], row
        assert {"program", "contender", "dtype"} <= row.keys()
        for value, low in [(k.removesuffix("_p10"), k) for k in row if k.endswith("_p10")]:
            assert 0 < row[low] <= row[value] <= row[f"{value}_p90"]
    benchmark = command.load(name)
    measured = {row["contender"] for row in report["rows"]}
    skipped = {entry["contender"] for entry in report["skipped"]}
    assert set(benchmark.contenders) <= measured | skipped
    for wanted in benchmark.tables:
        assert wanted.value in benchmark.units
        assert list(table(report["rows"], wanted)), wanted
    drawn = draw(tmp_path / f"{name}.json", tmp_path / "figures")
    assert drawn
    assert {name.replace(".png", ".svg") for name in drawn} == drawn.keys() - {n for n in drawn if n.endswith(".png")}
    for file, content in drawn.items():
        assert content.startswith(b"\x89PNG" if file.endswith(".png") else b"<?xml")


def draw(results: Path, folder: Path) -> dict[str, bytes]:
    assert command.main(["plot", str(results), "--out", str(folder)]) == 0
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("name", ["memory", "overhead", "models", "serving"])
@pytest.mark.parametrize("contender", ["dlcb_dynamic", "tc_dynamic"])
@pytest.mark.usefixtures("no_compilers")
def test_a_wrong_result_is_reported_as_wrong(
    name: str, contender: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def slightly_off(result: Any) -> Any:
        return result * 1.001 if isinstance(result, torch.Tensor) else type(result)(map(slightly_off, result))

    monkeypatch.setitem(KINDS, contender, echo(slightly_off))
    status, report = run(name, tmp_path, "--contenders", f"eager,{contender}")
    assert status == (1 if contender == "dlcb_dynamic" else 0)
    judged = [row for row in report["rows"] if "error" in row]
    assert judged
    for row in judged:
        assert row["ok"] == (row["contender"] == "eager")
        assert row["ok"] or "eager's own is" in row["reason"]
    assert " WRONG" in capsys.readouterr().out


@pytest.mark.usefixtures("no_compilers")
def test_a_contender_that_fails_is_a_row_and_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "tc", fails)
    status, report = run("memory", tmp_path, "--contenders", "eager,tc,dlcb")
    assert status == 0
    failed = [row for row in report["rows"] if not row["ok"]]
    assert [row["contender"] for row in failed] == ["tc", "tc"]
    assert failed[0]["failed"] == "ValueError: no such luck"
    assert {row["contender"] for row in report["rows"] if row["ok"]} == {"copy", "eager", "dlcb"}
    monkeypatch.setitem(KINDS, "dlcb", fails)
    assert run("memory", tmp_path, "--contenders", "dlcb")[0] == 1


@pytest.mark.usefixtures("no_compilers")
def test_a_run_that_is_cut_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(stack: ExitStack, asked: Request) -> Built:
        raise KeyboardInterrupt

    monkeypatch.setitem(KINDS, "dlcb", cut)
    with pytest.raises(KeyboardInterrupt):
        run("memory", tmp_path, "--contenders", "eager,dlcb")
    report = read_report(tmp_path / "memory.json")
    assert not report["finished"]
    assert [row["contender"] for row in report["rows"]] == ["copy", "copy", "eager", "eager"]
    assert [path.name for path in tmp_path.iterdir()] == ["memory.json"]


@pytest.mark.usefixtures("no_compilers")
def test_what_is_not_measured_is_listed_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, report = run("memory", tmp_path, "--contenders", "eager,dlcb_jit", "--seconds", "0")
    assert report["rows"] == []
    assert report["skipped"][0] == {"contender": "dlcb_jit", "reason": "not part of memory"}
    assert {entry["reason"] for entry in report["skipped"][1:]} == {"the time budget of 0 s was spent"}
    if not torch.cuda.is_available():
        _, report = run("serving", tmp_path, "--contenders", "eager_graph")
        assert [entry["reason"] for entry in report["skipped"]] == ["needs CUDA"]

    def needs_something(settings: Settings, name: str, dtype: str) -> Any:
        raise ModuleNotFoundError("No module named 'something'", name="something")

    monkeypatch.setattr(serving, "prepare", needs_something)
    status, report = run("serving", tmp_path, "--contenders", "eager")
    assert status == 0
    assert [entry["reason"] for entry in report["skipped"]] == ["needs something"]


def test_unknown_names_and_foreign_files_are_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options in (["--contenders", "eagr"], ["--dtypes", "f8"], ["--programs", "sofmax"]):
        with pytest.raises(SystemExit):
            command.main(["memory", "--json", str(tmp_path / "x.json"), *options])
        assert "expected some of" in capsys.readouterr().err
    foreign = tmp_path / "foreign.json"
    for text in ("no JSON", json.dumps([1]), json.dumps({"format": 1, "benchmark": "memory"})):
        foreign.write_text(text)
        assert command.main(["plot", str(foreign), "--out", str(tmp_path / "out")]) == 1
        assert "no results of a benchmark" in capsys.readouterr().err


def test_contenders_of_dlcb_run_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contenders, "_warm_up", lambda kind, device: None)

    def program(x: torch.Tensor) -> torch.Tensor:
        return x.relu() * 2 + 1

    x = torch.randn(5, 3)
    for kind in ("dlcb", "dlcb_dynamic", "dlcb_jit", "dlcb_hot"):
        with build(kind, Request(program, (x,))) as built:
            assert torch.equal(built.bind((x,))(), program(x))
            assert built.first_s > sum(built.stages_s.values())
            if kind != "dlcb":
                assert torch.equal(built.call(x[:2]), program(x[:2]))
            assert (kind in ("dlcb", "dlcb_dynamic")) == ("binary" in built.stages_s)


def test_torch_compile_is_asked_for_what_each_contender_is(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch._inductor.config as config

    asked: list[tuple[Any, Any, bool]] = []

    def record(program: Any, dynamic: Any = None, mode: Any = None) -> Any:
        asked.append((dynamic, mode, config.freezing))
        return program

    monkeypatch.setattr(torch, "compile", record)
    monkeypatch.setattr(contenders, "_warm_up", lambda kind, device: None)
    for kind in ("tc", "tc_auto", "tc_dynamic", "tc_best"):
        with build(kind, Request(torch.relu, (torch.ones(2),))):
            assert not torch.is_grad_enabled()
    with build("tc_best", Request(torch.relu, (torch.ones(2),), graphs=False)):
        pass
    assert asked == [
        (False, None, False),
        (None, None, False),
        (True, None, False),
        (False, "reduce-overhead", True),
        (False, "max-autotune-no-cudagraphs", True),
    ]
    assert not config.freezing


def test_useful_bytes_are_each_input_and_each_output_once() -> None:
    settings = Settings(Path("unused"), quick=True, device=CPU)
    n, m = 61, 45
    matrix = n * m * 2
    expected = {
        "pointwise": 2 * matrix + 2 * m + 2 * n,
        "softmax": 2 * matrix,
        "layer_norm": 2 * matrix + 4 * m,
        "rms_norm_residual": 4 * matrix + 2 * m,
        "permute_add": 3 * matrix,
        "column_sum": matrix + 2 * m,
        "cat": 2 * matrix,
        "embedding_add": 3 * matrix + 8 * n,
    }
    found = {
        name: memory.Subject(program, torch.float16, settings).bytes((n, m))
        for name, program in memory.PROGRAMS.items()
    }
    assert found == expected


def test_inputs_are_fresh_though_models_are_seeded() -> None:
    def first_input(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        return Network(case_of("rows", quick=True), torch.float32, CPU).inputs((2, 3, 40))["x"]

    assert torch.equal(first_input(1), first_input(1))
    assert not torch.equal(first_input(1), first_input(2))


def test_clocks_run_the_calls_in_turn() -> None:
    turns: list[int] = []
    calls = [lambda: turns.append(0), lambda: turns.append(1), lambda: turns.append(2)]
    wall_ms(calls, CPU, rounds=2, batch=3)
    host_us(calls, CPU, rounds=1, batch=6, warm_up=0)
    replayed_ms(calls, CPU, rounds=1, repeats=2)
    assert turns == [0, 1, 2] * (len(turns) // 3)
    assert Spread.of([3.0, 1.0, 2.0]) == Spread(2.0, 1.0, 3.0)


@pytest.mark.gpu
def test_contenders_are_captured_into_the_graph_that_is_timed(tmp_path: Path) -> None:
    status, report = run("memory", tmp_path, "--contenders", "eager,dlcb,dlcb_dynamic")
    assert status == 0
    assert [row for row in report["rows"] if not row["ok"]] == []
    assert {row["clock"] for row in report["rows"]} == {"device events"}


@pytest.mark.gpu
def test_eager_in_a_graph_takes_other_inputs() -> None:
    network = Network(case_of("rows", quick=True), torch.float32, torch.device("cuda", 0))
    with build("eager_graph", Request(network.model, network.inputs((2, 3, 40)))) as built:
        assert network.judged(built.call, network.inputs((2, 3, 40)))["ok"]
        with pytest.raises(ValueError, match="recorded for"):
            built.call(**network.inputs((2, 1, 40)))


@pytest.mark.parametrize(
    ("more_s", "saved_s", "calls"), [(10, 1, 11), (0.5, 1, 2), (0, 1, 1), (-1, -1, 1), (3, 0, None), (3, -1, None)]
)
def test_a_compile_is_paid_back_after_so_many_calls(more_s: float, saved_s: float, calls: int | None) -> None:
    assert pays_after(more_s, saved_s) == calls


def test_streams_have_different_shapes_without_zeros() -> None:
    assert stream(((0, 3), (1, 3), (2, 3), (3, 4))) == [(2, 3), (3, 4), (1, 3)]
    shapes = serving.stream(quick=False)
    assert len(set(shapes)) == 48
    assert shapes == serving.stream(quick=False)
