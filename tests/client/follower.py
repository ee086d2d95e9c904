"""A handler that keeps the objects it receives, and asserts that the calls are consistent."""

from __future__ import annotations

from kubesched.api.meta import KubeObject

Key = tuple[str, str]


class Follower:
    """Follows an informer.

    Attributes:
        there: The objects received, by namespace and name.
        told: The calls, as text.
    """

    def __init__(self) -> None:
        self.there: dict[Key, KubeObject] = {}
        self.told: list[str] = []

    def added(self, item: KubeObject) -> None:
        """Take note of an object that must be new."""
        assert _key(item) not in self.there, "added twice"
        self.there[_key(item)] = item
        self.told.append(f"added {item.metadata.name} {item.metadata.resource_version}")

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        """Apply an update, whose old state must be the one received before."""
        assert old is self.there[_key(new)], "the old state is the one told before"
        assert old.metadata.resource_version != new.metadata.resource_version, "told twice"
        self.there[_key(new)] = new
        self.told.append(f"updated {new.metadata.name} {new.metadata.resource_version}")

    def deleted(self, item: KubeObject, *, is_final_state_known: bool = True) -> None:
        """Take note of an object that must have been there."""
        del self.there[_key(item)]
        word = "deleted" if is_final_state_known else "vanished"
        self.told.append(f"{word} {item.metadata.name} {item.metadata.resource_version}")


def _key(item: KubeObject) -> Key:
    return item.metadata.namespace, item.metadata.name
