"""What transcripts must show: rows of failures, transitions of the queue, hints.

Rows and transitions are listed here; registrations are those of the plugins themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random
from typing import Final, NamedTuple

from kubesched.config.feature_gates import FeatureGates
from kubesched.config.load import load_configuration
from kubesched.config.types import API_VERSION, KIND
from kubesched.framework.cluster_event import NODE, POD, Action, ClusterEvent
from kubesched.plugins.registry import in_tree_setup
from kubesched.queue.registrations import Registration, registrations_of
from kubesched.scheduler.profile_building import build_profiles

from .__main__ import HERE
from .transcript import steps_of

UNSCHEDULABLE: Final = "Unschedulable"
ERROR: Final = "SchedulerError"


class Failure(NamedTuple):
    """A row of the table of failures.

    Attributes:
        transcript: Where it is shown.
        pod: Whose attempt fails.
        reason: Of the pod's condition.
        rejectors: The recorded plugins.
        place: Where the pod goes.
        is_undone: Whether plugins unreserve and the pod is forgotten.
        nomination: What becomes of it.
        is_released: Whether an event reports that its room is free.
    """

    transcript: str
    pod: str
    reason: str = ERROR
    rejectors: str = "[]"
    place: str = "backoffQ"
    is_undone: bool = False
    nomination: str = r"nomination \S+ becomes -"
    is_released: bool = False


FAILURES: Final = {
    # A snapshot is the table itself, so that there is no refresh which could fail.
    "zero nodes": Failure("failures/zero_nodes", "p", UNSCHEDULABLE),
    "PreFilter error": Failure("failures/cycle_errors", "p1"),
    "Filter error": Failure("failures/cycle_errors", "p2"),
    "PreScore error": Failure("failures/cycle_errors", "p3"),
    "Score error": Failure("failures/cycle_errors", "p4"),
    "extender error": Failure("extenders/error", "p"),
    "nothing fits": Failure(
        "failures/nothing_fits",
        "p",
        UNSCHEDULABLE,
        "[NodeResourcesFit NodeUnschedulable]",
        "unschedulablePods",
    ),
    "nothing fits, preemption": Failure(
        "preemption/asynchronous",
        "p",
        UNSCHEDULABLE,
        "[NodeResourcesFit]",
        "unschedulablePods",
        nomination="nomination - becomes a",
    ),
    "nothing fits, not eligible": Failure(
        "preemption/never",
        "p",
        UNSCHEDULABLE,
        "[NodeResourcesFit]",
        "unschedulablePods",
        nomination="<message>$",
    ),
    "nothing fits, extender": Failure(
        "extenders/filter",
        "q",
        UNSCHEDULABLE,
        "[Extender NodeUnschedulable]",
        "unschedulablePods",
    ),
    "assume error": Failure("failures/assume_error", "p"),
    "Reserve rejected": Failure(
        "failures/reserve_rejected",
        "p",
        UNSCHEDULABLE,
        "[B]",
        "unschedulablePods",
        is_undone=True,
    ),
    "Reserve rejected, unresolvable": Failure(
        "failures/reserve_unresolvable",
        "p",
        UNSCHEDULABLE,
        "[A]",
        "unschedulablePods",
        is_undone=True,
    ),
    "Reserve pending": Failure(
        "failures/reserve_unresolvable",
        "q",
        UNSCHEDULABLE,
        "[A?]",
        "unschedulablePods",
        is_undone=True,
    ),
    "Reserve error": Failure("failures/reserve_error", "p", is_undone=True),
    "Permit rejected": Failure(
        "failures/permit_rejected",
        "p",
        UNSCHEDULABLE,
        "[B]",
        "unschedulablePods",
        is_undone=True,
    ),
    "Permit error": Failure("failures/permit_error", "p", is_undone=True),
    "PreBindPreFlight error": Failure(
        "failures/pre_bind_pre_flight_error", "p", is_undone=True, is_released=True
    ),
    "WaitOnPermit rejected": Failure(
        "failures/wait_on_permit_rejected",
        "p",
        UNSCHEDULABLE,
        "[A]",
        "unschedulablePods",
        is_undone=True,
        is_released=True,
    ),
    "WaitOnPermit timeout": Failure(
        "failures/wait_on_permit_timeout",
        "p",
        UNSCHEDULABLE,
        "[B]",
        "unschedulablePods",
        is_undone=True,
    ),
    "WaitOnPermit preempted": Failure(
        "failures/wait_on_permit_preempted", "victim", is_undone=True, is_released=True
    ),
    "PreBind failed": Failure("failures/pre_bind_failed", "p", is_undone=True, is_released=True),
    "PreBind rejected": Failure(
        "failures/pre_bind_failed", "q", UNSCHEDULABLE, is_undone=True, is_released=True
    ),
    "PreBind cancelled": Failure(
        "failures/pre_bind_cancelled", "victim", is_undone=True, is_released=True
    ),
    "Bind failed": Failure("failures/bind_failed", "p", is_undone=True, is_released=True),
    "Bind rejected": Failure("failures/bind_rejected", "p", UNSCHEDULABLE),
}

TRANSITIONS: Final = {
    # Name: the transcript, and what stands in it.
    "Add": ("add", "- > activeQ by UnschedulablePodAdd"),
    "Add, gated": ("gates", "- > unschedulablePods by UnschedulablePodAdd, gated by "),
    "Pop": ("add", "activeQ > in flight by PodPopped"),
    "Pop from backoffQ": ("pop_from_backoff", "backoffQ > activeQ by PopFromBackoffQ"),
    "no Pop from backoffQ": ("without_pop_from_backoff", r"backoffQ: p until 1.5 \[A\]"),
    "backoff ends": ("backoff", "backoffQ > activeQ by BackoffComplete"),
    "backoff ends, gated": (
        "without_pop_from_backoff",
        "backoffQ > unschedulablePods by BackoffComplete, gated by A",
    ),
    "failed": ("backoff", r"in flight > backoffQ by ScheduleAttemptFailure \[\]"),
    "rejected": ("timeout", r"in flight > unschedulablePods by ScheduleAttemptFailure \[A\]"),
    "rejected, event in flight": (
        "events_in_flight",
        r"in flight > backoffQ by ScheduleAttemptFailure \[A\]",
    ),
    "rejected, event in flight skipped": (
        "events_in_flight",
        r"in flight > unschedulablePods by ScheduleAttemptFailure \[B\]",
    ),
    "rejected, pending, event in flight": (
        "pending_in_flight",
        "in flight > activeQ by ScheduleAttemptFailure",
    ),
    "rejected, event in flight, gated": (
        "gate_on_the_way_back",
        "q: in flight > unschedulablePods by ScheduleAttemptFailure, gated by A",
    ),
    "rejected, activated in flight": (
        "activate",
        r"flies: in flight > backoffQ by ScheduleAttemptFailure \[A\]",
    ),
    "rejected, deleted in flight": ("delete", "flies: in flight > - by Done"),
    "rejected, born again in flight": ("deleted_while_tried", "p: in flight > - by Done"),
    "rejected, changed in flight": (
        "update_while_tried",
        "p: unschedulablePods > activeQ by UnschedulablePodUpdatePodScaleDown",
    ),
    "done": ("assigned_pods", "unschedulablePods > - by UnschedulablePodDelete"),
    "event, backing off": ("pop_from_backoff", "unschedulablePods > backoffQ by NodeAdd"),
    "event, backed off": ("gate_on_the_way_back", "unschedulablePods > activeQ by NodeAdd"),
    "event, pending": ("pending", "unschedulablePods > activeQ by NodeUpdateNodeAllocatable"),
    "event, skipped": ("assigned_pods", "p: A on AssignedPodAdd: QueueSkip"),
    "event, hint fails": ("hints", "pa: A on NodeAdd: Error"),
    "event, gated": (
        "gate_on_the_way_back",
        "unschedulablePods > unschedulablePods by NodeAdd, gated by A",
    ),
    "event of the gate, closed": (
        "gate_of_plugin",
        "unschedulablePods > unschedulablePods by NodeAdd, gated by A",
    ),
    "event of the gate, open": (
        "gate_of_plugin",
        "unschedulablePods > activeQ by NodeUpdateNodeLabel",
    ),
    "event, by match": ("matching", "p: B on AssignedPodUpdate: QueueSkip"),
    "event, by priority": ("nomination_freed", "same: unschedulablePods > activeQ by AssignedPod"),
    "timeout": ("timeout", "unschedulablePods > activeQ by UnschedulableTimeout"),
    "timeout, gated": ("timeout", "unschedulablePods: gated "),
    "Update in activeQ": ("update_in_active", "p1: placed on a"),
    "Update in backoffQ": ("update_in_backoff", "a: q"),
    "Update in unschedulablePods": (
        "update_in_unschedulable",
        "unschedulablePods > backoffQ by UnschedulablePodUpdatePodToleration",
    ),
    "Update, gate eliminated": (
        "gates",
        "unschedulablePods > activeQ by UnschedulablePodUpdatePodSchedulingGatesEliminated",
    ),
    "Update while assumed": ("update_in_flight", r"in flight > unschedulablePods by .* \[A\]"),
    "Update of a forgotten pod": (
        "assumed_terminating",
        "- > unschedulablePods by UnschedulablePodUpdate, gated by A",
    ),
    "Delete from activeQ": ("delete", "short: activeQ > - by UnschedulablePodDelete"),
    "Delete from backoffQ": ("delete", "failed: backoffQ > - by UnschedulablePodDelete"),
    "Delete from unschedulablePods": (
        "delete",
        "rejected: unschedulablePods > - by UnschedulablePodDelete",
    ),
    "Delete while assumed": ("assumed_deleted", "p forgotten"),
    "Delete, final state unknown": ("watch_lost", "p2: activeQ > - by UnschedulablePodDelete"),
    "Activate from backoffQ": ("activate", "failed: backoffQ > activeQ by ForceActivate"),
    "Activate from unschedulablePods": (
        "activate",
        "rejected: unschedulablePods > activeQ by ForceActivate",
    ),
    "Activate by a plugin": (
        "activate_by_plugin",
        "first: unschedulablePods > activeQ by ForceActivate",
    ),
    "Nominate on entering activeQ": ("nominations", "b: promised"),
    "nodes' events": ("nodes", "p: A on NodeUpdateNodeDeclaredFeature: QueueSkip"),
    "other objects' events": ("other_objects", "A on resource.k8s.io/DeviceClassDelete"),
}

NEVER: Final = {
    # (plugin, event, outcome) that no cluster can show, and why.
    ("NodeName", "NodeAdd", "Queue"): "a pod that names its node is never in the queue",
    ("GangScheduling", "PodAdd", "QueueSkip"): "only pods of the new pod's group are asked",
    ("GangScheduling", "scheduling.k8s.io/PodGroupAdd", "QueueSkip"): "only pods of it are asked",
    ("NodeName", "NodeUpdateNodeTaint", "Queue"): "the same",
    ("DefaultPreemption", "PodDelete", "Queue"): "its hint always says QueueSkip",
    ("NodeDeclaredFeatures", "NodeAdd", "QueueSkip"): "any node that comes counts",
    ("NodeDeclaredFeatures", "NodeUpdateNodeDeclaredFeature", "QueueSkip"): (
        "the event is that the list has changed"
    ),
    ("VolumeBinding", "storage.k8s.io/StorageClassAdd", "QueueSkip"): "any class that comes counts",
    ("VolumeBinding", "storage.k8s.io/CSINodeAdd", "QueueSkip"): "any node that comes counts",
    ("VolumeBinding", "storage.k8s.io/CSIStorageCapacityAdd", "QueueSkip"): (
        "any capacity that comes counts"
    ),
    ("VolumeZone", "PersistentVolumeAdd", "QueueSkip"): "any volume that comes counts",
    ("NodeVolumeLimits", "PersistentVolumeClaimAdd", "QueueSkip"): "only its users are asked",
    ("VolumeBinding", "PersistentVolumeClaimAdd", "QueueSkip"): "only its users are asked",
    ("VolumeBinding", "PersistentVolumeClaimUpdate", "QueueSkip"): "only its users are asked",
    ("VolumeRestrictions", "PersistentVolumeClaimAdd", "QueueSkip"): "only its users are asked",
    ("VolumeZone", "PersistentVolumeClaimAdd", "QueueSkip"): "only its users are asked",
    ("VolumeZone", "PersistentVolumeClaimUpdate", "QueueSkip"): "only its users are asked",
}

_OF_NODES: Final = (
    Action.UPDATE_NODE_ALLOCATABLE
    | Action.UPDATE_NODE_LABEL
    | Action.UPDATE_NODE_TAINT
    | Action.UPDATE_NODE_CONDITION
    | Action.UPDATE_NODE_ANNOTATION
    | Action.UPDATE_NODE_DECLARED_FEATURE
)
_LINE: Final = re.compile(r"^\S+ +hint +\S+: (\S+) on (\S+): (\S+)$")
_POD_EVENT: Final = re.compile(r"^(Assigned|Unschedulable)Pod")


def expected_of(transcript: str) -> str:
    """Return all expected lines of a transcript."""
    steps = steps_of((HERE / f"{transcript}.txt").read_text())
    return "\n".join(line for step in steps for line in step.expected)


def all_registrations() -> tuple[Registration, ...]:
    """Return the registrations of all plugins, with all features on, and of the pseudo plugin."""
    gates = FeatureGates({"GenericWorkload": True, "GangScheduling": True})
    configuration = load_configuration({"apiVersion": API_VERSION, "kind": KIND}, gates)
    (profile,) = build_profiles(in_tree_setup(gates, configuration), Random(0)).values()
    return registrations_of(profile.plugins.values(), has_extenders=True)


def events_of(registered: ClusterEvent) -> Iterator[str]:
    """Yield the labels of events that match a registration, one per kind."""
    action = registered.action
    kinds = [each for each in (Action.ADD, Action.DELETE) if each & action]
    updates = action & Action.UPDATE
    if registered.resource == NODE:
        # A node's update is always of something in particular.
        updates &= _OF_NODES
    if updates == Action.UPDATE:
        kinds.append(Action.UPDATE)
    else:
        kinds += [bit for bit in Action if bit & updates and bit & Action.UPDATE != Action.UPDATE]
    yield from (ClusterEvent(registered.resource, kind).label for kind in kinds)


def wanted_hints() -> set[tuple[str, str, str]]:
    """Return (plugin, event, outcome) of everything that hints can return."""
    return {
        (registration.plugin, event, outcome)
        for registration in all_registrations()
        for event in events_of(registration.event)
        for outcome in (("Queue",) if registration.hint is None else ("Queue", "QueueSkip"))
    }


def shown_hints() -> set[tuple[str, str, str]]:
    """Return (plugin, event, outcome) of everything that hints return in transcripts."""
    shown = set()
    for path in sorted((HERE / "hints").glob("*.txt")):
        for line in expected_of(f"hints/{path.stem}").splitlines():
            found = _LINE.match(line)
            if found is not None:
                plugin, event, outcome = found.groups()
                shown.add((plugin, _POD_EVENT.sub(POD, event), outcome))
    return shown
