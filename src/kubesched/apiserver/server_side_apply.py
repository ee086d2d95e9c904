"""Server-side apply merges the fields that a manager declares, and records their owners.

A manager owns the fields it applies. It may not change the value of a field that another manager
owns, unless it is forced. A field that it no longer applies is removed, unless another manager owns
it, too.

Upstream: staging/src/k8s.io/apimachinery/pkg/util/managedfields/internal,
          vendor/sigs.k8s.io/structured-merge-diff/v6/merge (v1.36)
Rejects:  400 for another kind, or managed fields in the body; 409 for conflicts; 500 for values
          that do not fit the kind.
Invariants: no argument is changed.
Differs:  conflicts are sorted by manager, not in random order. The types of stored objects are not
          checked again.
"""

from __future__ import annotations

import json
from typing import Final

from kubesched.apiserver.managed_fields import (
    APPLY,
    Managers,
    Owner,
    Ownership,
    adopt,
    decode,
    disown,
    ignored_fields,
    keep_times,
    owner_of,
    stripped,
    with_managers,
    without_managed_fields,
)
from kubesched.apiserver.owned_values import (
    EntryError,
    FieldSet,
    compare,
    field_set,
    merge,
    path_text,
    remove,
    sorted_paths,
    without_below,
)
from kubesched.apiserver.plain import Plain, deep_copy, get
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.schema import ObjectType, decoded
from kubesched.apiserver.status import StatusError, bad_request, cause, internal
from kubesched.apiserver.values import SchemaError

_KUBECTL: Final = "kubectl"
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def apply(
    resource: Resource,
    current: Plain | None,
    applied: Plain,
    manager: str,
    force: bool,
    now: str | None,
    subresource: str = "",
) -> Plain:
    """Return an object with what a manager declares, and its managed fields; without defaults.

    `current` is the stored object, None if there is none. With `force`, fields of other managers
    are taken over. `now` is as objects have times; None keeps none.

    Raises:
        ApiError: It cannot be applied.
    """
    object_type = resource.type
    _check(resource, applied)
    live = without_managed_fields(current or {})
    try:
        merged = merge(live, applied, object_type)
    except EntryError as error:
        raise _untyped(applied, str(error)) from None
    managers = decode(current)
    if current is not None and not managers:
        managers = adopt(resource, current, subresource, now)
    owner = owner_of(resource, manager, APPLY, subresource)
    ignored = ignored_fields(resource, subresource)
    fields = without_below(field_set(applied, object_type), ignored)
    last = managers.pop(owner, None)
    if last is not None:
        owned = fields.union(*(one.fields for one in managers.values()))
        merged = remove(merged, _with_named(last.fields) - _with_named(owned), object_type)
    changes = compare(live, merged, object_type).besides(ignored)
    if not force:
        own = _client_side_applied(live, applied, object_type) if manager == _KUBECTL else ()
        _check_conflicts(managers, changes.changed.difference(own))
    managers = disown(managers, changes)
    if fields := stripped(fields):
        before = None if last is None else last.time
        time = now if merged != live else before
        managers[owner] = Ownership(fields, applied["apiVersion"], time)
    if manager == _KUBECTL:
        merged = _with_last_applied(merged, applied)
    changed = with_managers(merged, managers)
    return changed if current is None else keep_times(current, changed)


def _check(resource: Resource, applied: Plain) -> None:
    """Check that a declaration is of the kind, and has its fields only.

    Raises:
        StatusError: It is another kind, or a value does not fit.
    """
    version, kind = str(applied.get("apiVersion", "")), str(applied.get("kind", ""))
    if (version, kind) != (resource.api_version, resource.kind):
        raise bad_request(f"invalid object type: {_kind_text(version, kind)}")
    if get(applied, "metadata", "managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    try:
        _, unknown = decoded(resource.type, applied)
    except SchemaError as error:
        raise _untyped(applied, str(error)) from None
    if unknown:
        raise _untyped(applied, f".{unknown[0]}: field not declared in schema")


def _untyped(applied: Plain, why: str) -> StatusError:
    namespace, name = (get(applied, "metadata", part) or "" for part in ("namespace", "name"))
    kind = _kind_text(applied["apiVersion"], applied["kind"])
    return internal(f"failed to create typed patch object ({namespace}/{name}; {kind}): {why}")


def _kind_text(api_version: str, kind: str) -> str:
    group, _, version = api_version.rpartition("/")
    return f"{group}/{version}, Kind={kind}"


def _with_named(fields: FieldSet) -> FieldSet:
    """Return a set with all fields that have a part in it."""
    above = (path[:length] for path in fields for length in range(1, len(path)))
    return fields.union(path for path in above if path[-1].startswith("f:"))


def _client_side_applied(live: Plain, applied: Plain, object_type: ObjectType) -> FieldSet:
    """Return the fields that are unchanged since the last client-side apply of kubectl."""
    annotations = live.get("metadata", {}).get("annotations") or {}
    try:
        last = json.loads(annotations.get(_LAST_APPLIED) or "")
        if last["apiVersion"] != applied["apiVersion"]:
            return frozenset()
        decoded(object_type, last)
    except (ValueError, KeyError, TypeError):
        # There is none, or it is none of kubectl's.
        return frozenset()
    changes = compare(last, live, object_type)
    return field_set(last, object_type) - changes.changed - changes.removed


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
    """Raise StatusError if others own fields that would change."""
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
    return text if owner.is_applier else f"{text} using {owner.api_version}"
