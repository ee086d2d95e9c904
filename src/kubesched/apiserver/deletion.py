"""Deletions: at once, after a grace period, or once the last finalizer has gone.

Upstream: staging/src/k8s.io/apiserver/pkg/registry/{generic/registry/store.go,rest/delete.go},
          pkg/registry/core/{pod,namespace} (v1.36)
Invariants: a pod's deletion is always marked before it is removed; what is marked stays marked.
Differs:  an object whose deletion removes the finalizers `orphan` or `foregroundDeletion` is shown
          without them, and may be deleted with a precondition on its version; upstream writes it
          first, so that the version no longer fits.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from kubesched.api.core import FINISHED
from kubesched.api.integers import Int64
from kubesched.api.requirements import parse_int64
from kubesched.api.times import second_time
from kubesched.apiserver.admission import admit_delete
from kubesched.apiserver.decoding import BodyError, parsed
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.registry import ObjectRegistry
from kubesched.apiserver.request import ApiRequest, Operation, check_dry_run
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.status import FieldErrors, bad_request, conflict, invalid_kind
from kubesched.apiserver.stored_object import StoredObject, key_of
from kubesched.apiserver.times import after
from kubesched.cluster.server import CLEANUP
from kubesched.cluster.store import Key

FOREGROUND: Final = "Foreground"
BACKGROUND: Final = "Background"
ORPHAN: Final = "Orphan"
_FINALIZER_OF: Final = {ORPHAN: "orphan", FOREGROUND: "foregroundDeletion"}
_JOB_WARNING: Final = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background "
    "to remove them or set propagationPolicy=Orphan to suppress this warning"
)


class DeleteOptions(msgspec.Struct, frozen=True, rename="camel"):
    """Options of a deletion; None if not given, which leaves the object its own grace period.

    The policy is `Foreground`, `Background` or `Orphan`; `orphan_dependents` is its older form.
    """

    grace_period_seconds: Int64 | None = None
    propagation_policy: str | None = None
    orphan_dependents: bool | None = None
    preconditions: dict[str, str | None] | None = None
    dry_run: tuple[str, ...] | None = ()

    def precondition(self, name: str) -> str:
        """Return what the object must have as `uid` or `resourceVersion`; "" for anything."""
        return (self.preconditions or {}).get(name) or ""

    @property
    def policy(self) -> str | None:
        """The policy for dependents, from either field; None if not given."""
        if self.orphan_dependents is None:
            return self.propagation_policy
        return ORPHAN if self.orphan_dependents else BACKGROUND


def delete_options(request: ApiRequest, resource: Resource) -> DeleteOptions:
    """Return the options of a request, from its body or else from its query.

    A request to delete Jobs that does not choose what becomes of their pods gets a warning.

    Raises:
        StatusError: They are invalid.
    """
    try:
        body = parsed(request.body, request.content_type) if request.body else None
    except BodyError as error:
        raise bad_request(str(error)) from None
    options = _from_query(request) if body is None else options_of(body)
    if errors := _option_errors(options):
        raise invalid_kind("meta.k8s.io", "DeleteOptions", "", errors)
    if resource.group_resource == "jobs.batch" and options.policy is None:
        request.warnings.append(_JOB_WARNING)
    return options


def options_of(value: Plain) -> DeleteOptions:
    """Return the options in an object; raises StatusError if it is not a DeleteOptions."""
    kind = value.get("kind", "")
    if kind not in ("", "DeleteOptions"):
        raise bad_request(f'no kind "{kind}" is registered for DeleteOptions')
    try:
        return msgspec.convert(value, DeleteOptions)
    except msgspec.ValidationError as error:
        raise bad_request(f"DeleteOptions cannot be handled: {error}") from None


def _from_query(request: ApiRequest) -> DeleteOptions:
    grace = request.parameter("gracePeriodSeconds")
    seconds = parse_int64(grace)
    if grace and seconds is None:
        raise bad_request(f'strconv.ParseInt: parsing "{grace}": invalid syntax')
    return DeleteOptions(
        seconds,
        request.parameter("propagationPolicy") or None,
        request.flag("orphanDependents") if "orphanDependents" in request.query else None,
        None,
        tuple(request.query.get("dryRun", ())),
    )


def _option_errors(options: DeleteOptions) -> FieldErrors:
    errors = FieldErrors()
    field, policy = "propagationPolicy", options.propagation_policy
    if policy is not None and options.orphan_dependents is not None:
        errors.invalid(field, policy, "orphanDependents and deletionPropagation cannot be both set")
    if policy not in {None, FOREGROUND, BACKGROUND, ORPHAN}:
        errors.not_supported(field, policy, (FOREGROUND, BACKGROUND, ORPHAN, "nil"))
    check_dry_run(options.dry_run or (), errors)
    return errors


def delete(
    registry: ObjectRegistry, operation: Operation, options: DeleteOptions
) -> tuple[StoredObject, bool]:
    """Delete an object, or begin to; return its last state, and whether it is gone.

    Raises:
        StatusError: There is none, or it does not meet the preconditions.
    """
    return _Deleter(registry, operation, options).delete()


class _Deleter:
    def __init__(
        self, registry: ObjectRegistry, operation: Operation, options: DeleteOptions
    ) -> None:
        self._registry = registry
        self._resource = operation.resource
        self._operation = operation
        self._options = options
        self._key = key_of(operation.resource, operation.namespace, operation.name)
        self._is_dry_run = bool(options.dry_run)

    def delete(self) -> tuple[StoredObject, bool]:
        found = self._registry.get(self._resource, self._operation.namespace, self._operation.name)
        admit_delete(self._resource, self._operation.name)
        metadata = found.plain["metadata"]
        check_preconditions(self._resource, metadata, self._options)
        if self._resource.built_in_kind == "Namespace" and found.plain["spec"].get("finalizers"):
            if not metadata.get("deletionTimestamp"):
                found = self._kept(_terminating(self._registry, found.plain, self._options))
            return found, False
        plain = found.plain
        if self._resource.built_in_kind == "CustomResourceDefinition" and not self._is_dry_run:
            plain = self._without_instances(plain)
        plain = self._marked(plain)
        metadata = plain["metadata"]
        if plain is not found.plain:
            found = self._kept(plain)
        if metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds"):
            return found, False
        if self._is_dry_run:
            return found, True
        return self._registry.store.delete(self._key), True

    def _without_instances(self, definition: Plain) -> Plain:
        """Delete the objects of a kind; if some have finalizers, the definition waits for them."""
        store, kind = self._registry.store, definition["metadata"]["name"]
        is_held = False
        for stored in store.list(kind).items:
            metadata = stored.plain["metadata"]
            key = Key(kind, metadata.get("namespace", ""), metadata["name"])
            if metadata.get("finalizers"):
                is_held = True
                marked = {**metadata, **self._held_marks(metadata)}
                self._registry.write(key, {**stored.plain, "metadata": marked})
            else:
                store.delete(key)
        finalizers = definition["metadata"].get("finalizers", [])
        if not is_held or CLEANUP in finalizers:
            return definition
        metadata = {**definition["metadata"], "finalizers": [*finalizers, CLEANUP]}
        return {**definition, "metadata": metadata}

    def _kept(self, plain: Plain) -> StoredObject:
        if self._is_dry_run:
            return StoredObject(plain)
        return self._registry.write(self._key, plain)

    def _marked(self, plain: Plain) -> Plain:
        """Return the object with the marks of its deletion; the same object if none changes."""
        metadata = plain["metadata"]
        marks: Plain = {}
        if self._resource.built_in_kind == "Pod":
            before = metadata.get("deletionGracePeriodSeconds") or 0
            if not metadata.get("deletionTimestamp"):
                marks = self._marks(metadata, self._grace_of(plain))
            elif before:
                grace_seconds = self._wanted_seconds(before)
                if grace_seconds >= before:
                    return plain
                begin = after(datetime.fromisoformat(metadata["deletionTimestamp"]), -before)
                marks = {
                    "deletionTimestamp": second_time(after(begin, grace_seconds)),
                    "deletionGracePeriodSeconds": grace_seconds,
                }
        finalizers = self._finalizers(metadata)
        if finalizers and not marks:
            marks = self._held_marks(metadata)
        if finalizers != metadata.get("finalizers", []):
            marks["finalizers"] = finalizers
        if all(metadata.get(name) == value for name, value in marks.items()):
            return plain
        changed = {**metadata, **marks}
        if not changed.get("finalizers"):
            changed.pop("finalizers", None)
        return {**plain, "metadata": changed}

    def _grace_of(self, pod: Plain) -> int:
        spec, status = pod.get("spec", {}), pod.get("status", {})
        if not spec.get("nodeName") or status.get("phase") in FINISHED:
            return 0
        return self._wanted_seconds(spec.get("terminationGracePeriodSeconds") or 0)

    def _wanted_seconds(self, own: int) -> int:
        """Return the requested grace period, or else the pod's own; a negative one is a second."""
        wanted = self._options.grace_period_seconds
        seconds = own if wanted is None else wanted
        return 1 if seconds < 0 else seconds

    def _marks(self, metadata: Plain, grace_seconds: int) -> Plain:
        generation = metadata.get("generation")
        return {
            **({"generation": generation + 1} if generation else {}),
            "deletionTimestamp": self._registry.clock.timestamp(grace_seconds),
            "deletionGracePeriodSeconds": grace_seconds,
        }

    def _held_marks(self, metadata: Plain) -> Plain:
        """Return the marks of an object that only finalizers keep."""
        now = self._registry.clock.timestamp()
        before = metadata.get("deletionTimestamp")
        if before is None:
            return self._marks(metadata, 0)
        return {"deletionTimestamp": min(before, now), "deletionGracePeriodSeconds": 0}

    def _finalizers(self, metadata: Plain) -> list[str]:
        """Return finalizers with the one that the policy for dependents needs."""
        present = metadata.get("finalizers", [])
        if self._resource.built_in_kind == "Event":
            return list(present)
        kept = [one for one in present if one not in ("orphan", "foregroundDeletion")]
        policy = self._options.policy
        if policy is None:
            policy = next((p for p, name in _FINALIZER_OF.items() if name in present), None)
        if policy is None and "orphans" in self._resource.flags:
            policy = ORPHAN
        if (wanted := _FINALIZER_OF.get(policy or "")) is not None:
            kept.append(wanted)
        return list(present) if sorted(kept) == sorted(present) else kept


def check_preconditions(resource: Resource, metadata: Plain, options: DeleteOptions) -> None:
    """Raise StatusError if an object has another uid than it must have, or has changed."""
    # Events of both groups are kept in the older one.
    group = "" if resource.built_in_kind == "Event" else resource.group
    for field, name, change in (
        ("uid", "UID", "deleted and then recreated"),
        ("resourceVersion", "ResourceVersion", "modified"),
    ):
        wanted, found = options.precondition(field), metadata[field]
        if wanted and wanted != found:
            why = (
                f"the {name} in the precondition ({wanted}) does not match the {name} in record "
                f"({found}). The object might have been {change}"
            )
            raise conflict(group, resource.kind, metadata["name"], why)


def _terminating(registry: ObjectRegistry, namespace: Plain, options: DeleteOptions) -> Plain:
    metadata = {**namespace["metadata"], "deletionTimestamp": registry.clock.timestamp()}
    finalizer = _FINALIZER_OF.get(options.policy or "")
    if finalizer is not None and finalizer not in metadata.get("finalizers", []):
        metadata["finalizers"] = [*metadata.get("finalizers", []), finalizer]
    status = {**namespace.get("status", {}), "phase": "Terminating"}
    return {**namespace, "metadata": metadata, "status": status}
