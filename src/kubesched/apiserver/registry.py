"""ObjectRegistry creates, changes and stores objects by the rules of their kinds.

Upstream: staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go, registry/rest (v1.36)
Invariants: an object that admission or validation refuses is not stored; a write without a change
            keeps the version; only the server sets identities, versions and creation times.
Differs:  a generated name that is taken is not drawn again; events that nobody has written for an
          hour are removed when the next one is written.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from kubesched.api.field_errors import FieldError
from kubesched.apiserver import admission, managed_fields, strategy, validation
from kubesched.apiserver.admission.request import AdmissionRequest
from kubesched.apiserver.listing import is_version, version_of_object
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.request import Operation
from kubesched.apiserver.resources import Resource, Resources
from kubesched.apiserver.status import (
    FieldErrors,
    StatusError,
    already_exists,
    conflict,
    internal,
    invalid_kind,
    not_found,
)
from kubesched.apiserver.stored_object import EVENTS_GROUP, StoredObject, StoredObjects, to_core
from kubesched.apiserver.times import Clock
from kubesched.apiserver.warnings import warnings_of_new, warnings_of_update
from kubesched.cluster.store import Key, Store

_DEFINITIONS: Final = "customresourcedefinitions.apiextensions.k8s.io"
_EVENTS: Final = "events"
_EVENTS_STAY: Final = timedelta(hours=1)
_REPEATED_OWNERS: Final = (
    ".metadata.ownerReferences contains duplicate entries{}; API server dedups owner references in "
    "1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate "
    "UID(s) observed: {}"
)


class ObjectRegistry:
    """Objects, and the rules by which they change; admission sees others through `lookup`."""

    idle_kinds: Mapping[str, str] = MappingProxyType({})
    """For kinds that are only stored, a warning about what is missing."""

    def __init__(self, store: Store[StoredObject], resources: Resources, clock: Clock) -> None:
        self.store = store
        self.lookup = StoredObjects(store)
        self.resources = resources
        self.clock = clock
        # When events were written, the last one at the end.
        self._written: OrderedDict[Key, datetime] = OrderedDict()
        self.follow_definitions()

    def follow_definitions(self) -> None:
        """Serve what the stored CustomResourceDefinitions define, now and after each change."""
        self.store.watch(_DEFINITIONS, self.store.version, self._define)
        self._define()

    def _define(self) -> None:
        self.resources.define([one.plain for one in self.store.list(_DEFINITIONS)])

    # Reading.

    def get(self, operation: Operation) -> StoredObject:
        """Return the object that an operation is about; raises StatusError if there is none."""
        found = self.store.find(operation.key)
        if found is None:
            raise not_found(operation.resource, operation.name)
        return found

    # Creating.

    def create(self, operation: Operation, obj: Plain, *, is_tracked: bool = True) -> StoredObject:
        """Store a new object with its defaults, in its namespace; raises StatusError if refused.

        `obj` may be changed. With `is_tracked`, the manager of its fields is recorded.
        """
        resource = operation.resource
        if is_tracked:
            obj = managed_fields.track(operation, None, obj, self.clock.timestamp())
        admitted = AdmissionRequest(resource, self.lookup)
        obj = admission.admit(admitted, obj)
        _drop_repeated_owners(operation, obj["metadata"])
        obj = self._prepared(operation, obj)
        metadata = obj["metadata"]
        if errors := validation.errors_of_new(resource, obj):
            raise _invalid(resource, metadata.get("name", ""), errors)
        operation.request.warnings.extend(warnings_of_new(resource, obj))
        if missing := self.idle_kinds.get(resource.storage_kind):
            operation.request.warnings.append(f"{resource.kind} is stored, but here {missing}")
        admission.check(admitted, obj)
        if is_version(metadata.get("resourceVersion", "")) and not operation.is_dry_run:
            raise internal("resourceVersion should not be set on objects to be created")
        name = metadata["name"]
        key = operation._replace(name=name).key
        if (found := self.store.find(key)) is not None:
            is_ending = "deletionTimestamp" in found.plain["metadata"]
            raise already_exists(resource, name, is_ending=is_ending)
        stored = StoredObject(_storage_form(resource, obj))
        if operation.is_dry_run:
            return stored
        self._remove_old_events(key)
        return self.store.create(key, stored)

    def _prepared(self, operation: Operation, obj: Plain) -> Plain:
        metadata = obj["metadata"]
        metadata |= {"uid": self.clock.uid(), "creationTimestamp": self.clock.timestamp()}
        prefix = metadata.get("generateName")
        if prefix and not metadata.get("name"):
            metadata["name"] = self.clock.name_after(prefix)
        return strategy.prepare_for_create(operation.resource, obj)

    # Changing.

    def update(
        self,
        operation: Operation,
        change: Callable[[Plain | None], Plain],
        *,
        creates: bool = False,
        is_tracked: bool = True,
    ) -> tuple[StoredObject, bool]:
        """Replace an object by what `change` returns; return it, and whether it is new.

        With `creates`, a missing object is created, and `change` gets None. With `is_tracked`, the
        manager of changed fields is recorded. Raises StatusError if the change is refused.
        """
        resource = operation.resource
        found = self.store.find(operation.key)
        if found is None:
            if operation.subresource or not creates:
                raise not_found(resource, operation.name)
            new = change(None)
            _check_is_new(operation, new["metadata"])
            return self.create(operation, new, is_tracked=is_tracked), True
        old = found.form(resource)
        new = change(old)
        if is_tracked:
            new = managed_fields.track(operation, old, new, self.clock.timestamp())
        new = managed_fields.keep_times(old, self._changed(operation, old, new))
        return self.replace(operation, found, new), False

    def _changed(self, operation: Operation, old: Plain, new: Plain) -> Plain:
        """Return the new object, admitted, prepared and validated."""
        resource = operation.resource
        uid, wanted = old["metadata"]["uid"], new["metadata"].get("uid")
        if operation.request.method == "PUT" and wanted not in (None, "", uid):
            raise precondition_failed(operation, "UID", wanted, uid)
        admitted = AdmissionRequest(resource, self.lookup, old, operation.subresource)
        new = admission.admit(admitted, new)
        _drop_repeated_owners(operation, new["metadata"])
        check_version(operation, old["metadata"], new["metadata"])
        version = old["metadata"]["resourceVersion"]
        new = {**new, "metadata": {**new["metadata"], "resourceVersion": version}}
        new = strategy.prepare_for_update(resource, new, old, operation.subresource)
        if errors := validation.errors_of_update(resource, new, old, operation.subresource):
            raise _invalid(resource, operation.name, errors)
        warnings = warnings_of_update(resource, new, old, operation.subresource)
        operation.request.warnings.extend(warnings)
        admission.check(admitted, new)
        return new

    def replace(self, operation: Operation, found: StoredObject, new: Plain) -> StoredObject:
        """Store a new state of an object, or delete it if its last finalizer is gone."""
        resource = operation.resource
        key = operation.key
        kept = _storage_form(resource, new)
        if _is_released(resource, kept, found.plain):
            if not operation.is_dry_run:
                self.store.delete(key)
            return StoredObject(kept)
        if kept == found.plain:
            return found
        stored = StoredObject(kept)
        if operation.is_dry_run:
            return stored
        self._remove_old_events(key)
        return self.store.update(key, stored)

    def _remove_old_events(self, key: Key) -> None:
        """Remove events that nobody has written for an hour, if `key` is an event's."""
        if key.kind != _EVENTS:
            return
        now, written = self.clock.now(), self._written
        if not written:
            written.update(dict.fromkeys(self.store.keyed(_EVENTS), now))
        written[key] = now
        written.move_to_end(key)
        while written[oldest := next(iter(written))] < now - _EVENTS_STAY:
            del written[oldest]
            if self.store.find(oldest) is not None:
                self.store.delete(oldest)

    def write(self, key: Key, plain: Plain) -> StoredObject:
        """Store a new state of an object without checks; for the server's own writes."""
        return self.store.update(key, StoredObject(plain))


