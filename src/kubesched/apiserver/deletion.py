"""Deletions: at once, after a grace period, or once the last finalizer has gone.

Upstream: staging/src/k8s.io/apiserver/pkg/registry/{generic/registry/store.go,rest/delete.go},
          pkg/registry/core/{pod,namespace} (v1.36)
Invariants: a pod's deletion is always marked before it is removed; what is marked stays marked.
Differs:  an object whose deletion removes the finalizers `orphan` or `foregroundDeletion` is shown
          without them, and may be deleted with a precondition on its version; upstream writes it
          first, so that the version no longer fits. The policy for dependents does not matter for
          namespaces.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from kubesched.api.core import FINISHED
from kubesched.api.integers import Int64
from kubesched.api.times import second_time
from kubesched.apiserver.admission import admit_delete
from kubesched.apiserver.decoding import BodyError, parsed
from kubesched.apiserver.plain import Plain, without
from kubesched.apiserver.registry import ObjectRegistry
from kubesched.apiserver.request import ApiRequest, Operation, check_dry_run
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.status import FieldErrors, bad_request, conflict, invalid_kind
from kubesched.apiserver.stored_object import StoredObject
from kubesched.apiserver.times import Clock, after
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

    def grace_or(self, own_seconds: int) -> int:
        """Return the wanted grace period, or else the pod's own; a negative one is a second."""
        wanted = self.grace_period_seconds
        seconds = own_seconds if wanted is None else wanted
        return 1 if seconds < 0 else seconds

    @property
    def policy(self) -> str | None:
        """The policy for dependents, from either field; None if not given."""
        if self.orphan_dependents is None:
            return self.propagation_policy
        return ORPHAN if self.orphan_dependents else BACKGROUND


def delete_options(request: ApiRequest, resource: Resource) -> DeleteOptions:
    """Return the options of a request, from its body or else from its query.

    Raises StatusError if they are invalid. A request to delete Jobs that does not choose what
    becomes of their pods gets a warning.
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
    return DeleteOptions(
        request.number("gracePeriodSeconds"),
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

    Raises StatusError if there is none, or if it does not meet the preconditions.
    """
    resource = operation.resource
    found = registry.get(operation)
    admit_delete(resource, operation.name)
    plain = found.plain
    check_preconditions(resource, plain["metadata"], options)
    if resource.built_in_kind == "Namespace" and plain["spec"].get("finalizers"):
        changed, is_held = _terminating(plain, registry.clock), True
    else:
        if resource.built_in_kind == "CustomResourceDefinition" and not options.dry_run:
            plain = _without_instances(registry, plain)
        changed = _marked(resource, plain, options, registry.clock)
        metadata = changed["metadata"]
        is_held = bool(metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds"))
    if changed != found.plain:
        found = StoredObject(changed) if options.dry_run else registry.write(operation.key, changed)
    if is_held or options.dry_run:
        return found, not is_held
    return registry.store.delete(operation.key), True


def _terminating(namespace: Plain, clock: Clock) -> Plain:
    """Return a namespace that waits for its content to be deleted."""
    metadata = {"deletionTimestamp": clock.timestamp(), **namespace["metadata"]}
    status = {**namespace.get("status", {}), "phase": "Terminating"}
    return {**namespace, "metadata": metadata, "status": status}


def _without_instances(registry: ObjectRegistry, definition: Plain) -> Plain:
    """Delete the objects of a kind; if some have finalizers, the definition waits for them."""
    kind = definition["metadata"]["name"]
    is_held = False
    for stored in registry.store.list(kind):
        metadata = stored.plain["metadata"]
        key = Key(kind, metadata.get("namespace", ""), metadata["name"])
        if metadata.get("finalizers"):
            is_held = True
            marked = {**metadata, **_held_marks(metadata, registry.clock)}
            registry.write(key, {**stored.plain, "metadata": marked})
        else:
            registry.store.delete(key)
    finalizers = definition["metadata"].get("finalizers", [])
    if not is_held or CLEANUP in finalizers:
        return definition
    metadata = {**definition["metadata"], "finalizers": [*finalizers, CLEANUP]}
    return {**definition, "metadata": metadata}


def _marked(resource: Resource, plain: Plain, options: DeleteOptions, clock: Clock) -> Plain:
    metadata = plain["metadata"]
    marks: Plain = {}
    if resource.built_in_kind == "Pod":
        before = metadata.get("deletionGracePeriodSeconds") or 0
        if not metadata.get("deletionTimestamp"):
            marks = _marks(metadata, _grace_of(plain, options), clock)
        elif before:
            grace_seconds = options.grace_or(before)
            if grace_seconds >= before:
                return plain
            begin = after(datetime.fromisoformat(metadata["deletionTimestamp"]), -before)
            marks = {
                "deletionTimestamp": second_time(after(begin, grace_seconds)),
                "deletionGracePeriodSeconds": grace_seconds,
            }
    finalizers = _finalizers(resource, metadata, options)
    if finalizers and not marks:
        marks = _held_marks(metadata, clock)
    changed = {**metadata, **marks, "finalizers": finalizers}
    return {**plain, "metadata": changed if finalizers else without(changed, "finalizers")}


def _grace_of(pod: Plain, options: DeleteOptions) -> int:
    spec, status = pod.get("spec", {}), pod.get("status", {})
    if not spec.get("nodeName") or status.get("phase") in FINISHED:
        return 0
    return options.grace_or(spec.get("terminationGracePeriodSeconds") or 0)


def _marks(metadata: Plain, grace_seconds: int, clock: Clock) -> Plain:
    generation = metadata.get("generation")
    return {
        **({"generation": generation + 1} if generation else {}),
        "deletionTimestamp": clock.timestamp(grace_seconds),
        "deletionGracePeriodSeconds": grace_seconds,
    }


def _held_marks(metadata: Plain, clock: Clock) -> Plain:
    """Return the marks of an object that only finalizers keep."""
    before = metadata.get("deletionTimestamp")
    if before is None:
        return _marks(metadata, 0, clock)
    return {
        "deletionTimestamp": min(before, clock.timestamp()),
        "deletionGracePeriodSeconds": 0,
    }


def _finalizers(resource: Resource, metadata: Plain, options: DeleteOptions) -> list[str]:
    """Return finalizers with the one that the policy for dependents needs."""
    present: list[str] = metadata.get("finalizers", [])
    # The garbage collector passes over events.
    if resource.built_in_kind == "Event":
        return present
    kept = [one for one in present if one not in ("orphan", "foregroundDeletion")]
    policy = options.policy
    if policy is None:
        policy = next((p for p, name in _FINALIZER_OF.items() if name in present), None)
    if policy is None and "orphans" in resource.flags:
        policy = ORPHAN
    if (wanted := _FINALIZER_OF.get(policy or "")) is not None:
        kept.append(wanted)
    return present if sorted(kept) == sorted(present) else kept


def check_preconditions(resource: Resource, metadata: Plain, options: DeleteOptions) -> None:
    """Raise StatusError if an object has another uid than it must have, or has changed."""
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
            raise conflict(resource.group, resource.kind, metadata["name"], why)
