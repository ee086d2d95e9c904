"""ObjectRequests answers an API server's requests in JSON from an `ObjectServer`.

Just what the recorded scripts and the scheduler ask for: create, patch, bind, delete; no reading.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers (v1.36)
Differs:  objects hold only the fields that scheduling reads; of strategic merge there is what
          statuses need: maps, and conditions by type.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple, cast

import msgspec

from kubesched.api.codec import decode_object
from kubesched.api.core import Pod
from kubesched.api.errors import NotFoundError
from kubesched.api.meta import KubeStruct
from kubesched.api.scheme import Kind, find_plural, kind_of
from kubesched.apiserver.store import Key
from kubesched.simulator.object_server import ObjectServer, kind_name
from kubesched.snapshot.objects import KubernetesObject

Plain = dict[str, Any]

_PATH: Final = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/[^/]+(?:/namespaces/(?P<namespace>[^/]+))?"
    r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?(?:/(?P<subresource>[^/]+))?"
)


class Place(NamedTuple):
    """What a path names; `name` and `subresource` are empty where it names none."""

    kind: Kind
    namespace: str
    name: str
    subresource: str

    @classmethod
    def of(cls, path: str) -> Place:
        """Take a path apart."""
        found = _PATH.fullmatch(path)
        assert found is not None, path
        kind = find_plural(found["group"] or "", found["plural"])
        assert kind is not None, path
        return cls(kind, found["namespace"] or "", found["name"] or "", found["subresource"] or "")

    @property
    def key(self) -> Key:
        """Where the object is stored."""
        return Key(kind_name(self.kind.type), self.namespace, self.name)


class ObjectRequests:
    """Carries requests out."""

    def __init__(
        self, server: ObjectServer, complete: Callable[[str, Plain], Plain] = lambda _, item: item
    ) -> None:
        """Take the objects, and what completes new ones of a kind."""
        self._server = server
        self._complete = complete

    def send(self, method: str, path: str, body: Plain | None = None) -> int:
        """Carry a request out; return the status.

        Raises:
            ApiError: It is refused.
        """
        place = Place.of(path)
        if place.subresource == "binding":
            return self._bind(place, body or {})
        if method == "POST":
            return self._create(place, body or {})
        if method == "DELETE":
            return self._delete(place, body or {})
        return self._patch(place, body or {}) if method == "PATCH" else self._put(body or {})

    def find(self, path: str) -> Plain | None:
        """Return an object, None if there is none."""
        found = self._server.store.find(Place.of(path).key)
        return None if found is None else plain(found)

    def _create(self, place: Place, body: Plain) -> int:
        metadata = {**body["metadata"]}
        if place.namespace:
            metadata["namespace"] = place.namespace
        item = decode_object(self._complete(place.kind.kind, {**body, "metadata": metadata}))
        self._server.create(cast("KubernetesObject", item))
        return 201

    def _bind(self, place: Place, body: Plain) -> int:
        uid = body.get("metadata", {}).get("uid", "")
        self._server.bind(place.namespace, place.name, uid, body["target"]["name"])
        return 201

    def _delete(self, place: Place, body: Plain) -> int:
        if place.kind.type is Pod:
            grace = body.get("gracePeriodSeconds")
            self._server.delete_pod(place.namespace, place.name, grace_seconds=grace)
        else:
            self._server.delete(self._found(place))
        return 200

    def _patch(self, place: Place, body: Plain) -> int:
        found = self._found(place)
        before = plain(found)
        wanted = {name: part for name, part in body.items() if name == "status"}
        if place.subresource != "status":
            wanted = {name: part for name, part in body.items() if name != "status"}
        after = merged(before, wanted)
        if place.kind.type is Pod and after["spec"] != before["spec"]:
            after["metadata"]["generation"] += 1
        patched = cast("KubernetesObject", decode_object(after))
        if patched != found:
            self._server.update(patched)
        return 200

    def _put(self, body: Plain) -> int:
        item = cast("KubernetesObject", decode_object(body))
        self._server.update(item)
        return 200

    def _found(self, place: Place) -> KubernetesObject:
        found = self._server.store.find(place.key)
        if found is None:
            raise NotFoundError(f'{place.kind.plural} "{place.name}" not found')
        return found


def plain(item: KubernetesObject) -> Plain:
    """Return an object as JSON values, with its kind."""
    found = kind_of(cast("type[KubeStruct]", type(item)))
    values: Plain = msgspec.to_builtins(item)
    return {**values, "apiVersion": found.api_version, "kind": found.kind}


def merged(target: Plain, patch: Plain) -> Plain:
    """Return an object with a patch applied; lists are replaced, those of conditions merged."""
    result = {**target}
    for name, value in patch.items():
        old = target.get(name)
        if value is None:
            result.pop(name, None)
        elif name == "conditions" and isinstance(value, list):
            order = [item["type"] for item in patch.get("$setElementOrder/conditions", ())]
            result[name] = _merged_conditions(old or [], value, order)
        elif name.startswith("$setElementOrder/"):
            continue
        elif isinstance(value, dict):
            result[name] = merged(old if isinstance(old, dict) else {}, value)
        else:
            result[name] = value
    return result


def _merged_conditions(old: list[Plain], patch: list[Plain], order: list[str]) -> list[Plain]:
    """What the patch speaks of comes in its order, and first."""
    found = {item["type"]: item for item in old}
    for item in patch:
        found[item["type"]] = merged(found.get(item["type"], {}), item)
    order = order or [item["type"] for item in patch]
    listed = [found[name] for name in order if name in found]
    return listed + [item for name, item in found.items() if name not in order]
