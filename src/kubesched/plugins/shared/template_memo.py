"""TemplateMemo: a cache of values that a plugin derives from pod templates."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V")


class TemplateMemo(Generic[V]):
    """Derived values by key; a value is valid as long as its stamp is unchanged.

    When the cache is full, the oldest entry is dropped.
    """

    __slots__ = ("_entries", "_size_max")

    def __init__(self, size_max: int = 2048) -> None:
        self._entries: dict[Hashable, tuple[tuple[object, ...], V]] = {}
        self._size_max = size_max

    def get(self, key: Hashable, stamp: tuple[object, ...], derive: Callable[[], V]) -> V:
        """Return the value of `key`; call `derive` if there is none with this `stamp`."""
        entry = self._entries.get(key)
        if entry is not None and entry[0] == stamp:
            return entry[1]
        value = derive()
        if entry is None and len(self._entries) >= self._size_max:
            del self._entries[next(iter(self._entries))]
        self._entries[key] = (stamp, value)
        return value
