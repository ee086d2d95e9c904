"""The counts in the status of workloads.

Upstream: pkg/apis/apps/validation/validation.go, pkg/apis/core/validation (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from kubesched.apiserver.field_fault import FieldFault, invalid
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.validation.metadata import core_metadata_update_faults
from kubesched.apiserver.validation.numbers import negative_faults


class _Counts(NamedTuple):
    """What is counted of one kind: everything, and what may not exceed the replicas."""

    all: tuple[str, ...]
    bounded: tuple[str, ...] = ()


_OF_REPLICAS: Final = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
_OF_DEPLOYMENTS: Final = ("updatedReplicas", "readyReplicas", "availableReplicas")
_OF_SETS: Final = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
_ENDS: Final = ("observedGeneration", "collisionCount")
_COUNTS: Final[Mapping[str, _Counts]] = {
    "DaemonSet": _Counts(
        (
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
            "collisionCount",
        )
    ),
    "Deployment": _Counts(
        (
            "observedGeneration",
            "replicas",
            *_OF_DEPLOYMENTS,
            "unavailableReplicas",
            "terminatingReplicas",
            "collisionCount",
        ),
        _OF_DEPLOYMENTS,
    ),
    "ReplicaSet": _Counts(
        ("replicas", *_OF_REPLICAS, "observedGeneration", "terminatingReplicas"), _OF_REPLICAS
    ),
    "ReplicationController": _Counts(
        ("replicas", *_OF_REPLICAS, "observedGeneration"), _OF_REPLICAS
    ),
    "StatefulSet": _Counts(("replicas", *_OF_SETS, *_ENDS), _OF_SETS),
}


def replica_status_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of the counts of a workload."""
    is_set = new["kind"] == "StatefulSet"
    if not is_set:
        yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    yield from _status_faults(new["status"], _COUNTS[new["kind"]], is_set=is_set)
    if is_set:
        yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    count, before = (one["status"].get("collisionCount") for one in (new, old))
    if before is not None and (count or 0) < before:
        yield invalid("status.collisionCount", count or 0, "cannot be decremented")


def _status_faults(status: Plain, counts: _Counts, *, is_set: bool) -> Iterator[FieldFault]:
    yield from negative_faults(status, "status", *counts.all)
    total = status.get("replicas", 0)
    for name in counts.bounded:
        if status.get(name, 0) > total:
            detail = "cannot be greater than status.replicas"
            yield invalid(f"status.{name}", status.get(name, 0), detail)
    available = status.get("availableReplicas", 0)
    if counts.bounded and available > status.get("readyReplicas", 0):
        detail = f"cannot be greater than {'status.' if is_set else ''}readyReplicas"
        yield invalid("status.availableReplicas", available, detail)
