"""What a plugin derives from a pod template, kept until what it was derived from has moved."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V")


class TemplateMemo(Generic[V]):
    """Derived values by key; each holds as long as its stamp stays the same.

    The oldest entry goes when there are too many.
    """

    __slots__ = ("_entries", "_size_max")

    def __init__(self, size_max: int = 8192) -> None:
        self._entries: dict[Hashable, tuple[tuple[object, ...], V]] = {}
        self._size_max = size_max

    def get(self, key: Hashable, stamp: tuple[object, ...], derive: Callable[[], V]) -> V:
        """Return the value of `key`, derived anew if `stamp` is not the one it was kept under."""
        entry = self._entries.get(key)
        if entry is not None and entry[0] == stamp:
            return entry[1]
        value = derive()
        if entry is None and len(self._entries) >= self._size_max:
            del self._entries[next(iter(self._entries))]
        self._entries[key] = (stamp, value)
        return value
