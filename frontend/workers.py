"""Compiles in other processes, one after the other, so that threads that serve calls wait neither for a compiler nor
for the interpreter lock.

A request is run by the thread that asks (`run`), which may be one of ours (`submit`). Either way at most one process is
alive. Processes have low priority, end at a timeout, and are killed when the interpreter ends.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, cast

from dlcb.errors import InternalError, UnsupportedError, UserError
from dlcb.lowering.worker import Request

TIMEOUT_S: Final = 120.0
WAITING: Final = 16
NICE: Final = 10
"""How much lower the priority of a process is than ours."""
_CLOSED: Final = "the interpreter ends"
_ERRORS: Final = {kind.__name__: kind for kind in (UserError, UnsupportedError, InternalError)}


def worker_command() -> list[str]:
    """Starts `lowering/worker.py` in this interpreter; a `UserError` in one that is embedded in a program."""
    if not sys.executable:
        raise UserError("this Python has no sys.executable, so no process can be started that compiles")
    return [sys.executable, "-P", "-m", "dlcb.lowering.worker"]


def _environment() -> dict[str, str]:
    """The process finds the modules that this one finds."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


class Workers:
    """At most one process that compiles, and at most `waiting` requests for the next."""

    def __init__(
        self, *, timeout_s: float = TIMEOUT_S, waiting: int = WAITING, command: Sequence[str] | None = None
    ) -> None:
        self._timeout_s = timeout_s
        self._most_waiting = waiting
        self._command = command
        self._turn = threading.Lock()
        """Held while a process is alive."""
        self._lock = threading.Lock()
        """Of all that follows."""
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_serving = False
        self._process: subprocess.Popen[str] | None = None
        self.is_closed = False
        atexit.register(self.close)

    def submit(self, job: Callable[[], None]) -> str:
        """Have the job, which may call `run`, done by a thread of ours, after those that came before. Gives the reason
        why not, or an empty text."""
        with self._lock:
            if self.is_closed:
                return _CLOSED
            if len(self._waiting) >= self._most_waiting:
                return f"{self._most_waiting} requests wait already"
            self._waiting.append(job)
            if not self._is_serving:
                self._is_serving = True
                threading.Thread(target=self._serve, name="dlcb-workers", daemon=True).start()
            return ""

    def _serve(self) -> None:
        """Does what waits, and ends when nothing does. An exception of one job is reported as that of a thread."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._is_serving = False
                    return
                job = self._waiting.popleft()
            try:
                job()
            except Exception as error:
                details = (type(error), error, error.__traceback__, threading.current_thread())
                threading.excepthook(threading.ExceptHookArgs(details))

    def run(self, request: Request) -> dict[str, Any]:
        """The answer of a process to the request, and how long its start took, among its seconds. Waits for the process
        that is at work. A `DlcbError` says why there is no answer."""
        command = self._command or worker_command()
        with self._turn:
            began = time.perf_counter()
            output, errors, status = self._communicate(command, request.to_json())
            total = time.perf_counter() - began
        if self.is_closed:
            raise UnsupportedError(_CLOSED)
        found = _check(output, errors, status)
        seconds = cast("dict[str, float]", found["seconds"])
        found["seconds"] = {"start": total - sum(seconds.values()), **seconds}
        return found

    def _communicate(self, command: Sequence[str], text: str) -> tuple[str, str, int]:
        process = self._start(command)
        try:
            output, errors = process.communicate(text, timeout=self._timeout_s)
        except subprocess.TimeoutExpired:
            raise UnsupportedError(f"it took longer than {self._timeout_s:g} s") from None
        finally:
            self._end(process)
        return output, errors, process.returncode

    def _start(self, command: Sequence[str]) -> subprocess.Popen[str]:
        """In a session of its own, so that what it starts can be ended with it."""
        with self._lock:
            if self.is_closed:
                raise UnsupportedError(_CLOSED)
            try:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    encoding="utf-8",
                    errors="replace",
                    env=_environment(),
                    start_new_session=True,
                )
            except OSError as error:
                raise UserError(f"no process can be started that compiles: {error}") from error
            self._process = process
        with contextlib.suppress(ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, process.pid, os.getpriority(os.PRIO_PROCESS, 0) + NICE)
        return process

    def _end(self, process: subprocess.Popen[str]) -> None:
        """Nothing of the process is left, whether it came to its end or not."""
        _kill(process)
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        with self._lock:
            self._process = None

    def close(self) -> None:
        """Kill the process that is at work and refuse all further requests."""
        with self._lock:
            self.is_closed = True
            self._waiting.clear()
            if self._process is not None:
                _kill(self._process)
        atexit.unregister(self.close)


def _check(output: str, errors: str, status: int) -> dict[str, Any]:
    try:
        found = json.loads(output)
    except ValueError:
        found = None
    match found:
        case {"error": str(text), "kind": str(kind)} if kind in _ERRORS:
            raise _ERRORS[kind](text)
        case {"programs": {"main": _}, "kernels": str(), "binary": str(), "seconds": dict()} if status == 0:
            return cast("dict[str, Any]", found)
        case _:
            said = f": {errors.strip().splitlines()[-1]}" if errors.strip() else ""
            raise InternalError(f"the process that compiles ended with status {status} and no answer{said}")


def _kill(process: subprocess.Popen[str]) -> None:
    """And all that it started. Its number is its own until it is waited for."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


@cache
def shared_workers() -> Workers:
    """The one of this interpreter, however many programs it serves."""
    return Workers()
