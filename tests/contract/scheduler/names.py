"""Names that replace uids, versions and times in a comparison.

Uids stand for what they belong to, versions for their number in the history of their object, and
current times for nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from typing import Any, Final

from .in_process_connection import Plain

_UID: Final = re.compile(r"<uid:\d+>|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME: Final = re.compile(r"20(?!24)\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_EVENT_NAME: Final = re.compile(r"\.(<hex:\d+>|[0-9a-f]{16})$")
_KINDS: Final = {
    "pods": "Pod",
    "nodes": "Node",
    "leases": "Lease",
    "events": "Event",
    "persistentvolumes": "PersistentVolume",
    "persistentvolumeclaims": "PersistentVolumeClaim",
    "poddisruptionbudgets": "PodDisruptionBudget",
}


class Names:
    """The names of uids and versions in a comparison."""

    def __init__(self, sources: Iterable[Any]) -> None:
        """Take everything in which objects and references to objects may be found."""
        self._kinds: dict[str, str] = {}
        self._strangers: dict[str, int] = {}
        self._versions: dict[str, list[int]] = {}
        for source in sources:
            for uid, name, version in identities(source):
                if name:
                    self._kinds.setdefault(uid, name)
                known = self._versions.setdefault(uid, [])
                number = _number(version)
                if number and number not in known:
                    insort(known, number)

    def of_uid(self, uid: str) -> str:
        """Return the name of the object with a uid."""
        if uid in self._kinds:
            return f"<uid of {self._kinds[uid]}>"
        return f"<uid {self._strangers.setdefault(uid, len(self._strangers) + 1)}>"

    def of_version(self, uid: str, version: str) -> str:
        """Return the number of a version in its object's history."""
        if self._kinds.get(uid, "").startswith("Lease"):
            # How often a lease is renewed depends on how long everything else takes.
            return "<version>"
        known = self._versions.get(uid, [])
        return f"<version {bisect_left(known, _number(version)) + 1}>"

    def calm(self, value: Any) -> Any:
        """Return a value with names instead of uids and versions, and without times."""
        match value:
            case {"metadata": {"uid": uid, "resourceVersion": version}}:
                metadata = value["metadata"] | {"resourceVersion": self.of_version(uid, version)}
                return self._calm_items(value | {"metadata": metadata})
            case {"uid": uid, "resourceVersion": version} if "kind" in value:
                return self._calm_items(value | {"resourceVersion": self.of_version(uid, version)})
            case dict():
                return self._calm_items(value)
            case list() | tuple():
                return [self.calm(item) for item in value]
            case str():
                text = _UID.sub(lambda found: self.of_uid(found[0]), value)
                return _EVENT_NAME.sub(".<hex>", _TIME.sub(_time, text))
        return value

    def _calm_items(self, value: Plain) -> Plain:
        # The real server's words for leaving the version of an options object open. Managed fields
        # were not recorded.
        left_out = "apiVersion" if value.get("kind") == "DeleteOptions" else ""
        return {
            name: self.calm(item)
            for name, item in value.items()
            if name not in (left_out, "managedFields")
        }


def identities(value: Any, kind: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield uid, name and version of every object in a value."""
    match value:
        case {"kind": "Binding", "metadata": {"uid": uid, "name": name}}:
            yield uid, f"Pod {name}", ""
        case {"metadata": {"uid": uid, "name": name} as metadata}:
            kind = value.get("kind", kind)
            yield (
                uid,
                f"{kind} {calm_name(name)}" if kind else "",
                metadata.get("resourceVersion", ""),
            )
        case {"uid": uid, "name": name, "kind": of}:
            yield uid, f"{of} {name}", value.get("resourceVersion", "")
    if isinstance(value, dict):
        for name, item in value.items():
            yield from identities(item, _KINDS.get(name, ""))
    elif isinstance(value, list):
        for item in value:
            yield from identities(item, kind)


def _time(found: re.Match[str]) -> str:
    return "<microtime>" if found[1] else "<time>"


def calm_name(name: str) -> str:
    """Return the name of an event without its random part; other names unchanged."""
    return _EVENT_NAME.sub(".<hex>", name)


def _number(version: str) -> int:
    digits = version.strip("<rv:>")
    return int(digits) if digits else 0