def _drop_repeated_owners(operation: Operation, metadata: Plain) -> None:
    """Remove repeated owner references, in place, with a warning."""
    owners = metadata.get("ownerReferences") or []
    again = [one["uid"] for index, one in enumerate(owners) if one in owners[:index]]
    if again:
        once = [one for index, one in enumerate(owners) if one not in owners[:index]]
        metadata["ownerReferences"] = once
        when = " after mutating admission happens" if operation.request.method == "PATCH" else ""
        operation.request.warnings.append(_REPEATED_OWNERS.format(when, ", ".join(again)))


def precondition_failed(operation: Operation, what: str, wanted: str, found: str) -> StatusError:
    """Return the error for an object whose `UID` or `ResourceVersion` is not the wanted one."""
    _, resource, namespace, name, _ = operation
    path = f"{namespace}/{name}" if namespace else name
    kept_at = "minions" if resource.plural == "nodes" else resource.plural
    why = (
        f"StorageError: invalid object, Code: 4, Key: /registry/{kept_at}/{path}, "
        f"ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: {what} in precondition: "
        f"{wanted}, {what} in object meta: {found}"
    )
    return conflict(resource.group, resource.plural, name, why)


def _check_is_new(operation: Operation, metadata: Plain) -> None:
    """Raise StatusError if an object that an update creates has the uid of another one."""
    resource, uid = operation.resource, metadata.get("uid")
    if uid and operation.request.method == "PUT":
        raise precondition_failed(operation, "UID", uid, "")
    if uid:
        why = (
            f"uid mismatch: the provided object specified uid {uid}, and no existing object "
            "was found"
        )
        raise conflict(resource.group, resource.plural, operation.name, why)
    # Nothing is stored under the version that the writer has seen.
    metadata.pop("resourceVersion", None)


def check_version(operation: Operation, old: Plain, new: Plain) -> None:
    """Raise StatusError if new metadata has another version than the stored one."""
    resource = operation.resource
    wanted = version_of_object(new.get("resourceVersion", ""))
    if not wanted:
        if "versioned" in resource.flags:
            errors = FieldErrors()
            errors.invalid("metadata.resourceVersion", 0, "must be specified for an update")
            raise invalid_kind(resource.group, resource.plural, operation.name, errors)
        return
    if wanted != int(old["resourceVersion"]):
        raise conflict(resource.group, resource.plural, operation.name)


def _invalid(resource: Resource, name: str, errors: Sequence[FieldError]) -> StatusError:
    """Return the refusal of an object with these errors; for events it names the core group."""
    group = "" if resource.group == EVENTS_GROUP else resource.group
    return invalid_kind(group, resource.kind, name, errors)


def _storage_form(resource: Resource, obj: Plain) -> Plain:
    return to_core(obj) if resource.group == EVENTS_GROUP else obj


def _is_released(resource: Resource, new: Plain, old: Plain) -> bool:
    """Return whether an update removes the last finalizer of an object that is being deleted."""
    before = old["metadata"]
    if new["metadata"].get("finalizers") or not before.get("deletionTimestamp"):
        return False
    if resource.built_in_kind == "Namespace" and new["spec"].get("finalizers"):
        return False
    return not before.get("deletionGracePeriodSeconds")
