"""Recorded answers of a real API server 1.36 to writes, compared with our rules one by one.

`creations.json.gz` and `changes.json.gz` hold bodies that were made at random from recorded ones,
and the answers of kube-apiserver to them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kubesched.api.field_errors import FieldError
from kubesched.api.well_known import SYSTEM_CLASSES
from kubesched.apiserver import admission, strategy, validation
from kubesched.apiserver.admission.request import AdmissionRequest
from kubesched.apiserver.defaults import with_defaults
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.request import ApiRequest, Operation
from kubesched.apiserver.resources import RESOURCES, Resource
from kubesched.apiserver.status import StatusError
from kubesched.apiserver.stored_object import StoredObjects, stamp
from kubesched.cluster.store import Store
from tests.contract.boundary import WORD_FOR_WORD, is_not_checked, wording

NOW: Final = "2024-05-06T07:08:09Z"
_UID: Final = "11111111-2222-3333-4444-555555555555"
_SERVERS_OWN: Final = ("uid", "creationTimestamp", "resourceVersion", "managedFields")
_CAUSE: Final = ("reason", "field", "message")


class Objects(StoredObjects):
    """Stored objects, by resource."""

    def __init__(self, **objects: list[Plain]) -> None:
        """Hold the objects every cluster has, and others.

        Args:
            objects: By resource, without its group.
        """
        super().__init__(Store(stamp))
        self._objects: dict[str, list[Plain]] = {
            "namespaces": [
                {"metadata": {"name": name}, "status": {"phase": "Active"}}
                for name in ("default", "kube-system")
            ],
            "priorityclasses": [
                {
                    "metadata": {"name": name},
                    "value": value,
                    "preemptionPolicy": "PreemptLowerPriority",
                }
                for name, value in SYSTEM_CLASSES.items()
            ],
        }
        for name, some in objects.items():
            self._objects.setdefault(name, []).extend(some)

    def get(self, group_resource: str, namespace: str, name: str) -> Plain | None:
        """Return an object, None if there is none."""
        for one in self.items(group_resource, namespace):
            if one["metadata"]["name"] == name:
                return one
        return None

    def items(self, group_resource: str, namespace: str = "") -> Iterator[Plain]:
        """Yield the objects of a resource."""
        for one in self._objects.get(group_resource.partition(".")[0], ()):
            if not namespace or one["metadata"].get("namespace", namespace) == namespace:
                yield one


def resource_of(kind: str, group: str = "", version: str = "v1") -> Resource:
    """Return what is served for a kind."""
    resource = RESOURCES.find_kind(f"{group}/{version}" if group else version, kind)
    assert resource is not None, f"{kind} is served"
    return resource


def operation_on(
    resource: Resource, manager: str, sub: str = "", *, force: bool = False
) -> Operation:
    """Return a write of a manager."""
    query = {"fieldManager": (manager,), **({"force": ("true",)} if force else {})}
    return Operation(ApiRequest("PATCH", "", query), resource, subresource=sub)


def served(plural: str, group: str = "") -> Resource:
    """Return the resource of a name, in version v1."""
    resource = RESOURCES.find(group, "v1", plural)
    assert resource is not None, f"{plural} are served"
    return resource


def created(resource: Resource, body: Plain, objects: Objects | None = None) -> dict[str, Any]:
    """Return the verdict on a new object, in the form of the data."""
    objects = objects or Objects()
    metadata = body.get("metadata", {})
    if resource.is_namespaced:
        namespace = "kube-system" if resource.kind == "Lease" else "default"
        body = {**body, "metadata": {"namespace": namespace, **metadata}}
    body = {**body, "kind": resource.kind, "apiVersion": resource.api_version}
    try:
        obj = with_defaults(resource, body)
        obj = admission.admit(AdmissionRequest(resource, objects), obj)
        obj["metadata"] = {**obj["metadata"], "uid": _UID, "creationTimestamp": NOW}
        obj = strategy.prepare_for_create(resource, obj)
        faults = validation.errors_of_new(resource, obj)
        if not faults:
            admission.check(AdmissionRequest(resource, objects), obj)
    except StatusError as error:
        if error.code != 422:
            return {"status": error.code, "message": error.message}
        told = (error.details or {})["causes"]
        return {"status": 422, "causes": [[one[name] for name in _CAUSE] for one in told]}
    return {"status": 422, "causes": causes(faults)} if faults else {"status": 201, "object": obj}


def changed(resource: Resource, old: Plain, new: Plain, subresource: str) -> dict[str, Any]:
    """Return the verdict on a change of an object, in the form of the data."""
    objects = Objects()
    metadata = {name: one for name, one in new["metadata"].items() if name != "managedFields"}
    obj = with_defaults(resource, {**new, "metadata": metadata})
    obj = admission.admit(
        AdmissionRequest(resource, objects, old=old, subresource=subresource), obj
    )
    obj = strategy.prepare_for_update(resource, obj, old, subresource)
    faults = validation.errors_of_update(resource, obj, old, subresource)
    return {"status": 422, "causes": causes(faults)} if faults else {"status": 200, "object": obj}


def causes(errors: list[FieldError]) -> list[list[str]]:
    """Return errors as causes, in an order that does not depend on Go's random order of maps."""
    return sorted([one.reason, one.path, one.message] for one in errors)


def differences(kind: str, recorded: dict[str, Any], actual: dict[str, Any]) -> list[str]:
    """Return what differs between two verdicts, as far as they are compared; nothing if equal."""
    expected, found = (_told(kind, verdict) for verdict in (recorded, actual))
    excused = {one for one in expected if is_not_checked(kind, one[1])}
    different = [
        *(f"missing: {one}" for one in sorted(expected - found - excused)),
        *(
            f"unexpected: {one}"
            for one in sorted(found - expected)
            if not is_not_checked(kind, one[1])
        ),
    ]
    is_excused = bool(expected) and expected == excused
    if recorded["status"] != actual["status"] and not is_excused:
        different.append(f"status: {recorded['status']}, {actual['status']}")
    elif recorded["status"] == actual["status"]:
        left, right = (
            {name: one for name, one in settled(verdict).items() if name != "causes"}
            for verdict in (recorded, actual)
        )
        if left != right:
            different.append(f"object: {left}, {right}")
    return different


def _told(kind: str, verdict: dict[str, Any]) -> set[tuple[str, ...]]:
    """Return the causes of a verdict: reason, field, and the message where it is compared.

    Values of Go's structs and the lines of their differences are left out of messages.
    """
    causes = verdict.get("causes", ())
    if kind not in WORD_FOR_WORD:
        return {(reason, field) for reason, field, _ in causes}
    return {(reason, field, wording(message)) for reason, field, message in causes}


def settled(verdict: dict[str, Any]) -> dict[str, Any]:
    """Return a verdict without what only the server knows, with its causes in order."""
    settled: dict[str, Any] = {
        name: verdict[name] for name in ("status", "message") if name in verdict
    }
    if "causes" in verdict:
        settled["causes"] = sorted(verdict["causes"])
    if "object" in verdict:
        metadata = verdict["object"]["metadata"]
        kept = {name: one for name, one in metadata.items() if name not in _SERVERS_OWN}
        settled["object"] = {**verdict["object"], "metadata": kept}
    return settled
