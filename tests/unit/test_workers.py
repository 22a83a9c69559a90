"""Compiles in other processes: one at a time, bounded, and whatever befalls a process is a reason and no more."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Thread

import pytest

from dlcb.errors import DlcbError, InternalError, UnsupportedError, UserError
from dlcb.frontend.workers import NICE, Workers
from dlcb.lowering.worker import Request, answer

REQUEST = Request("builtin.module {}", "m", {"x_0": 3}, "cpu", "")
ANSWER = {"programs": {"main": {}}, "kernels": "", "binary": "k.so", "seconds": {"parse": 0.0}}


def python(code: str) -> list[str]:
    """A process that starts quickly; it has read the request before it does anything."""
    return [sys.executable, "-I", "-S", "-c", f"import sys, os, time; text = sys.stdin.read(); {code}"]


def answering(found: object, before: str = "pass") -> list[str]:
    return python(f"{before}; print({json.dumps(found)!r})")


@pytest.fixture
def made() -> Iterator[list[Workers]]:
    """Those that a test made, to be closed after it."""
    found: list[Workers] = []
    yield found
    for workers in found:
        workers.close()


def workers_of(made: list[Workers], command: Sequence[str], *, timeout_s: float = 60, waiting: int = 16) -> Workers:
    made.append(Workers(command=command, timeout_s=timeout_s, waiting=waiting))
    return made[-1]


def test_the_answer_comes_back_with_the_time_that_the_start_took(made: list[Workers]) -> None:
    found = workers_of(made, answering(ANSWER)).run(REQUEST)
    assert found["binary"] == "k.so"
    assert found["seconds"]["start"] > 0


@pytest.mark.parametrize(
    ("command", "kind", "text"),
    [
        (answering({"error": "x is 3", "kind": "UserError"}), UserError, "x is 3"),
        (answering({"error": "no such op", "kind": "UnsupportedError"}), UnsupportedError, "no such op"),
        (answering({"error": "x", "kind": "SystemExit"}), InternalError, "status 0 and no answer"),
        (answering({**ANSWER, "kernels": 1}), InternalError, "status 0 and no answer"),
        (python("print('text')"), InternalError, "status 0 and no answer"),
        (python("sys.exit('first\\nlast')"), InternalError, "status 1 and no answer: last"),
        (python("os.kill(os.getpid(), 9)"), InternalError, "status -9 and no answer"),
        (python("sys.exit(3)"), InternalError, "status 3 and no answer"),
        (["/no/such/program"], UserError, "no process can be started that compiles"),
    ],
)  # fmt: skip
def test_a_process_without_a_program_is_an_error(
    made: list[Workers], command: Sequence[str], kind: type[DlcbError], text: str
) -> None:
    with pytest.raises(kind, match=text):
        workers_of(made, command).run(REQUEST)


def test_a_process_that_takes_too_long_is_killed_with_all_that_it_started(made: list[Workers], tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    started = f"p = os.fork(); print(os.getpid(), file=open({str(pids)!r}, 'a'), flush=True); time.sleep(60)"
    workers = workers_of(made, python(started), timeout_s=1.5)
    with pytest.raises(UnsupportedError, match=r"it took longer than 1\.5 s"):
        workers.run(REQUEST)
    assert len(pids.read_text().split()) == 2
    assert not [pid for pid in pids.read_text().split() if is_running(int(pid))]


def is_running(pid: int) -> bool:
    """Whether there is such a process, other than one that is dead and not yet waited for."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return False
        if state == "Z":
            return False
        time.sleep(0.02)
    return True


def test_processes_have_low_priority(made: list[Workers]) -> None:
    priority = os.getpriority(os.PRIO_PROCESS, 0)
    told = python(
        f"a = {ANSWER!r}; a['binary'] = str(os.getpriority(os.PRIO_PROCESS, 0)); import json; print(json.dumps(a))"
    )
    assert workers_of(made, told).run(REQUEST)["binary"] == str(min(priority + NICE, 19))
    assert os.getpriority(os.PRIO_PROCESS, 0) == priority


