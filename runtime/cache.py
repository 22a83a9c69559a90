"""A bounded cache in which the least recently used entry leaves first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LeastRecentlyUsed(Generic[K, V]):
    """At most `limit` entries. Not synchronized: its owner holds a lock."""

    def __init__(self, limit: int, on_leave: Callable[[K, V], None] | None = None) -> None:
        if limit < 1:
            raise ValueError(f"a cache holds at least one entry, got limit {limit}")
        self._entries: OrderedDict[K, V] = OrderedDict()
        self._limit = limit
        self._on_leave = on_leave

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
        return entry

    def put(self, key: K, value: V) -> None:
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > self._limit:
            left = self._entries.popitem(last=False)
            if self._on_leave is not None:
                self._on_leave(*left)

    def drop(self, key: K) -> None:
        self._entries.pop(key, None)
