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
from typing import Any, Final, NamedTuple

import msgspec

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
    Comparison,
    FieldSet,
    Path,
    compare,
    field_set,
    merge,
    path_text,
    remove,
    sorted_paths,
    type_errors,
    with_named,
    without_below,
)
from kubesched.apiserver.plain import Plain, deep_copy, get
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.schema import ObjectType
from kubesched.apiserver.status import StatusError, bad_request, internal

_KUBECTL: Final = "kubectl"
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


class _Conflict(NamedTuple):
    owner: Owner
    path: Path


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
    object_type = _checked_type(resource, applied)
    live = without_managed_fields(current or {})
    applying = _Applying(
        object_type,
        live,
        applied,
        owner_of(resource, manager, APPLY, subresource),
        ignored_fields(resource, subresource),
        now,
    )
    managers = decode(current)
    if current is not None and not managers:
        managers = adopt(resource, current, subresource, now)
    merged, managers = applying.apply(managers, force)
    if manager == _KUBECTL:
        merged = _with_last_applied(merged, applied)
    changed = with_managers(merged, managers)
    return changed if current is None else keep_times(current, changed)


def _checked_type(resource: Resource, applied: Plain) -> ObjectType:
    version, kind = str(applied.get("apiVersion", "")), str(applied.get("kind", ""))
    if (version, kind) != (resource.api_version, resource.kind):
        raise bad_request(f"invalid object type: {_kind_text(version, kind)}")
    if get(applied, "metadata", "managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    object_type = resource.type
    found = list(type_errors(applied, object_type))
    if found:
        text = found[0] if len(found) == 1 else "\n  ".join(["errors:", *found])
        raise internal(f"failed to create typed patch object ({_shown(applied)}): {text}")
    return object_type


def unfit(applied: Plain, why: str) -> StatusError:
    """Return the error for an apply whose result has a value of a wrong form."""
    kind = _kind_text(applied["apiVersion"], applied["kind"])
    return internal(
        f"failed to convert new object ({_shown(applied)}) to proper version: "
        f"unable to convert unstructured object to {kind}: {why}"
    )


def _shown(applied: Plain) -> str:
    namespace, name = (_text(get(applied, "metadata", part)) for part in ("namespace", "name"))
    return f"{namespace}/{name}; {_kind_text(applied['apiVersion'], applied['kind'])}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _kind_text(api_version: str, kind: str) -> str:
    group, _, version = api_version.rpartition("/")
    return f"{group}/{version}, Kind={kind}"


class _Applying(msgspec.Struct, frozen=True):
    """One apply of a manager to a live object, which is empty if there is none.

    The write does not change the fields in `ignored`; `now` is as objects have times, or None.
    """

    type: ObjectType
    live: Plain
    applied: Plain
    owner: Owner
    ignored: FieldSet
    now: str | None

    def apply(self, managers: Managers, force: bool) -> tuple[Plain, Managers]:
        """Return the merged object and its managers.

        Raises:
            ApiError: Others own fields that would change.
        """
        last = managers.get(self.owner)
        fields = without_below(field_set(self.applied, self.type), self.ignored)
        time = last.time if last else None
        mine = Ownership(fields, str(self.applied["apiVersion"]), time)
        managers = {**managers, self.owner: mine}
        merged = merge(self.live, self.applied, self.type)
        if last is not None and last.fields:
            merged = self._pruned(merged, managers, last.fields)
        changes = compare(self.live, merged, self.type).besides(self.ignored)
        if not force:
            self._check(managers, changes)
        managers = disown(managers, changes, besides=self.owner)
        return merged, self._renewed(managers, is_changed=merged != self.live)

    def _check(self, managers: Managers, changes: Comparison) -> None:
        own = self._client_side_applied() if self.owner.manager == _KUBECTL else frozenset()
        conflicts = [
            _Conflict(owner, path)
            for owner in sorted(managers)
            if owner != self.owner
            for path in sorted_paths(managers[owner].fields & changes.changed - own)
        ]
        if conflicts:
            raise _refusal(conflicts)

    def _client_side_applied(self) -> FieldSet:
        """Return the fields that are unchanged since the last client-side apply of kubectl."""
        annotations = self.live.get("metadata", {}).get("annotations") or {}
        try:
            last = json.loads(annotations.get(_LAST_APPLIED) or "")
        except ValueError:
            return frozenset()
        is_same_version = isinstance(last, dict) and (
            last.get("apiVersion") == self.applied["apiVersion"]
        )
        if not is_same_version or any(type_errors(last, self.type)):
            return frozenset()
        changes = compare(last, self.live, self.type)
        return field_set(last, self.type) - changes.changed - changes.removed

    def _renewed(self, managers: Managers, *, is_changed: bool) -> Managers:
        """Remove fields without owners from the manager's own, and set the time of a change."""
        mine = managers.pop(self.owner, None)
        fields = stripped(mine.fields) if mine else frozenset()
        if mine is not None and fields:
            time = self.now if is_changed else mine.time
            managers[self.owner] = msgspec.structs.replace(mine, fields=fields, time=time)
        return managers

    def _pruned(self, merged: Plain, managers: Managers, last: FieldSet) -> Plain:
        """Remove fields that the last apply had, this one has not, and no other manager owns."""
        object_type = self.type
        of_all: FieldSet = frozenset().union(*(one.fields for one in managers.values()))
        all_fields = with_named(field_set(merged, object_type), object_type)
        owned = with_named(of_all, object_type)
        mine = with_named(last, object_type)
        left = with_named(field_set(remove(merged, mine, object_type), object_type), object_type)
        pruned = remove(merged, all_fields - (left | owned), object_type)
        # Fields that the last apply did not have stay, even below a removed one.
        kept = with_named(field_set(pruned, object_type), object_type)
        return dict(remove(merged, (all_fields - kept) & mine, object_type))


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


def _refusal(conflicts: list[_Conflict]) -> StatusError:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {_owner_text(owner)}",
            "field": path_text(path),
        }
        for owner, path in conflicts
    ]
    message = f"Apply failed with {_conflict_text(conflicts)}"
    return StatusError(409, "Conflict", message, {"causes": causes})


def _conflict_text(conflicts: list[_Conflict]) -> str:
    if len(conflicts) == 1:
        owner, path = conflicts[0]
        return f"1 conflict: conflict with {_owner_text(owner)}: {path_text(path)}"
    paths: dict[Owner, list[Path]] = {}
    for owner, path in conflicts:
        paths.setdefault(owner, []).append(path)
    lines: list[str] = []
    for owner, own in paths.items():
        lines += [
            f"conflicts with {_owner_text(owner)}:",
            *(f"- {path_text(path)}" for path in own),
        ]
    return f"{len(conflicts)} conflicts: " + "\n".join(lines)


def _owner_text(owner: Owner) -> str:
    text = json.dumps(owner.manager, ensure_ascii=False)
    if owner.subresource:
        text += f' with subresource "{owner.subresource}"'
    return text if owner.is_applier else f"{text} using {owner.api_version}"
