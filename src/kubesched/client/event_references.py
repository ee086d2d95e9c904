"""References from events to objects, and the names of events.

Upstream: staging/src/k8s.io/client-go/tools/reference/ref.go, tools/record/util/util.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

import re
from random import Random
from typing import Any, Final
from uuid import UUID

from kubesched.api.core import ObjectReference
from kubesched.api.meta import KubeObject
from kubesched.api.scheme import kind_of

EVENT_TYPES: Final = frozenset(("Normal", "Warning"))
_DEFAULT_NAMESPACE: Final = "default"
_NAME_LENGTH_MAX: Final = 253
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def reference_to(item: Any) -> ObjectReference:
    """Return a reference to an object, with its resource version; a reference as it is."""
    if isinstance(item, ObjectReference):
        return item
    whole: KubeObject = item
    kind, api_version = whole.kind, whole.api_version
    if not (kind and api_version):
        known = kind_of(type(item))
        kind, api_version = known.kind, known.api_version
    metadata = whole.metadata
    return ObjectReference(
        kind=kind,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        api_version=api_version,
        resource_version=metadata.resource_version,
    )


def plain_reference(reference: ObjectReference) -> dict[str, str]:
    """Return the reference as JSON values, in Go's order, without empty fields."""
    plain = {
        "kind": reference.kind,
        "namespace": reference.namespace,
        "name": reference.name,
        "uid": reference.uid,
        "apiVersion": reference.api_version,
        "resourceVersion": reference.resource_version,
        "fieldPath": reference.field_path,
    }
    return {name: value for name, value in plain.items() if value}


def event_namespace(reference: ObjectReference) -> str:
    """Return the namespace of events about an object."""
    return reference.namespace or _DEFAULT_NAMESPACE


def event_name(reference: ObjectReference, now_ns: int, random: Random) -> str:
    """Return a name for an event: the object's name and the time.

    Args:
        reference: The object.
        now_ns: Nanoseconds since the epoch.
        random: Draws a UUID if the object's name is not valid for an event.
    """
    name = f"{reference.name}.{now_ns:x}"
    if len(name) <= _NAME_LENGTH_MAX and _NAME.fullmatch(name):
        return name
    return str(UUID(int=random.getrandbits(128), version=4))
