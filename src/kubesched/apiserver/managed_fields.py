"""Managed fields: which manager set which fields of an object, and when.

Upstream: staging/src/k8s.io/apimachinery/pkg/util/managedfields/internal,
          staging/src/k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager/equality.go (v1.36)
Invariants: objects handed in are not changed.
Differs:  fields owned through another version of a group are taken to be those of the version in
          use. Updates by many managers are never combined.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

import msgspec

from kubesched.apiserver.owned_values import (
    Comparison,
    FieldSet,
    FieldSetError,
    compare,
    from_fields_v1,
    to_fields_v1,
)
from kubesched.apiserver.plain import Plain, without
from kubesched.apiserver.resources import Resource

APPLY: Final = "Apply"
UPDATE: Final = "Update"
_BEFORE_FIRST_APPLY: Final = "before-first-apply"
# Fields without owners: the server fills them in, or they never change.
_OF_SERVER: Final = (
    *("creationTimestamp", "generation", "managedFields", "name", "namespace"),
    *("resourceVersion", "selfLink", "uid"),
)
_STRIPPED: Final[FieldSet] = frozenset(
    {("f:apiVersion",), ("f:kind",), ("f:metadata",)}
    | {("f:metadata", f"f:{name}") for name in _OF_SERVER}
)
_STATUS: Final[FieldSet] = frozenset({("f:status",)})
_SPEC: Final[FieldSet] = frozenset({("f:spec",)})
# The fields of the metadata that a write of the status leaves as they are.
_LEFT_BY_STATUS: Final[Mapping[str, tuple[str, ...]]] = {
    "deployments.apps": ("labels",),
    "pods": ("deletionTimestamp", "ownerReferences"),
}


class Owner(NamedTuple):
    """The identity of a manager.

    Attributes:
        manager: The name that the client gave.
        operation: `Apply` or `Update`.
        api_version: Of updates; "" for appliers, who stay the same in every version.
        subresource: What the fields were written through, "" for the object itself.
    """

    manager: str
    operation: str
    api_version: str
    subresource: str

    @property
    def is_applier(self) -> bool:
        """Whether it applies a complete intent, instead of updating what it read."""
        return self.operation == APPLY


class Ownership(msgspec.Struct, frozen=True):
    """The fields that a manager owns.

    Attributes:
        fields: The fields.
        api_version: That the fields are named by.
        time: Of the last change, as in objects; None if unknown.
        entry: The written form that it was read from, as long as nothing has changed; None if
            there is none.
    """

    fields: FieldSet
    api_version: str
    time: str | None = None
    entry: Plain | None = None


Managers: TypeAlias = dict[Owner, Ownership]


def owner_of(resource: Resource, manager: str, operation: str, subresource: str = "") -> Owner:
    """Return the owner of the fields that a manager writes."""
    api_version = "" if operation == APPLY else resource.api_version
    return Owner(manager or "unknown", operation, api_version, subresource)


def decode(value: Plain | None) -> Managers:
    """Return the managers of an object; none if its managed fields are malformed."""
    managers: Managers = {}
    for entry in (value or {}).get("metadata", {}).get("managedFields") or ():
        operation, api_version = entry.get("operation"), entry.get("apiVersion")
        is_known = operation in (APPLY, UPDATE) and entry.get("fieldsType") == "FieldsV1"
        if not is_known or not api_version:
            return {}
        try:
            fields = from_fields_v1(entry.get("fieldsV1") or {})
        except FieldSetError:
            return {}
        owner = Owner(
            entry.get("manager", ""),
            operation,
            "" if operation == APPLY else api_version,
            entry.get("subresource", ""),
        )
        managers[owner] = Ownership(fields, api_version, entry.get("time"), entry)
    return managers


def with_managers(value: Plain, managers: Managers) -> Plain:
    """Return an object with these managers."""
    metadata = without(value.get("metadata", {}), "managedFields")
    if managers:
        ordered = sorted(managers.items(), key=_position)
        metadata["managedFields"] = [_entry(owner, ownership) for owner, ownership in ordered]
    return value | {"metadata": metadata}


def _position(managed: tuple[Owner, Ownership]) -> tuple[str, ...]:
    """Return the key that sorts appliers first, then by time in seconds, and by name."""
    owner, own = managed
    return owner.operation, own.time or "", owner.manager, own.api_version, owner.subresource


def without_managed_fields(value: Plain) -> Plain:
    """Return an object without managed fields."""
    return with_managers(value, {})


def _entry(owner: Owner, ownership: Ownership) -> Plain:
    if ownership.entry is not None:
        return ownership.entry
    entry: Plain = {
        "manager": owner.manager,
        "operation": owner.operation,
        "apiVersion": ownership.api_version,
    }
    if ownership.time is not None:
        entry["time"] = ownership.time
    entry |= {"fieldsType": "FieldsV1", "fieldsV1": to_fields_v1(ownership.fields)}
    if owner.subresource:
        entry["subresource"] = owner.subresource
    return entry


def ignored_fields(resource: Resource, subresource: str) -> FieldSet:
    """Return the fields that a write through a subresource cannot change."""
    if resource.subresource("status") is None:
        return frozenset()
    if not subresource:
        return _STATUS
    if subresource == "status":
        left = _LEFT_BY_STATUS.get(resource.group_resource, ())
        metadata = {("f:metadata", f"f:{name}") for name in left}
        return _SPEC | ({("f:metadata",)} if resource.is_status_only else metadata)
    return frozenset()


def stripped(fields: FieldSet) -> FieldSet:
    """Leave out the fields that never have owners."""
    return fields - _STRIPPED


def disown(managers: Managers, changes: Comparison) -> Managers:
    """Remove changed and deleted fields from their owners."""
    gone = changes.changed | changes.removed
    left: Managers = {}
    for owner, ownership in managers.items():
        if not ownership.fields:
            continue
        if gone.isdisjoint(ownership.fields):
            left[owner] = ownership
        elif fields := ownership.fields - gone:
            left[owner] = Ownership(fields, ownership.api_version, ownership.time)
    return left


def keep_times(old: Plain, new: Plain) -> Plain:
    """Return the old object if the new one differs from it in times of managed fields only."""
    before, after = (
        [without(entry, "time") for entry in one.get("metadata", {}).get("managedFields") or ()]
        for one in (old, new)
    )
    if not after or before != after:
        return new
    return old if without_managed_fields(old) == without_managed_fields(new) else new


def track(
    resource: Resource,
    old: Plain | None,
    new: Plain,
    manager: str,
    subresource: str,
    now: str | None,
) -> Plain:
    """Return an updated object with its managed fields.

    `new` has its defaults and is not yet admitted. `now` is as objects have times; None keeps none.
    Applied objects come with their managed fields. Objects whose managed fields were cleared are
    not tracked until the next apply.
    """
    managers = _claimed(old, new, subresource)
    if old is not None and not managers:
        return without_managed_fields(new)
    owner = owner_of(resource, manager, UPDATE, subresource)
    return with_managers(new, _updated(resource, old, new, managers, owner, now))


def _claimed(old: Plain | None, new: Plain, subresource: str) -> Managers:
    """Return the managers that the written object names, or else the earlier ones."""
    if subresource:
        return decode(old)
    named = new.get("metadata", {}).get("managedFields")
    if named in ([], [{}]):
        return {}
    return decode(new) or decode(old)


def adopt(resource: Resource, current: Plain, subresource: str, now: str | None) -> Managers:
    """Return a manager that owns all fields of an object without managers."""
    owner = owner_of(resource, _BEFORE_FIRST_APPLY, UPDATE, subresource)
    return _updated(resource, None, current, {}, owner, now)


def _updated(
    resource: Resource,
    old: Plain | None,
    new: Plain,
    managers: Managers,
    owner: Owner,
    now: str | None,
) -> Managers:
    """Return the managers after an update by `owner`, who gets all fields that it changes."""
    before = resource.type.zero() if old is None else without_managed_fields(old)
    ignored = ignored_fields(resource, owner.subresource)
    changes = compare(before, without_managed_fields(new), resource.type).besides(ignored)
    changed = disown(managers, changes)
    mine = stripped(changes.changed)
    if mine:
        if owner in changed:
            mine |= changed[owner].fields
        changed[owner] = Ownership(mine, owner.api_version, now)
    return changed
