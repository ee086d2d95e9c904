"""Managed fields: which manager set which fields of an object, and server-side apply.

A manager owns the fields that it writes. One that applies declares all its fields: it may not
change the value of a field that another manager owns, unless it is forced, and a field that it no
longer applies is removed, unless another manager owns it, too.

Upstream: staging/src/k8s.io/apimachinery/pkg/util/managedfields/internal,
          staging/src/k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager/equality.go,
          vendor/sigs.k8s.io/structured-merge-diff/v6/merge (v1.36)
Rejects:  what is applied: 400 for another kind, or managed fields in the body; 409 for conflicts;
          500 for values that do not fit the kind.
Invariants: objects handed in are not changed.
Differs:  fields owned through another version of a group are taken to be those of the version in
          use. Updates by many managers are never combined. Conflicts are sorted by manager, not in
          random order. The types of stored objects are not checked again.
"""

from __future__ import annotations

import json
from typing import Final, NamedTuple, TypeAlias

import msgspec

from kubesched.apiserver.owned_values import (
    Comparison,
    FieldSet,
    FieldSetError,
    compare,
    field_set,
    from_fields_v1,
    merge,
    path_text,
    remove,
    sorted_paths,
    to_fields_v1,
    type_errors,
    without_below,
)
from kubesched.apiserver.plain import Plain, deep_copy, get, without
from kubesched.apiserver.request import Operation
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.status import StatusError, bad_request, cause, internal

APPLY: Final = "Apply"
UPDATE: Final = "Update"
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


class Owner(NamedTuple):
    """The identity of a manager.

    Attributes:
        operation: `Apply` or `Update`.
        api_version: Of updates; "" for appliers, who stay the same in every version.
        subresource: What the fields were written through, "" for the object itself.
    """

    manager: str
    operation: str
    api_version: str
    subresource: str


class Ownership(msgspec.Struct, frozen=True):
    """The fields that a manager owns.

    Attributes:
        api_version: That the fields are named by.
        time: Of the last change, as in objects; None if unknown.
    """

    fields: FieldSet
    api_version: str
    time: str | None = None


Managers: TypeAlias = dict[Owner, Ownership]


def _updater(operation: Operation, manager: str) -> Owner:
    return Owner(manager, UPDATE, operation.resource.api_version, operation.subresource)


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
        managers[owner] = Ownership(fields, api_version, entry.get("time"))
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


def _ignored_fields(resource: Resource, subresource: str) -> FieldSet:
    """Return the fields that a write through a subresource cannot change."""
    if resource.has_status and not subresource:
        return _STATUS
    if subresource == "status":
        return _SPEC | {("f:metadata", f"f:{name}") for name in resource.left_by_status}
    return frozenset()


def disown(managers: Managers, changes: Comparison) -> Managers:
    """Remove changed and deleted fields from their owners."""
    gone = changes.changed | changes.removed
    return {
        owner: Ownership(fields, own.api_version, own.time)
        for owner, own in managers.items()
        if (fields := own.fields - gone)
    }


def keep_times(old: Plain, new: Plain) -> Plain:
    """Return the old object if the new one differs from it in times of managed fields only."""
    before, after = (
        [without(entry, "time") for entry in one.get("metadata", {}).get("managedFields") or ()]
        for one in (old, new)
    )
    if not after or before != after:
        return new
    return old if without_managed_fields(old) == without_managed_fields(new) else new


def track(operation: Operation, old: Plain | None, new: Plain, now: str | None) -> Plain:
    """Return an updated object with its managed fields.

    `new` has its defaults and is not yet admitted. `now` is as objects have times; None keeps none.
    Applied objects come with their managed fields. Objects whose managed fields were cleared are
    not tracked until the next apply.
    """
    managers = _claimed(old, new, operation.subresource)
    if old is not None and not managers:
        return without_managed_fields(new)
    owner = _updater(operation, operation.request.manager)
    return with_managers(new, _updated(operation.resource, old, new, managers, owner, now))


def _claimed(old: Plain | None, new: Plain, subresource: str) -> Managers:
    """Return the managers that the written object names, or else the earlier ones."""
    if subresource:
        return decode(old)
    named = new.get("metadata", {}).get("managedFields")
    if named in ([], [{}]):
        return {}
    return decode(new) or decode(old)


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
    ignored = _ignored_fields(resource, owner.subresource)
    changes = compare(before, without_managed_fields(new), resource.type).besides(ignored)
    changed = disown(managers, changes)
    if mine := changes.changed - _STRIPPED:
        if owner in changed:
            mine |= changed[owner].fields
        changed[owner] = Ownership(mine, owner.api_version, now)
    return changed


# Server-side apply.

