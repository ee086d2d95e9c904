"""A handler that keeps the objects it receives, and asserts that the calls are consistent."""

from __future__ import annotations

import asyncio

from kubesched.api.meta import KubeObject

Key = tuple[str, str]


class Follower:
    """Follows an informer.

    Attributes:
        there: The objects received, by namespace and name.
        told: The calls, as text.
        calls: The calls, with their times and the names of the objects.
    """

    def __init__(self) -> None:
        self.there: dict[Key, KubeObject] = {}
        self.told: list[str] = []
        self.calls: list[tuple[float, str, str]] = []

    def _note(self, word: str, item: KubeObject) -> None:
        name = item.metadata.name
        self.told.append(f"{word} {name} {item.metadata.resource_version}")
        self.calls.append((round(asyncio.get_running_loop().time(), 3), word, name))

    def added(self, item: KubeObject) -> None:
        """Take note of an object that must be new."""
        assert _key(item) not in self.there, "added twice"
        self.there[_key(item)] = item
        self._note("added", item)

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        """Apply an update, whose old state must be the one received before."""
        assert old is self.there[_key(new)], "the old state is the one told before"
        assert old.metadata.resource_version != new.metadata.resource_version, "told twice"
        self.there[_key(new)] = new
        self._note("updated", new)

    def deleted(self, item: KubeObject, *, is_final_state_known: bool = True) -> None:
        """Take note of an object that must have been there."""
        del self.there[_key(item)]
        self._note("deleted" if is_final_state_known else "vanished", item)


def _key(item: KubeObject) -> Key:
    return item.metadata.namespace, item.metadata.name
