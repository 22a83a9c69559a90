"""The bounded cache."""

import pytest

from dlcb.runtime.cache import LeastRecentlyUsed


def test_the_least_recently_used_entry_leaves() -> None:
    left: list[tuple[str, int]] = []
    cache: LeastRecentlyUsed[str, int] = LeastRecentlyUsed(2, lambda *entry: left.append(entry))
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert left == [("b", 2)]
    assert cache.get("b") is None
    with pytest.raises(ValueError, match="limit 0"):
        LeastRecentlyUsed[str, int](0)