def test_of_four_threads_that_ask_each_waits_for_the_process_before(made: list[Workers], tmp_path: Path) -> None:
    log = tmp_path / "log"
    write = "print({0!r}, file=open({1!r}, 'a'), flush=True)"
    noted = f"{write.format('begin', str(log))}; time.sleep(0.02); {write.format('end', str(log))}"
    workers = workers_of(made, answering(ANSWER, noted))
    threads = [Thread(target=workers.run, args=(REQUEST,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert log.read_text().split() == ["begin", "end"] * 4


def test_jobs_are_done_in_order_by_one_thread_and_more_than_may_wait_are_refused(made: list[Workers]) -> None:
    workers = workers_of(made, [], waiting=2)
    go, began, done = threading.Event(), threading.Event(), threading.Event()
    seen: list[tuple[int, int]] = []

    def first() -> None:
        began.set()
        go.wait()

    def note(number: int) -> None:
        seen.append((number, threading.get_ident()))
        if number == 2:
            done.set()

    assert workers.submit(first) == ""
    assert began.wait(10)
    assert [workers.submit(lambda n=n: note(n)) for n in (1, 2, 3)] == ["", "", "2 requests wait already"]
    go.set()
    assert done.wait(10)
    assert [number for number, _ in seen] == [1, 2]
    assert len({ident for _, ident in seen}) == 1
    assert threading.get_ident() != seen[0][1]


def test_after_an_exception_of_one_job_the_next_is_done(made: list[Workers], monkeypatch: pytest.MonkeyPatch) -> None:
    workers = workers_of(made, [])
    reported: list[str] = []
    done = threading.Event()
    monkeypatch.setattr(threading, "excepthook", lambda args: reported.append(str(args.exc_value)))  # pyright: ignore

    def fail() -> None:
        raise ValueError("of the job")

    workers.submit(fail)
    workers.submit(done.set)
    assert done.wait(10)
    assert reported == ["of the job"]


def test_when_all_is_closed_the_process_is_killed_and_nothing_is_accepted(made: list[Workers], tmp_path: Path) -> None:
    note = tmp_path / "pid"
    sleeping = python(f"print(os.getpid(), file=open({str(note)!r}, 'w'), flush=True); time.sleep(60)")
    workers = workers_of(made, sleeping)
    errors: list[str] = []

    def ask() -> None:
        try:
            workers.run(REQUEST)
        except UnsupportedError as error:
            errors.append(str(error))

    thread = Thread(target=ask)
    thread.start()
    while not (note.exists() and note.read_text()):
        time.sleep(0.01)
    workers.close()
    thread.join(10)
    assert errors == ["the interpreter ends"]
    assert not is_running(int(note.read_text()))
    assert workers.submit(lambda: None) == "the interpreter ends"
    with pytest.raises(UnsupportedError, match="the interpreter ends"):
        workers.run(REQUEST)


def test_no_process_outlives_the_interpreter(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    sleeping = python(f"print(os.getpid(), file=open({str(note)!r}, 'w'), flush=True); time.sleep(60)")
    code = f"""
import pathlib, time
from dlcb.frontend.workers import Workers
from dlcb.lowering.worker import Request
workers = Workers(command={sleeping!r})
workers.submit(lambda: workers.run(Request("", "m", {{}}, "cpu", "")))
while not (pathlib.Path({str(note)!r}).exists() and pathlib.Path({str(note)!r}).read_text()):
    time.sleep(0.01)
"""
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    began = time.monotonic()
    subprocess.run([sys.executable, "-P", "-c", code], env=path, check=True, timeout=50)
    assert time.monotonic() - began < 50
    assert not is_running(int(note.read_text()))


# What the process itself answers


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("no JSON", "InternalError", "JSONDecodeError"),
        ("{}", "InternalError", "other fields than it must have"),
        (Request("", "m", {}, "metal", "").to_json(), "InternalError", "other fields"),
        (Request("builtin.module { %0 = what }", "m", {}, "cpu", "").to_json(), "UserError", "m: no valid IR"),
        (REQUEST.to_json(), "UserError", "no input gives 'x_0'"),
    ],
)
def test_a_request_that_can_not_be_met_is_answered_with_an_error(text: str, kind: str, message: str) -> None:
    found, status = answer(text)
    assert status == 1
    assert found["kind"] == kind
    assert message in found["error"]


EXP = """dlcb.graph.func @main(%x: tensor<[x_0], f32> input "x") {
  %r = dlcb.graph.exp %x : (tensor<[x_0], f32>) -> tensor<[x_0], f32>
  dlcb.graph.return %r : !dlcb.graph.tensor<[x_0], f32> }"""


def test_a_cubin_is_put_into_the_folder_of_the_request(tmp_path: Path) -> None:
    found, status = answer(Request(EXP, "m", {"x_0": 3}, "cuda", str(tmp_path), "sm_90").to_json())
    assert status == 0
    assert Path(found["binary"]).parent == tmp_path
    assert Path(found["binary"]).read_bytes().startswith(b"\x7fELF")
    assert found["programs"]["main"]["name"] == "m"
    assert list(found["seconds"]) == ["parse", "lower", "binary"]


def test_an_architecture_that_is_none_is_an_error(tmp_path: Path) -> None:
    found, status = answer(Request(EXP, "m", {"x_0": 3}, "cuda", str(tmp_path), "sm_1").to_json())
    assert (status, found["kind"]) == (1, "InternalError")
    assert not list(tmp_path.iterdir())


def test_the_process_imports_no_torch_and_writes_its_answer_alone() -> None:
    code = "import sys, dlcb.lowering.worker as w; status = w.main(); print('torch' in sys.modules); sys.exit(status)"
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env=path,
        input=REQUEST.to_json(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert json.loads(done.stdout)["kind"] == "UserError"
    assert done.stderr == "False\n"
