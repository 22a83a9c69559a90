"""Which rule fired where: `dlcb-opt --trace-rules` listens, and a driver of rules tells. Nothing is made for nobody.

A driver asks `listener()` once, when it is made, so `tracing` must be around the making of it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Firing:
    """One rewrite: the level and name of the rule, what it found and made, and the source line or op it was for."""

    level: str
    rule: str
    before: str
    after: str
    where: str

    def __str__(self) -> str:
        where = f"  // {self.where}" if self.where else ""
        return f"{self.level} {self.rule}: {self.before}  ->  {self.after}{where}"


Listener: TypeAlias = Callable[[Firing], None]
_listener: ContextVar[Listener | None] = ContextVar("rule_trace", default=None)


def listener() -> Listener | None:
    """Who wants to know of rules that fire; None where nobody does."""
    return _listener.get()


@contextmanager
def tracing(told: Listener) -> Generator[None]:
    """Inside, `told` gets every firing of the drivers that are made there."""
    token = _listener.set(told)
    try:
        yield
    finally:
        _listener.reset(token)
