"""A bounded cache in which the least recently used entry leaves first."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LeastRecentlyUsed(Generic[K, V]):
    """At most `limit` entries. Not synchronized: its owner holds a lock. A hit hashes its key once; only an entry that
    has to leave is searched for."""

    def __init__(self, limit: int, on_leave: Callable[[K, V], None] | None = None) -> None:
        if limit < 1:
            raise ValueError(f"a cache holds at least one entry, got limit {limit}")
        self._entries: dict[K, _Entry[V]] = {}
        self._limit = limit
        self._on_leave = on_leave
        self._uses = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[K]:
        return iter(self._entries)

    def values(self) -> list[V]:
        """All that is kept; this is no use of it."""
        return [entry.value for entry in self._entries.values()]

    def get(self, key: K) -> V | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._uses = entry.last_use = self._uses + 1
        return entry.value

    def put(self, key: K, value: V) -> None:
        self._uses += 1
        self._entries[key] = _Entry(value, self._uses)
        if len(self._entries) > self._limit:
            oldest = min(self._entries, key=lambda key: self._entries[key].last_use)
            left = self._entries.pop(oldest)
            if self._on_leave is not None:
                self._on_leave(oldest, left.value)

    def drop(self, key: K) -> None:
        self._entries.pop(key, None)


class _Entry(Generic[V]):
    __slots__ = ("last_use", "value")

    def __init__(self, value: V, last_use: int) -> None:
        self.value = value
        self.last_use = last_use