_KUBECTL: Final = "kubectl"
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def apply(operation: Operation, current: Plain | None, applied: Plain, now: str | None) -> Plain:
    """Return an object with what a manager declares, and its managed fields; without defaults.

    `current` is the stored object, None if there is none. Fields of other managers are taken over
    if the request forces that. `now` is as objects have times; None keeps none. Raises StatusError
    if the declaration cannot be applied.
    """
    request, resource, subresource = operation.request, operation.resource, operation.subresource
    object_type, manager = resource.type, request.manager
    _check(resource, applied)
    live = without_managed_fields(current or {})
    merged = merge(live, applied, object_type)
    managers = decode(current)
    if current is not None and not managers:
        first = _updater(operation, "before-first-apply")
        managers = _updated(resource, None, current, {}, first, now)
    owner = Owner(manager, APPLY, "", subresource)
    ignored = _ignored_fields(resource, subresource)
    fields = without_below(field_set(applied, object_type), ignored)
    last = managers.pop(owner, None)
    if last is not None:
        owned = fields.union(*(one.fields for one in managers.values()))
        merged = remove(merged, _with_named(last.fields) - _with_named(owned), object_type)
    changes = compare(live, merged, object_type).besides(ignored)
    if not request.flag("force"):
        own = _client_side_applied(resource, live) if manager == _KUBECTL else frozenset()
        _check_conflicts(managers, changes.changed - own)
    managers = disown(managers, changes)
    if fields := fields - _STRIPPED:
        before = None if last is None else last.time
        time = now if merged != live else before
        managers[owner] = Ownership(fields, applied["apiVersion"], time)
    if manager == _KUBECTL:
        merged = _with_last_applied(merged, applied)
    changed = with_managers(merged, managers)
    return changed if current is None else keep_times(current, changed)


def _check(resource: Resource, applied: Plain) -> None:
    """Raise StatusError if a declaration is of another kind, or a value does not fit."""
    version, kind = str(applied.get("apiVersion", "")), str(applied.get("kind", ""))
    if (version, kind) != (resource.api_version, resource.kind):
        raise bad_request(f"invalid object type: {_kind_text(version, kind)}")
    if get(applied, "metadata", "managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    if found := list(type_errors(applied, resource.type)):
        text = found[0] if len(found) == 1 else "\n  ".join(["errors:", *found])
        raise internal(f"failed to create typed patch object ({_shown(applied)}): {text}")


def unfit(applied: Plain, why: str) -> StatusError:
    """Return the error for an apply whose result has a value of a wrong form."""
    kind = _kind_text(applied["apiVersion"], applied["kind"])
    return internal(
        f"failed to convert new object ({_shown(applied)}) to proper version: "
        f"unable to convert unstructured object to {kind}: {why}"
    )


def _shown(applied: Plain) -> str:
    namespace, name = (get(applied, "metadata", part) for part in ("namespace", "name"))
    texts = (one if isinstance(one, str) else "" for one in (namespace, name))
    return f"{'/'.join(texts)}; {_kind_text(applied['apiVersion'], applied['kind'])}"


def _kind_text(api_version: str, kind: str) -> str:
    group, _, version = api_version.rpartition("/")
    return f"{group}/{version}, Kind={kind}"


def _with_named(fields: FieldSet) -> FieldSet:
    """Return a set with all fields that have a part in it."""
    above = (path[:length] for path in fields for length in range(1, len(path)))
    return fields.union(path for path in above if path[-1].startswith("f:"))


def _client_side_applied(resource: Resource, live: Plain) -> FieldSet:
    """Return the fields that are unchanged since the last client-side apply of kubectl."""
    try:
        last = json.loads(get(live, "metadata", "annotations", _LAST_APPLIED) or "")
    except ValueError:
        return frozenset()
    is_same_version = isinstance(last, dict) and last.get("apiVersion") == resource.api_version
    if not is_same_version or any(type_errors(last, resource.type)):
        return frozenset()
    changes = compare(last, live, resource.type)
    return field_set(last, resource.type) - changes.changed - changes.removed


def _with_last_applied(merged: Plain, applied: Plain) -> Plain:
    """Renew kubectl's annotation of what it last applied, if there is one."""
    metadata = merged.get("metadata", {})
    annotations = metadata.get("annotations") or {}
    if not annotations.get(_LAST_APPLIED):
        return merged
    noted = deep_copy(applied)
    noted.get("metadata", {}).get("annotations", {}).pop(_LAST_APPLIED, None)
    if not noted.get("metadata", {}).get("annotations", True):
        del noted["metadata"]["annotations"]
    text = json.dumps(noted, separators=(",", ":"), sort_keys=True, ensure_ascii=False) + "\n"
    renewed = metadata | {"annotations": annotations | {_LAST_APPLIED: text}}
    return merged | {"metadata": renewed}


# Conflicts.


def _check_conflicts(managers: Managers, changed: FieldSet) -> None:
    causes, lines = [], []
    for owner in sorted(managers):
        who = _owner_text(owner)
        fields = [path_text(path) for path in sorted_paths(managers[owner].fields & changed)]
        if fields:
            lines += [f"conflicts with {who}:", *(f"- {field}" for field in fields)]
        causes += [cause("FieldManagerConflict", one, f"conflict with {who}") for one in fields]
    if not causes:
        return
    text = f"{len(causes)} conflicts: " + "\n".join(lines)
    if len(causes) == 1:
        text = f"1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    raise StatusError(409, "Conflict", f"Apply failed with {text}", {"causes": causes})


def _owner_text(owner: Owner) -> str:
    text = json.dumps(owner.manager, ensure_ascii=False)
    if owner.subresource:
        text += f' with subresource "{owner.subresource}"'
    return text if owner.operation == APPLY else f"{text} using {owner.api_version}"
